"""The Hub on loopback: repositories in memory behind the requests that the real client makes, failing as it is told.

``python -m tests.doubles.hub`` is the other side: a process with the real client, which does what the lines of its standard input say.
Where the Hub is, the client reads from the environment when it is imported.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

WRITER, READER = "hf_writer_token", "hf_reader_token"
REPO = "my-lab/empathy-eval"
NOT_CONNECTED = ("reset", "lost")


class Refused(Exception):
    """Status, message and code of an answer."""


@dataclass(frozen=True)
class Blob:
    """A file of a commit."""

    data: bytes
    lfs: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def oid(self) -> str:
        """As git names it; of a large file, its pointer."""
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {len(self.data)}\n".encode()
        data = pointer if self.lfs else self.data
        return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()

    def entry(self, path: str) -> dict[str, Any]:
        """A line of a tree."""
        lfs = {"lfs": {"oid": self.sha256, "size": len(self.data), "pointerSize": 130}} if self.lfs else {}
        return {"type": "file", "path": path, "oid": self.oid, "size": len(self.data), **lfs}


@dataclass
class Repository:
    """All commits of a branch by their id, oldest first, and the tags."""

    commits: dict[str, dict[str, Blob]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        return next(reversed(self.commits))

    def add(self, files: dict[str, Blob]) -> str:
        """A new commit of these files."""
        named = json.dumps([len(self.commits), {path: blob.oid for path, blob in sorted(files.items())}])
        self.commits[hashlib.sha1(named.encode(), usedforsecurity=False).hexdigest()] = files
        return self.head


@dataclass
class Hub:
    """A running stand-in. From a request on it fails: with the status ``failure``, by a ``reset`` before the request is acted on, by
    losing the answer after it (``lost``), or by ``silence``. That request is the one with the number ``failing_from`` (the first is 0)
    or, if there is a ``stage``, the first whose path holds it."""

    url: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    failure: str | None = None
    failing_from: int = 0
    stage: str = ""
    ignored: tuple[str, ...] = ()
    intruder: dict[str, Blob] | None = None

    def told(self, failure: str | None, failing_from: int = 0, stage: str = "") -> None:
        """Counts requests anew, and fails as said."""
        self.requests.clear()
        self.failure, self.failing_from, self.stage = failure, failing_from, stage

    def failing(self) -> bool:
        """Whether the last request was one that fails, or came after one."""
        reached = len(self.requests) > self.failing_from and any(self.stage in path for _, path in self.requests)
        return self.failure is not None and reached

    def sent(self) -> list[tuple[str, str]]:
        """The requests that could change something."""
        return [(method, path) for method, path in self.requests if method not in ("GET", "HEAD")]

    @web.middleware
    async def guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Records the request, fails if it is told to, and looks at the token."""
        self.requests.append((request.method, request.path))
        failure = self.failure if self.failing() else None
        if failure == "silence":
            await asyncio.sleep(3600)
        if failure and failure not in NOT_CONNECTED:
            return refusal(int(failure), f"failure {failure}")
        response: web.StreamResponse | None = self._refused(request)
        if response is None and failure != "reset":
            try:
                response = await handler(request)
            except Refused as error:
                response = refusal(*error.args)
        if failure and request.transport:
            request.transport.abort()
        return web.Response() if response is None else response

    def _refused(self, request: web.Request) -> web.Response | None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in ("", WRITER, READER):
            # A server that repeats the token: what the client shows must not.
            return refusal(401, f"Invalid credentials in Authorization header: {token}")
        if request.path.startswith("/storage/") or request.method in ("GET", "HEAD"):
            return None
        if request.path == "/api/validate-yaml" or token == WRITER:
            return None
        return refusal(403, "You have no right to write") if token else refusal(401, "Invalid username or password.")

    def _repository(self, request: web.Request) -> Repository:
        found = self.repositories.get(request.match_info["id"])
        if found is None:
            known = "Authorization" in request.headers
            raise Refused(404 if known else 401, "Repository not found", "RepoNotFound")
        return found

    def _commit(self, request: web.Request) -> tuple[str, dict[str, Blob]]:
        """A commit by its id, its tag or the name of the branch."""
        repository, revision = self._repository(request), request.match_info.get("revision", "main")
        oid = repository.tags.get(revision, repository.head if revision == "main" else revision)
        if oid not in repository.commits:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return oid, repository.commits[oid]

    async def create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        name = f"{asked['organization']}/{asked['name']}"
        if name in self.repositories:
            return refusal(409, "You already created this dataset repo")
        self.repositories[name] = Repository()
        self.repositories[name].add({".gitattributes": Blob(b"*.parquet filter=lfs diff=lfs merge=lfs -text\n", False)})
        return web.json_response({"url": f"{self.url}/datasets/{name}"})

    async def validate(self, request: web.Request) -> web.Response:
        try:
            yaml.safe_load((await request.json())["content"].split("---")[1])
        except (yaml.YAMLError, IndexError):
            return web.json_response({"errors": [{"message": "the head is not YAML"}]}, status=400)
        return web.json_response({"errors": [], "warnings": []})

    async def preupload(self, request: web.Request) -> web.Response:
        _, files = self._commit(request)
        modes = []
        for one in (await request.json())["files"]:
            path, blob = one["path"], files.get(one["path"])
            oid = blob and (blob.sha256 if blob.lfs else blob.oid)
            mode = "lfs" if path.endswith((".parquet", ".png")) else "regular"
            modes.append({"path": path, "uploadMode": mode, "shouldIgnore": path in self.ignored, "oid": oid})
        return web.json_response({"files": modes})

    async def batch(self, request: web.Request) -> web.Response:
        objects = [{"oid": one["oid"], "size": one["size"]} for one in (await request.json())["objects"]]
        for one in objects:
            if one["oid"] not in self.large:
                one["actions"] = {"upload": {"href": f"{self.url}/storage/{one['oid']}"}}
        return web.json_response({"transfer": "basic", "objects": objects})

    async def store(self, request: web.Request) -> web.Response:
        data, oid = await request.read(), request.match_info["oid"]
        if hashlib.sha256(data).hexdigest() != oid:
            return refusal(400, "the bytes are not those of the name")
        self.large[oid] = data
        return web.Response()

    async def commit(self, request: web.Request) -> web.Response:
        """All operations or none: the branch moves when the last of them was fine."""
        repository, lines = self._repository(request), (await request.read()).splitlines()
        header, *operations = map(json.loads, lines)
        if self.intruder is not None:
            repository.add(self.intruder)
        if header["value"].get("parentCommit") not in (None, repository.head):
            return refusal(412, "A commit has happened since. Please refresh and try again.")
        files = dict(repository.commits[repository.head])
        for one in operations:
            kind, value = one["key"], one["value"]
            if kind == "file":
                files[value["path"]] = Blob(base64.b64decode(value["content"]), False)
            elif kind == "lfsFile" and value["oid"] in self.large:
                files[value["path"]] = Blob(self.large[value["oid"]], True)
            elif kind == "deletedFile" and value["path"] in files:
                del files[value["path"]]
            else:
                return refusal(404, f"{kind} {value['path']}: there is none", "EntryNotFound")
        oid = repository.add(files)
        return web.json_response(
            {"success": True, "commitOid": oid, "commitUrl": f"{self.url}/datasets/{request.match_info['id']}/commit/{oid}"}
        )

    async def tag(self, request: web.Request) -> web.Response:
        (oid, _), repository, name = self._commit(request), self._repository(request), (await request.json())["tag"]
        if name in repository.tags:
            return refusal(409, f"Tag {name} exists already")
        repository.tags[name] = oid
        return web.Response()

    async def refs(self, request: web.Request) -> web.Response:
        repository = self._repository(request)
        branches = [{"name": "main", "ref": "refs/heads/main", "targetCommit": repository.head}]
        tags = [{"name": name, "ref": f"refs/tags/{name}", "targetCommit": oid} for name, oid in repository.tags.items()]
        return web.json_response({"branches": branches, "tags": tags, "converts": []})

    async def info(self, request: web.Request) -> web.Response:
        oid, files = self._commit(request)
        named = [{"rfilename": path} for path in sorted(files)]
        return web.json_response({"id": request.match_info["id"], "sha": oid, "siblings": named, "tags": [], "private": False})

    async def tree(self, request: web.Request) -> web.Response:
        _, files = self._commit(request)
        top = request.match_info.get("path", "").strip("/")
        inside = {path: blob for path, blob in files.items() if not top or path.startswith(f"{top}/")}
        folders = {str(parent) for path in inside for parent in Path(path).parents if str(parent) not in (".", top)}
        entries = [blob.entry(path) for path, blob in inside.items()]
        entries += [{"type": "directory", "path": path, "oid": "0" * 40, "size": 0} for path in folders]
        if request.query.get("recursive", "false").lower() != "true":
            entries = [one for one in entries if str(Path(one["path"]).parent) == (top or ".")]
        return web.json_response(sorted(entries, key=lambda one: str(one["path"])))

    async def resolve(self, request: web.Request) -> web.Response:
        oid, files = self._commit(request)
        blob = files.get(request.match_info["path"])
        if blob is None:
            return refusal(404, "Entry not found", "EntryNotFound")
        headers = {"ETag": f'"{blob.sha256 if blob.lfs else blob.oid}"', "X-Repo-Commit": oid, "Accept-Ranges": "bytes"}
        if request.headers.get("Range"):
            part = blob.data[request.http_range]
            headers["Content-Range"] = f"bytes {request.http_range.start}-{request.http_range.start + len(part) - 1}/{len(blob.data)}"
            return web.Response(body=part, status=206, headers=headers)
        return web.Response(body=blob.data, headers=headers)

    def app(self) -> web.Application:
        """The requests by method and path."""
        app = web.Application(client_max_size=2**28, middlewares=[self.guard])
        name, api, revision = "{id:[^/]+/[^/.]+}", "/api/datasets/{id:[^/]+/[^/]+}", "{revision:[^/]+}"
        app.router.add_post("/api/repos/create", self.create)
        app.router.add_post("/api/validate-yaml", self.validate)
        app.router.add_post(f"{api}/preupload/{revision}", self.preupload)
        app.router.add_post(f"/datasets/{name}.git/info/lfs/objects/batch", self.batch)
        app.router.add_put("/storage/{oid}", self.store)
        app.router.add_post(f"{api}/commit/{revision}", self.commit)
        app.router.add_post(f"{api}/tag/{revision}", self.tag)
        app.router.add_get(f"{api}/refs", self.refs)
        app.router.add_get(f"{api}/revision/{revision}", self.info)
        app.router.add_get(f"{api}/tree/{revision}", self.tree)
        app.router.add_get(f"{api}/tree/{revision}/{{path:.+}}", self.tree)
        app.router.add_get(api, self.info)
        app.router.add_get(f"/datasets/{name}/resolve/{revision}/{{path:.+}}", self.resolve)
        return app


