"""Rubrics: the criteria that a judge rates by; one file in ``rubrics/`` for each framework."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, nearest, refuse
from empathy_eval.base.files import data_folder, packaged_file
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import read_yaml

# By kind the keys that a rubric of it has beside those that all have, and those of them that it cannot do without.
OWN = {
    "rating": ({"style", "together", "steps", "from", "criteria", "examples"}, ("style", "together", "criteria")),
    "preference": ({"criteria"}, ("criteria",)),
    "strategies": (set[str](), ()),
    "reward": (set[str](), ()),
}
SPECIFIC = {key for keys, _ in OWN.values() for key in keys}
# What the numbers of a reward model are called where criteria are named; they have no scale, and more is better.
REWARD = "reward"
# What a criterion has where a number is asked for, and nowhere else.
OF_NUMBERS = ("scale", "anchors", "better")


@dataclass(frozen=True)
class Scale:
    """The numbers of a criterion, both ends included; with ``whole`` integers only."""

    low: float
    high: float
    whole: bool

    def fault(self, value: float) -> str:
        """Why a value is not on the scale; empty if it is."""
        if not self.low <= value <= self.high:  # NaN is not either
            return f"is not between {self.low:g} and {self.high:g}"
        return "is not a whole number" if self.whole and not float(value).is_integer() else ""


# The numbers that rewards are taken from: with larger ones means and correlations could not be reckoned.
REWARDS = Scale(-1e12, 1e12, whole=False)


@dataclass(frozen=True)
class Criterion:
    """A question of a rubric: ``anchors`` say what values mean, ``better`` which end is better, ``opposite`` which criterion contradicts
    it. The criterion of a preference has neither scale nor anchors.
    """

    name: str
    question: str
    scale: Scale | None = None
    anchors: Mapping[float, str] = field(default_factory=dict)
    better: str | None = None
    opposite: str | None = None


@dataclass(frozen=True)
class RubricExample:
    """A reply of a curated seed with its values by criterion and the reason. It is shown to judges and never judged."""

    pair_id: str
    variant: str
    values: Mapping[str, float]
    reason: str


@dataclass(frozen=True)
class Rubric:
    """A framework: what is asked (``kind``) of what (``unit``), in which ``style``, and whether all criteria go ``together``.

    Style and criteria belong to ratings; a preference has one criterion, its question.
    """

    name: str
    title: str
    source: str
    kind: str
    unit: str
    style: str = "plain"
    together: bool = False
    persona: str = ""
    steps: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    examples: tuple[RubricExample, ...] = ()

    @cached_property
    def hash(self) -> str:
        """The digest of the rubric's content, which stands beside every figure made with it."""
        return digest(asdict(self))

    def __getitem__(self, name: str) -> Criterion:
        return next(criterion for criterion in self.criteria if criterion.name == name)

    @property
    def requests(self) -> tuple[tuple[Criterion, ...], ...]:
        """The criteria of each request about one text."""
        return (self.criteria,) if self.together else tuple((criterion,) for criterion in self.criteria)


def packaged_rubrics() -> tuple[str, ...]:
    """The names of the packaged rubrics, sorted."""
    return tuple(sorted(path.stem for path in data_folder("rubrics").glob("*.yaml")))


def load_rubric(name: str | Path, lessons: str | Path | None = None, shots: str | Path | None = None) -> Rubric:
    """Reads a rubric: a YAML file by path, or a packaged one by name, such as ``teacher``.

    ``lessons`` and ``shots`` are rubrics, or files of one such key, whose lessons or examples take the place of its own. They are part of
    its hash: with them it is another rubric.

    Raises:
        InputError: for a name that is neither, or an invalid file; all its problems at once.
    """
    path = _file_of(name)
    value = read_yaml(path, "rubric")
    value |= {"lessons": _taken(lessons, "lessons")} if lessons else {}
    if shots:
        value |= {"examples": _taken(shots, "examples"), **({"style": "shots"} if value.get("style") == "plain" else {})}
    refuse([Problem(f"{path}: {place}" if place else str(path), what, fix) for place, what, fix in _problems(value)])
    value |= _guidance() if value.pop("from", None) else {}
    own: dict[str, Any] = {key: text.strip() for key, text in value.items() if isinstance(text, str)}
    own |= {key: tuple(text.strip() for text in value.get(key, ())) for key in ("steps", "lessons")}
    own |= {"criteria": tuple(map(_criterion, value.get("criteria", ()))), "examples": tuple(map(_example, value.get("examples", ())))}
    return Rubric(**own, together=value.get("together", False))


