"""Families of models by their names, and which of them both write and judge."""

from __future__ import annotations

from typing import Any

import pytest
from empathy_eval.reports.report import family_of, shared_families


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o-mini", "gpt"),
        ("openai/o3-mini", "gpt"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama"),
        ("Mixtral-8x7B-Instruct-v0.1", "mistral"),
        ("Qwen/Qwen2.5-72B", "qwen"),
        ("FacebookAI/roberta-large", "bert"),
        ("sentence-transformers/all-MiniLM-L6-v2", "minilm"),
        ("phi-4", "phi"),
        ("mine@sha256:" + "0" * 64, "mine"),
        ("seed-bank", ""),
    ],
)
def test_a_name_tells_the_family(model: str, family: str) -> None:
    assert family_of(model) == family


def configuration(near: str, **metrics: dict[str, Any]) -> dict[str, Any]:
    one = {"kind": "openai", "model": "gpt-4o"}
    return {"models": {"self_chat": one, "far": one, "near": {**one, "model": near}}, "report": {"bootstrap": 10, **metrics}}


def test_families_that_write_and_judge_are_named_with_their_models() -> None:
    judged = configuration("llama-3.1", bertscore={"model": "roberta-large", "layer": 17}, judge={"model": "openai/gpt-4.1"})
    assert shared_families(judged) == [{"family": "gpt", "writers": ["gpt-4o"], "judges": {"judge": "openai/gpt-4.1"}}]
    both = configuration("phi-3", a={"model": "phi-4"}, b={"model": "gpt-5"}, c={"model": "chatgpt-4o"})
    assert [(one["family"], sorted(one["judges"])) for one in shared_families(both)] == [("gpt", ["b", "c"]), ("phi", ["a"])]


def test_models_of_other_families_and_seeds_share_none() -> None:
    assert shared_families(configuration("llama-3.1", bertscore={"model": "roberta-large"}, meteor={"synonyms": "none"})) == []
    seeds = {"models": dict.fromkeys(("self_chat", "near", "far"), {"kind": "seed-bank"}), "report": {"judge": {"model": "seed-bank"}}}
    assert shared_families(seeds) == []


def test_who_writes_crossed_items_is_a_writer_and_who_checks_them_is_none() -> None:
    made = configuration("llama-3.1", judge={"model": "qwen3"})
    made["models"] |= {"crossed": {"kind": "openai", "model": "Qwen/Qwen3-8B"}, "crossed_judge": {"kind": "openai", "model": "phi-4"}}
    assert [(one["family"], one["writers"]) for one in shared_families(made)] == [("qwen", ["Qwen/Qwen3-8B"])]
    assert shared_families({**made, "report": {"judge": {"model": "phi-4"}}}) == []
