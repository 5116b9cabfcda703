"""The texts and annotations of a release against the answers in its ledgers."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Finding, InputError, input_error, shortened, some_of
from empathy_eval.base.tabular import TableRow, table_batches
from empathy_eval.completions.asker import evaluate_answer
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import Completion
from empathy_eval.design.dataset import JUDGED, file_of, pair_id, parts_of, split_of
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK, KINDS, NEAR_APATHETIC, SCORE, SELF_CHAT
from empathy_eval.design.rubrics import Rubric, load_rubric, packaged_rubrics, rubric_of
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.generation import crossed_by_models, rewriting, self_chat
from empathy_eval.raters.judges.annotations import Annotated, dialogue_of
from empathy_eval.raters.judges.replay import Ledgers, Replay
from empathy_eval.releases.assemble.annotations import SHOWN, annotation_rows, count_annotations, released_cases, row_identity
from empathy_eval.releases.assemble.read_back import KIND_OF, RULES, outcome_of, read_back, tables_of
from empathy_eval.releases.verify.content import SEPARATOR, texts_of
from empathy_eval.releases.verify.files import released_rows

BUILD_KINDS = ", ".join(f"'{name}'" for name in KINDS if name != SCORE.name)
BUILD_ANSWER = f"SELECT 1 FROM sound_completions WHERE kind IN ({BUILD_KINDS}) LIMIT 1"  # noqa: S608
KIND_OF_TEXT = {"dialogue": SELF_CHAT, "crossed": CROSSED, **KIND_OF}
USAGE = ("requests", "input_tokens", "cached_tokens", "output_tokens")
# The rows of a pair or a whole dialogue, by config and identity.
CaseRows = dict[tuple[str, tuple[Any, ...]], TableRow]


def ledger_faults(folder: Path, manifest: dict[str, Any], paths: Sequence[Path]) -> list[Finding]:
    """Differences of a release from the answers in the ledgers of its build and of its annotations.

    Annotations are reported as not compared if no ledger of them is given.

    Raises:
        InputError: if a ledger cannot be read, or none of them can be of this release.
        JobError: if a ledger is damaged.
    """
    with contextlib.ExitStack() as stack:
        ledgers = [stack.enter_context(Ledger(path, create=False, write=False)) for path in paths]
        builds = [ledger for ledger in ledgers if any(True for _ in ledger.query(BUILD_ANSWER))]
        judges = Ledgers(ledgers)
        if not builds and "annotations" not in manifest:
            what = f"{folder} has no annotations to compare, and no given ledger is of a build"
            raise input_error("--ledger", what, "leave it out, or give the ledger of the build")
        findings = _build_faults(folder, manifest, builds) if builds else []
        if "annotations" not in manifest:
            return findings
        if builds and not judges.judged():
            about = "what judges said"
            what = f"{about}: not compared with a ledger, because none of its annotations was given"
            return [*findings, Finding(str(folder), what, "give it with --ledger too", "note", about)]
        rows, catalogue = _annotation_rows(folder), load_catalogue()
        for entry in manifest["annotations"]:
            findings += _annotation_faults(folder, entry, rows[entry["teacher"], entry["rubric"]], judges, catalogue)
        return findings


def _build_faults(folder: Path, manifest: dict[str, Any], builds: Sequence[Ledger]) -> list[Finding]:
    """Texts that are not the answers to their requests, candidates that are no answer, and usage below that of the released answers.

    The rows of the provenance are those that the tables give.
    """
    ledgers, used, faults = Ledgers(builds), dict[str, Counter[str]](), list[Finding]()
    for stored in read_back(folder, tables_of(manifest)):
        rows = stored.by_table()
        outcome = outcome_of(stored.dialogue_id, rows, manifest)
        keys, texts = set[str | None](), texts_of(outcome) if outcome else {}
        for row in rows["provenance"]:
            if row["method"] == RULES:
                continue
            key = row["request_key"]
            completion = ledgers.get(key)
            if completion and key not in keys:
                used.setdefault(completion.model, Counter()).update({"requests": 1, **asdict(completion.usage)})
            keys.add(key)
            if what := _answer_fault(row, texts.get((row["pair_id"], row["what"]), texts.get(key)), completion):
                where = f"{folder / 'provenance.parquet'}: {row['pair_id'] or stored.dialogue_id}, {row['what']}"
                faults.append(Finding(where, what))
    if faults and not used:
        return [Finding(str(folder), "none of the given ledgers holds its answers", "give the ledger of its build with --ledger")]
    return [*faults, *_usage_faults(folder, manifest, used), *_candidate_faults(folder, manifest, builds)]


def _answer_fault(row: TableRow, text: str | None, completion: Completion | None) -> str | None:
    """What is wrong with a row of the provenance, in view of the answer to its request."""
    if completion is None:
        return "the ledger holds no answer to its request"
    if completion.model != row["model"]:
        return f'was answered by "{completion.model[:80]}", but the release names "{row["model"]}"'
    kind = CROSSED_CHECK if row["method"] == "judge" else KIND_OF_TEXT[row["what"]]
    return None if answer_text(completion, kind.name) == text else "differs from the answer to its request"


def _usage_faults(folder: Path, manifest: dict[str, Any], used: Mapping[str, Counter[str]]) -> Iterator[Finding]:
    """Models with a lower usage in the summary than their released answers alone have; no key names the other answers."""
    for model, usage in sorted(used.items()):
        stated = manifest["summary"]["usage"].get(model, {})
        for name in USAGE:
            if stated.get(name, 0) < usage[name]:
                what = f"{name} is {stated.get(name, 0)}, but the released answers of the ledger alone used {usage[name]}"
                yield Finding(f"{folder / 'manifest.json'}: summary: usage: {model}", what)


def _candidate_faults(folder: Path, manifest: dict[str, Any], builds: Sequence[Ledger]) -> Iterator[Finding]:
    """Candidates that no answer of their kind holds, about whichever dialogue: equal requests have one answer. Rules have no answer."""
    path, texts = folder / "candidates.parquet", dict[str, set[int]]()
    by_rules = manifest["configuration"]["near_apathetic"] != "model"
    for batch in table_batches(path, ["pair_id", "variant", "text", "attempt"]):
        for row in batch.to_pylist():
            kind = KIND_OF[row["variant"]].name
            if kind not in texts:
                completions = (completion for ledger in builds for _, completion in ledger.rows("kind = ?", (kind,)))
                texts[kind] = {hash(answer_text(completion, kind)) for completion in completions}
            if hash(row["text"]) not in texts[kind] and not (by_rules and kind == NEAR_APATHETIC.name and row["attempt"] == 1):
                yield Finding(f"{path}: {row['pair_id']}, {row['variant']}", f"no answer of the ledger holds text {row['attempt']}")


def answer_text(completion: Completion, kind: str) -> str | None:
    """The content of an answer as one text, read as a build reads it; None for an answer that a build refuses."""

    async def read(value: Any) -> str:
        if kind == SELF_CHAT.name:
            description, turns = self_chat.parse_answer(value)
            return SEPARATOR.join([description, *(f"{turn.role}: {turn.text}: {turn.strategy or ''}" for turn in turns)])
        if kind == CROSSED.name:
            return SEPARATOR.join(crossed_by_models.parse_answer(value).values())
        return str(value["choice"]) if kind == CROSSED_CHECK.name else rewriting.parse_answer(value)

    # Nothing in it waits, and there are up to a million answers.
    try:
        evaluate_answer(completion, KINDS[kind].answer, read).send(None)
    except StopIteration as end:
        return end.value if isinstance(end.value, str) else None
    return None


def _annotation_rows(folder: Path) -> dict[tuple[str, str], dict[str, CaseRows]]:
    """All rows of annotations, by judge and rubric and by the pair or whole dialogue that they are about."""
    rows: dict[tuple[str, str], dict[str, CaseRows]] = defaultdict(lambda: defaultdict(dict))
    for config in JUDGED:
        for row in released_rows(folder, config):
            rows[row["teacher"], row["rubric"]][row["pair_id"] or row["dialogue_id"]][config, row_identity(row)] = row
    return rows


def _annotation_faults(
    folder: Path, entry: dict[str, Any], rows: dict[str, CaseRows], ledgers: Ledgers, catalogue: Catalogue
) -> Iterator[Finding]:
    """Differences of the annotations by one judge and rubric from its answers; annotations whose requests are unknown are unchecked."""
    where, judge = f"{folder}: {entry['teacher']}, {entry['rubric']}", entry["teacher"]
    try:
        replay = Replay(entry, catalogue, where, ledgers)
    except InputError as error:
        for problem in error.problems:
            yield Finding(problem.where, f"not compared with the ledger: {problem.what}", problem.fix, "unchecked", judge)
        return
    if names := _unsent_differences(entry):
        what = f'not compared with the ledger: no request holds {some_of(names, SHOWN)}, and the packaged rubric "{entry["rubric"]}"'
        fix = "ask who made the release, or verify with the version that made it"
        yield Finding(where, f"{what} has other values", fix, "unchecked", judge)
    places, examples = ledgers.judged(), {example["pair_id"] for example in entry["says"]["examples"]}
    requested = {dialogue_id if turn is None else pair_id(dialogue_id, turn) for dialogue_id, turn in places}
    places |= {parts_of(name) if "-t" in name else (name, None) for name in rows}
    cases = (case for case in released_cases(folder, entry, places) if case.pair_id not in examples)
    answers = {answer.pair_id or answer.dialogue_id: answer for answer in replay.replayed(cases)}
    if not any(answers[name].status == "accepted" for name in rows if name in answers):
        yield Finding(where, "none of the given ledgers holds its answers", "give the ledger of these annotations with --ledger too")
        return
    for name, case_rows in rows.items():
        yield from _case_faults(folder, entry, name, case_rows, answers.get(name))
    if unknown := [name for name in entry["left_out"] if name not in requested or name in answers]:
        what = f"lists as left out what no judge was asked about, or what the release holds: {some_of(unknown, SHOWN)}"
        yield Finding(where, what)
    yield from (Finding(f"{where}{key}", what) for key, what in _entry_differences(entry, rows, answers))


def _unsent_differences(entry: dict[str, Any]) -> list[str]:
    """The values of a rubric that no request and so no answer depends on, and that the packaged rubric of the same name has otherwise."""

    def unsent(rubric: Rubric) -> dict[str, str | None]:
        values = {f"{criterion.name}: {key}": getattr(criterion, key) for criterion in rubric.criteria for key in ("better", "opposite")}
        return {"title": rubric.title, "source": rubric.source, **values}

    if entry["rubric"] not in packaged_rubrics():
        return []
    packaged, stated = unsent(load_rubric(entry["rubric"])), unsent(rubric_of(entry["says"]))
    return [name for name in stated if name in packaged and stated[name] != packaged[name]]


def _case_faults(folder: Path, entry: dict[str, Any], name: str, rows: CaseRows, answer: Annotated | None) -> Iterator[Finding]:
    """Differences of the rows of a case from those that its answers give."""
    split = split_of(dialogue_of(name))
    if answer is None or answer.status != "accepted":
        path, why = file_of(folder, next(iter(rows))[0], split), answer.reasons[0] if answer else "it is an example of the rubric"
        yield Finding(f"{path}: {name}", f"the ledger has no answer about this text: {why}")
        return
    derived = {(config, row_identity(row)): row for config, row in annotation_rows(answer, entry, load_taxonomy())}
    for key in sorted(rows.keys() | derived.keys(), key=str):
        config, identity = key
        where = f"{file_of(folder, config, split)}: {' '.join(str(part) for part in identity if part is not None)}"
        if key not in rows or key not in derived:
            yield Finding(where, "is not an answer of the ledger" if key in rows else "is missing: the ledger holds its answer")
            continue
        for column, value in derived[key].items():
            if column in rows[key] and (stored := rows[key][column]) != value:
                yield Finding(f"{where}: {column}", f"says {shortened(str(stored))}, but the answer says {shortened(str(value))}")


def _entry_differences(entry: dict[str, Any], rows: dict[str, CaseRows], answers: dict[str, Annotated]) -> Iterator[tuple[str, str]]:
    """(key, what) of cases that the ledger answers and the release is silent about, unless the ledger was filled for a larger sample."""
    unreleased = [answer for name, answer in answers.items() if name not in rows and answer.status == "accepted"]
    silent = [answer for answer in unreleased if not count_annotations([answer])["counts"]]
    lost = [answer.pair_id or answer.dialogue_id for answer in unreleased if count_annotations([answer])["counts"]]
    whole = entry["turns"] is not None and entry["cases"] + len(entry["left_out"]) >= entry["turns"]
    if lost and not whole:
        yield "", f"has no row of {some_of(lost, SHOWN)}, which the ledger answers"
    if not len(rows) <= entry["cases"] <= len(rows) + len(silent):
        yield "", f"says {entry['cases']} cases, but the rows and the ledger give {len(rows) + len(silent)}"
    elif entry["cases"] == len(rows) + len(silent):
        for name, value in count_annotations([answers[name] for name in rows if name in answers] + silent).items():
            if entry[name] != value:
                yield f": {name}", f"says {shortened(str(entry[name]))}, but the ledger gives {shortened(str(value))}"
