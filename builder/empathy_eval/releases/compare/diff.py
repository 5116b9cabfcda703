"""Comparing two releases: what was added, removed, changed or moved, and what that did to the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import shortened, some_of
from empathy_eval.base.hashing import digest
from empathy_eval.base.json_text import json_text
from empathy_eval.base.table_text import TableText, aligned, table_text
from empathy_eval.base.tabular import TableRow, schema_of, table_batches
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS, RAW, STANCE
from empathy_eval.design.dataset import COLUMNS, JUDGED, SPLITS, column, file_of, files_of, read_manifest, read_tables
from empathy_eval.design.errata import predecessor_of as stands_for
from empathy_eval.design.errata import revision_of, withdrawn_dialogues, withdrawn_pairs
from empathy_eval.design.provenance import Provenance, Result
from empathy_eval.releases.assemble.annotations import identity_of
from empathy_eval.releases.assemble.read_back import place_of
from empathy_eval.releases.verify.content import excluded_ids

# By config the name of its items, and what they say: what stands in the dialogue too is held there.
SAID: dict[str, tuple[str, Callable[[TableRow], Any]]] = {
    "dialogues": ("dialogue_id", lambda row: [row["description"], [[turn["role"], turn["text"]] for turn in row["turns"]]]),
    "pairs": ("pair_id", lambda row: [row[name] for name in PAIR_VARIANTS]),
    "controls": ("pair_id", lambda row: [row[name] for name in CONTROLS]),
    "crossed": ("crossed_id", lambda row: [row["context_2"][-1]["text"], row["reply_1"], row["reply_2"]]),
}
IN_PLACE = "was published with another text in {}: withdraw it, and give the corrected item a new id"
# (config, dialogue, item): the hash of what it says.
Items = dict[tuple[str, str, str], str]


def unexplained(folders: tuple[Path, Path], manifests: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What changed, went or came back in the later of two releases, and must not have; nothing where they have different names.

    A published item is never corrected in place: what is wrong is withdrawn, and its corrected form has an id of its own. Else an item
    goes only by review, as a near-duplicate, or as a spare that another one took the place of.
    """
    before, after = manifests
    if before["name"] != after["name"]:
        return
    old, new = (_items_by_id(folder, told) for folder, told in zip(folders, manifests, strict=True))
    gone, spares = excluded_ids(after), _spares(new, after)
    there = {name for config, name, _ in new if config == "dialogues"}
    for key in sorted(old):
        config, dialogue_id, name = key
        if key in new:
            if old[key] != new[key]:
                yield f"{name} {IN_PLACE.format(config)}"
        elif config == "dialogues":
            if name not in gone and not spares(name):
                yield f"{name} is missing, and no reason is given"
        elif dialogue_id in there and name not in gone:
            yield f"{name} is missing from {config}, and no reason is given"
    was, now = (withdrawn_dialogues(one["withdrawn"]) | withdrawn_pairs(one["withdrawn"]) for one in manifests)
    yield from (f"{name} is no longer withdrawn" for name in sorted(was - now))


def _items_by_id(folder: Path, manifest: Mapping[str, Any]) -> Items:
    found: Items = {}
    for config, (named, said) in SAID.items():
        for path in files_of(folder, config) if config in manifest["counts"] else ():
            for batch in table_batches(path):
                found |= {(config, row["dialogue_id"], row[named]): digest(said(row)) for row in batch.to_pylist()}
    return found


def _spares(new: Items, manifest: Mapping[str, Any]) -> Callable[[str], bool]:
    """Whether a dialogue is one that its scenario has no place for: all of them are taken, by dialogues before it in the plan."""
    ids = [name for config, name, _ in new if config == "dialogues" and not revision_of(name)]
    filled, last = Counter(name[:3] for name in ids), dict[str, tuple[Any, ...]]()
    for name in ids:
        last[name[:3]] = max(last.get(name[:3], ()), place_of(name))

    def spare(name: str) -> bool:
        number = name[:3]
        full = number in last and filled[number] >= manifest["scenarios"].get(number, {"quota": 0})["quota"]
        return manifest["spares_left_out"] > 0 and full and place_of(name) > last[number]

    return spare


