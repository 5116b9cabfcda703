"""Judges of whole dialogues: what they are shown of each variant, and nothing of another one."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError, has_faults
from empathy_eval.base.text import words
from empathy_eval.commands.annotate import annotate
from empathy_eval.commands.score import score
from empathy_eval.commands.score_tables import score_table
from empathy_eval.completions.models.custom import TextModel
from empathy_eval.design.contrasts import CELLS, FAR, NEAR, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.design.dataset import read_manifest, read_tables
from empathy_eval.design.judge_prompts import judge_prompts
from empathy_eval.design.prompts import Message
from empathy_eval.design.rubrics import load_rubric, packaged_rubrics
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.evaluation.corpus.pairs import read_dialogues
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.results import ReleaseTables
from empathy_eval.raters.judges.agreeing import PanelOptions, reliability_of
from empathy_eval.raters.judges.annotating import shown_by
from empathy_eval.raters.judges.annotations import ratings_of, read_annotations
from empathy_eval.raters.judges.cases import TEXTS, Case, Conversation, cases_of, dialogues_of, source_of
from empathy_eval.raters.judges.judge import Judge, requests_of
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.verify.annotations import annotation_faults
from empathy_eval.releases.verify.verify import verify

pytestmark = pytest.mark.e2e
WHOLE = ("empathetic-dialogues", "lend-an-ear")
# By dialogue and turn the texts by variant.
Texts = dict[str, dict[int, dict[str, str]]]


@dataclass
class Notes:
    """Asks nobody, and notes the messages of what would be asked."""

    asked: list[list[Message]] = field(default_factory=list)
    samples: int = 1

    async def ask(self, about: Any, messages: list[Message], *_: Any) -> Any:
        self.asked.append(messages)
        return SimpleNamespace(value=None, request_key="") if about.kind == "ideal" else None


def rows_of(release: Path, config: str) -> list[dict[str, Any]]:
    return [row for path in sorted((release / "data" / config).iterdir()) for row in pq.read_table(path).to_pylist()]


@pytest.fixture(scope="module")
def texts(light: Path) -> Texts:
    """All texts of a release, as ``pairs`` and ``controls`` hold them."""
    found: Texts = {}
    for config in ("pairs", "controls"):
        for row in rows_of(light, config):
            some = {name: row[name] for name in TEXTS if name in row}
            found.setdefault(row["dialogue_id"], {}).setdefault(row["turn"], {}).update(some)
    return found


def assembled(release: Path, texts: Texts) -> dict[str, dict[str, Conversation]]:
    """By dialogue and variant all turns, put together from ``dialogues`` and ``pairs``: what a dialogue has whole, and its references."""
    found: dict[str, dict[str, Conversation]] = {}
    for row in rows_of(release, "dialogues"):
        helped = [place for place, turn in enumerate(row["turns"]) if turn["role"] == "helper"]
        mine = texts.get(row["dialogue_id"], {})
        for name in TEXTS:
            if name == "reference" or all(name in mine.get(place, {}) for place in helped):
                said = [mine[place][name] if place in helped and place in mine else turn["text"] for place, turn in enumerate(row["turns"])]
                whole = tuple((turn["role"], text) for turn, text in zip(row["turns"], said, strict=True))
                found.setdefault(row["dialogue_id"], {})[name] = whole
    return found


def by_variant(case: Case) -> dict[str, Conversation]:
    return ({"reference": case.conversation} if case.conversation else {}) | case.conversations


def test_a_dialogue_is_judged_whole_in_each_variant_that_all_its_helper_turns_have(light: Path, texts: Texts) -> None:
    wanted = assembled(light, texts)
    assert {len(one) for one in wanted.values()} >= {5} and {
        case.dialogue_id: by_variant(case) for case in dialogues_of(light, None)
    } == wanted
    some = dialogues_of(light, None, ["reference", "empathetic"])
    assert all([*by_variant(case)] in (["reference", "empathetic"], ["reference"]) for case in some)


def test_a_build_has_the_dialogues_of_its_release(light: Path) -> None:
    built = {case.dialogue_id: by_variant(case) for case in dialogues_of(source_of(light.parent / "build"), None)}
    assert {case.dialogue_id: by_variant(case) for case in dialogues_of(light, None)} == built


def test_without_the_reference_only_dialogues_that_have_a_variant_are_judged(light: Path, texts: Texts) -> None:
    whole = {name for name, some in assembled(light, texts).items() if "apathetic" in some}
    cases = dialogues_of(light, None, ["apathetic"])
    assert {case.dialogue_id for case in cases} == whole and {case.wholes for case in cases} == {("apathetic",)}


def test_dialogues_with_controls_come_first_where_controls_are_asked_for(light: Path, texts: Texts) -> None:
    whole = {name for name, some in assembled(light, texts).items() if "far_apathetic" in some}
    assert len(whole) > 0
    assert {case.dialogue_id for case in dialogues_of(light, len(whole))} == whole


@pytest.mark.parametrize("name", WHOLE)
def test_a_request_is_counted_for_each_variant_and_criterion(name: str, light: Path) -> None:
    rubric, (case, *_) = load_rubric(name), dialogues_of(light, 1)
    assert case.wholes == (None, "apathetic", "empathetic", "near_empathetic", "far_apathetic")
    assert requests_of(rubric, case) == 5 * len(rubric.criteria)


@pytest.mark.parametrize("name", [name for name in packaged_rubrics() if load_rubric(name).kind in ("rating", "reward", "strategies")])
def test_no_request_holds_another_variant_of_a_turn_or_the_name_of_one(name: str, light: Path, texts: Texts) -> None:
    rubric = load_rubric(name)
    prompts, searched = judge_prompts(rubric, load_catalogue()), 0
    for case in dialogues_of(light, None) if rubric.unit == "dialogue" else cases_of(light, None, TEXTS, shown_by(rubric)):
        notes: Any = Notes()
        asyncio.run(Judge(notes, prompts).case(case))
        for messages in notes.asked:
            asked = "\n".join(message["content"] for message in messages)
            assert not [one for one in ("near_empathetic", "far_apathetic", "near-empathetic", "far-apathetic") if one in asked]
            places = texts[case.dialogue_id] if case.turn is None else {case.turn: texts[case.dialogue_id][case.turn]}
            for some in places.values():
                # A text may hold another one whole; what is left once it is taken out must not.
                shown = [text for text in some.values() if text in asked]
                apart = {text for text in shown if not any(text != other and text in other for other in shown)}
                assert len(apart) <= 1, apart
                searched += len(some)
    assert searched


# What comes of it.

# By variant what the judge gives by every criterion: as the stance says, and as it says for near texts alone.
BY_STANCE = {"reference": 3, "apathetic": 1, "empathetic": 5, "near_empathetic": 5, "far_apathetic": 1}
NEAR_ALONE = {"reference": 3, "apathetic": 2, "empathetic": 2, "near_empathetic": 4, "far_apathetic": 2}


def words_of(turns: Conversation) -> str:
    return "\n".join(f"{role}: {text}" for role, text in turns)


class Ruled(TextModel):
    """Gives a dialogue what a rule says of its variant, and any other one the lowest value."""

    in_flight = 1
    parameters: dict[str, Any] = {}

    def __init__(self, release: Path, rule: Mapping[str, int]) -> None:
        self.name = "ruled"
        self._values = {words_of(turns): rule[name] for case in dialogues_of(release, None) for name, turns in by_variant(case).items()}

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        read = messages[1]["content"].partition("\n")[2].strip()
        names = dict.fromkeys(re.findall(r'"criterion": "([^"]+)"', messages[0]["content"]))
        return json.dumps({"analysis": "", "ratings": [{"criterion": name, "value": self._values.get(read, 1)} for name in names]})


def measured_by(release: Path, folder: Path, **more: Any) -> ReleaseTables:
    found = score(release, annotations=[folder], cache=False, **more)
    assert isinstance(found, ReleaseTables)
    return found


@pytest.fixture(scope="module")
def judged(light: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a judge by stance says of all dialogues, and of attacked ones."""
    folder = tmp_path_factory.mktemp("judged") / "a"
    annotate(light, folder, rubric="lend-an-ear", model=Ruled(light, BY_STANCE), turns=None, attacks=["shuffled", "repeated"])
    return folder


