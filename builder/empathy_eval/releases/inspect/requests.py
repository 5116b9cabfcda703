"""Requests behind a text: rendered again if their keys prove them, and other answers of the ledger."""

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

JUDGED = {kind.name for kind in JUDGING}
NOT_RENDERED = "the request cannot be shown: no request that is rendered here has this key"
PROVEN = "this is the request that was sent, as its key proves; its answer is in the ledger of the build"
NOT_KNOWN = "it passes the checks that are run here, but another answer was taken: one of the build's own checks may have refused it"


# Columns of an untrusted ledger may hold other types; reading such a row raises an error.
KEYS = """
SELECT key, dialogue_id, kind, turn FROM sound_completions WHERE kind != ? AND typeof(key) = 'text' AND typeof(dialogue_id) = 'text'
AND typeof(kind) = 'text' AND typeof(turn) IN ('integer', 'null') ORDER BY key
"""


def read_answers(ledger: Ledger, dialogue_id: str) -> list[LedgerEntry]:
    """Returns the answers of a ledger about a dialogue, without scores. Raises JobError if one of them is damaged."""
    rows = ledger.rows("dialogue_id = ? AND kind != ?", (dialogue_id, SCORE.name))
    return [LedgerEntry(row[0], About(*row[1:4]), completion) for row, completion in rows]


def keys_by_dialogue(ledger: Ledger) -> dict[str, list[tuple[str, About]]]:
    """Returns the keys of all answers but scores by dialogue, in one query because a ledger is not ordered by dialogues.

    Raises:
        JobError: if the file is damaged.
    """
    keys: dict[str, list[tuple[str, About]]] = {}
    for key, dialogue_id, kind, turn in ledger.query(KEYS, (SCORE.name,)):
        keys.setdefault(dialogue_id, []).append((key, About(dialogue_id, kind, turn)))
    return dict(sorted(keys.items()))


