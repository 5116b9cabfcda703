"""Standard streams of a process: always open, in plain sight, and a failed write to them ends no work."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from typing import Any, TextIO

from empathy_eval.base.errors import Problem, plain

# A closed pipe, as after ``| head``, and a closed descriptor (``>&-``): nobody wants what is written.
UNWANTED = {errno.EPIPE, errno.EBADF}


class Outlet(io.FileIO):
    """Writes to an open descriptor. The first write that fails is kept as ``failed``; what follows it is thrown away."""

    failed: OSError | None = None

    def write(self, data: Any, /) -> int:
        """The number of bytes that are done with."""
        if self.failed is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failed = error
        return memoryview(data).nbytes


def take_streams() -> None:
    """Opens the null device in the place of closed descriptors, and lets standard output and standard error outlive failed writes.

    Otherwise the next file that is opened takes the number of the closed descriptor, and gets all that is printed.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest number that is free is given, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115, PTH123
    sys.stdout = _outliving(sys.stdout, 1)
    sys.stderr = _outliving(sys.stderr, 2)


def _outliving(stream: Any, descriptor: int) -> Any:
    """A text stream like the given one, which is None for a closed descriptor; a console that is no file stays as it is."""
    if stream is None:
        return io.TextIOWrapper(io.BufferedWriter(Outlet(descriptor, "w", closefd=False)), encoding="utf-8", errors="backslashreplace")
    raw = getattr(stream.buffer, "raw", stream.buffer)
    if not isinstance(raw, io.FileIO):
        return stream
    outlet = Outlet(descriptor, "w", closefd=False)
    buffer: Any = outlet if raw is stream.buffer else io.BufferedWriter(outlet)
    return io.TextIOWrapper(
        buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=stream.line_buffering, write_through=stream.write_through
    )


def unwritten(stream: Any) -> Problem | None:
    """Why not all of a stream could be written, if somebody wants it."""
    stream.flush()
    outlet = getattr(stream.buffer, "raw", stream.buffer)
    failed = outlet.failed if isinstance(outlet, Outlet) else None
    if failed is None or failed.errno in UNWANTED:
        return None
    fix = "make room, or print elsewhere; the work is done, and files that the command wrote are whole"
    return Problem("standard output", f"cannot be written: {failed.strerror or failed}", fix)


class PlainOutput:
    """A text stream that writes out signs that nobody sees; the escapes are those of JSON, so that JSON stays what it says."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text; returns its length."""
        self._stream.write(plain(text, json.dumps))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
