"""Annotating against a judge by script: what it said arrives as it was said, nothing is asked for twice, and kills change nothing."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.base.hashing import canonical_json
from empathy_eval.commands.annotate import annotate
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.custom import TextModel
from empathy_eval.design.rubrics import Criterion, Rubric, load_rubric
from empathy_eval.design.taxonomy import Taxonomy
from empathy_eval.generation.summary import HandedOut
from empathy_eval.raters.judges.annotating import shown_by
from empathy_eval.raters.judges.annotations import Annotated, AnnotationFolder, read_annotations
from empathy_eval.raters.judges.cases import TEXTS, Case, cases_of, dialogues_of

from tests.doubles.forked import forkserver
from tests.doubles.judge import JudgeServer, biased, likely, reason_of, strategy_of, value_of, warmth
from tests.doubles.judge import read_once as read_once
from tests.doubles.server import NO_ANSWER, Behaviour, running

KILLS = 50 if "KILLS" in os.environ else 5
# Tokens that are set aside for a request: its bytes, and the most that an answer may have.
WORST = 10_000
FILES = ("outcomes.jsonl", "build.json", "configuration.json")
PAIRED = {
    ("apathetic", "reference"), ("apathetic", "empathetic"), ("empathetic", "reference"), ("apathetic", "near_empathetic"),
    ("empathetic", "far_apathetic"),
}  # fmt: skip


def model(url: str, **changes: Any) -> dict[str, Any]:
    known = {"kind": "openai", "model": "judge-1", "endpoint": "loopback", "max_tokens": 500, "base_url": url}
    return {**known, "timeout_seconds": 2.0, "patience_seconds": 60, "in_flight": 16, **changes}


class Court:
    """Annotations of a release by the judge of a server, each in a folder of its own."""

    def __init__(self, folder: Path, release: Path, server: JudgeServer) -> None:
        self.folder, self.release, self.server = folder, release, server

    def annotate(self, rubric: str | Path = "teacher", name: str = "a", turns: int | None = 6, **more: Any) -> HandedOut:
        more = {"model": model(self.server.url), **more}
        return annotate(more.pop("release", self.release), self.folder / name, rubric=rubric, turns=turns, **more)

    def read(self, name: str = "a") -> AnnotationFolder:
        return read_annotations(self.folder / name)

    def said(self, rubric: str | Path = "teacher", **more: Any) -> tuple[Annotated, ...]:
        """What is said where all goes well."""
        handed = self.annotate(rubric, **more)
        assert handed.summary and not handed.summary.missing and not handed.summary.failed
        return self.read().cases

    def bytes(self, name: str = "a") -> tuple[bytes, ...]:
        return tuple((self.folder / name / file).read_bytes() for file in FILES)

    def answered(self) -> int:
        """Of how many requests so far, each of which was answered once."""
        assert max(self.server.answered.values()) == 1
        return self.server.answered.total()


@pytest.fixture
def court(tmp_path: Path, light: Path) -> Iterator[Court]:
    with running(server=JudgeServer(Behaviour())) as server:
        assert isinstance(server, JudgeServer)
        yield Court(tmp_path, light, server)


def by_id(cases: list[Case]) -> dict[str, Case]:
    return {case.pair_id or case.dialogue_id: case for case in cases}


def scripted(criterion: Criterion, text: str) -> float:
    assert criterion.scale
    return value_of(criterion.name, text, criterion.scale.low, criterion.scale.high, criterion.scale.whole)


# What is said.


@pytest.mark.parametrize("name", ["teacher", "perceived-empathy", "rating-guide", "epitome"])
def test_every_criterion_of_every_text_is_rated_as_the_judge_says(name: str, court: Court) -> None:
    rubric = load_rubric(name)
    # A turn that the rubric shows as an example is not judged.
    cases = by_id(cases_of(court.release, 2, but=shown_by(rubric)))
    for one in court.said(rubric=name, turns=2):
        texts = cases[one.pair_id or ""].texts
        assert {row.variant for row in one.ratings} == set(texts) >= {"reference", "apathetic", "empathetic"}
        assert Counter((row.variant, row.criterion) for row in one.ratings) == Counter((v, c.name) for v in texts for c in rubric.criteria)
        for row in one.ratings:
            text = texts[str(row.variant)]
            assert row.value == scripted(rubric[row.criterion], text)
            assert row.reason == (reason_of(text) if rubric.style == "reasoned" else "")
    requests = len(rubric.criteria) if not rubric.together else 1
    assert court.answered() == requests * sum(len(case.texts) for case in cases.values())


def test_a_rubric_on_dialogues_rates_each_as_a_whole(court: Court) -> None:
    rubric = load_rubric("lend-an-ear")
    cases = by_id(dialogues_of(court.release, None))
    for one in court.said(rubric="lend-an-ear", turns=None):
        case = cases.pop(one.dialogue_id)
        assert one.pair_id is None and one.turn is None and {row.variant for row in one.ratings} == {*case.wholes}
        for variant in case.wholes:
            whole = "\n".join(f"{role}: {text}" for role, text in case.before(variant))
            given = {row.criterion: row.value for row in one.ratings if row.variant == variant}
            assert given == {c.name: scripted(c, whole) for c in rubric.criteria}
    assert not cases


@pytest.mark.parametrize("bias", [0.0, 0.4, 1.0])
def test_who_wins_twice_is_the_winner_and_what_follows_the_position_is_a_tie(bias: float, court: Court) -> None:
    court.server.bias = bias
    cases, flips, made = by_id(cases_of(court.release, 8)), 0, 0
    for one in court.said(rubric="warmer", turns=8):
        texts = cases[one.pair_id or ""].texts
        assert {(row.variant_1, row.variant_2) for row in one.comparisons} == {pair for pair in PAIRED if texts.keys() >= set(pair)}
        for row in one.comparisons:
            first, second = texts[row.variant_1], texts[row.variant_2]
            flipped = biased(first, second, bias)
            warmer = row.variant_1 if warmth(first) > warmth(second) else row.variant_2
            expected = (row.variant_1, row.variant_2, None) if flipped else (warmer, warmer, warmer)
            assert (row.winner_12, row.winner_21, row.winner) == expected and row.consistent == (not flipped)
            assert (row.reason_12, row.reason_21) == (reason_of(first + second), reason_of(second + first))
            flips, made = flips + flipped, made + 1
    assert court.answered() == 2 * made and (flips == bias * made if bias in (0, 1) else 0 < flips < made)


def test_strategies_are_asked_before_a_reply_is_seen_and_named_after(court: Court, taxonomy: Taxonomy) -> None:
    names, cases = [one.abbreviation for one in taxonomy.strategies], by_id(cases_of(court.release, None))
    for one in court.said(rubric="strategies", turns=None):
        case = cases[one.pair_id or ""]
        context = "\n".join(f"{role}: {text}" for role, text in case.conversation)
        assert {row.variant: row.named for row in one.strategies} == {v: strategy_of(text, names) for v, text in case.texts.items()}
        for row in one.strategies:
            assert row.ideal == pytest.approx(likely(context, names))
        assert len({row.ideal_request_key for row in one.strategies}) == 1
    assert court.answered() == sum(1 + len(case.texts) for case in cases.values())


def test_only_the_variants_that_are_named_are_judged_and_their_order_is_nothing(court: Court) -> None:
    for one in court.said(variants=("far_apathetic", "reference")):
        assert {row.variant for row in one.ratings} <= {"reference", "far_apathetic"}
    before, asked = court.bytes(), court.answered()
    court.annotate(variants=("reference", "far_apathetic", "reference"))
    assert court.bytes() == before and court.answered() == asked


# Nothing is asked for twice.


@pytest.mark.parametrize("rubric", ["teacher", "warmer", "strategies"])
def test_after_a_stop_the_same_call_goes_on_and_asks_nothing_twice(rubric: str, court: Court) -> None:
    court.annotate(rubric, name="plain")
    whole = court.answered()
    court.server.answered.clear()
    court.server.stop_at = len(court.server.received) + 12
    with pytest.raises(JobError, match="stopped by Ctrl-C"):
        court.annotate(rubric, model=model(court.server.url, in_flight=4))
    assert not (court.folder / "a" / "outcomes.jsonl").exists() and 12 <= court.answered() < whole
    with pytest.raises(InputError, match="holds no finished annotations"):
        court.read()
    court.annotate(rubric)
    assert court.answered() == whole and court.bytes() == court.bytes("plain")


def test_more_turns_are_added_to_those_there_and_fewer_leave_some_out(court: Court) -> None:
    court.annotate(turns=3)
    few, asked = court.bytes(), court.answered()
    court.annotate(turns=9)
    many = court.bytes()
    assert many[0].startswith(few[0]) and many[0].count(b"\n") == 9
    added = sum(len(case.texts) for case in cases_of(court.release, 9)[3:])
    assert court.answered() == asked + added
    court.annotate(turns=3)
    assert court.bytes() == few and court.answered() == asked + added


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rubric": "rating-guide"}, 'by the rubric "teacher", not "rating-guide"'),
        ({"model": model("http://x/v1", model="judge-2")}, 'by the judge "judge-1", not "judge-2"'),
        ({"model": model("http://x/v1", max_tokens=9)}, 'by the judge "judge-1" with another max_tokens'),
        ({"samples": 2}, "with 1 samples of a text, not 2"),
        ({"variants": ("reference",)}, "of reference, apathetic, empathetic, near_empathetic, far_apathetic, not of reference"),
    ],
    ids=["rubric", "judge", "settings", "samples", "variants"],
)
def test_a_folder_of_other_annotations_is_refused_with_what_differs_and_left_alone(change: dict[str, Any], told: str, court: Court) -> None:
    court.annotate(turns=2)
    before, asked = court.bytes(), court.answered()
    with pytest.raises(InputError, match=f"holds annotations {told}\n(.|\n)*name another folder with --out"):
        court.annotate(**{"turns": 2, **change})
    assert court.bytes() == before and court.answered() == asked


def test_a_folder_of_a_build_or_of_annotations_of_its_build_is_refused(court: Court) -> None:
    court.annotate(turns=1)
    with pytest.raises(InputError, match=r"holds annotations of .* 0\.1\.0 \(seal s1-.*\), not of a build of demo \(outcomes "):
        court.annotate(turns=1, release=court.release.parent / "build")
    (court.folder / "b").mkdir()
    shutil.copy(court.release.parent / "build" / "configuration.json", court.folder / "b")
    with pytest.raises(InputError, match="b: holds a build, not annotations"):
        court.annotate(turns=1, name="b")


def test_how_the_judge_is_reached_makes_no_other_annotations(court: Court) -> None:
    court.annotate(turns=2)
    before = court.bytes()
    court.annotate(turns=2, model=model("http://127.0.0.1:9/v1", in_flight=3, prices={"input": 1, "output": 2}))
    assert court.bytes() == before


@pytest.mark.e2e
@pytest.mark.parametrize("rubric", ["perceived-empathy", "warmer", "strategies", "lend-an-ear"])
def test_from_the_ledger_alone_come_the_same_bytes(rubric: str, court: Court) -> None:
    court.server.behaviour = Behaviour({"429": 0.1, **dict.fromkeys(("odd", "cut", "refusal", "schema"), 0.12)}, retry_after=0.01)
    court.annotate(rubric, turns=3)
    assert any(case.failures for case in court.read().cases)
    seen, before = court.server.seen.total(), court.bytes()
    court.annotate(rubric, turns=3, ways={"offline": True})
    assert court.bytes() == before
    court.annotate(rubric, "other", turns=3, ways={"offline": True, "ledger": court.folder / "a" / "ledger.sqlite"})
    assert court.bytes("other") == before and court.server.seen.total() == seen


def test_offline_what_is_not_in_the_ledger_is_named(court: Court) -> None:
    court.annotate(turns=2)
    with pytest.raises(JobError, match="not in the ledger: .* rating turn"):
        court.annotate(turns=3, ways={"offline": True})


# Bad answers.


@pytest.mark.parametrize("rubric", ["teacher", "warmer", "strategies", "lend-an-ear"])
def test_a_judge_that_never_answers_as_asked_leaves_everything_unannotated_with_the_reason(rubric: str, court: Court) -> None:
    court.server.behaviour.faults = {"odd": 1.0}
    handed = court.annotate(rubric, turns=2)
    assert handed.summary
    kinds = {"teacher": "rating", "lend-an-ear": "rating", "warmer": "preference", "strategies": "ideal"}
    reason = {
        "teacher": "rating_out_of_bounds",
        "lend-an-ear": "rating_out_of_bounds",
        "warmer": "schema",
        "strategies": "probabilities_sum",
    }
    closing = handed.summary.to_json()
    asked = len({canonical_json(body["messages"][:2]) for body in court.server.received})
    assert closing["unannotated_by_reason"] == {f"{kinds[rubric]}: {reason[rubric]}": asked}
    assert closing["samples_refused"] == {f"{kinds[rubric]}: {reason[rubric]}": 4 * asked}
    assert f"unannotated: {kinds[rubric]}: {reason[rubric]} ({asked})" in str(handed.summary)
    for case in court.read().cases:
        assert case.status == "accepted" and not (case.ratings or case.comparisons or case.strategies)
        assert [one.final for one in case.failures].count(True) * 4 == len(case.failures)


@pytest.mark.parametrize("fault", ["odd", "cut", "schema", "refusal", "length", "content_filter", "empty"])
def test_a_bad_answer_is_repaired_or_sampled_again_and_never_bent_into_shape(fault: str, court: Court) -> None:
    court.server.behaviour.faults = {fault: 0.5}
    court.annotate("perceived-empathy", turns=2)
    rubric, cases = load_rubric("perceived-empathy"), by_id(cases_of(court.release, 2))
    made, given_up = 0, 0
    for one in court.read().cases:
        assert {len(failure.reasons) for failure in one.failures} <= {1}
        for row in one.ratings:
            assert row.value == scripted(rubric[row.criterion], cases[one.pair_id or ""].texts[str(row.variant)])
        made, given_up = made + len(one.ratings), given_up + sum(failure.final for failure in one.failures)
    assert made + given_up == sum(len(case.texts) for case in cases.values()) * len(rubric.criteria)
    repaired = [body for body in court.server.received if len(body["messages"]) > 2]
    assert made and repaired and all("cannot be used as it is" in body["messages"][-1]["content"] for body in repaired)
    if fault == "odd":
        assert given_up and all("is not between" in body["messages"][-1]["content"] for body in repaired)
        assert all(body["messages"][2]["role"] == "assistant" for body in repaired)
    with Ledger(court.folder / "a" / "ledger.sqlite", create=False) as ledger:
        assert next(ledger.query("SELECT count(*) FROM completions")) == (court.server.answered.total(),)


@pytest.mark.e2e
def test_a_comparison_needs_both_orders_and_a_named_strategy_the_ideal_one(court: Court) -> None:
    court.server.behaviour.faults = {"odd": 0.6}
    for rubric in ("warmer", "strategies"):
        court.annotate(rubric, rubric, turns=8)
        cases = court.read(rubric).cases
        made = sum(len(case.comparisons) + len(case.strategies) for case in cases)
        lost = [one for case in cases for one in case.failures if one.final]
        assert made and lost and {"schema", "probabilities_sum", "strategy_unknown"} >= {one.reasons[0] for one in lost}
        for case in cases:
            final = Counter(one.kind for one in case.failures if one.final)
            texts = len(by_id(cases_of(court.release, 8))[case.pair_id or ""].texts)
            if rubric == "strategies":
                assert len(case.strategies) == (0 if final["ideal"] else texts - final["named"])
            else:
                possible = {3: 3, 5: 5}[texts]
                assert final["preference"] / 2 <= possible - len(case.comparisons) <= final["preference"]


def test_where_no_answer_comes_the_case_is_missing_and_asked_for_again(court: Court) -> None:
    court.server.behaviour.faults = {"400": 0.1}
    handed = court.annotate(turns=8)
    assert handed.summary and 0 < len(handed.summary.missing) < 8 and "fault 400" in handed.summary.missing[0]
    missing = [case for case in court.read().cases if case.status == "missing"]
    assert len(missing) == len(handed.summary.missing) and not any(case.ratings for case in missing)
    court.server.behaviour.faults = {}
    court.annotate(turns=8)
    court.annotate(turns=8, name="plain", ways={"ledger": court.folder / "a" / "ledger.sqlite"})
    assert court.answered() == sum(len(case.texts) for case in cases_of(court.release, 8)) and court.bytes() == court.bytes("plain")


# Kills, faults and budgets.


@pytest.mark.parametrize("rubric", ["teacher", "warmer", "strategies"])
def test_whatever_the_server_does_the_annotations_are_the_same(rubric: str, court: Court) -> None:
    court.annotate(rubric, "plain")
    asked = court.answered()
    court.server.answered.clear()
    court.server.behaviour = Behaviour({name: 0.05 for name in NO_ANSWER if name != "silence"}, retry_after=0.01)
    court.annotate(rubric)
    assert court.bytes() == court.bytes("plain") and court.answered() == asked


def _annotate(release: Path, out: Path, url: str, tokens: int | None = None) -> None:
    annotate(release, out, rubric="teacher", model=model(url, in_flight=4), turns=None, ways={"budget_tokens": tokens})


def _kill(process: BaseProcess) -> bool:
    """Unless it is not there yet: what comes then is of the one before."""
    if process.pid:
        process.kill()
    return bool(process.pid)


@pytest.mark.e2e
@pytest.mark.sampled
def test_kills_pay_for_nothing_twice_but_what_was_in_flight_within_the_budget(court: Court) -> None:
    court.annotate(name="plain", turns=None)
    plain, tokens, killed, rng = court.answered(), court.server.tokens.total(), 0, random.Random(7)
    court.server.answered.clear()
    court.server.tokens.clear()
    # Of each kill the worst case of what was under way stays set aside.
    budget = tokens + KILLS * 4 * WORST
    for _ in range(KILLS):
        process = forkserver().Process(target=_annotate, args=(court.release, court.folder / "a", court.server.url, budget))
        # Killed by the server as it sees a request: four may be under way, so of the later ones some were answered and stored.
        court.server.stop_at, court.server.stop = len(court.server.received) + rng.randint(1, 6), partial(_kill, process)
        process.start()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
    court.server.stop_at, before = 0, court.server.tokens.total()
    assert killed >= KILLS * 3 // 4 and before <= budget
    with pytest.raises(JobError, match="has no room"):
        _annotate(court.release, court.folder / "a", court.server.url, tokens)
    assert court.server.tokens.total() <= max(before, tokens), "what was paid for and lost was counted"
    _annotate(court.release, court.folder / "a", court.server.url)
    assert court.bytes() == court.bytes("plain")
    assert plain <= court.server.answered.total() <= plain + 4 * KILLS


def test_a_budget_is_never_exceeded_at_the_server_and_the_next_run_goes_on(court: Court) -> None:
    court.annotate("warmer", "plain", turns=8)
    plain = court.answered()
    court.server.answered.clear()
    court.server.tokens.clear()
    priced = model(court.server.url, prices={"input": 1.0, "output": 4.0})

    def tokens() -> int:
        return court.server.tokens["input"] + court.server.tokens["output"]

    def dollars() -> float:
        return (court.server.tokens["input"] * 1.0 + court.server.tokens["output"] * 4.0) / 1e6

    with pytest.raises(JobError, match=r"the budget of \$0.02 has no room"):
        court.annotate("warmer", turns=8, model=priced, ways={"budget_usd": 0.02})
    assert 0.01 < dollars() <= 0.02
    with pytest.raises(JobError, match="the budget of 40000 tokens has no room"):
        court.annotate("warmer", turns=8, model=priced, ways={"budget_tokens": 40_000})
    assert 20_000 < tokens() <= 40_000
    court.annotate("warmer", turns=8, model=priced, ways={"budget_usd": 5.0})
    assert court.answered() == plain and court.bytes() == court.bytes("plain")


# What the judge never sees.


def told_of(body: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in body["messages"])


def disguised(release: Path, folder: Path) -> Path:
    """The same release with other ids, each text under the name of another variant, and whatever else a row says struck out."""
    shutil.copytree(release, folder)
    for path in (folder / "data").glob("*/*.parquet"):
        table = pq.read_table(path)
        rows = table.to_pylist()
        for row in rows:
            for name in {"scenario", "description", "phase", "strategy"} & row.keys():
                row[name] = "struck out"
            row["dialogue_id"] = f"999-{row['dialogue_id']}" if "dialogue_id" in row else None
            if "pair_id" in row:
                row["pair_id"] = f"999-{row['pair_id']}"
            if "reference" in row:
                row["reference"], row["empathetic"], row["apathetic"] = row["empathetic"], row["apathetic"], row["reference"]
        pq.write_table(type(table).from_pylist(rows, table.schema), path)
    return folder


@pytest.mark.parametrize("rubric", ["teacher", "strategies", "lend-an-ear"])
def test_ids_and_names_of_variants_change_no_request(rubric: str, court: Court) -> None:
    sent = []
    for name, release in (("a", court.release), ("b", disguised(court.release, court.folder / "disguised"))):
        court.server.received.clear()
        court.annotate(rubric, name, turns=None, release=release)
        sent.append(sorted(map(canonical_json, court.server.received)))
    assert sent[0] == sent[1]


@pytest.mark.parametrize("rubric", ["teacher", "warmer", "strategies", "lend-an-ear"])
def test_no_request_reveals_a_variant_an_id_or_where_a_reply_is_from(rubric: str, court: Court) -> None:
    court.annotate(rubric, turns=None)
    pairs = cases_of(court.release, None)
    ids = {case.dialogue_id for case in pairs} | {str(case.pair_id) for case in pairs}
    hidden = re.compile("|".join(rf"\b{name}\b" for name in (*TEXTS, "variant", "seed", *map(re.escape, sorted(ids)))))
    texts = {text for case in pairs for text in case.texts.values()} | {text for case in pairs for _, text in case.conversation}
    for body, headers in zip(court.server.received, court.server.headers_received, strict=True):
        assert body.keys() == {"model", "messages", "max_tokens", "response_format"}
        said = json.dumps(body, ensure_ascii=False)
        for text in texts:  # which may have any words
            said = said.replace(json.dumps(text, ensure_ascii=False)[1:-1], "")
        assert not hidden.search(said.replace("{", " ")), hidden.search(said)
        assert not hidden.search(headers)


def test_a_text_is_rated_without_another_one_beside_it_and_nothing_that_comes_after(court: Court) -> None:
    court.annotate(turns=None)
    pairs, asked = cases_of(court.release, None), Counter(body["messages"][1]["content"] for body in court.server.received)
    for case in pairs:
        before = "\n".join(f"{role}: {text}" for role, text in case.conversation)
        for text in case.texts.values():
            (content,) = (one for one in asked if one.endswith(f"# The reply to rate\n{text}") and before in one)
            assert " ".join(content.replace(before, "").replace(text, "").split()) == "# The conversation so far # The reply to rate"
            assert asked[content] == 1
    assert asked.total() == sum(len(case.texts) for case in pairs)


def test_every_pair_is_compared_in_both_orders(court: Court) -> None:
    court.annotate("warmer", turns=None)
    asked = [body["messages"][1]["content"].split("# Reply A\n")[1] for body in court.server.received]
    shown = Counter(tuple(one.split("\n\n# Reply B\n")) for one in asked)
    wanted = [pair for case in cases_of(court.release, None) for pair in sorted(PAIRED) if case.texts.keys() >= set(pair)]
    assert set(shown.values()) == {1} and len(shown) == 2 * len(wanted)
    assert set(shown) == {(other, one) for one, other in shown}


# Samples, and a judge of one's own.


def test_a_text_is_judged_as_often_as_asked_each_time_by_a_request_of_its_own(court: Court) -> None:
    for one in court.said(turns=3, samples=3):
        keys: dict[Any, set[str]] = {}
        for row in one.ratings:
            keys.setdefault((row.variant, row.sample), set()).add(row.request_key)
        assert {sample for _, sample in keys} == {0, 1, 2}
        assert all(len(found) == 1 for found in keys.values()) and len({key for found in keys.values() for key in found}) == len(keys)
    texts = sum(len(case.texts) for case in cases_of(court.release, 3))
    assert set(court.server.answered.values()) == {3} and court.server.answered.total() == 3 * texts
    for rubric in ("warmer", "strategies"):
        court.annotate(rubric, rubric, turns=3, samples=2)
        rows: list[Any] = [row for one in court.read(rubric).cases for row in (*one.comparisons, *one.strategies)]
        keys_of = [{getattr(row, name) for name in vars(row) if "request_key" in name} for row in rows]
        of_samples = [set[str]().union(*(keys for keys, row in zip(keys_of, rows, strict=True) if row.sample == k)) for k in (0, 1)]
        assert of_samples[0] and not of_samples[0] & of_samples[1] and len(of_samples[0]) == len(of_samples[1])


class Mine(TextModel):
    """Gives everything the same, and keeps what it was asked."""

    name = "mine"

    def __init__(self, value: float = 0.5) -> None:
        self.value, self.asked = value, list[Any]()

    def answer(self, messages: list[Any], answer_schema: dict[str, Any]) -> str:
        self.asked.append(messages)
        names = [one.name for one in load_rubric("teacher").criteria]
        return json.dumps({"analysis": "so", "ratings": [{"criterion": name, "value": self.value} for name in names]})


def test_a_judge_of_ones_own_is_handed_in_as_an_object_or_named_in_a_file(court: Court) -> None:
    mine = Mine()
    cases = court.said(model=mine, turns=2)
    assert {row.value for one in cases for row in one.ratings} == {0.5} and court.read().teacher == "mine"
    assert len(mine.asked) == sum(len(case.texts) for case in cases_of(court.release, 2))
    court.annotate(model=mine, turns=2)
    assert len(mine.asked) == sum(len(case.texts) for case in cases_of(court.release, 2))
    (court.folder / "mine.yaml").write_text(f"kind: {__name__}:Mine\nparameters: {{value: 0.25}}\n")
    court.annotate(model=court.folder / "mine.yaml", turns=2, name="named")
    named = court.read("named")
    assert {row.value for one in named.cases for row in one.ratings} == {0.25} and named.teacher == f"{__name__}:Mine"


def test_the_folder_says_who_judged_what_by_which_rubric(court: Court, light: Path) -> None:
    court.annotate(turns=2)
    found, rubric = court.read(), load_rubric("teacher")
    assert isinstance(rubric, Rubric) and (found.teacher, found.rubric) == ("judge-1", "teacher")
    shown = found.header["configuration"]
    assert shown["rubric_hash"] == rubric.hash and shown["turns"] == 2
    assert shown["release"]["seal"] == json.loads((light / "manifest.json").read_text())["seal"]
    assert "base_url" not in shown["judge"] and found.header["rubric"]["criteria"][0]["name"] == "understanding"
    with (court.folder / "a" / "outcomes.jsonl").open("a") as stream:
        stream.write("{}\n")
    with pytest.raises(InputError, match="was changed after the annotations were made"):
        court.read()
