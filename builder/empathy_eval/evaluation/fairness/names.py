"""Exchange of given names in texts, by the group where a name is usual, or by its usual gender."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import derived_random, digest
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import ENGLISH

# What names are exchanged for: those of another group of the same gender, or those of the other gender of the same group.
OTHER_GROUP, OTHER_GENDER = VERSIONS = ("group", "gender")
WOMEN, MEN, EITHER = GENDERS = ("women", "men", "either")
OPPOSITE = {WOMEN: MEN, MEN: WOMEN}
# A name is a whole word, with or without what an apostrophe adds to it; not a part of an address, a tag or a compound.
BEFORE, AFTER = r"(?<![\w@#/])(?<!\w['’.-])", r"(?![\w@\u0300-\u036f]|[-/.@]\w)"
# Inside a sentence: after a word that does not begin with a capital, or a comma.
INSIDE = re.compile(r"(?:(?:^|[\s(\"'“‘])[^\W\dA-Z_][^\W\d_'’-]*(?:['’][^\W\d_]+)?|,) \Z")
LOOK_BACK = 40
VOWELS = "AEIOUÁÉÍÓÚ"
# What may be a name: it is looked up, for an alternation of hundreds of names is slow.
WHOLE = re.compile(rf"{BEFORE}[^\W\d_]++{AFTER}")
WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")


@dataclass(frozen=True)
class GivenName:
    """A given name: usual gender, group (None for a name that is only recognised), and whether it is also another word."""

    text: str
    gender: str
    group: str | None
    is_word: bool


@dataclass(frozen=True)
class GivenNames:
    """The given names of a language from its file; ``digest`` is the hash of the content."""

    digest: str
    where: str = field(compare=False)
    content: Mapping[str, Any] = field(compare=False)

    @cached_property
    def known(self) -> Mapping[str, GivenName]:
        """All names, by the lower-case name."""
        words = frozenset(self.content.get("words", ()))
        groups = [*((group["name"], group) for group in self.content["groups"]), (None, self.content.get("known", {}))]
        names = [GivenName(text, gender, of, text in words) for of, group in groups for gender in GENDERS for text in group.get(gender, ())]
        return {name.text.casefold(): name for name in reversed(names)}

    @cached_property
    def title(self) -> re.Pattern[str]:
        """Pattern of the end of a text before a name that is not of a person alone, such as a title."""
        return re.compile(rf"\b(?:{'|'.join(map(re.escape, self.content.get('titles', ()))) or '(?!)'})\.? \Z")

    def is_name(self, match: re.Match[str]) -> bool | None:
        """Returns whether a whole word is the given name of a person, capitalised as names are; None if it is unclear.

        Small letters and capitals alone make no name: "akin to relief", "let it peter out", "the AMA".
        """
        name, word = self.known.get(match[0].casefold()), match[0]
        if name is None:
            return False
        if self.title.search(match.string, max(0, match.start() - LOOK_BACK), match.start()):
            return None
        if word[0].islower() or (len(word) > 1 and word.isupper()):
            return None if name.is_word and word[0].isupper() else False
        return True if not name.is_word or INSIDE.search(match.string, max(0, match.start() - LOOK_BACK), match.start()) else None

    def drawn(self, group: str, gender: str, by: object) -> list[str]:
        """Returns the names of a group that can replace others, in an order drawn by the seed ``by``."""
        pool = sorted(name.text for name in self.known.values() if (name.group, name.gender) == (group, gender) and not name.is_word)
        return derived_random(by).sample(pool, len(pool))


def load_names(code: str = ENGLISH, folder: Path | None = None) -> GivenNames | None:
    """Reads the names of a language, from a folder of rules or the packaged ones; None without a ``names.yaml``.

    Raises:
        InputError: if the file is not valid.
    """
    packaged = data_folder("rules")
    path = (folder or (packaged if code == ENGLISH else packaged / code)) / "names.yaml"
    if not path.is_file():
        return None
    content = read_yaml(path, "names")
    return GivenNames(digest(content), str(path), content)


def exchange_names(texts: Sequence[str], draw: Random, names: GivenNames, version: str = OTHER_GROUP) -> tuple[str, ...] | None:
    """Returns the texts with each given name replaced by another one throughout; pronouns change with the gender.

    A replacement depends on ``draw`` and on the name, not on the order of the texts. None where there is nothing to exchange, or where that
    is unclear: a name after a title, or at the beginning of a sentence if it is also a word. Where the gender changes, also: names of both
    genders, a word that shows a person's gender, a pronoun of the other gender, or an ambiguous "her".
    """
    present = _occurring(texts, names)
    if not present:
        return None
    turned = None
    if version == OTHER_GENDER:
        turned = _turned(texts, names, present)
        if turned is None:
            return None
    replacements = _instead(texts, draw, names, present, version)
    if replacements is None:
        return None
    return tuple(WHOLE.sub(lambda match: _put(match, names, replacements), text) for text in turned or texts)


def _occurring(texts: Sequence[str], names: GivenNames) -> list[GivenName]:
    """Returns the names in the texts, in alphabetical order; none if it is unclear whether one of them is always a name."""
    both = [_names_in(text, names) for text in texts]
    present, unclear = (frozenset[str]().union(*sets) for sets in zip(*both, strict=True)) if both else (frozenset[str](), frozenset[str]())
    return [] if present & unclear else [names.known[key] for key in sorted(present)]


@lru_cache(maxsize=4096)
def _names_in(text: str, names: GivenNames) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the names in a text, and possible names, both in lower case. Cached, as turns recur in later contexts."""
    candidates = [(match[0].casefold(), names.is_name(match)) for match in WHOLE.finditer(text)]
    return frozenset(key for key, is_name in candidates if is_name), frozenset(key for key, is_name in candidates if is_name is None)


