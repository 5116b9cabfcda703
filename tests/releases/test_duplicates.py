"""Near-duplicates: who is found, who stays, and that nothing but the dialogues themselves decides it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, permutations

import numpy as np
import pytest
from empathy_eval.base.text import shingles
from empathy_eval.design.dataset import SPLITS, split_of
from empathy_eval.releases.assemble.selection import (
    BANDS,
    PREFERENCE,
    ROWS,
    DuplicateGroups,
    Hashes,
    band_keys,
    find_near_duplicates,
    hash_dialogues,
    shingle_hashes,
    similarity,
)
from hypothesis import given
from hypothesis import strategies as st

# Three unrelated texts of 40 words, none of which repeats a shingle.
BASES = tuple(tuple(f"{letter}{number}" for number in range(40)) for letter in "abc")
IDS = st.integers(0, 60).map(lambda number: f"{number % 3 + 1:03d}-{number:05d}")


def jaccard(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    return len(a & b) / len(a | b)


def turns(tokens: Sequence[str]) -> list[str]:
    """The texts of turns of seven words."""
    return [" ".join(tokens[place : place + 7]) for place in range(0, len(tokens), 7)]


def found(texts: dict[str, tuple[str, ...]]) -> dict[str, str]:
    return find_near_duplicates(hash_dialogues((one, turns(tokens)) for one, tokens in texts.items()))


def test_hashes_of_many_dialogues_are_those_of_each() -> None:
    texts = {"001-00001": ["too short"], "001-00002": [], "001-00003": turns(BASES[0]), "001-00004": turns(BASES[1])}
    made = hash_dialogues(texts.items())
    assert {one: hashes.tolist() for one, hashes in made.items()} == {one: shingle_hashes(said).tolist() for one, said in texts.items()}
    assert made["001-00003"].base is made["001-00004"].base and not hash_dialogues([])


def better(one: str) -> tuple[int, str]:
    return ("test", "validation", "train").index(split_of(one)), one


def brute_force(texts: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """All pairs, by the definition."""
    sets = {one: shingles(" ".join(tokens)) for one, tokens in texts.items()}
    groups = {one: {one} for one in texts}
    for a, b in combinations(texts, 2):
        if jaccard(sets[a], sets[b]) >= 0.8:
            joined = groups[a] | groups[b]
            groups |= dict.fromkeys(joined, joined)
    stays = {one: min(group, key=better) for one, group in groups.items()}
    return {one: stays[one] for one in texts if stays[one] != one}


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, ...]:
    """A base with up to six words at its two ends exchanged: similarities lie on both sides of the limit."""
    tokens = list(draw(st.sampled_from(BASES)))
    for place in range(draw(st.integers(0, 3))):
        tokens[place] = draw(st.sampled_from("xy"))
    for place in range(draw(st.integers(0, 3))):
        tokens[-1 - place] = draw(st.sampled_from("xy"))
    return tuple(tokens)


CORPORA = st.dictionaries(IDS, edited(), max_size=14)


@pytest.mark.e2e
@given(CORPORA)
def test_small_sets_agree_with_brute_force(texts: dict[str, tuple[str, ...]]) -> None:
    assert found(texts) == brute_force(texts)


@given(st.dictionaries(IDS, st.lists(st.sampled_from("ab"), max_size=7).map(tuple), max_size=10))
def test_texts_of_hardly_a_shingle_agree_with_brute_force(texts: dict[str, tuple[str, ...]]) -> None:
    assert found(texts) == brute_force(texts)


@pytest.mark.e2e
@given(CORPORA, st.randoms(use_true_random=False))
def test_the_order_of_dialogues_changes_nothing(texts: dict[str, tuple[str, ...]], rng: random.Random) -> None:
    shuffled = rng.sample(sorted(texts.items()), len(texts))
    assert list(found(dict(shuffled)).items()) == list(found(texts).items())


@pytest.mark.e2e
@given(CORPORA, CORPORA)
def test_adding_and_removing_dialogues_moves_none_to_another_split(
    texts: dict[str, tuple[str, ...]], added: dict[str, tuple[str, ...]]
) -> None:
    """A dialogue that is released before and after is in the same split: others decide only whether it stays."""

    def splits(corpus: dict[str, tuple[str, ...]]) -> dict[str, str]:
        gone = found(corpus)
        return {one: split_of(one) for one in corpus if one not in gone}

    before, after = splits(texts), splits(added | texts)
    assert all(after[one] == split for one, split in before.items() if one in after)


@given(st.sets(IDS, min_size=2, max_size=8), st.data())
def test_unrelated_dialogues_change_nothing_about_the_others(ids: set[str], data: st.DataObject) -> None:
    texts = {one: (*BASES[0][:-1], data.draw(st.sampled_from("xyz"))) for one in sorted(ids)}
    others = {f"004-{number:05d}": tuple(f"o{number}-{place}" for place in range(40)) for number in range(data.draw(st.integers(0, 5)))}
    assert found(others | texts) == found(texts)


@pytest.mark.e2e
@given(CORPORA)
def test_no_two_near_duplicates_stay_so_none_straddles_two_splits(texts: dict[str, tuple[str, ...]]) -> None:
    gone = found(texts)
    left = {one: shingles(" ".join(tokens)) for one, tokens in texts.items() if one not in gone}
    assert not [(a, b) for a, b in combinations(left, 2) if jaccard(left[a], left[b]) >= 0.8]
    assert not set(gone) & set(gone.values())


@given(st.sets(IDS, min_size=2, max_size=10), st.randoms(use_true_random=False))
def test_of_planted_copies_the_one_in_test_stays_then_validation_then_the_smaller_id(ids: set[str], rng: random.Random) -> None:
    order = rng.sample(sorted(ids), len(ids))
    stays = min(ids, key=better)
    assert found({one: (*BASES[0], f"own-{one}") for one in order}) == dict.fromkeys(sorted(ids - {stays}), stays)


def test_each_split_is_preferred_as_the_spec_says() -> None:
    first = {split: next(one for one in (f"001-{number:05d}" for number in range(100)) if split_of(one) == split) for split in SPLITS}
    assert sorted(PREFERENCE, key=PREFERENCE.__getitem__) == ["test", "validation", "train"]
    assert found(dict.fromkeys((first["train"], first["validation"]), BASES[0])) == {first["train"]: first["validation"]}
    assert found(dict.fromkeys(first.values(), BASES[0])) == {first["train"]: first["test"], first["validation"]: first["test"]}


@pytest.mark.parametrize("changed", range(1, 31))
def test_a_pair_at_the_limit_goes_and_one_just_below_it_stays(changed: int) -> None:
    # With the last m of S shingles exchanged the similarity is (S - m) / (S + m): 0.8 for S = 9 m, less for S = 9 m - 1.
    for count, expected in ((9 * changed, True), (9 * changed - 1, False)):
        text = tuple(f"w{number}" for number in range(count + 4))
        near = (*text[:-changed], *(f"v{number}" for number in range(changed)))
        a, b = (shingle_hashes(turns(one)) for one in (text, near))
        assert similarity(a, b) == jaccard(shingles(" ".join(text)), shingles(" ".join(near)))
        assert (similarity(a, b) >= 0.8) is expected
        assert bool(found({"001-00000": text, "001-00001": near})) is expected


def test_the_same_words_are_duplicates_whatever_their_case_and_turns() -> None:
    said = ["My dog died on Tuesday.", "And the house is quiet?"]
    assert similarity(shingle_hashes(said), shingle_hashes(["my dog died, on tuesday: AND the house is quiet!"])) == 1
    assert similarity(shingle_hashes(said), shingle_hashes(["my cat died, on tuesday: AND the house is quiet!"])) < 0.8


def test_a_chain_is_one_group_though_its_ends_are_unlike() -> None:
    chain = {f"001-{link:05d}": tuple(f"w{number}" for number in range(link * 6, link * 6 + 64)) for link in range(4)}
    ends = [shingles(" ".join(chain[one])) for one in ("001-00000", "001-00003")]
    assert jaccard(*ends) < 0.8
    stays = min(chain, key=better)
    assert found(chain) == {one: stays for one in sorted(chain) if one != stays}


@pytest.mark.parametrize("bucket", list(permutations(range(4))))
def test_one_bucket_joins_a_chain_in_whatever_order_it_lies(bucket: tuple[int, ...]) -> None:
    links = [np.arange(place * 6, place * 6 + 60, dtype=np.uint64) for place in range(4)]
    assert similarity(links[0], links[1]) >= 0.8 > similarity(links[0], links[2])
    groups = DuplicateGroups([links[one] for one in bucket])
    groups.join_similar([0, 1, 2, 3])
    assert [groups.best(one) for one in range(4)] == [0, 0, 0, 0]


def test_a_planted_pair_is_found_among_three_hundred_unrelated() -> None:
    rng = random.Random(7)
    vocabulary = [f"w{number}" for number in range(2000)]
    texts = {f"001-{number:05d}": tuple(rng.choices(vocabulary, k=490)) for number in range(300)}
    original = texts["001-00123"]
    planted = list(original)
    # Ten words apart and 5 shingles each, 50 of 486: a similarity of 436 / 536 = 0.813
    for place in range(10, 460, 45):
        planted[place] = "other"
    texts["002-00000"] = tuple(planted)
    assert 0.8 <= jaccard(shingles(" ".join(original)), shingles(" ".join(planted))) < 0.82
    stays, goes = sorted(("001-00123", "002-00000"), key=better)
    assert found(texts) == {goes: stays}


def test_pairs_share_a_band_as_often_as_the_formula_says() -> None:
    rng = random.Random(11)

    def pair() -> tuple[Hashes, Hashes]:
        both = [rng.getrandbits(64) for _ in range(320)]
        own = [[rng.getrandbits(64) for _ in range(40)] for _ in range(2)]
        first, second = (np.unique(np.array(both + one, dtype=np.uint64)) for one in own)
        return first, second

    pairs = [pair() for _ in range(200)]
    assert {similarity(*one) for one in pairs} == {0.8}
    share = np.mean([band_keys(a) == band_keys(b) for a, b in pairs])
    # 7,000 bands that share a number with the probability 0.8^5 = 0.328: the standard error is 0.006.
    assert abs(float(share) - 0.8**ROWS) < 0.02
    assert (1 - 0.8**ROWS) ** BANDS < 1e-6


def test_hashes_are_the_same_on_every_machine_and_in_every_process() -> None:
    hashes = shingle_hashes(["one two three", "four five six"])
    assert hashes.tolist() == [13406413164135710011, 16668804351399435582]
    assert int(band_keys(hashes)[0]) == 14751253408986944881


def test_no_dialogues_have_no_duplicates() -> None:
    assert found({}) == {}
