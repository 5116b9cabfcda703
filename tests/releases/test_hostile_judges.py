"""What a judge says and is called may be anything: in a release, on its card and page, in tables and on the stand it stays text."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.cli import main
from empathy_eval.commands.annotate import annotate
from empathy_eval.completions.requests import Completion, Usage, parse_json_answer
from empathy_eval.design.dataset import SPLITS
from empathy_eval.design.prompts import Message
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.verify.verify import verify

from tests.doubles.judges import Judge

NAME = "=cmd()<script>alert(1)</script>![i](https://x.example/i.png)[l](javascript:x)<b>\"&'"
# Taken as they are: no sign in them does anything to a text.
TEXTS = (
    "<script>alert(2)</script><img src=x onerror=alert(3)>", "![pixel](https://x.example/p.png) [here](javascript:alert(4))",
    "| a | b |\n| --- | --- |\n| c | d |\n\n---\n# A heading\n```", '=HYPERLINK("https://x.example")', "{{ facts }} {% raw %} ${x}",
)  # fmt: skip
# Refused, and never anywhere but in the ledger.
REFUSED = ("\x1b[31mred\x1b[0m \x1b]0;title\x07", "\u202egnp.exe\u202c \u2066x\u2069", "half \ud83d of a pair", "a\x00b", "word " * 210_000)


class Hostile(Judge):
    """Says something evil as its reason, of every other text something that no text has."""

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        draw = random.Random(digest([self.name, messages[1]]))
        answer = self._said(messages[0]["content"], draw)
        return json.dumps({**answer, "analysis": draw.choice((*TEXTS, *REFUSED))})


@pytest.fixture(scope="module")
def folders(light: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = [tmp_path_factory.mktemp("evil") / name for name in ("teacher", "warmer")]
    for out in made:
        annotate(light, out, rubric=out.name, model=Hostile(NAME), turns=6)
    return made


@pytest.fixture(scope="module")
def judged(light: Path, folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("judged") / "release"
    release(light.parent / "build", out, "0.2.0", annotations=folders)
    return out


class OneWay(Judge):
    """Of some comparisons one order has no good answer, of some turns no strategy is named or none is thought of."""

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        draw = random.Random(digest([self.name, messages[:2]]))
        return "I would rather not say." if draw.random() < 0.5 else json.dumps(self._said(messages[0]["content"], draw))


def harmless(text: str) -> bool:
    """Whether a text does nothing to a terminal."""
    return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)


@pytest.mark.e2e
def test_reasons_are_rows_as_they_were_said_and_what_no_text_holds_is_unannotated(judged: Path, folders: list[Path]) -> None:
    reasons = {
        row[name]
        for config, names in (("annotations", ["reason"]), ("comparisons", ["reason_12", "reason_21"]))
        for split in SPLITS
        for row in pq.read_table(judged / "data" / config / f"{split}.parquet", columns=names).to_pylist()
        for name in names
    }
    assert reasons == set(TEXTS)
    manifest = json.loads((judged / "manifest.json").read_text())
    flaws = {name for one in manifest["annotations"] for name in one["unannotated_by_reason"]}
    assert {name.partition(": ")[2] for name in flaws} == {"control_sign", "bidirectional_sign", "surrogate", "too_long"}
    assert verify(judged) == [] == verify(judged, fast=True, ledgers=[one / "ledger.sqlite" for one in folders])


def test_the_card_has_the_name_of_a_judge_as_code_in_a_table_that_holds(judged: Path) -> None:
    card = (judged / "README.md").read_text()
    part = card.partition("## Annotations by judges")[2].partition("\n## ")[0]
    table = [line for line in part.splitlines() if line.startswith("|")]
    assert len(table) == 4 and {line.count("|") for line in table} == {7}
    # What stands between backticks is neither markup nor a link.
    assert f"| `{NAME}` | `teacher` |" in card and "<script" not in re.sub(r"`[^`\n]+`", "", card)
    assert not any(text in card for text in TEXTS) and harmless(card) and harmless((judged / "CHANGELOG.md").read_text())
    assert card.count("\n---\n") == 1


def test_the_page_has_the_name_of_a_judge_as_text_and_runs_nothing(judged: Path) -> None:
    page = (judged / "report" / "index.html").read_text()
    assert "<script" not in page and "onerror" not in page and 'javascript:x"' not in page and "=cmd()&lt;script&gt;alert(1)" in page
    assert "<img" not in page and '<a href="javascript' not in page and harmless(page)
    tables = (judged / "report" / "tables.json").read_text()
    assert harmless(tables) and f"{NAME}/teacher" in json.loads(tables)["judges"]["worth"]


def test_stand_and_agreement_of_such_a_judge_are_tables(judged: Path, folders: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(judged), "--judge", f"{NAME}/teacher", "--no-shortcuts", "--no-cache", "--csv"]) == 0
    said = capsys.readouterr()
    rows = [row for row in csv.reader(io.StringIO(said.out)) if row]
    assert len({len(row) for row in rows}) == 1 and len(rows) > 6 and harmless(said.out + said.err.replace("\r", ""))
    assert {row[rows[0].index("metric")] for row in rows[1:]} >= {f"{NAME}/teacher:guidance"}
    assert main(["score", str(judged), "--judge", f"{NAME}/teacher", "--no-shortcuts", "--no-cache"]) == 0
    assert main(["agree", str(folders[0]), "--release", str(judged)]) in (0, 2)
    said = capsys.readouterr()
    assert harmless(said.out + said.err.replace("\r", "")) and "Traceback" not in said.err


@pytest.mark.parametrize("name", ["a|b", "a`b", "a\nb", "\x1b[31m", "\u202ea", "a" * 201, " ", "\ud83d"])
def test_a_name_that_would_break_a_table_or_a_terminal_is_refused_before_anything_is_asked(name: str, light: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        annotate(light, tmp_path / "a", rubric="warmer", model=Judge(name), turns=1)
    assert not (tmp_path / "a" / "ledger.sqlite").exists() and harmless(str(error.value))


@pytest.mark.parametrize("what", ["name", "version", "reason", "surrogate"])
def test_a_folder_of_a_stranger_that_would_write_into_the_card_is_refused(
    what: str, folders: list[Path], light: Path, tmp_path: Path
) -> None:
    evil, folder = "demo | ![p](https://x.example) |\n\n---\n<script>", Path(shutil.copytree(folders[0], tmp_path / "a"))
    header, lines = json.loads((folder / "build.json").read_text()), (folder / "outcomes.jsonl").read_text().splitlines()
    case = next(case for case in map(json.loads, lines) if case["failures"])
    if what in ("name", "version"):
        header["configuration"]["release"][what] = evil
    elif what == "reason":
        case["failures"][-1].update(reasons=[evil], final=True)
    else:
        case["ratings"] = [{**one, "reason": "\ud83d"} for one in case["ratings"]]
        case["failures"][-1]["reasons"] = ["\ud83d"]
    changed = [json.dumps(case) if json.loads(line)["pair_id"] == case["pair_id"] else line for line in lines]
    (folder / "outcomes.jsonl").write_text("".join(f"{line}\n" for line in changed))
    (folder / "build.json").write_text(json.dumps(header | {"outcomes": digest_file(folder / "outcomes.jsonl")}))
    with pytest.raises(InputError) as error:
        release(light.parent / "build", tmp_path / "r", "0.3.0", annotations=[folder])
    assert not (tmp_path / "r").exists() and harmless(str(error.value))


@pytest.mark.e2e
@pytest.mark.parametrize("rubric", ["warmer", "strategies"])
def test_what_came_to_nothing_because_what_it_goes_with_did_is_left_out_and_the_rest_is_taken(
    rubric: str, light: Path, tmp_path: Path
) -> None:
    annotate(light, tmp_path / "a", rubric=rubric, model=OneWay(), turns=12)
    release(light.parent / "build", tmp_path / "r", "0.3.0", annotations=[tmp_path / "a"])
    assert verify(tmp_path / "r", fast=True, ledgers=[tmp_path / "a" / "ledger.sqlite"]) == []


def test_how_an_answer_ended_is_a_word_or_unknown() -> None:
    ends = {
        end: parse_json_answer(Completion("", end, "m", Usage(0, 0, 0)))[1][0].reason
        for end in ("length", "\x1b[31m", "a | b\n", "content_filter")
    }
    assert list(ends.values()) == ["finish_length", "finish_unknown", "finish_unknown", "finish_content_filter"]
