"""Scenarios with their seed dialogues (``scenarios/NNN-<slug>.yaml``), and curated crossed items (``crossed/NNN.yaml``).

A crossed item is two contexts that differ in the seeker's last message, and two replies, each right in one context only. A curated one
belongs to a helper turn of the scenario's seed dialogue.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from operator import itemgetter
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
CHANGED_WORDS = (2, 24)
REPLY_WORDS = (14, 40)
MAX_LENGTH_GAP = 0.25
# So many words of the seed dialogue are a quotation.
QUOTATION_WORDS = 7
# Turns of seeds that a request shows.
EXAMPLES = 3
# The files of a scenario folder that are no scenario.
COMMON = ("taxonomy.yaml", "personas.yaml", "telltale.yaml")


@dataclass(frozen=True)
class ScenarioGroup:
    """A group of scenarios by name, with a line that says what they have in common."""

    name: str
    definition: str
    scenarios: tuple[str, ...]


@dataclass(frozen=True)
class ScenarioGroups:
    """All groups in order, and the hash of the file's content."""

    groups: tuple[ScenarioGroup, ...]
    digest: str


def load_groups(path: Path | None = None) -> ScenarioGroups:
    """The groups of a file, by default the packaged one. Raises InputError if the file is not valid, or two groups have one name."""
    path = path or data_folder("scenarios") / FILE
    content = read_yaml(path, "groups")
    names = [group["name"] for group in content]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    refuse(Problem(str(path), f'the group "{name}" occurs twice', "give each group its own name") for name in twice)
    return ScenarioGroups(
        tuple(ScenarioGroup(group["name"], group["definition"], tuple(group["scenarios"])) for group in content), digest(content)
    )


@dataclass(frozen=True)
class SeedTurn:
    """A turn of a seed dialogue. Only helper turns have variants and controls. ``ways`` maps a variant to its manner or device."""

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
        """The text of the turn and of all its variants."""
        every = (self.text, self.apathetic, self.empathetic, self.near_empathetic, self.far_apathetic)
        return [text for text in every if text is not None]


@dataclass(frozen=True)
class Seed:
    """A curated seed dialogue. ``register`` is how its seeker writes; ``emblems`` are nouns that no other packaged seed may use."""

    description: str
    turns: tuple[SeedTurn, ...]
    register: str | None = None
    emblems: tuple[str, ...] = ()
    helper_voice: str | None = None
    far_voice: str | None = None


@dataclass(frozen=True)
class Scenario:
    """A situation in which people seek support, with its share of the dialogues in percent."""

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
    """A curated crossed item: ``turn`` is the index of the helper turn that both replies answer, ``twin`` the seeker's message before it in
    the second context.
    """

    crossed_id: str
    turn: int
    twin: str
    reply_1: str
    reply_2: str
    reason: str


