"""Publishing through the real client to a stand-in of the Hub: one commit and a tag, whatever goes wrong in between."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.dataset import SPLITS
from empathy_eval.releases.hub.publish import publish

from tests.doubles.hub import READER, REPO, WRITER, Blob, Client, Hub

ATTRIBUTES = ".gitattributes"


@pytest.fixture
def later(folder: Path, tmp_path: Path) -> Path:
    """The same release as version 0.2.0, with one file changed and one gone."""
    copy = tmp_path / "later"
    shutil.copytree(folder, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"version": "0.2.0"}))
    (copy / "CHANGELOG.md").unlink()
    return copy


def local(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def held(hub: Hub, revision: str) -> dict[str, bytes]:
    """The files of a commit or tag but the one that every repository begins with."""
    repository = hub.repositories[REPO]
    files = repository.commits[repository.tags.get(revision, revision)]
    return {path: blob.data for path, blob in files.items() if path != ATTRIBUTES}


def test_a_release_becomes_a_repository_with_one_commit_and_a_tag_on_it(hub: Hub, client: Client, folder: Path) -> None:
    published = client.publish(folder)
    repository = hub.repositories[REPO]
    assert repository.tags == {"v0.1.0": repository.head}
    assert published["commit"] == repository.head
    assert (published["repo"], published["version"], published["sent"]) == (REPO, "0.1.0", True)
    assert len(repository.commits) == 2, "the first is the Hub's own"
    assert held(hub, "v0.1.0") == local(folder)
    assert dict(published["files"]) == {name: len(data) for name, data in local(folder).items()}
    assert len(hub.large) > 5, "parquet goes the way of large files"


def test_datasets_loads_a_published_version(hub: Hub, client: Client, folder: Path) -> None:
    client.publish(folder)
    for config in ("pairs", "dialogues", "preferences", "controls"):
        tables = {split: pq.read_table(folder / "data" / config / f"{split}.parquet") for split in SPLITS}
        # The card does not name a split without rows.
        split, table = next((split, table) for split, table in tables.items() if table.num_rows)
        assert client.ask("load", repo=REPO, config=config, split=split, revision="v0.1.0") == table.to_pylist()


def test_a_version_is_published_only_once(hub: Hub, client: Client, folder: Path, tmp_path: Path) -> None:
    client.publish(folder)
    before = dict(hub.repositories[REPO].commits)
    hub.told(None)
    again = client.publish(folder)
    assert again["error"] == "InputError"
    assert "v0.1.0 is already published, with the same files" in again["text"]
    for name in ("LICENSE", "data/pairs/test.parquet"):
        other = shutil.copytree(folder, tmp_path / name.replace("/", "-"))
        (other / name).write_bytes(bytes(reversed((other / name).read_bytes())))
        assert "v0.1.0 is already published, with other files" in client.publish(other)["text"], "of the same size, too"
    assert hub.sent() == []
    assert hub.repositories[REPO].commits == before


def test_a_next_version_takes_away_what_is_gone_and_leaves_the_tag_of_the_last(hub: Hub, client: Client, folder: Path, later: Path) -> None:
    client.publish(folder)
    hub.told(None)
    client.publish(later)
    assert held(hub, "v0.2.0") == local(later)
    assert held(hub, "v0.1.0") == local(folder)
    assert len(hub.repositories[REPO].commits) == 3
    assert ATTRIBUTES in hub.repositories[REPO].commits[hub.repositories[REPO].head]
    assert not [path for method, path in hub.sent() if method == "PUT"], "no file is uploaded that is there already"


@pytest.mark.parametrize("failure", ["503", "400", "reset", "lost"])
def test_an_outage_at_any_request_leaves_nothing_half_visible_and_the_next_run_ends_the_same(
    hub: Hub, client: Client, folder: Path, later: Path, failure: str
) -> None:
    client.publish(folder)
    (later / "data" / "pairs" / "test.parquet").write_bytes(b"PAR1" + b"other rows" * 100 + b"PAR1")
    first = hub.repositories[REPO]
    commits, tags, large = dict(first.commits), dict(first.tags), dict(hub.large)
    whole = local(later)
    at, outcome = 0, {"error": "JobError", "text": ""}
    while "error" in outcome:
        first.commits, first.tags = dict(commits), dict(tags)
        hub.large.clear()
        hub.large.update(large)
        hub.told(failure, at)
        outcome = client.publish(later)
        assert outcome.get("error", "JobError") == "JobError", outcome
        assert held(hub, first.head) in (local(folder), whole)
        assert first.tags.get("v0.2.0", first.head) == first.head
        tagged = "v0.2.0" in first.tags
        hub.told(None)
        again = client.publish(later)
        assert ("the same files" in again["text"]) if tagged else again["sent"]
        assert held(hub, "v0.2.0") == whole
        assert list(first.commits)[:-1] == list(commits), "one commit, however often it was tried"
        at += 1
    assert at > 8


def test_an_outage_while_the_repository_is_made_is_made_good_by_the_next_run(hub: Hub, client: Client, folder: Path) -> None:
    for failure in ("reset", "lost"):
        for at in range(4):
            hub.repositories.clear()
            hub.told(failure, at)
            assert client.publish(folder)["error"] == "JobError"
            hub.told(None)
            assert client.publish(folder)["sent"]
            assert held(hub, "v0.1.0") == local(folder)
            assert len(hub.repositories[REPO].commits) == 2


@pytest.mark.parametrize("stage", ["/storage/", "/commit/", "/tag/"])
def test_a_process_that_is_killed_leaves_nothing_half_visible(
    hub: Hub, client: Client, new_client: Callable[..., Client], folder: Path, stage: str
) -> None:
    hub.told("silence", stage=stage)
    killed = new_client()
    killed.start("publish", folder=str(folder), repo=REPO, token=WRITER)
    deadline = time.monotonic() + 20
    while not hub.failing():
        assert time.monotonic() < deadline, killed.log.read_text()
        time.sleep(0.02)
    killed.process.kill()
    repository = hub.repositories[REPO]
    assert repository.tags == {}
    assert held(hub, repository.head) == ({} if stage != "/tag/" else local(folder))
    hub.told(None)
    assert client.publish(folder)["sent"]
    assert held(hub, "v0.1.0") == local(folder)
    assert len(repository.commits) == 2


@pytest.mark.parametrize("token", ["hf_a_wrong_token", READER, None])
def test_a_token_that_may_not_write_is_a_clear_error_that_does_not_show_it(
    hub: Hub, client: Client, folder: Path, token: str | None
) -> None:
    outcome = client.publish(folder, token=token)
    assert outcome["error"] == "InputError"
    assert ("is missing" if token is None else "is not valid or may not write there") in outcome["text"]
    assert "hf auth login" in outcome["text"]
    assert (token or "hf_") not in outcome["text"] + client.log.read_text()
    assert hub.repositories == {}


@pytest.mark.parametrize("token", ["\u201chf_secret\u201d", "hf_\u200bsecret", "hf_\x0bsecret"])
def test_a_token_that_is_none_is_not_sent_and_not_shown(token: str, hub: Hub, client: Client, folder: Path) -> None:
    outcome = client.publish(folder, token=token)
    assert outcome["error"] == "InputError" and "contains a character that no token contains" in outcome["text"]
    assert "secret" not in outcome["text"] + client.log.read_text()


def test_a_release_with_faults_is_refused_with_all_of_them(hub: Hub, client: Client, folder: Path) -> None:
    outcome = client.publish(folder, repo="no name", faults=["README.md", "data"])
    assert outcome["error"] == "InputError"
    assert all(part in outcome["text"] for part in ('"no name"', "README.md: is wrong", "data: is wrong"))
    assert hub.requests == []


@pytest.mark.parametrize("name", ["name", "a/b/c", "a/", "/b", "a--b/c", "a/b..c", "a/.b", "a/b.git", "datasets/a/b", "a/b c", "ä/b"])
def test_a_name_that_the_hub_would_not_take_is_refused(hub: Hub, client: Client, folder: Path, name: str) -> None:
    outcome = client.publish(folder, repo=name)
    assert outcome["error"] == "InputError"
    assert f'"{name}" is not the name of a repository' in outcome["text"]
    assert hub.requests == []


@pytest.mark.parametrize("manifest", [None, "{", "[]", "{}", '{"version": 1}', '{"version": "one"}'])
def test_a_folder_without_a_manifest_or_a_version_is_refused(hub: Hub, client: Client, tmp_path: Path, manifest: str | None) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    outcome = client.publish(tmp_path)
    assert (outcome["error"], hub.requests) == ("InputError", [])


def test_a_dry_run_sends_nothing_and_refuses_what_the_run_would(hub: Hub, client: Client, folder: Path, later: Path) -> None:
    outcome = client.publish(folder, dry_run=True)
    assert (outcome["sent"], outcome["commit"], hub.sent(), hub.repositories) == (False, None, [], {})
    assert dict(outcome["files"]) == {name: len(data) for name, data in local(folder).items()}
    client.publish(folder)
    hub.told(None)
    assert "already published" in client.publish(folder, dry_run=True)["text"]
    assert client.publish(later, dry_run=True)["sent"] is False
    assert hub.sent() == []


def test_a_dry_run_without_a_repository_lists_the_files_and_asks_nothing(folder: Path) -> None:
    found = publish(folder, None, dry_run=True, faults=lambda _: [])
    assert (dict(found.files), found.sent) == ({name: len(data) for name, data in local(folder).items()}, False)
    with pytest.raises(InputError, match="is not named"):
        publish(folder, None, faults=lambda _: [])


def test_a_repository_of_something_else_is_not_replaced(hub: Hub, client: Client, folder: Path) -> None:
    client.publish(folder)
    repository = hub.repositories[REPO]
    repository.tags.clear()
    head = repository.add({"recordings.parquet": Blob(b"PAR1", True), "README.md": Blob(b"mine", False)})
    outcome = client.publish(folder)
    assert outcome["error"] == "InputError"
    assert "holds other files" in outcome["text"]
    repository.add({"README.md": Blob(b"made in the browser", False)})
    assert client.publish(folder)["sent"]
    assert head in repository.commits


def test_what_somebody_else_committed_in_the_meantime_is_not_overwritten(hub: Hub, client: Client, folder: Path, later: Path) -> None:
    client.publish(folder)
    hub.intruder = {"manifest.json": Blob(b"theirs", False)}
    outcome = client.publish(later)
    assert outcome["error"] == "JobError"
    assert "somebody else changed the repository" in outcome["text"]
    assert held(hub, hub.repositories[REPO].head) == {"manifest.json": b"theirs"}


def test_a_commit_that_left_a_file_out_gets_no_tag(hub: Hub, client: Client, folder: Path) -> None:
    hub.ignored = ("LICENSE",)
    outcome = client.publish(folder)
    assert outcome["error"] == "JobError"
    assert '"LICENSE"' in outcome["text"]
    assert hub.repositories[REPO].tags == {}


def test_a_card_that_the_hub_does_not_take_is_told_before_anything_is_sent(hub: Hub, client: Client, later: Path) -> None:
    (later / "README.md").write_text("---\nconfigs: [\n---\n")
    outcome = client.publish(later)
    assert outcome["error"] == "JobError"
    assert "the head is not YAML" in outcome["text"]
    assert len(hub.repositories[REPO].commits) == 1


def test_hidden_files_are_not_sent(hub: Hub, client: Client, later: Path) -> None:
    (later / ".cache").mkdir()
    for name in (".DS_Store", ".cache/left"):
        (later / name).write_text("x")
    client.publish(later)
    assert not [name for name in held(hub, "v0.2.0") if name.startswith(".")]


@pytest.mark.e2e
def test_a_hub_that_cannot_be_reached_is_a_job_that_could_not_finish(tmp_path: Path, folder: Path) -> None:
    alone = Client("http://127.0.0.1:9", tmp_path / "home")
    outcome = alone.publish(folder)
    alone.close()
    assert outcome["error"] == "JobError"
    assert "could not be reached" in outcome["text"]
