"""Batch API of OpenAI-compatible endpoints: a file of requests is uploaded and submitted, and its answers fetched.

A file is uploaded under a name with its hash, and a batch carries the hash as metadata. So both are found again after a lost response or a
kill.
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
from empathy_eval.base.stopping import interruptible_sleep
from empathy_eval.completions.models.endpoint_health import EndpointHealth
from empathy_eval.completions.models.openai_endpoint import BATCH_URL, FIRST_WAIT, LONGEST_WAIT
from empathy_eval.completions.models.transport import (
    BoundedSyncClient,
    RetryableError,
    classify_status,
    client_settings,
    error_text,
    masked,
    response_words,
)
from empathy_eval.completions.requests import NoAnswer
from empathy_eval.design.endpoints import ModelConfig

ENDED = ("completed", "failed", "expired", "cancelled")
# What a schema is of, in words.
KINDS = {"batch_state": "batch", "batch_upload": "uploaded file", "batch_page": "list"}
T = TypeVar("T")
GOING_ON = ("validating", "queued", "pending", "running", "in_progress", "finalizing", "cancelling")
LOOKS = 5  # times that a list of files is asked for, until the endpoint counts as one without


@dataclass(frozen=True)
class BatchState:
    """The progress of a batch; once it has ended, its files of answers and errors, and the reason if it failed."""

    status: str
    done: int
    total: int
    files: tuple[str, ...]
    reason: str

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status in ENDED


def parse_response(content: bytes, name: str) -> dict[str, Any]:
    """An endpoint's response, valid under a schema.

    Raises:
        RetryableError: for anything else, in the endpoint's words if it says why.
    """
    try:
        return validated(json.loads(content), name)
    except (ValueError, RecursionError) as error:
        raise RetryableError(f"what came for a {KINDS[name]} is not JSON: {error_text(str(error))}") from error


def validated(value: Any, name: str) -> dict[str, Any]:
    """The value if it is valid under the schema.

    Raises:
        RetryableError: for any other value.
    """
    for place, what, _ in violations(value, name):
        reason = error_text(value.get("error")) if isinstance(value, dict) else ""
        raise RetryableError(f"what came is no {KINDS[name]}: {reason or error_text(': '.join(filter(None, (place, what))))}")
    result: dict[str, Any] = value
    return result


def hash_of(batch: dict[str, Any]) -> str | None:
    """The hash that a batch carries."""
    metadata = batch.get("metadata")
    digest = metadata.get("file") if isinstance(metadata, dict) else None
    return digest if isinstance(digest, str) else None


def status_of(batch: dict[str, Any]) -> str:
    """The status in OpenAI's spelling; others use capitals, spaces or one l."""
    status = str(batch["status"]).casefold().replace(" ", "_").replace("-", "_")
    return "cancelled" if status == "canceled" else status


def shown_count(counts: Any, name: str) -> int:
    """A count for display; 0 for anything else."""
    number = counts.get(name) if isinstance(counts, dict) else None
    return number if isinstance(number, int) and number > 0 else 0


@dataclass(frozen=True)
class Submitted:
    """The name of a batch, and whether its file's hash alone would find it again."""

    name: str
    recoverable: bool