# What the model that holds the seeds is called, before the hash of what it holds.
BANK = "seed-bank"
# What of a manifest says how a release was made.
MADE_BY = ("configuration", "without", "templates", "rules", "schemas", "seeds", "scenario_files", "definitions", "toxicity_weights",
           "checks", "builder", "software")  # fmt: skip

# The first figure that releases are compared by.
ACCURACY = "accuracy at equal closeness"
# How much of what must never be is written out.
MOST_TOLD = 20


@dataclass(frozen=True)
class ComparedFigure:
    """A figure of a metric in both releases, with its interval where there is one; None where it was not measured.

    ``figure`` is ``ACCURACY``, or the contrast as released, whose sign may be ``forced`` by the checks.
    """

    metric: str
    figure: str
    forced: bool
    before: dict[str, float | None] | None
    after: dict[str, float | None] | None
    same_settings: bool


@dataclass(frozen=True, repr=False)
class Diff(Result):
    """What differs between two releases: the later one, which its provenance names, and the one ``before``.

    ``moved`` holds ids whose split changed, which must never be.

    ``annotations`` counts rows of what judges said, by config: added, removed, changed; ``crossed`` names the crossed items likewise.
    ``corrected`` names what a new dialogue stands for, ``unexplained`` what two releases of a name may not do. ``withdrawn_counts`` are
    the dialogues and pairs of the earlier release that ``withdrawn`` took out, pairs of withdrawn dialogues too.
    """

    versions: tuple[str, str]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    moved: tuple[str, ...]
    withdrawn: tuple[str, ...]
    by_review: tuple[str, ...]
    columns: dict[str, list[str]]
    figures: tuple[ComparedFigure, ...]
    made_by: dict[str, Any]
    annotations: dict[str, dict[str, int]]
    crossed: dict[str, tuple[str, ...]]
    corrected: dict[str, str]
    unexplained: tuple[str, ...]
    withdrawn_counts: dict[str, int]
    before: Provenance | None = None

    def head(self) -> Sequence[str]:
        """Both releases."""
        return [f"{name}: {one}" for name, one in (("before", self.before), ("after", self.provenance)) if one]

    def to_json(self) -> dict[str, Any]:
        """The differences as JSON values."""
        return self._with_provenance(asdict(self))

    def _table(self) -> TableText:
        lines = [f"{self.versions[0]} -> {self.versions[1]}"]
        if self.moved:
            lines.append(f"ERROR: moved to another split: {some_of(self.moved)}")
        lines += [f"ERROR: {one}" for one in self.unexplained[:MOST_TOLD]]
        if more := len(self.unexplained[MOST_TOLD:]):
            lines.append(f"ERROR: {more:,} more of these; --json lists all")
        for name in ("added", "removed", "changed", "withdrawn", "by_review"):
            ids: tuple[str, ...] = getattr(self, name)
            lines.append(f"{name.replace('_', ' '):<10}{len(ids):>7}  {some_of(ids)}".rstrip())
        if self.withdrawn:
            lines.append("withdrawn from {}: {dialogues:,} dialogues, {pairs:,} pairs".format(self.versions[0], **self.withdrawn_counts))
        lines += [f"corrected: {new} replaces {old}" for new, old in self.corrected.items()]
        lines += [f"crossed items {what}: {len(ids):,}  {some_of(ids)}" for what, ids in self.crossed.items()]
        lines += [f"columns of {config}: {', '.join(names)}" for config, names in self.columns.items()]
        for config, counts in self.annotations.items():
            lines.append(f"rows of {config}: {', '.join(f'{count:,} {what}' for what, count in counts.items())}")
        lines += [line for name in (ACCURACY, RAW) for line in _table(name, [one for one in self.figures if one.figure == name])]
        lines += [f"{name}: {_short(before)} -> {_short(after)}" for name, (before, after) in self.made_by.items()]
        return table_text(lines)


