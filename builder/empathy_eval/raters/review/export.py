"""Export of a review: a folder for each rater, the key that stays with the maintainer, and the documents of a pack."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse, some_of
from empathy_eval.base.files import data_folder, whole_folder, write_whole
from empathy_eval.base.hashing import derived_random, digest_file
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import check, read_json
from empathy_eval.base.stages import advance, stage
from empathy_eval.base.templates import environment
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.design.canary import CANARY
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import column, read_manifest
from empathy_eval.evaluation.external.score_file import VARIANTS, read_scores
from empathy_eval.raters.review import forms
from empathy_eval.raters.review import sample as sampling
from empathy_eval.raters.review.answers import read_rows
from empathy_eval.raters.review.assignment import design_problems, groups_of
from empathy_eval.raters.review.forms import FOLDER
from empathy_eval.raters.review.replies import SystemReplies, read_replies
from empathy_eval.raters.review.sample import BETWEEN, WITHIN, Cell, RaterCapacity, ReviewDesign, ReviewSample, SamplingEntry, Unit
from empathy_eval.raters.review.sheets import make_review


def draw_units(release_dir: Path, design: ReviewDesign, replies: SystemReplies | None = None) -> ReviewSample:
    """Draw the units of a review. If systems replied, ``pairs`` of the design counts the contexts of their replies.

    Raises:
        InputError: as :func:`draw_sample`; if a block needs more contexts than there are dialogues.
    """
    notes = list(replies.notes) if replies else []
    if design.between:
        return ReviewSample(tuple(_block_units(release_dir, design, replies, notes)), tuple(notes))
    of_release = sampling.draw_sample(release_dir, replace(design, pairs=0) if replies else design)
    replied = _reply_units(release_dir, design, replies, notes, of_release) if replies else ()
    units = limit_texts([*of_release.units, *replied], design)
    return ReviewSample(tuple(units), (*notes, *of_release.notes))


def limit_texts(units: Sequence[Unit], design: ReviewDesign) -> list[Unit]:
    """Limit each turn to ``texts_per_turn`` of its texts: drawn at random, each about equally often."""
    limited: dict[str, tuple[Cell, ...]] = {}
    by_cells: dict[tuple[str, ...], list[Unit]] = defaultdict(list)
    for unit in units if design.texts_per_turn else ():
        if unit.kind in ("variant", "reply") and len(unit.cells) > design.texts_per_turn:
            by_cells[tuple(cell.name for cell in unit.cells)].append(unit)
    for names, group in by_cells.items():
        texts = itertools.cycle(derived_random(design.seed, "texts", *names).sample(range(len(names)), len(names)))
        for unit in sorted(group, key=lambda unit: derived_random(design.seed, "texts", unit.name).random()):
            limited[unit.name] = tuple(unit.cells[index] for index in sorted(itertools.islice(texts, design.texts_per_turn)))
    return [replace(unit, cells=limited.get(unit.name, unit.cells)) for unit in units]


def _reply_units(
    release_dir: Path, design: ReviewDesign, replies: SystemReplies, notes: list[str], of_release: ReviewSample
) -> Iterator[Unit]:
    """Contexts that all systems replied to, with the replies; no turn that is already drawn, in a pack one per dialogue."""
    answered = _answered(release_dir, "pairs", replies)
    turns, dialogues = {unit.name for unit in of_release.units}, {unit.dialogue for unit in of_release.units}
    capacity = RaterCapacity(design)
    for unit in of_release.units:
        turn = unit.kind == "variant"
        capacity.reserve([unit.dialogue], design.raters_needed(len(unit.cells)) if turn else len(unit.cells) * design.per_item, turn=turn)
    # Nobody sees two texts of a turn, so turns whose own texts are rated get no replies.
    entries = [entry for entry in answered if entry.name not in turns]
    if len(entries) < min(design.pairs, len(answered)):
        notes.append(f"{len(answered) - len(entries)} contexts are left out for replies, because their own texts are rated")
    if design.pack:
        entries = sampling.one_per_dialogue([entry for entry in entries if entry.dialogue not in dialogues], set(), design.seed)
    drawn = capacity.draw("pairs", entries, lambda entry: design.raters_needed(len(replies.systems)), what="contexts")
    notes += capacity.notes
    yield from (Unit(entry.name, "reply", tuple(map(Cell, replies.systems))) for entry in entries if entry.name in drawn)


def _answered(release_dir: Path, config: str, replies: SystemReplies | None) -> list[SamplingEntry]:
    return [entry for entry in sampling.entries_of(release_dir, config) if replies is None or entry.name in replies.texts]


def _block_units(release_dir: Path, design: ReviewDesign, replies: SystemReplies | None, notes: list[str]) -> Iterator[Unit]:
    """Contexts for blocks, from as many dialogues as possible: a block has one turn of each."""
    what = "cells" if design.cells else "pairs"
    cells = groups_of(design, replies)
    kind = "reply" if replies else "variant"
    entries = _answered(release_dir, "controls" if design.cells else "pairs", replies)
    count = min(design.cells or design.pairs, design.raters // len(cells) * design.per_rater)
    apart = sampling.one_per_dialogue(entries, set(), design.seed)
    drawn = sampling.draw_names(apart, min(count, len(apart)), design.seed, "contexts", notes)
    if count > len(drawn) and not design.pack:
        drawn = sampling.draw_names(entries, count, design.seed, "contexts", notes, drawn)
    dialogues = len({entry.dialogue for entry in entries if entry.name in drawn})
    if drawn and dialogues < design.per_rater:
        few = f"a block needs contexts of {design.per_rater} dialogues, but the {len(drawn)} contexts are of {dialogues}"
        raise input_error("--per-rater", few, f"give --per-rater {dialogues} or less, or more contexts")
    samples = () if replies else (what,)
    yield from (Unit(entry.name, kind, tuple(Cell(cell, samples=samples) for cell in cells)) for entry in entries if entry.name in drawn)


KEY, RATERS = "key.json", "raters"
COUNTS = ("pairs", "dialogues", "cells", "rejected", "planted", "crossed", "texts_per_turn")
# Every rater gets a folder, even without items, so the number is limited.
MOST = {"raters": 10_000, "per_item": 10_000, "per_rater": 1_000_000} | dict.fromkeys(COUNTS, 10_000_000)
# Default counts of a pack.
SIZES: dict[str, int] = {"pairs": 60, "dialogues": 0, "cells": 30, "raters": 12}
# Most adults read English prose at 175 to 300 words a minute (Brysbaert 2019). The slow end, so that nobody is paid too little.
WORDS_A_MINUTE = 175
# Seconds for a decision after reading: on a reply, a dialogue, a strategy, and between two replies.
SECONDS = {"variant": 30, "dialogue": 30, "turn": 10, "crossed": 30}
CHECKLIST, DOCUMENTS = "CHECKLIST.md", ("papers/information.md", "papers/payment.md")
PLACEHOLDER = re.compile(r"\[\[FILL IN: ([^\]]+)\]\]")


@dataclass(frozen=True)
class Workload:
    """Workload of a rater: items, items with a warning, words to read, and minutes at the paces above."""

    items: int
    warned: int
    words: int
    minutes: float


@dataclass(frozen=True)
class PackDocuments:
    """Documents of a pack: each rater's workload, that of guidance and practice, and (file, what) for each placeholder to fill in."""

    loads: dict[str, Workload]
    before: Workload
    open: tuple[tuple[str, str], ...]

    @property
    def minutes(self) -> int:
        """Minutes for the largest of the raters' folders with guidance and practice, rounded up to five."""
        return math.ceil((self.before.minutes + max(load.minutes for load in self.loads.values())) / 5) * 5


