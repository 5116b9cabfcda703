"""Import of a review: judgements are checked against the key, unblinded, and merged into the record."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, collecting, input_error, refuse
from empathy_eval.base.files import refuse_folders, write_whole
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import check, read_json
from empathy_eval.design.dataset import read_manifest
from empathy_eval.raters.review.answers import OF_TURNS, Answers, read_answers
from empathy_eval.raters.review.export import KEY
from empathy_eval.raters.review.human_evaluation import by_group, group_lines
from empathy_eval.raters.review.record import CRITERIA, Judgement, read_record, record_summary, table_path, tables_of, write_tables
from empathy_eval.raters.review.sheets import shown_kind, text_hash


@dataclass(frozen=True)
class Imported:
    """Result of an import: counts of new, known and replaced judgements, and the whole record.

    ``returned`` has for each rater of the review the number of items returned so far, and the number sent.
    """

    new: int
    known: int
    replaced: int
    record: dict[str, Any]
    returned: dict[str, tuple[int, int]]

    @cached_property
    def by_group(self) -> dict[str, Any] | None:
        """Ratings by system, and by variant if raters saw one alone; None without any."""
        return by_group(self.record)


def import_reviews(release_dir: Path, files: Sequence[Path], key_file: Path, record_file: Path, *, replace: bool = False) -> Imported:
    """Check returned files and merge them into the record. Nothing is written unless every file is valid.

    An identical judgement changes nothing. With ``replace`` a different judgement replaces the recorded one of the same rater and item,
    which is kept under ``replaced`` and can replace it again; two given files never replace each other.

    Raises:
        InputError: with all problems of all files: unreadable, of another review, invalid, an unknown or another rater's item, a judgement
            twice, texts that are not beside their item, or a contradiction with another file or, without ``replace``, the record; and if a
            folder is in the place of the record or a table.
    """
    key = read_key(key_file, release_dir)
    empty: dict[str, Any] = {"format": 1, "reviews": {}, "sources": {}, "judgements": [], "replaced": []}
    record = read_record(record_file) if record_file.exists() else empty
    answers, problems = list[Answers](), list[Problem]()
    for path in files:
        with collecting(problems):
            answers.append(read_answers(path))
            problems += answers[-1].problems or list(_problems(answers[-1], key, key_file))
    if not problems:
        imported, problems = _merged(record, answers, key, replace=replace)
    refuse(problems)
    check(imported.record, "reviews", record_file)
    refuse_folders(record_file, *(table_path(record_file, name) for name in tables_of(imported.record)))
    write_whole(record_file, json_text(imported.record, indent=1) + "\n")
    write_tables(imported.record, record_file)
    return imported


def read_key(path: Path, release_dir: Path) -> dict[str, Any]:
    """Read the key of a review of this release.

    Raises:
        InputError: if it is missing, not valid, or the key of another release.
    """
    key = read_json(path, "review_key", f"give the {KEY} of the export; the same export again makes the same key")
    if key["release"]["seal"] != read_manifest(release_dir)["seal"]:
        release = f"{key['release']['name']} {key['release']['version']}"
        raise input_error(path, f"is the key of another release ({release})", "name the release that was sent out, or its own key")
    return key


def _problems(answers: Answers, key: dict[str, Any], key_file: Path) -> Iterable[Problem]:
    """Problems of valid answers in view of the key."""
    value, path = answers.value, answers.path
    if value["review"] != key["review"]:
        fix = f"import it with its own key; {key_file} is of another review"
        yield Problem(str(path), f'belongs to the review "{value["review"][:15]}…"', fix)
        return
    path_of: dict[str, str] = {}
    for location, judgement in zip(answers.places, value["judgements"], strict=True):
        where, known = f"{path}: {location}", key["items"].get(judgement["item"])
        if first := path_of.get(judgement["item"]):
            yield Problem(where, f'judges "{judgement["item"]}" again, as {first} does', "keep one of the two")
        path_of[judgement["item"]] = location
        if known is None or shown_kind(known["kind"]) != judgement["kind"]:
            what = "is not in this review" if known is None else f"is a {shown_kind(known['kind'])}, not a {judgement['kind']}"
            yield Problem(where, f'"{judgement["item"]}" {what}', "leave the item codes as they were sent")
        elif known["rater"] != value["rater"]:
            what = f'"{judgement["item"]}" was sent to {known["rater"]}, not to "{value["rater"]}"'
            yield Problem(where, what, "ask who filled in the file; codes are each rater's own")
        else:
            for part in OF_TURNS:
                rows = [f"{path}: {row}" for row, _ in answers.turn_rows.get((part, judgement["item"]), [])]
                yield from _turn_problems(part, rows or itertools.repeat(where), judgement, known)
    for (item, turn), (location, text) in answers.texts.items():
        known = key["items"].get(item, {})
        sent = known.get("turns", {}).get(turn, {}).get("text") if turn else known.get("text")
        if sent and sent != text_hash(text):
            fix = "put the rows back together: the file was sorted by some of its columns only, or saved in another encoding"
            yield Problem(f"{path}: {location}", f'"{text[:40]}…" is not the text that was sent as "{item}"', fix)


def _turn_problems(part: str, places: Iterable[str], judgement: Judgement, known: dict[str, Any]) -> Iterable[Problem]:
    """Problems of tags or remarks: tags are of helper turns, a correction differs from the tag, and a turn has one of each."""
    numbers = set[int]()
    for where, entry in zip(places, judgement.get(part, []), strict=False):
        number = entry["turn"]
        turn = known["turns"].get(str(number)) if part == "tags" else {}
        if number in numbers and part == "tags":
            yield Problem(where, f"judges the strategy of turn {number} twice", "keep one of the two")
        elif number in numbers:
            yield Problem(where, f"comments on turn {number} twice", "put the two comments into one")
        elif turn is None:
            yield Problem(where, f"turn {number} is not a helper turn of this dialogue", "judge the strategies of helper turns")
        elif turn and entry.get("strategy") == turn.get("planted", turn["strategy"]):
            what = f'turn {number} is marked wrong, but its correction "{entry["strategy"]}" is the same strategy'
            yield Problem(where, what, "say that it is right, or choose another strategy")
        numbers.add(number)


def _merged(record: dict[str, Any], files: list[Answers], key: dict[str, Any], *, replace: bool) -> tuple[Imported, list[Problem]]:
    """The record with the judgements of the files, and the contradictions."""
    by_item: dict[tuple[str, str], Judgement] = {(judgement["review"], judgement["item"]): judgement for judgement in record["judgements"]}
    replaced = {(judgement["source"], judgement["item"]): judgement for judgement in record["replaced"]}
    sources, problems = dict(record["sources"]), list[Problem]()
    returned, judgements_of = list[tuple[Answers, str, Judgement]](), defaultdict[str, list[tuple[Path, Judgement]]](list)
    for answers in files:
        for location, answer in zip(answers.places, answers.value["judgements"], strict=True):
            returned.append((answers, location, judgement := _unblinded(answer, answers, key)))
            judgements_of[judgement["item"]].append((answers.path, _content(judgement)))
    new = known = changed = 0
    for answers, location, judgement in returned:
        before = by_item.get((judgement["review"], judgement["item"]))
        same = next((path for path, content in judgements_of[judgement["item"]] if before and content == _content(before)), None)
        # A replaced judgement stays replaced if its file is imported again together with the one that replaced it.
        past = (judgement["source"], judgement["item"]) in replaced and (same or not replace)
        if before and (past or _content(before) == _content(judgement)):
            known += 1
            continue
        if before and (same or not replace):
            problems.append(_contradiction(f"{answers.path}: {location}", judgement, same, sources[before["source"]]["file"]))
        elif before:
            replaced.pop((judgement["source"], judgement["item"]), None)
            replaced[before["source"], before["item"]] = before
            changed += 1
        by_item[judgement["review"], judgement["item"]] = judgement
        new += 1
        sources[answers.source] = _source(answers)
    reviews = {**record["reviews"], key["review"]: {name: key[name] for name in ("release", "settings")}}
    judgements = sorted(by_item.values(), key=lambda judgement: (judgement["review"], judgement["rater"], judgement["item"]))
    whole = {"format": 1, "reviews": reviews, "sources": sources, "judgements": judgements, "replaced": [*replaced.values()]}
    return Imported(new, known, changed, whole, _returned(whole, key)), problems


def _returned(record: dict[str, Any], key: dict[str, Any]) -> dict[str, tuple[int, int]]:
    sent = Counter(item["rater"] for item in key["items"].values())
    mine = (key["items"].get(judgement["item"]) for judgement in record["judgements"] if judgement["review"] == key["review"])
    back = Counter(item["rater"] for item in mine if item)
    return {rater: (back[rater], count) for rater, count in sorted(sent.items())}


def _contradiction(where: str, judgement: Judgement, same: Path | None, recorded: str) -> Problem:
    """Problem of a contradiction: nothing tells which of two given files is the later, so neither replaces the other."""
    if same:
        fix = "ask the rater which counts; import the files one after the other, that one last and with --replace"
        return Problem(where, f'judges "{judgement["item"]}" differently from {same}, which is also given', fix)
    what = f'judges "{judgement["item"]}" differently from {recorded}, which is in the record'
    return Problem(where, what, "ask the rater which counts; --replace takes this one")


def _source(answers: Answers) -> dict[str, Any]:
    value = answers.value
    training = {"training": value["training"]} if "training" in value else {}
    about = {name: value[name] for name in ("form", "review", "rater")}
    name = answers.path.name.encode(errors="replace").decode()  # names of files need not be UTF-8
    return {"file": name, **about, "judgements": len(value["judgements"]), **training}


def _unblinded(answer: Judgement, answers: Answers, key: dict[str, Any]) -> Judgement:
    """A judgement with the meaning of its code."""
    stands_for = {name: value for name, value in key["items"][answer["item"]].items() if name != "turns"}
    about = {"review": key["review"], "item": answer["item"], **stands_for}
    end = {"comment": answer.get("comment", ""), "form": answers.value["form"], "source": answers.source}
    if answer["kind"] == "variant":
        return {**about, **{name: answer[name] for name in CRITERIA}, **end}
    if answer["kind"] == "crossed":
        return {**about, "decision": answer["decision"], **end}
    turns = key["items"][answer["item"]]["turns"]
    tags = []
    for tag in sorted(answer.get("tags", []), key=lambda tag: int(tag["turn"])):
        # The judgement of a tag, with the tag itself and, for an attention check, the one shown.
        turn = turns[str(tag["turn"])]
        tags.append({"turn": tag["turn"], "tag": turn["strategy"], **{name: turn[name] for name in ("planted",) if name in turn}, **tag})
    # Only if there are any, so that older records do not change when their files are imported again.
    remarks = {"remarks": sorted(answer["remarks"], key=lambda remark: int(remark["turn"]))} if answer.get("remarks") else {}
    return {**about, "decision": answer["decision"], "reason": answer.get("reason", ""), "tags": tags, **remarks, **end}


def _content(judgement: Judgement) -> Judgement:
    """A judgement without its origin."""
    return {name: value for name, value in judgement.items() if name not in ("form", "source")}


def import_facts(done: Imported) -> dict[str, Any]:
    """Result of an import and summary of the record, as JSON values."""
    groups = done.by_group
    return {
        **{name: getattr(done, name) for name in ("new", "known", "replaced")},
        "returned": {rater: {"items": back, "of": sent} for rater, (back, sent) in done.returned.items()},
        **record_summary(done.record),
        **({"by_group": groups} if groups else {}),
    }


def import_summary(done: Imported, record: Path) -> str:
    """Result of an import as text; ``record`` is the file."""
    facts = import_facts(done)
    lines = [f"{done.new} new judgements, {done.known} known already, {done.replaced} replaced: {facts['judgements']} in {record}"]
    lines += _returned_lines(done.returned)
    removed = facts["removed"]
    lines.append(f"{len(removed)} of {facts['dialogues']} dialogues to remove, {facts['tags_found_wrong']} strategy tags found wrong")
    lines += [f"  {row['dialogue_id']}: {row['remove']} of {row['remove'] + row['keep']} say remove" for row in removed]
    if crossed := facts.get("crossed"):
        lines.append(f"{crossed['fitting']} of {crossed['choices']} choices in crossed items took the reply that fits")
    lines += group_lines(facts["by_group"]) if "by_group" in facts else []
    lines += _checks(facts)
    return "\n".join([*lines, "tables: " + ", ".join(str(table_path(record, name)) for name in tables_of(done.record))])


def _checks(facts: Mapping[str, Any]) -> list[str]:
    """Lines on training and attention checks, by rater."""
    training, attention = facts["training"], facts["planted"]
    lines = ["training, by rater:"] if training else []
    for rater, row in training.items():
        lines.append(f"  {rater:<10} {row['right']} of {row['of']} right{'' if row['done'] else ', not finished'}")
    lines += ["attention checks (planted tags found), by rater:"] if attention else []
    return [*lines, *(f"  {rater:<10} {row['found']} of {row['of']}" for rater, row in attention.items())]


def _returned_lines(returned: Mapping[str, tuple[int, int]]) -> list[str]:
    """Lines on what each rater has returned, and who has returned nothing."""
    back, sent = (sum(counts[index] for counts in returned.values()) for index in (0, 1))
    lines = [f"{back} of {sent} items have come back so far:"]
    lines += [f"  {rater:<10} {count:>4} of {sent}" for rater, (count, sent) in returned.items() if count]
    without = [rater for rater, (count, _) in returned.items() if not count]
    return [*lines, f"nothing yet from {', '.join(without)}"] if without else lines
