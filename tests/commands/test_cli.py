"""The command line: exit codes, what is printed, and that bad input writes nothing."""

import argparse
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from empathy_eval.cli import VERBS, main, make_parser
from empathy_eval.commands.command import Command, add_options

from tests.conftest import copy_world, demo_file


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    world = copy_world(tmp_path / "scenarios")
    return ["build", str(demo_file(tmp_path)), "--out", str(tmp_path / "b"), "--scenarios", str(world)]


@pytest.mark.e2e
def test_build_and_release_print_what_a_user_needs(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo_file(tmp_path, report={"metrics": ["bleu", "rouge-l"], "bootstrap": 10})
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "3 planned: 3 accepted, 0 rejected, 0 missing" in said
    out = tmp_path / "b" / "release"
    assert main(["release", str(tmp_path / "b"), "--out", str(out), "--version", "0.1.0", "--date", "2026-01-31"]) == 0
    said = capsys.readouterr().out
    assert "BLEU-4" in said and str(out / "report" / "index.html") in said and f'datasets.load_dataset("{out}", "pairs")' in said
    assert "0.1.0 (2026-01-31)" in (out / "CHANGELOG.md").read_text()
    assert main(["report", str(out), "--out", str(tmp_path / "report"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inversion"][0]["metric"] == "BLEU-4"


BROKEN = """
import empathy_eval as ee

class Sad(ee.MeanMetric):
    name, signature, reads = "sad", "v:1", ()
    def score(self, text):
        raise LookupError("no such word")
"""


@pytest.mark.parametrize("module", ["sad_metric", "no_metric"])
def test_an_error_in_code_of_ones_own_is_reported_with_its_line_and_all_of_it_where_that_is_asked_for(
    module: str, light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = "" if module == "sad_metric" else 'raise OSError("no disk")\n'
    source = (BROKEN if module == "sad_metric" else "import json\n") + broken
    (tmp_path / f"{module}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    line = 1 + next(number for number, one in enumerate(source.splitlines()) if "raise " in one)
    asked = ["score", str(light), "--metric", f"{module}:Sad", "--no-shortcuts"]
    for more, whole in (([], False), (["--traceback"], True)):
        assert main([*asked, *more]) == (1 if module == "sad_metric" else 2)
        said = capsys.readouterr().err
        assert f"({module}.py:{line}" in said and ("Traceback (most recent call last)" in said) == whole
        assert ("add --traceback" in said) != whole


def test_every_verb_shows_a_whole_traceback_where_it_is_asked_for() -> None:
    for verb in (["score", "r"], ["diff", "a", "b"], ["ledger", "show", "l"]):
        given = make_parser().parse_args([*verb, "--traceback"])
        assert given.traceback and not make_parser().parse_args(verb).traceback


def test_json_summaries_can_be_read_by_a_program(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accepted"] == 3


def test_bad_input_exits_with_2_names_the_place_and_writes_nothing(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo_file(tmp_path, samples=-1)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "config.yaml: samples: -1" in said and "Fix:" in said and "Traceback" not in said
    assert not (tmp_path / "b").exists()


def test_an_offline_build_without_a_ledger_exits_with_2_and_writes_nothing(arguments: list[str], tmp_path: Path) -> None:
    assert main([*arguments, "--offline"]) == 2
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("work", "gone", "status"),
    [
        ("raise input_error('x', 'is wrong', 'mend it')", "stderr", 2),
        ("raise BrokenPipeError", "stderr", 1),
        ("print('x' * 100_000)", "stdout", 0),
        ("print('x' * 100_000); raise input_error('x', 'is wrong', 'mend it')", "stdout", 2),
        ("print('x', file=sys.stderr, flush=True)", "stderr", 0),
        ("return 1", "stdout", 1),
    ],
)
def test_only_a_reader_of_standard_output_who_has_enough_ends_a_command_well(work: str, gone: str, status: int) -> None:
    script = (
        "from empathy_eval import cli; from empathy_eval.base.errors import input_error\n"
        "from empathy_eval.commands.command import Command\n"
        f"def run(command, options):\n    print('done')\n    {work}\n    return 0\n"
        "Command.__call__ = run\n"
        "import sys; sys.argv[1:] = ['verify', 'x']; cli.entry()\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, gone: writer}
    env = {**os.environ, "PYTHONUNBUFFERED": ""}
    try:
        done = subprocess.run([sys.executable, "-c", script], **streams, env=env, timeout=60, check=False)  # type: ignore[call-overload]
        assert done.returncode == status
    finally:
        os.close(writer)


def test_help_teaches_and_is_quick() -> None:
    said = subprocess.run([sys.executable, "-m", "empathy_eval", "--help"], capture_output=True, text=True, timeout=20, check=True).stdout
    assert "empathy-eval build demo --out build/demo" in said
    heavy = "import sys, empathy_eval.cli; sys.exit(any(name in sys.modules for name in ('torch', 'spacy', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-c", heavy], check=False).returncode == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["score", "r", "--metrics", "x"], "--metric"),
        (["review", "export", "r", "--out", "o", "--ratrs=3"], "--raters"),
        (["score", "r", "--split", "tests"], "test"),
        (["scor", "r"], "score"),
    ],
)
def test_an_unknown_option_or_choice_names_the_one_that_is_meant_under_the_usage_of_the_verb(
    typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(typed)
    said = capsys.readouterr().err
    assert f'did you mean "{meant}"?' in said
    verb = " ".join(one for one in typed[:2] if one in ("score", "review", "export"))
    assert said.startswith(f"usage: empathy-eval {verb} ".replace("  ", " "))


@pytest.mark.parametrize(("verb", "kept"), [("build", True), ("annotate", True), ("verify", False), ("publish", False)])
def test_a_stop_speaks_of_the_ledger_where_answers_are_kept(
    verb: str, kept: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(command: Command, options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Command, "__call__", stopped)
    more = {
        "verify": [],
        "publish": ["--repo", "a/b"],
        "annotate": ["--out", "b", "--rubric", "teacher", "--model", "m"],
        "build": ["--out", "b"],
    }
    assert main([verb, "a", *more[verb]]) == 1
    assert ("in the ledger" in capsys.readouterr().err) == kept


def test_every_option_is_a_parameter_of_the_call_or_of_what_prints_its_result() -> None:
    commands = [one for verb in VERBS for one in getattr(verb.COMMAND, "commands", (verb.COMMAND,))]
    assert len([one for one in commands if one.run is None]) > 10  # the others read options themselves
    for command in (one for one in commands if one.run is None):
        parser = argparse.ArgumentParser(add_help=False)
        add_options(parser, command.rows, command.call)
        calls = [command.call, command.shown, *command.factories.values()]
        known = {name for call in calls for name in inspect.signature(call).parameters}
        assert {one.dest for one in parser._actions} <= known, command.call.__name__


def arguments_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of a parser and of the verbs below it."""
    for one in parser._actions:
        yield one
        if isinstance(one, argparse._SubParsersAction):
            for verb in one.choices.values():
                yield from arguments_of(verb)


def test_every_number_of_the_command_line_has_an_upper_bound() -> None:
    counted = [one for one in arguments_of(make_parser()) if one.type not in (None, str, float, Path) and one.metavar in ("N", "K", "K/N")]
    assert len(counted) > 20
    for one in counted:
        for huge in ("9" * 20, "9" * 5000, "1/" + "9" * 20):
            with pytest.raises(argparse.ArgumentTypeError):
                one.type(huge)  # type: ignore[operator, misc]
    assert not [one.dest for one in arguments_of(make_parser()) if one.type is int]


@pytest.mark.parametrize(
    "odd", [["preview", "demo", "-n", "9" * 20], ["preview", "demo", "-n", "-1"], ["show", "build", "--rejected", "--limit", "9" * 20]]
)
def test_a_count_that_is_not_possible_is_bad_input(odd: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(odd)
    except SystemExit as ended:
        status = int(ended.code or 0)
    said = capsys.readouterr().err
    assert status == 2 and "whole number" in said
    assert any(f'"{odd[-1]}" is {what}' in said for what in ("not a whole number", "out of range"))
