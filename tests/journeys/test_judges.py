"""docs/judges.md: what it tells a reader to run, run as written against a scripted judge, and what it says of the rubrics."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.schemas import check
from empathy_eval.design.rubrics import Rubric, load_rubric, packaged_rubrics

from tests.doubles.batches import BatchServer, reply
from tests.doubles.rewards import RewardServer
from tests.doubles.server import Behaviour, Server, running
from tests.journeys.test_docs import ROOT, blocks, ran

URL, HOSTED = "http://localhost:8000/v1", "https://api.provider.example/v1"
LOOK, RELEASE, BATCH, BY_HAND, REWARDS = blocks("judges.md", "sh")
JUDGE, REWARDED, RUBRIC = blocks("judges.md", "yaml")
IMPORT = re.compile(r"^empathy-eval ledger import \S+ answers-(\d)\.jsonl$")


class Judging(BatchServer):
    """Rates and compares in form, by chance."""

    def good(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        told, chance = body["messages"][0]["content"], random.Random(name)
        if '"better"' in told:
            return {"analysis": "It takes more in.", "better": chance.choice("AB")}
        whole = "A whole number" in told
        values = [
            {"criterion": one, "value": chance.randint(1, 3) if whole else chance.random()}
            for one in re.findall(r'"criterion": "([^"]+)"', told)
        ]
        return {"analysis": "It stays with the seeker.", "ratings": values}


@pytest.fixture
def server() -> Iterator[Server]:
    with running(server=Judging(Behaviour())) as found:
        yield found


@pytest.fixture
def folder(light: Path, tmp_path: Path) -> Path:
    """A folder with what the document supposes."""
    shutil.copytree(light.parent / "build", tmp_path / "build" / "demo")
    shutil.copytree(light, tmp_path / "build" / "demo" / "release")
    return tmp_path


def test_a_judge_comes_from_an_endpoint_to_the_stand_and_into_a_release_as_written(folder: Path, server: Server) -> None:
    said = ran(LOOK.replace(URL, server.url), folder)
    assert "10 cases: 10 judged, 0 missing" in said and "15 cases: 15 judged, 0 missing" in said
    assert "NAME/teacher:guidance: 10 of" in said and "at equal closeness" in said
    assert max(server.answered.values()) == 1
    assert "NAME/teacher:guidance: 15 of" in ran(RELEASE, folder)
    assert (folder / "build" / "demo" / "release-judged" / "data" / "annotations" / "train.parquet").is_file()


def test_a_judge_works_by_batch_as_written(folder: Path, server: Server) -> None:
    check(yaml.safe_load(JUDGE), "judge", "judges.md")
    (folder / "judge.yaml").write_text(JUDGE.replace(HOSTED, server.url))
    assert "10 cases: 10 judged, 0 missing" in ran(BATCH.replace("…", "key"), folder)


def test_a_judge_works_by_hand_as_written(folder: Path) -> None:
    """Between two commands somebody answers the file of requests."""
    server, said = Server(Behaviour()), ""
    server.good = Judging(Behaviour()).good  # type: ignore[method-assign]
    for line in BY_HAND.splitlines():
        if found := IMPORT.match(line):
            answer(folder / f"ask-{found[1]}.jsonl", folder / f"answers-{found[1]}.jsonl", server)
        said = ran(line, folder)
    assert "5 cases: 5 judged, 0 missing" in said and "comparisons" in said


def test_a_reward_model_comes_to_the_stand_as_written(folder: Path) -> None:
    model = yaml.safe_load(REWARDED)
    with running(server=RewardServer(Behaviour(), model=model["model"])) as server:
        assert isinstance(server, RewardServer)
        (folder / "reward.yaml").write_text(REWARDED.replace(model["base_url"], server.root))
        said = ran(REWARDS, folder)
    assert "10 cases: 10 judged, 0 missing" in said and f"{model['model']}/reward:reward: 10 of" in said


def answer(asked: Path, answers: Path, server: Server) -> None:
    lines = []
    for line in asked.read_bytes().splitlines():
        request = json.loads(line)
        status, body = reply(server, request["body"])
        lines.append(json.dumps({"custom_id": request["custom_id"], "response": {"status_code": status, "body": body}, "error": None}))
    answers.write_text("\n".join(lines))


def row_of(rubric: Rubric) -> list[str]:
    """What the table says of a rubric, but for the tokens."""
    scales = {(one.scale.low, one.scale.high, one.scale.whole) for one in rubric.criteria if one.scale}
    scale = "".join(f"{low:g} to {high:g}{'' if whole else ', any number'}" for low, high, whole in scales)
    low = sum(one.better == "low" for one in rubric.criteria)
    better = ("high" if scale else "") + (f", {low} low" if low else "")
    requests = str(len(rubric.requests)) if rubric.kind == "rating" else ""
    return [f"`{rubric.name}`", rubric.kind, rubric.unit, str(len(rubric.criteria)), scale, better, requests]


def test_the_table_of_rubrics_is_true() -> None:
    text = (ROOT / "docs" / "judges.md").read_text().partition("## The rubrics")[2]
    told = [[cell.strip() for cell in line.strip("|").split("|")][:7] for line in text.splitlines() if line.startswith("| `")]
    assert told == [row_of(load_rubric(name)) for name in packaged_rubrics()]
    for criterion in load_rubric("lend-an-ear").criteria:
        assert (f"`{criterion.name}`" in text) is (criterion.better == "low")


def test_the_rubric_of_ones_own_is_one(tmp_path: Path) -> None:
    (tmp_path / "coldness.yaml").write_text(RUBRIC)
    rubric = load_rubric(tmp_path / "coldness.yaml")
    assert (rubric.name, rubric["distance"].better) == ("coldness", "low")
