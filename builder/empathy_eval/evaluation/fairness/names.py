"""Given names, exchanged in texts for others: by where a name is usual, or by its usual gender."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
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
    """A given name: its usual gender, the group that it is of (none of a name that is only known), and whether it is another word too."""

    text: str
    gender: str
    group: str | None
    is_word: bool


@dataclass(frozen=True)
class GivenNames:
    """The names of a language as its file says them; ``digest`` is the hash of what it says."""

    digest: str
    where: str = field(compare=False)
    content: Mapping[str, Any] = field(compare=False)

    @cached_property
    def known(self) -> Mapping[str, GivenName]:
        """All names, by the name in small letters."""
        words = frozenset(self.content.get("words", ()))
        groups = [*((group["name"], group) for group in self.content["groups"]), (None, self.content.get("known", {}))]
        names = [
            GivenName(text, gender, label, text in words) for label, group in groups for gender in GENDERS for text in group.get(gender, ())
        ]
        return {name.text.casefold(): name for name in reversed(names)}

    @cached_property
    def title(self) -> re.Pattern[str]:
        """What a text before a name ends with where the name is not of a person alone."""
        return re.compile(rf"\b(?:{'|'.join(map(re.escape, self.content.get('titles', ()))) or '(?!)'})\.? \Z")

    def is_name(self, match: re.Match[str]) -> bool | None:
        """Whether a whole word is the given name of a person, with a capital as names are written; None where one cannot tell.

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
        """The names of a group that can stand in for others, in an order drawn by what is given."""
        pool = sorted(name.text for name in self.known.values() if (name.group, name.gender) == (group, gender) and not name.is_word)
        return derived_random(by).sample(pool, len(pool))


def load_names(code: str = ENGLISH, folder: Path | None = None) -> GivenNames | None:
    """The names of a language, of a folder of rules of one's own or of the packaged ones; None where there is no ``names.yaml``.

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
    """The texts (a context, a reference, replies: all that are read together) with each given name in them exchanged for the same other
    one throughout; everything else stays, but for the pronouns where the gender changes. A name is drawn by ``draw`` and by itself, not by
    the order of the texts.

    None where there is nothing to exchange, and where it is not plain what to exchange: a name that stands after a title too or, being
    another word as well, at the beginning of a sentence; and where the gender is to change, names of both genders, a word that tells the
    gender of somebody, a pronoun of the other gender, or a "her" that the next word leaves open.
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
    """The names that the texts have, in the order of the alphabet; none if it is not plain whether one of them is a name everywhere."""
    both = [_names_in(text, names) for text in texts]
    present, unclear = (frozenset[str]().union(*sets) for sets in zip(*both, strict=True)) if both else (frozenset[str](), frozenset[str]())
    return [] if present & unclear else [names.known[key] for key in sorted(present)]


@lru_cache(maxsize=4096)
def _names_in(text: str, names: GivenNames) -> tuple[frozenset[str], frozenset[str]]:
    """The names in a text, and what may be one, both in small letters. Kept, for turns are read again with each turn after them."""
    candidates = [(match[0].casefold(), names.is_name(match)) for match in WHOLE.finditer(text)]
    return frozenset(key for key, is_name in candidates if is_name), frozenset(key for key, is_name in candidates if is_name is None)


def _instead(texts: Sequence[str], draw: Random, names: GivenNames, present: Sequence[GivenName], version: str) -> Mapping[str, str] | None:
    """What stands in for each name: nothing that occurs in the texts, nothing twice, and what goes with the same article (a, an)."""
    used = {word.casefold() for text in texts for word in WORD.findall(text)}
    seed, replacements = draw.getrandbits(64), dict[str, str]()
    for name in present:
        gender = OPPOSITE.get(name.gender, EITHER) if version == OTHER_GENDER else name.gender
        candidates = [
            other for group in _groups(names, name, version, seed) for other in names.drawn(group, gender, (seed, version, name.text))
        ]
        vowel = name.text[0] in VOWELS
        chosen = next((text for text in candidates if text.casefold() not in used and (text[0] in VOWELS) == vowel), None)
        if chosen is None:
            return None
        used.add(chosen.casefold())
        replacements[name.text.casefold()] = chosen
    return replacements


def _groups(names: GivenNames, name: GivenName, version: str, seed: int) -> list[str]:
    """The groups that may stand in for a name, in the order in which they are tried: drawn once for all names of the texts."""
    groups = [str(group["name"]) for group in names.content["groups"]]
    if version == OTHER_GENDER and name.group is not None:
        return [name.group]
    order = derived_random(seed, "groups").sample(groups, len(groups))
    return [group for group in order if group != name.group]


def _put(match: re.Match[str], names: GivenNames, replacements: Mapping[str, str]) -> str:
    """What stands in for an occurrence, in its letters: small, capital, capitals. A name that the texts have is one in any letters, but for
    one that is another word."""
    key = match[0].casefold()
    is_replaced = key in replacements and (not names.known[key].is_word or names.is_name(match))
    return _like(replacements[key], match[0]) if is_replaced else match[0]


def _like(new: str, old: str) -> str:
    if old.isupper() and len(old) > 1:
        return new.upper()
    return new.lower() if old[0].islower() else new[0].upper() + new[1:]


def _turned(texts: Sequence[str], names: GivenNames, present: Sequence[GivenName]) -> tuple[str, ...] | None:
    """The texts with their pronouns turned to the other gender; None where one cannot tell."""
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
    """Which form of the pronoun was found, told by the next word where two forms are written alike; None if that leaves it open."""
    forms = [form for form, word in own.items() if word == match[0].casefold()]
    if len(forms) == 1:
        return forms[0]
    following = re.match(r"\s+([^\W_]+)", match.string[match.end() :])
    word = following[1].casefold() if following else None
    ends = word is None or word in pronouns["after_object"]
    if "object" in forms:  # her
        return "object" if ends else "possessive" if word in pronouns["after_possessive"] else None
    return "absolute" if ends else "possessive"  # his
