"""The data contract of a release: configs and columns, splits and ids, and how columns, manifest and tables are read."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from empathy_eval.base.errors import input_error
from empathy_eval.base.schemas import read_json
from empathy_eval.base.tabular import WHOLE, table_batches
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.errata import original_id
from empathy_eval.design.personas import VOICES

TEXT, FLAGS = pa.string(), pa.list_(pa.string())
# How the variants of a pair are made what they are; null where that was not planned.
WAYS = ("apathetic_manner", "empathetic_device")
FAR_WAY = "far_apathetic_manner"
# Curated crossed items have neither.
MADE_BY = ("writer", "judge")
NULLABLE = {*WAYS, FAR_WAY, *VOICES, *MADE_BY}
# Of the provenance where one of several candidates was chosen: the SHA-256 of the text of a variant, null for a dialogue.
TEXT_HASH = "text_sha256"
UTTERANCE = pa.struct([("role", TEXT), ("text", TEXT)])
MESSAGES = pa.list_(pa.struct([("role", TEXT), ("content", TEXT)]))
_PAIR = [
    ("pair_id", TEXT), ("dialogue_id", TEXT), ("scenario_id", pa.int64()), ("scenario", TEXT), ("description", TEXT),
    ("turn", pa.int64()), ("context", pa.list_(UTTERANCE)), ("phase", TEXT), ("strategy", TEXT),
    ("reference", TEXT), *((name, TEXT) for name in PAIR_VARIANTS), ("empathetic_strategy", TEXT), ("apathetic_method", TEXT),
    ("apathetic_edit_ratio", pa.float64()), ("empathetic_overlap", pa.float64()),
    ("toxicity", pa.struct([(name, pa.float64()) for name in ("reference", *PAIR_VARIANTS)])),
    ("flags", FLAGS), ("source", TEXT), ("model", TEXT), ("near_model", TEXT), ("far_model", TEXT),
    *((name, TEXT) for name in (*WAYS, *VOICES)),
]  # fmt: skip
_MEASURES = {"": TEXT, "_edit_ratio": pa.float64(), "_overlap": pa.float64(), "_toxicity": pa.float64()}
_CONTROL = [(f"{control}{suffix}", kind) for control in CONTROLS for suffix, kind in _MEASURES.items()]
_TURN = pa.struct([("role", TEXT), ("text", TEXT), ("strategy", TEXT), ("phase", TEXT)])
COLUMNS = {
    "pairs": pa.schema(_PAIR),
    "dialogues": pa.schema(
        [("dialogue_id", TEXT), ("scenario_id", pa.int64()), ("scenario", TEXT), ("description", TEXT), ("turns", pa.list_(_TURN)),
         ("flags", FLAGS), ("source", TEXT), ("model", TEXT), *((name, TEXT) for name in VOICES)]
    ),
    "preferences": pa.schema(
        [("pair_id", TEXT), ("scenario", TEXT), ("prompt", MESSAGES), ("chosen", MESSAGES), ("rejected", MESSAGES)]
    ),
    "controls": pa.schema([*_PAIR, *_CONTROL, (FAR_WAY, TEXT)]),
}  # fmt: skip
_JUDGED = [("teacher", TEXT), ("rubric", TEXT), ("rubric_hash", TEXT)]
_CROSSED = [
    ("crossed_id", TEXT), ("dialogue_id", TEXT), ("scenario_id", pa.int64()), ("turn", pa.int64()),
    *((name, pa.list_(UTTERANCE)) for name in ("context_1", "context_2")), ("reply_1", TEXT), ("reply_2", TEXT), ("reason", TEXT),
    ("source", TEXT), *((name, TEXT) for name in MADE_BY), ("request_keys", FLAGS),
]  # fmt: skip
# What judges said: the configs of a release that was made with annotations, each where it has rows.
JUDGED = {
    "annotations": pa.schema(
        [("pair_id", TEXT), ("dialogue_id", TEXT), ("turn", pa.int64()), ("variant", TEXT), *_JUDGED, ("criterion", TEXT),
         ("sample", pa.int64()), ("value", pa.float64()), ("reason", TEXT), ("request_key", TEXT)]
    ),
    "comparisons": pa.schema(
        [("pair_id", TEXT), ("variant_1", TEXT), ("variant_2", TEXT), *_JUDGED, ("sample", pa.int64()), ("winner_12", TEXT),
         ("winner_21", TEXT), ("consistent", pa.bool_()), ("winner", TEXT), ("reason_12", TEXT), ("reason_21", TEXT),
         ("request_key_12", TEXT), ("request_key_21", TEXT)]
    ),
    "strategies": pa.schema(
        [("pair_id", TEXT), *_JUDGED, ("sample", pa.int64()), ("ideal", pa.list_(pa.float64())), ("ideal_request_key", TEXT),
         ("variant", TEXT), ("named", TEXT), ("request_key", TEXT)]
    ),
}  # fmt: skip
# By config of preferences the cells that are chosen and rejected: as released, where closeness goes with stance, and at equal closeness.
PREFERRED = {
    "preferences": ("empathetic", "apathetic"),
    "preferences_near": ("near_empathetic", "apathetic"),
    "preferences_far": ("empathetic", "far_apathetic"),
}
# A dialogue all of whose helper turns are of one variant, assembled from the other configs.
CONTRASTS = "dialogue_contrasts"
_CONTRAST = [
    ("dialogue_id", TEXT), ("scenario_id", pa.int64()), ("scenario", TEXT), ("variant", TEXT), ("turns", pa.list_(UTTERANCE)),
]  # fmt: skip
# The configs that a release has where they have rows.
OPTIONAL = {
    **{name: COLUMNS["preferences"] for name in PREFERRED if name not in COLUMNS},
    CONTRASTS: pa.schema(_CONTRAST),
    "crossed": pa.schema(_CROSSED),
    **JUDGED,
}
# The configs whose rows hold nothing that other configs do not.
DERIVED = {*PREFERRED, CONTRASTS}


def configs_of(counts: Collection[str]) -> dict[str, pa.Schema]:
    """The configs of a release with their columns, from the counts in its manifest: required ones first, then optional ones."""
    return COLUMNS | {config: columns for config, columns in OPTIONAL.items() if config in counts}


PROVENANCE = pa.schema([("dialogue_id", TEXT), ("pair_id", TEXT), ("what", TEXT), ("method", TEXT), ("model", TEXT), ("request_key", TEXT)])


def provenance_columns(candidates: int) -> pa.Schema:
    """The columns of the provenance; with the hash of each text where one of several candidates was chosen."""
    return PROVENANCE.append(pa.field(TEXT_HASH, TEXT)) if candidates > 1 else PROVENANCE


CANDIDATES = pa.schema([("pair_id", TEXT), ("variant", TEXT), ("attempt", pa.int64()), ("text", TEXT), ("reasons", FLAGS)])


def pair_id(dialogue_id: str, turn: int) -> str:
    """``017-00042-t05``: the id of the dialogue and the index of the turn."""
    return f"{dialogue_id}-t{turn:02d}"


def parts_of(name: str) -> tuple[str, int]:
    """The id of the dialogue and the index of the turn of a pair id."""
    dialogue_id, _, turn = name.rpartition("-t")
    return dialogue_id, int(turn)


SPLITS = ("train", "validation", "test")
# Percent of dialogues in train and validation; the rest is test.
TRAIN, VALIDATION = 72, 8


def split_of(dialogue_id: str) -> str:
    """The split of a dialogue: 72 % train, 8 % validation, 20 % test, by the hash of its id.

    The first 8 bytes of the SHA-256, as a fraction of 2^64, fall into one of three fixed intervals. A corrected dialogue stays in the split
    of its first version.
    """
    value = int.from_bytes(hashlib.sha256(original_id(dialogue_id).encode()).digest()[:8], "big") * 100 >> 64
    return "train" if value < TRAIN else "validation" if value < TRAIN + VALIDATION else "test"


def file_of(release_dir: Path, config: str, split: str) -> Path:
    """The parquet file of a config and a split."""
    return release_dir / "data" / config / f"{split}.parquet"


def files_of(release_dir: Path, config: str, splits: Sequence[str] = SPLITS) -> list[Path]:
    """The parquet files of a config, one for each split."""
    return [file_of(release_dir, config, split) for split in splits]


GROUPINGS = ("scenario", "phase", "strategy")
REPEATED = {"dialogue_id", "scenario_id", "source", "apathetic_method", *WAYS, FAR_WAY, *GROUPINGS}


def column(release_dir: Path, config: str, name: str, splits: Sequence[str] = SPLITS) -> list[Any]:
    """A column over splits. Repeated values, such as ids of dialogues, share one string in memory."""
    values = cells(release_dir, config, name, splits)
    known: dict[Any, Any] = {}
    return [known.setdefault(value, value) for value in values] if name in REPEATED else list(values)


def cells(release_dir: Path, config: str, name: str, splits: Sequence[str] = SPLITS) -> Iterator[Any]:
    """The values of a column over splits, batch by batch; None only where the contract allows it."""
    for path in files_of(release_dir, config, splits):
        for batch in table_batches(path, [name]):
            nulls = batch.column(0).null_count and name not in NULLABLE
            if not batch.schema.field(0).type.equals(configs_of([config])[config].field(name).type) or nulls:
                raise input_error(path, f'the column "{name}" does not hold what the data contract says', WHOLE)
            yield from batch.column(0).to_pylist()


MANIFEST, TABLES = "manifest.json", "tables.json"
# What a manifest calls the form of all that a release holds.
FORMAT = 2
# Of the manifest, which names every other file and cannot name this one.
SIGNATURE = f"{MANIFEST}.minisig"


def read_manifest(release_dir: Path) -> dict[str, Any]:
    """The manifest of a release. Raises InputError if the folder holds none, or it is not valid."""
    path = release_dir / MANIFEST
    if not path.is_file():
        raise input_error(release_dir, f"is not a release (no {MANIFEST} in it)", "name the folder of a release")
    return read_json(path, "manifest", WHOLE)


def read_tables(release_dir: Path) -> dict[str, Any]:
    """The tables of a release's report. Raises InputError if they are missing, not JSON, or of another shape."""
    return read_json(release_dir / "report" / TABLES, "tables", WHOLE)
