"""Responding: systems and the contexts of a release as one job, worked through as a build is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from empathy_eval.base.errors import EmpathyEvalError, Problem, collecting, refuse
from empathy_eval.base.version import __version__
from empathy_eval.completions.asker import Asker, Trail
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models import asked_models
from empathy_eval.completions.models.custom import custom_models
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer, weights_of
from empathy_eval.completions.requests import About, Completion, Model, NoAnswer
from empathy_eval.design.canary import CANARY, canary_entry
from empathy_eval.design.configuration import ToxicityConfig, language_of
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.judge_prompts import SPEAKERS
from empathy_eval.design.kinds import REPLY, SCORE
from empathy_eval.design.prompts import Message, Prompts, load_prompts
from empathy_eval.generation.checks.built_in import toxicity
from empathy_eval.generation.summary import FIRST, Summary
from empathy_eval.raters.judges.cases import ReleaseTexts
from empathy_eval.raters.systems.baselines import BASELINES, baseline_texts, reply_texts
from empathy_eval.raters.systems.contexts import Context, Sample, drawn, lines_of_contexts
from empathy_eval.raters.systems.replies import CONTEXTS, Checks, SystemReply
from empathy_eval.raters.systems.systems import Responding, System, responding

# Assumed of a reply while the ledger has none, in tokens.
TOKENS_OF_A_REPLY = 90


@dataclass(frozen=True)
class Ask:
    """A context for a system; a baseline has its ``text`` already, or replies nothing (empty)."""

    context: Context
    system: System | None
    name: str
    text: str = ""

    @property
    def dialogue_id(self) -> str:
        """The dialogue of the context."""
        return self.context.dialogue_id

    @property
    def turn(self) -> int:
        """The place of the reply in it."""
        return self.context.turn


def messages_to(system: System, context: Context) -> list[Message]:
    """The conversation as a chat model is told it: neighbours of one role are joined by a blank line, as in ``preferences``."""
    found: list[Message] = [{"role": "system", "content": system.system_prompt}] if system.system_prompt else []
    for speaker, text in context.turns:
        role = SPEAKERS[speaker]
        if found and found[-1]["role"] == role:
            found[-1] = {"role": role, "content": f"{found[-1]['content']}\n\n{text}"}
        else:
            found.append({"role": role, "content": text})
    return found


@dataclass(frozen=True)
class Replies:
    """The job of replying to contexts. ``objects`` hold models of one's own by role, ``baselines`` texts by name and pair."""

    config: Responding
    prompts: Prompts
    contexts: tuple[Context, ...]
    checks: Checks
    baselines: Mapping[str, Mapping[str, str]]
    left_out: int = 0
    objects: dict[str, Any] = field(default_factory=dict)
    canary: dict[str, str] = field(default_factory=dict)

    def configured(self, config: Any) -> Replies:
        """The same contexts with another share of what endpoints may be asked at once."""
        return replace(self, config=config)

    def resolved(self) -> Replies:
        """With models of one's own and the scorer of toxicity, if they can be had."""
        problems, made = list[Problem](), dict[str, Any]()
        with collecting(problems):
            made = custom_models(self.config.models, self.objects)
        with collecting(problems):
            weights_of(self.config.toxicity)
        refuse(problems)
        return replace(self, objects=made)

    def models(self, budget: Budget, stopped: Callable[[], EmpathyEvalError | None]) -> dict[str, Model]:
        """The systems' models by role, and the scorer of toxicity."""
        scorer: dict[str, Model] = {SCORE.role: ToxicityScorer(self.config.toxicity)} if self.config.toxicity else {}
        return scorer | asked_models(self.config.models, self.objects, budget, stopped)

    def items(self) -> Iterator[Ask]:
        """Each context for each system, then for each baseline, in the order of the sample: a larger sample only appends."""
        for context in self.contexts:
            yield from (Ask(context, one, one.name) for one in self.config.systems)
            yield from (Ask(context, None, name, self.baselines[name].get(context.pair_id, "")) for name in self.config.baselines)

    def planned(self) -> int:
        """How many there are."""
        return len(self.contexts) * (len(self.config.systems) + len(self.config.baselines))

    def least(self, item: Ask) -> int:
        """A reply takes one request; a baseline takes none."""
        return int(item.system is not None)

    def work(self, asker: Asker) -> Callable[[Any], Coroutine[Any, Any, SystemReply]]:
        """One reply of one system, with its checks."""

        async def reply(item: Ask) -> SystemReply:
            trail, one = Trail(), item.context
            place = one.pair_id, one.dialogue_id, one.turn, item.name
            try:
                text, key = (await _said(asker, item.system, one, trail)) if item.system else (item.text, None)
                if not text:
                    reasons = tuple(sorted({reason for _, failure in trail.failures for reason in failure.reasons})) or ("none_there",)
                    return SystemReply(*place, "rejected", reasons, failures=trail.sorted_failures(), usage=trail.plain_usage())
                score = await toxicity(asker, text, About(one.dialogue_id, REPLY.name, one.turn))
            except NoAnswer as error:
                return SystemReply(*place, "missing", (str(error),))
            checked = self.checks.of(one.last, text, score)
            return SystemReply(*place, "accepted", (), text, checked, key, trail.sorted_failures(), trail.plain_usage())

        return reply

    def summary(self, total: int, budget: Budget | None) -> Summary:
        """Counts of replies by system."""
        return ReplySummary(total, budget)

    def carried(self) -> dict[str, str]:
        """The contexts, so that replies can be read without the release."""
        return {CONTEXTS: lines_of_contexts(self.contexts, self.canary)}

    def header(self) -> dict[str, Any]:
        """Configuration, rules and language: all that replies are a function of beside contexts and ledger."""
        return {
            "configuration": self.config.published, "identity": self.config.identity, "language": self.checks.language.code,
            "rules": self.checks.language.hashes, "left_out": self.left_out, "builder": __version__, **self.canary,
        }  # fmt: skip

    # What a preview asks of a job.

    @property
    def parts(self) -> tuple[Replies, ...]:
        """A job for each system, whose estimates stand side by side."""
        return tuple(
            replace(self, config=replace(self.config, systems=(one,), baselines=(), models={one.role: self.config.models[one.role]}))
            for one in self.config.systems
        )

    def shape(self, item: Ask) -> tuple[str, ...]:
        """All items take the same requests."""
        return (item.name,)

    def written(self, kind: str) -> float:
        """Assumed of an answer, in tokens."""
        return TOKENS_OF_A_REPLY

    def instead(self) -> dict[str, Completion]:
        """Nothing is gone on with where there is no answer."""
        return {}