@dataclass(frozen=True)
class Catalogue:
    """The taxonomy and all scenarios, by number.

    ``seed_hash`` is the hash of all seed dialogues, ``seed_contents`` by scenario the part of its file that it is made of. Seekers and
    lengths are drawn from ``personas``. Rewriters are asked to avoid the words in ``telltale``. ``files`` holds the digest of each file
    that is no scenario, ``file_contents`` the content, and ``crossed`` by scenario the crossed items of its seed.
    """

    taxonomy: Taxonomy
    scenarios: tuple[Scenario, ...]
    seed_hash: str
    personas: Personas | None = None
    telltale: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    crossed: Mapping[int, tuple[CrossedItem, ...]] = field(default_factory=dict)
    file_contents: Mapping[str, Any] = field(default_factory=dict)
    seed_contents: Mapping[int, Any] = field(default_factory=dict, compare=False, repr=False)

    def __getitem__(self, number: int) -> Scenario:
        return next(scenario for scenario in self.scenarios if scenario.number == number)

    def voice(self, name: str | None) -> Voice | None:
        """The voice of that name; None if there is none."""
        return self.personas.voice(name) if self.personas else None

    def exemplar(self, seed: int, number: int) -> Seed | None:
        """A seed dialogue of another scenario, so that no build echoes its own seed; None if there is none.

        It is the same for all dialogues of a scenario, so that providers can cache the prefix of its requests.
        """
        others = [scenario.seed for scenario in self.scenarios if scenario.seed and scenario.number != number]
        return derived_random(seed, "exemplar", number).choice(others) if others else None

    @cached_property
    def _drawn(self) -> dict[tuple[int, int, str, str | None], list[SeedExample]]:
        """Cache of drawn examples: every request needs some, and there are few different ones."""
        return {}

    def examples(self, seed: int, number: int, variant: str, way: str | None) -> list[SeedExample]:
        """A few turns of other scenarios' seeds with this variant, made in this way if one is given.

        They are the same for all dialogues of a scenario, so that providers can cache the prefix of its requests.
        """
        key = seed, number, variant, way
        if key not in self._drawn:
            others = [example for scenario, example in self._examples[variant, way] if scenario != number]
            self._drawn[key] = derived_random(seed, "examples", number, variant, way).sample(others, min(EXAMPLES, len(others)))
        return self._drawn[key]

    @cached_property
    def _examples(self) -> dict[tuple[str, str | None], list[tuple[int, SeedExample]]]:
        """The examples of all seeds by variant and way (None: any), each with the number of its scenario."""
        examples = defaultdict[tuple[str, str | None], list[tuple[int, SeedExample]]](list)
        for scenario in self.scenarios:
            for variant, example in _examples(scenario):
                examples[variant, None].append((scenario.number, replace(example, way=None)))
                if example.way:
                    examples[variant, example.way].append((scenario.number, example))
        return examples

    def gallery(self, seed: int, number: int, variant: str) -> list[SeedExample]:
        """One example of each way of a variant, or all of a variant without ways."""
        ways = [way.name for way in self.taxonomy.ways(variant)]
        if not ways:
            return self.examples(seed, number, variant, None)
        return [example for way in ways for example in self.examples(seed, number, variant, way)[:1]]


@dataclass(frozen=True)
class SeedExample:
    """A helper turn of a seed with a variant: the seeker's message before, the reference, the variant's text, and how it was made."""

    before: str
    reference: str
    text: str
    strategy: str
    way: str | None


def _examples(scenario: Scenario) -> Iterator[tuple[str, SeedExample]]:
    """The variants of a scenario's seed, for turns that follow a seeker's message."""
    for before, turn in itertools.pairwise(scenario.seed.turns if scenario.seed else ()):
        for variant in CELLS if before.role == "seeker" else ():
            text: str | None = getattr(turn, variant)
            if text:
                strategy = turn.empathetic_strategy if variant in FAR else turn.strategy
                yield variant, SeedExample(before.text, turn.text, text, strategy or "", turn.ways.get(variant))


