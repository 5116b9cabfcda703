"""``study``: analysis and planning of between-subjects studies."""

from __future__ import annotations

import argparse
import shlex
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import InputError, Problem, input_error, plain, refuse
from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.table_text import TableText, aligned, table_text
from empathy_eval.commands.command import (
    ONE_OF,
    PAPER,
    Command,
    Option,
    OptionGroup,
    Rows,
    arguments_for,
    page_path,
    printed,
    whole_number,
    write_page,
)

if TYPE_CHECKING:
    from empathy_eval.raters.study.power import StudyPlan
    from empathy_eval.raters.study.ratings import ReadOptions
    from empathy_eval.raters.study.results import StudyReport
    from empathy_eval.raters.study.study import StudyOptions

# Options that only a plan takes, and options that only ratings take.
PLAN_OPTIONS = ("groups", "categories", "per_rater", "icc", "share")
RATING_OPTIONS = ("table", "baseline", "labels", "criterion", "by", "add", "permutations", "seed", "raters", "page", "csv")
EXAMPLE = "empathy-eval study --plan --groups 5 --categories 3 --effect 0.3"


_GROUP = OptionGroup("planning a study", "these options go with --effect, --alpha, --power and --json")
PLAN: Rows = {
    "--plan": Option("compute how many raters and items a study needs; takes no RATINGS", _GROUP),
    "--groups N": Option("the number of groups, including the baseline", _GROUP, type=whole_number),
    "--categories N": Option("the number of categories of a rating", _GROUP, type=whole_number),
    "--per-rater N": Option("ratings per rater (default: 10)", _GROUP, type=whole_number),
    "--icc R": Option(
        "the intraclass correlation of a rater's ratings, 0 to 1 (default: 0.1); `study` reports yours", _GROUP, type=float
    ),
    "--share P": Option("the baseline's share of a category, for the interval of a gain", _GROUP, type=float),
}  # fmt: skip


def refuse_plan_options(options: argparse.Namespace) -> None:
    """Refuses options of a plan. Raises InputError if one is given."""
    if stray := [name for name in PLAN_OPTIONS if getattr(options, name) is not None]:
        raise InputError(Problem(_flag(name), "needs --plan", f"leave it out, or plan a study: {EXAMPLE}") for name in stray)


def run_plan(options: argparse.Namespace) -> int:
    """Prints a plan; returns the exit status.

    Raises:
        InputError: if an option of ratings is given, or one of a plan is missing or not valid.
    """
    # 0 is a value that was given.
    stray = [name for name in RATING_OPTIONS if (value := getattr(options, name, None)) or (value == 0 and value is not False)]
    problems = [Problem(_flag(name), "applies to ratings, and a plan has none", f"leave it out: {EXAMPLE}") for name in stray]
    problems += [
        Problem(_flag(name), "is missing", f"add it: {EXAMPLE}") for name in ("groups", "categories") if getattr(options, name) is None
    ]
    refuse(problems)
    from empathy_eval.raters.study.power import study_plan

    plan = study_plan(**arguments_for(options, study_plan))
    print(json_text(plan.to_json(), ascii_only=True) if options.json else plan)
    return 0


def _flag(name: str) -> str:
    return "RATINGS" if name == "table" else f"--{name.replace('_', '-')}"


def plan_table(plan: StudyPlan) -> TableText:
    """Returns a plan as lines of text."""
    alike = f"1 + ({plan.per_rater} - 1) x {plan.icc:g}: {plan.per_rater:,} ratings per rater, intraclass correlation {plan.icc:g}"
    rows = [
        ("ratings, if independent", f"{plan.independent:,}", ""),
        ("design effect", f"{plan.design_effect:.3g}", alike),
        ("ratings, with the design effect", f"{plan.clustered:,}", "the product, rounded up"),
        ("raters per group", f"{plan.raters_a_group:,}", f"{plan.raters:,} in total, who give {plan.ratings:,} ratings"),
        ("items", f"{plan.items:,}", "each rated once in every group"),
    ]
    lines: list[str] = [
        f"{plan.groups} groups by {plan.categories} categories: to detect an effect of w = {plan.effect:g} with a probability of",
        f"{plan.power:g} at the level {plan.alpha:g} (chi-squared with {plan.df} degrees of freedom), the study needs", "",
        *aligned(rows, right=(1,)),
    ]  # fmt: skip
    if plan.low is not None and plan.high is not None:
        lines.append(f"a gain of 0 % over a share of {plan.share:g} would have the interval [{plan.low:+.1f}, {plan.high:+.1f}] %")
    return table_text([*lines, *([f"note: {plan.note}"] if plan.note else []), plan.signature])


