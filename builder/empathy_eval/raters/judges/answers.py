"""What judges answer, against what they were asked: taken as it is, or refused with what to mend; never bent into shape."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from empathy_eval.completions.requests import Flaw
from empathy_eval.design.rubrics import REWARDS, Criterion
from empathy_eval.design.taxonomy import Taxonomy

# How far from 1 probabilities may add up, so that they are still brought to it.
ROUNDED = 0.01


def ratings_of(value: dict[str, Any], criteria: Iterable[Criterion]) -> dict[str, float] | list[Flaw]:
    """By criterion, in the order asked, the numbers of an answer that is valid under ``rating_answer``; or all that is wrong with it."""
    asked = {one.name: one for one in criteria}
    given = [(one["criterion"], one["value"]) for one in value["ratings"]]
    flaws = list(_once("criterion", [name for name, _ in given], asked))
    for name, number in given:
        scale = asked[name].scale if name in asked else None
        if scale and (fault := scale.fault(number)):
            reason = "not_whole" if scale.low <= number <= scale.high else "out_of_bounds"
            flaws.append(Flaw(f"rating_{reason}", f'the value {number} for "{name}" {fault}; give one that is'))
    values = dict(given)
    # Adding 0 takes the sign off a negative zero.
    return flaws or {name: values[name] + 0.0 for name in asked}


def ideal_of(value: dict[str, Any], taxonomy: Taxonomy) -> dict[str, float] | list[Flaw]:
    """By strategy, in the taxonomy's order, probabilities that add up to 1, of an answer valid under ``ideal_answer``; or its flaws."""
    known = [one.abbreviation for one in taxonomy.strategies]
    given = [(one["strategy"], one["probability"]) for one in value["strategies"]]
    flaws = list(_once("strategy", [name for name, _ in given], known))
    for name, number in given:
        if not 0 <= number <= 1:
            flaws.append(
                Flaw("probability_out_of_bounds", f'the probability {number} of "{name}" is not between 0 and 1; give one that is')
            )
    total = math.fsum(number for _, number in given)
    if not flaws and not abs(total - 1) <= ROUNDED + 1e-9:
        flaws.append(Flaw("probabilities_sum", f"the probabilities add up to {total:g}; let them add up to 1"))
    values = dict(given)
    return flaws or {name: values[name] / total + 0.0 for name in known}


def named_of(value: dict[str, Any], taxonomy: Taxonomy) -> str | list[Flaw]:
    """The strategy that an answer names which is valid under ``named_answer``, by its abbreviation; or what is wrong with it."""
    name: str = value["strategy"]
    return name if name in taxonomy else [_unknown("strategy", name, [one.abbreviation for one in taxonomy.strategies])]


def reward_of(value: dict[str, Any], label: str | int | None) -> float | list[Flaw]:
    """The number of an answer that is valid under ``reward_answer``, of the class of that label where one is named; or its flaws."""
    given = [(one["label"], one["value"]) for one in value["rewards"]]
    if label is None and len(given) > 1:
        return [Flaw("reward_of_several_classes", f"there are {len(given)} classes, and none of them is named; name one")]
    found = [number for name, number in given if label in (None, name)]
    if len(found) > 1:
        return [Flaw("reward_twice", f'"{label}" is there {len(found)} times; give it once')]
    if not found and given:
        return [Flaw("reward_label_unknown", f'there is no class "{label}"; name one of those that there are')]
    if not found or found[0] is None:
        return [Flaw("reward_missing", "there is no number; give one")]
    if not isinstance(found[0], int | float):
        return [Flaw("reward_not_finite", f"the number is {found[0][:80]}; give a finite one")]
    fault = REWARDS.fault(found[0])
    return [Flaw("reward_out_of_range", f"the number {found[0]:g} {fault}; give one that is")] if fault else found[0]


def _once(what: str, given: list[str], asked: Iterable[str]) -> Iterator[Flaw]:
    """Flaws of an answer that has not each of what was asked for exactly once."""
    counts, asked = Counter(given), list(asked)
    for name in asked:
        if not counts[name]:
            yield Flaw(f"{what}_missing", f'"{name}" is missing; answer for each {what} that was asked for')
    for name, times in counts.items():
        if name not in asked:
            yield _unknown(what, name, asked)
        elif times > 1:
            yield Flaw(f"{what}_repeated", f'"{name}" is there {times} times; answer for each {what} once')


def _unknown(what: str, name: str, asked: Iterable[str]) -> Flaw:
    return Flaw(f"{what}_unknown", f'"{name[:80]}" is no {what} that was asked for; use {", ".join(asked)}')
