"""A disk that fills up while a build or a release is written: a clear error, nothing half-written, and the same command works later."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import copy_world, demo_file

# Room for nothing, and room that ends amid the writing: the second alone, in full with LONG=1.
FIRST = 0 if "LONG" in os.environ else 1


def run(arguments: list[str], room: int | None = None) -> subprocess.CompletedProcess[str]:
    """A command that may write no file larger than ``room`` bytes: the write then fails as it does on a full disk."""

    def fill() -> None:
        if room is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    # What Python compiles would be cut off too, and every later process would read it.
    command = [sys.executable, "-B", "-m", "empathy_eval", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, preexec_fn=fill)


@pytest.fixture
def build(tmp_path: Path) -> list[str]:
    world = copy_world(tmp_path / "scenarios")
    config = demo_file(tmp_path, report={"metrics": ["length"], "bootstrap": 10})
    return ["build", str(config), "--out", str(tmp_path / "b"), "--scenarios", str(world)]


@pytest.mark.sampled
def test_a_build_says_so_and_goes_on_once_there_is_room(build: list[str], tmp_path: Path) -> None:
    for room in (2_000, 100_000)[FIRST:]:
        full = run(build, room)
        assert full.returncode == 1, (room, full.stdout, full.stderr)
        assert "cannot be" in full.stderr and "Fix: make room" in full.stderr and "Traceback" not in full.stderr
        assert not {"outcomes.jsonl", "build.json"} & {path.name for path in (tmp_path / "b").iterdir()}
    assert run(build).returncode == 0
    assert not list((tmp_path / "b").glob(".*"))


@pytest.mark.sampled
def test_a_release_says_so_leaves_the_old_one_and_works_once_there_is_room(light: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    release = ["release", str(light.parent / "build"), "--out", str(out), "--version"]
    for room in (2_000, 40_000)[FIRST:]:
        full = run([*release, "0.1.0"], room)
        assert full.returncode == 1, (room, full.stdout, full.stderr)
        assert "cannot be written" in full.stderr and "Fix: make room" in full.stderr and "Traceback" not in full.stderr
        assert not out.exists() and not list(tmp_path.glob(".release*"))
    assert run([*release, "0.1.0"]).returncode == 0
    before = (out / "manifest.json").read_bytes()
    assert run([*release, "0.2.0", "--replace"], 8_000).returncode == 1
    assert (out / "manifest.json").read_bytes() == before
