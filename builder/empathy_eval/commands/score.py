"""``score``: evaluation of metrics, score files and judges on a release, on custom texts, or against people's ratings."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from warnings import warn

from empathy_eval.base.errors import input_error, nearest
from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import (
    A_RELEASE,
    CACHE,
    ENGINE,
    ONE_OF,
    PAPER,
    Command,
    Option,
    cache_of,
    check_count,
    print_warnings,
    printed,
    report_faults,
    scoring_session,
)
from empathy_eval.commands.progress import display_stages

if TYPE_CHECKING:
    from empathy_eval.evaluation.external.custom_means import CustomTextResults
    from empathy_eval.evaluation.external.judges import ReleaseAnnotations
    from empathy_eval.evaluation.inversion.results import ReleaseTables
    from empathy_eval.metrics.scoring import Scoring
    from empathy_eval.raters.people.correlations import AgainstPeople

    Scored = ReleaseTables | CustomTextResults | AgainstPeople

EXAMPLES = """\
examples:
  empathy-eval score build/demo/release --metric rouge-l --metric vader
  empathy-eval score build/demo/release --metric rouge-l --limit 100
  empathy-eval score build/demo/release --metric my_module:MyMetric --json
  empathy-eval score build/demo/release --scores judge.csv --scores reward.csv --split test
  empathy-eval score build/demo/release --annotations build/judged --judge my-model/teacher:guidance
  empathy-eval score build/demo/release --metric vader --attacks doubled flattery
  empathy-eval score build/demo/release --metric vader --fairness
  empathy-eval score build/demo/release --metric vader --failures 10
  empathy-eval score replies.jsonl --metric vader
  empathy-eval score replies.jsonl --metric vader --ratings ratings.csv
  empathy-eval score build/demo/release --metric rouge-l --ratings reviews.ratings.csv
  empathy-eval score replies.jsonl --metric vader --metric length --ratings ratings.csv --ensemble huffman:vader,length