async def _said(asker: Asker, system: System, context: Context, trail: Trail) -> tuple[str, str | None]:
    """The reply of a system and the key of its request; empty where no answer was good."""

    async def judge(value: Any) -> str:
        return str(value)

    about = About(context.dialogue_id, REPLY.name, context.turn)
    answer = await asker.ask(about, messages_to(system, context), judge, trail, role=system.role)
    return (answer.value, answer.request_key) if answer else ("", None)


@dataclass
class ReplySummary(Summary):
    """Counts over the replies so far, by system."""

    by_system: dict[str, Counter[str]] = field(default_factory=dict)
    refusals: dict[str, Counter[str]] = field(default_factory=dict)
    things: ClassVar[str] = "replies"

    @property
    def fruitless(self) -> bool:
        """Whether the first replies of a system all came to nothing, and there are others."""
        return bool(self._failing()) and sum(self.status.values()) < self.total

    @property
    def failure_reasons(self) -> Counter[str]:
        """The reasons, with the system that failed."""
        return Counter({f'"{name}": {reason}': count for name in self._failing() for reason, count in self.refusals[name].items()})

    def _failing(self) -> list[str]:
        return [name for name, some in self.by_system.items() if some["rejected"] >= FIRST and not some["accepted"] and self.refusals[name]]

    def add(self, outcome: SystemReply) -> None:  # type: ignore[override]
        """Counts one reply."""
        self._tally(outcome, f"{outcome.system}: {outcome.pair_id}")
        self.by_system.setdefault(outcome.system, Counter())[outcome.status] += 1
        if outcome.status == "rejected":
            self.refusals.setdefault(outcome.system, Counter()).update(outcome.reasons if outcome.failures else ())

    def to_json(self) -> dict[str, Any]:
        """As JSON values; the same for every replay."""
        systems = {name: {status: some[status] for status in ("accepted", "rejected", "missing")} for name, some in self.by_system.items()}
        return {"planned": self.total, "systems": systems, **self._tallied("no_reply_by_reason")}

    def __str__(self) -> str:
        lines = [f"{self.total} replies: {self.status['accepted']} accepted, {self.status['missing']} missing"]
        for name, some in self.by_system.items():
            why = f" ({', '.join(f'{reason} {count}' for reason, count in sorted(self.refusals.get(name, {}).items()))})"
            lacking = [f"{some['rejected']} without a reply{why if why != ' ()' else ''}"] if some["rejected"] else []
            lines.append(
                f"  {name}: "
                + ", ".join([f"{some['accepted']} replies", *lacking, *[f"{some['missing']} missing"] * (some["missing"] > 0)])
            )
        return "\n".join(lines + self.closing_lines("without a reply"))


def replies_of(
    release_dir: Path, systems: tuple[System, ...], sample: Sample, *, objects: Mapping[str, Any], baselines: bool = False,
    scored: bool = True, rules: Path | None = None,
) -> Replies:  # fmt: skip
    """The job of asking systems for replies to contexts of a release; with ``scored`` the toxicity of replies is measured as there.

    Raises:
        InputError: if the folder is no release or holds no such context, there is nobody to reply, or a baseline cannot be made.
    """
    source, manifest = ReleaseTexts(release_dir), read_manifest(release_dir)
    limit = manifest["configuration"]["checks"]["toxicity"]
    scorer = ToxicityConfig(**limit) if scored and limit != "none" else None
    config = responding(source.named, systems, sample, BASELINES if baselines else (), scorer)
    texts, found = reply_texts(language_of(manifest["configuration"]), rules), drawn(release_dir, sample)
    checks = Checks(texts.language, scorer.at_most if scorer else None, manifest.get(CANARY))
    made = baseline_texts(release_dir, found, texts) if baselines else {}
    return Replies(config, load_prompts(), found.contexts, checks, made, found.left_out, dict(objects), canary_entry(manifest))
