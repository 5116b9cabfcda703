"""Tasks of training: settings, kinds, and the pairs that models learn from.

Of each contrast a pair is the text that should score higher, the other one, and the turns before them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from empathy_eval.base.array_files import Arrays
from empathy_eval.base.errors import Problem, input_error, nearest, refuse
from empathy_eval.base.hashing import canonical_json, derived_random, digest_bytes, digest_file
from empathy_eval.base.tabular import WHOLE, table_batches
from empathy_eval.design.contrasts import APATHETIC, EMPATHETIC, FAR, NEAR
from empathy_eval.design.dataset import COLUMNS, OPTIONAL, SPLITS, file_of
from empathy_eval.metrics.bertscore import PACKAGED
from empathy_eval.metrics.protocol import Segments

BOTH, REGRESSION, RANKING = "both", "regression", "ranking"
# What a teacher teaches of flow: its rating, or the validity of the strategy that it names.
RATED, STRATEGY = "rated", "strategy"
Step = tuple[list[int], list[int]]


@dataclass(frozen=True)
class TrainingSchedule:
    """Settings of a training. A step has ``singles`` texts and ``pairs`` pairs; the loss of pairs counts with ``rank_weight``.

    Training stops after ``patience`` epochs without improvement, and the best epoch counts.

    ``save_seconds`` is the time between checkpoints; it changes no number.
    """

    objective: str = BOTH
    flow: str = RATED
    shared: bool = False
    max_tokens: int = 512
    rate: float = 2e-5
    decay: float = 0.01
    warm_up: float = 0.1
    clip: float = 1.0
    patience: int = 2
    seed: int = 42
    epochs: int = 5
    singles: int = 32
    pairs: int = 16
    margin: float = 0.1
    rank_weight: float = 0.5
    save_seconds: float = field(default=60.0, compare=False)

    def settings(self) -> dict[str, Any]:
        """Returns the settings that can change a number."""
        return {name: value for name, value in asdict(self).items() if name != "save_seconds"}

    def rate_at(self, step: int, steps: int) -> float:
        """Returns the learning rate of a step (from 0): it rises during the warm-up, then falls linearly to 0."""
        rising = int(steps * self.warm_up)
        if step < rising:
            return self.rate * (step + 1) / rising
        return self.rate * (steps - step) / (steps - rising)

    def steps_of(self, epoch: int, singles: int, pairs: int) -> list[Step]:
        """Returns the steps of an epoch, each the indices of its singles and of its pairs: all singles once, and pairs cyclically.

        Without singles it is all pairs once. The order depends on the seed and the epoch alone.
        """
        own = self._shuffled("singles", epoch, singles)
        many = -(-singles // self.singles) if singles else -(-pairs // self.pairs)
        # Round after round of all pairs.
        cycled, drawn = chain.from_iterable(self._shuffled(f"pairs {number}", epoch, pairs) for number in count()), list[Step]()
        for step in range(many):
            least = self.pairs if singles else min(self.pairs, pairs - step * self.pairs)
            drawn.append((own[step * self.singles : (step + 1) * self.singles], [next(cycled) for _ in range(least)] if pairs else []))
        return drawn

    def _shuffled(self, what: str, epoch: int, many: int) -> list[int]:
        places = list(range(many))
        derived_random(self.seed, what, epoch).shuffle(places)
        return places


REFERENCE = "reference"
# Contrast: the config that has it, and its winner and loser.
CONTRASTS = {
    "reference>apathetic": ("pairs", REFERENCE, APATHETIC),
    "near_empathetic>apathetic": ("controls", *NEAR),
    "empathetic>far_apathetic": ("controls", *FAR),
    "empathetic>apathetic": ("pairs", EMPATHETIC, APATHETIC),
    "fitting>other": ("crossed", "fitting", "other"),
}
# Of a crossed item each reply fits one context: its two pairs, as the columns of context, winner and loser.
FITTING = (("context_1", "reply_1", "reply_2"), ("context_2", "reply_2", "reply_1"))
# A name for both contrasts at equal closeness.
EQUAL_CLOSENESS = {"equal-closeness": ("near_empathetic>apathetic", "empathetic>far_apathetic")}


@dataclass(frozen=True)
class TrainingTask:
    """The inputs of a training: a release, and its contrasts and splits in a fixed order.

    Only some kinds take a teacher (whose annotations the release has), an encoder, labelled data, a schedule and a checkpoint folder.
    """

    release: Path
    contrasts: tuple[str, ...] = ("reference>apathetic",)
    splits: tuple[str, ...] = ("train",)
    progress: Callable[[int], None] = field(default=lambda pairs: None, compare=False)
    teacher: str | None = None
    encoder: str = PACKAGED
    also: tuple[Path, ...] = ()
    schedule: TrainingSchedule = TrainingSchedule()
    checkpoint: Path | None = field(default=None, compare=False)


def make_task(release: Path, contrasts: Sequence[str], splits: Sequence[str], progress: Callable[[int], None]) -> TrainingTask:
    """Returns the task, its contrasts and splits each once and in a fixed order.

    Raises:
        InputError: for those that there are not, all at once.
    """
    names = [name for name in contrasts for name in EQUAL_CLOSENESS.get(name, (name,))]
    problems = [
        Problem(where, f'there is no "{name}"', f"name one of these: {', '.join(known)}{nearest(name, known)}")
        for where, some, known in (("--contrasts", names, (*CONTRASTS, *EQUAL_CLOSENESS)), ("--split", splits, SPLITS))
        for name in some
        if name not in known
    ]
    for where, some in (("--contrasts", names), ("--split", splits)):
        problems += [] if some else [Problem(where, "names nothing", "name at least one, or leave it out")]
    refuse(problems)
    return TrainingTask(
        release, tuple(key for key in CONTRASTS if key in names), tuple(split for split in SPLITS if split in splits), progress
    )


@dataclass(frozen=True)
class PairBatch:
    """Some pairs of a contrast: winners and losers as rows to score, each with the turns before it."""

    contrast: str
    ids: Sequence[str]
    winners: Segments
    losers: Segments


@dataclass(frozen=True)
class ReleaseData:
    """Data that was read of a release: the SHA-256 of each file, and that of all rows, whatever files they lie in.

    That of the rows is over their sorted hashes: the same in any order, and whoever wrote the files.
    """

    files: Mapping[str, str]
    rows: str

    @property
    def sha256(self) -> str:
        """The hash of the files: what ``sha256sum data/… | sha256sum`` prints in the folder of the release, their names in order."""
        return digest_bytes("".join(f"{self.files[name]}  {name}\n" for name in sorted(self.files)).encode())


class ReleaseReader:
    """Reads a release, and records the rows that were used."""

    def __init__(self, release: Path) -> None:
        self._release = release
        self._files: dict[str, str] = {}
        self._rows: list[bytes] = []

    def __bool__(self) -> bool:
        return bool(self._rows)

    def take(self, what: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Records rows."""
        self._rows += [hashlib.sha256(canonical_json([what, row])).digest() for row in rows]

    def rows_of(self, config: str, split: str, names: Sequence[str], empty: str = "") -> Iterator[list[dict[str, Any]]]:
        """Yields the rows of a file with these columns, in parts; only the column ``empty`` may have missing values.

        Raises:
            InputError: if the file is missing, or does not hold what the data contract says.
        """
        path, kinds = file_of(self._release, config, split), (COLUMNS | OPTIONAL)[config]
        for batch in table_batches(path, list(names)):
            odd = [name for name in names if not batch.schema.field(name).type.equals(kinds.field(name).type)]
            odd += [name for name in names if name != empty and batch.column(name).null_count]
            if odd:
                raise input_error(path, f'the column "{odd[0]}" does not hold what the data contract says', WHOLE)
            rows = batch.to_pylist()
            contexts = [(row[name], name) for row in rows for name in names if name.startswith("context")]
            for name in (name for turns, name in contexts for turn in turns if turn is None or None in (turn["role"], turn["text"])):
                raise input_error(path, f'a turn of the column "{name}" of {config} is empty', WHOLE)
            if rows:
                yield rows
        self._files |= hash_files(self._release, [path])

    @property
    def data(self) -> ReleaseData:
        """All data that was read."""
        return ReleaseData(self._files, digest_bytes(b"".join(sorted(self._rows))))


