"""``ledger``: look into a ledger."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from builder.config import load_configuration


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser("ledger", help="look into a ledger", description="Works on the file that holds every answer.")
    inner = verb.add_subparsers(title="verbs", metavar="VERB", required=True)
    show = inner.add_parser("show", help="requests, tokens and spend by model, kind and finish reason")
    show.add_argument("ledger", type=Path, metavar="PATH", help="the ledger, such as build/demo/ledger.sqlite")
    show.add_argument("--config", type=Path, metavar="CONFIG", help="a configuration with prices, to show what was spent")
    show.add_argument("--json", action="store_true", help="print the rows as JSON")
    show.set_defaults(run=_show)


def _show(options: argparse.Namespace) -> int:
    from builder.ledger import Ledger
    from builder.spending import spending, spending_table

    config = load_configuration(options.config) if options.config else None
    with Ledger(options.ledger, create=False) as ledger:
        rows = spending(ledger, config)
    print(json.dumps([asdict(row) for row in rows], indent=2) if options.json else spending_table(rows))
    return 0
