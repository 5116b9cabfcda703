"""The card and the Croissant metadata, read by the programs that users read them with."""

from pathlib import Path

import mlcroissant
import pyarrow.parquet as pq
from huggingface_hub import DatasetCard

from builder.releasing import Released


def test_the_hubs_own_class_reads_the_card(released: tuple[Path, Released]) -> None:
    card = DatasetCard.load(released[0] / "README.md")
    data = card.data.to_dict()
    assert data["license"] == "cc-by-4.0" and data["language"] == ["en"]
    assert [one["config_name"] for one in data["configs"]] == ["pairs", "dialogues", "preferences", "controls"]
    assert data["configs"][0]["default"] is True


def test_croissant_metadata_is_valid_and_ten_records_can_be_read_through_it(released: tuple[Path, Released]) -> None:
    dataset = mlcroissant.Dataset(jsonld=str(released[0] / "croissant.json"))
    assert not dataset.metadata.issues.errors
    expected = pq.read_table(released[0] / "data" / "pairs" / "train.parquet").to_pylist()
    records = [record for record, _ in zip(dataset.records("pairs_train"), range(10), strict=False)]
    assert len(records) == 10
    for record, row in zip(records, expected, strict=False):
        assert record["pairs_train/reference"].decode() == row["reference"]
        assert record["pairs_train/turn"] == row["turn"]
        assert record["pairs_train/apathetic_edit_ratio"] == row["apathetic_edit_ratio"]


def test_a_file_that_is_not_the_released_one_is_seen_when_it_is_read(released: tuple[Path, Released], tmp_path: Path) -> None:
    import shutil

    import pytest

    copy = Path(shutil.copytree(released[0], tmp_path / "copy"))
    shutil.copy(copy / "data" / "controls" / "train.parquet", copy / "data" / "pairs" / "train.parquet")
    with pytest.raises(mlcroissant.GenerationError):
        next(iter(mlcroissant.Dataset(jsonld=str(copy / "croissant.json")).records("pairs_train")))
