"""Models of one's own: an object, ``module:name`` or a TextModel; whatever they do, no answer is lost and the error names them."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from empathy_eval import cli
from empathy_eval.base.errors import EmpathyEvalError, InputError, JobError, job_error
from empathy_eval.commands.build import build
from empathy_eval.commands.preview import preview
from empathy_eval.completions.batch_files import import_answers
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.custom import GuardedModel, TextModel
from empathy_eval.completions.requests import About, Completion, NoAnswer, Request, Usage
from empathy_eval.design.configuration import Configuration, load_configuration
from empathy_eval.design.prompts import Message, Prompts
from empathy_eval.design.recipe import Recipe, load_recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation import by_batch

from tests.completions.test_openai_endpoint import config_file
from tests.conftest import demo_file
from tests.doubles.batches import BatchServer, reply
from tests.doubles.models import Recorder
from tests.doubles.server import Behaviour, Server, running

REPLY = "Would it help to sit with this for a while and tell me more of it?"
# Requests to the model for far variants: 20 pairs, all of them with controls.
FAR = 40
MINE = """
import json

from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.custom import TextModel


class Mine(TextModel):
    def __init__(self, reply, name="mine"):
        self.reply, self.name = reply, name

    def answer(self, messages, answer_schema):
        assert messages[-1]["role"] == "user" and answer_schema["required"] == ["text"]
        return json.dumps({"text": self.reply})


class Odd:
    name, endpoint = 3, "here"

    def body(self, messages, answer_schema):
        return {}
