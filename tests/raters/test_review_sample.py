"""What is reviewed and by whom: samples, assignment and blindness."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import column
from empathy_eval.raters.review.answers import read_rows
from empathy_eval.raters.review.assignment import assign
from empathy_eval.raters.review.export import design_of, draw_units, export_review, stratified
from empathy_eval.raters.review.sample import Cell, ReviewDesign, Unit, draw_sample
from empathy_eval.raters.review.sheets import item_code
from empathy_eval.releases.assemble.write import Released
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.doubles.raters import items_of, key_of


def units(pairs: int, cells: int = 2, dialogues: int = 0) -> list[Unit]:
    variants = tuple(Cell(name, samples=("pairs",)) for name in (*PAIR_VARIANTS, *CONTROLS)[:cells])
    return [
        *(Unit(f"001-{n:05d}-t01", "variant", variants) for n in range(pairs)),
        *(Unit(f"001-{n:05d}", "dialogue") for n in range(dialogues)),
    ]


@pytest.fixture(scope="module")
def drawn(released: tuple[Path, Released]) -> Path:
    return released[0]


def many(folder: Path, pairs: dict[int, int], flagged: set[str], turns: int = 1) -> Path:
    """The parquet files of a release that has so many dialogues by scenario, of so many pairs each: what a sample is drawn from."""
    rows = [
        {"pair_id": name, "dialogue_id": name[:9], "scenario_id": scenario, "flags": ["crisis"] if name in flagged else []}
        for scenario, count in pairs.items()
        for name in (f"{scenario:03d}-{n:05d}-t{2 * turn + 1:02d}" for n in range(count) for turn in range(turns))
    ]
    shape = pa.schema(
        [("pair_id", pa.string()), ("dialogue_id", pa.string()), ("scenario_id", pa.int64()), ("flags", pa.list_(pa.string()))]
    )
    for config in ("pairs", "dialogues", "controls"):
        for split in ("train", "validation", "test"):
            path = folder / "data" / config / f"{split}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            some = {row["dialogue_id"]: row for row in rows}.values() if config == "dialogues" else rows
            pq.write_table(pa.Table.from_pylist([*some] if split == "train" else [], schema=shape), path)
    return folder


def test_each_scenario_has_its_share_by_largest_remainder_and_flagged_pairs_come_first(tmp_path: Path) -> None:
    flagged = {"001-00007-t01", "001-00011-t01", "002-00003-t01"}
    # 10 of 60 + 30 + 10 pairs: shares 6, 3, 1.
    made = draw_sample(many(tmp_path, {1: 60, 2: 30, 3: 10}, flagged), ReviewDesign(pairs=10, dialogues=0))
    names = {unit.name for unit in made.units}
    assert Counter(name[:3] for name in names) == {"001": 6, "002": 3, "003": 1}
    assert flagged <= names
    assert made.notes == ()


def test_another_seed_draws_another_sample_and_the_same_seed_the_same(tmp_path: Path) -> None:
    folder = many(tmp_path, {1: 100}, set())
    first, again, other = (
        {unit.name for unit in draw_sample(folder, ReviewDesign(pairs=10, dialogues=0, seed=seed)).units} for seed in (1, 1, 2)
    )
    assert first == again != other


def test_where_there_are_fewer_than_asked_for_all_are_taken_and_reported(drawn: Path) -> None:
    made = draw_sample(drawn, ReviewDesign(pairs=500, dialogues=100))
    assert made.count("dialogue") == 3
    assert "100 dialogues were requested, but there are only 3: all are taken" in made.notes


def test_too_few_raters_are_an_error_that_says_how_many_are_needed() -> None:
    with pytest.raises(InputError, match="give --raters 12 or more"):
        assign(units(1, cells=4), ReviewDesign(raters=10, per_item=3))
    with pytest.raises(InputError, match=r"2 texts, and is reviewed as a whole.*\n.*give --raters 9 or more.* or --dialogues 0"):
        assign(units(1, dialogues=1), ReviewDesign(raters=8, per_item=3))
    assert assign(units(1, dialogues=1), ReviewDesign(raters=9, per_item=3))


@given(st.lists(st.integers(0, 4), max_size=8), st.sets(st.integers(0, 9)), st.integers(1, 3), st.integers(0, 5), st.integers(0, 9))
def test_nobody_sees_two_items_of_a_dialogue_and_no_item_that_could_move_would_make_loads_more_even(
    pairs: list[int], reviewed: set[int], per_item: int, spare: int, seed: int
) -> None:
    ones = [
        Unit(f"001-{n:05d}-t{turn:02d}", "variant", units(1)[0].cells) for n, count in enumerate(pairs) for turn in range(1, 2 * count, 2)
    ]
    ones += [Unit(f"001-{n:05d}", "dialogue") for n in sorted(reviewed)]
    most = max((2 * count + (n in reviewed) for n, count in enumerate(pairs)), default=0)
    design = ReviewDesign(raters=max(1, most) * per_item + spare, per_item=per_item, seed=seed)
    seen = assign(ones, design)
    votes = Counter((unit.name, cell.name) for items in seen.values() for unit, cell in items)
    assert votes == {(unit.name, cell.name): per_item for unit in ones for cell in unit.cells}
    sees = {rater: {unit.name: unit for unit, _ in items} for rater, items in seen.items()}
    of = {rater: [unit.dialogue for unit, _ in items] for rater, items in seen.items()}
    assert all(len(set(dialogues)) == len(dialogues) for dialogues in of.values()), "two items of a dialogue"
    for more, less in ((a, b) for a in sees for b in sees if len(sees[a]) > len(sees[b]) + 1):
        assert set(of[more]) <= set(of[less])
    assert seen == assign(ones, design), "the same again"


def test_loads_of_a_review_of_the_default_size_differ_by_at_most_one() -> None:
    cells = units(1)[0].cells
    # 500 pairs and 100 dialogues of 560 dialogues: forty of the dialogues are reviewed whole and have a pair.
    ones = [Unit(f"001-{n:05d}-t01", "variant", cells) for n in range(500)]
    ones += [Unit(f"001-{n:05d}", "dialogue") for n in range(460, 560)]
    loads = [len(items) for items in assign(ones, ReviewDesign()).values()]
    assert (min(loads), max(loads)) == (330, 330)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_of_any_release_and_design_a_rater_sees_one_item_of_a_dialogue_at_most(data: st.DataObject, tmp_path: Path) -> None:
    scenarios = data.draw(st.dictionaries(st.integers(1, 3), st.integers(1, 4), min_size=1))
    folder = many(tmp_path, scenarios, set(), turns=data.draw(st.integers(1, 4)))
    per_item, spare = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 12))
    counts = st.integers(0, 12)
    cells, texts = data.draw(counts), data.draw(st.integers(0, 4))
    design = ReviewDesign(
        pairs=data.draw(counts), dialogues=data.draw(counts), cells=cells, raters=(5 if cells else 3) * per_item + spare,
        per_item=per_item, seed=data.draw(st.integers(0, 99)), texts_per_turn=texts, pack=data.draw(st.booleans()),
    )  # fmt: skip
    drawn = draw_units(folder, design)
    seen = assign(drawn.units, design)
    for items in seen.values():
        dialogues = [unit.dialogue for unit, _ in items]
        assert len(set(dialogues)) == len(dialogues)
    votes = Counter((unit.name, cell.name) for items in seen.values() for unit, cell in items)
    assert votes == {(unit.name, cell.name): per_item for unit in drawn.units for cell in unit.cells}
    assert not texts or all(len(unit.cells) <= texts for unit in drawn.units)
    assert seen == assign(draw_units(folder, design).units, design), "the same again"


def test_a_turn_more_of_a_dialogue_is_drawn_for_as_many_raters_more_as_it_takes(tmp_path: Path) -> None:
    folder = many(tmp_path, {1: 5}, {"001-00002-t03"}, turns=3)
    for raters, turns in ((9, 5), (14, 5), (15, 10), (21, 15), (99, 15)):
        made = draw_sample(folder, ReviewDesign(raters=raters))
        assert made.count("variant") == turns
        assert "001-00002-t03" in {unit.name for unit in made.units}, "flagged ones first"
    assert "10 of 15 pairs are taken: a rater sees one turn of a dialogue at most" in draw_sample(folder, ReviewDesign(raters=15)).notes


def test_more_turns_than_raters_may_see_are_an_error_with_the_numbers_where_they_were_asked_for(tmp_path: Path) -> None:
    folder = many(tmp_path, {1: 5}, set(), turns=3)
    with pytest.raises(InputError) as caught:
        draw_sample(folder, design_of({"pairs": 12}))
    said = str(caught.value)
    assert '--pairs: "12" is too many: a rater sees one turn of a dialogue at most, so at most 5 turns of 5 dialogues' in said
    assert "10 raters together can be given 5 of the 15 turns" in said
    assert "give --pairs 5 or less, more --raters, a smaller --per-item, or --texts-per-turn 1, or leave whole dialogues" in said
    assert draw_sample(folder, design_of({"pairs": 5})).count("variant") == 5
    assert draw_sample(folder, design_of({"pairs": 12, "raters": 21})).count("variant") == 12
    assert (
        draw_sample(folder, design_of({"pairs": 99, "raters": 21})).notes[-1]
        == "99 pairs were requested, but there are only 15: all are taken"
    )
    with pytest.raises(InputError, match=r'--cells: "6" is too many.*can be given 5 of the 15 turns'):
        draw_sample(folder, design_of({"cells": 6, "raters": 15}))


def test_two_raters_rate_the_same_texts_one_of_each_turn(tmp_path: Path) -> None:
    folder = many(tmp_path, {1: 30, 2: 10}, set(), turns=2)
    design = design_of({"pairs": 40, "dialogues": 0, "raters": 2, "per_item": 2, "texts_per_turn": 1})
    drawn = draw_units(folder, design)
    seen = {rater: sorted((unit.name, cell.name) for unit, cell in items) for rater, items in assign(drawn.units, design).items()}
    assert seen["rater-01"] == seen["rater-02"] and len({name.rpartition("-")[0] for name, _ in seen["rater-01"]}) == 40
    assert Counter(name for _, name in seen["rater-01"]) == {"apathetic": 20, "empathetic": 20}
    with pytest.raises(InputError, match="give --raters 4 or more, a smaller --per-item, --texts-per-turn 1, or"):
        assign(draw_units(folder, replace(design, texts_per_turn=0)).units, replace(design, texts_per_turn=0))


@given(st.integers(0, 30), st.integers(0, 10), st.integers(2, 4), st.integers(1, 3), st.integers(0, 4), st.integers(0, 9))
def test_every_text_gets_its_raters_none_sees_two_and_loads_are_even(
    pairs: int, dialogues: int, cells: int, per_item: int, spare: int, seed: int
) -> None:
    design = ReviewDesign(raters=(cells + 1) * per_item + spare, per_item=per_item, seed=seed)
    seen = assign(units(pairs, cells, dialogues), design)
    votes = Counter((unit.name, cell.name) for ones in seen.values() for unit, cell in ones)
    assert len(votes) == pairs * cells + dialogues
    assert set(votes.values()) <= {per_item}
    assert all(len({unit.name for unit, _ in ones}) == len(ones) for ones in seen.values())
    loads = [len(ones) for ones in seen.values()]
    assert max(loads) - min(loads) <= 1


def test_each_rater_gets_about_half_of_each_variant() -> None:
    for ones in assign(units(500), ReviewDesign()).values():
        counts = Counter(cell.name for _, cell in ones)
        assert abs(counts["apathetic"] - counts["empathetic"]) <= 4
        assert sum(counts.values()) == 300


def test_a_code_is_twelve_hex_digits_that_no_spreadsheet_takes_for_a_number_and_differs_by_rater_and_release() -> None:
    codes = {item_code(seal, 0, rater, "017-seed-t03:apathetic") for seal in "ab" for rater in ("rater-01", "rater-02")}
    assert len(codes) == 4
    assert all(len(code) == 12 and code[0] in "abcdef" and int(code, 16) for code in codes)


@pytest.fixture(scope="module")
def review(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blind") / "review"
    export_review(drawn, folder, ReviewDesign(raters=27, cells=6))
    return folder


def test_nothing_in_a_raters_files_reveals_a_variant_or_an_id(review: Path) -> None:
    key = key_of(review)
    entries = key["items"].values()
    ids = {entry.get("pair_id") or entry["dialogue_id"] for entry in entries} | {entry.get("dialogue_id", "") for entry in entries}
    names = {*PAIR_VARIANTS, *CONTROLS, "near-empathetic", "far-apathetic", "variant_", "pair_id", "dialogue_id"}
    telling = (names | ids | {key["release"]["seal"]}) - {""}
    for rater in sorted((review / "raters").iterdir()):
        texts = {path.relative_to(rater).as_posix(): path.read_bytes() for path in rater.rglob("*") if path.is_file()}
        texts |= unpacked(rater / f"{rater.name}.xlsx")
        others = {code for code, entry in key["items"].items() if entry["rater"] != rater.name}
        for name, data in texts.items():
            # Page and guidance teach what empathy is; the data a rater gets must not use the words at all.
            words = telling - set(PAIR_VARIANTS) if name in ("review.html", "guidance.md") else telling
            assert not [word for word in words | others if word.encode() in data], (rater.name, name)


def unpacked(path: Path) -> dict[str, bytes]:
    import zipfile

    with zipfile.ZipFile(path) as book:
        return {f"{path.name}/{name}": book.read(name) for name in book.namelist()}


def rated(review: Path, rater: str) -> list[dict[str, Any]]:
    """What stands behind a rater's items, in the order they are shown."""
    key = key_of(review)
    shown = json.loads((review / "raters" / rater / "label-studio" / "replies" / "tasks.json").read_text())
    return [key["items"][task["data"]["item"]] for task in shown]


