"""In what annotations of a folder differ from those that are wanted, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from empathy_eval.raters.judges.sources import told


def differences(theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> Iterator[str]:
    """What is so of their configuration, and otherwise of mine. How many turns are judged is no difference: more only add to them."""
    if theirs.get("rubric_hash") != mine["rubric_hash"]:
        same = theirs.get("rubric") == mine["rubric"]
        yield f'by the rubric "{theirs.get("rubric")}"' + (" as it read then" if same else f', not "{mine["rubric"]}"')
    judges = [one if isinstance(one, dict) else {} for one in (theirs.get("judge"), mine["judge"])]
    if changed := sorted(name for name in judges[0].keys() | judges[1].keys() if judges[0].get(name) != judges[1].get(name)):
        names = [judge.get("model", judge.get("kind")) for judge in judges]
        yield f'by the judge "{names[0]}"' + (f" with another {', '.join(changed)}" if names[0] == names[1] else f', not "{names[1]}"')
    if theirs.get("release") != mine["release"]:
        yield f"of {told(theirs.get('release'))}, not of {told(mine['release'])}"
    if theirs.get("variants") != mine["variants"]:
        yield f"of {_listed(theirs.get('variants'))}, not of {_listed(mine['variants'])}"
    for name, what in (("samples_of_a_text", "samples of a text"), ("samples", "tries of a request"), ("repairs", "repairs of a try")):
        if theirs.get(name) != mine[name]:
            yield f"with {theirs.get(name)} {what}, not {mine[name]}"


def _listed(variants: Any) -> str:
    return ", ".join(map(str, variants)) if isinstance(variants, list) else str(variants)
