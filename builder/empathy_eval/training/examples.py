"""Training examples of students: texts rated by a teacher, and pairs of replies of which one is better."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from empathy_eval.base.errors import Problem, input_error, nearest_column, refuse
from empathy_eval.base.parsing import ParseError, json_value
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import WHOLE, csv_rows
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import file_of
from empathy_eval.design.taxonomy import load_taxonomy, strategy_flow
from empathy_eval.metrics.empathy_score.students import conversation_text
from empathy_eval.metrics.protocol import ROLES, Context, context_of
from empathy_eval.training.task import (
    BOTH,
    RANKING,
    REFERENCE,
    REGRESSION,
    STRATEGY,
    ReleaseData,
    ReleaseReader,
    TrainingTask,
    read_batches,
)

COLUMNS = ("context", "reply", "label", "source", "licence")
SPEAKER = re.compile(rf"^({'|'.join(ROLES)}):\s*", re.IGNORECASE)
NUMBER = re.compile(r"-?[0-9]*\.?[0-9]+(e-?[0-9]{1,3})?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class LabelledReply:
    """A reply in its conversation with a label from 0 to 1 (higher is better), its source and licence."""

    context: Context
    reply: str
    label: float
    source: str
    licence: str


def read_labelled(paths: Sequence[Path]) -> list[LabelledReply]:
    """Reads the rows of CSV files of labelled data.

    Raises:
        InputError: if a file cannot be read, lacks a column, or holds a row that breaks the schema; all problems at once.
    """
    problems_found = [text for path in paths for text in _of_file(path)]
    refuse([text for text in problems_found if isinstance(text, Problem)])
    return [text for text in problems_found if isinstance(text, LabelledReply)]


def _of_file(path: Path) -> Iterator[LabelledReply | Problem]:
    lines, any_row = csv_rows(path), False
    _, head = next(lines, (0, []))
    if sorted(head) != sorted(COLUMNS):
        near = nearest_column(head, [name for name in COLUMNS if name not in head])
        yield Problem(str(path), f"has {'the columns ' + ', '.join(head) if head else 'no columns'}", f"write {', '.join(COLUMNS)}{near}")
        return
    for number, cells in lines:
        any_row, where = True, f"{path}: line {number}"
        if len(cells) != len(head):
            yield Problem(where, f"has {len(cells)} cells", f"write one for each of {', '.join(head)}")
            continue
        texts = dict(zip(head, cells, strict=True))
        labels, label = _messages(texts["context"]), label_of(texts["label"])
        row = {**texts, "context": labels, "label": label}
        wrong = [Problem(f"{where}: {place}", what, fix) for place, what, fix in violations(row, "labelled", by_hand=True)]
        yield from wrong
        if not wrong:
            context = turns_of(labels) if isinstance(labels, str) else context_of(labels)
            yield LabelledReply(context, texts["reply"], float(label), texts["source"], texts["licence"])
    if not any_row:
        yield Problem(str(path), "holds no row", "leave it out, or write rows below its columns")


def _messages(cell: str) -> str | list[Any]:
    """The list that a cell holds as JSON, or the cell itself."""
    with suppress(ParseError):
        if cell.lstrip().startswith("[{") and isinstance(value := json_value(cell), list):
            return value
    return cell


def turns_of(text: str) -> Context:
    """Returns the turns of a context: a line with ``seeker:`` or ``helper:`` begins a turn; lines before are the seeker's.

    ``user:`` and ``assistant:`` stand for the two as well.
    """
    turns = list[dict[str, str]]()
    for line in text.strip().splitlines():
        if opening := SPEAKER.match(line):
            turns.append({"role": ROLES[opening[1].lower()], "text": line[opening.end() :]})
        elif turns:
            turns[-1]["text"] += f"\n{line}"
        else:
            turns.append({"role": "seeker", "text": line})
    return turns


def label_of(text: str) -> str | float:
    """Returns the number in a cell, or its content."""
    return float(text) if NUMBER.fullmatch(text.strip()) else text


def sources_of(rows: Sequence[LabelledReply]) -> tuple[dict[str, str], ...]:
    """Returns the sources of rows with their licences, each once.

    Raises:
        InputError: if a source is under two licences.
    """
    sources = sorted({(row.source, row.licence) for row in rows})
    for (source, licence), (other, another) in zip(sources, sources[1:], strict=False):
        if source == other:
            raise input_error("--also", f'"{source}" is under "{licence}" and "{another}"', "name a source apart for each licence")
    return tuple({"name": source, "licence": licence} for source, licence in sources)


RUBRIC = "teacher"
CONTENT, FLOW = PARTS = ("content", "flow")
Text = tuple[str, str]
TEXTS = {"pairs": (REFERENCE, *PAIR_VARIANTS), "controls": CONTROLS}


@dataclass(frozen=True, order=True)
class RatedText:
    """A text in its context with its target by part, None where it has none."""

    context: str
    reply: str
    targets: tuple[float | None, ...]


@dataclass(frozen=True, order=True)
class PreferencePair:
    """Two replies to the same context, the better one first, and by part whether the preference holds."""

    context: str
    winner: str
    loser: str
    parts: tuple[bool, ...]


@dataclass(frozen=True)
class TrainingExamples:
    """All examples of a training in a fixed order, the parts that they teach, and their sources."""

    singles: Sequence[RatedText]
    pairs: Sequence[PreferencePair]
    parts: tuple[str, ...]
    data: ReleaseData
    sources: tuple[Mapping[str, str], ...] = ()
    made_of: Mapping[str, Any] = field(default_factory=dict)

    def texts(self) -> Iterator[str]:
        """All replies, some more than once."""
        yield from (single.reply for single in self.singles)
        for pair in self.pairs:
            yield from (pair.winner, pair.loser)


def build_examples(task: TrainingTask) -> TrainingExamples:
    """Builds the examples of a task.

    Raises:
        InputError: if the release has nothing of the teacher or no such pairs, a file is damaged, or nothing is left to teach.
    """
    if task.also and task.schedule.objective == RANKING:
        raise input_error("--also", "does not apply to the objective ranking", "leave it out, or use another --objective")
    if task.schedule.flow == STRATEGY and task.teacher is None:
        raise input_error("--flow", f'"{STRATEGY}" needs the strategies that a teacher named', "name one with --teacher, or leave it out")
    singles, pairs, reader = _of_teacher(task) if task.teacher is not None else _of_contrasts(task)
    also = read_labelled(task.also)
    parts = PARTS if task.teacher is not None else (CONTENT,)
    nothing = (None,) * (len(parts) - 1)
    singles += [RatedText(conversation_text(row.context), row.reply, (row.label, *nothing)) for row in also]
    singles = [] if task.schedule.objective == RANKING else singles
    pairs = [] if task.schedule.objective == REGRESSION else pairs
    if not singles and not pairs:
        lacks = {RANKING: "pairs to rank", REGRESSION: "values to fit", BOTH: "lessons"}[task.schedule.objective]
        fix = "name a teacher with --teacher, labelled data with --also, or another --objective"
        raise input_error(task.release, f"has no {lacks} in {', '.join(task.splits)}", fix)
    read = ReleaseReader(task.release)
    read.take("also", [vars(row) | {"context": list(row.context)} for row in also])
    made_of = {"singles": len(singles), "pairs": len(pairs), **({"also": {"rows": len(also), "sha256": read.data.rows}} if also else {})}
    singles.sort(key=lambda example: (example.context, example.reply, [-1.0 if target is None else target for target in example.targets]))
    return TrainingExamples(singles, sorted(pairs), parts, reader.data, sources_of(also), made_of)


def _of_contrasts(task: TrainingTask) -> tuple[list[RatedText], list[PreferencePair], ReleaseReader]:
    """Returns examples of contrasts. Without a teacher a near-copy keeps the purpose of the turn, so they teach content alone."""
    reader, pairs = ReleaseReader(task.release), list[PreferencePair]()
    for batch in read_batches(task, reader):
        contexts = map(conversation_text, batch.winners.contexts)
        pairs += [PreferencePair(*row, (True,)) for row in zip(contexts, batch.winners.texts, batch.losers.texts, strict=True)]
    return [], pairs, reader


def _of_teacher(task: TrainingTask) -> tuple[list[RatedText], list[PreferencePair], ReleaseReader]:
    """Returns the teacher's ratings of texts, and its preferences that hold in both orders."""
    reader = ReleaseReader(task.release)
    rated = _rated(task, reader)
    preferred = list(_preferred(task, reader))
    contexts, texts = _texts(task, {name for name, _ in rated} | {name for name, _, _ in preferred}, reader)
    missing = [text for text in [*rated, *((name, variant) for name, *both in preferred for variant in both)] if text not in texts]
    if missing:
        raise input_error(task.release, f'has annotations of "{missing[0][1]}" of {missing[0][0]}, but no such text', WHOLE)
    singles = [RatedText(contexts[text[0]], texts[text], values) for text, values in rated.items()]
    pairs = [
        PreferencePair(contexts[name], texts[name, winner], texts[name, loser], agreed)
        for name, winner, loser in preferred
        if any(agreed := _agreed(rated.get((name, winner)), rated.get((name, loser))))
    ]
    return singles, pairs, reader


