"""``score``: put a metric or a judge's scores on the stand of the report, over texts of one's own, or beside what people rated."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

from empathy_eval.base.errors import input_error, nearest
from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.options import A_RELEASE, add_cache, add_engine, cache_of, check_count, scoring_with, told_of, warned_of, whole
from empathy_eval.commands.progress import staged
from empathy_eval.commands.score_tables import score_csv

if TYPE_CHECKING:
    from empathy_eval.evaluation.external.custom_means import OwnMeasured
    from empathy_eval.evaluation.inversion.results import Measured
    from empathy_eval.raters.people.against import AgainstPeople

    Scored = Measured | OwnMeasured | AgainstPeople

EXAMPLES = """\
examples:
  empathy-eval score build/demo/release --metric rouge-l --metric vader
  empathy-eval score build/demo/release --metric rouge-l --limit 100
  empathy-eval score build/demo/release --metric my_module:MyMetric --json
  empathy-eval score build/demo/release --scores judge.csv --scores reward.csv --split test
  empathy-eval score build/demo/release --annotations build/judged --judge my-model/teacher:guidance
  empathy-eval score build/demo/release --metric vader --attacks doubled flattery
  empathy-eval score build/demo/release --metric vader --fairness
  empathy-eval score replies.jsonl --metric vader
  empathy-eval score replies.jsonl --metric vader --ratings ratings.csv
  empathy-eval score build/demo/release --metric rouge-l --ratings reviews.ratings.csv
  empathy-eval score replies.jsonl --metric vader --metric length --ratings ratings.csv --ensemble huffman:vader,length

