"""The texts of a release against the answers in the ledger of its build: each request is there, and brought what is released."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error
from empathy_eval.base.tabular import TableRow, table_batches
from empathy_eval.completions.asker import judged
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import Completion
from empathy_eval.design.dataset import SPLITS, split_of
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK, KINDS, NEAR_APATHETIC, SCORE, SELF_CHAT
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.generation import crossed_by_models, rewriting, self_chat
from empathy_eval.metrics.trust import Told
from empathy_eval.raters.judges.replay import Ledgers
from empathy_eval.releases.verify_answers import answer_faults
from empathy_eval.releases.verify_design import built_under
from empathy_eval.releases.verify_provenance import COLUMNS, KIND_OF, made_rows
from empathy_eval.releases.verify_requests import SEPARATOR, texts_of
from empathy_eval.releases.verify_rows import RESTORE, Cursor, read_rows

ASKED = ", ".join(f"'{name}'" for name in KINDS if name != SCORE.name)
OF_A_BUILD = f"SELECT 1 FROM sound_completions WHERE kind IN ({ASKED}) LIMIT 1"  # noqa: S608
TOKENS = ("input_tokens", "cached_tokens", "output_tokens")


def ledger_faults(folder: Path, manifest: dict[str, Any], paths: Sequence[Path]) -> list[Problem]:
    """All that the rows of a release say otherwise than the answers of its ledgers: those of its build, and those of its annotations.

    What is held against no ledger, as none of its kind was given, is told.

    Raises:
        InputError: if a ledger is not there or none, or none of them can be of this release.
        JobError: if a ledger is damaged.
    """
    with contextlib.ExitStack() as stack:
        ledgers = [stack.enter_context(Ledger(path, create=False, write=False)) for path in paths]
        builds = [one for one in ledgers if any(True for _ in one.query(OF_A_BUILD))]
        judges = Ledgers(ledgers)
        if not builds and "annotations" not in manifest:
            what = f"{folder} has no annotations to compare, and no given ledger is of a build"
            raise input_error("--ledger", what, "leave it out, or give the ledger of the build")
        found = _of_build(folder, manifest, builds) if builds else []
        if builds and not judges.judged():
            return [*found, *([_untold(folder, "what judges said", "of its annotations")] if "annotations" in manifest else [])]
        return [*found, *(answer_faults(folder, manifest, judges) if "annotations" in manifest else [])]


def _untold(folder: Path, what: str, of: str) -> Problem:
    return Told(str(folder), f"{what}: not compared with a ledger, because none {of} was given", "give it with --ledger too", what)


def _of_build(folder: Path, manifest: dict[str, Any], builds: Sequence[Ledger]) -> list[Problem]:
    """All texts that are not what their requests brought."""
    answers = _Answers(Ledgers(builds))
    found = list(_texts(folder, manifest, answers))
    if found and not answers.found:
        return [Problem(str(folder), "none of the given ledgers holds its answers", "give the ledger of its build with --ledger")]
    return [*found, *answers.cheaper(folder, manifest), *_candidates(folder, manifest, builds)]


@dataclass
class _Answers:
    """Answers of ledgers by the keys of a provenance, and what they took."""

    ledgers: Ledgers
    found: int = 0
    used: dict[str, Counter[str]] = field(default_factory=dict)

    def wrong(self, row: TableRow, text: str | None, names: Mapping[str, str], fresh: bool) -> str | None:
        """What is wrong with a row of the provenance; what was not taken before in its dialogue is counted."""
        completion = self.ledgers.get(row["request_key"])
        if completion is None:
            return "the ledger holds no answer to its request"
        self.found += 1
        if fresh:
            self.used.setdefault(completion.model, Counter()).update({"requests": 1, **asdict(completion.usage)})
        if completion.model != row["model"]:
            return f'was answered by "{completion.model[:80]}", but the release names "{row["model"]}"'
        kind = SELF_CHAT.name if row["what"] == "dialogue" else CROSSED.name if row["what"] == "crossed" else KIND_OF[row["what"]].name
        kind = CROSSED_CHECK.name if row["method"] == "judge" else kind
        return None if said_by(completion, kind, names) == text else "differs from the answer to its request"

    def cheaper(self, folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
        """Models that are said to have used less than their answers to what is released alone. What else was asked no key tells."""
        for model, used in sorted(self.used.items()):
            said = manifest["summary"]["usage"].get(model, {})
            for name in ("requests", *TOKENS):
                if said.get(name, 0) < used[name]:
                    what = f"{name} is {said.get(name, 0)}, but the released answers of the ledger alone used {used[name]}"
                    yield Problem(f"{folder / 'manifest.json'}: summary: usage: {model}", what, RESTORE)


def said_by(completion: Completion, kind: str, names: Mapping[str, str]) -> str | None:
    """What an answer says, as a build reads it, in one text; ``names`` are those of strategies; None if it is none that a build takes."""

    async def read(value: Any) -> str:
        if kind == SELF_CHAT.name:
            told, turns = self_chat.said_in(value)
            return SEPARATOR.join([told, *(f"{one.role}: {one.text}: {names.get(one.strategy or '')}" for one in turns)])
        if kind == CROSSED.name:
            return SEPARATOR.join(crossed_by_models.said_in(value).values())
        return str(value["choice"]) if kind == CROSSED_CHECK.name else rewriting.said_in(value)

    # Nothing in it waits, and there are a million of them.
    try:
        judged(completion, KINDS[kind].answer, read).send(None)
    except StopIteration as end:
        return end.value if isinstance(end.value, str) else None
    return None


def _texts(folder: Path, manifest: dict[str, Any], answers: _Answers) -> Iterator[Problem]:
    """Row by row of the provenance, which is known to be what the tables give."""
    path = folder / "provenance.parquet"
    catalogue = built_under(folder, manifest).catalogue
    taxonomy = catalogue.taxonomy if catalogue else load_taxonomy()
    named = {one.abbreviation: one.name for one in taxonomy.strategies}
    configs = [name for name in ("dialogues", "pairs", "controls", "crossed") if name in manifest["counts"]]
    cursors = {(config, split): Cursor(read_rows(folder, config, split, COLUMNS[config])) for config in configs for split in SPLITS}
    for dialogue_id, group in groupby(made_rows(path), lambda row: row["dialogue_id"]):
        there = {config: cursors[config, split_of(dialogue_id)].take(dialogue_id) for config in configs}
        taken, texts = set[str | None](), texts_of(there)
        for row in group:
            if row["method"] == "rules":
                continue
            text = texts.get((row["pair_id"], row["what"]), texts.get(row["request_key"]))
            if what := answers.wrong(row, text, named, row["request_key"] not in taken):
                yield Problem(f"{path}: {row['pair_id'] or dialogue_id}, {row['what']}", what, RESTORE)
            taken.add(row["request_key"])


def _candidates(folder: Path, manifest: dict[str, Any], ledgers: Sequence[Ledger]) -> Iterator[Problem]:
    """Texts that were refused, or not chosen, and that no answer says: of whichever dialogue, for equal requests have one answer.

    What rules made has no answer.
    """
    path, told = folder / "candidates.parquet", dict[str, set[int]]()
    by_rules = manifest["configuration"]["near_apathetic"] != "model"
    for batch in table_batches(path, ["pair_id", "variant", "text", "attempt"]):
        for row in batch.to_pylist():
            kind = KIND_OF[row["variant"]].name
            if kind not in told:
                found = (one for ledger in ledgers for _, one in ledger.rows("kind = ?", (kind,)))
                told[kind] = {hash(said_by(one, kind, {})) for one in found}
            if hash(row["text"]) not in told[kind] and not (by_rules and kind == NEAR_APATHETIC.name and row["attempt"] == 1):
                yield Problem(
                    f"{path}: {row['pair_id']}, {row['variant']}", f"no answer of the ledger holds text {row['attempt']}", RESTORE
                )
