"""The metric ``emotion-rules``: its 36 cases, its three models, and what its rules let through."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
import transformers
from empathy_eval.base.errors import InputError
from empathy_eval.evaluation.attacks.registry import Reply, ShuffledWords, UnrelatedReply
from empathy_eval.metrics.faults import safe_statistics
from empathy_eval.metrics.protocol import Array, Segments
from empathy_eval.metrics.registry import find
from empathy_eval_emotion_rules import EmotionRules, rules
from empathy_eval_emotion_rules.emotions import Classifier
from empathy_eval_emotion_rules.folders import weights_in
from empathy_eval_emotion_rules.likelihood import Seq2Seq
from empathy_eval_emotion_rules.metric import query_of
from empathy_eval_emotion_rules.relevance import clipped_cosine

# By class of sentiment a text that VADER puts there.
TEXTS = {"negative": "That is awful.", "neutral": "It is a table.", "positive": "That is wonderful."}
QUERY, REPLY = "i feel so sad and lonely this friday", "that is so awful and it hurts you"
OTHER = "you are angry that it was awful on monday"


class Stub:
    """All three parts: texts with a mark are emotional, the likelihood and the relevance are always the same."""

    signature = "stub"

    def __init__(self, mean: float = 0.0, relevant: float = 0.0) -> None:
        self.mean, self.relevant = mean, relevant
        self.asked: list[str] = []

    def emotional(self, texts: Sequence[str]) -> list[bool]:
        self.asked += texts
        return [text.endswith("*") for text in texts]

    def mean_log(self, queries: Sequence[str], replies: Sequence[str]) -> list[float]:
        self.asked += replies
        return [self.mean] * len(replies)

    def relevance(self, queries: Sequence[str], replies: Sequence[str]) -> Array:
        return np.full(len(replies), self.relevant)


def stubbed(stub: Stub, weight: float = 1.0) -> EmotionRules:
    return EmotionRules.of(stub, stub, stub, weight)


def segments(*said: tuple[str, str]) -> Segments:
    """Queries with their replies."""
    return Segments([reply for _, reply in said], [""] * len(said), [[{"role": "seeker", "text": query}] for query, _ in said])


def test_each_of_the_36_cases_is_decided_as_the_rules_say() -> None:
    seen = 0
    for query, felt, reply, shown in product(TEXTS, (False, True), TEXTS, (False, True)):
        pair = (TEXTS[query] + "*" * felt, TEXTS[reply] + "*" * shown)
        found = [stubbed(Stub(mean)).emotion([pair[0]], [pair[1]]) for mean in (-9.0, -1.0)]
        if reply == "positive" or (reply == "neutral" and shown):
            expected = [[1.0], [1.0]]
        elif query == reply == "negative":
            expected = [[1.0], [0.0]]  # the likelihood decides
        else:
            expected = [[0.0], [0.0]]
        assert found == expected, pair
        seen += 1
    assert seen == len(rules.cases()) == 36


def test_models_are_asked_only_where_the_case_depends_on_them() -> None:
    stub = Stub()
    for query, reply in product(TEXTS.values(), TEXTS.values()):
        stubbed(stub).emotion([query], [reply])
    replies = [text for text in stub.asked if text != TEXTS["neutral"]]
    # Emotions where the reply is neutral, the likelihood where both are negative.
    assert stub.asked.count(TEXTS["neutral"]) == 4 and sorted(replies) == sorted([TEXTS["negative"]] * 2 + [TEXTS["positive"]])


def test_a_compound_score_of_a_tenth_is_neutral_still() -> None:
    found = [rules.sentiment(compound) for compound in (-0.11, -0.1, 0, 0.1, 0.11)]
    assert found == ["negative", "neutral", "neutral", "neutral", "positive"]


@pytest.mark.parametrize(("mean", "score"), [(-3.1001, 1.0), (-3.1, 0.0), (-3.0999, 0.0)])
def test_a_reply_is_empathetic_below_the_threshold_and_not_at_it_or_above(mean: float, score: float) -> None:
    assert stubbed(Stub(mean)).emotion([TEXTS["negative"]], [TEXTS["negative"]]) == [score]


@pytest.mark.parametrize(("weight", "score"), [(0.0, 0.4), (0.25, 0.55), (0.5, 0.7), (1.0, 1.0)])
def test_the_score_is_the_weight_times_the_emotion_and_the_rest_times_the_relevance(weight: float, score: float) -> None:
    said = segments((TEXTS["neutral"], TEXTS["positive"]))
    assert stubbed(Stub(relevant=0.4), weight).score_all(said) == pytest.approx([score])


def test_the_cosine_is_that_of_the_vectors_and_nothing_below_0() -> None:
    left, right = np.array([[3.0, 4.0], [1.0, 0.0], [2.0, 2.0]]), np.array([[4.0, 3.0], [-1.0, 0.1], [5.0, 5.0]])
    assert clipped_cosine(left, right) == pytest.approx([24 / 25, 0, 1])


def test_the_query_is_all_that_the_seeker_said_since_the_helper() -> None:
    turns = [("seeker", "one"), ("helper", "two"), ("seeker", "three"), ("seeker", "four")]
    assert query_of([{"role": role, "text": text} for role, text in turns]) == "three four"
    found, fault = safe_statistics(
        stubbed(Stub()), Segments(["a", "b"], ["", ""], [[{"role": "helper", "text": "x"}], [{"role": "seeker", "text": "y"}]]), str
    )
    assert fault and fault.texts == 1 and "so there is no query" in fault.what and np.isnan(found[0, 0]) and not np.isnan(found[1, 0])


def test_the_likelihood_is_the_mean_of_the_log_softmax_over_the_replys_tokens(seq2seq: Path) -> None:
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(seq2seq)
    tokenizer = transformers.AutoTokenizer.from_pretrained(seq2seq)
    expected = []
    for query, reply in ((QUERY, REPLY), (QUERY, "so sad"), ("i hate this", REPLY)):
        said = tokenizer(reply)["input_ids"]
        before = [model.config.decoder_start_token_id, *said[:-1]]
        with torch.inference_mode():
            logits = model(**tokenizer(query, return_tensors="pt"), decoder_input_ids=torch.tensor([before])).logits[0]
        softmax = torch.log_softmax(logits.double(), dim=-1)
        expected.append(sum(float(softmax[place, token]) for place, token in enumerate(said)) / len(said))
    # Together, so that the shorter ones are padded.
    found = Seq2Seq(weights_in("likelihood", seq2seq, "")).mean_log([QUERY, QUERY, "i hate this"], [REPLY, "so sad", REPLY])
    assert found == pytest.approx(expected, abs=1e-4) and found[0] > -3.1 > found[1] and len(set(found)) == 3


def test_an_emotion_is_any_class_but_neutral(classifier: Path) -> None:
    model = transformers.AutoModelForSequenceClassification.from_pretrained(classifier)
    tokenizer = transformers.AutoTokenizer.from_pretrained(classifier)
    texts = [*REPLY.split(), *QUERY.split(), QUERY, "a word that it does not know " * 20]
    encoded = [tokenizer(text, truncation=True, max_length=30, return_tensors="pt") for text in texts]
    with torch.inference_mode():
        highest = [int(model(**one).logits.argmax()) for one in encoded]
    found = Classifier(weights_in("emotions", classifier, "")).emotional(texts)
    assert found == [model.config.id2label[number] != "neutral" for number in highest] and set(found) == {True, False}


@pytest.fixture(scope="module")
def metric(classifier: Path, seq2seq: Path) -> EmotionRules:
    return EmotionRules(str(classifier), str(seq2seq))


def test_nonsense_passes_where_the_reply_itself_does_not(metric: EmotionRules) -> None:
    """The trap of the rules: what a model finds improbable counts as empathetic, and what is no sentence is improbable."""
    draw = Random(7)
    attacked = [ShuffledWords().attacked(Reply(REPLY, []), draw) for _ in range(20)]
    nonsense = [text for text in attacked if text is not None]
    assert len(nonsense) == 20 and all(sorted(text.split()) == sorted(REPLY.split()) for text in nonsense)
    assert metric.emotion([QUERY], [REPLY]) == [0.0]
    assert metric.emotion([QUERY] * 20, nonsense) == [1.0] * 20


def test_the_reply_of_another_dialogue_passes_where_the_reply_itself_does_not(metric: EmotionRules) -> None:
    attacked = UnrelatedReply().attacked(Reply(REPLY, [], OTHER), Random(7))
    assert attacked == OTHER and metric.emotion([QUERY, QUERY], [REPLY, attacked]) == [0.0, 1.0]
    reply, other = metric.score_all(segments((QUERY, REPLY), (QUERY, attacked)))
    assert other > reply


@pytest.mark.e2e
def test_all_parts_together_score_as_the_sum_by_hand(metric: EmotionRules, classifier: Path, seq2seq: Path) -> None:
    said = segments((QUERY, REPLY), (QUERY, "what a wonderful friday"), (QUERY, QUERY))
    heavy = EmotionRules(str(classifier), str(seq2seq), weight=1, threshold=-0.001).score_all(said)
    relevance = EmotionRules(str(classifier), str(seq2seq), weight=0).score_all(said)
    # So near 0 even what the model knows by heart is improbable.
    assert heavy.tolist() == [1, 1, 1] and relevance[2] == pytest.approx(1) and 0 < relevance[0] < 1
    assert metric.score_all(said) == pytest.approx([relevance[0] / 2, 0.5 + relevance[1] / 2, 1.0])


def test_the_signature_names_every_file_setting_and_version_and_no_path(metric: EmotionRules, classifier: Path, seq2seq: Path) -> None:
    parts = dict(part.split(":", 1) for part in metric.signature.split("|"))
    assert set(parts) >= {"rules", "sentiment", "emotions", "likelihood", "relevance", "query", "vaderSentiment", "transformers", "torch"}
    assert (parts["weight"], parts["threshold"]) == ("0.5", "-3.1") and parts["relevance"].startswith("relevance-direct,all-MiniLM-L6-v2@")
    assert str(classifier.parent) not in metric.signature
    assert EmotionRules(str(classifier), str(seq2seq), threshold=-3).signature != metric.signature


def test_another_file_in_a_folder_is_another_hash(classifier: Path, tmp_path: Path) -> None:
    for one in classifier.iterdir():
        (tmp_path / one.name).write_bytes(one.read_bytes())
    first = weights_in("emotions", tmp_path, "")
    assert first.sha256 == weights_in("emotions", classifier, "").sha256
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "id2label": {"0": "neutral", "1": "joy", "2": "anger"}}))
    assert weights_in("emotions", tmp_path, "").sha256 != first.sha256


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        make()
    return str(caught.value)


def test_all_that_is_missing_is_said_at_once_with_what_to_do() -> None:
    said = refusal(lambda: EmotionRules(likelihood="/no/such", embedding="someone/model", weight=2, threshold=True))
    for part in (
        "emotion-rules: emotions: names no folder\n  Fix: save a classifier of emotions",
        'emotion-rules: likelihood: "/no/such" is not a folder of this machine',
        "and name it: emotion-rules:likelihood=FOLDER; nothing is downloaded",
        'emotion-rules: embedding: "someone/model" is not a folder of this machine',
        "emotion-rules: weight: 2 is out of range\n  Fix: use a number from 0 to 1",
        "emotion-rules: threshold: True is out of range",
    ):
        assert part in said
    assert "emotions: names no folder" in refusal(lambda: find([f"{EmotionRules.__module__}:EmotionRules"], {}))


def test_weights_that_are_not_there_are_not_drawn_at_random(classifier: Path, seq2seq: Path, tmp_path: Path) -> None:
    lacking = refusal(lambda: EmotionRules(str(seq2seq), str(seq2seq)))
    assert 'lacks 4 of the weights, first "classification_head.dense.bias"' in lacking
    assert "emotion-rules: likelihood" in refusal(lambda: EmotionRules(str(classifier), str(classifier)))
    assert "holds no config.json and no model.safetensors" in refusal(lambda: weights_in("emotions", tmp_path, "a classifier"))


def test_a_classifier_without_a_neutral_class_and_a_folder_with_code_are_refused(classifier: Path, tmp_path: Path) -> None:
    for one in classifier.iterdir():
        (tmp_path / one.name).write_bytes(one.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "id2label": {"0": "joy", "1": "calm", "2": "anger"}}))
    assert "has 0 classes named neutral among joy, calm, anger" in refusal(lambda: Classifier(weights_in("emotions", tmp_path, "")))
    (tmp_path / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "mine.Mine"}}))
    assert "asks for code of its own, which is not run" in refusal(lambda: weights_in("emotions", tmp_path, "a classifier"))
