"""Installed beside the distribution named ``builder``, whose top-level package has the name of our source folder: both ways, no network."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
# pip as it is in the environment of these tests, without an index and without what our wheel requires: that is in this environment.
QUIETLY = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")


def run(folder: Path, *command: str | Path) -> str:
    """What a command says in a folder, away from this checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def made(folder: Path) -> Path:
    """The ``bin`` of an environment of its own that has the packages of this one, and nothing of ours."""
    run(folder.parent, sys.executable, "-m", "venv", "--without-pip", folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def other_builder(folder: Path) -> Path:
    """A wheel of the other distribution: as the real one, it cannot be imported."""
    info = "builder-0.1.0.dist-info"
    files = {
        "builder/__init__.py": "raise ImportError('the other builder was imported')\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: builder\nVersion: 0.1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    wheel = folder / "builder-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])}.items():
            archive.writestr(path, text)
    return wheel


# What runs all other tests is an editable install.
@pytest.mark.parametrize("way", ["wheel", pytest.param("editable", marks=pytest.mark.long)])
def test_it_works_beside_the_other_distribution_named_builder(way: str, tmp_path: Path) -> None:
    programs, away = made(tmp_path / "venv"), tmp_path / "away"
    away.mkdir()
    pip = (programs / "python", "-m", "pip")
    if way == "wheel":
        run(away, *pip, "wheel", *QUIETLY, "--no-build-isolation", "--wheel-dir", tmp_path, ROOT)
        what = list(tmp_path.glob("empathy_eval-*.whl"))
    else:
        what = [Path("--editable"), ROOT]
    run(away, *pip, "install", *QUIETLY, "--no-build-isolation", "--ignore-installed", *what, other_builder(tmp_path))
    assert "the other builder" in run(away, programs / "python", "-c", "try: import builder\nexcept ImportError as error: print(error)")

    program = programs / "empathy-eval"
    assert run(away, program, "--version").startswith("empathy-eval ")
    place = Path(run(away, programs / "python", "-c", "import empathy_eval; print(empathy_eval.__file__)").strip())
    home = tmp_path / "venv" if way == "wheel" else ROOT / "builder"
    assert place.is_relative_to(home)
    data = place.parent / "data" if way == "wheel" else ROOT
    told = "from empathy_eval.design.rubrics import *; print([load_rubric(name).name for name in packaged_rubrics()])"
    assert "'rating-guide', 'reward', 'strategies', 'teacher'" in run(away, programs / "python", "-c", told)
    demo = yaml.safe_load((data / "release" / "demo.yaml").read_text(encoding="utf-8"))
    # Without BERTScore, whose packages are of an extra. What an editable install runs are the files that all other tests run.
    metrics: dict[str, Any] = {} if way == "wheel" else {"metrics": ["bleu"]}
    (away / "demo.yaml").write_text(yaml.safe_dump({**demo, "report": {"bootstrap": 10, **metrics}}))
    assert "60 accepted" in run(away, program, "build", "demo.yaml", "--out", "build")
    assert "BLEU-4" in run(away, program, "release", "build", "--out", "release", "--version", "0.1.0")
