"""Models in the process: the same answer twice, JSON by a grammar, batches, and the errors of weights that cannot be used."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from empathy_eval.base.causal_lm import CausalLM, weights_of
from empathy_eval.base.errors import InputError
from empathy_eval.base.schemas import check, violations
from empathy_eval.completions.models.local import LocalModel
from empathy_eval.completions.requests import About, Completion, NoAnswer, Request
from empathy_eval.design.rubrics import load_rubric
from empathy_eval.raters.judges.annotating import AnnotationPlan, _unfit

from tests.doubles.tiny_lm import tiny_lm

pytestmark = pytest.mark.e2e
SCHEMA = "named_answer"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_lm(tmp_path_factory.mktemp("tiny") / "model")


def requests(model: LocalModel, count: int = 1) -> list[Request]:
    bodies = [model.body([{"role": "user", "content": f"say {'something ' * (1 + place)}{place}"}], SCHEMA) for place in range(count)]
    return [Request(body, model.endpoint, About("001-00000", "self_chat", place)) for place, body in enumerate(bodies)]


def answers(model: LocalModel, asked: list[Request]) -> list[Completion]:
    async def all_of_them() -> list[Completion]:
        return list(await asyncio.gather(*map(model.complete, asked)))

    return asyncio.run(all_of_them())


def test_the_same_request_has_the_same_answer_which_its_sample_changes(folder: Path) -> None:
    one, other = (LocalModel(str(folder), temperature=1.0, structure="instruction", max_tokens=20) for _ in range(2))
    (asked,) = requests(one)
    (first,), (second,) = answers(one, [asked]), answers(other, [asked])
    assert first == second and first.text and first.finish == "length" and first.usage.output_tokens == 20
    (third,) = answers(one, [Request(asked.body, asked.endpoint, asked.about, sample=1)])
    assert third.text != first.text


def test_an_answer_under_a_grammar_is_json_of_its_schema(folder: Path) -> None:
    pytest.importorskip("xgrammar")
    model = LocalModel(str(folder), temperature=1.0, max_tokens=400, batch=2)
    whole = [one for one in answers(model, requests(model, 4)) if one.finish == "stop"]
    assert whole and all(not list(violations(json.loads(one.text), SCHEMA)) for one in whole)


def test_a_batch_gives_what_its_requests_give_alone(folder: Path) -> None:
    alone, together = (LocalModel(str(folder), structure="instruction", max_tokens=12, batch=batch) for batch in (1, 4))
    asked = requests(alone, 4)
    assert [one.text for one in answers(alone, asked)] == [one.text for one in answers(together, asked)]


def test_every_request_of_a_batch_that_fails_hears_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: LocalModel, *_: object) -> list[Completion]:
        raise RuntimeError("no memory left")

    monkeypatch.setattr(LocalModel, "_answered", failing)
    model = LocalModel(str(folder), structure="instruction", batch=2)

    async def heard() -> list[object]:
        return list(await asyncio.gather(*map(model.complete, requests(model, 3)), return_exceptions=True))

    assert [str(one) for one in asyncio.run(heard())] == ["no memory left"] * 3


def test_requests_that_come_together_load_the_model_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = list[str]()

    def loading(*of: object) -> CausalLM:
        loaded.append("once")
        return CausalLM(*of)  # type: ignore[arg-type]

    monkeypatch.setattr("empathy_eval.completions.models.local.CausalLM", loading)
    model = LocalModel(str(folder), structure="instruction", max_tokens=2)
    answers(model, requests(model, 4))
    assert loaded == ["once"]


def test_other_weights_are_another_model(folder: Path, tmp_path: Path) -> None:
    other = tiny_lm(tmp_path / "model", seed=1)
    names = {weights_of(str(folder)).name, weights_of(str(other)).name}
    assert len(names) == 2 and all(name.startswith("model@") for name in names)


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (lambda path: path.mkdir(), "holds no config.json with safetensors"),
        (lambda path: None, "is no folder and no file, and the Hub does not provide it"),
        (lambda path: (tiny_lm(path) / "config.json").write_text('{"auto_map": {}}'), "asks for code of its own"),
        (lambda path: (tiny_lm(path) / "model.safetensors").rename(path / "pytorch_model.bin"), "pickled weights are not loaded"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: object, what: str) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    made(tmp_path / "one")  # type: ignore[operator]
    with pytest.raises(InputError, match=what):
        LocalModel(str(tmp_path / "one"))


def test_a_request_that_cannot_be_read_has_no_answer(tmp_path: Path) -> None:
    short, mute = (LocalModel(str(tiny_lm(tmp_path / name, **given)), structure="instruction", max_tokens=4)
                   for name, given in (("short", {"places": 8}), ("mute", {"template": None})))  # fmt: skip
    for model, what in ((short, "but the model reads 8"), (mute, "has no chat template")):
        with pytest.raises(NoAnswer, match=what):
            answers(model, requests(model))


def test_all_settings_that_are_wrong_are_told_at_once(folder: Path) -> None:
    wrong = {"temperature": -1, "top_p": 0, "batch": 0, "structure": "yaml", "max_tokens": 0, "dtype": "int8", "tempature": 1}
    with pytest.raises(InputError) as caught:
        LocalModel(str(folder), **wrong)
    for told in ("temperature: -1 is out of range", "top_p: 0 is", "batch: 0 is", 'structure: "yaml"', "max_tokens: 0", 'dtype: "int8"',
                 'unknown "tempature"'):  # fmt: skip
        assert told in str(caught.value)


def test_a_configuration_says_where_its_parameters_are_wrong() -> None:
    with pytest.raises(InputError) as caught:
        check({"kind": "transformers", "parameters": {"temperature": -1}}, "judge", "judge.yaml")
    assert "judge.yaml: parameters: temperature: -1 is out of range" in str(caught.value)
    assert 'judge.yaml: parameters: misses "model"' in str(caught.value)


def test_what_is_written_as_whole_or_not_is_the_same_request(folder: Path) -> None:
    one, other = (LocalModel(str(folder), temperature=value, max_tokens=most) for value, most in ((1, 20), (1.0, 20.0)))
    assert requests(one)[0].key == requests(other)[0].key != requests(LocalModel(str(folder), max_tokens=20))[0].key


def test_an_expected_rating_is_the_mean_of_the_numbers_by_their_probability(folder: Path) -> None:
    """The probability of each number from the logits of the whole text, read anew."""
    import torch

    model, lm = LocalModel(str(folder), expected_over=[1, 2, 5]), CausalLM(weights_of(str(folder)))
    asked = '{"analysis": "", "ratings": [{"criterion": "one", "value": a number}, {"criterion": "two", "value": a number}]}'
    body = model.body([{"role": "user", "content": asked}], "rating_answer")
    (answer,) = answers(model, [Request(body, model.endpoint, About("001-00000", "rating", 1))])
    assert not list(violations(json.loads(answer.text), "rating_answer"))
    weights = []
    for number in (1, 2, 5):
        before, end = (
            lm.tokens(lm.chat(body["messages"]) + '{"analysis": "", "ratings": [{"criterion": "one", "value":'),
            lm.tokens(f" {number}}}"),
        )
        ids = before + end
        with torch.inference_mode():
            chances = torch.log_softmax(lm.model(torch.tensor([ids])).logits[0].double(), -1)
        weights.append(sum(float(chances[place - 1, ids[place]]) for place in range(len(before), len(ids))))
    said = {one["criterion"]: one["value"] for one in json.loads(answer.text)["ratings"]}
    expected = float(torch.softmax(torch.tensor(weights), 0) @ torch.tensor([1.0, 2.0, 5.0]))
    assert list(said) == ["one", "two"] and said["one"] == pytest.approx(expected, abs=2e-4) and 1 < said["one"] < 5
    with pytest.raises(NoAnswer, match="does not say their form"):
        answers(model, requests(model))


@pytest.mark.parametrize(
    ("rubric", "numbers", "what"),
    [
        ("three-point", [1, 2, 3], ['"beside_own_reply" of "three-point" takes whole numbers only']),
        ("strategies", [1, 2], ['"strategies" asks for no ratings']),
        ("teacher", [0, 1, 2], ['2 is outside the scale of "guidance"']),
        ("teacher", [0, 0.5, 1], []),
    ],
)
def test_expected_ratings_are_for_rubrics_that_take_any_number(rubric: str, numbers: list[float], what: list[str]) -> None:
    judge = {"kind": "transformers", "parameters": {"expected_over": numbers}}
    told = " ".join(one.what for one in _unfit(load_rubric(rubric), judge, AnnotationPlan(), None))
    assert all(one in told for one in what) and bool(told) == bool(what)