judge.csv has the columns pair_id, variant, score, and its row is called "judge". Pairs that it leaves out are counted, and with --strict
they count as wrong. A file with crossed_id, context, reply, score is for crossed items, which have a table of their own:
docs/crossed_scores.md. docs/metrics.md shows a metric of your own in 15 lines. docs/judges.md explains judges; score itself asks no model.
replies.jsonl has one line {"context": …, "reply": …} per text; item, system, reference and split are optional: docs/own_texts.md.
"""
RATINGS = "compare all scores with ratings by people: .csv, .tsv or .jsonl with item, rater, rating, or the ratings table of review import"
# What belongs to a release alone.
STAND = ("split", "strict", "judges", "annotations", "attacks", "fairness", "limit")
# What belongs to ratings alone, and what ratings do not go with.
BESIDE_PEOPLE, NOT_BESIDE_PEOPLE = ("ratings", "ensembles"), ("strict", "attacks", "fairness", "limit")
SOURCE = f"the release, {A_RELEASE}; or texts of your own, a .jsonl file"
METRIC = "a metric by name or module:name, with optional settings, such as bertscore:layer=5; repeatable"
FILE = (
    "a file of scores, .csv, .tsv or .jsonl, with pair_id, variant, score, or with one column per variant; for crossed items with "
    "crossed_id, context, reply, score; repeatable, one row per file"
)
JUDGE = "a judge that annotated the release by a rubric; each criterion is a row, or only the named one; repeatable"
ENSEMBLE = (
    "with --ratings: a row that combines others. huffman:NAME,NAME,… averages each row with the result so far, in the order of their "
    "correlation with people on the validation split. mean:NAME,NAME,… is the plain mean. Everything is then measured on the test split; "
    "repeatable"
)
ATTACKS = (
    "attack a sample of the replies, and report how often a metric's score rises; all attacks, or only these, by name or module:name "
    "(shuffled, other-dialogue, repeated, flattery, doubled, echo, instruction, names, typing-errors)"
)
FAIRNESS = (
    "report whether scorers separate the stances equally well in each group of scenarios and in all others, and whether metrics do so "
    "after names from a list are replaced by other names"
)
SPLIT = "measure only this split (default: test if a metric was trained on the release, which a note states; else all)"
LIMIT = "for a first look, measure only N pairs, drawn by their ids, without the shortcut audit and crossed items"
RULES = "the folder with attacks.yaml and names.yaml, for --attacks and --fairness in a language other than English"
ANNOTATIONS = "take judges from this annotation folder instead of the release; without --judge, take all of them; repeatable"


@takes_paths
def score(
    release: str | Path, metrics: Sequence[Any] = (), scores: Sequence[str | Path] = (), *, split: str | None = None,
    lower_is_better: bool = False, strict: bool = False, cache: str | Path | bool = True, engine: str = "local",
    ray_address: str | None = None, items: str | Path | None = None, shortcuts: bool = True,
    progress: Callable[[int], None] | None = None, judges: Sequence[str] = (), annotations: Sequence[str | Path] = (),
    ratings: str | Path | None = None, ensembles: Sequence[str] = (), attacks: Sequence[Any] | None = None, fairness: bool = False,
    rules: str | Path | None = None, limit: int | None = None, leaked: Callable[[str], object] = warn,
) -> Scored:  # fmt: skip
    """Puts metrics, files of scores and judges on the stand of the report, over all splits of a release or one.

    The release is a folder, or a Hub name such as ``org/name@v1.0.0``. A metric is a name or ``module:name``, with settings as in
    ``bertscore:layer=5``, or an object; a file of scores is CSV, TSV or JSONL with ``pair_id``, ``variant``, ``score``, or a column a
    variant; one with ``crossed_id``, ``context``, ``reply`` (1 or 2 each), ``score`` is of crossed items. A judge is named as
    ``teacher/rubric``, or ``teacher/rubric:criterion`` for one row of it, and is found in the folders of ``annotate`` that ``annotations``
    names (then no name means all), or in the release; nothing is asked. With ``strict`` a pair that a file or a judge leaves out is wrong
    in its accuracy. ``items`` is a file, parquet or CSV, for the scores of every text and the verdicts of every pair. ``shortcuts`` asks
    for the shortcut audit, without an embedding, ``fairness`` for every scorer by group of scenarios, and metrics where names are others.
    ``cache`` is where costly scores are kept (True: in the user's cache folder, False: nowhere). ``attacks`` are names, ``module:name`` or
    objects with which a sample of the replies is attacked, none of them (an empty list) all that are built in; their fixed texts are
    English, or those of the folder ``rules``. Without a ``split`` it is ``test`` where a metric was trained on the release, else ``all``.
    With a ``limit`` so many pairs are measured, drawn by their ids, for a first look.

    What it gives is a ``Measured``. In the place of the release there may be a ``.jsonl`` file of texts of one's own, a line
    ``{"context": …, "reply": …}`` each; then it gives means by system, an ``OwnMeasured``. With ``ratings`` all scores, and the shortcuts,
    are put beside what people rated, an ``AgainstPeople``: a table of ``item``, ``rater``, ``rating``, or what ``review import`` wrote.
    ``ensembles`` are rows of others (``huffman:name,name``, ``mean:name,name``). ``leaked`` is told of outputs that hold the canary.

    Raises:
        InputError: if it is no release or cannot be had, a metric or a judge is unknown, a file is faulty, or an ensemble cannot be fitted.
    """
    asked = {
        "split": split, "strict": strict, "judges": judges, "annotations": annotations, "lower_is_better": lower_is_better,
        "items": Path(items) if items else None, "shortcuts": shortcuts, "ratings": Path(ratings) if ratings else None,
        "ensembles": ensembles, "limit": limit, **_trials(attacks, fairness, rules),
    }  # fmt: skip
    if not (metrics or scores or judges or annotations or (ratings and shortcuts)):
        raise input_error("score", "nothing to score with", "give --metric NAME, --scores FILE or both, or --judge TEACHER/RUBRIC")
    _refuse_unfit(_of_own(release), asked)
    with scoring_with(cache, engine, ray_address, progress) as scoring:
        return _told(_found(release, metrics, [Path(one) for one in scores], scoring, asked), release, scores, asked, leaked)


def _told(
    found: Scored, release: str | Path, scores: Sequence[str | Path], asked: dict[str, Any], leaked: Callable[[str], object]
) -> Scored:
    """What was found, after outputs that hold the canary are told of: what is scored was read by now, so that nothing of it is faulty."""
    from empathy_eval.raters.judges.canary_scan import heard_in_scores
    from empathy_eval.releases.hub.fetch import release_folder

    source = Path(release) if _of_own(release) else release_folder(release)
    folders = [Path(one) for one in asked["annotations"]]
    for one in heard_in_scores(source, [Path(one) for one in scores], folders, judged=bool(asked["judges"]) and not folders):
        leaked(one)
    return found


def _trials(attacks: Sequence[Any] | None, fairness: bool, folder: str | Path | None) -> dict[str, Any]:
    """What gives the attacks and the tables of fairness, where they are asked for; rules for neither are refused."""
    from empathy_eval.evaluation.attacks.registry import find_attacks
    from empathy_eval.evaluation.fairness.fairness import Fairness

    if folder and attacks is None and not fairness:
        what = f'"{folder}" applies to attacks and fairness, but neither is requested'
        raise input_error("score: rules", what, "add --attacks or --fairness, or leave the rules out")
    rules = Path(folder) if folder else None
    return {
        "attacks": None if attacks is None else partial(find_attacks, list(attacks), rules=rules),
        "fairness": partial(Fairness, rules=rules) if fairness else None,
    }


def _found(release: str | Path, metrics: Sequence[Any], files: Sequence[Path], scoring: Any, asked: dict[str, Any]) -> Scored:
    """What is asked for, of a release or of texts of one's own."""
    from empathy_eval.design.provenance import file_of
    from empathy_eval.evaluation.external.score import score
    from empathy_eval.generation.build_folder import BUILD
    from empathy_eval.raters.judges.annotations import annotations_in
    from empathy_eval.raters.judges.attacking import Judges
    from empathy_eval.raters.people.human_correlation import score_rated, score_texts
    from empathy_eval.releases.hub.fetch import release_folder

    if _of_own(release):
        return score_texts(Path(release), metrics, files, scoring, **{name: one for name, one in asked.items() if name not in STAND})
    folder, folders = release_folder(release), [Path(one) for one in asked["annotations"]]
    asked, read_too = (
        {**asked, "annotations": annotations_in(folders, folder) if folders else None},
        [file_of(one, BUILD) for one in folders],
    )
    if asked["ratings"]:
        rated = {name: one for name, one in asked.items() if name not in NOT_BESIDE_PEOPLE}
        return score_rated(folder, metrics, files, scoring, **rated).beside(read_too)
    # Judges are looked at before anything is scored: that may take hours.
    under = Judges.of(folders, folder, asked["attacks"]) if asked["attacks"] else None
    put = {name: one for name, one in asked.items() if name not in BESIDE_PEOPLE}
    measured = score(folder, metrics, files, scoring=scoring, **put).beside(read_too)
    if not (under and measured.attacks):
        return measured
    return replace(measured, attacks=under.beside(measured.attacks, {row.metric for row in measured.inversion}))


def _refuse_unfit(own: bool, asked: dict[str, Any]) -> None:
    """Refuses what belongs to the stand of a release where something else is asked for, and splits that there are not."""
    from empathy_eval.design.dataset import SPLITS
    from empathy_eval.evaluation.external.score import ALL

    if asked["limit"] is not None:
        check_count("score: limit", asked["limit"], 1)
    known = (*SPLITS, ALL)
    unfit = [name for name in STAND if asked[name] and (own or (asked["ratings"] and name in NOT_BESIDE_PEOPLE))]
    if unfit:
        what = f"{' and '.join(unfit)} cannot be used with {'texts of your own' if own else 'ratings'}"
        raise input_error("score", what, f"leave {'them' if len(unfit) > 1 else 'it'} out")
    if asked["ensembles"] and not asked["ratings"]:
        raise input_error("score: ensembles", "there are no ratings to fit an ensemble to", "give --ratings TABLE, or leave ensembles out")
    if asked["ensembles"] and asked["split"]:
        fix = "leave the split out: ensembles are fitted on validation, and everything is measured on test"
        raise input_error("score: split", f'"{asked["split"]}" cannot be used with ensembles', fix)
    if asked["split"] not in (None, *known):
        fix = f"name one of {', '.join(known)}{nearest(asked['split'], known)}"
        raise input_error("score: split", f'there is no "{asked["split"]}"', fix)


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "score",
        help="test whether a metric, a judge or a reward model is fooled",
        description="Scores the variants of a release and reports which ones a metric prefers: differences with intervals and p-values, "
        "how often the empathetic variant of a pair ranks higher, and the area under the curve. Separates the effects of stance and "
        "closeness. Also measures at equal length and, in JSON and CSV, by scenario, phase, strategy and manner at equal closeness. If a "
        "release has crossed items, reports how often the reply that fits the context is preferred.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("release", metavar="RELEASE", help=SOURCE)
    verb.add_argument("--metric", action="append", default=[], metavar="NAME", help=METRIC)
    verb.add_argument("--scores", type=Path, action="append", default=[], metavar="FILE", help=FILE)
    verb.add_argument("--judge", action="append", default=[], metavar="TEACHER/RUBRIC[:CRITERION]", help=JUDGE)
    verb.add_argument("--annotations", type=Path, action="append", default=[], metavar="DIR", help=ANNOTATIONS)
    verb.add_argument("--attacks", nargs="*", metavar="NAME", help=ATTACKS)
    verb.add_argument("--fairness", action="store_true", help=FAIRNESS)
    verb.add_argument("--rules", type=Path, metavar="DIR", help=RULES)
    verb.add_argument("--ratings", type=Path, metavar="TABLE", help=RATINGS)
    verb.add_argument("--ensemble", action="append", default=[], metavar="KIND:NAMES", help=ENSEMBLE)
    verb.add_argument("--lower-is-better", action="store_true", help="a lower score is better in every file of --scores")
    verb.add_argument("--strict", action="store_true", help="count a pair that a file or a judge leaves out as wrong in the accuracy")
    verb.add_argument("--split", choices=("train", "validation", "test", "all"), help=SPLIT)
    verb.add_argument("--limit", type=whole, metavar="N", help=LIMIT)
    verb.add_argument("--items", type=Path, metavar="FILE", help="also write every score and verdict to this file, .parquet or .csv")
    verb.add_argument("--no-shortcuts", action="store_true", help="leave out the shortcut audit, which takes minutes for a full release")
    add_cache(verb)
    add_engine(verb)
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as JSON")
    form.add_argument("--csv", action="store_true", help="print everything as CSV, one line per contrast, comparison or shortcut")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    heard: list[str] = []
    with staged("score"):
        measured = score(
            options.release, options.metric, options.scores, split=options.split, lower_is_better=options.lower_is_better,
            strict=options.strict, items=options.items, shortcuts=not options.no_shortcuts, cache=cache_of(options),
            engine=options.engine, ray_address=options.ray_address, judges=options.judge,
            annotations=options.annotations, ratings=options.ratings, ensembles=options.ensemble, attacks=options.attacks,
            rules=options.rules, fairness=options.fairness, limit=options.limit, leaked=heard.append,
        )  # fmt: skip
    if options.json:
        print(json_text({**measured.to_json(), "canary": heard}))
    else:
        print(score_csv(measured) if options.csv else measured)
    warned_of(heard)
    return told_of(measured.faults)


def _of_own(release: str | Path) -> bool:
    """Whether it is a file of texts, and no release."""
    return Path(release).suffix.lower() == ".jsonl"
