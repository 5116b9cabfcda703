"""Annotation job: a rubric, a judge and the cases of a release, processed as a build is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from empathy_eval.base.errors import EmpathyEvalError, Problem, input_error, refuse
from empathy_eval.base.hashing import canonical_json, digest
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import check, read_yaml, schema, with_pinned_defaults
from empathy_eval.base.version import __version__
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models import asked_models
from empathy_eval.completions.models.custom import custom_models
from empathy_eval.completions.requests import Completion, Model
from empathy_eval.design.dataset import pair_id, parts_of
from empathy_eval.design.endpoints import ModelConfig, model_of, published_model
from empathy_eval.design.judge_prompts import JudgePrompts, judge_prompts
from empathy_eval.design.kinds import IDEAL, JUDGE, JUDGING, NAMED, REWARD
from empathy_eval.design.prompts import Prompts, load_prompts
from empathy_eval.design.rubrics import Rubric
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.generation.summary import Summary
from empathy_eval.raters.judges.annotations import ATTACKS, Annotated
from empathy_eval.raters.judges.cases import (
    CROSSED,
    REPLIES_TO,
    TEXTS,
    Case,
    Conversation,
    Material,
    ReleaseTexts,
    Source,
    cases_of,
    describe_source,
    dialogues_of,
    source_of,
)
from empathy_eval.raters.judges.judge import Judge, compared, requests_of


def differences(theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> Iterator[str]:
    """Differences of another configuration from this one, in words. The number of turns is none: more turns only append."""
    if theirs.get("rubric_hash") != mine["rubric_hash"]:
        same = theirs.get("rubric") == mine["rubric"]
        yield f'by the rubric "{theirs.get("rubric")}"' + (" as it read then" if same else f', not "{mine["rubric"]}"')
    judges = [judge if isinstance(judge, dict) else {} for judge in (theirs.get("judge"), mine["judge"])]
    if changed := sorted(name for name in judges[0].keys() | judges[1].keys() if judges[0].get(name) != judges[1].get(name)):
        names = [judge.get("model", judge.get("kind")) for judge in judges]
        yield f'by the judge "{names[0]}"' + (f" with another {', '.join(changed)}" if names[0] == names[1] else f', not "{names[1]}"')
    if theirs.get("release") != mine["release"]:
        yield f"of {describe_source(theirs.get('release'))}, not of {describe_source(mine['release'])}"
    # Other systems add to annotations of replies, or leave some out.
    if theirs.get("variants") != mine["variants"] and REPLIES_TO not in mine["release"]:
        yield f"of {_listed(theirs.get('variants'))}, not of {_listed(mine['variants'])}"
    for name, what in (("samples_of_a_text", "samples of a text"), ("samples", "tries of a request"), ("repairs", "repairs of a try")):
        if theirs.get(name) != mine[name]:
            yield f"with {theirs.get(name)} {what}, not {mine[name]}"


def _listed(variants: Any) -> str:
    return ", ".join(map(str, variants)) if isinstance(variants, list) else str(variants)


# Attempts after a bad answer, and repairs of each. A deterministic reward model, which cannot read feedback, is asked once.
SAMPLES, REPAIRS = 2, 1
# Assumed of an answer while the ledger has none of its kind: what a value takes with its name in JSON, and an analysis in words.
TOKENS_A_VALUE, TOKENS_OF_AN_ANALYSIS = 14, 60


@dataclass(frozen=True)
class AnnotationPlan:
    """How much is judged: ``turns`` (or dialogues) of the sample, None for all, and ``samples`` of each text.

    Of replies every two systems are compared over ``comparisons`` turns, None for all. With ``crossed``, crossed items are judged.
    """

    turns: int | None = 2000
    variants: tuple[str, ...] = TEXTS
    samples: int = 1
    comparisons: int | None = None
    crossed: bool = False


@dataclass(frozen=True)
class Annotating:
    """Configuration of annotations: the judge, the rubric by its hash, the identity of the release or build, and the plan.

    If texts are attacked, ``attacks`` has the settings of each attack with the hash of its texts, by name.
    """

    judge: Mapping[str, Any]
    rubric: Rubric
    design: AnnotationPlan
    release: Mapping[str, str]
    models: Mapping[str, ModelConfig]
    samples: int = SAMPLES
    repairs: int = REPAIRS
    attacks: Mapping[str, str] | None = None

    @property
    def active_models(self) -> Mapping[str, ModelConfig]:
        """The judge alone, as in ``models``."""
        return self.models

    @property
    def model(self) -> ModelConfig:
        """The settings of the judge's model."""
        return self.models[JUDGE]

    @property
    def identity(self) -> str:
        """Hash of everything that can change a request."""
        return digest(self.published)

    def mismatch(self, published: dict[str, Any]) -> str | None:
        """Reason why a folder with that configuration does not belong to this one, or None.

        The number of turns and the attacks may differ.
        """
        configuration = published if isinstance(published, dict) else {}
        if self.attacks is not None and ATTACKS not in configuration:
            return "holds no annotations of attacked texts"
        if "rubric_hash" not in configuration:
            return "holds a build, not annotations"
        if self.attacks is None and ATTACKS in configuration:
            return "holds annotations of attacked texts"
        if configuration.get(CROSSED, False) != self.design.crossed:
            return f"holds annotations of {'pairs' if self.design.crossed else 'crossed items'}"
        difference = "; ".join(differences(published, self.published))
        return f"holds annotations {difference}" if difference else None

    @property
    def published(self) -> dict[str, Any]:
        """The configuration as shown: without delivery."""
        value = {
            "release": dict(self.release), "rubric": self.rubric.name, "rubric_hash": self.rubric.hash,
            "turns": self.design.turns, "variants": list(self.design.variants), "samples_of_a_text": self.design.samples,
            "judge": published_model(self.judge),
            "samples": self.samples, "repairs": self.repairs,
        }  # fmt: skip
        attacks = {} if self.attacks is None else {ATTACKS: dict(sorted(self.attacks.items()))}
        compared = {} if self.design.comparisons is None else {"comparisons": self.design.comparisons}
        crossed = {CROSSED: True} if self.design.crossed else {}
        return {**json.loads(canonical_json(value)), **attacks, **compared, **crossed}


