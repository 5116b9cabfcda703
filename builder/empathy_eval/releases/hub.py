"""The Hub, as publishing and fetching know it: names of repositories, what they hold, and what it means when it answers with an error."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from huggingface_hub import HfApi, get_token

# HTTPError is the base of all failures of the client beneath, which is another package in each major version of the library.
from huggingface_hub.errors import HTTPError, LocalEntryNotFoundError  # type: ignore[attr-defined]
from huggingface_hub.hf_api import RepoFile

from empathy_eval.base.errors import EmpathyEvalError, Problem, job_error

KIND = "dataset"
# As the Hub has it: an owner and a name of letters, digits and "-_.", neither beginning nor ending with "-" or ".".
PART = r"\w(?:[\w.-]{0,94}\w)?"
REPOSITORY = re.compile(rf"(?!.*(?:--|\.\.)){PART}/{PART}(?<!\.git)", re.ASCII)
VERSION = re.compile(r"\d+\.\d+\.\d+", re.ASCII)


def token_faults() -> Iterator[Problem]:
    """A token that was pasted with something invisible would be an error of the network, with the token in it."""
    if not re.fullmatch("[!-~]*", get_token() or ""):
        what = "contains a character that no token contains, such as a curly quote or a space"
        yield Problem("the token", what, "log in with `hf auth login` again, or set HF_TOKEN again")


def hidden(name: str) -> bool:
    """Whether a file of a repository is none of a release, such as ``.gitattributes``."""
    return any(part.startswith(".") for part in PurePosixPath(name).parts)


def files_at(api: HfApi, repo: str, commit: str) -> dict[str, RepoFile]:
    """The files of a commit by their path, without hidden ones."""
    entries = api.list_repo_tree(repo, recursive=True, revision=commit, repo_type=KIND)
    return {entry.path: entry for entry in entries if isinstance(entry, RepoFile) and not hidden(entry.path)}


@contextlib.contextmanager
def clear_errors(repo: str, again: str, meaning: Callable[[int], EmpathyEvalError | None]) -> Iterator[None]:
    """Turns what the library raises for a failed request into an error that says what to do: ``again``, or what a status means here.

    Of a refusal that has a meaning nothing is quoted: request and answer may hold the token.
    """
    try:
        yield
    except (HTTPError, OSError) as error:
        raise _clear(repo, again, meaning, error) from error


def _clear(repo: str, again: str, meaning: Callable[[int], EmpathyEvalError | None], error: BaseException) -> EmpathyEvalError:
    if isinstance(error, LocalEntryNotFoundError) and error.__cause__:
        # It looked for a copy that it keeps, there was none; why it had to look says more.
        error = error.__cause__
    response = getattr(error, "response", None)
    if response is None:
        return job_error(repo, f"the Hub could not be reached: {short(error)}", f"check the network and HF_ENDPOINT, then {again}")
    said = getattr(error, "server_message", None) or response.reason_phrase
    return meaning(response.status_code) or job_error(repo, f"the Hub answered {response.status_code}: {short(said)}", again)


def short(said: object) -> str:
    """A message on one line, cut where it gets long."""
    line = " ".join(str(said).split()) or type(said).__name__
    return line if len(line) <= 200 else f"{line[:197]}..."
