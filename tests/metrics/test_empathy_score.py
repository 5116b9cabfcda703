"""EmpathyScore: features with values derived by hand, shares that saying more does not raise, and folders that are refused."""

from __future__ import annotations

import json
import math
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from empathy_eval.base.array_files import parse_arrays, tensor_bytes
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_file
from empathy_eval.metrics.empathy_score.model import (
    CHECKSUMS,
    CONFIG,
    HASHED,
    WEIGHTS,
    EmpathyScore,
    LinearModel,
    published_model,
    read_model,
)
from empathy_eval.metrics.lexical import UNIT, FeatureCounter, WordLists, last_seeker_text, read_word_lists, sentences, word_lists
from empathy_eval.metrics.protocol import Segments
from empathy_eval.metrics.registry import default_names, find
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

LISTS = """\
version: 1
fillers: >-
  the you a it is
features:
  - {name: you, of: words, what: w, list: 'you, your'}
  - {name: least, of: words, what: w, list: 'at least, at, only'}
  - {name: orders, of: openings, what: w, list: 'get, try to'}
  - {name: asks, of: questions, what: w}
  - {name: asks-what, of: questions, what: w, list: what}
  - {name: loud, of: exclaimed, what: w}
  - {name: bad, of: lexicon, sign: -1, what: w}
  - {name: echo, of: echo, what: w}
"""


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> WordLists:
    path = tmp_path_factory.mktemp("lists") / "features.yaml"
    path.write_text(LISTS)
    return read_word_lists(path)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return shutil.copytree(data_folder("empathyscore") / "plain", tmp_path / "model")


def sealed(model: Path) -> Path:
    """The folder with the hashes that its files have now."""
    (model / CHECKSUMS).write_text("".join(f"{digest_file(model / name)}  {name}\n" for name in HASHED))
    return model


def test_features_have_the_values_derived_by_hand(lists: WordLists) -> None:
    text = "At least you got it. Try to sleep! What is the horrible cat’s name?\nYour cat’s at home"
    # Words 5, 3, 6, 4: eighteen of them, in four sentences.
    assert [len(words) for words, _ in sentences(text)] == [5, 3, 6, 4]
    found = FeatureCounter(lists).shares(text, "My cat's horrible. It got out.")
    # Content: at, least, got; try, to, sleep; what, horrible, cat's, name; your, cat's, at, home; of these got, horrible, cat's, cat's.
    hand = [2 / 18, 3 / 18, 1 / 4, 1 / 4, 1 / 4, 1 / 4, 1 / 18, 4 / 14]
    assert found == [math.floor(UNIT * one + 0.5) for one in hand]


def test_a_phrase_is_counted_once_and_not_across_sentences(lists: WordLists) -> None:
    least = FeatureCounter(lists).shares("only at. Least. At least only")[1]
    assert least == round(UNIT * 5 / 6)


def test_a_text_without_words_has_no_features_and_nothing_is_an_echo_without_a_context(lists: WordLists) -> None:
    assert FeatureCounter(lists).shares(" … !? 😀") == [0] * 8
    assert FeatureCounter(lists).of(Segments(["cat"], [""]))[0, -1] == 0


def test_what_the_seeker_said_last_is_all_since_the_helper_spoke() -> None:
    turns = [("seeker", "one"), ("helper", "two"), ("seeker", "three"), ("seeker", "four")]
    context = [{"role": role, "text": text} for role, text in turns]
    assert last_seeker_text(context) == "three\nfour" and last_seeker_text(context[:2]) == last_seeker_text([]) == ""


PIECES = st.sampled_from(
    ["you", "at least", "Get over it", "What", "is", "horrible", "I'm sorry", "soon", "cat", ".", "?", "!", "\n", " … ", "’"]
)


@given(st.lists(PIECES, max_size=30), st.lists(PIECES, max_size=8))
def test_a_reply_said_twice_over_scores_the_same(reply: list[str], said: list[str]) -> None:
    text, before = " ".join(reply), " ".join(said)
    features = FeatureCounter(word_lists())
    assert features.shares(f"{text}\n{text}", before) == features.shares(text, before)


@given(st.text(max_size=60), st.text(max_size=60))
def test_every_share_of_any_text_is_between_none_and_all(text: str, said: str) -> None:
    assert all(0 <= one <= UNIT for one in FeatureCounter(word_lists()).shares(text, said))


def test_the_packaged_lists_are_features_of_meaning_each_counted_from_something() -> None:
    lists = word_lists()
    assert 20 <= len(lists.names) <= 40 and len(set(lists.names)) == len(lists.names)
    assert not {"length", "words", "characters"} & set(lists.names)
    assert lists.signs["horrible"] == -1 and lists.signs["happy"] == 1


def test_a_score_is_the_logistic_of_the_weighted_standardised_features() -> None:
    direction = LinearModel(np.array([0.5, 0.1, 0.0]), np.array([0.25, 0.01, 0.0]), np.array([0.4, -0.2, 9.0]), 0.5, 3)
    # One spread above the mean; ten spreads above it, of which three count; a feature without any spread.
    found = direction.scores(np.array([[750_000, 200_000, 1], [500_000, 100_000, 1]]))
    assert found.tolist() == pytest.approx([1 / (1 + math.exp(-(0.4 - 0.6) / 0.5)), 0.5])


