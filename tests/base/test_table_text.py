"""Tables for a terminal: no column joins the next, and only one module lays them out."""

from __future__ import annotations

import re

from empathy_eval.base.table_text import Column, aligned, figure, latex, markdown, table, table_text
from hypothesis import given
from hypothesis import strategies as st

from tests.test_rooms import MODULES

CELLS = st.text(alphabet="abc ", max_size=40).map(str.strip)
# A width that is written down, in a place where cells could be longer.
FIXED = re.compile(r":[<>]\d|\.[lr]just\(")
# Lines with a width that are no table of names: counts before what they count, sizes before files, and names with a width of their own.
OTHERS = {"base.table_text", "releases.compare.diff", "commands.publish", "raters.review.import_reviews"}


@given(st.integers(1, 5).flatmap(lambda wide: st.lists(st.lists(CELLS, min_size=wide, max_size=wide), min_size=2, max_size=6)))
def test_every_column_begins_after_the_widest_cell_before_it_and_two_spaces(rows: list[list[str]]) -> None:
    lines = aligned(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, line in zip(rows, lines, strict=True):
        place = 0
        for wide, cell in zip(widths, row, strict=True):
            assert line[place : place + wide].strip() == cell and not line[place + wide : place + wide + 2].strip()
            place += wide + 2


def test_the_columns_that_are_named_are_flush_right() -> None:
    assert aligned([("a", "b", "c"), ("long", "longer", "longest")], right=(1,)) == ["a          b  c", "long  longer  longest"]
    assert aligned([("a", "b", "c"), ("long", "longer", "longest")]) == ["a          b        c", "long  longer  longest"]


def test_no_other_module_lays_out_a_table_by_widths_that_are_written_down() -> None:
    assert {name for name, path in MODULES.items() if FIXED.search(path.read_text(encoding="utf-8"))} <= OTHERS


def test_a_printed_text_is_markdown_with_its_tables_as_tables() -> None:
    table = aligned([("metric", "value"), ("  a|b", "-0.5")])
    text = table_text(["", "title", *table, "", "", "a *note*"], ["bleu: case:mixed|eff:no"])
    assert text == "title\nmetric  value\n  a|b    -0.5\n\na *note*"
    assert markdown(text.lines) == "title\n\n| metric | value |\n| :--- | ---: |\n| a\\|b | -0.5 |\n\na \\*note\\*\n"


def test_the_tables_of_a_printed_text_are_latex_with_caption_notes_and_settings() -> None:
    first, second = aligned([("metric", "p"), ("a_b", "-0.5")]), aligned([("x", "y"), ("50 %", "A - B, -2")], right=())
    made = latex(table_text(["title", *first, "a note & more", "", *second]).lines, ["release 1.0.0"], ["bleu: case:mixed|eff:no"])
    one, other = made.split(r"\begin{table}")[1:]
    assert r"\caption{title. release 1.0.0.}" in one and r"a\_b & $-$0.5 \\" in one and r"a note \& more\par" in one
    assert r"\caption{release 1.0.0.}" in other and r"50 \% & A - B, $-$2 \\" in other and r"\begin{tabular}{@{}ll@{}}" in other
    assert r"bleu: case:mixed\textbar{}\allowbreak{}eff:no\par" in other and "bleu" not in one


def test_columns_say_where_in_a_row_values_are_and_how_they_are_written() -> None:
    columns = [
        Column("metric", lambda row: f"  {row['name']}"), *figure("accuracy", "of.accuracy", ".2f", "-", tested=True),
        Column("pairs", "counts.1", "d"),
    ]  # fmt: skip
    first = {"name": "bleu", "of": {"accuracy": {"value": 0.5, "interval": (0.25, 0.75), "p_corrected": 0.012345}}, "counts": (7, 12)}
    assert [str(one) for one in table(columns, [first, {"name": "x"}])] == [
        "metric  accuracy  95 % interval  p (Holm)  pairs",
        "  bleu      0.50  [0.25, 0.75]     0.0123     12",
        "  x            -",
    ]
    assert table(columns, []) == []
