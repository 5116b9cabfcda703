"""Importing: judgements checked against the key, un-blinded, and merged into the record of reviews."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, collecting, input_error, refuse
from empathy_eval.base.files import not_folders, write_whole
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import check, read_json
from empathy_eval.design.dataset import read_manifest
from empathy_eval.raters.review.answers import OF_TURNS, Answers, read_answers
from empathy_eval.raters.review.export import KEY
from empathy_eval.raters.review.human_evaluation import by_group, group_lines
from empathy_eval.raters.review.record import CRITERIA, Judgement, facts_in, read_record, table_path, tables_of, write_tables
from empathy_eval.raters.review.sheets import shown_kind, text_hash


@dataclass(frozen=True)
class Imported:
    """What an import did: judgements that are new, known already, replaced; and the whole record.

    ``returned`` says of each rater of the review how many items have come back by now, and how many were sent out.
    """

    new: int
    known: int
    replaced: int
    record: dict[str, Any]
    returned: dict[str, tuple[int, int]]

    @cached_property
    def by_group(self) -> dict[str, Any] | None:
        """What was rated of each system, and of each variant where a rater saw one alone; None where there is nothing of the kind."""
        return by_group(self.record)


def import_reviews(release_dir: Path, files: Sequence[Path], key_file: Path, record_file: Path, *, replace: bool = False) -> Imported:
    """Checks the files that raters sent back and merges them into the record. Nothing is written unless every file is good.

    The same judgement again changes nothing. With ``replace`` a different judgement takes the place of the recorded one of the same rater
    on the same item, which is kept under ``replaced``, and can take it back; two of these files never replace each other.

    Raises:
        InputError: with all problems of all files, if a file cannot be read, is not of this review, breaks the schema, has an unknown or
            another rater's item, a judgement twice, texts that are not beside their item, or contradicts another file
            or, without ``replace``, the record; and if a folder lies where the record or a table goes.
    """
    key = read_key(key_file, release_dir)
    record = (
        read_record(record_file) if record_file.exists() else {"format": 1, "reviews": {}, "sources": {}, "judgements": [], "replaced": []}
    )
    answers, problems = list[Answers](), list[Problem]()
    for path in files:
        with collecting(problems):
            answers.append(read_answers(path))
            problems += answers[-1].problems or list(_problems(answers[-1], key, key_file))
    if not problems:
        imported, problems = _merged(record, answers, key, replace=replace)
    refuse(problems)
    check(imported.record, "reviews", record_file)
    not_folders(record_file, *(table_path(record_file, name) for name in tables_of(imported.record)))
    write_whole(record_file, json_text(imported.record, indent=1) + "\n")
    write_tables(imported.record, record_file)
    return imported


def read_key(path: Path, release_dir: Path) -> dict[str, Any]:
    """The key of a review of this release.

    Raises:
        InputError: if it is missing, not valid, or the key of another release.
    """
    key = read_json(path, "review_key", f"give the {KEY} of the export; the same export again makes the same key")
    if key["release"]["seal"] != read_manifest(release_dir)["seal"]:
        of = f"{key['release']['name']} {key['release']['version']}"
        raise input_error(path, f"is the key of another release ({of})", "name the release that was sent out, or its own key")
    return key


def _problems(answers: Answers, key: dict[str, Any], key_file: Path) -> Iterable[Problem]:
    """What is wrong with valid answers in the light of the key."""
    value, path = answers.value, answers.path
    if value["review"] != key["review"]:
        yield Problem(
            str(path), f'belongs to the review "{value["review"][:15]}…"', f"import it with its own key; {key_file} is of another review"
        )
        return
    seen: dict[str, str] = {}
    for place, one in zip(answers.places, value["judgements"], strict=True):
        where, known = f"{path}: {place}", key["items"].get(one["item"])
        if first := seen.get(one["item"]):
            yield Problem(where, f'judges "{one["item"]}" again, as {first} does', "keep one of the two")
        seen[one["item"]] = place
        if known is None or shown_kind(known["kind"]) != one["kind"]:
            what = "is not in this review" if known is None else f"is a {shown_kind(known['kind'])}, not a {one['kind']}"
            yield Problem(where, f'"{one["item"]}" {what}', "leave the item codes as they were sent")
        elif known["rater"] != value["rater"]:
            what = f'"{one["item"]}" was sent to {known["rater"]}, not to "{value["rater"]}"'
            yield Problem(where, what, "ask who filled in the file; codes are each rater's own")
        else:
            for part in OF_TURNS:
                rows = [f"{path}: {row}" for row, _ in answers.turn_rows.get((part, one["item"]), [])]
                yield from _turn_problems(part, rows or itertools.repeat(where), one, known)
    for (item, turn), (place, text) in answers.texts.items():
        known = key["items"].get(item, {})
        sent = known.get("turns", {}).get(turn, {}).get("text") if turn else known.get("text")
        if sent and sent != text_hash(text):
            fix = "put the rows back together: the file was sorted by some of its columns only, or saved in another encoding"
            yield Problem(f"{path}: {place}", f'"{text[:40]}…" is not the text that was sent as "{item}"', fix)


def _turn_problems(part: str, places: Iterable[str], one: Judgement, known: dict[str, Any]) -> Iterable[Problem]:
    """Tags are of helper turns, and a wrong one is not corrected to itself. Of two tags or remarks of a turn nothing tells which counts."""
    seen = set[int]()
    for where, said in zip(places, one.get(part, []), strict=False):
        number = said["turn"]
        turn = known["turns"].get(str(number)) if part == "tags" else {}
        if number in seen and part == "tags":
            yield Problem(where, f"judges the strategy of turn {number} twice", "keep one of the two")
        elif number in seen:
            yield Problem(where, f"comments on turn {number} twice", "put the two comments into one")
        elif turn is None:
            yield Problem(where, f"turn {number} is not a helper turn of this dialogue", "judge the strategies of helper turns")
        elif turn and said.get("strategy") == turn.get("planted", turn["strategy"]):
            what = f'turn {number} is marked wrong, but its correction "{said["strategy"]}" is the same strategy'
            yield Problem(where, what, "say that it is right, or choose another strategy")
        seen.add(number)


def _merged(record: dict[str, Any], files: list[Answers], key: dict[str, Any], *, replace: bool) -> tuple[Imported, list[Problem]]:
    """The record with the judgements of the files, and the contradictions that stand against it."""
    by_item: dict[tuple[str, str], Judgement] = {(one["review"], one["item"]): one for one in record["judgements"]}
    replaced = {(one["source"], one["item"]): one for one in record["replaced"]}
    sources, problems = dict(record["sources"]), list[Problem]()
    came = [
        (answers, place, _unblinded(answer, answers, key))
        for answers in files
        for place, answer in zip(answers.places, answers.value["judgements"], strict=True)
    ]
    given: dict[str, list[tuple[Path, Judgement]]] = defaultdict(list)
    for answers, _, one in came:
        given[one["item"]].append((answers.path, _said(one)))
    new = known = changed = 0
    for answers, place, one in came:
        before = by_item.get((one["review"], one["item"]))
        beside = next((path for path, said in given[one["item"]] if before and said == _said(before)), None)
        # What was replaced once stays replaced when its file is imported again beside the one that replaced it.
        past = (one["source"], one["item"]) in replaced and (beside or not replace)
        if before and (past or _said(before) == _said(one)):
            known += 1
            continue
        if before and (beside or not replace):
            problems.append(_contradiction(f"{answers.path}: {place}", one, beside, sources[before["source"]]["file"]))
        elif before:
            replaced.pop((one["source"], one["item"]), None)
            replaced[before["source"], before["item"]] = before
            changed += 1
        by_item[one["review"], one["item"]] = one
        new += 1
        sources[answers.source] = _source(answers)
    reviews = {**record["reviews"], key["review"]: {name: key[name] for name in ("release", "settings")}}
    judgements = sorted(by_item.values(), key=lambda one: (one["review"], one["rater"], one["item"]))
    whole = {"format": 1, "reviews": reviews, "sources": sources, "judgements": judgements, "replaced": [*replaced.values()]}
    return Imported(new, known, changed, whole, _returned(whole, key)), problems


def _returned(record: dict[str, Any], key: dict[str, Any]) -> dict[str, tuple[int, int]]:
    sent = Counter(one["rater"] for one in key["items"].values())
    mine = (key["items"].get(one["item"]) for one in record["judgements"] if one["review"] == key["review"])
    back = Counter(one["rater"] for one in mine if one)
    return {rater: (back[rater], count) for rater, count in sorted(sent.items())}


def _contradiction(where: str, one: Judgement, beside: Path | None, recorded: str) -> Problem:
    """Another judgement stands: of two files that are given together nothing tells which is the later, so none replaces the other."""
    if beside:
        fix = "ask the rater which counts; import the files one after the other, that one last and with --replace"
        return Problem(where, f'judges "{one["item"]}" differently from {beside}, which is also given', fix)
    what = f'judges "{one["item"]}" differently from {recorded}, which is in the record'
    return Problem(where, what, "ask the rater which counts; --replace takes this one")


def _source(answers: Answers) -> dict[str, Any]:
    value = answers.value
    training = {"training": value["training"]} if "training" in value else {}
    about = {name: value[name] for name in ("form", "review", "rater")}
    name = answers.path.name.encode(errors="replace").decode()  # names of files need not be UTF-8
    return {"file": name, **about, "judgements": len(value["judgements"]), **training}


def _unblinded(answer: Judgement, answers: Answers, key: dict[str, Any]) -> Judgement:
    """A judgement with what its code stands for."""
    stands_for = {name: value for name, value in key["items"][answer["item"]].items() if name != "turns"}
    about = {"review": key["review"], "item": answer["item"], **stands_for}
    end = {"comment": answer.get("comment", ""), "form": answers.value["form"], "source": answers.source}
    if answer["kind"] == "variant":
        return {**about, **{name: answer[name] for name in CRITERIA}, **end}
    if answer["kind"] == "crossed":
        return {**about, "decision": answer["decision"], **end}
    turns = key["items"][answer["item"]]["turns"]
    tags = []
    for said in sorted(answer.get("tags", []), key=lambda one: int(one["turn"])):
        # What is said of a tag, beside the tag itself and, if another was planted in its place, the one that was shown.
        turn = turns[str(said["turn"])]
        tags.append({"turn": said["turn"], "tag": turn["strategy"], **{name: turn[name] for name in ("planted",) if name in turn}, **said})
    # Only where there are any: a record of a time without them stays as it is when its files are imported again.
    remarks = {"remarks": sorted(answer["remarks"], key=lambda one: int(one["turn"]))} if answer.get("remarks") else {}
    return {**about, "decision": answer["decision"], "reason": answer.get("reason", ""), "tags": tags, **remarks, **end}


def _said(one: Judgement) -> Judgement:
    """A judgement without the way it came."""
    return {name: value for name, value in one.items() if name not in ("form", "source")}


def facts_of(done: Imported) -> dict[str, Any]:
    """What an import did, and what the record says by now, as JSON values."""
    groups = done.by_group
    return {
        **{name: getattr(done, name) for name in ("new", "known", "replaced")},
        "returned": {rater: {"items": back, "of": of} for rater, (back, of) in done.returned.items()},
        **facts_in(done.record),
        **({"by_group": groups} if groups else {}),
    }


def told(done: Imported, record: Path) -> str:
    """The same to read; ``record`` is the file."""
    facts = facts_of(done)
    lines = [f"{done.new} new judgements, {done.known} known already, {done.replaced} replaced: {facts['judgements']} in {record}"]
    lines += _returned_lines(done.returned)
    lines.append(
        f"{len(facts['removed'])} of {facts['dialogues']} dialogues to remove, {facts['tags_found_wrong']} strategy tags found wrong"
    )
    lines += [f"  {one['dialogue_id']}: {one['remove']} of {one['remove'] + one['keep']} say remove" for one in facts["removed"]]
    if crossed := facts.get("crossed"):
        lines.append(f"{crossed['fitting']} of {crossed['choices']} choices in crossed items took the reply that fits")
    lines += group_lines(facts["by_group"]) if "by_group" in facts else []
    lines += _checks(facts)
    return "\n".join([*lines, "tables: " + ", ".join(str(table_path(record, name)) for name in tables_of(done.record))])


def _checks(facts: Mapping[str, Any]) -> list[str]:
    """How raters did in the training, and which of the planted tags they found; nothing where nothing is known."""
    training, planted = facts["training"], facts["planted"]
    lines = ["training, by rater:"] if training else []
    for rater, one in training.items():
        lines.append(f"  {rater:<10} {one['right']} of {one['of']} right{'' if one['done'] else ', not finished'}")
    lines += ["attention checks (planted tags found), by rater:"] if planted else []
    return [*lines, *(f"  {rater:<10} {one['found']} of {one['of']}" for rater, one in planted.items())]


def _returned_lines(returned: Mapping[str, tuple[int, int]]) -> list[str]:
    """Who has returned how much of what they were sent, and who nothing."""
    back, sent = (sum(counts[place] for counts in returned.values()) for place in (0, 1))
    lines = [f"{back} of {sent} items have come back so far:"]
    lines += [f"  {rater:<10} {some:>4} of {of}" for rater, (some, of) in returned.items() if some]
    without = [rater for rater, (some, _) in returned.items() if not some]
    return [*lines, f"nothing yet from {', '.join(without)}"] if without else lines