def test_the_order_of_items_tells_nothing_about_variants(tmp_path: Path, drawn: Path) -> None:
    folder = tmp_path / "review"
    export_review(drawn, folder, ReviewDesign(dialogues=0, raters=30))
    firsts, places = 0.0, defaultdict[str, list[float]](list)
    for number in range(1, 31):
        order = [entry["variant"] for entry in rated(folder, f"rater-{number:02d}")]
        firsts += order[0] == "apathetic"
        for place, variant in enumerate(order):
            places[variant].append(place / (len(order) - 1))
    # The mean of n draws among first, middle and last has the standard deviation sqrt(1 / 6 n): 3 of them leave 0.3 % to chance.
    for found in places.values():
        assert abs(sum(found) / len(found) - 0.5) < 3 * (1 / (6 * len(found))) ** 0.5
    assert 6 <= firsts <= 24


def test_no_rater_sees_two_texts_of_a_turn_in_the_files_that_are_sent(review: Path) -> None:
    for rater in (path.name for path in (review / "raters").iterdir()):
        turns = [entry["pair_id"] for entry in items_of(key_of(review), rater).values() if entry["kind"] == "variant"]
        assert len(set(turns)) == len(turns) > 0


def test_replies_come_before_dialogues_and_no_two_items_are_of_one_dialogue(review: Path) -> None:
    kinds = [row["kind"] for _, row in read_rows(review / "raters" / "rater-01" / "rater-01.csv")]
    assert kinds == sorted(kinds, key=lambda kind: kind != "variant")
    for rater in (path.name for path in (review / "raters").iterdir()):
        entries = items_of(key_of(review), rater).values()
        dialogues = [entry.get("dialogue_id") or entry["pair_id"].rpartition("-")[0] for entry in entries]
        assert len(set(dialogues)) == len(dialogues)


