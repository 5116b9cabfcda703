"""The scenarios and their seed dialogues, read from ``scenarios/NNN-<slug>.yaml``, and curated crossed items, from ``crossed/NNN.yaml``.

A crossed item is two contexts that differ in what the seeker said last, and two replies, each right in one of them alone. A curated one
stands on a helper turn of the seed dialogue of its scenario.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein

from empathy_eval.base.errors import Problem, collecting, input_error, nearest, refuse, shortened
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import derived_random, digest
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import ENGLISH, shingles, words
from empathy_eval.design.contrasts import CELLS, FAR
from empathy_eval.design.personas import VOICES, Personas, Register, Voice, load_personas
from empathy_eval.design.taxonomy import PhaseRules, Taxonomy, Way, breaches, load_taxonomy

FILE = "groups.yaml"
# The folder of a scenario folder that holds them, which is also what their hash is called among those of its files.
CROSSED = "crossed"
# In how many words the contexts may differ, how many a reply may have, and by what share of the longer reply the lengths may differ.
CHANGED = (2, 24)
LENGTH = (14, 40)
APART = 0.25
# So many words of the seed dialogue are a quotation.
RUN = 7


@dataclass(frozen=True)
class ScenarioGroup:
    """Some scenarios, by their names, and in a line what they have in common."""

    name: str
    definition: str
    scenarios: tuple[str, ...]


@dataclass(frozen=True)
class ScenarioGroups:
    """All groups in their order, and the hash of what the file says."""

    groups: tuple[ScenarioGroup, ...]
    digest: str


def load_groups(path: Path | None = None) -> ScenarioGroups:
    """The groups of a file, by default those that are packaged.

    Raises:
        InputError: if the file is not valid, or two groups have one name.
    """
    path = path or data_folder("scenarios") / FILE
    said = read_yaml(path, "groups")
    names = [one["name"] for one in said]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    refuse(Problem(str(path), f'the group "{name}" occurs twice', "give each group its own name") for name in twice)
    return ScenarioGroups(tuple(ScenarioGroup(one["name"], one["definition"], tuple(one["scenarios"])) for one in said), digest(said))


# Turns of seeds that a request shows.
EXAMPLES = 3
# The files of a scenario folder that are no scenario.
COMMON = ("taxonomy.yaml", "personas.yaml", "telltale.yaml")


@dataclass(frozen=True)
class SeedTurn:
    """One turn of a seed dialogue; variants and controls only where the helper speaks."""

    role: str
    text: str
    strategy: str | None = None
    apathetic: str | None = None
    empathetic: str | None = None
    empathetic_strategy: str | None = None
    near_empathetic: str | None = None
    far_apathetic: str | None = None
    # By variant its manner or device.
    ways: Mapping[str, str] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        """The turn and all its variants."""
        every = (self.text, self.apathetic, self.empathetic, self.near_empathetic, self.far_apathetic)
        return [text for text in every if text is not None]


@dataclass(frozen=True)
class Seed:
    """A curated seed dialogue; ``register`` is how its seeker writes, ``emblems`` nouns that no other of the project's seeds may have."""

    description: str
    turns: tuple[SeedTurn, ...]
    register: str | None = None
    emblems: tuple[str, ...] = ()
    helper_voice: str | None = None
    far_voice: str | None = None


@dataclass(frozen=True)
class Scenario:
    """A situation in which support is sought, with its share of the dialogues in percent."""

    number: int
    slug: str
    name: str
    share: float
    definition: str
    openings: tuple[str, ...]
    seed: Seed | None = None

    @property
    def file_name(self) -> str:
        """The name its file must have."""
        return f"{self.number:03d}-{self.slug}.yaml"


@dataclass(frozen=True)
class CrossedItem:
    """A curated item: ``turn`` is the place, from 0, of the helper turn that the replies are for, ``twin`` what the seeker says before it
    in the other context."""

    crossed_id: str
    turn: int
    twin: str
    reply_1: str
    reply_2: str
    reason: str


