"""``agree``: agreement of raters."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.base.errors import Problem, plain, refuse
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.table_text import TableLine, TableText, aligned, table_text
from empathy_eval.commands.command import ONE_OF, PAPER, Command, Option, page_path, printed, write_page

if TYPE_CHECKING:
    from empathy_eval.raters.agreement.agree import Agreement, CriterionAgreement, TagAudit
    from empathy_eval.raters.agreement.experts import AgainstMedian, RaterPair
    from empathy_eval.statistics.estimate import Estimate

EXAMPLES = """\
examples:
  empathy-eval agree ratings.csv
  empathy-eval agree ratings.csv --judge my-model --json
  empathy-eval agree build/reviews.ratings.csv build/judged --judge my-model
  empathy-eval agree build/reviews.json build/judged-strategies --release build/demo/release
  empathy-eval agree ratings.csv build/judged --crowd many-people --rubric lend-an-ear --page reliability.html

TABLE is one of:
  a CSV file with the columns item, rater, rating and, for several criteria, criterion; a missing rating is an empty cell or no row
  the folder of a judge's annotations (docs/judges.md); strategy tags in it are compared with the plan of --release
  the record of review import (.json), with its ratings and its judgements of strategy tags

--page OUT.html writes a page by framework, with judges and a crowd beside the median expert, and its figures as OUT.json. For the page, a
table may have the columns framework (of a criterion), role (expert, judge or crowd), model, style and sample (of a rater). Each folder
counts as a judge, and its rubric says which criteria belong together.
docs/agreement.md says what each figure means and when it is not defined.
"""
# Above this number, pairs are only counted; JSON has them all.
PAIRS_SHOWN = 45
NO_INTERVAL = "(no interval): there are no resamples, or the figure is not defined in too many of them; --json says which"


@takes_paths
def agree(
    table: str | Path | Sequence[str | Path], judges: Sequence[str] = (), *, resamples: int = 1000, seed: int = 0, level: str = "interval",
    release: str | Path | None = None, page: str | Path | None = None, crowd: Sequence[str] = (), crowd_as: str = "mean",
    rubrics: Sequence[str | Path] = (),
) -> Agreement:  # fmt: skip
    """Computes the agreement of raters with each other, and of judges with the experts; intervals resample items.

    A table is CSV, TSV or JSONL, a folder of annotations, or the record of a review (``.json``); several are combined. ``tags`` of the
    result is the audit of strategy tags, if strategies were named or tags judged. The figures of a ``page`` are written beside it
    (``.json``); the crowd appears only on the page.

    Raises
    ------
    InputError
        If a table cannot be read, a judge is not in it, strategies need a ``release``, page options are given without ``page``, or a
        rating does not fit its rubric.
    JobError
        If the page cannot be written.
    """
    from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
    from empathy_eval.raters.judges.agreeing import agreement_of
    from empathy_eval.releases.hub.fetch import release_folder

    tables = [Path(path) for path in ([table] if isinstance(table, str | Path) else table)]
    of, chance = release_folder(release) if release else None, ResamplingSettings(resamples, 0, seed)
    if page is None:
        _check_without_page(crowd, crowd_as, rubrics)
        return agreement_of(tables, list(judges), chance, level, of)
    from empathy_eval.raters.judges.agreeing import PanelOptions, reliability_of
    from empathy_eval.reports import agreement_page as pages

    out = page_path(page, [*tables, *map(Path, rubrics)])
    result, figures = reliability_of(tables, PanelOptions(judges, crowd, crowd_as, rubrics), chance, level, of)
    options = {"judge": judges, "crowd": crowd, "crowd-as": [crowd_as], "rubric": rubrics, "release": [release] if release else [],
               "level": [level], "resamples": [resamples], "seed": [seed], "page": [page]}  # fmt: skip
    arguments = [str(part) for name, values in options.items() for value in values for part in (f"--{name}", value)]
    write_page(pages.page(figures, shlex.join(["empathy-eval", "agree", *map(str, tables), *arguments])), figures.to_json(), out)
    return result


def _check_without_page(crowd: Sequence[str], crowd_as: str, rubrics: Sequence[str | Path]) -> None:
    """Refuses page options without a page."""
    page_options = {"crowd": bool(crowd), "crowd as": crowd_as != "mean", "rubric": bool(rubrics)}
    what = "applies to the reliability page, but no page is written"
    refuse(Problem(name, what, "add --page OUT.html") for name, given in page_options.items() if given)


def _printed(result: Agreement, page: Path | None = None, json: bool = False, latex: bool = False, markdown: bool = False) -> int:
    printed(result, json, latex, markdown)
    if page and not (json or latex or markdown):
        print(f"\npage: {plain(str(page))}\nfigures of the page: {plain(str(page.with_suffix('.json')))}")
    return 0


COMMAND = Command(
    agree,
    "measure how far raters agree",
    "Computes Cohen's kappa of each pair of raters, Krippendorff's alpha, Fleiss' kappa, F1 against the median rater, and variance "
    "inflation between criteria. Compares a judge's kappa with the experts to the experts' kappa with each other. Intervals resample "
    "items.",
    {
        "TABLE": "the ratings, one per row; several tables are combined",
        "judges=--judge NAME": "a rater to compare with the experts, such as a model; repeatable",
        "--release RELEASE": Option("the release whose strategies the judges named; it holds the plan", type=str),
        "--resamples N": "resamples of items for the intervals (default: 1000; 0: none)",
        "--seed N": "the seed of the resamples (default: 0)",
        "--level {nominal,ordinal,interval}": "the scale of the ratings, by which the benchmark takes plain, linear or quadratic kappa "
        "(default: interval, for quadratic)",
        "--page OUT.html": "write the reliability page, and its figures beside it as OUT.json",
        "--crowd NAME": "for --page: a rater of the crowd; repeatable",
        "--crowd-as {mean,median}": "for --page: how the crowd's ratings become one (default: mean)",
        "rubrics=--rubric FILE|NAME": Option("for --page: a rubric, which groups criteria and gives their scales; repeatable", type=str),
        "--json": Option("print all figures as JSON, each with its settings", ONE_OF),
        **PAPER,
    },
    EXAMPLES,
    _printed,
    staged=True,
)


def agreement_table(agreement: Agreement) -> TableText:
    """Returns all figures, one block per criterion with the settings of its intervals, then the audit of tags."""
    blocks = list[Iterable[str]]()
    if agreement.criteria:
        judges = f"; judges: {', '.join(agreement.judges)}" if agreement.judges else ""
        settings = next(iter(agreement.inflation.values())).signature
        blocks += [[f"{len(agreement.experts)} experts{judges}"], *map(_criterion, agreement.criteria)]
        blocks.append([*_table("variance inflation factor", agreement.inflation.items()), f"  {settings}"])
    blocks += [_tags(agreement.tags)] if agreement.tags else []
    lines = [line for block in blocks for line in (*block, "")]
    return table_text([*lines, NO_INTERVAL] if any("(no interval)" in line for line in lines) else lines)


def _table(title: str, figures: Iterable[tuple[str, Estimate]]) -> list[TableLine]:
    """Returns one row per figure, with its number of items."""
    rows = ((f"  {name}", str(estimate.n), str(estimate)) for name, estimate in figures)
    return aligned([(f"  {title}", "items", "value"), *rows], right=(1,))


def _tags(audit: TagAudit) -> Iterator[str]:
    """Yields the share of tags judged right, then one row per strategy and rater."""
    yield "strategy tags: how many were judged, how many of them right, and which strategies were named instead of the others"
    yield from _table("share judged right", audit.right.items())
    yield from (f"    {share.signature}" for share in audit.right.values())
    header = ("  strategy", "by", "judged", "right", "named instead")
    cells = [(f"  {row.strategy}", row.by, str(row.judged), str(row.right), _instead(row.instead)) for row in audit.rows]
    yield from aligned([header, *cells], len(header))


def _instead(called: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in called.items())


def _criterion(criterion: CriterionAgreement) -> Iterator[str]:
    values, weights = " ".join(f"{value:g}" for value in criterion.scale), criterion.benchmark.weights
    yield f"{criterion.criterion}: {criterion.ratings} ratings of {criterion.items} items, values {values}"
    figures = [(f"Krippendorff's alpha, {level}", measure) for level, measure in criterion.alpha.items()]
    figures += [("Fleiss' kappa", criterion.fleiss), (f"benchmark: median {weights} kappa of pairs of experts", criterion.benchmark.median)]
    for judge in criterion.benchmark.judges:
        figures.append((f"{judge.judge}: median {weights} kappa with the experts", judge.median))
        figures += [(f"{judge.judge}: its median minus the benchmark", judge.difference)] if judge.reached is not None else []
    yield from _table("figure", figures)
    for judge in criterion.benchmark.judges:
        if judge.reached is not None:
            yield f"  {judge.judge}: no lower than {judge.reached} of {judge.of} pairs of experts"
    yield from _pairs("expert with expert", criterion.benchmark.pairs)
    for judge in criterion.benchmark.judges:
        yield from _pairs(f"{judge.judge} with expert", judge.pairs)
    if criterion.against_median:
        named = [rater.binary_f1 for rater in criterion.against_median if rater.macro_f1.value is not None]
        binary = [f"F1 of >={threshold:g}" for threshold, _ in (named[0] if named else ())]
        head = ("  with the median of the other experts", "items", f"{weights} kappa", "macro F1", *binary)
        yield from aligned([head, *(_against(rater, weights, len(head)) for rater in criterion.against_median)], right=(1,))
    yield f"  {criterion.signature}"


def _pairs(title: str, pairs: tuple[RaterPair, ...]) -> Iterator[str]:
    if len(pairs) > PAIRS_SHOWN:
        yield f"  Cohen's kappa, {title}: {len(pairs)} pairs, too many to show; --json has them"
    elif pairs:
        rows = [(f"  {' - '.join(pair.raters)}", str(next(iter(pair.kappa.values())).n), *map(str, pair.kappa.values())) for pair in pairs]
        yield from aligned([(f"  Cohen's kappa, {title}", "items", *pairs[0].kappa), *rows], right=(1,))


def _against(rater: AgainstMedian, weights: str, width: int) -> tuple[str, ...]:
    figures = [rater.kappa[weights], rater.macro_f1, *(measure for _, measure in rater.binary_f1)]
    cells = [f"  {rater.rater}", str(rater.macro_f1.n), *map(str, figures)]
    return tuple([*cells, *[""] * width][:width])
