"""EmpathyScore: model folders, the plain model, and the metric with its two parts.

A folder holds settings, weights, quality, a card, and a hash of each file.

"EmpathyScore", Eq. 1: ``alpha * S_flow + (1 - alpha) * S_content``, both parts in [0, 1].
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

import numpy as np

from empathy_eval.base.array_files import Arrays, parse_arrays
from empathy_eval.base.errors import InputError, Problem, input_error, refuse
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_bytes, signature_line
from empathy_eval.base.parsing import ParseError, json_value
from empathy_eval.base.schemas import check
from empathy_eval.metrics.lexical import UNIT, Shares, feature_shares, sentences, word_lists
from empathy_eval.metrics.protocol import SEEDS, Array, MeanMetric, Segments

CONFIG, WEIGHTS, METRICS, CARD, CHECKSUMS = "config.json", "model.safetensors", "metrics.json", "README.md", "checksums.txt"
HASHED = (CARD, CONFIG, METRICS, WEIGHTS)
# What students have beside these: the shape of their encoder, and its tokenizer.
ENCODER, TOKENIZER = "encoder.json", "tokenizer.json"
OF_STUDENTS = (ENCODER, TOKENIZER)
# Models that are packaged, each a folder of ``empathyscore/``.
PACKAGED = ("plain",)
# Keys of a configuration that tell it from those of other models.
OWN = {"kind", "contrasts", "training_range"}
FIX_MODEL = "fetch or train the model again"


@dataclass(frozen=True)
class ModelFolder:
    """A folder with verified hashes: its name, settings, arrays, the hash of everything that scores, and files of some kinds.

    That hash covers what can change a score, so neither ``metrics.json`` nor the card changes it.
    """

    name: str
    path: Path
    config: Mapping[str, Any]
    arrays: Arrays
    sha256: str
    files: Mapping[str, bytes] = field(default_factory=dict)


def folder_of(model: str) -> Path:
    """The folder of a model: a packaged one by name, or a path."""
    return data_folder("empathyscore") / model if model in PACKAGED else Path(model)


def read_model(model: str) -> ModelFolder:
    """The model of that name or folder; none of its code is run.

    Raises:
        InputError: if it is not a model, or files are missing or were changed; all at once.
    """
    path = folder_of(model)
    if not (path / CHECKSUMS).is_file():
        fix = f"name the folder of a trained model, or a packaged one: {', '.join(PACKAGED)}"
        raise input_error(f"model {path}", f"is not a model of EmpathyScore (no {CHECKSUMS} in it)", fix)
    sums = (path / CHECKSUMS).read_bytes()
    checksums = _read_checksums(path, sums)
    contents, problems = dict[str, bytes](), list[Problem]()
    for name in checksums:
        if not (path / name).is_file():
            problems.append(Problem(str(path / name), "is not there", FIX_MODEL))
            continue
        contents[name] = (path / name).read_bytes()
        if (actual := digest_bytes(contents[name])) != checksums[name]:
            what = f"was changed: its SHA-256 is {actual[:12]}…, {CHECKSUMS} says {checksums[name][:12]}…"
            problems.append(Problem(str(path / name), what, FIX_MODEL))
    refuse(problems)
    config = _json(contents[CONFIG], path / CONFIG)
    check(config, "empathyscore_config", path / CONFIG)
    name = model if model in PACKAGED else path.resolve().name
    files = {file: contents[file] for file in OF_STUDENTS if file in contents}
    arrays = parse_arrays(contents[WEIGHTS], path / WEIGHTS)
    return ModelFolder(name, path, config, arrays, identity(contents[CONFIG], contents[WEIGHTS], *files.values()), files)


def is_packaged(model: str) -> bool:
    """Whether a model is packaged, so that everybody has it under its name."""
    return model in PACKAGED


def published_model(model: str) -> str:
    """The name of a model in a manifest: a packaged name, or ``label@sha256:…``, so that no path is published.

    Raises:
        InputError: if there is no such model.
    """
    if model in PACKAGED:
        return model
    read = read_model(model)
    return f"{read.name}@sha256:{read.sha256}"


def identity(config: bytes, weights: bytes, *files: bytes) -> str:
    """The hash of everything that scores: settings, weights and other files of its kind."""
    return digest_bytes(" ".join(map(digest_bytes, (config, weights, *files))).encode())


def checksums_text(files: Mapping[str, bytes]) -> str:
    """``checksums.txt`` of these files, in the format of ``sha256sum``."""
    return "".join(f"{digest_bytes(files[name])}  {name}\n" for name in sorted(files))


def is_model(path: Path) -> bool:
    """Whether a folder is a model of EmpathyScore, complete or not."""
    try:
        return set(_json((path / CONFIG).read_bytes(), path)) >= OWN and (path / CHECKSUMS).is_file()
    except (OSError, InputError):
        return False


def _read_checksums(path: Path, sums: bytes) -> dict[str, str]:
    lines = [line.split("  ", 1) for line in sums.decode(errors="replace").splitlines()]
    checksums = {parts[1]: parts[0] for parts in lines if len(parts) == 2}
    if set(checksums) not in (set(HASHED), {*HASHED, *OF_STUDENTS}) or len(lines) != len(checksums):
        raise input_error(path / CHECKSUMS, f"does not name {', '.join(HASHED)}, each once and nothing else", FIX_MODEL)
    return checksums


def _json(data: bytes, where: Path) -> dict[str, Any]:
    try:
        value = json_value(data.decode())
    except (UnicodeDecodeError, ParseError) as error:
        raise input_error(where, f"is not JSON: {error}", FIX_MODEL) from error
    if not isinstance(value, dict):
        raise input_error(where, "holds no JSON object", FIX_MODEL)
    return value


@dataclass(frozen=True)
class LinearModel:
    """The learned plain model: mean, spread and weight of each feature over the training texts; the spread of weighted sums.

    All have six decimal places. A feature is clipped at ``clip`` spreads from its mean.
    """

    means: Array
    spreads: Array
    weights: Array
    scale: float
    clip: float

    def sums(self, shares: Shares) -> Array:
        """The weighted sum of each row, shape (texts,), added feature by feature, so in the same order on every machine."""
        total = np.zeros(len(shares))
        for index, (mean, spread, weight) in enumerate(zip(self.means, self.spreads, self.weights, strict=True)):
            if weight and spread:
                total += weight * np.clip((shares[:, index] / UNIT - mean) / spread, -self.clip, self.clip)
        return total

    def scores(self, shares: Shares) -> Array:
        """The scores of rows in [0, 1]: 1 / (1 + exp(-sum / scale)); one half is the middle of the training texts."""
        result: Array = 1 / (1 + np.exp(-self.sums(shares) / (self.scale or 1.0)))
        return result


class PlainScorer:
    """The scorer of a plain model; reads the reply and the seeker's last message."""

    keep, share, places = False, True, 6

    def __init__(self, folder: ModelFolder) -> None:
        """Loads the weights of a folder.

        Raises:
            InputError: if it was trained with other word lists, or its arrays do not fit them.
        """
        self.direction = linear_model_of(folder)

    def parts(self, segments: Segments) -> dict[str, Array]:
        """How empathetic each text is; a plain model has no other part."""
        return {"content": self.direction.scores(feature_shares(segments))}


