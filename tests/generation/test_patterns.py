"""Phrases as data."""

import subprocess
import sys
from pathlib import Path

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.language import load_language
from empathy_eval.generation.patterns import load_patterns, tokens
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import filter_spans

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


def test_patterns_are_found_without_loading_torch_and_torch_can_be_loaded_later() -> None:
    code = "import sys; from empathy_eval.generation.patterns import tokens; tokens('en'); assert 'torch' not in sys.modules; import torch"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
