"""What judges are sent: the rubric, the conversation, the reply; and nothing that tells where the reply is from."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import schema, violations
from empathy_eval.base.templates import environment
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.judge_prompts import VARIABLES_OF_JUDGES, JudgePrompts, judge_prompts
from empathy_eval.design.prompts import VARIABLES, Message, load_prompts
from empathy_eval.design.rubrics import Rubric, load_rubric, packaged_rubrics
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.raters.judges.judge import ideal_of, named_of, ratings_of
from jinja2 import meta

RATINGS = [name for name in packaged_rubrics() if load_rubric(name).kind == "rating"]
OF_REPLIES = [name for name in RATINGS if load_rubric(name).unit == "reply"]
VARIANTS = ("reference", *PAIR_VARIANTS, *CONTROLS)
# What would tell a judge where a reply is from. The name of a strategy that holds one of these words is not meant.
TELLING = re.compile(
    r"reference|apathetic|empathetic(?! statements)|variant|original|rewrit|rephras|\bedit|chosen|rejected|\bgold\b|"
    r"pair_id|dialogue_id|scenario|\d{3}-seed|-t\d\d\b|near_|far_|\bphase\b",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def world() -> Catalogue:
    """All scenarios: examples may be of any of them."""
    return load_catalogue()


def turns(catalogue: Catalogue, number: int = 17) -> list[dict[str, Any]]:
    """The turns of a seed with all that a release says of them, and more."""
    seed = catalogue[number].seed
    assert seed
    return [
        {"role": one.role, "text": one.text, "strategy": one.strategy, "phase": "action", "pair_id": "017-seed-t05"} for one in seed.turns
    ]


def helper_turn(catalogue: Catalogue) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The turns before one that has all five texts, and these by variant."""
    seed = catalogue[17].seed
    assert seed
    turn = seed.turns[5]
    texts = {name: str(turn.text if name == "reference" else getattr(turn, name)) for name in VARIANTS}
    assert "None" not in texts.values() and len(set(texts.values())) == 5
    return turns(catalogue)[:5], texts


def all_messages(judge: JudgePrompts, context: list[dict[str, Any]], reply: str) -> list[list[Message]]:
    """Each request that a rubric asks about a reply, or about a conversation."""
    rubric = judge.rubric
    if rubric.kind == "rating":
        return [judge.rating(some, context, reply if rubric.unit == "reply" else None) for some in rubric.requests]
    if rubric.kind == "preference":
        return [judge.preference(context, reply, "Go on."), judge.preference(context, "Go on.", reply)]
    return [judge.ideal(context), judge.named(context, reply)] if rubric.kind == "strategies" else []


@pytest.mark.parametrize("name", packaged_rubrics())
def test_each_rubric_makes_requests_whose_good_answers_are_taken(name: str, world: Catalogue) -> None:
    judge = judge_prompts(load_rubric(name), world)
    context, texts = helper_turn(world)
    for messages in all_messages(judge, context, texts["reference"]):
        assert [one["role"] for one in messages] == ["system", "user"]
        assert context[0]["text"] in messages[1]["content"] and "JSON object" in messages[0]["content"]
    for criteria in judge.rubric.requests if judge.rubric.kind == "rating" else ():
        values = {one.name: one.scale.high for one in criteria if one.scale}
        answer = {"analysis": "", "ratings": [{"criterion": name, "value": value} for name, value in values.items()]}
        assert not list(violations(answer, "rating_answer")) and ratings_of(answer, criteria) == values


def test_the_good_answers_to_the_other_questions_are_taken(world: Catalogue) -> None:
    strategies = [one.abbreviation for one in world.taxonomy.strategies]
    ideal = {"strategies": [{"strategy": name, "probability": 1 / 15} for name in strategies]}
    assert not list(violations({"analysis": "A hears them out.", "better": "A"}, "preference_answer"))
    assert not list(violations(ideal, "ideal_answer")) and not list(violations({"strategy": "RS"}, "named_answer"))
    assert (
        ideal_of(ideal, world.taxonomy) == pytest.approx(dict.fromkeys(strategies, 1 / 15))
        and named_of({"strategy": "RS"}, world.taxonomy) == "RS"
    )


@pytest.mark.parametrize("name", RATINGS)
def test_a_request_says_each_question_scale_and_anchor_and_no_other_criterion(name: str, world: Catalogue) -> None:
    judge = judge_prompts(load_rubric(name), world)
    for criteria in judge.rubric.requests:
        said = judge.rating(criteria, turns(world)[:3], "Yes.")[0]["content"]
        for one in judge.rubric.criteria:
            assert (f"## {one.name}\n{one.question}" in said) == (one in criteria)
        for one in criteria:
            assert one.scale and f"number from {one.scale.low:g} to {one.scale.high:g}" in said
            assert all(f"- {value:g}: {text}" in said for value, text in one.anchors.items())
        assert all(text in said for text in (*judge.rubric.lessons, *judge.rubric.steps, judge.rubric.persona))


