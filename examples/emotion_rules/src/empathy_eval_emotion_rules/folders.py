"""Weights in folders of this machine: nothing is downloaded, no pickle and no code is run, and what is missing is never made up."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.metrics.bertscore import FILE, PATTERNS, codeless, device, label_of

METRIC = "emotion-rules"
# Where neither the configuration of a model nor its tokenizer says how many tokens it takes.
PLACES = 512


@dataclass(frozen=True)
class Weights:
    """A folder with a model and its tokenizer, and the hash of all files in it that can change a number."""

    path: Path
    sha256: str

    @property
    def signature(self) -> str:
        """``label@1a2b3c4d5e6f``, which tells no path."""
        return f"{label_of(str(self.path))}@{self.sha256[:12]}"


@dataclass(frozen=True)
class Loaded:
    """A model with its tokenizer; ``places`` is the number of tokens that it takes, marks of the ends included."""

    tokenizer: Any
    model: Any
    places: int
    device: str

    def tokens(self, texts: list[str]) -> Any:
        """The tokens of texts as tensors, padded on the right; what is longer than the model takes is cut."""
        made = self.tokenizer(texts, padding=True, truncation=True, max_length=self.places, return_tensors="pt")
        return {name: made[name].to(self.device) for name in ("input_ids", "attention_mask")}


def weights_in(setting: str, folder: object, what: str) -> Weights:
    """The folder that a setting names; ``what`` belongs into it.

    Raises:
        InputError: if it names none, or one without safetensors, or one that asks for code of its own.
    """
    where, path = f"{METRIC}: {setting}", Path(str(folder))
    fix = f"save {what} into a folder with save_pretrained of transformers, and name it: {METRIC}:{setting}=FOLDER; nothing is downloaded"
    if folder == "" or folder is None:
        raise input_error(where, "names no folder", fix)
    if not path.is_dir():
        raise input_error(where, f'"{folder}" is not a folder of this machine', fix)
    if missing := [name for name in ("config.json", FILE) if not (path / name).is_file()]:
        raise input_error(where, f'"{folder}" holds no {" and no ".join(missing)}', fix)
    if not codeless(path):
        raise input_error(where, f'"{folder}" asks for code of its own, which is not run', f"name another folder with {what}")
    found = sorted({one.name: one for pattern in PATTERNS for one in path.glob(pattern) if one.is_file()}.items())
    return Weights(path, digest({name: digest_file(one) for name, one in found}).rpartition("-")[2])


def loaded(setting: str, weights: Weights, kind: str) -> Loaded:
    """The model of a folder by the class of transformers of that name, such as ``AutoModelForSequenceClassification``.

    Raises:
        InputError: if the folder is of another kind of model, or lacks some of its weights: transformers would draw these at random.
    """
    import transformers
    from transformers.utils.logging import disable_progress_bar

    # Bars and notes of its own would stand among ours.
    disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    where, fix = f"{METRIC}: {setting}", f"name a folder that {kind}.from_pretrained of transformers loads whole"
    settings = {"local_files_only": True, "use_safetensors": True, "output_loading_info": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(weights.path, local_files_only=True, trust_remote_code=False)
        model, told = getattr(transformers, kind).from_pretrained(weights.path, **settings)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        said = (str(error).splitlines() or [""])[0][:200]
        raise input_error(where, f'"{weights.path}" cannot be loaded: {type(error).__name__}: {said}', fix) from error
    if absent := sorted([*told["missing_keys"], *(str(one) for one in told["mismatched_keys"])]):
        raise input_error(where, f'"{weights.path}" lacks {len(absent)} of the weights, first "{absent[0]}"', fix)
    model = model.float().eval().to(device())
    return Loaded(tokenizer, model, _places(model.config, tokenizer), device())


def _places(config: Any, tokenizer: Any) -> int:
    places = getattr(config, "max_position_embeddings", PLACES)
    # RoBERTa counts its places from behind that of the padding.
    offset = config.pad_token_id + 1 if "roberta" in config.model_type else 0
    return int(min(tokenizer.model_max_length, places - offset))
