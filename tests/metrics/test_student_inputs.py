"""What students read: pairs in the tokenizer's own form, whole replies, and the last turns that fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from empathy_eval.metrics.empathy_score.students import PairTokenizer, conversation_text
from tokenizers import Tokenizer

from tests.doubles.encoders import made_encoder

SAID = [{"role": "seeker", "text": "the\na"}, {"role": "helper", "text": "is it"}, {"role": "seeker", "text": "so now here"}]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, str], str]:
    """The tokens of a pair of so many at most."""
    file: Path = made_encoder(tmp_path_factory.mktemp("inputs") / "tiny") / "tokenizer.json"
    words = Tokenizer.from_file(str(file))

    def tokens(most: int, reply: str) -> str:
        ((ids, kinds),) = PairTokenizer(file.read_bytes(), most).of([conversation_text(SAID)], [reply])
        assert len(kinds) == len(ids) <= most
        return " ".join(str(words.id_to_token(one)) for one in ids)

    return tokens


def test_a_conversation_is_a_line_a_turn_with_who_speaks() -> None:
    assert conversation_text(SAID) == "Seeker: the a\nHelper: is it\nSeeker: so now here" and conversation_text([]) == ""


def test_a_pair_is_in_the_form_of_the_tokenizer(read: Callable[[int, str], str]) -> None:
    assert read(64, "warm on") == "<s> Seeker : the a Helper : is it Seeker : so now here </s> </s> warm on </s>"


def test_whole_turns_are_dropped_from_the_front_and_the_reply_is_kept(read: Callable[[int, str], str]) -> None:
    # Four marks and two words of the reply leave 12, then 8, then 5 of the 13 tokens of the conversation.
    assert read(18, "warm on") == "<s> Helper : is it Seeker : so now here </s> </s> warm on </s>"
    assert read(14, "warm on") == "<s> Seeker : so now here </s> </s> warm on </s>"
    assert read(11, "warm on") == "<s> Seeker : so now here </s> </s> warm on </s>"


def test_of_what_is_too_long_by_itself_the_end_of_the_turn_and_the_beginning_of_the_reply_are_kept(read: Callable[[int, str], str]) -> None:
    assert read(8, "warm on") == "<s> now here </s> </s> warm on </s>"
    assert read(8, "warm on off cold the a") == "<s> </s> </s> warm on off cold </s>"
