"""Why a text is so: what is shown of it is what its release and its ledger hold, whatever became of it."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from empathy_eval.base.errors import EmpathyEvalError, InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest
from empathy_eval.base.tabular import TableWriter
from empathy_eval.commands.build import build as build_with_checks
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import Completion, Flaw, Request
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.dataset import OPTIONAL, file_of, split_of
from empathy_eval.design.prompts import Prompts, load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.generation.checks.custom import Check
from empathy_eval.generation.outcomes import Scene, Turn
from empathy_eval.releases.assemble import build_definitions as under
from empathy_eval.releases.assemble.write import release as write
from empathy_eval.releases.inspect.recipe_from_manifest import rebuild_recipe
from empathy_eval.releases.inspect.show import InspectionInputs, rejected, show
from empathy_eval.releases.inspect.shown import RefusedText, ShownItem
from empathy_eval.releases.inspect.texts import unknown_id

from tests.conftest import copy_world, demo_file
from tests.doubles.marred import NO_JSON, ODD, OFF_SCHEMA, REASON, REFUSAL, REFUSED, REJECTED, REPAIRED, WITHDRAWN
from tests.doubles.models import Recorder


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """What every look reads anew is read once."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("load_catalogue", "load_prompts"):
            patch.setattr(under, name, cache(getattr(under, name)))
        yield


def name_of(place: tuple[str, int]) -> str:
    return f"{place[0]}-t{place[1]:02d}"


@pytest.fixture
def release(marred: Path) -> Path:
    return marred / "release"


@pytest.fixture
def build(marred: Path) -> Path:
    return marred / "build"


@pytest.fixture
def beside(marred: Path) -> InspectionInputs:
    return InspectionInputs(ledger=marred / "build" / "ledger.sqlite", scenarios=marred / "scenarios")


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


def as_it_was(one: RefusedText) -> tuple[str | None, tuple[str, ...], str | None]:
    return one.request_key, one.reasons, one.text


def answers(beside: InspectionInputs) -> dict[str, tuple[str, str]]:
    assert beside.ledger
    with Ledger(beside.ledger, create=False, write=False) as ledger:
        return {row[0]: (completion.text, completion.finish) for row, completion in ledger.rows()}


@pytest.mark.e2e
def test_every_released_text_is_shown_with_the_request_whose_key_it_has_and_the_answer_of_the_ledger(
    release: Path, beside: InspectionInputs
) -> None:
    there = answers(beside)
    asked = [one for one in rows(release / "provenance.parquet") if one["request_key"]]
    assert len(asked) > 15
    for row in asked:
        shown = show(release, row["request_key"][:20], beside)
        (one,) = shown.requests
        assert (one.key, one.text, one.finish) == (row["request_key"], *there[row["request_key"]])
        assert digest({"body": one.body, "endpoint": one.endpoint, "sample": one.sample}) == one.key
        assert one.verdict == "taken" and not one.note and shown.status == "released"
        if row["pair_id"]:
            (text,) = [text.text for text in shown.texts if text.name == row["what"]]
            assert text == json.loads(one.text or "")["text"] and all(figure.holds for text in shown.texts for figure in text.figures)


def test_the_figures_of_a_pair_are_those_of_its_row(release: Path, beside: InspectionInputs) -> None:
    path = file_of(release, "controls", split_of("017-seed"))
    for row in rows(path):
        shown = show(release, row["pair_id"], beside)
        figures = {text.name: {one.name: one.value for one in text.figures} for text in shown.texts}
        assert figures["apathetic"]["edit ratio"] == pytest.approx(row["apathetic_edit_ratio"], abs=1e-4)
        assert figures["empathetic"]["overlap"] == pytest.approx(row["empathetic_overlap"], abs=1e-4)
        assert figures["far_apathetic"]["toxicity (alt-profanity-check)"] == row["far_apathetic_toxicity"]
        assert [text.text for text in shown.before] == [turn["text"] for turn in row["context"]]
        assert {text.name: text.text for text in shown.texts} == {
            name: row[name] for name in ("reference", "apathetic", "empathetic", "near_empathetic", "far_apathetic")
        }
    assert rows(path)


