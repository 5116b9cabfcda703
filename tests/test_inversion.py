"""The measurement of differences: fractions by hand, and the bootstrap's behaviour."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.inversion import Difference, Resampling, Texts, measure
from builder.metrics.bleu import Bleu
from builder.metrics.diversity import Dist
from builder.metrics.protocol import MeanMetric, Segments
from builder.metrics.rouge import RougeL

CONTRAST = {"difference": ("empathetic", "apathetic")}


class Length(MeanMetric):
    """A metric that can be followed by hand: the number of words."""

    name, signature, reads = "words", "unit:word", ()

    def score(self, text: str) -> float:
        return len(text.split())


def texts(dialogues: Sequence[str], scenarios: Sequence[int], apathetic: Sequence[str], empathetic: Sequence[str]) -> Texts:
    return Texts(dialogues, scenarios, ["a b c d"] * len(dialogues), {"apathetic": apathetic, "empathetic": empathetic})


def test_means_and_differences_by_hand() -> None:
    table = texts(["x", "x", "y"], [1, 1, 2], ["a", "a b", "a"], ["a b c", "a", "a b c d e"])
    (row,) = measure(table, [Length()], [], CONTRAST, 200, 1)
    assert row.scores == pytest.approx({"apathetic": float(Fraction(4, 3)), "empathetic": 3.0}, abs=1e-6)
    assert row.differences["difference"].value == pytest.approx(float(Fraction(5, 3)), abs=1e-6)


def test_rouge_l_by_hand() -> None:
    # "a x c": longest common subsequence a, c; precision 2/3, recall 2/4
    table = texts(["x"], [1], ["a x c"], ["q"])
    (row,) = measure(table, [RougeL()], [], CONTRAST, 10, 1)
    assert row.scores == {"apathetic": pytest.approx(float(Fraction(4, 7)), abs=1e-6), "empathetic": 0.0}


def test_dist_by_hand_and_without_an_interval() -> None:
    table = texts(["x", "y"], [1, 2], ["a A b", "a b"], ["c", ""])
    rows = measure(table, [], [Dist(1), Dist(2), Dist(4)], CONTRAST, 10, 1)
    # a a b | a b: 2 of 5 words, (a a) (a b) of 3 pairs, no run of four
    assert [row.scores["apathetic"] for row in rows] == pytest.approx([2 / 5, 2 / 3, 0.0], abs=1e-6)
    assert all(row.differences["difference"].low is None and row.interval_signature is None for row in rows)


def test_scenarios_with_several_dialogues_are_strata_and_single_ones_are_pooled() -> None:
    sample = Resampling.of(texts(list("abcde"), [1, 1, 2, 3, 3], [""] * 5, [""] * 5), 300, 1)
    assert (sample.counts[:, :2].sum(axis=1) == 2).all() and (sample.counts[:, 3:].sum(axis=1) == 2).all()
    assert (sample.counts[:, 2] == 1).all(), "the only single one is a stratum of its own"
    pooled = Resampling.of(texts(list("abc"), [1, 2, 3], [""] * 3, [""] * 3), 300, 1)
    assert (pooled.counts.sum(axis=1) == 3).all() and pooled.counts.std(axis=0).min() > 0


def test_one_dialogue_has_no_valid_interval() -> None:
    (row,) = measure(texts(["x", "x"], [1, 1], ["a", "b"], ["a b", "b c"]), [Length()], [], CONTRAST, 50, 1)
    assert row.differences["difference"] == Difference(1.0, None, None)
    assert row.differences["difference"].prefers == "empathetic (no interval)"


def test_an_interval_is_that_of_resampled_dialogues() -> None:
    lengths = list(range(1, 41))
    table = texts([str(n) for n in lengths], [1] * 40, ["a"] * 40, [" ".join("a" * n) for n in lengths])
    found = measure(table, [Length()], [], CONTRAST, 4000, 1)[0].differences["difference"]
    half = 1.96 * np.std(lengths) / np.sqrt(40)
    assert found.low == pytest.approx(19.5 - half, rel=0.05) and found.high == pytest.approx(19.5 + half, rel=0.05)


def test_the_same_seed_gives_the_same_interval_and_another_does_not() -> None:
    table = texts(list("abcd"), [1] * 4, ["a"] * 4, ["a", "a b", "a b c", "a b c d e"])
    first, same, other = (measure(table, [Length()], [], CONTRAST, 20, seed)[0].differences["difference"] for seed in (1, 1, 2))
    assert first == same != other


def test_an_interval_that_holds_zero_decides_nothing() -> None:
    assert (Difference(0.1, -0.1, 0.3).prefers, Difference(-0.2, -0.3, -0.1).prefers) == ("neither", "apathetic")


@given(st.lists(st.tuples(st.text("ab c.", max_size=30), st.text("ab c.", min_size=1, max_size=30)), min_size=1, max_size=5))
def test_summed_statistics_give_sacrebleus_corpus_score(pairs: list[tuple[str, str]]) -> None:
    import sacrebleu

    hypotheses, references = [list(side) for side in zip(*pairs, strict=True)]
    expected = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="13a", smooth_method="exp").score / 100
    bleu = Bleu()
    assert bleu.aggregate(bleu.statistics(Segments(hypotheses, references)).sum(axis=0, keepdims=True))[0] == pytest.approx(
        expected, abs=1e-12
    )
