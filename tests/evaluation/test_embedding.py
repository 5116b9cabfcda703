"""The shortcut embedding: its closed form, its sample, and what it needs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.evaluation.shortcuts import texts
from empathy_eval.evaluation.shortcuts.shortcuts import audit
from empathy_eval.evaluation.shortcuts.texts import RIDGE, Embedding, embedding_of, ridge_margins, sample_pairs
from empathy_eval.metrics.bertscore import PLACES
from empathy_eval.releases.assemble.write import Released


@pytest.fixture(scope="module")
def model() -> Embedding:
    return Embedding()


def test_a_pair_is_scored_by_the_ridge_of_the_other_folds() -> None:
    # Fold 1 teaches fold 0: X'X = [[5, 0], [0, 4]], X'1 = [3, 2], so w = (3 / (5 + ridge), 2 / (4 + ridge)).
    difference = np.array([[1.0, 1.0], [1.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    found = ridge_margins(difference + 5, np.full((4, 2), 5.0), np.array([0, 1, 1, 1]))
    assert found[0] == pytest.approx(3 / (5 + RIDGE) + 2 / (4 + RIDGE))
    # Fold 0 teaches fold 1: X'X = [[1, 1], [1, 1]], X'1 = [1, 1], so both weights are 1 / (2 + ridge).
    assert found[1:] == pytest.approx(np.array([1, 2, 2]) / (2 + RIDGE))


def test_the_sample_is_the_whole_or_is_drawn_by_id_and_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [f"{one:03d}-seed-t01" for one in range(50)]
    assert sample_pairs(ids, 1).tolist() == list(range(50))
    monkeypatch.setattr(texts, "MOST", 10)
    some = sample_pairs(ids, 1).tolist()
    assert len(some) == 10 and some == sorted(some) != sample_pairs(ids, 2).tolist()
    # Who is drawn hangs on ids alone: without a pair that was not drawn the same are.
    gone = next(one for one in range(50) if one not in some)
    left = [name for name in ids if name != ids[gone]]
    assert [left[row] for row in sample_pairs(left, 1)] == [ids[row] for row in some]


def test_texts_are_points_of_length_1_each_embedded_once_and_whatever_is_beside_them(model: Embedding) -> None:
    texts = ["I hear you.", "", "That sounds hard. I am sorry.", "I hear you."]
    found = model.embedded(texts)
    assert found.shape == (4, 384) and np.linalg.norm(found, axis=1) == pytest.approx(1, abs=2e-3)
    assert (found[0] == found[3]).all() and (found == np.round(found, PLACES)).all()
    model._means = {}
    assert model.embedded(texts[2:3])[0] == pytest.approx(found[2], abs=1.01e-4)
    for part in ("weights:", "torch:", "transformers:", f"ridge:{RIDGE}", "sample:5000", "model:all-MiniLM-L6-v2"):
        assert part in model.signature


@pytest.mark.e2e
def test_it_is_a_shortcut_of_every_contrast_where_the_configuration_asks_for_it(released: tuple[Path, Released], light: Path) -> None:
    told = released[1].report.measured.audit
    assert replace(audit(released[0]), provenance=None) == told
    for one in told.contrasts:
        row = one.shortcuts[-1]
        assert row.name == "embedding" and row.trained and row.accuracy and "weights:" in row.signature
        assert one.line and one.line.accuracy and one.line.accuracy.number >= row.accuracy.number
    assert [row.name for row in audit(released[0], without=["embedding"]).contrasts[0].shortcuts] == [
        row.name for row in audit(light).contrasts[0].shortcuts
    ]
    with pytest.raises(InputError, match='"words alone" cannot be left out'):
        audit(light, without=["words alone"])


@pytest.mark.e2e
def test_where_a_sample_is_embedded_its_figures_say_so(released: tuple[Path, Released], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MOST", 12)
    for one in audit(released[0]).contrasts:
        assert (one.shortcuts[-1].pairs, one.shortcuts[0].pairs) == (min(12, one.pairs), one.pairs)


def test_missing_packages_are_reported_with_both_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bert_score", "bert_score.utils"):
        monkeypatch.setitem(sys.modules, name, None)
    settings = {"shortcuts": {"embedding": "all-MiniLM-L6-v2"}}
    with pytest.raises(InputError, match="report: shortcuts: embedding: needs packages(.|\n)*pip install .*--without embedding"):
        embedding_of(settings)
    assert embedding_of(settings, ["embedding"]) is None is embedding_of({})
