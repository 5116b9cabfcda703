"""The built-in metrics: on the released pairs and on odd texts, the values of the libraries called the plain way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.dataset import SPLITS
from empathy_eval.metrics import ngrams
from empathy_eval.metrics.lexical import Echo, Length, RougeL, Vader
from empathy_eval.metrics.ngrams import Bleu, ChrF, Dist, Meteor, wordnet_version
from empathy_eval.metrics.protocol import Metric, Segments
from empathy_eval.metrics.registry import MetricSelection, find
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize import wordpunct_tokenize
from nltk.translate.meteor_score import meteor_score
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

ODD = st.lists(st.sampled_from([*"ab1 .,-'\"&\n\té中😀İ\u2028", "&amp;", "<skipped>", "-\n"]), max_size=25).map("".join)


class NoWordNet:
    """A WordNet that knows no word: nltk's METEOR is then exact words and stems."""

    def synsets(self, word: str) -> tuple[()]:
        return ()


def library(name: str, text: str, reference: str) -> float:
    """The score of one text by the library, called the plain way."""
    match name:
        case "BLEU-4":
            return float(BLEU(effective_order=True).sentence_score(text, [reference]).score) / 100
        case "chrF":
            return float(CHRF().sentence_score(text, [reference]).score) / 100
        case "ROUGE-L":
            return float(RougeScorer(["rougeL"], use_stemmer=False).score(reference, text)["rougeL"].fmeasure)
        case "METEOR":
            return float(meteor_score([wordpunct_tokenize(reference)], wordpunct_tokenize(text), wordnet=NoWordNet()))
        case _:
            return float(SentimentIntensityAnalyzer().polarity_scores(text)["compound"])


@pytest.fixture(scope="module")
def pairs(light: Path) -> Segments:
    tables = [pq.read_table(light / "data" / "pairs" / f"{split}.parquet").to_pylist() for split in SPLITS]
    rows = [row for table in tables for row in table]
    return Segments([row[name] for row in rows for name in ("apathetic", "empathetic")], [row["reference"] for row in rows for _ in "ae"])


@pytest.mark.parametrize("metric", [Bleu(), ChrF(), RougeL(), Meteor(), Vader()], ids=lambda metric: metric.name)
def test_every_score_of_the_released_pairs_is_the_librarys(metric: Metric, pairs: Segments) -> None:
    expected = [library(metric.name, text, reference) for text, reference in zip(pairs.texts, pairs.references, strict=True)]
    assert metric.scores(metric.statistics(pairs)) == pytest.approx(expected, abs=1e-12)
    assert min(expected) < max(expected) and metric.signature


@given(st.lists(st.tuples(ODD, ODD), min_size=1, max_size=6))
def test_odd_texts_have_the_librarys_scores(texts: list[tuple[str, str]]) -> None:
    segments = Segments(*zip(*texts, strict=True))
    for metric in (Bleu(), ChrF(), Meteor(), RougeL()):
        expected = [library(metric.name, text, reference) for text, reference in texts]
        assert metric.scores(metric.statistics(segments)) == pytest.approx(expected, abs=1e-12), metric.name


@pytest.mark.e2e
@given(st.lists(st.tuples(ODD, ODD.filter(str.strip)), min_size=1, max_size=6))
def test_summed_statistics_give_sacrebleus_corpus_scores(texts: list[tuple[str, str]]) -> None:
    hypotheses, references = [list(side) for side in zip(*texts, strict=True)]
    metrics: list[tuple[Metric, Any]] = [(Bleu(), BLEU()), (ChrF(), CHRF())]
    for metric, theirs in metrics:
        expected = theirs.corpus_score(hypotheses, [references]).score / 100
        sums = metric.statistics(Segments(hypotheses, references)).sum(axis=0, keepdims=True)
        assert metric.aggregate(sums)[0] == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.lists(st.integers(0, 60), min_size=18, max_size=18), max_size=6))
def test_resampled_counts_have_sacrebleus_own_floats(drawn: list[list[int]]) -> None:
    rows = np.array(drawn, dtype=np.float64).reshape(-1, 18)
    counts = np.column_stack([rows[:, :2], np.minimum(rows[:, 2:6], rows[:, 6:10]), rows[:, 6:10]])
    whole: list[list[int]] = counts.astype(int).tolist()
    theirs = [BLEU.compute_bleu(row[2:6], row[6:], row[0], row[1], smooth_method="exp").score / 100 for row in whole]
    assert Bleu().aggregate(np.column_stack([counts, rows[:, 10]])).tolist() == theirs
    assert ChrF().aggregate(rows).tolist() == [CHRF()._compute_f_score(row) / 100 for row in rows.astype(int).tolist()]


