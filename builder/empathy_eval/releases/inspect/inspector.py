"""A look into a release or a build and its ledger: where a name leads, and what is there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.completions.ledger import Ledger, LedgerEntry
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK, CROSSING, KINDS, SCORE
from empathy_eval.design.planning import Plan
from empathy_eval.generation.outcomes import Outcome
from empathy_eval.generation.replay_item import KnownItem, Trace
from empathy_eval.releases.inspect.recipe_from_manifest import RebuiltRecipe
from empathy_eval.releases.inspect.requests import collect_requests, read_answers, refused_texts
from empathy_eval.releases.inspect.shown import ShownItem, ShownRequest, ShownText
from empathy_eval.releases.inspect.sources import Source
from empathy_eval.releases.inspect.texts import KIND_OF, OutcomeTexts, TextAddress, parse_address, unknown_id

NO_LEDGER = "answers, refusals and repairs are in the ledger of the build, which is not here: give it with --ledger"
CROSSED_KINDS = frozenset(one.name for one in CROSSING)
NO_REVIEWS = "the judgements of single raters are in the record of review import: give it with --reviews"


@dataclass(frozen=True)
class Inspector:
    """A folder and its ledger, open to be looked into. ``answered`` if there is a ledger."""

    source: Source
    ledger: Ledger
    again: RebuiltRecipe
    record: Mapping[str, Any] | None
    answered: bool

    def place(self, name: str) -> TextAddress:
        """The place that a name says.

        Raises:
            InputError: if there is none, or several.
        """
        said = parse_address(name)
        if isinstance(said, TextAddress):
            return said
        rows = self.ledger.rows("key >= ? AND key < ?", (said, said + "g"))
        found = [TextAddress(row[1], row[3], row[2], row[0]) for row, _ in itertools.islice(rows, 2)]
        found = found or self.source.keyed(said)
        if not found:
            where = self.source.named + (" and its ledger" if self.answered else "; no ledger was given")
            raise input_error("ID", f'no request with a key "{said}…" is in {where}', "give the ledger that holds it with --ledger")
        if len(found) > 1:
            keys = " and ".join(one.key or "" for one in found)
            raise input_error("ID", f'"{said}…" is the beginning of several keys', f"give more digits: {keys} begin like that")
        return found[0]

    def shown(self, place: TextAddress) -> ShownItem:
        """All about a place.

        Raises:
            InputError: if it is not there.
        """
        outcome, gone = self.source.outcome(place.dialogue_id), self.source.left_out()
        _, left = gone.get(place.dialogue_id) or gone.get(place.name, ("", ""))
        rows = read_answers(self.ledger, place.dialogue_id) if self.answered else []
        plan = self.again.plan(place.dialogue_id)
        if not (outcome or left or rows or plan):
            raise unknown_id(place.dialogue_id, self.source.named, self.source.dialogue_ids())
        refused = refused_texts(rows, outcome.candidates) if outcome else {}
        refused |= {failure.request_key: failure.reasons for failure in outcome.failures if failure.request_key} if outcome else {}
        trace = self.trace(outcome, plan, refused)
        told = outcome or (trace.outcome if trace else None)
        dialogue = (outcome and outcome.dialogue) or (trace.dialogue if trace else None)
        place = place if place.item is None else _of_item(place, told)
        if place.turn is not None:
            self._turn(place, len(dialogue.turns) if dialogue else len(plan.turns) if plan else None)
        asked = collect_requests(trace, rows, told, refused, self.again)
        texts = OutcomeTexts(told, dialogue, self.again.recipe, plan, trace) if told and dialogue else None
        return ShownItem(
            place.key or place.name + (f"/{KINDS[place.kind].variant}" if place.kind else ""),
            self.source.named,
            self._status(outcome, told, left),
            tuple(self._why(place, outcome, told, left)),
            texts.turns(place.turn) if texts and place.turn is not None else (),
            _texts(texts, place),
            tuple(texts.refused(place.turn, place.kind)) if texts else (),
            tuple(one for one in asked if _about(one, place)),
            self._said(place) if place.item is None else {},
            tuple(self._notes(place, outcome, rows)),
        )

    def trace(self, outcome: Outcome | None, plan: Plan | None, refused: Mapping[str, tuple[str, ...]]) -> Trace | None:
        """The replay of a planned item over the ledger; of a folder's outcome it goes on with the dialogue that is there."""
        names = dict[str, str]()
        if outcome and outcome.dialogue:
            names["self_chat"] = outcome.dialogue.model
            for pair in outcome.pairs:
                names |= {"far": pair.empathetic.model} | ({} if pair.apathetic.method == "rules" else {"near": pair.apathetic.model})
            for item in outcome.crossed:
                names |= {CROSSED.role: item.writer, CROSSED_CHECK.role: item.judge} if item.writer and item.judge else {}
        retracer = self.again.replayer(self.ledger, self.source.header.get("toxicity_weights"), names)
        return retracer.trace(plan, KnownItem(outcome.dialogue if outcome else None, refused)) if retracer and plan else None

    def _turn(self, place: TextAddress, turns: int | None) -> None:
        if turns is not None and not 0 <= (place.turn or 0) < turns:
            what = f'"{place.name}" does not exist: {place.dialogue_id} has {turns} turns'
            raise input_error("ID", what, f"name one of {place.dialogue_id}-t00 to {place.dialogue_id}-t{turns - 1:02d}")

    def _status(self, outcome: Outcome | None, told: Outcome | None, left: str) -> str:
        if left:
            return "left out"
        if self.source.released:
            return "released" if outcome else "not released"
        return told.status if told else "not known"

    def _why(self, place: TextAddress, outcome: Outcome | None, told: Outcome | None, left: str) -> Iterator[str]:
        if left:
            yield left
        if told and told.status == "rejected":
            yield f"all samples were refused: {', '.join(told.reasons)}"
        if told and told.status == "missing" and not self.source.released:
            yield f"not all of its requests are answered yet: {told.reasons[0]}"
        if self.source.released and not left and outcome is None and not (told and told.status == "rejected"):
            spares = self.source.header["spares_left_out"]
            yield (
                f"accepted, but beyond the quota of its scenario: one of {spares} spares that are left out"
                if told and told.status == "accepted" and not self.again.has_custom_checks
                else "the release does not hold it: it was refused, is missing, or is a spare; the build and its ledger show which"
            )
        if told and told.dialogue and place.turn is not None and place.turn < len(told.dialogue.turns):
            if place.kind and not place.key and told.dialogue.turns[place.turn].role != "helper":
                yield "this is a turn of the seeker: only turns of the helper have variants"
            yield from _left_out_pair(told, place.turn) if place.item is None and place.name not in self.source.left_out() else ()
            lost = (failure for failure in told.failures if (failure.turn, failure.kind, failure.final) == (place.turn, CROSSED.name, True))
            yield from (f"its crossed item is left out: {', '.join(one.reasons)}" for one in lost)

    def _said(self, place: TextAddress) -> dict[str, tuple[Mapping[str, Any], ...]]:
        found = self.source.said(place)
        if place.key and place.kind not in KINDS:  # a judge's: what it was asked for, and nothing that others said
            found = {name: mine for name, rows in found.items() if (mine := tuple(row for row in rows if place.key in row.values()))}
        judged = self.record["judgements"] if self.record else ()
        mine = tuple(one for one in judged if one.get("dialogue_id" if place.turn is None else "pair_id") == place.name)
        return found | ({"reviews": mine} if mine else {})

    def _notes(self, place: TextAddress, outcome: Outcome | None, rows: list[LedgerEntry]) -> Iterator[str]:
        yield from self.again.notes
        if self.again.changed:
            changed = "; ".join(self.again.changed)
            yield f"requests are rendered from parts that have changed: {changed}; --scenarios, --templates and --rules name other folders"
        if not self.answered:
            yield NO_LEDGER
        elif not rows:
            yield f"the ledger has no answer about {place.dialogue_id}: it may be of another build"
        if self.source.header.get("reviews") and self.record is None:
            yield NO_REVIEWS
        if place.turn is None and outcome and outcome.pairs:
            names = ", ".join(f"t{pair.turn:02d}" for pair in outcome.pairs)
            yield f"name a pair by its id to show it, such as {place.dialogue_id}-t{outcome.pairs[0].turn:02d}: the pairs are {names}"