def test_a_repaired_text_is_shown_with_the_answer_before_and_the_words_against_it(build: Path, beside: InspectionInputs) -> None:
    shown = show(build, f"{name_of(REPAIRED)}/empathetic", beside)
    bad, good = shown.requests
    assert (bad.verdict, bad.repair, good.verdict, good.repair) == ("refused", False, "taken", True)
    assert [reason for reason, _ in bad.reasons] == ["overlap_high"] and not all(one.holds for one in bad.figures)
    assert good.text and json.loads(good.text)["text"] == shown.texts[-1].text and good.body
    assert bad.text in [message["content"] for message in good.body["messages"]]
    assert [text.reasons for text in shown.refused] == [("overlap_high",)]


def test_a_refused_text_is_shown_with_every_answer_and_why_its_pair_is_left_out(
    build: Path, release: Path, beside: InspectionInputs
) -> None:
    for folder in (build, release):
        shown = show(folder, f"{name_of(REFUSED)}/empathetic", beside)
        assert [(one.text, one.finish, one.reasons[0][0]) for one in shown.requests] == [(REFUSAL, "refusal", "finish_refusal")] * 4
        assert "far_empathetic" in shown.why[0] and [one.name for one in shown.texts] == ["reference"]
    assert "far_empathetic: no text of it" in show(release, name_of(REFUSED), InspectionInputs(scenarios=beside.scenarios)).why[0]
    odd = show(build, f"{name_of(ODD)}/far_empathetic", beside)
    assert [(one.text, one.reasons[0][0]) for one in odd.requests[:2]] == [(NO_JSON, "not_json"), (OFF_SCHEMA, "schema")]
    assert (odd.requests[2].sample, odd.requests[2].verdict) == (1, "taken")


def test_a_text_by_rules_names_them_and_asked_nobody(build: Path, release: Path, beside: InspectionInputs) -> None:
    made = {one["pair_id"] for one in rows(release / "provenance.parquet") if one["method"] == "rules"}
    assert made
    for folder in (build, release):
        for pair in made:
            shown = show(folder, f"{pair}/apathetic", beside)
            assert "rules/apathetic.yaml, no model was asked" in shown.texts[-1].origin and '" became "' in shown.texts[-1].origin
            assert not shown.requests and shown.texts[-1].request_key is None


def test_a_seed_is_told_as_what_it_is(light: Path, catalogue: object) -> None:
    shown = show(light, "017-seed-t05")
    assert all("a seed" in text.origin and "no model was asked" in text.origin for text in shown.texts)


def test_a_variant_is_named_as_in_the_data_and_a_seeker_has_none(light: Path) -> None:
    assert show(light, "017-seed-t05/apathetic").name == "017-seed-t05/apathetic"
    assert show(light, "017-seed-t04/empathetic").why == ("this is a turn of the seeker: only turns of the helper have variants",)


def test_a_text_by_rules_that_are_not_here_is_said_to_be_so(light: Path, tmp_path: Path) -> None:
    manifest = json.loads((light / "manifest.json").read_text())
    said = manifest["configuration"]
    checks, report = {**said["checks"], "toxicity": "none"}, {name: one for name, one in said["report"].items() if name != "shortcuts"}
    configuration = {**said, "language": "de", "near_apathetic": "model", "checks": checks, "report": report}
    folder = altered(light, tmp_path, configuration=configuration)
    path = folder / "provenance.parquet"
    table = pq.read_table(path)
    made = pa.array(["rules"] * len(table))
    pq.write_table(table.set_column(table.schema.get_field_index("method"), table.schema.field("method"), made), path)
    rules = shutil.copytree(data_folder("rules"), tmp_path / "rules", ignore=shutil.ignore_patterns("apathetic.yaml"))
    said = [{"name": name, "patterns": [[{"LOWER": "who"}]]} for name in ("opening", "first_person")]
    (rules / "description.yaml").write_text(json.dumps(said))
    shown = show(folder, "017-seed-t05/apathetic", InspectionInputs(rules=rules))
    assert "made by rules" in shown.texts[-1].origin and not any("nothing is checked" in one for one in shown.notes)
    # Without them the folder that has them is asked for.
    assert any("give the folder of these rules with --rules" in one for one in show(folder, "017-seed-t05").notes)


