"""Reading what raters send back, in any form, as answers of one shape with the place of each judgement."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, nearest
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.schemas import check, violations
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.review.forms import COLUMNS, FILLED, NAMED, TIE, WARNING, Row, tie, uncoded, unshielded
from empathy_eval.raters.review.record import CRITERIA

# The columns that each kind of row has to fill.
OF_KIND = {"variant": {*CRITERIA, "comment"}, "dialogue": {"decision", "reason", "comment"}, "turn": {"tag", "right_strategy", "comment"}}
OF_KIND["crossed"] = {"decision", "comment"}
HALF = re.compile(r"[\ud800-\udfff]")
TAG = {"right": True, "wrong": False}
# What a rater says of single turns of a dialogue.
OF_TURNS = ("tags", "remarks")


@dataclass
class Answers:
    """The answers of a file (``value``, as in ``review_answers.schema.json``) with what is wrong with them so far.

    ``places`` tells where each judgement stands. Of a spreadsheet, ``texts`` tells what stood beside it, by (item, turn), and
    ``turn_rows`` each of an item's ``tags`` and ``remarks``, with where it stands.
    """

    path: Path
    source: str
    value: dict[str, Any]
    places: list[str]
    texts: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    turn_rows: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def complain(self, place: str, what: str, fix: str) -> None:
        """Notes a problem."""
        self.problems.append(Problem(f"{self.path}: {place}" if place else str(self.path), what, fix))

    def judge(self, place: str, judgement: dict[str, Any]) -> None:
        """Adds a judgement."""
        self.value["judgements"].append(judgement)
        self.places.append(place)

    def head(self, given: Mapping[str, set[str]], counts: range, what: str, fix: str) -> None:
        """Takes the review and the rater, of which there is to be one each."""
        for name, values in given.items():
            if len(values) not in counts:
                self.complain("", f"holds {what} of {len(values)} {name}s", fix)
            self.value[name] = min(values, default="")


def read_answers(path: Path) -> Answers:
    """The answers in a file: JSON of the page or of Label Studio, CSV or XLSX.

    Raises:
        InputError: if it cannot be read at all.
    """
    try:
        source = digest_file(path)
    except OSError as error:
        raise input_error(path, f"cannot be read: {error.strerror}", "check the path") from error
    match path.suffix.lower():
        case ".json":
            answers = _from_json(path, source)
        case ".csv" | ".xlsx":
            answers = _from_rows(path, source)
        case other:
            raise input_error(path, f'"{other}" is not a format of review files', "give the .json, .csv or .xlsx file that came back")
    for place, what, fix in violations(answers.value, "review_answers", by_hand=True):
        answers.complain(_named(place, answers), what, fix)
    if not answers.problems:
        _complain_of_half_characters(answers)
    return answers


def _complain_of_half_characters(answers: Answers) -> None:
    """JSON can name half a character (``\\ud83d`` without the other half), which no file holds."""
    for place, one in zip(answers.places, answers.value["judgements"], strict=True):
        texts = [(name, one.get(name, "")) for name in ("comment", "reason")]
        texts += [(f"comment on turn {said['turn']}", said["comment"]) for said in one.get("remarks", [])]
        for name, text in texts:
            if half := HALF.search(text):
                what = f'holds half a character (\\u{ord(half[0]):04x}) after "{text[: half.start()][-20:]}"'
                answers.complain(f"{place}: {name}", what, "take it out, or write the whole character")


def _named(place: str, answers: Answers) -> str:
    """``row 12: empathy`` for ``judgements[3]: empathy``."""
    head, _, rest = place.partition(": ")
    if not head.startswith("judgements["):
        return place
    number, (of_turn, _, column) = int(head[11:-1]), rest.partition(": ")
    part, _, at = of_turn.partition("[")
    if answers.turn_rows and part in OF_TURNS:
        return f"{answers.turn_rows[part, answers.value['judgements'][number]['item']][int(at[:-1])][0]}: {column}"
    return f"{answers.places[number]}: {rest}".removesuffix(": ")


def _from_json(path: Path, source: str) -> Answers:
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise input_error(path, f"is not JSON: {error}", "ask for the file again: it was cut or changed on its way") from error
    if isinstance(value, list):
        check(value, "label_studio_export", path)
        return _from_tasks(path, source, value)
    judgements = value.get("judgements") if isinstance(value, dict) else None
    count = len(judgements) if isinstance(judgements, list) else 0
    return Answers(path, source, value, [f"judgement {number}" for number in range(1, count + 1)])


def _from_rows(path: Path, source: str) -> Answers:
    """The rows of a spreadsheet: a reply is a row, a dialogue a row with a row for each of its turns below it."""
    answers = Answers(path, source, {"format": 1, "form": path.suffix.lower()[1:], "judgements": []}, [])
    about: dict[str, set[str]] = {"review": set(), "rater": set()}
    first_row: dict[str, str] = {}
    for number, row in read_rows(path):
        place = f"row {number}"
        for name, values in about.items():
            values.add(row[name])
        filled = {name: row[name].strip() for name in FILLED if row[name].strip()}
        for name in sorted(filled.keys() - OF_KIND.get(row["kind"], set())):
            fix = f'a row of the kind "{row["kind"]}" has no such column: move it to the right row, or clear it'
            answers.complain(place, f'has "{filled[name]}" under {name}', fix)
        first_row.setdefault(row["item"], place)
        if not filled:
            continue
        if row[TIE] != tie(row):
            what = f'has judgements of "{row[TIE]}" beside "{tie(row)}"'
            answers.complain(place, what, "put the rows back together: the file was sorted by some of its columns only")
        answers.texts[row["item"], row["turn"]] = (place, row["text"])
        if row["kind"] == "turn":
            faults = list(_tag_faults(filled.get("tag", ""), filled.get("right_strategy", "")))
            for column, what, fix in faults:
                answers.complain(f"{place}: {column}", what, fix)
            for part, one in _of_turn(row["turn"], filled) if not faults else ():
                answers.turn_rows.setdefault((part, row["item"]), []).append((place, one))
        else:
            answers.judge(place, _judgement(row, filled))
    for (part, item), said in answers.turn_rows.items():
        judgement = next((one for one in answers.value["judgements"] if one["item"] == item), None)
        if judgement is None:  # the dialogue lacks its decision
            judgement = {"item": item, "kind": "dialogue"}
            answers.judge(first_row[item], judgement)
        judgement[part] = [one for _, one in said]
    answers.head(about, range(2), "rows", "send the rows of each rater as a file of its own")
    return answers


def _judgement(row: dict[str, str], filled: dict[str, str]) -> dict[str, Any]:
    said = {name: value for name, value in filled.items() if name in OF_KIND.get(row["kind"], set())}
    if "decision" in said:
        said["decision"] = said["decision"].lower()
        if row["kind"] == "crossed" and said["decision"] in ("a", "b"):
            said["decision"] = said["decision"].upper()
    return {
        "item": row["item"],
        "kind": row["kind"],
        **{name: _number(value) if name in CRITERIA else value for name, value in said.items()},
    }


def _of_turn(turn: str, filled: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the row of a turn says: a tag, a remark, or both."""
    if "tag" in filled:
        strategy = {"strategy": filled["right_strategy"]} if "right_strategy" in filled else {}
        yield "tags", {"turn": _number(turn), "right": TAG[filled["tag"].lower()], **strategy}
    if "comment" in filled:
        yield "remarks", {"turn": _number(turn), "comment": filled["comment"]}


