"""``score``: put a metric or a judge's scores on the stand of the report."""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error, plain
from empathy_eval.commands.options import A_RELEASE, add_cache, add_engine, cache_of, scoring_bar, scoring_with, told_of
from empathy_eval.design.contrasts import STANCE, STANCE_FAR, STANCE_NEAR

if TYPE_CHECKING:
    from empathy_eval.evaluation.resampling import Estimate
    from empathy_eval.evaluation.results import Difference, Measured

EXAMPLES = """\
examples:
  empathy-eval score build/demo/release --metric rouge-l --metric vader
  empathy-eval score build/demo/release --metric my_module:MyMetric --json
  empathy-eval score build/demo/release --scores judge.csv --scores reward.csv --split test
  empathy-eval score build/demo/release --annotations build/judged --judge my-model/teacher:guidance

judge.csv has the columns pair_id, variant, score, and its row the name "judge". Pairs that it leaves out are counted, and with --strict
they are wrong. docs/metrics.md shows a metric of your own in 15 lines, docs/judges.md how a model comes to judge. score asks none.
"""
METRIC = "a metric by name, or module:name, either with settings behind it, as in bertscore:layer=5; repeatable"
FILE = "scores from elsewhere as .csv, .tsv or .jsonl: pair_id, variant, score, or a column a variant; repeatable, a row a file"
JUDGE = "a model that annotated the release by a rubric: each criterion is a row, or the one that is named; repeatable"
ANNOTATIONS = "take judges from this folder of annotate, and not from the release; without --judge all of them; repeatable"


def score(
    release: str | Path, metrics: Sequence[Any] = (), scores: Sequence[str | Path] = (), *, split: str | None = None,
    lower_is_better: bool = False, strict: bool = False, cache: str | Path | bool = True, engine: str = "local",
    ray_address: str | None = None, items: str | Path | None = None, shortcuts: bool = True,
    progress: Callable[[int], None] | None = None, judges: Sequence[str] = (), annotations: Sequence[str | Path] = (),
) -> Measured:  # fmt: skip
    """Puts metrics, files of scores and judges on the stand of the report, over all splits of a release or one.

    The release is a folder, or a Hub name such as ``org/name@v1.0.0``. A metric is a name or ``module:name``, with settings as in
    ``bertscore:layer=5``, or an object; a file of scores is CSV, TSV or JSONL with ``pair_id``, ``variant``, ``score``, or a column a
    variant. A judge is named as ``teacher/rubric``, or ``teacher/rubric:criterion`` for one row of it, and is found in the folders of
    ``annotate`` that ``annotations`` names (then no name means all), or in the release; nothing is asked. With ``strict`` a pair that a
    file or a judge leaves out is wrong in its accuracy. ``items`` is a file, parquet or CSV, for the scores
    of every text and the verdicts of every pair. ``shortcuts`` says whether the shortcut audit is made too; an embedding is left out of
    it. ``cache`` is where costly scores are kept (True: in the user's cache folder, False: nowhere).

    Raises:
        InputError: if it is no release or cannot be had, a metric or a judge is unknown, or a file of scores is faulty.
    """
    if not (metrics or scores or judges or annotations):
        raise input_error("score", "nothing to score with", "give --metric NAME, --scores FILE or both, or --judge TEACHER/RUBRIC")
    from empathy_eval.design.dataset import SPLITS
    from empathy_eval.evaluation.score import score
    from empathy_eval.raters.judges.as_scores import annotations_in
    from empathy_eval.releases.fetch import release_folder

    if split not in (None, *SPLITS):
        raise input_error("score: split", f'there is no "{split}"', f"name one of {', '.join(SPLITS)}")
    folder = release_folder(release)
    with scoring_with(cache, engine, ray_address, progress) as scoring:
        return score(
            folder, metrics, [Path(one) for one in scores], split=split, lower_is_better=lower_is_better, strict=strict,
            items=Path(items) if items else None, shortcuts=shortcuts, scoring=scoring, judges=judges,
            annotations=annotations_in([Path(one) for one in annotations], folder) if annotations else None,
        )  # fmt: skip


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "score",
        help="see whether a metric, a judge or a reward model is fooled",
        description="Scores the variants of a release and says whom the metric prefers: differences with intervals and p-values, how often "
        "the empathetic variant of a pair is ranked higher, the area under the curve; the effects of stance and closeness apart; at equal "
        "length; by scenario, phase, strategy and manner of apathy (in JSON and CSV).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("release", metavar="RELEASE", help=f"the release, {A_RELEASE}")
    verb.add_argument("--metric", action="append", default=[], metavar="NAME", help=METRIC)
    verb.add_argument("--scores", type=Path, action="append", default=[], metavar="FILE", help=FILE)
    verb.add_argument("--judge", action="append", default=[], metavar="TEACHER/RUBRIC[:CRITERION]", help=JUDGE)
    verb.add_argument("--annotations", type=Path, action="append", default=[], metavar="DIR", help=ANNOTATIONS)
    verb.add_argument("--lower-is-better", action="store_true", help="in every file of --scores a lower score is the better one")
    verb.add_argument("--strict", action="store_true", help="in accuracy a pair that a file or a judge leaves out counts as wrong")
    verb.add_argument("--split", choices=("train", "validation", "test"), help="measure this split alone (default: all)")
    verb.add_argument("--items", type=Path, metavar="FILE", help="write every score and verdict there too, as .parquet or .csv")
    verb.add_argument("--no-shortcuts", action="store_true", help="leave the shortcut audit out, which takes minutes for a full release")
    add_cache(verb)
    add_engine(verb)
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as JSON")
    form.add_argument("--csv", action="store_true", help="print everything as CSV, a line a contrast, comparison or shortcut")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    with scoring_bar() as progress:
        measured = score(
            options.release, options.metric, options.scores, split=options.split, lower_is_better=options.lower_is_better,
            strict=options.strict, items=options.items, shortcuts=not options.no_shortcuts, cache=cache_of(options),
            engine=options.engine, ray_address=options.ray_address, progress=progress, judges=options.judge,
            annotations=options.annotations,
        )  # fmt: skip
    if options.json:
        print(json.dumps(measured.to_json(), indent=2, ensure_ascii=False))
    else:
        print(score_csv(measured) if options.csv else plain(score_table(measured)))
    return told_of(measured.faults)


