"""Safetensors files: named arrays with reproducible bytes, read without running code.

A file is 8 bytes with the length of a JSON header, the header, and the arrays in the order of their names. There are no metadata, because
other writers order them randomly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import input_error

ARRAY_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
TYPE_NAMES = {np.dtype(kind): name for name, kind in ARRAY_TYPES.items()}
LONGEST_HEADER = 2**20
Arrays = dict[str, NDArray[np.generic]]


def tensor_bytes(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """The safetensors file of these arrays."""
    header, parts, start = dict[str, object](), list[bytes](), 0
    for name in sorted(arrays):
        kind = TYPE_NAMES[arrays[name].dtype.newbyteorder("<")]
        parts.append(np.ascontiguousarray(arrays[name], dtype=ARRAY_TYPES[kind]).tobytes())
        end = start + len(parts[-1])
        header[name] = {"dtype": kind, "shape": list(arrays[name].shape), "data_offsets": [start, end]}
        start = end
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return b"".join([len(head).to_bytes(8, "little"), head, *parts])


def parse_arrays(data: bytes, where: object) -> Arrays:
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
            arrays[name] = np.frombuffer(body[start:end], dtype=ARRAY_TYPES[entry["dtype"]]).reshape(entry["shape"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise input_error(where, f"is not a readable safetensors file: {error}", "fetch or train the model again") from error
    return arrays