def test_hostile_ids_and_columns_are_refused_in_words(light: Path, tmp_path: Path) -> None:
    for odd in ("017-²", "017-", f"017-{'9' * 5000}"):
        assert "017-seed" in str(unknown_id("017-00042", "it", [odd, "017-seed"]))
    folder = altered(light, tmp_path)
    path = folder / "provenance.parquet"
    table = pq.read_table(path)
    pq.write_table(table.append_column(table.schema.field("pair_id"), table["pair_id"]), path)
    with pytest.raises(InputError, match=r'provenance\.parquet: has the column "pair_id" twice'):
        show(folder, "017-seed-t05")


def test_what_was_withdrawn_rejected_or_never_planned_is_told(build: Path, release: Path, beside: InspectionInputs) -> None:
    for folder in (build, release):
        shown = show(folder, WITHDRAWN, beside)
        assert shown.status == "left out" and shown.why[0] == f"withdrawn on 2026-02-28 (error): {REASON}"
        assert show(folder, f"{WITHDRAWN}-t01", beside).status == "left out"
        lost = show(folder, REJECTED, beside)
        assert [one for one in lost.why if "refused" in one] == ["all samples were refused: turn_count"] and [
            one.verdict for one in lost.requests
        ] == ["refused"] * 4
        with pytest.raises(InputError, match=r"017-00042.* is not in .*\n.*017-seed"):
            show(folder, "017-00042", beside)
        with pytest.raises(InputError, match="017-seed has 14 turns"):
            show(folder, "017-seed-t99", beside)


def test_duplicates_and_what_reviewers_removed_are_left_out_and_why(release: Path, beside: InspectionInputs, tmp_path: Path) -> None:
    changed = altered(release, tmp_path, duplicates={"003-seed": "017-seed"})
    removed = [{"dialogue_id": "007-seed", "remove": 2, "keep": 1, "reasons": ["it names somebody"]}]
    manifest = json.loads((changed / "manifest.json").read_text())
    manifest["withdrawn"], manifest["reviews"] = [], {**REVIEWS, "removed": removed}
    (changed / "manifest.json").write_text(json.dumps(manifest))
    assert show(changed, "003-seed", beside).why[0] == "a near-duplicate of 017-seed, which is kept"
    shown = show(changed, "007-seed", beside)
    assert shown.why[0] == "removed by review: 2 of 3 raters say so: it names somebody" and any("--reviews" in one for one in shown.notes)
    assert {one.reasons for one in rejected(changed, inputs=beside)} >= {("duplicate",), ("removed_by_review",)}


REVIEWS: dict[str, Any] = {
    "record": "0" * 64, "releases": [], "raters": 3, "judgements": 3, "removed": [], "changed_since": [], "ratings": [], "kappa": {},
    "signature": "s",
}  # fmt: skip


def altered(release: Path, folder: Path, **changes: Any) -> Path:
    """A release whose manifest says something else: no seal is looked at here."""
    shutil.copytree(release, folder / "altered")
    path = folder / "altered" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path.parent


def test_where_the_key_does_not_fit_any_more_it_says_what_is_another_and_shows_what_the_ledger_has(
    build: Path, release: Path, beside: InspectionInputs, tmp_path: Path
) -> None:
    templates = shutil.copytree(data_folder("prompt_templates"), tmp_path / "templates")
    path = templates / "far_empathetic.md.j2"
    path.write_text(path.read_text().replace("{% block user %}", "{% block user %}Well. ", 1))
    changed = InspectionInputs(beside.ledger, scenarios=beside.scenarios, templates=templates)
    for folder in (build, release):
        before = show(folder, name_of(ODD), beside)
        known = {one.key: one.text for one in before.requests}
        after = show(folder, name_of(ODD), changed)
        assert any("templates: far_empathetic" in one for one in after.notes)
        rendered = next(one for one in after.requests if one.kind == "far_empathetic" and one.body)
        key = next(one.request_key for one in before.texts if one.name == "empathetic")
        assert rendered.verdict == "unanswered" and f"its key was {key}" in rendered.note and "far_empathetic" in rendered.note
        beside_it = {one.key: one for one in after.requests if one.kind == "far_empathetic" and not one.body}
        assert beside_it[key or ""].verdict == "taken" and all(one.text == known[name] for name, one in beside_it.items())
        assert Counter(one.verdict for one in beside_it.values()) == {"taken": 1, "refused": 2}
        assert [one.key for one in after.requests if one.kind == "near_empathetic"] == [
            one.key for one in before.requests if one.kind == "near_empathetic"
        ]


