"""What two releases of one name must not differ in: an item that was published is as it was, or gone with a word why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.hashing import digest
from empathy_eval.base.tabular import TableRow, table_batches
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import files_of
from empathy_eval.design.errata import revision_of, withdrawn_dialogues, withdrawn_pairs
from empathy_eval.releases.verify_provenance import place_of
from empathy_eval.releases.verify_rows import left_out

# By config the name of its items, and what they say: what stands in the dialogue too is held there.
SAID: dict[str, tuple[str, Callable[[TableRow], Any]]] = {
    "dialogues": ("dialogue_id", lambda row: [row["description"], [[turn["role"], turn["text"]] for turn in row["turns"]]]),
    "pairs": ("pair_id", lambda row: [row[name] for name in PAIR_VARIANTS]),
    "controls": ("pair_id", lambda row: [row[name] for name in CONTROLS]),
    "crossed": ("crossed_id", lambda row: [row["context_2"][-1]["text"], row["reply_1"], row["reply_2"]]),
}
IN_PLACE = "was published with another text in {}: withdraw it, and give the corrected item a new id"
# (config, dialogue, item): the hash of what it says.
Items = dict[tuple[str, str, str], str]


def unexplained(folders: tuple[Path, Path], manifests: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What changed, went or came back in the later of two releases, and must not have; nothing where they have different names.

    A published item is never corrected in place: what is wrong is withdrawn, and its corrected form has an id of its own. Else an item
    goes only by review, as a near-duplicate, or as a spare that another one took the place of.
    """
    before, after = manifests
    if before["name"] != after["name"]:
        return
    old, new = (_items(folder, told) for folder, told in zip(folders, manifests, strict=True))
    gone, spares = left_out(after), _spares(new, after)
    there = {name for config, name, _ in new if config == "dialogues"}
    for key in sorted(old):
        config, dialogue_id, name = key
        if key in new:
            if old[key] != new[key]:
                yield f"{name} {IN_PLACE.format(config)}"
        elif config == "dialogues":
            if name not in gone and not spares(name):
                yield f"{name} is missing, and no reason is given"
        elif dialogue_id in there and name not in gone:
            yield f"{name} is missing from {config}, and no reason is given"
    was, now = (withdrawn_dialogues(one["withdrawn"]) | withdrawn_pairs(one["withdrawn"]) for one in manifests)
    yield from (f"{name} is no longer withdrawn" for name in sorted(was - now))


def _items(folder: Path, manifest: Mapping[str, Any]) -> Items:
    found: Items = {}
    for config, (named, said) in SAID.items():
        for path in files_of(folder, config) if config in manifest["counts"] else ():
            for batch in table_batches(path):
                found |= {(config, row["dialogue_id"], row[named]): digest(said(row)) for row in batch.to_pylist()}
    return found


def _spares(new: Items, manifest: Mapping[str, Any]) -> Callable[[str], bool]:
    """Whether a dialogue is one that its scenario has no place for: all of them are taken, by dialogues before it in the plan."""
    ids = [name for config, name, _ in new if config == "dialogues" and not revision_of(name)]
    filled, last = Counter(name[:3] for name in ids), dict[str, tuple[Any, ...]]()
    for name in ids:
        last[name[:3]] = max(last.get(name[:3], ()), place_of(name))

    def spare(name: str) -> bool:
        number = name[:3]
        full = number in last and filled[number] >= manifest["scenarios"].get(number, {"quota": 0})["quota"]
        return manifest["spares_left_out"] > 0 and full and place_of(name) > last[number]

    return spare
