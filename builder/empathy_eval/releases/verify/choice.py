"""The choice among candidates, made again: each released text is the one that the word list tells worst, and the one that was made."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.tabular import Rows, table_batches
from empathy_eval.completions.requests import LONGEST, sign_flaws
from empathy_eval.design.configuration import Configuration, candidates_of, language_of
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.design.dataset import SPLITS, TEXT_HASH, file_of, parts_of, split_of
from empathy_eval.design.language import Language
from empathy_eval.design.word_list import NOT_CHOSEN, UNIT, WORD_LIST, WordList, read_word_list
from empathy_eval.evaluation.corpus.pairs import candidate_rows
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import variant_flaws
from empathy_eval.releases.verify.provenance import KIND_OF
from empathy_eval.releases.verify.rows import RESTORE, read_rows
from empathy_eval.releases.verify.toxicity import TOXIC


def candidate_faults(folder: Path, manifest: dict[str, Any], config: Configuration, language: Language) -> Iterator[Problem]:
    """Texts that are said to be refused for what they do not have, or to have passed with what is refused.

    Reasons of checks of one's own are not looked at, and whether a text is toxic is scored elsewhere.
    """
    path, own = folder / "candidates.parquet", bool(manifest.get("checks"))
    dialogues = {split: Rows(file_of(folder, "dialogues", split)) for split in SPLITS}
    rows = (row for batch in table_batches(path) for row in batch.to_pylist())
    for name, group in groupby(rows, lambda row: row["pair_id"]):
        dialogue_id, turn = parts_of(name)
        dialogue = dialogues[split_of(dialogue_id)].get(dialogue_id)
        if dialogue is None or not turn < len(dialogue["turns"]) or dialogue["turns"][turn]["role"] != "helper":
            yield Problem(f"{path}: {name}", "is not a helper turn of the release", RESTORE)
            continue
        texts = [one["text"] for one in dialogue["turns"][: turn + 1]]
        flags = ("crisis",) if any(built_in.in_crisis(text, language) for text in texts) else ()
        for row in group:
            where, kind = f"{path}: {name}, {row['variant']}", KIND_OF.get(row["variant"])
            if kind is None or len(row["text"]) > LONGEST or any(sign_flaws(row["text"])):
                yield Problem(where, "is not a text that a check could have judged", RESTORE)
                continue
            flaws = {one.reason for one in variant_flaws(kind, texts[-1], row["text"], flags, config.checks, language)}
            told = set(row["reasons"]) - {NOT_CHOSEN, TOXIC}
            if len(set(row["reasons"])) < len(row["reasons"]):
                yield Problem(where, f'"{row["text"][:40]}" is refused twice for the same reason', RESTORE)
            if flaws - told or (not own and told - flaws):
                said, wanted = (", ".join(sorted(some)) or "nothing" for some in (told, flaws))
                yield Problem(where, f'"{row["text"][:40]}" is listed as refused for {said}, but the checks give {wanted}', RESTORE)


Place = tuple[str, str]


@dataclass(frozen=True)
class _Beside:
    """What stands beside a released text: of the others that passed how many there are, the worst told one's score and number, and the
    number that is left for the released one (None: there is none)."""

    count: int
    giveaway: int
    attempt: int
    released: int | None


def choice_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Where candidates were asked for, every released text that is not the worst told of those that passed, or not the one that the
    provenance names; elsewhere any that is said to be not chosen."""
    configuration, path = manifest["configuration"], folder / "candidates.parquet"
    try:
        words = _words(folder, configuration)
        beside = dict[Place, _Beside]()
        for place, one in _beside(folder, words):  # what comes in two parts has no number that can be known
            beside[place] = replace(one, released=None) if place in beside else one
    except InputError as error:
        yield from error.problems
        return
    if words is None:
        for pair_id, variant in list(beside)[:1]:
            yield Problem(f"{path}: {pair_id}", f"a text of {variant} is {NOT_CHOSEN}, but only one candidate was asked for", RESTORE)
        return
    if words.digest != configuration["word_list"] or words.language != language_of(configuration):
        yield Problem(str(folder / WORD_LIST), "is not the word list that the candidates were chosen by", RESTORE)
        return
    yield from _texts(folder, manifest, words, beside)


def _words(folder: Path, configuration: Mapping[str, Any]) -> WordList | None:
    return read_word_list(folder / WORD_LIST) if candidates_of(configuration) > 1 else None


def _beside(folder: Path, words: WordList | None) -> Iterator[tuple[Place, _Beside]]:
    """By pair and variant what was accepted and not chosen."""
    for place, group in itertools.groupby(candidate_rows(folder), lambda row: (row["pair_id"], row["variant"])):
        rows = list(group)
        passed = [row for row in rows if row["reasons"] == [NOT_CHOSEN]]
        if passed and (words is None or place[1] not in CELLS):
            yield place, _Beside(len(passed), 0, 0, None)
        elif passed and words:
            least, attempt = min((words.giveaway(place[1], row["text"]), row["attempt"]) for row in passed)
            left = set(range(1, len(rows) + 2)) - {row["attempt"] for row in rows}
            yield place, _Beside(len(passed), least, attempt, left.pop() if len(left) == 1 else None)


def _texts(folder: Path, manifest: dict[str, Any], words: WordList, beside: Mapping[Place, _Beside]) -> Iterator[Problem]:
    hashes, most = _hashes(folder), candidates_of(manifest["configuration"]) - 1
    for config, variants in (("pairs", PAIR_VARIANTS), ("controls", tuple(one for one in CELLS if one not in PAIR_VARIANTS))):
        for split in SPLITS:
            for where, row in read_rows(folder, config, split):
                for variant in variants:
                    place = row["pair_id"], variant
                    what = None
                    if hashes.get(place) != digest_bytes(row[variant].encode()):
                        what = "is not the text that provenance.parquet names"
                    elif other := beside.get(place):
                        what = _misplaced(words, variant, row[variant], other, most)
                    if what:
                        yield Problem(where, f'"{row["pair_id"]}": {variant} {what}', RESTORE)


def _misplaced(words: WordList, variant: str, text: str, other: _Beside, most: int) -> str | None:
    """What is wrong with a released text beside the others that passed."""
    if other.released is None:
        return "has no number of its own among its candidates"
    if other.count > most:
        return f"has {other.count} candidates that were not chosen, but there can be {most} at most"
    own = words.giveaway(variant, text)
    if (own, other.released) <= (other.giveaway, other.attempt):
        return None
    told = f"the word list gives it {own / UNIT:+.6f}, and candidate {other.attempt} {other.giveaway / UNIT:+.6f}"
    return f"is not the candidate that words alone identify least well: {told}"


def _hashes(folder: Path) -> dict[Place, str | None]:
    """By pair and variant the hash of the text that was made."""
    found = dict[Place, str | None]()
    for batch in table_batches(folder / "provenance.parquet", ["pair_id", "what", TEXT_HASH]):
        found |= {(row["pair_id"], row["what"]): row[TEXT_HASH] for row in batch.to_pylist()}
    return found