@pytest.mark.parametrize("name", [name_of(ODD), name_of(REPAIRED), name_of(REFUSED), REJECTED])
def test_a_folder_is_shown_by_what_it_carries(name: str, build: Path, release: Path, beside: InspectionInputs) -> None:
    for folder in (build, release):
        assert show(folder, name, InspectionInputs(beside.ledger)) == show(folder, name, beside)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a build of scenarios and templates of one's own, its release, and these."""
    folder = tmp_path_factory.mktemp("changed")
    world, templates = copy_world(folder / "scenarios"), folder / "templates"
    path = next(world.glob("003-*.yaml"))
    path.write_text(path.read_text().replace("definition: >-\n", "definition: >-\n  As we see it:\n", 1))
    shutil.copytree(data_folder("prompt_templates"), templates)
    user = templates / "far_empathetic.md.j2"
    user.write_text(user.read_text().replace("{% block user %}", "{% block user %}Well. ", 1))
    config = load_configuration(demo_file(folder, report={"metrics": ["bleu"], "bootstrap": 10}))
    build_with_checks(Recipe(config, load_catalogue(world), load_prompts(templates)), folder / "build")
    write(folder / "build", folder / "release", "0.1.0")
    return folder


def test_scenarios_and_templates_of_ones_own_are_those_that_the_build_carries(changed: Path) -> None:
    every = InspectionInputs(None, None, changed / "scenarios", changed / "templates")
    by_itself, named = (show(changed / "build", "003-seed-t01", one) for one in (InspectionInputs(), every))
    assert by_itself == named and len(by_itself.requests) == 4 and all(one.body and one.verdict == "taken" for one in by_itself.requests)
    assert "As we see it:" in json.dumps(show(changed / "build", "003-seed").requests[0].body)


def test_templates_that_a_release_carries_are_not_run_and_its_scenarios_are_read(changed: Path) -> None:
    ledger = changed / "build" / "ledger.sqlite"
    shown = show(changed / "release", "003-seed-t01", InspectionInputs(ledger))
    (note,) = [one for one in shown.notes if "from parts that have changed" in one]
    assert "templates: far_empathetic;" in note and "scenario" not in note.partition(";")[0]
    assert "Well. " not in json.dumps([one.body for one in shown.requests])
    whole = show(changed / "release", "003-seed-t01", InspectionInputs(ledger, templates=changed / "templates"))
    assert not [one for one in whole.notes if "from parts that have changed" in one] and all(one.body for one in whole.requests)


def test_seed_dialogues_of_ones_own_are_not_carried_and_that_is_told(changed: Path, tmp_path: Path) -> None:
    header = json.loads((changed / "build" / "build.json").read_text())
    again = rebuild_recipe({**header, "seeds": "0" * 64}, None, None, None, changed / "build")
    assert again.recipe and [one.seed for one in again.recipe.catalogue.scenarios] == [None] * 3
    assert "the seed dialogues of the scenarios" in again.changed


def test_what_a_folder_carries_and_nobody_can_read_is_told_and_the_packaged_is_used(changed: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(changed / "build", tmp_path / "build"))
    (folder / "design" / "taxonomy.yaml").write_text("phases: [")
    shown = show(folder, "003-seed-t01")
    assert any("taxonomy.yaml" in one and "the packaged scenarios are used" in one for one in shown.notes) and shown.texts


