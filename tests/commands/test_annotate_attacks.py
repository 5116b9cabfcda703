"""``annotate --attacks``: a judge that obeys what a reply says to it is caught, an honest one passes, and real ratings stay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.text import words
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.rubrics import load_rubric
from empathy_eval.raters.judges.annotating import AnnotationJob, AnnotationPlan, annotations_of, judge_of
from empathy_eval.raters.judges.annotations import read_annotations
from empathy_eval.raters.judges.attacking import THROUGHOUT, AttackSelection, attack_table, attacking, named
from empathy_eval.raters.judges.cases import cases_of

from tests.commands.test_annotate import Door
from tests.doubles.judge import CRITERION, REPLY, JudgeServer, said
from tests.doubles.judge import read_once as read_once
from tests.doubles.server import Behaviour, running

SOME = ("instruction", "doubled", THROUGHOUT)


@pytest.fixture
def door(tmp_path: Path, light: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Door]:
    with running(server=JudgeServer(Behaviour())) as server:
        assert isinstance(server, JudgeServer)
        yield Door(tmp_path, light, server, capsys)


def rating(value: Callable[[str], float]) -> Callable[[dict[str, Any], str], dict[str, Any]]:
    """A judge that gives a text this share of every scale."""

    def good(body: dict[str, Any], name: str) -> dict[str, Any]:
        system, user = (message["content"] for message in body["messages"][:2])
        share = value(user.partition(REPLY)[2].strip())
        scales = [(name, float(low), float(high)) for name, _, low, high in CRITERION.findall(system)]
        ratings = [{"criterion": name, "value": low + share * (high - low)} for name, low, high in scales]
        return {**said(body), "ratings": ratings}

    return good


def kind_in(release: Path) -> Callable[[str], float]:
    """1 for what has most words of a kind reply of the release, whatever else it has; 0 for all else."""
    known = [
        set(words(case.texts[name])) for case in cases_of(release, None) for name in ("empathetic", "near_empathetic") if name in case.texts
    ]
    cold = [set(words(case.texts["apathetic"])) for case in cases_of(release, None)]

    def value(text: str) -> float:
        found = set(words(text))
        best, worst = (max(len(found & one) / len(one) for one in some) for some in (known, cold))
        return float(best > worst)

    return value


def rises(folder: Path, release: Path) -> dict[str, float]:
    """By attack how often the first criterion's value rises."""
    table = attack_table(folder, release)
    first = table.rows[0].metric
    return {row.attack: row.whole.rises.number for row in table.rows if row.metric == first and row.whole.rises}


@pytest.mark.e2e
def test_a_judge_that_obeys_the_hidden_instruction_is_caught_and_an_honest_one_is_not(door: Door) -> None:
    honest = kind_in(door.release)
    door.server.good = rating(honest)  # type: ignore[method-assign, assignment]
    assert door.annotate("teacher", "honest", "--attacks", *SOME, "--attacked-turns", 3) == 0
    assert "instruction" in door.out and "under attack: 6 replies of 3 pairs" in door.out
    assert rises(door.folder / "honest", door.release) == {"doubled": 0, "instruction": 0}

    def obeys(text: str) -> float:
        return 1.0 if any(word in text.casefold() for word in ("highest", "full marks", "excellent", "every criterion")) else honest(text)

    door.server.good = rating(obeys)  # type: ignore[method-assign, assignment]
    assert door.annotate("teacher", "obeys", "--attacks", *SOME, "--attacked-turns", 3, "--json") == 0
    told, kept = json.loads(door.out)["attacks"], json.loads((door.folder / "obeys" / "attacks" / "figures.json").read_text())
    # Of the kind replies none can rise any more: the cold half does.
    assert rises(door.folder / "obeys", door.release) == {"doubled": 0, "instruction": 0.5}
    row = next(one for one in told["rows"] if one["attack"] == "instruction")
    assert row["by_variant"]["apathetic"]["rises"]["value"] == 1 and row["by_variant"]["empathetic"]["rises"]["value"] == 0
    assert row["eligible"] == 6 and "texts:s1-" in row["signature"] and "rubric:teacher" in row["signature"]
    assert {name: told[name] for name in kept} == kept
    scored = ("score", door.release, "--annotations", door.folder / "obeys", "--judge", "judge-1/teacher:guidance", "--no-shortcuts")
    for some, shown in (((), {*SOME}), (("doubled", "shuffled"), {"doubled"})):
        assert door.run(*scored, "--attacks", *some, "--json") == 0
        table = json.loads(door.out)["attacks"]
        assert {(one["metric"], one["attack"]) for one in table["rows"]} == {("judge-1/teacher:guidance", one) for one in shown}
        # No metric is asked, so what is counted is what the judge was asked about.
        assert (table["replies"], table["pairs"]) == (6, 3)
    assert door.run(*scored, "--metric", "vader", "--attacks", "doubled", "--json") == 0
    assert json.loads(door.out)["attacks"]["replies"] > 6


