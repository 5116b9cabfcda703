"""Answers that come in files rather than over a socket: by hand, and in batches."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from builder.signature import canonical_json
from tests.server import Server


def reply(server: Server, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer that the server would give to a request; it counts it as one that came over the socket."""
    raw = canonical_json(body)
    name = hashlib.sha256(raw).hexdigest()
    fault = server._fault(name, server.seen[name])
    server.seen[name] += 1
    if fault is not None and fault.isdecimal():
        return int(fault), {"error": {"message": f"fault {fault}", "code": None}}
    server.answered[name] += 1
    return 200, server._answer(json.loads(raw), name, fault)
