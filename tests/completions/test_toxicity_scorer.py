"""Detoxify itself, with a tiny BERT made here: its scores, and that they are asked for once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import detoxify
import pytest
import torch
import transformers
from empathy_eval.base.errors import InputError
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.protocol import NoAnswer
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer, load_scorer, weights_of
from empathy_eval.completions.requests import About, Request
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.generation.checks.toxicity import toxicity

from tests.doubles.models import scoring

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, "you", "are", "a", "kind", "stupid", "dog", "walked", "the", "round", "alone", "today", ".", ","]
TEXTS = ["You are a stupid dog.", "You walked the round alone today, the dog too.", "kind", "The round."]
ABOUT = About("001-00000", "score", 1)


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
    """A file in the form of Detoxify's own, with random weights that tell texts apart."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = transformers.BertForSequenceClassification(transformers.BertConfig.from_pretrained(folder, initializer_range=0.5))
    names = {"model_name": "BertForSequenceClassification", "tokenizer_name": "BertTokenizer"}
    # Detoxify reads the configuration of ``model_type`` too, and would ask the Hub for a name.
    args = {"model_type": str(folder), "num_classes": 2, **names}
    config = {"arch": {"args": args}, "dataset": {"args": {"classes": ["severe_toxic", "toxic"]}}}
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
    """Each text on its own, by the package as its documentation uses it."""
    model = detoxify.Detoxify(checkpoint=config.checkpoint, huggingface_config_path=config.config)
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
    with pytest.raises(AssertionError, match="the model was loaded"):
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


def test_a_folder_that_is_not_there_is_named(config: ToxicityConfig) -> None:
    with pytest.raises(InputError, match="nowhere: the configured folder of Detoxify's tokenizer is not there"):
        ToxicityScorer(ToxicityConfig("detoxify", 0.5, config.checkpoint, "nowhere"))
