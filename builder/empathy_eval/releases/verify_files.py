"""The files of a release: those that the manifest names, as it names them, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem
from empathy_eval.base.files import leading_out
from empathy_eval.base.hashing import digest_file
from empathy_eval.design.dataset import MANIFEST, SIGNATURE, TABLES
from empathy_eval.releases.verify_rows import RESTORE

# What every release holds beside its data. Those of before there was a page to browse them have none, and no scores of texts.
REPORT = {f"report/{TABLES}", "report/index.html"}
ALWAYS = {"README.md", "LICENSE", "CHANGELOG.md", "croissant.json", "provenance.parquet", *REPORT}
LINK = "put the file itself there, as `cp -rL` or `hf download --local-dir` do"


def file_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """No link leads out; else every file is the one the manifest names, and none is there that it does not name."""
    if links := leading_out(folder):
        yield from (Problem(str(link), "leads out of the release", LINK) for link in links)
        return
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {MANIFEST, SIGNATURE}
    for name in sorted(there - set(manifest["files"])):
        # A clone of a Hub repository has .gitattributes and a .git of its own.
        if not name.startswith("."):
            yield Problem(str(folder / name), "is not in the manifest", "take it out of the release")
    for name in sorted(ALWAYS - manifest["files"].keys()):
        yield Problem(str(folder / name), "is not named by the manifest", RESTORE)
    for name, value in sorted(manifest["files"].items()):
        if name not in there:
            yield Problem(str(folder / name), "is missing", RESTORE)
        elif digest_file(folder / name) != value:
            yield Problem(str(folder / name), "is not the file that was released (its SHA-256 differs from the manifest)", RESTORE)