def score_csv(measured: Measured) -> str:
    """Everything that was measured, a line a contrast, comparison, shortcut or fault."""
    from empathy_eval.evaluation.long_form import COLUMNS

    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(measured.records())
    return text.getvalue()


def score_table(measured: Measured) -> str:
    """What was measured as lines of text, groups left out; for a terminal. What a file leaves out comes first."""
    head = f"{'':<24}{'difference':>11}  {'95 % interval':<21}{'p (Holm)':>9}{'accuracy':>10}{'AUC':>7}"
    lines = [f"{row.metric}: {row.coverage}" for row in measured.inversion if row.left_out]
    lines += ["", *_headline(measured), "", *_comparisons(measured)]
    matched = [("equal length, " + name, row) for name, rows in measured.matched.items() for row in rows]
    parts = [("pairs", measured.inversion), ("2x2", measured.controls)], [("before contrast checks", measured.candidates)]
    whole, before = ([(table, row) for table, rows in some for row in rows] for some in parts)
    for table, row in (*whole, *matched, *before):
        told = ", ".join(f"{name} {value:.4f}" for name, value in row.scores.items())
        lines += ["", f"{row.metric}, {table}, {row.coverage}: {told}", head]
        lines += [f"  {name:<22}{_numbers(one)}" for name, one in row.differences.items()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _headline(measured: Measured) -> Iterator[str]:
    """The number to report of each metric: its accuracy at equal closeness."""
    from empathy_eval.evaluation.claims import line_of

    rows = [row for row in measured.controls if row.metric in measured.equal_closeness]
    line, wide = line_of(measured), max((len(row.metric) for row in rows), default=0)
    wide = max(24, wide + 1)
    if rows:
        ends = f"{'near':>7}{'far':>7}{'ties':>7}{'effect':>9}  {'95 % interval':<16}"
        yield f"{'at equal closeness':<{wide}}{'accuracy':>9}  {'95 % interval':<16}{ends}{'  line' if line else ''}".rstrip()
    for row in rows:
        both, near, far = (row.differences[name] for name in (STANCE, STANCE_NEAR, STANCE_FAR))
        sides = "".join(f"{one.accuracy.value:>7.3f}" if one.accuracy else " " * 7 for one in (near, far))
        beside = line.beside.get(row.metric, "") if line else ""
        yield f"{row.metric:<{wide}}{_estimate(both.accuracy):<27}{sides}{both.ties:>7.3f}{_estimate(both.effect):<27}  {beside}".rstrip()
    if rows and line:
        yield f"{'shortcut line':<{wide}}{_estimate(line.accuracy)}  by {line.shortcut}"


def _comparisons(measured: Measured) -> Iterator[str]:
    """Every two metrics, at equal closeness where that was measured, else as released."""
    first = next((one.contrast for one in measured.comparisons), "")
    some = [one for one in measured.comparisons if one.contrast == first]
    wide = max([36, *(len(one.one) + len(one.other) + 4 for one in some)])
    if some:
        ends = "".join(f"{name:>9}  {'95 % interval':<19}{'p (Holm)':>9}" for name in ("accuracy", "effect"))
        yield f"{'first minus second, ' + first:<{wide}}{'pairs':>6}{ends}"
    for one in some:
        found = [(_estimate(gap), "" if gap is None or gap.holm is None else f"{gap.holm:.4f}") for gap in (one.accuracy, one.effect)]
        gaps = "".join(f"{gap:<30}{p:>9}" for gap, p in found)
        yield f"{f'{one.one} - {one.other}':<{wide}}{one.pairs:>6}{gaps}".rstrip()


def _estimate(one: Estimate | None) -> str:
    if one is None:
        return ""
    return f"{one.value:>9.3f}" + ("" if one.low is None or one.high is None else f"  [{one.low:.3f}, {one.high:.3f}]")


def _numbers(one: Difference) -> str:
    bounds = "" if one.low is None or one.high is None else f"[{one.low:+.4f}, {one.high:+.4f}]"
    p = "" if one.holm is None else f"{one.holm:.4f}"
    ranked = "".join(f"{found.value:>{width}.3f}" if found else " " * width for found, width in ((one.accuracy, 10), (one.auc, 7)))
    return f"{one.value:>+11.4f}  {bounds:<21}{p:>9}{ranked}{'  forced by the checks' if one.forced else ''}"
