"""The candidates of a release: each of a variant that could be, numbered, and refused for what a check can say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem
from empathy_eval.base.tabular import TableRow
from empathy_eval.design.configuration import candidates_of
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS, REASONS
from empathy_eval.design.kinds import KINDS
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.checks.own import REASON
from empathy_eval.releases.verify_complete import Item
from empathy_eval.releases.verify_order import turn_of
from empathy_eval.releases.verify_rows import RESTORE

KIND = {kind.variant: kind for kind in KINDS.values() if kind.variant}
OVERLAP, STRATEGY = {"overlap_high"}, "strategy_kept"
HARM = "unsafe_"
ANY = {"too_short", "crisis_without_pointer", "pointer_lost"}


def reasons_of(variant: str, manifest: dict[str, Any]) -> set[str] | None:
    """All reasons that a text of a variant can be refused for, but for harms; None where checks of one's own have words of their own."""
    if manifest["configuration"]["checks"].get("own"):
        return None
    by_closeness = REASONS - OVERLAP if KIND[variant].near else {*OVERLAP, STRATEGY}
    toxic = {"toxic"} if manifest["configuration"]["checks"]["toxicity"] != "none" else set()
    return {*by_closeness, *ANY, *toxic}


def candidate_faults(path: Path, item: Item, rows: list[TableRow], manifest: dict[str, Any]) -> Iterator[Problem]:
    """What is wrong with the candidates of a dialogue, with the place of each."""
    name, turns = item.dialogue["dialogue_id"], item.dialogue["turns"]
    texts = {(row["pair_id"], one): row[one] for row in item.rows["pairs"] for one in PAIR_VARIANTS}
    texts |= {(row["pair_id"], one): row[one] for row in item.rows["controls"] for one in CONTROLS}
    before: tuple[object, ...] = ()
    for (pair, variant), found in groupby(rows, lambda row: (row["pair_id"], row["variant"])):
        group = list(found)
        where, turn = f"{path}: row {group[0]['row']}", turn_of(pair, name)
        if turn is None or turn >= len(turns) or turns[turn]["role"] != "helper" or variant not in KIND:
            yield Problem(where, f'"{str(pair)[:80]}" {str(variant)[:80]} is no variant of a helper turn of the release', RESTORE)
            continue
        if (here := (turn, KIND[variant].name)) <= before:
            yield Problem(where, f'"{pair}": {variant} stands in two places, or not in order', RESTORE)
        before = here
        for row, what in (*_each(group, texts.get((pair, variant)), manifest), *_numbers(group, (pair, variant) in texts, manifest)):
            yield Problem(f"{path}: row {row['row']}", f'"{pair}": {variant}: {what}', RESTORE)


def _each(group: list[TableRow], released: str | None, manifest: dict[str, Any]) -> Iterator[tuple[TableRow, str]]:
    """What is wrong with one text by itself, or beside the released one."""
    for row in group:
        reasons = row["reasons"]
        if row["text"] is None or row["attempt"] is None or reasons is None or None in reasons:
            yield row, "has no text, number or reasons"
            continue
        if released is not None and row["text"] == released and reasons != [NOT_CHOSEN]:
            yield row, "is the released text"
        if reasons != sorted(set(reasons)) or (NOT_CHOSEN in reasons and len(reasons) > 1):
            yield row, f"its reasons {', '.join(reasons)[:80]} are not in order, or do not go together"
        known = reasons_of(row["variant"], manifest)
        for one in reasons:
            named = REASON.fullmatch(one) if known is None else one in known or one.startswith(HARM)
            if one != NOT_CHOSEN and not named:
                yield row, f'is refused for "{one[:80]}", which no check of such a text says'
        if released is not None and not reasons:
            yield row, "passed, and another one is released"


def _numbers(group: list[TableRow], released: bool, manifest: dict[str, Any]) -> Iterator[tuple[TableRow, str]]:
    """What is wrong with the numbers of all texts of a variant: from 1, and only the released one's is left out."""
    configuration, numbers = manifest["configuration"], [row["attempt"] for row in group]
    count, first = candidates_of(configuration), group[0]
    whole = list(range(1, len(numbers) + 1))
    if None in numbers or any(None in (row["reasons"] or ()) for row in group):
        return
    if released and count > 1:
        gap = set(range(1, len(numbers) + 2)) - set(numbers)
        right = numbers == sorted(set(numbers)) and len(gap) == 1 and numbers[0] > 0
    else:
        right = numbers == whole
    if not right:
        yield first, f"is numbered {', '.join(map(str, numbers[:8]))}"
    most = count * configuration["samples"] * (1 + configuration["repairs"])
    most = 1 if configuration["near_apathetic"] == "rules" and first["variant"] == "apathetic" else most
    most += configuration["near_apathetic"] == "rules-then-model" and first["variant"] == "apathetic"
    if len(group) + released > most:
        yield first, f"has {len(group) + released} texts, and {most} could be asked for"
    passed = [row for row in group if row["reasons"] == []]
    if not released and (len(passed) > 1 or (not passed and any(NOT_CHOSEN in row["reasons"] for row in group))):
        yield first, f"{len(passed)} of its texts passed and were chosen; one is chosen where any passes"
