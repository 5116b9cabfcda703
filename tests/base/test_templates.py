"""Templates of strangers: they read what they are given; they call nothing, write nothing and fill no memory."""

from __future__ import annotations

import pickle
import re
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.templates import environment, rendered
from empathy_eval.cli import main
from empathy_eval.design.prompts import load_prompts

REPAIR = "{{% block user %}}{}{{% endblock %}}"


def shown(source: str, **values: Any) -> str:
    template = environment(None).from_string(source)
    return rendered("it.md.j2", lambda: template.root_render_func(template.new_context(values)))


def refused(source: str, **values: Any) -> str:
    with pytest.raises(InputError) as caught:
        shown(source, **values)
    assert "it.md.j2" in str(caught.value)
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(data_folder("prompt_templates"), tmp_path / "templates"))


@pytest.mark.parametrize(
    "expression",
    [
        "taxonomy.__class__.__init__.__globals__['sys'].modules['pathlib'].Path('{place}').write_text('x')",
        "self.__init__.__globals__.__builtins__.open('{place}', 'w').write('x')",
        "cycler.__init__.__globals__.os.system('touch {place}')",
        "plan.turns.__class__.__base__.__subclasses__()",
    ],
)
def test_a_template_that_opens_a_file_opens_none_and_is_named(
    expression: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "written"
    path = folder / "self_chat.md.j2"
    path.write_text(path.read_text().replace("{% block user %}", "{% block user %}{{ " + expression.format(place=place) + " }}"))
    assert main(["preview", str(demo()), "--templates", str(folder)]) == 2
    said = capsys.readouterr().err
    assert re.search(r"self_chat\.md\.j2: line \d+: is stopped: access to attribute '__", said) and "Traceback" not in said
    assert not place.exists()


def demo() -> Path:
    return data_folder("release") / "demo.yaml"


def test_a_template_calls_no_method_of_an_object_it_is_given(tmp_path: Path) -> None:
    given = SimpleNamespace(path=tmp_path / "x", rows=[1], run=lambda: "ran", kind=SimpleNamespace)
    for source in ("{{ given.path.touch() }}", "{{ given.path.write_text('x') }}", "{{ given.run() }}", "{{ given.kind() }}"):
        assert "is stopped" in refused(source, given=given)
    for source in ("{{ given.rows.append(2) }}", "{{ given.rows | map(attribute='__class__') | first }}", "{{ given['run']() }}"):
        refused(source, given=given)
    assert given.rows == [1] and not list(tmp_path.iterdir())


def test_what_a_plain_template_does_works() -> None:
    source = (
        "{% macro name(one) %}<{{ one.upper() }}>{% endmacro %}{% set ns = namespace(all=[]) %}"
        "{% for key, value in given.items() %}{% set ns.all = ns.all + [key ~ '=' ~ value] %}{{ loop.cycle('a', 'b') }}{% endfor %}"
        '{{ ns.all | join(", ") }} {{ name("x y".split()[0]) }} {{ "%.2f" | format(2) }} {{ "{:,}".format(2000) }} {{ "-" * 3 }}'
    )
    assert shown(source, given={"one": 1, "two": [2]}) == "abone=1, two=[2] <X> 2.00 2,000 ---"


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 10 ** 10 }}",
        "{{ 10 ** 10 * 'a' }}",
        "{{ ['a'] * 10 ** 10 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ range(10 ** 10) | list }}",
        "{{ '%10000000000d' % 1 }}",
        "{{ '%*d' % (10 ** 10, 1) }}",
        "{{ '%10000000000d' | format(1) }}",
        "{{ '{:10000000000}'.format(1) }}",
        "{{ '{:{}}'.format(1, 10 ** 10) }}",
        "{{ 'a' | indent(10 ** 10, true) }}",
        "{{ [1] | tojson(10 ** 10) }}",
        "{{ 'a'.ljust(10 ** 10) }}",
        "{% set x = 'aaaaaaaaaa' %}" + "{% set x = x ~ x %}" * 60 + "{{ x | length }}",
        "{% set x = 'aaaaaaaaaa' %}" + "{% set x = x + x %}" * 60 + "{{ x | length }}",
        "{% set x = 'aaaaaaaaaa' %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60 + "{{ x | length }}",
        "{% set x = 'aaaaaaaaaa' %}" + "{% set x = x | replace('a', x) %}" * 9 + "{{ x | length }}",
        "{% set x = ['aaaaaaaaaa'] %}" + "{% set x = [x, x] %}" * 60 + "{{ x }}",
        "{% set x = ['aaaaaaaaaa'] %}" + "{% set x = [x, x] %}" * 60 + "{{ x | string | length }}",
        "{% set x = range(90000) | join('aaaaaaaaaa' * 1000) %}{{ x | length }}",
        "{% for x in range(90000) %}{{ 'a' * 1000000 }}{% endfor %}",
        "{% set x = 99 %}" + "{% set x = x * x %}" * 60 + "{{ x }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ lipsum(10 ** 6) }}",
        "{{ 1 / 0 }}",
    ],
)
def test_what_would_fill_memory_is_refused_in_words(source: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = refused(source)
    assert "is stopped" in said or "cannot be rendered" in said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700_000


def test_a_large_text_takes_no_memory_while_it_is_compiled(folder: Path) -> None:
    (folder / "repair.md.j2").write_text(REPAIR.format("{{ 'a' * 10 ** 10 }}"))
    code = f"from pathlib import Path; from empathy_eval.design.prompts import load_prompts; p = load_prompts(Path({str(folder)!r}))"
    told = subprocess.run(
        [sys.executable, "-c", f"{code}; p.render('repair', violations=[])"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent.parent,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30)),
    )  # fmt: skip
    assert "InputError: repair.md.j2: line 1: is stopped: it would make more than 50,000,000 characters" in told.stderr


