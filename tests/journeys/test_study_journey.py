"""The whole way of a study: replies of three systems sent out between raters, rated by people of known severity, taken back, reckoned."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.cli import main

from tests.doubles.raters import FORMS, fill, items_of, key_of, of_severity
from tests.doubles.replies import SYSTEMS, rows_for, written

# How many of ten replies of each system a rater of no severity finds good; of the last one later, in a review of its own.
GOOD = dict(zip((*SYSTEMS, "Dora"), (3, 4, 6, 5), strict=True))
BASELINE, LATER = SYSTEMS[0], "Dora"
BLOCKS = 6


def rated(release: Path, folder: Path, systems: list[str]) -> tuple[Path, dict[str, Counter[int]], dict[str, set[str]]]:
    """The table of a review of these systems, what their raters meant by group, and the contexts of each block."""
    folder.mkdir()
    replies = written(folder / "replies.csv", rows_for(release, systems))
    raters = ["--raters", str(BLOCKS * len(systems))]
    assert (
        main(["review", "export", str(release), "--out", str(folder / "out"), "--replies", str(replies), "--design", "between", *raters])
        == 0
    )
    key = key_of(folder / "out")
    said = of_severity(key, GOOD, seed=1)

    def judge(code: str, entry: dict[str, Any]) -> dict[str, Any]:
        return {"coherence": 3, "helpfulness": 2, "empathy": said[code]}

    names = sorted({entry["rater"] for entry in key["items"].values()})
    files = [path for at, rater in enumerate(names) for path in fill(folder / "out", rater, FORMS[at % 4], judge, folder / "back")]
    record = ["--key", str(folder / "out" / "key.json"), "--reviews", str(folder / "reviews.json")]
    assert main(["review", "import", str(release), *map(str, files), *record]) == 0
    assert {len(items_of(key, rater)) for rater in names} == {10}
    meant, blocks = defaultdict[str, Counter[int]](Counter), defaultdict[str, set[str]](set)
    for code, entry in key["items"].items():
        meant[entry["system"]][said[code]] += 1
        blocks[entry["block"]].add(entry["pair_id"])
    return folder / "reviews.study.csv", meant, blocks


def test_a_study_finds_what_its_raters_were_made_to_do(seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, meant, blocks = rated(seeds, tmp_path / "first", list(SYSTEMS))
    more, later, same = rated(seeds, tmp_path / "later", [LATER])
    assert blocks == same and all(len(one) == 10 for one in blocks.values()), "who adds a system has the same contexts in the same blocks"
    assert [row.split(",")[1] for row in table.read_text().splitlines()[1:]].count(BASELINE) == BLOCKS * 10 * 3

    for added, truth in (([], meant), (["--add", str(more)], meant | later)):
        capsys.readouterr()
        options = ["--baseline", BASELINE, "--criterion", "empathy", "--labels", "Bad,Okay,Good", "--permutations", "200", "--json"]
        assert main(["study", str(table), *options, *added]) == 0
        found = json.loads(capsys.readouterr().out)
        names = [one["name"] for one in found["groups"]]
        assert set(names) == truth.keys() and [one["name"] for one in found["groups"] if one["added"]] == ([LATER] if added else [])
        assert {one["raters"] for one in found["groups"]} == {BLOCKS}
        counts = {name: dict(zip((1, 2, 3), row, strict=True)) for name, row in zip(names, found["whole"]["counts"], strict=True)}
        assert counts == {name: {value: truth[name][value] for value in (1, 2, 3)} for name in names}
        assert not [note for note in found["notes"] if "no block" in note], "raters are exchanged within their blocks"
        gains = {one["group"]: one for one in found["whole"]["gains"] if one["category"] == "Good"}
        for name in names[1:]:
            share, of_baseline = (truth[one][3] / (10 * BLOCKS) for one in (name, BASELINE))
            assert (gains[name]["share"], gains[name]["of_baseline_share"]) == pytest.approx((share, of_baseline))
            assert gains[name]["gain"] == pytest.approx(100 * (share / of_baseline - 1))
            # What raters of no severity would have made of it.
            assert gains[name]["low"] < 100 * (GOOD[name] / GOOD[BASELINE] - 1) < gains[name]["high"]
    # The page of the study goes here.
