"""The border of a raters' table: what it may be, and what is said of one that may not; what ``study --raters`` tells of it."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.commands.study import study as studied_of
from empathy_eval.raters.study.raters_table import read_raters
from empathy_eval.raters.study.ratings import ReadOptions, StudyTable, read_study

DOCS = Path(__file__).parent.parent.parent / "docs"
RATINGS = "item,group,rater,rating\na,human,r1,1\na,human,r2,2\na,gpt,r3,2\nb,gpt,r3,3\n"


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def study(tmp_path: Path) -> StudyTable:
    return read_study([written(tmp_path / "ratings.csv", RATINGS)], ReadOptions("human"))


def refusal(path: Path, study: StudyTable) -> list[str]:
    """What is said of a table, by line."""
    with pytest.raises(InputError) as caught:
        read_raters(path, study)
    assert all(one.fix for one in caught.value.problems)
    return [f"{one.where.removeprefix(str(path)).removeprefix(': ')}: {one.what}" for one in caught.value.problems]


def test_a_table_is_read_whatever_its_form_order_and_mark_and_says_who_is_missing(tmp_path: Path, study: StudyTable) -> None:
    good = "age,rater,group,checks,checks_failed,sex\n31, r3 ,gpt,4,3, f \n,r1,,0,0,\n40,r9,other,1,1,m\n\n"
    lines = [
        {"rater": "r3", "group": "gpt", "age": 31, "checks": 4, "checks_failed": 3.0, "sex": "f"},
        {"rater": "r1", "sex": None, "checks": 0, "checks_failed": 0, "age": " "},
        {"rater": "r9", "group": "other", "age": 40, "sex": "m", "checks": 1, "checks_failed": 1},
    ]
    forms = {"a.csv": b"\xef\xbb\xbf" + good.replace("\n", "\r\n").encode(), "a.tsv": good.replace(",", "\t").encode()}
    forms["a.jsonl"] = "\n".join(map(json.dumps, lines)).encode()
    for name, text in forms.items():
        table = read_raters(written(tmp_path / name, text), study)
        assert (table.absent, table.unknown, sorted(table.columns)) == (1, 1, ["age", "sex"]), name
        assert (list(table.cells["sex"]), list(table.cells["age"])) == ([None, None, "f"], [None, None, "31"])
        assert np.array_equal(table.failed, [np.nan, np.nan, 0.75], equal_nan=True) and table.has_checks


def test_whatever_is_wrong_is_reported_at_once_with_its_line(tmp_path: Path, study: StudyTable) -> None:
    rows = ["r1,gpt,x,,", "r2,human,3,2,3", "r2,human,,,", ",human,1,1,0", "r3,gpt,-1,1.5,0", "r9,any,,,1", "r3,gpt"]
    table = written(tmp_path / "raters.csv", "rater,group,seconds,checks,checks_failed\n" + "\n".join(rows))
    said = refusal(table, study)
    assert [one.split(":")[0] for one in said] == ["line 2", "line 3", "line 4", "line 5", "line 6", "line 6", "line 7", "line 8"]
    assert 'seconds "x"' in said[0] and "3 checks failed, but only 2 were shown" in said[1] and '"r2" is already in line 3' in said[2]
    assert '"rater"' in said[3] and '"-1"' in said[4] + said[5] and '"1.5"' in said[4] + said[5]
    assert "1 checks failed, but the number of checks shown is missing" in said[6] and "has 2 cells, but the header has 5" in said[7]


def test_odd_numbers_are_reported_in_words_each_with_its_line(tmp_path: Path, study: StudyTable) -> None:
    rows = ["r1,nan,", "r2,-5,", "r3,1e400,", "r4,,1.5", "r5,inf,", "r6,7,-1"]
    said = refusal(written(tmp_path / "raters.csv", "rater,seconds,checks\n" + "\n".join(rows)), study)
    assert [one.split('" is no ')[0] for one in said] == [
        'line 2: seconds "nan', 'line 3: seconds "-5', 'line 4: seconds "1e400', 'line 5: checks "1.5', 'line 6: seconds "inf',
        'line 7: checks "-1',
    ]  # fmt: skip
    assert "time in seconds: a number from 0" in said[0] and "number of checks: whole, from 0" in said[3]
    assert not any(sign in one for one in said for sign in "^\\[$")


def test_a_group_that_the_ratings_contradict_is_refused(tmp_path: Path, study: StudyTable) -> None:
    table = written(tmp_path / "raters.csv", "rater,group\nr1,gpt\nr2,human\n")
    assert refusal(table, study) == ['line 2: "r1" is in the group "gpt", but its ratings are in "human"']


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'has no "rater"'),
        ("name,age\nr1,3\n", 'has no "rater"'),
        ("rater,age,age\nr1,3,3\n", 'has 2 "age"'),
        ("rater,,age\nr1,3,3\n", "has a column without a name"),
        ("rater,checks_failed\nr1,3\n", 'has "checks_failed" and no "checks"'),
        ("rater,age\n", "lists no rater"),
        ("rater,age\nsomebody,3\n", "lists no rater of the study"),
        ("rater," + ",".join(f"c{n}" for n in range(51)) + "\nr1" + ",1" * 51 + "\n", "has 51 columns; at most 50 are allowed"),
    ],
)
def test_a_table_that_is_none_is_refused(text: str, said: str, tmp_path: Path, study: StudyTable) -> None:
    (problem,) = refusal(written(tmp_path / "raters.csv", text), study)
    assert said in problem


def test_more_than_a_hundred_problems_are_counted(tmp_path: Path, study: StudyTable) -> None:
    table = written(tmp_path / "raters.csv", "rater,seconds\n" + "r1,x\n" * 130)
    said = refusal(table, study)
    assert len(said) == 101 and said[-1] == ": 30 more problems"


def test_study_tells_of_raters_in_lines_json_and_csv_and_names_none_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["study", str(DOCS / "study.csv"), "--baseline", "human", "--labels", "Bad,Okay,Good", "--permutations", "50"]
    call += ["--raters", str(DOCS / "study_raters.csv")]
    said = dict[str, str]()
    for form in ("", "--json", "--csv"):
        assert main([*call, *([form] if form else [])]) == 0
        said[form] = capsys.readouterr().out
    with (DOCS / "study_raters.csv").open() as stream:
        raters = [row["rater"] for row in csv.DictReader(stream)]
    assert len(raters) == 36 and not any(name in text for name in raters for text in said.values())
    assert "raters of the groups by" in said[""] and "attention checks" in said[""]
    balance = json.loads(said["--json"])["balance"]
    sex, band, seconds = balance["columns"]
    assert (sex["column"], sex["values"], sex["cells"]) == ("sex", ["female", "male"], [[6, 6]] * 3) and balance["untold"] == 0
    assert (
        (band["values"], band["cells"]) == (["30-49", "other values"], [[6, 6], [5, 7], [5, 7]])
        and seconds["kind"] == "numbers"
        and json.loads(said["--json"])["attention"]["without"] is None
    )
    rows = list(csv.DictReader(said["--csv"].splitlines()))
    told = {(row["figure"], row["of"], row["group"], row["category"]): row["value"] for row in rows if row["part"] == "raters"}
    assert told["raters", "sex", "human", "female"] == "6" and float(told["median", "seconds", "human", ""]) == seconds["quartiles"][0][1]
    assert float(told["balance: Kruskal-Wallis", "seconds", "", ""]) == seconds["test"]["statistic"]


def test_a_study_without_a_raters_table_says_nothing_of_raters() -> None:
    found = studied_of(DOCS / "study.csv", "human", labels=["Bad", "Okay", "Good"], permutations=0)
    assert found.balance is None and found.attention is None
    told = studied_of(DOCS / "study.csv", "human", labels=["Bad", "Okay", "Good"], permutations=0, raters=DOCS / "study_raters.csv")
    assert told.balance is not None and told.attention is not None and told.whole == found.whole
    assert told.balance.columns[0].test is not None and told.balance.columns[0].test.permutation is None


def test_settings_name_the_table_of_raters(tmp_path: Path) -> None:
    ratings, raters = written(tmp_path / "ratings.csv", RATINGS), written(tmp_path / "raters.csv", "rater,sex\nr1,f\nr2,m\nr3,f\n")
    told = {"name": "raters.csv", "sha256": hashlib.sha256(raters.read_bytes()).hexdigest()}
    assert studied_of(ratings, "human", permutations=0, raters=raters).settings["raters"] == told
