"""Where training stands, in a folder beside the model's: whole or absent at any moment, so that a killed training goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from empathy_eval.base.files import whole_file

STATE = "state.safetensors"


class Checkpoint:
    """The checkpoints of one training; those of another, with other settings or data, are passed over. Without a folder there are none."""

    def __init__(self, folder: Path | None, key: str) -> None:
        self._folder, self._key = folder, key

    def load(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """(where it stood, tensors) of the last one; None if there is none of this training."""
        from safetensors import SafetensorError, safe_open

        if self._folder is None or not (self._folder / STATE).is_file():
            return None
        try:
            with safe_open(self._folder / STATE, "pt") as file:
                state = json.loads((file.metadata() or {}).get("state", "{}"))
                if state.get("key") != self._key:
                    return None
                return state, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        except (SafetensorError, OSError, ValueError):
            return None

    def save(self, state: dict[str, Any], tensors: dict[str, Any]) -> None:
        """Keeps where it stands; those weights that are neither the last nor the best are let go."""
        if self._folder is not None:
            _write(self._folder / STATE, tensors, {"state": json.dumps({**state, "key": self._key})})
            for path in self._folder.glob("best-*.safetensors"):
                if path.name != _best(state["best"]):
                    path.unlink()

    def keep_best(self, epoch: int, weights: dict[str, Any]) -> None:
        """Keeps the weights after an epoch; they count once a state says so."""
        if self._folder is not None:
            _write(self._folder / _best(epoch), weights, {"key": self._key})

    def best(self, epoch: int) -> dict[str, Any]:
        """The weights after that epoch."""
        from safetensors.torch import load_file

        found: dict[str, Any] = load_file((self._folder or Path()) / _best(epoch))
        return found


def _write(path: Path, tensors: dict[str, Any], metadata: dict[str, str]) -> None:
    from safetensors.torch import save_file

    with whole_file(path) as partial:
        save_file({key: one.contiguous() for key, one in tensors.items()}, partial, metadata)


def _best(epoch: int | None) -> str:
    return f"best-{epoch}.safetensors"
