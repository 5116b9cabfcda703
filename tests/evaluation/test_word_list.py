"""The frozen word list: the audit's weights of words alone, in a form that a configuration takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.commands.shortcuts import shortcuts
from empathy_eval.design.contrasts import RAW, STANCE_FAR, STANCE_NEAR
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.word_list import UNIT, read_word_list
from empathy_eval.evaluation.shortcuts.shortcuts import TELLTALE, learn_word_list

from tests.evaluation.test_shortcuts import changed


@pytest.mark.e2e
def test_the_heaviest_words_are_the_telltale_words_of_the_audit_with_their_weights(seeds: Path, tmp_path: Path) -> None:
    found = shortcuts(seeds, without=["embedding"], out=tmp_path / "words.json")
    words, manifest = read_word_list(tmp_path / "words.json"), read_manifest(seeds)
    assert words.release == {name: manifest[name] for name in ("name", "version", "seal")} and words.language == "en"
    assert set(words.contrasts) == {RAW, STANCE_NEAR, STANCE_FAR}
    for one in found.contrasts:
        if weights := words.contrasts.get(one.contrast):
            assert (weights.kind, weights.cold, weights.pairs) == (one.kind, one.cold, one.pairs)
            assert "words,empathy-eval,casefolded" in weights.signature and "learned:all-pairs" in weights.signature
            for sign, told in ((1, one.telltale_kind), (-1, one.telltale_cold)):
                best = sorted(weights.words, key=lambda word: (-sign * weights.words[word], word))[:TELLTALE]
                assert [(word, weights.words[word] / UNIT) for word in best] == [(word.word, word.weight) for word in told]


def test_the_same_release_gives_the_same_bytes_and_what_is_read_is_what_was_written(light: Path, tmp_path: Path) -> None:
    words = learn_word_list(light)
    (tmp_path / "words.json").write_text(words.text)
    again = read_word_list(tmp_path / "words.json")
    assert (again, again.digest, again.text) == (words, words.digest, learn_word_list(light).text)
    assert all(isinstance(weight, int) for one in json.loads(words.text)["contrasts"].values() for weight in one["words"].values())


def test_a_release_without_controls_tells_every_variant_by_its_pairs(light: Path, tmp_path: Path) -> None:
    bare = changed(light, tmp_path / "bare", lambda row: None if "near_empathetic" in row else row)
    words = learn_word_list(bare)
    assert list(words.contrasts) == [RAW]
    assert {words.contrast_of(name) for name in ("apathetic", "near_empathetic", "empathetic", "far_apathetic")} == {RAW}
    both = learn_word_list(light)
    assert [both.contrast_of(name) for name in ("apathetic", "far_apathetic")] == [STANCE_NEAR, STANCE_FAR]


def test_a_single_dialogue_teaches_no_words(light: Path, tmp_path: Path) -> None:
    one = changed(light, tmp_path / "one", lambda row: row if row["scenario_id"] == 3 else None)
    with pytest.raises(InputError, match="has no pairs of two different dialogues"):
        learn_word_list(one)
