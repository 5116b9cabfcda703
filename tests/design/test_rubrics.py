"""Rubrics: the frameworks that are packaged, and what is said of a file that is not valid."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml, schema
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.rubrics import Criterion, Rubric, Scale, load_rubric, packaged_rubrics

# Name: kind, unit, criteria, scale, whole.
SHIPPED = {
    "teacher": ("rating", "reply", 6, (0, 1), False),
    "empathetic-dialogues": ("rating", "dialogue", 3, (1, 5), True),
    "epitome": ("rating", "reply", 3, (0, 2), True),
    "perceived-empathy": ("rating", "reply", 9, (1, 7), True),
    "lend-an-ear": ("rating", "dialogue", 6, (1, 5), True),
    "perspective-taking": ("rating", "reply", 7, (1, 5), True),
    "empathic-concern": ("rating", "reply", 7, (1, 5), True),
    "empathic-understanding": ("rating", "reply", 8, (1, 5), True),
    "empathic-response": ("rating", "reply", 7, (1, 5), True),
    "overall": ("rating", "reply", 1, (1, 5), True),
    "three-point": ("rating", "reply", 1, (1, 3), True),
    "rating-guide": ("rating", "reply", 3, (1, 3), True),
    "heart": ("rating", "reply", 5, (1, 5), True),
    "warmer": ("preference", "reply", 1, None, None),
    "strategies": ("strategies", "reply", 0, None, None),
    "reward": ("reward", "reply", 0, None, None),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_packaged_rubric_has_the_criteria_and_the_scale_of_its_framework(name: str) -> None:
    kind, unit, criteria, bounds, whole = SHIPPED[name]
    rubric = load_rubric(name)
    assert (rubric.name, rubric.kind, rubric.unit, len(rubric.criteria)) == (name, kind, unit, criteria)
    assert {one.scale for one in rubric.criteria} <= ({Scale(*bounds, bool(whole))} if bounds else {None})
    assert len({one.name for one in rubric.criteria}) == criteria and rubric.title and rubric.source


def test_these_are_all_that_are_packaged_and_none_is_the_same_as_another() -> None:
    assert packaged_rubrics() == tuple(sorted(SHIPPED))
    assert len({load_rubric(name).hash for name in SHIPPED}) == len(SHIPPED)


def test_an_unknown_rubric_names_the_one_that_is_meant() -> None:
    with pytest.raises(InputError, match=r'did you mean "lend-an-ear"\?'):
        load_rubric("lend-your-ear")


def test_the_four_psychological_scales_have_twenty_nine_items_and_the_four_frameworks_twenty_one_criteria() -> None:
    def count(*names: str) -> int:
        return sum(len(load_rubric(name).criteria) for name in names)

    assert count("perspective-taking", "empathic-concern", "empathic-understanding", "empathic-response") == 29
    assert count("empathetic-dialogues", "epitome", "perceived-empathy", "lend-an-ear") == 21


def test_low_is_better_in_three_criteria_of_lend_an_ear_and_nowhere_else() -> None:
    low = {(name, one.name) for name in SHIPPED for one in load_rubric(name).criteria if one.better == "low"}
    assert low == {("lend-an-ear", name) for name in ("advice_giving", "self_oriented", "dismissing_emotions")}


def test_the_teacher_rates_four_criteria_and_two_overall_and_thinks_first() -> None:
    rubric = load_rubric("teacher")
    assert [one.name for one in rubric.criteria] == ["understanding", "validation_warmth", "guidance", "safety", "flow", "content"]
    assert (rubric.style, rubric.together, len(rubric.steps)) == ("reasoned", True, 2)


def test_criteria_go_together_in_one_request_or_each_in_its_own() -> None:
    assert load_rubric("teacher").requests == (load_rubric("teacher").criteria,)
    assert [[one.name for one in some] for some in load_rubric("epitome").requests] == [
        ["emotional_reactions"], ["interpretations"], ["explorations"],
    ]  # fmt: skip


def test_the_rating_guide_is_what_people_are_told_word_for_word() -> None:
    told, rubric = read_yaml(data_folder("review") / "guidance.yaml", "guidance"), load_rubric("rating-guide")
    assert [(one.name, one.question, list(one.anchors.values())) for one in rubric.criteria] == [
        (one["name"], one["question"], one["anchors"]) for one in told["scales"]
    ]
    assert all(list(one.anchors) == [1, 2, 3] for one in rubric.criteria)
    assert list(rubric.lessons) == [*told["variants"][1:], *told["borderline"]]
    assert told["variants"][0].startswith("You see the situation"), "judges do not: this paragraph alone is left out"


def test_an_example_may_be_any_text_that_a_pair_or_its_controls_have() -> None:
    variants = schema("rubric")["properties"]["examples"]["items"]["properties"]["variant"]["enum"]
    assert variants == ["reference", *PAIR_VARIANTS, *CONTROLS]


def test_opposites_are_opposite_both_ways_and_one_of_them_is_better_low() -> None:
    rubric = load_rubric("lend-an-ear")
    found = {one.name: one.opposite for one in rubric.criteria if one.opposite}
    assert found == {"validating_emotions": "dismissing_emotions", "dismissing_emotions": "validating_emotions"}
    assert {rubric[name].better for name in found} == {"high", "low"}


# --- Rubrics of one's own


def own(path: Path, change: Callable[[dict[str, Any]], object] = lambda value: None, name: str = "epitome") -> Path:
    """A packaged rubric with a change, in a file of one's own."""
    value = yaml.safe_load((data_folder("rubrics") / f"{name}.yaml").read_text())
    change(value)
    (path / "own.yaml").write_text(yaml.safe_dump(value, sort_keys=False))
    return path / "own.yaml"


