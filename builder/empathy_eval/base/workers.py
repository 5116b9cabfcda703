"""Work spread over processes: results in the order of the items, however many work on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

import joblib
from joblib.externals.loky import get_reusable_executor

# Starting processes costs more than they save below so many texts.
MANY = 16_384


MOST_PROCESSES = 8


Common = TypeVar("Common")


Item = TypeVar("Item")


Result = TypeVar("Result")


class Spread(Protocol):
    """Where work on items is done."""

    def __call__(self, work: Callable[[Common, Item], Result], common: Common, items: Iterable[Item]) -> Iterator[Result]:
        """``work(common, item)`` of each item, in the order of the items."""
        ...


def here(work: Callable[[Common, Item], Result], common: Common, items: Iterable[Item]) -> Iterator[Result]:
    """In this process, an item when its result is asked for."""
    return (work(common, item) for item in items)


def local_processes(texts: int, processes: int | None) -> Spread:
    """In processes of this machine: so many, or one a core where there are many texts to work on."""
    if processes is None:
        processes = min(joblib.cpu_count(), MOST_PROCESSES) if texts >= MANY else 1
    # loky's workers do not run the caller's script again, as those of multiprocessing do.
    parallel = joblib.Parallel(n_jobs=processes, return_as="generator", backend="loky" if processes > 1 else "sequential")

    def spread(work: Callable[[Common, Item], Result], common: Common, items: Iterable[Item]) -> Iterator[Result]:
        yield from parallel(joblib.delayed(work)(common, item) for item in items)
        if processes > 1:
            # Idle workers would keep their memory while the caller goes on.
            get_reusable_executor().shutdown()

    return spread
