"""Texts of one's own: what a file may hold, means and comparisons by hand, and warnings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.evaluation.external.custom_means import compare_systems
from empathy_eval.evaluation.external.custom_texts import CustomTexts, read_own_scores, read_texts, score_custom_texts
from empathy_eval.evaluation.shortcuts.linear_classifiers import Lexicon
from empathy_eval.evaluation.shortcuts.texts import AuditInput
from empathy_eval.evaluation.shortcuts.texts import read_texts as read_shortcut_texts
from empathy_eval.metrics.lexical import Echo, Length
from empathy_eval.metrics.protocol import MeanMetric, Segments
from empathy_eval.metrics.registry import MetricSelection, find
from empathy_eval.metrics.scoring import PLAIN


def written(folder: Path, *rows: dict[str, Any] | str, name: str = "own.jsonl") -> Path:
    path = folder / name
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows))
    return path


def texts_of(folder: Path, *rows: tuple[str, str, str]) -> CustomTexts:
    return read_texts(written(folder, *({"system": system, "context": context, "reply": reply} for system, context, reply in rows)))


def test_a_context_is_a_text_or_turns_and_an_item_is_called_by_its_line_if_it_has_no_name(tmp_path: Path) -> None:
    turns = [{"role": "seeker", "text": "I am sad."}]
    path = written(
        tmp_path, {"context": "I am sad.", "reply": "Oh."}, "", {"item": "b", "context": turns, "reply": "Why?", "reference": "Tell me."}
    )
    texts = read_texts(path)
    assert texts.items == ["line 1", "b"] and texts.contexts == [turns, turns] and len(set(texts.contexts_of)) == 1
    assert (texts.references, texts.systems) == ([None, "Tell me."], ["", ""])


def test_all_that_is_wrong_with_a_file_is_said_at_once_with_its_line(tmp_path: Path) -> None:
    good = {"item": "a", "context": "Hello", "reply": "Hi"}
    rows = (
        good, good, "no json", {"context": " ", "reply": "x"}, {"context": "x"},
        {"context": [{"role": "system", "content": "x"}], "reply": "y"},
        {**good, "sytem": "A"}, {"context": [], "reply": "y"}, {"context": 7, "reply": "y"},
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        read_texts(written(tmp_path, *rows))
    said = str(caught.value)
    for part in (
        'line 2: "a" is also the item of line 1', "line 3: is not JSON", 'line 4: context: " "', 'line 5: misses "reply"',
        'line 6: context[0]: role: "system" is not known\n  Fix: use one of seeker, helper, user, assistant',
        'has unknown "sytem"', "line 8: context", "line 9: context: 7 is not of type string or array",
    ):  # fmt: skip
        assert part in said, part
    assert 'did you mean "system"?' in said
    with pytest.raises(InputError, match="holds no text"):
        read_texts(written(tmp_path))
    with pytest.raises(InputError, match="1 of 2 lines have no system, first line 2"):
        read_texts(written(tmp_path, {**good, "system": "A"}, {**good, "item": "b"}))


def test_messages_of_a_chat_are_the_same_context_as_turns(tmp_path: Path) -> None:
    turns = [{"role": "seeker", "text": "I am sad."}, {"role": "helper", "text": "Why?"}, {"role": "seeker", "text": "My cat died."}]
    names = {"seeker": "user", "helper": "assistant"}
    messages = [{"role": names[one["role"]], "content": one["text"]} for one in turns]
    mixed = [turns[0], messages[1], turns[2]]
    texts = read_texts(written(tmp_path, *({"context": one, "reply": "Oh."} for one in (turns, messages, mixed))))
    assert texts.contexts == [turns] * 3 and len(set(texts.contexts_of)) == 1


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        ({"role": "user"}, "context[0]: {'role': 'user'} does not have enough properties"),
        ({"role": "user", "content": "a", "text": "b"}, "has too many properties"),
        ({"content": "a", "text": "b"}, 'context[0]: misses "role"'),
        ({"role": "user", "content": [{"type": "text", "text": "a"}]}, "context[0]: content: "),
        ({"role": "user", "content": " "}, 'context[0]: content: " " does not match'),
        ({"role": "tool", "content": "a"}, 'context[0]: role: "tool" is not known\n  Fix: use one of seeker, helper, user, assistant'),
    ],
)
def test_a_turn_that_is_none_is_refused_with_its_line(turn: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_texts(written(tmp_path, {"context": "Hello", "reply": "Hi"}, {"context": [turn], "reply": "Hi"}))
    assert "own.jsonl: line 2: context[0]" in str(caught.value) and said in str(caught.value)


def test_a_row_of_preferences_is_two_texts_of_the_systems_chosen_and_rejected(tmp_path: Path) -> None:
    prompt = [{"role": "user", "content": "I am sad."}]
    row = {"prompt": prompt, "chosen": [{"role": "assistant", "content": "Oh no."}], "rejected": "So what."}
    texts = read_texts(written(tmp_path, {"pair_id": "001-seed-t01", "scenario": "Loss", **row}, row))
    assert texts.items == ["001-seed-t01:chosen", "001-seed-t01:rejected", "line 2:chosen", "line 2:rejected"]
    assert texts.systems == ["chosen", "rejected"] * 2 and texts.replies == ["Oh no.", "So what."] * 2
    assert texts.contexts == [[{"role": "seeker", "text": "I am sad."}]] * 4
    (gap,) = compare_systems(score_custom_texts(texts, MetricSelection((Length(),), ()))).comparisons
    assert (gap.system, gap.other, gap.difference and gap.difference.value) == ("chosen", "rejected", 0)


def test_all_that_is_wrong_with_rows_of_preferences_is_said_at_once(tmp_path: Path) -> None:
    row = {"prompt": "Hello", "chosen": "Hi", "rejected": "What"}
    two = [{"role": "assistant", "content": "a"}] * 2
    rows = (
        row | {"pair_id": "p"},
        row | {"pair_id": "p"},
        {"prompt": "x"},
        row | {"chosen": two},
        row | {"rejected": [{"role": "user", "content": "a"}]},
    )
    with pytest.raises(InputError) as caught:
        read_texts(written(tmp_path, *rows))
    said = str(caught.value)
    for part in (
        'line 2: "p:chosen" is also the item of line 1', 'line 3: misses "chosen", "rejected"', "line 4: chosen: has 2 entries, at most 1",
        'line 5: rejected[0]: role: "user" is not known',
    ):  # fmt: skip
        assert part in said, part


def test_a_metric_that_needs_a_reference_or_whole_sets_of_texts_is_refused_in_words(tmp_path: Path) -> None:
    texts = texts_of(tmp_path, ("A", "Hello", "Hi there"), ("A", "Bye", "Bye"))
    with pytest.raises(InputError) as caught:
        score_custom_texts(texts, find(["rouge-l", "dist-1", "length"], {}))
    said = str(caught.value)
    assert "reads a reference, and 2 of 2 texts have none, first line 1" in said and "whole sets of texts" in said


def test_means_and_comparisons_by_hand_over_the_contexts_that_both_systems_answer(tmp_path: Path) -> None:
    rows = [
        ("A", "c1", "a b"),
        ("A", "c2", "a b c d"),
        ("A", "c3", "a"),
        ("B", "c1", "a"),
        ("B", "c2", "a b"),
        ("B", "c2", "a b c d"),
        ("B", "c4", "x"),
    ]
    found = compare_systems(score_custom_texts(texts_of(tmp_path, *rows), MetricSelection((Length(),), ())))
    assert [(one.system, one.texts, one.contexts, one.score and one.score.value) for one in found.means] == [
        ("A", 3, 3, pytest.approx(7 / 3, abs=1e-6)), ("B", 4, 3, 2.0),
    ]  # fmt: skip
    (gap,) = found.comparisons
    # Of c1 and c2 alone: (2 + 4) / 2 minus (1 + 2 + 4) / 3.
    assert (gap.contexts, gap.left_out) == (2, 2) and gap.difference and gap.difference.value == pytest.approx(3 - 7 / 3, abs=1e-6)


def test_two_systems_that_are_one_do_not_differ_and_clearly_different_ones_do(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = list[tuple[str, str, str]]()
    for place in range(40):
        length, more = int(rng.integers(3, 9)), 2 + int(rng.integers(2))
        rows += [(name, f"c{place}", " ".join(["w"] * size)) for name, size in (("A", length), ("B", length), ("C", length + more))]
    found = compare_systems(score_custom_texts(texts_of(tmp_path, *rows), MetricSelection((Length(),), ())))
    same, *others = [one.difference for one in found.comparisons]
    assert same and (same.value, same.low, same.high, same.p) == (0, 0, 0, 1)
    assert all(one and one.decided and one.p_corrected == 0.0015 for one in others)
    assert compare_systems(score_custom_texts(texts_of(tmp_path, *rows), MetricSelection((Length(),), ()))) == found


def test_a_single_context_has_no_interval_and_texts_without_a_score_are_counted(tmp_path: Path) -> None:
    class Picky(MeanMetric):
        name, signature, reads = "picky", "s", ()

        def score(self, text: str) -> float:
            if "?" in text:
                raise ValueError("no questions")
            return 1.0

    found = compare_systems(
        score_custom_texts(texts_of(tmp_path, ("A", "c", "x"), ("A", "c", "y?"), ("B", "c", "z?")), MetricSelection((Picky(),), ()))
    )
    one, none = found.means
    assert one.score and (one.texts, one.left_out, one.score.value, one.score.low) == (1, 1, 1.0, None)
    assert none.score is None and found.comparisons[0].difference is None and len(found.faults) == 1
    assert "NaN" not in json.dumps(found.to_json())


class English(MeanMetric):
    """Warns of what is not in its range."""

    name, signature, reads = "english", "s", ()

    def score(self, text: str) -> float:
        return 1.0

    def outside(self, segments: Segments) -> Sequence[tuple[int, str]]:
        return [(row, "not in English") for row, text in enumerate(segments.texts) if not text.isascii()] + [(0, "too short")]


def test_a_metric_warns_of_texts_outside_of_what_it_was_made_for_by_reason(tmp_path: Path) -> None:
    texts = texts_of(tmp_path, ("A", "c", "x"), *(("A", "c", "é" * size) for size in range(1, 6)))
    found = compare_systems(score_custom_texts(texts, MetricSelection((English(), Length()), ())))
    assert [(one.reason, one.texts, one.of, one.first) for one in found.outside] == [
        ("not in English", 5, 6, ("line 2", "line 3", "line 4")), ("too short", 1, 6, ("line 1",)),
    ]  # fmt: skip
    assert found.means[0].score and found.means[0].score.value == 1.0


def test_a_warning_that_fails_is_a_fault_and_the_scores_are_kept(tmp_path: Path) -> None:
    class Broken(English):
        def outside(self, segments: Segments) -> Sequence[tuple[int, str]]:
            return [(99, "nowhere")]

    found = compare_systems(score_custom_texts(texts_of(tmp_path, ("A", "c", "x")), MetricSelection((Broken(),), ())))
    assert found.means[0].score and not found.outside and "IndexError" in str(found.faults[0])


def test_scores_of_ones_own_texts_come_from_a_file_by_item(tmp_path: Path) -> None:
    texts = read_texts(written(tmp_path, {"item": "a", "context": "c", "reply": "r"}, {"item": "b", "context": "d", "reply": "r"}))
    path = tmp_path / "judge.csv"
    path.write_text("item,score,note\na,1.5,x\n")
    (column,) = score_custom_texts(texts, MetricSelection((), ()), [read_own_scores(path, texts.items)]).columns
    assert column.metric.name == "judge" and column.scored.tolist() == [True, False] and column.scores[0] == 1.5
    path.write_text("item,score\na,high\nz,1\nb,nan\nb,1\nb,2\n")
    with pytest.raises(InputError) as caught:
        read_own_scores(path, texts.items)
    for part in ('line 2: score: "high"', 'line 3: "z" is not an item', 'line 4: score: "nan"', 'line 6: "b" was scored before'):
        assert part in str(caught.value)
    path.write_text("itm,score\na,1\n")
    with pytest.raises(InputError, match='did you mean "item"'):
        read_own_scores(path, texts.items)
    (tmp_path / "long.csv").write_text("item,score\nlong-name-2,1\n")
    with pytest.raises(InputError, match='did you mean "long-name-1"'):
        read_own_scores(tmp_path / "long.csv", ["long-name-1", "b"])


def test_the_echo_is_that_of_the_shortcut_audit(light: Path) -> None:
    corpus = read_corpus(light, "pairs", ("apathetic", "empathetic"), contexts=True)
    audited = read_shortcut_texts(AuditInput.of(light), Lexicon(), PLAIN, None, 0)["pairs"].untrained["echo"][1]
    for name, texts in corpus.variants.items():
        found = [Echo().score(text, context) for text, context in zip(texts, corpus.contexts, strict=True)]
        assert found == pytest.approx(audited[name].tolist())