def _agreed(winner: tuple[float | None, ...] | None, loser: tuple[float | None, ...] | None) -> tuple[bool, ...]:
    """Returns by part whether the teacher's own values do not contradict its preference."""
    if winner is None or loser is None:
        return (False,) * len(PARTS)
    return tuple(value is not None and other is not None and value >= other for value, other in zip(winner, loser, strict=True))


def rated_by_teacher(task: TrainingTask) -> dict[Text, tuple[float | None, ...]]:
    """Returns the teacher's values of the parts, ``PARTS``, by text in the splits of a task.

    Raises:
        InputError: if it said nothing.
    """
    return _rated(task, ReleaseReader(task.release))


def _rated(task: TrainingTask, reader: ReleaseReader) -> dict[Text, tuple[float | None, ...]]:
    """Returns by text the mean of the teacher's values over samples, part by part.

    Raises:
        InputError: if it said nothing.
    """
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    teachers = set[str]()
    names = ("pair_id", "variant", "teacher", "rubric", "criterion", "sample", "value")
    for rows in _annotated(task, reader, "annotations", names):
        teachers |= {row["teacher"] for row in rows if row["rubric"] == RUBRIC}
        own = [row for row in rows if (row["teacher"], row["rubric"]) == (task.teacher, RUBRIC) and row["criterion"] in PARTS]
        reader.take("annotations", own)
        for row in own:
            if not 0 <= row["value"] <= 1:
                raise input_error(task.release, f"has the value {row['value']} of {row['criterion']}, which is not from 0 to 1", WHOLE)
            values[row["pair_id"], row["variant"], row["criterion"]].append(row["value"])
    if not values:
        known = ", ".join(sorted(teachers)) or f"none: annotate it with --rubric {RUBRIC}, and release it with --annotations"
        what = f'has no annotations of "{task.teacher}" by the rubric "{RUBRIC}" in {", ".join(task.splits)}'
        raise input_error(task.release, what, f"name one who rated it: {known}")
    if task.schedule.flow == STRATEGY:
        values = {value: some for value, some in values.items() if value[2] != FLOW} | _flow_by_strategy(task, reader)
    rated = sorted({(name, variant) for name, variant, _ in values})
    # A sum of sorted values is the same in any order of rows.
    return {value: tuple(fmean(sorted(values[(*value, part)])) if (*value, part) in values else None for part in PARTS) for value in rated}


