"""Consistent forgeries: ``verify`` finds each by itself, or it is of a kind that only a signature finds; with a signature it finds all."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from empathy_eval.design.prompts import Prompts
from empathy_eval.metrics.trust import NotRecomputed
from empathy_eval.releases.verify import verify

from tests.doubles import made_once
from tests.doubles.forger import Forger, honest
from tests.doubles.forgeries import Forgery, every

LONG = "LONG" in os.environ
FORGERIES = every()
SAMPLE = random.Random(24).sample(FORGERIES, 14)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Path:
    return made_once.copied(tmp_path_factory, "forged", lambda folder: honest(folder, prompts))[0] / "release"


def forged(original: Path, folder: Path, forgery: Forgery) -> Path:
    forger = Forger(original, folder)
    forgery.change(forger)
    if forgery.anew:
        forger.reported()
    forger.seal()
    return forger.folder


def test_the_original_and_what_is_made_anew_without_a_change_are_what_they_claim(original: Path, tmp_path: Path) -> None:
    anew = forged(original, tmp_path / "anew", Forgery("nothing", Forger.derive, anew=True))
    # That judge is asked about here by no ledger, and texts are checked under the scenarios that the release carries: both are told.
    for folder in (original, anew):
        assert [one for one in verify(folder) if not isinstance(one, NotRecomputed)] == []


def test_there_are_enough_forgeries_of_few_kinds_that_only_a_signature_finds() -> None:
    assert len(FORGERIES) >= 80
    assert len({one.kind for one in FORGERIES if one.kind}) <= 5


@pytest.mark.parametrize("forgery", FORGERIES if LONG else SAMPLE, ids=lambda one: one.name)
def test_a_forgery_is_found_or_only_a_signature_finds_it(original: Path, tmp_path: Path, forgery: Forgery) -> None:
    before = {str(one) for one in verify(original)}
    found = [one for one in verify(forged(original, tmp_path / "forged", forgery)) if str(one).replace("forged", "") not in before]
    if forgery.kind:
        assert [one for one in found if not isinstance(one, NotRecomputed)] == [], "it is found: no signature is needed for this kind"
    else:
        assert found
