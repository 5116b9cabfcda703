"""Students: losses by hand, a rule of a scripted teacher that comes back, the same bytes every time, and a killed training that goes on."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from empathy_eval.base.errors import InputError
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.design.dataset import COLUMNS, MANIFEST, OPTIONAL, SPLITS, file_of
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.metrics.empathy_score.model import CARD, CHECKSUMS, CONFIG, ENCODER, METRICS, TOKENIZER, WEIGHTS, EmpathyScore
from empathy_eval.metrics.protocol import Segments
from empathy_eval.training.examples import build_examples, read_labelled
from empathy_eval.training.students import TrainingRecord, combined, ranking, regression
from empathy_eval.training.task import TrainingSchedule, TrainingTask
from empathy_eval.training.train import train
from torch.autograd import gradcheck

from tests.doubles.encoders import WORDS, made_encoder

Row = dict[str, Any]
LONG = "LONG" in os.environ
KILLS = 10 if "KILLS" in os.environ else 2
TEACHER = "scripted"
SCHEDULE = TrainingSchedule(max_tokens=32, rate=3e-3, epochs=2, patience=9, save_seconds=0)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


def content_of(reply: str) -> float:
    """What the scripted teacher goes by for content: how much of the reply is warm."""
    return reply.split().count("warm") / 4


def flow_of(reply: str) -> float:
    """And for flow: how much of it is on."""
    return reply.split().count("on") / 4


def drawn_reply(dice: random.Random) -> str:
    said = ["warm"] * dice.randint(0, 4) + ["on"] * dice.randint(0, 4)
    return " ".join(dice.sample(said + dice.choices(WORDS[4:], k=10 - len(said)), 10))


def drawn_rows(many: int, seed: int) -> list[Row]:
    """Pairs of a dialogue each, with random texts."""
    dice = random.Random(seed)
    rows = []
    for number in range(many):
        texts = {name: drawn_reply(dice) for name in ("reference", "apathetic", "empathetic")}
        context = [{"role": "seeker", "text": " ".join(dice.choices(WORDS[4:], k=5))}]
        name = f"{seed:03d}-{number:05d}"
        rows.append({"pair_id": f"{name}-t01", "dialogue_id": name, "scenario_id": 1, "turn": 1, "context": context, **texts})
    return rows


def annotated(rows: list[Row]) -> dict[str, list[Row]]:
    """What the scripted teacher says of pairs: the texts rated, and the empathetic text beside the apathetic one by content."""
    said: dict[str, list[Row]] = {"annotations": [], "comparisons": []}
    for row in rows:
        judged = {"pair_id": row["pair_id"], "teacher": TEACHER, "rubric": "teacher"}
        for variant in ("reference", "apathetic", "empathetic"):
            for criterion, rule in (("content", content_of), ("flow", flow_of)):
                # Two samples whose mean is the rule.
                for sample, off in enumerate((-0.02, 0.02)):
                    value = rule(row[variant]) * 0.9 + 0.05 + off
                    said["annotations"].append({**judged, "variant": variant, "criterion": criterion, "sample": sample, "value": value})
        both = {"variant_1": "apathetic", "variant_2": "empathetic"}
        best = max(both.values(), key=lambda name: content_of(row[name]))
        said["comparisons"].append({**judged, "rubric": "warmer", **both, "sample": 0, "consistent": True, "winner": best})
    return said


def written(folder: Path, rows: list[Row], said: dict[str, list[Row]], manifest: Path) -> Path:
    """A release that holds these pairs in its train split, and of it only what training reads."""
    tables = {"pairs": rows, "controls": [], **said}
    for config, own in tables.items():
        for split in SPLITS:
            path = file_of(folder, config, split)
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(own if split == "train" else [], (COLUMNS | OPTIONAL)[config]), path)
    shutil.copy(manifest, folder / MANIFEST)
    return folder


@pytest.fixture(scope="module")
def taught_by(light: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small release with annotations."""
    rows = drawn_rows(24, 1)
    return written(tmp_path_factory.mktemp("taught") / "release", rows, annotated(rows), light / MANIFEST)


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """What a model is worth is measured elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("empathy_eval.training.train.measure_quality", lambda metric, task, pairs: {
            "trained_on": {"pairs": pairs, "contrasts": [], "splits": []}, "signatures": {}, "splits": {}
        })  # fmt: skip
        yield


@pytest.fixture
def task(taught_by: Path, encoder: Path) -> TrainingTask:
    return TrainingTask(taught_by, teacher=TEACHER, encoder=str(encoder), schedule=SCHEDULE)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_losses_are_what_is_derived_by_hand() -> None:
    assert regression(double(0.7), double(0.9)).item() == pytest.approx(0.04)
    assert ranking(double(0.60), double(0.55), 0.1).item() == pytest.approx(0.05)
    assert combined(regression(double(0.7), double(0.9)), ranking(double(0.60), double(0.55), 0.1), 0.5).item() == pytest.approx(0.065)


def test_gradients_are_the_differences_of_losses() -> None:
    better, worse, target = double(0.6, 0.2, 0.7), double(0.55, 0.5, 0.65), double(0.9, 0.1, 0.3)

    def loss(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return combined(regression(one, target).sum(), ranking(one, other, 0.1).sum(), 0.5)

    assert gradcheck(loss, (better, worse))
    # By hand: 2 (S - S^T) of the single text, -lambda of the winner and lambda of the loser.
    loss(better, worse).backward()  # type: ignore[no-untyped-call]
    assert better.grad is not None and worse.grad is not None
    assert better.grad.tolist() == pytest.approx([-0.6 - 0.5, 0.2 - 0.5, 0.8 - 0.5]) and worse.grad.tolist() == [0.5, 0.5, 0.5]


def test_beyond_the_margin_nothing_is_lost_and_nothing_learned() -> None:
    better, worse = double(0.9, 0.6), double(0.5, 0.45)
    lost = ranking(better, worse, 0.1)
    lost.sum().backward()  # type: ignore[no-untyped-call]
    assert better.grad is not None and worse.grad is not None
    assert lost.tolist() == [0, 0] == better.grad.tolist() == worse.grad.tolist()


def test_a_score_is_both_parts_weighed() -> None:
    class Scripted:
        keep, share, places = False, False, 6

        def parts(self, segments: Segments) -> Any:
            return {"content": np.array([0.6]), "flow": np.array([0.8])}

    release = {"name": "x", "version": "1", "data": "0" * 64}
    config: dict[str, Any] = {"kind": "students", "parts": ["content", "flow"], "release": release, "splits": ["train"], "contrasts": []}
    config = config | {"features": None, "settings": {}, "training_range": {"languages": ["en"], "words": [1, 9], "features": {}}}
    from empathy_eval.metrics.empathy_score.model import ModelFolder

    metric = EmpathyScore.of(ModelFolder("m", Path("m"), config, {}, "0" * 64), Scripted())
    assert metric.score_all(Segments(["a"], [], [])) == pytest.approx([0.7])


def test_a_course_has_all_singles_once_and_pairs_again_and_again_whatever_the_epoch_before() -> None:
    schedule = TrainingSchedule(singles=4, pairs=3)
    steps = schedule.steps_of(1, 10, 5)
    assert [len(singles) for singles, _ in steps] == [4, 4, 2] and sorted(one for singles, _ in steps for one in singles) == list(range(10))
    pairs = [one for _, some in steps for one in some]
    assert len(pairs) == 9 and sorted(pairs[:5]) == list(range(5)) and steps == schedule.steps_of(1, 10, 5) != schedule.steps_of(2, 10, 5)
    assert (
        sorted(one for _, some in schedule.steps_of(0, 0, 5) for one in some) == list(range(5)) and schedule.steps_of(0, 3, 0)[0][1] == []
    )


def test_the_rate_rises_over_a_tenth_and_falls_to_nothing() -> None:
    rates = [TrainingSchedule(rate=1.0).rate_at(step, 20) for step in range(20)]
    assert rates[:3] == [0.5, 1.0, 1.0] and rates[-1] == pytest.approx(1 / 18) and sorted(rates[2:], reverse=True) == rates[2:]


def test_a_course_ends_after_epochs_that_bring_nothing_and_the_best_one_counts() -> None:
    record = TrainingRecord()
    assert [record.add(worth) for worth in (0.6, 0.7, 0.7)] == [True, True, False]
    assert record.best == 1 and not record.ended(2) and record.ended(1)
    unknown = TrainingRecord()
    assert [unknown.add(None), unknown.add(None)] == [True, True] and not unknown.ended(1)


def test_single_texts_are_means_over_samples_and_a_comparison_teaches_only_what_the_values_do_not_deny(
    task: TrainingTask, taught_by: Path
) -> None:
    lessons = build_examples(task)
    rows = pq.read_table(file_of(taught_by, "pairs", "train")).to_pylist()
    assert len(lessons.singles) == 72 and lessons.parts == ("content", "flow")
    for one in lessons.singles:
        assert one.targets == pytest.approx((content_of(one.reply) * 0.9 + 0.05, flow_of(one.reply) * 0.9 + 0.05))
    expected = {}
    for row in rows:
        best, worst = sorted((row["apathetic"], row["empathetic"]), key=lambda text: -content_of(text))
        expected[best, worst] = (True, flow_of(best) >= flow_of(worst))
    assert {(one.winner, one.loser): one.parts for one in lessons.pairs} == expected
    assert {one.parts for one in lessons.pairs} == {(True, True), (True, False)}


def with_strategies(taught_by: Path, folder: Path, odd: Row | None = None) -> Path:
    """The release where the teacher named the second strategy for empathetic texts, and the first one for all others."""
    first, second, *_ = (one.name for one in load_taxonomy().strategies)
    ideal = [0.2, 0.8, *[0.0] * 13]
    said = [
        {"pair_id": row["pair_id"], "teacher": TEACHER, "rubric": "strategies", "sample": sample, "ideal": share, "variant": variant,
         "named": second if variant == "empathetic" else first, **(odd or {})}
        for row in pq.read_table(file_of(taught_by, "pairs", "train")).to_pylist()
        for variant in ("reference", "apathetic", "empathetic")
        # In the second sample the first strategy is half as likely as the second: 0.25 and 0.5 have the mean 0.375.
        for sample, share in enumerate((ideal, [0.25, 0.5, 0.25, *[0.0] * 12]))
    ]  # fmt: skip
    shutil.copytree(taught_by, folder)
    for split in SPLITS:
        (path := file_of(folder, "strategies", split)).parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(said if split == "train" else [], OPTIONAL["strategies"]), path)
    return folder


def test_flow_by_strategy_is_the_share_of_the_named_strategy_in_the_likeliest(task: TrainingTask, taught_by: Path, tmp_path: Path) -> None:
    task = replace(task, release=with_strategies(taught_by, tmp_path / "r"), schedule=replace(SCHEDULE, flow="strategy"))
    lessons, rows = build_examples(task), pq.read_table(file_of(taught_by, "pairs", "train")).to_pylist()
    empathetic = {row["empathetic"] for row in rows}
    assert {(one.reply in empathetic, one.targets[1]) for one in lessons.singles} == {(True, 1.0), (False, 0.375)}
    assert all(one.targets[0] == pytest.approx(content_of(one.reply) * 0.9 + 0.05) for one in lessons.singles)
    assert {one.parts for one in lessons.pairs} == {(True, True), (True, False)}


@pytest.mark.parametrize(
    ("odd", "said"),
    [({"named": "Others"}, "has no valid strategy"), ({"ideal": [0.0] * 15}, "has no valid strategy"),
     ({"ideal": [1.0]}, "has no valid strategy"), ({"teacher": "another"}, "by 0 rubrics")],
)  # fmt: skip
def test_strategies_that_there_are_not_teach_nothing(task: TrainingTask, taught_by: Path, tmp_path: Path, odd: Row, said: str) -> None:
    task = replace(task, release=with_strategies(taught_by, tmp_path / "r", odd), schedule=replace(SCHEDULE, flow="strategy"))
    with pytest.raises(InputError, match=said):
        build_examples(task)
    with pytest.raises(InputError, match="needs the strategies"):
        build_examples(replace(task, teacher=None))


def changed(taught_by: Path, folder: Path, config: str, change: Callable[[list[Row]], list[Row]]) -> Path:
    shutil.copytree(taught_by, folder)
    path = file_of(folder, config, "train")
    pq.write_table(pa.Table.from_pylist(change(pq.read_table(path).to_pylist()), (COLUMNS | OPTIONAL)[config]), path)
    return folder


def test_comparisons_that_hang_on_the_order_change_nothing(task: TrainingTask, taught_by: Path, tmp_path: Path) -> None:
    odd = {"consistent": False, "winner": None, "variant_1": "apathetic", "variant_2": "reference", "teacher": TEACHER, "rubric": "warmer"}

    def more(rows: list[Row]) -> list[Row]:
        ties = [{"pair_id": row["pair_id"], "sample": 1, **odd} for row in rows]
        others = [{**row, "teacher": "another", "winner": row["variant_1"]} for row in rows]
        return random.Random(2).sample([*rows, *ties, *others], 3 * len(rows))

    release = changed(taught_by, tmp_path / "release", "comparisons", more)
    known, found = build_examples(task), build_examples(replace(task, release=release))
    assert found.data.rows == known.data.rows and found.data.sha256 != known.data.sha256
    assert replace(found, data=known.data) == known


@pytest.mark.e2e
@pytest.mark.parametrize("shared", [False, True])
def test_two_trainings_give_the_same_weights_in_any_order_of_rows(
    task: TrainingTask, taught_by: Path, tmp_path: Path, shared: bool
) -> None:
    task = replace(task, schedule=replace(SCHEDULE, shared=shared))
    train(task, "students", tmp_path / "one")
    torch.manual_seed(99)
    release = changed(taught_by, tmp_path / "release", "annotations", lambda rows: rows[::-1])
    made = train(replace(task, release=release), "students", tmp_path / "other")
    # Only what names the files that were read knows that they are others.
    assert {name for name, data in files(tmp_path / "other").items() if data != files(tmp_path / "one")[name]} == {CONFIG, CARD, CHECKSUMS}
    # 72 single texts are three steps an epoch.
    losses = json.loads((tmp_path / "one" / METRICS).read_text())["training"]["losses"]
    assert set(losses) == {"loss", *(f"{part} {kind}" for part in ("content", "flow") for kind in ("regression", "ranking"))}
    assert all(len(one) == 6 for one in losses.values()) and losses["loss"][-1] < losses["loss"][0]
    assert losses["loss"][0] == pytest.approx(
        sum(some[0] * (0.5 if "ranking" in name else 1) for name, some in losses.items() if name != "loss"), abs=1e-5
    )
    assert made.config["parts"] == ["content", "flow"] and made.config["contrasts"] == [] and made.config["settings"]["teacher"] == TEACHER
    assert not list(tmp_path.glob(".*")), "no checkpoint is left"


@pytest.mark.e2e
def test_every_objective_and_no_teacher_teach(task: TrainingTask, tmp_path: Path) -> None:
    found = set()
    asked = [("both", TEACHER), ("regression", TEACHER), ("ranking", TEACHER), ("both", None)]
    for number, (objective, teacher) in enumerate(asked):
        own = replace(task, teacher=teacher, schedule=replace(SCHEDULE, epochs=1, objective=objective))
        made = train(own, "students", tmp_path / str(number))
        assert made.config["parts"] == (["content", "flow"] if teacher else ["content"])
        assert made.config["settings"]["objective"] == ("ranking" if teacher is None else objective)
        found.add((tmp_path / str(number) / WEIGHTS).read_bytes())
    assert len(found) == 4 and made.config["contrasts"] == ["reference>apathetic"]


def recovered(task: TrainingTask, tmp_path: Path, rows: list[Row]) -> dict[str, float]:
    """By part how far the scores of a trained model go with the rule, on texts that it has not seen."""
    train(task, "students", tmp_path / "model")
    segments = Segments([row["reference"] for row in rows], [""] * len(rows), [row["context"] for row in rows])
    rules = {"content": content_of, "flow": flow_of}
    return {
        part: float(
            np.corrcoef(EmpathyScore(str(tmp_path / "model"), part=part).score_all(segments), [rule(one) for one in segments.texts])[0, 1]
        )
        for part, rule in rules.items()
    }


@pytest.mark.e2e
@pytest.mark.sampled
def test_a_rule_of_a_scripted_teacher_comes_back_part_by_part(task: TrainingTask, light: Path, tmp_path: Path) -> None:
    rows = drawn_rows(2000 if LONG else 80, 2)
    release = written(tmp_path / "release", rows, annotated(rows), light / MANIFEST)
    schedule = replace(SCHEDULE, rate=3e-3 if LONG else 1e-2, epochs=3 if LONG else 6, save_seconds=60)
    found = recovered(replace(task, release=release, schedule=schedule), tmp_path, drawn_rows(200, 3))
    assert min(found.values()) >= 0.9, found


def stopped(task: TrainingTask, out: Path, moment: Callable[[int], None]) -> int:
    """The status of a process that trains, and in which ``moment`` is called after every step."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            train(replace(task, progress=moment), "students", out)
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def kills(many: int) -> Iterator[Callable[[int], None]]:
    """Deaths after so many steps, or at a moment that nobody chose."""
    for number in range(many):
        left = [random.Random(number).randint(1, 6)]

        def after(lessons: int, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def amid(lessons: int, number: int = number) -> None:
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            signal.setitimer(signal.ITIMER_REAL, random.Random(number).random() / 20)

        yield amid if number % 3 == 2 else after


@pytest.mark.e2e
@pytest.mark.sampled
def test_kills_change_no_byte(task: TrainingTask, tmp_path: Path) -> None:
    train(task, "students", tmp_path / "whole")
    killed = 0
    for moment in kills(KILLS):
        killed += stopped(task, tmp_path / "killed", moment) == signal.SIGKILL
    begun = list(tmp_path.glob(".killed.checkpoint/*"))
    train(task, "students", tmp_path / "killed")
    assert killed >= KILLS // 2 and begun and files(tmp_path / "killed") == files(tmp_path / "whole")


@pytest.mark.e2e
def test_a_checkpoint_of_other_settings_or_a_broken_one_is_passed_over(task: TrainingTask, tmp_path: Path) -> None:
    train(task, "students", tmp_path / "whole")
    out, folder, other, steps = (
        tmp_path / "out",
        tmp_path / ".out.checkpoint",
        replace(task, schedule=replace(SCHEDULE, seed=7)),
        list[int](),
    )

    def stop(lessons: int) -> None:
        steps.append(lessons)
        # Texts are told of first, then three steps.
        if len(steps) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(replace(other, progress=stop), "students", out)
    assert (folder / "state.safetensors").is_file()
    train(task, "students", out)
    assert files(out) == files(tmp_path / "whole")
    folder.mkdir()
    (folder / "state.safetensors").write_bytes(b"broken")
    train(task, "students", out)
    assert files(out) == files(tmp_path / "whole")


def also(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["context,reply,label,source,licence", *rows]) + "\n")
    return path


