"""Another program's correction of p-values, for tests to compare with."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def multipletests() -> Iterator[Callable[..., Any]]:
    """The correction of statsmodels. It collects garbage at each call, which takes seconds where much is loaded, unless that is frozen."""
    from statsmodels.stats import multitest

    gc.freeze()
    yield multitest.multipletests
    gc.unfreeze()
