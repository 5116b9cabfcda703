"""The language of a build: the rule files of its checks, and what another language than English must bring."""

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
ANY_LANGUAGE_METRICS = ("bleu", "rouge-l", "chrf", "length", "dist-1", "dist-2", "dist-4")
ENGLISH_MODEL = "all-MiniLM-L6-v2"
BRING = "write it, have a speaker of the language review it, and name its folder with --rules DIR; none is shipped unreviewed"
# A report is made without rules of one's own.
ONLY_SCORED = "none is shipped unreviewed; score --rules DIR shows what a file of your own gives"


@dataclass(frozen=True)
class Rules:
    """A file of rules: its path, the hash of its content, and the content, which travels to other processes."""

    digest: str
    where: str = field(compare=False)
    content: list[dict[str, Any]] = field(compare=False)


@dataclass(frozen=True)
class Language:
    """A language by its code, and its rules by file name without ``.yaml``; missing files are not among them."""

    code: str
    rules: Mapping[str, Rules] = field(default_factory=dict)

    @property
    def hashes(self) -> dict[str, str]:
        """The content hash of each rule file, by name."""
        return {f"{name}.yaml": self.rules[name].digest for name in sorted(self.rules)}


def load_language(code: str = ENGLISH, folder: Path | None = None) -> Language:
    """A language with the rules of a folder, by default the packaged ones.

    Raises:
        InputError: if the folder does not exist, or a file is invalid; all problems of all files at once.
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
                content = read_yaml(path, "rules")
                rules[name] = Rules(digest(content), str(path), content)
    refuse(problems)
    return Language(code, rules)


@cache
def english() -> Language:
    """English, with the packaged rules."""
    return load_language()


def language_problems(config: Configuration, language: Language) -> Iterator[Problem]:
    """What a build lacks in its language: rule files, and replacements for English-only parts."""
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
    """Problems for rule files without required rules."""
    if description := language.rules.get("description"):
        for name in (OPENING, FIRST_PERSON):
            if name not in [rule["name"] for rule in description.content]:
                yield Problem(
                    description.where, f'has no rule "{name}"', f"add it: a description opens with {OPENING} and contains no {FIRST_PERSON}"
                )
    if apathetic := language.rules.get("apathetic"):
        for rule in apathetic.content:
            if "replace" not in rule:
                yield Problem(f"{apathetic.where}: {rule['name']}", 'has no "replace"', 'write the replacement, "" for nothing')


def _english_parts(config: Configuration) -> Iterator[Problem]:
    """Problems for English-only parts that a configuration names."""
    scored, report = config.checks.toxicity, config.raw["report"]
    if scored and scored.scorer != "detoxify":
        what = f'"{scored.scorer}" supports only English: it scores ordinary sentences of other languages as toxic'
        yield Problem("checks: toxicity", what, 'write "toxicity: none", or name a Detoxify checkpoint that was trained for the language')
    if "metrics" not in report:
        what = "are left out, but some of the default ones support only English (meteor, vader)"
        yield Problem("report: metrics", what, f"name those that you want, such as {', '.join(ANY_LANGUAGE_METRICS)}")
    for name in report.get("metrics", ()):
        if name in ENGLISH_METRICS:
            fix = f"leave it out, or use one of {', '.join(ANY_LANGUAGE_METRICS)}"
            yield Problem("report: metrics", f'"{name}" supports only English', fix)
    if report.get("bertscore", {}).get("model") == ENGLISH_MODEL:
        yield Problem("report: bertscore", f'"{ENGLISH_MODEL}" supports only English', "name a model of the language, or of many")
    if "shortcuts" in report:
        yield Problem("report: shortcuts", f'"{report["shortcuts"]["embedding"]}" supports only English', "leave it out")
