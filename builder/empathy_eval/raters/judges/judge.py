"""Judging of one case: requests, and the parsing of answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from empathy_eval.completions.asker import Asker, Trail, gather_all
from empathy_eval.completions.requests import About, Flaw, NoAnswer
from empathy_eval.design.contrasts import REFERENCE
from empathy_eval.design.judge_prompts import JudgePrompts
from empathy_eval.design.kinds import IDEAL, NAMED, PREFERENCE, RATING, REWARD, Kind
from empathy_eval.design.rubrics import REWARD as REWARDED
from empathy_eval.design.rubrics import REWARDS, Criterion, Rubric
from empathy_eval.design.taxonomy import Taxonomy
from empathy_eval.raters.judges.annotations import Annotated, JudgeComparison, NamedStrategy, Rating
from empathy_eval.raters.judges.cases import Case

# Tolerance of the sum of probabilities, which are normalised.
ROUNDED = 0.01


def ratings_of(value: dict[str, Any], criteria: Iterable[Criterion]) -> dict[str, float] | list[Flaw]:
    """Numbers of an answer that is valid under ``rating_answer``, by criterion in the order requested; or its flaws."""
    requested = {criterion.name: criterion for criterion in criteria}
    pairs = [(rating["criterion"], rating["value"]) for rating in value["ratings"]]
    flaws = list(_once("criterion", [name for name, _ in pairs], requested))
    for name, number in pairs:
        scale = requested[name].scale if name in requested else None
        if scale and (fault := scale.fault(number)):
            reason = "not_whole" if scale.low <= number <= scale.high else "out_of_bounds"
            flaws.append(Flaw(f"rating_{reason}", f'the value {number} for "{name}" {fault}; give one that is'))
    values = dict(pairs)
    # Adding 0 takes the sign off a negative zero.
    return flaws or {name: values[name] + 0.0 for name in requested}


def ideal_of(value: dict[str, Any], taxonomy: Taxonomy) -> dict[str, float] | list[Flaw]:
    """Probabilities of an answer valid under ``ideal_answer``, by strategy in the taxonomy's order, summing to 1; or its flaws."""
    known = [strategy.abbreviation for strategy in taxonomy.strategies]
    pairs = [(strategy["strategy"], strategy["probability"]) for strategy in value["strategies"]]
    flaws = list(_once("strategy", [name for name, _ in pairs], known))
    for name, number in pairs:
        if not 0 <= number <= 1:
            what = f'the probability {number} of "{name}" is not between 0 and 1; give one that is'
            flaws.append(Flaw("probability_out_of_bounds", what))
    total = math.fsum(number for _, number in pairs)
    if not flaws and not abs(total - 1) <= ROUNDED + 1e-9:
        flaws.append(Flaw("probabilities_sum", f"the probabilities add up to {total:g}; let them add up to 1"))
    values = dict(pairs)
    return flaws or {name: values[name] / total + 0.0 for name in known}


def named_of(value: dict[str, Any], taxonomy: Taxonomy) -> str | list[Flaw]:
    """Abbreviation of the strategy named by an answer that is valid under ``named_answer``; or its flaws."""
    name: str = value["strategy"]
    return name if name in taxonomy else [_unknown("strategy", name, [strategy.abbreviation for strategy in taxonomy.strategies])]


def reward_of(value: dict[str, Any], label: str | int | None) -> float | list[Flaw]:
    """Number of an answer that is valid under ``reward_answer``, of the class with that label if there is one; or its flaws."""
    pairs = [(reward["label"], reward["value"]) for reward in value["rewards"]]
    if label is None and len(pairs) > 1:
        return [Flaw("reward_of_several_classes", f"there are {len(pairs)} classes, and none of them is named; name one")]
    numbers = [number for name, number in pairs if label in (None, name)]
    if len(numbers) > 1:
        return [Flaw("reward_twice", f'"{label}" is there {len(numbers)} times; give it once')]
    if not numbers and pairs:
        return [Flaw("reward_label_unknown", f'there is no class "{label}"; name one of those that there are')]
    if not numbers or numbers[0] is None:
        return [Flaw("reward_missing", "there is no number; give one")]
    if not isinstance(numbers[0], int | float):
        return [Flaw("reward_not_finite", f"the number is {numbers[0][:80]}; give a finite one")]
    fault = REWARDS.fault(numbers[0])
    return [Flaw("reward_out_of_range", f"the number {numbers[0]:g} {fault}; give one that is")] if fault else numbers[0]


def _once(what: str, names: list[str], requested: Iterable[str]) -> Iterator[Flaw]:
    """Flaws of an answer that does not have each requested name exactly once."""
    counts, requested = Counter(names), list(requested)
    for name in requested:
        if not counts[name]:
            yield Flaw(f"{what}_missing", f'"{name}" is missing; answer for each {what} that was asked for')
    for name, times in counts.items():
        if name not in requested:
            yield _unknown(what, name, requested)
        elif times > 1:
            yield Flaw(f"{what}_repeated", f'"{name}" is there {times} times; answer for each {what} once')


def _unknown(what: str, name: str, requested: Iterable[str]) -> Flaw:
    return Flaw(f"{what}_unknown", f'"{name[:80]}" is no {what} that was asked for; use {", ".join(requested)}')


# Default comparisons; both variants must be present.
COMPARED = (
    (REFERENCE, "apathetic"), ("empathetic", "apathetic"), ("empathetic", REFERENCE),
    ("near_empathetic", "apathetic"), ("empathetic", "far_apathetic"),
)  # fmt: skip


def compared(case: Case) -> list[tuple[str, str]]:
    """Pairs of variants to compare, each with the first by name first."""
    if case.compared is not None:
        return list(case.compared)
    return [(min(pair), max(pair)) for pair in COMPARED if case.texts.keys() >= set(pair)]


