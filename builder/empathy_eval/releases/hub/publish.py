"""Publication of a release: a tagged version of a dataset repository on the Hub, in one commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.hf_api import RepoFile

from empathy_eval.base.errors import EmpathyEvalError, Finding, Problem, input_error, job_error, refuse
from empathy_eval.base.files import outside_links
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.parsing import json_value, read_text
from empathy_eval.base.stages import stage
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.releases.assemble.manifest import VERSION
from empathy_eval.releases.assemble.signing import find_secret_keys
from empathy_eval.releases.hub.repository import KIND, REPOSITORY, files_at, is_hidden, one_line, token_faults, translate_errors

BRANCH, CARD = "main", "README.md"
AGAIN = "run the same command again: it continues where it stopped, and nothing of the release is visible before the commit"


@dataclass(frozen=True)
class PublishedRelease:
    """A release on the Hub, or what would be sent: its files with their sizes in bytes, and the tagged commit.

    ``left`` are findings that are no faults, such as a metric that was not run.
    """

    repo: str | None
    version: str
    files: tuple[tuple[str, int], ...]
    commit: str | None
    sent: bool
    left: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Repository:
    """A repository: its newest commit (None if there is none yet) with its files, and its tags."""

    head: str | None
    tags: Mapping[str, str]
    files: Mapping[str, RepoFile]


def publish(release_dir: Path, repo: str | None, *, dry_run: bool = False, faults: Callable[[Path], Sequence[Problem]]) -> PublishedRelease:
    """Publishes a release as version ``v<version>`` of a dataset repository: one commit, then a tag on it.

    To resume an interrupted publication, publish again: a commit that already holds the release is only tagged. Hidden files, such as
    ``.gitattributes``, belong to the repository and are neither sent nor deleted; no file of a release is hidden. ``dry_run`` sends
    nothing; without ``repo`` it makes no request to the Hub.

    Raises:
        InputError: if ``faults`` returns a fault, a link leads out of the folder, the folder holds a secret key, ``repo`` is missing or no
            name of a repository, the repository has that version already or holds other files than a release, or the token is missing or
            may not write.
        JobError: if the Hub cannot be reached, or does not accept the release.
    """
    if not (release_dir / MANIFEST).is_file():  # before the walk: the folder may be a whole disk
        raise input_error(release_dir, f"is not a release (no {MANIFEST} in it)", "name the folder of a release")
    what, fix = "is a link that leads out of the release", "replace the link with the file itself"
    links = [Problem(str(link), what, fix) for link in outside_links(release_dir)]
    problems = [] if dry_run and repo is None else [*_name_faults(repo), *token_faults()]
    problems += links or [*find_secret_keys(release_dir)] or faults(release_dir)
    left = tuple(problem for problem in problems if isinstance(problem, Finding) and problem.severity != "fault")
    refuse(problem for problem in problems if problem not in left)
    stage("")  # the Hub's library shows its own progress
    version, files = _version(release_dir), _visible_files(release_dir)
    sizes = tuple((name, path.stat().st_size) for name, path in files.items())
    if repo is None:
        return PublishedRelease(None, version, sizes, None, False, left)
    with translate_errors(repo, AGAIN, partial(_status_error, repo)):
        api = HfApi()
        current = _read_repository(api, repo)
        _refuse_conflicts(api, repo, f"v{version}", files, current)
        if dry_run:
            return PublishedRelease(repo, version, sizes, None, False, left)
        commit = _commit(api, repo, f"Release {version}", files, current)
        api.create_tag(repo, tag=f"v{version}", revision=commit, repo_type=KIND)
    return PublishedRelease(repo, version, sizes, commit, True, left)


def _name_faults(repo: str | None) -> Iterator[Problem]:
    if repo is None:
        yield Problem("repository", "is not named", "name it with --repo owner/name; only a dry run needs none")
    elif not REPOSITORY.fullmatch(repo):
        yield Problem("repository", f'"{repo}" is not the name of a repository', "write it as owner/name, such as my-lab/empathy-eval")


def _version(release_dir: Path) -> str:
    path = release_dir / MANIFEST
    try:
        version = json_value(read_text(path))["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise input_error(path, "cannot be read as the manifest of a release", "name the folder of a release") from error
    if not isinstance(version, str) or not VERSION.fullmatch(version):
        raise input_error(path, f"version {json.dumps(version)} is not of the form X.Y.Z", "release the build again")
    return version


def _visible_files(release_dir: Path) -> dict[str, Path]:
    """Returns the files of a release by their path in it, without hidden ones, which are the repository's."""
    paths = {path.relative_to(release_dir).as_posix(): path for path in sorted(release_dir.rglob("*")) if path.is_file()}
    return {name: path for name, path in paths.items() if not is_hidden(name)}


