"""The model kind ``students``: networks trained to rate how well a reply continues (flow) and what it gives (content).

They read the end of the conversation and the reply, as a pair of the encoder's tokenizer. A network is an encoder for each part, or one for
both, and a head on its first token that ends in a number from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from empathy_eval.base.array_files import Arrays
from empathy_eval.base.errors import input_error, missing_package
from empathy_eval.metrics.bertscore import TOKENS, batches, device, places_of
from empathy_eval.metrics.empathy_score.encoders import shape_of
from empathy_eval.metrics.empathy_score.model import ENCODER, FIX_MODEL, OF_STUDENTS, TOKENIZER, ModelFolder
from empathy_eval.metrics.protocol import Array, Context, Segments

if TYPE_CHECKING:
    import torch

SPEAKERS = {"seeker": "Seeker", "helper": "Helper"}
# The ids of the tokens of a pair, and of which text each is.
Ids = tuple[list[int], list[int]]
HIDDEN, DROPOUT = 256, 0.1
SHARED = "encoder"
# Attention whose sums are of one order on every machine of a kind.
PLAINLY = {"attn_implementation": "eager"}


def conversation_text(context: Context) -> str:
    """A conversation as text: a line for each turn, with its speaker."""
    return "\n".join(f"{SPEAKERS.get(turn['role'], turn['role'])}: {' '.join(turn['text'].split())}" for turn in context)


class PairTokenizer:
    """Tokenises pairs of a conversation and a reply.

    The reply is kept whole, with the last turns of the conversation that fit. A single turn that is too long keeps its end, a reply that is
    too long its beginning.
    """

    def __init__(self, tokenizer: bytes, most: int) -> None:
        """Loads a ``tokenizer.json``; ``most`` is the maximum number of tokens of a pair.

        Raises:
            InputError: if it cannot be read.
        """
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Any = Tokenizer.from_str(tokenizer.decode())
        # The library raises plain exceptions.
        except Exception as error:
            raise input_error("tokenizer.json", f"cannot be read: {str(error)[:200]}", FIX_MODEL) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._most = most - self._tokenizer.num_special_tokens_to_add(True)

    def of(self, contexts: Sequence[str], replies: Sequence[str]) -> list[Ids]:
        """The token ids of each pair."""
        before, after = (self._tokenizer.encode_batch(list(texts), add_special_tokens=False) for texts in (contexts, replies))
        return [self._pair(*arguments) for arguments in zip(contexts, before, after, strict=True)]

    def _pair(self, context: str, before: Any, after: Any) -> Ids:
        after.truncate(self._most)
        room = self._most - len(after.ids)
        if len(before.ids) > room:
            before.truncate(_kept(context, [start for start, _ in before.offsets], room), direction="left")
        pair = self._tokenizer.post_process(before, after)
        return pair.ids, pair.type_ids


def _kept(context: str, starts: Sequence[int], room: int) -> int:
    """How many of the last tokens are kept: the most whole turns that fit, or as many as fit if not even one does."""
    turns = [0, *(index + 1 for index, character in enumerate(context) if character == "\n")]
    counts = [sum(start >= turn for start in starts) for turn in turns]
    return next((count for count in counts if 0 < count <= room), room)


def require_packages() -> None:
    """Checks that the packages of students are installed.

    Raises:
        InputError: if they are not.
    """
    try:
        import tokenizers  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise missing_package("empathyscore: students", "bertscore", 'use a model of the kind "plain"') from error


@dataclass(frozen=True)
class NetworkDesign:
    """The parts that a network scores, whether they share an encoder, and its ``config.json``."""

    parts: tuple[str, ...]
    shared: bool
    shape: Mapping[str, Any]

    @property
    def types(self) -> bool:
        """Whether the encoder distinguishes the texts of a pair by type."""
        return int(self.shape.get("type_vocab_size", 0)) > 1


def new_network(design: NetworkDesign, folder: Path, seed: int) -> torch.nn.ModuleDict:
    """A network with the encoders of a folder, and heads initialised from a seed, which torch then has."""
    import torch
    from transformers import AutoModel
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()

    def encoder() -> Any:
        return _bare(AutoModel.from_pretrained(str(folder), dtype=torch.float32, use_safetensors=True, local_files_only=True, **PLAINLY))

    torch.manual_seed(seed)
    return _network(design, encoder)


def load_network(design: NetworkDesign, arrays: Arrays, where: object) -> torch.nn.ModuleDict:
    """The network with these weights.

    Raises:
        InputError: if they do not fit its shape.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    def encoder() -> Any:
        shape = {name: value for name, value in design.shape.items() if name not in ("model_type", "dtype", "torch_dtype")}
        config = AutoConfig.for_model(design.shape["model_type"], **shape)
        return _bare(AutoModel.from_config(config, dtype=torch.float32, **PLAINLY))

    def shapes(network: torch.nn.ModuleDict) -> dict[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}

    try:
        # Only the shapes at first: what a stranger's file says may be larger than the memory.
        with torch.device("meta"):
            expected = shapes(_network(design, encoder))
        if expected != {name: array.shape for name, array in arrays.items()}:
            raise ValueError("weights of another shape")
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("weights that are not numbers")
        with torch.random.fork_rng():
            network = _network(design, encoder)
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
        what = f"does not hold valid weights of students: {str(error)[:200]}"
        raise input_error(where, what, FIX_MODEL) from error
    network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
    return network.eval()