def design_of(settings: Mapping[str, Any], *, replying: bool = False) -> ReviewDesign:
    """The design with these settings; ``replying`` says whether systems' replies are rated.

    Defaults of a pack are :data:`SIZES`; with replies and between raters there are no dialogues and no cells.

    Raises:
        InputError: for settings of the other design.
    """
    between = settings.get("design") == BETWEEN
    if (odd := "per_item" if between else "per_rater") in settings:
        other, fix = (WITHIN, "--per-rater") if between else (BETWEEN, "--per-item")
        raise input_error(f"--{odd.replace('_', '-')}", f"is of the design {other}", f"leave it out, or give {fix}")
    chosen: dict[str, Any] = dict(SIZES) if settings.get("pack") else {}
    if between or replying:
        chosen |= {"dialogues": 0, "cells": 0}
    if between:
        chosen["pairs"] = 0 if settings.get("cells") else ReviewDesign.pairs
    return ReviewDesign(**{**chosen, **settings, "explicit": frozenset(settings)})


def stratified(release_dir: Path, design: ReviewDesign, path: Path) -> ReviewDesign:
    """The design with pairs drawn by a file of scores, the mean over the texts of a pair.

    Raises:
        InputError: for a faulty file, and where no pairs of the release are rated.
    """
    if design.between or design.cells or design.replies or not design.pairs:
        raise input_error("--stratify-by", "is for pairs, without cells, replies and blocks", "leave it out, or ask for --pairs alone")
    known, controls = (column(release_dir, config, "pair_id") for config in ("pairs", "controls"))
    scores = read_scores(path, known, controls)
    of = {pair: scores.of([(pair, name) for name in VARIANTS]) for pair in scores.pair_ids}
    some = {pair: [value for value in values if not math.isnan(value)] for pair, values in of.items()}
    means = {pair: math.fsum(values) / len(values) for pair, values in some.items() if values}
    return replace(design, stratify_by=digest_file(path), strata=sampling.strata_of(means))


