"""Systems that reply, and the job in which they and baselines reply to the contexts of a release."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from empathy_eval.base.errors import EmpathyEvalError, Problem, input_error, refuse
from empathy_eval.base.hashing import canonical_json, digest
from empathy_eval.base.json_text import fields_json, json_text
from empathy_eval.base.schemas import check, read_yaml, with_pinned_defaults
from empathy_eval.base.version import __version__
from empathy_eval.completions.asker import Asker, Trail
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models.custom import TextModel
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer, weights_of
from empathy_eval.completions.requests import About, Model, NoAnswer
from empathy_eval.design.canary import CANARY, canary_entry
from empathy_eval.design.configuration import ToxicityConfig, language_of
from empathy_eval.design.contrasts import CELLS
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.endpoints import ModelConfig, model_faults, model_of, published_model
from empathy_eval.design.judge_prompts import SPEAKERS
from empathy_eval.design.kinds import REPLY, SCORE
from empathy_eval.design.language import Language
from empathy_eval.design.prompts import Message, load_prompts
from empathy_eval.generation.checks.built_in import toxicity
from empathy_eval.generation.summary import FIRST, STATUSES, Summary
from empathy_eval.raters.judges.annotating import ModelJob
from empathy_eval.raters.judges.cases import ReleaseTexts, describe_source
from empathy_eval.raters.systems.contexts import (
    BASELINES,
    Context,
    ContextSample,
    baseline_texts,
    draw_contexts,
    load_reply_rules,
)
from empathy_eval.raters.systems.replies import CONTEXTS, SystemReply, check_reply

# Samples of a reply. A system is not shown its bad answer: a repair would change what is compared.
SAMPLES, REPAIRS = 2, 0
RESERVED = {*BASELINES, *CELLS}


@dataclass(frozen=True)
class System:
    """A system: its name in tables, the message before the conversation, and its model as it was written."""

    name: str
    system_prompt: str
    model: Mapping[str, Any]

    @property
    def role(self) -> str:
        """The role of its model."""
        return f"system: {self.name}"

    @property
    def published(self) -> dict[str, Any]:
        """The system as shown: without delivery."""
        value = canonical_json({"system_prompt": self.system_prompt, "model": published_model(self.model)})
        return dict(json.loads(value))


class FunctionModel(TextModel):
    """A function from messages (each with ``role`` and ``content``) to a text, as a model; its name is part of the keys of requests."""

    def __init__(self, name: str, function: Any) -> None:
        self.name, self._function = name, function

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        """The text that the function returns."""
        return self._function(messages)  # type: ignore[no-any-return]


def load_systems(source: str | Path | Mapping[str, Any]) -> tuple[tuple[System, ...], dict[str, Any]]:
    """The systems of a YAML file or of a mapping by name, and the models passed in the mapping by role.

    A value of a mapping is the entry of a file without its name, a model, or a function of messages.

    Raises:
        InputError: for a file that is missing or not valid, names that occur twice or are those of baselines, and models that do not go
            together; all at once.
    """
    objects, where = dict[str, Any](), "systems" if isinstance(source, Mapping) else str(source)
    if isinstance(source, Mapping):
        rows = []
        for name, entry in source.items():
            if not isinstance(entry, Mapping):
                model = FunctionModel(name, entry) if callable(entry) and not hasattr(entry, "complete") else entry
                objects[f"system: {name}"] = model
                named = {key: str(getattr(model, attribute, None)) for key, attribute in (("model", "name"), ("endpoint", "endpoint"))}
                entry = {"model": {"kind": "given", **named}}
            rows.append({"name": name, **entry})
        value = {"systems": rows}
        check(value, "systems", where)
    else:
        value = read_yaml(Path(source), "systems")
    systems = tuple(
        System(row["name"], row.get("system_prompt", "").strip(), with_pinned_defaults(dict(row["model"]), "judge"))
        for row in value["systems"]
    )
    refuse(_system_problems(systems, where))
    return systems, objects


def _system_problems(systems: Sequence[System], where: str) -> Iterator[Problem]:
    names = [system.name for system in systems]
    for name in dict.fromkeys(names):
        if (times := names.count(name)) > 1:
            yield Problem(where, f'the system "{name}" is there {times} times', "give each system a name of its own")
        if name.lower().replace(" ", "_") in RESERVED:
            yield Problem(where, f'"{name}" is the name of a baseline', "give the system another name")
    for system in systems:
        if system.model["kind"] == "seed-bank":
            fix = "name an endpoint's model, or one of your own"
            yield Problem(f"{where}: {system.name}", '"seed-bank" holds dialogues and cannot reply', fix)
    yield from model_faults({system.name: model_of(system.model) for system in systems}, where)


@dataclass(frozen=True)
class ReplyConfig:
    """The configuration of replies: the systems with their models by role, the baselines, the release and the sample of its contexts."""

    models: Mapping[str, ModelConfig]
    systems: tuple[System, ...]
    baselines: tuple[str, ...]
    release: Mapping[str, str]
    sample: ContextSample
    toxicity: ToxicityConfig | None
    samples: int = SAMPLES
    repairs: int = REPAIRS

    @property
    def active_models(self) -> Mapping[str, ModelConfig]:
        """All of them."""
        return self.models

    @property
    def published(self) -> dict[str, Any]:
        """The configuration as shown: without delivery."""
        toxicity = self.toxicity and {"scorer": self.toxicity.scorer, "at_most": self.toxicity.at_most}
        return {
            "release": dict(self.release), "split": self.sample.split, "seed": self.sample.seed, "contexts": self.sample.contexts,
            "systems": {system.name: system.published for system in self.systems}, "baselines": list(self.baselines),
            "toxicity": toxicity, "samples": self.samples, "repairs": self.repairs,
        }  # fmt: skip

    @property
    def identity(self) -> str:
        """Hash of everything that can change a request."""
        return digest(self.published)

    def mismatch(self, published: dict[str, Any]) -> str | None:
        """Reason why a folder with that configuration does not belong to this one, or None.

        The number of contexts, the baselines and the set of systems may differ; a system that changed needs another name.
        """
        theirs, mine = published if isinstance(published, dict) else {}, self.published
        if not isinstance(theirs.get("systems"), dict):
            return "holds no replies of systems"
        changes = list[str]()
        if theirs.get("release") != mine["release"]:
            changes.append(f"to {describe_source(theirs.get('release'))}, not to {describe_source(mine['release'])}")
        changes += [
            f'of the {name} "{theirs.get(name)}", not "{mine[name]}"' for name in ("split", "seed") if theirs.get(name) != mine[name]
        ]
        for name, system in mine["systems"].items():
            known = theirs["systems"].get(name, system)
            if changed := [key for key in system if not isinstance(known, dict) or known.get(key) != system[key]]:
                changes.append(f'of "{name}" with another {" and ".join(changed)}')
        return f"holds replies {'; '.join(changes)}" if changes else None


# Assumed of a reply while the ledger has none, in tokens.
TOKENS_OF_A_REPLY = 90


@dataclass(frozen=True)
class ReplyItem:
    """A context for a system; a baseline (``system`` None) has its ``text``, empty if it has no reply."""

    dialogue_id: str
    turn: int
    context: Context
    system: System | None
    name: str
    text: str = ""


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
    language: Language
    baselines: Mapping[str, Mapping[str, str]]
    left_out: int
    canary: Mapping[str, str]

    def models(self, budget: Budget, stopped: Callable[[], EmpathyEvalError | None]) -> dict[str, Model]:
        """The systems' models by role, and the scorer of toxicity."""
        scorer: dict[str, Model] = {SCORE.role: ToxicityScorer(self.config.toxicity)} if self.config.toxicity else {}
        return scorer | super().models(budget, stopped)

    def items(self) -> Iterator[ReplyItem]:
        """Each context for each system, then for each baseline, in the order of the sample: a larger sample only appends."""
        systems = [(system.name, system) for system in self.config.systems]
        for context in self.contexts:
            for name, system in (*systems, *((name, None) for name in self.config.baselines)):
                text = "" if system else self.baselines[name].get(context.pair_id, "")
                yield ReplyItem(context.dialogue_id, context.turn, context, system, name, text)

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
            toxic = None if score is None or self.config.toxicity is None else score > self.config.toxicity.at_most
            checks = replace(check_reply(self.language, self.canary.get(CANARY), context.last, text), toxicity=score, toxic=toxic)
            return SystemReply(*place, "accepted", (), text, checks, key, trail.sorted_failures(), trail.plain_usage())

        return reply

    def summary(self, total: int, budget: Budget | None) -> Summary:
        """Counts of replies by system."""
        return ReplySummary(total, budget)

    def carried(self) -> dict[str, str]:
        """The contexts, a line each after that of the canary, so that replies can be read without the release."""
        rows = filter(None, [canary_entry(self.canary), *map(fields_json, self.contexts)])
        return {CONTEXTS: "".join(json_text(row, indent=None) + "\n" for row in rows)}

    def header(self) -> dict[str, Any]:
        """Configuration, rules and language: everything that replies depend on besides contexts and ledger."""
        return {
            "configuration": self.config.published, "identity": self.config.identity, "language": self.language.code,
            "rules": self.language.hashes, "left_out": self.left_out, "builder": __version__, **canary_entry(self.canary),
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
    contexts, left_out = draw_contexts(release_dir, options.sample)
    canary = {name: manifest[name] for name in (CANARY,) if name in manifest}
    texts = baseline_texts(release_dir, contexts, language.code, canned) if baselines else {}
    return ReplyJob(
        contexts, language, texts, left_out, canary, config=config, prompts=load_prompts(),
        objects=dict(options.objects),
    )  # fmt: skip
