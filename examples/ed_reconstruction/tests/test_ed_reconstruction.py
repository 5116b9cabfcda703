"""The metric ``ed-reconstruction``: the arithmetic of Eq. 1 by hand, its stand-ins, its fit and its file of weights."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.metrics.bertscore import Embedder
from empathy_eval.metrics.protocol import Segments
from empathy_eval_ed_reconstruction import EdReconstruction, StandIn, fitted_to
from empathy_eval_ed_reconstruction.features import Features
from empathy_eval_ed_reconstruction.fitting import least_squares
from empathy_eval_ed_reconstruction.readings import EMOTIONS, POLARITIES, labels, utterance_of
from empathy_eval_ed_reconstruction.weights import Fitted, read_weights, sigmoid

RATED = (
    ("I lost my job today.", "I am so sorry, that is a hard blow.", 4.5),
    ("I lost my job today.", "Look at the listings.", 2.0),
    ("My cat died.", "That hurts. I love that you cared so well for her.", 5.0),
    ("My cat died.", "You can get another one.", 1.0),
    ("I cannot sleep.", "Drink less coffee then, you idiot.", 1.5),
)


def segments(rated: Sequence[tuple[str, str, float]] = RATED) -> Segments:
    contexts = [[{"role": "seeker", "text": said}] for said, _, _ in rated]
    return Segments([reply for _, reply, _ in rated], [""] * len(rated), contexts)


class Told:
    """Readings that are told: the texts are ``emotion polarity``."""

    signature = "told"

    def emotions(self, texts: Sequence[str]) -> list[str]:
        return [text.split()[0] for text in texts]

    def polarities(self, texts: Sequence[str]) -> list[str]:
        return [text.split()[1] for text in texts]

    def knowledge(self, utterances: Sequence[str], replies: Sequence[str]) -> list[str]:
        return [f"needs {one}" for one in utterances]


@pytest.fixture(scope="module")
def features() -> Features:
    return Features(Told())


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    return fitted_to(segments(), [rating for _, _, rating in RATED])


def test_a_label_is_one_of_21_and_each_has_a_vector_of_its_own(features: Features) -> None:
    texts = [f"{emotion} {polarity}" for emotion, polarity in product(EMOTIONS, POLARITIES)]
    assert labels(Told(), texts) == texts and len(set(texts)) == 21
    vectors = features.of_texts(texts, texts)[:, : features.size]
    assert len({row.tobytes() for row in vectors}) == 21 and np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(21), abs=1e-3)


def test_the_score_is_equation_1_by_hand(features: Features) -> None:
    rows = features.of_texts(["sadness NEG", "joy POS"], ["fear NEG", "neutral NEU"])
    size, embedded = features.size, Embedder("all-MiniLM-L6-v2", 6).embedded
    texts = (["fear NEG", "neutral NEU"], ["sadness NEG", "joy POS"], ["needs sadness NEG", "needs joy POS"])
    # The reply stands first, then the utterance, then what was inferred from the utterance.
    assert rows == pytest.approx(np.hstack([embedded(part) for part in texts]), abs=2e-4) and rows.shape == (2, 3 * size)
    w1, w2, w3 = ([scale * (place % 3 - 1) for place in range(size)] for scale in (0.5, -0.25, 2.0))
    made = Fitted(tuple(w1), tuple(w2), tuple(w3), -0.3, (1.0, 5.0), 0.0, 2, "told", "x")
    for row, score in zip(rows.tolist(), made.scores(rows).tolist(), strict=True):
        reply, utterance, knowledge = row[:size], row[size : 2 * size], row[2 * size :]
        terms = [sum(w * x for w, x in zip(*pair, strict=True)) for pair in ((w1, reply), (w2, utterance), (w3, knowledge))]
        assert score == pytest.approx(1 / (1 + math.exp(-(sum(terms) - 0.3))))


def test_the_logistic_function_has_no_overflow() -> None:
    assert sigmoid(np.array([-1e4, 0.0, 1e4, math.log(3)])) == pytest.approx([0, 0.5, 1, 0.75])


def test_the_stand_ins_say_neutral_and_what_vader_says_and_repeat_the_utterance() -> None:
    stand_in = StandIn()
    assert labels(stand_in, ["I hate it.", "A table.", "I love it."]) == ["neutral NEG", "neutral NEU", "neutral POS"]
    assert stand_in.knowledge(["a", "b"], ["c", "d"]) == ["a", "b"]


def test_the_utterance_is_all_that_the_seeker_said_since_the_helper() -> None:
    turns = [{"role": role, "text": text} for role, text in (("seeker", "one"), ("helper", "two"), ("seeker", "three"), ("seeker", "four"))]
    assert utterance_of(turns) == "three four"
    with pytest.raises(ValueError, match="there is no utterance"):
        utterance_of(turns[:2])


def test_a_class_that_there_is_not_is_quoted() -> None:
    with pytest.raises(ValueError, match='"awe" and "POS" are not one of anger, disgust'):
        labels(Told(), ["awe POS"])


def test_the_fit_is_where_every_slope_is_0() -> None:
    draw = np.random.default_rng(3)
    rows, ridge = draw.normal(size=(40, 4)), 0.01
    wanted = np.clip(sigmoid(rows @ [1.0, -2.0, 0.5, 0.0] + 0.3) + draw.normal(scale=0.05, size=40), 0, 1)
    found, bias = least_squares(rows, wanted, ridge)

    def loss(weights: Any, free: float) -> float:
        return float(np.mean((sigmoid(rows @ weights + free) - wanted) ** 2) + ridge * weights @ weights)

    for place in range(4):
        step = np.eye(4)[place] * 1e-5
        assert loss(found + step, bias) - loss(found - step, bias) == pytest.approx(0, abs=1e-10)
    assert loss(found, bias + 1e-5) - loss(found, bias - 1e-5) == pytest.approx(0, abs=1e-10)


def test_with_little_ridge_the_weights_that_made_the_ratings_are_found_again() -> None:
    rows = np.random.default_rng(4).normal(size=(60, 3))
    found, bias = least_squares(rows, sigmoid(rows @ [1.5, -1.0, 0.5] - 0.2), 1e-9)
    assert [*found, bias] == pytest.approx([1.5, -1.0, 0.5, -0.2], abs=1e-4)


@pytest.mark.e2e
def test_the_same_ratings_give_the_same_file_and_the_file_the_same_scores(fitted: Fitted, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        fitted_to(segments(), [rating for _, _, rating in RATED]).write(tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert read_weights(tmp_path / "a.json") == fitted
    scores = EdReconstruction(str(tmp_path / "a.json")).score_all(segments())
    assert scores == pytest.approx(fitted.scores(Features(StandIn()).of(segments())))
    # It orders the replies that it was fitted to as their raters did, as far as polarity and utterance tell them apart.
    assert scores[2] > scores[3] and scores[0] > scores[4]


def test_the_signature_names_weights_readings_embedding_and_versions(fitted: Fitted, tmp_path: Path) -> None:
    fitted.write(tmp_path / "ed.json")
    parts = dict(part.split(":", 1) for part in EdReconstruction(str(tmp_path / "ed.json")).signature.split("|"))
    assert parts["weights"] == fitted.sha256[:12] and parts["ratings"] == "5" and parts["scale"] == "1.0-5.0"
    assert parts["readings"].startswith("emotion=neutral,polarity=vader-") and parts["embedding"].startswith("all-MiniLM-L6-v2@")


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        make()
    return str(caught.value)


def test_without_weights_the_error_says_where_they_come_from() -> None:
    assert "ed-reconstruction: weights: names no file\n  Fix: fit them to ratings" in refusal(EdReconstruction)
    assert '"nowhere.json" is no file' in refusal(lambda: EdReconstruction("nowhere.json"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bias": "much"}, "$.bias: 'much' is not of type 'number'"),
        ({"reply": []}, "$.reply: [] should be non-empty"),
        ({"utterance": [0.5]}, "holds vectors of different lengths: reply has 384, utterance has 1"),
        ({"scale": [5, 1]}, "scale: [5, 1] does not rise"),
        ({"more": 1}, "'more' was unexpected"),
        ({"format": "ed-reconstruction 9"}, "$.format: 'ed-reconstruction 1' was expected"),
        ({"readings": "other"}, 'was fitted with the readings "other", and here they are "emotion=neutral'),
    ],
)
def test_weights_that_were_changed_are_refused(change: dict[str, Any], said: str, fitted: Fitted, tmp_path: Path) -> None:
    fitted.write(tmp_path / "ed.json")
    value = json.loads((tmp_path / "ed.json").read_text())
    (tmp_path / "ed.json").write_text(json.dumps({**value, **change}))
    assert said in refusal(lambda: EdReconstruction(str(tmp_path / "ed.json")))


def test_ratings_that_cannot_be_fitted_are_refused_all_at_once() -> None:
    said = refusal(lambda: fitted_to(segments(), [3, 6]))
    assert "2 ratings of 5 replies" in said and "6 is not on the scale from 1.0 to 5.0" in said


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ed.json").write_text("{")
    assert "cannot be read as JSON" in refusal(lambda: read_weights(tmp_path / "ed.json"))
