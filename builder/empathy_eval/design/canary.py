"""The canary of a data set: a string in every file with its texts, which reveals models that were trained on them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from empathy_eval.base.files import data_folder
from empathy_eval.base.templates import environment

# Of our own; whoever knows it and the name of a data set knows its canary.
NAMESPACE = uuid.UUID("6d0b9a3e-2f64-5c1d-9e57-0a8c41b7d2f3")
# What it is called in the metadata of a table, in JSON and in a page.
CANARY = "canary"
# The line of any data set of ours, as a model may say it: in any case, broken over lines.
ANY_CANARY = re.compile(r"empathy-eval\s+canary\s+guid\s+[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def canary_of(name: str) -> str:
    """The canary of all releases of a name, such as ``empathy-eval-demo``: a version 5 UUID."""
    return str(uuid.uuid5(NAMESPACE, name))


def release_identity(configuration: Mapping[str, Any]) -> dict[str, str]:
    """The name of a build's release, and its canary."""
    name = f"empathy-eval-{configuration['name']}"
    return {"name": name, CANARY: canary_of(name)}


def notice_of(manifest: Mapping[str, Any]) -> str | None:
    """The line with the canary for files with texts of a release, plain ASCII; None for a release without one."""
    template = environment(data_folder("release")).get_template("canary.txt.j2")
    return template.render(canary=manifest[CANARY]).strip() if CANARY in manifest else None


def canary_entry(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The canary line under its name, for JSON; empty for a release without one."""
    return {CANARY: notice} if (notice := notice_of(manifest)) else {}


def holds_canary(text: str, canary: str | None = None) -> bool:
    """Whether a text contains the line of any of our data sets, or that ``canary`` alone."""
    lowered = text.lower()
    return bool((canary and canary in lowered) or (CANARY in lowered and ANY_CANARY.search(lowered)))


def canary_warnings(outputs: Iterable[tuple[str, str]], canary: str | None = None) -> list[str]:
    """At most one warning about (place, text) of a model: how many contain the canary, what it means, and the first place."""
    places = [place for place, text in outputs if holds_canary(text, canary)]
    means = "the training data of the model may contain this benchmark, so its scores on it mean little"
    return [f"the canary occurs in {len(places)} outputs, first in {places[0]}: {means}"] if places else []


def numbered_lines(path: Path, *, head: bool = False) -> Iterator[tuple[str, str]]:
    """(place, line) of a text file, without the header of a table."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        yield from ((f"{path}: line {number}", line) for number, line in enumerate(stream, 1) if number > head)
