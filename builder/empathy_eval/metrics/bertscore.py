"""BERTScore: the model, the tokenizer and the definition of the bert-score package, each text embedded once."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import missing_package
from empathy_eval.base.hashing import digest_bytes, digest_file, signature_line
from empathy_eval.metrics.protocol import Array, MeanMetric, Segments
from empathy_eval.metrics.weights import FILE, PACKAGED, WITHOUT, folder_of, is_hash, published

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

    A similarity below 0 counts as 0. In bert-score it does wherever a pair is padded, which all but the longest of a batch are; here
    it always does, so that a score does not depend on what else is in the batch.
    """

    name = "BERTScore F1"
    # Embeddings vary by about 1e-7 with the order of batches and the place in memory.
    places = 4
    keep = True

    def __init__(self, model: str = PACKAGED, layer: int = 6, against: str = "reference") -> None:
        """Loads a model: a Hub name, a folder, weights by their hash, or the packaged one; safetensors alone.

        ``against`` is what a text is compared with: its ``reference``, or of its ``context`` what the seeker said last.

        Raises:
            InputError: if bert-score, or the package that holds the configured weights, is not installed, or there are no safetensors.
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
        """Travels in main memory: another machine may have other devices."""
        known: dict[str, Any] = {"_again": {}, "_means": None if self._means is None else {}}
        return {**self.__dict__, **known, "_model": dense(self._model)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._device = device()
        self._model = quick(self._model) if self._device == "cpu" else self._model.to(self._device)

    def score_all(self, segments: Segments) -> list[float]:
        """F1 of each text."""
        # Of a context the last turn of the seeker; empty where there is none.
        last = (next((turn["text"] for turn in reversed(one) if turn["role"] == "seeker"), "") for one in segments.contexts)
        others = segments.references if "reference" in self.reads else last
        pairs = list(zip(segments.texts, others, strict=True))
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
        """By text: the unit vectors of its tokens, and their weights (0 for the tokens that mark its ends, else 1)."""
        import torch

        ends = torch.tensor([end for end in (self._tokenizer.sep_token_id, self._tokenizer.cls_token_id) if end is not None])
        embedded = {text: self._again[text] for text in texts if text in self._again}
        for some, tokens, mask, vectors in self._encoded([text for text in texts if text not in embedded]):
            self._with_means(some, mask, vectors)
            # Together and without their padding: many small copies would scatter over memory.
            kept, lengths = vectors[mask.bool()], mask.sum(dim=1).tolist()
            kept /= kept.norm(dim=-1, keepdim=True)
            weights: Any = (~torch.isin(tokens, ends)).float().to(self._device)[mask.bool()]
            embedded |= dict(zip(some, zip(kept.split(lengths), weights.split(lengths), strict=True), strict=True))
        return embedded

    def _encoded(self, texts: Sequence[str]) -> Iterator[tuple[list[str], Any, Any, Any]]:
        """Batch by batch some of the texts, their tokens, which of these are no padding, and the vectors of all."""
        from bert_score.utils import bert_encode, padding, sent_encode

        # bert-score's own way with an empty text does not work with today's transformers.
        ids = [sent_encode(self._tokenizer, text) if text.strip() else self._tokenizer.encode("") for text in texts]
        for rows in batches([len(one) for one in ids], TOKENS[self._device]):
            tokens, _, mask = padding([ids[row] for row in rows], self._tokenizer.pad_token_id or 0)
            mask = mask.to(self._device)
            yield [texts[row] for row in rows], tokens, mask, bert_encode(self._model, tokens.to(self._device), attention_mask=mask)

    def _with_means(self, texts: Sequence[str], mask: Any, vectors: Any) -> dict[str, Any]:
        """By text the mean of its tokens' vectors, of length 1, in units of the last of ``PLACES``; kept where that is asked for."""
        if self._means is None:
            return {}
        sums = (vectors * mask.unsqueeze(-1)).sum(dim=1).double()
        means = np.rint((sums / sums.norm(dim=-1, keepdim=True)).cpu().numpy() * 10**PLACES).astype(np.int16)
        made = dict(zip(texts, means, strict=True))
        if len(self._means) < MEANS:
            self._means |= made
        return made


