"""The kind ``students``: networks that were taught to say of a reply how well it goes on (flow) and what it gives (content)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from empathy_eval.base.errors import InputError, input_error
from empathy_eval.base.parsing import Refused, json_value
from empathy_eval.metrics.bertscore import device
from empathy_eval.metrics.empathy_score.encoders import is_shape
from empathy_eval.metrics.empathy_score.inputs import Inputs, told
from empathy_eval.metrics.empathy_score.model_folder import ANEW, ENCODER, OF_STUDENTS, TOKENIZER, ModelFolder
from empathy_eval.metrics.empathy_score.networks import Design, loaded, require, scored
from empathy_eval.metrics.protocol import Array, Segments


class Students:
    """Students at work; they read the conversation and the reply. All that they need lies in their folder."""

    keep, share, places = True, False, 4

    def __init__(self, folder: ModelFolder) -> None:
        """Takes the weights of a folder.

        Raises:
            InputError: if packages are missing, or the folder does not hold what students have.
        """
        require()
        if set(folder.files) != set(OF_STUDENTS):
            raise input_error(folder.path, f"does not hold exactly the files of students: {' and '.join(OF_STUDENTS)}", ANEW)
        settings = folder.config["settings"]
        shape, most, shared = _shape(folder), settings.get("max_tokens"), settings.get("shared")
        if not isinstance(most, int) or not isinstance(shared, bool):
            raise input_error(folder.path, 'has no valid "max_tokens" and "shared" in its settings', ANEW)
        self._design = Design(tuple(folder.config["parts"]), shared, shape)
        if not 8 <= most <= self._design.places:
            raise input_error(folder.path, f"takes {most} tokens, but its encoder takes at most {self._design.places}", ANEW)
        self._last: tuple[Segments, dict[str, Array]] | None = None
        self._inputs = Inputs(folder.files[TOKENIZER], most)
        self._network: Any = loaded(self._design, folder.arrays, folder.path).to(device())

    def content(self, segments: Segments) -> Array:
        """How empathetic each text is by what it says."""
        return self._parts(segments)["content"]

    def flow(self, segments: Segments) -> Array:
        """How well each text goes on from its context."""
        return self._parts(segments)["flow"]

    def _parts(self, segments: Segments) -> dict[str, Array]:
        """Both parts are asked for one after the other, and are made together."""
        if self._last is None or self._last[0] is not segments:
            self._last = (segments, self._scores(segments))
        return self._last[1]

    def _scores(self, segments: Segments) -> dict[str, Array]:
        contexts = [told(one) for one in segments.contexts] or [""] * len(segments.texts)
        place = {one: row for row, one in enumerate(dict.fromkeys(zip(contexts, segments.texts, strict=True)))}
        found = scored(self._network, self._inputs.of(*map(list, zip(*place, strict=True))) if place else [], self._design)
        rows = [place[one] for one in zip(contexts, segments.texts, strict=True)]
        return {part: one[rows] if rows else np.zeros(0) for part, one in found.items()}


def _shape(folder: ModelFolder) -> Mapping[str, Any]:
    try:
        shape = json_value(folder.files[ENCODER].decode())
        if is_shape(shape):
            return dict(shape)
    except (Refused, InputError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        pass
    raise input_error(folder.path / ENCODER, "is not the shape of an encoder", ANEW)
