"""Refused texts and items that were left out, of a build, a release or annotations; and the answers about a case of annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

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
LEFT_OUT, SPARE = "pair_left_out", "spare"


def show_annotations(folder: Path, name: str, ledger: Path | None) -> ShownItem:
    """Returns all annotations of a pair or a dialogue, or those behind the request of a key.

    Raises:
        InputError: if the annotations are not valid, or have no such case.
        JobError: if a row of the ledger is damaged.
    """
    judge, address = read_annotations(folder), parse_address(name)
    title = f"the annotations of {judge.teacher} by {judge.rubric}"
    cases = {case.pair_id or case.dialogue_id: case for case in judge.cases}
    matches: list[tuple[Annotated, str | None]]
    if isinstance(address, TextAddress):
        matches = [(case, None) for case in [cases.get(address.name)] if case]
    else:
        matches = [(case, key) for case in judge.cases for key in keys_of(case) if key.startswith(address)]
        if len({key for _, key in matches}) > 1:
            raise input_error("ID", f'"{address}…" is the beginning of several keys', "give more digits of the key")
    if not matches:
        raise unknown_id(address.name if isinstance(address, TextAddress) else address, title, cases)
    case, key = matches[0]
    rows = {kind: tuple(row for row in map(asdict, getattr(case, kind)) if key is None or key in row.values()) for kind in ROWS}
    requests = tuple(request for request in _requests_of(case, ledger or folder / LEDGER) if key in (None, request.key))
    notes = (NOT_HERE.format(describe_source(judge.header["configuration"]["release"])),)
    judgements = {kind: some for kind, some in rows.items() if some}
    return ShownItem(key or name, title, case.status, case.reasons, requests=requests, judgements=judgements, notes=notes)


def refused_by_judge(judge: AnnotationFolder, ledger: Path | None) -> Iterator[RefusedText]:
    """Yields the answers of a judge that were not accepted."""
    for case in judge.cases:
        requests = {request.key: request for request in _requests_of(case, ledger or judge.path / LEDGER)} if case.failures else {}
        for failure in case.failures:
            text = requests[failure.request_key].text if failure.request_key in requests else None
            yield RefusedText(failure.reasons, case.dialogue_id, failure.kind, failure.turn, failure.request_key, text)


def keys_of(case: Annotated) -> list[str]:
    """Returns the keys of all requests about a case."""
    rows = [asdict(row) for name in ROWS for row in getattr(case, name)]
    keys = [value for row in rows for name, value in row.items() if "request_key" in name]
    return [*dict.fromkeys([*keys, *(failure.request_key for failure in case.failures if failure.request_key)])]


def _requests_of(case: Annotated, path: Path) -> Iterator[ShownRequest]:
    """Yields the answers about a case, accepted or refused."""
    if not path.is_file():
        return
    reasons = {failure.request_key: failure.reasons for failure in case.failures}
    known = set(keys_of(case))
    with Ledger(path, create=False, write=False) as ledger:
        for row in read_answers(ledger, case.dialogue_id):
            if row.key in known:
                why = tuple((reason, "") for reason in reasons.get(row.key, ()))
                request = ShownRequest(row.key, row.about.kind, row.about.turn, "refused" if why else "taken", reasons=why)
                yield with_answer(request, row.completion)


def refused_in_source(source: Source, ledger: Ledger, rebuilt: RebuiltRecipe, *, answered: bool) -> Iterator[RefusedText]:
    """Yields dialogues that are left out, then dialogue by dialogue each answer that was not accepted, with its text.

    The outcomes of a finished build list refused texts. For a release, and for a build in progress, the ledger is replayed; without one a
    release has only the texts that reached its checks.

    Raises:
        JobError: if rows of the ledger are damaged.
    """
    left_out = source.left_out()
    for name, (reason, words) in sorted(left_out.items()):
        # A pair is shown by dialogue and turn; a name in an untrusted release may be any text.
        pair = match if (match := NAME.fullmatch(name)) and match[2] else None
        yield RefusedText((reason,), pair[1] if pair else name, turn=int(pair[2]) if pair else None, detail=words)
    if source.finished and not (source.released and answered):
        for outcome in source.outcomes():
            yield from refused_of_outcome(outcome, ledger, {})
        return
    replayer = rebuilt.replayer(ledger, source.header.get("toxicity_weights"), {})
    yield from _replay_dialogues(source, ledger, rebuilt, replayer, set(left_out))


def refused_of_outcome(outcome: Outcome, ledger: Ledger, details: Mapping[str, str]) -> Iterator[RefusedText]:
    """Yields the refused texts of an item; ``details`` are explanations by key."""
    candidates = list(outcome.candidates)
    for failure in outcome.failures:
        # Candidates are the texts of answers, in the same order.
        place = failure.kind, failure.turn, failure.reasons
        judged = next((candidate for candidate in candidates if (candidate.kind, candidate.turn, candidate.reasons) == place), None)
        if judged:
            candidates.remove(judged)
        answer = ledger.get(failure.request_key) if failure.request_key else None
        text = answer.text if answer else judged.text if judged else None
        detail = details.get(failure.request_key or "", "")
        yield RefusedText(failure.reasons, outcome.dialogue_id, failure.kind, failure.turn, failure.request_key, text, detail)
    yield from (_candidate(outcome.dialogue_id, candidate) for candidate in candidates)


def _candidate(dialogue_id: str, candidate: Candidate) -> RefusedText:
    """Returns a text whose request is not known: made by rules, or of a release."""
    return RefusedText(candidate.reasons or (LEFT_OUT,), dialogue_id, candidate.kind, candidate.turn, None, candidate.text)


def _replay_dialogues(
    source: Source, ledger: Ledger, rebuilt: RebuiltRecipe, replayer: ItemReplayer | None, left_out: set[str]
) -> Iterator[RefusedText]:
    """Yields refusals in the replay of each dialogue of a ledger; without a replay, those that answers show by themselves."""
    released_keys, released = source.released_keys(), set(source.dialogue_ids()) if source.released else set()
    stored = {outcome.dialogue_id: outcome for outcome in source.outcomes()} if source.released else {}
    for dialogue_id, keys in keys_by_dialogue(ledger).items():
        outcome = stored.pop(dialogue_id, None)
        if released and all(key in released_keys for key, _ in keys):
            yield from refused_of_outcome(outcome, ledger, {}) if outcome else ()
            continue
        plan, rows = rebuilt.plan(dialogue_id), list(_rows(ledger, keys))
        noted = refused_texts((row for row in rows if row.key not in released_keys), outcome.candidates) if outcome else {}
        trace = replayer.trace(plan, KnownItem(refused=noted)) if replayer and plan else None
        if trace and trace.outcome.status != "missing":
            details = {step.request.key: "; ".join(flaw.detail for flaw in step.flaws) for step in trace.steps}
            yield from _with_candidates(outcome, refused_of_outcome(trace.outcome, ledger, details), rows)
            spare = released and trace.outcome.status == "accepted" and dialogue_id not in released | left_out
            if spare and not rebuilt.has_custom_checks:
                yield RefusedText((SPARE,), dialogue_id, detail="accepted, but beyond the quota of its scenario")
            continue
        yield from _with_candidates(outcome, _without_outcome(rows, trace, released_keys, noted), rows)
    for outcome in stored.values():
        yield from refused_of_outcome(outcome, ledger, {})


def _with_candidates(outcome: Outcome | None, refusals: Iterable[RefusedText], rows: Iterable[LedgerEntry]) -> Iterator[RefusedText]:
    """Yields refusals, then the candidates of a release that are not among them; the release decides about the texts that it holds."""
    candidates = outcome.candidates if outcome else ()
    noted = {(candidate.kind, candidate.turn, candidate.text): candidate.reasons or (LEFT_OUT,) for candidate in candidates}
    left = Counter((candidate.kind, candidate.turn, candidate.text) for candidate in candidates)
    answers = {row.key: row for row in rows}
    for refused in refusals:
        row = answers.get(refused.request_key or "")
        text = variant_text(row.about.kind, row.completion) if row else refused.text
        place = refused.kind or "", -1 if refused.turn is None else refused.turn, text or ""
        if refused.request_key or noted.get(place, refused.reasons) == refused.reasons:
            yield refused
            left[place] -= 1
    for candidate in candidates:
        place = candidate.kind, candidate.turn, candidate.text
        if left[place] > 0:
            yield _candidate(outcome.dialogue_id if outcome else "", candidate)
        left[place] -= 1


def _rows(ledger: Ledger, keys: list[tuple[str, About]]) -> Iterator[LedgerEntry]:
    rows = ((key, about, ledger.get(key)) for key, about in keys)
    return (LedgerEntry(key, about, completion) for key, about, completion in rows if completion)


def _without_outcome(
    rows: Iterable[LedgerEntry], trace: Trace | None, released: set[str], noted: Mapping[str, tuple[str, ...]]
) -> Iterator[RefusedText]:
    """Yields refusals of an incomplete replay; of answers beyond it, those that the release notes or that no check could read."""
    steps = {step.request.key: step for step in trace.steps} if trace else {}
    for row in rows:
        step = steps.get(row.key)
        flaws = list(step.flaws if step else ()) or read_flaws(row)
        flaws = flaws or [Flaw(reason, REFUSED_BY_CUSTOM_CHECK) for reason in noted.get(row.key, ())]
        if flaws and row.key not in released:
            reasons, detail = tuple(sorted({flaw.reason for flaw in flaws})), "; ".join(dict.fromkeys(flaw.detail for flaw in flaws))
            yield RefusedText(reasons, row.about.dialogue_id, row.about.kind, row.about.turn, row.key, row.completion.text, detail)
