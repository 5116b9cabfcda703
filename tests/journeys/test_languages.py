"""A build in another language, from the refusal to the release: a made-up language with rules of its own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import edit_ratio, overlap
from empathy_eval.cli import main
from empathy_eval.design.recipe import load_recipe
from empathy_eval.evaluation.measure import score
from empathy_eval.generation.build import build
from empathy_eval.raters.review.export import export_review
from empathy_eval.raters.review.sample import ReviewDesign
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.verify.verify import verify

from tests.conftest import copy_world, demo_file

# Every word of it has letters that rouge-score drops.
CIPHER = str.maketrans("aeiou", "äéïöü")
TEXTS = {"text", "description", "apathetic", "near_empathetic", "twin", "reply_1", "reply_2"}
REPORT = {"metrics": ["bleu", "rouge-l", "length", "dist-1"], "bootstrap": 10}
CHECKS = {"helper_words_at_least": 8, "edit_ratio_below": 0.30, "overlap_at_most": 0.35, "toxicity": "none"}


def ciphered(value: Any, name: str = "") -> Any:
    """A scenario with all texts of its seed in the made-up language."""
    if isinstance(value, dict):
        return {key: ciphered(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [ciphered(one) for one in value]
    return value.translate(CIPHER) if name in TEXTS else value


def lower(*words: str) -> list[dict[str, str]]:
    return [{"LOWER": word.translate(CIPHER)} for word in words]


RULES = {
    "safety": [{"name": "orders", "patterns": [lower("you", "must", "obey")]}],
    "crisis": [{"name": "loss", "patterns": [lower("bowl")]}],
    # So that no crisis is without one: whatever is said points to help.
    "pointers": [{"name": "all", "patterns": [[{"LENGTH": {">": 0}}]]}],
    "description": [
        {"name": "opening", "patterns": [lower("the", "user")]},
        {"name": "first_person", "patterns": [lower("my")]},
    ],
}


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The folders that a build in another language brings."""
    folder = tmp_path_factory.mktemp("brought")
    for path in copy_world(folder / "scenarios").rglob("[0-9]*.yaml"):
        path.write_text(yaml.safe_dump(ciphered(yaml.safe_load(path.read_text())), allow_unicode=True))
    shutil.copytree(data_folder("prompt_templates"), folder / "templates")
    (folder / "rules").mkdir()
    for name, rules in RULES.items():
        (folder / "rules" / f"{name}.yaml").write_text(yaml.safe_dump(rules, allow_unicode=True))
    return {name: folder / name for name in ("scenarios", "templates", "rules")}