def linear_model_of(folder: ModelFolder, more: int = 0) -> LinearModel:
    """The linear model in a folder, over the features of the word lists and ``more`` others.

    Raises:
        InputError: if it was trained with other word lists, or its arrays do not fit them.
    """
    lists, trained = word_lists(), folder.config["features"]
    names = lists.names
    if trained is None or (trained["names"], trained["sha256"], trained["vader"]) != (names, lists.sha256, lists.vader):
        what = "was trained with other word lists than this version has (empathyscore/features.yaml, and the lexicon of vaderSentiment)"
        raise input_error(folder.path, what, "train it again, or use the version that trained it")
    shapes = {name: array.shape for name, array in folder.arrays.items()}
    expected = dict.fromkeys(("means", "spreads", "weights"), (len(names) + more,)) | {"scale": (1,)}
    clip = folder.config["settings"].get("clip")
    if shapes != expected or not isinstance(clip, int | float):
        raise input_error(folder.path, f"does not hold the arrays and settings of a model of the kind {folder.config['kind']}", FIX_MODEL)
    values = {name: np.asarray(array, dtype=np.float64) for name, array in folder.arrays.items()}
    if not all(np.isfinite(array).all() for array in values.values()):
        raise input_error(folder.path, "has weights that are not numbers", FIX_MODEL)
    return LinearModel(values["means"], values["spreads"], values["weights"], float(values["scale"][0]), clip)