def read_batches(task: TrainingTask, reader: ReleaseReader | None = None) -> Iterator[PairBatch]:
    """All pairs of a task, contrast by contrast, in batches; each is reported to its progress. ``reader`` records all rows that are read.

    Raises:
        InputError: if a file is missing or damaged, or there are no pairs.
    """
    reader = ReleaseReader(task.release) if reader is None else reader
    for contrast in task.contrasts:
        config, winner, loser = CONTRASTS[contrast]
        crossed = config == "crossed"
        key, sides = ("crossed_id", FITTING) if crossed else ("pair_id", (("context", winner, loser),))
        names = [key, *dict.fromkeys(name for side in sides for name in side)]
        for split in task.splits:
            for rows in reader.rows_of(config, split, names):
                reader.take(contrast, rows)
                ids = [row[key] for row in rows]
                for side in sides:
                    contexts, winners, losers = ([row[name] for row in rows] for name in side)
                    yield PairBatch(contrast, ids, Segments(winners, (), contexts), Segments(losers, (), contexts))
                    task.progress(len(rows))
    if not reader:
        what = f"holds no pairs of {', '.join(task.contrasts)} in {', '.join(task.splits)}"
        raise input_error(task.release, what, "name other contrasts or splits, or a release with controls")


def hash_files(release: Path, paths: Iterable[Path]) -> dict[str, str]:
    """Returns the SHA-256 of files of a release by their name in it."""
    return {path.relative_to(release).as_posix(): digest_file(path) for path in paths}


