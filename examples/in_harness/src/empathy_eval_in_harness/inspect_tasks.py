"""The task for inspect_ai: ``inspect eval empathy_eval_in_harness/kind_or_cold -T release=FOLDER``."""

from __future__ import annotations

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Metric, SampleScore, Value, choice, metric, value_to_float
from inspect_ai.solver import multiple_choice

from empathy_eval_in_harness.choices import choices, share_right


@metric
def right_in_both_orders() -> Metric:
    """The share that is right with the ends of its interval by dialogue; what is no answer is not right."""
    as_float = value_to_float()

    def measure(scores: list[SampleScore]) -> Value:
        of = [(one.sample_metadata or {}, as_float(one.score.value)) for one in scores]
        return share_right([(about["dialogue"], about["scenario"], value) for about, value in of])

    return measure


@task
def kind_or_cold(release: str, config: str = "preferences_near", split: str = "test") -> Task:
    """Which of two replies does the model choose, the kind or the cold one (``crossed``: the one that fits), in both orders?"""
    samples = [
        Sample(
            id=one.id, input=one.question, choices=list(one.replies), target=one.right,
            metadata={"dialogue": one.dialogue, "scenario": one.scenario},
        )
        for one in choices(release, config, split)
    ]  # fmt: skip
    return Task(dataset=MemoryDataset(samples, name=config), solver=multiple_choice(), scorer=choice(), metrics=[right_in_both_orders()])
