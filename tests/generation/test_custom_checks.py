"""Checks of one's own: counted, repaired, signed and replayed as the built-in ones are; what is wrong with them is told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval import cli
from empathy_eval.base.errors import InputError, JobError
from empathy_eval.commands.build import build
from empathy_eval.completions.models.custom import TextModel
from empathy_eval.completions.requests import Flaw
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.prompts import Message, Prompts
from empathy_eval.design.recipe import Recipe, load_recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.checks.custom import Check
from empathy_eval.generation.outcomes import Scene, Turn, read_build
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.verify.verify import verify

from tests.conftest import demo_file

ASKING = "Would it help to sit with this for a while and tell me more of it?"
PLAIN = "It is late and the kettle is on, so take all the time that this needs."
OWN = """
from empathy_eval.completions.requests import Flaw
from empathy_eval.generation.checks.custom import Check


class Few(Check):
    def __init__(self, most=0, name="few"):
        self.most, self.name, self.signature = most, name, f"most:{most}"

    def variant(self, variant, text, scene):
        if text.count("?") > self.most:
            yield Flaw("too_many_questions", "the reply asks too often")


class Same(Few):
    def __init__(self):
        super().__init__(name="few")


class Unsigned(Few):
    def __init__(self):
        super().__init__()
        self.signature = 1


def broken():
    raise OSError("no disk")
