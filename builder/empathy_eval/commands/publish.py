"""``publish``: upload of a release to the Hub."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import SIGNER, TRUSTED, Command

if TYPE_CHECKING:
    from empathy_eval.releases.hub.publish import PublishedRelease


@takes_paths
def publish(
    release: str | Path, repo: str | None = None, *, trusted: Sequence[str] = (), signer: str | Path | None = None, dry_run: bool = False
) -> PublishedRelease:
    """Publishes a release as a tagged version of the dataset repository ``repo``, in one commit, after :func:`verify`.

    ``dry_run`` sends nothing; without ``repo`` it does not use the network.

    Raises
    ------
    InputError
        If the release has faults, or the repository cannot take it.
    JobError
        If the Hub cannot be reached, or refuses the upload.
    """
    from empathy_eval.releases.assemble.signing import read_public_key
    from empathy_eval.releases.hub.publish import publish
    from empathy_eval.releases.verify.verify import verify

    key = read_public_key(signer) if signer is not None else None
    return publish(Path(release), repo, dry_run=dry_run, faults=partial(verify, trusted=trusted, signer=key))


def _shown(published: PublishedRelease, repo: str | None = None) -> int:
    for finding in published.left:
        print(finding, file=sys.stderr)
    for path, size in published.files:
        print(f"{size:>12,}  {path}")
    done = f"published as {repo} v{published.version}, commit {published.commit}"
    print(done if published.sent else f"nothing was sent; v{published.version} would be published to {repo or 'your repository'}")
    return 0


COMMAND = Command(
    publish,
    "put a release on the Hugging Face Hub",
    "Adds a release to a dataset repository as one commit and a tag. Refuses a release in which verify finds faults, and a version that "
    "the repository already has. Uses the token of `hf auth login` or HF_TOKEN.",
    {
        "release=DIR": "the release folder",
        "--repo ORG/NAME": "the dataset repository; it is created if missing; optional for a dry run",
        **SIGNER,
        **TRUSTED,
        "--dry-run": "list the files to send, and send nothing; without --repo no network is used",
    },
    shown=_shown,
    staged=True,
)
