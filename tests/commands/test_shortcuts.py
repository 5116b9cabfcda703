"""What ``shortcuts`` prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import empathy_eval as ee
import pytest
from empathy_eval.cli import main
from empathy_eval.commands.shortcuts import shortcut_table
from empathy_eval.releases.hub import repository as snapshot


def test_text_and_json_say_what_the_call_gives(light: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shortcuts", str(light)]) == 0
    said = capsys.readouterr().out
    found = ee.shortcuts(light)
    assert said == f"{found}\n" and said.endswith(f"\n\n{shortcut_table(found)}\n")
    assert "stance, near, " in said and "3 folds by dialogue" in said and "  shortcut line: " in said and "  hardest: " in said
    assert main(["shortcuts", str(light), "--by", "scenario", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(ee.shortcuts(light, by="scenario").to_json()))


def test_what_is_no_release_and_no_way_exits_with_2(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shortcuts", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "is not a release" in said.err and "Fix:" in said.err and not said.out
    with pytest.raises(SystemExit, match="2"):
        main(["shortcuts", str(light), "--by", "turn"])
    with pytest.raises(ee.InputError, match='"turn" is not known'):
        ee.shortcuts(light, by="turn")


def test_a_name_on_the_hub_is_fetched(light: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(snapshot, "fetch_release", {"my-lab/empathy-eval@v0.1.0": light}.__getitem__)
    assert main(["shortcuts", "my-lab/empathy-eval@v0.1.0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(ee.shortcuts(light).to_json()))


@pytest.mark.e2e
def test_every_process_prints_the_same_bytes(light: Path) -> None:
    def said(seed: str, threads: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        command = [sys.executable, "-m", "empathy_eval", "shortcuts", str(light), "--json"]
        return subprocess.run(command, env=environment, capture_output=True, check=True).stdout

    assert said("1", "1") == said("2", "2") != b""
