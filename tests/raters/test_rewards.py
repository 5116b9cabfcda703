"""Reward models: a number a reply, asked in the forms that servers have, kept as it is or not at all."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.cli import main
from empathy_eval.commands.annotate import annotate
from empathy_eval.commands.score import score
from empathy_eval.completions.asker import evaluate_answer
from empathy_eval.completions.models.custom import TextModel
from empathy_eval.completions.models.openai_endpoint import PATHS, reward_body, rewards_of, sent_body
from empathy_eval.completions.requests import Usage
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.prompts import Message
from empathy_eval.evaluation.external.judges import release_annotations
from empathy_eval.evaluation.inversion.results import ReleaseTables
from empathy_eval.raters.judges.annotations import read_annotations
from empathy_eval.raters.judges.cases import cases_of
from empathy_eval.raters.judges.judge import reward_of
from empathy_eval.raters.judges.judge_quality import judge_quality, quality_text
from empathy_eval.releases.assemble.annotations import add_annotations
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest
from empathy_eval.releases.verify.annotations import annotation_faults
from empathy_eval.releases.verify.ledger import ledger_faults

from tests.doubles.judge import read_once as read_once
from tests.doubles.rewards import MODEL, READS, RewardServer, reward, said
from tests.doubles.server import Behaviour, running

FORMS = tuple(PATHS)
ADDRESS = dict(zip(FORMS, READS, strict=True))
FILES = ("outcomes.jsonl", "build.json", "configuration.json")
TALK: list[Message] = [
    {"role": "user", "content": "I lost it."}, {"role": "assistant", "content": "Oh."}, {"role": "user", "content": "Yes."},
    {"role": "assistant", "content": "I am here."},
]  # fmt: skip
WORST = Usage(1000, 0, 0)


class Bench:
    """Annotations of a release by reward models, each in a folder of its own."""

    def __init__(self, folder: Path, release: Path, server: RewardServer) -> None:
        self.folder, self.release, self.server, self.texts = folder, release, server, texts_of(release)

    def judge(self, kind: str, /, **changes: Any) -> dict[str, Any]:
        url = self.server.url if kind == "chat" else self.server.root
        known = {"kind": "reward", "form": kind, "model": MODEL, "endpoint": "loopback", "base_url": url, "patience_seconds": 20.0}
        return {name: value for name, value in {**known, **changes}.items() if value is not None}

    def annotate(self, form: str, name: str = "", turns: int | None = 3, judge: Any = None, **more: Any) -> Path:
        out = self.folder / (name or form)
        annotate(self.release, out, rubric=more.pop("rubric", "reward"), model=judge or self.judge(form), turns=turns, **more)
        return out

    def asked(self) -> int:
        assert max(self.server.answered.values(), default=0) <= 1, "nothing is answered, and so paid for, twice"
        return self.server.answered.total()


def texts_of(release: Path) -> dict[tuple[str | None, str | None], str]:
    return {(case.pair_id, variant): text for case in cases_of(release, None) for variant, text in case.texts.items()}


def said_in(out: Path) -> dict[tuple[str | None, str | None], float]:
    return {(case.pair_id, row.variant): row.value for case in read_annotations(out).cases for row in case.ratings}


def bytes_of(out: Path) -> tuple[bytes, ...]:
    return tuple((out / file).read_bytes() for file in FILES)


def keys_in(out: Path) -> set[str]:
    return {row.request_key for case in read_annotations(out).cases for row in case.ratings}


@pytest.fixture
def bench(tmp_path: Path, light: Path) -> Iterator[Bench]:
    with running(server=RewardServer(Behaviour(retry_after=0.01))) as server:
        assert isinstance(server, RewardServer)
        yield Bench(tmp_path, light, server)


# What is asked, and what comes of it.


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_each_text_its_number_once_and_a_replay_has_the_same_bytes(form: str, bench: Bench) -> None:
    out = bench.annotate(form)
    cases = cases_of(bench.release, 3)
    wanted = {(case.pair_id, variant): reward(text) for case in cases for variant, text in case.texts.items()}
    assert said_in(out) == wanted and bench.asked() == len(wanted)
    rows = [row for case in read_annotations(out).cases for row in case.ratings]
    assert {(row.criterion, row.sample, row.reason) for row in rows} == {("reward", 0, "")}
    assert {path for path, _ in bench.server.received} == {ADDRESS[form]}
    before = bytes_of(out)
    # The address is no part of a request: what is in the ledger is not asked for again.
    bench.annotate(form, judge=bench.judge(form, base_url="http://127.0.0.1:9"), ways={"offline": True})
    assert bytes_of(out) == before and bench.asked() == len(wanted)
    assert bench.annotate(form, turns=4) and bench.asked() == len(said_in(out)) > len(wanted)


def test_a_reply_is_sent_after_the_conversation_and_nothing_beside_them(bench: Bench) -> None:
    case = cases_of(bench.release, 1)[0]
    told = [{"role": {"seeker": "user", "helper": "assistant"}[role], "content": text} for role, text in case.conversation]
    whole = "\n".join(f"{one['role']}: {one['content']}" for one in told)
    for form in FORMS:
        bench.server.received.clear()
        bench.annotate(form, turns=1, variants=["empathetic"])
        ((_, body),) = bench.server.received
        assert {
            "chat": {"model": MODEL, "messages": [*told, {"role": "assistant", "content": case.texts["empathetic"]}]},
            "classify": {
                "model": MODEL,
                "messages": [*told, {"role": "assistant", "content": case.texts["empathetic"]}],
                "use_activation": False,
            },
            "score": {"model": MODEL, "text_1": whole, "text_2": case.texts["empathetic"], "use_activation": False},
            "predict": {"inputs": [whole, case.texts["empathetic"]], "raw_scores": True},
        }[form] == body


def test_the_form_is_part_of_the_key_and_keys_stay_as_they_are(bench: Bench) -> None:
    found = {form: keys_in(bench.annotate(form, turns=1)) for form in FORMS}
    assert len(set().union(*found.values())) == sum(map(len, found.values()))
    bodies = {form: reward_body(form, "m", TALK, {}) for form in FORMS}
    assert {form: digest(body)[:11] for form, body in bodies.items()} == PINNED
    assert all(b'"form"' not in sent_body(body) for body in bodies.values())
    assert reward_body("classify", "m", TALK, {"use_activation": True})["use_activation"] is True


PINNED = {"chat": "s1-67b0ba91", "classify": "s1-abee09c7", "score": "s1-61aa3607", "predict": "s1-711c3399"}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_server_does_not_answer_is_asked_for_again_and_changes_nothing(form: str, bench: Bench) -> None:
    plain = bytes_of(bench.annotate(form, "plain"))
    asked = bench.asked()
    bench.server.answered.clear()
    bench.server.behaviour.faults = {"429": 0.2, "500": 0.1, "cut": 0.1, "reset": 0.1}
    assert bytes_of(bench.annotate(form, "faulty")) == plain and bench.asked() == asked
    bench.server.behaviour.faults = {"400": 1.0}
    summary = annotate(bench.release, bench.folder / "refused", rubric="reward", model=bench.judge(form), turns=1).summary
    assert summary and len(summary.missing) == 1 and "fault 400" in summary.missing[0]


# What no number is made of.

ODD = {
    "reward_missing": [{}, [], "no", 3, {"data": None}, {"data": [{"probs": []}]}, {"data": [{"index": 0, "score": None}]}, {"choices": []},
                       said("/v1/chat/completions", "good"), said("/classify", True), said("/score", "0.5"), said("/predict", None)],
    "reward_not_finite": [said("/score", 10**400),
                          *(said(path, value) for path in READS for value in (float("nan"), float("-inf"), float("inf")))],
    "reward_out_of_range": [said(path, value) for path in READS for value in (1e308, -1e308, 1.1e12)],
    "reward_of_several_classes": [said(path, 0.7, 0.3) for path in READS] + [{"data": said("/score", 1.0)["data"] * 2}],
    "finish_error": [{"error": "overloaded"}, {"object": "error", "message": "The model does not support this", "code": 400}],
    "finish_length": [{"choices": [{"message": {"content": "reward:-17."}, "finish_reason": "length"}]}],
}  # fmt: skip


@pytest.mark.parametrize(("reason", "body"), [(reason, body) for reason, bodies in ODD.items() for body in bodies])
async def test_what_holds_no_number_has_a_reason_and_no_value(reason: str, body: Any) -> None:
    assert await read(json.loads(json.dumps(body))) == reason


@pytest.mark.parametrize("form", FORMS)
def test_a_reward_that_is_out_of_range_costs_its_own_text_alone_and_the_quality_of_the_judge_is_reported(form: str, bench: Bench) -> None:
    case = cases_of(bench.release, 3)[0]
    bench.server.odd, bench.server.of = said(ADDRESS[form], 1e308), case.texts["apathetic"]
    out = bench.annotate(form)
    (failure,) = [one for case in read_annotations(out).cases for one in case.failures]
    assert failure.reasons == ("reward_out_of_range",) and (case.pair_id, "apathetic") not in said_in(out)
    assert "reward" in quality_text(judge_quality(read_annotations(out), bench.release))
    before, asked = bytes_of(out), bench.asked()
    bench.annotate(form, ways={"offline": True})
    assert bytes_of(out) == before and bench.asked() == asked, "the answer stays in the ledger, and a replay refuses it again"
    finished = read_annotations(out)
    row = next(one for case in finished.cases for one in case.ratings)
    text = (out / "outcomes.jsonl").read_text().replace(f'"value":{json.dumps(row.value)}', '"value":1e+308', 1)
    (out / "outcomes.jsonl").write_text(text)
    header = json.loads((out / "build.json").read_text())
    (out / "build.json").write_text(json.dumps({**header, "outcomes": digest_file(out / "outcomes.jsonl")}))
    with pytest.raises(InputError, match=r"value: 1e\+308 is out of range .*\n  Fix: .*"):
        read_annotations(out)


@pytest.mark.parametrize(
    ("label", "body", "expected"),
    [
        (1, said("/classify", 0.25, 0.75), 0.75),
        (2, said("/classify", 0.25, 0.75), "reward_label_unknown"),
        ("LABEL_0", said("/predict", 0.25, 0.75), 0.25),
        ("LABEL_0", [said("/predict", 0.25, 0.75)], 0.25),
        ("label_0", said("/predict", 0.25), "reward_label_unknown"),
        ("LABEL_0", said("/predict", 0.25) * 2, "reward_twice"),
        ("helpfulness", said("/v1/chat/completions", 1.5, -2.0), 1.5),
        (None, said("/v1/chat/completions", "-3.25e1"), -32.5),
        (None, {"choices": [{"message": {"content": " -8.125\n"}, "finish_reason": "stop"}]}, -8.125),
        (None, said("/score", -1234567.5), -1234567.5),
        (None, said("/classify", -1e12), -1e12),
        (None, said("/predict", -0.0), 0.0),
    ],
)
async def test_the_class_that_is_named_is_the_number_and_no_number_is_clipped(label: Any, body: Any, expected: Any) -> None:
    assert await read(body, label) == expected


async def read(body: Any, label: str | int | None = None) -> float | str:
    """What is made of a body: a number, or the reason why there is none."""

    async def judge(value: Any) -> Any:
        return reward_of(value, label)

    verdict = await evaluate_answer(rewards_of(body, "m", WORST), "reward_answer", judge)
    return verdict[0].reason if isinstance(verdict, list) else verdict


@pytest.mark.parametrize(
    ("form", "odd"), [("classify", {"data": [{"probs": [float("nan")]}]}), ("score", {"error": "no"}), ("predict", [])]
)
def test_one_text_without_a_number_is_unannotated_and_the_rest_of_its_turn_stands(form: str, odd: Any, bench: Bench) -> None:
    case = cases_of(bench.release, 1)[0]
    bench.server.odd, bench.server.of = odd, case.texts["apathetic"]
    out = bench.annotate(form, turns=1)
    (found,) = read_annotations(out).cases
    assert found.status == "accepted" and {row.variant for row in found.ratings} == case.texts.keys() - {"apathetic"}
    (failure,) = found.failures
    assert failure.final and failure.kind == "reward" and bench.asked() == len(case.texts)
    bench.annotate(form, turns=1)
    assert bench.asked() == len(case.texts), "an answer without a number is not asked for again"


def test_of_two_classes_the_one_that_the_judge_names_is_taken(bench: Bench) -> None:
    bench.server.second = 0.5
    out = bench.annotate("classify", turns=1, judge=bench.judge("classify", label=1))
    assert set(said_in(out).values()) == {0.5}
    assert not said_in(bench.annotate("classify", "none", turns=1))


# In every way.


@pytest.mark.parametrize("form", FORMS)
def test_by_hand_the_rewards_have_the_bytes_of_live_ones(form: str, bench: Bench) -> None:
    file, answers = bench.folder / "ask.jsonl", bench.folder / "answers.jsonl"
    out = bench.folder / "hand"
    annotate(bench.release, out, rubric="reward", model=bench.judge(form), turns=3, ways={"requests_to": file})
    lines = []
    for line in file.read_bytes().splitlines():
        request = json.loads(line)
        assert request["url"] == ("/v1/chat/completions" if form == "chat" else PATHS[form]) and "form" not in request["body"]
        body = bench.server.given(ADDRESS[form], request["body"])
        lines.append(json.dumps({"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}))
    answers.write_text("\n".join(lines))
    assert main(["ledger", "import", str(out / "ledger.sqlite"), str(answers)]) == 0
    assert bench.annotate(form, "hand", ways={"offline": True}) and not bench.server.received
    assert bytes_of(out) == bytes_of(bench.annotate(form, "live"))


def test_a_budget_is_kept_and_what_was_paid_for_stays(bench: Bench) -> None:
    """Where a server counts no tokens, the worst case is what was spent."""
    with pytest.raises(JobError, match="has no room for another request"):
        bench.annotate("predict", ways={"budget_tokens": 5000})
    some = bench.asked()
    assert 0 < some < len(said_in(bench.annotate("predict"))) == bench.asked()
    priced = bench.judge("predict", prices={"input": 1.0, "output": 0.0})
    bench.annotate("predict", judge=priced, ways={"budget_usd": 0.001})
    with pytest.raises(JobError, match="has no room for another request"):
        bench.annotate("predict", judge=priced, turns=4, ways={"budget_usd": 0.001})


def test_a_model_of_ones_own_gives_rewards_too(bench: Bench) -> None:
    class Own(TextModel):
        name = "own"

        def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
            return json.dumps({"rewards": [{"label": None, "value": reward(messages[-1]["content"])}]})

    out = bench.annotate("", "own", judge=Own())
    assert said_in(out) == {key: reward(bench.texts[key]) for key in said_in(out)} != {}


# On the stand and in a release.


def test_rewards_are_scored_and_their_quality_is_reported(bench: Bench) -> None:
    out = bench.annotate("classify", turns=None)
    measured = score(bench.release, annotations=[out], judges=[f"{MODEL}/reward"], shortcuts=False)
    assert isinstance(measured, ReleaseTables)
    assert [row.metric for row in measured.inversion] == [f"{MODEL}/reward:reward"]
    for variant, mean in measured.inversion[0].scores.items():
        some = [reward(text) for (_, name), text in bench.texts.items() if name == variant]
        assert mean == pytest.approx(sum(some) / len(some), abs=1e-6) and max(some) > 1 > 0 > min(some)
    worth = judge_quality(read_annotations(out), bench.release)
    assert [(one.name, one.texts) for one in worth.criteria] == [("reward", len(bench.texts))]
    assert "reward" in quality_text(worth) and worth.criteria[0].on_grid is None


@pytest.mark.e2e
def test_a_release_holds_rewards_and_verify_holds_them_against_the_ledger(bench: Bench) -> None:
    case = cases_of(bench.release, 2)[0]
    bench.server.odd, bench.server.of = {"data": []}, case.texts["apathetic"]
    out, judged = bench.annotate("score"), Path(shutil.copytree(bench.release, bench.folder / "judged"))
    manifest = read_manifest(judged)
    sealed_anew(judged, manifest | add_annotations(judged, [read_annotations(out)], manifest | {"name": "small"}))
    assert [one.row for one in release_annotations(judged).criteria()] == [f"{MODEL}/reward:reward"]
    assert checked(judged, out) == []
    forge(judged, lambda row: row | {"value": row["value"] + 1})
    assert [", but the answer says " in one for one in checked(judged, out)] == [True]
    forge(judged, lambda row: row | {"value": math.nan}, lambda row: row | {"criterion": "warmth"})
    assert {"its reward of nan is not between -1e+12 and 1e+12", '"warmth" is not a criterion of the rubric'} <= {
        one.partition(": ")[2] for one in checked(judged, out)
    }


def checked(folder: Path, out: Path) -> list[str]:
    """What is wrong with the rows, in themselves and beside the ledger of the annotations."""
    manifest = read_manifest(folder)
    return [one.what for one in (*annotation_faults(folder, manifest), *ledger_faults(folder, manifest, [out / "ledger.sqlite"]))]


def forge(folder: Path, *changes: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Another row changed by each, as somebody would who wants it to go unseen."""
    path = max((folder / "data" / "annotations").glob("*.parquet"), key=lambda one: pq.read_table(one).num_rows)
    table = pq.read_table(path)
    rows = table.to_pylist()
    for place, change in enumerate(changes):
        rows[place] = change(rows[place])
    pq.write_table(type(table).from_pylist(rows, table.schema), path)
    sealed_anew(folder, read_manifest(folder))


