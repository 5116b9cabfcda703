"""Detoxify itself, with a tiny BERT made here: its scores, and what is said where its weights are missing or wrong."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import io
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import detoxify
import empathy_eval as ee
import pytest
import torch
import transformers
from empathy_eval.base.errors import InputError
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models import toxicity_scorer as detoxify_scorer
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer, load_scorer, weights_of
from empathy_eval.completions.requests import About, NoAnswer, Request
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.recipe import load_recipe
from empathy_eval.generation.checks.built_in import toxicity

from tests.doubles.models import scoring
from tests.doubles.server import running

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, "you", "are", "a", "kind", "stupid", "dog", "walked", "the", "round", "alone", "today", ".", ","]
TEXTS = ["You are a stupid dog.", "You walked the round alone today, the dog too.", "kind", "The round."]
ABOUT = About("001-00000", "score", 1)
CLASSES = ["severe_toxic", "toxic", "obscene", "threat", "insult", "identity_hate"]


def make_folder(folder: Path, vocabulary: list[str]) -> Path:
    """What ``huggingface_config_path`` needs: the configuration of the model and its tokenizer."""
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    tiny = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    tiny.save_pretrained(folder)
    transformers.BertTokenizer(vocab=str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    return folder


def make_checkpoint(path: Path, folder: Path, seed: int) -> Path:
    """A file in the form of Detoxify's "original", with random weights that tell texts apart."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = transformers.BertConfig.from_pretrained(folder, initializer_range=0.5, num_labels=len(CLASSES))
        model = transformers.BertForSequenceClassification(made)
    names = {"model_name": "BertForSequenceClassification", "tokenizer_name": "BertTokenizer"}
    args = {"model_type": "bert-base-uncased", "num_classes": len(CLASSES), **names}
    config = {"arch": {"args": args}, "dataset": {"args": {"classes": CLASSES}}}
    torch.save({"state_dict": model.state_dict(), "config": config}, path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("bert") / "folder", VOCABULARY)


@pytest.fixture(scope="module")
def config(folder: Path) -> ToxicityConfig:
    checkpoint = make_checkpoint(folder.parent / "first.ckpt", folder, 1)
    return ToxicityConfig("detoxify", 0.5, checkpoint=str(checkpoint), config=str(folder))


@pytest.fixture(scope="module")
def other(folder: Path) -> ToxicityConfig:
    checkpoint = make_checkpoint(folder.parent / "second.ckpt", folder, 2)
    return ToxicityConfig("detoxify", 0.5, checkpoint=str(checkpoint), config=str(folder))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "l.sqlite") as opened:
        yield opened


@pytest.fixture
def unloadable(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Detoxify must not be loaded; ``undo()`` allows it again."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the model was loaded")

    load_scorer.cache_clear()
    monkeypatch.setattr(detoxify, "Detoxify", refuse)
    yield monkeypatch
    load_scorer.cache_clear()


def by_detoxify(config: ToxicityConfig, texts: list[str]) -> list[float]:
    """Each text on its own, by the package as its documentation uses it, of a checkpoint that names the folder instead of the Hub."""
    loaded = torch.load(str(config.checkpoint), weights_only=False)
    loaded["config"]["arch"]["args"]["model_type"] = config.config
    torch.save(loaded, named := io.BytesIO())
    named.seek(0)
    model = detoxify.Detoxify(checkpoint=named)
    return [round(model.predict(text)["toxicity"], 4) for text in texts]


async def scored(asker: Asker, texts: list[str]) -> list[float]:
    scores = await asyncio.gather(*(toxicity(asker, text, ABOUT) for text in texts))
    return [score for score in scores if score is not None]


async def test_scores_are_those_of_detoxify_rounded_to_four_places(config: ToxicityConfig, ledger: Ledger) -> None:
    scores = await scored(scoring(config, ledger), TEXTS)
    assert scores == by_detoxify(config, TEXTS)
    assert len(set(scores)) == len(TEXTS), "the tiny model tells the texts apart"
    assert all(0 < score < 1 for score in scores)


@pytest.mark.parametrize("text", TEXTS)
async def test_a_text_that_is_scored_alone_has_the_same_score(text: str, config: ToxicityConfig, ledger: Ledger) -> None:
    assert await scored(scoring(config, ledger), [text]) == by_detoxify(config, [text])


