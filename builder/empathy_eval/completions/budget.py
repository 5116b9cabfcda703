"""The budget: what a build may cost, hard. A request reserves its worst case before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from empathy_eval.base.errors import JobError, Problem, job_error, refuse
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import Usage
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.endpoints import Asks, Prices


def cost(usage: Usage, prices: Prices, delivery: str = "live") -> float:
    """Dollars of a usage; cached input has its own price where there is one, and so has what came in a batch."""
    cached_price = prices.input if prices.cached_input is None else prices.cached_input
    fresh = usage.input_tokens - usage.cached_tokens
    dollars = (fresh * prices.input + usage.cached_tokens * cached_price + usage.output_tokens * prices.output) / 1_000_000
    return dollars * prices.batch if delivery == "batch" else dollars


@dataclass(frozen=True)
class Spent:
    """Tokens (input and output) and, where all models have prices, dollars."""

    tokens: int = 0
    dollars: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.tokens + other.tokens, self.dollars + other.dollars)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.tokens - other.tokens, self.dollars - other.dollars)


class Budget:
    """Keeps a build within dollars or tokens, counting what its ledger has spent on the models of its configuration.

    With a limit, every reservation is written into the ledger before the request is sent: an outcome that stays unknown (a
    time-out, a reset, a killed process) goes on counting, in the next run too. Without a ledger nothing is spent, and nothing sent.
    """

    def __init__(
        self, ledger: Ledger | None = None, prices: Mapping[str, Prices] | None = None, models: Collection[str] = (),
        dollars: float | None = None, tokens: int | None = None,
    ) -> None:  # fmt: skip
        self._ledger, self._prices = ledger, prices or {}
        self.dollars, self.tokens = dollars, tokens
        self.limited = dollars is not None or tokens is not None
        self.spent, self._counted = Spent(), set[str]()
        for model in models:
            self.count(model)
        # What earlier runs reserved and never settled; in this run, what was reserved and is still open or stays unknown.
        self.reserved = Spent()
        self._open = 0
        self._changed = asyncio.Event()
        for model, delivery, usage in ledger.reserved() if ledger is not None and self.limited else ():
            self.reserved += self._of(model, usage, delivery)

    def count(self, name: str) -> None:
        """Counts what the ledger has spent on a model, once."""
        if name not in self._counted:
            self._counted.add(name)
            for model, delivery, usage in self._ledger.spent() if self._ledger is not None else ():
                if model == name:
                    self.spent += self._of(model, usage, delivery)

    @property
    def priced(self) -> bool:
        """Whether dollars can be told."""
        return bool(self._prices)

    def _of(self, model: str, usage: Usage, delivery: str = "live") -> Spent:
        prices = self._prices.get(model)
        return Spent(usage.input_tokens + usage.output_tokens, cost(usage, prices, delivery) if prices else 0.0)

    async def reserve(self, token: str, model: str, worst: Usage) -> None:
        """Sets the worst case of a request aside; waits for open ones to settle where there is no room yet.

        Raises:
            JobError: if there is no room, and no open request whose settling could make some.
        """
        if not self.limited or self._ledger is None:
            return
        while not self._fits(self._of(model, worst)):
            if not self._open:
                raise self.used_up()
            self._changed.clear()
            await self._changed.wait()
        self.reserved += self._of(model, worst)
        self._open += 1
        self._ledger.reserve(token, model, worst)

    def settle(self, token: str, model: str, worst: Usage, used: Usage | None, *, known: bool = True) -> None:
        """Ends a request: ``used`` is what it cost (None: nothing); an outcome that is not known keeps its reservation."""
        if used is not None:
            self.spent += self._of(model, used)
        if not self.limited or self._ledger is None:
            return
        self._open -= 1
        if known:
            self.reserved -= self._of(model, worst)
            self._ledger.release(token)
        self._changed.set()

    def take(self, model: str, worst: Usage) -> bool:
        """Sets the worst case of a request of a batch aside, if there is room; the ledger keeps it with what is under way."""
        more = self._of(model, worst, "batch")
        room = self._fits(more)
        if room:
            self.reserved += more
        return room

    def _fits(self, more: Spent) -> bool:
        total = self.spent + self.reserved + more
        # Sums of dollars are compared with room for their rounding.
        within_dollars = self.dollars is None or total.dollars <= self.dollars + 1e-9
        return within_dollars and (self.tokens is None or total.tokens <= self.tokens)

    def used_up(self) -> JobError:
        """The error that says so."""
        of = f"${self.dollars:.2f}" if self.dollars is not None else f"{self.tokens} tokens"
        used = f"${self.spent.dollars:.4f}" if self.dollars is not None else f"{self.spent.tokens} tokens"
        what = f"the budget of {of} has no room for another request: {used} are spent, the rest is reserved"
        return job_error("--budget", what, "run the same command with a larger budget to go on; every answer is in the ledger")


def make_budget(config: Asks, ledger: Ledger, dollars: float | None, tokens: int | None) -> Budget:
    """The budget of a configuration's models over a ledger.

    Raises:
        InputError: if dollars are limited and a model has no prices.
    """
    endpoints = {role: one for role, one in config.models.items() if one.remote}
    unpriced = [role for role, one in endpoints.items() if one.prices is None]
    fix = "write prices: {input: …, output: …} in dollars per million tokens, or use --budget-tokens"
    refuse(Problem(f"models: {role}", "a budget in dollars needs prices", fix) for role in (unpriced if dollars is not None else ()))
    prices = {} if unpriced else {one.model: one.prices for one in endpoints.values() if one.prices}
    return Budget(ledger, prices, {one.model for one in endpoints.values()}, dollars, tokens)


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
        model, kind, finish, delivery = (one if isinstance(one, str) else repr(one) for one in (model, kind, finish, delivery))
        usage, price = Usage(*tokens), prices.get(model)
        found.append(Spending(model, kind, finish, delivery, count, usage, cost(usage, price, delivery) if price else None))
    return found
