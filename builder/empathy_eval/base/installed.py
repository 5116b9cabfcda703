"""How the program came to be installed, and so how more of it is: it lies on no package index, so its name alone says nothing to pip."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

NAME = "empathy-eval"
# Of a checkout: the package lies in builder/.
SOURCE = Path(__file__).parents[3]


def install_line(extra: str = "") -> str:
    """The line for a shell that installs what an extra needs, or what the program itself needs, where this program came from."""
    try:
        found = distribution(NAME)
    except PackageNotFoundError:
        found = None
    return line_for(extra, SOURCE, found)


def line_for(extra: str, source: Path, found: Distribution | None) -> str:
    """The line of a program that lies in a folder which may be a checkout, or that pip knows as a distribution."""
    extras = f"[{extra}]" if extra else ""
    if _is_checkout(source):
        return f"pip install -e {shlex.quote(f'{source}{extras}')}"
    if found is None:
        return f"pip install -e {shlex.quote(f'CHECKOUT{extras}')}, where CHECKOUT is the folder of the project"
    if origin := _origin(found.read_text("direct_url.json")):
        return f"pip install {shlex.quote(f'{NAME}{extras} @ {origin}')}"
    return " ".join(["pip install", *map(shlex.quote, requirements(found.requires or [], extra))])


def requirements(lines: list[str], extra: str) -> list[str]:
    """Those of a distribution's requirements that an extra adds; what names another extra of ours is what that one adds."""
    wanted = []
    for line in lines:
        requirement, _, marker = line.partition(";")
        named = re.search(r"""extra\s*==\s*["']([^"']*)["']""", marker)
        if (named[1] if named else "") != extra:
            continue
        ours = re.fullmatch(rf"{NAME}\s*\[(.*)\]\s*", requirement)
        wanted += [one for other in ours[1].split(",") for one in requirements(lines, other.strip())] if ours else [requirement.strip()]
    return list(dict.fromkeys(wanted))


def _is_checkout(folder: Path) -> bool:
    try:
        return bool(tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == NAME)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _origin(direct_url: str | None) -> str:
    """Where pip took the distribution from, as it takes it again; nothing if that was an index, or is no longer there."""
    if direct_url is None:
        return ""
    told = json.loads(direct_url)
    url = str(told["url"])
    if url.startswith("file:") and not Path(url2pathname(urlsplit(url).path)).exists():
        return ""
    if repository := told.get("vcs_info"):
        url = f"{repository['vcs']}+{url}@{repository['commit_id']}"
    return f"{url}#subdirectory={told['subdirectory']}" if "subdirectory" in told else url
