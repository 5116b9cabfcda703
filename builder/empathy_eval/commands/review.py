"""``review``: export of a release to raters, and import of their judgements."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.base.errors import input_error
from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import A_RELEASE, RELEASE, Command, CommandGroup, Option, whole_number
from empathy_eval.commands.progress import display_stages

if TYPE_CHECKING:
    from empathy_eval.raters.review.export import Exported, PackDocuments
    from empathy_eval.raters.review.import_reviews import Imported

EXAMPLES = """\
examples:
  empathy-eval review export build/demo/release --out build/review --pairs 20 --raters 9
  empathy-eval review export build/demo/release --out build/pack --pack
  empathy-eval review export build/demo/release --out build/two --replies replies.csv --raters 2 --per-item 2 --texts-per-turn 1
  empathy-eval review export build/demo/release --out build/study --replies replies.csv --design between --raters 30

A pack is ready to send after you have filled in everything that its CHECKLIST.md lists. It has 60 pairs of 60 dialogues. For 30 of their
turns all four cells are rated, including the two controls. Each of 12 raters has 45 items. The pack also has papers/information.md (who
asks, how the ratings are used, stopping, help, consent) and papers/payment.md (the pay, and the minutes that it is based on). See
docs/auditors.md.
"""


@takes_paths
def review_export(
    release: str | Path,
    out: str | Path,
    *,
    replies: str | Path | None = None,
    stratify_by: str | Path | None = None,
    progress: Callable[[str], None] = lambda rater: None,
    **design: int | str,
) -> Exported:
    """Writes a folder for each rater, and the key, into ``out``.

    ``design`` may hold ``pairs``, ``dialogues``, ``cells``, ``rejected``, ``planted``, ``crossed``, ``raters``, ``per_item``, ``seed``,
    ``pack``, ``design``, ``per_rater`` and ``texts_per_turn``, as on the command line. ``stratify_by`` is a file of scores, as of
    ``score``, whose lowest and highest quarter get a fifth of the pairs each. ``progress`` is called with each finished rater.

    Raises
    ------
    InputError
        If it is no release, replies are faulty, or the release is too small for the design: an explicit count is an error if the raters
        cannot get so many turns, at most one per dialogue.
    """
    from empathy_eval.raters.review.export import design_of, export_review, stratified
    from empathy_eval.releases.hub.fetch import release_folder

    file, folder = Path(replies) if replies else None, release_folder(release)
    settings = design_of(design, replying=file is not None)
    if file and stratify_by:
        raise input_error("--stratify-by", "is for pairs of the release, not for replies of systems", "leave it or --replies out")
    return export_review(folder, Path(out), stratified(folder, settings, Path(stratify_by)) if stratify_by else settings, progress, file)


@takes_paths
def review_import(
    release: str | Path, files: Sequence[str | Path], *, key: str | Path, reviews: str | Path, replace: bool = False
) -> Imported:
    """Imports the judgements of raters into the record ``reviews``, all files or none; ``replace`` replaces earlier judgements.

    Raises
    ------
    InputError
        If a file is faulty; lists all problems of all files.
    """
    from empathy_eval.raters.review.import_reviews import import_reviews
    from empathy_eval.releases.hub.fetch import release_folder

    return import_reviews(release_folder(release), [Path(file) for file in files], Path(key), Path(reviews), replace=replace)


# Default and help of each count, by option.
COUNTS = {
    "pairs": (
        "500, with --pack 60",
        "pairs whose two variants are rated; the default is lower if the release has too few dialogues. With --replies: contexts whose "
        "replies are rated instead. In a between design: contexts too, and blocks use only as many as they can hold",
    ),
    "dialogues": (
        "100, with --pack 0",
        "dialogues that raters keep or remove, with their strategy tags. A release of up to 100 is reviewed completely by default. The "
        "default with --replies is 0, and a between design has none",
    ),
    "cells": ("0, with --pack 30", "turns for which all four cells of the 2 x 2 are rated (needs 4 x PER-ITEM raters)"),
    "rejected": (0, "texts that the checks rejected, each beside the variant that was accepted, to audit the checks"),
    "planted": (0, "turns of the dialogues that get a wrong strategy tag on purpose, to test attention; only the key names them"),
    "crossed": (0, "crossed items: raters choose the reply that fits one of the two contexts (needs 2 x PER-ITEM raters)"),
    "raters": ("10, with --pack 12", "number of raters; they are named rater-01 and so on"),
    "per-item": (3, "raters per dialogue and per text, unless the design is between"),
    "texts-per-turn": (
        "0, all",
        "texts of a turn that are rated, drawn at random: with 1, two raters can rate the same replies (--raters 2 --per-item 2)",
    ),
    "per-rater": (10, "texts for each rater of a between design"),
    "seed": (0, "the seed of the sample"),
}


def _export(options: Namespace) -> int:
    from empathy_eval.raters.review.export import KEY

    names = [*(name.replace("-", "_") for name in COUNTS), "pack", "design"]
    design = {name: value for name in names if (value := getattr(options, name)) is not None}
    with display_stages("review export"):
        done = review_export(options.release, options.out, replies=options.replies, stratify_by=options.stratify_by, **design)
    if options.json:
        papers = {"minutes": done.papers.minutes, "to_fill_in": done.papers.open} if done.papers else {}
        print(json_text({"review": done.key["review"], "loads": done.loads, "notes": done.sample.notes, **papers}, ascii_only=True))
        return 0
    for note in done.sample.notes:
        print(note)
    least, most = min(done.loads.values()), max(done.loads.values())
    print(f"{_sample_summary(done)} for {len(done.loads)} raters")
    print(f"{least} to {most} items each" if least < most else f"{most} items each")
    print(f"send each folder of {options.out / 'raters'} to one person; {options.out / KEY} stays with you")
    if done.papers:
        print(_open_steps(done.papers, options.out))
    return 0


def _sample_summary(done: Exported) -> str:
    """Describes the sample."""
    count, settings = done.sample.count, done.key["settings"]
    units = done.sample.units
    groups = len(units[0].cells)
    if "design" in settings:
        return f"{len(units)} contexts and {groups} groups, in {settings['raters'] // groups} blocks of {settings['per_rater']},"
    more = {"reply": "contexts with replies", "crossed": "crossed items"}
    also = "".join(f", {count(kind)} {what}" for kind, what in more.items() if count(kind))
    return f"{count('variant')} turns and {count('dialogue')} dialogues{also}"


def _open_steps(papers: PackDocuments, out: Path) -> str:
    """Describes the open steps before a pack is sent."""
    from collections import Counter

    from empathy_eval.raters.review.export import CHECKLIST

    open_in = ", ".join(f"{count} in {out / file}" for file, count in Counter(file for file, _ in papers.open).items())
    time = f"about {papers.minutes} minutes each, with guidance and practice"
    return f"{time}\nnot ready to send: {len(papers.open)} places must be filled in: {open_in}\nstart with {out / CHECKLIST}"


def _imported(done: Imported, reviews: Path, json: bool = False) -> int:
    from empathy_eval.raters.review.import_reviews import import_facts, import_summary

    print(json_text(import_facts(done), ascii_only=True) if json else import_summary(done, reviews))
    return 0


EXPORT = Command(
    review_export,
    "write a folder for each rater, and the key",
    "Draws a seeded sample of dialogues and pairs, by scenario, with flagged items first. Writes a folder for each rater (a page for the "
    "browser, CSV, XLSX, Label Studio) and key.json, which you keep. A rater sees at most one item of a dialogue, because the context of a "
    "later turn shows the reference of an earlier one. Codes stand for the names of the items. The same command writes the same bytes.",
    {
        **RELEASE,
        "--out DIR": "where the folders and the key are written",
        **{f"--{name} N": Option(f"{what} (default: {default})", type=whole_number) for name, (default, what) in COUNTS.items()},
        "--replies FILE": "rate replies of systems to contexts of the release, instead of its variants: CSV, TSV or JSONL with pair_id, "
        "system and text. Contexts without a reply of every system are left out; --cells adds turns whose cells are rated too",
        "--stratify-by FILE": "draw pairs by a score instead of by scenario: a fifth from the lowest quarter, a fifth from the highest, "
        "the rest between. A file as of score --scores; the mean over the texts of a pair counts",
        "--design {within,between}": Option(
            "within (default): each rater gets texts of all variants, or of all systems. between: each rater gets texts of only one. A "
            "block has one rater for each variant or system; they see the same contexts, one per dialogue. So the number of raters is a "
            "multiple of the variants (with --cells: four) or systems; see study",
            type=str, required=False,
        ),
        "--pack": "write a complete pack for ratings by people: 60 pairs of 60 dialogues, all four cells of 30 of their turns, 12 raters, "
        "papers on consent, payment and stopping, and a checklist for you. The counts above can still be set",
        "--json": "print what was written as JSON",
    },
    EXAMPLES,
    run=_export,
    name="export",
)  # fmt: skip
IMPORT = Command(
    review_import,
    "import the judgements of raters",
    "Checks the files that raters sent back and merges them into a record of who judged what. Reports all problems at once, and imports "
    "nothing unless every file is valid. Importing a file again changes nothing. Also writes tables beside the record: ratings and "
    "decisions for agree, and the strategy tags that raters found wrong.",
    {
        "RELEASE": Option(f"the release that was sent out, {A_RELEASE}", type=str),
        "files=FILE": "a file from a rater: .json (the page, Label Studio), .csv, .xlsx",
        "--key FILE": "the key.json of the export",
        "--reviews FILE": "the record; it is created if missing",
        "--replace": "replace judgements in the record that are by the same rater on the same item",
        "--json": "print what was done as JSON",
    },
    shown=_imported,
    name="import",
)
COMMAND = CommandGroup("review", "prepare a release for raters, and import their judgements", None, (EXPORT, IMPORT))
