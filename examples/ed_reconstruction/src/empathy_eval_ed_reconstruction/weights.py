"""The weights of Eq. 1 in a file: three vectors and a bias, what they were fitted to and with, checked when they are read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.files import write_whole
from empathy_eval.base.hashing import digest
from empathy_eval.base.parsing import ParseError, json_value, read_text
from empathy_eval.metrics.protocol import Array
from jsonschema import Draft202012Validator

FORMAT = "ed-reconstruction 1"
ANEW = "fit the weights anew (README.md says how)"
VECTORS = ("reply", "utterance", "knowledge")


@dataclass(frozen=True)
class Fitted:
    """``sigmoid(reply . E_R + utterance . E_U + knowledge . W + bias)``.

    ``scale`` is the lowest and the highest rating, which stand for 0 and 1; ``readings`` and ``embedding`` say what made the vectors.
    """

    reply: tuple[float, ...]
    utterance: tuple[float, ...]
    knowledge: tuple[float, ...]
    bias: float
    scale: tuple[float, float]
    ridge: float
    ratings: int
    readings: str
    embedding: str

    def scores(self, features: Array) -> Array:
        """The scores of rows of features, each between 0 and 1."""
        return sigmoid(features @ np.concatenate([self.reply, self.utterance, self.knowledge]) + self.bias)

    @property
    def sha256(self) -> str:
        """The hash of all that is here."""
        return digest(asdict(self)).rpartition("-")[2]

    def write(self, path: Path) -> None:
        """Writes the file, whole or not at all.

        Raises:
            JobError: if it cannot be written.
        """
        write_whole(path, json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n")


def read_weights(path: Path) -> Fitted:
    """The weights of a file.

    Raises:
        InputError: if it is not there, or holds anything else; all problems at once.
    """
    try:
        value = json_value(read_text(path))
    except (OSError, UnicodeDecodeError, ParseError) as error:
        raise input_error(path, f"cannot be read as JSON: {error}", ANEW) from error
    schema: dict[str, Any] = json.loads(files(__package__).joinpath("fitted.schema.json").read_text(encoding="utf-8"))
    found = sorted(Draft202012Validator(schema).iter_errors(value), key=lambda error: error.json_path)
    problems = [Problem(f"{path}: {error.json_path}", error.message[:200], ANEW) for error in found]
    if not problems and len({len(value[name]) for name in VECTORS}) > 1:
        sizes = ", ".join(f"{name} has {len(value[name])}" for name in VECTORS)
        problems.append(Problem(str(path), f"holds vectors of different lengths: {sizes}", ANEW))
    if not problems and not value["scale"][0] < value["scale"][1]:
        problems.append(Problem(f"{path}: scale", f"{value['scale']} does not rise", ANEW))
    if problems:
        raise InputError(problems)
    vectors = {name: tuple(map(float, value[name])) for name in VECTORS}
    low, high = value["scale"]
    return Fitted(
        **vectors, bias=float(value["bias"]), scale=(float(low), float(high)), ridge=float(value["ridge"]), ratings=value["ratings"],
        readings=value["readings"], embedding=value["embedding"],
    )  # fmt: skip


def sigmoid(values: Array) -> Array:
    """The logistic function, without an overflow at either end."""
    found: Array = 0.5 * (1 + np.tanh(values / 2))
    return found
