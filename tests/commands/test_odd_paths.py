"""Odd paths in the place of every path that a verb or a call takes: a clear error, never a traceback."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pytest
from empathy_eval.cli import main
from empathy_eval.completions.ledger import Ledger

from tests.base.test_paths import odd
from tests.conftest import copy_world, demo_file

CALLS = [call for name in ee.__all__ if inspect.isfunction(call := getattr(ee, name))]


def path_arguments() -> Iterator[Any]:
    """Every call with every argument of it that is annotated as a path."""
    for call in CALLS:
        for name, kind in call.__annotations__.items():
            if "Path" in kind and name != "return":
                yield pytest.param(call, name, id=f"{call.__name__}-{name}")


@pytest.mark.parametrize(("call", "name"), path_arguments())
@pytest.mark.parametrize("path", ["a\0b", "n/" * 3000, "http://x"])
def test_every_path_of_every_call_is_at_the_border(call: Callable[..., Any], name: str, path: str) -> None:
    needed = [one.name for one in inspect.signature(call).parameters.values() if one.default is one.empty and one.kind != one.VAR_KEYWORD]
    with pytest.raises(ee.InputError) as caught:
        call(**{**dict.fromkeys(needed, "absent"), name: [path] if "Sequence" in call.__annotations__[name] else path})
    assert len(caught.value.problems) == 1 and caught.value.problems[0].where.startswith(path[:50].replace("\0", "\0"))


# {} is the path in question; B a build, R its release, L a ledger, T a table, C a configuration, N what is new.
VERBS = """\
build {} --out N --offline
build C --out {} --offline
build C --out N --offline --ledger {}
build C --out N --requests-to {}
build C --out N --offline --scenarios {}
build C --out N --offline --templates {}
build C --out N --offline --rules {}
preview {} -n 0
preview C -n 0 --ledger {}
release {} --out N --version 1.0.0
release B --out {} --version no
release B --out N --version 1.0.0 --reviews {}
release B --out N --version 1.0.0 --annotations {}
release B --out N --version 1.0.0 --sign {}
report {} --out N
report R --out {} --trust-metrics x
report R --out N --cache {} --trust-metrics x
verify {} --fast
verify R --fast --ledger {}
verify R --fast --signer {}
diff {} R
diff R {}
publish {} --dry-run
review export {} --out N
review export R --out {} --pairs 1 --raters 6 --dialogues 0
review export R --out N --replies {}
review import R T --key {} --reviews N
review import R {} --key T --reviews N
review import R T --key T --reviews {}
annotate {} --out N --rubric teacher --model m --offline
annotate R --out {} --rubric {} --model m --offline
annotate R --out N --rubric teacher --model {} --offline
annotate R --out N --rubric teacher --model m --offline --templates {}
annotate R --out N --rubric teacher --model m --offline --reviews {}
annotate R --out N --rubric teacher --model m --offline --beside {}
agree {}
agree T --release {}
agree T --page {}
agree T --page N --rubric {}
study {} --baseline a
study T --baseline a --page {}
study T --baseline a --add {}
study T --baseline a --raters {}
show {} 003-seed
show R 003-seed --ledger {}
show R 003-seed --reviews {}
show B 003-seed --scenarios {}
show B 003-seed --templates {}
show B 003-seed --rules {}
explore {} --out N
explore R --out {}
score {} --metric length
score R --metric length --no-shortcuts --cache {}
score R --metric length --no-shortcuts --no-cache --items {}
score R --no-shortcuts --scores {}
score R --no-shortcuts --annotations {}
score R --metric length --no-shortcuts --no-cache --ratings {}
score R --metric length --no-shortcuts --no-cache --fairness --rules {}
shortcuts {}
shortcuts R --without embedding --out {}
train {} --out N
train R --out {}
ledger show {}
ledger show L --config {}
ledger merge {} L
ledger merge N {}
ledger import {} T
ledger import L {}""".splitlines()


@pytest.fixture
def odd_ones(tmp_path: Path) -> dict[str, str]:
    """All odd paths that a command line can hold."""
    (tmp_path / "nowhere").symlink_to("absent")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").touch()
    (tmp_path / "file").write_text("x")
    (tmp_path / "closed").write_text("x")
    (tmp_path / "closed").chmod(0)
    (tmp_path / "deaf").mkdir(0)
    more = {
        "link to nowhere": tmp_path / "nowhere", "folder": tmp_path / "folder", "file": tmp_path / "file", "home": "~/x", "root": "/",
        "under a file": tmp_path / "file" / "x", "unreadable": tmp_path / "closed", "in a closed folder": tmp_path / "deaf" / "x",
        "nothing": "", "trailing slash": f"{tmp_path}/absent/", "file with a slash": f"{tmp_path}/file/",
    }  # fmt: skip
    return {
        **{what: path for what, path in odd(tmp_path).items() if what not in ("NUL", "half a sign")},
        **{k: str(v) for k, v in more.items()},
    }


# What no verb can work with, whatever it is for.
IMPOSSIBLE = {"long name", "long path", "link to itself", "under such a link", "named pipe", "link to a pipe", "device", "address"}
# Of the other paths a verb tries every fourth, the next verb others; all with LONG=1.
EVERY = 1 if "LONG" in os.environ else 4
# There the project's own root would be written into.
INTO = ("build C --out {}", "annotate R --out {}")


@pytest.mark.e2e
@pytest.mark.sampled
@pytest.mark.parametrize("verb", VERBS)
def test_an_odd_path_is_an_error_with_a_fix_and_no_traceback(
    verb: str, odd_ones: dict[str, str], light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Ledger(tmp_path / "ledger.sqlite"):
        pass
    (tmp_path / "table.csv").write_text("item,rater,rating,group\n1,a,1,a\n1,b,2,b\n2,a,2,a\n2,b,1,b\n")
    world = copy_world(tmp_path / "scenarios")
    names = {
        "B": str(light.parent / "build"), "R": str(light), "L": "ledger.sqlite", "T": "table.csv", "N": "new",
        "C": str(demo_file(tmp_path)),
    }  # fmt: skip
    for place, (what, path) in enumerate(odd_ones.items(), VERBS.index(verb)):
        if what not in IMPOSSIBLE and place % EVERY or what == "root" and verb.startswith(INTO):
            continue
        arguments = [path if word == "{}" else names.get(word, word) for word in verb.split()]
        arguments += ["--scenarios", str(world)] if verb.startswith("build") and "--scenarios" not in verb else []
        try:
            status = main(arguments)
        except SystemExit as error:  # argparse
            status = int(error.code or 0)
        except BaseException as error:
            raise AssertionError(f"{what}: {path}: {error!r}") from error
        said = capsys.readouterr()
        assert "Traceback" not in said.err and status in (0, 1, 2), (what, said.err)
        if what in IMPOSSIBLE:
            assert status == 2 and "\n  Fix: " in said.err, (what, status, said.err)
    assert os.path.lexists(tmp_path / "pipe"), "what is no file is left alone"