def _read_repository(api: HfApi, repo: str) -> Repository:
    """Reads a repository; one that does not exist is empty."""
    try:
        refs = api.list_repo_refs(repo, repo_type=KIND)
    except HfHubHTTPError as error:
        # Without a token the status would be 401, which is reported as a missing token.
        if error.response.status_code == 404:
            return Repository(None, {}, {})
        raise
    head = next((branch.target_commit for branch in refs.branches if branch.name == BRANCH), None)
    files = files_at(api, repo, head) if head else {}
    return Repository(head, {tag.name: tag.target_commit for tag in refs.tags}, files)


def _refuse_conflicts(api: HfApi, repo: str, tag: str, files: Mapping[str, Path], current: Repository) -> None:
    """Raises an :class:`InputError` for a version that exists, and for a repository of other files."""
    if tag in current.tags:
        if _differing_files(files, files_at(api, repo, current.tags[tag])):
            fix = "a version never changes: release the build under a new version"
            raise input_error(repo, f"{tag} is already published, with other files", fix)
        raise input_error(repo, f"{tag} is already published, with the same files", "nothing needs to be done")
    # A repository that was created in the browser may hold nothing but a card.
    if MANIFEST not in current.files and current.files.keys() - {CARD}:
        raise input_error(repo, f"holds other files (no {MANIFEST} in it), which a release would replace", "name another repository")


def _commit(api: HfApi, repo: str, message: str, files: Mapping[str, Path], current: Repository) -> str:
    """Returns the commit that holds the release and no other visible file: the newest one if it does so already, else a new one."""
    if current.head is None:
        api.create_repo(repo, repo_type=KIND, exist_ok=True)
        current = _read_repository(api, repo)
    if current.head and not _differing_files(files, current.files):
        return current.head
    operations: list[CommitOperationAdd | CommitOperationDelete] = [CommitOperationAdd(name, path) for name, path in files.items()]
    operations += [CommitOperationDelete(name, is_folder=False) for name in sorted(current.files.keys() - files.keys())]
    try:
        # The parent is named so that another commit made in the meantime is not overwritten.
        commit = api.create_commit(repo, operations, commit_message=message, repo_type=KIND, parent_commit=current.head)
    except (RuntimeError, ValueError) as error:
        # The library raises these if a file could not be uploaded, or the head of the card is not valid.
        raise job_error(repo, f"the release was not uploaded: {one_line(error)}", AGAIN) from error
    if wrong := _differing_files(files, files_at(api, repo, commit.oid)):
        what = f'commit {commit.oid[:8]} does not hold "{wrong[0]}" as it is here, so it was not tagged'
        raise job_error(repo, what, "remove any .gitignore from the repository, then run the same command again")
    return commit.oid


def _differing_files(files: Mapping[str, Path], entries: Mapping[str, RepoFile]) -> list[str]:
    """Returns the paths that only one side has, or that differ in their bytes."""
    changed = {name for name in files.keys() & entries.keys() if not _is_same_file(files[name], entries[name])}
    return sorted(files.keys() ^ entries.keys() | changed)


def _is_same_file(path: Path, entry: RepoFile) -> bool:
    """Whether a file of a repository has the bytes of a local one, by the hash of its kind of storage."""
    if path.stat().st_size != entry.size:
        return False
    if entry.lfs:
        return digest_file(path) == entry.lfs.sha256
    blob = path.read_bytes()
    return hashlib.sha1(b"blob %d\0%b" % (len(blob), blob), usedforsecurity=False).hexdigest() == entry.blob_id


def _status_error(repo: str, status: int) -> EmpathyEvalError | None:
    if status in (401, 403):
        reason = "is not valid or may not write there" if get_token() else "is missing"
        fix = "log in with `hf auth login`, or set HF_TOKEN, with a token that may write to the repository"
        return input_error(repo, f"the Hub answered {status}: the token {reason}", fix)
    if status == 412:
        what = "somebody else changed the repository in the meantime"
        return job_error(repo, what, "look at what changed, then run the same command again")
    return None
