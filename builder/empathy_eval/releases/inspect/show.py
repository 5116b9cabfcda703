"""Inspection of a text or of refused texts, from a release, a build or annotations, with a ledger."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.schemas import read_json
from empathy_eval.completions.ledger import Ledger, LedgerEntry
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK, CROSSING, KINDS, SCORE
from empathy_eval.design.planning import Plan
from empathy_eval.generation.outcomes import BUILD, Outcome
from empathy_eval.generation.replay_item import KnownItem, Trace
from empathy_eval.raters.judges.annotations import read_annotations
from empathy_eval.raters.review.record import read_record
from empathy_eval.releases.inspect.recipe_from_manifest import RebuiltRecipe, rebuild_recipe
from empathy_eval.releases.inspect.rejected import refused_by_judge, refused_in_source, show_annotations
from empathy_eval.releases.inspect.requests import collect_requests, read_answers, refused_texts
from empathy_eval.releases.inspect.shown import RefusedText, ShownItem, ShownRequest, ShownText
from empathy_eval.releases.inspect.sources import Judgements, Source, open_source
from empathy_eval.releases.inspect.texts import KIND_OF, OutcomeTexts, TextAddress, parse_address, unknown_id

NO_LEDGER = "answers, refusals and repairs are in the ledger of the build, which is not here: give it with --ledger"
CROSSED_KINDS = frozenset(kind.name for kind in CROSSING)
NO_REVIEWS = "the judgements of single raters are in the record of review import: give it with --reviews"


@dataclass(frozen=True)
class InspectionInputs:
    """Inputs besides the folder: a ledger, a record of reviews, and the user's own scenarios, templates and rules."""

    ledger: Path | None = None
    reviews: Path | None = None
    scenarios: Path | None = None
    templates: Path | None = None
    rules: Path | None = None


def show(folder: Path, name: str, inputs: InspectionInputs | None = None) -> ShownItem:
    """Returns everything that a release, a build or annotations hold of a dialogue, a pair, a turn, a variant or a request.

    No request is sent, nothing is written, and no code is run that the folder names.

    Raises:
        InputError: if the folder is none of these, or holds nothing of that name.
        JobError: if a row of the ledger that is read is damaged.
    """
    inputs = inputs or InspectionInputs()
    if _holds_annotations(folder):
        return show_annotations(folder, name, inputs.ledger)
    with _open_inspector(folder, inputs) as inspector:
        return inspector.describe(inspector.find(name))


def _holds_annotations(folder: Path) -> bool:
    """Whether a folder holds annotations."""
    header = read_json(folder / BUILD, None, "name the folder of a release or a build") if (folder / BUILD).is_file() else None
    return isinstance(header, dict) and "rubric" in header


@contextlib.contextmanager
def _open_inspector(folder: Path, inputs: InspectionInputs) -> Iterator[Inspector]:
    """Opens a release or a build with its ledger, or with an empty ledger."""
    source = open_source(folder)
    path = inputs.ledger or source.ledger
    rebuilt = rebuild_recipe(source.header, inputs.scenarios, inputs.templates, inputs.rules, folder)
    record = read_record(inputs.reviews) if inputs.reviews else None
    with Ledger(path, create=False, write=False) if path else Ledger(Path(":memory:")) as ledger:
        yield Inspector(source, ledger, rebuilt, record, answered=path is not None)


def rejected(folder: Path, reason: str | None = None, inputs: InspectionInputs | None = None) -> Iterator[RefusedText]:
    """Yields texts that were refused for a reason, or for any reason, and items that were left out.

    Raises:
        InputError: if the folder is no release, no build and no annotations, or, at the end, if nothing was refused for that reason.
        JobError: if rows of the ledger are damaged.
    """
    counts = Counter[str]()
    for refused in _all_rejected(folder, inputs or InspectionInputs()):
        counts.update(refused.reasons)
        if reason in (None, *refused.reasons):
            yield refused
    if reason is not None and not counts[reason]:
        known = ", ".join(f"{name} ({count:,})" for name, count in sorted(counts.items()))
        fix = f"name one of these: {known}" if known else "nothing was refused: leave --rejected out"
        raise input_error("--rejected", f'nothing was refused for "{reason}"', fix)


def _all_rejected(folder: Path, inputs: InspectionInputs) -> Iterator[RefusedText]:
    if _holds_annotations(folder):
        yield from refused_by_judge(read_annotations(folder), inputs.ledger)
        return
    with _open_inspector(folder, inputs) as inspector:
        yield from refused_in_source(inspector.source, inspector.ledger, inspector.rebuilt, answered=inspector.answered)


