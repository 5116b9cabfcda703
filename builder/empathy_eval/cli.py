"""Command line: the parser of all verbs, printing of errors, exit codes. Each verb is one Python call."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from empathy_eval.base import plugins
from empathy_eval.base.errors import EmpathyEvalError, Tracebacks, nearest
from empathy_eval.base.paths import check_paths, paths_in, paths_reached
from empathy_eval.base.streams import PlainOutput, protect_streams, write_failure
from empathy_eval.base.version import __version__
from empathy_eval.commands import (
    agree,
    annotate,
    build,
    compare,
    describe,
    diff,
    explore,
    init,
    ledger,
    names,
    preview,
    publish,
    release,
    report,
    respond,
    review,
    score,
    shortcuts,
    show,
    study,
    train,
    verify,
)

VERBS = (
    init, preview, build, release, report, explore, show, describe, score, shortcuts, train, verify, diff, review, respond, annotate,
    compare, agree, study, publish, ledger, names,
)  # fmt: skip
EXAMPLES = """\
a configuration of your own, with every key explained:
  empathy-eval init

a first release, without a model, an API key or a network:
  empathy-eval build demo --out build/demo
  empathy-eval release build/demo --out build/demo/release --version 0.1.0

exit status: 0 means done; 1 means that the job did not finish (paid answers are kept: run it again); 2 means that the input is wrong
"""


KEPT = "every answer so far is in the ledger"  # of a stopped run


class Parser(argparse.ArgumentParser):
    """Parser that suggests the nearest known option or choice, under the usage of the verb."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuses unknown arguments here: the main parser would print its own usage, which says little."""
        parsed, left = super().parse_known_args(args, namespace)
        if left:
            known = [action for action in self._option_string_actions if action.startswith("--")]
            meant = next((nearest(option.partition("=")[0], known) for option in left if option.startswith("-")), "")
            self.error(f"unrecognized arguments: {' '.join(left)}{meant}")
        return parsed, left

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            raise argparse.ArgumentError(action, f"{error.message}{nearest(value, action.choices or ())}") from None


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all verbs; ``run`` of the parsed options is the verb's function."""
    parser = Parser(
        prog="empathy-eval",
        description="Builds, checks, releases and explains a contrastive benchmark of emotional-support conversations.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"empathy-eval {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS:
        verb.COMMAND.add(verbs)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb and returns the exit status; user errors are printed without a traceback."""
    options = make_parser().parse_args(arguments)
    Tracebacks.shown = bool(options.traceback)
    with contextlib.suppress(FileNotFoundError):  # somebody has deleted the folder
        plugins.EXTRA_PATH[:] = [str(Path.cwd())]
    try:
        check_paths(paths_in(vars(options).values(), (Path,)))
        with paths_reached(), _plainly():
            return int(options.run(options))
    except EmpathyEvalError as error:
        for words in (str(error), *Tracebacks.of(problem.traceback for problem in error.problems)):
            _tell(words)
        return error.exit_code
    except KeyboardInterrupt as error:
        # A caller that stores answers elsewhere raises with its own words.
        kept = f"; {str(error) or KEPT}; run the same command to continue" if hasattr(options, "budget_usd") else ""
        _tell(f"stopped{kept}")
        return 1


def _plainly() -> contextlib.AbstractContextManager[Any]:
    """Escapes control characters in all printed text: they could move the cursor or hide text."""
    return contextlib.redirect_stdout(cast(TextIO, PlainOutput(sys.stdout))) if sys.stdout else contextlib.nullcontext()


def _tell(words: str) -> None:
    """Prints on standard error; ignores a closed stream, as the exit status remains."""
    with contextlib.suppress(OSError, ValueError):
        print(words, file=sys.stderr)


def entry() -> None:
    """Console script. SIGTERM and SIGHUP act as Ctrl-C unless they are ignored.

    The exit status is that of the job. A failed write to standard output turns 0 into 1; a closed pipe does not.
    """
    # Arrow's own pool keeps freed memory. Arrow reads the variable when it is loaded, so it is set before any verb runs.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    protect_streams()
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:
            signal.signal(getattr(signal, name), signal.default_int_handler)
    try:
        status = main()
    except SystemExit as error:  # argparse has printed help or usage
        status = error.code if isinstance(error.code, int) else 0
    if problem := write_failure(sys.stdout):
        _tell(str(problem))
        status = status or 1
    sys.exit(status)
