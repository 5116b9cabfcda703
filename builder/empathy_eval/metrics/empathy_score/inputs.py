"""What students read: the end of the conversation and the reply, as a pair in the form of their encoder's own tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.metrics.empathy_score.model_folder import ANEW
from empathy_eval.metrics.protocol import Context

SPEAKERS = {"seeker": "Seeker", "helper": "Helper"}
# The ids of the tokens of a pair, and of which text each is.
Ids = tuple[list[int], list[int]]


def told(context: Context) -> str:
    """A conversation as text: a line a turn, each with who speaks."""
    return "\n".join(f"{SPEAKERS.get(turn['role'], turn['role'])}: {' '.join(turn['text'].split())}" for turn in context)


class Inputs:
    """Pairs of a conversation and a reply as ids.

    The reply is kept whole, and of the conversation the last turns that fit, turns dropped from the front. Of a turn too long by itself the
    end is kept, and of a reply too long by itself the beginning.
    """

    def __init__(self, tokenizer: bytes, most: int) -> None:
        """Takes a ``tokenizer.json``; ``most`` is the number of tokens that a pair has at most.

        Raises:
            InputError: if it cannot be read.
        """
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Any = Tokenizer.from_str(tokenizer.decode())
        # The library raises plain exceptions.
        except Exception as error:
            raise input_error("tokenizer.json", f"cannot be read: {str(error)[:200]}", ANEW) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._most = most - self._tokenizer.num_special_tokens_to_add(True)

    def of(self, contexts: Sequence[str], replies: Sequence[str]) -> list[Ids]:
        """The ids of each pair."""
        before, after = (self._tokenizer.encode_batch(list(texts), add_special_tokens=False) for texts in (contexts, replies))
        return [self._pair(*one) for one in zip(contexts, before, after, strict=True)]

    def _pair(self, context: str, before: Any, after: Any) -> Ids:
        after.truncate(self._most)
        room = self._most - len(after.ids)
        if len(before.ids) > room:
            before.truncate(_kept(context, [start for start, _ in before.offsets], room), direction="left")
        pair = self._tokenizer.post_process(before, after)
        return pair.ids, pair.type_ids


def _kept(context: str, starts: Sequence[int], room: int) -> int:
    """How many of the last tokens are kept: those of the most whole turns that fit, or as many as fit where not even one does."""
    turns = [0, *(place + 1 for place, sign in enumerate(context) if sign == "\n")]
    counts = [sum(start >= turn for start in starts) for turn in turns]
    return next((count for count in counts if 0 < count <= room), room)