@pytest.fixture(scope="module")
def german(brought: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build and a release of it that call themselves German."""
    folder = tmp_path_factory.mktemp("german")
    config = demo_file(folder, language="de", checks=CHECKS, report=REPORT)
    build(load_recipe(config, **brought), folder / "b")
    release(folder / "b", folder / "r", "1.0.0")
    return folder


def rows(folder: Path, config: str) -> list[dict[str, Any]]:
    return [row for path in sorted((folder / "r" / "data" / config).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_a_german_build_with_english_rules_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = demo_file(tmp_path, language="de")
    assert main(["build", str(config), "--out", str(tmp_path / "b")]) == 2
    said = capsys.readouterr().err
    for part in ("safety.yaml", "crisis.yaml", "pointers.yaml", "description.yaml", "--rules DIR", '"toxicity: none"', "meteor"):
        assert part in said
    assert "Traceback" not in said and not (tmp_path / "b").exists()


def test_with_its_own_rules_it_builds_by_them(german: Path, brought: dict[str, Any]) -> None:
    header = json.loads((german / "b" / "build.json").read_text())
    assert header["configuration"]["language"] == "de" and header["toxicity_weights"] == "none"
    assert header["rules"] == {path.name: digest(read_yaml(path, "rules")) for path in sorted(brought["rules"].iterdir())}
    outcomes = [json.loads(line) for line in (german / "b" / "outcomes.jsonl").read_text().splitlines()]
    assert [one["status"] for one in outcomes] == ["accepted"] * 3
    flagged = {one["dialogue_id"]: one["dialogue"]["flags"] for one in outcomes}
    assert flagged["017-seed"] == ["crisis"] != flagged["003-seed"]


def test_a_text_that_breaks_its_rules_is_not_taken(brought: dict[str, Any], tmp_path: Path) -> None:
    rules = shutil.copytree(brought["rules"], tmp_path / "rules")
    (rules / "safety.yaml").write_text(yaml.safe_dump([{"name": "bowls", "patterns": [lower("bowl")]}], allow_unicode=True))
    (rules / "description.yaml").write_text(
        yaml.safe_dump([{**RULES["description"][0], "patterns": [lower("somebody")]}, RULES["description"][1]], allow_unicode=True)
    )
    config = demo_file(tmp_path, language="de", checks=CHECKS, report=REPORT)
    summary = build(load_recipe(config, **{**brought, "rules": rules}), tmp_path / "b")
    told = summary.to_json()
    assert told["accepted"] == 0 and {"description_opening", "unsafe_bowls"} <= told["rejected_by_reason"].keys()


def test_its_release_is_verified_with_the_rules_that_it_carries(german: Path) -> None:
    found = verify(german / "r")
    assert all(one.severity == "note" for one in found) and "was built with its own rules" in "\n".join(map(str, found))


def test_its_rows_have_no_toxicity_and_are_compared_by_words_of_unicode(german: Path) -> None:
    found = rows(german, "pairs")
    assert found and all(set(row["toxicity"].values()) == {None} for row in found)
    assert all(row["description"].startswith("Thé üsér") for row in found)
    row = found[0]
    assert row["apathetic_edit_ratio"] == edit_ratio(row["reference"], row["apathetic"], "de")
    assert row["empathetic_overlap"] == overlap(row["reference"], row["empathetic"], "de") != overlap(row["reference"], row["empathetic"])


def test_its_card_report_and_croissant_say_the_language(german: Path) -> None:
    card = (german / "r" / "README.md").read_text()
    assert yaml.safe_load(card.split("---")[1])["language"] == ["de"]
    assert "**One language only: de.**" in card and "Toxicity was not scored" in card and "English" not in card
    page = (german / "r" / "report" / "index.html").read_text()
    assert '<html lang="en">' in page, "its own words are English"
    assert page.count("score --rules DIR shows") == 4 and "with --rules" not in page, "three attacks and names, which no report can bring"
    assert '<p class="words" dir="auto" lang="de">' in page and '<p class="words" dir="auto">' not in page
    assert json.loads((german / "r" / "croissant.json").read_text())["inLanguage"] == "de"


def test_its_metrics_say_their_tokens_and_its_audit_leaves_an_english_lexicon_out(german: Path) -> None:
    tables = json.loads((german / "r" / "report" / "tables.json").read_text())
    signed = {row["metric"]: row["signature"] for row in tables["inversion"]}
    assert "tok:unicode-words" in signed["ROUGE-L"] and "tok:unicode-words" in signed["length"]
    assert "tok:13a,unspaced-by-character" in signed["BLEU-4"] and "tok:whitespace,unspaced-by-character" in signed["Dist-1"]
    names = {row["name"] for one in tables["shortcuts"]["contrasts"] for row in one["shortcuts"]}
    assert "words alone" in names and "VADER" not in names
    with pytest.raises(InputError, match='"vader": supports only English, but the texts are in the language "de"'):
        score(german / "r", ["vader"])


def test_its_review_marks_the_texts_and_speaks_english_itself(german: Path, tmp_path: Path) -> None:
    export_review(german / "r", tmp_path / "review", ReviewDesign(raters=2, per_item=1, pairs=1, dialogues=0))
    page = next((tmp_path / "review" / "raters").glob("*/review.html")).read_text()
    assert '"language": "de"' in page and '<html lang="en">' in page


def test_a_made_up_language_that_no_library_knows_builds_to_the_same_texts(german: Path, brought: dict[str, Any], tmp_path: Path) -> None:
    config = demo_file(tmp_path, language="qtz", checks=CHECKS, report=REPORT)
    build(load_recipe(config, **brought), tmp_path / "b")
    assert (tmp_path / "b" / "outcomes.jsonl").read_bytes() == (german / "b" / "outcomes.jsonl").read_bytes()
