"""Given names are exchanged as whole words, throughout, and only where it is plain what to exchange."""

import re
from pathlib import Path
from random import Random

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.hashing import derived_random
from empathy_eval.evaluation.fairness.names import (
    EITHER,
    GENDERS,
    MEN,
    OTHER_GENDER,
    OTHER_GROUP,
    VERSIONS,
    WOMEN,
    GivenNames,
    exchange_names,
    load_names,
)
from hypothesis import given
from hypothesis import strategies as st

SMALL = """
groups:
  - {name: north, told: of the north, women: [Sif, Grace, Una], men: [Tor, Will, Odd], either: [Mio]}
  - {name: south, told: of the south, women: [Bea, Ada], men: [Leo, Ugo], either: [Gil]}
known: {women: [Zula], men: [], either: []}
words: [Grace, Will, Odd]
titles: [Mrs, Saint]
pronouns:
  women: {subject: she, object: her, possessive: her, absolute: hers, reflexive: herself}
  men: {subject: he, object: him, possessive: his, absolute: his, reflexive: himself}
  after_object: [and, when]
  after_possessive: [house]
  people: [sister, man]
"""


@pytest.fixture
def small(tmp_path: Path) -> GivenNames:
    """A file of names in which nearly everything can be said beforehand."""
    (tmp_path / "names.yaml").write_text(SMALL, encoding="utf-8")
    return _loaded(tmp_path)


def _loaded(folder: Path | None = None) -> GivenNames:
    names = load_names(folder=folder)
    assert names is not None
    return names


def _without(text: str, names: GivenNames) -> str:
    """The text with each name in it taken out."""
    return re.sub(r"[^\W\d_]+", lambda match: "…" if match[0].casefold() in names.known else match[0], text)


def _one(text: str, names: GivenNames, version: str = OTHER_GROUP) -> str | None:
    made = exchange_names([text], Random(0), names, version)
    return made[0] if made else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sif is here.", "Bea is here."),
        ("Sif's bag, SIF, sif", "Bea's bag, BEA, bea"),
        ("an old friend, a Sif, told an Una", "an old friend, a Bea, told an Ada"),
        ("I met Tor’s dog; Tor'll come", "I met Leo’s dog; Leo'll come"),
        ("…Sif—yes (Sif) “Sif”", "…Bea—yes (Bea) “Bea”"),
        ("my friend Will will ask", "my friend Leo will ask"),
        ("Yes, Grace, with grace", "Yes, Bea, with grace"),
    ],
)
def test_a_name_takes_the_position_of_the_other_and_all_else_stays(text: str, expected: str, small: GivenNames) -> None:
    assert _one(text, small) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Nobody is named.",
        "Sifter, ASif, O'Sif, Sif-Tor, sif@tor.org, @sif, #sif, tor.org, Sif\u0301",
        "Will you come? With grace.",
        "Mrs sif came, Sif left",
        "I WILL COME",
        "I will ask my friend Will. Will he?",
        "Mrs Sif and Saint Tor",
        "Mrs Sif. I call her Sif.",
        "It is strange. Odd, even, odd",
        "sif, SIF",
    ],
)
def test_nothing_is_exchanged_where_no_name_or_no_plain_one_is(text: str, small: GivenNames) -> None:
    assert _one(text, small) is None


@pytest.mark.parametrize("text", ["It is akin to relief.", "Let it peter out, and yaw.", "Roger that. A mike broke. The AMA said so."])
def test_common_words_are_no_names_however_many_names_there_are(text: str) -> None:
    names = _loaded()
    assert _one(text, names) is None
    (new,) = exchange_names([f"{text} I told Maya."], Random(1), names) or ("",)
    # "Roger" at the beginning may be a name: then one cannot tell, but only for Roger.
    assert new.startswith(f"{text} I told ") and "Maya" not in new


def test_a_script_without_capitals_has_names_too(tmp_path: Path) -> None:
    texts = "groups: [{name: a, told: x, women: [سارة], men: [], either: []}, {name: b, told: y, women: [مريم], men: [], either: []}]"
    (tmp_path / "names.yaml").write_text(texts, encoding="utf-8")
    assert _one("قالت سارة", _loaded(tmp_path)) == "قالت مريم"


def test_all_texts_that_are_read_together_get_the_same_names(small: GivenNames) -> None:
    assert exchange_names(["Sif left.", "Nothing.", "sif's gone, and Tor"], Random(3), small) == (
        "Bea left.",
        "Nothing.",
        "bea's gone, and Leo",
    )