class StudyCall:
    """Reader of the options of a call; ``problems`` collects those that are not valid."""

    def __init__(self) -> None:
        self.problems = list[Problem]()

    def text(self, name: str, value: object) -> str:
        """Returns a required text."""
        return value if isinstance(value, str) else self._odd(name, value, "a text")

    def texts(self, name: str, value: object, *, commas: bool = False) -> tuple[str, ...]:
        """Returns texts; a single text is one, or with ``commas`` is split at commas, as on the command line."""
        values = value.split(",") if commas and isinstance(value, str) and value else _as_list(value)
        if odd := [text for text in values if not isinstance(text, str)]:
            self._odd(name, odd[0], "a text, or a list of them")
        return tuple(text.strip() for text in values if isinstance(text, str))

    def path(self, name: str, value: object) -> Path:
        """Returns a required path."""
        fits = isinstance(value, str | Path) and str(value) and "\0" not in str(value)
        return Path(str(value) if fits else self._odd(name, value, "a path"))

    def paths(self, name: str, value: object) -> list[Path]:
        """Returns paths, from one or several."""
        return [self.path(name, item) for item in _as_list(value)]

    def _odd(self, name: str, value: object, expected: str) -> str:
        """Notes a value that is not valid; the empty string replaces it until all problems are raised."""
        kind = "empty, or not a possible path" if isinstance(value, str | Path) else f"of the type {type(value).__name__}"
        self.problems.append(Problem(name, f'"{str(value)[:80]}" is {kind}', f"give {expected}"))
        return ""


def _as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]


def shell_command(tables: Sequence[Path], reading: ReadOptions, options: StudyOptions, files: dict[str, Sequence[Path]]) -> str | None:
    """Returns the command line that computes the same; ``files`` by option. None for labels with commas, which it cannot name."""
    if any("," in label for label in reading.labels):
        return None
    words = ["empathy-eval", "study", *map(str, tables), f"--baseline={reading.baseline}"]
    words += [f"--labels={','.join(reading.labels)}"] if reading.labels else []
    words += [f"--criterion={reading.criterion}"] if reading.criterion is not None else []
    words += [f"--by={column}" for column in options.by or ()]
    for field in fields(options):
        value = getattr(options, field.name)
        words += [f"--{field.name}={value}"] if field.name != "by" and value != field.default else []
    return shlex.join(words + [f"--{option}={path}" for option, paths in files.items() for path in paths])


EXAMPLES = """\
examples:
  empathy-eval study ratings.csv --baseline human
  empathy-eval study ratings.csv --baseline human --labels Bad,Okay,Good --by valence
  empathy-eval study reviews.study.csv --baseline apathetic --criterion empathy --json
  empathy-eval study ratings.csv --baseline human --add new-model.csv --csv
  empathy-eval study ratings.csv --baseline human --raters raters.csv
  empathy-eval study ratings.csv --baseline human --page study.html
  empathy-eval study --plan --groups 5 --categories 3 --effect 0.3 --per-rater 10 --icc 0.1

RATINGS is a CSV, TSV or JSONL table with the columns item, group, rater, rating, one rating per row. Optional columns: stratum and
valence (of an item), block (of a rater: raters of one block saw the same items), criterion. A rater belongs to one group, and rates an
item once. Ratings are numbers or, with --labels, names of at most 11 categories. Labels that are numbers match by value (1 is 1.0).
If ratings are numbers and labels are not: if all numbers are at least 1, 1 is the first label, even if nobody gave it. Otherwise there is
one label for each number, in ascending order. A note lists which number became which label.
A gain is the change of a share, in percent of the baseline's share, with an interval by rater. docs/studies.md explains each figure.
"""


