"""Reading what raters send back, in any form, as answers of one shape with the place of each judgement."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, nearest
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.schemas import check, violations
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.review.label_studio import read_tasks
from empathy_eval.raters.review.record import CRITERIA
from empathy_eval.raters.review.spreadsheets import FILLED, TIE, read_rows, tie

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
    ``turn_rows`` where each of an item's ``tags`` and ``remarks`` stands.
    """

    path: Path
    source: str
    value: dict[str, Any]
    places: list[str]
    texts: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    turn_rows: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def complain(self, place: str, what: str, fix: str) -> None:
        """Notes a problem."""
        self.problems.append(Problem(f"{self.path}: {place}" if place else str(self.path), what, fix))


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
        return f"{answers.turn_rows[part, answers.value['judgements'][number]['item']][int(at[:-1])]}: {column}"
    return f"{answers.places[number]}: {rest}".removesuffix(": ")


def _from_json(path: Path, source: str) -> Answers:
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise input_error(path, f"is not JSON: {error}", "ask for the file again: it was cut or changed on its way") from error
    if isinstance(value, list):
        check(value, "label_studio_export", path)
        answers, places, problems = read_tasks(value)
        made = Answers(path, source, answers, places)
        for problem in problems:
            made.complain(*problem)
        return made
    judgements = value.get("judgements") if isinstance(value, dict) else None
    count = len(judgements) if isinstance(judgements, list) else 0
    return Answers(path, source, value, [f"judgement {number}" for number in range(1, count + 1)])


def _from_rows(path: Path, source: str) -> Answers:
    """The rows of a spreadsheet: a reply is a row, a dialogue a row with a row for each of its turns below it."""
    answers = Answers(path, source, {"format": 1, "form": path.suffix.lower()[1:], "judgements": []}, [])
    about: dict[str, set[str]] = {"review": set(), "rater": set()}
    of_turns: dict[tuple[str, str], list[dict[str, Any]]] = {}
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
                of_turns.setdefault((part, row["item"]), []).append(one)
                answers.turn_rows.setdefault((part, row["item"]), []).append(place)
        else:
            answers.value["judgements"].append(_judgement(row, filled))
            answers.places.append(place)
    _join(answers, of_turns, first_row)
    for name, values in about.items():
        if len(values) > 1:
            answers.complain("", f"holds rows of {len(values)} {name}s", "send the rows of each rater as a file of its own")
        answers.value[name] = min(values, default="")
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


def _join(answers: Answers, of_turns: dict[tuple[str, str], list[dict[str, Any]]], first_row: dict[str, str]) -> None:
    """Puts what is said of turns into the judgement of their dialogue; without one, the dialogue lacks its decision."""
    for (part, item), ones in of_turns.items():
        judgement = next((one for one in answers.value["judgements"] if one["item"] == item), None)
        if judgement is None:
            judgement = {"item": item, "kind": "dialogue"}
            answers.value["judgements"].append(judgement)
            answers.places.append(first_row[item])
        judgement[part] = ones
