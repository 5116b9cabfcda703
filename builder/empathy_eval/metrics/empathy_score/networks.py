"""The network of students: an encoder for each part, or one for both, and on its first token a head that ends in a number from 0 to 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from empathy_eval.base.errors import input_error, missing_package
from empathy_eval.metrics.bertscore import TOKENS, batches
from empathy_eval.metrics.empathy_score.inputs import Ids
from empathy_eval.metrics.empathy_score.tensors import Arrays

if TYPE_CHECKING:
    import torch

HIDDEN, DROPOUT = 256, 0.1
SHARED = "encoder"
# Attention whose sums are of one order on every machine of a kind.
PLAINLY = {"attn_implementation": "eager"}


def require() -> None:
    """Looks whether the packages of students are there.

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
class Design:
    """The parts that a network scores, whether they share an encoder, and the ``config.json`` of it."""

    parts: tuple[str, ...]
    shared: bool
    shape: Mapping[str, Any]

    @property
    def types(self) -> bool:
        """Whether the encoder tells the two texts of a pair apart by type."""
        return int(self.shape.get("type_vocab_size", 0)) > 1

    @property
    def places(self) -> int:
        """The tokens that the encoder takes at most."""
        offset = self.shape.get("pad_token_id", 1) + 1 if "roberta" in self.shape["model_type"] else 0
        return int(self.shape.get("max_position_embeddings", 512)) - offset


def started(design: Design, folder: Path) -> torch.nn.ModuleDict:
    """A network whose encoders are those of a folder, and whose heads are drawn from the seed that torch has now."""
    import torch
    from transformers import AutoModel
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()

    def encoder() -> Any:
        return _bare(AutoModel.from_pretrained(str(folder), dtype=torch.float32, use_safetensors=True, local_files_only=True, **PLAINLY))

    return _network(design, encoder)


def loaded(design: Design, arrays: Arrays, where: object) -> torch.nn.ModuleDict:
    """The network with these weights.

    Raises:
        InputError: if they are not of its shape.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    def encoder() -> Any:
        shape = {name: one for name, one in design.shape.items() if name not in ("model_type", "dtype", "torch_dtype")}
        config = AutoConfig.for_model(design.shape["model_type"], **shape)
        return _bare(AutoModel.from_config(config, dtype=torch.float32, **PLAINLY))

    def shapes(network: torch.nn.ModuleDict) -> dict[str, tuple[int, ...]]:
        return {name: tuple(one.shape) for name, one in network.state_dict().items()}

    try:
        # Only the shapes at first: what a stranger's file says may be larger than the memory.
        with torch.device("meta"):
            told = shapes(_network(design, encoder))
        if told != {name: one.shape for name, one in arrays.items()}:
            raise ValueError("weights of another shape")
        if not all(np.isfinite(one).all() for one in arrays.values()):
            raise ValueError("weights that are not numbers")
        with torch.random.fork_rng():
            network = _network(design, encoder)
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
        raise input_error(
            where, f"does not hold valid weights of students: {str(error)[:200]}", "fetch or train the model again"
        ) from error
    network.load_state_dict({name: torch.from_numpy(one.copy()) for name, one in arrays.items()})
    return network.eval()


def arrays_of(network: torch.nn.ModuleDict) -> Arrays:
    """The weights of a network."""
    return {name: one.detach().cpu().numpy().copy() for name, one in network.state_dict().items()}


def forward(network: torch.nn.ModuleDict, tensors: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """By part the scores of a batch, each in [0, 1]."""
    scores: dict[str, torch.Tensor] = {}
    shared = network[SHARED](**tensors).last_hidden_state[:, 0] if SHARED in network else None
    for part in parts_of(network):
        first = network[f"{part}_{SHARED}"](**tensors).last_hidden_state[:, 0] if shared is None else shared
        scores[part] = network[f"{part}_head"](first).squeeze(-1)
    return scores


def parts_of(network: torch.nn.ModuleDict) -> list[str]:
    """The parts that a network scores."""
    return [name.removesuffix("_head") for name in network if name.endswith("_head")]


def padded(ids: Sequence[Ids], design: Design, device: str) -> dict[str, Any]:
    """A batch as the encoder takes it."""
    import torch

    longest, pad = max(len(one) for one, _ in ids), design.shape.get("pad_token_id") or 0
    tokens = torch.tensor([[*one, *[pad] * (longest - len(one))] for one, _ in ids])
    mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one, _ in ids])
    found = {"input_ids": tokens, "attention_mask": mask}
    if design.types:
        found["token_type_ids"] = torch.tensor([[*kinds, *[0] * (longest - len(kinds))] for _, kinds in ids])
    return {name: one.to(device) for name, one in found.items()}


def scored(network: torch.nn.ModuleDict, ids: Sequence[Ids], design: Design) -> dict[str, Any]:
    """By part the scores of pairs, as an array in their order; nothing is dropped out."""
    import torch

    device = next(network.parameters()).device.type
    found = {part: np.zeros(len(ids)) for part in design.parts}
    network.eval()
    with torch.inference_mode():
        for rows in batches([len(one) for one, _ in ids], TOKENS[device]):
            for part, scores in forward(network, padded([ids[row] for row in rows], design, device)).items():
                found[part][rows] = scores.double().cpu().numpy()
    return found


def _network(design: Design, encoder: Any) -> torch.nn.ModuleDict:
    from torch.nn import ModuleDict

    encoders = {SHARED: encoder()} if design.shared else {f"{part}_{SHARED}": encoder() for part in design.parts}
    return ModuleDict({**encoders, **dict(_heads(design))})


def _heads(design: Design) -> Iterator[tuple[str, torch.nn.Module]]:
    from torch.nn import GELU, Dropout, Linear, Sequential, Sigmoid

    for part in design.parts:
        yield (
            f"{part}_head",
            Sequential(Linear(design.shape["hidden_size"], HIDDEN), GELU(), Dropout(DROPOUT), Linear(HIDDEN, 1), Sigmoid()),
        )


def _bare(model: Any) -> Any:
    """An encoder without what nothing here reads."""
    if hasattr(model, "pooler"):
        model.pooler = None
    return model
