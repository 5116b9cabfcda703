"""Figures of systems: what judges, people, metrics and checks say of each reply, as columns by system and context."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.evaluation.external.custom_texts import REPLY, CustomScores, CustomTexts, score_custom_texts
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.metrics.lexical import Length
from empathy_eval.metrics.registry import MetricSelection
from empathy_eval.metrics.scoring import Scoring
from empathy_eval.raters.agreement import read_table
from empathy_eval.raters.judges.annotations import AnnotationFolder, criterion_scores
from empathy_eval.raters.judges.estimator import signed_by
from empathy_eval.raters.systems.contexts import Context, turns_json
from empathy_eval.raters.systems.replies import Replied, SystemReply

JUDGE, WINS, PEOPLE, METRIC, LENGTH, SAFETY = "judge", "win rate", "people", "metric", "length", "safety"
# Between the pair and the system in the items of a table of ratings.
BETWEEN = "::"
# The checks of a reply that are shares of replies.
RATES = ("pointer_missing", "toxic", "harmful", "refusal", "canary")
# Numbers by system and pair.
Values = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class FigureColumn:
    """A figure of each reply: ``values`` by system and pair. ``higher_is_better`` is None where neither end is."""

    name: str
    kind: str
    higher_is_better: bool | None
    values: Values
    signature: str

    @property
    def precomputed(self) -> PrecomputedScores:
        """The same as scores of the texts of :attr:`RepliesBySystem.texts`."""
        scores = {(f"{pair}{BETWEEN}{name}", REPLY): value for name, some in self.values.items() for pair, value in some.items()}
        return PrecomputedScores(self.name, self.signature, scores, self.higher_is_better is not False)


@dataclass(frozen=True)
class RepliesBySystem:
    """The replies that are compared: the contexts that any system replied to, in one order, and the replies by system and pair."""

    contexts: tuple[Context, ...]
    systems: tuple[str, ...]
    replies: Mapping[str, Mapping[str, SystemReply]]
    language: str

    @property
    def texts(self) -> CustomTexts:
        """All replies as custom texts, for metrics; those of a dialogue are resampled together."""
        rows = [
            (context, name, row) for context in self.contexts for name in self.systems if (row := self.replies[name].get(context.pair_id))
        ]
        items = [f"{context.pair_id}{BETWEEN}{name}" for context, name, _ in rows]
        return CustomTexts(
            "replies", items, [(item, REPLY) for item in items], [name for _, name, _ in rows], [context.pair_id for context, *_ in rows],
            [context.dialogue_id for context, *_ in rows], [turns_json(context.turns) for context, *_ in rows],
            [context.reference for context, *_ in rows], [row.text or "" for *_, row in rows], self.language,
            [context.split for context, *_ in rows],
        )  # fmt: skip

    def checked(self, name: str, number: Callable[[Any], float] = float) -> Values:
        """What a check gave each reply, as a number; replies that it did not look at are left out."""
        return {
            system: {pair: float(number(value)) for pair, row in some.items() if (value := getattr(row.checks, name, None)) is not None}
            for system, some in self.replies.items()
        }


def join_folders(folders: Sequence[Replied]) -> RepliesBySystem:
    """The replies of several folders by system.

    Raises:
        InputError: if they are to different releases, or a system of one name has two replies to a context.
    """
    first, problems = folders[0], list[Problem]()
    contexts, replies = dict[str, Context](), dict[str, dict[str, SystemReply]]()
    for folder in folders:
        if folder.configuration["release"] != first.configuration["release"]:
            what = f"replies to another release than {first.folder}"
            problems.append(Problem(str(folder.folder), what, "compare replies to one release"))
            continue
        contexts |= {context.pair_id: context for context in folder.contexts}
        for row in folder.rows:
            if row.text is not None and replies.setdefault(row.system, {}).setdefault(row.pair_id, row).text != row.text:
                what = f'"{row.system}" replies otherwise than in another folder'
                problems.append(Problem(str(folder.folder), what, "rename one of the two"))
    refuse(dict.fromkeys(problems))
    systems = dict.fromkeys(name for folder in folders for name in folder.systems)
    baselines = {name for folder in folders for name in folder.configuration["baselines"]}
    if not replies:
        raise input_error(first.folder, "holds no reply", "run respond again, with a system that answers")
    known = {name: replies.get(name, {}) for name in sorted(systems, key=baselines.__contains__)}
    return RepliesBySystem(tuple(contexts.values()), tuple(known), known, first.header["language"])


def _means(rows: Iterable[tuple[str, str, float]]) -> Values:
    """The means of values by system and pair."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for system, pair, value in rows:
        values[system][pair].append(value)
    return {system: {pair: sum(some) / len(some) for pair, some in pairs.items()} for system, pairs in values.items()}


