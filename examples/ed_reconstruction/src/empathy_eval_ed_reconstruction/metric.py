"""The metric: Eq. 1 of ED with fitted weights."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.metrics.protocol import Array, MeanMetric, Segments

from empathy_eval_ed_reconstruction.features import Features
from empathy_eval_ed_reconstruction.readings import Readings, StandIn
from empathy_eval_ed_reconstruction.weights import VECTORS, read_weights

METRIC = "ed-reconstruction"
FIX = f"fit them to ratings (README.md says how), and name the file: {METRIC}:weights=FILE"


class EdReconstruction(MeanMetric):
    """The mean of ``sigmoid(w1 . E_R + w2 . E_U + w3 . W + b)`` in (0, 1): what raters of the fitted ratings would give, as a share of
    their scale. It is no distance, and not the ED of "EMPATH", whose models it does not have.
    """

    name = "ED reconstruction"
    places = 4
    reads = ("context",)
    keep = True

    def __init__(self, weights: str = "", readings: Readings | str | None = None) -> None:
        """``weights`` is a file of :func:`~empathy_eval_ed_reconstruction.fitting.fitted_to`, ``readings`` what it was fitted with.

        Raises:
            InputError: if there is no such file, or it was fitted with other readings or another embedding.
        """
        if isinstance(readings, str):
            fix = "write a class that hands an object of yours to EdReconstruction, and name it module:class"
            raise input_error(f"{METRIC}: readings", f'"{readings}" is a text', fix)
        path = Path(str(weights))
        if not weights or not path.is_file():
            raise input_error(f"{METRIC}: weights", f'"{weights}" is no file' if weights else "names no file", FIX)
        self._fitted, self._features = read_weights(path), Features(readings or StandIn())
        for told, here, what in (
            (self._fitted.readings, self._features.readings, "readings"),
            (self._fitted.embedding, self._features.embedding, "embedding"),
        ):
            if told != here:
                raise input_error(path, f'was fitted with the {what} "{told}", and here they are "{here}"', "fit the weights anew")
        if wrong := [name for name in VECTORS if len(getattr(self._fitted, name)) != self._features.size]:
            raise input_error(path, f"{', '.join(wrong)}: the embedding has {self._features.size} places", "fit the weights anew")
        low, high = self._fitted.scale
        versions = {name: metadata.version(name) for name in ("bert-score", "transformers", "torch", "numpy")}
        self.signature = signature_line(
            weights=self._fitted.sha256[:12], ratings=self._fitted.ratings, scale=f"{low}-{high}", ridge=self._fitted.ridge,
            readings=self._fitted.readings, embedding=self._fitted.embedding, utterance="seeker-turns-since-the-last-helper-turn",
            version=1, **versions,
        )  # fmt: skip

    def score_all(self, segments: Segments) -> Array:
        """The scores of replies, one each, in their order.

        Raises:
            ValueError: as :meth:`Features.of`.
        """
        return self._fitted.scores(self._features.of(segments))
