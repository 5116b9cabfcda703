"""Quotas of dialogues by scenario, from one sequence that only appends when the size grows."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from empathy_eval.design.configuration import Configuration
from empathy_eval.design.scenarios import Catalogue


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Integer quotas that add up to ``total``, by largest remainder (Hamilton's method) of the normalised shares.

    Ties go to the earlier index. A larger total can lower a quota, so this is for samples that are drawn once, such as a review. Plans
    grow, and use :func:`sequence`.
    """
    exact = [total * share / math.fsum(shares) for share in shares]
    quotas = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: (quotas[index] - exact[index], index))
    for index in by_remainder[: total - sum(quotas)]:
        quotas[index] += 1
    return quotas


def sequence(shares: Mapping[int, float]) -> Iterator[int]:
    """The endless sequence of scenario numbers of all dialogues; a larger size only appends.

    By Sainte-Laguë, with one dialogue each first: every scenario once, then always the one with the highest share / (2 k + 1), where k is
    its count so far; ties by number. Exact, since a share is the decimal number that is written.
    """
    by_number = {number: 1 / Fraction(str(share)) for number, share in shares.items()}
    # (2 k + 1) / share, lowest first, in whole numbers of one unit: as exact as fractions, and much faster.
    unit = math.lcm(*(fraction.denominator for fraction in by_number.values()))
    steps = {number: int(fraction * unit) for number, fraction in by_number.items()}
    heap = [(False, step, number) for number, step in steps.items()]
    heapq.heapify(heap)
    while heap:
        _, cost, number = heap[0]
        yield number
        heapq.heapreplace(heap, (True, cost + 2 * steps[number], number))


def quotas(config: Configuration, catalogue: Catalogue) -> dict[int, int]:
    """The number of dialogues of each scenario in a release. A larger size lowers none."""
    if config.plan == "seeds":
        return {scenario.number: 1 for scenario in catalogue.scenarios if scenario.seed}
    by_scenario = sequence_positions(config, catalogue)
    return {number: sum(position < config.dialogues for position in positions) for number, positions in by_scenario.items()}


def planned_count(config: Configuration, catalogue: Catalogue) -> int:
    """How many plans a build has, without drawing them."""
    return len(quotas(config, catalogue)) if config.plan == "seeds" else config.dialogues + _spares(config)


def sequence_positions(config: Configuration, catalogue: Catalogue) -> dict[int, list[int]]:
    """By scenario, the positions of its dialogues in the sequence, in index order; the first ``dialogues`` positions are wanted.

    The next ones are spares. A scenario without a wanted dialogue gets none, because it would never be released. A spare is wanted in a
    larger build, and a larger build plans all that a smaller one did.
    """
    scenarios = [scenario for scenario in catalogue.scenarios if not config.scenarios or scenario.number in config.scenarios]
    shares = {scenario.number: scenario.share for scenario in scenarios}
    positions: dict[int, list[int]] = {number: [] for number in shares}
    order = enumerate(sequence(shares))
    for position, number in itertools.islice(order, config.dialogues):
        positions[number].append(position)
    useful = ((position, number) for position, number in order if positions[number])
    for position, number in itertools.islice(useful, _spares(config)):
        positions[number].append(position)
    return positions


def _spares(config: Configuration) -> int:
    """The number of spares over all scenarios: the configured share, rounded up."""
    return math.ceil(config.dialogues * Fraction(str(config.surplus)))


def controls_at(config: Configuration, position: int) -> int:
    """How many control pairs the dialogue at a position gets: one for each dialogue in order, then a second; spares get none.

    So more ``controls`` only append. More ``dialogues`` only append while no dialogue has more than one control, and while ``controls``
    grows in proportion. Otherwise the first controls of new dialogues replace second ones, of the latest dialogues first: to keep all of
    them, dialogues would have to be filled one after another, and few would have any. The first ``control_dialogues`` dialogues have as
    many as fit.
    """
    full = position < min(config.control_dialogues, config.dialogues)
    return config.rules.max_turns if full else _dealt(config, config.controls, position)


def crossed_at(config: Configuration, position: int) -> int:
    """How many crossed items the dialogue at a position gets: dealt as controls are."""
    return _dealt(config, config.crossed, position)


def _dealt(config: Configuration, count: int, position: int) -> int:
    return (count + config.dialogues - 1 - position) // config.dialogues if position < config.dialogues else 0
