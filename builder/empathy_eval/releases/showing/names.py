"""What can be shown goes by a name: a dialogue, a pair or a turn, one of its variants, or the key of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from empathy_eval.base.errors import InputError, input_error
from empathy_eval.base.hashing import SCHEME
from empathy_eval.design.dataset import pair_id
from empathy_eval.design.errata import near_ids
from empathy_eval.design.kinds import KINDS

NAME = re.compile(r"(\d{3}-(?:seed|\d{5,9})(?:-r[1-9]\d{0,3})?)(?:-t(\d{2,4}))?(?:-x([1-9]\d{0,3}))?(?:/([a-z_]+))?")
KEY = re.compile(rf"(?:{SCHEME}-)?([0-9a-f]{{8,64}})")
VARIANTS = {one.variant: one.name for one in KINDS.values() if one.variant}
FORMS = (
    "a dialogue (017-00042), a pair or a turn (017-00042-t05), a variant (017-00042-t05/empathetic), a crossed item (017-00042-x1), or "
    "at least 8 hex digits of a key"
)


@dataclass(frozen=True)
class Place:
    """What is asked for: a dialogue, a turn of it, one kind of request there, one request, or a crossed item by its number."""

    dialogue_id: str
    turn: int | None = None
    kind: str | None = None
    key: str | None = None
    item: int | None = None

    @property
    def name(self) -> str:
        """The id of the crossed item, of the pair or the turn, or that of the dialogue."""
        if self.item is not None:
            return f"{self.dialogue_id}-x{self.item}"
        return self.dialogue_id if self.turn is None else pair_id(self.dialogue_id, self.turn)


def place_of(name: str) -> Place | str:
    """The place that a name says, or the beginning of a key.

    Raises:
        InputError: if it is neither.
    """
    if key := KEY.fullmatch(name):
        return f"{SCHEME}-{key[1]}"
    found = NAME.fullmatch(name)
    if not found:
        raise input_error("ID", f'"{name[:100]}" is not an id', f"name {FORMS}")
    dialogue_id, turn, item, variant = found.groups()
    if item and (turn or variant):
        raise input_error("ID", f'"{name[:100]}" is not an id', f"name {FORMS}")
    kind = VARIANTS.get(variant, variant)
    if variant and (kind not in VARIANTS.values() or turn is None):
        raise input_error("ID", f'"{name[:100]}" does not name a variant of a pair', f"name one of these: {', '.join(VARIANTS)}")
    return Place(dialogue_id, None if turn is None else int(turn), kind, item=int(item) if item else None)


def unknown(name: str, source: str, there: Iterable[str]) -> InputError:
    """The error for an id that is not there, with those that are nearest."""
    near = near_ids(name, there)
    return input_error("ID", f'"{name}" is not in {source}', f"name one that exists: {near}" if near else f"name {FORMS}")
