"""The requests behind a text: rendered again where their keys say that they are the same, and what a ledger has beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace

from empathy_eval.completions.asker import Step
from empathy_eval.completions.ledger import Ledger, LedgerEntry
from empathy_eval.completions.requests import About, Completion, Flaw, Request, parse_json_answer, read_answer
from empathy_eval.design.configuration import SAMPLES_PER_CANDIDATE
from empathy_eval.design.kinds import ALL_KINDS, JUDGING, KINDS, SCORE
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation import rewriting
from empathy_eval.generation.outcomes import Candidate, Outcome
from empathy_eval.generation.replay_item import Trace
from empathy_eval.releases.inspect.recipe_from_manifest import RebuiltRecipe
from empathy_eval.releases.inspect.shown import CheckFigure, ShownRequest
from empathy_eval.releases.inspect.sources import judge_keys_of, released_keys_of
from empathy_eval.releases.inspect.texts import flags_at, variant_figures

JUDGED = {one.name for one in JUDGING}
NOT_RENDERED = "the request cannot be shown: no request that is rendered here has this key"
PROVEN = "this is the request that was sent, as its key proves; its answer is in the ledger of the build"
NOT_KNOWN = "it passes the checks that are run here, but another answer was taken: one of the build's own checks may have refused it"


# What is no text in a stranger's ledger is damage, which is told where the row itself is read.
KEYS = """
SELECT key, dialogue_id, kind, turn FROM sound_completions WHERE kind != ? AND typeof(key) = 'text' AND typeof(dialogue_id) = 'text'
AND typeof(kind) = 'text' AND typeof(turn) IN ('integer', 'null') ORDER BY key
"""


def read_answers(ledger: Ledger, dialogue_id: str) -> list[LedgerEntry]:
    """The answers of a ledger that were asked for of a dialogue, without scores.

    Raises:
        JobError: if one of them is damaged.
    """
    found = ledger.rows("dialogue_id = ? AND kind != ?", (dialogue_id, SCORE.name))
    return [LedgerEntry(row[0], About(*row[1:4]), completion) for row, completion in found]


def keys_by_dialogue(ledger: Ledger) -> dict[str, list[tuple[str, About]]]:
    """By dialogue the keys of all answers but scores, and what they are about: in one go, for a ledger is not ordered by dialogues.

    Raises:
        JobError: if the file is damaged.
    """
    found: dict[str, list[tuple[str, About]]] = {}
    for key, dialogue_id, kind, turn in ledger.query(KEYS, (SCORE.name,)):
        found.setdefault(dialogue_id, []).append((key, About(dialogue_id, kind, turn)))
    return dict(sorted(found.items()))


def collect_requests(
    trace: Trace | None, rows: Iterable[LedgerEntry], outcome: Outcome | None, refused: Mapping[str, tuple[str, ...]], again: RebuiltRecipe
) -> list[ShownRequest]:  # fmt: skip
    """All requests about a dialogue, each with what became of it: those of its replay, then what a ledger has beside them.

    ``refused`` are by key the reasons against answers, as far as they were noted.
    """
    taken, steps = released_keys_of(outcome) if outcome else {}, trace.steps if trace else ()
    chosen = {key: step.request.sample // SAMPLES_PER_CANDIDATE for step in steps if (key := step.request.key) in taken.values()}
    found = [_replayed_request(step, taken, again, chosen) for step in steps]
    known, beside = {one.key for one in found}, list[ShownRequest]()
    mine = {*taken.values(), *(judge_keys_of(outcome) if outcome else ())}
    for row in (one for one in rows if one.key not in known):
        asked = _extra_request(row, mine, refused)
        one = _sample_of(row, steps, again.recipe)
        beside.append(replace(asked, body=one.body, endpoint=one.endpoint, sample=one.sample, repair=False, note="") if one else asked)
    return [replace(one, figures=tuple(_figures(one, trace, again.recipe))) for one in found + beside]


def _sample_of(row: LedgerEntry, steps: Iterable[Step], recipe: Recipe | None) -> Request | None:
    """The request of an answer that is a later sample of one that the replay comes to, as its key proves."""
    samples = recipe.config.samples if recipe else 1
    found = (step.with_key(row.key, samples) for step in steps if step.about == row.about and not step.repair)
    return next(filter(None, found), None)


def _replayed_request(
    step: Step, taken: Mapping[tuple[str, int | None], str | None], again: RebuiltRecipe, chosen: Mapping[str, int]
) -> ShownRequest:
    """A request of the replay; ``chosen`` is by key of what it came to and was taken which candidate that is."""
    about, request, recipe, changed = step.about, step.request, again.recipe, again.changed
    key = taken.get((about.kind, about.turn))
    verdict, note = str(step.verdict), ""
    proven = step.with_key(key, recipe.config.samples) if key and recipe else None
    if (
        step.verdict == "taken"
        and key
        and chosen.get(key, request.sample // SAMPLES_PER_CANDIDATE) != request.sample // SAMPLES_PER_CANDIDATE
    ):
        verdict = NOT_CHOSEN.replace("_", " ")
    elif proven and step.verdict == "unanswered":
        request, verdict, note = proven, "taken", PROVEN
    elif key and key != request.key and step.verdict == "taken" and again.has_custom_checks and (proven or not changed):
        verdict, note = "unknown", NOT_KNOWN
    elif key and key != request.key and (step.verdict == "taken" or (step.verdict == "unanswered" and not step.repair and changed)):
        note = f"the request has changed: its key was {key}, and is {request.key} as rendered here"
        note += f"; changed: {'; '.join(changed)}" if changed else ""
    elif step.verdict == "unanswered":
        note = "as rendered here; no answer with this key was found"
    asked = ShownRequest(
        request.key, about.kind, about.turn, verdict, request.body, request.endpoint, request.sample, step.repair,
        reasons=tuple((flaw.reason, flaw.detail) for flaw in step.flaws), note=note,
    )  # fmt: skip
    return with_answer(asked, step.completion)


def _extra_request(row: LedgerEntry, taken: set[str | None], noted: Mapping[str, tuple[str, ...]]) -> ShownRequest:
    """An answer that the replay does not come to: what it was refused for is read from itself, or was noted."""
    flaws = [] if row.about.kind in JUDGED else read_flaws(row)
    reasons = tuple((flaw.reason, flaw.detail) for flaw in flaws) or tuple((one, "") for one in noted.get(row.key, ()))
    verdict = "taken" if row.key in taken else "refused" if reasons else "unknown"
    note = "annotate --preview shows the requests of a judge" if row.about.kind in JUDGED else NOT_RENDERED
    return with_answer(ShownRequest(row.key, row.about.kind, row.about.turn, verdict, reasons=reasons, note=note), row.completion)


def refused_texts(rows: Iterable[LedgerEntry], candidates: Iterable[Candidate]) -> dict[str, tuple[str, ...]]:
    """By key the reasons against answers, as a release notes them: it has the texts that reached the checks, and not their requests."""
    noted = {
        (candidate.kind, candidate.turn, candidate.text): candidate.reasons
        for candidate in candidates
        if candidate.reasons and candidate.reasons != (NOT_CHOSEN,)
    }
    found = (
        (row.key, noted.get((row.about.kind, row.about.turn or 0, variant_text(row.about.kind, row.completion) or ""))) for row in rows
    )
    return {key: reasons for key, reasons in found if reasons}


def variant_text(kind: str, completion: Completion) -> str | None:
    """The text of a variant that an answer gives, if it gives one."""
    value = read_answer(completion, KINDS[kind].answer)[0] if kind in KINDS and KINDS[kind].variant else None
    return None if value is None else rewriting.parse_answer(value)


def read_flaws(row: LedgerEntry) -> list[Flaw]:
    """What an answer is refused for before any check looks at it: refusals, what is no JSON, what is off its schema."""
    kind = ALL_KINDS.get(row.about.kind)
    return (read_answer(row.completion, kind.answer) if kind else parse_json_answer(row.completion))[1]


def with_answer(asked: ShownRequest, completion: Completion | None) -> ShownRequest:
    """A request with its answer, if there is one."""
    if completion is None:
        return asked
    return replace(asked, model=completion.model, finish=completion.finish, text=completion.text, tokens=asdict(completion.usage))


def _figures(asked: ShownRequest, trace: Trace | None, recipe: Recipe | None) -> Iterator[CheckFigure]:
    """The figures of the text in an answer to a rewriting request."""
    kind, dialogue = KINDS.get(asked.kind), trace.dialogue if trace else None
    if not (kind and dialogue and recipe and trace) or asked.text is None or asked.turn is None:
        return
    text = variant_text(asked.kind, Completion(asked.text, asked.finish or "", asked.model or ""))
    if text is not None and 0 <= asked.turn < len(dialogue.turns):
        reference = dialogue.turns[asked.turn].text
        flags = flags_at(dialogue, asked.turn, recipe.language)
        yield from variant_figures(kind, reference, text, trace.scores.get(text), recipe, flags)