async def test_scores_lie_in_the_ledger_under_the_text_and_the_weights(config: ToxicityConfig, ledger: Ledger) -> None:
    (score,) = await scored(scoring(config, ledger), TEXTS[:1])
    body = ToxicityScorer(config).body([{"role": "user", "content": TEXTS[0]}], "score_answer")
    assert body == {"model": "detoxify", "weights": weights_of(config), "text": TEXTS[0]}
    request = Request(body, "local", ABOUT)
    stored = ledger.get(request.key)
    assert stored is not None and stored.text == f'{{"score": {score}}}'


@pytest.mark.parametrize("offline", [False, True])
async def test_a_second_run_takes_scores_from_the_ledger_and_loads_no_model(
    offline: bool, config: ToxicityConfig, ledger: Ledger, request: pytest.FixtureRequest
) -> None:
    first = await scored(scoring(config, ledger), TEXTS)
    request.getfixturevalue("unloadable")
    assert await scored(scoring(config, ledger, offline=offline), TEXTS) == first


async def test_an_offline_run_asks_for_no_new_score(config: ToxicityConfig, ledger: Ledger, unloadable: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoAnswer, match="not in the ledger: 001-00000 score turn 1"):
        await toxicity(scoring(config, ledger, offline=True), TEXTS[0], ABOUT)


async def test_another_checkpoint_asks_anew(
    config: ToxicityConfig, other: ToxicityConfig, ledger: Ledger, unloadable: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="the model was loaded"):
        await scored(scoring(config, ledger), TEXTS)
    unloadable.undo()
    load_scorer.cache_clear()
    first = await scored(scoring(config, ledger), TEXTS)
    with pytest.raises(NoAnswer):
        await scored(scoring(other, ledger, offline=True), TEXTS)
    second = await scored(scoring(other, ledger), TEXTS)
    assert second == by_detoxify(other, TEXTS) != first
    assert await scored(scoring(config, ledger), TEXTS) == first, "both lie side by side"


def test_the_weights_are_known_by_content_and_another_vocabulary_is_another_scorer(config: ToxicityConfig, tmp_path: Path) -> None:
    assert config.checkpoint and config.config
    moved = tmp_path / "moved.ckpt"
    moved.write_bytes(Path(config.checkpoint).read_bytes())
    assert weights_of(ToxicityConfig("detoxify", 0.9, str(moved), config.config)) == weights_of(config)
    swapped = make_folder(tmp_path / "swapped", [*VOCABULARY[:-2], *reversed(VOCABULARY[-2:])])
    assert weights_of(ToxicityConfig("detoxify", 0.5, config.checkpoint, str(swapped))) != weights_of(config)


def refused(config: ToxicityConfig) -> str:
    """What is said of weights before anything is asked."""
    weights_of.cache_clear()
    with pytest.raises(InputError) as caught:
        weights_of(config)
    return str(caught.value)


def test_the_published_form_of_a_checkpoint_is_loaded_without_the_hub(config: ToxicityConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("the network is asked"))
    load_scorer.cache_clear()
    before = detoxify.detoxify.get_model_and_tokenizer
    assert [round(score, 4) for score in load_scorer(config)(TEXTS)] == by_detoxify(config, TEXTS)
    assert detoxify.detoxify.get_model_and_tokenizer is before


def test_the_address_of_the_weights_is_the_one_that_detoxify_publishes() -> None:
    assert detoxify.detoxify.MODEL_URLS["original"] == detoxify_scorer.URL


def test_without_keys_one_error_names_both_and_the_commands_that_fetch_the_files() -> None:
    said = refused(ToxicityConfig("detoxify", 0.5))
    assert said.count("Fix: ") == 2 and said.count("is not set") == 2
    assert 'checks: toxicity: checkpoint: is not set, but "detoxify" needs local weights' in said
    assert f'run "curl -L --fail --create-dirs -o weights/toxic_original-c1212f89.ckpt {detoxify_scorer.URL}"' in said
    assert 'write "checkpoint: weights/toxic_original-c1212f89.ckpt" under checks: toxicity' in said
    assert "checks: toxicity: config: is not set" in said and 'write "config: weights/bert-base-uncased" under checks: toxicity' in said


def test_each_key_that_is_missing_is_named_alone(config: ToxicityConfig) -> None:
    assert refused(replace(config, checkpoint=None)).startswith("checks: toxicity: checkpoint: is not set")
    assert refused(replace(config, config=None)).startswith("checks: toxicity: config: is not set")