def test_further_labels_are_targets_of_content_and_their_sources_are_reported(task: TrainingTask, tmp_path: Path) -> None:
    path = also(
        tmp_path / "more.csv", '"seeker: now\nhelper: so\nso then\nseeker: off",warm it is,0.75,Ours,CC0', ",cold it is,0,Theirs,CC BY 4.0"
    )
    lessons = build_examples(replace(task, teacher=None, also=(path,)))
    assert [(one.context, one.reply, one.targets) for one in lessons.singles] == [
        ("", "cold it is", (0.0,)), ("Seeker: now\nHelper: so so then\nSeeker: off", "warm it is", (0.75,))
    ]  # fmt: skip
    told = [one.targets for one in build_examples(replace(task, also=(path,))).singles]
    assert (0.75, None) in told and len(told) == 74
    made = train(replace(task, also=(path,), schedule=replace(SCHEDULE, epochs=1)), "students", tmp_path / "model")
    assert {"name": "Theirs", "licence": "CC BY 4.0"} in made.config["sources"] and made.config["settings"]["also"]["rows"] == 2
    assert "- Ours (CC0)" in (tmp_path / "model" / "README.md").read_text()


def test_messages_of_a_chat_are_a_context_of_labelled_data(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "so, now"}, {"role": "assistant", "content": "and?"}]
    cell = json.dumps(messages).replace('"', '""')
    path = also(
        tmp_path / "more.csv", f'"{cell}",warm,1,Ours,CC0', '"User: so, now\nassistant: and?",warm,1,Ours,CC0', "[sighs],warm,1,Ours,CC0"
    )
    one, other, text = (row.context for row in read_labelled([path]))
    assert one == other == [{"role": "seeker", "text": "so, now"}, {"role": "helper", "text": "and?"}]
    assert text == [{"role": "seeker", "text": "[sighs]"}]
    odd = json.dumps([{"role": "system", "content": "x"}]).replace('"', '""')
    with pytest.raises(
        InputError, match=r'line 2: context\[0\]: role: "system" is not known\n  Fix: use one of seeker, helper, user, assistant'
    ):
        read_labelled([also(tmp_path / "odd.csv", f'"{odd}",warm,1,Ours,CC0')])


