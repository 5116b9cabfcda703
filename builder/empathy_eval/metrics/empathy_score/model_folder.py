"""Model folders of EmpathyScore: configuration, weights, quality, card, and a hash of each file.

Weights are arrays in a safetensors file with reproducible bytes, read without running code: 8 bytes with the length of a JSON header, the
header, and the arrays in the order of their names. There are no metadata, because other writers order them randomly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import InputError, Problem, input_error, refuse
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.parsing import ParseError, json_value
from empathy_eval.base.schemas import check

KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
NAMES = {np.dtype(kind): name for name, kind in KINDS.items()}
LONGEST_HEADER = 2**20
Arrays = dict[str, NDArray[np.generic]]
CONFIG, WEIGHTS, WORTH, CARD, CHECKSUMS = "config.json", "model.safetensors", "metrics.json", "README.md", "checksums.txt"
HASHED = (CARD, CONFIG, WORTH, WEIGHTS)
# What students have beside these: the shape of their encoder, and its tokenizer.
ENCODER, TOKENIZER = "encoder.json", "tokenizer.json"
OF_STUDENTS = (ENCODER, TOKENIZER)
# Models that are packaged, each a folder of ``empathyscore/``.
PACKAGED = ("plain",)
# Keys of a configuration that tell it from those of other models.
OWN = {"kind", "contrasts", "training_range"}
FIX_MODEL = "fetch or train the model again"


def tensor_bytes(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """The safetensors file of these arrays."""
    header, parts, start = dict[str, object](), list[bytes](), 0
    for name in sorted(arrays):
        kind = NAMES[arrays[name].dtype.newbyteorder("<")]
        parts.append(np.ascontiguousarray(arrays[name], dtype=KINDS[kind]).tobytes())
        end = start + len(parts[-1])
        header[name] = {"dtype": kind, "shape": list(arrays[name].shape), "data_offsets": [start, end]}
        start = end
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return b"".join([len(head).to_bytes(8, "little"), head, *parts])


def arrays_of(data: bytes, where: object) -> Arrays:
    """The arrays of a safetensors file.

    Raises:
        InputError: if it is invalid, or holds what our own files would not.
    """
    try:
        length = int.from_bytes(data[:8], "little")
        if length > LONGEST_HEADER:
            raise ValueError(f"a header of {length:,} bytes")
        header = json.loads(data[8 : 8 + length])
        header.pop("__metadata__", None)
        body, arrays = memoryview(data)[8 + length :], Arrays()
        for name, entry in header.items():
            start, end = entry["data_offsets"]
            arrays[name] = np.frombuffer(body[start:end], dtype=KINDS[entry["dtype"]]).reshape(entry["shape"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise input_error(where, f"is not a readable safetensors file: {error}", "fetch or train the model again") from error
    return arrays


@dataclass(frozen=True)
class ModelFolder:
    """A folder with verified hashes: its name, settings, arrays, the hash of everything that scores, and files of some kinds.

    That hash covers what can change a score, so neither ``metrics.json`` nor the card changes it.
    """

    name: str
    path: Path
    config: Mapping[str, Any]
    arrays: Arrays
    sha256: str
    files: Mapping[str, bytes] = field(default_factory=dict)


def folder_of(model: str) -> Path:
    """The folder of a model: a packaged one by name, or a path."""
    return data_folder("empathyscore") / model if model in PACKAGED else Path(model)


def read_model(model: str) -> ModelFolder:
    """The model of that name or folder; none of its code is run.

    Raises:
        InputError: if it is not a model, or files are missing or were changed; all at once.
    """
    path = folder_of(model)
    if not (path / CHECKSUMS).is_file():
        fix = f"name the folder of a trained model, or a packaged one: {', '.join(PACKAGED)}"
        raise input_error(f"model {path}", f"is not a model of EmpathyScore (no {CHECKSUMS} in it)", fix)
    sums = (path / CHECKSUMS).read_bytes()
    checksums = _read_checksums(path, sums)
    held, problems = dict[str, bytes](), list[Problem]()
    for name in checksums:
        if not (path / name).is_file():
            problems.append(Problem(str(path / name), "is not there", FIX_MODEL))
            continue
        held[name] = (path / name).read_bytes()
        if (actual := digest_bytes(held[name])) != checksums[name]:
            what = f"was changed: its SHA-256 is {actual[:12]}…, {CHECKSUMS} says {checksums[name][:12]}…"
            problems.append(Problem(str(path / name), what, FIX_MODEL))
    refuse(problems)
    config = _json(held[CONFIG], path / CONFIG)
    check(config, "empathyscore_config", path / CONFIG)
    name = model if model in PACKAGED else path.resolve().name
    files = {file: held[file] for file in OF_STUDENTS if file in held}
    arrays = arrays_of(held[WEIGHTS], path / WEIGHTS)
    return ModelFolder(name, path, config, arrays, identity(held[CONFIG], held[WEIGHTS], *files.values()), files)


def is_packaged(model: str) -> bool:
    """Whether a model is packaged, so that everybody has it under its name."""
    return model in PACKAGED


def published_model(model: str) -> str:
    """The name of a model in a manifest: a packaged name, or ``label@sha256:…``, so that no path is published.

    Raises:
        InputError: if there is no such model.
    """
    if model in PACKAGED:
        return model
    read = read_model(model)
    return f"{read.name}@sha256:{read.sha256}"


def identity(config: bytes, weights: bytes, *files: bytes) -> str:
    """The hash of everything that scores: settings, weights and other files of its kind."""
    return digest_bytes(" ".join(map(digest_bytes, (config, weights, *files))).encode())


def checksums_text(files: Mapping[str, bytes]) -> str:
    """``checksums.txt`` of these files, in the format of ``sha256sum``."""
    return "".join(f"{digest_bytes(files[name])}  {name}\n" for name in sorted(files))


def is_model(path: Path) -> bool:
    """Whether a folder is a model of EmpathyScore, complete or not."""
    try:
        return set(_json((path / CONFIG).read_bytes(), path)) >= OWN and (path / CHECKSUMS).is_file()
    except (OSError, InputError):
        return False


def _read_checksums(path: Path, sums: bytes) -> dict[str, str]:
    lines = [line.split("  ", 1) for line in sums.decode(errors="replace").splitlines()]
    checksums = {parts[1]: parts[0] for parts in lines if len(parts) == 2}
    if set(checksums) not in (set(HASHED), {*HASHED, *OF_STUDENTS}) or len(lines) != len(checksums):
        raise input_error(path / CHECKSUMS, f"does not name {', '.join(HASHED)}, each once and nothing else", FIX_MODEL)
    return checksums


def _json(data: bytes, where: Path) -> dict[str, Any]:
    try:
        value = json_value(data.decode())
    except (UnicodeDecodeError, ParseError) as error:
        raise input_error(where, f"is not JSON: {error}", FIX_MODEL) from error
    if not isinstance(value, dict):
        raise input_error(where, "holds no JSON object", FIX_MODEL)
    return value
