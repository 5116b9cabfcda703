"""``init``: commented configuration or scenario folder to start from."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from empathy_eval.base.errors import InputError, Problem, input_error, nearest, plain
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import Command

EXAMPLES = """\
examples:
  empathy-eval init                            demo.yaml: the curated seeds, without a model, an API key or a network
  empathy-eval init full                       full.yaml: new dialogues by a model of your choice
  empathy-eval init scenarios --out mine       mine/scenarios: a taxonomy, personas and one scenario, for you to edit and extend
"""
KINDS = ("demo", "full", "scenarios")
# Number of the scenario that is the example in a new folder.
EXAMPLE = "001"
# Next commands, by kind; {} is the written path.
NEXT = {
    "demo": ("preview {}", "build {} --out build/demo", "release build/demo --out build/demo/release --version 0.1.0"),
    "full": (
        "preview {} --model NAME",
        "build {} --out build/full --model NAME --base-url http://localhost:8000/v1 --budget-tokens 1000000",
        "release build/full --out build/full/release --version 0.1.0",
    ),
    "scenarios": (
        "preview demo --scenarios {}",
        "build demo --scenarios {} --out build/scenarios",
        "release build/scenarios --out build/scenarios/release --version 0.1.0",
    ),
}


@dataclass(frozen=True)
class InitResult:
    """Written files, and the next commands."""

    files: tuple[Path, ...]
    commands: tuple[str, ...]

    def __str__(self) -> str:
        written = (f"wrote {file}" for file in self.files)
        return plain("\n".join([*written, "", "next:", *(f"  {command}" for command in self.commands)]))


@takes_paths
def init(kind: str = "demo", out: str | Path = ".") -> InitResult:
    """Writes a configuration (``demo``, ``full``) or the folder ``scenarios`` into the folder ``out``, to start from.

    The files are copies of packaged ones. A comment before each key describes it; keys that are left out appear as comments with their
    defaults.

    Raises
    ------
    InputError
        If the kind is not known, or one of the files exists: nothing is overwritten.
    JobError
        If the files cannot be written.
    """
    from empathy_eval.base.files import refuse_folders, write_whole
    from empathy_eval.design.commented import commented

    if kind not in KINDS:
        raise input_error("init", f'"{kind}" is not known', f"use one of {', '.join(KINDS)}{nearest(kind, KINDS)}")
    texts = {Path(out) / path: commented(source.read_text(encoding="utf-8")) for path, source in _sources(kind).items()}
    for path in texts:
        refuse_folders(path)
    if existing := [path for path in texts if os.path.lexists(path)]:
        fix = "remove it, or name another folder with --out: nothing is overwritten"
        raise InputError([Problem(str(path), "already exists", fix) for path in existing])
    for path, text in texts.items():
        write_whole(path, text)
    first = Path(out) / ("scenarios" if kind == "scenarios" else f"{kind}.yaml")
    return InitResult(tuple(texts), tuple(f"empathy-eval {command.format(shlex.quote(str(first)))}" for command in NEXT[kind]))


def _sources(kind: str) -> dict[str, Path]:
    """Returns packaged files by the path under which they are written."""
    from empathy_eval.base.files import data_folder
    from empathy_eval.design.scenarios import COMMON, CROSSED

    if kind != "scenarios":
        return {f"{kind}.yaml": data_folder("release") / f"{kind}.yaml"}
    folder = data_folder("scenarios")
    (example,) = folder.glob(f"{EXAMPLE}-*.yaml")
    files = [*(folder / name for name in COMMON), example, folder / CROSSED / f"{EXAMPLE}.yaml"]
    return {f"scenarios/{path.relative_to(folder)}": path for path in files}


COMMAND = Command(
    init,
    "write a commented configuration or a folder of scenarios, to start from",
    "Writes a configuration of your own, in which every key is explained, or a folder of scenarios with one example. "
    "Overwrites nothing. Prints the commands that come next.",
    {
        "kind={demo,full,scenarios}": "demo (default): the curated seeds; full: new dialogues by a model; scenarios: a folder for "
        "--scenarios",
        "--out DIR": "the folder to write to (default: the current folder)",
    },
    EXAMPLES,
)
