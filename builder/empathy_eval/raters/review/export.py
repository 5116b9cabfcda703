"""Exporting: a release sent out for review, one folder a rater, and the key that stays behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.files import data_folder, whole_folder, write_whole
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import check, read_json
from empathy_eval.base.stages import advance, stage
from empathy_eval.base.templates import environment
from empathy_eval.design.canary import CANARY
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import column, read_manifest
from empathy_eval.raters.review.between import misfits
from empathy_eval.raters.review.contexts import drawn_for
from empathy_eval.raters.review.label_studio import write_projects
from empathy_eval.raters.review.pack import Papers, write_papers
from empathy_eval.raters.review.page import guidance, of_crossed, page
from empathy_eval.raters.review.replies import Replies, read_replies
from empathy_eval.raters.review.sample import Design, Sample
from empathy_eval.raters.review.sheets import make_review
from empathy_eval.raters.review.spreadsheets import write_csv, write_xlsx

KEY, RATERS = "key.json", "raters"
# A rater is a folder, even where there is nothing left to rate.
MOST = {"raters": 10_000, "per_item": 10_000, "per_rater": 1_000_000} | dict.fromkeys(
    ("pairs", "dialogues", "cells", "rejected", "planted", "crossed", "texts_per_turn"), 10_000_000
)


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
    review = make_review(release_dir, manifest, drawn, design, replies.texts if replies else None)
    check(review.key, "review_key", KEY)
    if (out / KEY).is_file() and read_json(out / KEY, "review_key", "name another folder with --out")["review"] != review.key["review"]:
        raise input_error(out, "holds another review, whose key would be lost", "name another folder with --out")
    loads: dict[str, int] = {}
    stage("writing folders", design.raters, "raters")
    with whole_folder(out, made_by=KEY) as folder:
        for sheet in review.sheets:
            _write_rater(folder / RATERS / sheet["rater"], sheet, deciding=design.deciding)
            loads[sheet["rater"]] = len(sheet["items"])
            progress(sheet["rater"])
        write_whole(folder / KEY, json_text(review.key, indent=1) + "\n")
        readme = environment(data_folder("review")).get_template("export.md.j2")
        write_whole(folder / "README.md", readme.render(key=review.key, loads=loads, notes=drawn.notes) + "\n")
        papers = write_papers(folder, folder / RATERS, review.key, language_of(manifest["configuration"])) if design.pack else None
        _nothing_lost(out, folder)
    return Exported(review.key, drawn, loads, papers)


def _checked(release_dir: Path, design: Design, replies_file: Path | None, canary: str | None) -> tuple[Design, Replies | None]:
    """The design, and the replies that are rated; or an :class:`InputError` with all settings that make no review."""
    names = ("raters",) if design.between else ("raters", "per_item")
    few = [(f"--{name.replace('_', '-')}", value) for name in names if (value := getattr(design, name)) < 1]
    problems = [Problem(name, f'"{value}" is too few', "give 1 or more") for name, value in few]
    for name in ("pairs", "dialogues", "cells", "rejected", "planted", "crossed", "texts_per_turn", "seed"):
        if (value := getattr(design, name)) < 0:
            problems.append(Problem(f"--{name.replace('_', '-')}", f'"{value}" is negative', "give 0 or more"))
    for name, most in MOST.items():
        if (value := getattr(design, name)) > most:
            problems.append(Problem(f"--{name.replace('_', '-')}", f'"{str(value)[:80]}" is too many', f"give at most {most:,}"))
    if problems:
        raise InputError(problems)
    replies = read_replies(replies_file, column(release_dir, "pairs", "pair_id"), canary) if replies_file else None
    if wrong := list(misfits(design, replies)):
        raise InputError(wrong)
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
