"""Figures of systems: what judges, people, metrics and checks say of each reply, as columns by system and context."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from empathy_eval.raters.systems.contexts import Context
from empathy_eval.raters.systems.replies import Replied, SystemReply

JUDGE, WINS, PEOPLE, METRIC, LENGTH, SAFETY = "judge", "win rate", "people", "metric", "length", "safety"
# Between the pair and the system in the items of a table of ratings.
BETWEEN = "::"
# Of a check what its column is called, and whether a reply has it; None where it was not looked at.
RATES = ("pointer_missing", "toxic", "harmful", "refusal", "canary")


@dataclass(frozen=True)
class FigureColumn:
    """A figure of each reply: ``values`` by system and pair. ``higher_is_better`` is None where neither end is."""

    name: str
    kind: str
    higher_is_better: bool | None
    values: Mapping[str, Mapping[str, float]]
    signature: str


@dataclass(frozen=True)
class Field:
    """All that is compared: contexts that any system replied to, in one order, and the replies by system and pair."""

    contexts: tuple[Context, ...]
    systems: tuple[str, ...]
    replies: Mapping[str, Mapping[str, SystemReply]]
    language: str

    @property
    def texts(self) -> CustomTexts:
        """All replies as texts of one's own, for metrics; a dialogue is drawn together."""
        rows = [
            (name, one, self.replies[name][one.pair_id].text or "")
            for one in self.contexts
            for name in self.systems
            if self._has(name, one)
        ]
        contexts = [[{"role": role, "text": text} for role, text in one.turns] for _, one, _ in rows]
        items = [f"{one.pair_id}{BETWEEN}{name}" for name, one, _ in rows]
        return CustomTexts(
            "replies", items, [(item, REPLY) for item in items], [name for name, *_ in rows], [one.pair_id for _, one, _ in rows],
            [one.dialogue_id for _, one, _ in rows], contexts, [one.reference for _, one, _ in rows], [text for *_, text in rows],
            self.language, [one.split for _, one, _ in rows],
        )  # fmt: skip

    def _has(self, name: str, one: Context) -> bool:
        return one.pair_id in self.replies[name]


def field_of(folders: Sequence[Replied]) -> Field:
    """The replies of several folders beside each other.

    Raises:
        InputError: if they are to different releases, or a system of one name replies otherwise in two of them.
    """
    first, problems = folders[0], list[Problem]()
    contexts, replies = dict[str, Context](), dict[str, dict[str, SystemReply]]()
    for one in folders:
        if one.configuration["release"] != first.configuration["release"]:
            what = f"replies to another release than {first.folder}"
            problems.append(Problem(str(one.folder), what, "compare replies to one release"))
            continue
        contexts |= {context.pair_id: context for context in one.contexts}
        for row in one.rows:
            if row.text is None:
                continue
            there = replies.setdefault(row.system, {}).setdefault(row.pair_id, row)
            if there.text != row.text:
                problems.append(
                    Problem(str(one.folder), f'"{row.system}" replies otherwise than in another folder', "rename one of the two")
                )
    refuse(dict.fromkeys(problems))
    systems = tuple(dict.fromkeys(name for one in folders for name in one.systems))
    systems = tuple(sorted(systems, key=lambda name: any(name in one.configuration["baselines"] for one in folders)))
    known = {name: replies.get(name, {}) for name in systems}
    if not any(known.values()):
        raise input_error(first.folder, "holds no reply", "run respond again, with a system that answers")
    return Field(tuple(contexts.values()), systems, known, first.header["language"])


