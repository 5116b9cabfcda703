"""What a ledger holds and cost, by model, kind, finish reason and delivery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from empathy_eval.completions.budget import cost
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import Usage
from empathy_eval.design.configuration import Configuration

QUERY = """
SELECT model, kind, finish, delivery, count(*), sum(input_tokens), sum(cached_tokens), sum(output_tokens)
FROM sound_completions GROUP BY model, kind, finish, delivery ORDER BY model, kind, finish, delivery
"""


@dataclass(frozen=True)
class Spending:
    """Answers of one model, kind, finish reason and delivery; dollars are None without prices."""

    model: str
    kind: str
    finish: str
    delivery: str
    answers: int
    usage: Usage
    dollars: float | None


def spending(ledger: Ledger, config: Configuration | None = None) -> list[Spending]:
    """Sums over the ledger, priced by the configuration's models. Rows that are damaged count too: what they cost was paid."""
    prices = {one.model: one.prices for one in config.models.values() if one.prices} if config else {}
    found = []
    for model, kind, finish, delivery, count, *tokens in ledger.query(QUERY):
        usage, price = Usage(*tokens), prices.get(model)
        dollars = cost(usage, price, delivery) if price else None
        found.append(Spending(_text(model), _text(kind), _text(finish), _text(delivery), count, usage, dollars))
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def spending_table(rows: Sequence[Spending]) -> str:
    """The rows as lines of text, with their sum."""
    lines = [
        f"{'model':<28}{'kind':<16}{'finish':<16}{'delivery':<10}{'answers':>10}{'input':>13}{'cached':>13}{'output':>13}{'spent':>12}"
    ]
    for row in rows:
        spent = "no prices" if row.dollars is None else f"${row.dollars:,.4f}"
        tokens = f"{row.usage.input_tokens:>13,}{row.usage.cached_tokens:>13,}{row.usage.output_tokens:>13,}"
        names = f"{_cell(row.model, 28)}{_cell(row.kind, 16)}{_cell(row.finish, 16)}{_cell(row.delivery, 10)}"
        lines.append(f"{names}{row.answers:>10,}{tokens}{spent:>12}")
    known = [row.dollars for row in rows if row.dollars is not None]
    total = f"${sum(known):,.4f}" if known else ""
    lines.append(f"{'in all':<70}{sum(row.answers for row in rows):>10,}{'':>39}{total:>12}")
    return "\n".join(lines)


def signs(text: str) -> str:
    """A stranger's words as a terminal may have them: what is no sign is a question mark."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _cell(text: str, width: int) -> str:
    return f"{signs(text[: width - 2]):<{width}}"
