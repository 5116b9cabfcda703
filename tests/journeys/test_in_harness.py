"""The tasks of ``examples/in_harness``, run by the real harnesses with scripted models: which of two replies, in both orders."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval_in_harness.choices import choices, share_right

from tests.journeys.test_docs import blocks
from tests.journeys.test_installed import ROOT, made, run

# Given two replies, the place of the one that is chosen.
Taste = Callable[[tuple[str, str]], int]
CONFIG = "preferences_near"

# The task by its name, as the plug-in that is installed gives it.
ALWAYS_FIRST = """
import sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model

def answer(*_):
    said = ModelOutput.from_content("mockllm", "ANSWER: A")
    said.usage = ModelUsage()
    return said

model = get_model("mockllm/model", custom_outputs=answer)
(log,) = eval(sys.argv[1], task_args={"release": sys.argv[2]}, model=model, limit=4, display="none")
print(log.results.scores[0].metrics["right"].value)
"""


@pytest.fixture(scope="module")
def rows(seeds: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(seeds / "data" / CONFIG / "test.parquet").to_pylist())


def first(replies: tuple[str, str]) -> int:
    return 0


def longer(replies: tuple[str, str]) -> int:
    return int(len(replies[1]) > len(replies[0]))


def kind(rows: list[dict[str, Any]]) -> Taste:
    known = {row["chosen"][0]["content"] for row in rows}
    return lambda replies: int(replies[0] not in known)


def by_hand(rows: list[dict[str, Any]]) -> float:
    """How often the longer reply is the kind one; of two as long, the first is."""
    lengths = [(len(row["chosen"][0]["content"]), len(row["rejected"][0]["content"])) for row in rows]
    return sum(1.0 if kind > cold else 0.5 if kind == cold else 0.0 for kind, cold in lengths) / len(rows)


def replies_in(text: str) -> tuple[str, str]:
    """The replies that a prompt shows."""
    one, two = text.split("\nA) ", 1)[1].split("\nB) ", 1)
    return one.strip(), two.removesuffix("Answer:").strip()


def with_inspect(release: Path, taste: Taste, logs: Path) -> dict[str, float]:
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    from empathy_eval_in_harness.inspect_tasks import kind_or_cold
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answer(messages: list[Any], *_: object) -> Any:
        said = ModelOutput.from_content("mockllm", f"ANSWER: {'AB'[taste(replies_in(messages[-1].text))]}")
        # Else it is counted with a vocabulary from the network.
        said.usage = ModelUsage()
        return said

    model = get_model("mockllm/model", custom_outputs=answer)
    (log,) = inspect_ai.eval(kind_or_cold(str(release)), model=model, log_dir=str(logs), display="none")
    assert log.status == "success", log.error
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def with_lm_eval(release: Path, taste: Taste, logs: Path) -> dict[str, float]:
    pytest.importorskip("lm_eval", reason="lm-eval is not installed")
    from empathy_eval_in_harness.lm_eval_tasks import FOLDER
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Scripted(LM):
        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            asked = [request.arguments for request in requests]
            return [(0.0 if "AB"[taste(replies_in(text))] == letter.strip() else -1.0, True) for text, letter in asked]

        def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
            raise AssertionError

        def generate_until(self, requests: list[Any]) -> list[str]:
            raise AssertionError

    tasks = TaskManager(include_path=str(FOLDER), include_defaults=False, metadata={"release": str(release)})
    found = simple_evaluate(model=Scripted(), tasks=["kind_or_cold_near"], task_manager=tasks, bootstrap_iters=0)
    told = found["results"]["kind_or_cold_near"]
    return {name: told[f"{name},none"] for name in ("right", "low", "high")}


@pytest.mark.parametrize("harness", [with_inspect, with_lm_eval])
def test_the_share_that_is_right_is_that_of_both_orders(
    harness: Callable[..., dict[str, float]], seeds: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert harness(seeds, first, tmp_path) == {"right": 0.5, "low": 0.5, "high": 0.5}
    assert harness(seeds, kind(rows), tmp_path) == {"right": 1.0, "low": 1.0, "high": 1.0}
    told = harness(seeds, longer, tmp_path)
    assert told["right"] == pytest.approx(by_hand(rows), abs=1e-12) and 0 < told["right"] < 1
    assert told["low"] < told["right"] < told["high"]


def test_every_question_is_asked_in_both_orders_and_the_right_reply_is_the_one_that_fits(seeds: Path) -> None:
    crossed = pq.read_table(seeds / "data" / "crossed" / "test.parquet").to_pylist()
    asked = choices(str(seeds), "crossed")
    assert len(asked) == 4 * len(crossed)
    for one, two in zip(asked[::2], asked[1::2], strict=True):
        assert (one.question, one.replies, one.right, two.right) == (two.question, two.replies[::-1], "A", "B")
    item = crossed[0]
    assert [one.replies[0] for one in asked[:4:2]] == [item["reply_1"], item["reply_2"]]
    assert item["context_2"][-1]["text"] in asked[2].question and item["context_2"][-1]["text"] not in asked[0].question
    assert len(choices(str(seeds), CONFIG, "all")) > len(choices(str(seeds), CONFIG))


def test_dialogues_and_not_questions_are_the_unit_of_chance() -> None:
    few = share_right([(f"d{place % 2}", "one", float(place % 2)) for place in range(1000)])
    assert (few["low"], few["high"]) == (0.0, 1.0)
    alone = share_right([("d", "one", 1.0), ("d", "one", 0.0)])
    assert alone["right"] == 0.5 and json.dumps(alone["low"]) == "NaN", "one dialogue says nothing of chance"


def test_what_there_is_not_is_refused_in_words(seeds: Path) -> None:
    with pytest.raises(InputError, match='"pairs" asks for no choice'):
        choices(str(seeds), "pairs")
    with pytest.raises(InputError, match='there is no "dev"'):
        choices(str(seeds), CONFIG, "dev")
    from empathy_eval_in_harness.lm_eval_tasks import rows

    with pytest.raises(InputError, match="names no release"):
        rows(CONFIG)


@pytest.mark.long
def test_scripted_models_are_told_right_by_both_harnesses_installed_as_the_document_says(seeds: Path, tmp_path: Path) -> None:
    programs, here = made(tmp_path / "venv"), tmp_path / "here"
    shutil.copytree(seeds, here / "build" / "demo" / "release")
    install, of_inspect, of_lm_eval = blocks("interop.md", "sh")
    pip = 'pip() { python -m pip --disable-pip-version-check "$@"; }'
    setting = f'set -euo pipefail; export PATH="{programs}:$PATH" HF_HUB_OFFLINE=1; {pip}\n'
    run(ROOT, "bash", "-c", setting + install)
    passed = run(ROOT, programs / "python", "-m", "pytest", "-n", "0", "-rs", "tests/journeys/test_in_harness.py", "-k", "both_orders")
    assert re.search(r"^3 passed|\b3 passed", passed) and "SKIPPED" not in passed
    # Stand-ins for models, that need no network.
    said = run(here, "bash", "-c", setting + of_lm_eval.replace("--model hf --model_args pretrained=YOUR-MODEL", "--model dummy"))
    assert all(name in said for name in ("kind_or_cold_near", "kind_or_cold_far", "fits_context", "|right |"))
    name, setting_of = re.findall(r"inspect eval (\S+) -T release=(\S+)", of_inspect)[0]
    assert "0.5" in run(here, programs / "python", "-c", ALWAYS_FIRST, name, setting_of)


def test_replies_are_asked_for_and_rated_by_a_rubric_in_inspect(light: Path, tmp_path: Path) -> None:
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    from empathy_eval_in_harness.inspect_tasks import respond
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def said(text: str) -> Any:
        found = ModelOutput.from_content("mockllm", text)
        found.usage = ModelUsage()
        return found

    def rated(messages: list[Any], *_: object) -> Any:
        names = dict.fromkeys(re.findall(r'"criterion": "([^"]+)"', messages[0].text))
        value = 4 if "I am with you in this." in messages[-1].text else 1
        return said(json.dumps({"analysis": "", "ratings": [{"criterion": name, "value": value} for name in names]}))

    model = get_model("mockllm/model", custom_outputs=lambda *_: said("I am with you in this."))
    judge = get_model("mockllm/judge", custom_outputs=rated)
    task = respond(str(light), split="all", contexts=4, system_prompt="Be there.")
    (log,) = inspect_ai.eval(task, model=model, model_roles={"grader": judge}, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    assert {name: one.metrics["mean"].value for one in log.results.scores for name in [one.name]} == dict.fromkeys(
        ("human_alignment", "empathic_responsiveness", "attunement", "resonance", "task_following"), 4.0
    )
    assert len(log.samples) == 4 and log.samples[0].input[0].text == "Be there."
