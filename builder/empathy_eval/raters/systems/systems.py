"""Systems that reply, by name: their file, and the configuration of a folder of replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, refuse
from empathy_eval.base.hashing import canonical_json, digest
from empathy_eval.base.schemas import check, read_yaml, with_pinned_defaults
from empathy_eval.completions.models.custom import TextModel
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.contrasts import CELLS
from empathy_eval.design.endpoints import ModelConfig, model_faults, model_of, published_model
from empathy_eval.design.prompts import Message
from empathy_eval.raters.judges.cases import describe_source
from empathy_eval.raters.systems.baselines import BASELINES
from empathy_eval.raters.systems.contexts import ContextSample

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
