"""Crossed items of models: what each request sees, what is refused, and that nothing else hangs on them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.text import words
from empathy_eval.completions.ledger import Ledger, LedgerEntry
from empathy_eval.completions.merge import merge
from empathy_eval.completions.requests import Failure, Flaw
from empathy_eval.design.configuration import Configuration, load_configuration, parse_configuration
from empathy_eval.design.dataset import SPLITS, file_of, read_manifest
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK, CROSSING, KINDS
from empathy_eval.design.planning import plan_of, plans
from empathy_eval.design.prompts import Prompts, load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, changed_words, load_catalogue
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.by_batch import build_by_batch
from empathy_eval.generation.checks.custom import Check
from empathy_eval.generation.crossed_by_models import crossable_scenes, examples, trials
from empathy_eval.generation.job import placeholder_dialogue
from empathy_eval.generation.outcomes import CrossedOutcome, Dialogue, Outcome, Scene, Turn, read_build
from empathy_eval.generation.preview import preview, unused_answers
from empathy_eval.generation.rewriting import scenes
from empathy_eval.generation.summary import Summary
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.inspect.show import InspectionInputs, rejected, show
from empathy_eval.releases.verify.content import content_faults
from empathy_eval.releases.verify.texts import load_text_checks
from empathy_eval.releases.verify.verify import verify

from tests.completions.test_openai_endpoint import MODEL, config_file
from tests.conftest import copy_world
from tests.doubles.batches import BatchServer
from tests.doubles.server import Behaviour, Server, good_answer, running
from tests.generation.test_by_hand import Hands
from tests.releases.test_verify import change_rows

ROLES = ("self_chat", "near", "far", "crossed", "crossed_judge")
WANTED = 3
NOWHERE = "http://127.0.0.1:9/v1"


class Partial(Server):
    """A server whose judge says the same letter always, or for whose writer something goes wrong."""

    letter: str = ""
    said: dict[str, Any] = {}

    def good(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        answer = good_answer(body, name)
        if "choice" in answer and self.letter:
            return {**answer, "choice": self.letter}
        return {**answer, **self.said} if "twin" in answer else answer


class Made:
    """Builds of a few dialogues against a server."""

    def __init__(self, folder: Path, catalogue: Catalogue, prompts: Prompts) -> None:
        self.folder, self.catalogue, self.prompts = folder, catalogue, prompts

    def config(self, url: str, **changes: Any) -> Configuration:
        models = {role: {**MODEL, "base_url": url} for role in ROLES}
        changes = {
            "dialogues": 3,
            "controls": 1,
            "models": models,
            "crossed": WANTED,
            "samples": 2,
            "report": {"metrics": ["length"], "bootstrap": 10},
            **changes,
        }
        if not changes["crossed"]:
            changes["models"] = {role: one for role, one in models.items() if role not in ROLES[3:]}
        return load_configuration(config_file(self.folder, url, **changes))

    def recipe(self, config: Configuration) -> Recipe:
        return Recipe(config, self.catalogue, self.prompts)

    def build(self, name: str, config: Configuration, **run: Any) -> Summary:
        return build(self.recipe(config), self.folder / name, Run(**run))

    def outcomes(self, name: str) -> list[Outcome]:
        lines = (self.folder / name / "outcomes.jsonl").read_text().splitlines()
        return [Outcome.from_json(json.loads(line)) for line in lines]

    def asked(self, name: str) -> dict[str, set[str]]:
        """The keys of a ledger by kind."""
        found: dict[str, set[str]] = {}
        with Ledger(self.folder / name / "ledger.sqlite", create=False, write=False) as ledger:
            for key, kind in ledger.query("SELECT key, kind FROM completions"):
                found.setdefault(str(kind), set()).add(str(key))
        return found


@pytest.fixture
def made(tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> Made:
    return Made(tmp_path, catalogue, prompts)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> tuple[Made, Configuration]:
    """A build by a good writer and a good judge."""
    made = Made(tmp_path_factory.mktemp("good"), catalogue, prompts)
    with running() as server:
        config = made.config(server.url)
        made.build("b", config)
    return made, config


def items(outcomes: list[Outcome]) -> list[CrossedOutcome]:
    return [item for one in outcomes for item in one.crossed]


def test_a_good_writer_and_a_good_judge_make_an_item_of_each_planned_dialogue(good: tuple[Made, Configuration]) -> None:
    made, config = good
    outcomes, asked = made.outcomes("b"), made.asked("b")
    assert [one.crossed_id for one in items(outcomes)] == [f"{one.dialogue_id}-x1" for one in outcomes]
    for outcome in outcomes:
        (item,), dialogue = outcome.crossed, outcome.dialogue
        assert dialogue and item.reply_1 == dialogue.turns[item.turn].text and item.source == "model"
        assert dialogue.turns[item.turn - 1].role == "seeker" and "helper" in [turn.role for turn in dialogue.turns[: item.turn]]
        assert 2 <= changed_words(dialogue.turns[item.turn - 1].text, item.twin) <= 24
        assert item.writer == item.judge == "m" and item.request_keys[0] in asked["crossed"]
        assert len(set(item.request_keys[1:])) == 4 and set(item.request_keys[1:]) <= asked["crossed_check"]
        assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome
    header = read_build(made.folder / "b")
    assert header["summary"]["crossed"] == WANTED and {"crossed", "crossed_check"} <= header["templates"].keys()
    assert {one.answer for one in CROSSING} <= header["schemas"].keys()


def test_a_judge_that_always_says_one_letter_lets_nothing_through_and_dialogues_and_pairs_stay(
    made: Made, good: tuple[Made, Configuration]
) -> None:
    for letter in "AB":
        server = Partial(Behaviour())
        server.letter = letter
        with running(server=server):
            summary = made.build(letter, made.config(server.url))
        bare = [replace(one, crossed=(), failures=(), usage={}) for one in made.outcomes(letter)]
        assert bare == [replace(one, crossed=(), failures=(), usage={}) for one in good[0].outcomes("b")]
        # Each is tried at another turn too.
        assert summary.crossed == 0 and summary.failed == Counter({"crossed: not_told_apart": 2 * WANTED})
        # Each of the two samples and its repair, each read four times.
        assert len(made.asked(letter)["crossed"]) == 2 * 4 * WANTED
        assert "chose the wrong one 2 of 4 times: 1 of 2 in the first" in repairs(
            made.folder / letter, made.recipe(made.config(server.url))
        )


def repairs(folder: Path, recipe: Recipe) -> str:
    """What is said to the writer of what is wrong, by the requests that a preview of a second round would send."""
    from empathy_eval.generation.replay_item import ItemReplayer

    with Ledger(folder / "ledger.sqlite", create=False, write=False) as ledger:
        found = [step for plan in plans(recipe.config, recipe.catalogue) for step in ItemReplayer(recipe, ledger).trace(plan).steps]
    return "\n".join(step.request.body["messages"][-1]["content"] for step in found if step.repair)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"twin": "Short."}, "twin_apart"),
        ({"reply": "Stay with it a little."}, "length_apart"),
        ({"twin": ""}, "twin_empty"),
        ({"reason": " "}, "no_reason"),
    ],
)
def test_an_answer_that_fails_a_check_is_read_by_no_judge(said: dict[str, Any], reason: str, made: Made) -> None:
    server = Partial(Behaviour())
    server.said = said
    with running(server=server):
        summary = made.build("b", made.config(server.url, dialogues=1, controls=0, crossed=1))
    assert summary.crossed == 0 and summary.status["accepted"] == 1
    assert reason in {name.removeprefix("crossed: ") for name in summary.failed}
    assert "crossed_check" not in made.asked("b")


def test_a_judge_that_does_not_answer_leaves_the_dialogue_missing_and_the_next_run_goes_on(
    made: Made, good: tuple[Made, Configuration]
) -> None:
    class Mute(Server):
        mute = True

        async def handle(self, request: Any) -> Any:
            if self.mute and b"# Reply A" in await request.read():
                return self._error(400, "no judge is here")
            return await super().handle(request)

    with running(server=(server := Mute(Behaviour()))):
        config = made.config(server.url)
        first = made.build("b", config)
        assert first.status["missing"] == WANTED and "no judge is here" in first.missing[0]
        server.mute = False
        made.build("b", config)
        assert server.answered.total() == sum(len(keys) for kind, keys in made.asked("b").items() if kind != "score")
    assert made.outcomes("b") == good[0].outcomes("b"), "and nothing is asked twice"


def test_without_crossed_items_requests_outcomes_and_what_the_build_says_of_itself_are_as_ever(
    made: Made, good: tuple[Made, Configuration]
) -> None:
    with running() as server:
        none = made.config(server.url, crossed=0)
        made.build("none", none)
        left_out = made.config(server.url, crossed=0)
        del left_out.raw["models"]["self_chat"]["base_url"]  # delivery, which is no part of it
        assert left_out.identity == none.identity and "crossed" not in none.published
    asked, more = made.asked("none"), good[0].asked("b")
    assert asked == {kind: keys for kind, keys in more.items() if kind in asked} | {"score": asked["score"]}
    assert asked["score"] < more["score"] and more.keys() - asked.keys() == {"crossed", "crossed_check"}
    lines = (made.folder / "none" / "outcomes.jsonl").read_text()
    assert "crossed" not in lines
    same = [replace(one, crossed=(), usage={}) for one in good[0].outcomes("b")]
    assert [replace(one, usage={}) for one in made.outcomes("none")] == same
    assert "crossed" not in (made.folder / "none" / "build.json").read_text()


def test_a_folder_of_templates_without_those_of_crossed_items_does_until_some_are_wanted(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "templates"
    folder.mkdir()
    for path in data_folder("prompt_templates").glob("*.j2"):
        if not path.name.startswith("crossed"):
            (folder / path.name).write_bytes(path.read_bytes())
    prompts = load_prompts(folder)
    assert Recipe(made.config("http://127.0.0.1:9/v1", crossed=0), made.catalogue, prompts).templates == prompts.hashes
    with pytest.raises(InputError, match=r"crossed\.md\.j2: is not there, and 3 crossed items(.|\n)*crossed_check\.md\.j2: is not there"):
        Recipe(made.config("http://127.0.0.1:9/v1"), made.catalogue, prompts)


def test_more_dialogues_and_more_crossed_items_ask_nothing_again(made: Made, good: tuple[Made, Configuration]) -> None:
    ledger = made.folder / "ledger.sqlite"
    ledger.write_bytes((good[0].folder / "b" / "ledger.sqlite").read_bytes())
    with running() as server:
        made.build("more", made.config(server.url, dialogues=5, crossed=7), ledger=ledger)
        before = {one.dialogue_id: one for one in good[0].outcomes("b")}
        for one in made.outcomes("more"):
            assert one.dialogue_id not in before or one.crossed[:1] == before[one.dialogue_id].crossed
        asked = server.answered.total()
        assert [len(one.crossed) for one in made.outcomes("more")] == [2, 1, 2, 1, 1] or len(items(made.outcomes("more"))) == 7
        # Two more dialogues with nine or so rewritings, four more items of five requests.
        assert asked == len(requests(ledger)) - len(requests(good[0].folder / "b" / "ledger.sqlite"))


def requests(ledger: Path) -> set[str]:
    with Ledger(ledger, create=False, write=False) as opened:
        return {str(key) for (key,) in opened.query("SELECT key FROM completions WHERE kind != 'score'")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Recipe:
    """All scenarios with their curated items."""
    made = Made(tmp_path_factory.mktemp("whole"), load_catalogue(), prompts)
    return made.recipe(made.config("http://127.0.0.1:9/v1", dialogues=60, crossed=60))


def text_of(request: Any) -> str:
    return "\n".join(message["content"] for message in request.body["messages"])


def test_the_writer_sees_the_context_the_reply_and_curated_items_of_other_scenarios_alone(whole: Recipe) -> None:
    shown = [one for one in preview(whole, None, 8).requests if one.about.kind == "crossed"]
    assert len(shown) == 8
    drawn = Counter[str]()
    for request in shown:
        number, text = int(request.about.dialogue_id[:3]), text_of(request)
        theirs = [(n, item) for n, some in whole.catalogue.crossed.items() for item in some if item.twin in text]
        assert len(theirs) == 3 and number not in {n for n, _ in theirs}
        assert all(item.reply_2 in text and item.reason in text for _, item in theirs)
        drawn.update(item.crossed_id for _, item in theirs)
        seed, place = whole.catalogue[number].seed, request.about.turn or 0
        assert seed and seed.turns[place].text in text and seed.turns[place - 1].text in text
        assert not any(turn.text in text for turn in seed.turns[place + 1 :] if len(turn.text) > 40)
    assert len(drawn) > 15, "each item is shown others"


def test_a_judge_sees_one_context_and_both_replies_and_not_which_is_whose(whole: Recipe) -> None:
    plan = next(plans(whole.config, whole.catalogue))
    dialogue, turns = placeholder_dialogue(plan, whole)
    scene = scenes(dialogue, turns, whole.language)[3]
    found = trials(scene, "A twin of it.", "Its reply.")
    assert [(one.context[-1].text == "A twin of it.", one.reply_a == "Its reply.", one.own) for one in found] == [
        (False, False, "A"), (False, True, "B"), (True, True, "A"), (True, False, "B"),
    ]  # fmt: skip
    for one in found:
        text = "\n".join(message["content"] for message in one.messages(whole))
        other = scene.context[-1].text if one.context[-1].text == "A twin of it." else "A twin of it."
        assert other not in text and one.context[-1].text in text and scene.dialogue_id not in text


def test_no_item_is_asked_for_after_crisis_language_and_the_next_place_is_taken(whole: Recipe) -> None:
    plan = next(one for one in plans(whole.config, whole.catalogue) if len(one.crossed) > 2)
    turns = tuple(Turn(turn.role, "The kettle is on.", turn.strategy) for turn in plan.turns)
    calm = Dialogue(plan.dialogue_id, plan.scenario_id, "", turns, (), "model", "", "")
    assert [scene.place for scene in crossable_scenes(calm, plan, whole.language)[0]] == list(plan.crossed[:2])
    first = sorted(plan.crossed)[1]
    late = replace(calm, turns=tuple(replace(turn, text="I want to die.") if place == first else turn for place, turn in enumerate(turns)))
    allowed = [place for place in plan.crossed if place < first]
    found, refused = crossable_scenes(late, plan, whole.language)
    assert [scene.place for scene in found] == allowed[:1] and refused == []
    always = replace(calm, turns=(replace(turns[0], text="I want to die."), *turns[1:]))
    assert crossable_scenes(always, plan, whole.language) == ([], [plan.crossed[0]])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({**MODEL, "endpoint": "elsewhere", "base_url": NOWHERE, "headers": {"Team": "${NO_SUCH}"}}, "NO_SUCH"),
        ({"kind": "no_such:Model"}, "no_such"),
    ],
)
def test_models_of_crossed_items_that_are_not_wanted_need_no_access_and_are_not_made(other: dict[str, Any], said: str, made: Made) -> None:
    with running() as server:
        raw = made.config(server.url, dialogues=1, controls=0, crossed=1).raw
        raw = {**raw, "models": {**raw["models"], "crossed": other, "crossed_judge": other}}
        with pytest.raises(InputError, match=said):
            build(made.recipe(parse_configuration(raw, "c")), made.folder / "wanted")
        summary = build(made.recipe(parse_configuration(raw | {"crossed": 0}, "c")), made.folder / "b")
    assert summary.status["accepted"] == 1 and "crossed" not in made.asked("b")
    seeds = {**raw, "crossed": 0, "plan": "seeds", "models": raw["models"] | dict.fromkeys(ROLES[:3], {"kind": "seed-bank"})}
    seeds = {name: one for name, one in seeds.items() if name not in ("dialogues", "surplus", "controls")}
    assert build(made.recipe(parse_configuration(seeds, "c")), made.folder / "seeds").status["missing"] == 0


def test_an_item_that_nobody_was_asked_for_is_no_refused_sample_and_a_text_by_rules_is_one() -> None:
    failures = (
        Failure("crossed", 3, ("crisis",), final=True),
        Failure("near_apathetic", 3, ("edit_ratio",), final=True),
        Failure("crossed", 5, ("twin_apart",), "s1-a", final=True),
    )
    summary = Summary(1)
    summary.add(Outcome("003-00000", 3, "accepted", failures=failures))
    told = summary.to_json()
    assert told["failed_for_good"] == {"crossed: crisis": 1, "crossed: twin_apart": 1, "near_apathetic: edit_ratio": 1}
    assert told["samples_refused"] == {"crossed: twin_apart": 1, "near_apathetic: edit_ratio": 1}


def test_checks_of_ones_own_look_at_the_reply_in_its_context(made: Made) -> None:
    seen = list[tuple[str, str, Scene]]()

    class Watch(Check):
        name = "watch"

        def variant(self, variant: str, text: str, scene: Scene) -> Iterator[Flaw]:
            if variant == "crossed":
                seen.append((variant, text, scene))
                yield Flaw("seen", "it was seen")

    with running() as server:
        recipe = made.recipe(made.config(server.url, dialogues=1, controls=0, crossed=1)).with_custom({}, [Watch()])
        summary = build(recipe, made.folder / "b")
    assert summary.failed == Counter({"crossed: seen": 2}) and seen, "it is tried at another turn"
    (outcome,) = made.outcomes("b")
    for (_, text, first), (_, again, second) in zip(seen[::2], seen[1::2], strict=True):
        assert outcome.dialogue and text == again and len(words(text)) >= 8
        place = first.place
        assert first.reference == second.reference == outcome.dialogue.turns[place] and first.context == outcome.dialogue.turns[:place]
        assert second.context[:-1] == first.context[:-1] and second.context[-1] != first.context[-1], "the seeker has said the twin"


def test_a_preview_counts_the_items_and_four_checks_of_each(good: tuple[Made, Configuration]) -> None:
    made, config = good
    for ledger in (None, made.folder / "b" / "ledger.sqlite"):
        told = {one.kind: one for one in preview(made.recipe(config), ledger, 0).estimates}
        assert [told[kind.name].requests for kind in CROSSING] == [WANTED, 4 * WANTED]
        assert all(told[kind.name].usage.input_tokens and told[kind.name].usage.output_tokens for kind in CROSSING)
    shown = preview(made.recipe(config), made.folder / "b" / "ledger.sqlite", 3)
    sent = {one.key for one in shown.requests}
    others = replace(made.catalogue, crossed={})
    unwritten = preview(replace(made.recipe(config), catalogue=others), made.folder / "b" / "ledger.sqlite", 1)
    assert shown.placeholders == () and unwritten.placeholders == ("003-00000",), (
        "the dialogue is there, and the item that is to be checked is not"
    )
    asked = made.asked("b")
    assert asked["crossed"] | asked["crossed_check"] <= sent, "with the ledger each is the one that was sent"


def test_a_preview_takes_no_dialogue_whose_roles_are_not_those_of_its_plan(good: tuple[Made, Configuration]) -> None:
    made, config = good
    recipe = made.recipe(config)
    asked = preview(recipe, None, 1).requests[0]
    with Ledger(made.folder / "b" / "ledger.sqlite", create=False, write=False) as ledger:
        found = ledger.get(asked.key)
    assert found
    said = json.loads(found.text)
    said["turns"] = [{**turn, "role": "seeker", "strategy": None} for turn in said["turns"]]
    with Ledger(made.folder / "misfit.sqlite") as ledger:
        ledger.put(LedgerEntry(asked.key, asked.about, replace(found, text=json.dumps(said))))
    assert preview(recipe, made.folder / "misfit.sqlite", 1).placeholders == (asked.about.dialogue_id,), "a seed stands in for it"


def test_the_examples_of_an_item_hang_on_nothing_but_seed_and_item(whole: Recipe) -> None:
    plan = plan_of(whole.config, whole.catalogue, "017-00000")
    assert plan
    scene = next(one for one in scenes(*placeholder_dialogue(plan, whole), whole.language) if one.place == 5)
    fewer = replace(whole, config=replace(whole.config, dialogues=1))
    assert examples(whole, scene) == examples(fewer, scene) != examples(whole, replace(scene, dialogue_id="017-00001"))
    two = {number: whole.catalogue.crossed[number] for number in (3, 17)}
    shown = examples(replace(whole, catalogue=replace(whole.catalogue, crossed=two)), scene)
    assert {one.twin for one in shown} == {one.twin for one in two[3]}, "none of its own scenario"


def test_a_world_without_curated_items_is_shown_none(made: Made, tmp_path: Path) -> None:
    bare = replace(made.recipe(made.config("http://127.0.0.1:9/v1")), catalogue=load_catalogue(copy_world(tmp_path / "world")))
    bare = replace(bare, catalogue=replace(bare.catalogue, crossed={}))
    shown = [text_of(one) for one in preview(bare, None, 1).requests if KINDS[one.about.kind] == CROSSED]
    assert shown and not any("# Examples" in text or "None" in text for text in shown)
    assert any(KINDS[one.about.kind] == CROSSED_CHECK for one in preview(bare, None, 1).requests)


@pytest.mark.e2e
def test_an_item_is_shown_with_its_writers_request_and_the_four_of_its_judge(good: tuple[Made, Configuration], tmp_path: Path) -> None:
    made, _ = good
    release(made.folder / "b", tmp_path / "release", "0.1.0")
    assert not verify(tmp_path / "release", fast=True)
    manifest, before = read_manifest(tmp_path / "release"), shutil.copytree(tmp_path / "release", tmp_path / "other")
    for split in SPLITS:
        change_rows(file_of(before, "crossed", split), lambda rows: [row.update(crossed_id=f"{row['dialogue_id']}-x2") for row in rows])
    told = [str(one) for one in content_faults(before, manifest, load_text_checks(before, manifest)) if one.config == "crossed"]
    assert len(told) == WANTED and all("-x2 where the rest of the release gives" in one for one in told)
    beside = InspectionInputs(ledger=made.folder / "b" / "ledger.sqlite", scenarios=copy_world(tmp_path / "world"))
    outcome = made.outcomes("b")[0]
    (item,) = outcome.crossed
    for folder in (made.folder / "b", tmp_path / "release"):
        shown = show(folder, item.crossed_id, beside)
        asked = [one for one in shown.requests if one.verdict == "taken"]
        assert [one.kind for one in asked] == ["crossed"] + ["crossed_check"] * 4
        assert {one.key for one in asked} == set(item.request_keys) and not any(one.repair or one.note for one in asked)
        assert [one.text for one in shown.texts] == [item.twin, item.reply_1, item.reply_2, item.reason]
        assert all(figure.holds for one in shown.texts for figure in one.figures) and len(shown.texts[2].figures) == 3
        turn = show(folder, f"{outcome.dialogue_id}-t{item.turn:02d}", beside)
        assert f"{item.crossed_id} reply_2" in [one.name for one in turn.texts]
        for key in item.request_keys[:2]:
            assert [one.key for one in show(folder, key, beside).requests] == [key]
    with pytest.raises(InputError, match=r'"003-00000-x2" does not exist: 003-00000 has 1 crossed items\n.*name one of 003-00000-x1'):
        show(made.folder / "b", "003-00000-x2", beside)


def test_an_item_that_nobody_told_apart_is_shown_with_each_answer_and_repair(made: Made, world: Path) -> None:
    server = Partial(Behaviour())
    server.letter = "A"
    with running(server=server):
        made.build("b", made.config(server.url, dialogues=1, controls=0, crossed=1))
    (outcome,) = made.outcomes("b")
    lost, *_ = [one for one in outcome.failures if one.final]
    beside = InspectionInputs(scenarios=world)
    shown = show(made.folder / "b", f"{outcome.dialogue_id}-t{lost.turn:02d}", beside)
    assert "its crossed item is left out: not_told_apart" in shown.why and not any("its controls" in one for one in shown.why)
    written = [one for one in shown.requests if one.kind == "crossed"]
    assert [(one.sample, one.repair, one.verdict) for one in written] == [
        (sample, repair, "refused") for sample in (0, 1) for repair in (False, True)
    ]  # fmt: skip
    read = [one for one in shown.requests if one.kind == "crossed_check"]
    # The double writes the same for the second sample, whose request has the same body.
    assert len(read) == 8 and not any(one.repair for one in read) and {one.verdict for one in read} == {"taken"}
    assert {one.reasons for one in rejected(made.folder / "b", None, beside)} == {("not_told_apart",)}


def files(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in ("outcomes.jsonl", "build.json", "configuration.json")]


def test_a_build_by_hand_or_in_batches_has_the_bytes_of_the_plain_one_and_asks_nothing_twice(
    good: tuple[Made, Configuration], made: Made
) -> None:
    plain = good[0].folder / "b"
    hands = Hands(made.folder, made.catalogue, made.prompts)
    assert hands.rounds(made.config("http://127.0.0.1:9/v1")) == 4, "dialogues, variants and items, checks, and none are left"
    assert len(hands.seen) == len(set(hands.seen)) == len(requests(plain / "ledger.sqlite"))
    assert files(hands.folder / "b") == files(plain)
    with running(server=(server := BatchServer(Behaviour()))):
        build_by_batch(made.recipe(made.config(server.url)), made.folder / "batch", poll=0.01)
        assert server.answered.total() == len(hands.seen)
    assert files(made.folder / "batch") == files(plain)


def test_parts_merge_to_the_bytes_of_the_whole(good: tuple[Made, Configuration], made: Made) -> None:
    with running() as server:
        config = made.config(server.url)
        for number in (1, 2):
            made.build(f"part{number}", config, part=(number, 2))
    merged = made.folder / "ledger.sqlite"
    merge(merged, [made.folder / f"part{number}" / "ledger.sqlite" for number in (1, 2)])
    made.build("whole", config, ledger=merged, offline=True)
    assert files(made.folder / "whole") == files(good[0].folder / "b")


def test_what_a_change_asks_again_counts_crossed_items_only_where_they_are_asked_for(good: tuple[Made, Configuration]) -> None:
    made, config = good
    ledger, recipe = made.folder / "b" / "ledger.sqlite", made.recipe(config)
    assert unused_answers(recipe, ledger) is None
    none = made.recipe(made.config("http://127.0.0.1:9/v1", crossed=0))
    assert unused_answers(none, ledger) is None, "what is not wanted any more is not asked again"
    items = dict(made.catalogue.crossed)
    other = replace(recipe, catalogue=replace(made.catalogue, crossed={3: items[3][:1], 7: items[7][:1], 17: items[17][:1]}))
    told = unused_answers(other, ledger)
    assert told and told.kinds == {"crossed": WANTED, "crossed_check": 4 * WANTED}, "who reads an item reads another one then"
    fewer = replace(none, config=replace(none.config, seed=99))
    told = unused_answers(fewer, ledger)
    assert told and not {"crossed", "crossed_check"} & told.kinds.keys() and "self_chat" in told.kinds