def problems(path: Path | str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_rubric(path)
    assert caught.value.exit_code == 2
    return [str(problem) for problem in caught.value.problems]


def test_a_file_of_ones_own_is_read_and_its_hash_is_that_of_its_content(tmp_path: Path) -> None:
    path = own(tmp_path)
    assert load_rubric(path) == load_rubric(str(path)) == load_rubric("epitome")
    path.write_text("# A remark.\n" + path.read_text())
    assert load_rubric(path).hash == load_rubric("epitome").hash
    for change in (
        lambda value: value["criteria"][0].update(question="How warm?"),
        lambda value: value["criteria"][0]["anchors"][1].update(text="A little."),
        lambda value: value["criteria"][0]["scale"].update(whole=False),
        lambda value: value.update(together=True),
        lambda value: value["examples"].pop(),
        lambda value: value["examples"][0]["values"].update(explorations=1),
    ):
        assert load_rubric(own(tmp_path, change)).hash != load_rubric("epitome").hash


def test_the_hash_follows_the_guidance_that_a_rubric_takes_its_words_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_rubric("rating-guide").hash
    review = Path(shutil.copytree(data_folder("review"), tmp_path / "review"))
    told = (review / "guidance.yaml").read_text()
    (review / "guidance.yaml").write_text(told.replace("Understands this person, and is warm", "Understands them"))
    monkeypatch.setattr("empathy_eval.design.rubrics.data_folder", lambda name: review if name == "review" else data_folder(name))
    assert load_rubric("rating-guide").hash != before


def test_a_name_that_is_not_packaged_is_quoted_with_those_that_are() -> None:
    (problem,) = problems("techer")
    assert 'rubric "techer": is not a file' in problem and ", teacher, " in problem
    assert "cannot be read" in problems("folder/teacher")[0] and "cannot be read" in problems("teacher.yaml")[0]


def first(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = value["criteria"][0]
    return found


def turned_round(value: dict[str, Any]) -> None:
    first(value)["scale"] = {"from": 2, "to": 0, "whole": True}
    del value["examples"]
    value["style"] = "plain"


BAD: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "bounds turned round": (turned_round, "criteria: emotional_reactions: scale: from 2 to 0 is reversed"),
    "whole numbers between bounds that are not": (
        lambda value: first(value).update(scale={"from": 0, "to": 2.5, "whole": True}), "scale: from 0 to 2.5 is not a whole number",
    ),
    "an anchor outside": (
        lambda value: first(value)["anchors"].append({"value": 3, "text": "More."}), "anchors: 3 is not between 0 and 2",
    ),
    "an anchor between whole numbers": (
        lambda value: first(value)["anchors"].append({"value": 1.5, "text": "More."}), "anchors: 1.5 is not a whole number",
    ),
    "an anchor twice": (lambda value: first(value)["anchors"].append({"value": 1, "text": "More."}), "anchors: 1 occurs 2 times"),
    "an end without an anchor": (lambda value: first(value)["anchors"].pop(), "anchors: do not say what 2 means"),
    "a criterion twice": (
        lambda value: value["criteria"].append(value["criteria"][1]), 'criteria: "interpretations" occurs 2 times',
    ),
    "a value outside": (
        lambda value: value["examples"][1]["values"].update(interpretations=3), "examples[1]: interpretations: 3 is not between 0 and 2",
    ),
    "a value that is not whole": (
        lambda value: value["examples"][1]["values"].update(interpretations=0.5), "examples[1]: interpretations: 0.5 is not a whole number",
    ),
    "a value of no criterion": (lambda value: value["examples"][0]["values"].update(charm=1), 'examples[0]: rates "charm"'),
    "a value that is missing": (
        lambda value: value["examples"][0]["values"].pop("explorations"), 'examples[0]: has no value for "explorations"',
    ),
    "an unknown variant": (lambda value: value["examples"][0].update(variant="cold"), 'examples[0]: variant: "cold" is not known'),
    "an example of no seed": (
        lambda value: value["examples"][0].update(pair_id="017-00042-t05"), 'examples[0]: pair_id: "017-00042-t05" does not match',
    ),
    "an opposite that is not there": (
        lambda value: first(value).update(opposite="coldness"), 'emotional_reactions: opposite: "coldness" is not another criterion',
    ),
    "an opposite of itself": (
        lambda value: first(value).update(opposite="emotional_reactions"), 'opposite: "emotional_reactions" is not another criterion',
    ),
    "a slash in a criterion": (lambda value: first(value).update(name="warm/cold"), 'name: "warm/cold" does not match'),
    "a colon in a criterion": (lambda value: first(value).update(name="warm:cold"), 'name: "warm:cold" does not match'),
    "a slash in the name": (lambda value: value.update(name="a/b"), 'name: "a/b" does not match'),
    "a colon in the name": (lambda value: value.update(name="a:b"), 'name: "a:b" does not match'),
    "a sign that is not seen": (lambda value: value.update(name="a\u202eb"), 'name: "a\\u202eb" does not match'),
    "a sign of a terminal in a criterion": (lambda value: first(value).update(name="a\x1b[31m"), 'name: "a\\u001b[31m" does not match'),
    "a quote in a criterion": (lambda value: first(value).update(name='a"b'), "quotes and blanks"),
    "a name without end": (lambda value: value.update(name="x" * 101), "write up to 100 letters"),
    "a bound without end": (lambda value: first(value)["scale"].update(to=float("inf")), 'holds the number ".inf"'),
    "a bound that is no number": (lambda value: first(value)["scale"].update({"from": float("nan")}), 'holds the number ".nan"'),
    "a bound of 400 digits": (lambda value: first(value)["scale"].update(to=10**400), "is out of range (maximum 1000000000)"),
    "too many criteria": (
        lambda value: value.update(criteria=[first(value) | {"name": f"c{n}"} for n in range(101)]), "at most 100 criteria",
    ),
    "an unknown kind": (lambda value: value.update(kind="ranking"), 'kind: "ranking" is not known'),
    "a rating without criteria": (lambda value: (value.pop("criteria"), value.pop("examples")), 'misses "criteria"'),
    "a rating without a style": (lambda value: value.pop("style"), 'misses "style"'),
    "a rating without a scale": (lambda value: first(value).pop("scale"), 'criteria: emotional_reactions: misses "scale"'),
    "a rating without a direction": (lambda value: first(value).pop("better"), 'criteria: emotional_reactions: misses "better"'),
    "shots without examples": (lambda value: value.pop("examples"), 'examples: are missing in style "shots"'),
    "examples in a plain style": (lambda value: value.update(style="plain"), 'examples: are shown in style "plain"'),
    "steps that nobody writes down": (lambda value: value.update(steps=["Think."]), 'steps: are not used in style "shots"'),
    "examples of a dialogue": (lambda value: value.update(unit="dialogue"), 'unit: "dialogue" is only for ratings without examples'),
    "criteria of one's own beside the guidance's": (
        lambda value: value.update({"from": "guidance"}), 'criteria: does not go with "from: guidance"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_a_rubric_is_named_and_quoted(case: str, tmp_path: Path) -> None:
    change, said = BAD[case]
    found = problems(own(tmp_path, change))
    assert any(said in problem for problem in found), found
    assert all("own.yaml" in problem and "Fix: " in problem for problem in found)


@pytest.mark.parametrize("name", ["warmer", "strategies", "reward"])
def test_a_kind_without_numbers_has_no_scale_no_style_and_no_examples(name: str, tmp_path: Path) -> None:
    epitome = yaml.safe_load((data_folder("rubrics") / "epitome.yaml").read_text())
    more = {key: epitome[key] for key in ("style", "together", "examples", "criteria")}
    found = problems(own(tmp_path, lambda value: value.update(more, unit="dialogue"), name))
    for key in ("style", "together", "examples"):
        assert any(f"{key}: is not for a rubric of kind" in problem for problem in found)
    assert any('unit: "dialogue"' in problem for problem in found)
    wanted = "criteria: 3 in a preference" if name == "warmer" else "criteria: is not for a rubric of kind"
    assert any(wanted in problem for problem in found)
    assert sum('has "scale", and a preference has no numbers' in problem for problem in found) == (3 if name == "warmer" else 0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"- a\n", "is not of type object"),
        (b"", "is not of type object"),
        (b"{[: a", "is not YAML"),
        (b"\xff", "is not UTF-8"),
        (b"[" * 9999, "is nested more than 64 deep"),
        (b"a: &a [x, x]\n" + b"".join(b"%c: &%c [%s]\n" % (n, n, b", ".join([b"*%c" % (n - 1)] * 9)) for n in range(98, 106)), "aliases"),
    ],
    ids=["list", "empty", "no YAML", "no text", "deep", "aliases"],
)
def test_a_file_that_is_no_rubric_is_refused_in_words(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_bytes(content)
    (problem,) = problems(tmp_path / "own.yaml")
    assert said in problem and "own.yaml" in problem


def test_a_preference_without_its_question_is_refused(tmp_path: Path) -> None:
    assert 'misses "criteria"' in problems(own(tmp_path, lambda value: value.pop("criteria"), "warmer"))[0]


def test_all_problems_of_a_file_come_at_once(tmp_path: Path) -> None:
    def change(value: dict[str, Any]) -> None:
        value["criteria"].append(value["criteria"][1])
        first(value)["anchors"].pop()
        first(value)["opposite"] = "coldness"
        value["examples"][1]["values"]["interpretations"] = 3

    assert len(problems(own(tmp_path, change))) == 4


def test_a_scale_takes_its_bounds_and_nothing_beyond() -> None:
    share, points = Scale(0, 1, whole=False), Scale(1, 5, whole=True)
    assert not any(share.fault(value) for value in (0, 0.37, 1)) and not any(points.fault(value) for value in (1, 2.0, 5))
    assert all(share.fault(value) for value in (-0.01, 1.01, float("nan"))) and all(points.fault(value) for value in (0, 2.5, 6))


def test_a_rubric_is_asked_for_its_criteria_by_name() -> None:
    rubric = Rubric("r", "R", "our own", "rating", "reply", criteria=(Criterion("warm", "How warm?"), Criterion("clear", "How clear?")))
    assert rubric["clear"].question == "How clear?"


def test_lessons_and_examples_of_others_are_given_to_any_rubric_and_change_its_hash(tmp_path: Path) -> None:
    plain, lend = load_rubric("overall"), load_rubric("lend-an-ear")
    taught = load_rubric("overall", lessons="lend-an-ear")
    assert taught.lessons == lend.lessons and taught.criteria == plain.criteria and taught.hash != plain.hash
    shots = tmp_path / "shots.yaml"
    shots.write_text("examples:\n  - {pair_id: 001-seed-t01, variant: reference, values: {overall: 4}, reason: It hears the loss.}\n")
    shown = load_rubric("overall", lessons="lend-an-ear", shots=shots)
    assert (shown.style, len(shown.examples), shown.examples[0].values) == ("shots", 1, {"overall": 4.0})
    assert load_rubric("overall") == plain and len({plain.hash, taught.hash, shown.hash}) == 3


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("overall", {"lessons": "three-point"}, 'has no "lessons"'),
        ("overall", {"shots": "three-point"}, 'has no "examples"'),
        ("overall", {"shots": "epitome"}, "which is not a criterion of this rubric"),
        ("overall", {"lessons": "lend-your-ear"}, "is not a file"),
        ("rating-guide", {"lessons": "lend-an-ear"}, "does not go with"),
        ("lend-an-ear", {"shots": "epitome"}, "is only for ratings without examples"),
        ("warmer", {"shots": "epitome"}, "is not for a rubric of kind"),
    ],
)
def test_what_a_rubric_cannot_be_given_is_refused(name: str, given: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_rubric(name, **given)
