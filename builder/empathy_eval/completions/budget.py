"""Budgets: a hard limit on the cost of a build. Each request reserves its worst case before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from empathy_eval.base.errors import JobError, Problem, job_error, refuse
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import Usage
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.endpoints import JobConfig, Prices

QUERY = """
SELECT model, kind, finish, delivery, count(*), sum(input_tokens), sum(cached_tokens), sum(output_tokens)
FROM sound_completions GROUP BY model, kind, finish, delivery ORDER BY model, kind, finish, delivery
"""


def cost(usage: Usage, prices: Prices, delivery: str = "live") -> float:
    """The dollars of a usage; cached input and batches have their own prices if configured."""
    cached_price = prices.input if prices.cached_input is None else prices.cached_input
    fresh = usage.input_tokens - usage.cached_tokens
    dollars = (fresh * prices.input + usage.cached_tokens * cached_price + usage.output_tokens * prices.output) / 1_000_000
    return dollars * prices.batch if delivery == "batch" else dollars


@dataclass(frozen=True)
class Spent:
    """Tokens (input and output) and, if all models have prices, dollars."""

    tokens: int = 0
    dollars: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.tokens + other.tokens, self.dollars + other.dollars)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.tokens - other.tokens, self.dollars - other.dollars)


class Budget:
    """Limits dollars or tokens, counting what the ledger has spent on the configured models.

    With a limit, reservations are written into the ledger before sending: an unknown outcome (a time-out, a reset, a killed process) stays
    counted, in later runs too. Without a ledger nothing is spent, and nothing sent.
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
        """Whether dollars are known."""
        return bool(self._prices)

    def _of(self, model: str, usage: Usage, delivery: str = "live") -> Spent:
        prices = self._prices.get(model)
        return Spent(usage.input_tokens + usage.output_tokens, cost(usage, prices, delivery) if prices else 0.0)

    async def reserve(self, token: str, model: str, worst: Usage) -> None:
        """Reserves the worst case of a request; waits for open ones if there is no room yet.

        Raises:
            JobError: if there is no room, and no open request that could make some.
        """
        if not self.limited or self._ledger is None:
            return
        while not self._fits(self._of(model, worst)):
            if not self._open:
                raise self.exhausted_error()
            self._changed.clear()
            await self._changed.wait()
        self.reserved += self._of(model, worst)
        self._open += 1
        self._ledger.reserve(token, model, worst)

    def settle(self, token: str, model: str, worst: Usage, used: Usage | None, *, known: bool = True) -> None:
        """Ends a request: ``used`` is its cost (None: nothing); an unknown outcome keeps its reservation."""
        if used is not None:
            self.spent += self._of(model, used)
        if not self.limited or self._ledger is None:
            return
        self._open -= 1
        if known:
            self.reserved -= self._of(model, worst)
            self._ledger.release(token)
        self._changed.set()

    def reserve_batch(self, model: str, worst: Usage) -> bool:
        """Reserves the worst case of a request of a batch; returns whether there was room. The ledger keeps it with the batch."""
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

    def exhausted_error(self) -> JobError:
        """The error for an exhausted budget."""
        of = f"${self.dollars:.2f}" if self.dollars is not None else f"{self.tokens} tokens"
        used = f"${self.spent.dollars:.4f}" if self.dollars is not None else f"{self.spent.tokens} tokens"
        what = f"the budget of {of} has no room for another request: {used} are spent, the rest is reserved"
        return job_error("--budget", what, "run the same command with a larger budget to go on; every answer is in the ledger")


def make_budget(config: JobConfig, ledger: Ledger, dollars: float | None, tokens: int | None) -> Budget:
    """The budget of a configuration's models over a ledger.

    Raises:
        InputError: if dollars are limited and a model has no prices.
    """
    endpoints = {role: model for role, model in config.models.items() if model.remote}
    unpriced = [role for role, model in endpoints.items() if model.prices is None]
    fix = "write prices: {input: …, output: …} in dollars per million tokens, or use --budget-tokens"
    refuse(Problem(f"models: {role}", "a budget in dollars needs prices", fix) for role in (unpriced if dollars is not None else ()))
    prices = {} if unpriced else {model.model: model.prices for model in endpoints.values() if model.prices}
    return Budget(ledger, prices, {model.model for model in endpoints.values()}, dollars, tokens)


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
    """Sums over the ledger, at the configuration's prices. Damaged rows count too, since they were paid for."""
    prices = {configured.model: configured.prices for configured in config.models.values() if configured.prices} if config else {}
    result = []
    for model, kind, finish, delivery, count, *tokens in ledger.query(QUERY):
        model, kind, finish, delivery = (value if isinstance(value, str) else repr(value) for value in (model, kind, finish, delivery))
        usage, price = Usage(*tokens), prices.get(model)
        result.append(Spending(model, kind, finish, delivery, count, usage, cost(usage, price, delivery) if price else None))
    return result