def of_checks(field: Field) -> Iterator[FigureColumn]:
    """The length of replies in words, and how often checks of helper turns found something; none of it decides what is empathetic."""
    length = Length(field.language)
    words = {name: {pair: float(row.checks.words) for pair, row in some.items() if row.checks} for name, some in field.replies.items()}
    yield FigureColumn("words", LENGTH, None, words, length.signature)
    checks = {name: {pair: row.checks for pair, row in some.items() if row.checks} for name, some in field.replies.items()}
    toxicity = {name: {pair: one.toxicity for pair, one in some.items() if one.toxicity is not None} for name, some in checks.items()}
    if any(toxicity.values()):
        yield FigureColumn("toxicity", SAFETY, False, toxicity, signature_line(check="toxicity", scored="as-in-the-release"))
    for rate in RATES:
        found = {
            name: {pair: float(bool(value)) for pair, one in some.items() if (value := getattr(one, rate)) is not None}
            for name, some in checks.items()
        }
        if any(found.values()):
            yield FigureColumn(rate, SAFETY, False, found, signature_line(check=rate, share="replies"))


def of_judge(folder: AnnotationFolder) -> Iterator[FigureColumn]:
    """What a judge gave each reply by each criterion; of comparisons the share that it won of those with other systems."""
    if folder.header["rubric"]["kind"] == "preference":
        yield FigureColumn(
            f"{folder.name}: win rate", WINS, True, _won(folder), signed_by(folder, share="orders-won", against="other-systems")
        )
        return
    for one in criterion_scores(folder):
        values: dict[str, dict[str, float]] = defaultdict(dict)
        for (pair, system), value in one.means.items():
            values[system][pair] = value
        yield FigureColumn(f"{folder.name}: {one.name}", JUDGE, one.better == "high", dict(values), signed_by(folder, criterion=one.name))


def given_of_judge(column: FigureColumn) -> PrecomputedScores:
    """The same as scores of the texts of :attr:`Field.texts`."""
    scores = {(f"{pair}{BETWEEN}{name}", REPLY): value for name, some in column.values.items() for pair, value in some.items()}
    return PrecomputedScores(column.name, column.signature, scores, column.higher_is_better is not False)


def _won(folder: AnnotationFolder) -> dict[str, dict[str, float]]:
    games: dict[tuple[str, str], list[float]] = defaultdict(list)
    for case in folder.cases:
        for one in case.comparisons:
            games[one.variant_1, case.pair_id or ""].append(one.share_of_first)
            games[one.variant_2, case.pair_id or ""].append(1 - one.share_of_first)
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for (system, pair), shares in games.items():
        values[system][pair] = sum(shares) / len(shares)
    return dict(values)


def of_people(path: Path, field: Field) -> Iterator[FigureColumn]:
    """The mean rating of people of each reply, by criterion; items are ``pair_id::system``, as ``review export --replies`` calls them.

    Raises:
        InputError: for a faulty table, or one that rates none of the replies.
    """
    table, values = read_table(path), defaultdict[str, dict[str, dict[str, list[float]]]](lambda: defaultdict(lambda: defaultdict(list)))
    for item, _, rating, criterion in table.rows():
        pair, _, system = item.partition(BETWEEN)
        if pair in field.replies.get(system, {}):
            values[criterion][system][pair].append(rating)
    if not values:
        raise input_error(
            path, "rates none of these replies", "name the table of ratings that review import wrote for a pack of these replies"
        )
    signature = signature_line(raters=len(table.raters), rating="mean-of-raters", file=digest_file(path)[:16])
    for criterion, by_system in values.items():
        means = {name: {pair: sum(some) / len(some) for pair, some in pairs.items()} for name, pairs in by_system.items()}
        yield FigureColumn(f"people: {criterion}", PEOPLE, True, means, f"{signature}|criterion:{criterion}")


def of_metrics(field: Field, found: MetricSelection, scoring: Scoring) -> tuple[list[FigureColumn], CustomScores]:
    """What metrics give each reply, and all that is to be said of that scoring."""
    made = score_custom_texts(field.texts, found, (), scoring)
    return list(_scores(made)), made


def _scores(made: CustomScores) -> Iterable[FigureColumn]:
    for one in made.columns:
        values: dict[str, dict[str, float]] = defaultdict(dict)
        for there, score, system, pair in zip(one.scored, one.scores, made.texts.systems, made.texts.contexts_of, strict=True):
            if there:
                values[system][pair] = float(score)
        yield FigureColumn(one.metric.name, METRIC, one.metric.higher_is_better, dict(values), one.metric.signature)
