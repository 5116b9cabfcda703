"""What is missing is installed by the line that an error names, wherever the program came from."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import SOURCE, install_line_for, missing_package, requirements

METADATA = """\
Metadata-Version: 2.4
Name: empathy-eval
Version: 0.1.0
Requires-Dist: jinja2>=3.1
Provides-Extra: all
Requires-Dist: empathy-eval[bertscore,detoxify]; extra == 'all'
Provides-Extra: bertscore
Requires-Dist: bert-score>=0.3.13; extra == 'bertscore'
Requires-Dist: torch>=2.4; extra == 'bertscore'
Provides-Extra: detoxify
Requires-Dist: detoxify>=0.5.2; extra == "detoxify"
Requires-Dist: torch>=2.4; extra == 'detoxify'
"""


def line(folder: Path, extra: str, direct_url: dict[str, Any] | None = None, source: Path = Path("/nowhere")) -> list[str]:
    """The words of the line for a distribution that pip wrote into a folder."""
    info = folder / "empathy_eval-0.1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(METADATA)
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps(direct_url))
    return shlex.split(install_line_for(extra, source, Distribution.at(info)))


def test_in_a_checkout_the_line_installs_the_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "it's a checkout"
    checkout.mkdir()
    (checkout / "pyproject.toml").write_text('[project]\nname = "empathy-eval"\n')
    assert line(tmp_path, "ray", source=checkout) == ["pip", "install", "-e", f"{checkout}[ray]"]
    assert shlex.split(missing_package("--engine ray", "ray").problems[0].fix) == ["pip", "install", "-e", f"{SOURCE}[ray]"]


def test_another_project_that_lies_around_the_package_is_no_checkout(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    assert "-e" not in line(tmp_path, "ray", source=tmp_path)


def test_what_came_from_a_wheel_a_folder_or_a_repository_is_installed_from_there(tmp_path: Path) -> None:
    wheel = tmp_path / "a folder" / "empathy_eval-0.1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    for url in (wheel.as_uri(), wheel.parent.as_uri(), "https://example.org/empathy_eval-0.1.0-py3-none-any.whl"):
        assert line(tmp_path, "bertscore", {"url": url, "archive_info": {}}) == ["pip", "install", f"empathy-eval[bertscore] @ {url}"]
    repository = {"url": "https://example.org/it.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}, "subdirectory": "part"}
    told = "empathy-eval @ git+https://example.org/it.git@abc#subdirectory=part"
    assert line(tmp_path, "", repository) == ["pip", "install", told]


def test_where_nothing_is_left_to_install_from_the_line_names_the_packages(tmp_path: Path) -> None:
    packages = ["pip", "install", "bert-score>=0.3.13", "torch>=2.4"]
    assert line(tmp_path, "bertscore") == packages
    assert line(tmp_path, "bertscore", {"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}}) == packages
    assert line(tmp_path, "all") == [*packages, "detoxify>=0.5.2"]
    assert line(tmp_path, "") == ["pip", "install", "jinja2>=3.1"]


def test_a_requirement_belongs_to_its_extra_alone() -> None:
    assert requirements(["a>=1", 'b ; python_version > "3" and extra == "ray"'], "ray") == ["b"]
