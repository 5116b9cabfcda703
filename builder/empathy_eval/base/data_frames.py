"""Results as data frames of pandas, which is loaded only where somebody asks for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import NOT_INSTALLED, input_error

if TYPE_CHECKING:
    import pandas as pd


def data_frame(records: Iterable[Mapping[str, Any]], columns: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    """A row a record; the columns ``numbers`` are floats, and what is None in them is NaN.

    Raises:
        InputError: if pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise input_error("to_pandas", NOT_INSTALLED, "pip install pandas, or use to_json()") from error
    return pd.DataFrame(list(records), columns=list(columns)).astype(dict.fromkeys(numbers, "float64"))
