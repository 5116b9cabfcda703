"""The crossed items of a release: each valid, of a dialogue that is there, and its contexts those of that dialogue."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import Rows, TableRow, table_batches
from empathy_eval.completions.requests import LONGEST, Flaw, sign_flaws
from empathy_eval.design.configuration import Limits, language_of
from empathy_eval.design.dataset import PROVENANCE, SPLITS, file_of, split_of
from empathy_eval.design.language import Language
from empathy_eval.design.planning import Plan
from empathy_eval.design.scenarios import CHANGED, CrossedItem, changed_words, problems_of_replies
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import reply_flaws
from empathy_eval.generation.crossed_by_models import Twins, places, wrong_with
from empathy_eval.generation.outcomes import Dialogue, Turn
from empathy_eval.releases.assemble.rows import crossed_requests
from empathy_eval.releases.verify.rows import RESTORE, read_rows

# What a row of the provenance says of a request.
Asked = tuple[Any, ...]


def crossed_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Crossed items are valid, once there, in the split of their dialogue and of its turns; their requests are in the provenance."""
    if "crossed" not in manifest["counts"]:
        return
    language = language_of(manifest["configuration"])
    seen, requests, there = dict[str, str](), _requests(folder), set[Asked]()
    for split in SPLITS:
        dialogues = Rows(file_of(folder, "dialogues", split))
        for place, row in read_rows(folder, "crossed", split):
            if wrong := [Problem(f"{place}: {where}", what, fix) for where, what, fix in violations(row, "crossed_row")]:
                yield from wrong
                continue
            name, keys = row["crossed_id"], {_asked(one) for one in crossed_requests(row)}
            if before := seen.get(name):
                yield Problem(place, f'"{name}" is also in {before}', "use each id for one row only")
            seen[name] = place
            if (own := split_of(row["dialogue_id"])) != split:
                yield Problem(place, f'"{name}" belongs to the split {own} by its dialogue', "never move a row to another split")
            whats = [*_against_dialogue(row, dialogues.get(row["dialogue_id"])), *_contexts(row, language)]
            whats += ["its requests are not in the provenance"] if keys - requests else []
            yield from (Problem(place, f'"{name}": {what}', RESTORE) for what in whats)
            there |= keys
    yield from _numbered(folder, manifest, seen)
    if lost := requests - there:
        yield Problem(str(folder / "provenance.parquet"), f"names {len(lost)} requests of crossed items that no row has", RESTORE)


def _numbered(folder: Path, manifest: dict[str, Any], seen: Collection[str]) -> Iterator[Problem]:
    """Where none failed, the items of a dialogue are numbered from 1 without a hole."""
    if any(name.startswith("crossed") for name in manifest["summary"]["failed_for_good"]):
        return
    numbers: dict[str, set[int]] = {}
    for name in seen:
        dialogue_id, _, number = name.rpartition("-x")
        numbers.setdefault(dialogue_id, set()).add(int(number))
    for dialogue_id, found in numbers.items():
        if found != set(range(1, len(found) + 1)):
            yield Problem(
                str(folder / "data" / "crossed"),
                f'"{dialogue_id}": its items are numbered {sorted(found)}, not from 1 without a gap',
                RESTORE,
            )


def _requests(folder: Path) -> set[Asked]:
    """All requests of crossed items in the provenance."""
    batches = table_batches(folder / "provenance.parquet", PROVENANCE.names)
    return {_asked(row) for batch in batches for row in batch.to_pylist() if row["what"] == "crossed"}


def _asked(row: TableRow) -> Asked:
    return tuple(row[name] for name in PROVENANCE.names)