@dataclass(frozen=True)
class Catalogue:
    """The taxonomy and all scenarios, by number; ``seed_hash`` names the content of all seed dialogues.

    ``personas`` is what seekers and lengths are drawn from, ``telltale`` the words that rewriters are told to do without,
    ``files`` the digest of what each file says that is no scenario, ``said`` that itself, ``crossed`` the crossed items of the
    seeds, by scenario, and ``seeds_said`` by scenario what its file says of the seed, which ``seed_hash`` is made of.
    """

    taxonomy: Taxonomy
    scenarios: tuple[Scenario, ...]
    seed_hash: str
    personas: Personas | None = None
    telltale: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    crossed: Mapping[int, tuple[CrossedItem, ...]] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)
    seeds_said: Mapping[int, Any] = field(default_factory=dict, compare=False, repr=False)

    def __getitem__(self, number: int) -> Scenario:
        return next(scenario for scenario in self.scenarios if scenario.number == number)

    def voice(self, name: str | None) -> Voice | None:
        """The voice of that name, if there is one."""
        return self.personas.voice(name) if self.personas else None

    def exemplar(self, seed: int, number: int) -> Seed | None:
        """A seed dialogue of another scenario, so that no build echoes its own seed; None if there is none.

        The same for all dialogues of a scenario, so that providers can reuse the prefix of its requests.
        """
        others = [one.seed for one in self.scenarios if one.seed and one.number != number]
        return derived_random(seed, "exemplar", number).choice(others) if others else None

    @cached_property
    def _drawn(self) -> dict[tuple[int, int, str, str | None], list[Example]]:
        """The examples that were drawn before: each request wants some, and there are few different ones."""
        return {}

    def examples(self, seed: int, number: int, variant: str, way: str | None) -> list[Example]:
        """A few turns of seed dialogues of other scenarios with this variant, made in this way if there is one.

        The same for all dialogues of a scenario, so that providers can reuse the prefix of its requests.
        """
        key = seed, number, variant, way
        if key not in self._drawn:
            others = [example for scenario, example in self._examples[variant, way] if scenario != number]
            self._drawn[key] = derived_random(seed, "examples", number, variant, way).sample(others, min(EXAMPLES, len(others)))
        return self._drawn[key]

    @cached_property
    def _examples(self) -> dict[tuple[str, str | None], list[tuple[int, Example]]]:
        """By variant and way (None: any) the examples of all seeds, each with the number of its scenario."""
        examples = defaultdict[tuple[str, str | None], list[tuple[int, Example]]](list)
        for scenario in self.scenarios:
            for variant, example in _examples(scenario):
                examples[variant, None].append((scenario.number, replace(example, way=None)))
                if example.way:
                    examples[variant, example.way].append((scenario.number, example))
        return examples

    def gallery(self, seed: int, number: int, variant: str) -> list[Example]:
        """One of the examples of each way of a variant, or all of a variant without ways."""
        ways = [way.name for way in self.taxonomy.ways(variant)]
        if not ways:
            return self.examples(seed, number, variant, None)
        return [one for way in ways for one in self.examples(seed, number, variant, way)[:1]]


@dataclass(frozen=True)
class Example:
    """A helper turn of a seed and what became of it: the seeker's words before, the reference, the text of the variant, how it was made."""

    before: str
    reference: str
    text: str
    strategy: str
    way: str | None


def _examples(scenario: Scenario) -> Iterator[tuple[str, Example]]:
    """The turns of a scenario's seed with each variant that they have, where the seeker has just spoken."""
    for before, turn in itertools.pairwise(scenario.seed.turns if scenario.seed else ()):
        for variant in CELLS if before.role == "seeker" else ():
            text: str | None = getattr(turn, variant)
            if text:
                strategy = turn.empathetic_strategy if variant in FAR else turn.strategy
                yield variant, Example(before.text, turn.text, text, strategy or "", turn.ways.get(variant))


def load_catalogue(folder: Path | None = None, language: str = ENGLISH, scenarios_in: str = "") -> Catalogue:
    """Reads a scenario folder (by default the project's own), with all problems of all files at once; words are of that language.

    ``scenarios_in`` is the folder in it that holds the scenarios, where they lie by themselves.

    Raises:
        InputError: for files that are not valid, seeds that break a phase rule, numbers that repeat, or no scenario at all.
    """
    folder = folder or data_folder("scenarios")
    taxonomy, personas = load_taxonomy(folder), load_personas(folder)
    said = {name: read_yaml(folder / name, Path(name).stem) for name in COMMON if (folder / name).is_file()}
    scenarios: list[Scenario] = []
    problems: list[Problem] = []
    raw: dict[int, Any] = {}
    for path in sorted(one for one in (folder / scenarios_in).glob("*.yaml") if one.name not in (*COMMON, FILE)):
        with collecting(problems):
            value = read_yaml(path, "scenario")
            scenarios.append(_scenario(value))
            problems += _problems(scenarios[-1], path, taxonomy, personas)
            raw[scenarios[-1].number] = value.get("seed")
    problems += _repeated_numbers(scenarios, folder)
    crossed, wrong = load_crossed(folder, {one.number: one.seed.turns if one.seed else None for one in scenarios}, language)
    problems += wrong
    refuse(problems)
    if not scenarios:
        raise input_error(folder, "holds no scenario file", "add NNN-<slug>.yaml files")
    ordered = tuple(sorted(scenarios, key=lambda scenario: scenario.number))
    telltale = tuple(said["telltale.yaml"]["words"]) if "telltale.yaml" in said else ()
    files = {name: digest(value) for name, value in said.items()} | ({CROSSED: digest(content(crossed))} if crossed else {})
    seed_hash = digest([[number, raw[number]] for number in sorted(raw)])
    return Catalogue(taxonomy, ordered, seed_hash, personas, telltale, files, crossed, said, raw)