def diff(before: Path, after: Path) -> Diff:
    """Compares two release folders.

    Raises:
        InputError: if one of them is no release.
    """
    manifests = tuple(map(read_manifest, (before, after)))
    columns = _columns(before, after)
    # A column that came or went changes no dialogue.
    passed_over = {name[1:] for names in columns.values() for name in names}
    old, new = _dialogues(before, passed_over), _dialogues(after, passed_over)
    kept = sorted(old.keys() & new.keys())
    withdrawn, by_review = (_named(manifests[1], name) - _named(manifests[0], name) for name in ("withdrawn", "reviews"))
    return Diff(
        (manifests[0]["version"], manifests[1]["version"]),
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
        tuple(name for name in kept if old[name][1] != new[name][1]),
        tuple(name for name in kept if old[name][0] != new[name][0]),
        tuple(sorted(withdrawn)),
        tuple(sorted(by_review)),
        columns,
        _figures(before, after),
        {path: values for name in MADE_BY for path, values in _changes(name, manifests[0].get(name), manifests[1].get(name))},
        _annotations((before, after), manifests),
        _crossed((before, after), manifests),
        {one: stands_for(one) for one in sorted(new.keys() - old.keys()) if revision_of(one)},
        tuple(unexplained((before, after), manifests)),
        _withdrawn_counts((before, after), manifests[1]),
        before=Provenance.of(before),
        provenance=Provenance.of(after),
    )


def _named(manifest: dict[str, Any], name: str) -> set[str]:
    """The dialogues and pairs that a manifest names as withdrawn, or as removed by review."""
    named = manifest[name] if name == "withdrawn" else (manifest.get("reviews") or {}).get("removed", [])
    return {one.get("dialogue_id") or one["pair_id"] for one in named}


def _withdrawn_counts(folders: tuple[Path, Path], after: dict[str, Any]) -> dict[str, int]:
    """How many dialogues and pairs of the earlier release are gone because they, or their dialogue, were withdrawn."""
    said, corrected = after["withdrawn"], after["configuration"].get("corrected", ())
    named, counts = withdrawn_dialogues(said) | withdrawn_pairs(said, corrected), dict[str, int]()
    for config, name in (("dialogues", "dialogue_id"), ("pairs", "pair_id")):
        old, new = (set(column(folder, config, name)) for folder in folders)
        counts[config] = sum(not named.isdisjoint((one, one.rpartition("-t")[0])) for one in old - new)
    return counts


def _dialogues(folder: Path, passed_over: set[str]) -> dict[str, tuple[str, str]]:
    """(split, hash of the dialogue with all its pairs and controls) by id."""
    found: dict[str, tuple[str, str]] = {}
    for config in ("dialogues", "pairs", "controls"):
        for split in SPLITS:
            for batch in table_batches(file_of(folder, config, split)):
                for row in batch.to_pylist():
                    row = {name: _bank(value) for name, value in row.items() if name not in passed_over}
                    # Each row's hash holds that of the rows before it, so that one hash a dialogue is kept.
                    first, before = found.get(row["dialogue_id"], (split, ""))
                    found[row["dialogue_id"]] = first, digest([before, row])
    return found


def _bank(value: Any) -> Any:
    """A value; of a seed bank no more than that it is one: its name changes with any seed."""
    return BANK if isinstance(value, str) and value.startswith(f"{BANK}@") else value


