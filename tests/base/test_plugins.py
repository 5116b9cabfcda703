"""Names become objects in one place: entry points of packages, and ``module:name``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base import plugins
from empathy_eval.base.errors import InputError, JobError

GROUP = "empathy_eval.things"
SOURCE = """
from empathy_eval.base.errors import job_error


class Thing:
    def __init__(self, most=1):
        self.most = most


ready = [1, 2]


def fails(**settings):
    raise LookupError("nothing there")


def stops():
    raise job_error("thing", "cannot go on", "wait")
"""


def offered(folder: Path, package: str, names: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that offers names, as its folder says it."""
    info = folder / package / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n" + "".join(f"{name} = {place}\n" for name, place in names.items()))
    monkeypatch.syspath_prepend(info.parent)


def refused(name: str, settings: dict[str, Any] | None = None, built_in: dict[str, str] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        plugins.load(GROUP, name, settings or {}, built_in)
    return str(caught.value)


@pytest.fixture
def things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "some_things.py").write_text(SOURCE)
    (tmp_path / "broken_things.py").write_text("raise OSError('no disk')\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "some_things"


def test_a_class_or_a_function_is_called_with_its_settings(things: str) -> None:
    assert plugins.load(GROUP, f"{things}:Thing", {"most": 3}).most == 3
    assert plugins.load(GROUP, f"{things}:Thing", {}).most == 1


def test_what_is_no_class_is_taken_as_it_is_and_takes_no_settings(things: str) -> None:
    assert plugins.load(GROUP, f"{things}:ready", {}) == [1, 2]
    said = refused(f"{things}:ready", {"most": 3, "least": 1})
    assert 'thing "some_things:ready": is already an instance and takes no most, least' in said and "name its class" in said


def test_settings_that_nothing_knows_are_named(things: str) -> None:
    said = refused(f"{things}:Thing", {"mots": 3})
    assert 'thing "some_things:Thing": takes no "mots"\n  Fix: it takes most' in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:Thing", "cannot be loaded: ModuleNotFoundError"),
        ("some_things:Nothing", "cannot be loaded: AttributeError"),
        ("broken_things:Thing", 'cannot be loaded: OSError: "no disk"'),
        ("some_things:fails", 'cannot be loaded: LookupError: "nothing there"'),
        ("thing", "is not known\n  Fix: use one of module:name"),
    ],
)
def test_what_cannot_be_had_is_told_by_its_name(things: str, name: str, said: str) -> None:
    assert f'thing "{name}": {said}' in refused(name)


def test_an_error_that_a_user_can_mend_stays_what_it_is(things: str) -> None:
    with pytest.raises(JobError, match="thing: cannot go on"):
        plugins.load(GROUP, f"{things}:stops", {})


def test_an_installed_package_makes_a_name_of_it(things: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(tmp_path, "good-things", {"thing": f"{things}:Thing"}, monkeypatch)
    assert plugins.known_names(GROUP, ["ours"]) == {"ours": ["empathy-eval"], "thing": ["good-things"]}
    assert plugins.load(GROUP, "thing", {"most": 2}).most == 2
    assert "use one of thing, module:name" in refused("thin")


def test_a_name_that_two_offer_is_nobodys_and_both_are_named(things: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(tmp_path, "good-things", {"thing": f"{things}:Thing", "ours": f"{things}:Thing"}, monkeypatch)
    offered(tmp_path, "other-things", {"thing": "other:Thing"}, monkeypatch)
    said = refused("thing")
    assert 'thing "thing": is offered by other-things and by good-things' in said and "uninstall one of them" in said
    assert "is offered by empathy-eval and by good-things" in refused("ours", built_in={"ours": f"{things}:Thing"})


def test_our_own_names_need_no_package(things: str) -> None:
    assert plugins.load(GROUP, "ours", {}, {"ours": f"{things}:ready"}) == [1, 2]
