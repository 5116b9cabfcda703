"""Sentlink: every cell, the bounds between its classes, and which turns are the query."""

from __future__ import annotations

import math
import pickle

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.metrics.lexical import Sentlink, Vader, query, sentiment
from empathy_eval.metrics.registry import default_names, find

SAID = {"negative": "This is terrible.", "neutral": "The bus is at nine.", "positive": "I love this."}
NINE = {
    ("negative", "negative"): 0.5, ("negative", "neutral"): 0.5, ("negative", "positive"): 1.0,
    ("neutral", "negative"): 0.0, ("neutral", "neutral"): 0.5, ("neutral", "positive"): 1.0,
    ("positive", "negative"): 0.0, ("positive", "neutral"): 0.5, ("positive", "positive"): 1.0,
}  # fmt: skip


def turns(*said: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "text": text} for role, text in said]


@pytest.mark.parametrize(("asked", "replied"), NINE)
def test_each_of_the_nine_cells_has_its_score(asked: str, replied: str) -> None:
    assert [sentiment(Vader().score(SAID[name])) for name in SAID] == list(SAID)
    assert Sentlink().score(SAID[replied], turns(("seeker", SAID[asked]))) == NINE[asked, replied]


@pytest.mark.parametrize(
    ("compound", "name"),
    [
        (-1.0, "negative"), (math.nextafter(-0.1, -1), "negative"), (-0.1, "neutral"), (math.nextafter(-0.1, 0), "neutral"),
        (0.0, "neutral"), (math.nextafter(0.1, 0), "neutral"), (0.1, "neutral"), (math.nextafter(0.1, 1), "positive"), (1.0, "positive"),
    ],
)  # fmt: skip
def test_the_bounds_themselves_are_neutral(compound: float, name: str) -> None:
    assert sentiment(compound) == name


def test_the_query_is_all_that_the_seeker_said_since_the_helper_last_spoke() -> None:
    first, more = ("seeker", SAID["negative"]), [("seeker", "Yes."), ("seeker", SAID["positive"])]
    assert query(turns(first, ("helper", "Oh?"), *more)) == "Yes. I love this."
    assert query(turns(first, *more)) == "This is terrible. Yes. I love this."
    # A helper who speaks twice answers the same turns.
    assert query(turns(first, ("helper", "Oh?"), *more, ("helper", "Mm."))) == "Yes. I love this."
    assert query([]) == "" and Sentlink().score(SAID["neutral"], []) == 0.5
    before = turns(first, ("helper", SAID["negative"]), ("seeker", SAID["positive"]))
    assert Sentlink().score(SAID["negative"], before) == 0.0


def test_it_is_built_in_of_english_alone_and_in_no_report_that_does_not_name_it() -> None:
    (metric,) = find(["sentlink"], {}).metrics
    assert metric.name == "Sentlink" and metric.signature.endswith("|version:1") and "bound:0.1" in metric.signature
    assert Vader.signature.rpartition("version:")[2] in metric.signature and pickle.loads(pickle.dumps(metric)).name == "Sentlink"
    assert "sentlink" not in default_names({"sentlink": {}})
    with pytest.raises(InputError, match="supports only English"):
        find(["sentlink"], {}, language="de")