@pytest.mark.parametrize("name", [*OF_REPLIES, "strategies"])
def test_of_five_variants_only_the_text_of_the_reply_differs_and_it_comes_last(name: str, world: Catalogue) -> None:
    judge, (context, texts) = judge_prompts(load_rubric(name), world), helper_turn(world)
    by_variant = {variant: all_messages(judge, context, text) for variant, text in texts.items()}
    cut = {
        json.dumps([[one["content"].removesuffix(texts[variant]) for one in messages] for messages in asked])
        for variant, asked in by_variant.items()
    }
    assert len(cut) == 1
    for variant, asked in by_variant.items():
        assert asked[-1][-1]["content"].endswith(texts[variant])
        assert not any(
            other in one["content"] for messages in asked for one in messages for which, other in texts.items() if which != variant
        )


@pytest.mark.parametrize("name", packaged_rubrics())
def test_no_name_of_a_variant_no_id_and_no_strategy_of_a_turn_reaches_a_judge(name: str, world: Catalogue) -> None:
    judge = judge_prompts(load_rubric(name), world)
    turn = {"dialogue_id": "017-seed", "pair_id": "017-seed-t01", "phase": "comforting", "strategy": "Offer Hope", "variant": "reference"}
    context = [{**turn, "role": "seeker", "text": "I can't sleep."}, {**turn, "role": "helper", "text": "Since when?"}]
    for messages in all_messages(judge, context, "That sounds long."):
        told = " ".join(one["content"] for one in messages)
        assert not TELLING.search(told), TELLING.search(told)
        assert messages[1]["content"].startswith("# The conversation") and "seeker: I can't sleep.\nhelper: Since when?" in told
        assert "Offer Hope" not in messages[1]["content"]


def test_both_orders_of_a_preference_are_the_same_but_for_the_places_of_the_replies(world: Catalogue) -> None:
    judge, context = judge_prompts(load_rubric("warmer"), world), turns(world)[:3]
    one, other = judge.preference(context, "Oh no.", "So what."), judge.preference(context, "So what.", "Oh no.")
    assert one[0] == other[0] and one != other
    assert one[1]["content"].endswith("# Reply A\nOh no.\n\n# Reply B\nSo what.")
    assert other[1]["content"].replace("So what.", "1").replace("Oh no.", "So what.").replace("1", "Oh no.") == one[1]["content"]


def test_requests_of_one_rubric_share_all_before_the_conversation(world: Catalogue) -> None:
    judge = judge_prompts(load_rubric("teacher"), world)
    pets, moving = turns(world, 17), turns(world, 16)
    assert judge.rating(judge.rubric.criteria, pets[:1], "a")[0] == judge.rating(judge.rubric.criteria, moving[:5], "b")[0]


def test_of_a_dialogue_the_whole_is_shown_and_no_reply_is_spoken_of(world: Catalogue) -> None:
    judge = judge_prompts(load_rubric("lend-an-ear"), world)
    system, user = judge.rating(judge.rubric.requests[0], turns(world), None)
    assert all(f"{turn['role']}: {turn['text']}" in user["content"] for turn in turns(world))
    assert "a whole conversation" in system["content"] and "The reply" not in user["content"]


def test_the_ideal_strategy_is_asked_for_before_a_reply_is_seen(world: Catalogue) -> None:
    judge, (context, texts) = judge_prompts(load_rubric("strategies"), world), helper_turn(world)
    said = json.dumps(judge.ideal(context), ensure_ascii=False)
    assert all(one.definition in said for one in world.taxonomy.strategies) and not any(text in said for text in texts.values())
    assert set(judge.ideal(context)[1]) == {"role", "content"} and "strategy" not in judge.ideal(context)[1]["content"]


def test_a_number_only_style_asks_for_no_reason_and_a_reasoned_one_for_it_first(world: Catalogue) -> None:
    def form(name: str) -> str:
        judge = judge_prompts(load_rubric(name), world)
        return judge.rating(judge.rubric.requests[0], turns(world)[:1], "Yes.")[0]["content"]

    assert '"analysis" stays an empty text' in form("three-point") and '"analysis" stays an empty text' in form("epitome")
    assert '"analysis" comes before the numbers' in form("teacher") and "stays an empty text" not in form("teacher")


def test_examples_are_shown_with_their_texts_and_an_answer_that_would_be_taken(world: Catalogue) -> None:
    judge = judge_prompts(load_rubric("epitome"), world)
    assert len(judge.shown) == len(judge.rubric.examples) == 4
    for named, example in zip(judge.rubric.examples, judge.shown, strict=True):
        number, place = int(named.pair_id[:3]), int(named.pair_id[-2:])
        assert [one["text"] for one in example.context] == [one["text"] for one in turns(world, number)][:place]
    for criteria in judge.rubric.requests:
        said = judge.rating(criteria, turns(world)[:1], "Yes.")[0]["content"]
        answers = [json.loads(line.removeprefix("The answer: ")) for line in said.splitlines() if line.startswith("The answer: ")]
        for answer, example in zip(answers, judge.shown, strict=True):
            assert f"The reply: {example.reply}\n" in said and example.reason in said
            assert not list(violations(answer, "rating_answer"))
            assert ratings_of(answer, criteria) == {one.name: example.values[one.name] for one in criteria}
    reasoned = Rubric(**{**judge.rubric.__dict__, "style": "reasoned"})
    (told,) = {one["content"] for one in judge_prompts(reasoned, world).rating(reasoned.criteria, [], "Yes.")[:1]}
    assert json.dumps({"analysis": judge.shown[0].reason})[:-1] in told and "Why it is rated so" not in told


