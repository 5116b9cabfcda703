"""Fetching through the real client from a stand-in of the Hub, and releases as ``datasets`` has them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import outside_links
from empathy_eval.design.dataset import COLUMNS, SPLITS
from empathy_eval.releases.hub.fetch import load, release_folder
from empathy_eval.releases.verify.verify import verify

from tests.doubles.hub import READER, REPO, Blob, Client, Hub

VERSION = f"{REPO}@v0.1.0"


@pytest.fixture
def published(hub: Hub, client: Client, folder: Path) -> Hub:
    """The stand-in with a release, its requests counted anew."""
    client.publish(folder)
    hub.told(None)
    return hub


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def kept(cache: Path) -> list[str]:
    """What lies in the cache where versions of the repository do, hidden things too."""
    return sorted(path.name for path in (cache / "empathy-eval" / "releases" / "my-lab--empathy-eval").glob("*"))


def test_a_version_becomes_a_folder_with_the_very_files_that_were_published(
    published: Hub, client: Client, folder: Path, tmp_path: Path
) -> None:
    fetched = Path(client.fetch(VERSION, tmp_path, READER)["folder"])
    assert fetched == tmp_path / "empathy-eval" / "releases" / "my-lab--empathy-eval" / "v0.1.0"
    assert content(fetched) == content(folder)
    assert outside_links(fetched) == [] and not [path for path in fetched.rglob("*") if path.is_symlink()]
    assert verify(fetched) == []
    assert published.sent() == []
    assert kept(tmp_path) == ["v0.1.0"]


def test_a_version_is_fetched_once_and_then_needs_no_network(
    published: Hub, client: Client, new_client: Callable[..., Client], tmp_path: Path
) -> None:
    first = client.fetch(VERSION, tmp_path)
    published.told(None)
    assert client.fetch(VERSION, tmp_path) == first
    offline = new_client(HF_HUB_OFFLINE="1")
    assert offline.fetch(VERSION, tmp_path) == first
    assert published.requests == []
    missing = offline.fetch(f"{REPO}@v9.9.9", tmp_path)
    assert missing["error"] == "JobError" and "HF_HUB_OFFLINE" in missing["text"]


def test_a_commit_is_as_good_as_a_tag(published: Hub, client: Client, folder: Path, tmp_path: Path) -> None:
    commit = published.repositories[REPO].head
    published.repositories[REPO].add({"manifest.json": Blob(b"a later one", False)})
    assert content(Path(client.fetch(f"{REPO}@{commit}", tmp_path)["folder"])) == content(folder)


def test_an_existing_folder_is_what_is_named_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(VERSION).mkdir(parents=True)
    assert release_folder(VERSION) == release_folder(Path(VERSION)) == Path(VERSION)
    assert release_folder(".") == Path()


@pytest.mark.parametrize("name", [REPO, "build/demo/release", "release", "a/b/c@v1.0.0", "/tmp/none@v1.0.0", "a--b/c@v1.0.0", "@v1.0.0"])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_name_of_no_folder_and_no_version_is_told_how_to_name_one(
    name: str, kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"is neither a folder nor a version of a release on the Hub\n.*my-lab/empathy-eval@v1\.0\.0"):
        release_folder(kind(name))


@pytest.mark.parametrize("revision", ["main", "v1.0", "abc123", "refs/pr/1", "../../v1.0.0", "v1.0.0/..", "", "V1.0.0"])
def test_what_may_name_another_release_tomorrow_is_refused(revision: str) -> None:
    with pytest.raises(InputError, match="is not a version, and what it names may change"):
        release_folder(f"{REPO}@{revision}")


def test_a_version_that_is_not_there_is_told_those_that_are(published: Hub, client: Client, tmp_path: Path) -> None:
    for revision in ("v0.2.0", "0.1.0"):
        missing = client.fetch(f"{REPO}@{revision}", tmp_path)
        assert missing["error"] == "InputError"
        assert f'there is no version "{revision}"' in missing["text"] and "name one of these: v0.1.0" in missing["text"]
    missing = client.fetch(f"{REPO}@{'0' * 40}", tmp_path)
    assert missing["error"] == "InputError" and "the Hub answered 404: it does not exist" in missing["text"]
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (None, "a token is missing"),
        (READER, "may not read it"),
        ("hf_a_wrong_token", "is not valid"),
        ("hf_\u200bwrong", "no token contains"),
    ],
)
def test_a_repository_that_is_not_shown_is_an_error_without_the_token(
    token: str | None, said: str, hub: Hub, client: Client, tmp_path: Path
) -> None:
    outcome = client.fetch(VERSION, tmp_path, token)
    assert outcome["error"] == "InputError" and said in outcome["text"]
    assert (token or "hf_") not in outcome["text"] + client.log.read_text()
    assert kept(tmp_path) == []


def test_a_repository_of_something_else_is_refused_before_anything_of_it_is_fetched(published: Hub, client: Client, tmp_path: Path) -> None:
    repository = published.repositories[REPO]
    repository.tags["v2.0.0"] = repository.add({"recordings.parquet": Blob(b"PAR1", True), "data/manifest.json": Blob(b"{}", False)})
    outcome = client.fetch(f"{REPO}@v2.0.0", tmp_path)
    assert outcome["error"] == "InputError" and "is not a release (no manifest.json in it)" in outcome["text"]
    assert not [path for _, path in published.requests if "/resolve/" in path]


@pytest.mark.parametrize("stage", ["/refs", "/tree/", "/resolve/", "/resolve/0123456789/report/tables.json"])
@pytest.mark.parametrize("failure", ["503", "403", "reset", "lost"])
def test_an_outage_keeps_nothing_and_the_next_run_fetches_it_whole(
    published: Hub, client: Client, folder: Path, tmp_path: Path, stage: str, failure: str
) -> None:
    stage = stage.replace("0123456789", published.repositories[REPO].head)
    published.told(failure, stage=stage)
    outcome = client.fetch(VERSION, tmp_path)
    assert published.failing()
    assert outcome["error"] == ("InputError" if failure == "403" else "JobError"), outcome
    assert ("the Hub answered" if failure in ("503", "403") else "the Hub could not be reached") in outcome["text"]
    assert kept(tmp_path) == []
    published.told(None)
    assert content(Path(client.fetch(VERSION, tmp_path)["folder"])) == content(folder)


def test_a_process_that_is_killed_leaves_no_half_release(
    published: Hub, client: Client, new_client: Callable[..., Client], folder: Path, tmp_path: Path
) -> None:
    published.told("silence", stage="/resolve/")
    killed = new_client()
    killed.start("fetch", release=VERSION, cache=str(tmp_path), token=None)
    deadline = time.monotonic() + 20
    while not published.failing():
        assert time.monotonic() < deadline, killed.log.read_text()
        time.sleep(0.02)
    killed.process.kill()
    assert "v0.1.0" not in kept(tmp_path)
    published.told(None)
    assert content(Path(client.fetch(VERSION, tmp_path)["folder"])) == content(folder)


def test_two_processes_may_fetch_the_same_version_at_once(
    published: Hub, client: Client, new_client: Callable[..., Client], folder: Path, tmp_path: Path
) -> None:
    both = client, new_client()
    for one in both:
        one.fetch("so that all is imported", tmp_path)
    for number in range(3):
        cache = tmp_path / f"{number}"
        for one in both:
            one.start("fetch", release=VERSION, cache=str(cache), token=None)
        answers = [json.loads(one.process.stdout.readline()) for one in both if one.process.stdout]
        assert answers[0] == answers[1]
        assert content(Path(answers[0]["folder"])) == content(folder)
        assert kept(cache) == ["v0.1.0"]


@pytest.mark.parametrize("name", ["../escaped", "data/../../escaped", ".hidden", "data/.hidden"])
def test_a_path_that_leads_out_and_a_hidden_one_are_not_fetched(name: str, published: Hub, client: Client, tmp_path: Path) -> None:
    repository = published.repositories[REPO]
    repository.tags["v0.3.0"] = repository.add({**repository.commits[repository.head], name: Blob(b"here", False)})
    fetched = client.fetch(f"{REPO}@v0.3.0", tmp_path)
    assert "v0.3.0" in fetched["folder"]
    assert not [path for path in tmp_path.rglob("*") if path.name in ("escaped", ".hidden")]


def test_a_cache_that_cannot_be_written_is_named(published: Hub, client: Client, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = client.fetch(VERSION, tmp_path / "file")
    assert outcome["error"] == "JobError" and f"{tmp_path / 'file'}" in outcome["text"] and "cannot be written" in outcome["text"]


def rows(folder: Path, config: str, split: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = pq.read_table(folder / "data" / config / f"{split}.parquet").to_pylist()
    return found


@pytest.mark.parametrize("config", COLUMNS)
def test_the_rows_and_features_are_those_that_the_library_would_load(config: str, folder: Path, tmp_path: Path) -> None:
    loaded = load(folder, config)
    assert isinstance(loaded, datasets.DatasetDict) and tuple(loaded) == SPLITS
    theirs = datasets.load_dataset(str(folder), config, cache_dir=str(tmp_path))
    for split in SPLITS:
        one = load(folder, config, split)
        assert isinstance(one, datasets.Dataset)
        assert one.to_list() == loaded[split].to_list() == rows(folder, config, split)
        assert one.split == split and one.column_names == COLUMNS[config].names
        # The library does not load a split without rows.
        assert one.num_rows == 0 or (one.features, one.to_list()) == (theirs[split].features, theirs[split].to_list())


def test_pairs_are_what_is_loaded_when_no_config_is_named(folder: Path) -> None:
    assert load(str(folder), split="train").to_list() == rows(folder, "pairs", "train") != []


def test_rows_loaded_can_be_mapped_and_filtered(folder: Path) -> None:
    train = load(folder, "pairs", "train")
    assert train.map(lambda row: {"length": len(row["reference"])})["length"][0] == len(train[0]["reference"])
    assert train.filter(lambda row: row["turn"] == train[0]["turn"]).num_rows > 0


def test_a_folder_made_anew_gives_the_rows_of_the_new_release(folder: Path, tmp_path: Path) -> None:
    here = shutil.copytree(folder, tmp_path / "release")
    path = here / "data" / "pairs" / "train.parquet"
    before, times = load(here, "pairs", "train").to_list(), path.stat()
    assert len(before) > 1
    pq.write_table(pq.read_table(path).slice(1), path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert load(here, "pairs", "train").to_list() == before[1:]


def test_a_config_and_a_split_that_are_none_are_named_with_those_that_are(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(folder, "pair", "tests")
    text = str(caught.value)
    assert 'config: there is no "pair"\n  Fix: name one of these: pairs, dialogues, preferences, controls' in text
    assert 'split: there is no "tests"\n  Fix: name one of these: train, validation, test; did you mean "test"?' in text


def test_no_code_beside_a_release_is_run_and_no_file_that_its_card_names_is_read(folder: Path, tmp_path: Path) -> None:
    here = shutil.copytree(folder, tmp_path / "release")
    (here / "release.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (here / "README.md").write_text("---\nconfigs:\n- config_name: pairs\n  data_files: /etc/hostname\n---\n")
    assert load(here, "pairs", "train").to_list() == rows(folder, "pairs", "train")
    assert not (tmp_path / "ran").exists()


def test_a_folder_of_something_else_and_a_damaged_file_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a release \(no manifest.json in it\)"):
        load(tmp_path)
    here = shutil.copytree(folder, tmp_path / "release")
    (here / "data" / "pairs" / "test.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"test\.parquet"):
        load(here, "pairs", "test")
