"""The job of replying: systems and baselines reply to the contexts of a release, item by item as in a build."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from empathy_eval.base.errors import EmpathyEvalError, input_error
from empathy_eval.base.version import __version__
from empathy_eval.completions.asker import Asker, Trail
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer, weights_of
from empathy_eval.completions.requests import About, Model, NoAnswer
from empathy_eval.design.canary import CANARY, canary_entry
from empathy_eval.design.configuration import ToxicityConfig, language_of
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.endpoints import model_of
from empathy_eval.design.judge_prompts import SPEAKERS
from empathy_eval.design.kinds import REPLY, SCORE
from empathy_eval.design.prompts import Message, load_prompts
from empathy_eval.generation.checks.built_in import toxicity
from empathy_eval.generation.summary import FIRST, STATUSES, Summary
from empathy_eval.raters.judges.annotating import ModelJob
from empathy_eval.raters.judges.cases import ReleaseTexts
from empathy_eval.raters.systems.baselines import BASELINES, baseline_texts, load_reply_rules
from empathy_eval.raters.systems.contexts import Context, ContextSample, contexts_text, draw_contexts
from empathy_eval.raters.systems.replies import CONTEXTS, ReplyChecks, SystemReply
from empathy_eval.raters.systems.systems import ReplyConfig, System

# Assumed of a reply while the ledger has none, in tokens.
TOKENS_OF_A_REPLY = 90


@dataclass(frozen=True)
class ReplyItem:
    """A context for a system; a baseline (``system`` None) has its ``text``, empty if it has no reply."""

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


def chat_messages(system: System, context: Context) -> list[Message]:
    """The conversation as messages of a chat: neighbours of one role are joined by a blank line, as in ``preferences``."""
    messages: list[Message] = [{"role": "system", "content": system.system_prompt}] if system.system_prompt else []
    for speaker, text in context.turns:
        role = SPEAKERS[speaker]
        if messages and messages[-1]["role"] == role:
            text = f"{messages.pop()['content']}\n\n{text}"
        messages.append({"role": role, "content": text})
    return messages


@dataclass(frozen=True)
class ReplyJob(ModelJob):
    """The job of replying to contexts; ``baselines`` are texts by name and pair."""

    config: ReplyConfig = field(kw_only=True)
    contexts: tuple[Context, ...]
    checks: ReplyChecks
    baselines: Mapping[str, Mapping[str, str]]
    left_out: int
    canary: dict[str, str]

    def models(self, budget: Budget, stopped: Callable[[], EmpathyEvalError | None]) -> dict[str, Model]:
        """The systems' models by role, and the scorer of toxicity."""
        scorer: dict[str, Model] = {SCORE.role: ToxicityScorer(self.config.toxicity)} if self.config.toxicity else {}
        return scorer | super().models(budget, stopped)

    def items(self) -> Iterator[ReplyItem]:
        """Each context for each system, then for each baseline, in the order of the sample: a larger sample only appends."""
        for context in self.contexts:
            yield from (ReplyItem(context, system, system.name) for system in self.config.systems)
            yield from (ReplyItem(context, None, name, self.baselines[name].get(context.pair_id, "")) for name in self.config.baselines)

    def planned(self) -> int:
        """The number of items."""
        return len(self.contexts) * (len(self.config.systems) + len(self.config.baselines))

    def least(self, item: ReplyItem) -> int:
        """A reply takes one request; a baseline takes none."""
        return int(item.system is not None)

    def work(self, asker: Asker) -> Callable[[Any], Coroutine[Any, Any, SystemReply]]:
        """One reply of one system, with its checks."""

        async def judge(value: Any) -> str:
            return str(value)

        async def reply(item: ReplyItem) -> SystemReply:
            trail, context, text, key = Trail(), item.context, item.text, None
            place, about = (context.pair_id, context.dialogue_id, context.turn, item.name), About(item.dialogue_id, REPLY.name, item.turn)
            try:
                if item.system:
                    answer = await asker.ask(about, chat_messages(item.system, context), judge, trail, role=item.system.role)
                    text, key = (answer.value, answer.request_key) if answer else ("", None)
                if not text:
                    reasons = {reason for _, failure in trail.failures for reason in failure.reasons} or {"none_there"}
                    failures = trail.sorted_failures()
                    return SystemReply(*place, "rejected", tuple(sorted(reasons)), failures=failures, usage=trail.plain_usage())
                score = await toxicity(asker, text, about)
            except NoAnswer as error:
                return SystemReply(*place, "missing", (str(error),))
            checks = self.checks.check(context.last, text, score)
            return SystemReply(*place, "accepted", (), text, checks, key, trail.sorted_failures(), trail.plain_usage())

        return reply

    def summary(self, total: int, budget: Budget | None) -> Summary:
        """Counts of replies by system."""
        return ReplySummary(total, budget)

    def carried(self) -> dict[str, str]:
        """The contexts, so that replies can be read without the release."""
        return {CONTEXTS: contexts_text(self.contexts, self.canary)}

    def header(self) -> dict[str, Any]:
        """Configuration, rules and language: everything that replies depend on besides contexts and ledger."""
        return {
            "configuration": self.config.published, "identity": self.config.identity, "language": self.checks.language.code,
            "rules": self.checks.language.hashes, "left_out": self.left_out, "builder": __version__, **self.canary,
        }  # fmt: skip

    def parts(self) -> Iterator[tuple[str, ReplyJob]]:
        """Yields each system's name and its part of the job, which is estimated by itself."""
        for system in self.config.systems:
            models = {system.role: self.config.models[system.role]}
            yield system.name, replace(self, config=replace(self.config, systems=(system,), baselines=(), models=models))

    def written(self, kind: str) -> float:
        """Assumed tokens of an answer."""
        return TOKENS_OF_A_REPLY