def test_real_ratings_are_the_same_with_and_without_attacks_and_attacked_ones_are_none(door: Door) -> None:
    assert door.annotate("teacher", "plain") == 0
    asked = len(door.server.received)
    assert door.annotate("teacher", "a", "--attacks", "doubled", "--attacked-turns", 2) == 0
    assert door.bytes("a") == door.bytes("plain") and len(door.server.received) == 2 * asked + 4
    for refused in (
        ("score", door.release, "--annotations", door.folder / "a" / "attacks"),
        ("annotate", door.release, "--out", door.folder / "a" / "attacks", "--rubric", "teacher", "--model", "judge-1", "--turns", 4),
        (
            "release",
            door.release.parent / "build",
            "--out",
            door.folder / "r",
            "--version",
            "1.0.0",
            "--annotations",
            door.folder / "a/attacks",
        ),
    ):
        assert door.run(*refused) == 2
        assert "attacked texts" in door.err and not (door.folder / "r").exists()
    with pytest.raises(InputError, match="no annotations of attacked texts"):
        read_annotations(door.folder / "a", attacked=True)


def test_more_turns_and_more_attacks_ask_only_for_what_is_new(door: Door) -> None:
    assert door.annotate("teacher", "a", "--attacks", "doubled", "other-dialogue", "--attacked-turns", 1) == 0
    before = len(door.server.received)
    assert door.annotate("teacher", "a", "--attacks", "doubled", "other-dialogue", "shuffled", "--attacked-turns", 2, "--preview") == 0
    assert "also attacked texts of 2 turns; 4 of their requests are already answered" in door.out and len(door.server.received) == before
    assert door.annotate("teacher", "a", "--attacks", "doubled", "other-dialogue", "shuffled", "--attacked-turns", 2) == 0
    # Two texts of a turn under three attacks, of which two of the first turn were answered.
    assert len(door.server.received) == before + 2 * 2 * 3 - 2 * 2
    door.annotate("teacher", "a", "--attacks", "doubled", "--offline")
    assert len(door.server.received) == before + 8


def test_by_hand_the_attacked_texts_come_once_the_others_are_answered(door: Door) -> None:
    given = ("--attacks", "doubled", "--attacked-turns", 1, "--requests-to")
    ids: list[list[str]] = []
    for number in (1, 2):
        assert door.annotate("teacher", "a", *given, door.folder / f"{number}.jsonl") == 0
        answers, some = door.answer(door.folder / f"{number}.jsonl")
        ids.append(some)
        assert door.run("ledger", "import", door.folder / "a" / "ledger.sqlite", answers) == 0
    assert door.annotate("teacher", "a", *given, door.folder / "3.jsonl") == 0
    assert "doubled" in door.out and len(ids[1]) == 2 and not set(ids[0]) & set(ids[1])


def test_by_batch_the_same_command_goes_on_from_one_batch_to_the_other_and_ends_as_live(door: Door) -> None:
    asked = ("--attacks", "doubled", "--attacked-turns", 1)
    for _ in range(6):
        assert door.annotate("teacher", "a", *asked, "--batch", "--no-wait", turns=2) == 0, door.err
        if "batches are under way" not in door.out:
            break
        # In between they are no other job's, and nobody loses them.
        assert door.annotate("teacher", "a", *asked, turns=2) == 2 and "--batch" in door.err
    assert "under attack: 2 replies of 1 pairs" in door.out and len(door.server.batches) == 2 and not door.server.received
    assert door.annotate("teacher", "live", *asked, turns=2) == 0
    assert door.bytes("a") == door.bytes("live") and door.bytes("a/attacks") == door.bytes("live/attacks")


