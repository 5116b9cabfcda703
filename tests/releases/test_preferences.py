"""``preferences`` is what preference trainers take: shown by a trainer's own preparation of the data."""

from pathlib import Path
from typing import Any

import datasets
import pytest
from empathy_eval.releases.assemble.write import Released
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, is_conversational

TEMPLATE = "{% for m in messages %}<{{ m.role }}> {{ m.content }} </s> {% endfor %}{% if add_generation_prompt %}<assistant> {% endif %}"


@pytest.fixture
def preferences(released: tuple[Path, Released]) -> datasets.Dataset:
    return datasets.load_dataset(str(released[0]), "preferences", split="train")


def test_a_preference_trainer_prepares_every_row(preferences: datasets.Dataset, tmp_path: Path) -> None:
    assert all(is_conversational(row) for row in preferences)
    words = {word: number for number, word in enumerate(["[UNK]", "</s>", "[PAD]", "<user>", "<assistant>"])}
    tokens = Tokenizer(WordLevel(words, "[UNK]"))
    tokens.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokens, unk_token="[UNK]", eos_token="</s>", pad_token="[PAD]")
    tokenizer.chat_template = TEMPLATE
    tiny = tmp_path / "tiny"
    GPT2LMHeadModel(GPT2Config(vocab_size=len(words), n_positions=16, n_embd=8, n_layer=1, n_head=1)).save_pretrained(tiny)
    settings = DPOConfig(output_dir=str(tmp_path), report_to=[], use_cpu=True, bf16=False, max_length=None)
    trainer = DPOTrainer(str(tiny), args=settings, train_dataset=preferences, processing_class=tokenizer)
    prepared: Any = trainer.train_dataset
    assert len(prepared) == len(preferences)
    assert {"prompt_ids", "chosen_ids", "rejected_ids"} <= set(prepared.column_names)