@dataclass
class ReplySummary(Summary):
    """Counts over the replies so far: by system the statuses, and the reasons for refused answers."""

    by_system: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    refusals: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    things: ClassVar[str] = "replies"

    @property
    def fruitless(self) -> bool:
        """Whether the first replies of a system all failed, and more would follow."""
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
        self.by_system[outcome.system][outcome.status] += 1
        self.refusals[outcome.system].update(outcome.reasons if outcome.failures and outcome.status == "rejected" else ())

    def to_json(self) -> dict[str, Any]:
        """As JSON values; the same for every replay."""
        systems = {name: {status: some[status] for status in STATUSES} for name, some in self.by_system.items()}
        return {"planned": self.total, "systems": systems, **self._tallied("no_reply_by_reason")}

    def __str__(self) -> str:
        lines = [f"{self.total} replies: {self.status['accepted']} accepted, {self.status['missing']} missing"]
        for name, some in self.by_system.items():
            reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(self.refusals[name].items()))
            counts = {
                "replies": some["accepted"],
                f"without a reply{reasons and f' ({reasons})'}": some["rejected"],
                "missing": some["missing"],
            }
            lines.append(f"  {name}: " + ", ".join(f"{count} {what}" for what, count in counts.items() if count or what == "replies"))
        return "\n".join(lines + self.closing_lines("without a reply"))


@dataclass(frozen=True)
class RespondOptions:
    """Systems and the contexts that they reply to, named as on the command line."""

    systems: tuple[System, ...] = ()
    objects: Mapping[str, Any] = field(default_factory=dict)
    sample: ContextSample = ContextSample()
    baselines: bool = False
    toxicity: bool = True
    rules: Path | None = None


def reply_job(release_dir: Path, options: RespondOptions) -> ReplyJob:
    """The job of asking systems for replies to contexts of a release.

    Raises:
        InputError: if the folder is no release or has no such context, there is no system or baseline, the scorer of toxicity is not
            installed, or a baseline cannot be made.
    """
    source, manifest = ReleaseTexts(release_dir), read_manifest(release_dir)
    limit = manifest["configuration"]["checks"]["toxicity"]
    scorer = ToxicityConfig(**limit) if options.toxicity and limit != "none" else None
    weights_of(scorer)
    if not options.systems and not options.baselines:
        raise input_error("respond", "there is nobody to reply", "name --systems FILE, or add --baselines")
    models = {system.role: model_of(system.model) for system in options.systems}
    baselines = BASELINES if options.baselines else ()
    config = ReplyConfig(models, options.systems, baselines, source.named, options.sample, scorer)
    language, canned = load_reply_rules(language_of(manifest["configuration"]), options.rules)
    sampled = draw_contexts(release_dir, options.sample)
    texts = baseline_texts(release_dir, sampled, language.code, canned) if baselines else {}
    checks = ReplyChecks(language, scorer.at_most if scorer else None, manifest.get(CANARY))
    return ReplyJob(
        sampled.contexts, checks, texts, sampled.left_out, canary_entry(manifest), config=config, prompts=load_prompts(),
        objects=dict(options.objects),
    )  # fmt: skip
