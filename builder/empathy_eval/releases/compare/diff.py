"""Comparison of two releases: added, removed, changed and moved items, and their figures."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import shortened, some_of
from empathy_eval.base.hashing import digest
from empathy_eval.base.json_text import json_text
from empathy_eval.base.table_text import TableText, aligned, table_text
from empathy_eval.base.tabular import TableRow, schema_of, table_batches
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS, RAW, STANCE
from empathy_eval.design.dataset import COLUMNS, JUDGED, SPLITS, column, file_of, files_of, read_manifest, read_tables
from empathy_eval.design.errata import predecessor_of, revision_of, withdrawn_dialogues, withdrawn_pairs
from empathy_eval.design.provenance import Provenance, Result
from empathy_eval.releases.assemble.annotations import row_identity
from empathy_eval.releases.assemble.read_back import plan_order
from empathy_eval.releases.verify.content import excluded_ids

# By config the column with the id of its items, and their content without what the dialogue holds too.
ITEM_CONTENT: dict[str, tuple[str, Callable[[TableRow], Any]]] = {
    "dialogues": ("dialogue_id", lambda row: [row["description"], [[turn["role"], turn["text"]] for turn in row["turns"]]]),
    "pairs": ("pair_id", lambda row: [row[name] for name in PAIR_VARIANTS]),
    "controls": ("pair_id", lambda row: [row[name] for name in CONTROLS]),
    "crossed": ("crossed_id", lambda row: [row["context_2"][-1]["text"], row["reply_1"], row["reply_2"]]),
}
IN_PLACE = "was published with another text in {}: withdraw it, and give the corrected item a new id"
# Method and model of seed dialogues, before the hash of the seeds.
SEED_BANK = "seed-bank"
# Parts of a manifest that describe how a release was made.
MADE_BY = ("configuration", "without", "templates", "rules", "schemas", "seeds", "scenario_files", "definitions", "toxicity_weights",
           "checks", "builder", "software")  # fmt: skip
# What may differ of an item.
WHAT = ("added", "removed", "changed")
# The first figure that is compared.
ACCURACY = "accuracy at equal closeness"
# Errors that are written out.
MOST_ERRORS = 20


def _rows_of(folder: Path, config: str) -> Iterator[TableRow]:
    """Yields the rows of a config, of all splits."""
    return (row for path in files_of(folder, config) for batch in table_batches(path) for row in batch.to_pylist())


def _hash_rows(folder: Path, manifest: Mapping[str, Any], config: str, identity: Callable[[TableRow], Any]) -> dict[Any, str]:
    """Returns the hash of each row of a config by its identity; empty for a config that the release does not have."""
    return {identity(row): digest(row) for row in _rows_of(folder, config)} if config in manifest["counts"] else {}


def unexplained_changes(folders: tuple[Path, Path], manifests: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yields changes from the first release to the second that releases of one name must not have.

    A published item is never corrected in place: it is withdrawn, and its corrected form has an id of its own. Otherwise an item is removed
    only by review, as a near-duplicate, or as a spare whose place in its scenario another dialogue took.
    """
    before, after = manifests
    if before["name"] != after["name"]:
        return
    old, new = (_hash_items(folder, manifest) for folder, manifest in zip(folders, manifests, strict=True))
    explained, is_spare = excluded_ids(after), _spare_test(new, after)
    dialogues = {name for config, name, _ in new if config == "dialogues"}
    for key in sorted(old):
        config, dialogue_id, name = key
        if key in new:
            if old[key] != new[key]:
                yield f"{name} {IN_PLACE.format(config)}"
        elif config == "dialogues":
            if name not in explained and not is_spare(name):
                yield f"{name} is missing, and no reason is given"
        elif dialogue_id in dialogues and name not in explained:
            yield f"{name} is missing from {config}, and no reason is given"
    was, now = (withdrawn_dialogues(manifest["withdrawn"]) | withdrawn_pairs(manifest["withdrawn"]) for manifest in manifests)
    yield from (f"{name} is no longer withdrawn" for name in sorted(was - now))


def _hash_items(folder: Path, manifest: Mapping[str, Any]) -> dict[tuple[str, str, str], str]:
    """Returns the hash of the content of each item by (config, dialogue, item)."""
    items: dict[tuple[str, str, str], str] = {}
    for config, (name, content) in ITEM_CONTENT.items():
        for row in _rows_of(folder, config) if config in manifest["counts"] else ():
            items[config, row["dialogue_id"], row[name]] = digest(content(row))
    return items


def _spare_test(items: Iterable[tuple[str, str, str]], manifest: Mapping[str, Any]) -> Callable[[str], bool]:
    """Returns a test whether a dialogue is a spare: its scenario is full of dialogues before it in the plan."""
    ids = [name for config, name, _ in items if config == "dialogues" and not revision_of(name)]
    filled, last = Counter(name[:3] for name in ids), dict[str, tuple[Any, ...]]()
    for name in ids:
        last[name[:3]] = max(last.get(name[:3], ()), plan_order(name))

    def is_spare(name: str) -> bool:
        number = name[:3]
        full = number in last and filled[number] >= manifest["scenarios"].get(number, {"quota": 0})["quota"]
        return manifest["spares_left_out"] > 0 and full and plan_order(name) > last[number]

    return is_spare


