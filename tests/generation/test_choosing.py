"""Candidates: which of several samples is released, what is asked for, and what is kept of the others."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.completions.asker import Answer
from empathy_eval.completions.requests import About, Failure, Flaw, Request
from empathy_eval.design.configuration import SAMPLES_PER_CANDIDATE, Configuration, load_configuration
from empathy_eval.design.contrasts import APATHETIC, EMPATHETIC
from empathy_eval.design.kinds import FAR_EMPATHETIC, NEAR_APATHETIC
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.design.word_list import NOT_CHOSEN, WORD_LIST, read_word_list
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.job import Dialogues
from empathy_eval.generation.outcomes import Candidate, ItemTrail
from empathy_eval.generation.preview import preview, unused_answers
from empathy_eval.generation.rewriting import choose_candidate

from tests.conftest import copy_world, demo_file
from tests.doubles.telling import PLAIN, WORDS, Telling, telling, telltale

Lines = list[dict[str, Any]]
MANY: dict[str, Any] = {"candidates": 4, "word_list": str(WORDS)}


# What changes the requests of near variants.
NEARER = {"helper_words_at_least": 8, "edit_ratio_below": 0.2, "overlap_at_most": 0.35, "toxicity": "none"}


def built(folder: Path, catalogue: Catalogue, prompts: Prompts, **changes: Any) -> tuple[Telling, Lines]:
    model = Telling(catalogue)
    build(telling(folder, catalogue, prompts, model, **changes), folder / "b", Run(ledger=folder.parent / "ledger.sqlite"))
    return model, lines(folder / "b")


def lines(folder: Path) -> Lines:
    return [json.loads(line) for line in (folder / "outcomes.jsonl").read_bytes().splitlines()]


def keys(requests: list[Request]) -> set[str]:
    return {one.key for one in requests}


def test_the_released_text_is_the_accepted_one_that_the_list_tells_worst_and_the_first_of_equals(
    tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    _, found = built(tmp_path / "four", catalogue, prompts, **MANY)
    pairs = [(line, pair) for line in found for pair in line["pairs"]]
    assert len(pairs) > 15
    for line, pair in pairs:
        said = [telltale(pair["turn"], number) for number in range(4)]
        assert sum(said) == 2
        mine = [one for one in line["candidates"] if (one["turn"], one["kind"]) == (pair["turn"], FAR_EMPATHETIC.name)]
        first = said.index(False) + 1
        assert (pair["empathetic"]["text"], sorted(one["attempt"] for one in mine)) == (PLAIN, sorted({1, 2, 3, 4} - {first}))
        assert {tuple(one["reasons"]) for one in mine} == {(NOT_CHOSEN,)}
        near = [one["attempt"] for one in line["candidates"] if (one["turn"], one["kind"]) == (pair["turn"], NEAR_APATHETIC.name)]
        assert near == [2, 3, 4], "all four are the same text"
    summary = json.loads((tmp_path / "four" / "b" / "build.json").read_text())["summary"]
    assert summary["samples_refused"] == {}, "what was not chosen is not refused"


@pytest.mark.e2e
def test_one_candidate_is_the_build_that_it_was_and_more_ask_for_no_more_than_is_new(
    tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    plain, _ = built(tmp_path / "plain", catalogue, prompts)
    one, _ = built(tmp_path / "one", catalogue, prompts, candidates=1, word_list="nowhere.json")
    two, _ = built(tmp_path / "two", catalogue, prompts, **{**MANY, "candidates": 2})
    four, found = built(tmp_path / "four", catalogue, prompts, **MANY)
    assert not one.requests
    for name in ("outcomes.jsonl", "configuration.json", "build.json"):
        assert (tmp_path / "one" / "b" / name).read_bytes() == (tmp_path / "plain" / "b" / name).read_bytes()
    things = len(plain.requests)
    assert {request.sample for request in plain.requests} == {0} and things > 40
    assert Counter(request.sample for request in two.requests) == {SAMPLES_PER_CANDIDATE: things}
    assert Counter(request.sample for request in four.requests) == {2 * SAMPLES_PER_CANDIDATE: things, 3 * SAMPLES_PER_CANDIDATE: things}
    fresh, _ = built(tmp_path / "elsewhere" / "four", catalogue, prompts, **MANY)
    assert keys(fresh.requests) == keys(plain.requests) | keys(two.requests) | keys(four.requests)
    assert lines(tmp_path / "elsewhere" / "four" / "b") == found
    back, again = built(tmp_path / "back", catalogue, prompts)
    assert not back.requests and again == lines(tmp_path / "plain" / "b")


def test_a_replay_offline_gives_the_same_bytes_and_more_samples_ask_for_nothing(
    tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    built(tmp_path / "four", catalogue, prompts, **MANY)
    model = Telling(catalogue)
    run = Run(ledger=tmp_path / "ledger.sqlite", offline=True)
    build(telling(tmp_path / "again", catalogue, prompts, model, **MANY), tmp_path / "again" / "b", run)
    for name in ("outcomes.jsonl", "build.json", WORD_LIST):
        assert (tmp_path / "again" / "b" / name).read_bytes() == (tmp_path / "four" / "b" / name).read_bytes()
    more, found = built(tmp_path / "more", catalogue, prompts, **MANY, samples=7)
    assert not more.requests and found == lines(tmp_path / "four" / "b")


def test_another_dialogue_changes_none(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    _, whole = built(tmp_path / "whole" / "three", catalogue, prompts, **MANY)
    two = load_catalogue(copy_world(tmp_path / "two", ("003", "017")))
    _, fewer = built(tmp_path / "fewer" / "two", two, prompts, **MANY)

    def told(found: Lines) -> Lines:
        return [{**line, "dialogue": None, "pairs": [pair["empathetic"]["text"] for pair in line["pairs"]]} for line in found]

    assert [{**one, "usage": 0} for one in told(fewer)] == [{**one, "usage": 0} for one in told(whole) if one["dialogue_id"][:3] != "007"]


def test_each_candidate_uses_up_its_own_samples_and_only_where_all_fail_the_variant_fails(
    tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    def alter(request: Request, text: str) -> str:
        candidate, sample = divmod(request.sample, SAMPLES_PER_CANDIDATE)
        fails = request.about.kind == FAR_EMPATHETIC.name and (candidate < 2 or request.about.turn == 3)
        return "Too short." if fails or (candidate == 2 and sample == 0) else text

    model = Telling(catalogue, alter)
    recipe = telling(tmp_path, catalogue, prompts, model, **{**MANY, "candidates": 3}, samples=2, repairs=1)
    summary = build(recipe, tmp_path / "b")
    asked = Counter(one.sample for one in model.requests if one.about.kind == FAR_EMPATHETIC.name)
    things = asked[0] // 2
    # Two of three candidates fail with their repairs; the third does so once, and on turn 3 of each dialogue for good.
    lost = len({one.about.dialogue_id for one in model.requests if one.about.turn == 3})
    assert lost and asked == {0: 2 * things, 1: 2 * things, 1000: 2 * things, 1001: 2 * things, 2000: 2 * things, 2001: things + lost}
    assert summary.failed == {"far_empathetic: too_short": lost}
    assert summary.pairs == things - lost
    for line in lines(tmp_path / "b"):
        for turn in {pair["turn"] for pair in line["pairs"]}:
            mine = [one for one in line["candidates"] if (one["turn"], one["kind"]) == (turn, FAR_EMPATHETIC.name)]
            assert [one["attempt"] for one in mine] == list(range(1, 11)), "the released one is the eleventh"


def test_what_rules_make_stays_one_text(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    model, found = built(tmp_path / "rules", catalogue, prompts, **MANY, near_apathetic="rules")
    assert NEAR_APATHETIC.name not in {one.about.kind for one in model.requests}
    made = [pair["apathetic"] for line in found for pair in line["pairs"]]
    assert {one["method"] for one in made} == {"rules"}


def test_the_failures_of_candidates_stand_in_their_order_and_none_is_final_beside_one_that_passed(demo: Configuration) -> None:
    config = _config(demo, candidates=2, samples=1, repairs=1)

    async def ask(first: int, trail: ItemTrail) -> Answer[tuple[str, float | None]] | None:
        await asyncio.sleep(0 if first else 0.01)  # the later one answers first
        trail.record_candidate(FAR_EMPATHETIC.name, 3, f"text {first}", [] if first else [Flaw("too_short", "")])
        if first:
            return Answer((f"text {first}", None), "m", "k")
        trail.failures += [(at, Failure(FAR_EMPATHETIC.name, 3, ("too_short",), "k", final=at == 2)) for at in (1, 2)]
        return None

    trail = ItemTrail()
    answer = asyncio.run(choose_candidate(ask, config, FAR_EMPATHETIC, trail))
    assert answer and answer.value == (f"text {SAMPLES_PER_CANDIDATE}", None)
    assert [(at, one.final) for at, one in trail.failures] == [(1, False), (2, False)]
    first, second = trail.candidates
    assert first == Candidate(FAR_EMPATHETIC.name, 3, "text 0", ("too_short",), 1)
    assert (second.reasons, second.attempt) == ((), 2)


def _config(demo: Configuration, **changes: Any) -> Configuration:
    return replace(demo, words=read_word_list(WORDS), **changes)


def test_a_kind_text_is_chosen_for_being_told_least_kind_and_a_cold_one_for_being_told_most_kind() -> None:
    words = read_word_list(WORDS)
    texts = ["Please, telltale anyway.", "Please anyway", "Nothing at all", "anyway please", "telltale telltale"]
    assert [words.score(EMPATHETIC, one) for one in texts] == [2_000_000, -1_000_000, 0, -1_000_000, 6_000_000]
    assert words.hardest(EMPATHETIC, texts) == 1 and words.hardest("near_empathetic", texts) == 1
    assert words.hardest(APATHETIC, texts) == 4 and words.hardest("far_apathetic", texts[:4]) == 0


def test_a_preview_and_the_course_count_each_candidate(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    def ahead(ledger: Path | None, **changes: Any) -> dict[str, int]:
        recipe = telling(tmp_path / "c", catalogue, prompts, Telling(catalogue), **changes)
        return {one.kind: one.requests for one in preview(recipe, ledger, 0).estimates}

    one, four = ahead(None), ahead(None, **MANY)
    assert four == {kind: count if kind == "self_chat" else 4 * count for kind, count in one.items()}
    model, _ = built(tmp_path / "two", catalogue, prompts, **{**MANY, "candidates": 2})
    ledger = tmp_path / "ledger.sqlite"
    assert ahead(ledger) == one and ahead(ledger, **MANY) == four, "what is in the ledger is of two candidates"
    changed = telling(tmp_path / "c", catalogue, prompts, Telling(catalogue), **{**MANY, "candidates": 2}, checks=NEARER)
    again = unused_answers(changed, ledger)
    near = Counter(one.about.kind for one in model.requests if one.about.kind.startswith("near"))
    assert again and again.kinds == near, "all candidates that would be asked for again are told of"
    job = Dialogues(telling(tmp_path / "c", catalogue, prompts, model, **{**MANY, "candidates": 2}))
    assert sum(job.least(item) for item in job.items()) == one["self_chat"] + len(model.requests)


def refused(folder: Path, catalogue: Catalogue, prompts: Prompts, **changes: Any) -> str:
    with pytest.raises(InputError) as caught:
        telling(folder, catalogue, prompts, Telling(catalogue), **changes)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_candidates_without_a_list_or_with_one_that_is_none_are_refused_in_words(
    tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    def told(**changes: Any) -> str:
        return refused(tmp_path / "c", catalogue, prompts, **{**MANY, **changes})

    assert "word_list: is missing: candidates: 4" in told(word_list=None) and "shortcuts RELEASE --out" in told(word_list=None)
    assert "nowhere.json: cannot be read" in told(word_list=str(tmp_path / "nowhere.json"))
    whole = json.loads(WORDS.read_text())
    for change, said in (
        ({"language": "de", "tokens": "unicode-words"}, 'is in the language "de", but the texts are in "en"'),
        ({"tokens": "unicode-words"}, 'counts tokens by "unicode-words"'),
        ({"unit": 1}, "unit"),
        ({"contrasts": {}}, 'misses "empathetic - apathetic"'),
    ):
        (tmp_path / "other.json").write_text(json.dumps({**whole, **change}))
        assert said in told(word_list=str(tmp_path / "other.json")), change
    (tmp_path / "other.json").write_text(WORDS.read_text()[:-9])
    assert "is not JSON" in told(word_list=str(tmp_path / "other.json"))
    assert "a candidate can have at most 1,000" in told(samples=1001)


def test_a_seed_bank_has_no_candidates(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_configuration(demo_file(tmp_path, **MANY))
    assert "the seed bank (near, far) has one text of each variant" in str(caught.value)


def test_about_is_the_same_for_all_candidates(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    model, _ = built(tmp_path / "two", catalogue, prompts, **{**MANY, "candidates": 2})
    by_about: dict[About, set[bytes]] = {}
    for one in model.requests:
        by_about.setdefault(one.about, set()).add(one.content)
    assert all(len(bodies) == 1 for bodies in by_about.values()), "a candidate is asked for with the same words"
