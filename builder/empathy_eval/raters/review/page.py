"""The page on which a rater works: one self-contained file, made from the data folder ``review/page`` and the guidance beside it."""

from __future__ import annotations

from typing import Any

from empathy_eval.base.files import data_folder
from empathy_eval.base.inline import csp, embedded_json
from empathy_eval.base.templates import environment
from empathy_eval.design.canary import CANARY
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.review.told import FOLDER, told

SCRIPTS = ("store.js", "item.js", "page.js")


def page(sheet: dict[str, Any], *, deciding: bool = True) -> str:
    """The page of one rater's sheet. It works from a file, loads nothing and sends nothing.

    Its policy lets only its own script and style run, so a text of the sheet stays a text.

    Args:
        sheet: a sheet that is valid under ``review_sheet``.
        deciding: whether judgements decide what stays in the collection.

    Returns:
        HTML; equal sheets give equal pages.
    """
    folder, texts = data_folder(FOLDER) / "page", told(deciding=deciding)
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


def guidance(*, crossed: bool = False, deciding: bool = True) -> str:
    """The guidance, the strategies, the columns and the ten training replies as Markdown, for those who rate in a spreadsheet.

    ``crossed`` says whether there are crossed items among what they get, ``deciding`` whether they decide what stays in the collection.
    """
    texts = told(deciding=deciding)
    template = environment(data_folder(FOLDER)).get_template("guidance.md.j2")
    said = {**texts["guidance"], "crossed": texts["guidance"]["crossed"] if crossed else []}
    return template.render(**said, training=texts["training"]["training"], strategies=load_taxonomy().strategies)