@dataclass(frozen=True)
class ComparedFigure:
    """A figure of a metric in both releases, with its interval if it has one; None if it was not measured.

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
    """Differences between two releases: the later one, which its provenance names, and the one ``before``.

    ``moved`` are ids whose split changed, which is an error. ``annotations`` counts rows of judges by config: added, removed, changed;
    ``crossed`` has the ids of crossed items likewise. ``corrected`` maps a new dialogue to the one it replaces. ``unexplained`` are
    changes that releases of one name must not have. ``withdrawn_counts`` are the dialogues and pairs of the earlier release that are
    withdrawn, pairs of withdrawn dialogues too.
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
        return [f"{name}: {of}" for name, of in (("before", self.before), ("after", self.provenance)) if of]

    def to_json(self) -> dict[str, Any]:
        """The differences as JSON values."""
        return self._with_provenance(asdict(self))

    def _table(self) -> TableText:
        lines = [f"{self.versions[0]} -> {self.versions[1]}"]
        if self.moved:
            lines.append(f"ERROR: moved to another split: {some_of(self.moved)}")
        lines += [f"ERROR: {change}" for change in self.unexplained[:MOST_ERRORS]]
        if more := len(self.unexplained[MOST_ERRORS:]):
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
        lines += [line for name in (ACCURACY, RAW) for line in _table(name, [row for row in self.figures if row.figure == name])]
        lines += [f"{name}: {_short(before)} -> {_short(after)}" for name, (before, after) in self.made_by.items()]
        return table_text(lines)


def diff(before: Path, after: Path) -> Diff:
    """Compares two release folders. Raises InputError if one of them is no release."""
    folders, manifests = (before, after), (read_manifest(before), read_manifest(after))
    columns = _columns(before, after)
    # A new or removed column changes no dialogue.
    skipped = {name[1:] for names in columns.values() for name in names}
    old, new = _dialogues(before, skipped), _dialogues(after, skipped)
    added, removed, changed = _compare(*({name: digest for name, (_, digest) in side.items()} for side in (old, new)))
    withdrawn, by_review = (_named_in(manifests[1], name) - _named_in(manifests[0], name) for name in ("withdrawn", "reviews"))
    return Diff(
        (manifests[0]["version"], manifests[1]["version"]),
        added,
        removed,
        changed,
        tuple(name for name in sorted(old.keys() & new.keys()) if old[name][0] != new[name][0]),
        tuple(sorted(withdrawn)),
        tuple(sorted(by_review)),
        columns,
        _figures(before, after),
        {path: values for name in MADE_BY for path, values in _changes(name, manifests[0].get(name), manifests[1].get(name))},
        _annotations(folders, manifests),
        _crossed(folders, manifests),
        {name: predecessor_of(name) for name in added if revision_of(name)},
        tuple(unexplained_changes(folders, manifests)),
        _withdrawn_counts(folders, manifests[1]),
        before=Provenance.of(before),
        provenance=Provenance.of(after),
    )