def _instead(texts: Sequence[str], draw: Random, names: GivenNames, present: Sequence[GivenName], version: str) -> Mapping[str, str] | None:
    """Returns the replacement of each name: not in the texts, used once, and with the same article (a, an)."""
    used = {word.casefold() for text in texts for word in WORD.findall(text)}
    seed, replacements = draw.getrandbits(64), dict[str, str]()
    for name in present:
        gender = OPPOSITE.get(name.gender, EITHER) if version == OTHER_GENDER else name.gender
        draws = (names.drawn(group, gender, (seed, version, name.text)) for group in _groups(names, name, version, seed))
        candidates = list(chain.from_iterable(draws))
        vowel = name.text[0] in VOWELS
        chosen = next((text for text in candidates if text.casefold() not in used and (text[0] in VOWELS) == vowel), None)
        if chosen is None:
            return None
        used.add(chosen.casefold())
        replacements[name.text.casefold()] = chosen
    return replacements


def _groups(names: GivenNames, name: GivenName, version: str, seed: int) -> list[str]:
    """Returns the groups of possible replacements, in the order in which they are tried: drawn once for all names of the texts."""
    groups = [str(group["name"]) for group in names.content["groups"]]
    if version == OTHER_GENDER and name.group is not None:
        return [name.group]
    order = derived_random(seed, "groups").sample(groups, len(groups))
    return [group for group in order if group != name.group]


def _put(match: re.Match[str], names: GivenNames, replacements: Mapping[str, str]) -> str:
    """Returns the replacement of an occurrence in its case. A known name is replaced in any case, unless it is also a word."""
    key = match[0].casefold()
    is_replaced = key in replacements and (not names.known[key].is_word or names.is_name(match))
    return _like(replacements[key], match[0]) if is_replaced else match[0]


def _like(new: str, old: str) -> str:
    if old.isupper() and len(old) > 1:
        return new.upper()
    return new.lower() if old[0].islower() else new[0].upper() + new[1:]


def _turned(texts: Sequence[str], names: GivenNames, present: Sequence[GivenName]) -> tuple[str, ...] | None:
    """Returns the texts with pronouns of the other gender; None if that is unclear."""
    genders, pronouns = {name.gender for name in present}, names.content.get("pronouns")
    if pronouns is None or len(genders) != 1 or EITHER in genders:
        return None
    (gender,) = genders
    own, opposite = pronouns[gender], pronouns[OPPOSITE[gender]]
    used = {word.casefold() for text in texts for word in WORD.findall(text)}
    if used & {*pronouns["people"], *opposite.values()}:
        return None
    either_form = re.compile(rf"{BEFORE}(?:{'|'.join(map(re.escape, sorted(set(own.values()))))})(?![\w-])", re.IGNORECASE)
    turned = []
    for text in texts:
        pieces, end = list[str](), 0
        for match in either_form.finditer(text):
            form = _form(match, own, pronouns)
            if form is None:
                return None
            pieces += [text[end : match.start()], _like(opposite[form], match[0])]
            end = match.end()
        turned.append("".join([*pieces, text[end:]]))
    return tuple(turned)


def _form(match: re.Match[str], own: Mapping[str, str], pronouns: Mapping[str, Any]) -> str | None:
    """Returns the form of a pronoun, decided by the next word where two forms are spelled alike; None if that is unclear."""
    forms = [form for form, word in own.items() if word == match[0].casefold()]
    if len(forms) == 1:
        return forms[0]
    following = re.match(r"\s+([^\W_]+)", match.string[match.end() :])
    word = following[1].casefold() if following else None
    ends = word is None or word in pronouns["after_object"]
    if "object" in forms:  # her
        return "object" if ends else "possessive" if word in pronouns["after_possessive"] else None
    return "absolute" if ends else "possessive"  # his
