"""YAML of the very same text, looked through and read once: every reader gets a value of its own."""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import Any

import pytest
from empathy_eval.base import schemas
from empathy_eval.base.parsing import yaml_value

# All scenarios, taxonomies, rules and rubrics, with some that tests change. What is no YAML is read anew each time.
MOST = 1000


@lru_cache(maxsize=MOST)
def _read(text: str) -> bytes:
    return pickle.dumps(yaml_value(text))


def _value(text: str) -> Any:
    return pickle.loads(_read(text))


def share(patch: pytest.MonkeyPatch) -> None:
    """Files that are valid under a schema take the value of a text that was read before."""
    patch.setattr(schemas, "yaml_value", _value)