class Batches:
    """The batches of one endpoint. Failed calls are repeated until ``patience_seconds`` are over."""

    def __init__(self, config: ModelConfig) -> None:
        self._config, self.reception = config, EndpointHealth(config)
        self._client = openai.OpenAI(**client_settings(config), timeout=config.timeout_seconds, http_client=BoundedSyncClient(config))
        # By the hash of a file the name it was uploaded under; names that were found and are not taken; when odd states were first seen.
        self._uploaded: dict[str, str] = {}
        self._known_uploads: set[str] = set()
        self._spoilt: set[str] = set()
        self._odd: dict[str, float] = {}
        self._no_files = False

    def find(self, file: str, known: Collection[str] = ()) -> str | None:
        """The name of a batch submitted with a file of this hash that has not failed; ``known`` ones are skipped.

        Raises:
            JobError: if the endpoint refuses, or does not answer in time; so do the other methods.
        """
        return self._patiently(lambda: self._find(file, known, ("failed",)))

    def submit(self, path: Path, metadata: dict[str, str], known: Collection[str]) -> Submitted:
        """Submits a file, unless a batch of it exists: an unconfirmed batch is not created twice.

        A cancelled batch was given up, and does not count.
        """
        file = metadata["file"]

        def once() -> Submitted:
            name = self._find(file, known, ("failed", "cancelling", "cancelled"), self._uploaded.get(file))
            return Submitted(name, False) if name else self._create(path, metadata)

        submitted = self._patiently(once)
        return submitted if submitted.recoverable else Submitted(submitted.name, self._recoverable(submitted.name, file))

    def lost_metadata_error(self, name: str) -> EmpathyEvalError:
        """The error for a batch that could not be found again."""
        return self._stop(
            f"{name} is created and recorded, but its metadata was dropped on the way. If a kill prevented the record of a batch, it "
            "would not be found again and would be paid for twice, so no other is created now",
            "let the gateway pass on metadata; the same command takes in the answers of this batch and continues one batch at a time",
        )

    def state(self, name: str) -> BatchState:
        """The progress of a batch. An unknown status is not an end; it is waited for at most ``patience_seconds``."""
        batch = self._patiently(lambda: parse_response(self._client.batches.with_raw_response.retrieve(name).content, "batch_state"))
        status = status_of(batch)
        if status in ENDED + GOING_ON:
            self._odd.pop(name, None)
        elif now() - self._odd.setdefault(name, now()) > self._config.patience_seconds:
            what = f'{name} has the status "{status}", which is none of {", ".join(ENDED + GOING_ON)}'
            raise self._stop(what, "check at the provider what it waits for, then run the same command to continue")
        counts = batch.get("request_counts")
        done, failed, total = (shown_count(counts, key) for key in ("completed", "failed", "total"))
        files = tuple(file_id for file_id in (batch.get("output_file_id"), batch.get("error_file_id")) if file_id)
        reason = error_text(batch.get("errors"))
        return BatchState(status, done + failed, total, files, f"{name} {status}" + (f": {reason}" if reason else ""))

    def fetch(self, file_id: str, path: Path) -> bool:
        """Downloads a file of answers to ``path``; returns whether the provider still has it."""

        def download() -> bool:
            try:
                with self._client.files.with_streaming_response.content(file_id) as response, room_for(path):
                    response.stream_to_file(path)
            except openai.NotFoundError:
                return False
            return True

        return self._patiently(download)

    def _find(self, file: str, known: Collection[str], but: Collection[str], uploaded: str | None = None) -> str | None:
        """A batch with this hash in its metadata; else, of those without metadata, one of a file uploaded under this hash."""
        bare = []
        for batch in self._listed(self._client.batches, limit=100):
            if hash_of(batch) == file and _usable(batch, known, but):
                return str(batch["id"])
            if hash_of(batch) is None and not (isinstance(batch.get("id"), str) and batch["id"] in known):
                bare.append(batch)
        ids = [*filter(None, [uploaded]), *self._uploads(file)] if bare else []
        return next((str(batch["id"]) for batch in bare if batch.get("input_file_id") in ids and _usable(batch, known, but)), None)

    def _recoverable(self, name: str, file: str) -> bool:
        """Whether a batch of this name is listed with the hash, or with a file that is listed with it."""
        batch = next((batch for batch in self._listed(self._client.batches, limit=100) if batch.get("id") == name), {})
        return hash_of(batch) == file or batch.get("input_file_id") in list(self._uploads(file))

    def _create(self, path: Path, metadata: dict[str, str]) -> Submitted:
        file = metadata["file"]
        if file not in self._uploaded:
            uploads = self._uploads(file, path.stat().st_size) - self._spoilt
            self._known_uploads |= uploads
            self._uploaded[file] = min(uploads) if uploads else self._upload(path, file)
        uploaded = self._uploaded[file]
        try:
            response = self._client.batches.with_raw_response.create(
                input_file_id=uploaded, endpoint=BATCH_URL, completion_window="24h", metadata=metadata
            )
        except (openai.BadRequestError, openai.NotFoundError) as error:
            if uploaded not in self._known_uploads - self._spoilt:
                raise
            # It may be the file that was found: the provider lists it still, and takes it no more.
            self._spoilt.add(self._uploaded.pop(file))
            raise RetryableError(f"the file {uploaded} is not taken: {response_words(error.response, self._config)}") from error
        batch = parse_response(response.content, "batch_state")
        return Submitted(batch["id"], hash_of(batch) == file)

    def _upload(self, path: Path, file: str) -> str:
        with path.open("rb") as stream:
            response = self._client.files.with_raw_response.create(file=(_upload_name(file), stream), purpose="batch")
        return str(parse_response(response.content, "batch_upload")["id"])

    def _uploads(self, file: str, size: int | None = None) -> set[str]:
        """The names under which a file of this hash (and size) was uploaded; empty if the endpoint lists no files."""
        if self._no_files:
            return set()
        try:
            uploads = [upload for upload in self._listed(self._client.files, LOOKS, purpose="batch") if _is_upload(upload, file, size)]
        except JobError:
            self._no_files = True
            return set()
        return {str(validated(upload, "batch_upload")["id"]) for upload in uploads}

    def _listed(self, of: Any, tries: int | None = None, **query: Any) -> Iterator[dict[str, Any]]:
        """All entries of a list, page by page; it ends where a page brings nothing new."""
        seen, after = set[str](), dict[str, str]()
        while True:
            page = self._patiently(lambda: parse_response(of.with_raw_response.list(**query, **after).content, "batch_page"), tries)  # noqa: B023
            rows = [row for row in page["data"] if isinstance(row, dict)]
            yield from rows
            names = [row["id"] for row in rows if isinstance(row.get("id"), str) and row["id"]]
            if page.get("has_more") is False or seen.issuperset(names):
                return
            seen.update(names)
            after = {"after": names[-1]}

    def _patiently(self, call: Callable[[], T], tries: int | None = None) -> T:
        give_up, attempt = now() + self._config.patience_seconds, 0
        while True:
            try:
                with self.reception.call(give_up):
                    return call()
            except openai.NotFoundError as error:
                said_of_it = response_words(error.response, self._config)
                what = f"the endpoint has no batches, or none of this name for this key (404: {said_of_it})"
                fix = "use the key and base_url it was submitted with; where there are no batches, build with --requests-to"
                raise self._stop(what, fix) from error
            except (openai.APIStatusError, openai.APIConnectionError, httpx2.HTTPError, RetryableError) as error:
                failure = classify_status(error, self._config) if isinstance(error, openai.APIStatusError) else error
                if isinstance(failure, RetryableError):
                    self.reception.no_answer_received(str(failure))
                elif isinstance(failure, NoAnswer):
                    failure = self._stop(f"a call was {failure}", "fix what it names, then run the same command to continue")
                elif not isinstance(failure, EmpathyEvalError):
                    failure = self.reception.classify_error(failure)
                if isinstance(failure, EmpathyEvalError):
                    raise failure from error
                reason, asked = str(failure), failure.wait
            left = give_up - now()
            # What the endpoint asks for is given, but nothing that would outlast patience.
            wait = max(asked, FIRST_WAIT) if asked is not None and asked <= left else min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(attempt, 10))
            if wait > left or attempt + 1 == tries:
                raise self._stop(reason, "run the same command to continue: what was submitted is found again")
            attempt += 1
            interruptible_sleep(self.reception.bounded_wait(wait))

    def masked(self, reason: str) -> str:
        """A text of the endpoint without its secrets."""
        return masked(reason, self._config)

    def _stop(self, what: str, fix: str) -> EmpathyEvalError:
        return job_error(f"batches of endpoint {self._config.endpoint}", self.masked(what), fix)


def _is_upload(upload: dict[str, Any], file: str, size: int | None) -> bool:
    whole = size is None or upload.get("bytes") in (size, None)
    return upload.get("filename") == _upload_name(file) and whole and upload.get("status") != "error"


def _upload_name(file: str) -> str:
    return f"requests-{file}.jsonl"


def _usable(batch: dict[str, Any], known: Collection[str], but: Collection[str]) -> bool:
    """Whether a batch is neither known nor in one of these states."""
    return validated(batch, "batch_state")["id"] not in known and status_of(batch) not in but
