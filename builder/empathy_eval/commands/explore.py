"""``explore``: page to browse a release."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from empathy_eval.base.errors import input_error
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import RELEASE, Command, Option, OptionGroup

EXAMPLES = """\
examples:
  empathy-eval explore build/demo/release --out build/explore.html
  empathy-eval explore my-lab/empathy-eval@v1.0.0 --out explore.html
  empathy-eval explore build/demo/release --serve

The page is one file. It shows a sample of at most 200 pairs at once, and reads the rest from the files of the release, part by part. On a
web server or the Hub it finds these files itself. Opened from disk, it asks for the release folder, because a browser lets such a page
read only the files that you select. Every release contains such a page: explore/index.html. The page sends no data.
"""
NEITHER = "give --out PAGE to write a page, or --serve to view it now"


@takes_paths
def explore(
    release: str | Path, out: str | Path | None = None, *, serve: bool = False, port: int = 0, failures: str | Path | None = None,
    address: Callable[[str], None] | None = None,
) -> Path | None:  # fmt: skip
    """Makes a page to browse a release (a folder, or a Hub name such as ``org/name@v1.0.0``); returns its path.

    The page is written to ``out``, or with ``serve`` served on the loopback interface until an interrupt. ``port`` 0 takes any free port;
    ``address`` is called with the URL. ``failures`` is the output of ``score --failures N --json``: the page lists these texts.

    Raises
    ------
    InputError
        If it is no release or cannot be fetched, not exactly one of ``out`` and ``serve`` is given, ``out`` is another file or lies in
        the release, or the port is not available.
    """
    from empathy_eval.design.dataset import read_manifest
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.reports.explorer import explore_page, hub_address, read_failures, write_page

    if (out is None) == (not serve):
        raise input_error(
            "explore", "neither a page nor a server is requested" if out is None else "both a page and a server are requested", NEITHER
        )
    folder = release_folder(release)
    listed = read_failures(Path(failures), folder) if failures else None
    if out is not None:
        write_page(folder, Path(out), None if Path(release).is_dir() else hub_address(str(release)), listed)
        return Path(out)
    from empathy_eval.releases.inspect.serving import serve as served

    served(folder, explore_page(folder, read_manifest(folder), failures=listed), port, address or (lambda url: None))
    return None


def _run(options: Namespace) -> int:
    if options.port and not options.serve:
        raise input_error("--port", "needs --serve", "add --serve, or leave it out")
    if page := explore(**COMMAND.arguments(options), address=lambda url: print(f"{url}\npress Ctrl-C to stop", flush=True)):
        print(f"page: {page}")
    return 0


WAY = OptionGroup(required=True)
COMMAND = Command(
    explore,
    "browse a release",
    "Makes one page to browse a release. Its filters are scenario, phase, strategy, manner, flag, word margin, score and disagreement "
    "between metrics. It shows variants side by side with their differences marked, annotations, and what was left out and why.",
    {
        **RELEASE,
        "--out PAGE": Option("write the page to this file; an existing page is replaced", group=WAY),
        "--serve": Option("serve the page and the release to browsers on this machine, until Ctrl-C", group=WAY),
        "--failures JSON": Option("list the texts of this file, the output of score --failures N --json, above the pairs", type=Path),
        "--port N": "the port of --serve (default: any free port)",
    },
    EXAMPLES,
    run=_run,
)
