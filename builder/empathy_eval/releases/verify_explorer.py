"""The explorer of a release, against the page that this version makes of it."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.parsing import json_value, text_of
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.tabular import refuse_absurd
from empathy_eval.metrics.trust import NotRecomputed
from empathy_eval.releases.explore import FOLDER, FORMAT, HELD, HOME, PAGE, about_of, explore_page, sample_of
from empathy_eval.releases.made_by import is_ours
from empathy_eval.releases.verify_rows import RESTORE

# However an element says that it has such an id; of several a browser takes the first.
NAMES_ONE = re.compile(r"\bid\s*=\s*[\"']?(about|sample)\b", re.IGNORECASE)
# The policy, the style and the scripts; what is embedded as JSON is none.
CODE = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>|<style>.*?</style>|<script(?: type="module")?>.*?</script>', re.DOTALL)


def explorer_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Where the page of a release is not the one that this version makes of it: by bytes where this version made it.

    Else its scripts and style are those of a version that is known, the rest of it is what this version writes, and what it says and embeds
    are the release's own: parquet of another version of Arrow has other bytes for the same rows.
    """
    path, facts = folder / PAGE, {name: value for name, value in manifest.items() if name not in ("files", "seal")}
    try:
        told, anew = text_of(path), explore_page(folder, facts)
    except (InputError, ValueError) as error:
        yield from error.problems if isinstance(error, InputError) else [Problem(str(path), f"cannot be read: {error}", RESTORE)]
        return
    if told == anew:
        return
    if is_ours(manifest) and manifest["software"].get("pyarrow") == pa.__version__:
        at = next((place for place, pair in enumerate(zip(told, anew, strict=False)) if pair[0] != pair[1]), min(len(told), len(anew)))
        yield Problem(str(path), f"differs from the page that this version makes of the release, from character {at:,} on", RESTORE)
        return
    code = code_of(told)
    if code not in known_code():
        yield Problem(str(path), f"has scripts that no known version has (SHA-256 {code[:16]}...)", RESTORE)
    if _shell(told) != _shell(anew):
        yield Problem(str(path), "has other elements than the page that this version makes", RESTORE)
    yield from _held_faults(folder, facts, path)


def known_code() -> dict[str, str]:
    """The versions of this program by the SHA-256 of the scripts and the style of their page."""
    return {digest: version for version, digest in read_yaml(data_folder("release") / FOLDER / "known.yaml", "known_code").items()}


def code_of(page: str) -> str:
    """The SHA-256 of the scripts and the style of a page, with the policy that lets them run, which must be of just these."""
    return digest_bytes("\n".join(found.group() for found in CODE.finditer(page)).encode())


def _shell(page: str) -> str:
    """A page without its scripts, style, and what it says and embeds."""
    return HELD.sub("", CODE.sub("", page))


def _held_faults(folder: Path, facts: dict[str, Any], path: Path) -> Iterator[Problem]:
    """What a page says of its release and embeds of its texts otherwise than the release does.

    A page of another format is no fault, and is not compared: a :class:`~empathy_eval.metrics.trust.NotRecomputed` says so.
    """
    try:
        held = _held(text_of(path))
        if (its := held["about"].get("format")) != FORMAT:
            what = f"has the format {str(its)[:40]!r}, but this program has {FORMAT}: its content is not compared"
            yield NotRecomputed(str(path), what, "verify it with the program that made it, or make the page again with explore", "explorer")
            return
        told = {name: pq.ParquetFile(pa.BufferReader(base64.b64decode(one))) for name, one in held["sample"]["files"].items()}
        sample = sample_of(folder, facts)
        about = about_of(folder, facts, sample, HOME)
        other = [name for name in told.keys() | sample.tables.keys() if not _same(path, told.get(name), sample.tables.get(name))]
        changed = [name for name in [*about, *(held["about"].keys() - about.keys())] if held["about"].get(name) != about.get(name)]
    except InputError as error:
        yield from error.problems
        return
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        yield Problem(str(path), f"does not have the content of an explorer page: {error}", RESTORE)
        return
    for name in changed:
        yield Problem(f"{path}: about: {name}", "differs from the release", RESTORE)
    for name in sorted(other):
        yield Problem(f"{path}: sample: {name}", "does not hold the rows of the release", RESTORE)


def _held(page: str) -> dict[str, Any]:
    """What a page says and embeds; a ValueError if a browser could take something else for it."""
    held, around = HELD.findall(page), html.unescape(HELD.sub("", page))
    if sorted(name for name, _ in held) != ["about", "sample"] or NAMES_ONE.search(around):
        raise ValueError('it must have one script "about", one script "sample", and no other element with these ids')
    return {name: json_value(text) for name, text in held}


def _same(path: Path, told: pq.ParquetFile | None, rows: pa.Table | None) -> bool:
    """Whether an embedded file holds these rows; one that says it holds more is not read."""
    if told is None or rows is None or told.metadata.num_rows != rows.num_rows:
        return False
    refuse_absurd(path, told.metadata)
    # A thread of Arrow's that lets go of bytes of Python's while the process ends would abort it.
    return bool(told.read(use_threads=False).equals(rows))
