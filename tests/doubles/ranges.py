"""A server of a folder on loopback that answers ranges as it should, or as it should not."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Ranges:
    """A running server. ``fault`` is what is wrong with its answers for parquet files whose path holds ``where``.

    That is ``whole`` (no ranges), ``short`` (too few bytes), ``halved`` (half a file), ``missing``, ``refused``, ``cut`` (an end in the
    middle) or ``gone`` (no answer).
    """

    folder: Path
    url: str = ""
    fault: str | None = None
    where: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def told(self, fault: str | None, where: str = "") -> None:
        """Fails from now on as said, and counts anew."""
        self.fault, self.where = fault, where
        self.asked.clear()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answers a request."""
        path = unquote(urlsplit(request.path).path).lstrip("/")
        span = request.headers.get("Range")
        self.asked.append((path, span))
        fault = self.fault if path.endswith(".parquet") and self.where in path else None
        if fault == "gone":
            request.close_connection = True
            return
        file = self.folder / path
        if fault in ("missing", "refused") or not file.is_file():
            request.send_error(403 if fault == "refused" else 404)
            return
        data = file.read_bytes()
        data = data[: len(data) // 2] if fault == "halved" else data
        if span is None or fault == "whole":
            self._send(request, 200, data, len(data))
            return
        start, end = (int(one) for one in span.removeprefix("bytes=").split("-"))
        if start >= len(data):
            request.send_error(416)
            return
        piece = data[start : end + 1]
        self._send(request, 206, piece[:-9] if fault in ("short", "cut") else piece, len(piece) - (9 if fault == "short" else 0),
                   f"bytes {start}-{end}/{len(data)}")  # fmt: skip

    @staticmethod
    def _send(request: BaseHTTPRequestHandler, status: int, data: bytes, length: int, span: str = "") -> None:
        request.send_response(status)
        request.send_header("Content-Type", "text/html; charset=utf-8" if request.path.endswith(".html") else "application/octet-stream")
        request.send_header("Content-Length", str(length))
        if span:
            request.send_header("Content-Range", span)
        request.end_headers()
        request.wfile.write(data)
        request.close_connection = len(data) < length


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, server: Ranges, *rest: object) -> None:
        self.ranges = server
        super().__init__(*rest)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        with contextlib.suppress(ConnectionError):
            self.ranges.answer(self)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextlib.contextmanager
def ranges(folder: Path) -> Iterator[Ranges]:
    """A server on a free port of the loopback address; unless told otherwise all its answers are good."""
    server = Ranges(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, server)) as listener:
        server.url = f"http://127.0.0.1:{listener.server_port}/"
        threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            listener.shutdown()