def requests_of(rubric: Rubric, case: Case) -> int:
    """How many requests a sample of a case takes where each is answered well at once; equal texts are one."""
    read = [(variant, "") for variant in case.wholes] if case.turn is None else case.texts.items()
    texts = len({(case.before(variant), text) for variant, text in read})
    each = {"rating": texts * len(rubric.requests), "preference": 2 * len(compared(case)), "strategies": 1 + texts, "reward": texts}
    return each[rubric.kind]


@dataclass(frozen=True)
class Judge:
    """Rates, compares or names the texts of cases. It never learns which variant it reads, nor sees another one while it rates.

    ``label`` is the class of a reward model whose number counts, if it has several.
    """

    asker: Asker
    prompts: JudgePrompts
    samples: int = 1
    label: str | int | None = None

    async def case(self, case: Case) -> Annotated:
        """Annotate a case; without an answer it is missing, once all pending answers are stored."""
        trail = Trail()
        key = case.dialogue_id, case.turn, case.pair_id
        field, asks = _CaseRequests(self, case, trail).asks()
        try:
            rows_by_ask = await gather_all(*(ask(sample) for ask in asks for sample in range(self.samples)))
        except NoAnswer as error:
            return Annotated(*key, "missing", (str(error),))
        rows: dict[str, Any] = {field: tuple(row for batch in rows_by_ask for row in batch)}
        return Annotated(*key, "accepted", **rows, failures=trail.sorted_failures(), usage=trail.plain_usage())


@dataclass(frozen=True)
class _CaseRequests:
    """The requests of one case."""

    judge: Judge
    case: Case
    trail: Trail

    def asks(self) -> tuple[str, list[Callable[[int], Coroutine[Any, Any, Sequence[Any]]]]]:
        """The field of the result, and its coroutine functions by sample; a request without a good answer yields nothing."""
        rubric, texts = self.judge.prompts.rubric, list(self.case.texts.items())
        match rubric.kind:
            case "preference":
                return "comparisons", [partial(self.comparison, *pair) for pair in compared(self.case)]
            case "strategies":
                return "strategies", [self.strategies]
            case "reward":
                return "ratings", [partial(self.reward, *text) for text in texts]
        read: Sequence[tuple[str | None, str | None]] = texts
        read = [(variant, None) for variant in self.case.wholes] if self.case.turn is None else read
        return "ratings", [partial(self.ratings, *text, criteria) for text in read for criteria in rubric.requests]

    async def _ask(self, kind: Kind, messages: Any, value_of: Callable[[Any], Any], sample: int) -> Any:
        async def judge(value: Any) -> Any:
            return value_of(value)

        about = About(self.case.dialogue_id, kind.name, self.case.turn)
        asker = self.judge.asker
        return await asker.ask(about, messages, judge, self.trail, sample * asker.samples)

    def _context(self, variant: str | None = None) -> list[dict[str, str]]:
        return [{"role": role, "text": text} for role, text in self.case.before(variant)]

    async def ratings(self, variant: str | None, text: str | None, criteria: tuple[Criterion, ...], sample: int) -> list[Rating]:
        """Values of some criteria for one text."""

        def value_of(value: Any) -> tuple[dict[str, float], str] | list[Flaw]:
            ratings = ratings_of(value, criteria)
            return ratings if isinstance(ratings, list) else (ratings, value["analysis"].strip())

        answer = await self._ask(RATING, self.judge.prompts.rating(criteria, self._context(variant), text), value_of, sample)
        values, reason = answer.value if answer else ({}, "")
        return [Rating(variant, name, sample, value, reason, answer.request_key) for name, value in values.items()]

    async def comparison(self, first: str, other: str, sample: int) -> list[JudgeComparison]:
        """Comparison of two texts in both orders; none if either had no good sample."""

        async def shown(first: str, second: str) -> tuple[str, str, str] | None:
            messages = self.judge.prompts.preference(self._context(), self.case.texts[first], self.case.texts[second])
            answer = await self._ask(PREFERENCE, messages, lambda value: (value["better"], value["analysis"].strip()), sample)
            return answer and (first if answer.value[0] == "A" else second, answer.value[1], answer.request_key)

        forth, back = await gather_all(shown(first, other), shown(other, first))
        if not (forth and back):
            return []
        return [JudgeComparison(first, other, sample, *(part for both in zip(forth, back, strict=True) for part in both))]

    async def reward(self, variant: str, text: str, sample: int) -> list[Rating]:
        """Number of a reward model for one text."""
        messages = self.judge.prompts.reward(self._context(variant), text)
        answer = await self._ask(REWARD, messages, lambda value: reward_of(value, self.judge.label), sample)
        return [Rating(variant, REWARDED, sample, float(answer.value), "", answer.request_key)] if answer else []

    async def strategies(self, sample: int) -> list[NamedStrategy]:
        """Probabilities of strategies before a reply is shown, then the strategy named for each text."""
        prompts, texts = self.judge.prompts, self.case.texts
        before = await self._ask(IDEAL, prompts.ideal(self._context()), lambda value: ideal_of(value, prompts.taxonomy), sample)
        if before is None:
            return []
        named = [prompts.named(self._context(), text) for text in texts.values()]
        read = partial(named_of, taxonomy=prompts.taxonomy)
        answers = await gather_all(*(self._ask(NAMED, messages, read, sample) for messages in named))
        return [
            NamedStrategy(variant, sample, answer.value, answer.request_key, before.value, before.request_key)
            for variant, answer in zip(texts, answers, strict=True)
            if answer is not None
        ]