def test_a_turn_with_all_cells_is_rated_in_each_and_counts_for_both_samples(review: Path) -> None:
    entries = [entry for entry in key_of(review)["items"].values() if entry["kind"] == "variant"]
    cells = Counter(entry["variant"] for entry in entries if "cells" in entry["samples"])
    assert cells == dict.fromkeys((*PAIR_VARIANTS, *CONTROLS), 18)
    assert all(
        entry["samples"] == ["pairs", "cells"] for entry in entries if "cells" in entry["samples"] and entry["variant"] in PAIR_VARIANTS
    )


def with_candidates(release: Path, folder: Path, rows: list[dict[str, Any]]) -> Path:
    import shutil

    shutil.copytree(release, folder)
    shape = pa.schema(
        [
            ("pair_id", pa.string()),
            ("variant", pa.string()),
            ("attempt", pa.int64()),
            ("text", pa.string()),
            ("reasons", pa.list_(pa.string())),
        ]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema=shape), folder / "candidates.parquet")
    return folder


def test_rejected_texts_are_rated_beside_the_variant_that_was_taken(drawn: Path, tmp_path: Path) -> None:
    pair = pq.read_table(drawn / "data" / "pairs" / "train.parquet").to_pylist()[0]
    rejected = {"pair_id": pair["pair_id"], "variant": "apathetic", "attempt": 0, "text": "Quite another text.", "reasons": ["edit_ratio"]}
    rows = [rejected, {**rejected, "attempt": 1, "text": pair["apathetic"], "reasons": []}, {**rejected, "pair_id": "001-seed-t09"}]
    release = with_candidates(drawn, tmp_path / "r", rows)
    made = export_review(release, tmp_path / "review", ReviewDesign(pairs=0, dialogues=0, rejected=50))
    assert made.sample.notes == ("50 rejected were requested, but there are only 1: all are taken",)
    entries = list(made.key["items"].values())
    assert {entry["pair_id"] for entry in entries} == {pair["pair_id"]}
    assert Counter((entry["variant"], entry.get("attempt"), *entry.get("reasons", [])) for entry in entries) == {
        ("apathetic", None): 3,
        ("apathetic", 0, "edit_ratio"): 3,
    }
    sent = "".join(path.read_text() for path in (tmp_path / "review" / "raters").rglob("tasks.json"))
    assert sent.count("Quite another text.") == 3
    assert "edit_ratio" not in sent


