"""What ``build``, ``report`` and ``score`` share: where the work is done."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from empathy_eval.base.errors import input_error

if TYPE_CHECKING:
    from empathy_eval.base.workers import Spread


def add_engine(verb: argparse.ArgumentParser) -> None:
    """Adds the choice of the engine."""
    verb.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="where the work is done: here (default), or over the machines of a Ray cluster; the result is the same, byte for byte",
    )
    verb.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help="the Ray cluster to join, such as auto or 10.0.0.1:6379 (default: RAY_ADDRESS, else a Ray of this machine alone)",
    )


def check_engine(options: argparse.Namespace) -> None:
    """Refuses an address that nothing would use.

    Raises:
        InputError: for ``--ray-address`` without ``--engine ray``.
    """
    if options.ray_address and options.engine != "ray":
        raise input_error("--ray-address", "belongs to --engine ray", "add --engine ray, or leave it out")


@contextmanager
def spread_of(options: argparse.Namespace) -> Iterator[Spread | None]:
    """How the options want metric work to be spread; None for the local way."""
    check_engine(options)
    if options.engine == "local":
        yield None
        return
    from empathy_eval.base.ray_cluster import joined, spread_over

    with joined(options.ray_address) as ray:
        yield spread_over(ray)