def collect_requests(
    trace: Trace | None, rows: Iterable[LedgerEntry], outcome: Outcome | None, refused: Mapping[str, tuple[str, ...]],
    rebuilt: RebuiltRecipe,
) -> list[ShownRequest]:  # fmt: skip
    """Returns all requests about a dialogue with their verdicts: those of its replay, then other answers of the ledger.

    ``refused`` are noted reasons against answers by key.
    """
    accepted, steps = released_keys_of(outcome) if outcome else {}, trace.steps if trace else ()
    chosen = {key: step.request.sample // SAMPLES_PER_CANDIDATE for step in steps if (key := step.request.key) in accepted.values()}
    requests = [_replayed_request(step, accepted, rebuilt, chosen) for step in steps]
    replayed = {request.key for request in requests}
    keys = {*accepted.values(), *(judge_keys_of(outcome) if outcome else ())}
    for row in (row for row in rows if row.key not in replayed):
        extra, sample = _extra_request(row, keys, refused), _sample_of(row, steps, rebuilt.recipe)
        if sample:
            extra = replace(extra, body=sample.body, endpoint=sample.endpoint, sample=sample.sample, repair=False, note="")
        requests.append(extra)
    return [replace(request, figures=tuple(_figures(request, trace, rebuilt.recipe))) for request in requests]


def _sample_of(row: LedgerEntry, steps: Iterable[Step], recipe: Recipe | None) -> Request | None:
    """Returns the request of an answer that is a later sample of a replayed request, as its key proves."""
    samples = recipe.config.samples if recipe else 1
    requests = (step.with_key(row.key, samples) for step in steps if step.about == row.about and not step.repair)
    return next(filter(None, requests), None)


def _replayed_request(
    step: Step, accepted: Mapping[tuple[str, int | None], str | None], rebuilt: RebuiltRecipe, chosen: Mapping[str, int]
) -> ShownRequest:
    """Returns a request of the replay; ``chosen`` is the number of the released candidate by the key of its request."""
    about, request, recipe, changed = step.about, step.request, rebuilt.recipe, rebuilt.changed
    key, candidate = accepted.get((about.kind, about.turn)), request.sample // SAMPLES_PER_CANDIDATE
    verdict, note = str(step.verdict), ""
    proven = step.with_key(key, recipe.config.samples) if key and recipe else None
    differs = key and key != request.key
    if step.verdict == "taken" and key and chosen.get(key, candidate) != candidate:
        verdict = NOT_CHOSEN.replace("_", " ")
    elif proven and step.verdict == "unanswered":
        request, verdict, note = proven, "taken", PROVEN
    elif differs and step.verdict == "taken" and rebuilt.has_custom_checks and (proven or not changed):
        verdict, note = "unknown", NOT_KNOWN
    elif differs and (step.verdict == "taken" or (step.verdict == "unanswered" and not step.repair and changed)):
        note = f"the request has changed: its key was {key}, and is {request.key} as rendered here"
        note += f"; changed: {'; '.join(changed)}" if changed else ""
    elif step.verdict == "unanswered":
        note = "as rendered here; no answer with this key was found"
    shown = ShownRequest(
        request.key, about.kind, about.turn, verdict, request.body, request.endpoint, request.sample, step.repair,
        reasons=tuple((flaw.reason, flaw.detail) for flaw in step.flaws), note=note,
    )  # fmt: skip
    return with_answer(shown, step.completion)


def _extra_request(row: LedgerEntry, accepted: set[str | None], noted: Mapping[str, tuple[str, ...]]) -> ShownRequest:
    """Returns an answer that is not in the replay; its reasons are read from itself, or were noted."""
    judged = row.about.kind in JUDGED
    flaws = [] if judged else read_flaws(row)
    reasons = tuple((flaw.reason, flaw.detail) for flaw in flaws) or tuple((reason, "") for reason in noted.get(row.key, ()))
    verdict = "taken" if row.key in accepted else "refused" if reasons else "unknown"
    note = "annotate --preview shows the requests of a judge" if judged else NOT_RENDERED
    return with_answer(ShownRequest(row.key, row.about.kind, row.about.turn, verdict, reasons=reasons, note=note), row.completion)


def refused_texts(rows: Iterable[LedgerEntry], candidates: Iterable[Candidate]) -> dict[str, tuple[str, ...]]:
    """Returns the reasons against answers by key, from the candidates of a release, which holds no requests of refused texts."""
    refused = (candidate for candidate in candidates if candidate.reasons and candidate.reasons != (NOT_CHOSEN,))
    noted = {(candidate.kind, candidate.turn, candidate.text): candidate.reasons for candidate in refused}
    texts = ((row.key, (row.about.kind, row.about.turn or 0, variant_text(row.about.kind, row.completion) or "")) for row in rows)
    return {key: noted[text] for key, text in texts if text in noted}


def variant_text(kind: str, completion: Completion) -> str | None:
    """Returns the text of a variant in an answer; None without one."""
    value = read_answer(completion, KINDS[kind].answer)[0] if kind in KINDS and KINDS[kind].variant else None
    return None if value is None else rewriting.parse_answer(value)


def read_flaws(row: LedgerEntry) -> list[Flaw]:
    """Returns the flaws of an answer that precede all checks: a refusal, no JSON, or JSON outside its schema."""
    kind = ALL_KINDS.get(row.about.kind)
    return (read_answer(row.completion, kind.answer) if kind else parse_json_answer(row.completion))[1]


def with_answer(request: ShownRequest, completion: Completion | None) -> ShownRequest:
    """Returns a request with its answer, if there is one."""
    if completion is None:
        return request
    return replace(request, model=completion.model, finish=completion.finish, text=completion.text, tokens=asdict(completion.usage))


def _figures(request: ShownRequest, trace: Trace | None, recipe: Recipe | None) -> Iterator[CheckFigure]:
    """Yields the figures of the text in an answer to a rewriting request."""
    kind, dialogue = KINDS.get(request.kind), trace.dialogue if trace else None
    if not (kind and dialogue and recipe and trace) or request.text is None or request.turn is None:
        return
    text = variant_text(request.kind, Completion(request.text, request.finish or "", request.model or ""))
    if text is not None and 0 <= request.turn < len(dialogue.turns):
        reference = dialogue.turns[request.turn].text
        flags = flags_at(dialogue, request.turn, recipe.language)
        yield from variant_figures(kind, reference, text, trace.scores.get(text), recipe, flags)