@pytest.mark.parametrize("rows", [None, []])
def test_a_release_without_rejected_texts_says_so(rows: list[dict[str, Any]] | None, drawn: Path, tmp_path: Path) -> None:
    release = drawn if rows is None else with_candidates(drawn, tmp_path / "r", rows)
    with pytest.raises(InputError, match=r"candidates.parquet: (is not there|holds no rejected)"):
        draw_sample(release, ReviewDesign(rejected=5))


DAMAGED: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("manifest.json", lambda data: data[:100], r"manifest.json: is not JSON"),
    ("manifest.json", lambda data: b"7", r"manifest.json: 7 is not of type object"),
    ("manifest.json", lambda data: b"\xff", r"manifest.json: is not JSON"),
    ("data/pairs/test.parquet", lambda data: b"", r"test.parquet: cannot be read"),
    ("data/pairs/test.parquet", lambda data: data[:-9], r"test.parquet: cannot be read"),
    ("data/pairs/train.parquet", lambda data: data[:100] + bytes(500) + data[600:], r"train.parquet: cannot be read"),
    ("candidates.parquet", lambda data: b"PAR1", r"candidates.parquet: cannot be read"),
    ("candidates.parquet", lambda data: data.replace(b"attempt", b"attemqt"), r'candidates.parquet: misses the column "attempt"'),
]


