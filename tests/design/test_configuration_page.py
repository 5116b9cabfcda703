"""The configuration explained: the page is that of the schemas, and what it says of each key is true."""

from __future__ import annotations

import copy
import runpy
import ssl
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.completions.ledger import Ledger
from empathy_eval.design.configuration import CROSSED_ROLES, ROLES, parse_configuration
from empathy_eval.design.endpoints import ModelConfig, Prices
from empathy_eval.design.kinds import rewritings
from empathy_eval.design.language import FIRST_PERSON, OPENING, Language, Rules, english
from empathy_eval.design.planning import plans
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, Scenario
from empathy_eval.generation.preview import RequestRenderer

from tests.conftest import demo_file

SCRIPT = runpy.run_path(str(Path(__file__).parent.parent.parent / "docs" / "configuration.py"))
# By table where its keys stand in a configuration.
TABLES = {
    "": (),
    "properties/turns": ("turns",),
    "$defs/model/then": ("models", "near"),
    "$defs/model/then/properties/prices": ("models", "near", "prices"),
    "properties/checks": ("checks",),
    "properties/checks/properties/toxicity": ("checks", "toxicity"),
    "properties/report": ("report",),
    "properties/report/properties/meteor": ("report", "meteor"),
    "properties/report/properties/bertscore": ("report", "bertscore"),
    "properties/report/properties/empathyscore": ("report", "empathyscore"),
    "properties/report/properties/shortcuts": ("report", "shortcuts"),
}
LEAVES = {
    (*place, row["key"]): (way, row["again"])
    for way, place in TABLES.items()
    for row in SCRIPT["rows"]("configuration", way)
    if row["says"]
}
# Another value where the type does not tell one. What scores toxicity answers here and costs nothing: it need not be installed.
OTHER: dict[tuple[str, ...], Any] = {
    ("name",): "other",
    ("language",): "de",
    ("plan",): "seeds",
    ("scenarios",): [3, 17],
    ("withdrawn",): [{"dialogue_id": "003-00000", "reason": "a test", "date": "2026-01-31"}],
    ("corrected",): ["003-00000-r1"],
    ("turns", "max"): 16,
    ("models", "near", "base_url"): "http://elsewhere/v1",
    ("report", "metrics"): ["length"],
    ("report", "shortcuts", "embedding"): "all-MiniLM-L6-v2",
}
UNTRIED = {
    ("checks", "toxicity", "scorer"),
    ("checks", "toxicity", "checkpoint"),
    ("checks", "toxicity", "config"),
    ("checks", "own"),
    # It asks for the dialogues that it names, and for no other.
    ("corrected",),
}
# What a part needs beside the key that is tried.
NEEDED: dict[str, dict[str, Any]] = {
    "prices": {"input": 1, "output": 1}, "meteor": {"synonyms": "none"}, "bertscore": {"model": "m", "layer": 1},
}  # fmt: skip
DESCRIPTION = Rules("", "here", [{"name": OPENING}, {"name": FIRST_PERSON}])
# A word list that says little.
WORDS = Path(__file__).parent.parent / "doubles" / "word_list.json"
MODEL = {"kind": "openai", "model": "m", "max_tokens": 100, "base_url": "http://localhost:9/v1"}
NEAR = {kind.name for kind in rewritings(controls=True) if kind.role == "near"}
ASKED = {
    "no": set[str](), "the near variants": NEAR, "what this model is asked": NEAR,
    "the near variants and crossed items": NEAR | {"crossed"},
}  # fmt: skip


def test_the_page_is_the_one_that_the_schemas_say() -> None:
    assert SCRIPT["PAGE"].read_text(encoding="utf-8") == SCRIPT["page"](), "the descriptions were changed: run `make docs`"


