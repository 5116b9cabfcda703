"""A judge at work: one case, ask by ask, to what it says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from empathy_eval.completions.asker import Asker, Trail, settled
from empathy_eval.completions.models.protocol import NoAnswer
from empathy_eval.completions.requests import About, Flaw
from empathy_eval.design.judge_prompts import JudgePrompts
from empathy_eval.design.kinds import IDEAL, NAMED, PREFERENCE, RATING, REWARD
from empathy_eval.design.rubrics import REWARD as REWARDED
from empathy_eval.design.rubrics import Criterion, Rubric
from empathy_eval.raters.judges.annotations import Annotated, Comparison, Judged, Rating
from empathy_eval.raters.judges.answers import ideal_of, named_of, ratings_of, reward_of
from empathy_eval.raters.judges.cases import Case
from empathy_eval.raters.judges.sources import REFERENCE

# What is compared where nothing else is asked for; both must be there.
COMPARED = (
    (REFERENCE, "apathetic"), ("empathetic", "apathetic"), ("empathetic", REFERENCE),
    ("near_empathetic", "apathetic"), ("empathetic", "far_apathetic"),
)  # fmt: skip


def compared(case: Case) -> list[tuple[str, str]]:
    """The pairs of variants that are compared, each with the first by name first."""
    return [(min(pair), max(pair)) for pair in COMPARED if case.texts.keys() >= set(pair)]


def requests_of(rubric: Rubric, case: Case) -> int:
    """How many requests a sample of a case takes where each is answered well at once; equal texts are one."""
    texts = 1 if case.turn is None else len({(case.before(variant), text) for variant, text in case.texts.items()})
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
        """All that is asked of a case; what no answer comes to leaves it missing, once all that was under way is stored."""
        trail = Trail()
        place = case.dialogue_id, case.turn, case.pair_id
        ask = {"rating": self._ratings, "preference": self._comparisons, "strategies": self._strategies, "reward": self._rewards}
        try:
            found = await ask[self.prompts.rubric.kind](_Asked(self, case, trail))
        except NoAnswer as error:
            return Annotated(*place, "missing", (str(error),))
        return Annotated(*place, "accepted", **found, failures=trail.sorted_failures(), usage=trail.plain_usage())

    async def _ratings(self, asked: _Asked) -> dict[str, Any]:
        texts: Sequence[tuple[str | None, str | None]] = [(None, None)] if asked.case.turn is None else list(asked.case.texts.items())
        made = await settled(
            *(
                asked.ratings(variant, text, criteria, sample)
                for variant, text in texts
                for criteria in self.prompts.rubric.requests
                for sample in range(self.samples)
            )
        )
        return {"ratings": tuple(one for some in made for one in some)}

    async def _comparisons(self, asked: _Asked) -> dict[str, Any]:
        pairs = compared(asked.case)
        made = await settled(*(asked.comparison(one, other, sample) for one, other in pairs for sample in range(self.samples)))
        return {"comparisons": tuple(one for one in made if one)}

    async def _strategies(self, asked: _Asked) -> dict[str, Any]:
        made = await settled(*(asked.strategies(sample) for sample in range(self.samples)))
        return {"strategies": tuple(one for some in made for one in some)}

    async def _rewards(self, asked: _Asked) -> dict[str, Any]:
        texts = asked.case.texts.items()
        made = await settled(*(asked.reward(variant, text, sample) for variant, text in texts for sample in range(self.samples)))
        return {"ratings": tuple(one for one in made if one)}


@dataclass(frozen=True)
class _Asked:
    """What is asked about one case."""

    judge: Judge
    case: Case
    trail: Trail

    async def _ask(self, kind: str, messages: Any, judge: Any, sample: int) -> Any:
        about = About(self.case.dialogue_id, kind, self.case.turn)
        asker = self.judge.asker
        return await asker.ask(about, messages, judge, self.trail, sample * asker.samples)

    def _context(self, variant: str | None = None) -> list[dict[str, str]]:
        return [{"role": role, "text": text} for role, text in self.case.before(variant)]

    async def ratings(self, variant: str | None, text: str | None, criteria: tuple[Criterion, ...], sample: int) -> list[Rating]:
        """The values of some criteria for one text; none where no sample was good."""

        async def judge(value: Any) -> tuple[dict[str, float], str] | list[Flaw]:
            found = ratings_of(value, criteria)
            return found if isinstance(found, list) else (found, value["analysis"].strip())

        answer = await self._ask(RATING.name, self.judge.prompts.rating(criteria, self._context(variant), text), judge, sample)
        if answer is None:
            return []
        values, reason = answer.value
        return [Rating(variant, name, sample, value, reason, answer.request_key) for name, value in values.items()]

    async def comparison(self, one: str, other: str, sample: int) -> Comparison | None:
        """Both orders of two texts; None where either had no good sample."""

        async def judge(value: Any) -> tuple[str, str]:
            return value["better"], value["analysis"].strip()

        async def shown(first: str, second: str) -> tuple[str, str, str] | None:
            messages = self.judge.prompts.preference(self._context(), self.case.texts[first], self.case.texts[second])
            answer = await self._ask(PREFERENCE.name, messages, judge, sample)
            return answer and (first if answer.value[0] == "A" else second, answer.value[1], answer.request_key)

        there, back = await settled(shown(one, other), shown(other, one))
        return Comparison(one, other, sample, there[0], back[0], there[1], back[1], there[2], back[2]) if there and back else None

    async def reward(self, variant: str, text: str, sample: int) -> Rating | None:
        """The number of a reward model for one text; None where it gave none that is one."""

        async def judge(value: Any) -> float | list[Flaw]:
            return reward_of(value, self.judge.label)

        answer = await self._ask(REWARD.name, self.judge.prompts.reward(self._context(variant), text), judge, sample)
        return answer and Rating(variant, REWARDED, sample, float(answer.value), "", answer.request_key)

    async def strategies(self, sample: int) -> list[Judged]:
        """How likely each strategy is the right one before there is a reply, then which one each text uses."""
        taxonomy = self.judge.prompts.taxonomy

        async def ideal(value: Any) -> dict[str, float] | list[Flaw]:
            return ideal_of(value, taxonomy)

        async def named(value: Any) -> str | list[Flaw]:
            return named_of(value, taxonomy)

        before = await self._ask(IDEAL.name, self.judge.prompts.ideal(self._context()), ideal, sample)
        if before is None:
            return []
        texts = self.case.texts
        asked = (self._ask(NAMED.name, self.judge.prompts.named(self._context(), text), named, sample) for text in texts.values())
        return [
            Judged(variant, sample, answer.value, answer.request_key, before.value, before.request_key)
            for variant, answer in zip(texts, await settled(*asked), strict=True)
            if answer is not None
        ]
