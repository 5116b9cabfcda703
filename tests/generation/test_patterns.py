"""Phrases as data."""

import itertools
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Literal

import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.design.language import Language, english, load_language
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import description
from empathy_eval.generation.patterns import load_patterns, tokens
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import filter_spans

Form = Literal["NFC", "NFD"]
PIECES = ["I", "can't", "cannot", "go", "on", "want", "to", "die", "you", "should", "take", "some", "antidepressants", "20mg", "he", "hit",
          "me", ".", "end", "it", "all", "helpline", "kill", "myself", "better", "off", "without", "so", "hard"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join), st.sampled_from(["crisis", "safety", "pointers", "apathetic"]))
def test_the_shortcut_changes_no_match(text: str, name: str) -> None:
    patterns = load_patterns(name)
    doc = tokens("en").make_doc(text)
    full = [(span.label_, span.text) for span in filter_spans(patterns.matcher(doc, as_spans=True))]
    assert list(patterns.find(text)) == full


def test_a_pattern_that_spacy_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "safety.yaml").write_text("- name: odd\n  patterns:\n    - [{LOWERCASE: x}]\n")
    with pytest.raises(InputError, match=r"safety\.yaml: odd: spaCy refuses a pattern"):
        load_patterns("safety", load_language("en", tmp_path))


@pytest.mark.e2e
def test_patterns_are_found_without_loading_torch_and_torch_can_be_loaded_later() -> None:
    code = "import sys; from empathy_eval.generation.patterns import tokens; tokens('en'); assert 'torch' not in sys.modules; import torch"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def language_of(folder: Path, code: str, **files: object) -> Language:
    for name, rules in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(rules, allow_unicode=True))
    return load_language(code, folder)


def rule(*words: str) -> list[dict[str, object]]:
    return [{"name": "danger", "patterns": [[{"LOWER": word} for word in words]]}]


@pytest.mark.parametrize(
    ("code", "words", "text"),
    [
        ("de", ("nicht", "mehr", "leben"), "Ich will nicht mehr leben."),
        ("zh", ("自", "杀"), "我想自杀。"),
        # Languages that spaCy does not know: a made-up one, and one whose script has no spaces.
        ("qtz", ("zü",), "Brel zü."),
        ("my", ("စာ",), "မြန်မာစာ။"),
    ],
)
def test_crisis_language_of_another_language_is_found_by_its_rules(code: str, words: tuple[str, ...], text: str, tmp_path: Path) -> None:
    language = language_of(tmp_path, code, crisis=rule(*words))
    assert built_in.in_crisis(text, language) and not built_in.in_crisis("12.", language)
    assert not built_in.in_crisis(text, english())


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        ("de", ("Suizid",), 'danger: LOWER "Suizid" is not in lower case and matches nothing\n  Fix: write "suizid"'),
        ("de", ("nicht mehr",), 'danger: LOWER "nicht mehr" is 2 tokens'),
        ("zh", ("自杀",), 'LOWER "自杀" is 2 tokens and matches nothing\n  Fix: write one pattern token for each: 自, 杀'),
    ],
)
def test_a_word_that_no_token_can_be_is_refused(code: str, words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_patterns("crisis", language_of(tmp_path, code, crisis=rule(*words)))
    assert said in str(caught.value)


@pytest.mark.parametrize("token", [{"LOWER": {"REGEX": "("}}, {"_": {"x": 1}}, {"LEMMA": "a"}, {"LOWER": "a", "OP": "x"}])
def test_a_pattern_that_fails_only_on_a_text_is_refused_before_there_is_one(token: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="crisis.yaml: odd: spaCy refuses a pattern"):
        load_patterns("crisis", language_of(tmp_path, "de", crisis=[{"name": "odd", "patterns": [[token]]}]))


def test_a_pattern_without_words_is_looked_for_in_every_text(tmp_path: Path) -> None:
    both = [*rule("suizid"), {"name": "long", "patterns": [[{"LENGTH": {">": 9}}]]}]
    assert load_patterns("crisis", language_of(tmp_path, "de", crisis=both)).find("Hoffnungslos.") == (("long", "Hoffnungslos"),)


def test_tokens_that_need_a_package_name_it() -> None:
    with pytest.raises(InputError, match=r'language: vi: spaCy\'s tokens of it cannot be had.*\n  Fix: pip install "pyvi"'):
        tokens("vi")


def test_a_description_is_held_against_the_rules_of_its_language(tmp_path: Path) -> None:
    opening = {"name": "opening", "patterns": [[{"LOWER": "die"}, {"LOWER": "person"}]]}
    first = {"name": "first_person", "patterns": [[{"LOWER": {"IN": ["ich", "mein"]}}]]}
    language = language_of(tmp_path, "de", description=[opening, first])
    assert description("Die Person hat einen Hund verloren.", language) == []
    assert [one.reason for one in description("Ein Mann sagt: Mein Hund ist tot. Die Person weint.", language)] == [
        "description_opening", "description_person",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "token",
    [
        {"lower": "DIE"}, {"ENT_TYPE": "X"}, {"IS_SENT_START": True}, {"LOWER": {"IN": []}}, {"LOWER": ""}, {"NORM": "DIE"},
        {"LOWER": {"FUZZY": {"IN": ["ABC"]}}}, {"LOWER": {"FUZZY2": "ABC"}}, {"orth": {"IN": ["nicht mehr"]}},
    ],
)  # fmt: skip
def test_a_token_that_nothing_can_be_is_refused(token: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"crisis\.yaml: danger: .* matches nothing"):
        load_patterns("crisis", language_of(tmp_path, "de", crisis=[{"name": "danger", "patterns": [[token]]}]))


@pytest.mark.parametrize("token", [{"lower": "die"}, {"NORM": "Abbildung"}, {"LOWER": {"NOT_IN": []}}, {"LOWER": {"REGEX": "[A-Z]|d"}}])
def test_a_token_that_something_can_be_is_taken(token: dict[str, object], tmp_path: Path) -> None:
    assert load_patterns("crisis", language_of(tmp_path, "de", crisis=[{"name": "danger", "patterns": [[token]]}])).find("die Abb.")


@pytest.mark.parametrize(("typed", "form"), itertools.product(("NFC", "NFD"), repeat=2))
def test_a_word_is_found_however_its_marks_were_typed(typed: Form, form: Form, tmp_path: Path) -> None:
    language = language_of(tmp_path, "de", crisis=rule(unicodedata.normalize(typed, "schönes")))
    assert built_in.in_crisis(unicodedata.normalize(form, "Ein schönes Ende."), language)
