"""Identity by content: canonical JSON, tagged hashes, and the line of settings that stands beside a number."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

# The tag tells hashes of this scheme from those of a later one.
SCHEME = "s1"
ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Any) -> bytes:
    """The one JSON form of a value: sorted keys, no spaces, UTF-8. NaN and unknown types are refused.

    Raises:
        ValueError: for NaN and infinities.
        TypeError: for anything that JSON does not have.
    """
    return ENCODER.encode(value).encode()


def digest(value: Any) -> str:
    """``s1-`` and the SHA-256 (hex) of the canonical JSON of a value."""
    return f"{SCHEME}-{hashlib.sha256(canonical_json(value)).hexdigest()}"


def digest_bytes(data: bytes) -> str:
    """SHA-256 of bytes, in hex: what ``sha256sum`` prints for a file that holds them."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file, in hex, without reading it whole."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def signature_line(**settings: object) -> str:
    """All settings that could change a number, in the order given: ``tok:13a|smooth:exp|version:2.6.0``."""
    return "|".join(f"{name}:{value}" for name, value in settings.items())


def derived_random(*parts: object) -> random.Random:
    """A generator seeded by its parts, such as (seed, scenario, index): never by the order of calls."""
    return random.Random(digest([str(part) for part in parts]))