def test_the_figures_of_a_judge_follow_from_its_rule(light: Path, judged: Path, tmp_path: Path) -> None:
    table = measured_by(light, judged).dialogues
    assert table and table.with_controls == len({case.dialogue_id for case in dialogues_of(light, None, ["far_apathetic"])})
    rows = {row.metric: row for row in table.controls}
    better = {one.name: one.better for one in load_rubric("lend-an-ear").criteria}
    assert set(rows) == {"length", *(f"ruled/lend-an-ear:{name}" for name in better)}
    for name, side in better.items():
        row = rows[f"ruled/lend-an-ear:{name}"]
        right = 1.0 if side == "high" else 0.0
        assert {one: row.differences[one].accuracy.value for one in (STANCE, STANCE_NEAR, STANCE_FAR)} == dict.fromkeys(  # type: ignore[union-attr]
            (STANCE, STANCE_NEAR, STANCE_FAR), right
        )
        assert row.differences[STANCE].value == 4 and row.pairs == table.with_controls
    folder = tmp_path / "near"
    annotate(light, folder, rubric="empathetic-dialogues", model=Ruled(light, NEAR_ALONE), turns=None)
    found = measured_by(light, folder).dialogues
    assert found
    one = next(row for row in found.controls if row.metric == "ruled/empathetic-dialogues:empathy")
    accuracies = [one.differences[name].accuracy for name in (STANCE, STANCE_NEAR, STANCE_FAR)]
    assert [each and each.value for each in accuracies] == [0.75, 1.0, 0.5]


