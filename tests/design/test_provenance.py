"""What results say that they are of."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from empathy_eval.base.version import __version__
from empathy_eval.design.dataset import SPLITS, read_manifest
from empathy_eval.design.provenance import KEYS, File, Provenance, Result, file_of


def test_a_release_goes_by_its_manifest_and_not_by_its_folder(light: Path, tmp_path: Path) -> None:
    manifest = read_manifest(light)
    moved = tmp_path / "moved"
    moved.symlink_to(light)
    one, other = (Provenance.of(folder, seed=1) for folder in (light, moved))
    assert one == other and str(light) not in json.dumps(one.to_json())
    assert (one.release, one.version, one.seal) == (manifest["name"], manifest["version"], manifest["seal"])
    assert one.split == "train+validation+test" and one.software == f"empathy-eval {__version__}"
    assert one.pairs == sum(manifest["counts"]["pairs"].values()) and one.controls == sum(manifest["counts"]["controls"].values())
    assert Provenance.of(light, ("test",)).pairs == manifest["counts"]["pairs"].get("test", 0)


def test_files_go_by_name_and_hash_and_a_folder_by_the_file_that_holds_the_hashes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    (tmp_path / "judged").mkdir()
    (tmp_path / "judged" / "build.json").write_text("{}")
    sha = {text: hashlib.sha256(text.encode()).hexdigest() for text in ("x", "{}")}
    assert file_of(tmp_path / "a.csv") == File("a.csv", sha["x"])
    assert file_of(tmp_path / "judged", "build.json") == File("judged", sha["{}"])
    assert file_of(tmp_path / "none.csv") == File("none.csv", None)
    made = Provenance.of(files=[file_of(tmp_path / "a.csv")], metrics=["length"], strict=False)
    assert (made.release, made.pairs, made.split) == (None, None, None)
    assert made.record()["files"] == f"a.csv sha256:{sha['x']}" and json.loads(made.record()["settings"])["metrics"] == ["length"]
    assert str(made) == f"a.csv, sha256 {sha['x'][:12]}; empathy-eval {__version__}" and made.settings_line == "metrics length"


@dataclass(frozen=True, repr=False)
class Numbers(Result):
    """A result of a test."""

    one: int


def test_a_result_says_what_it_is_of_in_json_and_on_every_row_and_nothing_where_that_is_not_known() -> None:
    plain = Numbers(1)
    assert plain._with_provenance({"one": 1}) == {"one": 1} and plain.head() == ()
    assert list(plain._stamped([{"one": 1}])) == [dict.fromkeys(KEYS, "") | {"one": 1}]
    made = plain.of(Provenance.of(files=[File("a", None)], seed=3)).beside([File("b", "ff")])
    assert list(made._with_provenance({"one": 1})) == ["provenance", "one"]
    (row,) = made._stamped([{"one": 1}])
    assert row["files"] == "a sha256:unknown; b sha256:ff" and row["settings"] == '{"seed":3}'
    assert made.head()[1] == "settings: seed 3" and len(repr(made)) < 200


@pytest.mark.parametrize("split", SPLITS)
def test_the_name_of_splits_is_what_datasets_takes(split: str, light: Path) -> None:
    assert Provenance.of(light, (split,)).split == split