def test_all_that_is_wrong_with_labels_is_reported_at_once(task: TrainingTask, tmp_path: Path) -> None:
    one = also(tmp_path / "one.csv", ",warm,1.5,Ours,CC0", ",warm,much,Ours,CC0", ",,0.5,,CC0", "too,few")
    other = tmp_path / "other.csv"
    other.write_text("reply,label\n")
    empty = also(tmp_path / "empty.csv")
    with pytest.raises(InputError) as error:
        build_examples(replace(task, also=(one, other, empty)))
    said = str(error.value)
    assert len(error.value.problems) == 7 and "one.csv: line 2: label" in said and '"much"' in said and "line 5: has 2 cells" in said
    two = also(tmp_path / "two.csv", ",warm,1,Ours,CC0", ",warm,1,Ours,MIT")
    with pytest.raises(InputError, match='"Ours" is under "CC0" and "MIT"'):
        build_examples(replace(task, also=(two,)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"teacher": "nobody"}, f'has no annotations of "nobody" by the rubric "teacher" in train(.|\n)*name one who rated it: {TEACHER}'),
        ({"teacher": None, "schedule": replace(SCHEDULE, objective="regression")}, "has no values to fit in train"),
        ({"schedule": replace(SCHEDULE, max_tokens=65)}, "--max-tokens: 65 is out of range(.|\n)*from 8 to 64"),
    ],
)
def test_what_cannot_be_taught_is_refused_with_words(task: TrainingTask, tmp_path: Path, change: Row, said: str) -> None:
    with pytest.raises(InputError, match=said):
        train(replace(task, **change), "students", tmp_path / "model")