"""


class Far(TextModel):
    """Writes one reply for all; what it was asked for is counted, and it may do something else at one of its answers."""

    name = "blind"

    def __init__(self, at: int = 0, otherwise: Callable[[], Any] = lambda: None) -> None:
        self.asked: list[str] = []
        self.closed = 0
        self._at, self._otherwise = at, otherwise

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        self.asked.append(json.dumps(messages))
        odd = self._otherwise() if len(self.asked) == self._at else None
        return json.dumps({"text": REPLY}) if odd is None else odd

    async def close(self) -> None:
        self.closed += 1


class Whole:
    """A model that is all its own: what it gives is taken, whatever it is."""

    name, endpoint = "whole", "here"

    def __init__(self, found: Any) -> None:
        self.found = found

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        return {"messages": messages}

    async def complete(self, request: Request) -> Any:
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found

    async def close(self) -> None:
        pass


@pytest.fixture
def recipe(demo: Configuration, catalogue: Catalogue, prompts: Prompts) -> Recipe:
    return Recipe(demo, catalogue, prompts)


def raising(error: BaseException) -> Callable[[], Any]:
    def otherwise() -> Any:
        raise error

    return otherwise


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and not path.name.startswith("ledger")}


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with Ledger(folder / "ledger.sqlite", create=False) as ledger:
        return list(ledger.query(query))


def far_rows(folder: Path) -> int:
    return int(rows(folder, "SELECT count(*) FROM completions WHERE kind LIKE 'far%'")[0][0])


def far_variants(folder: Path) -> list[dict[str, Any]]:
    outcomes = [json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines()]
    return [pair["empathetic"] for one in outcomes for pair in one["pairs"]]


def stopped_with(recipe: Recipe, folder: Path, model: Any, **how: Any) -> str:
    with pytest.raises(JobError) as caught:
        build(recipe, folder, models={"far": model}, **how)
    return str(caught.value)


def test_a_model_that_is_handed_in_answers_beside_the_seed_bank(recipe: Recipe, tmp_path: Path) -> None:
    model = Far()
    summary = build(recipe, tmp_path / "b", models={"far": model}).summary
    assert summary is not None and summary.status == {"accepted": 3} and summary.pairs == 20
    assert len(model.asked) == FAR == len(set(model.asked)) and model.closed == 1
    assert {(one["text"], one["method"], one["model"]) for one in far_variants(tmp_path / "b")} == {(REPLY, "model", "blind")}
    header = json.loads((tmp_path / "b" / "build.json").read_text())
    assert header["configuration"]["models"]["far"] == {"kind": "given", "model": "blind", "endpoint": "own"}
    assert rows(tmp_path / "b", "SELECT DISTINCT delivery FROM completions WHERE model = 'blind'") == [("live",)]


def test_a_model_is_named_in_a_configuration_with_its_settings(
    tmp_path: Path, world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_models.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    bank = {"kind": "seed-bank"}
    own = {"kind": "my_models:Mine", "parameters": {"reply": REPLY, "name": "small"}}
    config = demo_file(tmp_path, models={"self_chat": bank, "near": bank, "far": own})
    assert cli.main(["build", str(config), "--out", str(tmp_path / "b"), "--scenarios", str(world)]) == 0
    assert "20 pairs" in capsys.readouterr().out
    assert {one["model"] for one in far_variants(tmp_path / "b")} == {"small"}
    estimates = preview(load_recipe(config, scenarios=world)).estimates
    assert {one.kind: one.model for one in estimates}["far_empathetic"] == "my_models:Mine", "an estimate calls it by its kind"


def test_a_model_is_made_once_by_a_run_that_goes_on_and_closed_once(tmp_path: Path, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = "MADE = []\nclass Large(Mine):\n    def __init__(self, **of):\n        super().__init__(**of)\n        MADE.append(self)\n"
    (tmp_path / "large_models.py").write_text(
        f"{MINE}\n{counts}        self.closed = 0\n    async def close(self):\n        self.closed += 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    bank = {"kind": "seed-bank"}
    config = demo_file(
        tmp_path, models={"self_chat": bank, "near": bank, "far": {"kind": "large_models:Large", "parameters": {"reply": REPLY}}}
    )
    build(load_recipe(config, scenarios=world), tmp_path / "b")
    build(load_recipe(config, scenarios=world), tmp_path / "b")
    preview(load_recipe(config, scenarios=world), ledger=tmp_path / "b" / "ledger.sqlite")
    *made, of_preview, looked_at = importlib.import_module("large_models").MADE
    assert [one.closed for one in made] == [1, 1] and (of_preview.closed, looked_at.closed) == (0, 1), "what was never asked holds nothing"


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        ("my_models:Mine", {}, 'model "my_models:Mine": cannot be loaded: TypeError'),
        ("my_models:Odd", {}, "models: far: Odd has no name, complete, close\n  Fix: see docs/models.md"),
        ("my_models:json", {"x": 1}, "is already an instance and takes no x"),
        ("no_such:Model", {}, "cannot be loaded: ModuleNotFoundError"),
        ("my-model", {}, 'model "my-model": is not known'),
    ],
)
def test_a_model_that_cannot_be_had_is_named(
    kind: str, parameters: dict[str, Any], said: str, tmp_path: Path, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_models.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    models = {"self_chat": {"kind": "seed-bank"}, "near": {"kind": "seed-bank"}, "far": {"kind": kind, "parameters": parameters}}
    with pytest.raises(InputError) as caught:
        build(load_recipe(demo_file(tmp_path, models=models), scenarios=world), tmp_path / "b")
    assert said in str(caught.value)


def test_an_object_that_is_no_model_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    idle = Far()
    idle.in_flight = 0
    for thing, said in (
        (Far, "models: far: Far is a class, not a model\n  Fix: pass an instance: Far(…)"),
        (type("Half", (), {"name": "half", "endpoint": "e", "body": 1})(), "models: far: Half has no body, complete, close"),
        (idle, '"in_flight" of Far is 0'),
    ):
        with pytest.raises(InputError) as caught:
            build(recipe, tmp_path / said[-5:], models={"far": thing})
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("otherwise", "said"),
    [
        (raising(ZeroDivisionError("oh")), 'model "blind": failed: ZeroDivisionError: oh'),
        (raising(StopIteration()), 'model "blind": failed: RuntimeError'),
        (lambda: {"text": REPLY}, 'model "blind": answer returned {'),
        (lambda: b"{}", "model \"blind\": answer returned b'{}'; return the answer as a text"),
        (raising(job_error("the quota", "is used up", "wait")), "the quota: is used up"),
    ],
)
def test_what_fails_ends_the_run_under_its_name_and_the_next_run_goes_on(
    otherwise: Callable[[], Any], said: str, recipe: Recipe, tmp_path: Path
) -> None:
    first, second = Far(at=10, otherwise=otherwise), Far()
    told = stopped_with(recipe, tmp_path / "b", first)
    assert said in told and "Fix:" in told and first.closed == 1
    assert not (tmp_path / "b" / "build.json").exists()
    kept = far_rows(tmp_path / "b")
    assert kept == len(first.asked) - 1 >= 9, "all that was answered is in the ledger"
    build(recipe, tmp_path / "b", models={"far": second})
    assert len(second.asked) == FAR - kept and len({*first.asked, *second.asked}) == FAR
    build(recipe, tmp_path / "plain", models={"far": Far()})
    assert files(tmp_path / "b") == files(tmp_path / "plain")


@pytest.mark.parametrize(
    "found",
    [
        None, "text", Completion(None, "stop", "m"), Completion("{}", None, "m"), Completion("{}", "stop", 3),  # type: ignore[arg-type]
        Completion("{}", "stop", "m", Usage(-1)), Completion("{}", "stop", "m", Usage(1.5)), Completion("{}", "stop", "m", None),  # type: ignore[arg-type]
        Completion("{}", "stop", "half \ud800"),
    ],
    ids=str,
)  # fmt: skip
def test_what_no_ledger_can_hold_is_not_put_into_it(found: Any, recipe: Recipe, tmp_path: Path) -> None:
    assert 'model "whole": returned no completion with a text:' in stopped_with(recipe, tmp_path / "b", Whole(found))
    assert far_rows(tmp_path / "b") == 0


def test_half_a_surrogate_pair_is_an_answer_that_is_kept_and_refused_as_one_of_an_endpoint_is(recipe: Recipe, tmp_path: Path) -> None:
    summary = build(recipe, tmp_path / "b", models={"far": Whole(Completion('{"text": "\ud800"}', "stop", "whole"))}).summary
    assert summary is not None and summary.failed["far_empathetic: surrogate"] == 20 and far_rows(tmp_path / "b") == FAR


@pytest.mark.parametrize(
    ("parameters", "said"),
    [({"t": {1}}, 'model "blind": failed: TypeError'), ({"t": float("nan")}, 'model "blind": failed: ValueError')],
)
def test_parameters_that_no_key_can_be_made_of_are_told(parameters: dict[str, Any], said: str, recipe: Recipe, tmp_path: Path) -> None:
    model = Far()
    model.parameters = parameters
    assert said in stopped_with(recipe, tmp_path / "b", model) and not model.asked


def test_a_body_that_is_none_is_told(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Whole(None)
    monkeypatch.setattr(model, "body", lambda messages, answer_schema: [messages])
    assert 'model "whole": returned a body that is not an object:' in stopped_with(recipe, tmp_path / "b", model)


@pytest.mark.e2e
def test_name_endpoint_and_parameters_are_in_every_key(recipe: Recipe, tmp_path: Path) -> None:
    ledger = tmp_path / "l.sqlite"
    changes: list[dict[str, Any]] = [{}, {"name": "other"}, {"endpoint": "there"}, {"parameters": {"t": 1}}, {"name": "blind"}]
    for number, change in enumerate(changes):
        model = Far()
        vars(model).update(change)
        build(recipe, tmp_path / str(number), models={"far": model}, ledger=ledger)
        assert len(model.asked) == (0 if number == 4 else FAR)


def test_no_answer_leaves_the_item_missing_and_the_next_run_asks_again(recipe: Recipe, tmp_path: Path) -> None:
    first, second = Far(at=4, otherwise=raising(NoAnswer("the model is asleep"))), Far()
    summary = build(recipe, tmp_path / "b", models={"far": first}).summary
    assert summary is not None and summary.status["missing"] == 1 and summary.missing[0].endswith(": the model is asleep")
    assert len(first.asked) == FAR, "nothing else waits for it"
    again = build(recipe, tmp_path / "b", models={"far": second}).summary
    assert again is not None and again.status == {"accepted": 3} and len(second.asked) == 1


def test_a_replay_needs_a_model_for_its_bodies_alone(recipe: Recipe, tmp_path: Path) -> None:
    build(recipe, tmp_path / "b", models={"far": Far()})
    silent = Far(at=1, otherwise=raising(AssertionError("asked")))
    build(recipe, tmp_path / "again", models={"far": silent}, ledger=tmp_path / "b" / "ledger.sqlite", offline=True)
    assert files(tmp_path / "again") == files(tmp_path / "b") and not silent.asked


def test_a_given_model_that_is_not_here_is_told(recipe: Recipe, tmp_path: Path, world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = recipe.with_custom({"far": Far()})
    build(own, tmp_path / "b")
    with pytest.raises(InputError) as caught:
        build(replace(own, models={}), tmp_path / "b")
    assert 'models: far: "blind" was passed in from Python and is not available here' in str(caught.value)
    assert "build(…, models={'far': …})" in str(caught.value)
    # The folder's own configuration on the command line is a configuration without the model.
    folder = ["--out", str(tmp_path / "b"), "--scenarios", str(world)]
    assert cli.main(["build", str(tmp_path / "b" / "configuration.json"), *folder]) == 2
    assert "was passed in from Python" in capsys.readouterr().err


def test_a_model_on_the_command_line_takes_the_place_of_ones_own_too(tmp_path: Path) -> None:
    own = {"kind": "my_models:Mine", "parameters": {"reply": REPLY}}
    hosted = {"kind": "openai", "model": "h", "endpoint": "e", "max_tokens": 9, "parameters": {"top_p": 1}}
    config = demo_file(tmp_path, models={"self_chat": own, "near": hosted, "far": {"kind": "given", "model": "m", "endpoint": "x"}})
    made = load_configuration(config, model="llama", base_url="http://localhost:1/v1").models
    assert {(one.kind, one.model, one.base_url) for one in made.values()} == {("openai", "llama", "http://localhost:1/v1")}
    assert [one.parameters for one in made.values()] == [{}, {"top_p": 1}, {}], "settings of one's own are not an endpoint's"


def test_one_model_for_all_is_closed_once_and_what_goes_wrong_then_has_its_name(
    demo: Configuration, catalogue: Catalogue, prompts: Prompts, tmp_path: Path
) -> None:
    class Bank(Recorder):
        closed = 0

        async def close(self) -> None:
            self.closed += 1
            if self.closed > 1:
                raise OSError("closed already")

    bank = Bank(catalogue)
    build(Recipe(demo, catalogue, prompts), tmp_path / "b", models=dict.fromkeys(("self_chat", "near", "far"), bank))
    assert bank.closed == 1
    told = stopped_with(Recipe(demo, catalogue, prompts), tmp_path / "c", bank)
    assert f'model "{bank.name}": failed: OSError: closed already' in told


async def test_so_many_answers_are_worked_on_at_once_and_none_after_a_stop(demo: Configuration) -> None:
    running_now, peak, stopped = [0], [0], list[EmpathyEvalError]()
    lock = threading.Lock()

    class Counted(Far):
        in_flight = 3

        def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
            with lock:
                running_now[0] += 1
                peak[0] = max(peak[0], running_now[0])
            time.sleep(0.02)
            with lock:
                running_now[0] -= 1
            if len(self.asked) == 6:
                stopped.append(job_error("build", "stopped by Ctrl-C", "run it again"))
            return super().answer(messages, answer_schema)

    model = Counted()
    own = GuardedModel(model, lambda: stopped[0] if stopped else None)
    request = Request(own.body([{"role": "user", "content": "x"}], "variant_answer"), own.endpoint, About("017-seed", "far_empathetic", 1))
    found = await asyncio.gather(*(own.complete(request) for _ in range(20)), return_exceptions=True)
    assert peak[0] == 3
    assert {str(one) for one in found if isinstance(one, JobError)} == {str(stopped[0])}
    assert 6 <= sum(isinstance(one, Completion) for one in found) == len(model.asked) < 12


def test_a_budget_counts_what_endpoints_cost_and_nothing_of_ones_own(recipe: Recipe, tmp_path: Path) -> None:
    dear = Whole(Completion(json.dumps({"text": REPLY}), "stop", "whole", Usage(10**6, 0, 10**6)))
    summary = build(recipe, tmp_path / "b", models={"far": dear}, budget_tokens=1, budget_usd=0.01).summary
    assert summary is not None and summary.status == {"accepted": 3}
    assert summary.usage["whole"]["output_tokens"] == FAR * 10**6, "but what it says it used is told"


def endpoint_beside(folder: Path, server: Server, catalogue: Catalogue, prompts: Prompts) -> Recipe:
    """A drawn dialogue whose far replies are a model's of one's own; all else is asked of an endpoint."""
    config = config_file(folder, server.url, dialogues=1, controls=1, samples=2)
    return Recipe(load_configuration(config), catalogue, prompts)


def test_by_hand_only_what_an_endpoint_is_to_answer_is_written(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    server, model = Server(Behaviour(), url="http://127.0.0.1:9/v1"), Far()
    recipe = endpoint_beside(tmp_path, server, catalogue, prompts)
    asked = 0
    for number in range(10):
        handed = build(recipe, tmp_path / "b", models={"far": model}, requests_to=tmp_path / f"r{number}.jsonl")
        if not handed.requests:
            break
        answers = []
        for line in (tmp_path / f"r{number}.jsonl").read_text().splitlines():
            request = json.loads(line)
            assert request["body"]["model"] != "blind"
            status, body = reply(server, request["body"])
            answers.append(json.dumps({"custom_id": request["custom_id"], "response": {"status_code": status, "body": body}}))
        asked += len(answers)
        (tmp_path / "answers").write_text("\n".join(answers))
        import_answers(tmp_path / "b" / "ledger.sqlite", [tmp_path / "answers"])
    assert number >= 2 and asked > 3 and handed.summary is not None and handed.summary.status == {"accepted": 1}
    assert len(model.asked) == len(set(model.asked)) > 3, "its answers come at once, in the round in which the dialogue is there"
    build(recipe, tmp_path / "b", models={"far": Far(at=1, otherwise=raising(AssertionError("asked")))}, offline=True)


def test_a_batch_holds_only_what_an_endpoint_is_to_answer(
    tmp_path: Path, catalogue: Catalogue, prompts: Prompts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_batch, "interruptible_sleep", lambda seconds: time.sleep(0.01))
    server, model = BatchServer(Behaviour()), Far()
    with running(server=server):
        recipe = endpoint_beside(tmp_path, server, catalogue, prompts)
        handed = build(recipe, tmp_path / "b", models={"far": model}, batch=True)
    assert handed.summary is not None and handed.summary.status == {"accepted": 1} and not handed.requests
    assert server.answered.total() > 3 and len(model.asked) == len(set(model.asked)) > 3
    ways = dict(rows(tmp_path / "b", "SELECT kind, min(delivery) || max(delivery) FROM completions GROUP BY kind"))
    assert ways["far_empathetic"] == "livelive" and ways["near_apathetic"] == ways["self_chat"] == "batchbatch"