# Kind: the class that scores with it, made from a ModelFolder. It is imported when a model of the kind is loaded. What trains one is a row
# of ``training/task``.
KINDS = {
    "plain": "empathy_eval.metrics.empathy_score.model:PlainScorer",
    "encoder": "empathy_eval.metrics.empathy_score.encoders:EncoderScorer",
    "students": "empathy_eval.metrics.empathy_score.students:StudentScorer",
}
# Of the words of the curated seeds' replies 48 % and more are fillers (the, to, is …), of replies in other languages hardly any.
FILLERS_AT_LEAST = 0.35
# In fewer words than this no language is told.
WORDS_TO_TELL = 5
# Features beyond the clip are told as a number up to this one.
MOST_TOLD = 3
# A share is a whole number of millionths in a text, and has six places in a range.
HALF = 0.5 / UNIT
FLOW, CONTENT = "flow", "content"
# Releases of nothing but the curated seed dialogues.
OF_SEEDS = ("empathy-eval-demo", "empathy-eval-seeds")
BOTH = (CONTENT, FLOW)


class Scorer(Protocol):
    """A loaded model. Scores lie in [0, 1]; higher is more empathetic."""

    # Whether its scores are costly and are kept; whether it can be pickled and runs in several processes.
    keep: bool
    share: bool
    # Decimal places that are the same in every process.
    places: int

    def parts(self, segments: Segments) -> Mapping[str, Array]:
        """The scores of each part, shape (texts,): ``content`` rates what a reply says, ``flow`` how well it continues its context."""


def scorer_of(folder: ModelFolder) -> Scorer:
    """The scorer of a model.

    Raises:
        InputError: if its kind is unknown, or something that it needs is missing.
    """
    kind = folder.config["kind"]
    if kind not in KINDS:
        raise input_error(folder.path, f'is of the kind "{kind}", which this version does not know', f"use one of {', '.join(KINDS)}")
    scorer: Scorer = resolve_name(KINDS[kind])(folder)
    return scorer


@dataclass(frozen=True)
class TrainingRange:
    """The range of a model's training texts: languages, fewest and most words, least and most of each feature.

    ``means``, ``spreads`` and ``clip`` are those of a model that clips features; without them nothing is clipped.
    """

    languages: Sequence[str]
    words: tuple[float, float]
    low: Array
    high: Array
    means: Array
    spreads: Array
    clip: float

    @classmethod
    def of(cls, folder: ModelFolder) -> TrainingRange:
        """The range in a model's settings."""
        limits, names = folder.config["training_range"], (folder.config["features"] or {"names": []})["names"]
        bounds = np.array([limits["features"].get(name, (-np.inf, np.inf)) for name in names], dtype=np.float64).reshape(len(names), 2)
        means, spreads = (np.asarray(folder.arrays.get(name, ()), dtype=np.float64)[: len(names)] for name in ("means", "spreads"))
        cuts = means.shape == spreads.shape == (len(names),)
        clip = folder.config["settings"].get("clip", np.inf) if cuts else np.inf
        if not cuts:
            means, spreads = np.zeros(len(names)), np.ones(len(names))
        return cls(limits["languages"], tuple(limits["words"]), bounds[:, 0], bounds[:, 1], means, spreads, clip)

    def outside(self, segments: Segments) -> list[tuple[int, str]]:
        """(row, reason) of each text outside the range, once for each reason: language, length, features."""
        result = [(row, reason) for row, text in enumerate(segments.texts) for reason in chain(self._language(text), self._length(text))]
        return result + list(self._features(segments)) if len(self.low) else result

    def _language(self, text: str) -> Iterator[str]:
        """Why a text is unlike English; nothing is known for models of other languages."""
        if list(self.languages) != ["en"]:
            return
        letters = [character for character in text if character.isalpha()]
        own = [word for words, _ in sentences(text) for word in words]
        if 2 * sum(unicodedata.name(character, "").startswith("LATIN ") for character in letters) < len(letters):
            yield "most letters are not Latin"
        elif len(own) >= WORDS_TO_TELL and sum(word in word_lists().fillers for word in own) < FILLERS_AT_LEAST * len(own):
            yield "hardly any common English words: another language, or no sentences"

    def _length(self, text: str) -> Iterator[str]:
        many, (fewest, most) = sum(len(own) for own, _ in sentences(text)), self.words
        if many < fewest:
            yield f"shorter than all training texts ({fewest:g} words)"
        if many > most:
            yield f"longer than all training texts ({most:g} words)"

    def _features(self, segments: Segments) -> Iterator[tuple[int, str]]:
        """Texts with more or less of a feature than any training text, by how many features the model clips."""
        shares = feature_shares(segments) / UNIT
        out = (shares < self.low - HALF) | (shares > self.high + HALF)
        beyond = (out & (np.abs(shares - self.means) > self.clip * self.spreads)).sum(axis=1)
        for row in np.flatnonzero(out.any(axis=1)).tolist():
            many = int(beyond[row])
            cut = f", {many if many < MOST_TOLD else f'{MOST_TOLD} or more'} of them cut by the model" if many else ""
            yield row, f"features outside of the range of the training texts{cut}"