def write_documents(out: Path, raters: Path, key: Mapping[str, Any], language: str = ENGLISH) -> PackDocuments:
    """Write the documents and the checklist into ``out``; words are counted in the files of ``raters``.

    ``language`` is that of the texts; guidance and practice are English.
    """
    loads = {folder.name: _workload(folder / f"{folder.name}.csv", language) for folder in sorted(raters.iterdir())}
    before = _preparation(next(raters.iterdir()) / "guidance.md")
    papers = PackDocuments(loads, before, ())
    templates = environment(data_folder(FOLDER) / "pack")
    about = {
        "key": key, "loads": loads, "before": before, "minutes": papers.minutes, "words_a_minute": WORDS_A_MINUTE, "seconds": SECONDS,
        "language": None if language == ENGLISH else language,
    }  # fmt: skip
    placeholders: list[tuple[str, str]] = []
    (out / "papers").mkdir()
    for name in DOCUMENTS:
        text = templates.get_template(f"{Path(name).name}.j2").render(**about) + "\n"
        write_whole(out / name, text)
        placeholders += [(name, what) for what in PLACEHOLDER.findall(text)]
    write_whole(out / CHECKLIST, templates.get_template("checklist.md.j2").render(**about, open=placeholders) + "\n")
    return PackDocuments(loads, before, tuple(placeholders))


def _workload(sheet: Path, language: str) -> Workload:
    """Workload of a rater's CSV, which has the same texts as the other forms."""
    rows = [row for _, row in read_rows(sheet)]
    items = [row for row in rows if row["kind"] != "turn"]
    count = sum(len(words(row[name], language)) for row in rows for name in ("situation", "context", "text"))
    seconds = sum(SECONDS[row["kind"]] for row in rows if row["kind"] != "turn" or row["strategy"])
    return Workload(len(items), sum(bool(row["warning"]) for row in items), count, count / WORDS_A_MINUTE + seconds / 60)


def _preparation(guidance: Path) -> Workload:
    """Workload of the guidance with its practice replies, and of the test, which is on the page alone."""
    training = forms.guidance_texts()["training"]
    test = [text for example in training["test"] for text in (example["situation"], example["text"])]
    test += [turn["text"] for example in training["test"] for turn in example["context"]]
    count = sum(len(words(text)) for text in (guidance.read_text(encoding="utf-8"), *test))
    replies = len(training["training"]) + len(training["test"])
    return Workload(replies, 0, count, count / WORDS_A_MINUTE + replies * SECONDS["variant"] / 60)