judge.csv has the columns pair_id, variant, score, and its row is called "judge". Pairs that it leaves out are counted, and with --strict
they count as wrong. A file with crossed_id, context, reply, score is for crossed items, which have a table of their own:
docs/crossed_scores.md. docs/metrics.md shows a metric of your own in 15 lines. docs/judges.md explains judges; score itself asks no model.
replies.jsonl has one line {"context": …, "reply": …} per text; item, system, reference and split are optional: docs/own_texts.md.
"""


@takes_paths
def score(
    release: str | Path, metrics: Sequence[Any] = (), scores: Sequence[str | Path] = (), *, split: str | None = None,
    lower_is_better: bool = False, strict: bool = False, cache: str | Path | bool = True, engine: str = "local",
    ray_address: str | None = None, items: str | Path | None = None, shortcuts: bool = True,
    progress: Callable[[int], None] | None = None, judges: Sequence[str] = (), annotations: Sequence[str | Path] = (),
    ratings: str | Path | None = None, ensembles: Sequence[str] = (), attacks: Sequence[Any] | None = None, fairness: bool = False,
    rules: str | Path | None = None, limit: int | None = None, figure: str | Path | None = None, leaked: Callable[[str], object] = warn,
    failures: int | None = None,
) -> ReleaseTables | CustomTextResults | AgainstPeople:  # fmt: skip
    """Scores metrics, files of scores and judges on a release, on custom texts, or beside people's ratings. No model is asked.

    ``release`` is a folder, a Hub name such as ``org/name@v1.0.0``, or a ``.jsonl`` file of custom texts, one
    ``{"context": …, "reply": …}`` a line. A metric is a name, ``module:name``, a name with settings (``bertscore:layer=5``) or an object;
    a file of scores has ``pair_id``, ``variant``, ``score``, or one column a variant; one with ``crossed_id``, ``context``, ``reply``
    (1 or 2 each), ``score`` is of crossed items. An empty list of ``attacks`` means all that are built in. ``cache`` is where costly
    scores are kept (True: in the user's cache folder, False: nowhere). ``leaked`` is called with a warning for outputs that hold the
    canary, ``progress`` with the number of texts scored.

    ``failures`` is how many of the texts on which scores differ most are shown.

    The result is ``ReleaseTables`` of a release, ``CustomTextResults`` of custom texts, and with ``ratings`` ``AgainstPeople``.
    ``release`` may be a file of custom texts, or a folder that ``respond`` wrote.

    Raises
    ------
    InputError
        If it is no release or cannot be fetched, a metric or a judge is unknown, a file is faulty, or an ensemble cannot be fitted.
    """
    options = ScoreOptions(
        release, metrics, [Path(path) for path in scores], split, lower_is_better, strict, Path(items) if items else None, shortcuts,
        judges, [Path(annotation) for annotation in annotations], Path(ratings) if ratings else None, ensembles, attacks, fairness,
        Path(rules) if rules else None, limit, Path(figure) if figure else None, failures,
    )  # fmt: skip
    options.refuse_unfit()
    with scoring_session(cache, engine, ray_address, progress) as scoring:
        result = _scored(options, scoring)
    options.tell_canary(leaked)
    return result


@dataclass(frozen=True)
class ScoreOptions:
    """Options of a scoring job, as in the parameters of :func:`score`."""

    release: str | Path
    metrics: Sequence[Any]
    scores: list[Path]
    split: str | None
    lower_is_better: bool
    strict: bool
    items: Path | None
    shortcuts: bool
    judges: Sequence[str]
    annotations: list[Path]
    ratings: Path | None
    ensembles: Sequence[str]
    attacks: Sequence[Any] | None
    fairness: bool
    rules: Path | None
    limit: int | None
    figure: Path | None
    failures: int | None = None

    @property
    def of_texts(self) -> bool:
        """Whether custom texts or replies of systems are scored, not a release."""
        return Path(self.release).suffix.lower() == ".jsonl" or self.of_replies

    @property
    def of_replies(self) -> bool:
        """Whether a folder of replies is scored."""
        from empathy_eval.raters.systems.replies import is_replies

        return is_replies(Path(self.release))

    def tell_canary(self, leaked: Callable[[str], object]) -> None:
        """Calls ``leaked`` with a warning for each scored output that holds the canary; the scan follows scoring, so files are valid."""
        from empathy_eval.generation.outcomes import folder_canary_warnings
        from empathy_eval.raters.judges.annotations import canary_scan
        from empathy_eval.releases.hub.fetch import release_folder

        if self.of_replies:
            for folder in (Path(self.release), *self.annotations):
                for warning in folder_canary_warnings(folder):
                    leaked(warning)
            return
        source = Path(self.release) if self.of_texts else release_folder(self.release)
        for warning in canary_scan(source, self.scores, self.annotations, judged=bool(self.judges) and not self.annotations):
            leaked(warning)

    def refuse_unfit(self) -> None:
        """Refuses options that cannot be combined, such as options of a release with custom texts, and unknown splits."""
        from empathy_eval.design.dataset import SPLITS
        from empathy_eval.evaluation.measure import ALL

        if self.rules and self.attacks is None and not self.fairness:
            what = f'"{self.rules}" applies to attacks and fairness, but neither is requested'
            raise input_error("score: rules", what, "add --attacks or --fairness, or leave the rules out")
        if not (self.metrics or self.scores or self.judges or self.annotations or (self.ratings and self.shortcuts)):
            raise input_error("score", "nothing to score with", "give --metric NAME, --scores FILE or both, or --judge TEACHER/RUBRIC")
        if self.limit is not None:
            check_count("score: limit", self.limit, 1)
        if self.failures is not None:
            check_count("score: failures", self.failures, 1)
            if self.of_texts:
                raise input_error("score: failures", "need texts of a release, whose stance or ratings are known", "leave --failures out")
        alone = {
            "split": self.split, "strict": self.strict, "judges": self.judges, "annotations": self.annotations and not self.of_replies,
            "attacks": self.attacks is not None, "fairness": self.fairness, "limit": self.limit, "figure": self.figure,
        }  # fmt: skip
        beside_people = ("split", "judges", "annotations")
        unfit = [name for name, given in alone.items() if given and (self.of_texts or (self.ratings and name not in beside_people))]
        if unfit:
            what = f"{' and '.join(unfit)} cannot be used with {'texts of your own' if self.of_texts else 'ratings'}"
            raise input_error("score", what, f"leave {'them' if len(unfit) > 1 else 'it'} out")
        if self.ensembles and not self.ratings:
            fix = "give --ratings TABLE, or leave ensembles out"
            raise input_error("score: ensembles", "there are no ratings to fit an ensemble to", fix)
        if self.ensembles and self.split:
            fix = "leave the split out: ensembles are fitted on validation, and everything is measured on test"
            raise input_error("score: split", f'"{self.split}" cannot be used with ensembles', fix)
        if self.split not in (None, *(known := (*SPLITS, ALL))):
            fix = f"name one of {', '.join(known)}{nearest(self.split, known)}"
            raise input_error("score: split", f'there is no "{self.split}"', fix)


def _scored(options: ScoreOptions, scoring: Scoring) -> Scored:
    """Scores custom texts, a release against people's ratings, or a release."""
    from empathy_eval.design.provenance import file_of
    from empathy_eval.generation.outcomes import BUILD
    from empathy_eval.raters.judges.annotations import annotations_in
    from empathy_eval.raters.people.human_correlation import score_rated, score_texts
    from empathy_eval.releases.hub.fetch import release_folder

    if options.of_texts:
        return score_texts(
            Path(options.release), options.metrics, options.scores, scoring, lower_is_better=options.lower_is_better, items=options.items,
            ratings=options.ratings, shortcuts=options.shortcuts, ensembles=options.ensembles, annotations=options.annotations,
        )  # fmt: skip
    folder = release_folder(options.release)
    if options.failures is not None:
        return _with_failures(options, folder, scoring)
    annotations = annotations_in(options.annotations, folder) if options.annotations else None
    read_too = [file_of(annotation, BUILD) for annotation in options.annotations]
    if options.ratings is None:
        return _of_release(options, folder, annotations, scoring).beside(read_too)
    return score_rated(
        folder, options.metrics, options.scores, scoring, ratings=options.ratings, split=options.split,
        lower_is_better=options.lower_is_better, items=options.items, shortcuts=options.shortcuts, judges=options.judges,
        annotations=annotations, ensembles=options.ensembles,
    ).beside(read_too)  # fmt: skip


def _of_release(options: ScoreOptions, folder: Path, annotations: ReleaseAnnotations | None, scoring: Scoring) -> ReleaseTables:
    from empathy_eval.evaluation.attacks.registry import find_attacks
    from empathy_eval.evaluation.fairness.fairness import FairnessTest
    from empathy_eval.evaluation.measure import score
    from empathy_eval.raters.judges.attacking import AttackedJudges

    attacks = None if options.attacks is None else partial(find_attacks, list(options.attacks), rules=options.rules)
    fairness = partial(FairnessTest, rules=options.rules) if options.fairness else None
    # Judges are read before scoring, which may take hours.
    judges = AttackedJudges.of(options.annotations, folder, attacks) if attacks else None
    measured = score(
        folder, options.metrics, options.scores, split=options.split, lower_is_better=options.lower_is_better, strict=options.strict,
        items=options.items, shortcuts=options.shortcuts, scoring=scoring, judges=options.judges, annotations=annotations, attacks=attacks,
        fairness=fairness, limit=options.limit,
    )  # fmt: skip
    if options.figure:
        from empathy_eval.reports.charts import draw_accuracies

        draw_accuracies(measured, options.figure)
    if not (judges and measured.attacks):
        return measured
    rows = [*measured.inversion, *(measured.dialogues.inversion if measured.dialogues else ())]
    return replace(measured, attacks=judges.add_to(measured.attacks, {row.metric for row in rows}))


def _with_failures(asked: ScoreOptions, folder: Path, scoring: Scoring) -> Scored:
    """What is measured, and beside it the texts that all scorers place furthest apart, with what judges said of them."""
    from empathy_eval.base.text import ENGLISH
    from empathy_eval.evaluation.external.failures import find_failures, read_item_scores
    from empathy_eval.raters.judges.annotations import reasons_in
    from empathy_eval.raters.people.human_correlation import mean_ratings, shortcuts_of

    with TemporaryDirectory() as temporary:
        items = asked.items or Path(temporary) / "items.parquet"
        measured: Any = _scored(replace(asked, items=items, failures=None), scoring)
        rows, people = measured.inversion if asked.ratings is None else measured.criteria[0].rows, None
        if asked.ratings:
            people, named = mean_ratings(folder, asked.ratings), {str(metric).lower() for metric in asked.metrics}
            # Shortcuts stand beside people unasked: they are no failure of anybody.
            unasked = {shortcut.name for shortcut in shortcuts_of(ENGLISH) if shortcut.name.lower() not in named}
            rows = [row for row in rows if row.metric not in unasked]
        better = {row.metric: row.higher_is_better for row in rows}
        failures = find_failures(folder, read_item_scores(items, better), better, asked.failures or 0, people)
    reasons = reasons_in(asked.annotations, folder, {case.pair_id for case in failures.cases})
    cases = []
    for case in failures.cases:
        keys = {name: (name, case.pair_id, case.variant) for name in case.ranks}
        cases.append(replace(case, reasons={name: reasons[key] for name, key in keys.items() if key in reasons}))
    result: Scored = replace(measured, failures=replace(failures, cases=tuple(cases)))
    return result


def _run(options: Namespace) -> int:
    canary_warnings: list[str] = []
    with display_stages("score"):
        measured = score(**COMMAND.arguments(options), leaked=canary_warnings.append)
    if options.json:
        print(json_text({**measured.to_json(), "canary": canary_warnings}))
    else:
        printed(measured, latex=options.latex, markdown=options.markdown, csv=options.csv)
    print_warnings(canary_warnings)
    return report_faults(measured.faults)


COMMAND = Command(
    score,
    "test whether a metric, a judge or a reward model is fooled",
    "Scores the variants of a release and reports which ones a metric prefers: differences with intervals and p-values, how often the "
    "empathetic variant of a pair ranks higher, and the area under the curve. Separates the effects of stance and closeness. Also measures "
    "at equal length and, in JSON and CSV, by scenario, phase, strategy and manner at equal closeness. If a release has crossed items, "
    "reports how often the reply that fits the context is preferred.",
    {
        "RELEASE": Option(f"the release, {A_RELEASE}; or texts of your own, a .jsonl file; or a folder of replies", type=str),
        "metrics=--metric NAME": "a metric by name or module:name, with optional settings, such as bertscore:layer=5; repeatable",
        "--scores FILE": "a file of scores, .csv, .tsv or .jsonl, with pair_id, variant, score, or with one column per variant; for "
        "crossed items with crossed_id, context, reply, score; repeatable, one row per file",
        "judges=--judge TEACHER/RUBRIC[:CRITERION]": "a judge that annotated the release by a rubric; each criterion is a row, or only "
        "the named one; repeatable",
        "--annotations DIR": "take judges from this annotation folder instead of the release; without --judge, take all of them; "
        "repeatable",
        "--attacks NAME": Option(
            "attack a sample of the replies, and report how often a metric's score rises; all attacks, or only these, by name or "
            "module:name (shuffled, other-dialogue, repeated, flattery, doubled, echo, instruction, names, typing-errors)",
            action="store", nargs="*",
        ),
        "--fairness": "report whether scorers separate the stances equally well in each group of scenarios and in all others, and "
        "whether metrics do so after names from a list are replaced by other names",
        "--rules DIR": "the folder with attacks.yaml and names.yaml, for --attacks and --fairness in a language other than English",
        "--ratings TABLE": "compare all scores with ratings by people: .csv, .tsv or .jsonl with item, rater, rating, or the ratings "
        "table of review import",
        "ensembles=--ensemble KIND:NAMES": "with --ratings: a row that combines others. huffman:NAME,NAME,… averages each row with the "
        "result so far, in the order of their correlation with people on the validation split. mean:NAME,NAME,… is the plain mean. "
        "Everything is then measured on the test split; repeatable",
        "--lower-is-better": "a lower score is better in every file of --scores",
        "--strict": "count a pair that a file or a judge leaves out as wrong in the accuracy",
        "--split {train,validation,test,all}": "measure only this split (default: test if a metric was trained on the release, which a "
        "note states; else all)",
        "--limit N": "for a first look, measure only N pairs, drawn by their ids, without the shortcut audit and crossed items",
        "--failures N": "also show the N texts that the scores, and people (--ratings) or the stance, place furthest apart, with the "
        "reasons of judges, counted by manner, voice, scenario and crisis flag; --json has them in full",
        "--items FILE": "also write every score and verdict to this file, .parquet or .csv",
        "shortcuts=--no-shortcuts": "leave out the shortcut audit, which takes minutes for a full release",
        **CACHE,
        **ENGINE,
        "--json": Option("print everything as JSON", group=ONE_OF),
        "--csv": Option("print everything as CSV, one line per contrast, comparison or shortcut", group=ONE_OF),
        **PAPER,
        "--figure PATH": "also draw the accuracies at equal closeness beside the shortcut line, as PATH.svg and PATH.pdf",
    },
    EXAMPLES,
    factories={"cache": cache_of},
    run=_run,
)  # fmt: skip
