"""What the verbs that score texts share: the kept scores and the progress bar."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from empathy_eval.metrics.faults import MetricFault
    from empathy_eval.metrics.score_cache import ScoreCache


def add_cache(verb: argparse.ArgumentParser) -> None:
    """Adds where costly scores are kept."""
    verb.add_argument("--cache", type=Path, metavar="PATH", help="where costly scores are kept (default: in the user's cache folder)")
    verb.add_argument("--no-cache", action="store_true", help="keep no scores, and use none that were kept")


def cache_of(options: argparse.Namespace) -> ScoreCache | None:
    """The kept scores that the options ask for."""
    from empathy_eval.metrics.score_cache import ScoreCache, user_cache

    return None if options.no_cache else ScoreCache(options.cache or user_cache())


def add_trust(verb: argparse.ArgumentParser) -> None:
    """Adds which metrics of a manifest may be run beside the built-in and the installed ones."""
    verb.add_argument(
        "--trust-metrics",
        action="append",
        default=[],
        metavar="NAME",
        help="run this metric of the manifest too, with its settings: it is code, so know what it is; repeatable",
    )


def told_of(faults: Sequence[MetricFault]) -> int:
    """Tells of metrics that failed, on standard error; returns the exit status."""
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


@contextmanager
def scoring_bar() -> Iterator[Callable[[int], None]]:
    """A bar of scored texts."""
    from tqdm import tqdm

    with tqdm(unit="text", desc="score", disable=None) as bar:
        yield lambda texts: (bar.update(texts), None)[1]
