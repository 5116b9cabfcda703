"""The walk-throughs for maintainers and auditors, run as written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from builder.cli import VERBS
from builder.releasing import Released
from tests.raters import FORMS, fill, kind_and_cold

ROOT = Path(__file__).parent.parent


def commands(name: str) -> str:
    return "\n".join(blocks(name))


def blocks(name: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs" / name).read_text(), re.MULTILINE | re.DOTALL)


def ran(script: str, folder: Path) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-c", f"set -euo pipefail\n{script}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_maintainers_walk_through_runs_as_written(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "release", tmp_path / "release")
    said = ran(commands("maintainers.md"), tmp_path)
    assert "build/demo/release: is what it claims" in said
    assert "withdrawn       1  017-seed" in said


def test_the_auditors_walk_through_runs_as_written(built: Path, released: tuple[Path, Released], tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "build" / "demo")
    shutil.copytree(released[0], tmp_path / "build" / "demo" / "release")
    export, *rest = blocks("auditors.md")
    # To be taken out when the verb agree is there.
    rest = [block for block in rest if "empathy-eval agree" not in block or any(verb.__name__.endswith(".agree") for verb in VERBS)]
    ran(export, tmp_path)

    def judge(code: str, entry: dict[str, Any]) -> dict[str, Any]:
        remove = {"decision": "remove", "reason": "taken out to show how it is done"}
        return kind_and_cold(code, entry) | (remove if entry.get("dialogue_id") == "017-seed" else {})

    review = tmp_path / "build" / "review"
    for number, rater in enumerate(sorted(path.name for path in (review / "raters").iterdir())):
        fill(review, rater, FORMS[number % len(FORMS)], judge, tmp_path / "build" / "returned")
    said = ran("".join(rest), tmp_path)
    assert "1 of 3 dialogues to remove, 0 strategy tags found wrong\n  017-seed: 3 of 3 say remove" in said
    assert "build/demo/release-2: is what it claims" in said
    assert "by review       1  017-seed" in said
