"""What models wrote that are scored, judge or build, searched for the canary of the benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from empathy_eval.base.schemas import read_json
from empathy_eval.design.canary import CANARY, called, holds_canary
from empathy_eval.generation.build_folder import BUILD, OUTCOMES

MEANS = "the training data of the model may contain this benchmark, so its scores on it mean little"


def heard(outputs: Iterable[tuple[str, str]], canary: str | None = None) -> list[str]:
    """At most one warning for (place, text) of a model: how many texts hold the canary, what that means, and where the first is."""
    places = [place for place, text in outputs if holds_canary(text, canary)]
    return [f"the canary occurs in {len(places)} outputs, first in {places[0]}: {MEANS}"] if places else []


def heard_in_folder(folder: Path) -> list[str]:
    """The same of what models answered in a finished build or finished annotations; nothing where the folder holds neither."""
    if not (folder / BUILD).is_file() or not (folder / OUTCOMES).is_file():
        return []
    made = read_json(folder / BUILD, None, "run the same command again")["configuration"]
    name = made["release"]["name"] if "rubric" in made else made["name"]
    return heard(lines_of(folder / OUTCOMES), called({"name": name})[CANARY])


def lines_of(path: Path, *, head: bool = False) -> Iterator[tuple[str, str]]:
    """(place, line) of a file of text, but for the head of a table."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        yield from ((f"{path}: line {number}", line) for number, line in enumerate(stream, 1) if number > head)