@pytest.mark.parametrize(("name", "change", "said"), DAMAGED, ids=[f"{name}-{place}" for place, (name, *_) in enumerate(DAMAGED)])
def test_a_damaged_file_of_a_release_is_named(name: str, change: Callable[[bytes], bytes], said: str, drawn: Path, tmp_path: Path) -> None:
    release = with_candidates(drawn, tmp_path / "r", [])
    (release / name).write_bytes(change((release / name).read_bytes()))
    with pytest.raises(InputError, match=said):
        export_review(release, tmp_path / "review", ReviewDesign(pairs=2, dialogues=1, rejected=1, raters=9))
    assert not (tmp_path / "review").exists()


def test_two_exports_have_the_same_bytes(drawn: Path, review: Path, tmp_path: Path) -> None:
    export_review(drawn, tmp_path / "again", ReviewDesign(raters=27, cells=6))
    for path in review.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "again" / path.relative_to(review)).read_bytes(), path


def test_a_review_that_is_out_is_never_replaced_by_another(drawn: Path, review: Path) -> None:
    before = (review / "key.json").read_bytes()
    with pytest.raises(InputError, match="holds another review, whose key would be lost"):
        export_review(drawn, review, ReviewDesign(raters=27, cells=6, seed=1))
    assert (review / "key.json").read_bytes() == before