def test_length_stands_beside_judges_of_dialogues_by_the_words_of_the_helper(light: Path, judged: Path, texts: Texts) -> None:
    table = measured_by(light, judged).dialogues
    assert table
    row = next(row for row in table.inversion if row.metric == "length")
    whole = [case for case in dialogues_of(light, None) if "apathetic" in case.conversations]
    for name in ("apathetic", "empathetic"):
        counts = [sum(len(words(text)) for role, text in case.conversations[name] if role == "helper") for case in whole]
        assert row.scores[name] == pytest.approx(sum(counts) / len(counts), abs=1e-4)
    assert table.dialogues == row.pairs == len(whole)


def test_the_terminal_and_the_table_have_rows_of_dialogues_and_headline_equal_closeness(light: Path, judged: Path) -> None:
    measured = measured_by(light, judged)
    lines = str(score_table(measured)).splitlines()
    head = next(number for number, line in enumerate(lines) if "whole dialogues" in line)
    assert "at equal closeness" in lines[head + 1] and any("ruled/lend-an-ear:validating_emotions" in line for line in lines[head:])
    tables = {one["table"] for one in csv.DictReader(io.StringIO(measured.to_csv()))}
    assert {"whole dialogues, pairs", "whole dialogues, 2x2"} <= tables


def test_attacked_dialogues_have_a_row_each_criterion_and_attack(light: Path, judged: Path) -> None:
    measured = measured_by(light, judged, attacks=[])
    assert measured.attacks
    rows = {(row.metric, row.attack): row for row in measured.attacks.rows}
    high, low = "ruled/lend-an-ear:validating_emotions", "ruled/lend-an-ear:advice_giving"
    whole = len(dialogues_of(light, None, ["apathetic"]))
    for attack in ("shuffled", "repeated"):
        # An attacked dialogue is none that the judge knows, and gets 1: 4 less than the empathetic one, as much as the apathetic one.
        one = rows[high, attack]
        assert (one.whole.eligible, one.whole.rises and one.whole.rises.value, one.whole.falls and one.whole.falls.value) == (
            2 * whole,
            0,
            0.5,
        )
        assert one.whole.change and one.whole.change.value == -2
        # Where less is better the same is a rise.
        assert rows[low, attack].whole.change and rows[low, attack].whole.change.value == 2  # type: ignore[union-attr]


def test_ratings_of_dialogues_are_items_of_their_own_by_variant(judged: Path) -> None:
    items = {item for item, *_ in ratings_of(read_annotations(judged))}
    assert {"003-seed", "003-seed:apathetic", "003-seed:far_apathetic"} <= items and not [one for one in items if "None" in one]


def test_contradictions_are_counted_over_dialogues_in_their_variants(light: Path, judged: Path, tmp_path: Path) -> None:
    whole = [case for case in dialogues_of(light, None) if len(case.wholes) == 5]
    experts, lines = ("e1", "e2", "e3"), ["item,rater,rating,criterion"]
    for case in whole:
        for variant in case.wholes:
            values = (1, 5) if variant in ("apathetic", "far_apathetic") else (5, 1)
            item = f"{case.dialogue_id}:{variant}" if variant else case.dialogue_id
            for name, value in zip(("validating_emotions", "dismissing_emotions"), values, strict=True):
                lines += [f"{item},{one},{value},{name}" for one in experts]
    (tmp_path / "experts.csv").write_text("\n".join(lines) + "\n")
    _, found = reliability_of([tmp_path / "experts.csv", judged], PanelOptions(), ResamplingSettings(10, 0, 1), "interval")
    rows = {(one.high.criterion, one.rater): one for one in found.contradictions}
    # The judge gives both 5 by every criterion where experts see no dismissal: in the two empathetic ones of three that validate.
    one = rows["dismissing_emotions", "ruled"]
    assert (one.count, one.of) == (2 * len(whole), 3 * len(whole)) and all("empathetic" in name for name in one.examples)
    assert rows["validating_emotions", "ruled"].count == 0


