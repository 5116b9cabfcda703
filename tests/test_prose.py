"""The documents: no sentence has more than thirty words, except those that are listed here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_WORDS = 30
# Longer entries: a bibliographic title has the words that it has.
LONGER = ("- *EmpathyScore:", "- *When Large", "- *EMPATH:", "- *Performance Evaluation Metrics")
CODE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
# The end of a sentence: a mark before a capital, a quote, code or emphasis. An item of a list or a cell of a table is its own sentence.
END = re.compile(r"(?<=[.!?])[)*_\"”]*\s+(?=[A-Z*_`\"“(\[\d])")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page of Markdown, without its code and tables of figures."""
    for block in re.split(r"\n\s*\n|^(?=\s*(?:[-*]|\d+\.)\s)|^#.*$|^(?=\|)|\|", CODE.sub("\n\n", text), flags=re.MULTILINE):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block)
        plain = re.sub(r"`[^`]*`", "Code", plain)
        yield from END.split(" ".join(plain.split()))


def words(sentence: str) -> int:
    return len(re.findall(r"[^\W_]+(?:['’.,-][^\W_]+)*", sentence))


def too_long() -> list[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        f"{page.relative_to(ROOT)}: {words(one)} words: {one}"
        for page in pages
        for one in sentences(page.read_text(encoding="utf-8"))
        if words(one) > MOST_WORDS and not one.startswith(LONGER)
    ]


def test_no_sentence_of_the_documents_has_more_than_thirty_words() -> None:
    assert not (found := too_long()), "\n".join(found)


def test_sentences_are_told_apart_and_their_words_counted() -> None:
    text = "One `a b c` two. Three\nfour; *Five*.\n\n- six\n- seven\n\n```sh\nnot this\n```\n| a | b |\n"
    assert [one for one in sentences(text) if words(one)] == ["One Code two.", "Three four; *Five*.", "- six", "- seven", "a", "b"]
    assert words("a well-kept don't 1,000 4.5") == 5
