"""Identity by content: canonical JSON, tagged hashes, signatures of settings, derived randomness."""

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
    """The canonical JSON of a value: sorted keys, no spaces, UTF-8.

    Raises:
        ValueError: for NaN and infinities.
        TypeError: for values that JSON does not have.
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
    """All settings that can change a number, in the given order: ``tok:13a|smooth:exp|version:2.6.0``."""
    return "|".join(f"{name}:{value}" for name, value in settings.items())


def derived_random(*parts: object) -> random.Random:
    """A random generator seeded by parts such as (seed, scenario, index), independent of the order of calls."""
    return random.Random(digest([str(part) for part in parts]))
