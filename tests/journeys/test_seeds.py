"""The sixty curated seed dialogues: every property of them that can be counted."""

from __future__ import annotations

import calendar
import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from empathy_eval.base.text import edit_ratio, overlap, shingles, words
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.contrasts import APATHETIC, EMPATHETIC, STANCE_OF
from empathy_eval.design.language import english
from empathy_eval.design.personas import VOICES
from empathy_eval.design.scenarios import Catalogue, Scenario, Seed, SeedTurn, load_catalogue
from empathy_eval.design.taxonomy import breaches
from empathy_eval.evaluation.shortcuts.texts import count_features
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import description
from empathy_eval.generation.outcomes import Turn
from empathy_eval.metrics.lexical import Shares, word_lists
from profanity_check import predict_prob

OVERLAP_AT_MOST = 0.30
STOCK = ("it sounds like", "sounds like you", "so sorry", "completely understandable", "completely normal", "that sounds really",
         "that must be", "i hear you", "it's okay to", "your feelings are valid", "not alone", "thank you for sharing",
         "it makes sense that", "i can only imagine", "i can imagine", "my heart goes out", "every right to")  # fmt: skip
WARM = ("so sorry", "glad you", "that sounds", "love", "well done")

NUMBERS = {"two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
LARGE = {"thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty", "sixty",
         "seventy", "eighty", "ninety", "hundred", "thousand", "million"}  # fmt: skip
# Capitalised words that any dialogue may have.
ALLOWED = {"I", "OK", "God", "English", "Christmas", "Easter", "Ramadan", *calendar.day_name, *calendar.month_name}


@pytest.fixture(scope="module")
def all_seeds() -> Catalogue:
    return load_catalogue()


def seeds(catalogue: Catalogue) -> Iterator[tuple[Scenario, Seed]]:
    for scenario in catalogue.scenarios:
        assert scenario.seed is not None, scenario.name
        yield scenario, scenario.seed


def helper_turns(catalogue: Catalogue) -> Iterator[tuple[str, SeedTurn]]:
    for scenario, seed in seeds(catalogue):
        for place, turn in enumerate(seed.turns):
            if turn.role == "helper":
                yield f"{scenario.number}, turn {place}", turn


def variants(turn: SeedTurn) -> dict[str, str]:
    names = ("apathetic", "empathetic", "near_empathetic", "far_apathetic")
    return {name: text for name in names if (text := getattr(turn, name))}


def test_every_scenario_has_a_seed_of_12_to_22_turns_17_on_average(all_seeds: Catalogue) -> None:
    lengths = [len(seed.turns) for _, seed in seeds(all_seeds)]
    assert len(lengths) == 60 and min(lengths) >= 12 and max(lengths) <= 22
    assert 16.5 <= sum(lengths) / 60 <= 17.5


def test_a_turn_has_20_to_40_words_on_average(all_seeds: Catalogue) -> None:
    counts = [len(words(turn.text)) for _, seed in seeds(all_seeds) for turn in seed.turns]
    assert 20 <= sum(counts) / len(counts) <= 40


def test_all_phase_constraints_hold_strategies_are_spread_and_descriptions_are_in_form(all_seeds: Catalogue, demo: Configuration) -> None:
    for scenario, seed in seeds(all_seeds):
        assert breaches(seed.turns, all_seeds.taxonomy, demo.rules) == [], scenario.name
        assert description(seed.description, english()) == [], scenario.name
    counts = Counter(turn.strategy for _, turn in helper_turns(all_seeds))
    assert len(counts) == 15 and min(counts.values()) >= 20


def test_the_counts_are_pinned(all_seeds: Catalogue) -> None:
    turns = [turn for _, turn in helper_turns(all_seeds)]
    controls = [turn for turn in turns if turn.near_empathetic]
    assert (len(turns), len(controls)) == (465, 416)
    assert all((turn.near_empathetic is None) == (turn.far_apathetic is None) for turn in turns)
    assert min(len(words(text)) for turn in controls for text in variants(turn).values()) >= 14
    for _, seed in seeds(all_seeds):
        assert sum(turn.near_empathetic is not None for turn in seed.turns) >= 5


def test_every_manner_and_device_is_shown_often_enough_to_be_measured(all_seeds: Catalogue) -> None:
    for variant, least in (("apathetic", 20), ("far_apathetic", 20), ("empathetic", 20)):
        counts = Counter(turn.ways.get(variant) for _, turn in helper_turns(all_seeds) if variant in variants(turn))
        assert set(counts) == {way.name for way in all_seeds.taxonomy.ways(variant)}
        assert min(counts.values()) >= least, counts


def test_no_telltale_word_is_twice_as_frequent_in_one_stance_as_in_the_other(all_seeds: Catalogue) -> None:
    stances = {stance: Counter[str]() for stance in (EMPATHETIC, APATHETIC)}
    for _, turn in helper_turns(all_seeds):
        for name, text in variants(turn).items():
            stances[STANCE_OF[name]].update(words(text))
    assert len(all_seeds.telltale) >= 30
    for word in all_seeds.telltale:
        low, high = sorted(counts[word] / counts.total() for counts in stances.values())
        assert high <= 2 * low, word


def test_few_seekers_are_wits_and_they_write_short_and_long(all_seeds: Catalogue) -> None:
    registers = Counter(seed.register for _, seed in seeds(all_seeds))
    assert sum(registers[name] for name in ("plain", "flat", "rambling", "clumsy", "hostile", "stuck")) >= 20
    assert registers["witty"] <= 10
    lengths = sorted(len(words(turn.text)) for _, seed in seeds(all_seeds) for turn in seed.turns if turn.role == "seeker")
    assert lengths[0] >= 1 and lengths[-1] <= 90
    assert lengths[len(lengths) // 20] <= 6 and lengths[-len(lengths) // 20] >= 55
    helper = [len(words(turn.text)) for _, turn in helper_turns(all_seeds)]
    assert min(helper) >= 8 and max(helper) <= 70


def test_numbers_are_rare_in_what_seekers_say(all_seeds: Catalogue) -> None:
    said = [turn.text for _, seed in seeds(all_seeds) for turn in seed.turns if turn.role == "seeker"]
    assert sum(bool(re.search(r"\d", text) or NUMBERS.intersection(words(text))) for text in said) <= len(said) / 4


def test_no_large_number_name_or_emblem_is_in_two_dialogues(all_seeds: Catalogue) -> None:
    owners: dict[str, int] = {}
    texts = {scenario.number: list(texts_of(seed)) for scenario, seed in seeds(all_seeds)}
    for number, found in texts.items():
        for one in {mark for text in found for mark in (*large_numbers(text), *names(text))}:
            assert owners.setdefault(one, number) == number, (one, number, owners[one])
    every = {number: {word for text in found for word in words(text)} for number, found in texts.items()}
    for scenario, seed in seeds(all_seeds):
        assert 1 <= len(seed.emblems) <= 5
        for emblem in seed.emblems:
            assert not [number for number, found in every.items() if emblem in found and number != scenario.number], emblem


def texts_of(seed: Seed) -> Iterator[str]:
    for turn in seed.turns:
        yield from (turn.text, *variants(turn).values())


def large_numbers(text: str) -> set[str]:
    """The numbers above twelve, in digits or words."""
    spelled = {word for word in re.findall(r"[a-z]+(?:-[a-z]+)?", text.casefold()) if LARGE.intersection(word.split("-"))}
    return spelled | {one for one in re.findall(r"\d+", text) if int(one) > 12}


def names(text: str) -> set[str]:
    """The capitalised words inside a sentence that are not of everybody."""
    found = re.findall(r"(?<=[a-z,;:'\"’”] )([A-Z][\w'’-]*)", text)
    return {re.sub(r"['’]s$", "", word) for word in found} - ALLOWED - {word for word in found if re.match(r"I['’]", word)}


def test_helper_turns_do_not_open_alike(all_seeds: Catalogue) -> None:
    openings = Counter(words(turn.text)[:3] for _, turn in helper_turns(all_seeds))
    assert openings.most_common(1)[0][1] <= 0.03 * openings.total()


def stances(catalogue: Catalogue, phrase: str) -> tuple[float, float]:
    """The share of empathetic, and of apathetic texts that hold a phrase."""
    held: dict[str, list[bool]] = {EMPATHETIC: [], APATHETIC: []}
    for _, turn in helper_turns(catalogue):
        for name, text in {"reference": turn.text, **variants(turn)}.items():
            held[STANCE_OF.get(name, EMPATHETIC)].append(phrase in text.casefold())
    return sum(held[EMPATHETIC]) / len(held[EMPATHETIC]), sum(held[APATHETIC]) / len(held[APATHETIC])


@pytest.mark.parametrize("phrase", STOCK)
def test_no_stock_phrase_is_in_many_texts(phrase: str, all_seeds: Catalogue) -> None:
    assert max(stances(all_seeds, phrase)) <= 0.10


@pytest.mark.parametrize("phrase", WARM)
def test_conventional_warmth_stands_in_both_stances_and_in_empathetic_texts_at_least_as_often(phrase: str, all_seeds: Catalogue) -> None:
    empathetic, apathetic = stances(all_seeds, phrase)
    assert empathetic >= apathetic > 0


def test_each_voice_is_the_helpers_in_six_dialogues_or_more_and_never_both(all_seeds: Catalogue) -> None:
    assert all_seeds.personas
    known = {voice.name for voice in all_seeds.personas.voices}
    for name in VOICES:
        counts = Counter(getattr(seed, name) for _, seed in seeds(all_seeds))
        assert set(counts) == known and min(counts.values()) >= 6
    assert all(seed.helper_voice != seed.far_voice for _, seed in seeds(all_seeds))


@pytest.mark.parametrize("variant", ["apathetic", "far_apathetic"])
def test_cheering_and_reciting_are_rare(variant: str, all_seeds: Catalogue) -> None:
    counts = Counter(turn.ways[variant] for _, turn in helper_turns(all_seeds) if variant in variants(turn))
    assert counts["cheering"] + counts["reciting"] <= 0.14 * counts.total()


def test_an_apathetic_near_copy_is_turned_round_in_more_than_one_place(all_seeds: Catalogue) -> None:
    places, marks = list[int](), Counter[tuple[str, ...]]()
    for _, turn in helper_turns(all_seeds):
        before, after = words(turn.text), words(turn.apathetic or "")
        changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        places.append(sum(change[0] != "equal" for change in changes))
        marks.update(shingles(turn.apathetic or "", 3) - shingles(turn.text, 3))
    assert sum(count >= 2 for count in places) >= len(places) * 2 / 3
    assert marks.most_common(1)[0][1] <= 3, marks.most_common(3)


COMPARED = {"reference": ("text", "apathetic"), "near": ("near_empathetic", "apathetic"), "far": ("empathetic", "far_apathetic")}


def compared(catalogue: Catalogue, contrast: str) -> tuple[Shares, Shares]:
    """The plain features of the empathetic and of the apathetic texts of a contrast."""
    turns = [turn for _, turn in helper_turns(catalogue) if contrast == "reference" or turn.near_empathetic]
    kind, cold = (count_features([getattr(turn, name) for turn in turns]) for name in COMPARED[contrast])
    return kind, cold


@pytest.mark.parametrize("contrast", COMPARED)
def test_warm_words_lean_a_little_towards_empathy_and_none_the_other_way(contrast: str, all_seeds: Catalogue) -> None:
    kind, cold = compared(all_seeds, contrast)
    spread = np.sqrt((kind.var(axis=0) + cold.var(axis=0)) / 2)
    difference = dict(zip(word_lists().names, (kind.mean(axis=0) - cold.mean(axis=0)) / np.maximum(spread, 1), strict=True))
    for names, most in ((("positive", "cheer", "formula"), 0.25), (("feelings", "hardship", "presence", "understanding"), 0.35)):
        assert all(0 <= difference[name] <= most for name in names), {name: round(difference[name], 3) for name in names}


def test_positive_words_are_hardly_better_than_chance_at_equal_closeness(all_seeds: Catalogue) -> None:
    place, right = word_lists().names.index("positive"), list[float]()
    for contrast in ("near", "far"):
        kind, cold = compared(all_seeds, contrast)
        right.append(float((np.sign(kind[:, place] - cold[:, place]).mean() + 1) / 2))
    assert 0.52 <= sum(right) / 2 <= 0.60, right


def test_no_two_dialogues_end_alike(all_seeds: Catalogue) -> None:
    endings = Counter(words(seed.turns[-1].text)[-5:] for _, seed in seeds(all_seeds))
    assert max(endings.values()) == 1


def test_openings_of_scenarios_are_all_different(all_seeds: Catalogue) -> None:
    lines = [line for scenario in all_seeds.scenarios for line in scenario.openings]
    first = [seed.turns[0].text for _, seed in seeds(all_seeds)]
    assert len(lines) == 180 and len({*lines, *first}) == 240
    for scenario in all_seeds.scenarios:
        assert 2 <= len(re.findall(r"[.!?](?:\s|$)", scenario.definition)) <= 4, scenario.name


def test_near_variants_stay_near_and_far_ones_keep_away(all_seeds: Catalogue, demo: Configuration) -> None:
    for place, turn in helper_turns(all_seeds):
        for name, text in variants(turn).items():
            if name in ("apathetic", "near_empathetic"):
                assert 0 < edit_ratio(turn.text, text) < demo.checks.edit_ratio_below, (place, name)
            else:
                assert overlap(turn.text, text) <= OVERLAP_AT_MOST, (place, name)
            assert len(words(text)) >= demo.checks.helper_words_at_least, (place, name)


def test_far_variants_change_the_strategy_within_the_phase_and_name_their_device(all_seeds: Catalogue) -> None:
    for place, turn in helper_turns(all_seeds):
        assert turn.strategy and turn.empathetic_strategy and turn.strategy != turn.empathetic_strategy, place
        assert all_seeds.taxonomy.phase_of(turn.strategy) == all_seeds.taxonomy.phase_of(turn.empathetic_strategy), place
        assert turn.ways["empathetic"], place


def test_controls_match_their_counterparts_in_edit_ratio_and_length(all_seeds: Catalogue) -> None:
    for place, turn in helper_turns(all_seeds):
        if turn.near_empathetic and turn.far_apathetic and turn.apathetic and turn.empathetic:
            ratios = [edit_ratio(turn.text, text) for text in (turn.apathetic, turn.near_empathetic)]
            assert abs(ratios[0] - ratios[1]) <= 0.05, place
            for one, other in ((turn.apathetic, turn.near_empathetic), (turn.empathetic, turn.far_apathetic)):
                lengths = sorted((len(words(one)), len(words(other))))
                assert lengths[1] - lengths[0] <= 0.15 * lengths[1], place


def test_helper_turns_and_variants_are_safe_and_not_toxic(all_seeds: Catalogue, demo: Configuration) -> None:
    texts = [(place, text) for place, turn in helper_turns(all_seeds) for text in (turn.text, *variants(turn).values())]
    assert [place for place, text in texts if built_in.harmless(text, english())] == []
    scores, limit = predict_prob([text for _, text in texts]), demo.checks.toxicity
    assert limit and [place for (place, _), score in zip(texts, scores, strict=True) if score > limit.at_most] == []


def test_crisis_language_is_answered_with_a_pointer_that_every_variant_keeps(all_seeds: Catalogue) -> None:
    flagged = 0
    for scenario, seed in seeds(all_seeds):
        turns = [Turn("seeker" if turn.role == "seeker" else "helper", turn.text, turn.strategy) for turn in seed.turns]
        assert built_in.answers_crisis(turns, english()) == [], scenario.name
        for place, turn in enumerate(seed.turns):
            flags = built_in.dialogue_flags(turns[: place + 1], english())
            flagged += bool(flags)
            for name, text in variants(turn).items():
                assert built_in.keeps_pointer(turn.text, text, flags, english()) == [], (scenario.name, place, name)
    assert flagged > 0


def test_no_two_texts_are_nearly_the_same(all_seeds: Catalogue) -> None:
    """Dialogues against each other, and the texts of a turn against those of every other turn."""
    whole = [shingles(" ".join(turn.text for turn in seed.turns)) for _, seed in seeds(all_seeds)]
    assert max(len(a & b) / len(a | b) for a, b in itertools.combinations(whole, 2)) < 0.05
    owners: dict[tuple[str, ...], str] = {}
    for place, turn in helper_turns(all_seeds):
        for run in shingles(" ".join((turn.text, turn.empathetic or "")), 9):
            assert owners.setdefault(run, place) == place, (place, owners[run], " ".join(run))
