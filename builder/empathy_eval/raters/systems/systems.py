"""Systems that are asked for replies: their file, and what a folder of replies is configured by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.hashing import canonical_json, digest
from empathy_eval.base.schemas import check, read_yaml, with_pinned_defaults
from empathy_eval.completions.models.custom import TextModel
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.contrasts import CELLS
from empathy_eval.design.endpoints import ModelConfig, model_faults, model_of, published_model
from empathy_eval.design.prompts import Message
from empathy_eval.raters.judges.cases import describe_source
from empathy_eval.raters.systems.baselines import BASELINES
from empathy_eval.raters.systems.contexts import Sample

# Samples of a reply. A system is not shown its bad answer: a repair would change what is compared.
SAMPLES, REPAIRS = 2, 0
TAKEN = {*BASELINES, *CELLS}


@dataclass(frozen=True)
class System:
    """A system: its name in tables, the message that stands before the conversation, and its model as it was written."""

    name: str
    system_prompt: str
    model: Mapping[str, Any]

    @property
    def role(self) -> str:
        """What its model is for."""
        return f"system: {self.name}"

    @property
    def published(self) -> dict[str, Any]:
        """What is shown of it: without delivery."""
        said: dict[str, Any] = json.loads(canonical_json({"system_prompt": self.system_prompt, "model": published_model(self.model)}))
        return said


class Spoken(TextModel):
    """A function of messages (each with ``role`` and ``content``) that gives a text, as a model; its name is part of the requests' keys."""

    def __init__(self, name: str, function: Any) -> None:
        self.name, self._function = name, function

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        """The text that the function gives."""
        text: str = self._function(messages)
        return text


def load_systems(source: str | Path | Mapping[str, Any]) -> tuple[tuple[System, ...], dict[str, Any]]:
    """The systems of a YAML file, or of a mapping by name, and by their role the objects in it.

    A value of a mapping is what a file says of a system without its name, a model, or a function of messages.

    Raises:
        InputError: for a file that is missing or not valid, names that come twice or are those of baselines, and models that do not go
            together; all at once.
    """
    objects = dict[str, Any]()
    if isinstance(source, Mapping):
        rows = []
        for name, one in source.items():
            if not isinstance(one, Mapping):
                model = Spoken(name, one) if callable(one) and not hasattr(one, "complete") else one
                objects[f"system: {name}"] = model
                named = {part: str(getattr(model, where, None)) for part, where in (("model", "name"), ("endpoint", "endpoint"))}
                one = {"model": {"kind": "given", **named}}
            rows.append({"name": name, **one})
        value, where = {"systems": rows}, "systems"
        check(value, "systems", where)
    else:
        value, where = read_yaml(Path(source), "systems"), str(source)
    found = [
        System(one["name"], one.get("system_prompt", "").strip(), with_pinned_defaults(dict(one["model"]), "judge"))
        for one in value["systems"]
    ]
    refuse([*_odd_names(found, where), *_odd_models(found, where)])
    return tuple(found), objects


def _odd_names(systems: Sequence[System], where: str) -> Iterator[Problem]:
    names = [one.name for one in systems]
    for name in dict.fromkeys(names):
        if (times := names.count(name)) > 1:
            yield Problem(where, f'the system "{name}" is there {times} times', "give each system a name of its own")
        if name.lower().replace(" ", "_") in TAKEN:
            yield Problem(where, f'"{name}" is the name of a baseline', "give the system another name")


def _odd_models(systems: Sequence[System], where: str) -> Iterator[Problem]:
    for one in systems:
        if one.model["kind"] == "seed-bank":
            yield Problem(
                f"{where}: {one.name}", '"seed-bank" holds dialogues and cannot reply', "name an endpoint's model, or one of your own"
            )
    yield from model_faults({one.name: model_of(one.model) for one in systems}, where)


@dataclass(frozen=True)
class Responding:
    """What replies are configured by: the systems, the baselines, the release, the sample of its contexts, the scorer of toxicity."""

    models: Mapping[str, ModelConfig]
    systems: tuple[System, ...]
    baselines: tuple[str, ...]
    release: Mapping[str, str]
    sample: Sample
    toxicity: ToxicityConfig | None
    samples: int = SAMPLES
    repairs: int = REPAIRS

    @property
    def active_models(self) -> Mapping[str, ModelConfig]:
        """All of them."""
        return self.models

    @property
    def published(self) -> dict[str, Any]:
        """As it is shown: without delivery."""
        said = asdict(self.toxicity) if self.toxicity else None
        return {
            "release": dict(self.release), "split": self.sample.split, "seed": self.sample.seed, "contexts": self.sample.contexts,
            "systems": {one.name: one.published for one in self.systems}, "baselines": list(self.baselines),
            "toxicity": said and {name: said[name] for name in ("scorer", "at_most")},
            "samples": self.samples, "repairs": self.repairs,
        }  # fmt: skip

    @property
    def identity(self) -> str:
        """The hash of all that can change what is asked for."""
        return digest(self.published)

    def mismatch(self, published: dict[str, Any]) -> str | None:
        """What a folder of that configuration holds, if it is none of this one's.

        More contexts, other baselines and other systems add to it or leave some out; a system that changed needs a name of its own.
        """
        theirs = published if isinstance(published, dict) else {}
        if not isinstance(theirs.get("systems"), dict):
            return "holds no replies of systems"
        mine = self.published
        found = (
            []
            if theirs.get("release") == mine["release"]
            else [f"to {describe_source(theirs.get('release'))}, not to {describe_source(mine['release'])}"]
        )
        found += [f'of the {name} "{theirs.get(name)}", not "{mine[name]}"' for name in ("split", "seed") if theirs.get(name) != mine[name]]
        changed = [name for name, one in mine["systems"].items() if name in theirs["systems"] and theirs["systems"][name] != one]
        found += [f'of "{name}" with another {_changed(theirs["systems"][name], mine["systems"][name])}' for name in changed]
        return f"holds replies {'; '.join(found)}" if found else None


def _changed(theirs: Any, mine: Mapping[str, Any]) -> str:
    names = [name for name in ("system_prompt", "model") if not isinstance(theirs, dict) or theirs.get(name) != mine[name]]
    return " and ".join(names)


def responding(
    release: Mapping[str, str], systems: Sequence[System], sample: Sample, baselines: Sequence[str], toxicity: ToxicityConfig | None
) -> Responding:
    """The configuration of replies.

    Raises:
        InputError: if there is nobody who replies.
    """
    if not systems and not baselines:
        raise input_error("respond", "there is nobody to reply", "name --systems FILE, or add --baselines")
    models = {one.role: model_of(one.model) for one in systems}
    return Responding(models, tuple(systems), tuple(baselines), release, sample, toxicity)