def _flow_by_strategy(task: TrainingTask, reader: ReleaseReader) -> dict[tuple[str, str, str], list[float]]:
    """Returns by text the validity of the strategies that the teacher names, one value per sample.

    Raises:
        InputError: if it named none, did so by several rubrics, or named what there is not.
    """
    places = {strategy.name: place for place, strategy in enumerate(load_taxonomy().strategies)}
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    rubrics = set[str]()
    for rows in _annotated(task, reader, "strategies", ("pair_id", "teacher", "rubric", "sample", "ideal", "variant", "named")):
        own = [row for row in rows if row["teacher"] == task.teacher]
        rubrics |= {row["rubric"] for row in own}
        reader.take("strategies", own)
        for row in own:
            try:
                values[row["pair_id"], row["variant"], FLOW].append(float(strategy_flow(row["ideal"], places[row["named"]])[0]))
            except (KeyError, ValueError, IndexError) as error:
                raise input_error(task.release, f"has no valid strategy of {row['pair_id']}: {error}", WHOLE) from error
    if len(rubrics) != 1:
        what = f'has strategies of "{task.teacher}" by {len(rubrics)} rubrics in {", ".join(task.splits)}'
        fix = "annotate it with --rubric strategies and release it with --annotations, or leave --flow out"
        raise input_error(task.release, what, fix)
    return values


def _preferred(task: TrainingTask, reader: ReleaseReader) -> Iterator[tuple[str, str, str]]:
    """Yields (pair, winner, loser) of each comparison with the same winner in both orders."""
    names = ("pair_id", "variant_1", "variant_2", "teacher", "rubric", "sample", "consistent", "winner")
    rubrics = set[str]()
    for rows in _annotated(task, reader, "comparisons", names, "winner"):
        own = [row for row in rows if row["teacher"] == task.teacher and row["consistent"] and row["winner"] is not None]
        rubrics |= {row["rubric"] for row in own}
        if len(rubrics) > 1:
            what = f'has comparisons of "{task.teacher}" by several rubrics: {", ".join(sorted(rubrics))}'
            raise input_error(task.release, what, "release it with the comparisons of one rubric")
        reader.take("comparisons", own)
        for row in own:
            both = {row["variant_1"], row["variant_2"]}
            if row["winner"] not in both or len(both) != 2:
                raise input_error(task.release, f'has a comparison of {row["pair_id"]} with the unknown winner "{row["winner"]}"', WHOLE)
            yield row["pair_id"], row["winner"], (both - {row["winner"]}).pop()


def _annotated(
    task: TrainingTask, reader: ReleaseReader, config: str, names: Sequence[str], empty: str = ""
) -> Iterator[list[dict[str, Any]]]:
    for split in task.splits:
        if file_of(task.release, config, split).is_file():
            yield from reader.rows_of(config, split, names, empty)


def _texts(task: TrainingTask, pair_ids: set[str], reader: ReleaseReader) -> tuple[dict[str, str], dict[Text, str]]:
    """Returns contexts by pair, and texts by pair and variant."""
    contexts, texts = dict[str, str](), dict[Text, str]()
    for config, variants in TEXTS.items():
        for split in task.splits:
            for rows in reader.rows_of(config, split, ("pair_id", "context", *variants)):
                own = [row for row in rows if row["pair_id"] in pair_ids]
                reader.take(config, own)
                task.progress(len(own))
                for row in own:
                    contexts[row["pair_id"]] = conversation_text(row["context"])
                    texts.update({(row["pair_id"], variant): row[variant] for variant in variants})
    return contexts, texts
