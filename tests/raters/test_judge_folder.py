"""A folder of annotations that was changed, damaged or made by somebody else: refused in words by all that read one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.hashing import digest_file
from empathy_eval.commands.annotate import annotate
from empathy_eval.raters.judges.annotations import read_annotations

from tests.doubles.judge import read_once as read_once
from tests.doubles.judges import Judge


@pytest.fixture(scope="module")
def made(light: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("annotations") / "a"
    annotate(light, folder, rubric="teacher", model=Judge(bad=0), turns=2)
    assert read_annotations(folder).cases
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "a"))


def first(change: Callable[[dict[str, Any]], object]) -> Callable[[list[bytes]], list[bytes]]:
    def changed(lines: list[bytes]) -> list[bytes]:
        value = json.loads(lines[0])
        change(value)
        return [json.dumps(value).encode() + b"\n", *lines[1:]]

    return changed


def rated(**values: Any) -> Callable[[list[bytes]], list[bytes]]:
    return first(lambda value: value["ratings"][0].update(values))


LINES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "cut": (lambda lines: [lines[0][:40]], "line 1: is not JSON"),
    "empty": (lambda lines: [b"\n", *lines], "line 1: is not JSON"),
    "no text": (lambda lines: [lines[0], b"\xff\n"], "line 2: is not UTF-8"),
    "deep": (lambda lines: [b"[" * 9999 + b"]" * 9999], "line 1: is nested more than"),
    "digits": (lambda lines: [lines[0].replace(b'"sample":0', b'"sample":' + b"9" * 5000)], "a number of 5000 digits"),
    "a name twice": (lambda lines: [lines[0].strip()[:-1] + b', "turn": 3}'], '"turn" twice in one object'),
    "a line twice": (lambda lines: [*lines, lines[0]], "line 3: .* occurs twice"),
    "no object": (lambda lines: [b"1\n"], "1 is not of type object"),
    "no number": (rated(value=float("nan")), "line 1: "),
    "beyond the scale": (rated(value=7), "line 1: the value 7 for .* is not between 0 and 1"),
    "another criterion": (rated(criterion="charm"), '"charm" is not a criterion of the rubric'),
    "a sample without end": (rated(sample=10**18), "sample: 1000000000000000000 is out of range"),
    "half a sign": (rated(reason="\ud800"), "line 1: "),
    "a rating twice": (first(lambda value: value["ratings"].append(value["ratings"][0])), "the same text by the same criterion twice"),
}  # fmt: skip


@pytest.mark.parametrize("case", LINES)
def test_a_line_that_was_never_written_is_refused_with_its_place(case: str, folder: Path) -> None:
    change, said = LINES[case]
    path, header = folder / "outcomes.jsonl", json.loads((folder / "build.json").read_text())
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(InputError, match="was changed after the annotations were made"):
        read_annotations(folder)
    (folder / "build.json").write_text(json.dumps(header | {"outcomes": digest_file(path)}))
    with pytest.raises(InputError, match=said):
        read_annotations(folder)


HEADERS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another rubric": (lambda value: value["rubric"].update(persona="You are easily pleased."), "does not match its hash"),
    "another hash": (lambda value: value["configuration"].update(rubric_hash="s1-" + "0" * 64), "does not match its hash"),
    "no rubric": (lambda value: value.update(rubric={}), 'rubric: misses "name"'),
    "anchors that are no object": (
        lambda value: value["rubric"]["criteria"][0].update(anchors=["kind"]),
        r'rubric: criteria\[0\]: anchors: \["kind"\] is not of type object',
    ),
    "a scale of words": (
        lambda value: value["rubric"]["criteria"][0].update(scale={"low": "a", "high": "b", "whole": True}),
        "rubric: criteria",
    ),
    "another direction": (lambda value: value["rubric"]["criteria"][0].update(better="low"), "does not match its hash"),
    "no judge": (lambda value: value["configuration"].update(judge={}), 'misses "kind"'),
    "a judge that clears the screen": (lambda value: value["configuration"]["judge"].update(model="\x1b[2J"), "judge: model: "),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_that_was_never_written_is_refused(case: str, folder: Path) -> None:
    change, said = HEADERS[case]
    header = json.loads((folder / "build.json").read_text())
    change(header)
    (folder / "build.json").write_text(json.dumps(header))
    with pytest.raises(InputError, match=said) as caught:
        read_annotations(folder)
    assert "\x1b" not in str(caught.value)


def test_a_folder_without_its_lines_is_refused(folder: Path) -> None:
    (folder / "outcomes.jsonl").unlink()
    with pytest.raises(InputError, match=r"outcomes\.jsonl: cannot be read"):
        read_annotations(folder)
