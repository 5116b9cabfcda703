"""A pack: a review of a size for a real rating by people, with the papers that they and the one who sends it need."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder, write_whole
from empathy_eval.base.templates import environment
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.raters.review.sample import BETWEEN, WITHIN, Design
from empathy_eval.raters.review.spreadsheets import FOLDER, read_rows, told

SIZES: dict[str, int] = {"pairs": 60, "dialogues": 0, "cells": 30, "raters": 12}
# Most adults read English prose at 175 to 300 words a minute (Brysbaert 2019). The slow end, so that nobody is paid too little.
WORDS_A_MINUTE = 175
# To decide, after reading: on a reply, on a dialogue, on a strategy, and between two replies.
SECONDS = {"variant": 30, "dialogue": 30, "turn": 10, "crossed": 30}
CHECKLIST, PAPERS = "CHECKLIST.md", ("papers/information.md", "papers/payment.md")
PLACEHOLDER = re.compile(r"\[\[FILL IN: ([^\]]+)\]\]")


@dataclass(frozen=True)
class Load:
    """What a rater has to do: items, how many of them carry a warning, words to read, and minutes by the paces above."""

    items: int
    warned: int
    words: int
    minutes: float


@dataclass(frozen=True)
class Papers:
    """The papers of a pack: what each rater has to do, the guidance and practice before it, and (file, what) for each place to fill in."""

    loads: dict[str, Load]
    before: Load
    open: tuple[tuple[str, str], ...]

    @property
    def minutes(self) -> int:
        """What the longest of the raters' folders takes with guidance and practice, rounded up to five minutes."""
        return math.ceil((self.before.minutes + max(load.minutes for load in self.loads.values())) / 5) * 5


def design_of(settings: Mapping[str, Any], *, replying: bool = False) -> Design:
    """The design that is asked for; ``replying`` says whether it is of the replies of systems.

    What is not said is in a pack as in :data:`SIZES`; of replies and between raters no dialogues and no cells.

    Raises:
        InputError: for settings of another design than this.
    """
    between = settings.get("design") == BETWEEN
    if (odd := "per_item" if between else "per_rater") in settings:
        other, fix = (WITHIN, "--per-rater") if between else (BETWEEN, "--per-item")
        raise input_error(f"--{odd.replace('_', '-')}", f"is of the design {other}", f"leave it out, or give {fix}")
    chosen: dict[str, Any] = dict(SIZES) if settings.get("pack") else {}
    if between or replying:
        chosen |= {"dialogues": 0, "cells": 0}
    if between:
        chosen["pairs"] = 0 if settings.get("cells") else Design.pairs
    return Design(**{**chosen, **settings, "asked": frozenset(settings)})


def write_papers(out: Path, raters: Path, key: Mapping[str, Any], language: str = ENGLISH) -> Papers:
    """Writes the papers and the checklist into ``out``, beside ``raters``, whose files are what the words are counted in.

    ``language`` is that of the texts; guidance and practice are English.
    """
    loads = {folder.name: _load(folder / f"{folder.name}.csv", language) for folder in sorted(raters.iterdir())}
    before = _before(next(raters.iterdir()) / "guidance.md")
    papers = Papers(loads, before, ())
    templates = environment(data_folder(FOLDER) / "pack")
    about = {
        "key": key, "loads": loads, "before": before, "minutes": papers.minutes, "words_a_minute": WORDS_A_MINUTE, "seconds": SECONDS,
        "language": None if language == ENGLISH else language,
    }  # fmt: skip
    found: list[tuple[str, str]] = []
    (out / "papers").mkdir()
    for name in PAPERS:
        text = templates.get_template(f"{Path(name).name}.j2").render(**about) + "\n"
        write_whole(out / name, text)
        found += [(name, what) for what in PLACEHOLDER.findall(text)]
    write_whole(out / CHECKLIST, templates.get_template("checklist.md.j2").render(**about, open=found) + "\n")
    return Papers(loads, before, tuple(found))


def _load(sheet: Path, language: str) -> Load:
    """Counted in the rater's CSV, which has the same texts as the other forms."""
    items = warned = count = 0
    seconds = 0.0
    for _, row in read_rows(sheet):
        items += row["kind"] != "turn"
        warned += row["kind"] != "turn" and bool(row["warning"])
        count += sum(len(words(row[name], language)) for name in ("situation", "context", "text"))
        seconds += SECONDS[row["kind"]] if row["kind"] != "turn" or row["strategy"] else 0
    return Load(items, warned, count, count / WORDS_A_MINUTE + seconds / 60)


def _before(guidance: Path) -> Load:
    """The guidance with its replies to practise on, and the test, which is on the page alone."""
    training = told()["training"]
    test = [text for one in training["test"] for text in (one["situation"], *(turn["text"] for turn in one["context"]), one["text"])]
    count = sum(len(words(text)) for text in (guidance.read_text(encoding="utf-8"), *test))
    replies = len(training["training"]) + len(training["test"])
    return Load(replies, 0, count, count / WORDS_A_MINUTE + replies * SECONDS["variant"] / 60)
