"""What was refused, and what was left out: of a build, a release or annotations, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.completions.asker import REFUSED_BY_CUSTOM_CHECK
from empathy_eval.completions.ledger import Ledger, LedgerEntry
from empathy_eval.completions.requests import About, Flaw
from empathy_eval.generation.outcomes import LEDGER, Candidate, Outcome
from empathy_eval.generation.replay_item import ItemReplayer, KnownItem, Trace
from empathy_eval.raters.judges.annotations import Annotated, AnnotationFolder, read_annotations
from empathy_eval.raters.judges.cases import describe_source
from empathy_eval.releases.inspect.recipe_from_manifest import RebuiltRecipe
from empathy_eval.releases.inspect.requests import keys_by_dialogue, read_answers, read_flaws, refused_texts, variant_text, with_answer
from empathy_eval.releases.inspect.shown import RefusedText, ShownItem, ShownRequest
from empathy_eval.releases.inspect.sources import Source
from empathy_eval.releases.inspect.texts import NAME, TextAddress, parse_address, unknown_id

ROWS = ("ratings", "comparisons", "strategies")
NOT_HERE = (
    "the requests hold the judged texts, so they are not shown here: show the texts from {}; "
    "verify --ledger compares annotations with the answers"
)


def show_annotations(folder: Path, name: str, ledger: Path | None) -> ShownItem:
    """All that a judge said of a pair or a dialogue, or by the request of a key.

    Raises:
        InputError: if the annotations are not valid, or have no such case.
        JobError: if a row of the ledger is damaged.
    """
    judged, said = read_annotations(folder), parse_address(name)
    named = f"the annotations of {judged.teacher} by {judged.rubric}"
    places = {one.pair_id or one.dialogue_id: one for one in judged.cases}
    if isinstance(said, TextAddress):
        case, key = places.get(said.name), None
    else:
        keyed = [(one, key) for one in judged.cases for key in keys_of(one) if key.startswith(said)]
        if len({key for _, key in keyed}) > 1:
            raise input_error("ID", f'"{said}…" is the beginning of several keys', "give more digits of the key")
        case, key = keyed[0] if keyed else (None, None)
    if case is None:
        raise unknown_id(said.name if isinstance(said, TextAddress) else said, named, places)
    rows = {one: tuple(row for row in (asdict(made) for made in getattr(case, one)) if _of(row, key)) for one in ROWS}
    asked = tuple(one for one in _requests_of(case, ledger or folder / LEDGER) if key in (None, one.key))
    notes = (NOT_HERE.format(describe_source(judged.header["configuration"]["release"])),)
    known = {one: row for one, row in rows.items() if row}
    return ShownItem(key or name, named, case.status, case.reasons, asked=asked, said=known, notes=notes)


def refused_by_judge(judged: AnnotationFolder, ledger: Path | None) -> Iterator[RefusedText]:
    """The answers of a judge that were not taken."""
    for case in judged.cases:
        texts = {one.key: one for one in _requests_of(case, ledger or judged.path / LEDGER)} if case.failures else {}
        for failure in case.failures:
            text = texts[failure.request_key].text if failure.request_key in texts else None
            yield RefusedText(failure.reasons, case.dialogue_id, failure.kind, failure.turn, failure.request_key, text)


def keys_of(case: Annotated) -> list[str]:
    """The keys of all requests about a case."""
    rows = [asdict(one) for name in ROWS for one in getattr(case, name)]
    found = [value for row in rows for name, value in row.items() if "request_key" in name]
    return [*dict.fromkeys([*found, *(failure.request_key for failure in case.failures if failure.request_key)])]


def _of(row: Mapping[str, Any], key: str | None) -> bool:
    return key is None or key in row.values()


def _requests_of(case: Annotated, path: Path) -> Iterator[ShownRequest]:
    """The answers about a case, good and bad."""
    if not path.is_file():
        return
    reasons = {failure.request_key: failure.reasons for failure in case.failures}
    known = set(keys_of(case))
    with Ledger(path, create=False, write=False) as ledger:
        for row in read_answers(ledger, case.dialogue_id):
            if row.key in known:
                why = tuple((one, "") for one in reasons.get(row.key, ()))
                asked = ShownRequest(row.key, row.about.kind, row.about.turn, "refused" if why else "taken", reasons=why)
                yield with_answer(asked, row.completion)


LEFT_OUT, SPARE = "pair_left_out", "spare"


def refused_in_source(source: Source, ledger: Ledger, again: RebuiltRecipe, *, answered: bool) -> Iterator[RefusedText]:
    """All of it: dialogues that are left out, then dialogue by dialogue each answer that was not taken, with its text.

    A finished build says itself what was refused. Of a release, and of a build that is under way, the ledger is gone through again;
    without one a release has only the texts that reached its checks.

    Raises:
        JobError: if rows of the ledger are damaged.
    """
    left = source.left_out()
    for name, (reason, words) in sorted(left.items()):
        # A pair is told by dialogue and turn, as all else is; names of a stranger's release are no more than text.
        pair = found if (found := NAME.fullmatch(name)) and found[2] else None
        yield RefusedText((reason,), pair[1] if pair else name, turn=int(pair[2]) if pair else None, detail=words)
    if source.finished and not (source.released and answered):
        for outcome in source.outcomes():
            yield from refused_of_outcome(outcome, ledger, {})
        return
    retracer = again.replayer(ledger, source.header.get("toxicity_weights"), {})
    yield from _replay_dialogues(source, ledger, again, retracer, set(left))


def refused_of_outcome(outcome: Outcome, ledger: Ledger, details: dict[str, str]) -> Iterator[RefusedText]:
    """What was refused of an item. ``details`` are by key the words for it."""
    candidates = list(outcome.candidates)
    for failure in outcome.failures:
        # The texts that were judged are those of the answers, in the same order.
        judged = next(
            (two for two in candidates if (two.kind, two.turn, two.reasons) == (failure.kind, failure.turn, failure.reasons)), None
        )
        if judged:
            candidates.remove(judged)
        answer = ledger.get(failure.request_key) if failure.request_key else None
        text = answer.text if answer else judged.text if judged else None
        detail = details.get(failure.request_key or "", "")
        yield RefusedText(failure.reasons, outcome.dialogue_id, failure.kind, failure.turn, failure.request_key, text, detail)
    yield from (_candidate(outcome.dialogue_id, candidate) for candidate in candidates)


def _candidate(dialogue_id: str, one: Candidate) -> RefusedText:
    """A text whose request is not told: made by rules, or of a release."""
    return RefusedText(one.reasons or (LEFT_OUT,), dialogue_id, one.kind, one.turn, None, one.text)


def _replay_dialogues(
    source: Source, ledger: Ledger, again: RebuiltRecipe, retracer: ItemReplayer | None, left: set[str]
) -> Iterator[RefusedText]:
    """What the replay of each dialogue of a ledger refuses; where there is none, what answers say of themselves."""
    taken, released = source.taken(), set(source.dialogue_ids()) if source.released else set()
    judged = {one.dialogue_id: one for one in source.outcomes()} if source.released else {}
    for dialogue_id, keys in keys_by_dialogue(ledger).items():
        told = judged.pop(dialogue_id, None)
        if released and all(key in taken for key, _ in keys):
            yield from refused_of_outcome(told, ledger, {}) if told else ()
            continue
        plan, rows = again.plan(dialogue_id), list(_rows(ledger, keys))
        noted = refused_texts((row for row in rows if row.key not in taken), told.candidates) if told else {}
        trace = retracer.trace(plan, KnownItem(refused=noted)) if retracer and plan else None
        if trace and trace.outcome.status != "missing":
            yield from _with_candidates(told, refused_of_outcome(trace.outcome, ledger, _details(trace)), rows)
            if released and trace.outcome.status == "accepted" and dialogue_id not in released | left and not again.has_custom_checks:
                yield RefusedText((SPARE,), dialogue_id, detail="accepted, but beyond the quota of its scenario")
            continue
        yield from _with_candidates(told, _without_outcome(rows, trace, taken, noted), rows)
    for outcome in judged.values():
        yield from refused_of_outcome(outcome, ledger, {})


def _with_candidates(told: Outcome | None, found: Iterable[RefusedText], rows: Iterable[LedgerEntry]) -> Iterator[RefusedText]:
    """What is found, and after it the texts of a release's candidates that are not among it; of a text itself the release knows better."""
    candidates = told.candidates if told else ()
    noted = {(one.kind, one.turn, one.text): one.reasons or (LEFT_OUT,) for one in candidates}
    left, answers = Counter((one.kind, one.turn, one.text) for one in candidates), {one.key: one for one in rows}
    for one in found:
        row = answers.get(one.request_key or "")
        place = (
            one.kind or "",
            -1 if one.turn is None else one.turn,
            (variant_text(row.about.kind, row.completion) if row else one.text) or "",
        )
        if one.request_key or noted.get(place, one.reasons) == one.reasons:
            yield one
            left[place] -= 1
    for candidate in candidates:
        place = candidate.kind, candidate.turn, candidate.text
        if left[place] > 0:
            yield _candidate(told.dialogue_id if told else "", candidate)
        left[place] -= 1