def load_catalogue(folder: Path | None = None, language: str = ENGLISH, scenarios_in: str = "") -> Catalogue:
    """Reads a scenario folder (by default the packaged one), with all problems of all files at once.

    ``language`` decides what a word is. ``scenarios_in`` is the subfolder that holds the scenarios, if they lie apart.

    Raises:
        InputError: for invalid files, seeds that break a phase rule, repeated numbers, or a folder without scenarios.
    """
    folder = folder or data_folder("scenarios")
    taxonomy, personas = load_taxonomy(folder), load_personas(folder)
    contents = {name: read_yaml(folder / name, Path(name).stem) for name in COMMON if (folder / name).is_file()}
    scenarios: list[Scenario] = []
    problems: list[Problem] = []
    raw: dict[int, Any] = {}
    for path in sorted(file for file in (folder / scenarios_in).glob("*.yaml") if file.name not in (*COMMON, FILE)):
        with collecting(problems):
            value = read_yaml(path, "scenario")
            scenarios.append(_scenario(value))
            problems += _problems(scenarios[-1], path, taxonomy, personas)
            raw[scenarios[-1].number] = value.get("seed")
    problems += _repeated_numbers(scenarios, folder)
    seeds = {scenario.number: scenario.seed.turns if scenario.seed else None for scenario in scenarios}
    crossed, wrong = load_crossed(folder, seeds, language)
    problems += wrong
    refuse(problems)
    if not scenarios:
        raise input_error(folder, "holds no scenario file", "add NNN-<slug>.yaml files")
    ordered = tuple(sorted(scenarios, key=lambda scenario: scenario.number))
    telltale = tuple(contents["telltale.yaml"]["words"]) if "telltale.yaml" in contents else ()
    files = {name: digest(value) for name, value in contents.items()} | ({CROSSED: digest(crossed_content(crossed))} if crossed else {})
    seed_hash = digest([[number, raw[number]] for number in sorted(raw)])
    return Catalogue(taxonomy, ordered, seed_hash, personas, telltale, files, crossed, contents, raw)


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
    texts = {name: (variant["text"] if isinstance(variant, dict) else variant).strip() for name, variant in variants.items()}
    ways = {name: variant["manner"] for name, variant in variants.items() if isinstance(variant, dict)}
    return SeedTurn(**own, **other, **texts, ways=ways | ({"empathetic": far["device"]} if far else {}))


def _problems(scenario: Scenario, path: Path, taxonomy: Taxonomy, personas: Personas | None) -> Iterator[Problem]:
    named: dict[str, Sequence[Register | Voice]] = {}
    if personas and scenario.seed:
        named = {"register": personas.registers, **dict.fromkeys(VOICES, personas.voices)}
    for column, entries in named.items():
        yield from _unknown(str(path), f"{column} ", getattr(scenario.seed, column), entries)
    if path.name != scenario.file_name:
        yield Problem(str(path), f"has a name that does not match its content ({scenario.file_name})", "rename the file")
    turns = scenario.seed.turns if scenario.seed else ()
    for breach in breaches(turns, taxonomy, PhaseRules()) if turns else ():
        where = str(path) if breach.turn is None else f"{path}: turn {breach.turn}"
        yield Problem(where, breach.what, breach.fix)
    for index, turn in enumerate(turns):
        other = turn.empathetic_strategy
        if other is None or turn.strategy is None or turn.strategy not in taxonomy:
            continue
        allowed = [name for name in taxonomy.in_phase(taxonomy.phase_of(turn.strategy)) if name != turn.strategy]
        if other not in allowed:
            what = f'empathetic strategy "{other}" for a turn with "{turn.strategy}"'
            yield Problem(f"{path}: turn {index}", what, f"use another one of its phase: {', '.join(allowed)}")
        for variant, way in turn.ways.items():
            yield from _unknown(f"{path}: turn {index}: {variant}", "", way, taxonomy.ways(variant))


def _unknown(where: str, kind: str, name: str | None, entries: Sequence[Register | Voice | Way]) -> Iterator[Problem]:
    """A problem if a name is not among the entries; without entries any name is allowed."""
    known = [entry.name for entry in entries]
    if name and known and name not in known:
        yield Problem(where, f'{kind}"{name}" is not known', f"use one of these: {', '.join(known)}{nearest(name, known)}")


def _repeated_numbers(scenarios: list[Scenario], folder: Path) -> Iterator[Problem]:
    for number, group in itertools.groupby(sorted(scenarios, key=lambda scenario: scenario.number), key=lambda scenario: scenario.number):
        *others, last = [scenario.file_name for scenario in group]
        if others:
            yield Problem(str(folder / last), f"number {number} is also that of {', '.join(others)}", "give each scenario its own number")


