"""Names of files: a release has those that its facts ask for, under plain names, and nothing beside them."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import Finding, InputError
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.invisible import invisible_characters
from empathy_eval.cli import main
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest, software_versions
from empathy_eval.releases.hub.publish import publish
from empathy_eval.releases.inspect.serving import _file
from empathy_eval.releases.verify.verify import verify

HUB_NOTE = ".cache/huggingface/download/other.metadata"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def copy(light: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(light, tmp_path / "release"))


def faults(folder: Path) -> list[Finding]:
    return verify(folder, fast=True)


def said(folder: Path) -> str:
    return "\n".join(map(str, faults(folder)))


def forge(folder: Path, **changes: Any) -> None:
    """Renews what a forger would: the hash of every file that is named or there, and the seal."""
    path = folder / "manifest.json"
    value = json.loads(path.read_text()) | changes
    names = {one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file()} - {"manifest.json"}
    value["files"] = {name: digest_file(folder / name) for name in sorted(names)}
    path.write_text(manifest_text(seal_manifest(value)))


def test_what_a_release_and_its_repository_have_is_no_fault(copy: Path) -> None:
    (copy / ".gitattributes").write_text("*.parquet filter=lfs\n")
    (copy / ".git" / "empty").mkdir(parents=True)
    (copy / "manifest.json.minisig").write_text("a signature\n")
    notes = copy / ".cache" / "huggingface"
    for name in (".gitignore", "CACHEDIR.TAG", "download/README.md.metadata", "download/data/pairs/test.parquet.lock"):
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).touch()
    assert [one for one in faults(copy) if "minisig" not in str(one)] == []


@pytest.mark.parametrize("name", [".hidden", "data/.extra", ".secret/notes.txt", "data/.gitattributes", ".cache/x", HUB_NOTE, "extra.txt"])
def test_a_file_too_many_is_told_hidden_or_not(name: str, copy: Path) -> None:
    (copy / name).parent.mkdir(parents=True, exist_ok=True)
    (copy / name).touch()
    assert f"{copy / name}: is not in the manifest" in said(copy)


@pytest.mark.parametrize(
    "name", ["notes.txt", "data/pairs/more.parquet", "data/secret/test.parquet", "report/figures/other.png", "report/page.html",
             "word_list.json", "design/rules/other.yaml", "design/notes.md", "design/scenarios/099-own.yaml",
             "design/templates/crossed.md.j2"]
)  # fmt: skip
def test_an_extra_file_is_found_though_the_manifest_names_it(name: str, copy: Path) -> None:
    (copy / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(copy / "data" / "pairs" / "test.parquet", copy / name)
    forge(copy)
    assert f"{copy / name}: is named by the manifest, but no release has such a file" in said(copy)


@pytest.mark.parametrize(
    "name", ["README.md", "data/pairs/test.parquet", "candidates.parquet", "explore/index.html", "design/taxonomy.yaml"]
)
def test_a_file_that_is_neither_there_nor_named_is_missed(name: str, copy: Path) -> None:
    (copy / name).unlink()
    forge(copy)
    assert f"{copy / name}: is not named by the manifest" in said(copy)


@pytest.mark.parametrize(
    "name",
    ["READМE.md", "read\u200bme.md", "re\u0301sume.md", "data/pairs/test.parquet\u00a0", "data/../notes.txt", "/etc/hostname",
     "data\\notes", ".notes", "data//x", "x\x1b[2J", "a" * 300],
)  # fmt: skip
def test_a_name_that_only_looks_right_is_told(name: str, copy: Path) -> None:
    path = copy / "manifest.json"
    value = json.loads(path.read_text())
    value["files"][name] = "0" * 64
    path.write_text(manifest_text(seal_manifest(value)))
    found = [str(one) for one in faults(copy)]
    if list(invisible_characters(name)):  # the manifest itself is refused
        assert len(found) == 1 and "which nobody sees" in found[0] and not list(invisible_characters(found[0]))
        return
    assert any("not a valid file name of a release" in one for one in found) and len(found) == 2
    assert all("\x1b" not in one and "\u200b" not in one.split("is missing")[-1] for one in found if "no name" in one)


def test_what_is_no_file_is_told_and_not_opened(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(copy / "data" / "pipe")
    (copy / "LICENSE").unlink()
    os.mkfifo(copy / "LICENSE")
    monkeypatch.chdir(copy)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
        (copy / "empty" / "inside").mkdir(parents=True)
        found = said(copy)
    for name in ("data/pipe", "LICENSE", "socket"):
        assert f"{copy / name}: is neither a file nor a folder" in found
    assert f"{copy / 'empty' / 'inside'}: is an empty folder" in found and f"{copy / 'empty'}: is" not in found


def test_a_huge_file_is_not_read(copy: Path) -> None:
    os.truncate(copy / "README.md", 2**40)
    os.truncate(copy / "candidates.parquet", 2**42)
    assert said(copy).count("is larger than") == 2


def snapshot(release: Path, cache: Path) -> Path:
    """A release as the Hub's library lays it out in its cache."""
    repository = cache / "datasets--my-lab--empathy-eval"
    (repository / "blobs").mkdir(parents=True)
    for path in release.rglob("*"):
        if path.is_file():
            blob = repository / "blobs" / digest_file(path)
            shutil.copyfile(path, blob)
            link = repository / "snapshots" / COMMIT / path.relative_to(release)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(blob, link.parent))
    return repository / "snapshots" / COMMIT