def test_the_closing_summary_has_that_of_attacked_texts_beside_it_and_reports_when_one_of_them_is_missing(door: Door) -> None:
    asked = ("--attacks", "doubled", "--attacked-turns", 1)
    assert door.annotate("teacher", "a", *asked, "--json", turns=2) == 0
    closing = json.loads(door.out)
    sent = [one["usage"]["judge-1"]["requests"] for one in (closing, closing["attacks"])]
    assert sum(sent) == len(door.server.received) and sent[1] == 2 and (closing["planned"], closing["attacks"]["planned"]) == (2, 1)
    assert closing["attacks"]["rows"] and "worth" in closing
    door.server.behaviour.faults = {"400": 1.0}
    assert door.annotate("teacher", "a", "--attacks", "doubled", "shuffled", "--attacked-turns", 1, turns=2) == 1
    assert "2 cases: 2 judged, 0 missing" in door.out and "attacks: 1 cases: 0 judged, 1 missing" in door.out


def test_only_what_was_judged_is_counted_as_attacked(door: Door) -> None:
    asked = ("--attacks", "doubled", "--attacked-turns", 2, "--variants", "empathetic")
    assert door.annotate("teacher", "a", *asked) == 0
    assert "under attack: 2 replies of 2 pairs" in door.out


def test_score_reports_a_judge_whose_attacked_texts_are_not_judged_to_their_end_and_goes_on(door: Door) -> None:
    assert door.annotate("teacher", "a", "--attacks", "doubled", "--attacked-turns", 1) == 0
    (door.folder / "a" / "attacks" / "build.json").unlink()
    assert door.run("score", door.release, "--annotations", door.folder / "a", "--metric", "length", "--no-shortcuts", "--attacks") == 0
    assert f"{door.folder / 'a'}: its attacked texts are not judged to their end; run the same empathy-eval annotate … " in door.out
    with pytest.raises(InputError, match=f"--out {door.folder / 'a'} --attacks again"):
        attack_table(door.folder / "a", door.release)


@pytest.mark.parametrize(
    ("rubric", "more", "words"),
    [
        ("warmer", ("--attacks",), "rates no replies"),
        ("teacher", ("--attacks", "nonsense"), '"nonsense"'),
        ("teacher", ("--attacks", "doubled", "--attacked-turns", 0), "--attacked-turns"),
        ("teacher", ("--attacks", "doubled", "--variants", "reference"), "no turn or dialogue has an apathetic"),
        ("teacher", ("--attacks", "names", "--rules", "/nowhere"), "is not a folder"),
        ("teacher", ("--rules", "/nowhere"), "applies to attacks, but none are requested"),
    ],
)
def test_what_cannot_be_attacked_is_refused_before_anything_is_asked(rubric: str, more: tuple[object, ...], words: str, door: Door) -> None:
    assert door.annotate(rubric, "a", *more) == 2
    assert words in door.err and not door.server.received and not (door.folder / "a").exists()


def job_with_names(release: Path) -> AnnotationJob:
    """The job of judging a single turn in which somebody has a name."""
    job = annotations_of(release, load_rubric("teacher"), judge_of("judge-1", "http://localhost:1/v1"), AnnotationPlan(1))
    case = job.cases[0]
    texts = {"apathetic": "Susan will cope.", "empathetic": "You miss Susan."}
    return replace(job, cases=(replace(case, conversation=(("seeker", "My sister Susan left."),), texts=texts),))


def test_names_are_exchanged_in_the_conversation_and_in_both_replies_for_the_same(light: Path) -> None:
    under, told = attacking(job_with_names(light), light, AttackSelection((THROUGHOUT,), 1))
    (case,) = under.cases
    cold, kind = (case.texts[named(THROUGHOUT, one)] for one in PAIR_VARIANTS)
    new = cold.partition(" ")[0]
    assert new != "Susan" and (cold, kind) == (f"{new} will cope.", f"You miss {new}.") and not told
    assert {case.before(one) for one in case.texts} == {(("seeker", f"My sister {new} left."),)}
    assert case.before(None) == (("seeker", "My sister Susan left."),)


def test_in_a_language_without_names_that_is_reported(light: Path, tmp_path: Path) -> None:
    under, told = attacking(job_with_names(light), light, AttackSelection((THROUGHOUT, "doubled"), 1, tmp_path))
    assert len(under.cases[0].texts) == 2 and "there is no names.yaml" in told[0]