@dataclass(frozen=True, kw_only=True)
class ModelJob:
    """A job that asks the models of its configuration; ``objects`` hold custom models by role."""

    config: Any
    prompts: Prompts
    objects: dict[str, Any] = field(default_factory=dict)

    def configured(self, config: Any) -> Self:
        """The same items with another share of the rate limits."""
        return replace(self, config=config)

    def resolved(self) -> Self:
        """The job with its custom models loaded."""
        return replace(self, objects=custom_models(self.config.models, self.objects))

    def models(self, budget: Budget, stopped: Callable[[], EmpathyEvalError | None]) -> dict[str, Model]:
        """The models by role."""
        return asked_models(self.config.models, self.objects, budget, stopped)

    def items(self) -> Iterator[Any]:
        """All items, always in the same order."""
        raise NotImplementedError

    def planned(self) -> int:
        """The number of items."""
        return sum(1 for _ in self.items())

    def carried(self) -> dict[str, str]:
        """No definitions: the header holds the rubric."""
        return {}

    def shape(self, item: Any) -> tuple[str, ...]:
        """One shape for all items."""
        return ()

    def instead(self) -> dict[str, Completion]:
        """By kind the answer that a dry run assumes if there is none: none."""
        return {}


@dataclass(frozen=True)
class AnnotationJob(ModelJob):
    """The job of judging cases by a rubric. ``noted`` goes into the header and into no request."""

    config: Annotating = field(kw_only=True)
    asking: JudgePrompts
    cases: tuple[Case, ...]
    noted: dict[str, Any] = field(default_factory=dict)

    def items(self) -> Iterator[Case]:
        """The cases, in the order of the sample."""
        return iter(self.cases)

    def least(self, item: Case) -> int:
        """What is asked about one case."""
        return self.config.design.samples * requests_of(self.config.rubric, item)

    def work(self, asker: Asker) -> Callable[[Any], Coroutine[Any, Any, Annotated]]:
        """One case, ask by ask."""
        return Judge(asker, self.asking, self.config.design.samples, self.config.model.label).case

    def summary(self, total: int, budget: Budget | None) -> Summary:
        """Counts of cases and of what was said of them."""
        return AnnotationSummary(total, budget)

    def shape(self, item: Case) -> tuple[str, ...]:
        """The variants of a case, equal texts as one of them: what says how many requests there are."""
        first: dict[tuple[Conversation, str], str] = {}
        if item.turn is None:
            return tuple(map(str, item.wholes))
        return tuple(f"{variant}={first.setdefault((item.before(variant), text), variant)}" for variant, text in item.texts.items())

    def written(self, kind: str) -> float:
        """The tokens of an answer, while none of its kind is known."""
        rubric = self.config.rubric
        values = {IDEAL.name: len(self.asking.taxonomy.strategies), NAMED.name: 1}
        count = values.get(kind, len(rubric.requests[0]) if rubric.criteria else 1)
        return TOKENS_A_VALUE * count + (TOKENS_OF_AN_ANALYSIS if rubric.style == "reasoned" else 0)

    def instead(self) -> dict[str, Completion]:
        """The second step of strategies does not depend on what is answered to the first."""
        strategies = enumerate(self.asking.taxonomy.strategies)
        ideal = [{"strategy": strategy.abbreviation, "probability": int(not index)} for index, strategy in strategies]
        return {IDEAL.name: Completion(json_text({"strategies": ideal}), "stop", "")}

    def header(self) -> dict[str, Any]:
        """Configuration, rubric, templates and schemas: all that the annotations are a function of beside texts and ledger."""
        worded = self.config.rubric.kind != "reward"
        return {
            "configuration": self.config.published, "identity": self.config.identity, "rubric": asdict(self.config.rubric),
            "templates": dict(sorted({**self.asking.prompts.hashes, "repair": self.prompts.hashes["repair"]}.items())) if worded else {},
            "schemas": {kind.answer: digest(schema(kind.answer)) for kind in JUDGING if worded == (kind is not REWARD)},
            "builder": __version__,
            **self.noted,
        }  # fmt: skip


