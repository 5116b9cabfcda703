"""Exported ledgers: the same bytes, read wherever a ledger is, and every damaged line named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.completions.ledger import Ledger, LedgerEntry
from empathy_eval.completions.ledger_file import exported_rows
from empathy_eval.completions.merge import export, merge
from empathy_eval.completions.requests import About, Completion, Usage
from empathy_eval.design.configuration import load_configuration

from tests.conftest import demo_file

ANSWERS = {
    "s1-b": LedgerEntry("s1-b", About("017-00001", "near", 3), Completion("ja – \u200b\n", "stop", "m", Usage(7, 2, 5)), "by hand"),
    "s1-a": LedgerEntry("s1-a", About("017-00001", "self_chat"), Completion("", "length", "m", Usage(1)), "live", 1.25),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "ledger.sqlite") as made:
        made.put(*ANSWERS.values())
    return tmp_path / "ledger.sqlite"


def rows(path: Path) -> list[Any]:
    with Ledger(path, create=False, write=False) as found:
        return list(found.rows())


def test_what_is_exported_and_merged_again_is_the_same_ledger_and_the_same_bytes(ledger: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl.gz", tmp_path / "two.jsonl.gz"
    assert export(ledger, one) == 2
    merge(tmp_path / "again.sqlite", [one])
    assert export(tmp_path / "again.sqlite", two) == 2
    assert one.read_bytes() == two.read_bytes() and rows(ledger) == rows(one) == rows(tmp_path / "again.sqlite")
    assert [json.loads(line)["key"] for line in gzip.decompress(one.read_bytes()).splitlines()] == ["s1-a", "s1-b"]


def test_an_export_is_shown_like_a_ledger_and_never_written_to(ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "l.jsonl.gz"
    assert main(["ledger", "export", str(ledger), str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 2 answers\n"
    assert main(["ledger", "show", str(ledger)]) == 0
    shown = capsys.readouterr().out
    assert main(["ledger", "show", str(out)]) == 0 and capsys.readouterr().out == shown
    with pytest.raises(InputError, match="exports are only read"):
        Ledger(out)
    with pytest.raises(InputError, match=r"ends in \.jsonl\.gz"):
        export(ledger, tmp_path / "l.json")


def changed(path: Path, **values: Any) -> bytes:
    line = json.loads(gzip.decompress(path.read_bytes()).splitlines()[0])
    return json.dumps({name: value for name, value in {**line, **values}.items() if value != "gone"}).encode()


def test_all_lines_of_an_export_that_are_no_answers_are_named_at_once(ledger: Path, tmp_path: Path) -> None:
    out = tmp_path / "l.jsonl.gz"
    export(ledger, out)
    lines = [changed(out), b"{", changed(out, turn="3"), changed(out, text="gone"), b"\xff", changed(out, more=1)]
    out.write_bytes(gzip.compress(b"\n".join(lines)))
    with pytest.raises(InputError) as error:
        list(exported_rows(out))
    assert [one.where.split(": line ")[1][0] for one in error.value.problems] == ["2", "3", "4", "5", "6"]
    out.write_bytes(gzip.compress(changed(out) + b"\n" + changed(out)))
    with pytest.raises(InputError, match='answers the request "s1-a" again'):
        list(exported_rows(out))


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"no gzip", lambda data: data[:30] + b"\0\0" + data[32:]])
def test_a_damaged_export_is_told(damage: Any, ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "l.jsonl.gz"
    export(ledger, out)
    out.write_bytes(damage(out.read_bytes()))
    assert main(["ledger", "show", str(out)]) == 2
    assert "cannot be read as an exported ledger" in capsys.readouterr().err


def test_a_configuration_brings_its_answers_along(built: Path, world: Path, tmp_path: Path) -> None:
    export(built / "ledger.sqlite", tmp_path / "answers.jsonl.gz")
    config = demo_file(tmp_path, answers="answers.jsonl.gz")
    assert main(["build", str(config), "--scenarios", str(world), "--out", str(tmp_path / "build"), "--offline"]) == 0
    assert (tmp_path / "build" / "outcomes.jsonl").read_bytes() == (built / "outcomes.jsonl").read_bytes()
    assert "answers" not in load_configuration(config).published
