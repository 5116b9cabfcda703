"""A release served on the loopback interface: its files by ranges, and nothing else to nobody else."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.releases.inspect.serving import application, serve
from empathy_eval.reports.explorer import PAGE
from yarl import URL

FILE = "data/pairs/train.parquet"


@pytest.fixture
def folder(light: Path, tmp_path: Path) -> Path:
    """A release with what must not be served in it and beside it."""
    (tmp_path / "secret.txt").write_text("secret")
    copy = Path(shutil.copytree(light, tmp_path / "release"))
    (copy / ".hidden").write_text("secret")
    (copy / "link.txt").symlink_to(tmp_path / "secret.txt")
    (copy / "loop.txt").symlink_to("loop.txt")
    (copy / "folder").symlink_to(tmp_path)
    return copy


@pytest_asyncio.fixture
async def server(folder: Path) -> AsyncIterator[TestServer]:
    running = TestServer(application(folder, "<p>ours</p>"))
    async with running:
        yield running


async def asked(server: TestServer, path: str, method: str = "GET", **headers: str) -> tuple[int, Any, bytes]:
    url = URL(f"http://127.0.0.1:{server.port}/{path}", encoded=True)
    async with ClientSession() as session, session.request(method, url, headers=headers, allow_redirects=False) as answer:
        return answer.status, answer.headers, await answer.read()


async def test_a_part_of_a_file_is_given_and_how_long_it_is(server: TestServer, folder: Path) -> None:
    whole = (folder / FILE).read_bytes()
    status, headers, body = await asked(server, FILE, Range="bytes=4-11")
    assert (status, body, headers["Content-Range"]) == (206, whole[4:12], f"bytes 4-11/{len(whole)}")
    status, headers, body = await asked(server, FILE, Range="bytes=-8")
    assert (status, body) == (206, whole[-8:]) and whole.endswith(b"PAR1")
    status, headers, body = await asked(server, FILE, "HEAD")
    assert (status, body, headers["Content-Length"], headers["Accept-Ranges"]) == (200, b"", str(len(whole)), "bytes")
    status, headers, _ = await asked(server, FILE, Range=f"bytes={len(whole)}-{len(whole) + 5}")
    assert (status, headers["Content-Range"]) == (416, f"bytes */{len(whole)}")
    assert (await asked(server, FILE))[::2] == (200, whole)


async def test_the_page_is_ours_and_what_lies_in_the_folder_can_run_nothing(server: TestServer, folder: Path) -> None:
    status, headers, _ = await asked(server, "")
    assert (status, headers["Location"]) == (302, f"/{PAGE}")
    assert (await asked(server, PAGE))[::2] == (200, b"<p>ours</p>") and b"ours" not in (folder / PAGE).read_bytes()
    _, headers, _ = await asked(server, "report/index.html")
    assert (headers["Content-Security-Policy"], headers["X-Content-Type-Options"]) == ("sandbox", "nosniff")


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt", "%2e%2e/secret.txt", "data/../../secret.txt", "..%2fsecret.txt", "/etc/passwd", "%2fetc%2fpasswd", "link.txt",
        "loop.txt", "folder/secret.txt", ".hidden", "data", "data/", "nothing", "a%00b", "x" * 5000, "explore/index.html/",
        "..%5csecret.txt",
    ],
)  # fmt: skip
async def test_nothing_but_the_files_of_the_release_is_given(path: str, server: TestServer) -> None:
    status, _, body = await asked(server, path)
    assert status == 404 and b"secret" not in body and b"root:" not in body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1:{port}@evil.example", ""])
async def test_who_comes_by_another_name_gets_nothing(host: str, server: TestServer) -> None:
    status, _, body = await asked(server, "manifest.json", Host=host.format(port=server.port))
    assert status in (400, 421) and b"pairs" not in body
    assert (await asked(server, "manifest.json", Host=f"localhost:{server.port}"))[0] == 200


async def test_nothing_can_be_sent(server: TestServer) -> None:
    assert {(await asked(server, "manifest.json", method))[0] for method in ("POST", "PUT", "DELETE")} == {405}


def test_a_port_that_cannot_be_had_is_told(light: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="is not available"):
            serve(light, "", taken.getsockname()[1])
    assert main(["explore", str(light), "--serve", "--port", "65536"]) == 2
    assert "65536 is not a port number" in capsys.readouterr().err


BROKEN = [
    "GET /{page} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\nbody\r\n",
    "GET /{page} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello world\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "GET /{page} HTTP/1.1\r\nHost: {host}\r\nContent-Length: many\r\n\r\n",
    "GET /{page} HTTP/9\r\n\r\n",
    "\x16\x03\x01 is no HTTP\r\n\r\n",
]


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_verb_serves_this_machine_alone_until_it_is_stopped_and_ends_well(name: str, light: Path) -> None:
    command = [sys.executable, "-m", "empathy_eval", "explore", str(light), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}) as process:
        assert process.stdout and process.stderr
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:") and url.endswith(PAGE)
        port = int(url.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port)) as held:
            # One that stays open, as a browser's does, holds nobody up.
            held.sendall(f"GET /{PAGE} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            assert held.recv(12) == b"HTTP/1.1 200"
            for request in BROKEN:
                with socket.create_connection(("127.0.0.1", port), 20) as broken:
                    broken.sendall(request.format(page=PAGE, host=f"127.0.0.1:{port}").encode("latin-1"))
                    assert broken.recv(12)[-4:] == b" 400", request
            begin = time.monotonic()
            process.send_signal(getattr(signal, name))
            assert process.wait(20) == 0 and time.monotonic() - begin < 10
        assert process.stderr.read() == ""
