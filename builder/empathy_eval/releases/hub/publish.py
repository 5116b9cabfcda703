"""Publishing: a release folder becomes a tagged version of a dataset repository on the Hub, in one commit."""

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
from empathy_eval.releases.assemble.signing import find_secret_keys
from empathy_eval.releases.hub.repository import KIND, REPOSITORY, VERSION, files_at, is_hidden, one_line, token_faults, translate_errors

BRANCH, CARD = "main", "README.md"
AGAIN = "run the same command again: it continues where it stopped, and nothing of the release is visible before the commit"


@dataclass(frozen=True)
class PublishedRelease:
    """A release on the Hub, or what would be sent: its files with their sizes, and the commit that the tag stands on.

    ``left`` is what was not checked, such as a metric that was not run, or is told of it.
    """

    repo: str | None
    version: str
    files: tuple[tuple[str, int], ...]
    commit: str | None
    sent: bool
    left: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Repository:
    """What a repository holds: its newest commit (None if there is no repository yet) with its files, and its tags."""

    head: str | None
    tags: Mapping[str, str]
    files: Mapping[str, RepoFile]


def publish(release_dir: Path, repo: str | None, *, dry_run: bool = False, faults: Callable[[Path], Sequence[Problem]]) -> PublishedRelease:
    """Publishes a release as version ``v<version>`` of a dataset repository: one commit, then a tag on it.

    What was interrupted is run again: a commit that already holds the release is only tagged. Hidden files, such as
    ``.gitattributes``, belong to the repository and are neither sent nor deleted; no file of a release is hidden. ``dry_run`` sends
    nothing; without ``repo`` it asks the Hub nothing either.

    Raises:
        InputError: if ``faults`` finds any (a metric that was not recomputed is none), a link leads out of the folder or a secret key lies
            in it, ``repo`` is no name of a repository or missing where something is sent, it has that version already or holds something
            else than releases, or the token is missing or may not write.
        JobError: if the Hub cannot be reached, or does not take the release.
    """
    if not (release_dir / MANIFEST).is_file():  # it may be a whole disk
        raise input_error(release_dir, f"is not a release (no {MANIFEST} in it)", "name the folder of a release")
    links = [
        Problem(str(link), "is a link that leads out of the release", "replace the link with the file itself")
        for link in outside_links(release_dir)
    ]
    offline = dry_run and repo is None
    asked = [] if offline else [*_name_faults(repo), *token_faults()]
    found = [*asked, *(links or [*find_secret_keys(release_dir)] or faults(release_dir))]
    left = tuple(one for one in found if isinstance(one, Finding) and one.severity != "fault")
    refuse(one for one in found if one not in left)
    # The Hub's library shows what it sends.
    stage("")
    version, files = _version(release_dir), _visible_files(release_dir)
    sizes = tuple((name, path.stat().st_size) for name, path in files.items())
    if repo is None:
        return PublishedRelease(None, version, sizes, None, False, left)
    with translate_errors(repo, AGAIN, partial(_status_error, repo)):
        api = HfApi()
        there = _read_repository(api, repo)
        _refuse_conflicts(api, repo, f"v{version}", files, there)
        if dry_run:
            return PublishedRelease(repo, version, sizes, None, False, left)
        commit = _commit(api, repo, f"Release {version}", files, there)
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
    """The files of a release by their path in it, without hidden ones, which are the repository's."""
    paths = {path.relative_to(release_dir).as_posix(): path for path in sorted(release_dir.rglob("*")) if path.is_file()}
    return {name: path for name, path in paths.items() if not is_hidden(name)}


def _read_repository(api: HfApi, repo: str) -> Repository:
    """Reads what a repository holds; one that does not exist holds nothing."""
    try:
        refs = api.list_repo_refs(repo, repo_type=KIND)
    except HfHubHTTPError as error:
        # 401 too would be said of a repository that does not exist, to somebody without a token: that one is told so.
        if error.response.status_code == 404:
            return Repository(None, {}, {})
        raise
    head = next((branch.target_commit for branch in refs.branches if branch.name == BRANCH), None)
    files = files_at(api, repo, head) if head else {}
    return Repository(head, {tag.name: tag.target_commit for tag in refs.tags}, files)


def _refuse_conflicts(api: HfApi, repo: str, tag: str, files: Mapping[str, Path], there: Repository) -> None:
    """Raises an :class:`InputError` for a version that is taken, and for a repository of something else."""
    if tag in there.tags:
        if _differing_files(files, files_at(api, repo, there.tags[tag])):
            fix = "a version never changes: release the build under a new version"
            raise input_error(repo, f"{tag} is already published, with other files", fix)
        raise input_error(repo, f"{tag} is already published, with the same files", "nothing needs to be done")
    # A repository that was made in the browser may hold a card and no more.
    if MANIFEST not in there.files and there.files.keys() - {CARD}:
        raise input_error(repo, f"holds other files (no {MANIFEST} in it), which a release would replace", "name another repository")


def _commit(api: HfApi, repo: str, message: str, files: Mapping[str, Path], there: Repository) -> str:
    """The commit that holds the release and no other visible file: the newest one if it does so already, else a new one."""
    if there.head is None:
        api.create_repo(repo, repo_type=KIND, exist_ok=True)
        there = _read_repository(api, repo)
    if there.head and not _differing_files(files, there.files):
        return there.head
    operations: list[CommitOperationAdd | CommitOperationDelete] = [CommitOperationAdd(name, path) for name, path in files.items()]
    operations += [CommitOperationDelete(name, is_folder=False) for name in sorted(there.files.keys() - files.keys())]
    try:
        # With its parent named, a commit that somebody else made in the meantime is not overwritten.
        made = api.create_commit(repo, operations, commit_message=message, repo_type=KIND, parent_commit=there.head)
    except (RuntimeError, ValueError) as error:
        # How the library says that a file could not be uploaded, and that the head of the card is not valid.
        raise job_error(repo, f"the release was not uploaded: {one_line(error)}", AGAIN) from error
    if wrong := _differing_files(files, files_at(api, repo, made.oid)):
        what = f'commit {made.oid[:8]} does not hold "{wrong[0]}" as it is here, so it was not tagged'
        raise job_error(repo, what, "remove any .gitignore from the repository, then run the same command again")
    return made.oid


def _differing_files(files: Mapping[str, Path], there: Mapping[str, RepoFile]) -> list[str]:
    """The paths that are here or there only, or not with the same bytes."""
    return sorted(
        files.keys() ^ there.keys() | {name for name in files.keys() & there.keys() if not _is_same_file(files[name], there[name])}
    )


def _is_same_file(path: Path, entry: RepoFile) -> bool:
    """Whether a file of a repository has the bytes of a local one, told by the hash that its kind of storage has."""
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
