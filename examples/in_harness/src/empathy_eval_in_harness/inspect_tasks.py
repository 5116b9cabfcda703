"""The tasks for inspect_ai, such as ``inspect eval empathy_eval_in_harness/kind_or_cold -T release=FOLDER``."""

from __future__ import annotations

from pathlib import Path

from empathy_eval.completions.requests import Completion, read_answer
from empathy_eval.design.judge_prompts import judge_prompts
from empathy_eval.design.rubrics import load_rubric
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.raters.judges.judge import ratings_of
from empathy_eval.raters.systems.contexts import ContextSample, draw_contexts
from empathy_eval.raters.systems.responding import System, chat_messages
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, choice, mean, metric, scorer, stderr, value_to_float
from inspect_ai.solver import TaskState, generate, multiple_choice

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


# Answers of a judge that are asked for, until one is valid.
TRIES = 3
CHATS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


def chat(messages: list[dict[str, str]]) -> list[ChatMessage]:
    """Messages as inspect_ai has them."""
    return [CHATS[one["role"]](content=one["content"]) for one in messages]


@scorer(metrics={"*": [mean(), stderr(cluster="dialogue")]})
def by_rubric(rubric: str = "heart", judge: str | None = None) -> Scorer:
    """Each criterion of a rubric for replies, as the model of the role ``grader`` rates it, or the named one."""
    asked = load_rubric(rubric)
    prompts = judge_prompts(asked, load_catalogue())

    async def score(state: TaskState, target: Target) -> Score:
        model, values = get_model(judge, role="grader"), dict[str, float]()
        for criteria in asked.requests:
            messages = chat(prompts.rating(criteria, state.metadata["context"], state.output.completion))
            for _ in range(TRIES):
                output = await model.generate(messages)
                value, flaws = read_answer(Completion(output.completion, "stop", str(model)), "rating_answer")
                ratings = flaws or ratings_of(value, criteria)
                if isinstance(ratings, dict):
                    values |= ratings
                    break
                detail = ratings[0].detail
            else:  # what is not valid is no value
                raise ValueError(f"the judge gave no valid rating in {TRIES} answers: {detail}")
        return Score(value=dict(values), answer=state.output.completion)

    return score


@task
def respond(
    release: str, rubric: str = "heart", judge: str | None = None, system_prompt: str = "", split: str = "test", contexts: int = 200,
) -> Task:  # fmt: skip
    """The model replies to contexts of a release, and a judge rates each reply by a rubric."""
    system = System("model", system_prompt, {})
    samples = [
        Sample(
            id=one.pair_id, input=chat(chat_messages(system, one)), target=one.reference,
            metadata={"dialogue": one.dialogue_id, "context": [{"role": role, "text": text} for role, text in one.turns]},
        )
        for one in draw_contexts(Path(release), ContextSample(split, contexts))[0]
    ]  # fmt: skip
    return Task(dataset=MemoryDataset(samples, name="replies"), solver=generate(), scorer=by_rubric(rubric, judge))
