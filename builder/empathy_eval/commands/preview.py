"""``preview``: estimate and first requests of a build."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error, plain
from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.table_text import aligned
from empathy_eval.commands.command import ONE_OF, RECIPE, Command, Option, Rows, as_recipe, check_count, recipe_of, whole_number

if TYPE_CHECKING:
    from empathy_eval.completions.requests import Request
    from empathy_eval.design.endpoints import JobConfig
    from empathy_eval.design.recipe import Recipe
    from empathy_eval.generation.preview import Preview, RequestEstimate
    from empathy_eval.raters.judges.replay import JobPreview


@takes_paths
def preview(recipe: Recipe | str | Path, *, ledger: str | Path | None = None, n: int = 1) -> Preview:
    """Estimates a build, and renders the exact requests of its first ``n`` items; sends nothing.

    The recipe may be the path of a configuration or the name of a packaged one. With a ledger the estimate uses its averages, and
    ``again`` counts its answers that would not be used. Custom checks are tried on seed dialogues.

    Raises
    ------
    InputError
        If the recipe is not valid, a custom check fails, or the ledger cannot be opened.
    """
    from empathy_eval.generation.job import try_checks
    from empathy_eval.generation.preview import preview, unused_answers

    check_count("--requests", n)
    read, path = as_recipe(recipe), Path(ledger) if ledger else None
    try_checks(read)
    estimated = preview(read, path, n)
    return replace(estimated, again=unused_answers(read, path, [path.parent]) if path else None)


def _shown(result: Preview, json: bool = False) -> int:
    if json:
        requests, estimates = requests_json(result.requests), [asdict(estimate) for estimate in result.estimates]
        again = asdict(result.again) if result.again else None
        print(json_text({"requests": requests, "stand_ins": result.placeholders, "estimates": estimates, "again": again}, ascii_only=True))
        return 0
    print(estimate_table(result.estimates))
    if result.again:
        print(plain(str(result.again)))
    print_requests(result.requests)
    if result.placeholders:
        print(f"--- not in the ledger yet, so a seed dialogue (or placeholder text) stands in for it: {', '.join(result.placeholders)}")
    if not result.requests:
        print("to see the requests, add --requests 1")
    return 0


# The rows of a verb whose job can be previewed.
PREVIEWED: Rows = {
    "--preview": Option(
        "send and write nothing: estimate the remaining requests, and with -n show the first ones. Answers in the ledger count as "
        "done, and their averages are used",
        group=ONE_OF,
    ),
    "-n, --requests N": Option("with --preview: show the requests of N turns (default: none)", type=whole_number, default=0),
}


def ledger_of_preview(options: Namespace, config: JobConfig) -> Path | None:
    """The ledger whose answers count as done in the preview of a job in ``options.out``; None if there is none yet.

    Raises:
        InputError: if the folder holds another job, or an option does not go with a preview.
    """
    from empathy_eval.generation.outcomes import LEDGER, claim_folder

    if options.part or options.engine == "ray" or options.wait is False:
        raise input_error("--preview", "covers the whole job, and sends nothing", "leave out --slice, --engine and --no-wait")
    claim_folder(options.out, config)
    check_count("--requests", options.requests)
    default_ledger = options.out / LEDGER
    return options.ledger or (default_ledger if default_ledger.is_file() else None)


def print_preview(options: Namespace, preview: JobPreview, head: str, attacks: JobPreview | None = None, attacks_head: str = "") -> int:
    """Prints the preview of a job, and beside it that of attacked texts, below their heads; returns the exit status."""
    if options.json:
        beside = {"attacks": {"answered": attacks.answered, "estimates": list(map(asdict, attacks.estimates))}} if attacks else {}
        values = {"requests": requests_json(preview.requests), "answered": preview.answered, "estimates": [*map(asdict, preview.estimates)]}
        print(json_text({**values, **beside}, ascii_only=True))
        return 0
    print("\n".join([*filter(None, [head]), estimate_table(preview.estimates)]))
    if attacks:
        print(f"\n{attacks_head}\n{estimate_table(attacks.estimates)}")
    print_requests(preview.requests)
    return 0


def requests_json(requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Returns requests as JSON values."""
    return [{"about": asdict(row.about), "key": row.key, "endpoint": row.endpoint, "body": row.body} for row in requests]


def print_requests(requests: Sequence[Request]) -> None:
    """Prints requests with what they are about."""
    for request in requests:
        print(f"--- {request.about} · key {request.key} · endpoint {request.endpoint}")
        print(json_text(request.body))


def estimate_table(estimates: tuple[RequestEstimate, ...]) -> str:
    """Returns the estimates as lines of text. Hours of kinds that share an endpoint add up; dollars need prices."""
    rows = [("kind", "model", "requests", "input tokens", "output tokens", "cost", "hours", "from")]
    for row in estimates:
        dollars = "no prices" if row.dollars is None else f"${row.dollars:,.2f}"
        tokens = f"{row.usage.input_tokens:,}", f"{row.usage.output_tokens:,}"
        source = "the ledger's averages" if row.observed else "assumed sizes"
        rows.append((row.kind, row.model[:22], f"{row.requests:,}", *tokens, dollars, f"{row.hours:.1f}", source))
    known = [row.dollars for row in estimates if row.dollars is not None]
    total = f"${sum(known):,.2f}" if len(known) == len(estimates) else "no prices"
    tokens = (f"{sum(row.usage.input_tokens for row in estimates):,}", f"{sum(row.usage.output_tokens for row in estimates):,}")
    hours = sum(row.hours for row in estimates)
    rows.append(("total", "", f"{sum(row.requests for row in estimates):,}", *tokens, total, f"{hours:.1f}", ""))
    return "\n".join(aligned(rows, right=range(2, 7)))


COMMAND = Command(
    preview,
    "estimate a build, and show its first requests",
    "Estimates requests, tokens, cost and hours of a whole build, tries your own checks, and with -n shows the exact requests of the first "
    "items. Sends nothing. If the ledger has answers, the estimate uses their averages.",
    {
        **RECIPE,
        "n=-n, --requests N": Option("show the requests of the first N items (default: none)", default=0),
        "--ledger PATH": "a ledger: use its averages, and report which of its requests would be sent again",
        "--json": "print everything as JSON",
    },
    shown=_shown,
    factories={"recipe": recipe_of},
)
