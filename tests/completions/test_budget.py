"""Budgets: hard, and counted from the ledger."""

import asyncio
from pathlib import Path

import pytest
from empathy_eval.base.errors import JobError
from empathy_eval.completions.budget import Budget, Spent, cost
from empathy_eval.completions.ledger import Batch, Ledger, LedgerEntry, PendingRequest
from empathy_eval.completions.requests import About, Completion, Usage
from empathy_eval.design.endpoints import Prices

PRICES = {"m": Prices(input=2.0, output=8.0, cached_input=0.5)}
ABOUT = About("001-00000", "self_chat")


def test_a_cost_by_hand() -> None:
    # (1000 - 400) * 2 + 400 * 0.5 + 100 * 8 = 2200 dollars a million times
    assert cost(Usage(1000, 400, 100), PRICES["m"]) == pytest.approx(0.0022, abs=1e-15)
    assert cost(Usage(1000, 400, 100), Prices(input=2.0, output=8.0)) == pytest.approx(0.0028, abs=1e-15)


async def test_a_request_without_room_waits_for_an_open_one_and_is_refused_when_there_is_none(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        budget = Budget(ledger, PRICES, {"m"}, None, 1000)
        await budget.reserve("a", "m", Usage(500, 0, 100))
        second = asyncio.create_task(budget.reserve("b", "m", Usage(500, 0, 100)))
        await asyncio.sleep(0.01)
        assert not second.done()
        budget.settle("a", "m", Usage(500, 0, 100), Usage(200, 0, 50))
        await second
        budget.settle("b", "m", Usage(500, 0, 100), Usage(300, 0, 60))
        assert budget.spent.tokens == 610 and budget.reserved.tokens == 0
        assert budget.spent.dollars == pytest.approx(cost(Usage(500, 0, 110), PRICES["m"]), abs=1e-12)
        with pytest.raises(JobError, match="the budget of 1000 tokens has no room"):
            await budget.reserve("c", "m", Usage(500, 0, 100))


async def test_an_unknown_outcome_keeps_its_reservation_in_the_next_run_too(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        budget = Budget(ledger, PRICES, {"m"}, None, 1000)
        await budget.reserve("a", "m", Usage(500, 0, 100))
        budget.settle("a", "m", Usage(500, 0, 100), Usage(), known=False)
        await budget.reserve("killed", "m", Usage(200, 0, 0))
    with Ledger(tmp_path / "l") as ledger:
        again = Budget(ledger, PRICES, {"m"}, None, 1000)
        assert again.reserved.tokens == 800
        with pytest.raises(JobError):
            await again.reserve("b", "m", Usage(201, 0, 0))
        await again.reserve("c", "m", Usage(200, 0, 0))


def test_what_the_ledger_has_spent_on_these_models_counts(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        ledger.put(LedgerEntry("s1-a", ABOUT, Completion("x", "stop", "m", Usage(100, 0, 10))))
        ledger.put(LedgerEntry("s1-b", ABOUT, Completion("x", "stop", "other", Usage(7, 0, 7))))
        assert Budget(ledger, PRICES, {"m"}, 1.0, None).spent == Spent(110, cost(Usage(100, 0, 10), PRICES["m"]))


def test_what_came_in_batches_and_is_under_way_in_them_has_its_share_of_the_price(tmp_path: Path) -> None:
    prices = {"m": Prices(input=2.0, output=8.0, batch=0.25)}
    with Ledger(tmp_path / "l") as ledger:
        for place, delivery in enumerate(("live", "batch", "by hand")):
            ledger.put(
                LedgerEntry(f"s1-{place}", About("017-00001", "self_chat"), Completion("x", "stop", "m", Usage(1000, 0, 500)), delivery)
            )
        noted = PendingRequest("s1-a", About("017-00001", "self_chat"), "e", "m", b"", Usage(2000, 0, 1000))
        ledger.note_requests("f", [noted], Batch("f", "e", "b", 1))
        ledger.note_requests("g", [PendingRequest("s1-b", noted.about, "e", "m", b"", Usage(7, 0, 7))])
        budget = Budget(ledger, prices, {"m"}, 1.0, None)
        # 1,000 tokens read at $2 and 500 written at $8 a million are $0.006: twice whole and once a quarter of it.
        assert budget.spent.dollars == pytest.approx(0.0135, abs=1e-12)
        # What is under way is twice as much at a quarter; what was given out by hand is nobody's promise.
        assert budget.reserved.tokens == 3000 and budget.reserved.dollars == pytest.approx(0.003, abs=1e-12)
        assert budget.reserve_batch("m", Usage(1000, 0, 500)) and budget.reserved.tokens == 4500
