"""The card and the Croissant metadata, read by the programs that users read them with."""

import json
import subprocess
import sys
from pathlib import Path

import mlcroissant
import pyarrow.parquet as pq
import yaml
from empathy_eval.base.files import data_folder
from empathy_eval.design.dataset import COLUMNS
from empathy_eval.releases.write import Released
from huggingface_hub import DatasetCard


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


def test_every_column_is_told_and_no_other(released: tuple[Path, Released]) -> None:
    told = yaml.safe_load((data_folder("release") / "columns.yaml").read_text())
    assert set(told) == {name for schema in COLUMNS.values() for name in schema.names}
    card = (released[0] / "README.md").read_text()
    assert "| `context` | list of {role, text} | all earlier turns, the references of the helper | pairs, controls |" in card


def test_the_card_shows_a_row_that_is_in_the_data(released: tuple[Path, Released]) -> None:
    card = (released[0] / "README.md").read_text()
    shown = json.loads(card.split("```json\n")[1].split("```")[0])
    files = (released[0] / "data" / "pairs").glob("*.parquet")
    rows = {row["pair_id"]: row for path in files for row in pq.read_table(path).to_pylist()}
    row = rows[shown["pair_id"]]
    assert list(shown) == COLUMNS["pairs"].names and shown["strategy"] == row["strategy"]
    assert row["reference"].startswith(shown["reference"].removesuffix(" …"))


def test_the_card_names_prompts_by_hash_and_how_to_rebuild(released: tuple[Path, Released]) -> None:
    card, manifest = (released[0] / "README.md").read_text(), released[1].manifest
    for name, value in manifest["templates"].items():
        assert f"| `{name}` | `{value}` |" in card
    assert manifest["identity"] in card and "--version 0.1.0" in card


def test_the_command_of_mlcroissant_validates_it(released: tuple[Path, Released]) -> None:
    command = Path(sys.executable).with_name("mlcroissant")
    done = subprocess.run([command, "validate", "--jsonld", released[0] / "croissant.json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Done." in done.stderr, done.stderr


def test_the_card_has_stance_at_equal_closeness_beside_what_the_checks_force(released: tuple[Path, Released]) -> None:
    card = (released[0] / "README.md").read_text()
    stance = {row.metric: row.differences["stance"] for row in released[1].report.measured.controls}
    for row in released[1].report.measured.inversion:
        (line,) = (one for one in card.splitlines() if one.startswith(f"| {row.metric} |"))
        assert f"{stance[row.metric].value:+.4f} [" in line.split("|")[5]
        assert line.endswith("] |") and ("forced" in line) == row.differences["empathetic - apathetic"].forced