def _tag_faults(tag: str, strategy: str) -> Iterator[tuple[str, str, str]]:
    """(column, what, fix) for each way in which the two columns of a turn's strategy cannot be taken."""
    names = [one.name for one in load_taxonomy().strategies] if strategy else []
    if tag and tag.lower() not in TAG:
        yield "tag", f'"{tag}" is not known', "write right or wrong"
    elif strategy and tag.lower() != "wrong":
        yield "right_strategy", f'has "{strategy}" beside the tag "{tag}"', "write wrong as the tag, or clear the strategy"
    elif tag and not strategy and not TAG[tag.lower()]:
        yield "right_strategy", f'is empty beside the tag "{tag}"', "write the strategy that would be right"
    if strategy and strategy not in names:
        yield "right_strategy", f'"{strategy}" is not known', f"use one of {', '.join(names)}{nearest(strategy, names)}"


def _number(value: str) -> int | str:
    return int(value) if value.removeprefix("-").isdecimal() and value.isascii() else value


def read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """(row number, cells by column) of a CSV or XLSX file that a rater sent back; the head is row 1. Empty rows are passed over.

    Raises:
        InputError: if the file cannot be read or lacks a column.
    """
    table = _csv_table(path) if path.suffix.lower() == ".csv" else _xlsx_table(path)
    head = next(table, [])
    # Sheets that were sent before there was a warning come back without it.
    missing = [name for name in COLUMNS if name not in head and name != WARNING]
    if missing:
        what = "misses the columns " + ", ".join(f'"{name}"' for name in missing)
        raise input_error(f"{path}: row 1", what, "keep the header row as it was sent")
    for number, cells in enumerate(table, 2):
        if any(cells):
            row = dict(zip(head, cells, strict=False))
            yield number, {name: row.get(name, "") for name in COLUMNS}


