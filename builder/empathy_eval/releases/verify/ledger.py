"""The texts of a release against the answers in the ledger of its build: each request is there, and brought what is released."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Finding, InputError, input_error
from empathy_eval.base.tabular import TableRow, table_batches
from empathy_eval.completions.asker import evaluate_answer
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import Completion
from empathy_eval.design.dataset import JUDGED, SPLITS, file_of, parts_of, split_of
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK, KINDS, NEAR_APATHETIC, SCORE, SELF_CHAT
from empathy_eval.design.rubrics import Rubric, load_rubric, packaged_rubrics, rubric_of
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.generation import crossed_by_models, rewriting, self_chat
from empathy_eval.raters.judges.annotations import Annotated
from empathy_eval.raters.judges.replay import Ledgers, Replay
from empathy_eval.releases.assemble.annotations import SHOWN, annotation_rows, count_annotations, released_cases, row_identity
from empathy_eval.releases.assemble.read_back import KIND_OF, RULES, numbered_rows, outcome_of, read_back, tables_of
from empathy_eval.releases.verify.content import SEPARATOR, texts_of
from empathy_eval.releases.verify.report import shown

Place = tuple[str, int | None]
# By config and what it is about, the rows of a case.
Said = dict[tuple[str, tuple[Any, ...]], TableRow]


def answer_faults(folder: Path, manifest: dict[str, Any], ledgers: Ledgers) -> list[Finding]:
    """All that the rows of annotations say otherwise than the answers of their ledgers, or do not say.

    Annotations whose requests cannot be known here are no fault, and are named as unchecked.

    Raises:
        JobError: if a ledger is damaged.
    """
    rows, catalogue = _rows(folder, manifest), load_catalogue()
    return [
        problem
        for said in manifest["annotations"]
        for problem in _faults(folder, said, rows[said["teacher"], said["rubric"]], ledgers, catalogue)
    ]


def _rows(folder: Path, manifest: dict[str, Any]) -> dict[tuple[str, str], dict[Place, Said]]:
    """All rows, by judge and rubric and by case."""
    found: dict[tuple[str, str], dict[Place, Said]] = defaultdict(lambda: defaultdict(dict))
    for config in [one for one in JUDGED if one in manifest["counts"]]:
        for split in SPLITS:
            for _, row in numbered_rows(file_of(folder, config, split)):
                found[row["teacher"], row["rubric"]][_place(row["pair_id"] or row["dialogue_id"])][config, row_identity(row)] = row
    return found


def _faults(folder: Path, said: dict[str, Any], rows: dict[Place, Said], ledgers: Ledgers, catalogue: Catalogue) -> Iterator[Finding]:
    """The faults of the annotations by one judge and rubric."""
    where = f"{folder}: {said['teacher']}, {said['rubric']}"
    try:
        replay = Replay(said, catalogue, where, ledgers)
    except InputError as error:
        yield from (
            Finding(one.where, f"not compared with the ledger: {one.what}", one.fix, "unchecked", said["teacher"]) for one in error.problems
        )
        return
    yield from _unsent(where, said)
    asked = ledgers.judged()
    shown = {one["pair_id"] for one in said["says"]["examples"]}
    answered = replay.replayed(one for one in released_cases(folder, said, rows.keys() | asked) if one.pair_id not in shown)
    by_place: dict[Place, Annotated] = {(one.dialogue_id, one.turn): one for one in answered}
    if not any(by_place[place].status == "accepted" for place in rows if place in by_place):
        yield Finding(where, "none of the given ledgers holds its answers", "give the ledger of these annotations with --ledger too")
        return
    for place, found in rows.items():
        yield from _compared(folder, said, place, found, by_place.get(place))
    yield from _lost(where, said, rows, by_place, asked)


def _unsent(where: str, said: dict[str, Any]) -> Iterator[Finding]:
    """What a rubric that goes by the name of one that is here says otherwise, where no request and so no answer tells of it."""

    def beside(rubric: Rubric) -> dict[str, str | None]:
        more = {f"{one.name}: {name}": getattr(one, name) for one in rubric.criteria for name in ("better", "opposite")}
        return {"title": rubric.title, "source": rubric.source, **more}

    if said["rubric"] not in packaged_rubrics():
        return
    here, there = beside(load_rubric(said["rubric"])), beside(rubric_of(said["says"]))
    if others := [name for name in there if name in here and there[name] != here[name]]:
        what = f'not compared with the ledger: no request holds {_some(others)}, and the packaged rubric "{said["rubric"]}"'
        fix = "ask who made the release, or verify with the version that made it"
        yield Finding(where, f"{what} has other values", fix, "unchecked", said["teacher"])


def _compared(folder: Path, said: dict[str, Any], place: Place, found: Said, answered: Annotated | None) -> Iterator[Finding]:
    """What the rows of a case say otherwise than the answers."""
    if answered is None or answered.status != "accepted":
        path = file_of(folder, next(iter(found))[0], split_of(place[0]))
        why = answered.reasons[0] if answered else "it is an example of the rubric"
        yield Finding(f"{path}: {_named(place)}", f"the ledger has no answer about this text: {why}")
        return
    told = {(config, row_identity(row)): row for config, row in annotation_rows(answered, said, load_taxonomy())}
    for key in sorted(found.keys() | told.keys(), key=str):
        about = " ".join(str(one) for one in key[1] if one is not None)
        where = f"{file_of(folder, key[0], split_of(place[0]))}: {about}"
        if key not in found or key not in told:
            what = "is missing: the ledger holds its answer" if key not in found else "is not an answer of the ledger"
            yield Finding(where, what)
            continue
        for name, value in told[key].items():
            if name in found[key] and found[key][name] != value:
                yield Finding(f"{where}: {name}", f"says {shown(found[key][name])}, but the answer says {shown(value)}")


def _lost(
    where: str, said: dict[str, Any], rows: dict[Place, Said], answered: dict[Place, Annotated], asked: set[Place]
) -> Iterator[Finding]:
    """Cases that the ledger answers and the release is silent about, unless the ledger was filled for a larger sample."""
    others = [one for place, one in answered.items() if place not in rows and one.status == "accepted"]
    silent = [one for one in others if not count_annotations([one])["counts"]]
    lost = [_named((one.dialogue_id, one.turn)) for one in others if count_annotations([one])["counts"]]
    if strange := [name for name in said["left_out"] if _place(name) not in asked or _place(name) in answered]:
        yield Finding(where, f"lists as left out what no judge was asked about, or what the release holds: {_some(strange)}")
    whole = said["turns"] is not None and said["cases"] + len(said["left_out"]) >= said["turns"]
    if lost and not whole:
        yield Finding(where, f"has no row of {_some(lost)}, which the ledger answers")
    if not len(rows) <= said["cases"] <= len(rows) + len(silent):
        yield Finding(where, f"says {said['cases']} cases, but the rows and the ledger give {len(rows) + len(silent)}")
    elif said["cases"] == len(rows) + len(silent):
        anew = count_annotations([answered[place] for place in rows if place in answered] + silent)
        yield from (
            Finding(f"{where}: {name}", f"says {shown(said[name])}, but the ledger gives {shown(value)}")
            for name, value in anew.items()
            if said[name] != value
        )


def _place(name: str) -> Place:
    return parts_of(name) if "-t" in name else (name, None)


def _named(place: Place) -> str:
    return place[0] if place[1] is None else f"{place[0]}-t{place[1]:02d}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


ASKED = ", ".join(f"'{name}'" for name in KINDS if name != SCORE.name)
OF_A_BUILD = f"SELECT 1 FROM sound_completions WHERE kind IN ({ASKED}) LIMIT 1"  # noqa: S608
TOKENS = ("input_tokens", "cached_tokens", "output_tokens")


def ledger_faults(folder: Path, manifest: dict[str, Any], paths: Sequence[Path]) -> list[Finding]:
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
        if "annotations" not in manifest:
            return found
        if builds and not judges.judged():
            about, fix = "what judges said", "give it with --ledger too"
            what = f"{about}: not compared with a ledger, because none of its annotations was given"
            return [*found, Finding(str(folder), what, fix, "note", about)]
        return [*found, *answer_faults(folder, manifest, judges)]


def _of_build(folder: Path, manifest: dict[str, Any], builds: Sequence[Ledger]) -> list[Finding]:
    """All texts that are not what their requests brought."""
    answers = _LedgerAnswers(Ledgers(builds))
    found = list(_texts(folder, manifest, answers))
    if found and not answers.found:
        return [Finding(str(folder), "none of the given ledgers holds its answers", "give the ledger of its build with --ledger")]
    return [*found, *answers.cheaper(folder, manifest), *_candidates(folder, manifest, builds)]


@dataclass
class _LedgerAnswers:
    """Answers of ledgers by the keys of a provenance, and what they took."""

    ledgers: Ledgers
    found: int = 0
    used: dict[str, Counter[str]] = field(default_factory=dict)

    def wrong(self, row: TableRow, text: str | None, fresh: bool) -> str | None:
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
        return None if said_by(completion, kind) == text else "differs from the answer to its request"

    def cheaper(self, folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
        """Models that are said to have used less than their answers to what is released alone. What else was asked no key tells."""
        for model, used in sorted(self.used.items()):
            said = manifest["summary"]["usage"].get(model, {})
            for name in ("requests", *TOKENS):
                if said.get(name, 0) < used[name]:
                    what = f"{name} is {said.get(name, 0)}, but the released answers of the ledger alone used {used[name]}"
                    yield Finding(f"{folder / 'manifest.json'}: summary: usage: {model}", what)


def said_by(completion: Completion, kind: str) -> str | None:
    """What an answer says, as a build reads it, in one text; None if it is none that a build takes."""

    async def read(value: Any) -> str:
        if kind == SELF_CHAT.name:
            told, turns = self_chat.parse_answer(value)
            return SEPARATOR.join([told, *(f"{one.role}: {one.text}: {one.strategy or ''}" for one in turns)])
        if kind == CROSSED.name:
            return SEPARATOR.join(crossed_by_models.parse_answer(value).values())
        return str(value["choice"]) if kind == CROSSED_CHECK.name else rewriting.parse_answer(value)

    # Nothing in it waits, and there are a million of them.
    try:
        evaluate_answer(completion, KINDS[kind].answer, read).send(None)
    except StopIteration as end:
        return end.value if isinstance(end.value, str) else None
    return None


def _texts(folder: Path, manifest: dict[str, Any], answers: _LedgerAnswers) -> Iterator[Finding]:
    """Row by row of the provenance, which is known to be what the tables give."""
    for stored in read_back(folder, tables_of(manifest)):
        rows = stored.by_table()
        outcome = outcome_of(stored.dialogue_id, rows, manifest)
        taken, texts = set[str | None](), texts_of(outcome) if outcome else {}
        for row in rows["provenance"]:
            if row["method"] == RULES:
                continue
            text = texts.get((row["pair_id"], row["what"]), texts.get(row["request_key"]))
            if what := answers.wrong(row, text, row["request_key"] not in taken):
                yield Finding(f"{folder / 'provenance.parquet'}: {row['pair_id'] or stored.dialogue_id}, {row['what']}", what)
            taken.add(row["request_key"])


def _candidates(folder: Path, manifest: dict[str, Any], ledgers: Sequence[Ledger]) -> Iterator[Finding]:
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
                told[kind] = {hash(said_by(one, kind)) for one in found}
            if hash(row["text"]) not in told[kind] and not (by_rules and kind == NEAR_APATHETIC.name and row["attempt"] == 1):
                yield Finding(f"{path}: {row['pair_id']}, {row['variant']}", f"no answer of the ledger holds text {row['attempt']}")