def test_scenarios_that_are_brought_are_counted_by_the_words_of_the_texts_language(light: Path, tmp_path: Path) -> None:
    header = json.loads((light / "manifest.json").read_text())
    world = copy_world(tmp_path / "world")
    path, seed = world / "crossed" / "003.yaml", next(world.glob("003-*.yaml"))
    item, scenario = yaml.safe_load(path.read_text())[0], yaml.safe_load(seed.read_text())
    scenario["seed"]["turns"][item["turn"] - 1]["text"] = "我不知道明天该怎么开口跟他说这件事"
    item |= {"twin": "我不知道昨天为什么没有跟他说这件事", "reply_1": "".join(map(chr, range(0x4E00, 0x4E1E)))}
    item |= {"reply_2": "".join(map(chr, range(0x5000, 0x501E)))}
    seed.write_text(yaml.safe_dump(scenario, allow_unicode=True, sort_keys=False))
    path.write_text(yaml.safe_dump([item], allow_unicode=True, sort_keys=False))
    with pytest.raises(InputError, match="1 words"):
        rebuild_recipe(header, world, None, None)
    chinese = {**header, "configuration": {**header["configuration"], "language": "zh"}}
    (note,) = rebuild_recipe(chinese, world, None, None).notes
    assert "give the folder of these rules" in note and rebuild_recipe(chinese, None, None, None).notes == (note,)


def test_without_a_ledger_requests_are_proven_by_their_keys_and_the_rest_is_said_to_be_missing(
    release: Path, beside: InspectionInputs
) -> None:
    shown = show(release, f"{name_of(ODD)}/empathetic", InspectionInputs(scenarios=beside.scenarios))
    (one,) = shown.requests
    assert (one.key, one.sample, one.verdict, one.text) == (shown.texts[-1].request_key, 1, "taken", None) and "proves" in one.note
    assert any("--ledger" in note for note in shown.notes)


def test_what_was_said_of_a_pair_is_shown(release: Path, beside: InspectionInputs, tmp_path: Path) -> None:
    name, key = name_of(REPAIRED), "s1-" + "ab" * 32
    counts = json.loads((release / "manifest.json").read_text())["counts"]
    folder = altered(release, tmp_path, counts={**counts, "annotations": {"train": 1, "validation": 0, "test": 0}})
    said = {"pair_id": name, "dialogue_id": name[:8], "turn": 1, "variant": "empathetic", "teacher": "t", "rubric": "r", "rubric_hash": "h"}
    with TableWriter(file_of(folder, "annotations", split_of("017-seed")), OPTIONAL["annotations"]) as writer:
        writer.add({**said, "criterion": "warm", "sample": 0, "value": 2.0, "reason": "because", "request_key": key})
        writer.add({**said, "pair_id": "017-seed-t03", "criterion": "warm", "sample": 0, "value": 1.0, "reason": "", "request_key": "s1-0"})
    scores = pa.table({"pair_id": [name, "017-seed-t03"], "variant": ["empathetic"] * 2, "BLEU-4": [0.5, 0.1]})
    pq.write_table(scores, folder / "report" / "items.parquet")
    shown = show(folder, name, beside)
    assert [row["reason"] for row in shown.judgements["annotations"]] == ["because"]
    assert [row["BLEU-4"] for row in shown.judgements["scores"]] == [0.5] and "reviews" not in shown.judgements


def test_annotations_are_shown_with_the_answers_of_their_ledger(release: Path, tmp_path: Path) -> None:
    from empathy_eval.commands.annotate import annotate

    from tests.doubles.judges import Judge

    annotate(release, tmp_path / "judged", rubric="three-point", model=Judge(bad=0), turns=2)
    lines = [json.loads(line) for line in (tmp_path / "judged" / "outcomes.jsonl").read_text().splitlines()]
    shown = show(tmp_path / "judged", lines[0]["pair_id"])
    assert [dict(one) for one in shown.judgements["ratings"]] == lines[0]["ratings"]
    keys, bad = ({one["request_key"] for one in lines[0][name]} for name in ("ratings", "failures"))
    assert {one.key: one.verdict for one in shown.requests} == dict.fromkeys(keys, "taken") | dict.fromkeys(bad, "refused")
    assert [one.key for one in show(tmp_path / "judged", min(keys | bad)).requests] == [min(keys | bad)]
    refused = list(rejected(tmp_path / "judged"))
    assert [one.request_key for one in refused] == [one["request_key"] for line in lines for one in line["failures"]]
    assert bad and all(one.text for one in shown.requests) and all(one.text for one in refused)
    with pytest.raises(InputError, match="is not in the annotations"):
        show(tmp_path / "judged", "999-seed")