@dataclass(frozen=True)
class Inspector:
    """A folder, its ledger (empty unless ``answered``), the recipe of its build, and the record of its reviews."""

    source: Source
    ledger: Ledger
    rebuilt: RebuiltRecipe
    record: Mapping[str, Any] | None
    answered: bool

    def find(self, name: str) -> TextAddress:
        """Returns the address that an id or the beginning of a key names. Raises InputError if there is none, or several."""
        address = parse_address(name)
        if isinstance(address, TextAddress):
            return address
        rows = self.ledger.rows("key >= ? AND key < ?", (address, address + "g"))
        matches = [TextAddress(row[1], row[3], row[2], row[0]) for row, _ in itertools.islice(rows, 2)]
        matches = matches or self.source.find_keys(address)
        if not matches:
            where = self.source.title + (" and its ledger" if self.answered else "; no ledger was given")
            raise input_error("ID", f'no request with a key "{address}…" is in {where}', "give the ledger that holds it with --ledger")
        if len(matches) > 1:
            keys = " and ".join(match.key or "" for match in matches)
            raise input_error("ID", f'"{address}…" is the beginning of several keys', f"give more digits: {keys} begin like that")
        return matches[0]

    def describe(self, address: TextAddress) -> ShownItem:
        """Returns everything about an address. Raises InputError if it does not exist."""
        stored, left_out = self.source.outcome(address.dialogue_id), self.source.left_out()
        _, left = left_out.get(address.dialogue_id) or left_out.get(address.name, ("", ""))
        rows = read_answers(self.ledger, address.dialogue_id) if self.answered else []
        plan = self.rebuilt.plan(address.dialogue_id)
        if not (stored or left or rows or plan):
            raise unknown_id(address.dialogue_id, self.source.title, self.source.dialogue_ids())
        refused = refused_texts(rows, stored.candidates) if stored else {}
        refused |= {failure.request_key: failure.reasons for failure in stored.failures if failure.request_key} if stored else {}
        trace = self.replay(stored, plan, refused)
        outcome = stored or (trace.outcome if trace else None)
        dialogue = (stored and stored.dialogue) or (trace.dialogue if trace else None)
        address = address if address.item is None else _with_turn(address, outcome)
        if address.turn is not None:
            _check_turn(address, len(dialogue.turns) if dialogue else len(plan.turns) if plan else None)
        requests = collect_requests(trace, rows, outcome, refused, self.rebuilt)
        texts = OutcomeTexts(outcome, dialogue, self.rebuilt.recipe, plan, trace) if outcome and dialogue else None
        return ShownItem(
            address.key or address.name + (f"/{KINDS[address.kind].variant}" if address.kind else ""),
            self.source.title,
            self._status(stored, outcome, left),
            tuple(self._why(address, stored, outcome, left)),
            texts.turns(address.turn) if texts and address.turn is not None else (),
            _texts(texts, address),
            tuple(texts.refused(address.turn, address.kind)) if texts else (),
            tuple(request for request in requests if _belongs_to(request, address)),
            self._judgements(address) if address.item is None else {},
            tuple(self._notes(address, stored, rows)),
        )

    def replay(self, stored: Outcome | None, plan: Plan | None, refused: Mapping[str, tuple[str, ...]]) -> Trace | None:
        """Replays a planned item over the ledger; a stored outcome gives its dialogue and the names of its models."""
        names = dict[str, str]()
        if stored and stored.dialogue:
            names["self_chat"] = stored.dialogue.model
            for pair in stored.pairs:
                names |= {"far": pair.empathetic.model} | ({} if pair.apathetic.method == "rules" else {"near": pair.apathetic.model})
            for item in stored.crossed:
                names |= {CROSSED.role: item.writer, CROSSED_CHECK.role: item.judge} if item.writer and item.judge else {}
        replayer = self.rebuilt.replayer(self.ledger, self.source.header.get("toxicity_weights"), names)
        return replayer.trace(plan, KnownItem(stored.dialogue if stored else None, refused)) if replayer and plan else None

    def _status(self, stored: Outcome | None, outcome: Outcome | None, left: str) -> str:
        if left:
            return "left out"
        if self.source.released:
            return "released" if stored else "not released"
        return outcome.status if outcome else "not known"

    def _why(self, address: TextAddress, stored: Outcome | None, outcome: Outcome | None, left: str) -> Iterator[str]:
        """Yields explanations of the status."""
        if left:
            yield left
        if outcome and outcome.status == "rejected":
            yield f"all samples were refused: {', '.join(outcome.reasons)}"
        if outcome and outcome.status == "missing" and not self.source.released:
            yield f"not all of its requests are answered yet: {outcome.reasons[0]}"
        if self.source.released and not left and stored is None and not (outcome and outcome.status == "rejected"):
            spares = self.source.header["spares_left_out"]
            yield (
                f"accepted, but beyond the quota of its scenario: one of {spares} spares that are left out"
                if outcome and outcome.status == "accepted" and not self.rebuilt.has_custom_checks
                else "the release does not hold it: it was refused, is missing, or is a spare; the build and its ledger show which"
            )
        if outcome and outcome.dialogue and address.turn is not None and address.turn < len(outcome.dialogue.turns):
            if address.kind and not address.key and outcome.dialogue.turns[address.turn].role != "helper":
                yield "this is a turn of the seeker: only turns of the helper have variants"
            if address.item is None and address.name not in self.source.left_out():
                yield from _left_out_pair(outcome, address.turn)
            for failure in outcome.failures:
                if (failure.turn, failure.kind, failure.final) == (address.turn, CROSSED.name, True):
                    yield f"its crossed item is left out: {', '.join(failure.reasons)}"

    def _judgements(self, address: TextAddress) -> Judgements:
        judgements = self.source.judgements(address)
        if address.key and address.kind not in KINDS:  # a judge's request: only the rows that it is behind
            mine = {name: tuple(row for row in rows if address.key in row.values()) for name, rows in judgements.items()}
            judgements = {name: rows for name, rows in mine.items() if rows}
        name = "dialogue_id" if address.turn is None else "pair_id"
        reviews = tuple(row for row in (self.record["judgements"] if self.record else ()) if row.get(name) == address.name)
        return judgements | ({"reviews": reviews} if reviews else {})

    def _notes(self, address: TextAddress, stored: Outcome | None, rows: list[LedgerEntry]) -> Iterator[str]:
        yield from self.rebuilt.notes
        if self.rebuilt.changed:
            changed = "; ".join(self.rebuilt.changed)
            yield f"requests are rendered from parts that have changed: {changed}; --scenarios, --templates and --rules name other folders"
        if not self.answered:
            yield NO_LEDGER
        elif not rows:
            yield f"the ledger has no answer about {address.dialogue_id}: it may be of another build"
        if self.source.header.get("reviews") and self.record is None:
            yield NO_REVIEWS
        if address.turn is None and stored and stored.pairs:
            names = ", ".join(f"t{pair.turn:02d}" for pair in stored.pairs)
            yield f"name a pair by its id to show it, such as {address.dialogue_id}-t{stored.pairs[0].turn:02d}: the pairs are {names}"


