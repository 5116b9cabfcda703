"""A tiny classifier of emotions with random weights and a tiny BART, in folders as transformers saves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

LABELS = ("admiration", "neutral", "sadness")
# What the tiny BART is taught: two queries and their replies, all of them negative.
TAUGHT = (
    ("i feel so sad and lonely this friday", "that is so awful and it hurts you"),
    ("i hate that terrible table", "you are angry that it was awful on monday"),
)
WORDS = sorted({word for pair in TAUGHT for text in pair for word in text.split()})


def made_tokenizer(folder: Path) -> int:
    """A tokenizer of whole words; the number of tokens that it knows."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS])}
    words = Tokenizer(models.WordLevel(vocabulary, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    words.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, **names).save_pretrained(folder)
    return len(vocabulary)


def made_classifier(folder: Path, labels: tuple[str, ...] = LABELS) -> Path:
    """A RoBERTa with so many classes; texts have 30 tokens at most."""
    config = transformers.RobertaConfig(
        vocab_size=made_tokenizer(folder), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, type_vocab_size=1, pad_token_id=1, id2label=dict(enumerate(labels)), initializer_range=1.0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(7)
        transformers.RobertaForSequenceClassification(config).save_pretrained(folder)
    return folder


def made_seq2seq(folder: Path) -> Path:
    """A BART that knows two queries and their replies by heart; texts have 32 tokens at most."""
    config = transformers.BartConfig(
        vocab_size=made_tokenizer(folder), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=32, pad_token_id=1, bos_token_id=0,
        eos_token_id=2, decoder_start_token_id=2, init_std=0.4,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = transformers.BartForConditionalGeneration(config)
        _teach(model, transformers.AutoTokenizer.from_pretrained(folder))
    model.save_pretrained(folder)
    return folder


def _teach(model: Any, tokenizer: Any) -> None:
    queries, replies = (tokenizer(list(texts), padding=True, return_tensors="pt") for texts in zip(*TAUGHT, strict=True))
    labels = replies["input_ids"].masked_fill(replies["attention_mask"] == 0, -100)
    steps = torch.optim.Adam(model.parameters(), lr=0.01)
    model.eval()
    for _ in range(60):
        steps.zero_grad()
        model(**{name: queries[name] for name in ("input_ids", "attention_mask")}, labels=labels).loss.backward()
        steps.step()


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_classifier(tmp_path_factory.mktemp("classifier"))


@pytest.fixture(scope="session")
def seq2seq(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_seq2seq(tmp_path_factory.mktemp("seq2seq"))
