"""docs/systems.md: from nothing to a table with a local server, run as written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.doubles.server import running
from tests.doubles.systems import Plain
from tests.journeys.test_docs import blocks, ran

SMALL = "--contexts 3 --split all --no-toxicity"


@pytest.mark.e2e
def test_the_ten_minutes_and_python_run_as_written(light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "build" / "demo").mkdir(parents=True)
    (tmp_path / "build" / "demo" / "release").symlink_to(light)
    (systems,), (script,), (python,) = blocks("systems.md", "yaml"), blocks("systems.md", "sh"), blocks("systems.md", "python")
    with running(server=Plain()) as server:
        (tmp_path / "systems.yaml").write_text(systems.replace("http://localhost:8000/v1", server.url))
        asked = (
            script.replace("http://localhost:8000/v1", server.url)
            .replace("--contexts 30", SMALL)
            .replace("--comparisons 10", "--comparisons 1")
        )
        said = ran(asked, tmp_path, {**os.environ, "OPENAI_API_KEY": "none"})
        before = server.answered.total()
        assert ran(asked, tmp_path, {**os.environ, "OPENAI_API_KEY": "none"}) and server.answered.total() == before
    assert "page: build/systems.html" in said and (tmp_path / "build" / "systems.html").is_file()
    figures = json.loads((tmp_path / "build" / "systems.json").read_text())
    assert figures["systems"][:2] == ["plain", "listener"] and len(figures["strengths"]) == len(figures["systems"])
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    exec(python.replace("contexts=5", 'contexts=5, split="all"'), scope)  # noqa: S102 (as a reader would)
    assert len(scope["table"]) > 10  # type: ignore[arg-type]