def test_what_was_refused_is_walked_with_the_texts_as_they_were(build: Path, release: Path, beside: InspectionInputs) -> None:
    outcomes = [json.loads(line) for line in (build / "outcomes.jsonl").read_text().splitlines()]
    there = answers(beside)
    failures = [(one["request_key"], tuple(one["reasons"])) for outcome in outcomes for one in outcome["failures"]]
    found = list(rejected(build, inputs=beside))
    assert [(one.request_key, one.reasons) for one in found if one.request_key] == failures
    assert all(one.text == there[one.request_key][0] for one in found if one.request_key)
    refused = [one for outcome in outcomes for one in outcome["candidates"]]
    assert Counter(one.text for one in found if one.reasons == ("edit_ratio_zero",)) == Counter(
        one["text"] for one in refused if one["reasons"] == ["edit_ratio_zero"]
    )
    assert Counter(one.reasons[0] for one in found if not one.request_key)["pair_left_out"] == 3
    # Of a release the ledger is gone through, which tells the same, each with the words for it.
    through = list(rejected(release, inputs=beside))
    assert Counter(map(as_it_was, through)) == Counter(map(as_it_was, found))
    assert all(one.detail for one in through if one.request_key)
    assert [one.text for one in rejected(release, "schema", beside)] == [OFF_SCHEMA]
    alone = list(rejected(release, inputs=InspectionInputs(scenarios=beside.scenarios)))
    assert {one.reasons[0] for one in alone} == {"withdrawn", "edit_ratio_zero", "overlap_high", "pair_left_out"}
    with pytest.raises(InputError, match=r"nothing was refused for \"nope\"\n.*finish_refusal \(4\)"):
        list(rejected(build, "nope", beside))


def test_a_build_under_way_is_shown_from_its_ledger(build: Path, beside: InspectionInputs, tmp_path: Path) -> None:
    for name in ("configuration.json", "ledger.sqlite"):
        shutil.copy(build / name, tmp_path / name)
    whole, half = (show(folder, name_of(REPAIRED), InspectionInputs(scenarios=beside.scenarios)) for folder in (build, tmp_path))
    assert (half.texts, half.requests, half.refused) == (whole.texts, whole.requests, whole.refused) and "not finished" in half.source
    assert Counter(one.request_key for one in rejected(tmp_path, inputs=InspectionInputs(scenarios=beside.scenarios))) == Counter(
        one.request_key for one in rejected(build, inputs=beside)
    )