def check_columns(replies: RepliesBySystem) -> Iterator[FigureColumn]:
    """The words of replies, their toxicity, and the shares that checks of helper turns found something in."""
    yield FigureColumn("words", LENGTH, None, replies.checked("words"), Length(replies.language).signature)
    for name in ("toxicity", *RATES):
        values = replies.checked(name, bool if name in RATES else float)
        settings = {"share": "replies"} if name in RATES else {"scored": "as-in-the-release"}
        if any(values.values()):
            yield FigureColumn(name, SAFETY, False, values, signature_line(check=name, **settings))


def judge_columns(folder: AnnotationFolder) -> Iterator[FigureColumn]:
    """The mean value of each reply by each criterion; of comparisons the share that the reply won of those with other systems."""
    if folder.kind == "preference":
        games = [(case.pair_id or "", game) for case in folder.cases for game in case.comparisons]
        won = [(game.variant_1, pair, game.share_of_first) for pair, game in games]
        won += [(game.variant_2, pair, 1 - game.share_of_first) for pair, game in games]
        signature = signed_by(folder, share="orders-won", against="other-systems")
        yield FigureColumn(f"{folder.name}: win rate", WINS, True, _means(won), signature)
        return
    for scores in criterion_scores(folder):
        values = _means((system, pair, value) for (pair, system), value in scores.means.items())
        name, signature = f"{folder.name}: {scores.name}", signed_by(folder, criterion=scores.name)
        yield FigureColumn(name, JUDGE, scores.better == "high", values, signature)


def people_columns(path: Path, replies: RepliesBySystem) -> Iterator[FigureColumn]:
    """The mean rating of each reply by people, by criterion; items are ``pair_id::system``, as ``review export --replies`` names them.

    Raises:
        InputError: for a faulty table, or one that rates none of the replies.
    """
    table, by_criterion = read_table(path), defaultdict[str, list[tuple[str, str, float]]](list)
    for item, _, rating, criterion in table.rows():
        pair, _, system = item.partition(BETWEEN)
        if pair in replies.replies.get(system, {}):
            by_criterion[criterion].append((system, pair, rating))
    if not by_criterion:
        fix = "name the table of ratings that review import wrote for a pack of these replies"
        raise input_error(path, "rates none of these replies", fix)
    signature = signature_line(raters=len(table.raters), rating="mean-of-raters", file=digest_file(path)[:16])
    for criterion, rows in by_criterion.items():
        yield FigureColumn(f"people: {criterion}", PEOPLE, True, _means(rows), f"{signature}|criterion:{criterion}")


def metric_columns(replies: RepliesBySystem, selection: MetricSelection, scoring: Scoring) -> tuple[list[FigureColumn], CustomScores]:
    """The score of each reply by each metric, and the whole result of scoring with its faults and warnings."""
    scores = score_custom_texts(replies.texts, selection, (), scoring)
    columns = []
    for column in scores.columns:
        rows = zip(scores.texts.systems, scores.texts.contexts_of, column.scores.tolist(), strict=True)
        values = _means(row for row, is_scored in zip(rows, column.scored, strict=True) if is_scored)
        columns.append(FigureColumn(column.metric.name, METRIC, column.metric.higher_is_better, values, column.metric.signature))
    return columns, scores