def refusal(status: int, message: str, code: str = "") -> web.Response:
    """An error as the Hub words it: in the body and in the headers."""
    headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
    return web.json_response({"error": message}, status=status, headers=headers)


@contextlib.contextmanager
def running() -> Iterator[Hub]:
    """A stand-in in a thread of this process, on a free port of the loopback address."""
    hub, loop, started = Hub(), asyncio.new_event_loop(), threading.Event()

    async def start() -> None:
        runner = web.AppRunner(hub.app(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        hub.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        started.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.create_task(start())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield hub
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


class Client:
    """A process with the real client."""

    def __init__(self, url: str, home: Path, **more: str) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        env |= {
            "HF_ENDPOINT": url,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "NO_PROXY": "127.0.0.1",
            **more,
        }
        home.mkdir()
        self.log = home / "stderr.txt"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.doubles.hub"],
                env=env,
                cwd=Path(__file__).parent.parent.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def start(self, verb: str, **arguments: Any) -> None:
        """Asks for something without waiting for it."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps([verb, arguments]) + "\n")
        self.process.stdin.flush()

    def ask(self, verb: str, **arguments: Any) -> Any:
        """The answer, or the log of a process that died."""
        self.start(verb, **arguments)
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        return json.loads(line)

    def publish(self, folder: Path, repo: str = REPO, token: str | None = WRITER, **arguments: Any) -> Any:
        """What ``publish`` gave, or kind and text of its error."""
        return self.ask("publish", folder=str(folder), repo=repo, token=token, **arguments)

    def fetch(self, release: str, cache: Path, token: str | None = None) -> Any:
        """The folder of ``release_folder``, or kind and text of its error."""
        return self.ask("fetch", release=release, cache=str(cache), token=token)

    def close(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.communicate()


def _told(token: str | None, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What something gave that was done with a token, or kind and text of its error."""
    from empathy_eval.base.errors import EmpathyEvalError

    os.environ.pop("HF_TOKEN", None)
    os.environ |= {"HF_TOKEN": token} if token else {}
    try:
        return work()
    except EmpathyEvalError as error:
        return {"error": type(error).__name__, "text": str(error)}


def _publish(folder: str, repo: str, token: str | None, dry_run: bool = False, faults: tuple[str, ...] = ()) -> dict[str, Any]:
    from empathy_eval.base.errors import Problem
    from empathy_eval.releases.hub.publish import publish

    found = [Problem(where, "is wrong", "mend it") for where in faults]
    return _told(token, lambda: asdict(publish(Path(folder), repo, dry_run=dry_run, faults=lambda _: found)))


def _fetch(release: str, cache: str, token: str | None) -> dict[str, Any]:
    from empathy_eval.releases.hub.fetch import release_folder

    os.environ["XDG_CACHE_HOME"] = cache
    return _told(token, lambda: {"folder": str(release_folder(release))})


def _load(repo: str, config: str, split: str, revision: str) -> list[Any]:
    import datasets

    return list(datasets.load_dataset(repo, config, split=split, revision=revision))


def _work() -> None:
    """Reads ``[verb, arguments]`` a line, and writes an answer a line."""
    # The library waits up to 23 seconds before it gives a request up; the waits are left out, their number is not.
    time.sleep = lambda _: None
    answers, sys.stdout = sys.stdout, sys.stderr
    verbs: dict[str, Callable[..., Any]] = {"publish": _publish, "fetch": _fetch, "load": _load}
    for line in sys.stdin:
        verb, arguments = json.loads(line)
        answers.write(json.dumps(verbs[verb](**arguments)) + "\n")
        answers.flush()


if __name__ == "__main__":
    _work()
