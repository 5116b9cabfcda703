"""Batches at an OpenAI-compatible endpoint: a file of requests is uploaded, submitted, waited for and its answers fetched."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx2
import openai
from openai.types import Batch as ProvidersBatch

from builder.config import ModelConfig
from builder.errors import EmpathyEvalError, job_error
from builder.files import room_for
from builder.models.openai_endpoint import BATCH_URL, FIRST_WAIT, LONGEST_WAIT
from builder.models.refusals import Refused, meaning

T = TypeVar("T")
ENDED = ("completed", "failed", "expired", "cancelled")
GIVEN_UP = ("failed", "cancelling", "cancelled")


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


class Batches:
    """The batches of one endpoint. A call that gets no answer is made again until ``patience_seconds`` are over."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        key = os.environ.get(config.api_key_env) or "none"
        self._client = openai.OpenAI(api_key=key, base_url=config.base_url, max_retries=0, timeout=config.timeout_seconds)

    def find(self, file: str, known: Collection[str] = ()) -> str | None:
        """The name of a batch that was submitted with a file of this hash and has not failed; ``known`` ones are left out.

        Raises:
            JobError: if the endpoint refuses, or does not answer in time; so do the other methods.
        """
        return self._patiently(lambda: self._find(file, known, ("failed",)))

    def submit(self, path: Path, metadata: dict[str, str], known: Collection[str]) -> str:
        """Submits a file, unless a batch of it is there already: one whose creation was not confirmed is not made twice.

        A batch that was cancelled was given up, and is not taken for this one.
        """
        return self._patiently(lambda: self._find(metadata["file"], known, GIVEN_UP) or self._create(path, metadata))

    def state(self, name: str) -> State:
        """How far a batch is."""
        batch = self._patiently(lambda: self._client.batches.retrieve(name))
        counts = batch.request_counts
        files = tuple(one for one in (batch.output_file_id, batch.error_file_id) if one)
        reasons = [error.message or error.code or "" for error in (batch.errors and batch.errors.data) or []]
        reason = f"{name} {batch.status}" + "".join(f": {one}" for one in reasons[:1])
        return State(batch.status, counts.completed + counts.failed if counts else 0, counts.total if counts else 0, files, reason)

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

    def _find(self, file: str, known: Collection[str], but: Collection[str]) -> str | None:
        for batch in self._client.batches.list(limit=100):
            if (batch.metadata or {}).get("file") == file and batch.id not in known and batch.status not in but:
                return batch.id
        return None

    def _create(self, path: Path, metadata: dict[str, str]) -> str:
        with path.open("rb") as stream:
            uploaded = self._client.files.create(file=("requests.jsonl", stream), purpose="batch")
        batch: ProvidersBatch = self._client.batches.create(
            input_file_id=uploaded.id, endpoint=BATCH_URL, completion_window="24h", metadata=metadata
        )
        return batch.id

    def _patiently(self, call: Callable[[], T]) -> T:
        give_up, attempt = time.monotonic() + self._config.patience_seconds, 0
        while True:
            try:
                return call()
            except openai.NotFoundError as error:
                what = f"the endpoint has no batches, or none of this name for this key (404: {error.message})"
                fix = "use the key and base_url it was submitted with; where there are no batches, build with --requests-to"
                raise self._stop(what, fix) from error
            except openai.APIStatusError as error:
                found = meaning(error, self._config)
                if not isinstance(found, Refused):
                    fix = "mend what it names, then run the same command to go on"
                    raise found if isinstance(found, EmpathyEvalError) else self._stop(f"a call was {found}", fix) from error
                reason, wait = str(found), found.wait
            except (openai.APIConnectionError, httpx2.HTTPError) as error:
                reason, wait = f"no answer: {error}", None
            wait = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) if wait is None else wait
            if time.monotonic() + wait > give_up:
                raise self._stop(reason, "run the same command to go on: what was submitted is found again")
            attempt += 1
            time.sleep(wait)

    def _stop(self, what: str, fix: str) -> EmpathyEvalError:
        return job_error(f"batches of endpoint {self._config.endpoint}", what, fix)
