"""A pack: what it draws, the papers beside it, and that what comes back is taken like any other review."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.commands.agree import agree
from empathy_eval.commands.review import review_export
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import parts_of
from empathy_eval.raters.review.answers import read_rows
from empathy_eval.raters.review.export import DOCUMENTS, SECONDS, SIZES, WORDS_A_MINUTE, design_of, export_review, write_documents
from empathy_eval.raters.review.forms import COLUMNS
from empathy_eval.raters.review.import_reviews import import_reviews
from empathy_eval.raters.review.sample import ReviewDesign, draw_sample
from empathy_eval.releases.assemble.write import Released

from tests.doubles.raters import FORMS, fill, key_of, kind_and_cold
from tests.raters.test_review_sample import many

CELLS = {*PAIR_VARIANTS, *CONTROLS}


@pytest.fixture(scope="module")
def packed(released: tuple[Path, Released], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A release of three dialogues, and a pack of it."""
    folder = tmp_path_factory.mktemp("packed") / "pack"
    review_export(released[0], folder, pack=True)
    return released[0], folder


def test_a_pack_has_sixty_turns_of_sixty_dialogues_and_thirty_of_them_in_all_cells(tmp_path: Path) -> None:
    # 8 dialogues in each of 10 scenarios, each of 3 turns.
    folder = many(tmp_path, dict.fromkeys(range(1, 11), 8), set(), turns=3)
    drawn = draw_sample(folder, design_of({"pack": True}))
    assert drawn.notes == () and len(drawn.units) == 60
    assert len({unit.dialogue for unit in drawn.units}) == 60
    whole = [unit for unit in drawn.units if {cell.name for cell in unit.cells} == CELLS]
    assert len(whole) == 30 and all(len(unit.cells) == 2 for unit in drawn.units if unit not in whole)
    assert Counter(unit.name[:3] for unit in whole) == {f"{number:03d}": 3 for number in range(1, 11)}
    assert all("pairs" in cell.samples for unit in drawn.units for cell in unit.cells if cell.variant in PAIR_VARIANTS)
    plain = draw_sample(folder, replace(design_of({"pack": True}), pack=False))
    assert len({unit.dialogue for unit in plain.units}) < len(plain.units), "without a pack turns of one dialogue do meet"


def test_a_flagged_turn_comes_first_and_equal_shares_of_scenarios_go_by_lot(tmp_path: Path) -> None:
    flagged = {"017-00000-t03"}
    folder = many(tmp_path, dict.fromkeys(range(1, 41), 1), flagged, turns=3)
    picked = [
        {unit.name for unit in draw_sample(folder, design_of({"pack": True, "cells": 0, "pairs": 20, "seed": n})).units} for n in (0, 1)
    ]
    assert all(flagged <= names for names in picked)
    assert picked[0] != picked[1] and max(picked[0]) > "021"


def test_what_is_given_beside_a_pack_counts_and_without_one_nothing_changes() -> None:
    assert design_of({"pack": True}) == ReviewDesign(pairs=60, dialogues=0, cells=30, raters=12, pack=True)
    assert design_of({"pack": True, "raters": 24, "cells": 10}) == ReviewDesign(pairs=60, dialogues=0, cells=10, raters=24, pack=True)
    assert design_of({"seed": 3}) == ReviewDesign(seed=3)
    assert "pack" not in ReviewDesign().settings and ReviewDesign(pack=True).settings["pack"] is True


def test_no_rater_meets_two_turns_of_a_dialogue_or_a_reply_beside_its_dialogue(released: tuple[Path, Released], tmp_path: Path) -> None:
    made = review_export(released[0], tmp_path / "pack", pack=True, dialogues=2, raters=15)
    seen: dict[str, list[str]] = {}
    for entry in made.key["items"].values():
        seen.setdefault(entry["rater"], []).append(entry.get("dialogue_id") or parts_of(entry["pair_id"])[0])
    assert all(len(set(dialogues)) == len(dialogues) for dialogues in seen.values())
    assert {entry["variant"] for entry in made.key["items"].values() if entry["kind"] == "variant"} == CELLS
    assert "whole conversations" in (tmp_path / "pack" / "papers" / "information.md").read_text()


def test_what_raters_send_back_in_every_form_is_imported_and_agreed_on(packed: tuple[Path, Path], tmp_path: Path) -> None:
    files = []
    for number, rater in enumerate(sorted(path.name for path in (packed[1] / "raters").iterdir())):
        files += fill(packed[1], rater, FORMS[number % len(FORMS)], kind_and_cold, tmp_path / "returned")
    taken = import_reviews(packed[0], files, packed[1] / "key.json", tmp_path / "reviews.json")
    votes = Counter((one["pair_id"], one["variant"]) for one in taken.record["judgements"])
    assert len(votes) == 3 * 4 and set(votes.values()) == {3}
    assert {one["form"] for one in taken.record["judgements"]} == set(FORMS)
    found = agree(tmp_path / "reviews.ratings.csv", resamples=0)
    assert {one.criterion: one.items for one in found.criteria} == dict.fromkeys(("coherence", "helpfulness", "empathy"), 12)
    assert next(one.fleiss.value for one in found.criteria if one.criterion == "empathy") == 1


