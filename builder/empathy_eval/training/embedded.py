"""The kind ``encoder``: the plain trainer's mean differences of pairs, over plain features and embeddings by a frozen encoder."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata

import numpy as np

from empathy_eval.metrics.bertscore import PLACES
from empathy_eval.metrics.empathy_score.embedded import Columns
from empathy_eval.metrics.empathy_score.encoders import encoder_named
from empathy_eval.training.contrasts import Reader, Task
from empathy_eval.training.kinds import Trained
from empathy_eval.training.plain import Direct, Kept, Range, trained


def train(task: Task) -> Trained:
    """Trains a model over an encoder that stays as it is.

    Raises:
        InputError: if packages are missing, the encoder is none, there are no pairs, or a file of the release is damaged.
    """
    encoder, reader = encoder_named(task.encoder), Reader(task)
    columns, winners, losers, words = Columns(encoder), list[Kept](), list[Kept](), Range()
    for batch in reader.batches():
        for rows, side in ((winners, batch.winners), (losers, batch.losers)):
            rows.append(columns.of(side).astype(np.int32))
            words.take(side)
    made = trained(Direct(np.concatenate(winners), np.concatenate(losers)), reader.seen.data, words)
    settings = {
        "embedding": "mean of tokens, length 1, of the reply, and its product with that of the seeker's last turn",
        "embedding_places": PLACES,
        "encoder_files": encoder.files, **{name: metadata.version(name) for name in ("bert-score", "torch", "transformers")},
    }  # fmt: skip
    return replace(made, settings={**made.settings, **settings}, encoder={"name": encoder.name, "sha256": encoder.sha256})
