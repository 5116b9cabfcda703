"""A model in the process through the whole program: built with, killed, resumed, and refused; served by others, and asked by harnesses."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.causal_lm import CausalLM, weights_of
from empathy_eval.cli import main
from empathy_eval.completions.models.local import LocalModel

from tests.conftest import copy_world, demo_file
from tests.doubles.tiny_lm import tiny_lm

# A command that is killed when its model begins on its fourth batch.
KILLED = """
import os, signal, sys
from empathy_eval.cli import main
from empathy_eval.completions.models.local import LocalModel

answers, batches = LocalModel._answered, []

def dying(*of):
    batches.append(of)
    if len(batches) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return answers(*of)

LocalModel._answered = dying
main(sys.argv[1:])
"""
ANSWERED = "SELECT kind, finish FROM completions WHERE kind LIKE 'near%' OR kind LIKE 'far%'"


def written(folder: Path, model: Path | str, **parameters: Any) -> Path:
    """The configuration of a build of curated dialogues whose variants a model in the process writes."""
    model_of = {"kind": "transformers", "parameters": {"model": str(model), **parameters}}
    models = {"self_chat": {"kind": "seed-bank"}, "near": model_of, "far": model_of}
    return demo_file(folder, models=models, report={"metrics": ["length"], "bootstrap": 10})


def answered(ledger: Path) -> list[tuple[str, str]]:
    """The kind and the end of each answer that the model gave."""
    with closing(sqlite3.connect(ledger)) as opened:
        return opened.execute(ANSWERED).fetchall()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the model was asked, by kind."""
    counted, answers = Counter[str](), LocalModel._answered

    def counting(self: LocalModel, lm: Any, some: Any) -> Any:
        counted.update(one.request.about.kind for one in some)
        return answers(self, lm, some)

    monkeypatch.setattr(LocalModel, "_answered", counting)
    return counted


def test_a_build_that_is_killed_resumes_and_other_weights_are_asked_again(tmp_path: Path, asked: Counter[str]) -> None:
    """Random weights write nothing that passes: what is tested is that every refusal has its reason, and which requests are sent."""
    pytest.importorskip("xgrammar")
    model = tiny_lm(tmp_path / "model", places=32768)
    config, world = written(tmp_path, model, max_tokens=4, temperature=1.0), copy_world(tmp_path / "world", ["003"])

    def build(name: str, *more: str) -> tuple[str, ...]:
        return ("build", str(config), "--scenarios", str(world), "--out", str(tmp_path / name), *more)

    status = subprocess.run([sys.executable, "-c", KILLED, *build("killed")], capture_output=True, check=False).returncode
    ledger = tmp_path / "killed" / "ledger.sqlite"
    before = len(answered(ledger))
    assert status == -signal.SIGKILL and 0 < before <= 3
    main(build("killed"))
    said = answered(ledger)
    assert asked.total() == len(said) - before
    asked.clear()
    main(build("whole"))
    outcomes = (tmp_path / "whole" / "outcomes.jsonl").read_bytes()
    assert asked.total() == len(said) and (tmp_path / "killed" / "outcomes.jsonl").read_bytes() == outcomes
    assert {kind for kind, _ in said} == {"near_apathetic", "near_empathetic", "far_apathetic", "far_empathetic"}
    failures = Counter(reason for line in outcomes.splitlines() for one in json.loads(line)["failures"] for reason in one["reasons"])
    assert failures["finish_length"] == Counter(end for _, end in said)["length"] > 0
    asked.clear()
    # The last byte is one of the weights.
    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (model / "model.safetensors").write_bytes(weights)
    main(build("killed"))
    assert asked.total() == len(said)


