"""The border of agreement: what a table of ratings may be, and what is said of one that may not."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.invisible import invisible_characters
from empathy_eval.raters.agreement import RatingTable, read_table
from empathy_eval.raters.agreement.table import RaterFacts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "ratings.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(tmp_path: Path, content: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read_table(written(tmp_path, content))
    return str(caught.value)


def test_a_column_that_is_called_otherwise_names_the_one_that_is_meant(tmp_path: Path) -> None:
    assert 'did you mean "rater"?' in refusal(tmp_path, "item,rator,rating\na,b,1\n")


def content(table: RatingTable) -> list[tuple[str, str, str, float]]:
    """The rows of a table by name, in order."""
    places = zip(table.item, table.rater, table.criterion, table.rating.tolist(), strict=True)
    return sorted((table.items[item], table.raters[rater], table.criteria[criterion], value) for item, rater, criterion, value in places)


def test_a_table_is_read_whatever_its_column_order_line_ends_mark_and_other_columns(tmp_path: Path) -> None:
    expected = RatingTable.of([("a", "r1", 1), ("a", "r2", 2.5), ("b,c", "r1", 3)])
    text = 'rating,comment,item,rater\r\n1,"two\r\nlines",a,r1\r\n2.5,, a ,r2\r\n\r\n3,,"b,c",r1\r\n,,"b,c",r2\r\n'
    assert content(read_table(written(tmp_path, b"\xef\xbb\xbf" + text.encode()))) == content(expected)
    assert expected.criteria == ("rating",)


def test_a_missing_rating_is_an_empty_cell_or_none_or_nan(tmp_path: Path) -> None:
    read = read_table(written(tmp_path, "item,rater,criterion,rating\na,r,c,1\nb,r,c, \n"))
    assert content(read) == content(RatingTable.of([("a", "r", 1.0, "c"), ("b", "r", None, "c"), ("c", "r", float("nan"), "c")]))


def test_all_problems_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    said = refusal(
        tmp_path, "item,rater,criterion,rating\na,r,c,good\n,r,c,1\na,s,c,2\nb,s,c\na,s,c,3\na,,c,nan\n'a','b',c,1,\nz,r,c,1e999\n"
    ).splitlines()
    where = f"{tmp_path / 'ratings.csv'}: line"
    assert said[::2] == [
        f'{where} 2: rating "good" is not of type number',
        f'{where} 3: item "" does not match \\S',
        f"{where} 5: has 3 cells, but the header has 4",
        f'{where} 6: "s" rates "a" on "c" again, after line 4',
        f'{where} 7: rater "" does not match \\S',
        f'{where} 7: rating "nan" is not of type number',
        f"{where} 8: has 5 cells, but the header has 4",
        f'{where} 9: rating "1e999" is not of type number',
    ]
    assert all(line.startswith("  Fix: ") for line in said[1::2])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", 'the header "" has no "item"'),
        ("item,rater,rating\n", "holds no rating"),
        ("item,rater,rating\na,r,\n", "holds no rating"),
        ("item;rater;rating\na;r;1\n", 'the header "item;rater;rating" has no "rating"'),
        ("item,rater,score\na,r,1\n", 'line 1: the header "item,rater,score" has no "rating"'),
        ("item,rater,rating,rating\na,r,1,2\n", 'has 2 "rating"'),
        ("item,rater,rating\na,r,1\n".encode("utf-16"), "is not UTF-8: invalid start byte (0xff)"),
        ("item,rater,rating\nä,r,1\n".encode("latin-1"), "is not UTF-8: invalid continuation byte (0xe4)"),
        ('item,rater,rating\n"a"b,r,1\n', "line 2: is not CSV"),
        ('item,rater,rating\na,r,"1\n', "is not CSV: unexpected end of data"),
        ("item,rater,rating\na,r,1_000\n", '"1_000" is not of type number'),
        ("item,rater,rating\na,r,1e7\n", "10000000.0 is out of range (maximum 1000000)"),
        ("item,rater,rating\n" + "".join(f"{number},r,{number}\n" for number in range(102)), "102 different ratings"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_the_reason(tmp_path: Path, content: str | bytes, said: str) -> None:
    assert said in refusal(tmp_path, content)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_table(tmp_path / "none.csv")


def test_of_very_many_problems_the_first_hundred_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    said = refusal(tmp_path, "item,rater,rating\n" + "a,r,good\n" * 1000)
    assert "line 101: rating" in said and "line 102:" not in said and "900 more problems" in said


def test_rows_given_in_python_pass_the_same_border() -> None:
    with pytest.raises(InputError) as caught:
        RatingTable.of([("a", "r", 1), ("", "r", 2), ("a", "r", 3), (7, "r", "2")])
    said = str(caught.value)
    assert 'ratings: row 2: item ""' in said and "row 3: " in said and "after row 1" in said
    assert "row 4: item 7 is not of type string" in said and 'row 4: rating "2" is not of type number' in said


def test_an_unknown_role_that_hides_a_sign_is_reported_as_both(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_table(written(tmp_path, "item,rater,rating,role\na,r,1,jud\u200bge\n"), RaterFacts())
    said = [one.what for one in caught.value.problems]
    assert len(said) == 2 and "which nobody sees" in said[0] and "is not known" in said[1]


# Names of signs that a reader sees.
SEEN = st.characters(exclude_categories=["C", "Zl", "Zp"]).filter(lambda sign: not any(invisible_characters(sign)))
NAMES = st.text(SEEN, min_size=1).map(str.strip).filter(bool)


@pytest.mark.e2e
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.tuples(NAMES, NAMES, NAMES), st.integers(0, 5) | st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_what_is_written_is_read(tmp_path: Path, ratings: dict[tuple[str, str, str], float]) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(("criterion", "item", "rater", "rating"))
    writer.writerows((*key, value) for key, value in ratings.items())
    expected = RatingTable.of((item, rater, value, criterion) for (criterion, item, rater), value in ratings.items())
    assert content(read_table(written(tmp_path, stream.getvalue()))) == content(expected)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text(alphabet='item,rag"1\n;. ', max_size=60).map(lambda text: f"item,rater,rating\n{text}".encode()))
def test_any_bytes_are_a_table_or_refused(tmp_path: Path, content: bytes) -> None:
    try:
        assert read_table(written(tmp_path, content)).raters
    except InputError as error:
        assert error.problems and all(problem.fix for problem in error.problems)
