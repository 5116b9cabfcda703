"""Simulated raters: they fill in what they were sent, in any form, as a given function judges what a code stands for."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from empathy_eval.base.hashing import derived_random
from empathy_eval.raters.review.forms import COLUMNS
from empathy_eval.raters.review.sheets import shown_kind
from openpyxl import load_workbook

Judge = Callable[[str, dict[str, Any]], dict[str, Any]]
OF_TURNS = ("tags", "remarks")
FORMS = ("page", "csv", "xlsx", "label-studio")


def kind_and_cold(code: str, entry: dict[str, Any]) -> dict[str, Any]:
    """A rater who sees what is there: cold is cold, every dialogue is kept, every tag is right."""
    if entry["kind"] == "dialogue":
        return {"decision": "keep", "tags": [{"turn": int(turn), "right": True} for turn in entry["turns"]]}
    if entry["kind"] == "crossed":
        return {"decision": entry["fits"]}
    warm = 3 if entry.get("variant", "").endswith("empathetic") else 1
    return {"coherence": 3, "helpfulness": warm, "empathy": warm}


def items_of(key: dict[str, Any], rater: str) -> dict[str, dict[str, Any]]:
    return {code: entry for code, entry in key["items"].items() if entry["rater"] == rater}


def key_of(review: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((review / "key.json").read_text())
    return value


def fill(review: Path, rater: str, form: str, judge: Judge, out: Path) -> list[Path]:
    """The files that a rater sends back."""
    out.mkdir(parents=True, exist_ok=True)
    key, folder = key_of(review), review / "raters" / rater
    said = {code: judge(code, entry) for code, entry in items_of(key, rater).items()}
    match form:
        case "page":
            kinds = {code: shown_kind(entry["kind"]) for code, entry in key["items"].items()}
            judgements = [{"item": code, "kind": kinds[code], "comment": "", **one} for code, one in said.items()]
            for one in judgements:
                if one["kind"] == "dialogue":
                    one.setdefault("reason", "")
            answers = {"format": 1, "review": key["review"], "rater": rater, "form": "page", "judgements": judgements}
            return [written(out / f"{rater}.json", json.dumps(answers))]
        case "csv":
            text = (folder / f"{rater}.csv").read_bytes().decode("utf-8-sig")
            rows = list(csv.DictReader(io.StringIO(text, newline="")))
            for row in rows:
                row |= {name: str(value) for name, value in filled(row, said[row["item"]]).items()}
            stream = io.StringIO()
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            return [written(out / f"{rater}.csv", stream.getvalue())]
        case "xlsx":
            book = load_workbook(folder / f"{rater}.xlsx")
            page = book["review"]
            for number in range(2, page.max_row + 1):
                row = {name: page.cell(number, place).value for place, name in enumerate(COLUMNS, 1)}
                for name, value in filled(row, said[row["item"]]).items():
                    page.cell(number, COLUMNS.index(name) + 1).value = value
            book.save(out / f"{rater}.xlsx")
            return [out / f"{rater}.xlsx"]
        case _:
            return [export_of(path, said, out / f"{rater}-{path.parent.name}.json") for path in sorted(folder.rglob("tasks.json"))]


def filled(row: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """What a rater writes into a row of a spreadsheet."""
    if row["kind"] != "turn":
        return {name: value for name, value in said.items() if name not in OF_TURNS}
    remark = next(({"comment": one["comment"]} for one in said.get("remarks", []) if str(one["turn"]) == str(row["turn"])), {})
    tag = next((one for one in said.get("tags", []) if str(one["turn"]) == str(row["turn"])), None)
    if tag is None:
        return remark
    return remark | ({"tag": "right"} if tag["right"] else {"tag": "wrong", "right_strategy": tag["strategy"]})


def export_of(tasks: Path, said: dict[str, dict[str, Any]], out: Path) -> Path:
    """The JSON export of a Label Studio project in which one annotator judged every task."""
    exported = []
    for number, task in enumerate(json.loads(tasks.read_text()), 1):
        result = [result_of(name, value) for name, value in said[task["data"]["item"]].items() if name not in OF_TURNS]
        tags = said[task["data"]["item"]].get("tags", [])
        remarks = {one["turn"]: one["comment"] for one in said[task["data"]["item"]].get("remarks", [])}
        better = {tag["turn"]: tag["strategy"] for tag in tags if not tag["right"]}
        for turn in sorted({*better, *remarks}):
            # A turn is remarked on by marking it, with the strategy it has where nothing is wrong.
            strategy = better.get(turn) or task["data"]["turns"][turn]["speaker"].partition(" · ")[2] or "Clarification"
            marked = {"start": str(turn), "end": str(turn), "startOffset": 0, "endOffset": 1}
            about = {"to_name": "dialogue", "id": f"turn-{turn}"}
            result.append({"from_name": "strategy", **about, "type": "paragraphlabels", "value": {**marked, "paragraphlabels": [strategy]}})
            if turn in remarks:
                at = marked if turn % 2 else {}  # the place is told by the value, or by the id alone
                result.append({"from_name": "remark", **about, "type": "textarea", "value": {**at, "text": [remarks[turn]]}})
        if tags:
            value = {"choices": ["I have checked every strategy"]}
            result.append({"from_name": "tags", "to_name": "dialogue", "type": "choices", "value": value})
        for place, one in enumerate(result):
            one.setdefault("id", f"r{place}")
        exported.append({"id": number, **task, "annotations": [{"id": number, "was_cancelled": False, "result": result}]})
    return written(out, json.dumps(exported))


def result_of(name: str, value: Any) -> dict[str, Any]:
    if name in ("reason", "comment"):
        shape: dict[str, Any] = {"type": "textarea", "value": {"text": [value]}}
    elif name == "decision":
        shape = {"type": "choices", "value": {"choices": [value]}}
    else:
        shape = {"type": "rating", "value": {"rating": value}}
    return {"from_name": name, "to_name": "dialogue" if name in ("decision", "reason") else "text", **shape}


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def of_severity(key: dict[str, Any], good: Mapping[str, int], seed: int) -> dict[str, int]:
    """What raters of a review between them make of empathy, by code: "3" for so many of a rater's replies as is said of the group, but for
    two fewer to two more, which is how severe the rater is; "2" for half of the rest."""
    said: dict[str, int] = {}
    for rater in sorted({entry["rater"] for entry in key["items"].values()}):
        codes, rng = sorted(items_of(key, rater)), derived_random(seed, rater)
        (group,) = {entry.get("system") or entry["variant"] for entry in items_of(key, rater).values()}
        best = good[group] + rng.choice((-2, -1, 0, 1, 2))
        for place, code in enumerate(rng.sample(codes, len(codes))):
            said[code] = 3 if place < best else 2 if place < (best + len(codes)) // 2 else 1
    return said
