"""What is judged: turns of a release or a finished build with their texts, and dialogues, sampled so that a larger sample only appends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.schemas import read_json
from empathy_eval.base.tabular import table_batches
from empathy_eval.design.canary import called, in_json
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import MANIFEST, WAYS, column, files_of, pair_id, parts_of, read_manifest
from empathy_eval.generation.build_folder import BUILD, CONFIGURATION, accepted, read_build
from empathy_eval.generation.outcomes import Dialogue, Pair

REFERENCE = "reference"
TEXTS = (REFERENCE, *PAIR_VARIANTS, *CONTROLS)
# (role, text) of turns.
Conversation = tuple[tuple[str, str], ...]
# Of a turn the id, what was said before, and the texts by variant.
Texts = tuple[str, Conversation, dict[str, str]]


class Placed(NamedTuple):
    """A turn, or a dialogue, by its id: its scenario, the manner of the apathetic text where it is known, and whether it has controls."""

    name: str
    scenario_id: int
    manner: str | None = None
    controls: bool = False

    @property
    def stratum(self) -> tuple[int, str | None]:
        """What a sample is even over."""
        return self.scenario_id, self.manner


@dataclass(frozen=True)
class Released:
    """The texts of a release. A turn may come in parts; nothing that is wanted comes in any certain order."""

    folder: Path

    @property
    def named(self) -> dict[str, str]:
        """What annotations say of it: its name, version and seal."""
        manifest = read_manifest(self.folder)
        return {"name": manifest["configuration"]["name"], "version": manifest["version"], "seal": manifest["seal"]}

    @property
    def canary(self) -> dict[str, str]:
        """The line with the canary, as its manifest says."""
        return in_json(read_manifest(self.folder))

    def turns(self) -> Iterator[Placed]:
        """All turns with variants."""
        names, scenarios, manners = (column(self.folder, "pairs", name) for name in ("pair_id", "scenario_id", WAYS[0]))
        controls = set(column(self.folder, "controls", "pair_id"))
        return (Placed(*one, one[0] in controls) for one in zip(names, scenarios, manners, strict=True))

    def dialogues(self) -> Iterator[Placed]:
        """All dialogues."""
        return map(Placed, column(self.folder, "dialogues", "dialogue_id"), column(self.folder, "dialogues", "scenario_id"))

    def texts(self, wanted: Collection[str], variants: Collection[str]) -> Iterator[Texts]:
        """Those of the turns that are wanted."""
        for config, names, context in (("pairs", (REFERENCE, *PAIR_VARIANTS), ["context"]), ("controls", CONTROLS, [])):
            asked = [name for name in names if name in variants]
            for row in self._rows(config, ["pair_id", *asked, *context], wanted):
                yield row["pair_id"], _said(row.get("context", ())), {name: row[name] for name in asked}

    def conversations(self, wanted: Collection[str]) -> Iterator[tuple[str, Conversation]]:
        """Of the dialogues that are wanted the id and all turns."""
        return ((row["dialogue_id"], _said(row["turns"])) for row in self._rows("dialogues", ["dialogue_id", "turns"], wanted))

    def _rows(self, config: str, names: list[str], wanted: Collection[str]) -> Iterator[dict[str, Any]]:
        """The rows of a config whose first column is wanted."""
        for path in files_of(self.folder, config):
            for batch in table_batches(path, names):
                keep = [place for place, name in enumerate(batch.column(0).to_pylist()) if name in wanted]
                yield from batch.take(pa.array(keep, pa.int64())).to_pylist()


def _said(turns: Iterable[Mapping[str, str]]) -> Conversation:
    return tuple((turn["role"], turn["text"]) for turn in turns)


@dataclass(frozen=True)
class Built:
    """The texts of a finished build, as a release of all it accepted would hold them; its dialogues are read one at a time."""

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
        for dialogue, name, pair in self._pairs():
            yield Placed(name, dialogue.scenario_id, pair.apathetic.way, CONTROLS[0] in _texts(dialogue, pair))

    def dialogues(self) -> Iterator[Placed]:
        """All that were accepted."""
        return (Placed(dialogue.dialogue_id, dialogue.scenario_id) for dialogue, _ in self._accepted())

    def texts(self, wanted: Collection[str], variants: Collection[str]) -> Iterator[Texts]:
        """Each turn whole."""
        for dialogue, name, pair in self._pairs():
            if name in wanted:
                texts = {variant: text for variant, text in _texts(dialogue, pair).items() if variant in variants}
                yield name, tuple((turn.role, turn.text) for turn in dialogue.turns[: pair.turn]), texts

    def conversations(self, wanted: Collection[str]) -> Iterator[tuple[str, Conversation]]:
        """Those of accepted dialogues."""
        for dialogue, _ in self._accepted():
            if dialogue.dialogue_id in wanted:
                yield dialogue.dialogue_id, tuple((turn.role, turn.text) for turn in dialogue.turns)

    def _pairs(self) -> Iterator[tuple[Dialogue, str, Pair]]:
        """Each pair with its dialogue and its id."""
        for dialogue, pairs in self._accepted():
            yield from ((dialogue, pair_id(dialogue.dialogue_id, pair.turn), pair) for pair in pairs)

    def _accepted(self) -> Iterator[tuple[Dialogue, tuple[Pair, ...]]]:
        return ((one.dialogue, one.pairs) for one in accepted(self.folder) if one.dialogue)


def _texts(dialogue: Dialogue, pair: Pair) -> dict[str, str]:
    """The texts of a turn by variant; controls go together, as in a release."""
    names = (*PAIR_VARIANTS, *(CONTROLS if all(getattr(pair, name) for name in CONTROLS) else ()))
    return {REFERENCE: dialogue.turns[pair.turn].text, **{name: getattr(pair, name).text for name in names}}


Source = Released | Built


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
class Case:
    """A helper turn with the conversation before it and its texts by variant; or, without a turn, a dialogue from its beginning to its end.

    ``conversation`` holds (role, text) of the turns that a judge may see; ``otherwise`` what stands in its place before some of the texts.
    """

    dialogue_id: str
    turn: int | None
    pair_id: str | None
    conversation: Conversation
    texts: dict[str, str] = field(default_factory=dict)
    otherwise: dict[str, Conversation] = field(default_factory=dict)

    def before(self, variant: str | None) -> Conversation:
        """The conversation before one of the texts."""
        return self.otherwise.get(variant or "", self.conversation)


def spread_out(names: Mapping[str, Hashable]) -> list[str]:
    """All names in the order in which a sample takes them: the first N are a sample of N, and a larger one only appends.

    Within a stratum the order is by the SHA-256 of the name; the k-th of n stands at (2 k + 1) / (2 n) among all, so that every sample has
    about the same share of each stratum.
    """
    strata: dict[Hashable, list[tuple[str, str]]] = defaultdict(list)
    for name, stratum in names.items():
        strata[stratum].append((digest_bytes(name.encode()), name))
    placed = [(Fraction(2 * rank + 1, 2 * len(found)), *one) for found in strata.values() for rank, one in enumerate(sorted(found))]
    return [name for _, _, name in sorted(placed)]


def sample_of(turns: Iterable[Placed], variants: Collection[str] = TEXTS) -> list[str]:
    """The names of turns in the order of the sample: where controls are among the variants, turns that have them come first.

    They are few, and what tells a judge from a shortcut is reckoned from them alone.
    """
    first, last = dict[str, Hashable](), dict[str, Hashable]()
    # Equal strata are one object in memory.
    known: dict[Hashable, Hashable] = {}
    leading = not set(CONTROLS).isdisjoint(variants)
    for one in turns:
        (first if leading and one.controls else last)[one.name] = known.setdefault(one.stratum, one.stratum)
    return [*spread_out(first), *spread_out(last)]


def cases_of(source: Source | Path, turns: int | None, variants: Iterable[str] = TEXTS, but: frozenset[str] = frozenset()) -> list[Case]:
    """So many turns (None: all) with the texts of some variants, in the order of :func:`sample_of`; those in ``but`` are left out.

    A path is the folder of a release, which need not have its manifest yet.

    Raises:
        InputError: if a file is not there, or does not hold what the data contract says.
    """
    source, asked = Released(source) if isinstance(source, Path) else source, set(variants)
    order = [name for name in sample_of(source.turns(), asked) if name not in but][:turns]
    contexts, texts = dict[str, Conversation](), dict[str, dict[str, str]]()
    for name, context, some in source.texts(set(order), asked):
        contexts[name] = contexts.get(name, ()) or context
        texts.setdefault(name, {}).update(some)
    ordered = {name: {variant: texts[name][variant] for variant in TEXTS if variant in texts[name]} for name in order}
    return [Case(*parts_of(name), name, contexts[name], ordered[name]) for name in order]


def dialogues_of(source: Source | Path, number: int | None) -> list[Case]:
    """So many dialogues (None: all) as they are in a release or a build, in the order of the sample."""
    source = Released(source) if isinstance(source, Path) else source
    order = spread_out({one.name: one.stratum for one in source.dialogues()})[:number]
    turns = dict(source.conversations(set(order)))
    return [Case(name, None, None, turns[name]) for name in order]