def _crossed(folders: tuple[Path, Path], manifests: Sequence[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    """The crossed items that came, went or say something else; nothing where none did."""
    old, new = (_items(folder) if "crossed" in told["counts"] else {} for folder, told in zip(folders, manifests, strict=True))
    changed = {name for name in old.keys() & new.keys() if old[name] != new[name]}
    found = {"added": new.keys() - old.keys(), "removed": old.keys() - new.keys(), "changed": changed}
    return {what: tuple(sorted(ids)) for what, ids in found.items() if ids}


def _items(folder: Path) -> dict[str, str]:
    """The hash of each crossed item by its id."""
    batches = (batch for split in SPLITS for batch in table_batches(file_of(folder, "crossed", split)))
    return {row["crossed_id"]: digest(row) for batch in batches for row in batch.to_pylist()}


def _annotations(folders: tuple[Path, Path], manifests: Sequence[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """How many rows of what judges said came, went or say something else, by config; a config without such is left out."""
    found = {}
    for config in JUDGED:
        old, new = (_said(folder, config) if config in told["counts"] else {} for folder, told in zip(folders, manifests, strict=True))
        changed = sum(old[name] != new[name] for name in old.keys() & new.keys())
        counts = {"added": len(new.keys() - old.keys()), "removed": len(old.keys() - new.keys()), "changed": changed}
        if any(counts.values()):
            found[config] = counts
    return found


def _said(folder: Path, config: str) -> dict[tuple[Any, ...], str]:
    """The hash of each row by what it is about."""
    batches = (batch for split in SPLITS for batch in table_batches(file_of(folder, config, split)))
    return {identity_of(row): digest(row) for batch in batches for row in batch.to_pylist()}


def _columns(before: Path, after: Path) -> dict[str, list[str]]:
    """``+name`` and ``-name`` of columns that came and went, by config."""
    found = {}
    for config in COLUMNS:
        old, new = (set(schema_of(file_of(folder, config, "train")).names) for folder in (before, after))
        if old != new:
            found[config] = [f"+{name}" for name in sorted(new - old)] + [f"-{name}" for name in sorted(old - new)]
    return found


def _figures(before: Path, after: Path) -> tuple[ComparedFigure, ...]:
    """The accuracy at equal closeness of each metric that has one, then the contrast as released."""
    tables = [read_tables(folder) for folder in (before, after)]
    # Of a metric without a better direction an accuracy says nothing.
    directed = [[row for row in table["controls"] if row["higher_is_better"] is not None] for table in tables]
    right = [_by_metric(rows, lambda row: row["differences"][STANCE]["accuracy"]) for rows in directed]
    released = [_by_metric(table["inversion"], lambda row: row["differences"][RAW]) for table in tables]
    return tuple(
        ComparedFigure(
            metric,
            name,
            any(one.get("forced", False) for one in (was, now) if one),
            was,
            now,
            metric in old and metric in new and old[metric][0] == new[metric][0],
        )
        for name, (old, new) in ((ACCURACY, right), (RAW, released))
        for metric in dict.fromkeys([*old, *new])
        for was, now in [(old.get(metric, ("", None))[1], new.get(metric, ("", None))[1])]
    )


def _by_metric(rows: Sequence[dict[str, Any]], figure: Callable[[dict[str, Any]], Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """By metric the signature and the figure of the rows that have it."""
    return {row["metric"]: (row["signature"], found) for row in rows if (found := figure(row))}


def _changes(path: str, before: Any, after: Any) -> list[tuple[str, tuple[Any, Any]]]:
    """The leaves that differ, by their path."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(before.keys() | after.keys())
        return [change for name in names for change in _changes(f"{path}.{name}", before.get(name), after.get(name))]
    return [] if before == after else [(path, (before, after))]


def _table(name: str, figures: Sequence[ComparedFigure]) -> Iterator[str]:
    """The lines of the figures of a name; none where there are none."""
    rows = []
    for one in figures:
        notes = ["forced by the checks"] if one.forced else []
        notes += [] if one.same_settings or None in (one.before, one.after) else ["other settings"]
        rows.append((f"  {one.metric}", _shown(one.before, name), _shown(one.after, name), f"({', '.join(notes)})" if notes else ""))
    yield from [name, *aligned([("  metric", "before", "after", ""), *rows], right=(1, 2))] if rows else ()


def _shown(one: dict[str, float | None] | None, name: str) -> str:
    if one is None:
        return "not measured"
    form = ".4f" if name == ACCURACY else "+.4f"
    return f"{one['value']:{form}}" + ("" if one["low"] is None else f" [{one['low']:{form}}, {one['high']:{form}}]")


def _short(value: Any) -> str:
    return shortened(json_text(value, indent=None), 60)