def _file_of(name: str | Path) -> Path:
    packaged = packaged_rubrics()
    fix = f"name a YAML file, or one of {', '.join(packaged)}{nearest(name, packaged)}"
    return packaged_file(name, "rubric", "rubrics", packaged, fix)


def _taken(name: str | Path, key: str) -> Any:
    """The lessons or the examples of a rubric or of a file that has nothing else."""
    path = _file_of(name)
    value = read_yaml(path, "rubric_part")
    if key not in value:
        option = "--lessons" if key == "lessons" else "--shots"
        raise input_error(f"{option} {path}", f'has no "{key}"', f"name a rubric with {key}, or a YAML file with the key {key}")
    return value[key]


def _guidance() -> dict[str, Any]:
    """The criteria and lessons that human raters get.

    The first paragraph on replies is skipped: it describes the rating page.
    """
    guidance = read_yaml(data_folder("review") / "guidance.yaml", "guidance")
    criteria = [
        {
            "name": scale["name"],
            "question": scale["question"],
            "scale": {"from": 1, "to": len(scale["anchors"]), "whole": True},
            "anchors": [{"value": value, "text": text} for value, text in enumerate(scale["anchors"], 1)],
            "better": "high",
        }
        for scale in guidance["scales"]
    ]
    return {"criteria": criteria, "lessons": [*guidance["variants"][1:], *guidance["borderline"]]}


def _example(value: dict[str, Any]) -> RubricExample:
    values = {name: float(number) for name, number in value["values"].items()}
    return RubricExample(value["pair_id"], value["variant"], values, value["reason"].strip())


def _criterion(value: dict[str, Any]) -> Criterion:
    bounds = value.get("scale")
    scale = Scale(float(bounds["from"]), float(bounds["to"]), bounds["whole"]) if bounds else None
    anchors = {float(anchor["value"]): anchor["text"].strip() for anchor in value.get("anchors", ())}
    return Criterion(value["name"], value["question"].strip(), scale, anchors, value.get("better"), value.get("opposite"))


