"""How students are taught: the settings of a course, and which lessons each of its steps has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from empathy_eval.base.hashing import derived_random

BOTH, REGRESSION, RANKING = OBJECTIVES = ("both", "regression", "ranking")
Step = tuple[list[int], list[int]]


@dataclass(frozen=True)
class Course:
    """The settings. A step has so many single texts and so many pairs; their losses are added, that of pairs with its weight.

    A course ends early after ``patience`` epochs without one that is better, and the best one counts.

    ``save_seconds`` is the time between checkpoints; it changes no number.
    """

    objective: str = BOTH
    shared: bool = False
    max_tokens: int = 512
    rate: float = 2e-5
    decay: float = 0.01
    warm_up: float = 0.1
    clip: float = 1.0
    patience: int = 2
    seed: int = 42
    epochs: int = 5
    singles: int = 32
    pairs: int = 16
    margin: float = 0.1
    rank_weight: float = 0.5
    save_seconds: float = field(default=60.0, compare=False)

    def settings(self) -> dict[str, Any]:
        """All that could change a number."""
        return {name: value for name, value in asdict(self).items() if name != "save_seconds"}

    def rate_at(self, step: int, steps: int) -> float:
        """The rate of a step, from 0, of so many: it rises over the first of them, then falls in a line to 0."""
        rising = int(steps * self.warm_up)
        if step < rising:
            return self.rate * (step + 1) / rising
        return self.rate * (steps - step) / (steps - rising)

    def steps_of(self, epoch: int, singles: int, pairs: int) -> list[Step]:
        """The steps of an epoch, each the places of its singles and of its pairs: all singles once, and pairs again and again.

        Without singles it is all pairs once. Which come when hangs on the seed and the epoch alone.
        """
        own = self._shuffled("singles", epoch, singles)
        many = -(-singles // self.singles) if singles else -(-pairs // self.pairs)
        cycled, drawn = self._cycled(epoch, pairs), list[Step]()
        for step in range(many):
            least = self.pairs if singles else min(self.pairs, pairs - step * self.pairs)
            drawn.append((own[step * self.singles : (step + 1) * self.singles], [next(cycled) for _ in range(least)] if pairs else []))
        return drawn

    def _cycled(self, epoch: int, pairs: int) -> Iterator[int]:
        round_ = 0
        while pairs:
            yield from self._shuffled(f"pairs {round_}", epoch, pairs)
            round_ += 1

    def _shuffled(self, what: str, epoch: int, many: int) -> list[int]:
        places = list(range(many))
        derived_random(self.seed, what, epoch).shuffle(places)
        return places