@pytest.mark.parametrize("width", [ngrams.WIDTH, 12, 0])
def test_ngrams_are_counted_alike_however_many_bits_a_key_has(width: int, pairs: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
    some = pairs.take(range(12))
    metrics: list[Metric] = [Bleu(), ChrF()]
    expected = [metric.statistics(some).tolist() for metric in metrics]
    monkeypatch.setattr(ngrams, "WIDTH", width)
    assert [metric.statistics(some).tolist() for metric in metrics] == expected


def test_matches_by_hand() -> None:
    # "a a b" against "a b a b": a twice, b once; "a b" once of "a a", "a b"; "a a b" is not there
    assert ngrams.matches(np.array([0, 0, 1, 0, 1, 0, 1]), np.array([3, 4]), 3).tolist() == [[3, 1, 0]]


@pytest.mark.parametrize("metric", [Bleu(), ChrF(), RougeL(), Meteor(), Vader(), Length()], ids=lambda metric: metric.name)
def test_no_texts_have_no_statistics_and_empty_ones_have_finite_scores(metric: Metric) -> None:
    assert metric.statistics(Segments([], [])).shape[0] == 0
    assert np.isfinite(metric.scores(metric.statistics(Segments(["", "a", ""], ["a", "", ""])))).all()


def test_length_counts_words_and_has_no_direction() -> None:
    length = Length()
    assert length.scores(length.statistics(Segments(["I don't know.", ""], ["", ""]))).tolist() == [3, 0]
    assert length.higher_is_better is None and length.reads == ()


CHINESE = ["我很难过，今天下雨。", "她很难过，昨天也下雨！", "我 is 很 ABC 好", "，。", ""]


def test_in_chinese_a_text_is_wholly_like_itself_and_partly_like_another() -> None:
    one, other = CHINESE[:2]
    for metric in (RougeL("zh"), Bleu("zh")):
        same, partly, apart = metric.scores(metric.statistics(Segments([one, other, "你们都来"], [one, one, one])))
        assert same == pytest.approx(1) and 0 < apart + partly < 1 and apart < partly, metric.name
    assert RougeL().score(one, one) == 0, "as rouge-score has it"
    assert Length("zh").score(one) == Echo("zh").score(one, [{"role": "seeker", "text": one}]) * 8 == 8


def test_bleu_of_chinese_is_that_of_sacrebleus_tokens() -> None:
    theirs = BLEU(tokenize="zh", effective_order=True)
    pairs = [(text, reference) for text in CHINESE for reference in CHINESE[:3]]
    metric = Bleu("zh")
    found = metric.scores(metric.statistics(Segments([text for text, _ in pairs], [reference for _, reference in pairs])))
    assert found.tolist() == pytest.approx([theirs.sentence_score(text, [reference]).score / 100 for text, reference in pairs])


@pytest.mark.parametrize("name", ["bleu", "rouge-l", "length", "dist-1", "dist-2", "dist-4"])
def test_the_signature_says_the_tokens_and_english_keeps_its_own(name: str) -> None:
    def signature(found: MetricSelection) -> str:
        (one,) = [*(metric.signature for metric in found.metrics), *(measure.signature for measure in found.diversities)]
        return one

    german, english = (signature(find([name], {}, language=code)) for code in ("de", "en"))
    assert german == signature(find([f"{name}:language=zh"], {})) != english == signature(find([name], {}))


def test_metrics_that_know_english_alone_are_refused_in_another_language() -> None:
    with pytest.raises(InputError) as caught:
        find(["vader", "bleu", "meteor", "empathyscore"], {}, language="de")
    assert str(caught.value).count('supports only English, but the texts are in the language "de"') == 3


def test_dist_of_a_text_without_spaces_counts_its_characters() -> None:
    found, words = Dist(1, language="zh").measure({"apathetic": ["很很好", "很好。"]}, ["x", "y"], 1)
    assert (found["apathetic"][0], words) == (pytest.approx(2 / 3), 3)


def test_meteor_with_wordnet_that_is_not_there_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk.data, "path", [])
    wordnet_version.cache_clear()
    with pytest.raises(InputError, match="nltk.downloader wordnet"):
        Meteor("wordnet")


def tiny_wordnet(folder: Path) -> None:
    """A WordNet 3.0 of one synset: sad, low."""
    root = folder / "corpora" / "wordnet"
    root.mkdir(parents=True)
    licence = "  1 WordNet 3.0 Copyright 2006  \n"
    for kind in ("noun", "verb", "adj", "adv"):
        synset = "00 a 02 sad 0 low 0 000 | low in spirits\n" if kind == "adj" else ""
        (root / f"data.{kind}").write_text(licence + (f"{len(licence):08d} {synset}" if synset else ""))
        index = "".join(f"{word} a 1 0 1 0 {len(licence):08d}  \n" for word in ("low", "sad")) if synset else ""
        (root / f"index.{kind}").write_text(licence + index)
        (root / f"{kind}.exc").write_text("")
    (root / "index.sense").write_text("")
    (root / "lexnames").write_text("00\tadj.all\t3\n")


@pytest.mark.e2e
def test_meteor_with_wordnet_is_nltks(tmp_path: Path) -> None:
    tiny_wordnet(tmp_path)
    script = """
from nltk.translate.meteor_score import meteor_score
from empathy_eval.metrics.ngrams import Meteor
ours, bare = Meteor("wordnet"), Meteor()
text, reference = "I feel very sad today", "today you feel low"
found = ours.score(text, reference)
print(found == meteor_score([reference.split()], text.split()), found > bare.score(text, reference))
print(ours.signature)
"""
    environment = {**os.environ, "NLTK_DATA": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.startswith("True True\n"), done.stderr
    assert "synonyms:wordnet-3.0" in done.stdout