def _details(trace: Trace) -> dict[str, str]:
    return {step.request.key: "; ".join(flaw.detail for flaw in step.flaws) for step in trace.steps}


def _rows(ledger: Ledger, keys: list[tuple[str, About]]) -> Iterator[LedgerEntry]:
    found = ((key, about, ledger.get(key)) for key, about in keys)
    return (LedgerEntry(key, about, completion) for key, about, completion in found if completion)


def _without_outcome(
    rows: Iterable[LedgerEntry], trace: Trace | None, taken: set[str], noted: Mapping[str, tuple[str, ...]]
) -> Iterator[RefusedText]:
    """What the beginning of a replay refused, then of answers that it does not come to what was noted or no check could look at."""
    steps = {one.request.key: one for one in trace.steps} if trace else {}
    for row in rows:
        step = steps.get(row.key)
        flaws = (
            list(step.flaws if step else ()) or read_flaws(row) or [Flaw(one, REFUSED_BY_CUSTOM_CHECK) for one in noted.get(row.key, ())]
        )
        if flaws and row.key not in taken:
            reasons, detail = tuple(sorted({flaw.reason for flaw in flaws})), "; ".join(dict.fromkeys(flaw.detail for flaw in flaws))
            yield RefusedText(reasons, row.about.dialogue_id, row.about.kind, row.about.turn, row.key, row.completion.text, detail)
