"""Where texts that are judged come from: a release, or a finished build, seen as a release of all it accepted would hold them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from empathy_eval.base.errors import input_error
from empathy_eval.base.schemas import read_json
from empathy_eval.base.tabular import schema_of, table_batches
from empathy_eval.design.canary import called, in_json
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import MANIFEST, WAYS, column, files_of, pair_id, read_manifest
from empathy_eval.generation.build_folder import BUILD, CONFIGURATION, accepted, read_build
from empathy_eval.generation.outcomes import Dialogue, Pair, Turn

REFERENCE = "reference"
TEXTS = (REFERENCE, *PAIR_VARIANTS, *CONTROLS)
MANNER = WAYS[0]
# (role, text) of turns.
Conversation = tuple[tuple[str, str], ...]


class Placed(NamedTuple):
    """A turn, or a dialogue, by its id: its scenario, the manner of the apathetic text where it is known, and whether it has controls."""

    name: str
    scenario_id: int
    manner: str | None = None
    controls: bool = False


class Source(Protocol):
    """Where texts come from; ``named`` is what annotations say of it."""

    @property
    def named(self) -> Mapping[str, str]: ...  # noqa: D102

    @property
    def canary(self) -> dict[str, str]:
        """The line with the canary of what it is, or is going to be, as JSON; empty for a release of before."""
        ...

    def turns(self) -> Iterator[Placed]:
        """All turns with variants."""
        ...

    def dialogues(self) -> Iterator[Placed]:
        """All dialogues."""
        ...

    def texts(self, wanted: Collection[str], variants: Collection[str]) -> Iterator[tuple[str, Conversation, dict[str, str]]]:
        """Of the turns that are wanted, in any order: the id, what was said before, and the texts by variant; a turn may come in parts."""
        ...

    def conversations(self, wanted: Collection[str]) -> Iterator[tuple[str, Conversation]]:
        """Of the dialogues that are wanted, in any order: the id and all turns."""
        ...


def source_of(folder: Path) -> Source:
    """The texts of a release, or of a finished build.

    Raises:
        InputError: if the folder is neither, or what it says of itself is not valid.
    """
    if (folder / MANIFEST).is_file():
        return Released(folder)
    header = read_json(folder / BUILD, None, "name a release or a build") if (folder / BUILD).is_file() else None
    if isinstance(header, dict) and "rubric" in header:
        raise input_error(folder, "holds annotations, not texts", "name the release or the build that was annotated")
    if (folder / BUILD).is_file() or (folder / CONFIGURATION).is_file():
        return Built(folder)
    what = f"is neither a release (no {MANIFEST} in it) nor a finished build (no {BUILD} in it)"
    raise input_error(folder, what, "name the folder of a release, or that of a build that was run to its end")


def told(named: Any) -> str:
    """A source by what annotations say of it, valid or not: ``demo 0.1.0 (seal s1-…)``."""
    said = named if isinstance(named, dict) else {}
    if "outcomes" in said:
        return f"a build of {said.get('name')} (outcomes {said['outcomes']})"
    return f"{said.get('name')} {said.get('version')} (seal {said.get('seal')})"


@dataclass(frozen=True)
class Released:
    """The texts of a release."""

    folder: Path

    @property
    def named(self) -> dict[str, str]:
        """Its name, version and seal."""
        manifest = read_manifest(self.folder)
        return {"name": manifest["configuration"]["name"], "version": manifest["version"], "seal": manifest["seal"]}

    @property
    def canary(self) -> dict[str, str]:
        """As its manifest says."""
        return in_json(read_manifest(self.folder))

    def turns(self) -> Iterator[Placed]:
        """Those of ``pairs``; releases of before know no manner."""
        ids, scenarios = (column(self.folder, "pairs", name) for name in ("pair_id", "scenario_id"))
        manners = column(self.folder, "pairs", MANNER) if self._has(MANNER) else [None] * len(ids)
        controls = set(column(self.folder, "controls", "pair_id"))
        return (Placed(*one, one[0] in controls) for one in zip(ids, scenarios, manners, strict=True))

    def dialogues(self) -> Iterator[Placed]:
        """Those of ``dialogues``."""
        names, scenarios = (column(self.folder, "dialogues", name) for name in ("dialogue_id", "scenario_id"))
        return map(Placed, names, scenarios)

    def texts(self, wanted: Collection[str], variants: Collection[str]) -> Iterator[tuple[str, Conversation, dict[str, str]]]:
        """Those of ``pairs``, then those of ``controls``."""
        for config, names in (("pairs", (REFERENCE, *PAIR_VARIANTS)), ("controls", CONTROLS)):
            asked = [name for name in names if name in variants]
            context = ["context"] if config == "pairs" else []
            for row in self._rows(config, ["pair_id", *asked, *context], wanted):
                yield row["pair_id"], _said(row.get("context", ())), {name: row[name] for name in asked}

    def conversations(self, wanted: Collection[str]) -> Iterator[tuple[str, Conversation]]:
        """Those of ``dialogues``."""
        for row in self._rows("dialogues", ["dialogue_id", "turns"], wanted):
            yield row["dialogue_id"], _said(row["turns"])

    def _has(self, name: str) -> bool:
        return all(name in schema_of(path).names for path in files_of(self.folder, "pairs", ("train",)))

    def _rows(self, config: str, names: list[str], wanted: Collection[str]) -> Iterator[dict[str, Any]]:
        """The rows of a config whose first column is wanted."""
        for path in files_of(self.folder, config):
            for batch in table_batches(path, names):
                keep = [place for place, name in enumerate(batch.column(0).to_pylist()) if name in wanted]
                yield from batch.take(pa.array(keep, pa.int64())).to_pylist()


@dataclass(frozen=True)
class Built:
    """The texts of a finished build: of its accepted dialogues, read one at a time."""

    folder: Path

    @property
    def named(self) -> dict[str, str]:
        """Its name, and the hash of its outcomes."""
        header = read_build(self.folder)
        return {"name": header["configuration"]["name"], "outcomes": header["outcomes"]}

    @property
    def canary(self) -> dict[str, str]:
        """That of its releases."""
        return in_json(called(read_build(self.folder)["configuration"]))

    def turns(self) -> Iterator[Placed]:
        """Those of pairs."""
        for dialogue, pairs in self._accepted():
            for pair in pairs:
                name = pair_id(dialogue.dialogue_id, pair.turn)
                yield Placed(name, dialogue.scenario_id, pair.apathetic.way, len(_texts(dialogue, pair)) == len(TEXTS))

    def dialogues(self) -> Iterator[Placed]:
        """All that were accepted."""
        return (Placed(dialogue.dialogue_id, dialogue.scenario_id) for dialogue, _ in self._accepted())

    def texts(self, wanted: Collection[str], variants: Collection[str]) -> Iterator[tuple[str, Conversation, dict[str, str]]]:
        """Each turn whole."""
        for dialogue, pairs in self._accepted():
            for pair in pairs:
                if (name := pair_id(dialogue.dialogue_id, pair.turn)) in wanted:
                    texts = _texts(dialogue, pair)
                    yield name, _turns(dialogue.turns[: pair.turn]), {one: text for one, text in texts.items() if one in variants}

    def conversations(self, wanted: Collection[str]) -> Iterator[tuple[str, Conversation]]:
        """Those of accepted dialogues."""
        for dialogue, _ in self._accepted():
            if dialogue.dialogue_id in wanted:
                yield dialogue.dialogue_id, _turns(dialogue.turns)

    def _accepted(self) -> Iterator[tuple[Dialogue, tuple[Pair, ...]]]:
        return ((one.dialogue, one.pairs) for one in accepted(self.folder) if one.dialogue)


def _texts(dialogue: Dialogue, pair: Pair) -> dict[str, str]:
    """The texts of a turn by variant; controls go together, as in a release."""
    made = {name: getattr(pair, name) for name in TEXTS if name != REFERENCE}
    names = (*PAIR_VARIANTS, *(CONTROLS if all(made[name] for name in CONTROLS) else ()))
    return {REFERENCE: dialogue.turns[pair.turn].text, **{name: made[name].text for name in names}}


def _turns(turns: tuple[Turn, ...]) -> Conversation:
    return tuple((turn.role, turn.text) for turn in turns)


def _said(turns: Any) -> Conversation:
    return tuple((turn["role"], turn["text"]) for turn in turns)
