"""What ``study`` prints."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import empathy_eval as ee
import pytest
from empathy_eval.cli import main

from tests.raters.test_study import WIDE, simulated


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "ratings.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([WIDE.split(","), *simulated()])
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["study", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_terminal_shows_groups_tests_gains_parts_and_what_could_have_been_seen(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, table, "--baseline", "human", "--labels", "Bad,Okay,Good", "--permutations", 100)
    found = ee.study(table, "human", labels=["Bad", "Okay", "Good"], permutations=100)
    assert "human (baseline)" in said and f"{found.whole.omnibus.statistic:.2f}" in said
    gain = found.whole.gains[-1]
    shown = f"{gain.gain:+.1f}", f"[{gain.low:+.1f}, {gain.high:+.1f}]"
    (line,) = (one for one in said.splitlines() if one.startswith("Good, b ") and all(text in one for text in shown))
    assert f"{gain.test.statistic:.2f}" in line and f"{gain.holm:.4f}" in line
    for part in ("pairs of groups", "by valence", "gain over human, odd", "by stratum", "ratings of one rater", "an effect of w = 0.3"):
        assert part in said, part
    assert "within their block, 100 times" in said and said.splitlines()[-1] == found.signature


def test_json_has_everything_and_csv_a_line_a_figure(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = ee.study([table], "human", by=["valence"], permutations=50, seed=3)
    options = (table, "--baseline", "human", "--by", "valence", "--permutations", 50, "--seed", 3)
    assert json.loads(printed(capsys, *options, "--json")) == json.loads(json.dumps(found.to_json()))
    lines = list(csv.DictReader(io.StringIO(printed(capsys, *options, "--csv"))))
    assert len(lines) == len(list(found.records())) and tuple(lines[0]) == found.columns
    assert {one["part"] for one in lines} == {"whole", "valence"}


def test_of_many_parts_the_omnibus_test_is_shown_and_small_counts_are_starred(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "many.csv"
    rows = [(*row[:4], f"s{int(str(row[0])[1:]) % 10}") for row in simulated(blocks=4)]
    path.write_text("item,group,rater,rating,stratum\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    said = printed(capsys, path, "--baseline", "human", "--permutations", 30)
    assert "pairs and gains of each stratum are in --json and --csv" in said and "gain over human, s1" not in said
    lines = [one for one in said.splitlines() if one.startswith("s1 ")]
    assert len(lines) == 1 and "*" in lines[0] and "the p of exchanged raters is gone by" in said
    assert "note: the ratings have no blocks" in said
    none = printed(capsys, path, "--baseline", "human", "--permutations", 0)
    assert "no raters were exchanged" in none and "*" not in none.replace("*: ", "")


def test_what_is_wrong_exits_with_2_and_says_how_to_mend_it(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", str(table), "--baseline", "nobody"]) == 2
    assert 'baseline: "nobody" is no group of the study\n  Fix: use one of a, b, human' in capsys.readouterr().err
    assert main(["study", str(table)]) == 2 and main(["study", "--baseline", "human"]) == 2
    assert capsys.readouterr().err.count("empathy-eval study RATINGS.csv --baseline GROUP") == 2
    assert main(["study", str(tmp_path / "none.csv"), "--baseline", "human"]) == 2


def test_a_name_of_a_stranger_does_nothing_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.csv"
    lines = ("i1,human,r1,1", "i2,human,r1,2", "i1,\x1b[31mred,r2,2", "i2,\x1b[31mred,r2,2")
    path.write_text("item,group,rater,rating\n" + "\n".join(lines))
    said = printed(capsys, path, "--baseline", "human", "--permutations", 10)
    assert "\x1b" not in said and "\\x1b[31mred" in said


def test_scipy_is_loaded_by_this_verb_alone() -> None:
    import subprocess

    code = "import sys, empathy_eval.cli, empathy_eval.commands.study; assert not {'scipy', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
