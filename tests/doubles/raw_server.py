"""A server on loopback that sends raw bytes, and whatever else no framework would let through.

A script says what is sent for a request: bytes, and floats for seconds to wait before what follows. The connection is closed
after it, unless the script ends with :data:`KEEP` or :data:`RESET`. Scripts of whole answers are at the end of the module.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import re
import select
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from tests.doubles.server import good_answer


class End(Enum):
    """What becomes of the connection after a reply."""

    KEEP = "keep"
    RESET = "reset"


KEEP, RESET = End.KEEP, End.RESET
Piece = bytes | float | End
MEBIBYTE: Final = 2**20
# How much comes of what has no end, in mebibytes: far above what may be held, and not so much that a machine dies of a broken client.
ENOUGH: Final = 1024
REPEATED = re.compile(r"«([^«»]+)\*(\d+)»", re.DOTALL)


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    head: bytes
    body: bytes

    @property
    def asked(self) -> dict[str, Any]:
        """The body as JSON."""
        value: dict[str, Any] = json.loads(self.body)
        return value

    @property
    def kind(self) -> str:
        """What is asked for: a dialogue, a near variant or a far one."""
        text = self.asked["messages"][1]["content"]
        return "dialogue" if "# The conversation to write" in text else "near" if "# The reply to edit" in text else "far"


# What is sent for a request, by its number from 0 and the request itself.
Script = Callable[[int, Received], Iterable[Piece]]


@dataclass
class RawServer:
    """A running server. ``charged`` counts the tokens of the answers that :meth:`answered` made, as their server would."""

    script: Script
    url: str = ""
    requests: list[Received] = field(default_factory=list)
    charged: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def bodies(self) -> list[bytes]:
        """The bodies that came, in order."""
        return [one.body for one in self.requests]

    def charge(self, request: Received, content: str) -> None:
        """Counts what a request and an answer to it would cost: a token for four bytes."""
        with self._lock:
            self.charged += len(json.dumps(request.asked["messages"])) // 4 + len(content) // 4 + 1

    def accept(self, listener: socket.socket) -> None:
        """Takes connections until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(60)
            while (received := _receive(connection)) is not None:
                with self._lock:
                    number = len(self.requests)
                    self.requests.append(received)
                end = self._send(connection, self.script(number, received))
                if end is RESET:  # closed with data on the way: the other side sees a reset
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if end is not KEEP:
                    return

    def _send(self, connection: socket.socket, pieces: Iterable[Piece]) -> End | None:
        for piece in pieces:
            if isinstance(piece, End):
                return piece
            if isinstance(piece, bytes):
                connection.sendall(piece)
            elif self._waited(connection, piece):
                break
        return None

    def _waited(self, connection: socket.socket, seconds: float) -> bool:
        """Waits; True if the server was stopped or the other side has gone meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self._stopped.wait(min(left, 0.02)):
                return True
            # A look at what has come, which waits for nothing: no bytes at all are the end of the connection.
            if select.select([connection], [], [], 0)[0] and connection.recv(1, socket.MSG_PEEK) == b"":
                return True
        return False

    def stop(self) -> None:
        """Ends all waiting."""
        self._stopped.set()


def _receive(connection: socket.socket) -> Received | None:
    """One request, or None when the other side has gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    while found and len(body) < int(found[1]):
        if not (more := connection.recv(65536)):
            return None
        body += more
    return Received(head, body)


@contextlib.contextmanager
def raw_server(script: Script | None = None) -> Iterator[RawServer]:
    """A server on a free port of the loopback address; unless told otherwise all its answers are good."""
    server = RawServer(script or (lambda _, request: good(request)))
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        threading.Thread(target=server.accept, args=(listener,), daemon=True).start()
        try:
            yield server
        finally:
            server.stop()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def content_for(request: Received) -> dict[str, Any]:
    """The good answer to a request, the same as the server of the other tests gives."""
    return good_answer(request.asked, hashlib.sha256(request.body).hexdigest())


