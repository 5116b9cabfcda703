"""What was refused, and what was left out: of a build, a release or annotations, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import About, Flaw
from empathy_eval.generation.outcomes import Candidate, Outcome
from empathy_eval.generation.retrace import NOT_KEPT, Known, Retracer, Trace
from empathy_eval.releases.showing.again import Again
from empathy_eval.releases.showing.names import NAME
from empathy_eval.releases.showing.requests import Row, flaws_of, keys_about, refused_texts, text_of
from empathy_eval.releases.showing.shown import Refused
from empathy_eval.releases.showing.sources import Source

LEFT_OUT, SPARE = "pair_left_out", "spare"


def refused_in(source: Source, ledger: Ledger, again: Again, *, answered: bool) -> Iterator[Refused]:
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
        yield Refused((reason,), pair[1] if pair else name, turn=int(pair[2]) if pair else None, detail=words)
    if source.finished and not (source.released and answered):
        for outcome in source.outcomes():
            yield from refused_of(outcome, ledger, {})
        return
    retracer = again.retracer(ledger, source.header.get("toxicity_weights"), {})
    yield from _gone_through(source, ledger, again, retracer, set(left))


def refused_of(outcome: Outcome, ledger: Ledger, details: dict[str, str]) -> Iterator[Refused]:
    """What was refused of an item. ``details`` are by key the words for it."""
    candidates = list(outcome.candidates)
    for one in outcome.failures:
        # The texts that were judged are those of the answers, in the same order.
        judged = next((two for two in candidates if (two.kind, two.turn, two.reasons) == (one.kind, one.turn, one.reasons)), None)
        if judged:
            candidates.remove(judged)
        answer = ledger.get(one.request_key) if one.request_key else None
        text = answer.text if answer else judged.text if judged else None
        detail = details.get(one.request_key or "", "")
        yield Refused(one.reasons, outcome.dialogue_id, one.kind, one.turn, one.request_key, text, detail)
    yield from (_candidate(outcome.dialogue_id, one) for one in candidates)


def _candidate(dialogue_id: str, one: Candidate) -> Refused:
    """A text whose request is not told: made by rules, or of a release."""
    return Refused(one.reasons or (LEFT_OUT,), dialogue_id, one.kind, one.turn, None, one.text)


def _gone_through(source: Source, ledger: Ledger, again: Again, retracer: Retracer | None, left: set[str]) -> Iterator[Refused]:
    """What the replay of each dialogue of a ledger refuses; where there is none, what answers say of themselves."""
    taken, released = source.taken(), set(source.dialogue_ids()) if source.released else set()
    judged = {one.dialogue_id: one for one in source.outcomes()} if source.released else {}
    for dialogue_id, keys in keys_about(ledger).items():
        told = judged.pop(dialogue_id, None)
        if released and all(key in taken for key, _ in keys):
            yield from refused_of(told, ledger, {}) if told else ()
            continue
        plan, rows = again.plan(dialogue_id), list(_rows(ledger, keys))
        noted = refused_texts((one for one in rows if one.key not in taken), told.candidates) if told else {}
        trace = retracer.trace(plan, Known(refused=noted)) if retracer and plan else None
        if trace and trace.outcome.status != "missing":
            yield from _beside(told, refused_of(trace.outcome, ledger, _details(trace)), rows)
            if released and trace.outcome.status == "accepted" and dialogue_id not in released | left and not again.unrun:
                yield Refused((SPARE,), dialogue_id, detail="accepted, but beyond the quota of its scenario")
            continue
        yield from _beside(told, _unread(rows, trace, taken, noted), rows)
    for outcome in judged.values():
        yield from refused_of(outcome, ledger, {})


def _beside(told: Outcome | None, found: Iterable[Refused], rows: Iterable[Row]) -> Iterator[Refused]:
    """What is found, and after it the texts of a release's candidates that are not among it; of a text itself the release knows better."""
    candidates = told.candidates if told else ()
    noted = {(one.kind, one.turn, one.text): one.reasons or (LEFT_OUT,) for one in candidates}
    left, answers = Counter((one.kind, one.turn, one.text) for one in candidates), {one.key: one for one in rows}
    for one in found:
        row = answers.get(one.request_key or "")
        place = one.kind or "", -1 if one.turn is None else one.turn, (text_of(row.about.kind, row.completion) if row else one.text) or ""
        if one.request_key or noted.get(place, one.reasons) == one.reasons:
            yield one
            left[place] -= 1
    for candidate in candidates:
        place = candidate.kind, candidate.turn, candidate.text
        if left[place] > 0:
            yield _candidate(told.dialogue_id if told else "", candidate)
        left[place] -= 1


def _details(trace: Trace) -> dict[str, str]:
    return {one.request.key: "; ".join(flaw.detail for flaw in one.flaws) for one in trace.steps}


def _rows(ledger: Ledger, keys: list[tuple[str, About]]) -> Iterator[Row]:
    found = ((key, about, ledger.get(key)) for key, about in keys)
    return (Row(key, about, completion) for key, about, completion in found if completion)


def _unread(rows: Iterable[Row], trace: Trace | None, taken: set[str], noted: Mapping[str, tuple[str, ...]]) -> Iterator[Refused]:
    """What the beginning of a replay refused, then of answers that it does not come to what was noted or no check could look at."""
    steps = {one.request.key: one for one in trace.steps} if trace else {}
    for row in rows:
        step = steps.get(row.key)
        flaws = list(step.flaws if step else ()) or flaws_of(row) or [Flaw(one, NOT_KEPT) for one in noted.get(row.key, ())]
        if flaws and row.key not in taken:
            reasons, detail = tuple(sorted({one.reason for one in flaws})), "; ".join(dict.fromkeys(one.detail for one in flaws))
            yield Refused(reasons, row.about.dialogue_id, row.about.kind, row.about.turn, row.key, row.completion.text, detail)
