"""All tables of a release as one: a record a contrast, comparison, shortcut, first sample, attack, stance effect, gap, note or fault.

Left out are figures of attacks by variant, what a gap is elsewhere, what the groups are, and what attacks, fairness and judges tell in
words beside their rows: all that is in the JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from empathy_eval.design.contrasts import CELLS
from empathy_eval.evaluation.inversion.rows import FIGURES

Values = Mapping[str, Any]
_RANKED = ("accuracy", "auc", "effect")
_BOUNDS = tuple(f"{name}_{end}" for name in _RANKED for end in ("low", "high"))
_SCORES = ("reference", *CELLS)
NUMBERS = ("pairs", "value", "low", "high", "p", "holm", *_RANKED, "of", "left_out", *_BOUNDS, "ties", *_SCORES)
COLUMNS = (
    "table", "group", "metric", "contrast", "pairs", "value", "low", "high", "p", "holm", "accuracy", "auc", "forced", "signature", "of",
    "left_out", "other", *("effect", *_BOUNDS), "ties", "better", *_SCORES, "told",
)  # fmt: skip
STANCE_EFFECT = "stance effect"
_TABLES = {"inversion": "pairs", "controls": "2x2", "candidates": "before contrast checks", "balance": "balance"}


def records(tables: Values) -> Iterator[dict[str, Any]]:
    """The records of the JSON values of all tables, each with ``COLUMNS``; a number that there is not is None, a word empty."""
    for table, group, row in rows(tables):
        for name, one in row["differences"].items():
            yield _record(
                table, group, row["metric"], name, **row["coverage"], **_flat(one), **row["scores"],
                signature=f"{row['signature']}|{row['interval_signature'] or ''}",
            )  # fmt: skip
    for one in tables["comparisons"]:
        about = {"other": one["other"], "pairs": one["pairs"], "signature": one["signature"]}
        yield from (
            _record("comparisons", name, one["one"], one["contrast"], **about, **_flat(one[name])) for name in ("accuracy", "effect")
        )
    for name, one in tables["smallest"].items():
        yield _record("smallest", "", "", name, **one)
    for contrast in tables["shortcuts"]["contrasts"] if tables["shortcuts"] else ():
        yield from _shortcuts(contrast, tables["shortcuts"]["by"])
    for one in tables["shortcuts"].get("first_samples", ()) if tables["shortcuts"] else ():
        yield _shortcut(one, one["contrast"], f"another text in {one['others']} of all pairs")
    yield from _crossed(tables.get("crossed") or {"metrics": (), "shortcuts": ()})
    yield from _attacks(tables.get("attacks") or {"rows": ()})
    yield from _fairness(tables.get("fairness") or {"groups": (), "names": ()})
    yield from (_record(table, "", "", "", told=one) for table in ("notes", "faults") for one in tables.get(table, ()))


def _attacks(table: Values) -> Iterator[dict[str, Any]]:
    """A record of the stance effect of each scorer, and one a figure under each attack: ``pairs`` are the eligible replies, ``of`` all."""
    for row in {row["metric"]: row for row in reversed(table["rows"])}.values():
        bounds = {name: row["effect"][name] for name in ("value", "low", "high")}
        told = "; ".join(filter(None, [row["effect"]["over"], row["effect"]["why"]]))
        yield _record("attacks", STANCE_EFFECT, row["metric"], "", **bounds, signature=row["signature"], told=told)
    for row in table["rows"]:
        for name in ("rises", "falls", "change", "in_effects"):
            about = {"pairs": row["eligible"], "of": row["replies"], "signature": row["signature"]}
            told = row["effect"]["why"] or "" if name == "in_effects" else ""
            yield _record("attacks", name, row["metric"], row["attack"], **about, **(row[name] or {}), told=told)


def _fairness(tables: Values) -> Iterator[dict[str, Any]]:
    """A record a figure (``other``) of each scorer by group and under each exchange of names: here minus there, beside what it is here."""
    for table, part in (("fairness by group", "groups"), ("fairness by names", "names")):
        for row in tables[part]:
            about = {"pairs": row["pairs"], "of": row["of"], "signature": row["signature"], "told": row["why"] or ""}
            for name in ("accuracy", "effect"):
                if gap := row[name]:
                    here = {name: gap["here"]}
                    yield _record(
                        table, row["name"], row["metric"], row["contrast"], other=name, **about, **_flat(gap["difference"] | here)
                    )


def _crossed(table: Values) -> Iterator[dict[str, Any]]:
    """A record a figure of each scorer of crossed items; one without a figure for a scorer that cannot be asked."""
    for group in ("metrics", "shortcuts"):
        for row in table[group]:
            about = {name: row[name] for name in ("left_out", "signature")} | {"told": row["why"] or "", "pairs": row["items"]}
            about["of"] = row["items"] + row["left_out"]
            ties = {"fitting": row["ties"], "own_context": row["own_ties"]}
            found = {name: {"ties": ties.get(name), **_flat({"accuracy": row[name]})} for name in FIGURES if row[name]}
            for name, values in (found or {"": {}}).items():
                yield _record("crossed", group, row["metric"], name, **about, **values)


def rows(tables: Values) -> Iterator[tuple[str, str, Values]]:
    """(table, group, row) of all rows of metrics."""
    whole = [(name, "", row) for name in ("inversion", "controls") for row in tables[name]]
    matched = [("equal length", name, row) for name, found in tables["matched"].items() for row in found]
    rest = [(name, "", row) for name in ("candidates", "balance") for row in tables[name]]
    groups = [(name, group, row) for name, found in tables["groups"].items() for group, some in found.items() for row in some]
    yield from ((_TABLES.get(table, table), group, row) for table, group, row in (*whole, *matched, *rest, *groups))


def _record(table: str, group: str, metric: str, contrast: str, **values: Any) -> dict[str, Any]:
    known = dict.fromkeys(COLUMNS, "") | dict.fromkeys(NUMBERS) | {"forced": False}
    return known | {"table": table, "group": group, "metric": metric, "contrast": contrast} | values


def _flat(one: Values | None) -> dict[str, Any]:
    """A difference with its estimates side by side."""
    given = one or {}
    found = {name: value for name, value in given.items() if name not in (*_RANKED, "higher_is_better")}
    if "higher_is_better" in given:
        found["better"] = {True: "higher", False: "lower", None: "neither"}[given["higher_is_better"]]
    for name in _RANKED:
        if estimate := given.get(name):
            found |= {name: estimate["value"], f"{name}_low": estimate["low"], f"{name}_high": estimate["high"]}
    return found


def _shortcut(one: Values, contrast: str, over: str) -> dict[str, Any]:
    told = f"{'trained' if one['trained'] else 'untrained'}; {over}{one['why'] and '; ' + one['why'] or ''}"
    about = {"pairs": one["pairs"], "signature": one["signature"], "told": told}
    return _record("shortcuts", "", one["name"], contrast, **about, **_flat({"accuracy": one["accuracy"]}))


def _shortcuts(contrast: Values, by: str) -> Iterator[dict[str, Any]]:
    name = contrast["contrast"]
    texts = f"{contrast['kind']} against {contrast['cold']}; {contrast['config']}"
    over = f"{texts}: {contrast['dialogues']} dialogues, {contrast['folds']} folds by {by}"
    for one in contrast["shortcuts"]:
        yield _shortcut(one, name, over)
    for one in contrast["directions"]:
        yield _record("directions", one["what"], one["feature"], name, **(one["difference"] or {}), signature=one["signature"])
    for side in ("kind", "cold"):
        for word in contrast[f"telltale_{side}"]:
            counts = {contrast[one]: word[one] for one in ("kind", "cold")}
            yield _record("telltale words", contrast[side], word["word"], name, value=word["weight"], **counts)
    for end in ("easiest", "hardest"):
        yield from (_record(f"{end} pairs", "", one["pair_id"], name, value=one["margin"]) for one in contrast[end])