def usage_of(request: Received, content: str) -> dict[str, int]:
    """What an honest server counts."""
    return {"prompt_tokens": len(json.dumps(request.asked["messages"])) // 4, "completion_tokens": len(content) // 4 + 1}


def body_with(request: Received, content: str | None = None) -> bytes:
    """The body of an answer with a content; the good one unless told."""
    content = json.dumps(content_for(request)) if content is None else content
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return json.dumps({"id": "a", "object": "chat.completion", "choices": [choice], "usage": usage_of(request, content)}).encode()


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A well-formed response; an underscore in a header's name stands for a hyphen."""
    lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + body


def good(request: Received) -> Iterator[Piece]:
    """A good answer."""
    yield http(body_with(request))
    yield KEEP


def refusal(status: int, body: str, **headers: str) -> Iterator[Piece]:
    """A status with words of the server's own."""
    yield http(body.encode(), f"{status} Refused", **headers)
    yield KEEP


def expanded(text: str) -> str:
    """A text of a data file with ``«ab*1000»`` written out a thousand times."""
    return REPEATED.sub(lambda found: found[1] * int(found[2]), text)


# --- replies that never end, or are more than they seem ---


def silence(_: Received) -> Iterator[Piece]:
    """Nothing at all."""
    yield 30.0


def silence_after_head(_: Received) -> Iterator[Piece]:
    """A head, and nothing of the body it promises."""
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"
    yield 30.0


def half_then_silence(request: Received) -> Iterator[Piece]:
    """Half of a good answer, and nothing more."""
    whole = http(body_with(request))
    yield whole[: len(whole) // 2]
    yield 30.0


def half_then_reset(request: Received) -> Iterator[Piece]:
    """Half of a good answer, and a reset."""
    whole = http(body_with(request))
    yield whole[: len(whole) // 2]
    yield RESET


def reset(_: Received) -> Iterator[Piece]:
    """A reset at once."""
    yield RESET


def drop_by_drop(request: Received) -> Iterator[Piece]:
    """A good answer, a byte at a time, each well before a time-out for a single read."""
    for byte in http(body_with(request)):
        yield bytes([byte])
        yield 0.05


def body_drop_by_drop(request: Received) -> Iterator[Piece]:
    """A good answer whose body comes a byte at a time."""
    head, _, body = http(body_with(request)).partition(b"\r\n\r\n")
    yield head + b"\r\n\r\n"
    for byte in body:
        yield bytes([byte])
        yield 0.05


def spaces_for_ever(_: Received) -> Iterator[Piece]:
    """Chunks of white space, as some gateways send to keep a connection open, and no end."""
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    while True:
        yield b"1\r\n \r\n"
        yield 0.05


def body_without_end(_: Received) -> Iterator[Piece]:
    """More than anybody should take."""
    yield b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"choices": ['
    yield from itertools.repeat(b"1," * (MEBIBYTE // 2), ENOUGH)
    yield 30.0


def chunks_without_end(_: Received) -> Iterator[Piece]:
    """The same in chunks."""
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield from itertools.repeat(b"100000\r\n" + b" " * MEBIBYTE + b"\r\n", ENOUGH)
    yield 30.0


def headers_without_end(_: Received) -> Iterator[Piece]:
    """Header after header."""
    yield b"HTTP/1.1 200 OK\r\n"
    for number in range(100_000):
        yield b"".join(b"X-%d-%d: %s\r\n" % (number, place, b"y" * 60) for place in range(100))
    yield 30.0


def header_without_end(_: Received) -> Iterator[Piece]:
    """One header that goes on."""
    yield b"HTTP/1.1 200 OK\r\nX: "
    yield from itertools.repeat(b"y" * MEBIBYTE, ENOUGH)
    yield 30.0


def status_line_without_end(_: Received) -> Iterator[Piece]:
    """A reason that goes on."""
    yield b"HTTP/1.1 200 "
    yield from itertools.repeat(b"y" * MEBIBYTE, ENOUGH)
    yield 30.0


def informed_without_end(_: Received) -> Iterator[Piece]:
    """Interim responses, and never a final one."""
    while True:
        yield b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        yield 0.01


def continued(request: Received) -> Iterator[Piece]:
    """Two interim responses before a good answer."""
    yield b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
    yield from good(request)


def bomb(layers: int, encoding: str) -> Callable[[Received], Iterator[Piece]]:
    """White space that packs to a thousandth, in one layer or more, without end."""

    def packed(request: Received) -> Iterator[Piece]:
        yield f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: {encoding}\r\n\r\n".encode()
        packers = [zlib.compressobj(9, wbits=15 if encoding == "deflate" else 31) for _ in range(layers)]
        for piece in itertools.repeat(b" " * MEBIBYTE, ENOUGH):
            for packer in packers:
                piece = packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
            yield piece
        yield 30.0

    return packed


def with_another(request: Received) -> Iterator[Piece]:
    """A good answer, and behind it one that nobody asked for, on a connection that stays open."""
    yield http(body_with(request)) + http(body_with(request, json.dumps({"text": "Nobody has asked for these words at all."})))
    yield 0.2
    yield KEEP


ENDLESS: dict[str, Callable[[Received], Iterable[Piece]]] = {
    one.__name__.replace("_", " "): one
    for one in (
        silence, silence_after_head, half_then_silence, half_then_reset, reset, drop_by_drop, body_drop_by_drop, spaces_for_ever,
        body_without_end, chunks_without_end, headers_without_end, header_without_end, status_line_without_end, informed_without_end,
    )
} | {"a gzip bomb": bomb(1, "gzip"), "a gzip bomb in gzip": bomb(2, "gzip, gzip"), "a deflate bomb": bomb(1, "deflate")}  # fmt: skip
INTERIM: dict[str, Callable[[Received], Iterable[Piece]]] = {"continued": continued}
