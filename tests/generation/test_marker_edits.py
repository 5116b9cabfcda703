"""De-empathising by rules."""

import unicodedata
from pathlib import Path

import pytest
import yaml
from empathy_eval.base.text import edit_ratio
from empathy_eval.design.language import english, load_language
from empathy_eval.generation.patterns import de_empathised, rules_applied
from hypothesis import given
from hypothesis import strategies as st

WARM = (
    "I can see how much the empty basket hurts, and it makes so much sense that you walk past it slowly. "
    "Whenever you are ready, you could tell me what Biscuit did on a wet Monday."
)


def test_markers_of_empathy_are_replaced_and_the_information_stays() -> None:
    cold = de_empathised(WARM, 0.6, english())
    assert cold == (
        "The fact is that the empty basket is on your list, and it is beside the point that you walk past it slowly. "
        "Soon, you need to tell me what Biscuit did on a wet Monday."
    )
    assert 0 < edit_ratio(WARM, cold) < 0.6


def test_the_rules_that_made_a_text_can_be_told() -> None:
    told = rules_applied(WARM, 0.6, english())
    assert told[:2] == [("understanding", "I can see how much", "The fact is that"), ("hurt", "hurts", "is on your list")]
    assert [rule for rule, _, _ in told[2:]] == ["sense", "at_your_pace", "invitation"]
    assert len(rules_applied(WARM, 0.15, english())) < len(told) and rules_applied("The office opens at nine.", 0.3, english()) == []


def test_rules_stop_before_the_limit() -> None:
    for limit in (0.05, 0.15, 0.30):
        assert edit_ratio(WARM, de_empathised(WARM, limit, english())) < limit


def test_a_sentence_that_points_to_help_is_left_as_it_is() -> None:
    text = "I understand how heavy this is. You could gently call a crisis line tonight, whenever you are ready."
    assert de_empathised(text, 0.9, english()).endswith("You could gently call a crisis line tonight, whenever you are ready.")


def test_a_text_without_markers_comes_back_unchanged() -> None:
    assert de_empathised("The office opens at nine.", 0.3, english()) == "The office opens at nine."


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    assert edit_ratio(text, de_empathised(text, 0.3, english())) < 0.3


@pytest.mark.parametrize(
    ("text", "cold"),
    [
        # The noun of the replacement keeps its capital, and what a French mark has before it stays.
        ("Das ist wirklich schwer.", "Das ist Gewohnheit."),
        ("Ach ja, das ist gut !", "Das ist gut !"),
        ("Es ist gut, ach ja.", "Es ist gut."),
        ("Gut ach ja gut.", "Gut gut."),
    ],
)
def test_in_another_language_an_edit_changes_its_own_place_alone(text: str, cold: str, tmp_path: Path) -> None:
    rules = {
        "apathetic": [
            {"name": "weight", "replace": "Gewohnheit", "patterns": [[{"LOWER": "wirklich"}, {"LOWER": "schwer"}]]},
            {"name": "sigh", "replace": "", "patterns": [[{"LOWER": "ach"}, {"LOWER": "ja"}]]},
        ],
        "pointers": [{"name": "help", "patterns": [[{"LOWER": "notruf"}]]}],
    }
    for name, said in rules.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(said))
    assert de_empathised(text, 0.9, load_language("de", tmp_path)) == cold


@pytest.mark.parametrize(
    ("code", "marker", "text", "cold"),
    [
        ("tr", "tabii", "Tabii istersen gel.", "İstersen gel."),
        ("az", "bəli", "Bəli ilk gün gəl.", "İlk gün gəl."),
        # Georgian has no capitals at the beginning of a sentence, and what began without one does not get it.
        ("ka", "ვწუხვარ", "ვწუხვარ რომ ასეა.", "რომ ასეა."),
        ("de", "ach", "ach das ist gut.", "das ist gut."),
        ("de", "schön", unicodedata.normalize("NFD", "Schön dass es übt."), "Dass es übt."),
    ],
)
def test_a_sentence_opens_with_a_capital_where_it_did(code: str, marker: str, text: str, cold: str, tmp_path: Path) -> None:
    for name, rule in {"apathetic": {"name": "odd", "replace": "", "patterns": [[{"LOWER": marker}]]}, "pointers": POINTERS}.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump([rule]))
    assert de_empathised(text, 0.9, load_language(code, tmp_path)) == cold


POINTERS = {"name": "help", "patterns": [[{"LOWER": "notruf"}]]}