"""


class Few(Check):
    """At most so many questions in a variant, and no more than so many turns in a dialogue; it notes what it saw."""

    def __init__(self, most: int = 99, turns: int = 99) -> None:
        self.name, self.signature = "few", f"most:{most}|turns:{turns}"
        self.most, self.turns = most, turns
        self.seen: list[tuple[str, str, str]] = []

    def dialogue(self, description: str, turns: Sequence[Turn]) -> Iterable[Flaw]:
        return [Flaw("too_many_turns", "say it in fewer turns")] if len(turns) > self.turns else []

    def variant(self, variant: str, text: str, scene: Scene) -> Iterable[Flaw]:
        self.seen.append((variant, text, scene.dialogue_id))
        if text.count("?") > self.most:
            yield Flaw("too_many_questions", f"the reply asks {text.count('?')} times")


class Odd(Check):
    """Does what it is told instead of looking at a variant."""

    name = "odd"

    def __init__(self, found: Any) -> None:
        self.found = found

    def variant(self, variant: str, text: str, scene: Scene) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class Learns(TextModel):
    """Asks a question, and once it is told what is wrong with that, asks none."""

    name = "learns"

    def __init__(self) -> None:
        self.told: list[str] = []

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        self.told.append(messages[-1]["content"])
        return json.dumps({"text": PLAIN if "the reply asks 1 times" in messages[-1]["content"] else ASKING})


@pytest.fixture
def recipe(demo: Configuration, catalogue: Catalogue, prompts: Prompts) -> Recipe:
    return Recipe(demo, catalogue, prompts)


def summary_of(recipe: Recipe, folder: Path, *checks: Any, **how: Any) -> dict[str, Any]:
    return build(recipe, folder, checks=checks, **how).to_json()


def outcomes(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines()]


def with_checks(folder: Path, own: dict[str, Any], **changes: Any) -> Path:
    checks = yaml.safe_load(demo_file(folder).read_text())["checks"]
    return demo_file(folder, checks={**checks, "own": own}, **changes)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_checks.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_check_that_finds_nothing_changes_nothing_but_the_header(recipe: Recipe, built: Path, tmp_path: Path) -> None:
    check = Few()
    build(recipe, tmp_path / "b", checks=[check])
    assert (tmp_path / "b" / "outcomes.jsonl").read_bytes() == (built / "outcomes.jsonl").read_bytes()
    pairs = [(one, pair) for one in outcomes(built) for pair in one["pairs"]]
    names = ("apathetic", "empathetic", "near_empathetic", "far_apathetic")
    released = [(name, pair[name]["text"], one["dialogue_id"]) for one, pair in pairs for name in names if pair[name]]
    items = [(one, item) for one in outcomes(built) for item in one["crossed"]]
    crossed = [("crossed", item[name], one["dialogue_id"]) for one, item in items for name in ("reply_1", "reply_2")]
    assert sorted(check.seen) == sorted([*released, *crossed, *crossed]), "it saw each variant once, and a crossed reply in both contexts"


def test_flaws_of_a_dialogue_reject_it_and_are_counted(recipe: Recipe, tmp_path: Path) -> None:
    turns = sorted(len(one["dialogue"]["turns"]) for one in outcomes_of(recipe, tmp_path / "plain"))
    summary = summary_of(recipe, tmp_path / "b", Few(turns=turns[1]))
    longer = sum(one > turns[1] for one in turns)
    assert longer and summary["rejected"] == longer and summary["rejected_by_reason"] == {"too_many_turns": longer}
    assert summary["samples_refused"] == summary["failed_for_good"] == {"self_chat: too_many_turns": longer}


def outcomes_of(recipe: Recipe, folder: Path) -> list[dict[str, Any]]:
    build(recipe, folder)
    return outcomes(folder)


def test_flaws_of_variants_leave_their_pairs_out_and_are_counted_by_kind(recipe: Recipe, tmp_path: Path) -> None:
    summary = summary_of(recipe, tmp_path / "b", Few(most=0))
    assert summary["accepted"] == 3 and summary["pairs"] < 20
    assert set(summary["failed_for_good"]) <= {f"{kind}: too_many_questions" for kind in (
        "near_apathetic", "far_empathetic", "near_empathetic", "far_apathetic", "crossed")}  # fmt: skip
    refused = [one for outcome in outcomes(tmp_path / "b") for one in outcome["candidates"] if one["reasons"]]
    assert {tuple(one["reasons"]) for one in refused} == {("too_many_questions",)} and all("?" in one["text"] for one in refused)


def test_a_repair_is_told_the_detail_and_counted_once_more(recipe: Recipe, mine: Path, world: Path) -> None:
    model = Learns()
    repaired = load_recipe(demo_file(mine, repairs=1), scenarios=world)
    summary = summary_of(repaired, mine / "b", Few(most=0), models={"far": model, "near": model})
    assert summary["samples_refused"]["far_empathetic: too_many_questions"] == 20
    assert "far_empathetic: too_many_questions" not in summary["failed_for_good"]
    assert sum("the reply asks 1 times" in one for one in model.told) >= 20


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("found", "said"),
    [
        (ZeroDivisionError("oh"), 'check "odd": failed: ZeroDivisionError: oh'),
        (None, 'check "odd": returned None; return a list of flaws, an empty one'),
        ("flawed", "check \"odd\": gave 'f', not a Flaw"),
        ([("reason", "detail")], "check \"odd\": gave \"('reason', 'detail')\", not a Flaw"),
        ([Flaw("Too many", "x")], "with a reason in lower case, such as too_many_questions"),
        ([Flaw("x" * 65, "x")], "with a reason in lower case"),
        ([Flaw(None, "x")], "with a reason in lower case"),  # type: ignore[arg-type]
        ([Flaw("odd", None)], "and a detail that is text"),  # type: ignore[arg-type]
        ([Flaw("odd", "\ud800")], "and a detail that is text"),
    ],
    ids=str,
)
def test_a_check_that_fails_or_gives_what_is_no_flaw_ends_the_run_under_its_name(
    found: Any, said: str, recipe: Recipe, built: Path, tmp_path: Path
) -> None:
    with pytest.raises(JobError) as caught:
        build(recipe, tmp_path / "b", checks=[Odd(found)])
    assert said in str(caught.value) and "Fix: fix it, then run the same command" in str(caught.value)
    assert not (tmp_path / "b" / "build.json").exists() and not (tmp_path / "b" / "outcomes.jsonl").exists()
    build(recipe, tmp_path / "b", checks=[Odd([])])
    assert (tmp_path / "b" / "outcomes.jsonl").read_bytes() == (built / "outcomes.jsonl").read_bytes()


@pytest.mark.e2e
def test_a_check_of_a_configuration_gets_its_settings_and_is_signed_in_the_build_and_its_release(
    mine: Path, world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = with_checks(mine, {"my_checks:Few": {"most": 1}, "my_checks:Same": None}, report={"metrics": ["length"], "bootstrap": 10})
    assert cli.main(["build", str(config), "--out", str(mine / "b"), "--scenarios", str(world)]) == 2
    assert 'check "few": is the name of two checks' in capsys.readouterr().err
    config = with_checks(mine, {"my_checks:Few": {"most": 1}}, report={"metrics": ["length"], "bootstrap": 10})
    assert cli.main(["build", str(config), "--out", str(mine / "c"), "--scenarios", str(world)]) == 0
    assert "too_many_questions" in capsys.readouterr().out
    header = read_build(mine / "c")
    assert header["checks"] == {"few": "most:1"} and header["configuration"]["checks"]["own"] == {"my_checks:Few": {"most": 1}}
    manifest = release(mine / "c", mine / "r", "1.0.0").manifest
    (told,) = verify(mine / "r", fast=True)
    assert manifest["checks"] == {"few": "most:1"} and told.severity == "note" and told.what.endswith("were not run: few")


def test_a_build_without_checks_of_ones_own_tells_of_none(built: Path) -> None:
    assert "checks" not in read_build(built)


def test_a_replay_decides_alike_and_another_signature_is_another_build(recipe: Recipe, tmp_path: Path) -> None:
    first, again = tmp_path / "b", tmp_path / "again"
    build(recipe, first, checks=[Few(most=0)])
    build(recipe, again, checks=[Few(most=0)], ledger=first / "ledger.sqlite", offline=True)
    for name in ("outcomes.jsonl", "build.json", "configuration.json"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
    with pytest.raises(InputError, match="holds the build of another configuration"):
        build(recipe, first, checks=[Few(most=1)])


def test_what_is_wrong_with_checks_is_told_at_once(mine: Path, world: Path) -> None:
    own = {
        "my_checks:broken": {}, "my_checks:Few": {"mots": 3}, "my_checks:Unsigned": None, "no_such:Check": {}, "nobodys-check": {},
        "pathlib:Path": {}, "handed": {"given": "version:1"}, "my_checks:__name__": {"x": 1},
    }  # fmt: skip
    with pytest.raises(InputError) as caught:
        build(load_recipe(with_checks(mine, own), scenarios=world), mine / "b")
    for part in (
        'check "my_checks:broken": cannot be loaded: OSError: "no disk"',
        'check "my_checks:Few": takes no "mots"\n  Fix: it takes most',
        'check "my_checks:Unsigned": has no signature',
        'check "no_such:Check": cannot be loaded: ModuleNotFoundError',
        'check "nobodys-check": is not known',
        'check "pathlib:Path": has no signature, dialogue, variant',
        'check "handed": was passed in from Python and is not available here\n  Fix: pass it in again: build(…, checks=[…])',
        'check "my_checks:__name__": is already an instance and takes no x',
    ):
        assert part in str(caught.value)


def test_a_class_is_not_taken_for_a_check(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'check "odd": Odd is a class, not a check\n  Fix: pass an instance: Odd\(…\)'):
        build(recipe, tmp_path / "b", checks=[Odd])