@dataclass
class AnnotationSummary(Summary):
    """Counts over the cases so far: what was said of them, and what was left unannotated."""

    counts: Counter[str] = field(default_factory=Counter)
    things: ClassVar[str] = "cases"
    # A case without annotations is finished too.
    failed_status: ClassVar[str] = "accepted"

    @property
    def fruitful(self) -> bool:
        """Whether anything was said of a case."""
        return any(self.counts.values())

    @property
    def failure_reasons(self) -> Counter[str]:
        """The reasons for which cases are unannotated."""
        return self.failed

    def add(self, outcome: Annotated) -> None:  # type: ignore[override]
        """Counts one case."""
        self._tally(outcome, outcome.pair_id or outcome.dialogue_id)
        for name in ("ratings", "comparisons", "strategies"):
            self.counts[name] += len(getattr(outcome, name))

    def to_json(self) -> dict[str, Any]:
        """As JSON values in sorted order; the same for every replay."""
        return {
            "planned": self.total,
            "annotated": self.status["accepted"],
            "missing": self.status["missing"],
            **{name: self.counts[name] for name in ("ratings", "comparisons", "strategies") if self.counts[name]},
            **self._tallied("unannotated_by_reason"),
        }

    def __str__(self) -> str:
        counts = ", ".join(f"{self.counts[name]:,} {name}" for name in ("ratings", "comparisons", "strategies") if self.counts[name])
        lines = [f"{self.total} cases: {self.status['accepted']} judged, {self.status['missing']} missing", counts or "no annotations yet"]
        return "\n".join(lines + self.closing_lines("unannotated"))


def annotations_of(
    folder: Path, rubric: Rubric, judge: Mapping[str, Any], design: AnnotationPlan, *, custom: Any = None, templates: Path | None = None,
    material: Callable[[Path, Rubric, AnnotationPlan], Material] | None = None,
) -> AnnotationJob:  # fmt: skip
    """The job of judging a release, or a finished build; another ``material`` gives what is judged of another folder.

    ``judge`` is a model as under ``models`` of a configuration, ``given`` an object in its place.

    Raises:
        InputError: if the folder is neither, there is nothing to judge, or the judge or the design is not valid.
    """
    judged = (material or _material)(folder, rubric, design)
    check(dict(judge), "judge", "--model")
    judge = with_pinned_defaults(dict(judge), "judge")
    if judge["kind"] == "seed-bank":
        raise input_error("--model", '"seed-bank" holds dialogues and cannot judge', "name an endpoint's model, or one of your own")
    refuse(_unfit(rubric, judge, design, templates))
    asking = judge_prompts(rubric, load_catalogue(), templates)
    # Turns without the requested texts are left out.
    cases = [case for case in judged.cases if case.turn is None or (compared(case) if rubric.kind == "preference" else case.texts)]
    if not cases:
        fix = "name a release or a build with pairs, and variants (--variants) that this rubric rates"
        raise input_error(folder, "holds nothing to judge", fix)
    tries = (1, 0) if rubric.kind == "reward" else (SAMPLES, REPAIRS)
    config = Annotating(judge, rubric, design, judged.named, {JUDGE: model_of(judge)}, *tries)
    objects = {JUDGE: custom} if custom is not None else {}
    return AnnotationJob(asking, tuple(cases), judged.noted, config=config, prompts=load_prompts(), objects=objects)


