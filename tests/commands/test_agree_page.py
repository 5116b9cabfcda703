"""``agree --page``: its figures beside what is printed, the example of the docs, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main

DOCS = Path(__file__).parent.parent.parent / "docs"
EXAMPLE = DOCS / "reliability.csv"


def figures(page: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.with_suffix(".json").read_text())
    return found


def test_the_example_of_the_docs_gives_what_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, told = (DOCS / "agreement.md").read_text().partition("## A page of experts")
    blocks = dict(re.findall(r"^```(csv|sh)\n(.*?)^```$", told, re.MULTILINE | re.DOTALL))
    assert EXAMPLE.read_text().startswith(blocks["csv"])
    monkeypatch.chdir(DOCS.parent)
    program, *arguments = blocks["sh"].split()
    assert program == "empathy-eval" and arguments.pop() == "build/reliability.html"
    page = tmp_path / "made" / "reliability.html"
    assert main([*arguments, str(page), "--resamples", "50"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("reliability.csv, sha256 ") and "\n\n3 experts; judges: judge-a, judge-a#2, judge-b\n" in said
    assert "person" not in said
    assert str(page.with_suffix(".json")) in said
    assert "--rubric lend-an-ear" in page.read_text() and f"page: {page}\n" in said
    found = figures(page)
    validating, dismissing = found["frameworks"][0]["rows"]
    assert f"{dismissing['inflation']['judge-b']['value']:.3f} points above the median expert" in told
    assert f"{found['overall']['benchmark']:.3f}" in told
    assert [row["judges"][name]["at_overall"] for row in (validating, dismissing) for name in ("judge-a", "judge-b")] == [True, False] * 2
    assert found["panel"]["crowd"] == [f"person-{place}" for place in range(1, 9)]
    assert found["frameworks"][0]["framework"]["opposites"] == [["validating_emotions", "dismissing_emotions"]]


def test_the_call_gives_the_agreement_of_experts_and_judges_and_the_same_bytes_again(tmp_path: Path) -> None:
    one, other = tmp_path / "one.html", tmp_path / "other.html"
    found = ee.agree(EXAMPLE, page=one, rubrics=["lend-an-ear"], resamples=20)
    assert found.experts == ("expert-1", "expert-2", "expert-3") and found.judges == ("judge-a", "judge-a#2", "judge-b")
    ee.agree(str(EXAMPLE), page=str(other), rubrics=["lend-an-ear"], resamples=20)
    assert one.with_suffix(".json").read_bytes() == other.with_suffix(".json").read_bytes()
    assert figures(one)["panel"]["crowd_as"] == "mean"
    ee.agree(EXAMPLE, page=other, crowd_as="median", resamples=0)
    assert figures(other)["panel"]["crowd_as"] == "median"
    assert figures(other)["frameworks"][0]["framework"] | {"criteria": []} == {
        "name": "lend-an-ear", "title": "lend-an-ear", "criteria": [], "scales": {}, "better": {}, "opposites": [],
    }  # fmt: skip


def test_what_is_for_a_page_is_refused_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agree", str(EXAMPLE), "--crowd", "person-1", "--crowd-as", "median", "--rubric", "lend-an-ear"]) == 2
    said = capsys.readouterr().err
    assert all(f"{name}: applies to the reliability page" in said for name in ("crowd", "crowd as", "rubric")) and "--page OUT.html" in said


def test_a_page_goes_over_nothing_that_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not an .html file"):
        ee.agree(EXAMPLE, page=tmp_path / "page")
    record = tmp_path / "reviews.json"
    record.write_text("{}")
    with pytest.raises(InputError, match="is an input file"):
        ee.agree([EXAMPLE, record], page=tmp_path / "reviews.html")
    # The record of reviews lies beside the tables that were written of it.
    with pytest.raises(InputError, match="exists without the other file of a page"):
        ee.agree(EXAMPLE, page=tmp_path / "reviews.html")
    assert record.read_text() == "{}" and not list(tmp_path.glob("*.html"))
    table = tmp_path / "table.html"
    table.write_bytes(EXAMPLE.read_bytes())
    with pytest.raises(InputError, match="is an input file"):
        ee.agree(table, page=table)
    with pytest.raises(InputError, match="is an input file"):
        ee.agree(EXAMPLE, page=tmp_path / "rubric.html", rubrics=[tmp_path / "rubric.html"])
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        ee.agree(EXAMPLE, page=tmp_path / "folder.html")
    assert table.read_bytes() == EXAMPLE.read_bytes() and not (tmp_path / "folder.html").exists()


def test_tags_alone_have_no_page(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no rating"):
        ee.agree([], page=tmp_path / "page.html")
