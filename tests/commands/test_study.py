"""What ``study`` prints."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import sys
import threading
from pathlib import Path

import empathy_eval as ee
import pytest
from empathy_eval.base.errors import InputError
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
    shown = f"{gain.value:+.1f}", f"[{gain.low:+.1f}, {gain.high:+.1f}]"
    (line,) = (one for one in said.splitlines() if one.startswith("Good, b ") and all(text in one for text in shown))
    assert f"{gain.test.statistic:.2f}" in line and f"{gain.corrected.holm:.4f}" in line
    for part in ("pairs of groups", "by valence", "gain over human, odd", "by stratum", "ratings of one rater", "an effect of w = 0.3"):
        assert part in said, part
    assert "100 permutations of whole raters within their block" in said and said.splitlines()[-1] == found.signature


def test_json_has_everything_and_csv_a_line_a_figure(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = ee.study([table], "human", by=["valence"], permutations=50, seed=3)
    options = (table, "--baseline", "human", "--by", "valence", "--permutations", 50, "--seed", 3)
    assert json.loads(printed(capsys, *options, "--json")) == json.loads(json.dumps(found.to_json()))
    lines = list(csv.DictReader(io.StringIO(printed(capsys, *options, "--csv"))))
    assert len(lines) == len(list(found.records())) and tuple(lines[0]) == found.columns
    assert {one["part"] for one in lines} == {"whole", "valence"}
    sizes = {(one["group"], one["figure"]): int(one["value"]) for one in lines if one["figure"] in ("raters", "ratings", "items")}
    assert sizes == {(one.name, name): getattr(one, name) for one in found.groups for name in ("raters", "ratings", "items")}
    tests = [one for one in lines if one["df"] and "power" not in one["figure"]]
    assert tests and {one["p_by"] for one in tests} <= {"chi-square", "permutation"}


def test_of_many_parts_the_omnibus_test_is_shown_and_small_counts_are_starred(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "many.csv"
    rows = [(*row[:4], f"s{int(str(row[0])[1:]) % 10}") for row in simulated(blocks=4)]
    path.write_text("item,group,rater,rating,stratum\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    said = printed(capsys, path, "--baseline", "human", "--permutations", 30)
    assert "--json and --csv have the pairs and gains of each stratum" in said and "gain over human, s1" not in said
    lines = [one for one in said.splitlines() if one.startswith("s1 ")]
    assert len(lines) == 1 and "*" in lines[0] and "the p-value of the permutation test is used" in said
    assert "note: the ratings have no blocks" in said
    none = printed(capsys, path, "--baseline", "human", "--permutations", 0)
    assert "no permutation test was run" in none and "*" not in none.replace("*: ", "")


def test_what_is_wrong_exits_with_2_and_says_how_to_mend_it(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", str(table), "--baseline", "nobody"]) == 2
    assert 'baseline: "nobody" is not a group of the study\n  Fix: use one of a, b, human' in capsys.readouterr().err
    assert main(["study", str(table)]) == 2 and main(["study", "--baseline", "human"]) == 2
    assert capsys.readouterr().err.count("empathy-eval study RATINGS.csv --baseline GROUP") == 2
    assert main(["study", str(tmp_path / "none.csv"), "--baseline", "human"]) == 2


def test_a_name_of_a_stranger_does_nothing_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.csv"
    lines = ("i1,human,r1,1", "i2,human,r1,2", "i1,\x1b[31mred,r2,2", "i2,\x1b[31mred,r2,2")
    path.write_text("item,group,rater,rating\n" + "\n".join(lines))
    assert main(["study", str(path), "--baseline", "human", "--permutations", "10"]) == 2
    said = "".join(capsys.readouterr())
    assert "\x1b" not in said and 'group "\\u001b[31mred" holds U+001B, which nobody sees, at character 1\n  Fix: leave it out' in said


def test_settings_and_signature_tell_the_criterion_and_the_tables(table: Path, tmp_path: Path) -> None:
    first, *rows = table.read_text().splitlines()
    paths = {name: tmp_path / f"{name}.csv" for name in ("emp", "flu")}
    for name, path in paths.items():
        path.write_text("\n".join([f"{first},criterion", *(f"{row},{name}" for row in rows)]))
    found = {name: ee.study(path, "human", criterion=name, permutations=0) for name, path in paths.items()}
    assert found["emp"].settings["criterion"] == "emp" and "|criterion:emp|" in found["emp"].signature
    (told,) = found["flu"].settings["tables"]
    assert told == {"name": "flu.csv", "sha256": hashlib.sha256(paths["flu"].read_bytes()).hexdigest(), "added": False}
    held = {one.signature.partition("|tables:")[2].partition("|")[0] for one in found.values()}
    assert len(held) == 2 and "|criterion:none|" in ee.study(table, "human", permutations=0).signature
    moved = tmp_path / "moved" / "other.csv"
    moved.parent.mkdir()
    moved.write_bytes(paths["emp"].read_bytes())
    assert ee.study(moved, "human", permutations=0).signature == found["emp"].signature


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes by name")
def test_a_pipe_is_read_once_and_has_no_hash(table: Path) -> None:
    # As a shell hands it over; a named pipe is refused, since nobody may ever write into it.
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb") as stream:
            stream.write(table.read_bytes())

    threading.Thread(target=write, daemon=True).start()
    found = ee.study(f"/dev/fd/{reader}", "human", permutations=0)
    os.close(reader)
    assert found.settings["tables"][0]["sha256"] is None and "|tables:unknown|" in found.signature


def test_a_single_text_in_a_call_is_one_option_and_not_its_letters(tmp_path: Path) -> None:
    rows = "".join(
        f"i{number},{group},{group}{number},{rating},x\n" for group in ("a", "b") for number, rating in enumerate(("Bad", "Good"))
    )
    ratings, more = tmp_path / "ratings.csv", tmp_path / "more.csv"
    ratings.write_text("item,group,rater,rating,valence\n" + rows)
    more.write_text("item,group,rater,rating,valence\ni0,c,c0,Good,x\n")
    found = ee.study(str(ratings), "a", labels="Bad, Good", by="valence", add=str(more), permutations=0)
    assert (
        found.labels == ("Bad", "Good") and list(found.parts) == ["valence"] and [one.added for one in found.groups] == [False, False, True]
    )
    assert found.to_json() == ee.study([ratings], "a", labels=["Bad", "Good"], by=["valence"], add=[more], permutations=0).to_json()


@pytest.mark.parametrize(
    ("odd", "where"),
    [
        ({"table": []}, "table"), ({"table": 5}, "table"), ({"table": [b"x"]}, "table"), ({"table": "a\0b"}, "a\0b"),
        ({"baseline": None}, "baseline"), ({"labels": [1, 2, 3]}, "labels"), ({"labels": 3}, "labels"),
        ({"criterion": 3}, "criterion"), ({"by": 3}, "by"), ({"by": "block"}, "by"), ({"add": [None]}, "add"),
        ({"add": 3}, "add"), ({"permutations": 2.5}, "permutations"), ({"permutations": "3"}, "permutations"),
        ({"permutations": True}, "permutations"), ({"seed": "a"}, "seed"), ({"seed": None}, "seed"),
        ({"effect": "x"}, "effect"), ({"effect": 5}, "effect"), ({"effect": 1e-200}, "effect"), ({"alpha": "0.05"}, "alpha"),
        ({"power": 0.05000000000000001}, "power"), ({"power": None}, "power"), ({"raters": ["a.csv"]}, "raters"),
        ({"raters": 5}, "raters"), ({"raters": ""}, "raters"), ({"page": 5}, "page"), ({"page": ["a.html"]}, "page"),
    ],
)  # fmt: skip
def test_an_odd_option_of_a_call_is_refused_in_words(table: Path, odd: dict[str, object], where: str) -> None:
    with pytest.raises(InputError) as caught:
        ee.study(**{"table": table, "baseline": "human", "permutations": 0} | odd)  # type: ignore[arg-type]
    assert [one.where for one in caught.value.problems] == [where]


def test_scipy_is_loaded_by_this_verb_alone() -> None:
    import subprocess

    code = "import sys, empathy_eval.cli, empathy_eval.commands.study; assert not {'scipy', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