def test_a_second_export_keeps_what_came_back_in_the_meantime(drawn: Path, tmp_path: Path) -> None:
    out, design = tmp_path / "review", ReviewDesign(pairs=2, dialogues=1, raters=9)
    export_review(drawn, out, design)
    export_review(drawn, out, design)
    assert "--reviews ../reviews.json" in (out / "README.md").read_text()
    (out / "reviews.json").write_text("{}")
    with (out / "raters" / "rater-01" / "rater-01.csv").open("a") as sheet:
        sheet.write("filled in\r\n")
    with pytest.raises(InputError, match=r'does not write: "raters/rater-01/rater-01.csv", "reviews.json"\n.*move them away'):
        export_review(drawn, out, design)
    assert (out / "reviews.json").read_text() == "{}"
    assert (out / "raters" / "rater-01" / "rater-01.csv").read_bytes().endswith(b"filled in\r\n")
    assert [path.name for path in tmp_path.iterdir()] == ["review"]


@pytest.mark.parametrize(
    ("design", "said"),
    [
        (ReviewDesign(raters=0), '--raters: "0" is too few'),
        (ReviewDesign(pairs=-1), '--pairs: "-1" is negative'),
        (ReviewDesign(raters=10**12), '--raters: "1000000000000" is too many'),
        (ReviewDesign(pairs=0, dialogues=0), "gives nothing to review"),
        (ReviewDesign(texts_per_turn=1, rejected=1), r'--texts-per-turn: "1" is not possible: each rejected text'),
        (ReviewDesign(texts_per_turn=-1), '--texts-per-turn: "-1" is negative'),
    ],
)
def test_settings_that_make_no_review_are_refused_and_nothing_is_written(
    design: ReviewDesign, said: str, drawn: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        export_review(drawn, tmp_path / "out", design)
    assert not list(tmp_path.iterdir())


def test_a_sample_by_score_has_a_fifth_of_the_lowest_and_of_the_highest_quarter(light: Path, tmp_path: Path) -> None:
    names, scores = [str(one) for one in column(light, "pairs", "pair_id")], tmp_path / "scores.csv"
    # The mean of a pair is its place; the last pair has no score.
    both = (("apathetic", -1), ("empathetic", 1))
    rows = [f"{name},{variant},{place + off}\n" for place, name in enumerate(names[:-1]) for variant, off in both]
    scores.write_text("pair_id,variant,score\n" + "".join(rows))
    made = stratified(light, ReviewDesign(pairs=10, dialogues=0, raters=60, per_item=1), scores)
    assert Counter(made.strata.values()) == {0: 4, 1: 11, 2: 4} and len(names) == 20
    assert made.strata[names[0]] == 0 and made.strata[names[4]] == 1 and made.strata[names[18]] == 2
    found = draw_sample(light, made)
    assert Counter(made.strata[unit.name] for unit in found.units) == {0: 2, 1: 6, 2: 2}
    assert "1 pairs have no score to stratify by: none of them is taken" in found.notes
    # 19 pairs: of the outer quarters there are four each, and the middle gives the rest.
    assert Counter(made.strata[unit.name] for unit in draw_sample(light, replace(made, pairs=19)).units) == {0: 4, 1: 11, 2: 4}
    assert made.settings["stratify_by"] and "strata" not in made.settings and "stratify_by" not in ReviewDesign().settings
    export_review(light, tmp_path / "review", made)
    assert f'"stratify_by": "{made.stratify_by}"' in (tmp_path / "review" / "key.json").read_text()
    with pytest.raises(InputError, match="is for pairs, without cells"):
        stratified(light, ReviewDesign(cells=2), scores)
    with pytest.raises(InputError, match="999-00000-t01"):
        scores.write_text("pair_id,variant,score\n999-00000-t01,apathetic,1\n999-00000-t01,empathetic,1\n")
        stratified(light, ReviewDesign(), scores)


def test_replies_of_systems_are_not_drawn_by_a_score(light: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not for replies of systems"):
        ee.review_export(light, tmp_path / "out", replies=tmp_path / "a.csv", stratify_by=tmp_path / "b.csv")
