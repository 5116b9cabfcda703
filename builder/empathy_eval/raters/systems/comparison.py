"""The comparison of systems: every figure of every folder, and sentences on what can be concluded from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from empathy_eval.base.text import counted, listed
from empathy_eval.design.provenance import Provenance, file_of
from empathy_eval.evaluation.external.custom_means import CHANCE
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.results import correct_p_values
from empathy_eval.generation.outcomes import BUILD
from empathy_eval.metrics.ngrams import Dist
from empathy_eval.metrics.registry import MetricSelection
from empathy_eval.metrics.scoring import PLAIN, Scoring
from empathy_eval.raters.systems import figures, results
from empathy_eval.raters.systems.figures import LENGTH, METRIC, PEOPLE, SAFETY, RepliesBySystem
from empathy_eval.raters.systems.replies import Replied, read_reply_annotations
from empathy_eval.raters.systems.results import FigureRow, MetricWorth, SystemComparison

EXAMPLES, ALPHA = 5, 0.05
UNTESTED = MetricWorth(None, None, "untested", "what it is worth on this release was not measured: name the release with --release")


@dataclass(frozen=True)
class Sources:
    """Sources of figures: folders of annotations, tables of people's ratings, and metrics with their worth by name."""

    annotations: Sequence[Path] = ()
    ratings: Sequence[Path] = ()
    metrics: MetricSelection | None = None
    worth: Mapping[str, MetricWorth] = field(default_factory=dict)
    scoring: Scoring = PLAIN
    chance: ResamplingSettings = CHANCE


def compare_systems(folders: Sequence[Replied], sources: Sources) -> SystemComparison:
    """All figures of the systems of some folders of replies to one release.

    Raises:
        InputError: if folders, annotations or ratings do not go together, or a metric is not available.
    """
    replies, chance = figures.join_folders(folders), sources.chance
    judges = read_reply_annotations(sources.annotations, folders)
    columns = [column for path in sources.ratings for column in figures.people_columns(path, replies)]
    columns += [column for folder in judges for column in figures.judge_columns(folder)]
    notes, faults = list(_missing_replies(replies)), list[str]()
    if sources.metrics:
        more, scores = figures.metric_columns(replies, sources.metrics, sources.scoring)
        columns += more
        notes, faults = [*notes, *map(str, scores.outside)], [*map(str, scores.faults)]
    columns += figures.check_columns(replies)
    worth = {column.name: sources.worth.get(column.name, UNTESTED) for column in columns if column.kind == METRIC}
    gaps = [gap for column in columns for gap in correct_p_values(results.paired_differences(column, replies, chance))]
    split = [column for column in columns if column.kind not in (SAFETY, METRIC)]
    preferences = [folder for folder in judges if folder.kind == "preference"]
    baselines = {name for folder in folders for name in folder.configuration["baselines"]}
    comparison = SystemComparison(
        replies.systems, tuple(name for name in replies.systems if name in baselines), len(replies.contexts),
        tuple(results.figure_row(column, replies, chance, worth.get(column.name)) for column in columns), tuple(gaps),
        tuple(row for folder in preferences for row in results.strengths(folder, replies, chance)),
        tuple(part for column in split for part in results.part_means(column, replies, chance)),
        _diversity(replies, chance), (), notes=tuple(notes), faults=tuple(faults),
    )  # fmt: skip
    main = [column for column in columns if comparison.main and column.name == comparison.main.name][:1]
    examples = tuple(row for column in main for row in results.examples(column, replies, EXAMPLES))
    sentences, limits = tuple(conclusions(comparison)), tuple(_limits(comparison))
    return replace(comparison, examples=examples, conclusions=sentences, limits=limits).of(_provenance(folders, sources))


def _provenance(folders: Sequence[Replied], sources: Sources) -> Provenance:
    files = [file_of(path, BUILD) for path in (*(folder.folder for folder in folders), *sources.annotations)]
    files += [file_of(path) for path in sources.ratings]
    release, chance = folders[0].configuration["release"], sources.chance
    provenance = Provenance.of(files=files, resamples=chance.resamples, exchanges=chance.exchanges, seed=chance.seed)
    split = "+".join(dict.fromkeys(folder.configuration["split"] for folder in folders))
    pairs = len({context.pair_id for folder in folders for context in folder.contexts})
    seal = release["seal"]
    return replace(provenance, release=release["name"], version=release["version"], seal=seal, split=split, pairs=pairs, controls=0)