def with_first(change: Row) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [{**rows[0], **change}, *rows[1:]]


def test_values_and_texts_that_cannot_be_are_refused(task: TrainingTask, taught_by: Path, tmp_path: Path) -> None:
    odd: list[tuple[str, Row, str]] = [
        ("annotations", {"value": 1.2}, "has the value 1.2 of content"),
        ("annotations", {"variant": "far_apathetic"}, 'has annotations of "far_apathetic" of 001-00000-t01, but no such text'),
        ("comparisons", {"winner": "reference"}, 'with the unknown winner "reference"'),
        ("annotations", {"value": None}, 'the column "value" does not hold'),
    ]
    for number, (config, change, said) in enumerate(odd):
        release = changed(taught_by, tmp_path / str(number), config, with_first(change))
        with pytest.raises(InputError, match=said):
            build_examples(replace(task, release=release))


@pytest.fixture(scope="module")
def model(taught_by: Path, encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "students"
    train(TrainingTask(taught_by, teacher=TEACHER, encoder=str(encoder), schedule=replace(SCHEDULE, epochs=1)), "students", out)
    return out


def sealed(model: Path) -> Path:
    lines = sorted((path.name, digest_bytes(path.read_bytes())) for path in model.iterdir() if path.name != CHECKSUMS)
    (model / CHECKSUMS).write_text("".join(f"{sha256}  {name}\n" for name, sha256 in lines))
    return model


def test_students_are_scored_from_their_folder_alone_and_alike_in_any_company(model: Path, tmp_path: Path) -> None:
    metric = EmpathyScore(str(model))
    contexts = [[{"role": "seeker", "text": "so now"}], [], [{"role": "seeker", "text": "the " * 90}, {"role": "helper", "text": "it is"}]]
    segments = Segments(["warm on", "", "cold " * 70], [""] * 3, contexts)
    found = metric.score_all(segments)
    assert ((found > 0) & (found < 1)).all() and metric.keep and metric.places == 4
    assert [metric.score_all(segments.take([row]))[0] for row in range(3)] == pytest.approx(found.tolist(), abs=1e-5)
    parts = [EmpathyScore(str(model), part=part).score_all(segments) for part in ("content", "flow")]
    assert found == pytest.approx(sum(parts) / 2) and EmpathyScore(str(model), alpha=1).score_all(segments) == pytest.approx(parts[1])
    assert len(metric.score_all(Segments([], [], []))) == 0


def test_a_folder_that_does_not_hold_students_is_refused(model: Path, tmp_path: Path) -> None:
    def copy(name: str, change: Callable[[Path], object]) -> str:
        folder = shutil.copytree(model, tmp_path / name)
        change(folder)
        with pytest.raises(InputError) as error:
            EmpathyScore(str(sealed(folder)))
        return str(error.value)

    shape = json.loads((model / ENCODER).read_text())
    config = json.loads((model / CONFIG).read_text())
    assert "does not name" in copy("gone", lambda one: (one / ENCODER).unlink())
    assert "weights of another shape" in copy("large", lambda one: (one / ENCODER).write_text(json.dumps({**shape, "vocab_size": 10**9})))
    assert "is not the shape of an encoder" in copy("none", lambda one: (one / ENCODER).write_text("[]"))
    deep = json.dumps({**shape, "num_hidden_layers": 1_000_000})
    assert "is not the shape of an encoder" in copy("deep", lambda one: (one / ENCODER).write_text(deep))
    assert "cannot be read" in copy("words", lambda one: (one / TOKENIZER).write_text("{}"))
    config["settings"]["max_tokens"] = 600
    assert "takes 600 tokens" in copy("most", lambda one: (one / CONFIG).write_text(json.dumps(config)))
    folder = shutil.copytree(model, tmp_path / "changed")
    (folder / TOKENIZER).write_bytes((folder / TOKENIZER).read_bytes() + b" ")
    with pytest.raises(InputError, match=r"tokenizer\.json: was changed"):
        EmpathyScore(str(folder))


def test_an_encoder_that_is_none_or_asks_for_code_is_refused(task: TrainingTask, encoder: Path, tmp_path: Path) -> None:
    for name, said in (("model.safetensors", "holds no model.safetensors"), ("tokenizer.json", "holds no tokenizer.json")):
        folder = shutil.copytree(encoder, tmp_path / name)
        (folder / name).unlink()
        with pytest.raises(InputError, match=said):
            train(replace(task, encoder=str(folder)), "students", tmp_path / "model")
    folder = shutil.copytree(encoder, tmp_path / "code")
    config = json.loads((folder / "config.json").read_text())
    for change, said in (
        ({"auto_map": {"AutoModel": "code.Model"}}, "requires custom code"),
        ({"hidden_size": None}, "does not describe an encoder"),
        ({"num_hidden_layers": 1_000_000}, "at most 1,000 of these"),
    ):
        (folder / "config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(InputError, match=said):
            train(replace(task, encoder=str(folder)), "students", tmp_path / "model")


def test_a_model_over_a_frozen_encoder_is_the_same_every_time_and_refused_with_another_encoder(
    taught_by: Path, encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "models"
    shutil.copytree(encoder, home / "tiny")
    task = TrainingTask(taught_by, encoder=str(home / "tiny"))
    made = train_here(task, tmp_path / "model", monkeypatch, home)
    assert made["config"]["encoder"] == {"name": "tiny", "sha256": digest_bytes((encoder / "model.safetensors").read_bytes())}
    again = train_here(task, tmp_path / "again", monkeypatch, home)
    assert again["files"] == made["files"]
    segments = Segments(["warm on", "cold off", ""], [""] * 3, [[{"role": "seeker", "text": "so now"}], [], []])
    found = EmpathyScore(str(tmp_path / "model")).score_all(segments)
    assert ((found > 0) & (found < 1)).all()
    # Another tokenizer, another encoder, and none.
    (home / "tiny" / "tokenizer.json").write_text((encoder / "tokenizer.json").read_text() + " ")
    with pytest.raises(InputError, match="holds another one"):
        EmpathyScore(str(tmp_path / "model"))
    made_encoder(home / "tiny", seed=2)
    with pytest.raises(InputError, match="which is not available"):
        EmpathyScore(str(tmp_path / "model"))


def train_here(task: TrainingTask, out: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Row:
    monkeypatch.setenv("EMPATHY_EVAL_MODELS", str(home))
    made = train(task, "encoder", out)
    return {"config": made.config, "files": files(out)}
