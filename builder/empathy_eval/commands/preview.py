"""``preview``: the first requests and an estimate."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from empathy_eval.commands.inputs import add_inputs


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "preview",
        help="show the first requests of a build and estimate all of it",
        description="Shows the exact requests of the first items, and estimates requests, tokens, cost and hours of the whole build. Sends "
        "nothing. With a ledger that has answers already, the estimate uses their averages.",
    )
    add_inputs(verb)
    verb.add_argument("-n", type=int, default=1, metavar="N", help="items whose requests are shown (default: 1; 0 shows only the estimate)")
    verb.add_argument("--ledger", type=Path, metavar="PATH", help="a ledger to learn from; it is not changed")
    verb.add_argument("--json", action="store_true", help="print everything as JSON")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    from empathy_eval.design.configuration import load_configuration
    from empathy_eval.design.prompts import load_prompts
    from empathy_eval.design.scenarios import load_catalogue
    from empathy_eval.generation.preview import estimate_table, preview

    config = load_configuration(options.config, model=options.model, base_url=options.base_url)
    made = preview(config, load_catalogue(options.scenarios), load_prompts(options.templates), options.ledger, options.n)
    if options.json:
        requests = [{"about": asdict(one.about), "key": one.key, "endpoint": one.endpoint, "body": one.body} for one in made.requests]
        print(
            json.dumps({"requests": requests, "stand_ins": made.stand_ins, "estimates": [asdict(one) for one in made.estimates]}, indent=2)
        )
        return 0
    for request in made.requests:
        print(f"--- {request.about} · key {request.key} · endpoint {request.endpoint}")
        print(json.dumps(request.body, indent=2, ensure_ascii=False))
    if made.stand_ins:
        print(f"--- not in the ledger yet, so a seed dialogue stands in for rewriting: {', '.join(made.stand_ins)}")
    print(estimate_table(made.estimates))
    return 0
