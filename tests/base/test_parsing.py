"""YAML and JSON of strangers: what is no plain file is refused early, in words, and memory stays bounded."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.parsing import DEEPEST, ParseError, json_value, yaml_value
from empathy_eval.base.schemas import read_json, read_yaml
from empathy_eval.cli import main

LETTERS = "abcdefgh"
# Half a kilobyte of aliases: 9 ** 9 values.
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip(LETTERS, LETTERS[1:] + "i", strict=True)
)


def test_aliases_that_expand_are_refused_before_they_take_memory(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(BOMB)
    assert len(BOMB) < 512
    code = f"from empathy_eval.cli import main; status = main(['preview', {str(path)!r}])"
    # Not the largest memory that the process was charged with: that counts the one it was forked from.
    peak = "next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))"
    told = subprocess.run(
        [sys.executable, "-c", f"{code}; print(status, {peak})"],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent.parent,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30)),
    )  # fmt: skip
    status, kilobytes = map(int, told.stdout.split())
    assert status == 2 and kilobytes < 400_000
    assert f"{path}: line 5: holds aliases that expand to more than 10,000 values" in told.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &a [*a]", 'line 1: holds itself ("*a")'),
        ("a: " + "[" * 500 + "]" * 500, f"line 1: is nested more than {DEEPEST} deep"),
        ("a: " + "[" * 100_000, f"line 1: is nested more than {DEEPEST} deep"),
        ("a: 1\nb: 2\na: 3", 'line 3: has the key "a" twice'),
        ("a: {b: 1, b: 2}", 'line 1: has the key "b" twice'),
        ("a: 2026-13-45", "holds a value that cannot be read: month must be in 1..12"),
        ("a: " + "9" * 5000, "holds a value that cannot be read"),
        ("a: !!python/object/apply:os.system [id]", "is not YAML: could not determine a constructor"),
        ("a: [1", "is not YAML"),
        ("a: 1\nb: .nan", 'line 2: holds the number ".nan", which is not finite'),
        ("a: [1, -.inf]", 'line 1: holds the number "-.inf"'),
        ("a: 1.0e+400", 'line 1: holds the number "1.0e+400"'),
        ("a: !!float nan", 'line 1: holds the number "nan"'),
    ],
)
def test_yaml_that_is_no_plain_file_is_refused_in_words(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_yaml(tmp_path / "config.yaml", "configuration")
    assert said in str(caught.value)


def test_aliases_and_merges_of_a_plain_file_stay_what_they_were() -> None:
    for path in sorted(data_folder("release").glob("*.yaml")):
        assert yaml_value(path.read_text()) == yaml.safe_load(path.read_text())
    assert yaml_value("a: &x {one: 1}\nb: {<<: *x, two: 2}\nc: [*x, *x]") == {
        "a": {"one": 1}, "b": {"one": 1, "two": 2}, "c": [{"one": 1}, {"one": 1}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "is nested more than"),
        ("[" * 65 + "]" * 65, "is nested more than"),
        ('{"a": NaN}', "holds NaN"),
        ("[-Infinity]", "holds -Infinity"),
        ("[1e999]", "holds the number 1e999, which is too large"),
        ("[" + "1" * 5000 + "]", "holds a number of 5000 digits"),
        ('["\\ud800"]', "holds half a sign"),
        ("{", "is not JSON"),
    ],
)
def test_json_that_no_program_of_ours_writes_is_refused_in_words(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=said):
        json_value(text)
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError) as caught:
        read_json(tmp_path / "a.json", None, "fetch it again")
    assert said in str(caught.value) and "fetch it again" in str(caught.value)


def test_json_of_ours_is_read_as_it_was() -> None:
    assert json_value('{"a": [1, -2.5, "\\ud83d\\ude00", null, true, 9223372036854775807]}') == {
        "a": [1, -2.5, "\N{GRINNING FACE}", None, True, 2**63 - 1],
    }  # fmt: skip
    assert json_value("[" * DEEPEST + "]" * DEEPEST)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    with path.open("wb") as stream:
        stream.truncate(2**40)
    assert main(["preview", str(path)]) == 2
    assert "is larger than 268,435,456 bytes" in capsys.readouterr().err
