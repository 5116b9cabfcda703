"""A tiny encoder with random weights, and its tokenizer."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ["warm", "cold", "on", "off", "the", "a", "is", "it", "so", "now", "here", "then"]


def made_encoder(folder: Path, seed: int = 1, **shape: int) -> Path:
    """A tiny RoBERTa with random weights, and its tokenizer."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS, "Seeker", "Helper", ":"])}
    words = Tokenizer(models.WordLevel(vocabulary, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    words.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=64, **names).save_pretrained(folder)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, **shape}
    config = transformers.RobertaConfig(vocab_size=len(vocabulary), max_position_embeddings=66, type_vocab_size=1, pad_token_id=1, **shape)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        transformers.RobertaModel(config).save_pretrained(folder)
    return folder
