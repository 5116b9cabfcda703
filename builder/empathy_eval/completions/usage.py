"""What a ledger holds and cost, by model, kind, finish reason and delivery."""

from __future__ import annotations

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
