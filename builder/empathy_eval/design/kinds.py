"""The kinds of request, one row each: model role, template variables, answer schema, and the variant that it writes."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass

from empathy_eval.design.contrasts import CONTROLS

REWRITING = frozenset(
    {"taxonomy", "exemplar", "context", "strategy", "limits", "way", "gallery", "examples", "length", "telltale", "voice",
     "without_warm_words"}
)  # fmt: skip
# What a judge is asked; ``design/judge_prompts`` has their templates. A reward model has none: it is given the conversation.
JUDGE = "judge"


@dataclass(frozen=True)
class Kind:
    """A kind of request.

    ``role`` names its model, ``answer`` the schema of its answer (empty for plain text), ``reads`` the variables of its template (empty
    without one), ``variant`` the variant that it writes, ``delivery`` how answers arrive, and ``times`` how many requests it takes for one
    item.
    """

    name: str
    role: str
    answer: str
    reads: frozenset[str] = frozenset()
    variant: str | None = None
    delivery: str = "live"
    times: int = 1

    @property
    def near(self) -> bool:
        """Whether the request shows the reference."""
        return "reference" in self.reads

    @property
    def control(self) -> bool:
        """Whether it writes a control, which only planned turns have."""
        return self.variant in CONTROLS


SELF_CHAT = Kind(
    "self_chat", "self_chat", "dialogue_answer",
    frozenset({"taxonomy", "scenario", "plan", "persona", "voice", "index", "exemplar", "rules", "limits"}),
)  # fmt: skip
NEAR_APATHETIC = Kind("near_apathetic", "near", "variant_answer", REWRITING | {"reference", "edit"}, "apathetic")
FAR_EMPATHETIC = Kind("far_empathetic", "far", "variant_answer", REWRITING, "empathetic")
NEAR_EMPATHETIC = Kind("near_empathetic", "near", "variant_answer", REWRITING | {"reference", "edit"}, "near_empathetic")
FAR_APATHETIC = Kind("far_apathetic", "far", "variant_answer", REWRITING, "far_apathetic")
SCORE = Kind("score", "toxicity", "score_answer", delivery="computed")

# Crossed items, for builds that want some. Who writes one sees both contexts; who checks it sees one context and both replies, in
# both orders: four requests an item.
CROSSED, CROSSED_CHECK = CROSSING = (
    Kind(
        "crossed", "crossed", "crossed_answer",
        frozenset({"taxonomy", "context", "reference", "strategy", "limits", "bounds", "examples"}),
    ),
    Kind("crossed_check", "crossed_judge", "crossed_check_answer", frozenset({"context", "reply_a", "reply_b"}), times=4),
)  # fmt: skip

RATING, PREFERENCE, IDEAL, NAMED, REWARD = JUDGING = tuple(
    Kind(name, JUDGE, f"{name}_answer") for name in ("rating", "preference", "ideal", "named", "reward")
)

# Those of a build.
KINDS = {kind.name: kind for kind in (SELF_CHAT, NEAR_APATHETIC, FAR_EMPATHETIC, NEAR_EMPATHETIC, FAR_APATHETIC, SCORE, *CROSSING)}

# A plain-text reply of a compared system. Each system has a role of its own.
REPLY = Kind("reply", "system", "")
ALL_KINDS = ChainMap(KINDS, {kind.name: kind for kind in (*JUDGING, REPLY)})


def kinds_of_build(crossed: bool) -> tuple[Kind, ...]:
    """The kinds of a build with or without crossed items."""
    return tuple(kind for kind in KINDS.values() if crossed or kind not in CROSSING)


def rewritings(controls: bool) -> tuple[Kind, ...]:
    """The kinds that rewrite a helper turn, with or without controls."""
    return tuple(kind for kind in KINDS.values() if kind.variant and (controls or not kind.control))