def test_every_open_place_is_in_the_checklist_and_reported_in_the_terminal(
    packed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["review", "export", str(packed[0]), "--out", str(tmp_path / "pack"), "--pack"]) == 0
    told = capsys.readouterr().out
    checklist = (tmp_path / "pack" / "CHECKLIST.md").read_text()
    found = {name: re.findall(r"\[\[FILL IN: (.+?)\]\]", (tmp_path / "pack" / name).read_text()) for name in DOCUMENTS}
    for name, places in found.items():
        assert len(set(places)) == len(places) > 0
        assert all(f"| `{name}` | {what} |" in checklist for what in places)
        assert f"{len(places)} in {tmp_path / 'pack' / name}" in told
    assert f"not ready to send: {sum(map(len, found.values()))} places must be filled in" in told
    assert "60 pairs were requested, but there are only 3: all are taken" in told and "one turn of each dialogue" in told
    assert main(["review", "export", str(packed[0]), "--out", str(tmp_path / "again"), "--pack", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["to_fill_in"] == [[name, what] for name in DOCUMENTS for what in found[name]]


def test_no_paper_names_a_contact_and_all_say_what_a_rater_must_know(packed: tuple[Path, Path]) -> None:
    texts = [(packed[1] / name).read_text() for name in DOCUMENTS]
    for text in texts:
        assert not re.search(r"@|https?:|\+?\d[\d /-]{6,}\d", re.sub(r"\[\[.+?\]\]", "", text)), "a mail, a link or a telephone number"
    for said in ("at any time", "suicide", "skip any item", "without losing pay", "If a text upsets you", "an adult"):
        assert said in texts[0]
    assert "If you stop early" in texts[1]


def test_nothing_that_is_sent_with_a_pack_tells_a_cell_or_a_dialogue(packed: tuple[Path, Path]) -> None:
    key = key_of(packed[1])
    telling = CELLS | {entry["pair_id"] for entry in key["items"].values()} | {key["release"]["seal"]}
    for name in DOCUMENTS:
        assert not [word for word in telling if word in (packed[1] / name).read_text()], name
    assert {path.name for path in packed[1].iterdir()} == {"CHECKLIST.md", "README.md", "key.json", "papers", "raters"}


def test_minutes_are_computed_from_the_words_of_the_files(packed: tuple[Path, Path], tmp_path: Path) -> None:
    made = export_review(packed[0], tmp_path / "pack", design_of({"pack": True}))
    papers = made.papers
    assert papers is not None
    for rater, load in papers.loads.items():
        rows = [row for _, row in read_rows(tmp_path / "pack" / "raters" / rater / f"{rater}.xlsx")]
        words = [len(re.findall(r"\w+(?:['’-]\w+)*", " ".join((row["situation"], row["context"], row["text"])))) for row in rows]
        assert load.items == len(rows) == made.loads[rater] and load.words == sum(words)
        assert load.minutes == pytest.approx(load.words / WORDS_A_MINUTE + load.items * SECONDS["variant"] / 60)
    longest = max(load.minutes for load in papers.loads.values()) + papers.before.minutes
    assert longest <= papers.minutes < longest + 5 and papers.minutes % 5 == 0
    assert papers.before.words > 3000 and papers.before.items == 15
    assert f"{papers.minutes} minutes" in (tmp_path / "pack" / "papers" / "payment.md").read_text()


def test_in_a_script_without_spaces_each_character_is_read_and_the_pace_is_reported_to_be_english(tmp_path: Path) -> None:
    folder = tmp_path / "raters" / "R01"
    folder.mkdir(parents=True)
    said = {"kind": "variant", "situation": "我很难过。", "context": "我想他。", "text": "我在这里听你说。"}
    row = dict.fromkeys((*COLUMNS, "warning"), "") | said
    (folder / "R01.csv").write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    (folder / "guidance.md").write_text("Read.")
    key = {"release": {"name": "r", "version": "1.0.0"}, "settings": ReviewDesign(pack=True).settings}
    papers = write_documents(tmp_path, tmp_path / "raters", key, "zh")
    assert papers.loads["R01"].words == 4 + 3 + 7
    assert all("the pace" in (tmp_path / name).read_text() for name in ("papers/payment.md", "CHECKLIST.md"))


def test_a_pack_is_the_same_again_and_papers_that_were_filled_in_are_kept(packed: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "pack"
    review_export(packed[0], out, pack=True)
    for path in (path for path in packed[1].rglob("*") if path.is_file()):
        assert path.read_bytes() == (out / path.relative_to(packed[1])).read_bytes(), path
    paper = out / "papers" / "payment.md"
    paper.write_text(re.sub(r"\[\[.+?\]\]", "20 euros", paper.read_text()))
    with pytest.raises(InputError, match=r'does not write: "papers/payment.md"'):
        review_export(packed[0], out, pack=True)
    assert "20 euros" in paper.read_text()


def test_a_review_that_is_no_pack_has_no_papers(released: tuple[Path, Released], tmp_path: Path) -> None:
    made = review_export(released[0], tmp_path / "review", pairs=2, dialogues=0)
    assert made.papers is None and {path.name for path in (tmp_path / "review").iterdir()} == {"README.md", "key.json", "raters"}
    assert "pack" not in (tmp_path / "review" / "README.md").read_text() and "pack" not in made.key["settings"]


def test_help_names_the_sizes_of_a_pack_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["review", "export", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    for name, size in SIZES.items():
        assert re.search(rf"--{name} N .+?\(default: {getattr(ReviewDesign(), name)}, with --pack {size}\)", told), name
    assert "--out build/pack --pack" in told