def _missing_replies(replies: RepliesBySystem) -> Iterator[str]:
    for name, some in replies.replies.items():
        if missing := len(replies.contexts) - len(some):
            yield f'"{name}" has no reply to {missing} of {counted(len(replies.contexts), "context")}; its means are over the others'


def _diversity(replies: RepliesBySystem, chance: ResamplingSettings) -> dict[str, dict[str, float]]:
    """Distinct n-grams of the replies to the contexts that all systems answered, over as many words of each."""
    answered = {name: some for name, some in replies.replies.items() if some}
    common = [context for context in replies.contexts if all(context.pair_id in some for some in answered.values())]
    texts = {name: [some[context.pair_id].text or "" for context in common] for name, some in answered.items()}
    diversity = {}
    for order in (1, 2) if common else ():
        measure = Dist(order, language=replies.language)
        values, words = measure.measure(texts, [context.dialogue_id for context in common], chance.seed)
        diversity[f"{measure.name} over {words} words"] = {name: round(float(value[0]), 6) for name, value in values.items()}
    return diversity


def conclusions(comparison: SystemComparison) -> Iterator[str]:
    """Which system is best by the main figure, of which others that is significant, and whether it stays so at equal length."""
    main, own = comparison.main, [name for name in comparison.systems if name not in comparison.baselines]
    if main is None:
        yield "Nothing can be concluded on empathy: no person, no judge and no metric has rated these replies."
        return
    sign, names = 1 if main.higher_is_better else -1, own or comparison.systems
    means = {cell.system: sign * cell.mean.number for cell in main.cells if cell.mean and cell.system in names}
    if len(means) < 2:
        yield f"Nothing can be concluded by {main.name}: fewer than two systems have it."
        return
    best = max(means, key=means.__getitem__)
    p_of = dict[str, float]()
    for gap in comparison.gaps:
        if gap.figure == main.name and best in (gap.system, gap.other):
            p = gap.difference.p_corrected if gap.difference else None
            p_of[gap.other if gap.system == best else gap.system] = 1.0 if p is None else p
    worse = [name for name, p in p_of.items() if name in means and p < ALPHA]
    rest = [name for name in p_of if name in means and name not in worse]
    if not rest:
        yield f"By {main.name}, {best} is better than {listed(worse)}; each difference is significant after Holm's correction."
    elif worse:
        yield f"By {main.name}, {best} is better than {listed(worse)}, but not shown to be better than {listed(rest)}."
    else:
        yield f"By {main.name}, no system is shown to be better than another: {best} is highest, and its differences may be chance."
    equal = {cell.system: sign * cell.at_equal_length.number for cell in main.cells if cell.at_equal_length and cell.system in means}
    if len(equal) > 1 and (first := max(equal, key=equal.__getitem__)) == best:
        yield f"{best} stays first of these systems when all replies are taken at the same length."
    elif len(equal) > 1:
        yield f"At equal length {first} is first, so length explains part of the order."


def _limits(comparison: SystemComparison) -> Iterator[str]:
    """What cannot be concluded."""

    def names(test: Callable[[FigureRow], object]) -> list[str]:
        return [row.name for row in comparison.figures if test(row)]

    if not names(lambda row: row.kind == PEOPLE):
        yield "No people rated these replies, so nothing here shows how people would receive them."
    if below := names(lambda row: row.worth and row.worth.place == "below"):
        are = "is" if len(below) == 1 else "are"
        yield f"{listed(below)} {are} below the shortcut line on this release, so a high value is no sign of empathy."
    if unknown := names(lambda row: row.worth and row.worth.place == "untested"):
        yield f"It is not known what {listed(unknown)} {'is' if len(unknown) == 1 else 'are'} worth on this release."
    unsure = [row for row in comparison.figures if any(cell.mean and cell.mean.low is None for cell in row.cells)]
    if without := [row.name for row in unsure if row.kind not in (LENGTH, SAFETY)]:
        yield f"Some means of {listed(without)} have no interval: there are too few dialogues, or all their values are alike."
    yield "The replies are single turns after conversations of the release; what a whole conversation would be like is not measured."
