"""How numbers, lists and preferences are put into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.evaluation.inversion.results import Difference


def percent(value: float, places: int = 1) -> str:
    """A share in percent."""
    return f"{100 * value:.{places}f}\N{NO-BREAK SPACE}%"


def counted(count: int, one: str, many: str = "") -> str:
    """``1 pair``, ``2,000 pairs``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def sides(differences: Iterable[Difference]) -> dict[str, int]:
    """How many differences prefer the apathetic, the empathetic and neither side, and how many have no interval to tell."""
    found = Counter("untested" if one.low is None else one.prefers for one in differences)
    return {name: found[name] for name in (*PAIR_VARIANTS, "neither", "untested")}


def whom(found: Mapping[str, int], what: str = "") -> str:
    """``all 5 prefer the empathetic reply``, or how many prefer which; ``what`` is what they are called."""
    of = sum(found.values())
    all_of_them, verb = (f"the one {what}" if what else "it", "prefers") if of == 1 else (f"all {of} {what}".rstrip(), "prefer")
    for side in PAIR_VARIANTS:
        if found[side] == of:
            return f"{all_of_them} {verb} the {side} reply"
    if found["untested"] == of:
        return "one dialogue is too few to tell"
    if found["neither"] == of:
        return f"{all_of_them} shows no clear preference" if of == 1 else f"none of the {f'{of} {what}'.rstrip()} shows a clear preference"
    parts = [f"{found[side]} {'prefers' if found[side] == 1 else 'prefer'} the {side} reply" for side in PAIR_VARIANTS[::-1] if found[side]]
    parts += [f"{found['neither']} {'shows' if found['neither'] == 1 else 'show'} no clear preference"] if found["neither"] else []
    parts += [f"{found['untested']} {'has' if found['untested'] == 1 else 'have'} no interval"] if found["untested"] else []
    return (f"of the {of} {what}, " if what else "") + listed(parts)


def how_many(count: int, of: int, what: str, verb: str) -> str:
    """``all 5 reference-based metrics prefer``: how many of how many."""
    if of == 1:
        return f"the one {what} metric {verb + 's' if count else 'does not ' + verb}"
    if count == of:
        return f"all {of} {what} metrics {verb}"
    if count == 0:
        return f"none of the {of} {what} metrics {verb}s"
    return f"{count} of the {of} {what} metrics {verb}{'s' if count == 1 else ''}"
