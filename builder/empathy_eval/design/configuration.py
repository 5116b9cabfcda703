"""Build configurations: ``release/*.yaml``, validated, with the overrides of the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem, nearest, refuse
from empathy_eval.base.hashing import canonical_json, digest
from empathy_eval.base.schemas import check, read_yaml, schema, whole_numbers, with_pinned_defaults
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.endpoints import ModelConfig, model_faults, model_of, published_model
from empathy_eval.design.errata import latest_corrections
from empathy_eval.design.taxonomy import PhaseRules
from empathy_eval.design.word_list import MAKE, WordList, read_word_list

ROLES = ("self_chat", "near", "far")
# What else models may be for, in a build of crossed items: who writes them and who checks them.
CROSSED_ROLES = ("crossed", "crossed_judge")
# What only a release reads: it can be changed in the folder of a build.
RELEASE_ONLY = ("withdrawn", "report", "note")
# What is the same build whether it is said or not.
IMPLICIT = (("language", ENGLISH), ("crossed", 0), ("control_dialogues", 0))
# The numbers of samples that are kept for each of several candidates: neither more candidates nor more samples move one.
SAMPLES_PER_CANDIDATE = 1000


@dataclass(frozen=True)
class ToxicityConfig:
    """The toxicity scorer and the highest accepted score."""

    scorer: str
    at_most: float
    checkpoint: str | None = None
    config: str | None = None


@dataclass(frozen=True)
class Limits:
    """The thresholds of the checks; toxicity is not scored if ``toxicity`` is None."""

    helper_words_at_least: int
    edit_ratio_below: float
    overlap_at_most: float
    toxicity: ToxicityConfig | None


@dataclass(frozen=True)
class Configuration:
    """A build configuration. A build folder belongs to its ``identity``."""

    name: str
    plan: str
    seed: int
    rules: PhaseRules
    models: dict[str, ModelConfig]
    near_apathetic: str
    samples: int
    repairs: int
    checks: Limits
    raw: dict[str, Any]
    dialogues: int = 0
    surplus: float = 0.0
    # The numbers of the scenarios that dialogues are drawn from; none for all of them.
    scenarios: tuple[int, ...] = ()
    controls: int = 0
    # How many dialogues have controls of every helper turn that can have them.
    control_dialogues: int = 0
    crossed: int = 0
    # The code of the language that all texts are in.
    language: str = ENGLISH
    # Checks of one's own by name, each with its settings.
    custom_checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    # How many accepted texts of each variant a model is asked for, and by which words one of them is chosen; None for one.
    candidates: int = 1
    words: WordList | None = None

    @property
    def active_models(self) -> dict[str, ModelConfig]:
        """The models that a build sends requests to; those for crossed items only if some are planned."""
        return {role: model for role, model in self.models.items() if self.crossed or role not in CROSSED_ROLES}

    @property
    def answers(self) -> Path | None:
        """The file of answers that a build imports into its ledger first; None if there is none."""
        return Path(self.raw["answers"]) if "answers" in self.raw else None

    @cached_property
    def corrected(self) -> dict[str, str]:
        """The last correction of each corrected dialogue, by the id in the plan."""
        return latest_corrections(self.raw.get("corrected", ()))

    @property
    def identity(self) -> str:
        """The hash of everything that can change the requests of a build."""
        return identity_of(self.published)

    def mismatch(self, published: dict[str, Any]) -> str | None:
        """Why a folder of that configuration does not belong to this build; settings of a release may differ. None if it belongs."""
        return None if identity_of(published) == self.identity else "holds the build of another configuration"

    @property
    def published(self) -> dict[str, Any]:
        """The configuration as in a manifest: without delivery settings, so without anything private, in sorted order.

        A word list is named by the hash of its content.
        """
        models = {role: published_model(model) for role, model in self.raw["models"].items()}
        words = {"word_list": self.words.digest} if self.words else {}
        ordered: dict[str, Any] = json.loads(canonical_json({**self.raw, "models": models, **words}))
        ordered.pop("answers", None)
        return ordered


def identity_of(published: dict[str, Any]) -> str:
    """The identity of a published configuration: its hash without the settings of a release."""
    return digest({name: value for name, value in published.items() if name not in RELEASE_ONLY})


def language_of(published: Mapping[str, Any]) -> str:
    """The language code of a published configuration."""
    return str(published.get("language", ENGLISH))


def candidates_of(published: Mapping[str, Any]) -> int:
    """The number of candidates of each variant in a published configuration."""
    return int(published.get("candidates", 1))


def load_configuration(path: Path, *, model: str | None = None, base_url: str | None = None) -> Configuration:
    """Reads a configuration. ``model`` replaces all models, ``base_url`` their endpoint.

    Raises:
        InputError: for a file that is missing, not YAML or invalid, with all its problems at once.
    """
    raw = with_pinned_defaults(read_yaml(path, "configuration"), "configuration")
    if "answers" in raw:
        raw["answers"] = str(path.parent / raw["answers"])
    for role in raw["models"] if model or base_url else ():
        raw["models"][role] = _overridden(raw["models"][role], model, base_url)
    return parse_configuration(raw, path)


def parse_configuration(raw: dict[str, Any], where: object, words: WordList | None = None) -> Configuration:
    """The configuration of raw values; ``words`` is its word list if it is already loaded.

    Raises:
        InputError: if the values are invalid or contradictory, with all problems at once, or the word list is invalid.
    """
    check(raw, "configuration", where)
    # A pinned key that is left out is the same build as one that says its default.
    raw = with_pinned_defaults(whole_numbers(raw, "configuration"), "configuration")
    # English is what a configuration without a language is of, and one without crossed items has none: said or not, it is the same build.
    # So is one candidate.
    single = raw.get("candidates", 1) == 1
    unsaid = {"candidates", "word_list"} if single else set()
    raw = {key: value for key, value in raw.items() if (key, value) not in IMPLICIT and key not in unsaid}
    problems = list[Problem]()
    try:
        words = None if single or "word_list" not in raw else words or read_word_list(Path(raw["word_list"]))
    except InputError as error:
        problems, words = list(error.problems), None
    configuration = _configuration(raw, words)
    refuse([*_contradictions(configuration, where), *problems])
    return configuration


def _overridden(raw: dict[str, Any], model: str | None, base_url: str | None) -> dict[str, Any]:
    """A model with the overrides. A seed bank or custom model becomes an endpoint with its own label; an endpoint keeps its settings."""
    if raw["kind"] != "openai" and model:
        raw = {"kind": "openai", "model": model, "endpoint": "command-line", "max_tokens": 4096}
    changes = {"model": model, "base_url": base_url}
    return {**raw, **{name: value for name, value in changes.items() if value and raw["kind"] == "openai"}}


def _configuration(raw: dict[str, Any], words: WordList | None) -> Configuration:
    checks = dict(raw["checks"])
    scored, own = checks["toxicity"], checks.pop("own", {})
    checks["toxicity"] = None if scored == "none" else ToxicityConfig(**scored)
    given = {name: raw[name] for name in Configuration.__dataclass_fields__ if name in raw}
    parsed = {
        "scenarios": tuple(raw.get("scenarios", ())),
        "rules": PhaseRules(raw["turns"]["min"], raw["turns"]["max"], raw["phase_order"]),
        "models": {role: model_of(raw["models"][role]) for role in (*ROLES, *CROSSED_ROLES) if role in raw["models"]},
        "checks": Limits(**checks),
        "custom_checks": {name: settings or {} for name, settings in own.items()},
    }
    return Configuration(**{**given, **parsed}, raw=raw, words=words)


def _contradictions(configuration: Configuration, path: object) -> Iterator[Problem]:
    """Problems that no schema can express: crossed bounds, models that do not fit the plan."""
    if configuration.rules.min_turns > configuration.rules.max_turns:
        what = f"min {configuration.rules.min_turns} is above max {configuration.rules.max_turns}"
        yield Problem(f"{path}: turns", what, "write both, the smaller one as min")
    yield from stray_settings(configuration.raw["report"], f"{path}: report")
    yield from _of_crossed(configuration, path)
    banks = [role for role, settings in configuration.models.items() if settings.kind == "seed-bank"]
    if configuration.plan == "drawn" and banks:
        what = f'the seed bank ({", ".join(banks)}) holds no dialogue for "plan: drawn"'
        yield Problem(f"{path}: models", what, 'name a model with --model, or write "plan: seeds"')
    if banks and configuration.models["self_chat"].kind != "seed-bank":
        what = f"the seed bank answers only for its own dialogues ({', '.join(banks)}), beside a model that writes others"
        yield Problem(f"{path}: models", what, "use the seed bank for self_chat too, or for none")
    yield from _unchoosable(configuration, banks, path)
    yield from model_faults(configuration.models, f"{path}: models")


def _of_crossed(configuration: Configuration, path: object) -> Iterator[Problem]:
    """What a configuration with crossed items lacks for them."""
    if configuration.crossed and configuration.plan == "seeds":
        what = f'{configuration.crossed} are requested for "plan: seeds", whose dialogues have curated ones'
        yield Problem(f"{path}: crossed", what, 'leave it out, or write "plan: drawn"')
    elif configuration.crossed and (lacking := [role for role in CROSSED_ROLES if role not in configuration.models]):
        what = f"has no {' and no '.join(lacking)}, and {configuration.crossed} crossed items are requested"
        yield Problem(f"{path}: models", what, "name who writes them (crossed) and who checks them (crossed_judge), or leave crossed out")


def _unchoosable(configuration: Configuration, banks: Sequence[str], path: object) -> Iterator[Problem]:
    """What prevents several candidates from being requested, or one from being chosen."""
    count, words = configuration.candidates, configuration.words
    if count == 1:
        return
    where = f"{path}: candidates"
    if roles := [role for role in banks if role != "self_chat"]:
        what = f"{count} candidates are requested, but the seed bank ({', '.join(roles)}) has one text of each variant"
        yield Problem(where, what, "name a model with --model, or leave candidates out")
    if configuration.samples > SAMPLES_PER_CANDIDATE:
        what = f"{count} candidates have {configuration.samples:,} samples each; a candidate can have at most {SAMPLES_PER_CANDIDATE:,}"
        yield Problem(where, what, f"ask for {SAMPLES_PER_CANDIDATE:,} samples at most")
    if "word_list" not in configuration.raw:
        yield Problem(f"{path}: word_list", f"is missing: candidates: {count} needs a word list to choose by", MAKE)
    elif words and words.language != configuration.language:
        what = f'is in the language "{words.language}", but the texts are in "{configuration.language}"'
        yield Problem(f"{path}: word_list", what, f"{MAKE}, of a release in that language")


def stray_settings(report: Mapping[str, Any], where: str) -> list[Problem]:
    """Problems for settings in ``report`` of metrics that are not in its list."""
    known = [*report.get("metrics", ()), *schema("configuration")["properties"]["report"]["properties"]]
    fix = f"use one of {', '.join(known)}"
    return [Problem(where, f'has unknown "{name}"', f"{fix}{nearest(name, known)}") for name in report if name not in known]
