"""Results as data frames of the real pandas."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pandas as pd
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.printed import data_frame


def test_numbers_are_floats_and_what_is_not_there_is_nan_even_in_a_whole_column() -> None:
    rows: list[dict[str, Any]] = [
        {"name": "a", "some": 1.5, "none": None, "whole": 3},
        {"name": None, "some": None, "none": None, "whole": 4},
    ]
    frame = data_frame(rows, ("name", "some", "none", "whole"), ("some", "none"))
    assert list(frame.columns) == ["name", "some", "none", "whole"] and frame["some"].dtype == frame["none"].dtype == "float64"
    assert frame["some"].isna().tolist() == [False, True] and frame["none"].isna().all()
    assert frame["whole"].dtype == "int64" and frame["name"].isna().tolist() == [False, True]


def test_nothing_is_a_frame_with_its_columns() -> None:
    frame = data_frame([], ("name", "some"), ("some",))
    assert isinstance(frame, pd.DataFrame) and frame.empty and list(frame.columns) == ["name", "some"]


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="to_pandas: needs packages that are not installed\n  Fix: pip install pandas"):
        data_frame([], ("name",), ())


def test_pandas_is_not_loaded_before_it_is_asked_for() -> None:
    code = "import sys, empathy_eval.evaluation.inversion.results, empathy_eval.raters.agreement; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
