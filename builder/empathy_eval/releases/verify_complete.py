"""What goes by a dialogue of a release: made as the configuration says, and with every preference that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from empathy_eval.base.errors import Problem
from empathy_eval.base.tabular import TableRow
from empathy_eval.design.dataset import PREFERRED, file_of, split_of
from empathy_eval.design.kinds import CROSSED_CHECK
from empathy_eval.releases.made_by import is_before
from empathy_eval.releases.verify_rows import ORIGINS, RESTORE

# The methods of a near-apathetic text, by what the configuration says; one that is asked for is of a seed bank or a model.
NEAR_APATHETIC = {"rules": {"rules"}, "model": {"seed", "model"}, "rules-then-model": {"rules", "seed", "model"}}


class Item(NamedTuple):
    """A dialogue, and by config its rows."""

    dialogue: TableRow
    rows: dict[str, list[TableRow]]

    @property
    def split(self) -> str:
        """The split of its rows."""
        return split_of(self.dialogue["dialogue_id"])


def asked_by(role: str, manifest: dict[str, Any]) -> str:
    """The method of what is asked for: of a seed bank or a model."""
    return "seed" if manifest["configuration"]["models"][role]["kind"] == "seed-bank" else "model"


def incomplete(folder: Path, item: Item, manifest: dict[str, Any]) -> Iterator[Problem]:
    """What was made in another way than the configuration has, and preferences that are missing or more than there are."""
    name, configuration = item.dialogue["dialogue_id"], manifest["configuration"]
    if item.dialogue["source"] != (source := asked_by("self_chat", manifest)):
        what = f'"{name}": its source is "{item.dialogue["source"]}", the configuration gives "{source}"'
        yield Problem(str(file_of(folder, "dialogues", item.split)), what, RESTORE)
    ways = NEAR_APATHETIC[configuration["near_apathetic"]] & {"rules", asked_by("near", manifest)}
    for row in item.rows["pairs"]:
        how = row["apathetic_method"]
        if how not in ways or (how == "rules") != (row["near_model"] == "rules"):
            what = f'"{row["pair_id"]}": its apathetic text is made by {how} ({row["near_model"]}), the configuration gives {min(ways)}'
            yield Problem(str(file_of(folder, "pairs", item.split)), what, RESTORE)
    for row in item.rows.get("crossed", ()):
        wanted = 1 + CROSSED_CHECK.times if row["source"] == "model" else 0
        if len(row["request_keys"]) != wanted:
            what = f'an item of "{name}" names {len(row["request_keys"])} requests, and takes {wanted}'
            yield Problem(str(file_of(folder, "crossed", item.split)), what, RESTORE)
    yield from _preferred(folder, item, manifest)


def _preferred(folder: Path, item: Item, manifest: dict[str, Any]) -> Iterator[Problem]:
    """A helper turn behind a seeker's has its preference; its order is that of the pairs."""
    turns = item.dialogue["turns"]
    of = {row["pair_id"]: row["turn"] for row in item.rows["pairs"]}
    for config in PREFERRED:
        if config not in item.rows and is_before(manifest):
            continue
        there = [row["pair_id"] for row in item.rows[ORIGINS[config][0]]]
        wanted = [one for one in there if one in of and turns[of[one] - 1]["role"] == "seeker"]
        found = [row["pair_id"] for row in item.rows.get(config, ())]
        if found != wanted:
            first = next((one for one in wanted if one not in found), None)
            what = f'has no row of "{first}"' if first else f'has rows of "{item.dialogue["dialogue_id"]}" that there is no preference of'
            yield Problem(str(file_of(folder, config, item.split)), what, RESTORE)