def _scenario(value: dict[str, Any]) -> Scenario:
    seed = value.get("seed")
    parsed = None
    if seed:
        turns = tuple(map(_turn, seed["turns"]))
        parsed = Seed(seed["description"].strip(), turns, seed.get("register"), tuple(seed.get("emblems", ())), *map(seed.get, VOICES))
    plain = {"number": int(value["number"]), "definition": value["definition"].strip(), "openings": tuple(value["openings"])}
    return Scenario(**{**value, **plain, "seed": parsed})


def _turn(value: dict[str, Any]) -> SeedTurn:
    far = value.get("empathetic")
    own = {name: value[name].strip() for name in ("role", "text", "strategy") if name in value}
    other = {"empathetic": far["text"].strip(), "empathetic_strategy": far["strategy"]} if far else {}
    variants = {**value.get("controls", {}), **({"apathetic": value["apathetic"]} if "apathetic" in value else {})}
    # A cold text may stand with its manner.
    texts = {name: (one["text"] if isinstance(one, dict) else one).strip() for name, one in variants.items()}
    ways = {name: one["manner"] for name, one in variants.items() if isinstance(one, dict)}
    return SeedTurn(**own, **other, **texts, ways=ways | ({"empathetic": far["device"]} if far else {}))


def _problems(scenario: Scenario, path: Path, taxonomy: Taxonomy, personas: Personas | None) -> Iterator[Problem]:
    named: dict[str, Sequence[Register | Voice]] = {}
    if personas and scenario.seed:
        named = {"register": personas.registers, **dict.fromkeys(VOICES, personas.voices)}
    for column, there in named.items():
        yield from _unknown(str(path), f"{column} ", getattr(scenario.seed, column), there)
    if path.name != scenario.file_name:
        yield Problem(str(path), f"has a name that does not match its content ({scenario.file_name})", "rename the file")
    turns = scenario.seed.turns if scenario.seed else ()
    for breach in breaches(turns, taxonomy, PhaseRules()) if turns else ():
        where = str(path) if breach.turn is None else f"{path}: turn {breach.turn}"
        yield Problem(where, breach.what, breach.fix)
    for place, turn in enumerate(turns):
        other = turn.empathetic_strategy
        if other is None or turn.strategy is None or turn.strategy not in taxonomy:
            continue
        allowed = [name for name in taxonomy.in_phase(taxonomy.phase_of(turn.strategy)) if name != turn.strategy]
        if other not in allowed:
            what = f'empathetic strategy "{other}" for a turn with "{turn.strategy}"'
            yield Problem(f"{path}: turn {place}", what, f"use another one of its phase: {', '.join(allowed)}")
        for variant, way in turn.ways.items():
            yield from _unknown(f"{path}: turn {place}: {variant}", "", way, taxonomy.ways(variant))


def _unknown(where: str, kind: str, name: str | None, there: Sequence[Register | Voice | Way]) -> Iterator[Problem]:
    """A name of none of these; where there are none, any name will do."""
    known = [one.name for one in there]
    if name and known and name not in known:
        yield Problem(where, f'{kind}"{name}" is not known', f"use one of these: {', '.join(known)}{nearest(name, known)}")


def _repeated_numbers(scenarios: list[Scenario], folder: Path) -> Iterator[Problem]:
    for number, some in itertools.groupby(sorted(scenarios, key=lambda one: one.number), key=lambda one: one.number):
        *others, last = [one.file_name for one in some]
        if others:
            yield Problem(str(folder / last), f"number {number} is also that of {', '.join(others)}", "give each scenario its own number")