@takes_paths
def study(
    table: str | Path | Sequence[str | Path], baseline: str, *, labels: str | Sequence[str] = (), criterion: str | None = None,
    by: str | Sequence[str] | None = None, add: str | Path | Sequence[str | Path] = (), permutations: int = 2000, seed: int = 0,
    effect: float = 0.3, alpha: float = 0.05, power: float = 0.95, raters: str | Path | None = None, page: str | Path | None = None,
) -> StudyReport:  # fmt: skip
    """Analyses a between-subjects study: counts, tests, gains over the baseline, and detectable effects.

    ``labels`` are a list, or a text with commas. ``effect``, ``alpha`` and ``power`` are those of the planned study.

    Raises
    ------
    InputError
        If a table cannot be read or is not of a between-subjects study, or an option is not valid.
    JobError
        If the page cannot be written.
    """
    from empathy_eval.raters.study import study as studying
    from empathy_eval.raters.study.balance import with_raters
    from empathy_eval.raters.study.raters_table import read_raters
    from empathy_eval.raters.study.ratings import ReadOptions, read_study

    call = StudyCall()
    tables, later = call.paths("table", table), call.paths("add", add)
    if not tables:
        call.problems.append(Problem("table", "no table is named", "name the ratings of a study"))
    people, pages = ([] if file is None else [call.path(name, file)] for name, file in (("raters", raters), ("page", page)))
    names, chosen = call.texts("labels", labels or (), commas=True), None if criterion is None else call.text("criterion", criterion)
    reading = ReadOptions(call.text("baseline", baseline), names, chosen)
    options = studying.StudyOptions(None if by is None else call.texts("by", by), permutations, seed, effect, alpha, power)
    refuse(call.problems)
    out = page_path(pages[0], [*tables, *later, *people]) if pages else None
    ratings = read_study(tables, reading, later)
    known = read_raters(people[0], ratings) if people else None  # before the study, which may take long
    result = with_raters(studying.study(ratings, options), ratings, known) if known else studying.study(ratings, options)
    if out:
        from empathy_eval.reports.study_page import page as page_of

        command = shell_command(tables, reading, options, {"add": later, "raters": people, "page": pages})
        write_page(page_of(result, command), result.to_json(), out)
    return result


def _run(options: Namespace) -> int:
    if options.plan:
        return run_plan(options)
    refuse_plan_options(options)
    if not options.table or options.baseline is None:
        what = "no ratings are named" if not options.table else "no baseline is named"
        raise input_error("study", what, "run: empathy-eval study RATINGS.csv --baseline GROUP")
    result = study(**COMMAND.arguments(options))
    printed(result, options.json, options.latex, options.markdown, options.csv)
    if options.page and not (options.json or options.csv or options.latex or options.markdown):
        print(f"page: {plain(str(options.page))}, and its figures: {plain(str(options.page.with_suffix('.json')))}")
    return 0


COMMAND = Command(
    study,
    "compare groups in a study in which each rater sees only one group",
    "Analyses a between-subjects study: chi-squared tests of all groups, of each category and of each pair of groups, and gains over a "
    "baseline with intervals by rater. Repeats them by stratum, with corrections. Adds p-values from permutations of raters, and the "
    "effects that the study could have detected.",
    {
        "table=RATINGS": Option("the ratings, one per row; several tables are combined", nargs="*"),
        "--baseline GROUP": Option("the group that the others are compared with", required=False),
        "--labels NAMES": Option("names of the categories, lowest first, separated by commas: Bad,Okay,Good", action="store"),
        "--criterion NAME": "the criterion to analyse, if the ratings have several",
        "--by {stratum,valence}": "also test the ratings of each stratum or valence separately; repeatable (default: both columns, if "
        "present)",
        "--add FILE": "a table of a group that was added later; repeatable. It has other raters than the study and, if the study has "
        "blocks, the same blocks",
        "--raters FILE": "a table of the raters, one per row: rater, and any of group, seconds, checks and checks_failed (of attention), "
        "sex, age ...; the groups are compared by these columns, and figures of fewer than five raters are not shown",
        "--permutations N": "permutations of raters (default: 2000; 0: none)",
        "--seed N": "the seed of the permutations (default: 0)",
        "--effect W": "the effect to detect, Cohen's w (default: 0.3)",
        "--alpha P": "the significance level (default: 0.05)",
        "--power P": "the probability of detecting the effect (default: 0.95)",
        "--page OUT.html": "write a page of the results, and its figures beside it as OUT.json",
        "--json": Option("print everything as JSON", group=ONE_OF),
        "--csv": Option("print all figures as CSV, one per line", group=ONE_OF),
        **PAPER,
        **PLAN,
    },
    EXAMPLES,
    run=_run,
)
