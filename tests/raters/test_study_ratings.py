"""The border of a study: what a table of one may be, and what is said of one that may not."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.raters.agreement.columns import sorted_names
from empathy_eval.raters.study.ratings import NO_BLOCKS, ReadOptions, StudyTable, read_study
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

GOOD = "item,group,rater,rating\na,human,r1,1\nb,human,r1,2\na,gpt,r2,2\nb,gpt,r2,3\n"
HUMAN = ReadOptions("human")


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(tmp_path: Path, text: str | bytes, reading: ReadOptions = HUMAN, add: Sequence[str] = ()) -> list[str]:
    """What is said of a table, each problem with its mending."""
    more = [written(tmp_path / f"add-{number}.csv", one) for number, one in enumerate(add)]
    with pytest.raises(InputError) as caught:
        read_study([written(tmp_path / "ratings.csv", text)], reading, more)
    return [f"{one.where.removeprefix(str(tmp_path) + '/')}: {one.what}" for one in caught.value.problems]


def rows_of(study: StudyTable) -> list[tuple[str, ...]]:
    """The ratings of a study by name, in order."""
    places = zip(study.rater, study.item, study.category, strict=True)
    return sorted((study.items[i], study.groups[study.group_of[r]], study.raters[r], study.labels[c]) for r, i, c in places)


def test_a_table_is_read_whatever_its_column_order_line_ends_mark_form_and_other_columns(tmp_path: Path) -> None:
    expected = read_study([written(tmp_path / "good.csv", GOOD)], HUMAN)
    head = b'\xef\xbb\xbfcomment,rating,rater,group,item\r\n"x\r\ny",1,r1,human,a\r\n'
    odd = head + b',2.0, r1 ,human,b\r\n\r\n,2,r2,gpt,a\r\n,3,r2,"gpt",b\r\n,,r2,gpt,c\r\n'
    rows = list(csv.DictReader(io.StringIO(GOOD)))
    lines = (
        "\n".join(json.dumps(row | {"rating": int(row["rating"])}) for row in rows)
        + '\n{"item":"c","group":"gpt","rater":"r2","rating":null}'
    )
    for name, text in (("odd.csv", odd), ("a.tsv", GOOD.replace(",", "\t").encode()), ("a.jsonl", lines.encode())):
        study = read_study([written(tmp_path / name, text)], HUMAN)
        assert rows_of(study) == rows_of(expected), name
        assert (study.groups, study.labels, study.raters, study.items) == (("human", "gpt"), ("1", "2", "3"), ("r1", "r2"), ("a", "b"))
    assert expected.counts().tolist() == [[1, 1, 0], [0, 1, 1]] and expected.by_rater(np.array([1, 0, 1, 0], bool)).tolist() == [
        [1, 0, 0],
        [0, 1, 0],
    ]
    assert expected.block_of is None and expected.notes == (NO_BLOCKS,)


def test_all_that_is_no_study_between_subjects_is_reported_at_once_with_lines(tmp_path: Path) -> None:
    text = """\
