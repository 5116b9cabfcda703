"""Repositories on the Hub: their names and files, downloads, and errors in plain words."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

from huggingface_hub import HfApi, get_token, snapshot_download
from huggingface_hub.errors import HTTPError, LocalEntryNotFoundError  # type: ignore[attr-defined]
from huggingface_hub.hf_api import RepoFile

from empathy_eval.base.errors import EmpathyEvalError, Problem, input_error, job_error, refuse
from empathy_eval.base.files import room_for
from empathy_eval.base.stages import stage
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.metrics.scoring import user_cache
from empathy_eval.releases.assemble.manifest import VERSION

# HTTPError is the base of all failures of the client beneath, which is another package in each major version of the library.


KIND = "dataset"
# The Hub's rule: an owner and a name of letters, digits and "-_.", neither beginning nor ending with "-" or ".".
PART = r"\w(?:[\w.-]{0,94}\w)?"
REPOSITORY = re.compile(rf"(?!.*(?:--|\.\.)){PART}/{PART}(?<!\.git)", re.ASCII)


def token_faults() -> Iterator[Problem]:
    """Yields a problem for a token with an invisible character, which would be a network error that quotes the token."""
    if not re.fullmatch("[!-~]*", get_token() or ""):
        what = "contains a character that no token contains, such as a curly quote or a space"
        yield Problem("the token", what, "log in with `hf auth login` again, or set HF_TOKEN again")


def is_hidden(name: str) -> bool:
    """Whether a file of a repository belongs to no release, such as ``.gitattributes``."""
    return any(part.startswith(".") for part in PurePosixPath(name).parts)


def files_at(api: HfApi, repo: str, commit: str) -> dict[str, RepoFile]:
    """Returns the files of a commit by their path, without hidden ones."""
    entries = api.list_repo_tree(repo, recursive=True, revision=commit, repo_type=KIND)
    return {entry.path: entry for entry in entries if isinstance(entry, RepoFile) and not is_hidden(entry.path)}


@contextlib.contextmanager
def translate_errors(repo: str, again: str, meaning: Callable[[int], EmpathyEvalError | None]) -> Iterator[None]:
    """Turns exceptions of the library into errors with a fix: ``again``, or the error that ``meaning`` returns for a status.

    The latter quotes nothing: request and answer may hold the token.
    """
    try:
        yield
    except (HTTPError, OSError) as error:
        raise _hub_error(repo, again, meaning, error) from error


def _hub_error(repo: str, again: str, meaning: Callable[[int], EmpathyEvalError | None], error: BaseException) -> EmpathyEvalError:
    if isinstance(error, LocalEntryNotFoundError) and error.__cause__:
        # The library looked for a cached copy; the cause says why.
        error = error.__cause__
    response = getattr(error, "response", None)
    if response is None:
        return job_error(repo, f"the Hub could not be reached: {one_line(error)}", f"check the network and HF_ENDPOINT, then {again}")
    message = getattr(error, "server_message", None) or response.reason_phrase
    return meaning(response.status_code) or job_error(repo, f"the Hub answered {response.status_code}: {one_line(message)}", again)


def one_line(message: object) -> str:
    """Returns a message on one line, truncated to 200 characters."""
    line = " ".join(str(message).split()) or type(message).__name__
    return line if len(line) <= 200 else f"{line[:197]}..."


COMMIT = re.compile(r"[0-9a-f]{40}")
HIDDEN = [".*", "*/.*"]
NAMES = "name the folder of a release, or a version of one on the Hub, such as my-lab/empathy-eval@v1.0.0"
AGAIN = "run the same command again: an incomplete download is not kept"


def fetch_release(name: str) -> Path:
    """Returns the folder of ``owner/name@revision``, which is downloaded if it is not cached.

    The revision is a tag of ``publish`` or the 40 digits of a commit, which name the same release forever. A branch does not, so it is
    refused.

    Raises:
        InputError: if the name has another form, the Hub has no such version or does not show it, or it is no release.
        JobError: if the Hub cannot be reached or fails, or the cache cannot be written.
    """
    repo, at, revision = name.rpartition("@")
    if not at or not REPOSITORY.fullmatch(repo):
        raise input_error(name, "is neither a folder nor a version of a release on the Hub", NAMES)
    if not COMMIT.fullmatch(revision) and not VERSION.fullmatch(revision.removeprefix("v")):
        raise input_error(
            name, f'"{revision}" is not a version, and what it names may change', f"{NAMES}, or a commit by its 40 hex digits"
        )
    place = user_cache().parent / "releases" / repo.replace("/", "--") / revision
    if not place.is_dir():
        _fetch(repo, revision, place)
    return place


def _fetch(repo: str, revision: str, place: Path) -> None:
    """Downloads a release into ``place``, without links and hidden files."""
    refuse(token_faults())
    name = f"{repo}@{revision}"
    with translate_errors(name, AGAIN, partial(_status_error, name)), room_for(place):
        api = HfApi()
        commit = revision if COMMIT.fullmatch(revision) else _commit_of(api, repo, revision)
        # Before the download: the repository may hold other files, and be large.
        if MANIFEST not in files_at(api, repo, commit):
            raise input_error(name, f"is not a release (no {MANIFEST} in it)", NAMES)
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetching-") as folder:
            whole = Path(folder, "release")
            stage("")  # the Hub's library shows its own progress
            try:
                snapshot_download(repo, repo_type=KIND, revision=commit, local_dir=whole, ignore_patterns=HIDDEN)
            except (RuntimeError, ValueError) as error:
                # The library raises these if a download failed, or a path leads out of the folder.
                raise job_error(name, f"could not be fetched: {one_line(error)}", AGAIN) from error
            shutil.rmtree(whole / ".cache", ignore_errors=True)  # the library's notes
            try:
                whole.rename(place)
            except OSError:
                # Another process may have downloaded it in the meantime.
                if not place.is_dir():
                    raise


def _commit_of(api: HfApi, repo: str, tag: str) -> str:
    tags = {ref.name: ref.target_commit for ref in api.list_repo_refs(repo, repo_type=KIND).tags}
    if tag not in tags:
        raise input_error(f"{repo}@{tag}", f'there is no version "{tag}"', f"name one of these: {', '.join(sorted(tags)) or 'none'}")
    return tags[tag]


def _status_error(name: str, status: int) -> EmpathyEvalError | None:
    if status not in (401, 403, 404):
        return None
    token = "the token is not valid or may not read it" if get_token() else "a token is missing"
    fix = "check the name; for a private repository, log in with `hf auth login`, or set HF_TOKEN"
    return input_error(name, f"the Hub answered {status}: it does not exist, or {token}", fix)
