"""The texts that were not released, judged again: each is refused for what it says, or passed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem
from empathy_eval.base.tabular import Rows, table_batches
from empathy_eval.completions.answer_text import LONGEST, sign_flaws
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.dataset import SPLITS, file_of, parts_of, split_of
from empathy_eval.design.language import Language
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.checks import safety
from empathy_eval.generation.checks.variant import variant_flaws
from empathy_eval.releases.verify_provenance import KIND_OF
from empathy_eval.releases.verify_rows import RESTORE
from empathy_eval.releases.verify_toxicity import TOXIC


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
        flags = ("crisis",) if any(safety.in_crisis(text, language) for text in texts) else ()
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
