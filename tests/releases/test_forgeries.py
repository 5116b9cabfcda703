"""Consistent forgeries: ``verify`` finds each by itself, or it is of a kind that only a signature finds; with a signature it finds all."""

from __future__ import annotations

import os
import random
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.design.dataset import SIGNATURE, read_manifest
from empathy_eval.design.prompts import Prompts
from empathy_eval.releases.assemble.signing import read_public_key, read_secret_key, sign
from empathy_eval.releases.verify.verify import verify

from tests.doubles import made_once
from tests.doubles.forger import Forger, honest
from tests.doubles.forgeries import Forgery, every
from tests.releases.test_signing import PUBLIC, key_file

LONG = "LONG" in os.environ
FORGERIES = every()
pytestmark = pytest.mark.e2e
SAMPLE = random.Random(24).sample(FORGERIES, 8)


@dataclass(frozen=True)
class Original:
    """An honest release, signed, and what is told of it."""

    folder: Path
    told: frozenset[str]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Original:
    folder, _ = made_once.copied(tmp_path_factory, "forged", lambda folder: honest(folder, prompts))
    release = folder / "release"
    sign(release, read_manifest(release), read_secret_key(key_file(folder / "secret")))
    return Original(release, frozenset(told(release)))


def told(folder: Path, **how: Any) -> list[str]:
    """What verify says, whatever the folder is called."""
    return [f"{one.severity}: {one}".replace(str(folder), "") for one in verify(folder, **how)]


def faults(said: Collection[str]) -> list[str]:
    return [one for one in said if one.startswith("fault: ")]


def forged(original: Original, folder: Path, forgery: Forgery) -> Path:
    forger = Forger(original.folder, folder)
    signature = (forger.folder / SIGNATURE).read_bytes()
    (forger.folder / SIGNATURE).unlink()
    forgery.change(forger)
    if forgery.anew:
        forger.reported()
    forger.seal()
    (forger.folder / SIGNATURE).write_bytes(signature)
    return forger.folder


def test_the_original_and_what_is_made_anew_without_a_change_are_what_they_claim(original: Original, tmp_path: Path) -> None:
    anew = forged(original, tmp_path / "anew", Forgery("nothing", Forger.derive, anew=True))
    # Texts are checked under scenarios that the release carries, and nobody asked for the signature: both are told.
    assert faults(original.told) == faults(told(anew)) == []
    assert faults(told(original.folder, fast=True, signer=read_public_key(PUBLIC))) == []


def test_there_are_enough_forgeries_of_few_kinds_that_only_a_signature_finds() -> None:
    assert len(FORGERIES) >= 80
    assert len({one.kind for one in FORGERIES if one.kind}) <= 5


@pytest.mark.sampled
@pytest.mark.parametrize("forgery", FORGERIES if LONG else SAMPLE, ids=lambda one: one.name)
def test_a_forgery_is_found_or_only_a_signature_finds_it(original: Original, tmp_path: Path, forgery: Forgery) -> None:
    folder = forged(original, tmp_path / "forged", forgery)
    new = [one for one in told(folder) if one not in original.told]
    if forgery.kind:
        assert faults(new) == [], "it is found: no signature is needed for this kind"
    else:
        assert new
    assert faults(told(folder, fast=True, signer=read_public_key(PUBLIC)))
