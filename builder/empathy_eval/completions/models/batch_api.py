"""Batches at an OpenAI-compatible endpoint: a file of requests is uploaded, submitted, waited for and its answers fetched.

A file is uploaded under a name that holds its hash, and a batch carries the hash as metadata: by these both are found again after a
call whose answer was lost, or a kill.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import openai

from empathy_eval.base.errors import EmpathyEvalError, JobError, job_error
from empathy_eval.base.files import room_for
from empathy_eval.base.schemas import violations
from empathy_eval.base.stages import now
from empathy_eval.base.stopping import pause
from empathy_eval.completions.models.endpoint_health import EndpointHealth
from empathy_eval.completions.models.openai_endpoint import BATCH_URL, FIRST_WAIT, LONGEST_WAIT
from empathy_eval.completions.models.transport import BoundedSyncClient, Refused, client_settings, masked, meaning, said, words_of
from empathy_eval.completions.requests import NoAnswer
from empathy_eval.design.endpoints import ModelConfig

ENDED = ("completed", "failed", "expired", "cancelled")
# What a schema is of, in words.
KINDS = {"batch_state": "batch", "batch_upload": "uploaded file", "batch_page": "list"}


@dataclass(frozen=True)
class State:
    """How far a batch is; once it has ended, the files that hold its answers and errors, and why it failed if it did."""

    status: str
    done: int
    total: int
    files: tuple[str, ...]
    reason: str

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status in ENDED


def read(content: bytes, name: str) -> dict[str, Any]:
    """What an endpoint said, valid under the schema of that name.

    Raises:
        Refused: for anything else, in the endpoint's words if it says why.
    """
    try:
        return valid(json.loads(content), name)
    except (ValueError, RecursionError) as error:
        raise Refused(f"what came for a {KINDS[name]} is not JSON: {said(str(error))}") from error


def valid(value: Any, name: str) -> dict[str, Any]:
    """The value, valid under the schema of that name; raises Refused for any other."""
    for place, what, _ in violations(value, name):
        reason = said(value.get("error")) if isinstance(value, dict) else ""
        raise Refused(f"what came is no {KINDS[name]}: {reason or said(': '.join(filter(None, (place, what))))}")
    found: dict[str, Any] = value
    return found


def mark(batch: dict[str, Any]) -> str | None:
    """The hash that a batch carries."""
    metadata = batch.get("metadata")
    found = metadata.get("file") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else None


def status_of(batch: dict[str, Any]) -> str:
    """The status as OpenAI writes it; others write capitals, spaces or one l."""
    status = str(batch["status"]).casefold().replace(" ", "_").replace("-", "_")
    return "cancelled" if status == "canceled" else status


def count(counts: Any, name: str) -> int:
    """A number that is only shown; 0 for what is none."""
    found = counts.get(name) if isinstance(counts, dict) else None
    return found if isinstance(found, int) and found > 0 else 0


T = TypeVar("T")
GOING_ON = ("validating", "queued", "pending", "running", "in_progress", "finalizing", "cancelling")
LOOKS = 5  # times that a list of files is asked for, until the endpoint counts as one without


@dataclass(frozen=True)
class Submitted:
    """The name of a batch, and whether it would be found again by one who knows no more than the hash of its file."""

    name: str
    found_again: bool


class Batches:
    """The batches of one endpoint. A call that gets no answer is made again until ``patience_seconds`` are over."""

    def __init__(self, config: ModelConfig) -> None:
        self._config, self.reception = config, EndpointHealth(config)
        self._client = openai.OpenAI(**client_settings(config), timeout=config.timeout_seconds, http_client=BoundedSyncClient(config))
        # By the hash of a file the name it was uploaded under; names that were found and are not taken; when odd states were first seen.
        self._uploaded: dict[str, str] = {}
        self._found: set[str] = set()
        self._spoilt: set[str] = set()
        self._odd: dict[str, float] = {}
        self._no_files = False

    def find(self, file: str, known: Collection[str] = ()) -> str | None:
        """The name of a batch that was submitted with a file of this hash and has not failed; ``known`` ones are left out.

        Raises:
            JobError: if the endpoint refuses, or does not answer in time; so do the other methods.
        """
        return self._patiently(lambda: self._find(file, known, ("failed",)))

    def submit(self, path: Path, metadata: dict[str, str], known: Collection[str]) -> Submitted:
        """Submits a file, unless a batch of it is there already: one whose creation was not confirmed is not made twice.

        A batch that was cancelled was given up, and is not taken for this one.
        """
        file = metadata["file"]

        def once() -> Submitted:
            name = self._find(file, known, ("failed", "cancelling", "cancelled"), self._uploaded.get(file))
            return Submitted(name, False) if name else self._create(path, metadata)

        made = self._patiently(once)
        return made if made.found_again else Submitted(made.name, self._found_again(made.name, file))

    def forgetful(self, name: str) -> EmpathyEvalError:
        """What is to be said where a batch would not be found again."""
        return self._stop(
            f"{name} is created and recorded, but its metadata was dropped on the way. If a kill prevented the record of a batch, it "
            "would not be found again and would be paid for twice, so no other is created now",
            "let the gateway pass on metadata; the same command takes in the answers of this batch and continues one batch at a time",
        )

    def state(self, name: str) -> State:
        """How far a batch is. A status that is not known is no end; it is waited for no longer than ``patience_seconds``."""
        batch = self._patiently(lambda: read(self._client.batches.with_raw_response.retrieve(name).content, "batch_state"))
        status = status_of(batch)
        if status in ENDED + GOING_ON:
            self._odd.pop(name, None)
        elif now() - self._odd.setdefault(name, now()) > self._config.patience_seconds:
            what = f'{name} has the status "{status}", which is none of {", ".join(ENDED + GOING_ON)}'
            raise self._stop(what, "check at the provider what it waits for, then run the same command to continue")
        counts = batch.get("request_counts")
        done, failed, total = (count(counts, one) for one in ("completed", "failed", "total"))
        files = tuple(one for one in (batch.get("output_file_id"), batch.get("error_file_id")) if one)
        reason = said(batch.get("errors"))
        return State(status, done + failed, total, files, f"{name} {status}" + (f": {reason}" if reason else ""))

    def fetch(self, file_id: str, path: Path) -> bool:
        """Writes a file of answers to ``path``; returns whether the provider has it still."""

        def download() -> bool:
            try:
                with self._client.files.with_streaming_response.content(file_id) as response, room_for(path):
                    response.stream_to_file(path)
            except openai.NotFoundError:
                return False
            return True

        return self._patiently(download)

    def _find(self, file: str, known: Collection[str], but: Collection[str], uploaded: str | None = None) -> str | None:
        """A batch with this hash in its metadata; or, of those without any, one of a file that was uploaded under this hash."""
        bare = []
        for one in self._listed(self._client.batches, limit=100):
            if mark(one) == file and _usable(one, known, but):
                return str(one["id"])
            if mark(one) is None and not (isinstance(one.get("id"), str) and one["id"] in known):
                bare.append(one)
        ids = [*filter(None, [uploaded]), *self._uploads(file)] if bare else []
        return next((str(one["id"]) for one in bare if one.get("input_file_id") in ids and _usable(one, known, but)), None)

    def _found_again(self, name: str, file: str) -> bool:
        """Whether a batch of this name is listed with the hash, or with a file that is listed with it."""
        one = next((one for one in self._listed(self._client.batches, limit=100) if one.get("id") == name), {})
        return mark(one) == file or one.get("input_file_id") in list(self._uploads(file))

    def _create(self, path: Path, metadata: dict[str, str]) -> Submitted:
        file = metadata["file"]
        if file not in self._uploaded:
            there = self._uploads(file, path.stat().st_size) - self._spoilt
            self._found |= there
            self._uploaded[file] = min(there) if there else self._upload(path, file)
        uploaded = self._uploaded[file]
        try:
            made = self._client.batches.with_raw_response.create(
                input_file_id=uploaded, endpoint=BATCH_URL, completion_window="24h", metadata=metadata
            )
        except (openai.BadRequestError, openai.NotFoundError) as error:
            if uploaded not in self._found - self._spoilt:
                raise
            # It may be the file that was found: the provider lists it still, and takes it no more.
            self._spoilt.add(self._uploaded.pop(file))
            raise Refused(f"the file {uploaded} is not taken: {words_of(error.response, self._config)}") from error
        batch = read(made.content, "batch_state")
        return Submitted(batch["id"], mark(batch) == file)

    def _upload(self, path: Path, file: str) -> str:
        with path.open("rb") as stream:
            made = self._client.files.with_raw_response.create(file=(_upload_name(file), stream), purpose="batch")
        return str(read(made.content, "batch_upload")["id"])

    def _uploads(self, file: str, size: int | None = None) -> set[str]:
        """The names under which a file of this hash (and size) was uploaded; none where the endpoint has no list of files."""
        if self._no_files:
            return set()
        try:
            found = [one for one in self._listed(self._client.files, LOOKS, purpose="batch") if _is_upload(one, file, size)]
        except JobError:
            self._no_files = True
            return set()
        return {str(valid(one, "batch_upload")["id"]) for one in found}

    def _listed(self, of: Any, tries: int | None = None, **query: Any) -> Iterator[dict[str, Any]]:
        """What the endpoint lists, page by page; the list ends too where a page brings nothing new."""
        seen, after = set[str](), dict[str, str]()
        while True:
            page = self._patiently(lambda: read(of.with_raw_response.list(**query, **after).content, "batch_page"), tries)  # noqa: B023
            rows = [one for one in page["data"] if isinstance(one, dict)]
            yield from rows
            names = [one["id"] for one in rows if isinstance(one.get("id"), str) and one["id"]]
            if page.get("has_more") is False or seen.issuperset(names):
                return
            seen.update(names)
            after = {"after": names[-1]}

    def _patiently(self, call: Callable[[], T], tries: int | None = None) -> T:
        give_up, attempt = now() + self._config.patience_seconds, 0
        while True:
            try:
                with self.reception.called(give_up):
                    return call()
            except openai.NotFoundError as error:
                said_of_it = words_of(error.response, self._config)
                what = f"the endpoint has no batches, or none of this name for this key (404: {said_of_it})"
                fix = "use the key and base_url it was submitted with; where there are no batches, build with --requests-to"
                raise self._stop(what, fix) from error
            except (openai.APIStatusError, openai.APIConnectionError, httpx2.HTTPError, Refused) as error:
                found = meaning(error, self._config) if isinstance(error, openai.APIStatusError) else error
                if isinstance(found, Refused):
                    self.reception.silent(str(found))
                elif isinstance(found, NoAnswer):
                    found = self._stop(f"a call was {found}", "fix what it names, then run the same command to continue")
                elif not isinstance(found, EmpathyEvalError):
                    found = self.reception.broken(found)
                if isinstance(found, EmpathyEvalError):
                    raise found from error
                reason, asked = str(found), found.wait
            left = give_up - now()
            # What the endpoint asks for is given, but nothing that would outlast patience.
            wait = max(asked, FIRST_WAIT) if asked is not None and asked <= left else min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(attempt, 10))
            if wait > left or attempt + 1 == tries:
                raise self._stop(reason, "run the same command to continue: what was submitted is found again")
            attempt += 1
            pause(self.reception.patience(wait))

    def plain(self, reason: str) -> str:
        """Words of the endpoint without its secrets."""
        return masked(reason, self._config)

    def _stop(self, what: str, fix: str) -> EmpathyEvalError:
        return job_error(f"batches of endpoint {self._config.endpoint}", self.plain(what), fix)


def _is_upload(one: dict[str, Any], file: str, size: int | None) -> bool:
    whole = size is None or one.get("bytes") in (size, None)
    return one.get("filename") == _upload_name(file) and whole and one.get("status") != "error"


def _upload_name(file: str) -> str:
    return f"requests-{file}.jsonl"


def _usable(batch: dict[str, Any], known: Collection[str], but: Collection[str]) -> bool:
    """Whether a batch of ours is neither known nor in one of these states."""
    return valid(batch, "batch_state")["id"] not in known and status_of(batch) not in but