def test_a_snapshot_of_the_hubs_cache_is_verified_as_it_lies(light: Path, tmp_path: Path) -> None:
    folder = snapshot(light, tmp_path)
    assert faults(folder) == [] == faults(Path(os.path.relpath(folder)))
    assert _file(folder.resolve(), "data/pairs/test.parquet") is not None


@pytest.mark.parametrize("to", ["../../secret", "../../../secret", "../../blobs/secret", "../../refs/main", "/etc/hostname", "../../blobs"])
def test_a_snapshot_leads_to_no_other_file(to: str, light: Path, tmp_path: Path) -> None:
    folder = snapshot(light, tmp_path)
    for name in ("secret", "blobs/secret", "refs/main", "../secret"):
        path = folder.parent.parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("secret")
    (folder / "LICENSE").unlink()
    (folder / "LICENSE").symlink_to(to)
    assert f"{folder / 'LICENSE'}: is a link that leads out of the release" in said(folder)
    assert _file(folder.resolve(), "LICENSE") is None
    with pytest.raises(InputError, match="leads out of the release"):
        publish(folder, "my-lab/x", dry_run=True, faults=lambda _: [])


@pytest.mark.e2e
def test_other_software_is_told_and_no_fault(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forge(copy, software=software_versions() | {"numpy": "1.0.0"})
    (found,) = faults(copy)
    assert found.severity == "note" and f"made with numpy 1.0.0, here {software_versions()['numpy']}" in found.what
    assert main(["verify", "--fast", "--strict", str(copy)]) == 0
    assert capsys.readouterr().out.endswith("is what it claims\n")
    assert main(["verify", "--fast", "--json", str(copy)]) == 0
    assert [one["severity"] for one in json.loads(capsys.readouterr().out)] == ["note"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"pyarrow": "1.2.3"}, "the manifest says pyarrow 1.2.3"),
        ({"notepad": "1.0"}, '"notepad" is not software that a manifest names'),
        ({"numpy": None}, 'does not name "numpy"'),
    ],
)
def test_software_that_the_files_do_not_come_of_is_a_fault(change: dict[str, str | None], told: str, copy: Path) -> None:
    forge(copy, software={name: one for name, one in {**software_versions(), **change}.items() if one})
    assert told in said(copy) and not all(one.severity != "fault" for one in faults(copy))
    assert pq.read_metadata(copy / "candidates.parquet").created_by