def arrays_of(network: torch.nn.ModuleDict) -> Arrays:
    """The weights of a network."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in network.state_dict().items()}


def forward(network: torch.nn.ModuleDict, tensors: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The scores of a batch by part, each in [0, 1]."""
    scores: dict[str, torch.Tensor] = {}
    shared = network[SHARED](**tensors).last_hidden_state[:, 0] if SHARED in network else None
    for part in [name.removesuffix("_head") for name in network if name.endswith("_head")]:
        first = network[f"{part}_{SHARED}"](**tensors).last_hidden_state[:, 0] if shared is None else shared
        scores[part] = network[f"{part}_head"](first).squeeze(-1)
    return scores


def padded(ids: Sequence[Ids], design: NetworkDesign, device: str) -> dict[str, Any]:
    """A batch as the encoder takes it."""
    import torch

    longest, pad = max(len(row) for row, _ in ids), design.shape.get("pad_token_id") or 0
    tokens = torch.tensor([[*row, *[pad] * (longest - len(row))] for row, _ in ids])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row, _ in ids])
    tensors = {"input_ids": tokens, "attention_mask": mask}
    if design.types:
        tensors["token_type_ids"] = torch.tensor([[*kinds, *[0] * (longest - len(kinds))] for _, kinds in ids])
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def scored(network: torch.nn.ModuleDict, ids: Sequence[Ids], design: NetworkDesign) -> dict[str, Any]:
    """The scores of pairs by part, in order, without dropout."""
    import torch

    device = next(network.parameters()).device.type
    result = {part: np.zeros(len(ids)) for part in design.parts}
    network.eval()
    with torch.inference_mode():
        for rows in batches([len(row) for row, _ in ids], TOKENS[device]):
            for part, scores in forward(network, padded([ids[row] for row in rows], design, device)).items():
                result[part][rows] = scores.double().cpu().numpy()
    return result


def _network(design: NetworkDesign, encoder: Any) -> torch.nn.ModuleDict:
    from torch.nn import GELU, Dropout, Linear, ModuleDict, Sequential, Sigmoid

    encoders = {SHARED: encoder()} if design.shared else {f"{part}_{SHARED}": encoder() for part in design.parts}
    heads = {
        f"{part}_head": Sequential(Linear(design.shape["hidden_size"], HIDDEN), GELU(), Dropout(DROPOUT), Linear(HIDDEN, 1), Sigmoid())
        for part in design.parts
    }
    return ModuleDict({**encoders, **heads})


def _bare(model: Any) -> Any:
    """An encoder without unused layers."""
    if hasattr(model, "pooler"):
        model.pooler = None
    return model


class StudentScorer:
    """The scorer of students; reads the conversation and the reply. Everything it needs is in its folder."""

    keep, share, places = True, False, 4

    def __init__(self, folder: ModelFolder) -> None:
        """Loads the weights of a folder.

        Raises:
            InputError: if packages are missing, or the folder is incomplete.
        """
        require_packages()
        if set(folder.files) != set(OF_STUDENTS):
            raise input_error(folder.path, f"does not hold exactly the files of students: {' and '.join(OF_STUDENTS)}", FIX_MODEL)
        settings = folder.config["settings"]
        if (shape := shape_of(folder.files[ENCODER])) is None:
            raise input_error(folder.path / ENCODER, "is not the shape of an encoder", FIX_MODEL)
        most, shared = settings.get("max_tokens"), settings.get("shared")
        if not isinstance(most, int) or not isinstance(shared, bool):
            raise input_error(folder.path, 'has no valid "max_tokens" and "shared" in its settings', FIX_MODEL)
        self._design = NetworkDesign(tuple(folder.config["parts"]), shared, shape)
        if not 8 <= most <= (places := places_of(shape)):
            raise input_error(folder.path, f"takes {most} tokens, but its encoder takes at most {places}", FIX_MODEL)
        self._inputs = PairTokenizer(folder.files[TOKENIZER], most)
        self._network: Any = load_network(self._design, folder.arrays, folder.path).to(device())

    def parts(self, segments: Segments) -> dict[str, Array]:
        """How empathetic each text is by what it says, and how well it continues its context."""
        contexts = [conversation_text(context) for context in segments.contexts] or [""] * len(segments.texts)
        position = {pair: row for row, pair in enumerate(dict.fromkeys(zip(contexts, segments.texts, strict=True)))}
        by_part = scored(self._network, self._inputs.of(*map(list, zip(*position, strict=True))) if position else [], self._design)
        rows = [position[pair] for pair in zip(contexts, segments.texts, strict=True)]
        return {part: scores[rows] if rows else np.zeros(0) for part, scores in by_part.items()}