def load_crossed(
    folder: Path, seeds: Mapping[int, Sequence[SeedTurn] | None], language: str = ENGLISH
) -> tuple[dict[int, tuple[CrossedItem, ...]], list[Problem]]:
    """The crossed items of a scenario folder by the number of their scenario, and all that is wrong with them.

    ``seeds`` are the turns of the seed dialogues by scenario, of those scenarios that could be read. A folder without such items is fine.
    """
    items: dict[int, tuple[CrossedItem, ...]] = {}
    problems: list[Problem] = []
    for path in sorted((folder / CROSSED).glob("*.yaml")):
        number = int(path.stem) if path.stem.isascii() and path.stem.isdigit() and len(path.stem) == 3 else None
        if number is None:
            problems.append(Problem(str(path), "is not named by the number of a scenario", "name it NNN.yaml, such as 017.yaml"))
            continue
        with collecting(problems):
            values = read_yaml(path, CROSSED)
            items[number] = tuple(
                CrossedItem(one["id"].strip(), one["turn"], *(one[name].strip() for name in ("twin", "reply_1", "reply_2", "reason")))
                for one in values
            )
            if seed := seeds.get(number):
                problems += _crossed_problems(items[number], number, seed, path, language)
            elif number in seeds or not any(folder.glob(f"{number:03d}-*.yaml")):
                what = f"scenario {number} has no seed dialogue" if number in seeds else f"there is no scenario {number}"
                problems.append(Problem(str(path), what, "write it, or remove this file"))
    return items, problems


def content(crossed: Mapping[int, Sequence[CrossedItem]]) -> list[Any]:
    """All that crossed items say, for a hash."""
    return [[number, [asdict(one) for one in crossed[number]]] for number in sorted(crossed)]


def _crossed_problems(items: Sequence[CrossedItem], number: int, seed: Sequence[SeedTurn], path: Path, language: str) -> Iterator[Problem]:
    said = {run for turn in seed for text in turn.texts for run in shingles(text, RUN, language) if len(run) == RUN}
    for name, times in Counter(one.crossed_id for one in items).items():
        if times > 1:
            yield Problem(f"{path}: {name}", f"is the id of {times} items", "give each item its own number")
        if not name.startswith(f"{number:03d}-"):
            yield Problem(f"{path}: {name}", f"is not an item of scenario {number}", f"name it {number:03d}-seed-x1 or the like")
    for one in items:
        where = f"{path}: {one.crossed_id}"
        if one.turn >= len(seed) or (seed[one.turn - 1].role, seed[one.turn].role) != ("seeker", "helper"):
            what = f"turn {one.turn} is not a helper's after a seeker's"
            yield Problem(where, what, f"count from 0, in a dialogue of {len(seed)} turns")
        elif not CHANGED[0] <= (changed := changed_words(seed[one.turn - 1].text, one.twin, language)) <= CHANGED[1]:
            what = f'the twin "{shortened(one.twin)}" differs in {changed} words from the turn before turn {one.turn}'
            fix = f"change {CHANGED[0]} to {CHANGED[1]} words, so that the contexts differ in little except the need"
            yield Problem(where, what, fix)
        yield from problems_of_replies(one, where, language)
        for name in ("reply_1", "reply_2"):
            runs = sorted(shingles(getattr(one, name), RUN, language) & said)
            if runs:
                what = f'{name} repeats "{" ".join(runs[0])}" from the seed dialogue'
                yield Problem(where, what, f"write it in other words: runs of {RUN} words count as quotations")


def problems_of_replies(one: CrossedItem, where: str, language: str) -> Iterator[Problem]:
    """What no replies of a curated item are: too short, too long, of unequal length, or one."""
    least, most = LENGTH
    replies = {"reply_1": one.reply_1, "reply_2": one.reply_2}
    lengths = {name: len(words(text, language)) for name, text in replies.items()}
    for name, length in lengths.items():
        if not least <= length <= most:
            yield Problem(where, f'{name} "{shortened(replies[name])}" has {length} words', f"write {least} to {most} words")
    shorter, longer = sorted(lengths.values())
    if longer - shorter > APART * longer:
        what = f"the replies have {lengths['reply_1']} and {lengths['reply_2']} words"
        yield Problem(where, what, "let them differ by at most a quarter of the longer one, so that length does not show which is which")
    if words(one.reply_1, language) == words(one.reply_2, language):
        yield Problem(where, f'both replies are "{shortened(one.reply_1)}"', "write two replies, each right in one context")


def changed_words(original: str, twin: str, language: str = ENGLISH) -> int:
    """In how many words two texts differ: the word-level Levenshtein distance that the edit ratio counts."""
    return Levenshtein.distance(words(original, language), words(twin, language))