def _problems(value: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(place, what, fix) of each problem that a schema cannot express."""
    yield from _misfits(value)
    criteria = value.get("criteria", [])
    names = [criterion["name"] for criterion in criteria]
    for name, times in Counter(names).items():
        if times > 1:
            yield "criteria", f'"{name}" occurs {times} times', "give each criterion a name of its own"
    for criterion in criteria:
        place, opposite = f"criteria: {criterion['name']}", criterion.get("opposite")
        if opposite is not None and (opposite not in names or opposite == criterion["name"]):
            others = ", ".join(name for name in names if name != criterion["name"])
            fix = f"use one of {others}" if others else "leave it out"
            yield f"{place}: opposite", f'"{opposite}" is not another criterion of this rubric', fix
        if value["kind"] == "rating" and "scale" in criterion:
            yield from ((f"{place}: {inside}", what, fix) for inside, what, fix in _odd_scale(criterion))
    for number, example in enumerate(value.get("examples", ())):
        yield from ((f"examples[{number}]{inside}", what, fix) for inside, what, fix in _odd_example(example, criteria))


def _misfits(value: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Keys that do not fit the kind, the unit or the style of a rubric."""
    kind, style, own = value["kind"], value.get("style"), "from" in value
    keys, needed = OWN[kind]
    for key in sorted(value.keys() & (SPECIFIC - keys)):
        yield key, f'is not for a rubric of kind "{kind}"', "leave it out"
    for key in needed:
        if key not in value and not (key == "criteria" and own):
            yield "", f'misses "{key}", which a rubric of kind "{kind}" has', "add it"
    for key in sorted(value.keys() & {"criteria", "lessons", "examples"}) if own else ():
        yield key, f'does not go with "from: {value["from"]}", where they are taken from', "leave out the one or the other"
    if value["unit"] == "dialogue" and (kind != "rating" or "examples" in value):
        yield "unit", '"dialogue" is only for ratings without examples', 'write "reply"'
    if kind == "rating" and "steps" in value and style != "reasoned":
        yield "steps", f'are not used in style "{style}"', 'leave them out, or write "reasoned"'
    if kind == "rating" and ((style == "shots") != ("examples" in value)) and style != "reasoned":
        what = f'{"are shown" if style == "plain" else "are missing"} in style "{style}"'
        yield "examples", what, 'give examples with "shots", not with "plain"'
    if kind == "preference" and len(value.get("criteria", ())) > 1:
        yield "criteria", f"{len(value['criteria'])} in a preference, which asks one question", "keep one"
    for criterion in value.get("criteria", ()) if kind in ("rating", "preference") else ():
        for key in OF_NUMBERS:
            if (key in criterion) != (kind == "rating"):
                what = f'misses "{key}"' if kind == "rating" else f'has "{key}", and a preference has no numbers'
                yield f"criteria: {criterion['name']}", what, "add it" if kind == "rating" else "leave it out"


def _odd_scale(criterion: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    low, high, whole = (criterion["scale"][key] for key in ("from", "to", "whole"))
    if low >= high:
        yield "scale", f"from {low} to {high} is reversed or empty", "put the lower bound into from, the higher one into to"
        return
    scale, values = Scale(low, high, whole), [anchor["value"] for anchor in criterion.get("anchors", ())]
    if fault := scale.fault(low) or scale.fault(high):
        yield "scale", f"from {low} to {high} {fault}", "use whole bounds, or write whole: false"
    for value in dict.fromkeys(values):
        if fault := scale.fault(value):
            yield "anchors", f"{value} {fault}", "anchor values of the scale"
        if values.count(value) > 1:
            yield "anchors", f"{value} occurs {values.count(value)} times", "describe each value once"
    if missing := [str(end) for end in (low, high) if values and end not in values]:
        yield "anchors", f"do not say what {' and '.join(missing)} means", "anchor both ends of the scale"


def _odd_example(example: dict[str, Any], criteria: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    known = {criterion["name"]: criterion.get("scale") for criterion in criteria}
    for name in sorted(known.keys() - example["values"].keys()):
        yield "", f'has no value for "{name}"', "add it"
    for name, value in example["values"].items():
        bounds = known.get(name)
        if name not in known:
            yield "", f'rates "{name}", which is not a criterion of this rubric', f"use {', '.join(known)}"
        elif bounds and (fault := Scale(bounds["from"], bounds["to"], bounds["whole"]).fault(value)):
            yield f": {name}", f"{value} {fault}", "give a value of the scale"


def rubric_of(value: Mapping[str, Any]) -> Rubric:
    """A rubric from the JSON of its fields. Raises InputError if it is invalid."""
    try:
        anchors = [{float(number): text for number, text in raw["anchors"].items()} for raw in value["criteria"]]
        scales = [raw["scale"] and Scale(**raw["scale"]) for raw in value["criteria"]]
        columns = zip(value["criteria"], scales, anchors, strict=True)
        criteria = tuple(Criterion(**{**raw, "scale": scale, "anchors": meanings}) for raw, scale, meanings in columns)
        lists = {name: tuple(value[name]) for name in ("steps", "lessons")}
        examples = tuple(RubricExample(**example) for example in value["examples"])
        return Rubric(**{**value, **lists, "criteria": criteria, "examples": examples})
    except (TypeError, KeyError, ValueError) as error:
        raise input_error("rubric", f"cannot be read: {error}", "annotate again") from error
