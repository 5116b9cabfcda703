"""The metrics: EmpathyScore of a model, and its two parts by themselves.

"EmpathyScore", Eq. 1: ``alpha * S_flow + (1 - alpha) * S_content``, both parts in [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.metrics.empathy_score.kinds import Scorer, scorer_of
from empathy_eval.metrics.empathy_score.model_folder import ModelFolder, read_model
from empathy_eval.metrics.empathy_score.training_range import TrainingRange
from empathy_eval.metrics.protocol import SEEDS, MeanMetric, Segments

FLOW, CONTENT = "flow", "content"
# Releases of nothing but the curated seed dialogues.
OF_SEEDS = ("empathy-eval-demo", "empathy-eval-seeds")
BOTH = (CONTENT, FLOW)


class EmpathyScore(MeanMetric):
    """The mean EmpathyScore of replies in [0, 1] by a trained model; of a model without flow it is its content alone."""

    reads = ("context",)

    def __init__(self, model: str = "plain", alpha: float = 0.5, part: str = "both") -> None:
        """Loads the model: a packaged one by its name, or a folder of ``train``.

        Raises:
            InputError: if it is no model, was changed, does not fit this version, or has no such part; or alpha is not in [0, 1].
        """
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha <= 1:
            raise input_error("empathyscore: alpha", f"{alpha!r} is out of range", "use a number from 0 to 1: the weight of flow")
        if not isinstance(model, str):
            raise input_error("empathyscore: model", f"{model!r} is not a name", "name a packaged model or the folder of one, in quotes")
        self._take(read_model(model), alpha, part)

    @classmethod
    def of(cls, folder: ModelFolder, scorer: Scorer | None = None) -> EmpathyScore:
        """The metric of a model that was read, or was made just now and is at work."""
        metric = cls.__new__(cls)
        metric._take(folder, 0.5, "both", scorer)
        return metric

    def _take(self, folder: ModelFolder, alpha: float, part: str, scorer: Scorer | None = None) -> None:
        config = folder.config
        has_flow = FLOW in config["parts"]
        if part == FLOW and not has_flow:
            what = f'has no flow: a model of the kind "{config["kind"]}" scores content alone'
            raise input_error(f"empathyscore-flow: model {folder.name}", what, "use empathyscore, or a model that was trained with flow")
        self._scorer = scorer or scorer_of(folder)
        self.keep, self.share, self.places = self._scorer.keep, self._scorer.share, self._scorer.places
        parts = {"both": BOTH if has_flow else (CONTENT,), CONTENT: (CONTENT,), FLOW: (FLOW,)}[part]
        self._weights = {one: 1.0 if len(parts) == 1 else alpha if one == FLOW else 1 - alpha for one in parts}
        self.name = f"EmpathyScore{'' if part == 'both' else f' {part}'} ({folder.name})"
        self.signature = _signature(folder, self._weights)
        self._range = TrainingRange.of(folder)
        name, splits = config["release"]["name"], tuple(config["splits"])
        self.trained_on: Mapping[str, Sequence[str]] = {name: splits, **({SEEDS: splits} if name in OF_SEEDS else {})}

    def score_all(self, segments: Segments) -> Any:
        """The scores of texts, one each, in their order."""
        return sum(weight * getattr(self._scorer, part)(segments) for part, weight in self._weights.items())

    def outside(self, segments: Segments) -> Sequence[tuple[int, str]]:
        """(row, reason) of texts unlike those that the model was trained on, by language, length and features."""
        return self._range.outside(segments)


def _signature(folder: ModelFolder, weights: dict[str, float]) -> str:
    config, release = folder.config, folder.config["release"]
    return signature_line(
        kind=config["kind"], sha256=folder.sha256[:12], weights=",".join(f"{part}={one}" for part, one in weights.items()),
        trained=f"{release['name']} {release['version']},{'+'.join(config['splits'])}", data=release["data"][:12],
        contrasts=",".join(config["contrasts"]), version=1,
    )  # fmt: skip
