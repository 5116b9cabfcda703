"""Standard streams: always open, without invisible characters, and safe against failed writes."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from typing import Any, TextIO

from empathy_eval.base.errors import Problem, plain

# A closed pipe, as after ``| head``, and a closed descriptor (``>&-``): nobody wants what is written.
NO_READER = {errno.EPIPE, errno.EBADF}


class TolerantFile(io.FileIO):
    """A file on an open descriptor. It keeps the first failed write as ``failed`` and discards what follows."""

    failed: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Writes the data; returns its number of bytes, written or discarded."""
        if self.failed is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failed = error
        return memoryview(data).nbytes


def protect_streams() -> None:
    """Opens closed descriptors on the null device, and makes standard output and standard error tolerate failed writes.

    Without this, the next file that is opened gets the number of the closed descriptor, and all that is printed.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest number that is free is given, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115, PTH123
    sys.stdout = _tolerant(sys.stdout, 1)
    sys.stderr = _tolerant(sys.stderr, 2)


def _tolerant(stream: Any, descriptor: int) -> Any:
    """A tolerant copy of a text stream; None stands for a closed descriptor. A console that is no file is returned as it is."""
    if stream is None:
        buffered = io.BufferedWriter(TolerantFile(descriptor, "w", closefd=False))
        return io.TextIOWrapper(buffered, encoding="utf-8", errors="backslashreplace")
    raw = getattr(stream.buffer, "raw", stream.buffer)
    if not isinstance(raw, io.FileIO):
        return stream
    outlet = TolerantFile(descriptor, "w", closefd=False)
    buffer: Any = outlet if raw is stream.buffer else io.BufferedWriter(outlet)
    return io.TextIOWrapper(
        buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=stream.line_buffering, write_through=stream.write_through
    )


def write_failure(stream: Any) -> Problem | None:
    """The problem with a stream that could not be written; None if all was written or nobody reads it."""
    stream.flush()
    outlet = getattr(stream.buffer, "raw", stream.buffer)
    failed = outlet.failed if isinstance(outlet, TolerantFile) else None
    if failed is None or failed.errno in NO_READER:
        return None
    fix = "make room, or print elsewhere; the work is done, and files that the command wrote are whole"
    return Problem("standard output", f"cannot be written: {failed.strerror or failed}", fix)


class PlainOutput:
    """A text stream that escapes invisible characters as JSON does, so that JSON keeps its value."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text; returns its length."""
        self._stream.write(plain(text, json.dumps))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
