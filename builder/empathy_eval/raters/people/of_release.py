"""What raters of a review said of the texts of a release, made ready to stand beside scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.design.dataset import SPLITS
from empathy_eval.evaluation.corpus import PAIR
from empathy_eval.evaluation.own_texts import Texts, texts_of_release
from empathy_eval.evaluation.score_file import VARIANTS
from empathy_eval.raters.agreement import Table, read_table
from empathy_eval.raters.review.sheets import text_hash

ITEM = "pair_id:variant, as in the table of ratings that review import writes"
REJECTED, GONE, OTHER = "of rejected texts", "of texts that are not in these splits of the release", "of other texts of the same id"
STRANGE = "of replies of systems, which are no part of the release,"


def ratings_of_release(release_dir: Path, path: Path, splits: Sequence[str] = SPLITS) -> tuple[Texts, Table, tuple[str, ...]]:
    """The rated texts, their ratings in a table, and in words how many ratings are left out and why.

    Ratings of texts that a check had refused, of texts that the release does not have (any more), of another text of the same id, and of
    replies of systems are left out.

    Raises:
        InputError: for a faulty table, items that name no text of a pair, and if nothing is left.
    """
    table = read_table(path)
    names = _named(path, table)
    texts = texts_of_release(release_dir, {":".join(parts[:2]) for parts in names.values()}, splits)
    reply = dict(zip(texts.items, texts.replies, strict=True))
    left = Counter[str]()

    def rows() -> Iterator[tuple[str, str, float, str]]:
        for item, rater, rating, criterion in table.rows():
            name, end = ":".join(names[item][:2]), "".join(names[item][2:])
            if not names[item][1]:
                left[STRANGE] += 1
            elif end.startswith("rejected-"):
                left[REJECTED] += 1
            elif name not in reply:
                left[GONE] += 1
            elif end and end != text_hash(reply[name]):
                left[OTHER] += 1
            else:
                yield name, rater, rating, criterion

    some = list(rows())
    if not some:
        raise input_error(path, f"rates no text of {release_dir} in {', '.join(splits)}", "name the release that was rated")
    kept = Table.of(some)
    there = set(kept.items)
    rated = texts.take([row for row, item in enumerate(texts.items) if item in there])
    return rated, kept, tuple(f"ratings {why} are left out: {count}" for why, count in sorted(left.items()))


def _named(path: Path, table: Table) -> dict[str, list[str]]:
    """What each item names: a pair, a variant (or nothing, and then a system), and what tells it from other texts of these."""
    names = {item: item.split(":", 2) for item in table.items}
    odd = [item for item, parts in names.items() if len(parts) < 2 or not PAIR.fullmatch(parts[0]) or parts[1] not in (*VARIANTS, "")]
    if odd:
        raise InputError([Problem(str(path), f'"{item}" names no text of a release', f"items are {ITEM}") for item in odd[:100]])
    if not any(parts[1] for parts in names.values()):
        raise input_error(path, "rates no variant of a text, only replies of systems", f"name a table of ratings of a release: {ITEM}")
    return names
