"""Forms of a rater's sheet: page, guidance, CSV, XLSX, and Label Studio tasks.

Texts stay texts: nothing in them is executed, and what a spreadsheet would change is escaped, and restored on import.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder, write_whole
from empathy_eval.base.json_text import csp, embedded_json, json_text
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.templates import environment
from empathy_eval.design.canary import CANARY
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.review.record import CRITERIA
from empathy_eval.raters.review.sheets import both_replies

FOLDER = "review"


def guidance_texts(*, deciding: bool = True) -> dict[str, Any]:
    """The texts of guidance and training; unless judgements are ``deciding``, raters are not told that they decide what stays."""
    texts = {name: read_yaml(data_folder(FOLDER) / f"{name}.yaml", name) for name in ("guidance", "training")}
    if not deciding:
        texts["guidance"]["welcome"][0]["paragraphs"][0] = texts["guidance"]["not_deciding"]
    return texts


def warning(item: dict[str, Any]) -> str:
    """Warning beside an item with the flag ``crisis`` (suicide, self-harm or danger), else ""."""
    return _sensitive() if "crisis" in item.get("flags", []) else ""


@cache
def _sensitive() -> str:
    return str(read_yaml(data_folder(FOLDER) / "guidance.yaml", "guidance")["sensitive"])


WARNING = "warning"
SHOWN = ("item", "kind", "turn", WARNING, "scenario", "situation", "context", "role", "text", "strategy")
FILLED = (*CRITERIA, "decision", "reason", "tag", "right_strategy", "comment")
# A hidden column among those to fill: if only some columns are sorted, it no longer matches its row.
TIE = "belongs_to"
COLUMNS = (*SHOWN, *CRITERIA, TIE, *FILLED[len(CRITERIA) :], "rater", "review")
CHOICES: dict[str, Any] = {**dict.fromkeys(CRITERIA, ["1", "2", "3"]), "decision": ["keep", "remove"], "tag": ["right", "wrong"]}
WIDTHS = {WARNING: 26, "situation": 40, "context": 60, "text": 60, "strategy": 26, "reason": 30, "right_strategy": 26, "comment": 30}
HIDDEN = {TIE, "rater", "review"}
# Characters that start a formula in spreadsheet programs; some accept the full-width forms too.
FORMULA = tuple("=+-@'＝＋－＠")
# The same inside a text, where a program that ignores quotes would begin a row or a cell.
INSIDE = re.compile(r"(?<=[\n\r\t;,])(\s*)('*[=+\-@＝＋－＠])")
# Characters that XML cannot hold, texts that look like their escapes (ECMA-376, ST_Xstring), and what XlsxWriter takes for XML.
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)|\A<(?=r>)")
# Escapes of surrogates stay as they are: half a character is no text.
CODED = re.compile(r"_x(?![Dd][89A-Fa-f])([0-9A-Fa-f]{4})_")
# Maximum length of a cell, and the last row of a worksheet, counted from 0.
LONGEST, LAST_ROW = 32_767, 1_048_575
# Fixed, for reproducible files: the earliest time that a zip file can store.
EPOCH = datetime(1980, 1, 1, tzinfo=UTC)
SheetRow = dict[str, str]


def tie(row: SheetRow) -> str:
    """Key that ties the judgements of a row to its item and turn."""
    return f"{row['item']} {row['turn']}".strip()


def rows_of(sheet: dict[str, Any]) -> Iterator[SheetRow]:
    """Rows of a sheet: one a reply or crossed item; one a dialogue, followed by one for each of its turns.

    The columns to fill are empty.
    """
    for item in sheet["items"]:
        about = dict.fromkeys(COLUMNS, "") | {name: item[name] for name in ("item", "kind", "scenario")}
        about |= {WARNING: warning(item), "rater": sheet["rater"], "review": sheet["review"]}
        rows = [{"situation": item.get("situation", "")}]
        if "context" in item:
            text = item["text"] if item["kind"] == "variant" else both_replies(item)
            rows[0] |= {"context": "\n\n".join(f"{turn['role']}: {turn['text']}" for turn in item["context"]), "text": text}
        for index, turn in enumerate(item.get("turns", ())):
            rows.append({"kind": "turn", "turn": str(index)} | {name: turn[name] or "" for name in ("role", "text", "strategy")})
        yield from (row | {TIE: tie(row)} for row in (about | row for row in rows))


def _columns(sheet: dict[str, Any]) -> tuple[str, ...]:
    """Columns that are written, last an empty one whose header is the canary line. It need not come back."""
    return (*COLUMNS, *([sheet[CANARY]] if CANARY in sheet else []))


def shielded(text: str) -> str:
    """Text escaped for a CSV cell: an apostrophe before what a spreadsheet would execute, and before such an apostrophe."""
    return _shielded_start(INSIDE.sub(r"\1'\2", text))


def _shielded_start(text: str) -> str:
    return f"'{text}" if text[:1] in {"\t", "\r", "\n"} or text.lstrip().startswith(FORMULA) else text


def unshielded(cell: str) -> str:
    """Inverse of :func:`shielded`."""
    start = cell[1:] if cell.startswith("'") and _shielded_start(cell[1:]) == cell else cell
    text = INSIDE.sub(lambda match: match[1] + match[2].removeprefix("'"), start)
    return text if shielded(text) == cell else cell


def coded(text: str) -> str:
    """Text escaped for an XLSX cell: characters that XML cannot hold, and what looks like such an escape."""
    return UNSAFE.sub(lambda match: f"_x{ord(match[0]):04X}_", text)


def uncoded(cell: str) -> str:
    """Inverse of :func:`coded`."""
    return CODED.sub(lambda match: chr(int(match[1], 16)), cell)


def write_csv(sheet: dict[str, Any], path: Path) -> None:
    """Write the sheet as CSV: UTF-8 with a byte order mark (spreadsheets need it), every cell quoted."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(sheet), quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: shielded(value) for name, value in row.items()} for row in rows_of(sheet))
    path.write_text(text.getvalue(), encoding="utf-8-sig", newline="")