class EmpathyScore(MeanMetric):
    """Mean EmpathyScore of replies in [0, 1] by a trained model; content alone if the model has no flow."""

    reads = ("context",)

    def __init__(self, model: str = "plain", alpha: float = 0.5, part: str = "both") -> None:
        """Loads a packaged model by name, or a folder of ``train``.

        Raises:
            InputError: if it is not a model, was changed, does not fit this version, or has no such part; or alpha is not in [0, 1].
        """
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha <= 1:
            raise input_error("empathyscore: alpha", f"{alpha!r} is out of range", "use a number from 0 to 1: the weight of flow")
        if not isinstance(model, str):
            raise input_error("empathyscore: model", f"{model!r} is not a name", "name a packaged model or the folder of one, in quotes")
        self._take(read_model(model), alpha, part)

    @classmethod
    def of(cls, folder: ModelFolder, scorer: Scorer | None = None) -> EmpathyScore:
        """The metric of a model that is already loaded."""
        metric = cls.__new__(cls)
        metric._take(folder, 0.5, "both", scorer)
        return metric

    def _take(self, folder: ModelFolder, alpha: float, part: str, scorer: Scorer | None = None) -> None:
        config = folder.config
        has_flow = FLOW in config["parts"]
        if part == FLOW and not has_flow:
            what = f'has no flow: a model of the kind "{config["kind"]}" scores content alone'
            raise input_error(f"empathyscore-flow: model {folder.name}", what, "use empathyscore, or a model that was trained with flow")
        self._scorer = scorer or scorer_of(folder)
        self.keep, self.share, self.places = self._scorer.keep, self._scorer.share, self._scorer.places
        parts = {"both": BOTH if has_flow else (CONTENT,), CONTENT: (CONTENT,), FLOW: (FLOW,)}[part]
        self._weights = {part: 1.0 if len(parts) == 1 else alpha if part == FLOW else 1 - alpha for part in parts}
        self.name = f"EmpathyScore{'' if part == 'both' else f' {part}'} ({folder.name})"
        self.signature = _signature(folder, self._weights)
        self._range = TrainingRange.of(folder)
        name, splits = config["release"]["name"], tuple(config["splits"])
        self.trained_on: Mapping[str, Sequence[str]] = {name: splits, **({SEEDS: splits} if name in OF_SEEDS else {})}

    def score_all(self, segments: Segments) -> Any:
        """The scores of texts, in order."""
        scores = self._scorer.parts(segments)
        return sum(weight * scores[part] for part, weight in self._weights.items())

    def outside(self, segments: Segments) -> Sequence[tuple[int, str]]:
        """(row, reason) of texts unlike the training texts, by language, length and features."""
        return self._range.outside(segments)


def _signature(folder: ModelFolder, weights: dict[str, float]) -> str:
    config, release = folder.config, folder.config["release"]
    return signature_line(
        kind=config["kind"], sha256=folder.sha256[:12], weights=",".join(f"{part}={weight}" for part, weight in weights.items()),
        trained=f"{release['name']} {release['version']},{'+'.join(config['splits'])}", data=release["data"][:12],
        contrasts=",".join(config["contrasts"]), version=1,
    )  # fmt: skip
