"""Arrays in a safetensors file, written with the same bytes every time and read without running anything.

The format is 8 bytes with the length of a JSON header, the header, and the arrays end to end. Here they lie in the order of their names,
and there are no metadata: with two keys of them the bytes of other writers are random.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import input_error

KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
NAMES = {np.dtype(kind): name for name, kind in KINDS.items()}
LONGEST_HEADER = 2**20
Arrays = dict[str, NDArray[np.generic]]


def tensor_bytes(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """The file that holds these arrays."""
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
    """The arrays of such a file.

    Raises:
        InputError: if it is none, or holds what an own file would not.
    """
    try:
        length = int.from_bytes(data[:8], "little")
        if length > LONGEST_HEADER:
            raise ValueError(f"a header of {length:,} bytes")
        header = json.loads(data[8 : 8 + length])
        header.pop("__metadata__", None)
        body, found = memoryview(data)[8 + length :], Arrays()
        for name, one in header.items():
            start, end = one["data_offsets"]
            found[name] = np.frombuffer(body[start:end], dtype=KINDS[one["dtype"]]).reshape(one["shape"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise input_error(where, f"is not a readable safetensors file: {error}", "fetch or train the model again") from error
    return found
