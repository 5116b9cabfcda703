"""A release served to the browser of this machine: its files by ranges, and the page to explore it with."""

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
# Seconds that an answer which is under way may still take once the server is to end.
PATIENCE = 1.0
# What a release of others holds runs nothing here, whatever it calls itself.
INERT = {"Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
# What whoever comes sends in a broken way is answered, and is none of the terminal's business.
SILENT = logging.Logger("empathy_eval.serving", logging.CRITICAL + 1)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def serve(folder: Path, page: str, port: int = 0, address: Callable[[str], None] = lambda url: None) -> None:
    """Serves a release on the loopback interface until Ctrl-C.

    Args:
        folder: the release.
        page: what is given for its page: ours, not the one that lies in the folder.
        port: the port, 0 for any that is free.
        address: is called with the page's URL once it is there.

    Raises:
        InputError: if there is no such port, or it is taken.
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
    """What answers: files of the folder alone, to requests for this very host alone."""
    root = folder.resolve()

    async def answer(request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        if not path:
            raise web.HTTPFound(f"/{PAGE}")
        if path == PAGE:
            return web.Response(text=page, content_type="text/html", headers={"Cache-Control": "no-cache"})
        found = _file(root, path)
        if found is None:
            raise web.HTTPNotFound
        return web.FileResponse(found, headers=INERT)

    app = web.Application(middlewares=[_ours])
    app.router.add_get("/{path:.*}", answer)
    return app


@web.middleware
async def _ours(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses who came by another name: a page elsewhere may let a name of its own lead here, to read what it then calls its own.

    Whoever sends a body is refused too, whole or broken: there is nothing here that takes one.
    """
    _, port = request.transport.get_extra_info("sockname") if request.transport else ("", 0)
    # A browser leaves the port of the web itself away.
    ours = [name if port == 80 else f"{name}:{port}" for name in NAMES]
    if request.headers.get("Host") not in ours:
        raise web.HTTPMisdirectedRequest
    if request.body_exists:
        raise web.HTTPBadRequest
    return await handler(request)


def _file(root: Path, path: str) -> Path | None:
    """The file of a release that a path names; none that is hidden or lies outside, whatever links lead there."""
    try:
        found = (root / path).resolve()
        inside = belongs_to(root, root / path) and found.is_file()
    except (OSError, ValueError, RuntimeError):  # a name that is too long or holds a zero, links that lead to each other
        return None
    plain = not path.endswith("/") and not any(part.startswith(".") for part in path.split("/"))
    return found if inside and plain else None
