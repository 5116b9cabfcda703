"""The language of a build: the rules that its checks go by, as files, and what an English build has and another must be given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, collecting, input_error, refuse
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.configuration import Configuration

# What each file of rules is for.
RULES = {
    "safety": "what no helper turn may say",
    "crisis": "what is language of hopelessness or danger",
    "pointers": "what points to professional or crisis help",
    "description": "how a description begins, and which words would be of the first person",
    "apathetic": "how near_apathetic makes a text cold by rules",
}
OPENING, FIRST_PERSON = "opening", "first_person"
# Metrics that know English alone: by their lexicon, their stemmer, their word lists. And what a report can be of without them.
ENGLISH_METRICS = ("meteor", "vader", "sentlink", "empathyscore", "empathyscore-content", "empathyscore-flow")
OF_ANY = ("bleu", "rouge-l", "chrf", "length", "dist-1", "dist-2", "dist-4")
ENGLISH_MODEL = "all-MiniLM-L6-v2"
BRING = "write it, have a speaker of the language review it, and name its folder with --rules DIR; none is shipped unreviewed"
# A report is made without rules of one's own.
ONLY_SCORED = "none is shipped unreviewed; score --rules DIR shows what a file of your own gives"


@dataclass(frozen=True)
class Rules:
    """A file of rules: where it is, the hash of what it says, and what it says, which goes to other processes with it."""

    digest: str
    where: str = field(compare=False)
    said: list[dict[str, Any]] = field(compare=False)


@dataclass(frozen=True)
class Language:
    """A language by its code, and its rules by the name of their file without ``.yaml``; a file that is not there is not among them."""

    code: str
    rules: Mapping[str, Rules] = field(default_factory=dict)

    @property
    def hashes(self) -> dict[str, str]:
        """The hash of what each file of rules says, by its name."""
        return {f"{name}.yaml": self.rules[name].digest for name in sorted(self.rules)}


def load_language(code: str = ENGLISH, folder: Path | None = None) -> Language:
    """A language with the rules of a folder of one's own, by default with those that are packaged for it.

    Raises:
        InputError: if the folder is none, or a file is not valid; all problems of all files at once.
    """
    if folder is not None and not folder.is_dir():
        raise input_error(folder, "is not a folder", "name a folder of rules with --rules")
    packaged = data_folder("rules")
    where = folder or (packaged if code == ENGLISH else packaged / code)
    rules, problems = dict[str, Rules](), list[Problem]()
    for name in RULES:
        path = where / f"{name}.yaml"
        if path.is_file():
            with collecting(problems):
                said = read_yaml(path, "rules")
                rules[name] = Rules(digest(said), str(path), said)
    refuse(problems)
    return Language(code, rules)


@cache
def english() -> Language:
    """English, with the rules that are packaged."""
    return load_language()


def lacking(config: Configuration, language: Language) -> Iterator[Problem]:
    """What a build of that configuration lacks in its language: rules of checks, and what stands in for what knows English alone."""
    if config.language != language.code:
        what = f'is "{config.language}" in the configuration, but the rules are for "{language.code}"'
        yield Problem("language", what, "read both with load_recipe")
        return
    where = f"language: {language.code}"
    # An English description is checked without a file too.
    spared = {"description": config.language == ENGLISH, "apathetic": config.near_apathetic == "model"}
    for name in RULES:
        if name not in language.rules and not spared.get(name):
            yield Problem(where, f"there is no {name}.yaml, which defines {RULES[name]}", BRING)
    yield from _incomplete(language)
    if language.code != ENGLISH:
        yield from _english_parts(config)


def _incomplete(language: Language) -> Iterator[Problem]:
    """Files of rules without the rules that are looked for in them."""
    if description := language.rules.get("description"):
        for name in (OPENING, FIRST_PERSON):
            if name not in [rule["name"] for rule in description.said]:
                yield Problem(
                    description.where, f'has no rule "{name}"', f"add it: a description opens with {OPENING} and contains no {FIRST_PERSON}"
                )
    if apathetic := language.rules.get("apathetic"):
        for rule in apathetic.said:
            if "replace" not in rule:
                yield Problem(f"{apathetic.where}: {rule['name']}", 'has no "replace"', 'write the replacement, "" for nothing')


def _english_parts(config: Configuration) -> Iterator[Problem]:
    """What a configuration names that knows English alone."""
    scored, report = config.checks.toxicity, config.raw["report"]
    if scored and scored.scorer != "detoxify":
        what = f'"{scored.scorer}" supports only English: it scores ordinary sentences of other languages as toxic'
        yield Problem("checks: toxicity", what, 'write "toxicity: none", or name a Detoxify checkpoint that was trained for the language')
    if "metrics" not in report:
        what = "are left out, but some of the default ones support only English (meteor, vader)"
        yield Problem("report: metrics", what, f"name those that you want, such as {', '.join(OF_ANY)}")
    for name in report.get("metrics", ()):
        if name in ENGLISH_METRICS:
            yield Problem("report: metrics", f'"{name}" supports only English', f"leave it out, or use one of {', '.join(OF_ANY)}")
    if report.get("bertscore", {}).get("model") == ENGLISH_MODEL:
        yield Problem("report: bertscore", f'"{ENGLISH_MODEL}" supports only English', "name a model of the language, or of many")
    if "shortcuts" in report:
        yield Problem("report: shortcuts", f'"{report["shortcuts"]["embedding"]}" supports only English', "leave it out")