def test_a_file_and_a_folder_that_are_not_there_are_named_at_once(tmp_path: Path) -> None:
    published = tmp_path / "toxic_original-c1212f89.ckpt"
    said = refused(ToxicityConfig("detoxify", 0.5, str(published), str(tmp_path / "nowhere")))
    assert f'checkpoint: "{published}" is not a file' in said and f"-o {published} " in said, "it is fetched to where it is looked for"
    assert f'config: "{tmp_path / "nowhere"}" is not a folder' in said and said.count("Fix: ") == 2
    assert "Fix: correct the path, or run" in refused(ToxicityConfig("detoxify", 0.5, "mine.ckpt", str(tmp_path)))


def test_a_folder_without_the_configuration_of_a_model_is_named(config: ToxicityConfig, tmp_path: Path) -> None:
    assert f'config: "{tmp_path}" has no file "config.json"' in refused(replace(config, config=str(tmp_path)))


def test_digits_in_the_name_must_begin_the_sha_256_of_the_file(config: ToxicityConfig, tmp_path: Path) -> None:
    data = Path(str(config.checkpoint)).read_bytes()
    found = hashlib.sha256(data).hexdigest()[:8]
    fits, other, none = (tmp_path / f"tiny{end}.ckpt" for end in (f"-{found}", "-0a1b2c3d", "-1"))
    for path in (fits, other, none):
        path.write_bytes(data)
    assert weights_of(replace(config, checkpoint=str(fits))) == weights_of(replace(config, checkpoint=str(none))) == weights_of(config)
    said = refused(replace(config, checkpoint=str(other)))
    assert f'"{other}" has 0a1b2c3d in its name, but its SHA-256 begins with {found}' in said and "rename it without these digits" in said


@pytest.mark.parametrize("content", [b"", b"Not Found", b"version https://git-lfs.github.com/spec/v1"])
def test_a_file_that_is_no_checkpoint_is_refused_before_anything_is_asked(content: bytes, config: ToxicityConfig, tmp_path: Path) -> None:
    (tmp_path / "weights-0a1b2c3d.ckpt").write_bytes(content)
    said = refused(replace(config, checkpoint=str(tmp_path / "weights-0a1b2c3d.ckpt")))
    assert "is not a checkpoint of PyTorch: it begins with b'" in said and said.count("Fix: ") == 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"weights": 1}, "ValueError: Checkpoint needs to contain the config"),
        ({"config": {}, "state_dict": {}}, "KeyError: 'dataset'"),
    ],
)
def test_a_checkpoint_of_something_else_is_named_where_it_is_loaded(
    value: dict[str, Any], said: str, config: ToxicityConfig, tmp_path: Path
) -> None:
    torch.save(value, tmp_path / "other.ckpt")
    with pytest.raises(InputError, match=f'cannot load "{tmp_path}/other.ckpt" with .*: {re.escape(said)}') as caught:
        load_scorer(replace(config, checkpoint=str(tmp_path / "other.ckpt")))
    assert "Fix: use a checkpoint that Detoxify published or wrote" in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(config: ToxicityConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(detoxify_scorer, "digest_file", fail)
    assert refused(config).startswith(f"{config.checkpoint}: cannot be read: Permission denied")


def test_a_package_that_is_not_installed_is_named_beside_what_else_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(detoxify_scorer, "find_spec", lambda name: None if name == "detoxify" else found(name))
    said = refused(ToxicityConfig("detoxify", 0.5))
    assert said.startswith("checks: toxicity: detoxify: needs packages that are not installed") and said.count("Fix: ") == 3


@pytest.mark.e2e
def test_a_build_without_weights_asks_nothing_and_a_preview_needs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with running() as server:
        recipe = load_recipe("full", model="m", base_url=server.url)
        with pytest.raises(InputError) as caught:
            ee.build(recipe, tmp_path / "build", ledger=tmp_path / "ledger.sqlite")
        Ledger(tmp_path / "made.sqlite").close()
        assert ee.preview(recipe, ledger=tmp_path / "made.sqlite").requests
        assert server.seen.total() == 0 and not (tmp_path / "build").exists()
    assert [one.where for one in caught.value.problems] == ["checks: toxicity: checkpoint", "checks: toxicity: config"]
