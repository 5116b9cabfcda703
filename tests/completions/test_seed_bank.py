"""The seed bank."""

import json

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.completions.models.seed_bank import SeedBank
from empathy_eval.completions.requests import About, Request
from empathy_eval.design.scenarios import Catalogue


async def answer(catalogue: Catalogue, about: About) -> dict[str, object]:
    bank = SeedBank(catalogue)
    completion = await bank.complete(Request(bank.body([], "variant_answer"), bank.endpoint, about))
    value: dict[str, object] = json.loads(completion.text)
    return value


async def test_it_answers_from_the_seed_that_the_request_is_about(catalogue: Catalogue) -> None:
    seed = catalogue[17].seed
    assert seed is not None
    place = next(place for place, turn in enumerate(seed.turns) if turn.role == "helper")
    kinds: dict[str, str | None] = {"near_apathetic": seed.turns[place].apathetic, "far_empathetic": seed.turns[place].empathetic}
    for kind, text in kinds.items():
        assert await answer(catalogue, About("017-seed", kind, place)) == {"text": text}
    assert (await answer(catalogue, About("017-seed", "self_chat")))["description"] == seed.description


def test_its_name_carries_the_hash_of_the_seeds(catalogue: Catalogue) -> None:
    assert SeedBank(catalogue).name == f"seed-bank@{catalogue.seed_hash[-12:]}"


@pytest.mark.parametrize(
    "about", [About("017-00004", "self_chat"), About("017-seed", "near_apathetic", 0), About("017-seed", "far_empathetic", 99)]
)
async def test_asked_for_what_it_does_not_hold_it_says_what_it_holds_and_how_to_name_a_model(catalogue: Catalogue, about: About) -> None:
    with pytest.raises(InputError, match=r"it holds 3 seed dialogues .*\n  Fix: build with a model: --model NAME"):
        await answer(catalogue, about)