def test_no_code_is_run_that_a_folder_names(
    release: Path, beside: InspectionInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_code.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')\nclass Model: name = endpoint = 'x'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    configuration = json.loads((release / "manifest.json").read_text())["configuration"]
    configuration["models"]["far"] = {"kind": "their_code:Model"}
    configuration["checks"]["own"] = {"their_code:Model": {}}
    configuration["report"]["metrics"].append("their_code:Model")
    folder = altered(release, tmp_path, configuration=configuration)
    shown = show(folder, name_of(REPAIRED), beside)
    assert any("their_code:Model" in note and "not run" in note for note in shown.notes) and shown.texts
    # What cannot be rendered is shown from the ledger.
    assert {one.key for one in shown.requests if one.text and not one.body} >= {
        one.request_key for one in shown.texts if one.name == "empathetic"
    }
    assert list(rejected(folder, inputs=beside)) and not (tmp_path / "was-run").exists()


@pytest.mark.e2e
@pytest.mark.parametrize("of", ["build", "release"])
def test_a_hundred_ids_each_are_shown_or_refused_in_words(of: str, marred: Path, beside: InspectionInputs) -> None:
    rng, said = random.Random(of), Counter[str]()
    keys = sorted(answers(beside))
    odd = [
        "",
        " ",
        "x",
        "017",
        "017-seed-t",
        "017-seed-tx",
        "017-seed/empathetic",
        "017-seed-t05/score",
        "\x00",
        "s1-",
        "s1-zz",
        "😀",
        "é" * 999,
    ]

    def drawn() -> str:
        key = rng.choice(keys)
        dialogue = rng.choice(["003-seed", "007-seed", "017-seed", "001-seed", "017-00000", "000-seed", "999-99999"])
        turn = f"{dialogue}-t{rng.randrange(20):02d}"
        variant = rng.choice(["apathetic", "empathetic", "near_apathetic", "far_apathetic", "reference", "warm"])
        of_keys = [key, key[: rng.randrange(67)], key[3:], f"{rng.getrandbits(64):016x}"]
        return rng.choice([dialogue, turn, turn, f"{turn}/{variant}", rng.choice(odd), *of_keys])

    for number in range(100):
        look = rng.choice([beside, InspectionInputs(scenarios=beside.scenarios)])
        try:
            shown = show(marred / of, drawn(), look)
            assert isinstance(shown, ShownItem) and json.dumps(shown.to_json())
            said["shown"] += 1
        except EmpathyEvalError as error:
            assert error.exit_code == 2 and "Fix: " in str(error), number
            said["refused"] += 1
    assert min(said["shown"], said["refused"]) > 25


class Plain(Check):
    """Takes no dialogue that begins with a word, and no reply that asks twice."""

    name = "plain"

    def dialogue(self, description: str, turns: Sequence[Turn]) -> Iterable[Flaw]:
        return [Flaw("odd_opening", "begin in another way")] if turns[0].text.startswith("Um") else []

    def variant(self, variant: str, text: str, scene: Scene) -> Iterable[Flaw]:
        return [Flaw("asks_twice", "ask once")] if "??" in text else []


def with_question(catalogue: Catalogue, request: Request, answer: Completion) -> Completion:
    """The first sample of two dialogues' openings and of one turn, and all samples of another turn, are refused by :class:`Plain`."""
    value, about = json.loads(answer.text), request.about
    if about.kind == "self_chat" and request.sample == 0 and about.dialogue_id == "003-seed":
        value["turns"][0]["text"] = f"Um, {value['turns'][0]['text']}"
    place = about.dialogue_id, about.kind, about.turn
    if place == ("017-seed", "far_empathetic", 3) or (place == ("017-seed", "far_empathetic", 1) and request.sample == 0):
        value["text"] += f" Really{request.sample}??"
    return Completion(json.dumps(value), "stop", answer.model)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> Path:
    """A build with a check of one's own, and its release."""
    folder = tmp_path_factory.mktemp("own")
    config = load_configuration(demo_file(folder, samples=2, report={"metrics": ["bleu"], "bootstrap": 10}))
    model = Recorder(catalogue, partial(with_question, catalogue))
    recipe = Recipe(config, catalogue, prompts).with_custom(dict.fromkeys(("self_chat", "near", "far"), model))
    build_with_checks(recipe, folder / "build", checks=[Plain()])
    write(folder / "build", folder / "release", "0.1.0")
    return folder


def test_of_a_release_too_what_checks_of_ones_own_refused_is_told(own: Path, beside: InspectionInputs) -> None:
    look = InspectionInputs(own / "build" / "ledger.sqlite", scenarios=beside.scenarios)
    found = [one for one in rejected(own / "build", inputs=look) if one.reasons != ("odd_opening",)]
    through = list(rejected(own / "release", inputs=look))
    assert Counter(map(as_it_was, through)) == Counter(map(as_it_was, found))
    assert Counter(one.reasons[0] for one in found)["asks_twice"] == 3
    bad, good = show(own / "release", "017-seed-t01/empathetic", look).requests
    assert (bad.sample, bad.verdict, [name for name, _ in bad.reasons]) == (0, "refused", ["asks_twice"])
    assert (good.sample, good.verdict, good.note) == (1, "taken", "") and good.body


def test_nothing_is_called_taken_that_a_check_of_ones_own_may_have_refused(own: Path, beside: InspectionInputs) -> None:
    shown = show(own / "release", "003-seed", InspectionInputs(own / "build" / "ledger.sqlite", scenarios=beside.scenarios))
    bad, good = shown.requests
    assert (bad.sample, bad.verdict, good.sample, good.verdict) == (0, "unknown", 1, "taken") and "may have refused" in bad.note
    assert good.body and good.key == shown.texts[0].request_key