def sealed_anew(folder: Path, manifest: dict[str, Any]) -> None:
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "manifest.json"]
    (folder / "manifest.json").write_text(
        manifest_text(seal_manifest(manifest | {"files": {name: digest_file(folder / name) for name in names}}))
    )


# Bad input.


@pytest.mark.parametrize(
    ("changes", "more", "said"),
    [
        ({}, {"ways": {"batch": True}}, "no provider runs reward models in batches"),
        ({}, {"samples": 2}, "gives the same number each time"),
        ({}, {"templates": "somewhere"}, "and no prompt"),
        ({}, {"rubric": "teacher"}, "prompts a model in words"),
        ({"kind": "openai", "form": None, "max_tokens": 5}, {}, "is for reward models"),
        ({"form": "rank"}, {}, '"rank" is not known'),
        ({"form": None}, {}, 'misses "form"'),
        ({"form": "classify", "label": "LABEL_0"}, {}, "not of type integer"),
        ({"form": "predict", "label": 0}, {}, "not of type string"),
        ({"form": "score", "label": 0}, {}, "not allowed here"),
        ({"parameters": {"messages": []}}, {}, "messages"),
        ({"max_tokens": 5}, {}, "max_tokens"),
    ],
)
def test_what_does_not_go_with_reward_models_is_refused_at_once(
    changes: dict[str, Any], more: dict[str, Any], said: str, bench: Bench
) -> None:
    with pytest.raises(InputError) as error:
        bench.annotate("", "a", judge=bench.judge("score", **changes), **more)
    assert said in str(error.value) and not bench.server.received and not (bench.folder / "a").exists()


def test_a_reward_model_without_an_address_is_not_looked_for_at_a_provider(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(InputError, match="is missing, and reward models have no default provider"):
        bench.annotate("score", judge=bench.judge("score", base_url=None))


def test_the_command_takes_a_reward_model_from_a_file(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    path = bench.folder / "judge.yaml"
    path.write_text(yaml.safe_dump(bench.judge("predict")))
    given = ["annotate", str(bench.release), "--out", str(bench.folder / "c"), "--rubric", "reward", "--model", str(path), "--turns", "2"]
    assert main([*given, "--batch"]) == 2 and "--batch" in capsys.readouterr().err
    assert main(given) == 0
    assert "2 cases: 2 judged, 0 missing" in (out := capsys.readouterr().out) and f'quality of the judge "{MODEL}" by "reward"' in out
