"""A comparison of systems, put together: every figure of every folder, and what can be concluded from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from empathy_eval.base.text import counted, listed
from empathy_eval.design.provenance import File, Provenance, file_of
from empathy_eval.evaluation.inversion.inversion import EXCHANGES, ResamplingSettings
from empathy_eval.generation.outcomes import BUILD
from empathy_eval.metrics.ngrams import Dist
from empathy_eval.metrics.registry import MetricSelection
from empathy_eval.metrics.scoring import PLAIN, Scoring
from empathy_eval.raters.systems.comparing import (
    Compared,
    FigureRow,
    SystemDifference,
    Worth,
    examples_of,
    figure_row,
    gaps_of,
    holm_together,
    parts_of_figure,
    strengths_of,
)
from empathy_eval.raters.systems.figures import (
    LENGTH,
    METRIC,
    PEOPLE,
    SAFETY,
    Field,
    FigureColumn,
    field_of,
    of_checks,
    of_judge,
    of_metrics,
    of_people,
)
from empathy_eval.raters.systems.judging import judged
from empathy_eval.raters.systems.replies import Replied

CHANCE, EXAMPLES, ALPHA = ResamplingSettings(1000, EXCHANGES, 0), 5, 0.05
NOT_MEASURED = "what it is worth on this release was not measured: name the release with --release"


@dataclass(frozen=True)
class Sources:
    """What systems are compared by: folders of annotations, tables of people's ratings, metrics, and what those are worth by name."""

    annotations: Sequence[Path] = ()
    ratings: Sequence[Path] = ()
    metrics: Callable[[str], MetricSelection] | None = None
    worth: Mapping[str, Worth] = field(default_factory=dict)
    scoring: Scoring = PLAIN
    chance: ResamplingSettings = CHANCE


def compared(folders: Sequence[Replied], sources: Sources) -> Compared:
    """All figures of the systems of some folders of replies to one release.

    Raises:
        InputError: if folders, annotations or ratings do not go together, or a metric cannot be had.
    """
    field, chance = field_of(folders), sources.chance
    judges = judged(sources.annotations, folders)
    columns = [column for path in sources.ratings for column in of_people(path, field)]
    columns += [column for folder in judges for column in of_judge(folder)]
    faults, notes = list[str](), [*_lacking(field)]
    if sources.metrics:
        more, made = of_metrics(field, sources.metrics(field.language), sources.scoring)
        columns += more
        faults, notes = [str(one) for one in made.faults], [*notes, *map(str, made.outside)]
    columns += of_checks(field)
    rows = tuple(figure_row(one, field, chance, _worth(one, sources.worth)) for one in columns)
    gaps = tuple(gap for one in columns for gap in holm_together([*gaps_of(one, field, chance)]))
    strengths = [one for folder in judges if folder.header["rubric"]["kind"] == "preference" for one in strengths_of(folder, field, chance)]
    baselines = tuple(name for name in field.systems if any(name in one.configuration["baselines"] for one in folders))
    made_of = Compared(
        field.systems, baselines, len(field.contexts), rows, gaps, tuple(strengths), (), _diversity(field, chance), (),
        notes=tuple(notes), faults=tuple(faults),
    )  # fmt: skip
    main = next((one for one in columns if made_of.main and one.name == made_of.main.name), None)
    shown = [one for one in columns if one.kind not in (SAFETY, METRIC)]
    parts = tuple(part for one in shown for part in parts_of_figure(one, field, chance))
    examples = tuple(examples_of(main, field, EXAMPLES)) if main else ()
    found = replace(made_of, parts=parts, examples=examples, conclusions=tuple(concluded(made_of)), limits=tuple(limits_of(made_of)))
    return found.of(_provenance(folders, sources))


def _provenance(folders: Sequence[Replied], sources: Sources) -> Provenance:
    files: list[File] = [file_of(one.folder, BUILD) for one in folders] + [file_of(one, BUILD) for one in sources.annotations]
    files += [file_of(one) for one in sources.ratings]
    release, chance = folders[0].configuration["release"], sources.chance
    made = Provenance.of(files=files, resamples=chance.resamples, exchanges=chance.exchanges, seed=chance.seed)
    split = "+".join(dict.fromkeys(one.configuration["split"] for one in folders))
    pairs = len({context.pair_id for one in folders for context in one.contexts})
    return replace(made, release=release["name"], version=release["version"], seal=release["seal"], split=split, pairs=pairs, controls=0)


