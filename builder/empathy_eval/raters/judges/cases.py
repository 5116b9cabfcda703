"""Cases for judges: turns of a release or finished build with their texts, and dialogues, sampled so that a larger sample appends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest_bytes, digest_file
from empathy_eval.base.parsing import ParseError, json_value
from empathy_eval.base.schemas import check, read_json
from empathy_eval.base.tabular import table_batches
from empathy_eval.design.canary import CANARY, canary_entry, release_identity
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS, REFERENCE
from empathy_eval.design.dataset import CONTRASTS, MANIFEST, OPTIONAL, WAYS, column, files_of, pair_id, parts_of, read_manifest
from empathy_eval.evaluation.external.score_file import CROSSED_CELLS
from empathy_eval.generation.outcomes import BUILD, CONFIGURATION, Dialogue, Pair, accepted_outcomes, contrasted, read_build

# In place of the seal, what annotations of replies say of the release that was replied to.
REPLIES_TO = "replies_to"
TEXTS = (REFERENCE, *PAIR_VARIANTS, *CONTROLS)
CROSSED = "crossed"
# (role, text) of turns.
Conversation = tuple[tuple[str, str], ...]
# (id, conversation before, texts by variant) of a turn.
TurnTexts = tuple[str, Conversation, dict[str, str]]
AGAIN = "run the same command again: it replays from the ledger"


class SourceTurn(NamedTuple):
    """A turn, or a dialogue, by its id: its scenario, the manner of the apathetic text where it is known, and whether it has controls.

    ``variants`` says whether it has those of a pair, which of dialogues not all have.
    """

    name: str
    scenario_id: int
    manner: str | None = None
    controls: bool = False
    variants: bool = True

    def has(self, variants: set[str]) -> bool:
        """Whether it has any of these texts."""
        has = {REFERENCE, *(PAIR_VARIANTS if self.variants else ()), *(CONTROLS if self.controls else ())}
        return not variants.isdisjoint(has)

    @property
    def stratum(self) -> tuple[int, str | None]:
        """Stratum over which samples are even."""
        return self.scenario_id, self.manner


@dataclass(frozen=True)
class ReleaseTexts:
    """Texts of a release. A turn may come in parts, in any order."""

    folder: Path

    @property
    def named(self) -> dict[str, str]:
        """Its identity in annotations: name, version and seal."""
        manifest = read_manifest(self.folder)
        return {"name": manifest["configuration"]["name"], "version": manifest["version"], "seal": manifest["seal"]}

    @property
    def canary(self) -> dict[str, str]:
        """Canary line of its manifest."""
        return canary_entry(read_manifest(self.folder))

    def turns(self) -> Iterator[SourceTurn]:
        """All turns with variants."""
        names, scenarios, manners = (column(self.folder, "pairs", name) for name in ("pair_id", "scenario_id", WAYS[0]))
        controls = set(column(self.folder, "controls", "pair_id"))
        return (SourceTurn(*columns, columns[0] in controls) for columns in zip(names, scenarios, manners, strict=True))

    def dialogues(self) -> Iterator[SourceTurn]:
        """All dialogues."""
        names, scenarios = (column(self.folder, "dialogues", name) for name in ("dialogue_id", "scenario_id"))
        whole = {(row["dialogue_id"], row["variant"]) for row in self._rows(CONTRASTS, ["dialogue_id", "variant"], set(names))}
        first, control = PAIR_VARIANTS[0], CONTROLS[0]
        placed = zip(names, scenarios, strict=True)
        return (SourceTurn(name, scenario, None, (name, control) in whole, (name, first) in whole) for name, scenario in placed)

    def texts(self, ids: Collection[str], variants: Collection[str]) -> Iterator[TurnTexts]:
        """Texts of the wanted turns."""
        for config, names, context in (("pairs", (REFERENCE, *PAIR_VARIANTS), ["context"]), ("controls", CONTROLS, [])):
            present = [name for name in names if name in variants]
            for row in self._rows(config, ["pair_id", *present, *context], ids):
                yield row["pair_id"], read_conversation(row.get("context", ())), {name: row[name] for name in present}

    def conversations(self, names: Collection[str], variants: Collection[str]) -> Iterator[tuple[str, str, Conversation]]:
        """Of the dialogues that are wanted the id, the variant and all turns, in those of these variants that they have."""
        if REFERENCE in variants:
            for row in self._rows("dialogues", ["dialogue_id", "turns"], names):
                yield row["dialogue_id"], REFERENCE, read_conversation(row["turns"])
        for row in self._rows(CONTRASTS, ["dialogue_id", "variant", "turns"], names) if {*variants} - {REFERENCE} else ():
            if row["variant"] in variants and row["variant"] != REFERENCE:
                yield row["dialogue_id"], row["variant"], read_conversation(row["turns"])

    def crossed(self, number: int | None, but: frozenset[str] = frozenset()) -> list[Case]:
        """The first crossed items (None: all), evenly over scenarios: each has both replies, each in both contexts.

        Items of the turns in ``but`` are left out.

        Raises:
            InputError: if the release has none.
        """
        if not any(path.is_file() for path in files_of(self.folder, CROSSED)):
            raise input_error(self.folder, "holds no crossed items", "leave --crossed out, or name a release that has them")
        columns = (column(self.folder, CROSSED, name) for name in ("crossed_id", "scenario_id", "dialogue_id", "turn"))
        strata = {name: scenario for name, scenario, *place in zip(*columns, strict=True) if pair_id(*place) not in but}
        order = spread_out(strata)[:number]
        fields = ["crossed_id", "dialogue_id", "turn", "context_1", "context_2", "reply_1", "reply_2"]
        rows = {row["crossed_id"]: row for row in self._rows(CROSSED, fields, set(order))}
        return [_crossed_case(rows[name]) for name in order]

    def _rows(self, config: str, names: list[str], ids: Collection[str]) -> Iterator[dict[str, Any]]:
        """The rows of a config whose first column is wanted; a config that not every release has may not be there."""
        for path in files_of(self.folder, config):
            if config in OPTIONAL and not path.is_file():
                continue
            for batch in table_batches(path, names):
                keep = [index for index, name in enumerate(batch.column(0).to_pylist()) if name in ids]
                yield from batch.take(pa.array(keep, pa.int64())).to_pylist()


def crossed_text(context: int, reply: int) -> str:
    """Returns the name of a reply in a context of a crossed item, by their numbers."""
    return f"reply_{reply}_in_context_{context}"


def _crossed_case(row: Mapping[str, Any]) -> Case:
    contexts = {number: read_conversation(row[f"context_{number}"]) for number in (1, 2)}
    texts = {crossed_text(*cell): row[f"reply_{cell[1]}"] for cell in CROSSED_CELLS}
    conversations = {crossed_text(*cell): contexts[cell[0]] for cell in CROSSED_CELLS}
    return Case(row["dialogue_id"], row["turn"], row["crossed_id"], contexts[1], texts, conversations)


def read_conversation(turns: Iterable[Mapping[str, str]]) -> Conversation:
    """Turns from their JSON values."""
    return tuple((turn["role"], turn["text"]) for turn in turns)


@dataclass(frozen=True)
class BuildTexts:
    """Texts of a finished build, as a release of all accepted dialogues; they are read one at a time."""

    folder: Path

    @property
    def named(self) -> dict[str, str]:
        """Its name, and the hash of its outcomes."""
        header = read_build(self.folder)
        return {"name": header["configuration"]["name"], "outcomes": header["outcomes"]}

    @property
    def canary(self) -> dict[str, str]:
        """Canary line of its releases."""
        return canary_entry(release_identity(read_build(self.folder)["configuration"]))

    def turns(self) -> Iterator[SourceTurn]:
        """Turns of pairs."""
        for dialogue, name, pair in self._pairs():
            yield SourceTurn(name, dialogue.scenario_id, pair.apathetic.way, CONTROLS[0] in _texts(dialogue, pair))

    def dialogues(self) -> Iterator[SourceTurn]:
        """All that were accepted."""
        for dialogue, pairs in self._accepted():
            whole = contrasted(dialogue, pairs)
            yield SourceTurn(dialogue.dialogue_id, dialogue.scenario_id, None, CONTROLS[0] in whole, PAIR_VARIANTS[0] in whole)

    def texts(self, ids: Collection[str], variants: Collection[str]) -> Iterator[TurnTexts]:
        """Texts of the wanted turns, each turn whole."""
        for dialogue, name, pair in self._pairs():
            if name in ids:
                texts = {variant: text for variant, text in _texts(dialogue, pair).items() if variant in variants}
                yield name, tuple((turn.role, turn.text) for turn in dialogue.turns[: pair.turn]), texts

    def conversations(self, names: Collection[str], variants: Collection[str]) -> Iterator[tuple[str, str, Conversation]]:
        """Id, variant and all turns of the wanted dialogues."""
        for dialogue, pairs in self._accepted():
            if dialogue.dialogue_id in names:
                plain = tuple((turn.role, turn.text) for turn in dialogue.turns)
                for variant, turns in {REFERENCE: plain, **contrasted(dialogue, pairs)}.items():
                    if variant in variants:
                        yield dialogue.dialogue_id, variant, turns

    def _pairs(self) -> Iterator[tuple[Dialogue, str, Pair]]:
        """Each pair with its dialogue and its id."""
        for dialogue, pairs in self._accepted():
            yield from ((dialogue, pair_id(dialogue.dialogue_id, pair.turn), pair) for pair in pairs)

    def _accepted(self) -> Iterator[tuple[Dialogue, tuple[Pair, ...]]]:
        return ((outcome.dialogue, outcome.pairs) for outcome in accepted_outcomes(self.folder) if outcome.dialogue)


def _texts(dialogue: Dialogue, pair: Pair) -> dict[str, str]:
    """Texts of a turn by variant; controls are included together or not at all, as in a release."""
    names = (*PAIR_VARIANTS, *(CONTROLS if all(getattr(pair, name) for name in CONTROLS) else ()))
    return {REFERENCE: dialogue.turns[pair.turn].text, **{name: getattr(pair, name).text for name in names}}


Source = ReleaseTexts | BuildTexts


def source_of(folder: Path) -> Source:
    """Texts of a release, or of a finished build.

    Raises:
        InputError: if the folder is neither, or its header is not valid.
    """
    if (folder / MANIFEST).is_file():
        return ReleaseTexts(folder)
    header = read_json(folder / BUILD, None, "name a release or a build") if (folder / BUILD).is_file() else None
    if isinstance(header, dict) and "rubric" in header:
        raise input_error(folder, "holds annotations, not texts", "name the release or the build that was annotated")
    if (folder / BUILD).is_file() or (folder / CONFIGURATION).is_file():
        return BuildTexts(folder)
    what = f"is neither a release (no {MANIFEST} in it) nor a finished build (no {BUILD} in it)"
    raise input_error(folder, what, "name the folder of a release, or that of a build that was run to its end")


def describe_source(named: Any) -> str:
    """A source as identified by annotations, valid or not: ``demo 0.1.0 (seal s1-…)``."""
    release = named if isinstance(named, dict) else {}
    if REPLIES_TO in release:
        return f"replies to {release.get('name')} {release.get('version')} (seal {release[REPLIES_TO]}), split {release.get('split')}"
    if "outcomes" in release:
        return f"a build of {release.get('name')} (outcomes {release['outcomes']})"
    return f"{release.get('name')} {release.get('version')} (seal {release.get('seal')})"


@dataclass(frozen=True)
class Case:
    """A helper turn with the conversation before it and its texts by variant; or, without a turn, a whole dialogue.

    ``conversation`` has (role, text) of the turns shown to a judge; ``conversations`` replaces it for some of the texts. ``compared`` has
    the pairs of texts to compare, None for the variants of a release.
    Of a dialogue ``conversation`` is the reference, empty where that is not judged, and ``conversations`` holds it whole by variant.
    """

    dialogue_id: str
    turn: int | None
    pair_id: str | None
    conversation: Conversation
    texts: dict[str, str] = field(default_factory=dict)
    conversations: dict[str, Conversation] = field(default_factory=dict)
    compared: tuple[tuple[str, str], ...] | None = None

    def before(self, variant: str | None) -> Conversation:
        """The conversation before one of the texts; of a dialogue the whole of it."""
        return self.conversations.get(variant or "", self.conversation)

    @property
    def wholes(self) -> tuple[str | None, ...]:
        """The variants in which a whole dialogue is judged: None for the dialogue as it is, with its references."""
        return (*((None,) if self.conversation else ()), *self.conversations)


@dataclass(frozen=True)
class Material:
    """What is judged: its identity in annotations (``named``), its cases, and further fields of their header (``noted``)."""

    named: Mapping[str, str]
    cases: tuple[Case, ...]
    noted: dict[str, Any]


def spread_out(names: Mapping[str, Hashable], seed: int = 0) -> list[str]:
    """All names in sampling order: the first N are a sample of N, and a larger sample only appends.

    Within a stratum the order is by the SHA-256 of the name, after the seed if that is not 0. The k-th of n is at position
    (2 k + 1) / (2 n) among all, so that every sample has about the same share of each stratum.
    """
    strata: dict[Hashable, list[tuple[str, str]]] = defaultdict(list)
    for name, stratum in names.items():
        strata[stratum].append((digest_bytes((f"{seed}:{name}" if seed else name).encode()), name))
    ranked = ((rank, len(members), *member) for members in strata.values() for rank, member in enumerate(sorted(members)))
    return [name for _, _, name in sorted((Fraction(2 * rank + 1, 2 * size), hashed, name) for rank, size, hashed, name in ranked)]


def sample_of(turns: Iterable[SourceTurn], variants: Collection[str] = TEXTS) -> list[str]:
    """The names of turns or dialogues in the order of the sample: where controls are asked for, those that have them come first.

    They are few, and only they separate a judge from shortcuts.
    """
    first, last = dict[str, Hashable](), dict[str, Hashable]()
    # Equal strata share one object to save memory.
    known: dict[Hashable, Hashable] = {}
    leading = not set(CONTROLS).isdisjoint(variants)
    for turn in turns:
        (first if leading and turn.controls else last)[turn.name] = known.setdefault(turn.stratum, turn.stratum)
    return [*spread_out(first), *spread_out(last)]


def cases_of(source: Source | Path, turns: int | None, variants: Iterable[str] = TEXTS, but: frozenset[str] = frozenset()) -> list[Case]:
    """The first turns (None: all) with the texts of some variants, in the order of :func:`sample_of`, without those in ``but``.

    A path is the folder of a release, which need not have its manifest yet.

    Raises:
        InputError: if a file is missing, or does not hold what the data contract says.
    """
    source, requested = ReleaseTexts(source) if isinstance(source, Path) else source, set(variants)
    order = [name for name in sample_of(source.turns(), requested) if name not in but][:turns]
    contexts, texts = dict[str, Conversation](), dict[str, dict[str, str]]()
    for name, context, texts_of in source.texts(set(order), requested):
        contexts[name] = contexts.get(name, ()) or context
        texts.setdefault(name, {}).update(texts_of)
    ordered = {name: {variant: texts[name][variant] for variant in TEXTS if variant in texts[name]} for name in order}
    return [Case(*parts_of(name), name, contexts[name], ordered[name]) for name in order]


def dialogues_of(source: Source | Path, number: int | None, variants: Iterable[str] = TEXTS) -> list[Case]:
    """So many dialogues (None: all) that a release or a build has in any of these variants, in the order of :func:`sample_of`."""
    source, requested = ReleaseTexts(source) if isinstance(source, Path) else source, set(variants)
    order = sample_of((dialogue for dialogue in source.dialogues() if dialogue.has(requested)), requested)[:number]
    wholes: dict[str, dict[str, Conversation]] = {name: {} for name in order}
    for name, variant, turns in source.conversations(wholes.keys(), requested):
        wholes[name][variant] = turns
    ordered = {name: {variant: some[variant] for variant in TEXTS if variant in some} for name, some in wholes.items()}
    return [Case(name, None, None, some.pop(REFERENCE, ()), conversations=some) for name, some in ordered.items()]


def finished_lines(path: Path, digest: str | None, form: str, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields (place, value) of each line of a finished file, but for that of the canary; values are valid under the schema ``form``.

    Raises:
        InputError: if the file is not that of the digest, cannot be read, or has a line that is not valid.
    """
    where = str(path)
    try:
        if digest_file(path) != digest:
            raise input_error(path, f"was changed after the {what} were made", AGAIN)
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                where = f"{path}: line {number}"
                value = json_value(line.decode())
                if not (isinstance(value, dict) and value.keys() == {CANARY}):
                    check(value, form, where)
                    yield where, value
    except OSError as error:
        raise input_error(path, f"cannot be read: {error.strerror}", AGAIN) from error
    except (UnicodeDecodeError, ParseError) as error:
        raise input_error(where, str(error) if isinstance(error, ParseError) else "is not UTF-8", AGAIN) from error
