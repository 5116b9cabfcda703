"""The documents: what they tell a reader to run, run as written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from builder.config import load_configuration
from tests.conftest import demo_file

ROOT = Path(__file__).parent.parent


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs" / name).read_text(), re.MULTILINE | re.DOTALL)


def commands(name: str) -> str:
    return "\n".join(blocks(name, "sh"))


def test_the_maintainers_walk_through_runs_as_written(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "release", tmp_path / "release")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    script = f"set -euo pipefail\n{commands('maintainers.md')}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "build/demo/release: is what it claims" in done.stdout
    assert "withdrawn       1  017-seed" in done.stdout


def test_the_metric_of_ones_own_is_fifteen_lines_and_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from builder.metrics.registry import find
    from builder.metrics.scoring import Pairs, statistics_of

    (code,) = blocks("metrics.md", "python")
    assert len(code.strip().splitlines()) <= 15
    (tmp_path / "shared_words.py").write_text(code)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (toml,) = blocks("metrics.md", "toml")
    ((name, place),) = tomllib.loads(toml)["project"]["entry-points"]["empathy_eval.metrics"].items()
    (metric,) = find([place], {}).metrics
    found = statistics_of([metric], Pairs(["p"], ["I hear you"], {"near": ["You hear"], "far": ["no"]}))
    assert name == "shared-words" and found[metric.name]["near"].tolist() == [[2 / 3, 1]]  # type: ignore[index]


def test_the_table_of_metrics_and_its_configuration_are_true(tmp_path: Path) -> None:
    from builder.metrics.registry import BUILT_IN

    named = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE)))
    assert sorted(named) == sorted(BUILT_IN)
    (report,) = blocks("metrics.md", "yaml")
    load_configuration(demo_file(tmp_path, **yaml.safe_load(report)))
