"""Duplicates: a corpus step that comes after all items and asks nothing."""

from __future__ import annotations

from collections.abc import Iterable

from builder.records import Dialogue
from builder.signature import digest
from builder.splitting import SPLITS, split_of
from builder.text import words

# Of a group of duplicates the one stays whose loss would hurt most: test before validation before train.
PREFERENCE = {split: rank for rank, split in enumerate(reversed(SPLITS))}


def content_hash(dialogue: Dialogue) -> str:
    """The same for dialogues whose turns have the same roles and words."""
    return digest([[turn.role, words(turn.text)] for turn in dialogue.turns])


def exact_duplicates(contents: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For (dialogue id, content hash) of all dialogues: the id of each that goes, with that of the one that stays.

    Of a group one stays, by split, then by smaller id, whatever the order they come in.
    """
    kept: dict[str, str] = {}
    dropped: list[tuple[str, str]] = []
    for dialogue_id, content in contents:
        holder = kept.setdefault(content, dialogue_id)
        if holder != dialogue_id:
            stays, goes = sorted((holder, dialogue_id), key=lambda one: (PREFERENCE[split_of(one)], one))
            kept[content] = stays
            dropped.append((goes, content))
    return {goes: kept[content] for goes, content in sorted(dropped)}
