"""Crossed items: two contexts that differ in what the seeker said last, and two replies, each right in one of them alone.

The curated ones are read from ``crossed/NNN.yaml`` of a scenario folder; each stands on a helper turn of the seed dialogue of its scenario.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from rapidfuzz.distance import Levenshtein

from empathy_eval.base.errors import Problem, collecting
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import ENGLISH, shingles, words

# The folder of a scenario folder that holds them, which is also what their hash is called among those of its files.
CROSSED = "crossed"
# In how many words the contexts may differ, how many a reply may have, and by what share of the longer reply the lengths may differ.
CHANGED = (2, 24)
LENGTH = (14, 40)
APART = 0.25
# So many words of the seed dialogue are a quotation.
RUN = 7


class Told(Protocol):
    """A turn of a seed dialogue: who speaks, what is said, and every version of it."""

    @property
    def role(self) -> str: ...  # noqa: D102
    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def texts(self) -> Iterable[str]: ...  # noqa: D102


@dataclass(frozen=True)
class CrossedItem:
    """A curated item: ``turn`` is the place, from 0, of the helper turn that the replies are for, ``twin`` what the seeker says before it
    in the other context."""

    crossed_id: str
    turn: int
    twin: str
    reply_1: str
    reply_2: str
    reason: str


def load_crossed(
    folder: Path, seeds: Mapping[int, Sequence[Told] | None], language: str = ENGLISH
) -> tuple[dict[int, tuple[CrossedItem, ...]], list[Problem]]:
    """The crossed items of a scenario folder by the number of their scenario, and all that is wrong with them.

    ``seeds`` are the turns of the seed dialogues by scenario, of those scenarios that could be read. A folder without such items is fine.
    """
    items: dict[int, tuple[CrossedItem, ...]] = {}
    problems: list[Problem] = []
    for path in sorted((folder / CROSSED).glob("*.yaml")):
        number = int(path.stem) if path.stem.isascii() and path.stem.isdigit() and len(path.stem) == 3 else None
        if number is None:
            problems.append(Problem(str(path), "is not named by the number of a scenario", "name it NNN.yaml, such as 017.yaml"))
            continue
        with collecting(problems):
            values = read_yaml(path, CROSSED)
            items[number] = tuple(
                CrossedItem(one["id"].strip(), one["turn"], *(one[name].strip() for name in ("twin", "reply_1", "reply_2", "reason")))
                for one in values
            )
            if seed := seeds.get(number):
                problems += _problems(items[number], number, seed, path, language)
            elif number in seeds or not any(folder.glob(f"{number:03d}-*.yaml")):
                what = f"scenario {number} has no seed dialogue" if number in seeds else f"there is no scenario {number}"
                problems.append(Problem(str(path), what, "write it, or remove this file"))
    return items, problems


def content(crossed: Mapping[int, Sequence[CrossedItem]]) -> list[Any]:
    """All that crossed items say, for a hash."""
    return [[number, [asdict(one) for one in crossed[number]]] for number in sorted(crossed)]


def _problems(items: Sequence[CrossedItem], number: int, seed: Sequence[Told], path: Path, language: str) -> Iterator[Problem]:
    said = {run for turn in seed for text in turn.texts for run in shingles(text, RUN, language) if len(run) == RUN}
    for name, times in Counter(one.crossed_id for one in items).items():
        if times > 1:
            yield Problem(f"{path}: {name}", f"is the id of {times} items", "give each item its own number")
        if not name.startswith(f"{number:03d}-"):
            yield Problem(f"{path}: {name}", f"is not an item of scenario {number}", f"name it {number:03d}-seed-x1 or the like")
    for one in items:
        where = f"{path}: {one.crossed_id}"
        if one.turn >= len(seed) or (seed[one.turn - 1].role, seed[one.turn].role) != ("seeker", "helper"):
            what = f"turn {one.turn} is not a helper's after a seeker's"
            yield Problem(where, what, f"count from 0, in a dialogue of {len(seed)} turns")
        elif not CHANGED[0] <= (changed := changed_words(seed[one.turn - 1].text, one.twin, language)) <= CHANGED[1]:
            what = f'the twin "{_shown(one.twin)}" differs in {changed} words from the turn before turn {one.turn}'
            fix = f"change {CHANGED[0]} to {CHANGED[1]} words, so that the contexts differ in little except the need"
            yield Problem(where, what, fix)
        yield from problems_of_replies(one, where, language)
        for name in ("reply_1", "reply_2"):
            runs = sorted(shingles(getattr(one, name), RUN, language) & said)
            if runs:
                what = f'{name} repeats "{" ".join(runs[0])}" from the seed dialogue'
                yield Problem(where, what, f"write it in other words: runs of {RUN} words count as quotations")


def problems_of_replies(one: CrossedItem, where: str, language: str) -> Iterator[Problem]:
    """What no replies of a curated item are: too short, too long, of unequal length, or one."""
    least, most = LENGTH
    replies = {"reply_1": one.reply_1, "reply_2": one.reply_2}
    lengths = {name: len(words(text, language)) for name, text in replies.items()}
    for name, length in lengths.items():
        if not least <= length <= most:
            yield Problem(where, f'{name} "{_shown(replies[name])}" has {length} words', f"write {least} to {most} words")
    shorter, longer = sorted(lengths.values())
    if longer - shorter > APART * longer:
        what = f"the replies have {lengths['reply_1']} and {lengths['reply_2']} words"
        yield Problem(where, what, "let them differ by at most a quarter of the longer one, so that length does not show which is which")
    if words(one.reply_1, language) == words(one.reply_2, language):
        yield Problem(where, f'both replies are "{_shown(one.reply_1)}"', "write two replies, each right in one context")


def changed_words(original: str, twin: str, language: str = ENGLISH) -> int:
    """In how many words two texts differ: the word-level Levenshtein distance that the edit ratio counts."""
    return Levenshtein.distance(words(original, language), words(twin, language))


def _shown(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
