"""All tables of a release beside each other: first those that are made of scores, then those that read the texts again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import SPLITS, column, read_manifest
from empathy_eval.design.provenance import Provenance, file_of
from empathy_eval.evaluation.attacks.attacked import MOST, attack_table
from empathy_eval.evaluation.attacks.registry import Attacks
from empathy_eval.evaluation.crossed.crossed import PrecomputedCrossedScores
from empathy_eval.evaluation.crossed.shortcuts import crossed_tables, read_given
from empathy_eval.evaluation.external.judges import ReleaseAnnotations, judged
from empathy_eval.evaluation.external.score_file import PrecomputedScores, read_scores
from empathy_eval.evaluation.fairness.fairness import FairnessTest
from empathy_eval.evaluation.inversion.evaluation import AllScores, Evaluation, dialogue_table
from empathy_eval.evaluation.inversion.inversion import EXCHANGES, ResamplingSettings
from empathy_eval.evaluation.inversion.results import DialogueTable, ReleaseTables, with_new
from empathy_eval.evaluation.inversion.text_scores import check_items, write_items
from empathy_eval.evaluation.shortcuts.shortcuts import audit_of
from empathy_eval.evaluation.shortcuts.texts import Embedding
from empathy_eval.evaluation.wording import listed
from empathy_eval.metrics.protocol import SEEDS, Metric, TrainedMetric
from empathy_eval.metrics.registry import MetricSelection, find
from empathy_eval.metrics.scoring import PLAIN, Scoring


@dataclass(frozen=True)
class ExtraMeasurements:
    """What is measured beside the inversion: attacks on at most so many pairs, fairness, and shortcuts, with or without an embedding.

    ``given`` are scores of crossed items from elsewhere.
    """

    attacks: Attacks | None = None
    most: int = MOST
    fairness: FairnessTest | None = None
    shortcuts: bool = True
    embedding: Embedding | None = None
    given: Sequence[PrecomputedCrossedScores] = ()

    def told(self, what: str) -> list[str]:
        """What is told of scores of crossed items in tables that are of pairs."""
        return [f"{one.path.stem}: {what}, as its scores are of crossed items" for one in self.given]


def of_scores(stand: Evaluation, scores: AllScores, beside: ExtraMeasurements) -> dict[str, Any]:
    """The tables that are made of scores, by their names in ``ReleaseTables``: who holds the scores can forget them then."""
    attacks, fairness = beside.attacks, beside.fairness
    return {
        "attacks": attack_table(stand, scores.rated, attacks, beside.most, beside.told("not attacked")) if attacks else None,
        "fairness": fairness.tables(scores.rated, beside.told("is not asked")) if fairness else None,
        **stand.tables(scores),
    }


def of_texts(stand: Evaluation, tables: dict[str, Any], beside: ExtraMeasurements) -> dict[str, Any]:
    """The tables with those that read the texts again, and with all faults; a first look at some pairs has none of them."""
    whole = stand.chance.limit is None
    audit = audit_of(stand, beside.embedding) if whole and beside.shortcuts else None
    crossed, faults = None, tables["faults"]
    if whole:
        crossed, new = crossed_tables(stand, faults, beside.given, shortcuts=beside.shortcuts, embedding=beside.embedding)
        faults = with_new(faults, new)
    late = [one.faults for one in (tables["fairness"], tables["attacks"]) if one]
    return {**tables, "audit": audit, "crossed": crossed, "faults": with_new(faults, *late)}


# The name of all splits, and what the ids of curated seed dialogues have.
ALL, SEED = "all", "-seed-"
LEFT_OUT = "without the shortcut audit, crossed items, whole dialogues and texts from before the contrast checks"
FIRST_LOOK = f"a first look: {{}} pairs, drawn by their ids, {LEFT_OUT}"


def score(
    release_dir: Path, names: Sequence[str] = (), scores: Sequence[Path] = (), *, split: str | None = None, lower_is_better: bool = False,
    strict: bool = False, items: Path | None = None, shortcuts: bool = True, scoring: Scoring = PLAIN, judges: Sequence[str] = (),
    annotations: ReleaseAnnotations | None = None, attacks: Callable[..., Attacks] | None = None,
    fairness: Callable[[Evaluation], FairnessTest] | None = None, limit: int | None = None,
) -> ReleaseTables:  # fmt: skip
    """Puts metrics, by name or ``module:name``, files of scores and judges on the stand of the report, over all splits or one.

    Without a split that is ``test`` where a metric was trained on the release, else all. A ``limit`` is for a first look at so many pairs.
    Judges are those of ``annotations`` (none named: all), or of what the release holds; no model is asked. With ``strict`` a pair that a
    file or a judge leaves out counts as wrong in its accuracy. ``items`` is a file for the scores of every text and the verdicts of every
    pair, parquet or CSV. The audit of ``shortcuts`` is over the same pairs, without an embedding, as is what is told of crossed items; a
    file of scores may be of these. ``attacks`` gives those for a ``language``, ``fairness`` what asks a stand of it.

    Raises:
        InputError: if the folder is no release, a metric or a judge is unknown, a file of scores is faulty or has the name of another
            row, or nothing is left to score.
    """
    configuration = (manifest := read_manifest(release_dir))["configuration"]
    chance = ResamplingSettings(configuration["report"]["bootstrap"], EXCHANGES, configuration["seed"], limit)
    if items:
        check_items(items)
    language = language_of(configuration)
    found = find(names, configuration["report"], language=language) if names else MetricSelection((), (), language)
    splits, notes = splits_measured(split, found.metrics, release_dir, manifest["name"])
    chosen, found_judges = attacks(language=language) if attacks else None, judged(release_dir, judges, annotations)
    ruled, wholes = ([one for one in found_judges if one.whole is whole] for whole in (False, True))
    files, (scores, of_items) = scores, read_given(release_dir, scores, higher_is_better=not lower_is_better)
    _refuse_items(of_items if limit is not None else ())
    for some in (scores, [one.path for one in of_items]):
        named_apart([*(one.name for one in (*found.metrics, *ruled, *wholes)), *(one.name for one in found.diversities)], some)
    given = [*given_in(release_dir, scores, higher_is_better=not lower_is_better), *ruled]
    stand = Evaluation(release_dir, replace(found, metrics=(*found.metrics, *given)), chance, scoring, splits=splits, strict=strict)
    _refuse_unscored(stand, release_dir, dict(zip([*map(str, scores), *(one.name for one in ruled)], given, strict=True)))
    notes += [FIRST_LOOK.format(len(stand.pairs))] if limit is not None else []
    dialogues = _of_dialogues(stand, wholes)
    beside = ExtraMeasurements(chosen, fairness=fairness(stand) if fairness else None, shortcuts=shortcuts, given=of_items)
    tables = of_texts(stand, _of_scores(stand, beside, items), beside)
    asked = {"lower_is_better": lower_is_better, "shortcuts": shortcuts, "fairness": fairness is not None, **_named(wholes)}
    return ReleaseTables(**tables, dialogues=dialogues, notes=tuple(notes), provenance=_provenance(stand, files, chosen, asked))


def _named(wholes: Sequence[PrecomputedScores]) -> dict[str, list[str]]:
    """What a provenance says of judges of whole dialogues, where there are any."""
    return {"judges_of_dialogues": [one.name for one in wholes]} if wholes else {}


def _refuse_items(scores: Sequence[PrecomputedCrossedScores]) -> None:
    """Refuses scores of crossed items where only some pairs are measured."""
    if scores:
        raise input_error(scores[0].path, "holds scores of crossed items, but --limit is for pairs", "leave out one of the two")


def _of_dialogues(stand: Evaluation, judges: Sequence[PrecomputedScores]) -> DialogueTable | None:
    """The table of judges of whole dialogues, of which a first look at some pairs has none; a judge without a score is refused."""
    table = dialogue_table(stand, judges) if stand.chance.limit is None else None
    silent = {judge.name for judge in judges} - {row.metric for row in table.inversion} if table else set()
    what = f"holds no score of a whole dialogue in {', '.join(stand.splits)}"
    refuse([Problem(name, what, "leave --split out, or name another") for name in sorted(silent)])
    return table


def _of_scores(stand: Evaluation, beside: ExtraMeasurements, items: Path | None) -> dict[str, Any]:
    """The tables that are made of scores, which are forgotten then; and the file of these."""
    scores = stand.scores()
    if items:
        write_items(items, stand.pairs, stand.controls, scores.rated)
    return of_scores(stand, scores, beside)


def splits_measured(
    split: str | None, metrics: Sequence[Metric], release_dir: Path, name: str, *, default: Sequence[str] = ("test",)
) -> tuple[Sequence[str], list[str]]:
    """The splits that are measured, and what is said of metrics that were trained on the release of that name.

    With such a metric ``default`` is measured where no split is named, if it holds pairs.
    """
    seen = {one.name: trained for one in metrics if (trained := _trained_on(one, release_dir, name))}
    if split is None and seen and column(release_dir, "pairs", "pair_id", default):
        splits, chosen = tuple(default), True
    else:
        splits, chosen = SPLITS if split in (None, ALL) else (str(split),), False
    notes = []
    for metric, trained in seen.items():
        said = f"{metric} was trained on {listed(trained)} of this release"
        if both := [one for one in trained if one in splits]:
            notes.append(f"warning: {said}: no figure over {listed(both)} shows how good it is")
        elif chosen:
            notes.append(f"{said}: measured on {listed(splits)} alone; --split {ALL} measures all")
    return splits, notes


def _trained_on(metric: Metric, release_dir: Path, name: str) -> list[str]:
    """The splits of a release that a metric was trained on, as far as it says so."""
    told: Mapping[str, Sequence[str]] = metric.trained_on if isinstance(metric, TrainedMetric) else {}
    found = set(told.get(name, ()))
    if seeds := [one for one in told.get(SEEDS, ()) if one not in found]:
        found |= {one for one in seeds if any(SEED in pair for pair in column(release_dir, "pairs", "pair_id", [one]))}
    return [one for one in SPLITS if one in found]


def given_in(release_dir: Path, scores: Sequence[Path], *, higher_is_better: bool) -> list[PrecomputedScores]:
    """What files of scores give the pairs of a release.

    Raises:
        InputError: for a faulty file.
    """
    known, controls = (column(release_dir, config, "pair_id") if scores else [] for config in ("pairs", "controls"))
    return [read_scores(path, known, controls, higher_is_better=higher_is_better) for path in scores]


def _provenance(stand: Evaluation, files: Sequence[Path], chosen: Attacks | None, asked: Mapping[str, Any]) -> Provenance:
    """What the numbers of a stand are of: its pairs, the files of scores that were read beside, its metrics, and how chance is reckoned."""
    found, of_files = stand.found, {one.stem for one in files}
    metrics = [*(one.name for one in found.metrics if not isinstance(one, PrecomputedScores)), *(one.name for one in found.diversities)]
    judges = [one.name for one in found.metrics if isinstance(one, PrecomputedScores) and one.name not in of_files]
    attacks = [one.name for one in chosen.some] if chosen else []
    how = {"metrics": metrics, "judges": judges, "strict": stand.strict, "attacks": attacks, **asked, **asdict(stand.chance)}
    return Provenance.of(stand.folder, stand.splits, (len(stand.pairs), len(stand.controls)), map(file_of, files), **how)


def _refuse_unscored(stand: Evaluation, release_dir: Path, given: Mapping[str, PrecomputedScores]) -> None:
    """Refuses splits that hold no pairs, and files and judges, by where they are from, that hold no score of one."""
    splits, fix = ", ".join(stand.splits), "leave --split out, or name another"
    if not len(stand.pairs):
        raise input_error(release_dir, f"holds no pairs in {splits}", fix)
    what = f"holds no score of a pair in {splits}"
    refuse(Problem(place, what, fix) for place, one in given.items() if one.pair_ids.isdisjoint(stand.pairs.pair_ids))


def named_apart(metrics: Iterable[str], scores: Sequence[Path]) -> None:
    """Refuses a file whose row would have the name of another."""
    known, problems = set(metrics), list[Problem]()
    for path in scores:
        if path.stem in known:
            problems.append(Problem(str(path), f'there is another row with the name "{path.stem}"', "give the file a name of its own"))
        known.add(path.stem)
    refuse(problems)
