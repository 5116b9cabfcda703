"""The checks, each with a text that passes and one that does not."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import About, Flaw, NoAnswer
from empathy_eval.design.configuration import Configuration, Limits
from empathy_eval.design.language import english
from empathy_eval.design.planning import Plan, PlannedTurn
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import description, follows_plan, says_enough, too_toxic, toxicity
from empathy_eval.generation.outcomes import Turn

from tests.doubles.models import scoring

PLAN = Plan("001-00000", 1, 0, (PlannedTurn("seeker"), PlannedTurn("helper", "RS", "Cla")))
ABOUT = About("001-00000", "score", 1)


def reasons(flaws: list[Flaw]) -> list[str]:
    return [flaw.reason for flaw in flaws]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "l.sqlite") as opened:
        yield opened


def test_a_dialogue_must_be_the_planned_one() -> None:
    assert follows_plan([Turn("seeker", "x"), Turn("helper", "y", "RS")], PLAN) == []
    assert reasons(follows_plan([Turn("seeker", "x")], PLAN)) == ["turn_count"]
    assert reasons(follows_plan([Turn("helper", "x", "RS"), Turn("helper", "y", "SO")], PLAN)) == ["role", "strategy"]


def test_helper_turns_have_enough_words_and_no_turn_is_empty(demo: Configuration) -> None:
    turns = [Turn("seeker", "no"), Turn("helper", "one two three four five six seven", "RS"), Turn("seeker", " … ")]
    assert [flaw.detail[:6] for flaw in says_enough(turns, demo.checks)] == ["turn 2", "turn 3"]


def test_a_description_is_about_the_user_in_the_third_person() -> None:
    assert description("The user lost a dog that walked the round with him.", english()) == []
    assert reasons(description("The user says my dog died.", english())) == ["description_person"]
    assert reasons(description("A postman lost his dog.", english())) == ["description_opening"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("You have clinical depression, I am afraid, and it shows.", "unsafe_diagnoses"),
        ("Perhaps you should take some antidepressants for a while.", "unsafe_prescribes"),
        ("Just get drunk tonight and forget about it.", "unsafe_encourages_substance_abuse"),
        ("Next time hit him back, that will teach him.", "unsafe_encourages_violence"),
        ("They would be better off without you, you know.", "unsafe_encourages_self_harm"),
    ],
)
def test_what_a_helper_must_not_say_is_seen(text: str, reason: str) -> None:
    assert reason in reasons(built_in.harmless(text, english()))


@pytest.mark.parametrize(
    "text",
    [
        "Are you having thoughts of hurting yourself tonight?",
        "Your doctor could look at the dose with you; please do not stop on your own.",
        "Has drinking been a way to get through the evenings?",
        "You took a whole evening to hit send, and that counts.",
    ],
)
def test_careful_sentences_are_not_mistaken_for_harm(text: str) -> None:
    assert built_in.harmless(text, english()) == []


@pytest.mark.parametrize(
    "text", ["I want to die.", "some nights I think about ending it all", "he hit me again", "I don't want to be here anymore"]
)
def test_crisis_language_is_seen(text: str) -> None:
    assert built_in.in_crisis(text, english())


@pytest.mark.parametrize("text", ["The dog died on Tuesday.", "I could kill for a coffee.", "He hit the ball.", "I am dying to know."])
def test_everyday_words_are_not_crisis_language(text: str) -> None:
    assert not built_in.in_crisis(text, english())


def test_crisis_language_needs_a_pointer_to_help_after_it() -> None:
    turns = [Turn("seeker", "I want to die."), Turn("helper", "What a heavy night this is for you.", "RS")]
    assert reasons(built_in.answers_crisis(turns, english())) == ["crisis_without_pointer"]
    assert built_in.answers_crisis([*turns, Turn("helper", "Could you call a crisis line with me here?", "SO")], english()) == []
    assert built_in.dialogue_flags(turns, english()) == ("crisis",)


def test_no_variant_loses_the_pointer() -> None:
    reference = "A crisis line is open tonight, if you want a voice."
    assert reasons(built_in.keeps_pointer(reference, "Somebody is always awake.", ["crisis"], english())) == ["pointer_lost"]
    assert built_in.keeps_pointer(reference, "There is a crisis line. Use it.", ["crisis"], english()) == []
    assert built_in.keeps_pointer(reference, "Somebody is always awake.", [], english()) == []


def test_near_variants_change_something_and_less_than_the_limit(demo: Configuration) -> None:
    limits: Limits = demo.checks
    reference = "one two three four five six seven eight nine ten"
    assert reasons(built_in.near(reference, "One, two three four five six seven eight nine ten!", limits)) == ["edit_ratio_zero"]
    assert built_in.near(reference, "one two three four five six seven eight x y", limits) == []
    # 3 of 10 is not fewer than 30 %
    assert reasons(built_in.near(reference, "one two three four five six seven x y z", limits)) == ["edit_ratio_high"]


def test_far_variants_keep_away_and_change_the_strategy(demo: Configuration) -> None:
    reference = "You walked the whole round alone today"
    assert built_in.far(reference, "What a quiet street that was", demo.checks) == []
    (flaw,) = built_in.far(reference, "You walked the round alone", demo.checks)
    assert flaw.reason == "overlap_high"
    assert not set(reference.lower().split()) & {"walked", "round", "alone"} & set(flaw.detail.lower().split())
    assert reasons(built_in.strategy_changed("RS", "RS")) == ["strategy_kept"] and not built_in.strategy_changed("RS", "Cla")


async def test_toxicity_goes_through_the_ledger_and_is_rounded(demo: Configuration, ledger: Ledger) -> None:
    config = demo.checks.toxicity
    assert config
    text = "You are a stupid idiot."
    first = await toxicity(scoring(config, ledger), text, ABOUT)
    assert first and first == round(first, 4) > config.at_most
    score, (flaw,) = await too_toxic(scoring(config, ledger), f"I hear you. {text}", ABOUT, config)
    assert score and score > config.at_most and flaw.reason == "toxic" and flaw.detail.endswith(f'reword "{text}"')
    offline = scoring(config, ledger, offline=True)
    assert await toxicity(offline, "You are a stupid idiot.", About("002-00000", "self_chat", 7)) == first, "wherever the text stands"
    with pytest.raises(NoAnswer, match="not in the ledger: 001-00000 score turn 1"):
        await toxicity(offline, "Never seen.", ABOUT)


async def test_scores_in_a_batch_are_those_of_the_scorer_itself(demo: Configuration, ledger: Ledger) -> None:
    from profanity_check import predict_prob

    texts = [f"This is text number {number}, damn it." for number in range(20)]
    assert demo.checks.toxicity
    asker = scoring(demo.checks.toxicity, ledger)
    scores = await asyncio.gather(*(toxicity(asker, text, ABOUT) for text in texts))
    assert scores == [round(float(value), 4) for value in predict_prob(texts)]
