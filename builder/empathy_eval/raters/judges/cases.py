"""What is judged: turns of a release or a build with their texts, and dialogues, sampled so that a larger sample only appends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from empathy_eval.base.hashing import digest_bytes
from empathy_eval.design.contrasts import CONTROLS
from empathy_eval.design.dataset import parts_of
from empathy_eval.raters.judges.sources import REFERENCE as REFERENCE
from empathy_eval.raters.judges.sources import TEXTS as TEXTS
from empathy_eval.raters.judges.sources import Conversation, Placed, Released, Source


@dataclass(frozen=True)
class Case:
    """A helper turn with the conversation before it and its texts by variant; or, without a turn, a dialogue from its beginning to its end.

    ``conversation`` holds (role, text) of the turns that a judge may see; ``otherwise`` what stands in its place before some of the texts.
    """

    dialogue_id: str
    turn: int | None
    pair_id: str | None
    conversation: Conversation
    texts: dict[str, str] = field(default_factory=dict)
    otherwise: dict[str, Conversation] = field(default_factory=dict)

    def before(self, variant: str | None) -> Conversation:
        """The conversation before one of the texts."""
        return self.otherwise.get(variant or "", self.conversation)


@dataclass(frozen=True)
class Stratum:
    """What a sample is even over: the scenario, and the manner of the apathetic text where it is known."""

    scenario_id: int
    manner: str | None = None


def spread_out(names: dict[str, Stratum]) -> list[str]:
    """All names in the order in which a sample takes them: the first N are a sample of N, and a larger one only appends.

    Within a stratum the order is by the SHA-256 of the name; the k-th of n stands at (2 k + 1) / (2 n) among all, so that every sample has
    about the same share of each stratum.
    """
    strata: dict[Stratum, list[tuple[str, str]]] = defaultdict(list)
    for name, stratum in names.items():
        strata[stratum].append((digest_bytes(name.encode()), name))
    placed = [(Fraction(2 * rank + 1, 2 * len(found)), *one) for found in strata.values() for rank, one in enumerate(sorted(found))]
    return [name for _, _, name in sorted(placed)]


def sample_of(turns: Iterable[Placed], variants: Collection[str] = TEXTS) -> list[str]:
    """The names of turns in the order of the sample: where controls are among the variants, turns that have them come first.

    They are few, and what tells a judge from a shortcut is reckoned from them alone.
    """
    first, last = dict[str, Stratum](), dict[str, Stratum]()
    known: dict[Stratum, Stratum] = {}
    leading = not set(CONTROLS).isdisjoint(variants)
    for one in turns:
        stratum = Stratum(one.scenario_id, one.manner)
        (first if leading and one.controls else last)[one.name] = known.setdefault(stratum, stratum)
    return [*spread_out(first), *spread_out(last)]


def cases_of(source: Source | Path, turns: int | None, variants: Iterable[str] = TEXTS, but: frozenset[str] = frozenset()) -> list[Case]:
    """So many turns (None: all) with the texts of some variants, in the order of :func:`sample_of`; those in ``but`` are left out.

    A path is the folder of a release, which need not have its manifest yet.

    Raises:
        InputError: if a file is not there, or does not hold what the data contract says.
    """
    source, asked = _source(source), set(variants)
    order = [name for name in sample_of(source.turns(), asked) if name not in but][:turns]
    contexts, texts = dict[str, Conversation](), dict[str, dict[str, str]]()
    for name, context, some in source.texts(set(order), asked):
        contexts[name] = contexts.get(name, ()) or context
        texts.setdefault(name, {}).update(some)
    return [_case(name, contexts[name], texts[name]) for name in order]


def dialogues_of(source: Source | Path, number: int | None) -> list[Case]:
    """So many dialogues (None: all) as they are in a release or a build, in the order of the sample."""
    source = _source(source)
    order = spread_out({one.name: Stratum(one.scenario_id) for one in source.dialogues()})[:number]
    turns = dict(source.conversations(set(order)))
    return [Case(name, None, None, turns[name]) for name in order]


def _source(source: Source | Path) -> Source:
    return Released(source) if isinstance(source, Path) else source


def _case(name: str, conversation: Conversation, texts: dict[str, str]) -> Case:
    dialogue_id, turn = parts_of(name)
    return Case(dialogue_id, turn, name, conversation, {variant: texts[variant] for variant in TEXTS if variant in texts})