def test_a_known_name_is_exchanged_and_never_drawn(small: GivenNames) -> None:
    found = {_one("Zula", small), *(exchange_names(["Zula"], Random(seed), small) or ("",) for seed in range(20))}
    assert found <= {"Sif", "Bea", ("Sif",), ("Bea",)}
    assert len(found) == 3


def test_two_names_never_become_one_and_none_becomes_one_that_is_there(small: GivenNames) -> None:
    assert exchange_names(["Sif saw Bea"], Random(0), small) is None
    both = _loaded()
    for seed in range(30):
        (made,) = exchange_names(["Susan, Karen, Linda, Wambui and Meera"], Random(seed), both) or ("",)
        new = re.findall(r"[A-Z]\w+", made)
        assert len(set(new)) == 5
        assert not {*new} & {"Susan", "Karen", "Linda", "Wambui", "Meera"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sif said she hurt herself. I told her.", "Tor said he hurt himself. I told him."),
        ("It's her house, and hers, Sif's. I saw her and left", "It's his house, and his, Tor's. I saw him and left"),
        ("Tor has his bag. It is his. HE'S HERE", "Sif has her bag. It is hers. SHE'S HERE"),
        ("Sif told her that", None),
        ("Sif told him", None),
        ("Sif and Tor", None),
        ("Mio", None),
        ("my sister Sif", None),
    ],
)
def test_gender_changes_with_its_pronouns_or_not_at_all(text: str, expected: str | None, small: GivenNames) -> None:
    assert _one(text, small, OTHER_GENDER) == expected


def test_what_is_drawn_hangs_on_the_seed_and_the_name_alone() -> None:
    names = _loaded()
    (alone,) = exchange_names(["Susan"], derived_random(7, "012-seed"), names) or ("",)
    together = exchange_names(["Karen came", "Susan", "so did Tom"], derived_random(7, "012-seed"), names)
    assert together
    assert together[1] == alone
    assert {exchange_names(["Susan"], derived_random(7, item), names) for item in range(10)} != {(alone,)}


def test_a_name_is_of_another_group_and_of_the_same_gender_or_of_the_same_group_and_the_other() -> None:
    names = _loaded()
    for name in (one for one in names.known.values() if not one.is_word and one.gender != EITHER):
        for version in VERSIONS:
            made = _one(name.text, names, version)
            assert made is not None
            new = names.known[made.casefold()]
            assert (new.gender == name.gender) == (version == OTHER_GROUP)
            if name.group:
                assert (new.group == name.group) == (version == OTHER_GENDER)


def test_the_packaged_names_can_all_be_drawn_or_are_said_not_to_be() -> None:
    names = _loaded()
    listed = [text for one in [*names.content["groups"], names.content["known"]] for gender in GENDERS for text in one[gender]]
    assert len(listed) == len({text.casefold() for text in listed})
    assert {*names.content["words"]} <= {*listed}
    assert all(len(names.drawn(one["name"], gender, 0)) >= 30 for one in names.content["groups"] for gender in (WOMEN, MEN))


WORDS = st.sampled_from(
    ["Susan", "susan's", "Will", "Hope", "I", "will", "saw", "a", "garden.", "Tariq,", "\n", "Mrs", "ﷺ", "e\u0301", "<b>"]
)


@given(st.lists(WORDS, max_size=12).map(" ".join), st.sampled_from(VERSIONS), st.integers(0, 50))
def test_all_other_words_stay_in_their_places(text: str, version: str, seed: int) -> None:
    names = _loaded()
    made = exchange_names([text], Random(seed), names, version)
    if made is not None:
        assert made[0] != text
        assert _without(made[0], names) == _without(text, names)
        assert made == exchange_names([text], Random(seed), names, version)


@given(st.text())
def test_a_text_without_names_is_left_alone(text: str) -> None:
    names = _loaded()
    if _without(text, names) == text:
        assert exchange_names([text], Random(0), names) is None


def test_a_language_without_names_has_none_and_a_wrong_file_is_reported_whole(tmp_path: Path) -> None:
    assert load_names("de") is None
    assert load_names(folder=tmp_path) is None
    (tmp_path / "names.yaml").write_text("groups: [{name: A, told: x, women: [a b], men: [], either: []}]\n", encoding="utf-8")
    with pytest.raises(InputError) as told:
        load_names(folder=tmp_path)
    assert "names.yaml" in str(told.value)
    assert len(told.value.problems) > 1
