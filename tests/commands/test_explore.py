"""The verb ``explore`` and its call."""

from __future__ import annotations

from pathlib import Path

import empathy_eval as ee
import pytest
from empathy_eval.cli import main
from empathy_eval.releases.hub import fetch


def test_a_page_is_written_and_named(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert main(["explore", str(light), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"page: {out}\n" and '"base": "../' in out.read_text()
    (tmp_path / "mine.html").write_text("mine")
    assert main(["explore", str(light), "--out", str(tmp_path / "mine.html")]) == 2
    assert "exists, but is not an explorer page" in capsys.readouterr().err


def test_the_page_of_a_version_on_the_hub_reads_from_there(light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "release_folder", lambda name: light)
    ee.explore("my-lab/empathy-eval@v1.0.0", tmp_path / "page.html")
    assert '"base": "https://huggingface.co/datasets/my-lab/empathy-eval/resolve/v1.0.0/"' in (tmp_path / "page.html").read_text()


def test_what_is_asked_for_is_one_of_both(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for asked, what in (({}, "neither"), ({"out": tmp_path / "x.html", "serve": True}, "both")):
        with pytest.raises(ee.InputError, match=what):
            ee.explore(light, **asked)  # type: ignore[arg-type]
    assert main(["explore", str(light), "--out", str(tmp_path / "x.html"), "--port", "80"]) == 2
    assert "needs --serve" in capsys.readouterr().err
    for wrong in ([], ["--out", "x", "--serve"]):
        with pytest.raises(SystemExit):
            main(["explore", str(light), *wrong])
    assert not list(tmp_path.iterdir())


def test_what_is_no_release_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--out", str(tmp_path / "x.html")], ["--serve"]):
        assert main(["explore", str(tmp_path), *arguments]) == 2
        assert "is not a release" in capsys.readouterr().err
