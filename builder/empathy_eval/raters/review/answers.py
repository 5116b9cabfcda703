"""Readers of returned review files: every format becomes answers of one form, with the location of each judgement."""

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
from empathy_eval.raters.review.forms import COLUMNS, FILLED, NAMED, TIE, WARNING, SheetRow, tie, uncoded, unshielded
from empathy_eval.raters.review.record import CRITERIA

# Columns that may be filled in each kind of row.
OF_KIND = {"variant": {*CRITERIA, "comment"}, "dialogue": {"decision", "reason", "comment"}, "turn": {"tag", "right_strategy", "comment"}}
OF_KIND["crossed"] = {"decision", "comment"}
HALF = re.compile(r"[\ud800-\udfff]")
TAG = {"right": True, "wrong": False}
# Judgements of single turns of a dialogue.
OF_TURNS = ("tags", "remarks")


@dataclass
class Answers:
    """Answers of a file (``value``, as in ``review_answers.schema.json``) and its problems so far.

    ``places`` has the location of each judgement. For a spreadsheet, ``texts`` has the location and text beside each judgement, by (item,
    turn), and ``turn_rows`` each of an item's ``tags`` and ``remarks``, with its location.
    """

    path: Path
    source: str
    value: dict[str, Any]
    places: list[str]
    texts: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    turn_rows: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add_problem(self, location: str, what: str, fix: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(f"{self.path}: {location}" if location else str(self.path), what, fix))

    def add_judgement(self, location: str, judgement: dict[str, Any]) -> None:
        """Add a judgement."""
        self.value["judgements"].append(judgement)
        self.places.append(location)

    def set_review_and_rater(self, names_by_review: Mapping[str, set[str]], counts: range, what: str, fix: str) -> None:
        """Set the review and the rater, of which a file must have one each."""
        for name, values in names_by_review.items():
            if len(values) not in counts:
                self.add_problem("", f"holds {what} of {len(values)} {name}s", fix)
            self.value[name] = min(values, default="")


