"""The walk-through for maintainers, run as written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def commands(name: str) -> str:
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs" / name).read_text(), re.MULTILINE | re.DOTALL))


def test_the_maintainers_walk_through_runs_as_written(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "release", tmp_path / "release")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    script = f"set -euo pipefail\n{commands('maintainers.md')}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "build/demo/release: is what it claims" in done.stdout
    assert "withdrawn       1  017-seed" in done.stdout