item,group,rater,rating,stratum,valence,block
i1,human,r1,1,joy,positive,b1
i1,gpt,r1,2,joy,positive,b1
i1,gpt,r2,2,sad,positive,b1
i1,gpt,r2,2,joy,negative,b2
i2,gpt,r3,good,joy,positive,b2
i2,,r3,3,joy,positive,b2
i2,gpt,r3
i3,gpt,r3,1,,positive,b2
"""
    assert refusal(tmp_path, text, ReadOptions("nobody")) == [
        'baseline: "nobody" is not a group of the study',
        'ratings.csv: line 3: "r1" rates "i1" again, after the rating at line 2',
        'ratings.csv: line 3: the rater "r1" is in the group "gpt", and in "human" at line 2',
        'ratings.csv: line 4: the item "i1" has the stratum "sad", and "joy" at line 2',
        'ratings.csv: line 5: "r2" rates "i1" again, after the rating at line 4',
        'ratings.csv: line 5: the item "i1" has the valence "negative", and "positive" at line 2',
        'ratings.csv: line 5: the rater "r2" is in the block "b2", and in "b1" at line 4',
        'ratings.csv: line 6: the rating "good" is not a number',
        'ratings.csv: line 7: group "" does not match \\S',
        "ratings.csv: line 8: has 3 cells, but the header has 7",
        'ratings.csv: line 9: stratum "" does not match \\S',
    ]


def test_one_group_one_category_too_many_categories_and_no_rating_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "item,group,rater,rating\na,human,r1,1\nb,human,r1,2\n") == ['group: the study has only one group, "human"']
    assert refusal(tmp_path, GOOD.replace(",2\n", ",1\n").replace(",3\n", ",1\n")) == [
        'ratings.csv: has only one category: every rating is "1"'
    ]
    many = "".join(f"{place},human,r,{place}\n" for place in range(12))
    assert refusal(tmp_path, GOOD + many) == ["ratings.csv: has 12 different ratings; a scale has at most 11 categories"]
    assert refusal(tmp_path, "item,group,rater,rating\na,human,r1,\n") == ["ratings.csv: holds no rating"]
    assert refusal(tmp_path, "") == [f'ratings.csv: line 1: the header "" has no "{name}"' for name in ("item", "group", "rater", "rating")]
    groups = "".join(f"a,g{place},s{place},1\n" for place in range(60))
    assert refusal(tmp_path, GOOD + groups) == ["group: the study has 62 groups"]


def test_labels_name_the_categories_in_their_order_and_odd_ones_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "words.csv", GOOD.replace(",1\n", ",Bad\n").replace(",2\n", ",Okay\n").replace(",3\n", ",Good\n"))
    three = ReadOptions("human", ("Bad", "Okay", "Good"))
    assert read_study([path], three).labels == three.labels and read_study([path], three).counts().tolist() == [[1, 1, 0], [0, 1, 1]]
    # 1 to 3 are the first to the third label, also where nobody gave 1; other numbers take labels by their order.
    numbers = written(tmp_path / "numbers.csv", GOOD.replace("r1,1", "r1,2"))
    assert read_study([numbers], three).counts().tolist() == [[0, 2, 0], [0, 1, 1]]
    tens = written(tmp_path / "tens.csv", GOOD.replace(",1\n", ",-10\n").replace(",3\n", ",30\n"))
    assert read_study([tens], three).counts().tolist() == [[1, 1, 0], [0, 1, 1]]
    assert refusal(tmp_path, GOOD, ReadOptions("human", ("Bad", "Good"))) == [
        "ratings.csv: has the ratings 1, 2, 3; there are 2 labels (Bad, Good)"
    ]
    assert refusal(tmp_path, GOOD.replace("r1,1", "r1,fine"), three)[0] == 'ratings.csv: line 2: the rating "fine" is not a label'
    assert refusal(tmp_path, GOOD, ReadOptions("human", ("Bad", "Bad", "")))[:2] == [
        'labels: "Bad" occurs twice',
        'labels: "Bad,Bad," has an empty name',
    ]
    assert refusal(tmp_path, GOOD, ReadOptions("human", ("Bad",)))[0] == "labels: the number of labels is 1; a study has 2 to 11 categories"


def test_of_several_criteria_one_must_be_chosen(tmp_path: Path) -> None:
    text = "item,group,rater,rating,criterion\n" + "".join(
        f"{row},{name}\n" for name in ("empathy", "fluency") for row in GOOD.splitlines()[1:]
    )
    assert refusal(tmp_path, text) == ["criterion: the ratings are on 2 criteria"]
    assert refusal(tmp_path, text, ReadOptions("human", (), "warmth")) == ['criterion: "warmth" is not a criterion of the ratings']
    assert refusal(tmp_path, GOOD, ReadOptions("human", (), "empathy")) == ['criterion: "empathy" is not a criterion of the ratings']
    with pytest.raises(InputError, match='did you mean "fluency"'):
        read_study([written(tmp_path / "more.csv", text)], ReadOptions("human", (), "fluencey"))
    with pytest.raises(InputError, match='did you mean "rating"'):
        read_study([written(tmp_path / "odd.csv", GOOD.replace("rating", "ratng", 1))], HUMAN)
    path = written(tmp_path / "both.csv", text)
    assert len(read_study([path], ReadOptions("human", (), "fluency")).rater) == 4


def test_an_added_group_takes_its_strata_and_blocks_from_the_study_and_must_be_new(tmp_path: Path) -> None:
    stored = "item,group,rater,rating,valence,block\na,human,r1,1,good,1\nb,human,r1,2,bad,1\na,gpt,r2,2,good,1\nb,gpt,r2,3,bad,1\n"
    added = "item,group,rater,rating\na,new,r3,1\nb,new,r3,3\n"
    paths = [written(tmp_path / "stored.csv", stored)], [written(tmp_path / "new.csv", added)]
    study = read_study(paths[0], HUMAN, paths[1])
    assert study.groups == ("human", "gpt", "new") and study.added == ("new",)
    names, place = study.strata["valence"]
    assert [names[one] for one in place] == ["good", "bad"] * 3
    assert study.block_of is None and study.notes[0].startswith("1 rater has no block: raters are permuted within the whole study")
    of_block = written(tmp_path / "new.csv", "item,group,rater,rating,block\na,new,r3,1,1\nb,new,r3,3,1\n")
    assert read_study(paths[0], HUMAN, [of_block]).blocks == ("1",)
    other = written(tmp_path / "new.csv", "item,group,rater,rating,block\na,new,r3,1,2\nb,new,r3,3,2\n")
    assert "no block has raters of human and of new" in read_study(paths[0], HUMAN, [other]).notes[0]
    assert refusal(tmp_path, stored, add=["item,group,rater,rating\na,gpt,r3,1\nc,gpt,r1,1\n"]) == [
        'add-0.csv: line 2: the group "gpt" already exists',
        'add-0.csv: line 3: the item "c" has no valence',
        f'add-0.csv: line 3: the rater "r1" is in the group "gpt", and in "human" at line 2 of {tmp_path / "ratings.csv"}',
    ]


def test_two_added_tables_do_not_bring_one_group(tmp_path: Path) -> None:
    header = "item,group,rater,rating\n"
    more = [f"{header}a,new,s1,1\nb,new,s1,1\n", f"{header}a,new,s2,1\n"]
    assert refusal(tmp_path, GOOD, add=more) == ['add-1.csv: line 2: the group "new" already exists']


def test_a_thousand_faults_are_counted_and_a_hundred_shown(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD + "a,human,,1\n" * 1000)
    assert len(said) == 101 and said[-1] == "ratings.csv: 900 more problems"


def of_groups(**rows: str) -> str:
    return "".join(f"i{number},{group},{group}{number},{one}\n" for group, some in rows.items() for number, one in enumerate(some.split()))


HEAD = "item,group,rater,rating\n"


def test_a_file_that_gives_nothing_is_named(tmp_path: Path) -> None:
    with_criterion = "item,group,rater,rating,criterion\n"
    emp = with_criterion + "".join(f"{row},emp\n" for row in GOOD.splitlines()[1:])
    reading, new = ReadOptions("human", (), "emp"), "a,new,s1,1\nb,new,s1,2\n"
    said = 'add-0.csv: has 2 ratings without a criterion, while others are on "emp"'
    assert refusal(tmp_path, emp, reading, [HEAD + new]) == [said] == refusal(tmp_path, emp, HUMAN, [HEAD + new])
    other = with_criterion + "a,new,s1,1,flu\n"
    assert refusal(tmp_path, emp, reading, [other]) == ['add-0.csv: holds no rating on "emp"']
    for header in (HEAD, with_criterion, HEAD + "a,new,s1,\n"):
        assert refusal(tmp_path, emp, reading, [header]) == ["add-0.csv: holds no rating"]
    assert refusal(tmp_path, HEAD, add=[GOOD]) == ["ratings.csv: holds no rating"]
    taken = [written(tmp_path / "ratings.csv", emp)], [written(tmp_path / "new.csv", with_criterion + "a,new,s1,1,emp\n")]
    study = read_study(taken[0], HUMAN, taken[1])
    assert study.criterion == "emp" and study.groups == ("human", "gpt", "new")
    assert [(one.name, one.added) for one in study.tables] == [("ratings.csv", False), ("new.csv", True)]
    assert study.tables[0].sha256 == hashlib.sha256(emp.encode()).hexdigest()


def test_of_a_thousand_criteria_some_are_named_and_nothing_untrue_is_reported(tmp_path: Path) -> None:
    rows = "".join(f"i{number},{'human' if number % 2 else 'gpt'},r{number},{number % 3},free text {number:04}\n" for number in range(1000))
    with pytest.raises(InputError) as caught:
        read_study([written(tmp_path / "ratings.csv", "item,group,rater,rating,criterion\n" + rows)], HUMAN)
    (problem,) = caught.value.problems
    assert problem.what == "the ratings are on 1,000 criteria" and len(problem.fix) < 500 and problem.fix.endswith("(1,000 in all)")


def test_a_group_column_of_names_is_refused_before_raters_are_held_against_groups(tmp_path: Path) -> None:
    path = written(tmp_path / "ratings.csv", HEAD + "".join(f"i,name {number},r{number},{number % 3}\n" for number in range(30_000)))
    began = time.process_time()
    with pytest.raises(InputError, match="30,000 groups"):
        read_study([path], HUMAN)
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("labels", "ratings", "counts"),
    [
        (("0", "1", "2"), "1 2 2", [0, 1, 2]),
        (("0", "1", "2"), "1.0 2.0 2", [0, 1, 2]),
        (("3", "2", "1"), "1.0 2 2.0", [0, 2, 1]),
        (("3", "2", "1"), "1 2 3", [1, 1, 1]),
        (("1.0", "2.50"), "2.5 1 1", [2, 1]),
        (("n/a", "1"), "n/a 1.0 1", [1, 2]),
    ],
)
def test_labels_that_are_numbers_are_met_by_value(tmp_path: Path, labels: tuple[str, ...], ratings: str, counts: list[int]) -> None:
    study = read_study([written(tmp_path / "ratings.csv", HEAD + of_groups(human=ratings, gpt=ratings))], ReadOptions("human", labels))
    assert study.counts().tolist() == [counts, counts] and study.labels == labels and study.notes == (NO_BLOCKS,)


def test_which_number_was_taken_for_which_label_is_reported(tmp_path: Path) -> None:
    def note(ratings: str) -> str:
        path = written(tmp_path / "ratings.csv", HEAD + of_groups(human=ratings, gpt=ratings))
        return read_study([path], ReadOptions("human", ("Bad", "Okay", "Good"))).notes[0]

    assert note("1 2 3") == "the ratings are numbers: 1 is Bad, 2 is Okay, 3 is Good"
    assert note("0 1 2.0") == "the ratings are numbers: 0 is Bad, 1 is Okay, 2 is Good"
    assert note("1 2 2").startswith("the ratings are numbers: 1 is Bad, 2 is Okay, 3 is Good; nobody gave 3 (if the scale begins with")
    assert note("Bad Okay Good") == NO_BLOCKS
    numbers = ReadOptions("human", ("1", "2"))
    assert refusal(tmp_path, GOOD, numbers) == ['ratings.csv: line 5: the rating "3" is not a label']
    assert refusal(tmp_path, GOOD, ReadOptions("human", ("1", "2", "1.0")))[0] == 'labels: "1.0" is the same number as an earlier label'


def test_ratings_that_are_partly_labels_and_partly_numbers_are_reported_as_that(tmp_path: Path) -> None:
    three = ReadOptions("human", ("Bad", "Okay", "Good"))
    assert refusal(tmp_path, GOOD.replace("r1,1", "r1,Bad"), three) == [
        f'ratings.csv: line {line}: the rating "{one}" is a number, while others are labels, such as "Bad"'
        for line, one in ((3, 2), (5, 3))
    ]
    assert refusal(tmp_path, GOOD.replace("r1,1", "r1,Bad")) == ['ratings.csv: line 2: the rating "Bad" is not a number']


def test_large_and_fine_ratings_keep_names_of_their_own(tmp_path: Path) -> None:
    for ratings, labels in (
        ("1000000 1000001 -0.0", ("0", "1000000", "1000001")),
        ("0.1234567 0.1234568 1e3", ("0.1234567", "0.1234568", "1000")),
    ):
        path = written(tmp_path / "ratings.csv", HEAD + of_groups(human=ratings, gpt=ratings))
        assert read_study([path], HUMAN).labels == labels


@pytest.mark.parametrize("odd", [["a"], {"a": 1}, True, 3])
@pytest.mark.parametrize("column", ["item", "group", "rater", "block"])
def test_a_name_in_jsonl_is_a_text(tmp_path: Path, column: str, odd: object) -> None:
    rows = [{**row, "block": "b"} for row in csv.DictReader(io.StringIO(GOOD))]
    rows[1] |= {column: odd}
    path = written(tmp_path / "ratings.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError) as caught:
        read_study([path], HUMAN)
    (problem,) = caught.value.problems
    assert problem.where.endswith("line 2") and problem.what.startswith(column) and "Unfit" not in problem.what


RATING = st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(1, 4))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(RATING, min_size=1, max_size=30, unique_by=lambda one: one[:2]), st.randoms(use_true_random=False))
def test_what_is_read_is_what_was_written_in_any_order(tmp_path: Path, rated: list[tuple[int, int, int]], order: random.Random) -> None:
    # Six raters in three groups; an item's stratum is its place.
    rows = [(f"i{item}", f"g{rater % 3}", f"r{rater}", str(rating), f"s{item % 2}") for item, rater, rating in rated]
    order.shuffle(rows)
    path = tmp_path / "any.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("item", "group", "rater", "rating", "stratum"), *rows])
    groups, values = {row[1] for row in rows}, {row[3] for row in rows}
    if "g0" not in groups or len(groups) < 2 or len(values) < 2:
        with pytest.raises(InputError):
            read_study([path], ReadOptions("g0"))
        return
    study = read_study([path], ReadOptions("g0"))
    assert rows_of(study) == sorted(row[:4] for row in rows) and study.groups[0] == "g0"
    assert study.labels == tuple(sorted(values))
    for by, (names, place) in study.strata.items():
        seen = Counter(names[one] for one in place)
        assert by == "stratum" and seen == Counter(row[4] for row in rows)
        for number, name in enumerate(names):
            only = study.subset(place == number)
            assert only.counts().tolist() == study.counts(place == number).tolist() and only.counts().sum() == seen[name]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet='item,groupratx1234"\n\r \t{}:\x00é', max_size=120), st.sampled_from([".csv", ".tsv", ".jsonl"]), st.booleans())
def test_whatever_a_file_holds_is_a_study_or_is_refused_in_words(tmp_path: Path, text: str, suffix: str, header: bool) -> None:
    path = tmp_path / f"any{suffix}"
    path.write_bytes(((GOOD if header else "") + text).encode())
    try:
        read_study([path], HUMAN)
    except InputError as error:
        assert all(one.where and one.what and one.fix for one in error.problems)


def test_strata_that_are_numbers_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    rows = [f"i{stratum},g{group},r{stratum}-{group},{1 + group},{stratum}" for stratum in (10, 9, 2, 100) for group in (0, 1)]
    study = read_study([written(tmp_path / "r.csv", "\n".join(["item,group,rater,rating,stratum", *rows]))], ReadOptions("g0"))
    assert study.strata["stratum"][0] == ("2", "9", "10", "100")
    assert sorted_names({"10", "9", "joy"}) == ("10", "9", "joy") and sorted_names({"1.5", "-2", "1e1"}) == ("-2", "1.5", "1e1")


def test_files_of_one_name_are_distinguished_by_their_folders(tmp_path: Path) -> None:
    files = []
    for place, folder in enumerate(("one", "two")):
        (tmp_path / folder).mkdir()
        rows = "\n".join(["item,group,rater,rating", *(f"i,g{place},{folder}{value},{value}" for value in (1, 2))])
        files.append(written(tmp_path / folder / "ratings.csv", rows))
    assert [one.name for one in read_study(files, ReadOptions("g0")).tables] == ["one/ratings.csv", "two/ratings.csv"]
    assert [one.name for one in read_study(files[:1], ReadOptions("g0"), files[1:]).tables] == ["one/ratings.csv", "two/ratings.csv"]