def layers_added(folder: Path) -> None:
    """Makes the configuration of a model ask for twice the layers that the weights have."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 4}))


def cut(folder: Path) -> None:
    """Leaves the beginning of the weights, as an interrupted download does."""
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("spoil", "status", "what"),
    [
        (lambda folder: shutil.rmtree(folder), 2, "is no folder and no file, and the Hub does not provide it"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), 2, "pickled weights are not loaded"),
        (lambda folder: (folder / "config.json").write_text('{"auto_map": {}}'), 2, "asks for code of its own, which is never run"),
        (cut, 2, '"model" cannot be loaded: Error while deserializing header'),
        (layers_added, 2, '"model" lacks 18 weights that its config.json asks for, such as "model.layers.2.'),
        (lambda folder: (folder / "chat_template.jinja").unlink(), 1, "the model has no chat template: use an instruction-tuned model"),
        (lambda folder: tiny_lm(folder, places=600), 1, "tokens and the answer up to 4, but the model reads 600"),
    ],
)
def test_a_model_that_cannot_be_used_ends_a_build_with_words_and_no_traceback(
    spoil: Callable[[Path], object],
    status: int,
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Bad input ends with 2; where the model runs and cannot read a request, the item is missing, and the build ends with 1."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model = tiny_lm(tmp_path / "model")
    spoil(model)
    config, world = written(tmp_path, model, max_tokens=4, structure="instruction"), copy_world(tmp_path / "world", ["003"])
    assert main(("build", str(config), "--scenarios", str(world), "--out", str(tmp_path / "b"))) == status
    said = "".join(capfd.readouterr())
    assert what in said and "Traceback" not in said and ("Fix: " in said) == (status == 2)


@pytest.mark.parametrize(
    ("package", "what"),
    [("torch", "[local]"), ("transformers", "[local]"), ("xgrammar", "or use structure: instruction")],
)
def test_a_package_that_is_missing_ends_a_build_with_the_command_that_installs_it(
    package: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tiny_lm(tmp_path / "model", places=32768)
    config, world = written(tmp_path, model, max_tokens=4), copy_world(tmp_path / "world", ["003"])
    monkeypatch.setitem(sys.modules, package, None)
    assert main(("build", str(config), "--scenarios", str(world), "--out", str(tmp_path / "b"))) == 2
    said = "".join(capfd.readouterr())
    assert "needs packages that are not installed" in said and what in said and "Traceback" not in said


@pytest.mark.long
def test_lm_eval_finds_the_likelihoods_that_this_program_finds(seeds: Path, tmp_path: Path) -> None:
    pytest.importorskip("lm_eval", reason="lm-eval is not installed")
    from empathy_eval_in_harness.lm_eval_tasks import FOLDER
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    folder, name = tiny_lm(tmp_path / "model", places=16384), "kind_or_cold_near"
    tasks = TaskManager(include_path=str(FOLDER), include_defaults=False, metadata={"release": str(seeds)})
    found = simple_evaluate(
        model="hf", model_args=f"pretrained={folder}", tasks=[name], task_manager=tasks, limit=4, bootstrap_iters=0, device="cpu"
    )
    lm = CausalLM(weights_of(str(folder)))
    right = 0.0
    for sample in found["samples"][name]:
        theirs = [float(one[0]) for one in sample["filtered_resps"]]
        # The harness reads the text as it is, without the model's chat template.
        ours = lm.log_likelihoods(lm.tokens(sample["doc"]["text"]), [lm.tokens(" A"), lm.tokens(" B")])
        assert theirs == pytest.approx(ours, abs=1e-3)
        right += ours.index(max(ours)) == sample["doc"]["right"]
    assert found["results"][name]["right,none"] == right / 4


@pytest.mark.long
def test_inspect_asks_a_model_of_transformers_and_counts_what_is_no_answer_as_wrong(seeds: Path, tmp_path: Path) -> None:
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    from empathy_eval_in_harness.inspect_tasks import kind_or_cold
    from inspect_ai.model import get_model

    model = get_model("hf/local", model_path=str(tiny_lm(tmp_path / "model", places=16384)), device="cpu")
    (log,) = inspect_ai.eval(kind_or_cold(str(seeds)), model=model, limit=2, max_tokens=8, log_dir=str(tmp_path / "logs"), display="none")
    assert log.status == "success", log.error
    assert log.results.scores[0].metrics["right"].value == 0.0 and len(log.samples) == 2


@pytest.mark.long
def test_the_same_folder_behind_a_server_is_asked_as_any_endpoint(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="transformers serve needs fastapi and uvicorn")
    folder, world = tiny_lm(tmp_path / "model", places=32768), copy_world(tmp_path / "world", ["003"])
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = Path(sys.executable).with_name("transformers")
    server = subprocess.Popen([serve, "serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"], stderr=subprocess.DEVNULL)
    try:
        config = written(tmp_path, folder)
        raw = yaml.safe_load(config.read_text())
        model = {
            "kind": "openai", "model": str(folder), "endpoint": "served", "base_url": f"http://127.0.0.1:{port}/v1", "max_tokens": 16,
            "structure": "instruction", "in_flight": 1, "unreachable_seconds": 120,
        }  # fmt: skip
        config.write_text(yaml.safe_dump({**raw, "models": {**raw["models"], "near": model, "far": model}}))
        main(("build", str(config), "--scenarios", str(world), "--out", str(tmp_path / "b")))
    finally:
        server.terminate()
        server.wait()
    said = answered(tmp_path / "b" / "ledger.sqlite")
    assert len(said) > 10 and {end for _, end in said} <= {"length", "stop"}
