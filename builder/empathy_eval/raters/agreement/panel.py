"""Who is who among raters, and which criteria belong together: what the page of reliability is laid out by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from empathy_eval.design.rubrics import Scale

# What the third group is called where raters are named.
CROWD = "crowd"
# What figures are of beside raters, who must not be called so.
GROUPS = ("experts", "judges", "median expert", CROWD)
# How the ratings of a crowd become one an item.
CROWD_AS = ("mean", "median")


@dataclass(frozen=True)
class Judge:
    """A rater that is a judge: what the ``judge`` is called whose samples it has, the model and style behind it (None: nobody said)."""

    rater: str
    judge: str
    model: str | None = None
    style: str | None = None
    sample: int = 1


@dataclass(frozen=True)
class Panel:
    """Who is who: each rater is an expert, a judge (or a further sample of one) or one of the crowd."""

    experts: tuple[str, ...]
    judges: tuple[Judge, ...] = ()
    crowd: tuple[str, ...] = ()
    crowd_as: str = "mean"

    @property
    def first(self) -> tuple[Judge, ...]:
        """The judges by their first samples: the ones that figures are about, but for stability."""
        return tuple(one for one in self.judges if one.rater == self.samples[one.judge][0].rater)

    @property
    def samples(self) -> dict[str, tuple[Judge, ...]]:
        """The samples of each judge, in their order, by what the judge is called."""
        ordered = sorted(self.judges, key=lambda one: (one.judge, one.sample, one.rater))
        return {name: tuple(one for one in ordered if one.judge == name) for name in dict.fromkeys(one.judge for one in self.judges)}


@dataclass(frozen=True)
class Framework:
    """Criteria that belong together, with what their rubric says of them, by criterion, where there is one.

    The framework without a name has the criteria that belong to none. ``opposites`` are pairs that contradict each other, each once.
    """

    name: str
    title: str
    criteria: tuple[str, ...]
    scales: Mapping[str, Scale] = field(default_factory=dict)
    better: Mapping[str, str] = field(default_factory=dict)
    opposites: tuple[tuple[str, str], ...] = ()