@dataclass(frozen=True)
class Exported:
    """An exported review: its key, the sample, the number of items of each rater, and the documents of a pack."""

    key: dict[str, Any]
    sample: ReviewSample
    loads: dict[str, int]
    papers: PackDocuments | None = None


def export_review(
    release_dir: Path,
    out: Path,
    design: ReviewDesign | None = None,
    progress: Callable[[str], None] = lambda rater: None,
    replies_file: Path | None = None,
) -> Exported:
    """Write ``raters/<rater>/`` for each rater, ``key.json``, a README and the documents of a pack into ``out``, all or nothing.

    The bytes are the same every time. ``progress`` is called with each finished rater. With ``replies_file`` systems' replies to contexts
    of the release are rated.

    Raises:
        InputError: if the folder is no release, nothing is drawn, there are too few raters, dialogues, or turns for attention checks,
            rejected texts are missing, replies are faulty, a design between raters is impossible, or ``out`` holds another review, or files
            that are not written again.
    """
    manifest = read_manifest(release_dir)
    design, replies = _checked(release_dir, design or ReviewDesign(), replies_file, manifest.get(CANARY))
    stage("drawing the sample")
    drawn = draw_units(release_dir, design, replies)
    if not drawn.units:
        raise input_error(release_dir, "gives nothing to review with these settings", "ask for --pairs, --dialogues, --cells or --crossed")
    key, sheets = make_review(release_dir, manifest, drawn, design, replies)
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
        papers = write_documents(folder, folder / RATERS, key, language_of(manifest["configuration"])) if design.pack else None
        _refuse_overwriting(out, folder)
    return Exported(key, drawn, loads, papers)


def _checked(
    release_dir: Path, design: ReviewDesign, replies_file: Path | None, canary: str | None
) -> tuple[ReviewDesign, SystemReplies | None]:
    """The design, and the replies to rate.

    Raises:
        InputError: with all invalid settings.
    """
    values = {name: getattr(design, name) for name in (*MOST, "seed")}
    positive = ("raters",) if design.between else ("raters", "per_item")
    wrong = [(name, f'"{values[name]}" is too few', "give 1 or more") for name in positive if values[name] < 1]
    wrong += [(name, f'"{values[name]}" is negative', "give 0 or more") for name in (*COUNTS, "seed") if values[name] < 0]
    many = [(name, most) for name, most in MOST.items() if values[name] > most]
    wrong += [(name, f'"{str(values[name])[:80]}" is too many', f"give at most {most:,}") for name, most in many]
    refuse([Problem(f"--{name.replace('_', '-')}", what, fix) for name, what, fix in wrong])
    replies = read_replies(replies_file, column(release_dir, "pairs", "pair_id"), canary) if replies_file else None
    refuse(design_problems(design, replies))
    return (replace(design, replies=replies.hash) if replies else design), replies


def _refuse_overwriting(out: Path, anew: Path) -> None:
    """Refuse to replace a folder with files that are not written again, such as a record or a filled sheet."""
    existing = sorted(path.relative_to(out) for path in out.rglob("*") if not path.is_dir())
    lost = [name for name in existing if not (anew / name).is_file() or (anew / name).read_bytes() != (out / name).read_bytes()]
    if lost:
        named = some_of([f'"{name.as_posix()}"' for name in lost], 3)
        raise input_error(out, f"holds files that this export does not write: {named}", "name another folder with --out, or move them away")


def _write_rater(folder: Path, sheet: dict[str, Any], *, deciding: bool) -> None:
    """Write all forms of one rater's sheet."""
    check(sheet, "review_sheet", folder)
    folder.mkdir(parents=True)
    write_whole(folder / "review.html", forms.page(sheet, deciding=deciding))
    write_whole(folder / "guidance.md", forms.guidance_markdown(crossed=forms.of_crossed(sheet), deciding=deciding))
    # Named after the rater, because the files of all raters are returned into one folder.
    forms.write_csv(sheet, folder / f"{sheet['rater']}.csv")
    forms.write_xlsx(sheet, folder / f"{sheet['rater']}.xlsx")
    forms.write_projects(sheet, folder / "label-studio")
    advance()
