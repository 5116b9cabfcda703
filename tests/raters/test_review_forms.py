"""The forms of a sheet: texts stay texts, in every program, and come back unchanged."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.review.answers import read_rows
from empathy_eval.raters.review.forms import (
    COLUMNS,
    coded,
    labelling_configuration,
    page,
    rows_of,
    shielded,
    uncoded,
    unshielded,
    write_csv,
    write_projects,
    write_xlsx,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from label_studio_sdk.label_interface.interface import LabelInterface
from openpyxl import Workbook, load_workbook
from openpyxl.cell import WriteOnlyCell

HOSTILE = (
    '=HYPERLINK("http://localhost/")', "+1+1", "-2+3", "@SUM(1;2)", "\t=1", "\r=1", "  =cmd|' /C calc'!A0", "'=quoted", "''twice", "＝1+1",
    "<script>alert(1)</script>", '<img src=x onerror="alert(1)">', "{{ 7*7 }} {% raw %} ${x}", "</script></View><!--", "a\r\nb\rc\nd",
    "_x0041_ stays, _x000D_ too", "\x01\x02 bell \x07", "\u202ertl\u202c ümlaut 😀", "1/2", "TRUE", "5E3",
    '"quoted", with; semicolon\tand tab', "$situation", "  spaces kept  ", "not a character: \ufffe",
    "<r>rich?</r>", "<r><t>two</t></r><r><t> parts</t></r>", "<r>\x01 &amp; _x0041_</r>", "_x0041_x0042_x0043_", "_x005F_x0041_",
    "two lines\n=1+1", "a row\r\n\t'@SUM(1)", "a cell;-2+3, ＝1", ";;'', '=1",
)  # fmt: skip
LATER = [{"name": one.name, "phase": one.phase, "gloss": one.definition} for one in load_taxonomy().strategies]


def sheet_of(texts: tuple[str, ...] | list[str]) -> dict[str, Any]:
    """A sheet with a reply for each text, and a dialogue of them all."""
    replies = [
        {"item": f"a{place:011x}", "kind": "variant", "context": [{"role": "seeker", "text": text}]}
        | dict.fromkeys(("scenario", "situation", "text"), text)
        for place, text in enumerate(texts)
    ]
    turns = [
        {"role": "helper" if place % 2 else "seeker", "text": text, "strategy": "Clarification" if place % 2 else None}
        for place, text in enumerate(texts)
    ]
    dialogue = {"item": "b" * 12, "kind": "dialogue", "scenario": "s", "situation": texts[0], "flags": [], "turns": turns}
    return {
        "format": 1, "review": f"s1-{'0' * 64}", "release": {"name": "r", "version": "1.0.0"}, "rater": "rater-01",
        "items": [*replies, dialogue], "strategies": LATER,
    }  # fmt: skip


@given(st.text() | st.text("a'=-＝,; \t\r\n"))
def test_any_text_is_shielded_reversibly(text: str) -> None:
    assert unshielded(shielded(text)) == text


@given(st.text("a'=-＝,; \t\r\n"))
def test_no_part_of_a_csv_cell_begins_as_a_formula_does(text: str) -> None:
    assert not [part for part in re.split(r"[\n\r\t;,]", shielded(text)) if part.lstrip().startswith(("=", "-", "＝"))]


@pytest.mark.parametrize("text", ["good\n- but cold", "so,=x; '-)", "'tis well said", "- cold", "= the same", "' ", ""])
def test_what_a_rater_types_is_taken_as_typed(text: str) -> None:
    assert unshielded(text) == text


def test_the_code_of_half_a_character_stays_a_code() -> None:
    assert uncoded("_xD83D_ _x0041_ _xDFFF_ _xE000_") == "_xD83D_ A _xDFFF_ \ue000"
    assert uncoded(coded("_xD83D_")) == "_xD83D_"


@pytest.mark.parametrize("text", HOSTILE)
def test_no_cell_of_the_csv_begins_as_a_formula_does(text: str) -> None:
    assert not shielded(text).lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
    assert shielded(text)[:1] not in {"\t", "\r"}


@pytest.mark.parametrize(("write", "name"), [(write_csv, "s.csv"), (write_xlsx, "s.xlsx")])
def test_hostile_texts_come_back_unchanged(write: Any, name: str, tmp_path: Path) -> None:
    sheet = sheet_of(HOSTILE)
    write(sheet, tmp_path / name)
    assert [row for _, row in read_rows(tmp_path / name)] == list(rows_of(sheet))


@settings(max_examples=20)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=4))
def test_any_texts_come_back_unchanged_from_both_kinds_of_spreadsheet(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    sheet, folder = sheet_of(texts), tmp_path_factory.mktemp("any")
    write_csv(sheet, folder / "s.csv")
    write_xlsx(sheet, folder / "s.xlsx")
    for name in ("s.csv", "s.xlsx"):
        assert [row for _, row in read_rows(folder / name)] == list(rows_of(sheet))


@pytest.mark.parametrize(("write", "name"), [(write_csv, "s.csv"), (write_xlsx, "s.xlsx")])
def test_the_warning_of_the_page_stands_beside_every_row_of_what_is_flagged_and_nowhere_else(write: Any, name: str, tmp_path: Path) -> None:
    sheet = sheet_of(["one", "two", "three"])
    sheet["items"][1]["flags"], sheet["items"][-1]["flags"] = ["crisis"], ["crisis"]
    write(sheet, tmp_path / name)
    rows = [row for _, row in read_rows(tmp_path / name)]
    flagged = {sheet["items"][1]["item"], sheet["items"][-1]["item"]}
    assert {row["item"] for row in rows if row["warning"]} == flagged
    assert {row["warning"] for row in rows if row["item"] in flagged} == {
        read_yaml(data_folder("review") / "guidance.yaml", "guidance")["sensitive"]
    }
    assert page(sheet).count(rows[1]["warning"]) == 2, "for replies and for dialogues"


def test_the_xlsx_holds_text_cells_only_and_lists_to_choose_from(tmp_path: Path) -> None:
    write_xlsx(sheet_of(HOSTILE), tmp_path / "s.xlsx")
    page = load_workbook(tmp_path / "s.xlsx")["review"]
    cells = [cell for row in page.iter_rows(min_row=2) for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} == {"s"}
    assert all(cell.quotePrefix for cell in cells)
    lists = {str(one.sqref).split("2:")[0]: one.formula1 for one in page.data_validations.dataValidation}
    column = {name: chr(ord("A") + COLUMNS.index(name)) for name in COLUMNS}
    assert {lists[column[name]] for name in ("coherence", "helpfulness", "empathy")} == {'"1,2,3"'}
    assert (lists[column["decision"]], lists[column["tag"]]) == ('"keep,remove"', '"right,wrong"')
    assert lists[column["right_strategy"]] == "strategies!$A$2:$A$16"


def test_the_xlsx_has_the_same_bytes_in_another_process_at_another_time_and_place(tmp_path: Path) -> None:
    write_xlsx(sheet_of(HOSTILE), tmp_path / "s.xlsx")
    with zipfile.ZipFile(tmp_path / "s.xlsx") as book:
        assert {one.date_time for one in book.infolist()} == {(1980, 1, 31, 0, 0, 0)}, "no time of day"
    time.sleep(2.1)  # the clock of a zip file counts in steps of two seconds
    (tmp_path / "sheet.json").write_text(json.dumps(sheet_of(HOSTILE)))
    run = (
        "import json, pathlib; from empathy_eval.raters.review.forms import write_xlsx;"
        "write_xlsx(json.loads(pathlib.Path('sheet.json').read_text()), pathlib.Path('again.xlsx'))"
    )
    place = {"TZ": "Pacific/Auckland", "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", run], cwd=tmp_path, env=os.environ | place, check=True)
    assert (tmp_path / "again.xlsx").read_bytes() == (tmp_path / "s.xlsx").read_bytes()


def test_the_xlsx_looks_as_raters_know_it(tmp_path: Path) -> None:
    write_xlsx(sheet_of(HOSTILE), tmp_path / "s.xlsx")
    book = load_workbook(tmp_path / "s.xlsx")
    page = book["review"]
    # Columns next to each other that are alike are one entry.
    ranges = page.column_dimensions.values()
    columns = {name: next(one for one in ranges if one.min <= place <= one.max) for place, name in enumerate(COLUMNS, 1)}
    assert page.freeze_panes == "B2"
    assert {name for name, column in columns.items() if column.hidden} == {"belongs_to", "rater", "review"}
    assert (round(columns["text"].width), round(columns["comment"].width)) == (61, 31)
    assert columns["empathy"].fill.fgColor.rgb == "FFFFF8E1" and columns["empathy"].alignment.wrap_text
    assert columns["text"].fill.fill_type is None
    assert all(cell.font.b for cell in page[1])
    shown = page.cell(2, COLUMNS.index("text") + 1)
    assert (shown.number_format, shown.alignment.wrap_text, shown.alignment.vertical) == ("@", True, "top")
    assert all(one.error == "Choose one of the list, or leave the cell empty." for one in page.data_validations.dataValidation)
    rows = [("strategy", "phase", "what it is"), *((one["name"], one["phase"], one["gloss"]) for one in LATER)]
    assert list(book["strategies"].iter_rows(values_only=True)) == rows


def test_an_xlsx_that_an_older_version_wrote_is_read(tmp_path: Path) -> None:
    # As openpyxl writes it: texts in their cells, what begins as a rich text does too.
    book, sheet = Workbook(write_only=True), sheet_of(HOSTILE)
    page = book.create_sheet("review")
    page.append(COLUMNS)
    for row in rows_of(sheet):
        cells = [WriteOnlyCell(page, coded(text).replace("_x003C_", "<")) if text else None for text in row.values()]
        for cell in filter(None, cells):
            cell.data_type = "s"
        page.append(cells)
    book.save(tmp_path / "s.xlsx")
    assert [row for _, row in read_rows(tmp_path / "s.xlsx")] == list(rows_of(sheet))


def test_a_text_that_no_spreadsheet_cell_holds_is_an_error_and_never_cut(tmp_path: Path) -> None:
    for text in ("x" * 32_759, "\U0001f600" * 16_379, f"<r>{'x' * 32_752}</r>"):  # "seeker: " stands before it
        write_xlsx(sheet_of([text]), tmp_path / "s.xlsx")
        assert next(read_rows(tmp_path / "s.xlsx"))[1]["context"] == f"seeker: {text}"
    for text in ("x" * 32_768, "\U0001f600" * 16_384, f"<r>{'x' * 32_761}</r>"):
        with pytest.raises(InputError, match="item a00000000000: scenario: has 32768 characters; a spreadsheet cell holds at most 32767"):
            write_xlsx(sheet_of([text]), tmp_path / "no.xlsx")
    assert not (tmp_path / "no.xlsx").exists()


def test_an_xlsx_on_a_full_disk_is_a_job_that_could_not_finish(tmp_path: Path) -> None:
    (tmp_path / "sheet.json").write_text(json.dumps(sheet_of(HOSTILE)))
    run = (
        "import json, pathlib, resource; from empathy_eval.base.errors import JobError; from empathy_eval.base.files import room_for\n"
        "from empathy_eval.raters.review.forms import write_xlsx\n"
        "sheet = json.loads(pathlib.Path('sheet.json').read_text())\n"
        "for limit in (10, 1_000, 5_000, 20_000, 2**30):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, 2**30))\n"
        "    try:\n"
        "        with room_for('here'): write_xlsx(sheet, pathlib.Path('s.xlsx'))\n"
        "        print('written')\n"
        "    except JobError as error: print(error.problems[0].what)\n"
    )
    place = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, env=os.environ | place, text=True, capture_output=True)
    assert (done.stderr, done.stdout.splitlines()) == ("", ["cannot be written: File too large"] * 4 + ["written"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_csv_is_read_as_spreadsheets_save_it(delimiter: str, encoding: str, tmp_path: Path) -> None:
    write_csv(sheet_of(HOSTILE), tmp_path / "s.csv")
    with (tmp_path / "s.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.reader(stream))
    with (tmp_path / "again.csv").open("w", encoding=encoding, newline="") as stream:
        csv.writer(stream, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    assert list(read_rows(tmp_path / "again.csv")) == list(read_rows(tmp_path / "s.csv"))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.csv", "item,kind\n".encode("utf-16"), "is not UTF-8"),
        ("s.csv", b"item,kind\n", 'row 1: misses the columns "turn"'),
        ("s.csv", b"", "misses the columns"),
        ("s.xlsx", b"PK no", "is not XLSX"),
    ],
)
def test_a_file_that_is_no_spreadsheet_of_ours_is_named(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        list(read_rows(tmp_path / name))


def changed(book: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """A workbook with another content of one of its files."""
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(book.with_name("changed.xlsx"), "w") as new:
        for one in old.namelist():
            new.writestr(one, change(old.read(one)) if one == name else old.read(one))
    return book.with_name("changed.xlsx")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("xl/worksheets/sheet1.xml", lambda data: data[: len(data) // 2]),
        ("xl/worksheets/sheet1.xml", lambda data: data.replace(b't="inlineStr"><is><t>item</t></is>', b't="s"><v>999</v>')),
        ("xl/workbook.xml", lambda data: re.sub(rb"<sheets>.*</sheets>", b"<sheets/>", data)),
    ],
    ids=["cut", "a text that is not there", "no page"],
)
def test_a_damaged_sheet_of_an_xlsx_is_named(name: str, change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    write_xlsx(sheet_of(HOSTILE), tmp_path / "s.xlsx")
    with pytest.raises(InputError, match="changed.xlsx: is not XLSX"):
        list(read_rows(changed(tmp_path / "s.xlsx", name, change)))


def test_an_xlsx_that_tells_a_wrong_size_is_read_whole(tmp_path: Path) -> None:
    write_xlsx(sheet_of(HOSTILE), tmp_path / "s.xlsx")
    size, wrong = rb'<dimension ref="[A-Z0-9:]+"/>', b'<dimension ref="A1:B2"/>'
    small = changed(tmp_path / "s.xlsx", "xl/worksheets/sheet1.xml", lambda data: re.sub(size, wrong, data, count=1))
    assert [row for _, row in read_rows(small)] == list(rows_of(sheet_of(HOSTILE)))


OFFICE = shutil.which("soffice")


@pytest.mark.skipif(OFFICE is None, reason="LibreOffice (soffice) is not installed")
def test_libreoffice_opens_the_xlsx_with_the_same_texts_and_saves_it_so(tmp_path: Path) -> None:
    # LibreOffice makes one kind of line end of all, drops control characters, and does not code again what looks like a code.
    texts = [text for text in HOSTILE if "_x0041_" not in text and not any(char < " " and char not in "\t\n" for char in text)]
    sheet = sheet_of(texts)
    write_xlsx(sheet, tmp_path / "s.xlsx")
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    target = ["--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", str(tmp_path / "out"), str(tmp_path / "s.xlsx")]
    done = subprocess.run([str(OFFICE), "--headless", profile, *target], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert [row for _, row in read_rows(tmp_path / "out" / "s.xlsx")] == list(rows_of(sheet))
    assert not [cell for row in load_workbook(tmp_path / "out" / "s.xlsx")["review"].iter_rows() for cell in row if cell.data_type == "f"]


# The tags that our configurations use, as Label Studio documents them: its SDK lets unknown ones pass.
TAGS = {"View", "Header", "Text", "Paragraphs", "ParagraphLabels", "Label", "Rating", "TextArea", "Choices", "Choice"}


@pytest.mark.parametrize("kind", ["variant", "dialogue", "crossed"])
def test_label_studio_accepts_the_configuration_and_its_tags_are_on_the_list(kind: str) -> None:
    import xml.etree.ElementTree as ElementTree

    text = labelling_configuration(kind, LATER)
    interface: Any = LabelInterface(text)
    interface.validate()
    assert {element.tag for element in ElementTree.fromstring(text).iter()} <= TAGS


def test_label_studio_accepts_every_task_hostile_ones_too_and_they_hold_the_texts(tmp_path: Path) -> None:
    sheet = sheet_of(HOSTILE)
    write_projects(sheet, tmp_path)
    for name, count in (("replies", len(HOSTILE)), ("dialogues", 1)):
        interface: Any = LabelInterface((tmp_path / name / "config.xml").read_text())
        tasks = json.loads((tmp_path / name / "tasks.json").read_text(encoding="utf-8"))
        assert len(tasks) == count
        assert all(interface.validate_task(task) for task in tasks)
        assert [task["data"]["item"] for task in tasks] == [
            one["item"] for one in sheet["items"] if (name == "replies") == (one["kind"] == "variant")
        ]
        if name == "replies":
            assert [task["data"]["text"] for task in tasks] == list(HOSTILE)
            assert not interface.validate_task({"data": {"text": "only"}}), "the SDK does look at tasks"
        else:
            assert [turn["text"] for turn in tasks[0]["data"]["turns"]] == list(HOSTILE)
