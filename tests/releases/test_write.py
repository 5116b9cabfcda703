"""The release by its data contract."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.text import edit_ratio, overlap
from empathy_eval.completions.ledger import Ledger
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.dataset import SPLITS, split_of
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import build
from empathy_eval.releases.assemble.write import Released, release

from tests.conftest import demo_file

PAIR_COLUMNS = {
    "pair_id": "string", "dialogue_id": "string", "scenario_id": "int64", "scenario": "string", "description": "string", "turn": "int64",
    "context": [{"role": "string", "text": "string"}], "phase": "string", "strategy": "string", "reference": "string",
    "apathetic": "string", "empathetic": "string", "empathetic_strategy": "string", "apathetic_method": "string",
    "apathetic_edit_ratio": "float64", "empathetic_overlap": "float64",
    "toxicity": {"reference": "float64", "apathetic": "float64", "empathetic": "float64"},
    "flags": ["string"], "source": "string", "model": "string", "near_model": "string", "far_model": "string",
    "apathetic_manner": "string",
    "empathetic_device": "string",
    "helper_voice": "string", "far_voice": "string",
}  # fmt: skip
MESSAGES = [{"role": "string", "content": "string"}]
CONTRACT: dict[str, dict[str, Any]] = {
    "pairs": PAIR_COLUMNS,
    "dialogues": {
        "dialogue_id": "string", "scenario_id": "int64", "scenario": "string", "description": "string",
        "turns": [{"role": "string", "text": "string", "strategy": "string", "phase": "string"}],
        "flags": ["string"], "source": "string", "model": "string",
        "helper_voice": "string", "far_voice": "string",
    },
    "preferences": {"pair_id": "string", "scenario": "string", "prompt": MESSAGES, "chosen": MESSAGES, "rejected": MESSAGES},
    "controls": PAIR_COLUMNS
    | {
        f"{control}{suffix}": kind
        for control in ("near_empathetic", "far_apathetic")
        for suffix, kind in {"": "string", "_edit_ratio": "float64", "_overlap": "float64", "_toxicity": "float64"}.items()
    }
    | {"far_apathetic_manner": "string"},
    "dialogue_contrasts": {
        "dialogue_id": "string", "scenario_id": "int64", "scenario": "string", "variant": "string",
        "turns": [{"role": "string", "text": "string"}],
    },
    "crossed": {
        "crossed_id": "string", "dialogue_id": "string", "scenario_id": "int64", "turn": "int64",
        "context_1": [{"role": "string", "text": "string"}], "context_2": [{"role": "string", "text": "string"}],
        "reply_1": "string", "reply_2": "string", "reason": "string", "source": "string", "writer": "string", "judge": "string",
        "request_keys": ["string"],
    },
}  # fmt: skip


def plain(feature: Any) -> Any:
    """A feature of datasets as strings, lists and dicts."""
    if isinstance(feature, dict):
        return {name: plain(one) for name, one in feature.items()}
    return [plain(feature.feature)] if isinstance(feature, datasets.List) else feature.dtype


def table(folder: Path, config: str) -> list[dict[str, Any]]:
    return [row for split in SPLITS for row in pq.read_table(folder / "data" / config / f"{split}.parquet").to_pylist()]


@pytest.mark.parametrize("config", list(CONTRACT))
def test_load_dataset_gives_the_columns_and_types_of_the_contract_in_every_split(config: str, lexical: Path, tmp_path: Path) -> None:
    loaded = datasets.load_dataset(str(lexical), config, cache_dir=str(tmp_path))
    assert list(loaded) == list(SPLITS)
    for split in SPLITS:
        assert plain(dict(loaded[split].features)) == CONTRACT[config]
        assert loaded[split].num_rows > 0
        assert all(split_of((row.get("dialogue_id") or row["pair_id"])[:8]) == split for row in loaded[split])


def test_pairs_is_the_default_config(lexical: Path, tmp_path: Path) -> None:
    assert datasets.load_dataset(str(lexical), split="test", cache_dir=str(tmp_path)).column_names == list(PAIR_COLUMNS)


def test_an_empty_split_is_a_file_without_rows_and_the_others_load(light: Path, tmp_path: Path) -> None:
    counts = json.loads((light / "manifest.json").read_text())["counts"]
    filled = [split for split, count in counts["pairs"].items() if count]
    assert 0 < len(filled) < 3, "the small world has an empty split"
    assert list(datasets.load_dataset(str(light), "pairs", cache_dir=str(tmp_path))) == filled
    for split in set(SPLITS) - set(filled):
        assert pq.read_table(light / "data" / "pairs" / f"{split}.parquet").num_rows == 0


def test_rows_say_what_they_measure(light: Path) -> None:
    dialogues = {row["dialogue_id"]: row for row in table(light, "dialogues")}
    for row in table(light, "pairs"):
        turns = dialogues[row["dialogue_id"]]["turns"]
        assert row["pair_id"] == f"{row['dialogue_id']}-t{row['turn']:02d}"
        assert row["reference"] == turns[row["turn"]]["text"]
        assert (row["strategy"], row["phase"]) == (turns[row["turn"]]["strategy"], turns[row["turn"]]["phase"])
        assert row["context"] == [{"role": turn["role"], "text": turn["text"]} for turn in turns[: row["turn"]]]
        assert row["apathetic_edit_ratio"] == edit_ratio(row["reference"], row["apathetic"]) < 0.30
        assert row["empathetic_overlap"] == overlap(row["reference"], row["empathetic"]) <= 0.35
        assert row["empathetic_strategy"] != row["strategy"]
        assert (row["source"], row["apathetic_method"]) == ("seed", "seed")
    for dialogue in dialogues.values():
        assert all((turn["strategy"] is None) == (turn["phase"] is None) == (turn["role"] == "seeker") for turn in dialogue["turns"])


def test_preferences_are_conversations_that_end_with_the_seeker(light: Path) -> None:
    pairs = {row["pair_id"]: row for row in table(light, "pairs")}
    rows = table(light, "preferences")
    assert {row["pair_id"] for row in rows} == {name for name, pair in pairs.items() if pair["context"][-1]["role"] == "seeker"}
    for row in rows:
        roles = [message["role"] for message in row["prompt"]]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
        pair = pairs[row["pair_id"]]
        assert "\n\n".join(message["content"] for message in row["prompt"]) == "\n\n".join(turn["text"] for turn in pair["context"])
        assert row["chosen"] == [{"role": "assistant", "content": pair["empathetic"]}]
        assert row["rejected"] == [{"role": "assistant", "content": pair["apathetic"]}]


def test_the_manifest_hashes_every_file_and_names_what_made_it(light: Path) -> None:
    files = {path.relative_to(light).as_posix() for path in light.rglob("*") if path.is_file()} - {"manifest.json"}
    manifest = json.loads((light / "manifest.json").read_text())
    assert set(manifest["files"]) == files >= {"README.md", "LICENSE", "CHANGELOG.md", "provenance.parquet", "report/index.html"}
    assert all(digest_file(light / name) == value for name, value in manifest["files"].items())
    assert {"configuration", "templates", "schemas", "toxicity_weights", "software", "duplicates", "summary", "version", "date"} <= set(
        manifest
    )


def test_provenance_names_a_stored_answer_for_every_text(light: Path) -> None:
    rows = pq.read_table(light / "provenance.parquet").to_pylist()
    assert {row["what"] for row in rows} == {"dialogue", "apathetic", "empathetic", "near_empathetic", "far_apathetic"}
    pairs = {row["pair_id"]: row for row in table(light, "pairs")}
    with Ledger(light.parent / "build" / "ledger.sqlite", create=False) as ledger:
        for row in rows:
            answer = ledger.get(row["request_key"])
            assert answer is not None
            if row["what"] == "apathetic":
                assert json.loads(answer.text)["text"] == pairs[row["pair_id"]]["apathetic"]


def release_again(folder: Path, source: Path, again: Path) -> None:
    made = release(source, again, "0.1.0")
    assert made.manifest == json.loads((folder / "manifest.json").read_text())
    for path in folder.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(folder)).read_bytes(), path


@pytest.mark.e2e
@pytest.mark.usefixtures("drawn_anew")
def test_two_releases_of_a_build_have_the_same_bytes(light: Path, tmp_path: Path) -> None:
    release_again(light, light.parent / "build", tmp_path / "again")


# What CI runs instead: a second report of this release, and a second release of a build with fewer metrics.
@pytest.mark.long
@pytest.mark.usefixtures("drawn_anew")
def test_two_releases_with_all_metrics_have_the_same_bytes(released: tuple[Path, Released], built: Path, tmp_path: Path) -> None:
    release_again(released[0], built, tmp_path / "again")


def test_the_card_names_configs_and_splits(lexical: Path) -> None:
    head = yaml.safe_load((lexical / "README.md").read_text().split("---")[1])
    named = [one["config_name"] for one in head["configs"]]
    assert [one for one in named if not one.startswith("preferences_")] == list(CONTRACT) and {"preferences_near", "preferences_far"} < {
        *named
    }
    assert [one["split"] for one in head["configs"][0]["data_files"]] == list(SPLITS)
    assert head["license"] == "cc-by-4.0"


@pytest.mark.parametrize(
    ("version", "date", "said"), [("1.0", None, '"1.0" is not a version'), ("1.0.0", "today", '"today" is not a date')]
)
def test_a_version_or_date_that_is_none_is_refused(version: str, date: str | None, said: str, built: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        release(built, tmp_path / "r", version, date=date)
    assert not list(tmp_path.iterdir())


def test_a_build_that_is_not_finished_or_was_changed_is_refused(built: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(built, tmp_path / "b"))
    with (copy / "outcomes.jsonl").open("a") as stream:
        stream.write(" ")
    with pytest.raises(InputError, match="was changed after the build"):
        release(copy, tmp_path / "r", "0.1.0")
    header = (copy / "build.json").read_text(encoding="utf-8")
    (copy / "build.json").write_text(header[:-20], encoding="utf-8")
    with pytest.raises(InputError, match="is not JSON"):
        release(copy, tmp_path / "r", "0.1.0")
    (copy / "build.json").unlink()
    with pytest.raises(InputError, match="holds no finished build"):
        release(copy, tmp_path / "r", "0.1.0")
    assert not (tmp_path / "r").exists()


@pytest.mark.e2e
def test_a_near_duplicate_is_left_out_and_counted(catalogue: Catalogue, prompts: Prompts, tmp_path: Path) -> None:
    import dataclasses

    seed = catalogue[17].seed
    assert seed
    opening = dataclasses.replace(seed.turns[0], text=seed.turns[0].text.replace("dog", "cat"))
    assert opening != seed.turns[0]
    other = dataclasses.replace(seed, turns=(opening, *seed.turns[1:]))
    copy = dataclasses.replace(catalogue[17], number=19, slug="other", seed=other)
    doubled = dataclasses.replace(catalogue, scenarios=(*catalogue.scenarios, copy))
    config = load_configuration(demo_file(tmp_path, report={"metrics": ["bleu", "rouge-l"], "bootstrap": 10}))
    build(Recipe(config, doubled, prompts), tmp_path / "b")
    made = release(tmp_path / "b", tmp_path / "r", "0.1.0")
    assert (split_of("017-seed"), split_of("019-seed")) == ("train", "test")
    assert made.manifest["duplicates"] == {"017-seed": "019-seed"}
    assert {row["dialogue_id"] for row in table(tmp_path / "r", "dialogues")} == {"003-seed", "007-seed", "019-seed"}
