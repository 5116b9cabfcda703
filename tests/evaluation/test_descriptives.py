"""What a report tells of the texts: counted by hand on small data, and true of a release."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.dataset import SPLITS
from empathy_eval.evaluation.corpus.descriptives import changes, count_manners, examples, length_by_part, lengths, strategy_use
from empathy_eval.evaluation.corpus.pairs import Corpus
from empathy_eval.releases.assemble.write import Released


def corpus(**texts: list[str]) -> Corpus:
    references = texts.pop("reference")
    return Corpus([f"p{place}" for place in range(len(references))], [], [], references, texts)


def test_lengths_are_counted_in_bins() -> None:
    told = lengths(corpus(reference=["one", "a b c d e"], apathetic=["a b c d", "a b c d e"], empathetic=["x", "x"]), corpus(reference=[]))
    found = {one["variant"]: one for one in told["variants"]}
    assert list(found) == ["reference", "apathetic", "empathetic"]
    assert (found["reference"]["counts"], found["reference"]["mean"], found["reference"]["median"]) == ([1, 1], 3.0, 3.0)
    assert (found["apathetic"]["low"], found["apathetic"]["high"], found["apathetic"]["peak"]) == (4, 5, 0)
    assert (found["empathetic"]["counts"], told["bin"]) == ([2], 5)


def test_manners_and_devices_are_counted_near_and_far() -> None:
    near = {"apathetic_manner": ["hurrying", "made by rules", "hurrying"], "empathetic_device": ["small step", "small step", "kept detail"]}
    pairs, controls = corpus(reference=["", "", ""]), corpus(reference=[""])
    told = count_manners(replace(pairs, groups=near), replace(controls, groups={"far_apathetic_manner": ["advising"]}))
    assert told["manners"] == [
        {"name": "hurrying", "near": 2, "far": 0},
        {"name": "advising", "near": 0, "far": 1},
        {"name": "made by rules", "near": 1, "far": 0},
    ]
    assert told["devices"] == [{"name": "kept detail", "texts": 1}, {"name": "small step", "texts": 2}]
    assert (
        count_manners(pairs, controls) == {} == count_manners(replace(pairs, groups={"apathetic_manner": ["made by rules"] * 3}), controls)
    )


def write(folder: Path, config: str, rows: list[dict[str, object]]) -> None:
    (folder / "data" / config).mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    for split in SPLITS:
        pq.write_table(table if split == "train" else table.slice(0, 0), folder / "data" / config / f"{split}.parquet")


def test_the_course_of_a_dialogue_is_cut_by_its_helper_turns(tmp_path: Path) -> None:
    seeker = {"role": "seeker", "strategy": None, "phase": None}
    helper = [
        {"role": "helper", "strategy": name, "phase": phase}
        for name, phase in (("Clarification", "exploration"), ("Offer Hope", "comforting"), ("Suggest Options", "action"))
    ]
    write(tmp_path, "dialogues", [{"turns": [seeker, helper[0], seeker, helper[1], helper[2]]}, {"turns": [seeker, helper[0]]}])
    told = strategy_use(tmp_path)
    # Of three turns the middles lie at 1/6, 3/6 and 5/6; of one, at 1/2.
    assert {one["name"]: [part for part, count in enumerate(one["counts"]) for _ in range(count)] for one in told["phases"]} == {
        "exploration": [1, 5], "comforting": [5], "action": [8],
    }  # fmt: skip
    assert [(one["name"], one["phase"]) for one in told["strategies"]] == [
        ("Clarification", "exploration"), ("Offer Hope", "comforting"), ("Suggest Options", "action"),
    ]  # fmt: skip


def test_words_and_questions_of_each_variant_are_means_over_tenths_of_a_dialogue(tmp_path: Path) -> None:
    seeker, helper = ({"role": role, "strategy": None, "phase": None} for role in ("seeker", "helper"))
    dialogues = {"001-seed": [seeker, helper, seeker, helper], "002-seed": [seeker, helper], "003-seed": [seeker, helper]}
    write(tmp_path, "dialogues", [{"dialogue_id": name, "turns": turns} for name, turns in dialogues.items()])
    write(tmp_path, "pairs", [{"empathetic_strategy": name} for name in ("Affirmation", "Offer Hope", "Offer Hope", "Clarification")])
    pairs = replace(
        corpus(
            reference=["one two?", "a b c", "x? y??", "p q r s"], apathetic=["one", "a?", "x", "p"], empathetic=["e f", "g", "h", "i j k?"]
        ),
        pair_ids=["001-seed-t01", "001-seed-t03", "002-seed-t01", "003-seed-t01"],
        groups={"strategy": ["Clarification", "Offer Hope", "Affirmation", "Affirmation"]},
    )
    told = length_by_part(pairs, corpus(reference=[]), tmp_path)
    found = {one["variant"]: one for one in told["variants"]}
    assert list(found) == ["reference", "apathetic", "empathetic"]
    # Of two helper turns the middles lie at 1/4 and 3/4, of one at 1/2: that tenth has two dialogues.
    at = [place for place, one in enumerate(found["reference"]["texts"]) if one]
    assert at == [2, 5, 7]
    assert [found["reference"]["texts"][place] for place in at] == [1, 2, 1]
    assert [found["reference"]["words"][place] for place in at] == [2, 3, 3]
    assert [found["reference"]["questions"][place] for place in at] == [1, 1, 0]
    assert [found["apathetic"]["questions"][place] for place in at] == [0, 0, 1]
    assert [found["empathetic"]["words"][place] for place in at] == [2, 2, 1] and found["empathetic"]["words"][0] is None
    planned = {one["name"]: ([*map(bool, one["near"])].count(True), sum(one["near"]), sum(one["far"])) for one in told["planned"]}
    assert planned == {"Clarification": (1, 1, 1), "Affirmation": (1, 2, 1), "Offer Hope": (1, 1, 2)}
    assert told["planned"][0]["near"][2] == 1 and told["planned"][0]["far"][5] == 1


def test_a_pair_of_no_helper_turn_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "dialogues", [{"dialogue_id": "001-seed", "turns": [{"role": "seeker", "strategy": None, "phase": None}]}])
    pairs = replace(corpus(reference=["one"], apathetic=["one"], empathetic=["one"]), pair_ids=["001-seed-t00"])
    with pytest.raises(InputError, match='"001-seed-t00" is not a helper turn of a dialogue'):
        length_by_part(pairs, corpus(reference=[]), tmp_path)


def test_changes_are_the_fewest_words() -> None:
    assert changes("I am so sorry to hear it", "I note that to hear all") == [
        ["same", "I"], ["removed", "am so sorry"], ["added", "note that"], ["same", "to hear"], ["removed", "it"], ["added", "all"],
    ]  # fmt: skip
    assert changes("same words", "same words") == [["same", "same words"]]
    assert changes("", "new") == [["added", "new"]]


def test_examples_have_four_cells_and_never_a_flag(released: tuple[Path, Released]) -> None:
    rows = {
        row["pair_id"]: row for path in (released[0] / "data" / "controls").glob("*.parquet") for row in pq.read_table(path).to_pylist()
    }
    dialogues = {
        row["dialogue_id"]: row
        for path in (released[0] / "data" / "dialogues").glob("*.parquet")
        for row in pq.read_table(path).to_pylist()
    }
    calm = sorted(
        (row["apathetic_edit_ratio"], row["pair_id"])
        for row in rows.values()
        if not row["flags"] and not dialogues[row["dialogue_id"]]["flags"]
    )
    found = examples(released[0])
    assert [one["pair_id"] for one in found] == [calm[len(calm) * quarter // 4][1] for quarter in (1, 2, 3)]
    for one in found:
        assert set(one["variants"]) == {"near_empathetic", "apathetic", "empathetic", "far_apathetic"}
        assert one["variants"]["apathetic"]["edit_ratio"] == round(rows[one["pair_id"]]["apathetic_edit_ratio"], 4)


def test_where_every_pair_has_a_flag_no_example_is_shown(released: tuple[Path, Released], tmp_path: Path) -> None:
    for config in ("controls", "pairs", "dialogues"):
        for split in SPLITS:
            table = pq.read_table(released[0] / "data" / config / f"{split}.parquet")
            flags = pa.array([["crisis"]] * len(table), table.schema.field("flags").type)
            path = tmp_path / "data" / config / f"{split}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table.set_column(table.schema.get_field_index("flags"), "flags", flags), path)
    assert examples(tmp_path) == []


def test_what_was_left_out_is_that_of_the_manifest(released: tuple[Path, Released]) -> None:
    manifest = json.loads((released[0] / "manifest.json").read_text())
    told = json.loads((released[0] / "report" / "tables.json").read_text())["making"]
    assert told["planned"] == manifest["summary"]["planned"] and told["samples_refused"] == manifest["summary"]["samples_refused"]
    assert told["configuration"] == manifest["configuration"] and told["models"] == list(manifest["summary"]["usage"])
