"""Places and tracebacks of what code of others raised."""

from __future__ import annotations

import traceback
from functools import cache
from pathlib import Path
from types import FrameType

OURS = str(Path(__file__).parents[1])


def whole(error: BaseException) -> str:
    """The whole traceback as text."""
    return "".join(traceback.format_exception(error))


def place_of(error: BaseException) -> str:
    """Where code of others raised an error, as `` (shared_words.py:12, in score)``; empty where no such code took part.

    It is the last line of the user's own code, else of the installed package that was called. The file is told as its module is named, so
    that no folder of a machine is in what is written.
    """
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return f" ({Path(error.filename).name}:{error.lineno})"
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _of_others(frame)]
    own = [one for one in frames if not _installed(one[0])]
    packaged = [one for one in frames if _module(one[0])[0] == _module(frames[0][0])[0]]
    if not own and not packaged:
        return ""
    frame, line = (own or packaged)[-1]
    name = frame.f_code.co_name
    return f" ({_file(frame)}:{line}{'' if name == '<module>' else f', in {name}'})"


def _of_others(frame: FrameType) -> bool:
    """Whether it is neither code of ours nor of the standard library."""
    path = frame.f_code.co_filename
    return not path.startswith((OURS, "<frozen")) and (not path.startswith(_standard()) or _installed(frame))


@cache
def _standard() -> tuple[str, ...]:
    from sysconfig import get_paths

    return get_paths()["stdlib"], get_paths()["platstdlib"]


def _installed(frame: FrameType) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(frame.f_code.co_filename).parts)


def _module(frame: FrameType) -> list[str]:
    return str(frame.f_globals.get("__name__", "")).split(".")


def _file(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    return "/".join(path.parts[-len(_module(frame)) - (path.stem == "__init__") :])
