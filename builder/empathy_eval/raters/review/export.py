"""Exporting: a release sent out for review, one folder a rater, the key that stays behind, and the papers of a pack."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.files import data_folder, whole_folder, write_whole
from empathy_eval.base.hashing import derived_random
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import check, read_json
from empathy_eval.base.stages import advance, stage
from empathy_eval.base.templates import environment
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.design.canary import CANARY
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import column, read_manifest
from empathy_eval.raters.review.answers import read_rows
from empathy_eval.raters.review.assignment import groups_of, misfits
from empathy_eval.raters.review.forms import FOLDER, guidance, of_crossed, page, told, write_csv, write_projects, write_xlsx
from empathy_eval.raters.review.replies import Replies, read_replies
from empathy_eval.raters.review.sample import (
    BETWEEN,
    WITHIN,
    Cell,
    Design,
    Entry,
    Places,
    Sample,
    Unit,
    drawn_of,
    entries_of,
    one_a_dialogue,
    sample,
)
from empathy_eval.raters.review.sheets import make_review


def drawn_for(release_dir: Path, design: Design, replies: Replies | None = None) -> Sample:
    """The units of a review. Where systems replied, ``pairs`` of the design counts the contexts of their replies.

    Raises:
        InputError: as :func:`sample` does; if blocks are of more contexts than there are dialogues.
    """
    notes = list(replies.notes) if replies else []
    if design.between:
        return Sample(tuple(_of_blocks(release_dir, design, replies, notes)), tuple(notes))
    of_release = sample(release_dir, replace(design, pairs=0) if replies else design)
    replied = _replied(release_dir, design, replies, notes, of_release) if replies else ()
    units = fewer_texts([*of_release.units, *replied], design)
    return Sample(tuple(units), (*notes, *of_release.notes))


def fewer_texts(units: Sequence[Unit], design: Design) -> list[Unit]:
    """The units, each turn with at most ``texts_per_turn`` of its texts: drawn by lot, each of them about as often as any other."""
    kept: dict[str, tuple[Cell, ...]] = {}
    by_cells: dict[tuple[str, ...], list[Unit]] = defaultdict(list)
    for unit in units if design.texts_per_turn else ():
        if unit.kind in ("variant", "reply") and len(unit.cells) > design.texts_per_turn:
            by_cells[tuple(cell.name for cell in unit.cells)].append(unit)
    for names, some in by_cells.items():
        texts = itertools.cycle(derived_random(design.seed, "texts", *names).sample(range(len(names)), len(names)))
        for unit in sorted(some, key=lambda unit: derived_random(design.seed, "texts", unit.name).random()):
            kept[unit.name] = tuple(unit.cells[place] for place in sorted(itertools.islice(texts, design.texts_per_turn)))
    return [replace(unit, cells=kept.get(unit.name, unit.cells)) for unit in units]


def _replied(release_dir: Path, design: Design, replies: Replies, notes: list[str], of_release: Sample) -> Iterator[Unit]:
    """Contexts that all systems replied to, each with the replies; none of a turn that is already drawn, in a pack one a dialogue."""
    answered = _answered(release_dir, "pairs", replies)
    turns, there = {unit.name for unit in of_release.units}, {unit.dialogue for unit in of_release.units}
    places = Places(design)
    for unit in of_release.units:
        turn = unit.kind == "variant"
        places.take([unit.dialogue], design.raters_of(len(unit.cells)) if turn else len(unit.cells) * design.per_item, turn=turn)
    # Nobody sees two texts of a turn: one whose own texts are rated is not rated with replies too.
    entries = [entry for entry in answered if entry.name not in turns]
    if len(entries) < min(design.pairs, len(answered)):
        notes.append(f"{len(answered) - len(entries)} contexts are left out for replies, because their own texts are rated")
    if design.pack:
        entries = one_a_dialogue([entry for entry in entries if entry.dialogue not in there], set(), design.seed)
    drawn = places.draw("pairs", entries, lambda entry: design.raters_of(len(replies.systems)), what="contexts")
    notes += places.notes
    yield from (Unit(entry.name, "reply", tuple(map(Cell, replies.systems))) for entry in entries if entry.name in drawn)


def _answered(release_dir: Path, config: str, replies: Replies | None) -> list[Entry]:
    return [entry for entry in entries_of(release_dir, config) if replies is None or entry.name in replies.texts]


def _of_blocks(release_dir: Path, design: Design, replies: Replies | None, notes: list[str]) -> Iterator[Unit]:
    """Contexts for blocks, no more than these hold, and of as many dialogues as can be: a block has one turn of each."""
    what = "cells" if design.cells else "pairs"
    cells = groups_of(design, replies)
    kind = "reply" if replies else "variant"
    entries = _answered(release_dir, "controls" if design.cells else "pairs", replies)
    wanted = min(design.cells or design.pairs, design.raters // len(cells) * design.per_rater)
    apart = one_a_dialogue(entries, set(), design.seed)
    drawn = drawn_of(apart, min(wanted, len(apart)), design.seed, "contexts", notes)
    if wanted > len(drawn) and not design.pack:
        drawn = drawn_of(entries, wanted, design.seed, "contexts", notes, drawn)
    dialogues = len({entry.dialogue for entry in entries if entry.name in drawn})
    if drawn and dialogues < design.per_rater:
        said = f"a block needs contexts of {design.per_rater} dialogues, but the {len(drawn)} contexts are of {dialogues}"
        raise input_error("--per-rater", said, f"give --per-rater {dialogues} or less, or more contexts")
    samples = () if replies else (what,)
    yield from (Unit(entry.name, kind, tuple(Cell(one, samples=samples) for one in cells)) for entry in entries if entry.name in drawn)


KEY, RATERS = "key.json", "raters"
COUNTS = ("pairs", "dialogues", "cells", "rejected", "planted", "crossed", "texts_per_turn")
# A rater is a folder, even where there is nothing left to rate.
MOST = {"raters": 10_000, "per_item": 10_000, "per_rater": 1_000_000} | dict.fromkeys(COUNTS, 10_000_000)
# The counts of a pack, where others are not asked for.
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
    rows = [row for _, row in read_rows(sheet)]
    items = [row for row in rows if row["kind"] != "turn"]
    count = sum(len(words(row[name], language)) for row in rows for name in ("situation", "context", "text"))
    seconds = sum(SECONDS[row["kind"]] for row in rows if row["kind"] != "turn" or row["strategy"])
    return Load(len(items), sum(bool(row["warning"]) for row in items), count, count / WORDS_A_MINUTE + seconds / 60)


def _before(guidance: Path) -> Load:
    """The guidance with its replies to practise on, and the test, which is on the page alone."""
    training = told()["training"]
    test = [text for one in training["test"] for text in (one["situation"], *(turn["text"] for turn in one["context"]), one["text"])]
    count = sum(len(words(text)) for text in (guidance.read_text(encoding="utf-8"), *test))
    replies = len(training["training"]) + len(training["test"])
    return Load(replies, 0, count, count / WORDS_A_MINUTE + replies * SECONDS["variant"] / 60)


@dataclass(frozen=True)
class Exported:
    """A review that was written: its key, what was drawn, how many items each rater has, and of a pack the papers."""

    key: dict[str, Any]
    sample: Sample
    loads: dict[str, int]
    papers: Papers | None = None


def export_review(
    release_dir: Path,
    out: Path,
    design: Design | None = None,
    progress: Callable[[str], None] = lambda rater: None,
    replies_file: Path | None = None,
) -> Exported:
    """Writes ``raters/<rater>/`` for each rater, ``key.json``, a README and the papers of a pack into ``out``, whole or not at all.

    The bytes are the same every time.
    ``progress`` is called with each rater that is done. With ``replies_file`` what systems replied to contexts of the release is rated.

    Raises:
        InputError: if the folder is no release, nothing is drawn, there are too few raters or dialogues, or turns for the planted tags,
            rejected texts are asked for and not there, replies are faulty, a design between raters cannot be had so, or ``out`` holds
            another review, or anything that is not written again.
    """
    manifest = read_manifest(release_dir)
    design, replies = _checked(release_dir, design or Design(), replies_file, manifest.get(CANARY))
    stage("drawing the sample")
    drawn = drawn_for(release_dir, design, replies)
    if not drawn.units:
        raise input_error(release_dir, "gives nothing to review with these settings", "ask for --pairs, --dialogues, --cells or --crossed")
    key, sheets = make_review(release_dir, manifest, drawn, design, replies.texts if replies else None)
    check(key, "review_key", KEY)
    if (out / KEY).is_file() and read_json(out / KEY, "review_key", "name another folder with --out")["review"] != key["review"]:
        raise input_error(out, "holds another review, whose key would be lost", "name another folder with --out")
    loads: dict[str, int] = {}
    stage("writing folders", design.raters, "raters")
    with whole_folder(out, made_by=KEY) as folder:
        for sheet in sheets:
            _write_rater(folder / RATERS / sheet["rater"], sheet, deciding=design.deciding)
            loads[sheet["rater"]] = len(sheet["items"])
            progress(sheet["rater"])
        write_whole(folder / KEY, json_text(key, indent=1) + "\n")
        readme = environment(data_folder("review")).get_template("export.md.j2")
        write_whole(folder / "README.md", readme.render(key=key, loads=loads, notes=drawn.notes) + "\n")
        papers = write_papers(folder, folder / RATERS, key, language_of(manifest["configuration"])) if design.pack else None
        _nothing_lost(out, folder)
    return Exported(key, drawn, loads, papers)


def _checked(release_dir: Path, design: Design, replies_file: Path | None, canary: str | None) -> tuple[Design, Replies | None]:
    """The design, and the replies that are rated; or an :class:`InputError` with all settings that make no review."""
    values = {name: getattr(design, name) for name in (*MOST, "seed")}
    ones = ("raters",) if design.between else ("raters", "per_item")
    wrong = [(name, f'"{values[name]}" is too few', "give 1 or more") for name in ones if values[name] < 1]
    wrong += [(name, f'"{values[name]}" is negative', "give 0 or more") for name in (*COUNTS, "seed") if values[name] < 0]
    wrong += [
        (name, f'"{str(values[name])[:80]}" is too many', f"give at most {most:,}") for name, most in MOST.items() if values[name] > most
    ]
    refuse([Problem(f"--{name.replace('_', '-')}", what, fix) for name, what, fix in wrong])
    replies = read_replies(replies_file, column(release_dir, "pairs", "pair_id"), canary) if replies_file else None
    refuse(misfits(design, replies))
    return (replace(design, replies=replies.hash) if replies else design), replies


def _nothing_lost(out: Path, anew: Path) -> None:
    """Refuses to replace a folder in which anything lies that is not written anew: a record, a filled sheet."""
    there = sorted(path.relative_to(out) for path in out.rglob("*") if not path.is_dir())
    lost = [name for name in there if not (anew / name).is_file() or (anew / name).read_bytes() != (out / name).read_bytes()]
    if lost:
        named = ", ".join(f'"{name.as_posix()}"' for name in lost[:3]) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
        raise input_error(out, f"holds files that this export does not write: {named}", "name another folder with --out, or move them away")


def _write_rater(folder: Path, sheet: dict[str, Any], *, deciding: bool) -> None:
    """All forms of one rater's sheet."""
    check(sheet, "review_sheet", folder)
    folder.mkdir(parents=True)
    write_whole(folder / "review.html", page(sheet, deciding=deciding))
    write_whole(folder / "guidance.md", guidance(crossed=of_crossed(sheet), deciding=deciding))
    # Named after the rater: they come back from all raters, and into one folder.
    write_csv(sheet, folder / f"{sheet['rater']}.csv")
    write_xlsx(sheet, folder / f"{sheet['rater']}.xlsx")
    write_projects(sheet, folder / "label-studio")
    advance()