def explained(part: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All keys of a schema that people write."""
    for name, one in part.get("properties", {}).items() if isinstance(part, dict) else ():
        # What a branch pins alone is explained where the key stands.
        if isinstance(one, dict) and not ({"const", "$ref"} & one.keys()) and one.keys() != {"pinned"}:
            yield f"{place}{name}", one
            yield from explained(one, f"{place}{name}/")
    for branch in ("then", "else", "items"):
        if isinstance(part, dict) and branch in part and part.get("properties", {}).get("kind", {}).get("const") != "given":
            yield from explained(part[branch], f"{place}{branch}/")


def test_every_key_is_explained_and_what_is_wrong_with_it_is_still_told_with_a_mend() -> None:
    whole = SCRIPT["schema"]("configuration")
    parts = [*explained(whole), *explained(whole["$defs"]["model"]["then"]), *explained(whole["$defs"]["empathyscore"])]
    assert len(parts) > 45
    for place, one in parts:
        assert one.get("description", "")[:1].isupper() and one["description"].endswith("."), f"{place}: say what it is: description"
        assert "enum" in one or one.get("errorMessage", "")[:1].islower(), f"{place}: say how to mend it: errorMessage"


@pytest.mark.parametrize("settings", [ModelConfig, Prices])
def test_what_is_said_to_be_taken_where_a_key_is_left_out_is_taken(settings: type) -> None:
    way = "$defs/model/then" + ("/properties/prices" if settings is Prices else "")
    found = SCRIPT["at"]("configuration", way)["properties"]
    for one in fields(settings):
        if one.name in found and "default" in found[one.name] and "pinned" not in found[one.name]:
            taken = one.default_factory() if callable(one.default_factory) else one.default
            assert found[one.name]["default"] == taken, one.name


def another(place: tuple[str, ...], raw: dict[str, Any]) -> Any:
    """Another valid value of a key."""
    if place in OTHER:
        return OTHER[place]
    way, _ = LEAVES[place]
    part = SCRIPT["at"]("configuration", way)["properties"][place[-1]]
    before: Any = raw
    for step in place:
        before = before.get(step) if isinstance(before, dict) else None
    if "enum" in part:
        taken = part.get("default") if before is None else before
        return next(value for value in part["enum"] if value != taken)
    told = part.get("default", part.get("minimum"))
    number = next((one for one in (before, told) if isinstance(one, int | float)), 1)
    values = {"integer": number + 1, "number": number / 2 or 0.5, "string": "OTHER_TEXT", "object": {"x": "1"}}
    return values[part["type"]]


def changed(raw: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(raw)
    inside = made
    for step in place[:-1]:
        inside = inside.setdefault(step, {**NEEDED.get(step, {})})
    inside[place[-1]] = value
    if place == ("language",):  # what knows English alone cannot stay
        made["checks"]["toxicity"], made["report"] = "none", {"metrics": ["length"], "bootstrap": 10}
    if place == ("candidates",):
        made["word_list"] = str(WORDS)
    if value == "seeds":
        for name in ("dialogues", "surplus", "controls", "crossed"):
            del made[name]
    return made


def half_chinese(one: Scenario) -> Scenario:
    """A scenario in whose seed each turn has words that another language counts otherwise."""
    assert one.seed
    return replace(one, seed=replace(one.seed, turns=tuple(replace(turn, text=f"{turn.text} 我在这里陪着你") for turn in one.seed.turns)))


class Asked:
    """By what a request is about its key, for the first dialogues of a configuration."""

    def __init__(self, catalogue: Catalogue, prompts: Prompts) -> None:
        self._catalogue, self._prompts = catalogue, prompts

    def of(self, raw: dict[str, Any]) -> dict[Any, str]:
        config = parse_configuration(raw, "here")
        language = english() if config.language == "en" else Language(config.language, {**english().rules, "description": DESCRIPTION})
        recipe = Recipe(config, self._catalogue, self._prompts, language=language)
        with Ledger(Path(":memory:")) as ledger:
            items = RequestRenderer(recipe, ledger)
            found = [request for plan in list(plans(recipe.config, recipe.catalogue))[:3] for request in items.requests(plan)]
        return {one.about: one.key for one in found}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    models = {role: {**MODEL, "endpoint": role} for role in (*ROLES, *CROSSED_ROLES)}
    path = demo_file(tmp_path_factory.mktemp("raw"), plan="drawn", dialogues=3, surplus=0, controls=3, crossed=3, models=models)
    read: dict[str, Any] = yaml.safe_load(path.read_text())
    return read


@pytest.fixture(scope="module")
def asked(catalogue: Catalogue, prompts: Prompts) -> Iterator[Asked]:
    with pytest.MonkeyPatch.context() as patch:  # nothing is sent, and certificates take most of the time
        once = ssl.create_default_context()
        patch.setattr(ssl, "create_default_context", lambda *_, **__: once)
        yield Asked(replace(catalogue, scenarios=tuple(map(half_chinese, catalogue.scenarios))), prompts)


@pytest.fixture(scope="module")
def before(asked: Asked, raw: dict[str, Any]) -> dict[Any, str]:
    return asked.of(raw)


@pytest.mark.parametrize("place", sorted(LEAVES.keys() - UNTRIED), ids=".".join)
def test_a_key_asks_again_for_what_the_page_says(place: tuple[str, ...], raw: dict[str, Any], asked: Asked, before: dict[Any, str]) -> None:
    after = asked.of(changed(raw, place, another(place, raw)))
    both = before.keys() & after.keys()
    kinds = {about.kind for about in both if before[about] != after[about]} if both else {about.kind for about in before}
    _, again = LEAVES[place]
    if again == "everything":
        assert "self_chat" in kinds, "what is made of a dialogue holds it"
    else:
        assert kinds == ASKED[again], f"{place}: the page says {again}"
