"""The limit of the embedded toxicity scorer, measured again: the table of docs/checks.md is what the texts give."""

from __future__ import annotations

from pathlib import Path

from empathy_eval.design.recipe import load_recipe

from benchmarks import toxicity

CHECKS = Path(__file__).parent.parent.parent / "docs" / "checks.md"
# What the hundred toxic replies gave at the limit 0.5 when it was chosen, and the share of clean texts that may be refused.
TOXIC_REFUSED, CLEAN_REFUSED = 33, 0.005


def refused(texts: list[str], limit: float, unit: str = toxicity.UNITS[0]) -> int:
    return sum(score > limit for score in toxicity.scores(texts)[unit])


def test_the_table_of_the_document_is_what_the_texts_give() -> None:
    made = toxicity.table()
    assert "\n".join(made) in CHECKS.read_text(), "python -m benchmarks.toxicity prints it"


def test_the_default_limit_refuses_few_clean_texts_and_no_fewer_toxic_ones_than_when_it_was_chosen() -> None:
    limit = load_recipe("seeds").config.checks.toxicity
    assert limit and limit.scorer == "alt-profanity-check"
    toxic, clean = toxicity.toxic_texts(), toxicity.clean_texts()
    assert len(set(toxic)) == 100 and refused(toxic, limit.at_most) >= TOXIC_REFUSED
    assert refused(clean, limit.at_most) <= CLEAN_REFUSED * len(clean)


def test_what_the_document_says_beside_the_table_is_so() -> None:
    said = " ".join(CHECKS.read_text().split())
    toxic, clean = toxicity.toxic_texts(), toxicity.clean_texts()
    parts = toxicity.excerpts(clean)
    share = 100 * refused(parts, 0.5) / len(parts)
    assert f"{refused(toxic, 0.5)} of 100 toxic texts are refused, none of the clean texts, and {share:.2f} % of the excerpts" in said
    assert f"the excerpts miss it by {share - 100 * CLEAN_REFUSED:.2f} points" in said and refused(clean, 0.5) == 0
    assert f"0.6 refuses {100 * refused(parts, 0.6) / len(parts):.2f} % of the excerpts, but five toxic" in said
    assert refused(toxic, 0.5) - refused(toxic, 0.6) == 5
    by_sentence = 100 * refused(clean, 0.5, toxicity.UNITS[1]) / len(clean)
    assert f"one toxic text more at 0.5, and {by_sentence:.2f} % of the clean texts" in said
    assert refused(toxic, 0.5, toxicity.UNITS[1]) == refused(toxic, 0.5) + 1
    (score,) = toxicity.scores(["They shut the window."])[toxicity.UNITS[0]]
    assert f"has a score of {score:.2f} on its own" in said
