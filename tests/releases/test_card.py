"""The card and the Croissant metadata, read by the programs that users read them with."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mlcroissant
import pyarrow.parquet as pq
import pytest
import yaml
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.contrasts import RAW, STANCE
from empathy_eval.design.dataset import COLUMNS, OPTIONAL, files_of
from empathy_eval.evaluation.inversion.rows import ContrastAudit, Shortcut, ShortcutAudit
from empathy_eval.releases.assemble.write import Released
from empathy_eval.reports.claims import claims
from empathy_eval.reports.documents import card_text
from empathy_eval.statistics.estimate import Estimate
from huggingface_hub import DatasetCard


def test_the_hubs_own_class_reads_the_card(released: tuple[Path, Released]) -> None:
    card = DatasetCard.load(released[0] / "README.md")
    data = card.data.to_dict()
    assert data["license"] == "cc-by-4.0" and data["language"] == ["en"]
    named = [one["config_name"] for one in data["configs"]]
    assert named == [*COLUMNS, "preferences_near", "preferences_far", "dialogue_contrasts", "crossed"]
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
    copy = Path(shutil.copytree(released[0], tmp_path / "copy"))
    shutil.copy(copy / "data" / "controls" / "train.parquet", copy / "data" / "pairs" / "train.parquet")
    with pytest.raises(mlcroissant.GenerationError):
        next(iter(mlcroissant.Dataset(jsonld=str(copy / "croissant.json")).records("pairs_train")))


def test_every_column_is_told_and_no_other(released: tuple[Path, Released]) -> None:
    told = yaml.safe_load((data_folder("release") / "columns.yaml").read_text())
    assert set(told) == {name for schema in (COLUMNS | OPTIONAL).values() for name in schema.names}
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


def test_the_card_says_which_preferences_are_confounded_and_how_many_pairs_have_none(released: tuple[Path, Released]) -> None:
    counts = released[1].manifest["counts"]
    card, total = (released[0] / "README.md").read_text(), {config: sum(rows.values()) for config, rows in counts.items()}
    left = total["pairs"] - total["preferences"]
    said = f"Of {total['pairs']} pairs {left} have no preference" if left else f"Each of the {total['pairs']} pairs has a preference"
    assert said in card and "`preferences` is *confounded*" in card
    assert f"{total['preferences'] - total['preferences_near']} have none in `preferences_near`" in card


def test_the_card_of_a_release_without_preferences_at_equal_closeness_says_nothing_of_them(
    released: tuple[Path, Released], tmp_path: Path
) -> None:
    folder, manifest = Path(shutil.copytree(released[0], tmp_path / "copy")), released[1].manifest
    counts = {name: rows for name, rows in manifest["counts"].items() if name not in ("preferences_near", "preferences_far")}
    (folder / "README.md").write_text(card_text(folder, {**manifest, "counts": counts}, released[1].report))
    assert "confounded" not in (folder / "README.md").read_text() and "**Preferences.**" not in (folder / "README.md").read_text()


@pytest.mark.e2e
def test_the_command_of_mlcroissant_validates_it(released: tuple[Path, Released]) -> None:
    command = Path(sys.executable).with_name("mlcroissant")
    done = subprocess.run([command, "validate", "--jsonld", released[0] / "croissant.json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Done." in done.stderr, done.stderr


def test_the_card_has_accuracy_at_equal_closeness_beside_what_the_checks_force(released: tuple[Path, Released]) -> None:
    card, measured = (released[0] / "README.md").read_text(), released[1].report.measured
    stance = {row.metric: row.differences["stance"] for row in measured.controls}
    for row in measured.inversion:
        (line,) = (one for one in card.splitlines() if one.startswith(f"| {row.metric} |"))
        cells = [one.strip() for one in line.split("|")[1:-1]]
        assert any(one.startswith(f"{stance[row.metric].value:+.4f} [") for one in cells)
        assert ("forced" in line) == row.differences["empathetic - apathetic"].forced
        found = measured.equal_closeness.get(row.metric)
        assert found is None or (found.accuracy and cells[1].startswith(f"{100 * found.accuracy.number:.1f} % ["))
        assert (cells[1] == "–") == (found is None)


def test_the_card_makes_the_claims_of_the_report_in_the_same_order(released: tuple[Path, Released]) -> None:
    card = (released[0] / "README.md").read_text()
    told = [f"{number}. **{one.name}.** {one.text}" for number, one in enumerate(claims(released[1].report.measured), 1)]
    assert len(told) == 3 and "\n".join(told) in card.partition("## How it was made")[0]


@pytest.mark.parametrize("controls", [True, False])
def test_the_card_claims_no_more_than_its_figures(controls: bool, released: tuple[Path, Released], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(released[0], tmp_path / "copy"))
    report, characters = released[1].report, Shortcut("characters", True, 9, Estimate(0.9, 0.8, 1.0), None, "s")
    one = ContrastAudit(STANCE if controls else RAW, "pairs", "empathetic", "apathetic", 9, 3, 3, (characters,))
    changed = replace(report.measured, audit=ShortcutAudit("dialogue", (one,)))
    if not controls:
        changed = replace(changed, controls=[], balance=[])
    (folder / "README.md").write_text(card_text(folder, released[1].manifest, replace(report, measured=changed)))
    card = (folder / "README.md").read_text()
    assert ("its *accuracy at equal closeness*." in card) == controls and ("This release has no controls" in card) != controls
    assert f"The shortcut line{'' if controls else ' as released'} is 90.0 %" in card
    rows = [line.split("|") for line in card.splitlines() if line.startswith(tuple(f"| {row.metric} |" for row in changed.inversion))]
    assert {cells[3].strip() for cells in rows if "%" in cells[2]} <= {"above", "at", "below"} and len(rows) == len(changed.inversion)
    assert {cells[2].strip() for cells in rows} == {"no controls"} or controls


def test_the_card_names_every_paper_with_what_it_states_of_itself(released: tuple[Path, Released]) -> None:
    card, papers = (released[0] / "README.md").read_text(), read_yaml(data_folder("release") / "papers.yaml", "papers")
    for one in papers:
        said = next(line for line in card.splitlines() if line.startswith(f"- *{one['title']}*"))
        assert all(str(part) in said for part in [*one["authors"], one.get("year", ""), one.get("link", ""), one["what"]])


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ({"017-seed-x1"}, "checked against them, but for 1 that came with the scenarios and are not part of Empathy-Eval."),
        (None, "**curated**: they came with the scenarios, which are not part of Empathy-Eval."),
    ],
)
def test_english_crossed_items_of_somebody_else_are_not_called_the_authors_own(
    ids: set[str] | None, told: str, released: tuple[Path, Released], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(released[0], tmp_path / "copy"))
    assert "came with the scenarios" not in (folder / "README.md").read_text()
    for path in files_of(folder, "crossed"):
        table = pq.read_table(path)
        others = [{"reply_2": "Of somebody else."} if ids is None or name in ids else {} for name in table["crossed_id"].to_pylist()]
        rows = [row | other for row, other in zip(table.to_pylist(), others, strict=True)]
        pq.write_table(table.from_pylist(rows, table.schema), path)
    (folder / "README.md").write_text(card_text(folder, released[1].manifest, released[1].report))
    assert told in (folder / "README.md").read_text()