def _against_dialogue(row: TableRow, dialogue: TableRow | None) -> Iterator[str]:
    """What an item says otherwise than the dialogue that it is of."""
    if dialogue is None or any(violations(dialogue, "dialogues_row")):
        yield "has no dialogue in this split" if dialogue is None else "its dialogue is not valid"
        return
    if not re.fullmatch(rf"{row['dialogue_id']}-x[1-9][0-9]*", row["crossed_id"]):
        yield f'its id does not belong to "{row["dialogue_id"]}"'
    for name in ("scenario_id", "source"):
        if row[name] != dialogue[name]:
            yield f"its {name} is not that of the dialogue"
    turns = dialogue["turns"]
    if row["turn"] >= len(turns) or turns[row["turn"]]["role"] != "helper":
        yield f"turn {row['turn']} of its dialogue is not a turn of the helper"
        return
    if row["context_1"] != [{"role": one["role"], "text": one["text"]} for one in turns[: row["turn"]]]:
        yield "its context_1 is not the dialogue's earlier turns"
    if row["source"] == "model" and row["reply_1"] != turns[row["turn"]]["text"]:
        yield "its reply_1 is not the dialogue's own turn"


def _contexts(row: TableRow, language: str) -> Iterator[str]:
    """What of the two contexts and replies is not crossed."""
    (*before, last), (*others, twin) = row["context_1"], row["context_2"]
    if {last["role"], twin["role"]} != {"seeker"}:
        yield "its contexts do not end with what the seeker says"
    if before != others:
        yield "its contexts differ in more than their last turn"
    least, most = CHANGED
    if not least <= (changed := changed_words(last["text"], twin["text"], language)) <= most:
        yield f"its contexts differ in {changed} words of their last turn, not in {least} to {most}"
    if row["reply_1"] == row["reply_2"]:
        yield "its replies are equal"


def crossed_text_flaws(row: TableRow, turns: Sequence[Turn], limits: Limits, language: Language) -> Iterator[Flaw]:
    """What a check of crossed items refuses in the texts of one: of a curated one its replies, of a model's the twin and all else too."""
    said, twin = row["context_1"][-1]["text"], row["context_2"][-1]["text"]
    own = (twin, row["reply_1"], row["reply_2"], row["reason"])
    if longest := max((len(text) for text in own if len(text) > LONGEST), default=0):
        yield Flaw("too_long", f"a text has {longest:,} characters, but at most {LONGEST:,} are read")
        return
    yield from (Flaw("not_stripped", f'"{text[:40]}" begins or ends with white space') for text in own if text != text.strip())
    before, reference = turns[: row["turn"]], turns[row["turn"]].text
    if row["source"] == "model":
        yield from (flaw for text in own for flaw in sign_flaws(text))
        yield from wrong_with(Twins(said, reference, twin, row["reply_2"]), limits, language)
    else:
        item = CrossedItem(row["crossed_id"], row["turn"], *own)
        yield from (Flaw("curated", one.what) for one in problems_of_replies(item, "", language.code))
    contexts = [[*(one.text for one in before[:-1]), last, reference] for last in (said, twin)]
    flags = [("crisis",) if any(built_in.in_crisis(text, language) for text in texts) else () for texts in contexts]
    for reply in (row["reply_1"], row["reply_2"]) if row["source"] == "seed" else (row["reply_2"],):
        yield from reply_flaws(reply, limits, language)
        for last, one in zip((said, twin), flags, strict=True):
            yield from built_in.keeps_pointer(reference, reply, one, language)
            yield from built_in.points_where_needed(last, reply, language)


def misplaced(rows: Sequence[TableRow], turns: Sequence[Turn], plan: Plan, language: Language) -> Iterator[str]:
    """The items of a model's dialogue that stand at a turn, or have a number, for which nothing was asked."""
    if len(turns) != len(plan.turns) or any(not 0 <= place < len(turns) or turns[place].role != "helper" for place in plan.crossed):
        return  # the dialogue is not the planned one, which is told
    dialogue = Dialogue(plan.dialogue_id, plan.scenario_id, "", tuple(turns), (), "model", "", "")
    found = [scene.place for scene in places(dialogue, plan, language)[0]]
    # A number is tried at its own place first, then at one of those that are nobody's first.
    asked = {f"{plan.dialogue_id}-x{number}": {place, *found[plan.crosses :]} for number, place in enumerate(found[: plan.crosses], 1)}
    for row in rows:
        if row["turn"] not in asked.get(row["crossed_id"], ()):
            yield f"{row['crossed_id']} is at turn {row['turn']}, where no such item was asked for"
