"""Quotas: how many dialogues each scenario is to have, as counts of one sequence that only appends when the size grows."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from empathy_eval.design.configuration import Configuration
from empathy_eval.design.scenarios import Catalogue


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Whole quotas that add up to ``total``, by the largest remainder (Hamilton's method) of the normalised shares.

    Equal remainders go to the earlier place. A larger total can lower a quota: it is for what is drawn once, such as the sample of a
    review. Plans grow, and go by :func:`sequence`.
    """
    exact = [total * share / math.fsum(shares) for share in shares]
    quotas = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda place: (quotas[place] - exact[place], place))
    for place in by_remainder[: total - sum(quotas)]:
        quotas[place] += 1
    return quotas


def sequence(shares: Mapping[int, float]) -> Iterator[int]:
    """The scenario numbers of all dialogues there could be, without end, in one fixed order that only appends when the size grows.

    By Sainte-Laguë, one each first: every scenario once, then always the one with the highest share / (2 k + 1), where k is how often it
    was named; equals by number. Exact: a share is the decimal number that is written.
    """
    by_number = {number: 1 / Fraction(str(share)) for number, share in shares.items()}
    # (2 k + 1) / share, lowest first, in whole numbers of one unit: as exact as fractions, and much faster.
    unit = math.lcm(*(one.denominator for one in by_number.values()))
    steps = {number: int(one * unit) for number, one in by_number.items()}
    heap = [(False, step, number) for number, step in steps.items()]
    heapq.heapify(heap)
    while heap:
        _, cost, number = heap[0]
        yield number
        heapq.heapreplace(heap, (True, cost + 2 * steps[number], number))


def quotas(config: Configuration, catalogue: Catalogue) -> dict[int, int]:
    """The number of dialogues each scenario is to have in a release. A larger size lowers none."""
    if config.plan == "seeds":
        return {scenario.number: 1 for scenario in catalogue.scenarios if scenario.seed}
    return {number: sum(place < config.dialogues for place in found) for number, found in places(config, catalogue).items()}


def planned(config: Configuration, catalogue: Catalogue) -> int:
    """How many plans a build has, without drawing them."""
    return len(quotas(config, catalogue)) if config.plan == "seeds" else config.dialogues + _spares(config)


def places(config: Configuration, catalogue: Catalogue) -> dict[int, list[int]]:
    """By scenario the places of its dialogues in the sequence, in the order of their indices: the first ``dialogues`` are wanted.

    The next are spares. One of a scenario without a wanted dialogue would never be released, so there is none. What is a spare here is
    wanted by a larger build, and a larger build plans all that a smaller one did.
    """
    shares = {one.number: one.share for one in catalogue.scenarios if not config.scenarios or one.number in config.scenarios}
    found: dict[int, list[int]] = {number: [] for number in shares}
    order = enumerate(sequence(shares))
    for place, number in itertools.islice(order, config.dialogues):
        found[number].append(place)
    useful = ((place, number) for place, number in order if found[number])
    for place, number in itertools.islice(useful, _spares(config)):
        found[number].append(place)
    return found


def _spares(config: Configuration) -> int:
    """How many spares are planned over all scenarios: the share asked for, rounded up."""
    return math.ceil(config.dialogues * Fraction(str(config.surplus)))


def controls_at(config: Configuration, place: int) -> int:
    """How many control pairs fall to the dialogue at a place of the sequence: one for each in its order, then a second; spares get none.

    So more ``controls`` only append. More ``dialogues`` only append as long as there is at most one control a dialogue, and as long as
    ``controls`` grows by as much in proportion. Else the first controls of new dialogues take the place of second ones, those of the
    latest dialogues before others: to keep all of them, dialogues would have to be filled up one after another, and few would have any.
    The first ``control_dialogues`` have as many as there is room for.
    """
    return config.rules.max_turns if place < min(config.control_dialogues, config.dialogues) else _dealt(config, config.controls, place)


def crossed_at(config: Configuration, place: int) -> int:
    """How many crossed items fall to the dialogue at a place of the sequence: as controls do, one for each before a second."""
    return _dealt(config, config.crossed, place)


def _dealt(config: Configuration, count: int, place: int) -> int:
    return (count + config.dialogues - 1 - place) // config.dialogues if place < config.dialogues else 0