def _compare(old: Mapping[Any, str], new: Mapping[Any, str]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Returns the added, removed and changed ids of items, given their hashes by id."""
    changed = {name for name in old.keys() & new.keys() if old[name] != new[name]}
    return tuple(sorted(new.keys() - old.keys())), tuple(sorted(old.keys() - new.keys())), tuple(sorted(changed))


def _named_in(manifest: dict[str, Any], name: str) -> set[str]:
    """Returns the dialogues and pairs that a manifest names as withdrawn, or as removed by review."""
    entries = manifest[name] if name == "withdrawn" else (manifest.get("reviews") or {}).get("removed", [])
    return {entry.get("dialogue_id") or entry["pair_id"] for entry in entries}


def _withdrawn_counts(folders: tuple[Path, Path], after: dict[str, Any]) -> dict[str, int]:
    """Counts dialogues and pairs of the earlier release that are missing because they, or their dialogue, were withdrawn."""
    withdrawals, corrected = after["withdrawn"], after["configuration"].get("corrected", ())
    named, counts = withdrawn_dialogues(withdrawals) | withdrawn_pairs(withdrawals, corrected), dict[str, int]()
    for config, name in (("dialogues", "dialogue_id"), ("pairs", "pair_id")):
        old, new = (set(column(folder, config, name)) for folder in folders)
        counts[config] = sum(not named.isdisjoint((item, item.rpartition("-t")[0])) for item in old - new)
    return counts


def _dialogues(folder: Path, skipped: set[str]) -> dict[str, tuple[str, str]]:
    """Returns (split, hash of the dialogue with all its pairs and controls) by id."""
    hashes: dict[str, tuple[str, str]] = {}
    for config, split in itertools.product(("dialogues", "pairs", "controls"), SPLITS):
        for batch in table_batches(file_of(folder, config, split)):
            for row in batch.to_pylist():
                row = {name: _without_seeds(value) for name, value in row.items() if name not in skipped}
                # The hash of a row covers those of the rows before it, so that one hash is kept for each dialogue.
                first, before = hashes.get(row["dialogue_id"], (split, ""))
                hashes[row["dialogue_id"]] = first, digest([before, row])
    return hashes


def _without_seeds(value: Any) -> Any:
    """Returns a value, without the hash in the name of a seed bank, which changes with any seed."""
    return SEED_BANK if isinstance(value, str) and value.startswith(f"{SEED_BANK}@") else value


def _crossed(folders: tuple[Path, Path], manifests: Sequence[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Returns the ids of added, removed and changed crossed items; without empty entries."""
    items = (_hash_rows(folder, manifest, "crossed", itemgetter("crossed_id")) for folder, manifest in zip(folders, manifests, strict=True))
    return {what: ids for what, ids in zip(WHAT, _compare(*items), strict=True) if ids}


def _annotations(folders: tuple[Path, Path], manifests: Sequence[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Counts added, removed and changed rows of judges by config, without configs that are equal."""
    counts = {}
    for config in JUDGED:
        old, new = (_hash_rows(folder, manifest, config, row_identity) for folder, manifest in zip(folders, manifests, strict=True))
        changed = sum(old[name] != new[name] for name in old.keys() & new.keys())
        counts[config] = dict(zip(WHAT, (len(new.keys() - old.keys()), len(old.keys() - new.keys()), changed), strict=True))
    return {config: rows for config, rows in counts.items() if any(rows.values())}


def _columns(before: Path, after: Path) -> dict[str, list[str]]:
    """Returns ``+name`` and ``-name`` of added and removed columns, by config."""
    columns = {}
    for config in COLUMNS:
        old, new = (set(schema_of(file_of(folder, config, "train")).names) for folder in (before, after))
        if old != new:
            columns[config] = [f"+{name}" for name in sorted(new - old)] + [f"-{name}" for name in sorted(old - new)]
    return columns


def _figures(before: Path, after: Path) -> tuple[ComparedFigure, ...]:
    """Returns the accuracy at equal closeness of each metric that has one, then the contrast as released."""
    tables = [read_tables(folder) for folder in (before, after)]
    # Without a better direction an accuracy has no meaning.
    directed = [[row for row in table["controls"] if row["higher_is_better"] is not None] for table in tables]
    accuracies = [_by_metric(rows, lambda row: row["differences"][STANCE]["accuracy"]) for rows in directed]
    released = [_by_metric(table["inversion"], lambda row: row["differences"][RAW]) for table in tables]
    figures = []
    for name, (old, new) in ((ACCURACY, accuracies), (RAW, released)):
        for metric in dict.fromkeys([*old, *new]):
            (signature, was), (new_signature, now) = old.get(metric, (None, None)), new.get(metric, ("", None))
            forced = any(figure.get("forced", False) for figure in (was, now) if figure)
            figures.append(ComparedFigure(metric, name, forced, was, now, signature == new_signature))
    return tuple(figures)


def _by_metric(rows: Sequence[dict[str, Any]], figure: Callable[[dict[str, Any]], Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Returns (signature, figure) by metric of the rows that have the figure."""
    return {row["metric"]: (row["signature"], value) for row in rows if (value := figure(row))}


def _changes(path: str, before: Any, after: Any) -> list[tuple[str, tuple[Any, Any]]]:
    """Returns the leaves that differ, by their path."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(before.keys() | after.keys())
        return [change for name in names for change in _changes(f"{path}.{name}", before.get(name), after.get(name))]
    return [] if before == after else [(path, (before, after))]


def _table(name: str, figures: Sequence[ComparedFigure]) -> Iterator[str]:
    """Yields the lines of the figures of a name; none without figures."""
    rows = []
    for figure in figures:
        notes = ["forced by the checks"] if figure.forced else []
        notes += [] if figure.same_settings or None in (figure.before, figure.after) else ["other settings"]
        values = (_format(figure.before, name), _format(figure.after, name))
        rows.append((f"  {figure.metric}", *values, f"({', '.join(notes)})" if notes else ""))
    yield from [name, *aligned([("  metric", "before", "after", ""), *rows], right=(1, 2))] if rows else ()


def _format(figure: dict[str, float | None] | None, name: str) -> str:
    if figure is None:
        return "not measured"
    form = ".4f" if name == ACCURACY else "+.4f"
    return f"{figure['value']:{form}}" + ("" if figure["low"] is None else f" [{figure['low']:{form}}, {figure['high']:{form}}]")


def _short(value: Any) -> str:
    return shortened(json_text(value, indent=None), 60)