def _material(folder: Path, rubric: Rubric, design: AnnotationPlan) -> Material:
    """The texts of a release, or of a finished build; those that the rubric shows to judges are not judged."""
    source = source_of(folder)
    if design.crossed:
        refuse(_unfit_for_crossed(source, rubric))
        return Material(source.named, tuple(ReleaseTexts(folder).crossed(design.turns, shown_by(rubric))), source.canary)
    if rubric.unit == "dialogue":
        return Material(source.named, tuple(dialogues_of(source, design.turns, design.variants)), source.canary)
    cases = cases_of(source, design.turns, design.variants, shown_by(rubric))
    return Material(source.named, tuple(cases), source.canary)


def _unfit_for_crossed(source: Source, rubric: Rubric) -> Iterator[Problem]:
    if not isinstance(source, ReleaseTexts):
        yield Problem("--crossed", "is for releases, and this is a build", "name a release of the build")
    if rubric.unit == "dialogue" or rubric.kind not in ("rating", "reward"):
        what = f'rates replies of crossed items one by one, which the rubric "{rubric.name}" does not'
        yield Problem("--crossed", what, "use a rubric that rates replies, such as teacher, or reward")


def shown_by(rubric: Rubric) -> frozenset[str]:
    """The pairs whose turns the examples of a rubric show, as a reply or in the conversation before it: they are never judged."""
    places = (parts_of(example.pair_id) for example in rubric.examples)
    return frozenset(pair_id(dialogue_id, turn) for dialogue_id, last in places for turn in range(last + 1))


def _unfit(rubric: Rubric, judge: Mapping[str, Any], design: AnnotationPlan, templates: Path | None) -> Iterator[Problem]:
    """What does not go with a rubric for reward models, with a reward model, or with expected values."""
    rewards = rubric.kind == "reward"
    if rewards != (judge["kind"] == "reward") and judge["kind"] in ("openai", "reward"):
        named = f'"{judge["model"]}"'
        prompted = f"prompts a model in words, but {named} is a reward model"
        what = f"is for reward models, but {named} is prompted in words" if rewards else prompted
        fix = "name a YAML file with kind: reward and its form (chat, classify, score or predict)" if rewards else 'use the rubric "reward"'
        yield Problem(f'rubric "{rubric.name}"', what, fix)
    if rewards and design.samples > 1:
        yield Problem("--samples", "a reward model gives the same number each time", "leave it out")
    if rewards and templates:
        yield Problem("--templates", "a reward model receives only the conversation and no prompt", "leave it out")
    expected = judge.get("parameters", {}).get("expected_over", ()) if judge["kind"] == "transformers" else ()
    if expected and rubric.kind != "rating":
        yield Problem("--model: expected_over", f'"{rubric.name}" asks for no ratings', "leave it out")
        return
    for criterion in rubric.criteria if expected else ():
        if criterion.scale is None or criterion.scale.whole:
            what = f'"{criterion.name}" of "{rubric.name}" takes whole numbers only, which expected values are not'
            yield Problem("--model: expected_over", what, "use a rubric with whole: false, or leave it out")
        elif odd := [f"{number:g}" for number in expected if criterion.scale.fault(number)]:
            what = f'{", ".join(odd)} {"is" if len(odd) == 1 else "are"} outside the scale of "{criterion.name}"'
            yield Problem("--model: expected_over", what, f"use numbers from {criterion.scale.low:g} to {criterion.scale.high:g}")


def judge_of(model: str | Path | Mapping[str, Any], base_url: str | None = None) -> dict[str, Any]:
    """A judge by what a YAML file says of it, by the path of one, or by the name of a model; ``base_url`` moves its endpoint.

    Raises:
        InputError: for a file that is missing or not valid.
    """
    if isinstance(model, Mapping):
        raw = dict(model)
    elif Path(model).suffix in (".yaml", ".yml"):
        raw = read_yaml(Path(model), "judge")
    else:
        raw = {"kind": "openai", "model": str(model), "endpoint": "command-line", "max_tokens": 1024, "parameters": {"temperature": 0}}
    return {**raw, **({"base_url": base_url} if base_url else {})}
