"""METEOR by nltk."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import metadata
from types import SimpleNamespace

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.imports import without
from empathy_eval.metrics.protocol import MeanMetric

# nltk's classifiers and tests of association, which nothing here is made of.
with without("scipy", "scipy.stats", "sklearn"):
    from nltk.corpus import wordnet
    from nltk.stem.porter import PorterStemmer
    from nltk.tokenize import wordpunct_tokenize
    from nltk.translate.meteor_score import single_meteor_score

WORDS = 2**16
# In the place of nltk's stemmer and of WordNet: the same answers, each looked up once.
STEMMER = SimpleNamespace(stem=lru_cache(WORDS)(PorterStemmer().stem))
SYNONYMS = {"wordnet": SimpleNamespace(synsets=lru_cache(WORDS)(lambda word: wordnet.synsets(word)))}
NO_SYNONYMS = SimpleNamespace(synsets=lambda word: ())


class Meteor(MeanMetric):
    """Mean METEOR (Lavie and Agarwal 2007) as nltk computes it: exact words, then stems, then synonyms where asked for."""

    name = "METEOR"
    share = True

    def __init__(self, synonyms: str = "none") -> None:
        """``synonyms`` is ``none`` or ``wordnet``.

        Raises:
            InputError: if WordNet is asked for and not installed.
        """
        self._synonyms = synonyms
        names = f"wordnet-{wordnet_version()}" if synonyms == "wordnet" else "none"
        self.signature = signature_line(
            alpha=0.9, beta=3, gamma=0.5, case="lower", tok="wordpunct", stem="porter", synonyms=names, version=metadata.version("nltk")
        )

    def score(self, text: str, reference: str) -> float:
        """METEOR in [0, 1]."""
        words = SYNONYMS.get(self._synonyms, NO_SYNONYMS)
        return float(single_meteor_score(_tokens(reference), _tokens(text), preprocess=str, stemmer=STEMMER, wordnet=words))


def _tokens(text: str) -> list[str]:
    """nltk's wordpunct tokens in lower case. No token crosses white space, so each word is tokenised once."""
    return [token for word in text.split() for token in _word(word)]


@lru_cache(WORDS)
def _word(text: str) -> tuple[str, ...]:
    return tuple(token.lower() for token in wordpunct_tokenize(text))


@cache
def wordnet_version() -> str:
    """The version of the WordNet that nltk finds.

    Raises:
        InputError: if there is none.
    """
    try:
        return str(wordnet.get_version())
    except LookupError as error:
        fix = 'python -m nltk.downloader wordnet, or write "synonyms: none"'
        what = '"wordnet" needs WordNet, which is in no folder of nltk.data.path'
        raise input_error("report: meteor: synonyms", what, fix) from error