def test_arrays_are_what_the_library_reads_and_writes() -> None:
    arrays = {"b": np.array([1.5, -2.0]), "a": np.array([[1, 2, 3]], dtype=np.int64), "c": np.zeros((0, 4), dtype=np.float32)}
    ours = load(tensor_bytes(arrays))
    theirs = parse_arrays(save(arrays, {"format": "np"}), "here")
    for name, one in arrays.items():
        assert np.array_equal(ours[name], one) and np.array_equal(theirs[name], one) and theirs[name].dtype == one.dtype
    assert tensor_bytes(dict(reversed(arrays.items()))) == tensor_bytes(arrays)


@pytest.mark.parametrize("data", [b"", b"x" * 40, (2**40).to_bytes(8, "little"), (2).to_bytes(8, "little") + b"[]"])
def test_what_is_no_file_of_arrays_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="is not a readable safetensors file"):
        parse_arrays(data, "here")


def test_the_packaged_model_is_a_metric_by_name_and_its_signature_says_what_it_was_trained_on() -> None:
    metric, content = find(["empathyscore", "empathyscore-content:alpha=0.2"], {}).metrics
    assert (metric.name, content.name) == ("EmpathyScore (plain)", "EmpathyScore content (plain)")
    assert "trained:empathy-eval-demo 0.1.0,train|" in metric.signature and "contrasts:reference>apathetic" in metric.signature
    assert metric.reads == ("context",) and metric.higher_is_better
    kind, cold = (
        "You told nobody, and I think that was hard for you. Would you tell me more?",
        "At least it's soon over. Just cheer up and move on.",
    )
    segments = Segments([kind, cold], ["", ""], [[{"role": "seeker", "text": "i told nobody"}]] * 2)
    found = metric.scores(metric.statistics(segments))
    assert 0 < found[1] < 0.5 < found[0] < 1
    assert np.array_equal(found, content.scores(content.statistics(segments)))
    again = pickle.loads(pickle.dumps(metric))  # noqa: S301 (our own)
    assert np.array_equal(found, again.scores(again.statistics(segments)))


def test_a_report_has_it_only_where_its_model_is_configured() -> None:
    assert "empathyscore" not in default_names({"bootstrap": 10})
    assert "empathyscore" in default_names({"empathyscore": {"model": "plain"}})


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("empathyscore-flow", 'has no flow: a model of the kind "plain" scores content alone'),
        ("empathyscore:alpha=2", "2 is out of range"),
        ("empathyscore:model=nowhere", "is not a model of EmpathyScore"),
        ("empathyscore:model=5", "5 is not of type string"),
        ("empathyscore:part=flow", 'unknown "part"'),
    ],
)
def test_what_the_model_cannot_do_is_refused_with_words(named: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        find([named], {})


@pytest.mark.parametrize("name", HASHED)
def test_a_changed_and_a_missing_file_are_refused(model: Path, name: str) -> None:
    data = bytearray((model / name).read_bytes())
    data[-2] ^= 1
    (model / name).write_bytes(data)
    with pytest.raises(InputError, match=f"{name}: was changed"):
        read_model(str(model))
    (model / name).unlink()
    with pytest.raises(InputError, match=f"{name}: is not there"):
        read_model(str(model))


def test_all_that_is_wrong_with_a_folder_is_reported_at_once(model: Path) -> None:
    (model / CONFIG).write_text("{}")
    (model / WEIGHTS).unlink()
    with pytest.raises(InputError) as error:
        read_model(str(model))
    assert len(error.value.problems) == 2
    (model / CHECKSUMS).write_text((model / CHECKSUMS).read_text() + f"{'0' * 64}  more.py\n")
    with pytest.raises(InputError, match="each once and nothing else"):
        read_model(str(model))


def told(change: Callable[[dict[str, object]], object], model: Path) -> str:
    config = json.loads((model / CONFIG).read_text())
    change(config)
    (model / CONFIG).write_text(json.dumps(config))
    with pytest.raises(InputError) as error:
        EmpathyScore(str(sealed(model)))
    return str(error.value)


def test_a_model_of_another_version_is_refused(model: Path) -> None:
    assert "format: 2 is not known" in told(lambda one: one.update(format=2), model)
    assert "does not hold exactly the files of students: encoder.json and tokenizer.json" in told(
        lambda one: one.update(format=1, kind="students"), model
    )
    features = json.loads((model / CONFIG).read_text())["features"]
    assert "other word lists" in told(lambda one: one.update(kind="plain", features={**features, "sha256": "0" * 64}), model)
    assert "does not hold the arrays and settings of a model of the kind plain" in told(
        lambda one: one.update(features=features, settings={}), model
    )


def test_weights_that_do_not_fit_are_refused(model: Path) -> None:
    arrays = parse_arrays((model / WEIGHTS).read_bytes(), model)
    for wrong, said in (({"weights": arrays["weights"][:3]}, "does not hold"), ({"scale": np.array([np.nan])}, "not numbers")):
        (model / WEIGHTS).write_bytes(tensor_bytes({**arrays, **wrong}))
        with pytest.raises(InputError, match=said):
            EmpathyScore(str(sealed(model)))


def test_a_manifest_names_a_model_of_ones_own_by_its_hash(model: Path) -> None:
    assert published_model("plain") == "plain"
    assert published_model(str(model)) == f"model@sha256:{read_model(str(model)).sha256}"
    before = read_model(str(model)).sha256
    (model / "README.md").write_text("another card")
    assert read_model(str(sealed(model))).sha256 == before