def _worth(column: FigureColumn, known: Mapping[str, Worth]) -> Worth | None:
    return known.get(column.name, Worth(None, None, "untested", NOT_MEASURED)) if column.kind == METRIC else None


def _lacking(field: Field) -> Iterator[str]:
    """What is to be said of systems that did not reply to all contexts."""
    for name in field.systems:
        if left := len(field.contexts) - len(field.replies[name]):
            yield f'"{name}" has no reply to {left} of {counted(len(field.contexts), "context")}; its means are over the others'


def _diversity(field: Field, chance: ResamplingSettings) -> dict[str, dict[str, float]]:
    """Distinct n-grams of the replies to the contexts that all systems answered, over as many words of each."""
    names = [name for name in field.systems if field.replies[name]]
    common = [one for one in field.contexts if all(one.pair_id in field.replies[name] for name in names)]
    if not common:
        return {}
    texts = {name: [field.replies[name][one.pair_id].text or "" for one in common] for name in names}
    found = {}
    for order in (1, 2):
        measure = Dist(order, language=field.language)
        values, words = measure.measure(texts, [one.dialogue_id for one in common], chance.seed)
        found[f"{measure.name} over {words} words"] = {name: round(float(one[0]), 6) for name, one in values.items()}
    return found


def concluded(found: Compared) -> Iterator[str]:
    """What can be concluded of the main figure: who is above whom, and whether that stays so at equal length."""
    main, own = found.main, [name for name in found.systems if name not in found.baselines]
    if main is None:
        yield "Nothing can be concluded on empathy: no person, no judge and no metric has rated these replies."
        return
    means = {cell.system: cell.mean.number for cell in main.cells if cell.mean and cell.system in (own or found.systems)}
    if len(means) < 2:
        yield f"Nothing can be concluded by {main.name}: fewer than two systems have it."
        return
    best = max(means, key=lambda name: means[name] * (1 if main.higher_is_better else -1))
    gaps = {other: gap for gap in found.gaps if gap.figure == main.name and (other := _other(gap, best)) in means}
    apart = [name for name, gap in gaps.items() if _shown(gap)]
    open_ = [name for name in gaps if name not in apart]
    if not open_:
        yield f"By {main.name}, {best} is better than {listed(apart)}; each difference is significant after Holm's correction."
    elif apart:
        yield f"By {main.name}, {best} is better than {listed(apart)}, but not shown to be better than {listed(open_)}."
    else:
        yield f"By {main.name}, no system is shown to be better than another: {best} is highest, and its differences may be chance."
    yield from _by_length(main, best, means)


def _other(gap: SystemDifference, name: str) -> str:
    return gap.other if gap.system == name else gap.system if gap.other == name else ""


def _shown(gap: SystemDifference) -> bool:
    return gap.difference is not None and gap.difference.p_corrected is not None and gap.difference.p_corrected < ALPHA


def _by_length(main: FigureRow, best: str, means: Mapping[str, float]) -> Iterator[str]:
    equal = {cell.system: cell.at_equal_length.number for cell in main.cells if cell.at_equal_length and cell.system in means}
    if len(equal) > 1:
        first = max(equal, key=lambda name: equal[name] * (1 if main.higher_is_better else -1))
        if first == best:
            yield f"{best} stays first when all replies are taken at the same length."
        else:
            yield f"At equal length {first} is first, so length explains part of the order."


def limits_of(found: Compared) -> Iterator[str]:
    """What cannot be concluded."""
    kinds = {one.kind for one in found.figures}
    if PEOPLE not in kinds:
        yield "No people rated these replies, so nothing here shows how people would receive them."
    if below := [one.name for one in found.figures if one.worth and one.worth.place == "below"]:
        are = "is" if len(below) == 1 else "are"
        yield f"{listed(below)} {are} below the shortcut line on this release, so a high value is no sign of empathy."
    if unknown := [one.name for one in found.figures if one.worth and one.worth.place == "untested"]:
        yield f"It is not known what {listed(unknown)} {'is' if len(unknown) == 1 else 'are'} worth on this release."
    if lone := [
        one.name
        for one in found.figures
        if one.kind not in (LENGTH, SAFETY) and any(cell.mean and cell.mean.low is None for cell in one.cells)
    ]:
        yield f"Some means of {listed(lone)} have no interval: there are too few dialogues, or all their values are alike."
    yield "The replies are single turns after conversations of the release; what a whole conversation would be like is not measured."