def places_of(shape: Mapping[str, Any]) -> int:
    """How many tokens an encoder of this ``config.json`` takes at most."""
    # RoBERTa counts its places from behind that of the padding.
    offset = shape.get("pad_token_id", 1) + 1 if "roberta" in shape["model_type"] else 0
    return int(shape.get("max_position_embeddings", 512)) - offset


def device() -> str:
    """``cuda`` where there is one, else ``cpu``."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def quick(model: Any) -> Any:
    """A model whose linear layers are oneDNN's, where torch has it and MKL is not at home.

    On a processor of AMD these take half the time of MKL's, on one of Intel a fifth more.
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
    """Whether the processor is one of Intel, as far as the system tells."""
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
    """Places in order of size, as many together as stay within the number of tokens once padded; at least one."""
    batch: list[int] = []
    for place in sorted(range(len(sizes)), key=lambda place: (sizes[place], place)):
        if batch and sizes[place] * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _padded(side: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Vectors and weights, filled up with 0: the padding has the similarity 0 to everything, and no weight."""
    from torch.nn.utils.rnn import pad_sequence

    vectors, weights = zip(*side, strict=True)
    return pad_sequence(list(vectors), batch_first=True), pad_sequence(list(weights), batch_first=True)


def _matched(text: tuple[Any, Any], reference: tuple[Any, Any]) -> Any:
    """F1 of greedy matching: each token with the most similar of the other side."""
    similar = (text[0] @ reference[0].transpose(1, 2)).clamp(min=0)
    precision = (similar.amax(dim=2) * text[1]).sum(dim=1) / text[1].sum(dim=1)
    recall = (similar.amax(dim=1) * reference[1]).sum(dim=1) / reference[1].sum(dim=1)
    # As in bert-score, a text without a token, and two that share nothing, have the score 0.
    return (2 * precision * recall / (precision + recall)).nan_to_num(nan=0.0)


def _digest(model: Any) -> str:
    """The first 12 digits of the SHA-256 of weights as loaded: those of a Hub name, whose file may be there in several forms."""
    weights = (tensor.detach().cpu().contiguous().flatten() for _, tensor in sorted(model.state_dict().items()))
    import torch

    return digest_bytes(b"".join(digest_bytes(tensor.view(torch.uint8).numpy()).encode() for tensor in weights))[:12]


class Embedder(BertScore):
    """A model as BERTScore loads it, for the vectors alone."""

    def __init__(self, model: str, layer: int, beside: Iterable[object] = ()) -> None:
        """Loads the model, or takes that of a BERTScore ``beside`` it: that keeps the means of what it embeds from now on.

        Raises:
            InputError: as BERTScore.
        """
        same = next((one for one in beside if isinstance(one, BertScore) and one.encoder == (model, layer)), None)
        if same is None:
            super().__init__(model, layer)
            self._means = {}
        else:
            same._means = {}
            self.__dict__.update(same.__dict__)

    def cut(self, shape: Mapping[str, Any]) -> None:
        """Lets texts be cut to the places that an encoder of this ``config.json`` has, whatever its tokenizer says."""
        self._tokenizer.model_max_length = min(self._tokenizer.model_max_length, places_of(shape))

    def embedded(self, texts: Sequence[str]) -> Array:
        """The embedding of each text, shape (texts, dimensions); one that comes again is embedded once."""
        import torch

        known = self._means or {}
        found = {text: known.get(text) for text in texts}
        with torch.inference_mode():
            for some, _, mask, vectors in self._encoded([text for text, mean in found.items() if mean is None]):
                found.update(self._with_means(some, mask, vectors))
        rows: Array = np.array([found[text] for text in texts], dtype=np.float64)
        return np.asarray(rows.reshape(len(texts), self._model.config.hidden_size) / 10**PLACES)