def test_the_report_sets_a_judge_of_dialogues_beside_what_shortcuts_reach_there(light: Path, judged: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    release(light.parent / "build", folder, "0.2.0", annotations=[judged], without=["bleu"])
    assert not has_faults(verify(folder))
    worth = read_tables(folder)["judges"]["worth"]["ruled/lend-an-ear"]
    assert worth["unit"] == "dialogue"
    stance = worth["criteria"]["validating_emotions"]["stance"]
    corpus = read_dialogues(folder, CELLS)
    counts = {name: [len(words(text)) for text in some] for name, some in corpus.variants.items()}
    won = [(a > b) + (a == b) / 2 for kind, cold in (NEAR, FAR) for a, b in zip(counts[kind], counts[cold], strict=True)]
    assert stance["judge"]["value"] == 1 and stance["length"]["value"] == pytest.approx(sum(won) / len(won))
    page = (folder / "report" / "index.html").read_text()
    assert "whole dialogue" in page and (folder / "report" / "figures" / "judges_of_dialogues.svg").is_file()


def test_verify_finds_ratings_of_dialogues_that_the_release_does_not_hold(light: Path, judged: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    release(light.parent / "build", folder, "0.2.0", annotations=[judged])
    for path in (folder / "data" / "dialogue_contrasts").iterdir():
        table = pq.read_table(path)
        pq.write_table(table.filter(pc.field("variant") != "far_apathetic"), path)
    found = [one.what for one in annotation_faults(folder, read_manifest(folder))]
    assert found and all("the release has it not all far_apathetic" in one for one in found)


# What is refused.


def without(release: Path, folder: Path, wanted: pc.Expression) -> Path:
    """A copy of a release with some of the rows of whole dialogues alone."""
    copy = Path(shutil.copytree(release, folder))
    for path in (copy / "data" / "dialogue_contrasts").iterdir():
        pq.write_table(pq.read_table(path).filter(wanted), path)
    return copy


def test_ratings_of_dialogues_that_a_release_does_not_hold_whole_are_refused(light: Path, judged: Path, tmp_path: Path) -> None:
    copy = without(light, tmp_path / "r", pc.field("dialogue_id") != "003-seed")
    with pytest.raises(InputError, match='"003-seed" is annotated, but is not a dialogue of this release'):
        measured_by(copy, judged)


def test_a_damaged_file_of_dialogues_is_refused(light: Path, judged: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(light, tmp_path / "r"))
    for path in (copy / "data" / "dialogue_contrasts").iterdir():
        table = pq.read_table(path)
        place = table.schema.get_field_index("variant")
        pq.write_table(table.set_column(place, "variant", pa.nulls(len(table), pa.string())), path)
    with pytest.raises(InputError, match="does not match the data contract|does not hold what the data contract says"):
        measured_by(copy, judged)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"judges": ["ruled/lend-an-air"]}, '(?s)there is no judge "ruled/lend-an-air".*did you mean "ruled/lend-an-ear"'),
        ({"split": "validation"}, "holds no"),
        ({"judges": ["ruled/lend-an-ear:warmth"]}, 'there is no judge "ruled/lend-an-ear:warmth"'),
    ],
)
def test_what_cannot_be_scored_of_dialogues_is_refused(options: dict[str, Any], said: str, light: Path, judged: Path) -> None:
    with pytest.raises(InputError, match=said):
        measured_by(light, judged, **options)


def test_ratings_of_references_alone_are_no_contrast(light: Path, tmp_path: Path) -> None:
    annotate(light, tmp_path / "a", rubric="lend-an-ear", model=Ruled(light, BY_STANCE), turns=None, variants=["reference"])
    with pytest.raises(InputError, match="holds no rating of a text"):
        measured_by(light, tmp_path / "a")


def test_a_release_without_such_dialogues_has_nothing_to_judge_in_a_variant(light: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(light, tmp_path / "r"))
    shutil.rmtree(copy / "data" / "dialogue_contrasts")
    with pytest.raises(InputError, match="holds nothing to judge"):
        annotate(copy, tmp_path / "a", rubric="lend-an-ear", model=Ruled(light, BY_STANCE), turns=None, variants=["far_apathetic"])
    assert all(case.wholes == (None,) for case in dialogues_of(copy, None))


@pytest.mark.parametrize("rubric", ["warmer", "strategies"])
def test_what_rates_nothing_is_not_attacked(rubric: str, light: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rates no replies"):
        annotate(light, tmp_path / "a", rubric=rubric, model=Ruled(light, BY_STANCE), turns=1, attacks=["shuffled"])
