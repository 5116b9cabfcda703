"""The command line: printing only. Each verb is one plain Python call."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tqdm import tqdm

from builder.arguments import make_parser
from builder.config import load_configuration
from builder.errors import EmpathyEvalError
from builder.prompts import load_prompts
from builder.scenarios import load_catalogue

# spaCy, matplotlib and torch take seconds to import: each verb imports what it needs, so that --help and errors are instant.
if TYPE_CHECKING:
    from builder.summary import Summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb and returns the exit status; errors that a user can mend are printed without a traceback."""
    options = make_parser().parse_args(arguments)
    try:
        return VERBS[options.verb](options)
    except EmpathyEvalError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped; every answer so far is in the ledger, run the same command to go on", file=sys.stderr)
        return 1


def _preview(options: argparse.Namespace) -> int:
    config = load_configuration(options.config, model=options.model, base_url=options.base_url)
    from builder.estimating import estimate_table, preview

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


def _ledger_show(options: argparse.Namespace) -> int:
    from builder.ledger import Ledger
    from builder.spending import spending, spending_table

    config = load_configuration(options.config) if options.config else None
    with Ledger(options.ledger, create=False) as ledger:
        rows = spending(ledger, config)
    print(json.dumps([asdict(row) for row in rows], indent=2) if options.json else spending_table(rows))
    return 0


def _build(options: argparse.Namespace) -> int:
    config = load_configuration(options.config, model=options.model, base_url=options.base_url)
    catalogue, prompts = load_catalogue(options.scenarios), load_prompts(options.templates)
    from builder.pipeline import Run, build

    with tqdm(unit="item", desc="build", disable=None) as bar:

        def show(summary: Summary) -> None:
            bar.total = summary.total
            bar.set_postfix(summary.short(), refresh=False)
            bar.update()

        run = Run(options.ledger, options.offline, options.budget_usd, options.budget_tokens, progress=show)
        summary = build(config, options.out, catalogue, prompts, run)
    print(json.dumps(summary.to_json(), indent=2) if options.json else summary)
    return 1 if summary.missing else 0


def _release(options: argparse.Namespace) -> int:
    from builder.releasing import release
    from builder.reporting import inversion_table

    released = release(options.build, options.out, options.version, date=options.date, partial=options.partial)
    if options.json:
        print(json.dumps(released.manifest, indent=2, ensure_ascii=False))
        return 0
    print(inversion_table(released.report))
    print(f"\nrelease: {options.out}\nreport:  {options.out / 'report' / 'index.html'}")
    print(f'load it: datasets.load_dataset("{options.out}", "pairs")')
    return 0


def _report(options: argparse.Namespace) -> int:
    from builder.reporting import inversion_table, report

    made = report(options.release, options.out)
    print(json.dumps(made.to_json(), indent=2, ensure_ascii=False) if options.json else inversion_table(made))
    if not options.json:
        print(f"\nreport: {options.out / 'index.html'}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from builder.verifying import verify

    problems = verify(options.release, fast=options.fast)
    if options.json:
        print(json.dumps([asdict(problem) for problem in problems], indent=2, ensure_ascii=False))
    else:
        print("\n".join(map(str, problems)) or f"{options.release}: is what it claims")
    return 2 if problems else 0


def _diff(options: argparse.Namespace) -> int:
    from builder.comparing import diff

    found = diff(options.before, options.after)
    print(json.dumps(found.to_json(), indent=2, ensure_ascii=False) if options.json else found)
    return 2 if found.moved else 0


def _publish(options: argparse.Namespace) -> int:
    from builder.publishing import publish
    from builder.verifying import verify

    published = publish(options.release, options.repo, dry_run=options.dry_run, faults=verify)
    for path, size in published.files:
        print(f"{size:>12,}  {path}")
    done = f"published as {options.repo} v{published.version}, commit {published.commit}"
    print(done if published.sent else f"nothing was sent; v{published.version} would go to {options.repo}")
    return 0


VERBS = {
    "preview": _preview,
    "build": _build,
    "release": _release,
    "report": _report,
    "verify": _verify,
    "diff": _diff,
    "publish": _publish,
    "ledger_show": _ledger_show,
}


def entry() -> None:
    """The console script."""
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has had enough, as in ``… | head``
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
