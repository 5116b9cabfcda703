"""Words, edit ratio, overlap, shingles."""

from fractions import Fraction

from empathy_eval.base.text import edit_ratio, joined, overlap, shingles, spaced, words
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

SENTENCE = st.lists(st.sampled_from(["I", "it's", "well-worn", "rain", "naïve", "3", "—", "Straße", "a"]), max_size=12).map(" ".join)


def test_an_apostrophe_or_hyphen_inside_a_word_belongs_to_it() -> None:
    assert words("Don’t stop: it's a well-worn 'path'—isn't_it?") == ("don’t", "stop", "it's", "a", "well-worn", "path", "isn't", "it")


def test_edit_ratio_counts_word_edits_over_the_longer_text() -> None:
    # one word exchanged, one put in: 2 edits over 5 words
    assert edit_ratio("that is so hard", "That is really quite hard") == float(Fraction(2, 5))


def test_edit_ratio_of_nothing_is_zero_and_of_nothing_in_common_is_one() -> None:
    assert edit_ratio("", "…") == 0
    assert edit_ratio("a b", "c d") == 1


@given(SENTENCE, SENTENCE)
def test_edit_ratio_is_symmetric_bounded_and_zero_only_for_the_same_words(a: str, b: str) -> None:
    assert edit_ratio(a, b) == edit_ratio(b, a)
    assert 0 <= edit_ratio(a, b) <= 1
    assert (edit_ratio(a, b) == 0) == (words(a) == words(b))


def _levenshtein(a: list[str], b: list[str]) -> int:
    """The textbook recurrence, as a second opinion."""
    if not a or not b:
        return len(a) + len(b)
    return min(_levenshtein(a[1:], b) + 1, _levenshtein(a, b[1:]) + 1, _levenshtein(a[1:], b[1:]) + (a[0] != b[0]))


@given(st.lists(st.sampled_from("xyz"), max_size=5), st.lists(st.sampled_from("xyz"), max_size=5))
def test_edit_ratio_agrees_with_the_textbook_recurrence(a: list[str], b: list[str]) -> None:
    expected = _levenshtein(a, b) / max(len(a), len(b), 1)
    assert edit_ratio(" ".join(a), " ".join(b)) == expected


@given(st.text(), st.text())
def test_overlap_equals_rouge_score(a: str, b: str) -> None:
    assert abs(overlap(a, b) - RougeScorer(["rougeL"]).score(a, b)["rougeL"].fmeasure) < 1e-12


def test_shingles_are_runs_of_words_and_a_short_text_is_one() -> None:
    assert shingles("a b c d e f") == {("a", "b", "c", "d", "e"), ("b", "c", "d", "e", "f")}
    assert shingles("a b") == {("a", "b")}


CHINESE = "我很难过，今天下雨。"


def test_a_chinese_text_has_overlap_1_with_itself_and_none_with_another() -> None:
    assert overlap(CHINESE, CHINESE, "zh") == 1 and edit_ratio(CHINESE, CHINESE, "zh") == 0
    assert overlap(CHINESE, "你好", "zh") == 0 and edit_ratio(CHINESE, "你好", "zh") == 1
    # Seven of eight characters, in their order: one is another.
    assert overlap(CHINESE, CHINESE.replace("我", "她"), "zh") == float(Fraction(7, 8))
    assert edit_ratio(CHINESE, CHINESE.replace("我", "她"), "zh") == float(Fraction(1, 8))
    assert overlap(CHINESE, CHINESE) == 0, "rouge-score, which English keeps, knows no such letter"


def test_german_words_keep_their_letters_where_rouge_score_drops_them() -> None:
    one, other = "Das fühlt sich schön an, Jörg.", "Das fühlt sich schön an, Jürg."
    assert words(one, "de") == ("das", "fühlt", "sich", "schön", "an", "jörg")
    assert overlap(one, other, "de") == float(Fraction(5, 6)) and edit_ratio(one, other, "de") == float(Fraction(1, 6))
    assert words("über", "de") == words("u\u0308ber", "de"), "however an umlaut is written"


def test_words_of_other_scripts_are_whole_where_they_have_spaces_and_characters_where_they_have_none() -> None:
    assert words("हिन्दी में लिखा", "hi") == ("हिन्दी", "में", "लिखा")
    assert words("می‌خواهم بروم", "fa") == ("می‌خواهم", "بروم")
    assert words("ที่ ABC 12 食べた", "th") == ("ที่", "abc", "12", "食", "べ", "た")
    assert spaced("我 is 你。", "zh").split() == ["我", "is", "你", "。"] and spaced("我 is 你。") == "我 is 你。"
    assert joined(spaced(CHINESE + " is ABC。", "zh").split(), "zh") == CHINESE + " is ABC。"


@given(st.text())
def test_every_text_of_any_language_is_wholly_like_itself(text: str) -> None:
    assert edit_ratio(text, text, "xx") == 0
    assert overlap(text, text, "xx") == (1 if words(text, "xx") else 0)
