"""Asking: ledger first, one repair a sample, then the next sample."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.completions.asker import Asker, Trail, evaluate_answer, gather_all
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import About, Completion, Flaw, NoAnswer, strip_wrapping
from empathy_eval.design.prompts import Prompts

from tests.doubles.models import Scripted, said

ABOUT = About("017-00001", "far_empathetic", 5)
MESSAGES = [{"role": "user", "content": "Say something kind."}]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "l.sqlite") as opened:
        yield opened


async def kind(value: Any) -> str | list[Flaw]:
    return value["text"] if "kind" in value["text"] else [Flaw("unkind", "it is not kind")]


async def ask(ledger: Ledger, prompts: Prompts, model: Scripted, trail: Trail, *, offline: bool = False) -> Any:
    asker = Asker(ledger, {"far": model}, prompts, samples=2, repairs=1, offline=offline)
    return await asker.ask(ABOUT, MESSAGES, kind, trail)


async def test_a_good_answer_is_taken_and_not_asked_for_again(ledger: Ledger, prompts: Prompts) -> None:
    model, trail = Scripted(said({"text": "kind words"})), Trail()
    first = await ask(ledger, prompts, model, trail)
    again = await ask(ledger, prompts, model, Trail())
    assert first.value == "kind words" and first == again
    assert len(model.bodies) == 1 and not trail.failures


@pytest.mark.parametrize("answer", [said({"text": "kind words"}), said("rude")])
async def test_the_very_same_asked_at_once_is_sent_once_and_all_have_its_answer(
    answer: Completion, ledger: Ledger, prompts: Prompts
) -> None:
    model, trails = Scripted(answer, *[said({"text": "kind again"})] * 9), [Trail(), Trail(), Trail()]
    asker = Asker(ledger, {"far": model}, prompts, samples=1, repairs=1)
    found = await gather_all(*(asker.ask(ABOUT, MESSAGES, kind, trail) for trail in trails))
    assert found[0] == found[1] == found[2] and trails[0] == trails[1] == trails[2]
    assert len(model.bodies) == len(ledger) == trails[0].plain_usage()["scripted"]["requests"]
    assert not asker._under_way


async def test_what_gets_no_answer_gets_none_for_all_who_asked_at_once_and_is_asked_for_again_later(
    ledger: Ledger, prompts: Prompts
) -> None:
    class Down(Scripted):
        async def complete(self, request: Any) -> Completion:
            self.bodies.append(request.body)
            await asyncio.sleep(0)
            raise NoAnswer("down")

    model = Down()
    asker = Asker(ledger, {"far": model}, prompts)
    for times in (1, 2):
        found = await asyncio.gather(*(asker.ask(ABOUT, MESSAGES, kind, Trail()) for _ in range(3)), return_exceptions=True)
        assert [str(one) for one in found] == ["down"] * 3 and len(model.bodies) == times


async def test_each_bad_sample_gets_one_repair_that_shows_the_violations(ledger: Ledger, prompts: Prompts) -> None:
    model = Scripted(said({"text": "rude"}), said("{cut"), said({"words": 1}), said({"text": "so kind"}))
    trail = Trail()
    answer = await ask(ledger, prompts, model, trail)
    assert answer.value == "so kind"
    assert [(one.reasons, one.final) for one in trail.sorted_failures()] == [
        (("unkind",), False),
        (("not_json",), False),
        (("schema",), False),
    ]
    first, repair, second, second_repair = [body["messages"] for body in model.bodies]
    assert first == second == MESSAGES
    assert repair[:2] == [*MESSAGES, {"role": "assistant", "content": '{"text": "rude"}'}]
    assert "it is not kind" in repair[2]["content"] and 'misses "text"' in second_repair[2]["content"]


async def test_when_samples_are_used_up_there_is_no_answer_and_every_one_is_stored(ledger: Ledger, prompts: Prompts) -> None:
    model, trail = Scripted(*[said({"text": f"rude {number}"}) for number in range(4)]), Trail()
    assert await ask(ledger, prompts, model, trail) is None
    assert [one.final for one in trail.sorted_failures()] == [False, False, False, True]
    assert len(ledger) == 4 and trail.plain_usage()["scripted"]["requests"] == 4


async def test_an_unanswered_request_of_an_offline_build_is_named(ledger: Ledger, prompts: Prompts) -> None:
    with pytest.raises(NoAnswer, match=r"not in the ledger: 017-00001 far_empathetic turn 5, sample 0, key s1-[0-9a-f]{64}"):
        await ask(ledger, prompts, Scripted(), Trail(), offline=True)
    assert len(ledger) == 0


@pytest.mark.parametrize("finish", ["length", "refusal", "content_filter", "empty"])
async def test_an_answer_that_ended_early_is_bad_whatever_it_says(finish: str) -> None:
    verdict = await evaluate_answer(Completion('{"text": "kind"}', finish, "m"), "variant_answer", kind)
    assert isinstance(verdict, list) and verdict[0].reason == f"finish_{finish}"


async def test_a_code_fence_around_the_whole_answer_is_taken_off() -> None:
    assert await evaluate_answer(said('```json\n{"text": "kind"}\n```'), "variant_answer", kind) == "kind"
    assert strip_wrapping("a ``` b") == "a ``` b"


async def test_all_tasks_end_before_an_error_goes_on() -> None:
    ended = []

    async def task(number: int, error: Exception | None) -> int:
        ended.append(number)
        if error:
            raise error
        return number

    assert await gather_all(task(1, None), task(2, None)) == [1, 2]
    with pytest.raises(KeyError):
        await gather_all(task(3, NoAnswer("first")), task(4, KeyError("graver")), task(5, None))
    assert ended == [1, 2, 3, 4, 5]