def test_brackets_without_end_are_refused(folder: Path) -> None:
    (folder / "repair.md.j2").write_text(REPAIR.format("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}"))
    with pytest.raises(InputError, match=r"repair\.md\.j2"):
        load_prompts(folder)


def test_a_filter_that_fills_memory_is_not_there(folder: Path) -> None:
    (folder / "repair.md.j2").write_text(REPAIR.format("{{ 'a' | center(10 ** 10) }}"))
    with pytest.raises(InputError, match="No filter named 'center'"):
        load_prompts(folder)


@dataclass(frozen=True)
class Given:
    """What a template is given."""

    least: int = 1
    most: int = 2


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("a\nb {{ one.mots }}", 'it.md.j2: line 2: cannot be rendered: "mots" is not known; use one of least, most'),
        ("\n\n{{ two.colour }}", 'it.md.j2: line 3: cannot be rendered: "colour" is not known; use one of color, size'),
        ("{{ one['mots'] }}", '"mots" is not known; use one of least, most'),
        ("{{ three }}", "it.md.j2: line 1: cannot be rendered: 'three' is undefined"),
        ("{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n\n{{ m() }}", "it.md.j2: line 2: cannot be rendered: division by zero"),
        ("{{ '\\ud800' }}", "it.md.j2: cannot be rendered: it writes half of a surrogate pair ('\\ud800')"),
    ],
)
def test_a_typo_is_told_with_its_line_and_what_is_known_there(source: str, said: str) -> None:
    assert said in refused(source, one=Given(), two={"size": 1, "color": 2})


@pytest.mark.parametrize("way", ['{% include "other.md.j2" %}', '{% import "other.md.j2" as o %}', '{% from "../x" import y %}'])
def test_a_prompt_is_one_file(way: str, folder: Path) -> None:
    (folder / "other.md.j2").write_text("other")
    (folder / "repair.md.j2").write_text(REPAIR.format(way))
    with pytest.raises(InputError, match=r"repair\.md\.j2: line 1: asks for another template"):
        load_prompts(folder)


def test_what_lies_outside_the_folder_of_a_template_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "beside.md.j2").write_text("beside")
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "ok.md.j2").write_text('{% include "beside.md.j2" %}')
    templates = environment(inside)
    assert templates.get_template("ok.md.j2").render() == "beside"
    for name in ("link", "../secret", str(tmp_path / "secret")):
        (inside / "odd.md.j2").write_text(f'{{% include "{name}" %}}')
        odd = environment(inside).get_template("odd.md.j2")
        with pytest.raises(InputError, match=r"^odd\.md\.j2: line 1: is stopped"):
            rendered("odd.md.j2", lambda odd=odd: odd.root_render_func(odd.new_context({})))  # type: ignore[misc]


def test_in_another_process_a_template_is_in_the_same_sandbox(folder: Path) -> None:
    (folder / "repair.md.j2").write_text(REPAIR.format("{{ violations.__class__ }}"))
    there = pickle.loads(pickle.dumps(load_prompts(folder)))
    with pytest.raises(InputError, match="is stopped"):
        there.render("repair", violations=[])