def _check_turn(address: TextAddress, turns: int | None) -> None:
    if turns is not None and not 0 <= (address.turn or 0) < turns:
        what = f'"{address.name}" does not exist: {address.dialogue_id} has {turns} turns'
        raise input_error("ID", what, f"name one of {address.dialogue_id}-t00 to {address.dialogue_id}-t{turns - 1:02d}")


def _with_turn(address: TextAddress, outcome: Outcome | None) -> TextAddress:
    """Returns the address of a crossed item with its turn. Raises InputError if the dialogue has no such item."""
    turns = {item.crossed_id: item.turn for item in outcome.crossed} if outcome else {}
    if address.name not in turns:
        fix = f"name one of {', '.join(turns)}" if turns else f"show {address.dialogue_id}, or the turn of the item"
        raise input_error("ID", f'"{address.name}" does not exist: {address.dialogue_id} has {len(turns)} crossed items', fix)
    return replace(address, turn=turns[address.name])


def _left_out_pair(outcome: Outcome, turn: int) -> Iterator[str]:
    """Yields why a helper turn has no pair, or a pair without controls: final failures; in a release, variants without accepted text."""
    if outcome.dialogue is None or outcome.dialogue.turns[turn].role != "helper":
        return
    pair = next((pair for pair in outcome.pairs if pair.turn == turn), None)
    final = (failure for failure in outcome.failures if failure.turn == turn and failure.final and KINDS[failure.kind].variant)
    failed = {failure.kind: ", ".join(failure.reasons) for failure in final}
    if pair is None and not failed:
        for kind in (KIND_OF[name] for name in PAIR_VARIANTS):
            candidates = [candidate for candidate in outcome.candidates if (candidate.turn, candidate.kind) == (turn, kind)]
            if all(candidate.reasons for candidate in candidates):
                reasons = sorted({reason for candidate in candidates for reason in candidate.reasons})
                failed[kind] = ", ".join(reasons) or "no text of it reached the checks"
    details = "; ".join(f"{kind}: {reasons}" for kind, reasons in failed.items())
    if pair is None:
        yield "its pair is left out, because both variants must pass" + (f": {details}" if details else "")
    elif details:
        yield f"its controls are left out, because both must pass: {details}"


def _texts(texts: OutcomeTexts | None, address: TextAddress) -> tuple[ShownText, ...]:
    """Returns the texts at an address: all turns of a dialogue, the reference and variants of a pair, the text of a request."""
    if texts is None:
        return ()
    if address.turn is None:
        return texts.whole()
    if address.item is not None or address.kind in CROSSED_KINDS:
        return (*texts.crossed(address.turn),)
    variants = texts.variants(address.turn, address.kind if address.kind in KIND_OF.values() else None)
    return (texts.turn(address.turn), *variants, *(texts.crossed(address.turn) if address.kind is None else ()))


def _belongs_to(request: ShownRequest, address: TextAddress) -> bool:
    """Whether a request is shown at an address; of a dialogue only those that wrote it, because its turns have the others."""
    if address.key:
        return request.key == address.key
    if address.turn is None:
        return request.turn is None
    if address.item is not None:
        return request.turn == address.turn and request.kind in CROSSED_KINDS
    return request.turn == address.turn and address.kind in (None, request.kind) and request.kind != SCORE.name