def test_examples_that_are_in_no_seed_are_named_all_at_once(world: Catalogue) -> None:
    def changed(example: Any, **values: Any) -> Any:
        return type(example)(**{**example.__dict__, **values})

    rubric = load_rubric("epitome")
    one = rubric.examples[0]
    bad = (changed(one, pair_id="061-seed-t01"), changed(one, pair_id="017-seed-t00"), changed(one, pair_id="017-seed-t99"), one)
    with pytest.raises(InputError) as caught:
        judge_prompts(Rubric(**{**rubric.__dict__, "examples": bad}), world)
    assert [problem.where for problem in caught.value.problems] == [f'rubric "epitome": examples[{n}]' for n in range(3)]
    assert 'no seed of the scenarios has "reference" at "017-seed-t99"' in str(caught.value)


def test_there_is_a_template_and_an_answer_for_each_question_and_builds_are_not_concerned() -> None:
    folder = data_folder("prompt_templates") / "judges"
    assert {path.name.removesuffix(".md.j2") for path in folder.iterdir()} == set(VARIABLES_OF_JUDGES)
    prompts = load_prompts(folder, VARIABLES_OF_JUDGES)
    for name, given in VARIABLES_OF_JUDGES.items():
        assert meta.find_undeclared_variables(environment(None).parse(prompts.sources[name])) - {"self"} == given, "no more, no less"
    assert set(load_prompts().hashes) == set(VARIABLES) and not set(VARIABLES) & set(VARIABLES_OF_JUDGES)


def test_a_judges_template_that_asks_for_more_than_it_gets_is_refused(tmp_path: Path, world: Catalogue) -> None:
    folder = Path(shutil.copytree(data_folder("prompt_templates") / "judges", tmp_path / "judges"))
    (folder / "named.md.j2").write_text("{% block user %}{{ variant }}{% endblock %}")
    with pytest.raises(InputError, match=r'named\.md\.j2: line 1: variable "variant" is not given to this template'):
        judge_prompts(load_rubric("strategies"), world, folder)


def test_a_template_of_ones_own_is_given_of_a_turn_its_role_and_its_text_alone(tmp_path: Path, world: Catalogue) -> None:
    folder = Path(shutil.copytree(data_folder("prompt_templates") / "judges", tmp_path / "judges"))
    source = "{% block user %}{{ context[0] | tojson }}{% for one in examples %}{{ one.context[0] | tojson }}{% endfor %}{% endblock %}"
    (folder / "rating.md.j2").write_text(source)
    judge = judge_prompts(load_rubric("epitome"), world, folder)
    (message,) = judge.rating(judge.rubric.criteria, [{"role": "seeker", "text": "Oh.", "strategy": "SO", "phase": "action"}], "Yes.")
    given = [json.loads(one) for one in message["content"].replace("}{", "}\n{").splitlines()]
    assert len(given) == 5 and given[0] == {"role": "seeker", "text": "Oh."} and all(set(one) == {"role", "text"} for one in given)


@pytest.mark.parametrize("name", [f"{name}_answer" for name in VARIABLES_OF_JUDGES])
def test_answers_have_the_form_that_strict_endpoints_take(name: str) -> None:
    def objects(part: Any) -> list[Mapping[str, Any]]:
        inside = [one for value in part.values() for one in objects(value)] if isinstance(part, dict) else []
        return [part, *inside] if isinstance(part, dict) and part.get("type") == "object" else inside

    found = objects(schema(name))
    assert found
    for one in found:
        assert one["additionalProperties"] is False and one["required"] == list(one["properties"])
    assert not {"minimum", "maximum", "pattern", "uniqueItems", "minItems"} & set(re.findall(r"\w+", json.dumps(schema(name))))


def test_a_first_message_that_shows_the_reply_is_written_anew_for_each(world: Catalogue, tmp_path: Path) -> None:
    folder = shutil.copytree(data_folder("prompt_templates") / "judges", tmp_path / "judges")
    template = folder / "rating.md.j2"
    template.write_text(template.read_text().replace("# What to do", "# What to do\nIt is: {{ reply }}", 1))
    judge = judge_prompts(load_rubric("teacher"), world, folder)
    said = [judge.rating(judge.rubric.criteria, [], reply)[0]["content"] for reply in ("Yes.", "No.")]
    assert [reply in one for one, reply in zip(said, ("It is: Yes.", "It is: No."), strict=True)] == [True, True]
