"""The checks of crossed items, each with an item that passes and one that does not, and the figures that a repair is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from empathy_eval.base.text import words
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.language import Language, english
from empathy_eval.generation.crossed_by_models import Bounds, Twins, content_words, twin_flaws
from hypothesis import given
from hypothesis import strategies as st

GOOD = Twins(
    message="I rang my brother before the funeral and he didn't come.",
    reference="You reached out to him and stood there on your own. Who was next to you that day?",
    twin="My brother rang me before the funeral and I didn't come.",
    reply="He held out a hand and it went past. What kept you at home, do you think, that morning?",
)


def flaws(twins: Twins, demo: Configuration) -> dict[str, str]:
    return {one.reason: one.detail for one in twin_flaws(twins, demo.checks, english())}


def test_an_item_whose_need_turns_by_exchanged_roles_passes(demo: Configuration) -> None:
    assert flaws(GOOD, demo) == {}


@pytest.mark.parametrize(
    ("change", "reason", "told"),
    [
        ({"twin": GOOD.message}, "twin_unchanged", "the twin changes 0 words; change at least 2"),
        ({"twin": GOOD.message.replace("before", "after")}, "twin_unchanged", "the twin changes 1 words; change at least 2"),
        ({"twin": "so " * 36}, "twin_apart", "the twin changes 36 words; change at most 24"),
        ({"twin": " … "}, "twin_empty", "the twin says nothing"),
        ({"twin": GOOD.twin + " I want to die."}, "twin_in_crisis", "hopeless or in danger"),
        ({"reply": "He held out a hand and it went past."}, "length_apart", "has 9 words and the given one 18; write 14 to 24"),
        ({"reply": GOOD.reply + " " + GOOD.reply}, "length_apart", "has 38 words and the given one 18; write 14 to 24"),
        ({"reply": GOOD.reference.replace("Who", "And who")}, "replies_alike", "have 97% of their words in common, in order; at most 35%"),
        ({"twin": GOOD.twin.replace("didn't come", "never answered")}, "", ""),
        ({"twin": GOOD.twin.replace("didn't come", "stayed home")}, "echoes_twin", '1 of the words that are new in the twin: "home"'),
        ({"reference": "Your brother rang a bell by not coming, and you stood there on your own all day, didn't you?",
          "twin": "My sister was told of the funeral and I didn't come."}, "echo_taken",
         'takes up 2 of the words that the twin drops: "brother", "rang"; keep them in the twin'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_figure(change: dict[str, str], reason: str, told: str, demo: Configuration) -> None:
    found = flaws(replace(GOOD, **change), demo)
    assert set(found) == ({reason} if reason else set())
    assert not reason or told in found[reason]


@given(st.integers(1, 400), st.integers(0, 12))
def test_the_longer_of_two_replies_has_at_most_a_quarter_more_than_it_shares_with_the_shorter(
    demo: Configuration, count: int, least: int
) -> None:
    bounds = Bounds.of("word " * count, replace(demo.checks, helper_words_at_least=least), "en")
    for length in range(1, 2 * count + 2):
        near = abs(length - count) <= max(length, count) / 4 and length >= least
        assert (bounds.least <= length <= bounds.most) == near


def test_function_words_tell_nothing_and_content_words_do() -> None:
    assert content_words("I didn't, he won't, they can't and it's not my own, is it?", "en") == set()
    assert content_words("My mother's kitchen was cold.", "en") == {"mother's", "kitchen", "cold"}
    assert content_words("Ich habe meinem Bruder nicht geschrieben.", "de") == {"bruder", "geschrieben"}
    # spaCy knows no words of it: short ones are taken for function words.
    assert content_words("na mimi sikumwandikia", "sw") == {"mimi", "sikumwandikia"}


def test_words_are_counted_as_the_language_has_them(demo: Configuration) -> None:
    german = Language("de", english().rules)
    twins = Twins("Ich rief ihn an, er kam nicht.", "Du hast es versucht und standest allein da an dem Tag.",
                  "Er rief mich an, ich kam nicht.", "Da war jemand, der dich haben wollte, und etwas hielt dich ab.")  # fmt: skip
    assert {one.reason for one in twin_flaws(twins, demo.checks, german)} == set()
    assert len(words(twins.reply, "de")) == 12