def _of_item(place: TextAddress, told: Outcome | None) -> TextAddress:
    """The place of a crossed item, with the turn that it is of.

    Raises:
        InputError: if the dialogue has no such item.
    """
    there = {one.crossed_id: one.turn for one in told.crossed} if told else {}
    if place.name not in there:
        fix = f"name one of {', '.join(there)}" if there else f"show {place.dialogue_id}, or the turn of the item"
        raise input_error("ID", f'"{place.name}" does not exist: {place.dialogue_id} has {len(there)} crossed items', fix)
    return replace(place, turn=there[place.name])


def _left_out_pair(told: Outcome, turn: int) -> Iterator[str]:
    """Why a helper turn has no pair, or one without controls: what was refused for good, or of a release what has no text that passed."""
    if told.dialogue is None or told.dialogue.turns[turn].role != "helper":
        return
    pair = next((one for one in told.pairs if one.turn == turn), None)
    failed = {
        failure.kind: ", ".join(failure.reasons)
        for failure in told.failures
        if failure.turn == turn and failure.final and KINDS[failure.kind].variant
    }
    if pair is None and not failed:
        mine = [candidate for candidate in told.candidates if candidate.turn == turn]
        for kind in (KIND_OF[name] for name in PAIR_VARIANTS):
            if not any(one.kind == kind and not one.reasons for one in mine):
                reasons = sorted({reason for one in mine if one.kind == kind for reason in one.reasons})
                failed[kind] = ", ".join(reasons) or "no text of it reached the checks"
    said = "; ".join(f"{kind}: {reasons}" for kind, reasons in failed.items())
    if pair is None:
        yield "its pair is left out, because both variants must pass" + (f": {said}" if said else "")
    elif said:
        yield f"its controls are left out, because both must pass: {said}"


def _texts(texts: OutcomeTexts | None, place: TextAddress) -> tuple[ShownText, ...]:
    """The texts of a place: of a dialogue all turns, of a pair the reference and its variants, of a request what it is about."""
    if texts is None:
        return ()
    if place.turn is None:
        return texts.whole()
    if place.item is not None or place.kind in CROSSED_KINDS:
        return (*texts.crossed(place.turn),)
    variants = texts.variants(place.turn, place.kind if place.kind in KIND_OF.values() else None)
    return (texts.turn(place.turn), *variants, *(texts.crossed(place.turn) if place.kind is None else ()))


def _about(asked: ShownRequest, place: TextAddress) -> bool:
    """Whether a request is one of a place: of a dialogue those that wrote it, the others are shown with their turns."""
    if place.key:
        return asked.key == place.key
    if place.turn is None:
        return asked.turn is None
    if place.item is not None:
        return asked.turn == place.turn and asked.kind in CROSSED_KINDS
    return asked.turn == place.turn and place.kind in (None, asked.kind) and asked.kind != SCORE.name
