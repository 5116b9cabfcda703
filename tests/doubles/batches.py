"""Answers that come in files rather than over a socket: by hand, and from batches of a loopback server that fails as it is told."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from empathy_eval.base.hashing import canonical_json

from tests.doubles.server import Server

# What a batch may do: answer all; half of it; none for its file is not valid; half of it until it expires; answer 400 or 500 to some.
FATES = ("whole", "half", "failed", "expired", "none", "errors")


def reply(server: Server, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer that the server would give to a request; it counts it as one that came over the socket."""
    raw = canonical_json(body)
    name = hashlib.sha256(raw).hexdigest()
    fault = server._fault(name, server.seen[name])
    server.seen[name] += 1
    if fault is not None and fault.isdecimal():
        return int(fault), {"error": {"message": f"fault {fault}", "code": None}}
    server.answered[name] += 1
    return 200, server._answer(json.loads(raw), name, fault)


@dataclass
class BatchServer(Server):
    """A server with files and batches. Each batch takes the next of ``fates`` (``whole`` when there are no more).

    ``steps`` counts what it was asked for; ``hook`` is told the step before and after it is done, and may kill whoever asked.
    """

    fates: deque[str] = field(default_factory=deque)
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: Counter[str] = field(default_factory=Counter)
    hook: Callable[[str], None] = lambda step: None
    looks: int = 1
    # How often each request was answered and charged, by its id.
    charged: Counter[str] = field(default_factory=Counter)
    # What a gateway may do: tell of batches without their metadata, and have no list of files.
    drops_metadata: bool = False
    lists_files: bool = True
    # What is said of each uploaded file, which may be gone; and the names files were uploaded under, one for each time.
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    uploads: list[str] = field(default_factory=list)
    # By step the bodies that come, with status 200, in the place of what would be said; what was asked for is done.
    odd: dict[str, deque[bytes]] = field(default_factory=dict)
    # By step how often it fails with 503 and these headers before anything is done.
    failing: Counter[str] = field(default_factory=Counter)
    headers: dict[str, str] = field(default_factory=dict)
    # Every third call of each kind fails: "503", or "lost" where it is done all the same.
    call_fault: str | None = None

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/files", self.step("upload", self._upload)),
            web.get("/v1/files", self.step("files", self._files)),
            web.get("/v1/files/{name}/content", self.step("fetch", self._fetch)),
            web.post("/v1/batches", self.step("create", self._create)),
            web.get("/v1/batches", self.step("list", self._list)),
            web.get("/v1/batches/{name}", self.step("look", self._look)),
        ]

    def step(self, name: str, handler: Callable[[web.Request], Any]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            self.steps[name] += 1
            if self.behaviour.key and request.headers.get("Authorization") != f"Bearer {self.behaviour.key}":
                return self._error(401, "bad key")
            if self.call_fault and self.steps[name] % 3 == 1:
                if self.call_fault == "lost":  # done, and the answer never arrives
                    await handler(request)
                return self._error(503, "fault")
            if self.failing[name]:
                self.failing[name] -= 1
                return self._error(503, "failing", self.headers)
            self.hook(f"before {name}")
            odd = self.odd[name].popleft() if self.odd.get(name) else None
            # What is fetched is under way as soon as it is asked for.
            response: web.StreamResponse = web.Response() if odd is not None and name == "fetch" else await handler(request)
            self.hook(f"after {name}")
            return response if odd is None else web.Response(body=odd)

        return handle

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField) and form["purpose"] == "batch"
        name = f"file-{len(self.files)}"
        self.files[name] = file.file.read()
        self.about[name] = {
            "id": name, "object": "file", "bytes": len(self.files[name]), "created_at": 0, "filename": file.filename,
            "purpose": "batch", "status": "processed",
        }  # fmt: skip
        self.uploads.append(file.filename)
        return web.json_response(self.about[name])

    async def _files(self, request: web.Request) -> web.Response:
        if not self.lists_files:
            return self._error(404, "no such page")
        return self._page(self.about, request)

    async def _create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if asked["input_file_id"] not in self.files:
            return self._error(400, "no such file")
        name, lines = f"batch-{len(self.batches)}", self.files[asked["input_file_id"]].splitlines()
        assert len({json.loads(line)["body"]["model"] for line in lines}) == 1, "a file is for one model"
        counts = {"total": len(lines), "completed": 0, "failed": 0}
        self.batches[name] = {
            "id": name, "object": "batch", "endpoint": asked["endpoint"], "input_file_id": asked["input_file_id"], "created_at": 0,
            "completion_window": asked["completion_window"], "status": "validating",
            "metadata": None if self.drops_metadata else asked["metadata"],
            "request_counts": counts, "looks": 0,
        }  # fmt: skip
        # It is worked on and charged whether anyone ever looks at it or not.
        self.results[name] = self._work(self.batches[name], self.fates.popleft() if self.fates else "whole")
        return web.json_response(self.batches[name])

    async def _list(self, request: web.Request) -> web.Response:
        return self._page(self.batches, request)

    @staticmethod
    def _page(rows: dict[str, dict[str, Any]], request: web.Request) -> web.Response:
        """Two a page, the latest first."""
        names = list(reversed(rows))
        after = request.query.get("after")
        names = names[names.index(after) + 1 :] if after else names
        page = [rows[name] for name in names[:2]]
        return web.json_response({"object": "list", "data": page, "has_more": len(names) > 2})

    async def _look(self, request: web.Request) -> web.Response:
        batch = self.batches.get(request.match_info["name"])
        if batch is None:
            return self._error(404, "no such batch")
        batch["looks"] += 1
        if batch["looks"] > self.looks and batch["status"] in ("validating", "in_progress"):
            batch |= self.results[batch["id"]]
        elif batch["status"] == "validating":
            batch["status"] = "in_progress"
        return web.json_response(batch)

    def _work(self, batch: dict[str, Any], fate: str) -> dict[str, Any]:
        """What will be said of a batch when it has ended."""
        ended: dict[str, Any] = {"status": fate if fate in ("failed", "expired") else "completed"}
        answers, errors = list[bytes](), list[bytes]()
        if fate == "failed":
            return {**ended, "errors": {"object": "list", "data": [{"code": "token_limit_exceeded", "message": "too much is queued"}]}}
        for number, line in enumerate(self.files[batch["input_file_id"]].splitlines()):
            request = json.loads(line)
            given: dict[str, Any] = {"id": f"r{number}", "custom_id": request["custom_id"], "response": None, "error": None}
            if fate == "none" or (fate in ("half", "expired") and number % 2):
                given["error"] = {"code": "batch_expired", "message": "not in time"}
            else:
                status, body = (500, {}) if fate == "errors" and number % 3 == 0 else reply(self, request["body"])
                given["response"] = {"status_code": status, "request_id": "q", "body": body}
                self.charged[request["custom_id"]] += status == 200
            good = given["response"] and given["response"]["status_code"] == 200
            (answers if good else errors).append(json.dumps(given).encode() + b"\n")
        for kind, lines in (("output", answers), ("error", errors)):
            if lines:
                ended[f"{kind}_file_id"] = f"{batch['id']}-{kind}"
                self.files[f"{batch['id']}-{kind}"] = b"".join(reversed(lines))
        return {**ended, "request_counts": batch["request_counts"] | {"completed": len(answers), "failed": len(errors)}}

    async def _fetch(self, request: web.Request) -> web.StreamResponse:
        content = self.files.get(request.match_info["name"])
        if content is None:
            return self._error(404, "no such file")
        response = web.StreamResponse(headers={"Content-Length": str(len(content))})
        await response.prepare(request)
        await response.write(content[: len(content) // 2])
        self.hook("amid fetch")
        await response.write(content[len(content) // 2 :])
        return response
