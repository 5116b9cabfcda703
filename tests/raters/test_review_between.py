"""Reviews between raters: one group each, blocks of the same contexts, numbers that tell nothing, and the table that a study reads."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.templates import environment
from empathy_eval.cli import main
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.design.dataset import column
from empathy_eval.raters.review.assignment import assign_blocks
from empathy_eval.raters.review.export import design_of, draw_units, export_review
from empathy_eval.raters.review.human_evaluation import mean_by_rater, review_facts
from empathy_eval.raters.review.import_reviews import import_reviews
from empathy_eval.raters.review.record import CRITERIA, study_rows, tables_of
from empathy_eval.raters.review.sample import BETWEEN, Cell, ReviewDesign, Unit
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.raters import fill, key_of, kind_and_cold
from tests.doubles.replies import SYSTEMS, rows_for, written
from tests.raters.test_review_sample import many

DESIGN = ReviewDesign(design=BETWEEN, dialogues=0, raters=8, per_rater=3)
SEAL = "sha256:0"


def units(turns: list[int], groups: int = 3) -> list[Unit]:
    """Contexts of so many turns of each dialogue."""
    cells = tuple(Cell(f"s{place}") for place in range(groups))
    return [Unit(f"001-{n:05d}-t{2 * turn + 1:02d}", "reply", cells) for n, count in enumerate(turns) for turn in range(count)]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(1, 4), st.integers(1, 6), st.integers(1, 8), st.integers(0, 9))
def test_in_a_block_each_group_has_a_rater_and_the_contexts_are_one_a_dialogue_and_as_even_as_can_be(
    turns: list[int], groups: int, blocks: int, per_rater: int, seed: int
) -> None:
    ones, per_rater = units(turns, groups), min(per_rater, len(turns))
    design = ReviewDesign(design=BETWEEN, raters=blocks * groups, per_rater=per_rater, seed=seed)
    seen, block_of = assign_blocks(ones, design, SEAL)
    in_blocks = Counter[str]()
    assert len(seen) == design.raters
    for block in range(blocks):
        raters = list(seen)[block * groups : (block + 1) * groups]
        assert len({block_of[rater] for rater in raters}) == 1
        assert sorted({cell.variant for rater in raters for _, cell in seen[rater]}) == [f"s{place}" for place in range(groups)]
        assert all(len({cell for _, cell in seen[rater]}) == 1 for rater in raters)
        contexts = {tuple(unit.name for unit, _ in seen[rater]) for rater in raters}
        assert len(contexts) == 1 and len(raters) == groups
        (names,) = contexts
        assert len({name[:9] for name in names}) == len(names) == per_rater
        in_blocks.update(names)
    # One fewer somewhere and one more elsewhere would not be more even, unless the dialogue is in every block already.
    of_dialogue = Counter(name[:9] for name in in_blocks.elements())
    for less in (one.name for one in ones if of_dialogue[one.dialogue] < blocks):
        assert max(in_blocks.values()) <= in_blocks[less] + 1
    for of in {one.dialogue for one in ones}:
        shares = [in_blocks[one.name] for one in ones if one.dialogue == of]
        assert max(shares) - min(shares) <= 1
    assert (seen, block_of) == assign_blocks(ones, design, SEAL), "the same again"


def test_the_number_of_a_rater_tells_nothing_of_the_group() -> None:
    design = ReviewDesign(design=BETWEEN, raters=9, per_rater=3)
    firsts = Counter(first_group(replace(design, seed=seed)) for seed in range(300))
    # 100 each by chance, with a standard deviation of 8.2.
    assert all(abs(firsts[f"s{place}"] - 100) < 33 for place in range(3)), firsts


def first_group(design: ReviewDesign, seal: str = SEAL) -> str:
    return assign_blocks(units([1] * 3), design, seal)[0]["rater-01"][0][1].variant


def test_who_knows_the_settings_alone_cannot_work_out_the_group_of_a_number() -> None:
    design = ReviewDesign(design=BETWEEN, raters=9, per_rater=3)
    assert len({first_group(design, f"sha256:{seal}") for seal in range(20)}) == 3, "another release"
    assert len({first_group(replace(design, replies=f"sha256:{file}")) for file in range(20)}) == 3, "another file of replies"


@pytest.mark.parametrize(
    ("design", "groups"),
    [({"pairs": 4, "raters": 8}, PAIR_VARIANTS), ({"cells": 3, "raters": 8}, CELLS), ({"raters": 9}, tuple(sorted(SYSTEMS)))],
)
def test_each_rater_gets_texts_of_one_variant_or_system_alone(
    design: dict[str, Any], groups: tuple[str, ...], light: Path, tmp_path: Path
) -> None:
    replies = written(tmp_path / "replies.csv", rows_for(light)) if groups[0] in SYSTEMS else None
    asked = design_of({"design": BETWEEN, "per_rater": 3, **design}, replying=replies is not None)
    made = export_review(light, tmp_path / "review", asked, replies_file=replies)
    assert set(made.loads.values()) == {3}
    sees = defaultdict[str, set[tuple[str, int]]](set)
    for one in made.key["items"].values():
        sees[one["rater"]].add((one.get("system") or one["variant"], one["block"]))
    assert all(len(found) == 1 for found in sees.values())
    found = Counter(next(iter(one))[0] for one in sees.values())
    assert found == dict.fromkeys(groups, design["raters"] // len(groups))
    assert "per_item" not in made.key["settings"] and made.key["settings"]["per_rater"] == 3
    readme = (tmp_path / "review" / "README.md").read_text()
    assert "sees texts of only one" in readme and "\nempathy-eval study ../reviews.study.csv --baseline " in readme
    sent = b"".join(path.read_bytes() for path in (tmp_path / "review" / "raters").rglob("*") if path.suffix in (".csv", ".json"))
    assert not [name for name in (*groups, '"block"', "between") if name.encode() in sent]


def test_blocks_take_no_more_contexts_than_they_hold_flagged_first_and_of_as_many_dialogues_as_can_be(tmp_path: Path) -> None:
    flagged = {"001-00007-t01", "001-00011-t01"}
    folder = many(tmp_path, {1: 20, 2: 10}, flagged, turns=4)
    drawn = draw_units(folder, ReviewDesign(design=BETWEEN, dialogues=0, raters=6))
    names = [unit.name for unit in drawn.units]
    assert len(names) == 30 == len({name[:9] for name in names}) and flagged <= set(names) and drawn.notes == ()
    more = draw_units(folder, ReviewDesign(design=BETWEEN, dialogues=0, raters=20, pairs=60)).units
    assert len(more) == 60 and {unit.dialogue for unit in more} == {name[:9] for name in names}
    few = draw_units(folder, ReviewDesign(design=BETWEEN, dialogues=0, raters=20, pairs=12)).units
    assert len(few) == len({unit.dialogue for unit in few}) == 12


def test_the_same_contexts_give_the_same_blocks_so_that_another_system_can_be_added_later(light: Path, tmp_path: Path) -> None:
    def contexts(systems: list[str], folder: str) -> set[tuple[str, str]]:
        replies = written(tmp_path / f"{folder}.csv", rows_for(light, systems))
        design = ReviewDesign(design=BETWEEN, dialogues=0, raters=4 * len(systems), per_rater=3)
        items = export_review(light, tmp_path / folder, design, replies_file=replies).key["items"].values()
        return {(one["block"], one["pair_id"]) for one in items}

    assert contexts(["one", "two"], "first") == contexts(["new"], "later")


def test_what_cannot_be_had_between_raters_is_reported_at_once(light: Path, tmp_path: Path) -> None:
    odd = ReviewDesign(design=BETWEEN, dialogues=4, rejected=1, planted=2, crossed=3, cells=5, per_rater=0, raters=7)
    with pytest.raises(InputError) as caught:
        export_review(light, tmp_path / "review", odd)
    said = str(caught.value)
    for name, value in (("dialogues", 4), ("rejected", 1), ("planted", 2), ("crossed", 3)):
        assert f'--{name}: "{value}" is not possible with --design between' in said
    assert "--cells: rates the four cells of the release, and sets the number of contexts" in said
    assert '--per-rater: "0" is too few' in said
    assert "--raters: 7 cannot be divided equally among 4 groups" in said and "give --raters 4 or 8" in said
    for change, what in (
        ({"per_item": 2}, r"--per-item: is of the design within\n  Fix: leave it out, or give --per-rater"),
        ({"design": "beside"}, '--design: "beside" is not known\n  Fix: use within or between'),
        (
            {"per_rater": 4},
            r"a block needs contexts of 4 dialogues, but the 16 contexts are of 3\n  Fix: give --per-rater 3 or less",
        ),
        ({"raters": 1}, "--raters: 1 cannot be divided equally among 2 groups.*\n  Fix: give --raters 2"),
    ):
        with pytest.raises(InputError, match=what):
            export_review(light, tmp_path / "review", design_of({"design": BETWEEN, "raters": 8, **change}))
    with pytest.raises(InputError, match="--per-rater: is of the design between"):
        design_of({"per_rater": 3})
    assert not (tmp_path / "review").exists()


def back(light: Path, folder: Path, seed: int, record: Path) -> dict[str, Any]:
    made = export_review(light, folder, ReviewDesign(**{**DESIGN.__dict__, "seed": seed}))
    files = [path for rater in made.loads for path in fill(folder, rater, "csv", kind_and_cold, folder.with_name(f"back-{seed}"))]
    return import_reviews(light, files, folder / "key.json", record).record


def test_what_comes_back_is_a_table_for_a_study_with_blocks_and_scenarios(
    light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = back(light, tmp_path / "review", 0, tmp_path / "reviews.json")
    with (tmp_path / "reviews.study.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["item", "group", "rater", "criterion", "rating", "block", "stratum"]
    key = key_of(tmp_path / "review")["items"].values()
    review = key_of(tmp_path / "review")["review"][3:11]
    assert {(row["item"], row["group"], row["rater"], row["block"]) for row in rows} == {
        (one["pair_id"], one["variant"], f"{one['rater']}@{review}", one["block"]) for one in key
    }
    assert len(rows) == 8 * 3 * 3 and {row["stratum"] for row in rows} == {"3", "7", "17"}
    assert all(row["item"].startswith(f"{int(row['stratum']):03d}-") for row in rows)
    warm = {row["rating"] for row in rows if row["criterion"] == "empathy" and row["group"] == "empathetic"}
    assert warm == {"3"}
    assert "study" in tables_of(record)
    command = ["review", "import", str(light), *map(str, (tmp_path / "back-0").iterdir())]
    assert main([*command, "--key", str(tmp_path / "review" / "key.json"), "--reviews", str(tmp_path / "reviews.json"), "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["by_group"]
    assert [(one["group"], one["design"], one["ratings"], one["raters"]) for one in groups["groups"]] == [
        (name, "between", 12, 4) for name in PAIR_VARIANTS
    ]
    assert groups["differences"] == [], "nobody rated both"


def test_a_table_that_cannot_be_written_stops_an_import_before_anything_is(light: Path, tmp_path: Path) -> None:
    (tmp_path / "reviews.study.csv").mkdir()
    with pytest.raises(InputError, match=r"reviews\.study\.csv: is a folder, but a file is to be written here"):
        back(light, tmp_path / "review", 0, tmp_path / "reviews.json")
    assert not [path for path in tmp_path.glob("reviews.*") if path.is_file()]


def test_ratings_by_raters_who_saw_one_variant_alone_are_in_no_mean_beside_the_papers(light: Path, tmp_path: Path) -> None:
    made = export_review(light, tmp_path / "plain", ReviewDesign(pairs=4, dialogues=0, raters=6))
    files = [path for rater in made.loads for path in fill(tmp_path / "plain", rater, "page", kind_and_cold, tmp_path / "plainly")]
    import_reviews(light, files, tmp_path / "plain" / "key.json", tmp_path / "reviews.json")
    within = review_facts(tmp_path / "reviews.json", {}, 10, 0)
    back(light, tmp_path / "between", 0, tmp_path / "reviews.json")
    both = review_facts(tmp_path / "reviews.json", {}, 10, 0)
    assert both["ratings"] == within["ratings"] and both["kappa"] == within["kappa"]
    assert "alone" not in within and both["alone"] == {"raters": 8, "judgements": 24}
    said = environment(data_folder("release")).get_template("card/card_reviews.md.j2").render(facts={"reviews": both})
    assert "24 ratings are by 8 raters who saw only one variant. They are not included in any mean or κ here." in said


def test_raters_are_told_that_they_decide_only_where_they_do(light: Path, tmp_path: Path) -> None:
    export_review(light, tmp_path / "within", ReviewDesign(pairs=4, dialogues=0, raters=6))
    export_review(light, tmp_path / "between", replace(DESIGN, pack=True))
    assert "\nempathy-eval study ../reviews.study.csv --baseline apathetic " in (tmp_path / "between" / "CHECKLIST.md").read_text()
    replies = written(tmp_path / "replies.csv", rows_for(light))
    export_review(light, tmp_path / "replies", ReviewDesign(pairs=4, dialogues=0, raters=9), replies_file=replies)
    for folder, deciding in (("within", True), ("between", False), ("replies", False)):
        for name in ("guidance.md", "review.html"):
            said = (tmp_path / folder / "raters" / "rater-01" / name).read_text(encoding="utf-8")
            assert ("Your judgements decide what stays" in said) == deciding != ("Your judgements show how replies come across" in said)


def test_intervals_of_raters_of_one_group_hold_the_mean_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)

    def drawn(raters: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        severity = rng.normal(0, 0.5, raters)[:, None]
        return np.asarray(np.clip(np.round(2 + severity + rng.normal(0, 0.6, (raters, 10))), 1, 3))

    truth, held = float(drawn(100_000).mean()), 0
    for _ in range(600):
        found = mean_by_rater([(f"rater-{rater}", value) for rater, some in enumerate(drawn(6)) for value in some])
        held += found["low"] <= truth <= found["high"]
    # By contexts 66 % did. Four standard deviations of a share of .95 among 600 are 3.6 points.
    assert 0.914 < held / 600 < 0.986
    assert mean_by_rater([("a", 2), ("a", 3)]) == {"mean": 2.5, "low": None, "high": None}


def test_raters_of_two_reviews_are_distinguished_and_blocks_are_not(light: Path, tmp_path: Path) -> None:
    back(light, tmp_path / "one", 0, tmp_path / "reviews.json")
    rows = list(study_rows(back(light, tmp_path / "two", 1, tmp_path / "reviews.json")))
    assert len({row["rater"] for row in rows}) == 16 and all("@" in row["rater"] for row in rows)
    assert len({(row["rater"], row["item"], row["criterion"]) for row in rows}) == len(rows) == 16 * 3 * len(CRITERIA)
    contexts = defaultdict[str, set[str]](set)
    for row in rows:
        contexts[row["block"]].add(row["item"])
    assert all(len(one) == 3 for one in contexts.values()), "a block has the same contexts everywhere"


def test_a_design_within_raters_has_the_settings_and_items_of_before(light: Path, tmp_path: Path) -> None:
    made = export_review(light, tmp_path / "review", ReviewDesign(pairs=4, dialogues=0, raters=6))
    assert list(made.key["settings"]) == ["pairs", "dialogues", "raters", "per_item", "cells", "rejected", "planted", "seed"]
    assert all("block" not in one for one in made.key["items"].values())
    assert set(column(light, "pairs", "pair_id")) >= {one["pair_id"] for one in made.key["items"].values()}
