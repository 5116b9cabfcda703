"""Label Studio: tasks and labelling configurations for a sheet, and the judgements of its JSON export."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from empathy_eval.base.files import data_folder, write_whole
from empathy_eval.base.json_text import json_text
from empathy_eval.base.templates import environment
from empathy_eval.design.canary import CANARY
from empathy_eval.raters.review.record import CRITERIA

# Label Studio has one configuration a project, so replies, dialogues and crossed items are projects of their own.
PROJECTS = {"variant": "replies", "dialogue": "dialogues", "crossed": "two-replies"}
# Between the speaker of a turn and its strategy.
NAMED = " · "


def write_projects(sheet: dict[str, Any], folder: Path) -> None:
    """``replies/``, ``dialogues/`` and ``two-replies/``, each with ``config.xml`` and ``tasks.json``.

    A kind of which the sheet has no item is left out.
    """
    for kind, name in PROJECTS.items():
        tasks = [_task(sheet, item) for item in sheet["items"] if item["kind"] == kind]
        if tasks:
            (folder / name).mkdir(parents=True)
            write_whole(folder / name / "config.xml", labelling_configuration(kind, sheet["strategies"]))
            write_whole(folder / name / "tasks.json", json_text(tasks, indent=1) + "\n")


def labelling_configuration(kind: str, strategies: Iterable[Mapping[str, str]]) -> str:
    """The labelling configuration of the project for a kind of item."""
    template = f"label-studio-{PROJECTS[kind]}.xml{'.j2' if kind == 'dialogue' else ''}"
    return environment(data_folder("review") / "label_studio").get_template(template).render(strategies=strategies) + "\n"


def _task(sheet: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    data = {"review": sheet["review"], "rater": sheet["rater"], **item, **({CANARY: sheet[CANARY]} if CANARY in sheet else {})}
    if item["kind"] == "dialogue":
        data["turns"] = [
            {"speaker": NAMED.join(filter(None, (turn["role"], turn["strategy"]))), "text": turn["text"]} for turn in item["turns"]
        ]
    return {"data": data}


def read_tasks(tasks: list[dict[str, Any]]) -> tuple[dict[str, Any], list[str], list[tuple[str, str, str]]]:
    """(answers, the place of each judgement, problems as (place, what, fix)) of a JSON export of one project.

    Tasks without an annotation, and cancelled annotations, are not judged. A turn that is not marked is right if the rater says that every
    strategy was checked; else it is not judged.
    """
    judgements, places, problems = [], [], []
    for number, task in enumerate(tasks, 1):
        results = [one["result"] for one in task.get("annotations", []) if not one.get("was_cancelled") and one["result"]]
        if len(results) > 1:
            problems.append((f"task {number}", f"has {len(results)} annotations", "keep the one that counts and export again"))
        elif results:
            judgements.append(_judgement(task["data"], results[0]))
            places.append(f"task {number}")
    about = {name: sorted({str(task["data"].get(name)) for task in tasks}) for name in ("review", "rater")}
    for name, values in about.items():
        if len(values) != 1:
            problems.append(("", f"holds tasks of {len(values)} {name}s", "export the project of one rater at a time"))
    head = {name: values[0] if values else "" for name, values in about.items()}
    return {"format": 1, **head, "form": "label-studio", "judgements": judgements}, places, problems


def _judgement(data: dict[str, Any], result: list[dict[str, Any]]) -> dict[str, Any]:
    """One annotation in the form of the answers' schema; what the rater left out is left out."""
    value = {one["from_name"]: one["value"] for one in result if one["from_name"] not in ("strategy", "remark")}
    found: dict[str, Any] = {"item": data.get("item"), "kind": data.get("kind")}
    found |= {name: value[name].get("rating") for name in CRITERIA if name in value}
    found |= {name: "\n".join(value[name].get("text", [])) for name in ("reason", "comment") if name in value}
    if "decision" in value:
        found["decision"] = value["decision"].get("choices", [None])[0]
    if data.get("kind") == "dialogue":
        remarks = _remarks(result)
        marks = [one["value"] for one in result if one["from_name"] == "strategy"]
        # Only what is marked can be remarked on: what a seeker says has no strategy, its mark stands for the remark alone.
        said = {one["turn"] for one in remarks if one["turn"] < len(data["turns"]) and NAMED not in data["turns"][one["turn"]]["speaker"]}
        found["tags"] = _tags(data["turns"], [mark for mark in marks if _turn(mark, data["turns"]) not in said], checked="tags" in value)
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


def _turn(mark: dict[str, Any], turns: list[dict[str, str]]) -> int:
    return int(mark.get("start", len(turns)))


def _tags(turns: list[dict[str, str]], marks: list[dict[str, Any]], *, checked: bool) -> list[dict[str, Any]]:
    """A mark says what a turn's strategy should be; a mark over several turns stands for its first."""
    found = []
    for mark in marks:
        place, strategy = _turn(mark, turns), mark.get("paragraphlabels", [""])[0]
        same = place < len(turns) and turns[place]["speaker"].endswith(f"{NAMED}{strategy}")
        found.append({"turn": place, "right": True} if same else {"turn": place, "right": False, "strategy": strategy})
    marked = {one["turn"] for one in found}
    unmarked = (place for place, turn in enumerate(turns) if NAMED in turn["speaker"] and place not in marked) if checked else ()
    return sorted([*found, *({"turn": place, "right": True} for place in unmarked)], key=lambda one: int(one["turn"]))