def load_crossed(
    folder: Path, seeds: Mapping[int, Sequence[SeedTurn] | None], language: str = ENGLISH
) -> tuple[dict[int, tuple[CrossedItem, ...]], list[Problem]]:
    """The crossed items of a scenario folder by scenario number, and their problems.

    ``seeds`` maps the scenarios that could be read to the turns of their seeds. A folder without crossed items is valid.
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
            texts = itemgetter("twin", "reply_1", "reply_2", "reason")
            items[number] = tuple(CrossedItem(value["id"].strip(), value["turn"], *map(str.strip, texts(value))) for value in values)
            if seed := seeds.get(number):
                problems += _crossed_problems(items[number], number, seed, path, language)
            elif number in seeds or not any(folder.glob(f"{number:03d}-*.yaml")):
                what = f"scenario {number} has no seed dialogue" if number in seeds else f"there is no scenario {number}"
                problems.append(Problem(str(path), what, "write it, or remove this file"))
    return items, problems


def crossed_content(crossed: Mapping[int, Sequence[CrossedItem]]) -> list[Any]:
    """The content of crossed items, for a hash."""
    return [[number, [asdict(item) for item in crossed[number]]] for number in sorted(crossed)]


def _crossed_problems(items: Sequence[CrossedItem], number: int, seed: Sequence[SeedTurn], path: Path, language: str) -> Iterator[Problem]:
    seed_texts = [text for turn in seed for text in turn.texts]
    seed_runs = {run for text in seed_texts for run in shingles(text, QUOTATION_WORDS, language) if len(run) == QUOTATION_WORDS}
    for name, times in Counter(item.crossed_id for item in items).items():
        if times > 1:
            yield Problem(f"{path}: {name}", f"is the id of {times} items", "give each item its own number")
        if not name.startswith(f"{number:03d}-"):
            yield Problem(f"{path}: {name}", f"is not an item of scenario {number}", f"name it {number:03d}-seed-x1 or the like")
    for item in items:
        where = f"{path}: {item.crossed_id}"
        if item.turn >= len(seed) or (seed[item.turn - 1].role, seed[item.turn].role) != ("seeker", "helper"):
            what = f"turn {item.turn} is not a helper's after a seeker's"
            yield Problem(where, what, f"count from 0, in a dialogue of {len(seed)} turns")
        elif not CHANGED_WORDS[0] <= (changed := changed_words(seed[item.turn - 1].text, item.twin, language)) <= CHANGED_WORDS[1]:
            what = f'the twin "{shortened(item.twin)}" differs in {changed} words from the turn before turn {item.turn}'
            fix = f"change {CHANGED_WORDS[0]} to {CHANGED_WORDS[1]} words, so that the contexts differ in little except the need"
            yield Problem(where, what, fix)
        yield from problems_of_replies(item, where, language)
        for name in ("reply_1", "reply_2"):
            runs = sorted(shingles(getattr(item, name), QUOTATION_WORDS, language) & seed_runs)
            if runs:
                what = f'{name} repeats "{" ".join(runs[0])}" from the seed dialogue'
                yield Problem(where, what, f"write it in other words: runs of {QUOTATION_WORDS} words count as quotations")


def problems_of_replies(item: CrossedItem, where: str, language: str) -> Iterator[Problem]:
    """Problems of the two replies of a curated item: too short, too long, of unequal length, or equal."""
    least, most = REPLY_WORDS
    replies = {"reply_1": item.reply_1, "reply_2": item.reply_2}
    lengths = {name: len(words(text, language)) for name, text in replies.items()}
    for name, length in lengths.items():
        if not least <= length <= most:
            yield Problem(where, f'{name} "{shortened(replies[name])}" has {length} words', f"write {least} to {most} words")
    shorter, longer = sorted(lengths.values())
    if longer - shorter > MAX_LENGTH_GAP * longer:
        what = f"the replies have {lengths['reply_1']} and {lengths['reply_2']} words"
        yield Problem(where, what, "let them differ by at most a quarter of the longer one, so that length does not show which is which")
    if words(item.reply_1, language) == words(item.reply_2, language):
        yield Problem(where, f'both replies are "{shortened(item.reply_1)}"', "write two replies, each right in one context")


def changed_words(original: str, twin: str, language: str = ENGLISH) -> int:
    """The word-level Levenshtein distance of two texts, as in the edit ratio."""
    return Levenshtein.distance(words(original, language), words(twin, language))
