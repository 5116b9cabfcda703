"""The whole way of a study: replies of three systems sent out between raters, rated by people of known severity, taken back, reckoned."""

from __future__ import annotations

import json
import shlex
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.cli import main
from empathy_eval.reports.study_page import signed_percent

from tests.doubles.raters import FORMS, fill, items_of, key_of, of_severity
from tests.doubles.replies import rows_for, written
from tests.journeys.test_docs import blocks

# How many of ten replies of each system a rater of no severity finds good; those of the last come later, in a review of their own.
GOOD = {"plain": 3, "trained": 4, "Caesar 7B (v1.0)": 6, "late": 5}
BASELINE, *_, LATER = GOOD
BLOCKS = 6
Meant = dict[str, Counter[int]]


def as_written(lines: str, *more: str) -> None:
    """Runs commands of a document as a shell would."""
    for line in lines.strip().splitlines():
        _, *words = shlex.split(line)
        assert main([*(found for word in words for found in sorted(map(str, Path().glob(word))) or [word]), *more]) == 0, line


def rated(review: Path, answers: Path) -> tuple[Meant, dict[str, set[str]]]:
    """Fills in what was sent out, in all forms; returns what raters meant by group, and the contexts of each block."""
    key = key_of(review)
    said = of_severity(key, GOOD, seed=1)

    def judge(code: str, entry: dict[str, Any]) -> dict[str, Any]:
        return {"coherence": 3, "helpfulness": 2, "empathy": said[code]}

    for at, rater in enumerate(sorted({entry["rater"] for entry in key["items"].values()})):
        assert len(items_of(key, rater)) == 10
        fill(review, rater, FORMS[at % len(FORMS)], judge, answers)
    meant, contexts = defaultdict[str, Counter[int]](Counter), defaultdict[str, set[str]](set)
    for code, entry in key["items"].items():
        meant[entry["system"]][said[code]] += 1
        contexts[entry["block"]].add(entry["pair_id"])
    return dict(meant), dict(contexts)


def check(found: dict[str, Any], truth: Meant) -> None:
    """Counts, shares and gains are what the raters meant; the interval holds what raters of no severity would have meant."""
    names = [one["name"] for one in found["groups"]]
    assert names[0] == BASELINE and set(names) == truth.keys() and {one["raters"] for one in found["groups"]} == {BLOCKS}
    assert found["whole"]["counts"] == [[truth[name][value] for value in (1, 2, 3)] for name in names]
    assert not [note for note in found["notes"] if "no block" in note], "raters are exchanged within their blocks"
    gains = {one["group"]: one for one in found["whole"]["gains"] if one["category"] == "Good"}
    for name in names[1:]:
        share, of_baseline = (truth[one][3] / (10 * BLOCKS) for one in (name, BASELINE))
        assert (gains[name]["share"], gains[name]["of_baseline_share"]) == pytest.approx((share, of_baseline))
        assert gains[name]["gain"] == pytest.approx(100 * (share / of_baseline - 1))
        assert gains[name]["low"] < 100 * (GOOD[name] / GOOD[BASELINE] - 1) < gains[name]["high"]


def test_a_study_finds_what_its_raters_were_made_to_do(
    seeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("build/demo").mkdir(parents=True)
    Path("build/demo/release").symlink_to(seeds)
    export, taken_back = blocks("auditors.md", "bash")
    written(Path("replies.csv"), rows_for(seeds, [name for name in GOOD if name != LATER]))
    as_written(export)
    meant, contexts = rated(Path("build/study"), Path("build/answers"))
    take, reckon = taken_back.strip().splitlines()
    as_written(take)
    assert len(contexts) == BLOCKS and all(len(one) == 10 for one in contexts.values())
    capsys.readouterr()
    as_written(reckon, "--permutations", "200", "--json")
    check(json.loads(capsys.readouterr().out), meant)

    written(Path("later.csv"), rows_for(seeds, [LATER]))
    renamed = {"replies.csv": "later.csv", "build/study": "build/later", "--raters 18": f"--raters {BLOCKS}", "answers": "more"}
    for old, new in renamed.items():
        export, take = export.replace(old, new), take.replace(old, new)
    as_written(export)
    late, same = rated(Path("build/later"), Path("build/more"))
    assert same == contexts, "the same contexts in the same blocks"
    as_written(take)
    capsys.readouterr()
    as_written(reckon, "--permutations", "200", "--json", "--add", "build/later.study.csv", "--page", "build/page.html")
    found = json.loads(capsys.readouterr().out)
    check(found, meant | late)
    assert [one["name"] for one in found["groups"] if one["added"]] == [LATER]

    assert json.loads(Path("build/page.json").read_text(encoding="utf-8")) == found, "the figures beside the page are those that were told"
    page = Path("build/page.html").read_text(encoding="utf-8")
    for gain in found["whole"]["gains"]:
        assert gain["group"] in page and signed_percent(gain["gain"]) in page, gain