def write_xlsx(sheet: dict[str, Any], path: Path) -> None:
    """Write the sheet as XLSX: text cells that are never formulas, drop-down lists, and the same bytes every time.

    Raises:
        InputError: if a text is longer than a cell can be.
    """
    from xlsxwriter.exceptions import FileCreateError

    for row in rows_of(sheet):
        for name, value in row.items():
            # Spreadsheets count UTF-16 code units, and truncate longer texts.
            if (length := len(value.encode("utf-16-le")) // 2) > LONGEST:
                what = f"has {length} characters; a spreadsheet cell holds at most {LONGEST}"
                raise input_error(f"{path}: item {row['item']}: {name}", what, "withdraw the dialogue, or ask for fewer")
    workbook = io.BytesIO()
    try:
        _write_workbook(sheet, workbook, path.parent)
    except FileCreateError as error:  # it wraps the OSError
        raise OSError(*error.args[0].args) from error
    path.write_bytes(workbook.getvalue())


def _write_workbook(sheet: dict[str, Any], stream: io.BytesIO, parts: Path) -> None:
    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

    class Page(Worksheet):  # type: ignore[misc]
        """Codes texts as we do: XlsxWriter's own way cannot be undone for "_x0041_x0042_", and writes "<r>...</r>" as XML."""

        _escape_control_characters = staticmethod(coded)

    # Texts are written in their cells: openpyxl does not restore escapes from a shared string table.
    with Workbook(stream, {"constant_memory": True, "tmpdir": str(parts)}) as book:
        book.set_properties({"created": EPOCH, "comments": sheet.get(CANARY, "")})
        page, names = book.add_worksheet("review", Page), book.add_worksheet("strategies", Page)
        wrapped = {"text_wrap": True, "valign": "top"}
        to_fill, head = book.add_format({**wrapped, "bg_color": "#FFF8E1"}), book.add_format({"bold": True})
        shown = book.add_format({**wrapped, "num_format": "@", "quote_prefix": True})
        page.freeze_panes(1, 1)
        for index, name in enumerate(_columns(sheet)):
            page.set_column(index, index, WIDTHS.get(name, 14), to_fill if name in FILLED else None, {"hidden": name in HIDDEN})
            page.write_string(0, index, name, head)
        _add_choices(page, sheet)
        for number, row in enumerate(rows_of(sheet), 1):
            for index, value in enumerate(row.values()):
                if value:
                    page.write_string(number, index, value, shown)
        for number, strategy in enumerate([{"name": "strategy", "phase": "phase", "gloss": "what it is"}, *sheet["strategies"]]):
            for index, name in enumerate(("name", "phase", "gloss")):
                names.write_string(number, index, strategy[name])


def _add_choices(page: Any, sheet: dict[str, Any]) -> None:
    """Add drop-down lists to the columns to fill; the names of strategies are on a worksheet of their own."""
    choices = {**CHOICES, "decision": [*CHOICES["decision"], *(["A", "B"] if of_crossed(sheet) else [])]}
    for name, source in {**choices, "right_strategy": f"=strategies!$A$2:$A${len(sheet['strategies']) + 1}"}.items():
        column, error = COLUMNS.index(name), "Choose one of the list, or leave the cell empty."
        page.data_validation(1, column, LAST_ROW, column, {"validate": "list", "source": source, "error_message": error})


# A Label Studio project has one configuration, so replies, dialogues and crossed items are separate projects.
PROJECTS = {"variant": "replies", "dialogue": "dialogues", "crossed": "two-replies"}
# Separates the speaker of a turn from its strategy.
NAMED = " · "


def write_projects(sheet: dict[str, Any], folder: Path) -> None:
    """Write ``replies/``, ``dialogues/`` and ``two-replies/``, each with ``config.xml`` and ``tasks.json``.

    Kinds without items are left out.
    """
    for kind, name in PROJECTS.items():
        tasks = [_task(sheet, item) for item in sheet["items"] if item["kind"] == kind]
        if tasks:
            (folder / name).mkdir(parents=True)
            write_whole(folder / name / "config.xml", labelling_configuration(kind, sheet["strategies"]))
            write_whole(folder / name / "tasks.json", json_text(tasks, indent=1) + "\n")


def labelling_configuration(kind: str, strategies: Iterable[Mapping[str, str]]) -> str:
    """Labelling configuration of the project for a kind of item."""
    template = f"label-studio-{PROJECTS[kind]}.xml{'.j2' if kind == 'dialogue' else ''}"
    return environment(data_folder("review") / "label_studio").get_template(template).render(strategies=strategies) + "\n"


def _task(sheet: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    data = {"review": sheet["review"], "rater": sheet["rater"], **item, **({CANARY: sheet[CANARY]} if CANARY in sheet else {})}
    if item["kind"] == "dialogue":
        speakers = [NAMED.join(filter(None, (turn["role"], turn["strategy"]))) for turn in item["turns"]]
        data["turns"] = [{"speaker": speaker, "text": turn["text"]} for speaker, turn in zip(speakers, item["turns"], strict=True)]
    return {"data": data}


SCRIPTS = ("store.js", "item.js", "page.js")


def page(sheet: dict[str, Any], *, deciding: bool = True) -> str:
    """Page of one rater's sheet. It works from a file, loads nothing and sends nothing.

    Its content security policy allows only its own script and style, so texts of the sheet are never executed.

    Args:
        sheet: a sheet that is valid under ``review_sheet``.
        deciding: whether judgements decide what stays in the collection.

    Returns:
        HTML; equal sheets give equal pages.
    """
    folder, texts = data_folder(FOLDER) / "page", guidance_texts(deciding=deciding)
    templates = environment(folder)
    templates.filters["csp"] = csp
    return templates.get_template("page.html.j2").render(
        **texts,
        style=(folder / "page.css").read_text(encoding="utf-8"),
        script="\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS),
        data=embedded_json({"sheet": sheet, "training": texts["training"]}),
        crossed=of_crossed(sheet),
        canary=sheet.get(CANARY),
    )


def of_crossed(sheet: dict[str, Any]) -> bool:
    """Whether a sheet has crossed items."""
    return any(item["kind"] == "crossed" for item in sheet["items"])


def guidance_markdown(*, crossed: bool = False, deciding: bool = True) -> str:
    """Guidance, strategies, columns and the ten training replies as Markdown, for raters who use a spreadsheet.

    ``crossed`` says whether they get crossed items, ``deciding`` whether they decide what stays in the collection.
    """
    texts = guidance_texts(deciding=deciding)
    template = environment(data_folder(FOLDER)).get_template("guidance.md.j2")
    context = {**texts["guidance"], "crossed": texts["guidance"]["crossed"] if crossed else []}
    return template.render(**context, training=texts["training"]["training"], strategies=load_taxonomy().strategies)