def read_answers(path: Path) -> Answers:
    """Read a file of answers: JSON of the page or of Label Studio, CSV or XLSX.

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
    for path_in_value, what, fix in violations(answers.value, "review_answers", by_hand=True):
        answers.add_problem(_readable_path(path_in_value, answers), what, fix)
    if not answers.problems:
        _complain_of_half_characters(answers)
    return answers


def _complain_of_half_characters(answers: Answers) -> None:
    """Note unpaired surrogates: JSON can name half a character (``\\ud83d`` without the other half), which no file can hold."""
    for location, judgement in zip(answers.places, answers.value["judgements"], strict=True):
        texts = [(name, judgement.get(name, "")) for name in ("comment", "reason")]
        texts += [(f"comment on turn {remark['turn']}", remark["comment"]) for remark in judgement.get("remarks", [])]
        for name, text in texts:
            if half := HALF.search(text):
                what = f'holds half a character (\\u{ord(half[0]):04x}) after "{text[: half.start()][-20:]}"'
                answers.add_problem(f"{location}: {name}", what, "take it out, or write the whole character")


def _readable_path(path_in_value: str, answers: Answers) -> str:
    """``row 12: empathy`` for ``judgements[3]: empathy``."""
    head, _, rest = path_in_value.partition(": ")
    if not head.startswith("judgements["):
        return path_in_value
    number, (of_turn, _, column) = int(head[11:-1]), rest.partition(": ")
    part, _, position = of_turn.partition("[")
    if answers.turn_rows and part in OF_TURNS:
        return f"{answers.turn_rows[part, answers.value['judgements'][number]['item']][int(position[:-1])][0]}: {column}"
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
    """Answers of a spreadsheet: a reply is a row, a dialogue a row followed by a row for each of its turns."""
    answers = Answers(path, source, {"format": 1, "form": path.suffix.lower()[1:], "judgements": []}, [])
    about: dict[str, set[str]] = {"review": set(), "rater": set()}
    first_row: dict[str, str] = {}
    for number, row in read_rows(path):
        location = f"row {number}"
        for name, values in about.items():
            values.add(row[name])
        filled = {name: row[name].strip() for name in FILLED if row[name].strip()}
        for name in sorted(filled.keys() - OF_KIND.get(row["kind"], set())):
            fix = f'a row of the kind "{row["kind"]}" has no such column: move it to the right row, or clear it'
            answers.add_problem(location, f'has "{filled[name]}" under {name}', fix)
        first_row.setdefault(row["item"], location)
        if not filled:
            continue
        if row[TIE] != tie(row):
            what = f'has judgements of "{row[TIE]}" beside "{tie(row)}"'
            answers.add_problem(location, what, "put the rows back together: the file was sorted by some of its columns only")
        answers.texts[row["item"], row["turn"]] = (location, row["text"])
        if row["kind"] == "turn":
            faults = list(_tag_faults(filled.get("tag", ""), filled.get("right_strategy", "")))
            for column, what, fix in faults:
                answers.add_problem(f"{location}: {column}", what, fix)
            for part, entry in _of_turn(row["turn"], filled) if not faults else ():
                answers.turn_rows.setdefault((part, row["item"]), []).append((location, entry))
        else:
            answers.add_judgement(location, _judgement(row, filled))
    for (part, item), entries in answers.turn_rows.items():
        judgement = next((judgement for judgement in answers.value["judgements"] if judgement["item"] == item), None)
        if judgement is None:  # the dialogue lacks its decision
            judgement = {"item": item, "kind": "dialogue"}
            answers.add_judgement(first_row[item], judgement)
        judgement[part] = [entry for _, entry in entries]
    answers.set_review_and_rater(about, range(2), "rows", "send the rows of each rater as a file of its own")
    return answers


def _judgement(row: dict[str, str], filled: dict[str, str]) -> dict[str, Any]:
    stated = {name: value for name, value in filled.items() if name in OF_KIND.get(row["kind"], set())}
    if "decision" in stated:
        stated["decision"] = stated["decision"].lower()
        if row["kind"] == "crossed" and stated["decision"] in ("a", "b"):
            stated["decision"] = stated["decision"].upper()
    values = {name: _number(value) if name in CRITERIA else value for name, value in stated.items()}
    return {"item": row["item"], "kind": row["kind"], **values}


def _of_turn(turn: str, filled: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Judgements in the row of a turn: a tag, a remark, or both."""
    if "tag" in filled:
        strategy = {"strategy": filled["right_strategy"]} if "right_strategy" in filled else {}
        yield "tags", {"turn": _number(turn), "right": TAG[filled["tag"].lower()], **strategy}
    if "comment" in filled:
        yield "remarks", {"turn": _number(turn), "comment": filled["comment"]}


def _tag_faults(tag: str, strategy: str) -> Iterator[tuple[str, str, str]]:
    """(column, what, fix) for each problem of the two columns of a turn's strategy."""
    names = [strategy.name for strategy in load_taxonomy().strategies] if strategy else []
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


def read_rows(path: Path) -> Iterator[tuple[int, SheetRow]]:
    """(row number, cells by column) of a returned CSV or XLSX file; the header is row 1. Empty rows are skipped.

    Raises:
        InputError: if the file cannot be read or lacks a column.
    """
    table = _csv_table(path) if path.suffix.lower() == ".csv" else _xlsx_table(path)
    head = next(table, [])
    # Older sheets have no warning column.
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
    # Spreadsheets in locales with a decimal comma save CSV with semicolons.
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
            page.reset_dimensions()  # the declared size may be wrong
            yield from ([_cell_value(value) for value in row] for row in page.iter_rows(values_only=True))
    except Exception as error:  # openpyxl raises errors of zipfile, XML parsers and its own
        raise input_error(path, f"is not XLSX: {error}", "save it again from the spreadsheet program") from error


