"""The 180 curated crossed items: every property of them that can be counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest
from empathy_eval.base.text import shingles, words
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.language import english
from empathy_eval.design.scenarios import (
    CHANGED_WORDS,
    MAX_LENGTH_GAP,
    QUOTATION_WORDS,
    REPLY_WORDS,
    Catalogue,
    CrossedItem,
    Seed,
    changed_words,
    load_catalogue,
)
from empathy_eval.generation.checks import built_in
from empathy_eval.releases.assemble.selection import SIMILAR
from profanity_check import predict_prob

REPLIES = ("reply_1", "reply_2")


@pytest.fixture(scope="module")
def whole() -> Catalogue:
    return load_catalogue()


def items(catalogue: Catalogue) -> Iterator[tuple[Seed, CrossedItem]]:
    for number, some in catalogue.crossed.items():
        seed = catalogue[number].seed
        assert seed
        yield from ((seed, one) for one in some)


def texts(catalogue: Catalogue) -> dict[str, str]:
    return {f"{one.crossed_id} {name}": getattr(one, name) for _, one in items(catalogue) for name in ("twin", *REPLIES)}


def test_every_scenario_has_three_at_different_turns(whole: Catalogue) -> None:
    assert sorted(whole.crossed) == [one.number for one in whole.scenarios]
    for number, some in whole.crossed.items():
        assert [one.crossed_id for one in some] == [f"{number:03d}-seed-x{place}" for place in (1, 2, 3)]
        assert len({one.turn for one in some}) == 3


def test_twins_are_near_and_replies_alike_in_length(whole: Catalogue, demo: Configuration) -> None:
    for seed, one in items(whole):
        before, turn = seed.turns[one.turn - 1 : one.turn + 1]
        assert (before.role, turn.role) == ("seeker", "helper"), one.crossed_id
        assert CHANGED_WORDS[0] <= changed_words(before.text, one.twin) <= CHANGED_WORDS[1], one.crossed_id
        shorter, longer = sorted(len(words(getattr(one, name))) for name in REPLIES)
        assert max(REPLY_WORDS[0], demo.checks.helper_words_at_least) <= shorter <= longer <= REPLY_WORDS[1], one.crossed_id
        assert longer - shorter <= MAX_LENGTH_GAP * longer and one.reply_1 != one.reply_2, one.crossed_id


def test_neither_reply_is_known_by_its_place(whole: Catalogue) -> None:
    """Nothing that is counted of a reply tells whether it is the one for the twin."""
    marks = Counter[str]()
    for _, one in items(whole):
        first, second = (len(words(getattr(one, name))) for name in REPLIES)
        marks["longer"] += (second > first) - (second < first)
        marks["asks"] += one.reply_2.endswith("?") - one.reply_1.endswith("?")
    assert all(abs(count) <= 0.15 * 180 for count in marks.values()), marks


def test_no_text_is_harmful_or_toxic(whole: Catalogue, demo: Configuration) -> None:
    found = texts(whole)
    assert [name for name, text in found.items() if "twin" not in name and built_in.harmless(text, english())] == []
    limit = demo.checks.toxicity
    assert limit
    scores = predict_prob(list(found.values()))
    assert [name for name, score in zip(found, scores, strict=True) if score > limit.at_most] == []


def test_where_there_is_crisis_language_both_replies_point_to_help_as_the_seed_does(whole: Catalogue) -> None:
    language, flagged = english(), 0
    for seed, one in items(whole):
        replies, before = [getattr(one, name) for name in REPLIES], [turn.text for turn in seed.turns[: one.turn]]
        for context in (before, [*before[:-1], one.twin]):
            crisis = any(built_in.in_crisis(text, language) for text in context)
            flagged += crisis
            if built_in.in_crisis(context[-1], language):
                assert all(built_in.points_to_help(text, language) for text in replies), one.crossed_id
            flags = ("crisis",) if crisis else ()
            assert not any(built_in.keeps_pointer(seed.turns[one.turn].text, text, flags, language) for text in replies), one.crossed_id
    assert flagged > 0


def test_no_two_texts_are_nearly_the_same_and_none_quotes_a_seed(whole: Catalogue) -> None:
    """Replies and twins against each other and against every text of the seeds; a twin is near the turn that it is the twin of."""
    turns = [(one.number, place, turn) for one in whole.scenarios if one.seed for place, turn in enumerate(one.seed.turns)]
    said = {f"{scenario:03d} turn {place} {number}": text for scenario, place, turn in turns for number, text in enumerate(turn.texts)}
    of_items = texts(whole)
    runs = {name: shingles(text) for name, text in (said | of_items).items()}
    holders = defaultdict[tuple[str, ...], list[str]](list)
    for name, some in runs.items():
        for run in some:
            holders[run].append(name)
    own = {f"{one.crossed_id} twin": f"{one.crossed_id[:3]} turn {one.turn - 1} 0" for _, one in items(whole)}
    for name in of_items:
        for other in {other for run in runs[name] for other in holders[run]} - {name, own.get(name)}:
            shared = len(runs[name] & runs[other]) / len(runs[name] | runs[other])
            assert shared < SIMILAR, (name, other, shared)
    quoted = {run for text in said.values() for run in shingles(text, QUOTATION_WORDS) if len(run) == QUOTATION_WORDS}
    assert [name for name, text in of_items.items() if "twin" not in name and shingles(text, QUOTATION_WORDS) & quoted] == []
