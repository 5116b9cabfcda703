"""The manifest of a release: what it is made of, sealed."""

from __future__ import annotations

import contextlib
import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.base.json_text import json_text
from empathy_eval.design.bundled_definitions import DESIGN
from empathy_eval.design.canary import release_identity
from empathy_eval.design.dataset import FORMAT
from empathy_eval.releases.assemble.selection import Selection

VERSION = re.compile(r"\d+\.\d+\.\d+")


SOFTWARE = (
    "datasets", "pyarrow", "sacrebleu", "rapidfuzz", "spacy", "alt-profanity-check", "bert-score", "torch", "transformers", "numpy",
    "matplotlib",
)  # fmt: skip


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest with the hash of everything else in it, so that a change of the manifest itself is seen."""
    rest = {name: value for name, value in manifest.items() if name != "seal"}
    return {**rest, "seal": digest(rest)}


def manifest_text(manifest: dict[str, Any]) -> str:
    """The one text form of a manifest."""
    return json_text(manifest) + "\n"


def manifest_facts(
    header: dict[str, Any], version: str, date: str | None, selection: Selection, counts: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """The manifest without the hashes of files."""
    return {
        **release_identity(header["configuration"]),
        "format": FORMAT,
        "version": version,
        "date": date,
        "counts": counts,
        "duplicates": selection.duplicates,
        "withdrawn": header["configuration"].get("withdrawn", []),
        "spares_left_out": selection.spares,
        **({"below_quota": selection.below_quota} if selection.below_quota else {}),
        **{name: value for name, value in header.items() if name not in ("outcomes", DESIGN)},
        "software": software(),
    }


def software() -> dict[str, str]:
    """The versions of what numbers may hang on, as far as it is installed."""
    found = {"python": platform.python_version()}
    for name in SOFTWARE:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def file_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 by relative path of every file of the release but the manifest itself."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in files}


def other_format(manifest: Mapping[str, Any]) -> tuple[str, str] | None:
    """(what, fix) of a release whose format is not that of this program."""
    if (told := manifest.get("format")) == FORMAT:
        return None
    what = f'is a release of format "{str(told)[:20]}", but this program verifies format {FORMAT}'
    return what, "verify it with the version of the program that made it, or release its build again"