def _cell_value(value: object) -> str:
    """Text of a cell; 3.0 is "3", because spreadsheets store whole numbers so."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return uncoded(str(value))


def _from_tasks(path: Path, source: str, tasks: list[dict[str, Any]]) -> Answers:
    """Answers of the JSON export of a Label Studio project.

    Tasks without an annotation, and cancelled annotations, are not judged. An unmarked turn is right if the rater confirms that every
    strategy was checked; else it is not judged.
    """
    answers = Answers(path, source, {"format": 1, "form": "label-studio", "judgements": []}, [])
    for number, task in enumerate(tasks, 1):
        annotations = [annotation for annotation in task.get("annotations", []) if not annotation.get("was_cancelled")]
        results = [annotation["result"] for annotation in annotations if annotation["result"]]
        if len(results) > 1:
            answers.add_problem(f"task {number}", f"has {len(results)} annotations", "keep the one that counts and export again")
        elif results:
            answers.add_judgement(f"task {number}", _annotation(task["data"], results[0]))
    about = {name: {str(task["data"].get(name)) for task in tasks} for name in ("review", "rater")}
    answers.set_review_and_rater(about, range(1, 2), "tasks", "export the project of one rater at a time")
    return answers


def _annotation(data: dict[str, Any], result: list[dict[str, Any]]) -> dict[str, Any]:
    """One annotation in the form of the answers' schema; what the rater left out is absent."""
    value = {region["from_name"]: region["value"] for region in result if region["from_name"] not in ("strategy", "remark")}
    judgement: dict[str, Any] = {"item": data.get("item"), "kind": data.get("kind")}
    judgement |= {name: value[name].get("rating") for name in CRITERIA if name in value}
    judgement |= {name: "\n".join(value[name].get("text", [])) for name in ("reason", "comment") if name in value}
    if "decision" in value:
        judgement["decision"] = value["decision"].get("choices", [None])[0]
    if data.get("kind") == "dialogue":
        remarks, turns = _remarks(result), [turn["speaker"] for turn in data["turns"]]
        # A remark needs a mark; a seeker's turn has no strategy, so its mark carries only the remark.
        remarked = {remark["turn"] for remark in remarks if remark["turn"] < len(turns) and NAMED not in turns[remark["turn"]]}
        labels = [region["value"] for region in result if region["from_name"] == "strategy"]
        # A mark over several turns counts for the first.
        marks = [(int(label.get("start", len(turns))), label.get("paragraphlabels", [""])[0]) for label in labels]
        judgement["tags"] = _tags(turns, [mark for mark in marks if mark[0] not in remarked], checked="tags" in value)
        judgement |= {"remarks": remarks} if remarks else {}
    return judgement


def _remarks(result: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Remarks on marked turns, by turn; a remark has the position of its mark, or else the mark's id."""
    starts = {region.get("id"): region["value"]["start"] for region in result if "start" in region["value"]}
    texts_of: dict[int, list[str]] = {}
    for region in result:
        start = region["value"].get("start", starts.get(region.get("id")))
        if region["from_name"] == "remark" and start is not None:
            texts_of.setdefault(int(start), []).extend(region["value"].get("text", []))
    return [{"turn": turn, "comment": "\n".join(texts)} for turn, texts in sorted(texts_of.items()) if "".join(texts).strip()]


def _tags(turns: list[str], marks: list[tuple[int, str]], *, checked: bool) -> list[dict[str, Any]]:
    """Tags from marks, (turn, strategy); ``turns`` are the speakers of the turns, with their strategies."""
    tags: list[dict[str, Any]] = []
    for turn, strategy in marks:
        same = turn < len(turns) and turns[turn].endswith(f"{NAMED}{strategy}")
        tags.append({"turn": turn, "right": True} if same else {"turn": turn, "right": False, "strategy": strategy})
    marked = {turn for turn, _ in marks}
    unmarked = (index for index, turn in enumerate(turns) if NAMED in turn and index not in marked) if checked else ()
    return sorted([*tags, *({"turn": turn, "right": True} for turn in unmarked)], key=lambda tag: int(tag["turn"]))
