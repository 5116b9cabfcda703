"""NLL under a tiny model: its values beside the library's own loss, its forms, and contexts that are shared."""

from __future__ import annotations

from pathlib import Path

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.metrics.nll import Nll
from empathy_eval.metrics.protocol import Segments

from tests.doubles.tiny_lm import tiny_lm

pytestmark = pytest.mark.e2e
CONTEXT = [{"role": "seeker", "text": "I lost my job."}, {"role": "helper", "text": "When?"}, {"role": "seeker", "text": "Today."}]
OTHER = [{"role": "seeker", "text": "My cat died."}]
TEXTS = ["I am so sorry.", "Find another one then.", "Oh no."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_lm(tmp_path_factory.mktemp("tiny") / "model")


def segments(contexts: list[list[dict[str, str]]]) -> Segments:
    return Segments(TEXTS, [""] * len(TEXTS), contexts)


def loss(folder: Path, context: list[dict[str, str]], text: str) -> float:
    """The mean over the tokens of a reply, as transformers itself computes it from labels."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    roles = {"seeker": "user", "helper": "assistant"}
    chat = [{"role": roles[turn["role"]], "content": turn["text"]} for turn in context]
    prompt = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    before, reply = (tokenizer(one, add_special_tokens=False)["input_ids"] for one in (prompt, text))
    labels = torch.tensor([[-100] * len(before) + reply])
    with torch.inference_mode():
        return float(model(input_ids=torch.tensor([before + reply]), labels=labels).loss)


def test_the_mean_is_the_loss_of_transformers_over_the_tokens_of_the_reply(folder: Path) -> None:
    found = Nll(str(folder)).score_all(segments([CONTEXT, CONTEXT, OTHER]))
    assert found == pytest.approx(
        [loss(folder, context, text) for context, text in zip([CONTEXT, CONTEXT, OTHER], TEXTS, strict=True)], abs=1e-4
    )


def test_the_sum_is_the_mean_times_the_tokens_and_the_gain_is_what_the_context_takes_off(folder: Path) -> None:
    mean, total, gain = (Nll(str(folder), form).score_all(segments([CONTEXT] * 3)) for form in ("mean", "sum", "gain"))
    assert total == pytest.approx([value * len(text) for value, text in zip(mean, TEXTS, strict=True)], rel=1e-6)
    alone = Nll(str(folder)).score_all(segments([[], [], []]))
    assert gain == pytest.approx([one - other for one, other in zip(alone, mean, strict=True)], abs=1e-6)


def test_lower_is_better_but_for_the_gain_and_settings_are_in_the_signature(folder: Path) -> None:
    mean, gain = Nll(str(folder)), Nll(str(folder), "gain")
    assert (mean.higher_is_better, gain.higher_is_better, mean.reads) == (False, True, ("context",))
    assert mean.signature.startswith("model:model@") and "form:mean|turns:5" in mean.signature and "form:gain" in gain.signature


def test_a_form_that_is_not_known_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match='"max" is not known'):
        Nll(str(folder), "max")


def test_a_long_context_is_cut_at_its_beginning_and_a_long_reply_is_refused(tmp_path: Path) -> None:
    short = Nll(str(tiny_lm(tmp_path / "model", places=64)))
    long = [{"role": "seeker", "text": "So much has happened. " * 9 + "Today."}]
    longer = [{"role": "seeker", "text": "Very much more has happened. " * 9 + "So much has happened. " * 9 + "Today."}]
    assert short.score_all(segments([long] * 3)) == short.score_all(segments([longer] * 3))
    with pytest.raises(ValueError, match="the reply has 70 tokens, but the model reads 64"):
        short.score_all(Segments(["x" * 70], [""], [long]))