def _csv_table(path: Path) -> Iterator[list[str]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise input_error(path, f"is not UTF-8: byte {error.start}", "save it as CSV UTF-8, or send the XLSX file") from error
    # Where the decimal sign is a comma, spreadsheets save CSV with semicolons.
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        yield from ([unshielded(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise input_error(path, f"is not CSV: {error}", "save it again from the spreadsheet program") from error


def _xlsx_table(path: Path) -> Iterator[list[str]]:
    from openpyxl import load_workbook

    try:
        with contextlib.closing(load_workbook(path, read_only=True)) as book:
            page = book.worksheets[0]
            page.reset_dimensions()  # what a file says of its size may be wrong
            yield from ([_cell_value(value) for value in row] for row in page.iter_rows(values_only=True))
    except Exception as error:  # openpyxl lets the errors of zipfile, of XML parsers and its own through
        raise input_error(path, f"is not XLSX: {error}", "save it again from the spreadsheet program") from error


def _cell_value(value: object) -> str:
    """The text of a cell; 3.0 is 3, as spreadsheets store whole numbers."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return uncoded(str(value))


def _from_tasks(path: Path, source: str, tasks: list[dict[str, Any]]) -> Answers:
    """The JSON export of one project of Label Studio.

    Tasks without an annotation, and cancelled annotations, are not judged. A turn that is not marked is right if the rater says that every
    strategy was checked; else it is not judged.
    """
    answers = Answers(path, source, {"format": 1, "form": "label-studio", "judgements": []}, [])
    for number, task in enumerate(tasks, 1):
        results = [one["result"] for one in task.get("annotations", []) if not one.get("was_cancelled") and one["result"]]
        if len(results) > 1:
            answers.complain(f"task {number}", f"has {len(results)} annotations", "keep the one that counts and export again")
        elif results:
            answers.judge(f"task {number}", _annotation(task["data"], results[0]))
    about = {name: {str(task["data"].get(name)) for task in tasks} for name in ("review", "rater")}
    answers.head(about, range(1, 2), "tasks", "export the project of one rater at a time")
    return answers


def _annotation(data: dict[str, Any], result: list[dict[str, Any]]) -> dict[str, Any]:
    """One annotation in the form of the answers' schema; what the rater left out is left out."""
    value = {one["from_name"]: one["value"] for one in result if one["from_name"] not in ("strategy", "remark")}
    found: dict[str, Any] = {"item": data.get("item"), "kind": data.get("kind")}
    found |= {name: value[name].get("rating") for name in CRITERIA if name in value}
    found |= {name: "\n".join(value[name].get("text", [])) for name in ("reason", "comment") if name in value}
    if "decision" in value:
        found["decision"] = value["decision"].get("choices", [None])[0]
    if data.get("kind") == "dialogue":
        remarks, turns = _remarks(result), [turn["speaker"] for turn in data["turns"]]
        # Only what is marked can be remarked on: what a seeker says has no strategy, its mark stands for the remark alone.
        said = {one["turn"] for one in remarks if one["turn"] < len(turns) and NAMED not in turns[one["turn"]]}
        labels = [one["value"] for one in result if one["from_name"] == "strategy"]
        # A mark over several turns stands for its first.
        marks = [(int(one.get("start", len(turns))), one.get("paragraphlabels", [""])[0]) for one in labels]
        found["tags"] = _tags(turns, [mark for mark in marks if mark[0] not in said], checked="tags" in value)
        found |= {"remarks": remarks} if remarks else {}
    return found


def _remarks(result: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The remarks on marked turns, by turn; a remark has the place of its mark, or else the mark's id."""
    starts = {one.get("id"): one["value"]["start"] for one in result if "start" in one["value"]}
    said: dict[int, list[str]] = {}
    for one in result:
        start = one["value"].get("start", starts.get(one.get("id")))
        if one["from_name"] == "remark" and start is not None:
            said.setdefault(int(start), []).extend(one["value"].get("text", []))
    return [{"turn": turn, "comment": "\n".join(texts)} for turn, texts in sorted(said.items()) if "".join(texts).strip()]


def _tags(turns: list[str], marks: list[tuple[int, str]], *, checked: bool) -> list[dict[str, Any]]:
    """What (turn, strategy) of marks say that a turn's strategy should be; ``turns`` are their speakers, with their strategies."""
    found: list[dict[str, Any]] = []
    for place, strategy in marks:
        same = place < len(turns) and turns[place].endswith(f"{NAMED}{strategy}")
        found.append({"turn": place, "right": True} if same else {"turn": place, "right": False, "strategy": strategy})
    marked = {place for place, _ in marks}
    unmarked = (place for place, turn in enumerate(turns) if NAMED in turn and place not in marked) if checked else ()
    return sorted([*found, *({"turn": place, "right": True} for place in unmarked)], key=lambda one: int(one["turn"]))
