"""``study --plan``: how many raters and items it takes to see an effect."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.json_text import json_text
from empathy_eval.base.table_text import TableText, aligned, table_text
from empathy_eval.commands.command import given
from empathy_eval.commands.options import Option, OptionGroup, Rows, whole

if TYPE_CHECKING:
    from empathy_eval.raters.study.power import StudyPlan

# What a plan takes that ratings do not, and what ratings take that a plan does not, as their parser names them.
OF_PLANS = ("groups", "categories", "per_rater", "icc", "share")
OF_RATINGS = ("table", "baseline", "labels", "criterion", "by", "add", "permutations", "seed", "raters", "page", "csv")
EXAMPLE = "empathy-eval study --plan --groups 5 --categories 3 --effect 0.3"


_GROUP = OptionGroup("planning a study", "these options go with --effect, --alpha, --power and --json")
PLAN: Rows = {
    "--plan": Option("compute how many raters and items a study needs; takes no RATINGS", _GROUP),
    "--groups N": Option("the number of groups, including the baseline", _GROUP, type=whole),
    "--categories N": Option("the number of categories of a rating", _GROUP, type=whole),
    "--per-rater N": Option("ratings per rater (default: 10)", _GROUP, type=whole),
    "--icc R": Option(
        "the intraclass correlation of a rater's ratings, 0 to 1 (default: 0.1); `study` reports yours", _GROUP, type=float
    ),
    "--share P": Option("the baseline's share of a category, for the interval of a gain", _GROUP, type=float),
}  # fmt: skip


def not_of_ratings(options: argparse.Namespace) -> None:
    """Tells of options that ratings do not take.

    Raises:
        InputError: if there are such.
    """
    if stray := [name for name in OF_PLANS if getattr(options, name) is not None]:
        raise InputError(Problem(_option(name), "needs --plan", f"leave it out, or plan a study: {EXAMPLE}") for name in stray)


def run_plan(options: argparse.Namespace) -> int:
    """Prints a plan; returns the exit status.

    Raises:
        InputError: for options of ratings, and what is missing or odd.
    """
    # A seed of 0 was given, too.
    stray = [name for name in OF_RATINGS if (value := getattr(options, name, None)) or (value == 0 and value is not False)]
    problems = [Problem(_option(one), "applies to ratings, and a plan has none", f"leave it out: {EXAMPLE}") for one in stray]
    problems += [
        Problem(_option(one), "is missing", f"add it: {EXAMPLE}") for one in ("groups", "categories") if getattr(options, one) is None
    ]
    if problems:
        raise InputError(problems)
    from empathy_eval.raters.study.power import study_plan

    found = study_plan(**given(options, study_plan))
    print(json_text(found.to_json(), ascii_only=True) if options.json else found)
    return 0


def _option(name: str) -> str:
    return "RATINGS" if name == "table" else f"--{name.replace('_', '-')}"


def plan_table(plan: StudyPlan) -> TableText:
    """A plan for a terminal."""
    return table_text(_lines(plan))


def _lines(plan: StudyPlan) -> Iterator[str]:
    yield f"{plan.groups} groups by {plan.categories} categories: to detect an effect of w = {plan.effect:g} with a probability of"
    yield f"{plan.power:g} at the level {plan.alpha:g} (chi-squared with {plan.df} degrees of freedom), the study needs"
    yield ""
    alike = f"1 + ({plan.per_rater} - 1) x {plan.icc:g}: {plan.per_rater:,} ratings per rater, intraclass correlation {plan.icc:g}"
    rows = [
        ("ratings, if independent", f"{plan.independent:,}", ""),
        ("design effect", f"{plan.design_effect:.3g}", alike),
        ("ratings, with the design effect", f"{plan.clustered:,}", "the product, rounded up"),
        ("raters per group", f"{plan.raters_a_group:,}", f"{plan.raters:,} in total, who give {plan.ratings:,} ratings"),
        ("items", f"{plan.items:,}", "each rated once in every group"),
    ]
    yield from aligned(rows, right=(1,))
    if plan.low is not None and plan.high is not None:
        yield f"a gain of 0 % over a share of {plan.share:g} would have the interval [{plan.low:+.1f}, {plan.high:+.1f}] %"
    if plan.note:
        yield f"note: {plan.note}"
    yield plan.signature
