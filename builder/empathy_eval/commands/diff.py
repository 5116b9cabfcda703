"""``diff``: comparison of two releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import A_RELEASE, ONE_OF, PAPER, Command, Option, printed

if TYPE_CHECKING:
    from empathy_eval.releases.compare.diff import Diff


@takes_paths
def diff(before: str | Path, after: str | Path) -> Diff:
    """Compares two releases, each a folder or a Hub name such as ``org/name@v1.0.0``.

    Raises
    ------
    InputError
        If one of them is no release, or cannot be fetched.
    """
    from empathy_eval.releases.compare.diff import diff
    from empathy_eval.releases.hub.fetch import release_folder

    return diff(release_folder(before), release_folder(after))


def _shown(result: Diff, json: bool = False, latex: bool = False, markdown: bool = False) -> int:
    printed(result, json, latex, markdown)
    return 2 if result.moved or result.unexplained else 0


COMMAND = Command(
    diff,
    "compare two releases",
    "Lists dialogues that were added, removed, changed or withdrawn, and changes of crossed items, columns, figures, settings and "
    "software. It is an error (exit status 2) if a dialogue changes its split. It is also an error if a dialogue, pair, control or "
    "crossed item changes in place, disappears without a withdrawal, or is no longer withdrawn.",
    {
        "before=A": Option(f"the earlier release, {A_RELEASE}", type=str),
        "after=B": Option("the later release, in the same form", type=str),
        "--json": Option("print the differences as JSON", ONE_OF),
        **PAPER,
    },
    shown=_shown,
)