# Kind: the function that trains it from a Task. It is imported when a student of the kind is trained; what scores with it is a row of
# ``metrics/empathy_score/model``.
TRAINERS = {
    "plain": "empathy_eval.training.plain:train",
    "encoder": "empathy_eval.training.plain:train_over_encoder",
    "students": "empathy_eval.training.students:train",
}
# What only some kinds take: the argument, and the kinds.
OF_STUDENTS = ("teacher", "also", "objective", "flow", "shared", "max_tokens", "rate", "epochs", "margin", "rank_weight", "seed", "ablate")
TAKEN = {"encoder": ("students", "encoder"), **dict.fromkeys(OF_STUDENTS, ("students",))}


@dataclass(frozen=True)
class TrainedArrays:
    """What was learned: the arrays, all settings that could change a number, how many pairs taught it, what was read of
    the release, the range of the training texts, the features (None: no such), the encoder, and what it is made of beside the release.

    ``contrasts`` are those that taught it, None where all of the task did; ``files`` lie beside the weights; ``training`` is what is
    told of the training itself.
    """

    arrays: Arrays
    settings: Mapping[str, Any]
    pairs: int
    data: ReleaseData
    training_range: Mapping[str, Any]
    features: Mapping[str, Any] | None = None
    encoder: Mapping[str, Any] | None = None
    parts: tuple[str, ...] = ("content",)
    sources: tuple[Mapping[str, str], ...] = ()
    contrasts: tuple[str, ...] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)


# What settings of a schedule may be: the option, the least and the most.
BOUNDS = {
    "rate": ("--rate", 1e-8, 1.0), "epochs": ("--epochs", 1, 1000), "margin": ("--margin", 0.0, 1.0),
    "rank_weight": ("--rank-weight", 0.0, 1000.0), "seed": ("--seed", 0, 2**53),
}  # fmt: skip


def check_settings(settings: Mapping[str, Any]) -> list[Problem]:
    """Returns problems of the settings of a schedule."""
    known = {"objective": (BOTH, REGRESSION, RANKING), "flow": (RATED, STRATEGY)}
    problems = [
        Problem(f"--{name}", f'"{settings[name]}" is not known', f"use one of these: {', '.join(some)}")
        for name, some in known.items()
        if name in settings and settings[name] not in some
    ]
    for name, (option, least, most) in BOUNDS.items():
        if name in settings and not least <= settings[name] <= most:  # NaN is not either
            problems.append(Problem(option, f'"{settings[name]}" is out of range', f"use a number from {least:g} to {most:g}"))
    return problems


def find_trainer(kind: str) -> Callable[[TrainingTask], TrainedArrays]:
    """Returns the trainer of a kind.

    Raises:
        InputError: if there is no such kind.
    """
    refuse(check_kind(kind))
    trainer: Callable[[TrainingTask], TrainedArrays] = resolve_name(TRAINERS[kind])
    return trainer


def check_kind(kind: str) -> list[Problem]:
    """Returns problems of the name of a kind."""
    fix = f"use one of these: {', '.join(TRAINERS)}{nearest(kind, TRAINERS)}"
    return [] if kind in TRAINERS else [Problem("--kind", f'"{kind}" is not known', fix)]


def check_arguments(kind: str, settings: Mapping[str, Any]) -> list[Problem]:
    """Returns problems of a kind, and of arguments that it does not take."""
    return check_kind(kind) or [
        Problem(
            f"--{name.replace('_', '-')}", f"does not apply to the kind {kind}", f"leave it out, or use --kind {' or '.join(TAKEN[name])}"
        )
        for name in settings
        if kind not in TAKEN[name]
    ]
