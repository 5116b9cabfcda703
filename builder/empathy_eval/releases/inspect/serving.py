"""Server of a release for a browser on this machine: its files by ranges, and its explorer page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import belongs_to
from empathy_eval.base.stopping import run_beside_loops, stopped_by_signals
from empathy_eval.reports.explorer import PAGE

HERE, NAMES = "127.0.0.1", ("127.0.0.1", "localhost")
# Seconds that a started response may take after the server was stopped.
PATIENCE = 1.0
# Files of an untrusted release run nothing, whatever their type.
INERT = {"Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
# Broken requests are answered, and not logged on the terminal.
SILENT = logging.Logger("empathy_eval.serving", logging.CRITICAL + 1)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def serve(folder: Path, page: str, port: int = 0, address: Callable[[str], None] = lambda url: None) -> None:
    """Serves a release on the loopback interface until Ctrl-C.

    Args:
        folder: the release.
        page: the explorer page, in place of the one in the folder.
        port: the port, 0 for any free one.
        address: called with the page's URL once it is served.

    Raises:
        InputError: if there is no such port, or it is in use.
    """
    if not 0 <= port < 2**16:
        raise input_error("--port", f"{port} is not a port number", "name a port from 1 to 65535, or leave it out")
    run_beside_loops(lambda: asyncio.run(_serve(folder, page, port, address)))


async def _serve(folder: Path, page: str, port: int, address: Callable[[str], None]) -> None:
    ended = asyncio.Event()
    runner = web.AppRunner(application(folder, page), access_log=None, logger=SILENT, shutdown_timeout=PATIENCE)
    await runner.setup()
    try:
        with stopped_by_signals(lambda error: ended.set()):
            try:
                await web.TCPSite(runner, HERE, port).start()
            except OSError as error:
                raise input_error(
                    "--port", f"port {port} is not available: {error.strerror}", "name another port, or leave it out"
                ) from error
            address(f"http://{HERE}:{runner.addresses[0][1]}/{PAGE}")
            await ended.wait()
    finally:
        await runner.cleanup()


def application(folder: Path, page: str) -> web.Application:
    """Returns the application, which serves only files of the folder, and only to requests for this host."""
    root = folder.resolve()

    async def answer(request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        if not path:
            raise web.HTTPFound(f"/{PAGE}")
        if path == PAGE:
            return web.Response(text=page, content_type="text/html", headers={"Cache-Control": "no-cache"})
        file = _file(root, path)
        if file is None:
            raise web.HTTPNotFound
        return web.FileResponse(file, headers=INERT)

    app = web.Application(middlewares=[_check_request])
    app.router.add_get("/{path:.*}", answer)
    return app


@web.middleware
async def _check_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses requests for another host name, by which another site could read the release (DNS rebinding), and requests with a body."""
    _, port = request.transport.get_extra_info("sockname") if request.transport else ("", 0)
    # A browser leaves out port 80.
    hosts = [name if port == 80 else f"{name}:{port}" for name in NAMES]
    if request.headers.get("Host") not in hosts:
        raise web.HTTPMisdirectedRequest
    if request.body_exists:
        raise web.HTTPBadRequest
    return await handler(request)


def _file(root: Path, path: str) -> Path | None:
    """Returns the file of a release at a path; None if it is hidden or, after all links, outside the folder."""
    try:
        file = (root / path).resolve()
        inside = belongs_to(root, root / path) and file.is_file()
    except (OSError, ValueError, RuntimeError):  # a name that is too long or holds a null character, or a loop of links
        return None
    plain = not path.endswith("/") and not any(part.startswith(".") for part in path.split("/"))
    return file if inside and plain else None
