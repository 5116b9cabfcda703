"""One record for every figure: what its tables write of it, and what it says when it is not defined."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from empathy_eval.base.json_text import fields_from_json, fields_json
from empathy_eval.statistics.estimate import TESTED, Estimate


@dataclass(frozen=True)
class Table:
    plain: Estimate
    tested: Estimate | None = field(metadata=TESTED)
    signed: dict[str, Estimate]


TABLE = Table(
    Estimate(0.5, 0.4, 0.6, p=0.01), Estimate(0.1, -0.1, 0.3, 0.04, 0.08), {"alpha": Estimate.undefined("no item in common", "alpha:k")}
)  # fmt: skip


def test_a_table_writes_p_values_where_it_tests_and_reasons_where_figures_are_signed() -> None:
    assert fields_json(TABLE) == {
        "plain": {"value": 0.5, "low": 0.4, "high": 0.6},
        "tested": {"value": 0.1, "low": -0.1, "high": 0.3, "p": 0.04, "holm": 0.08},
        "signed": {"alpha": {"value": None, "low": None, "high": None, "items": 0, "why": "no item in common", "signature": "alpha:k"}},
    }
    assert fields_json(Table(Estimate(0.5), None, {}))["tested"] is None


def test_what_a_table_wrote_is_read_back() -> None:
    found = fields_from_json(Table, fields_json(TABLE), {})
    assert (found.tested, found.signed) == (TABLE.tested, TABLE.signed) and found.plain == Estimate(0.5, 0.4, 0.6)


def test_a_figure_that_is_not_defined_has_no_number_and_says_why() -> None:
    one = Estimate.of_resamples(np.array([np.nan, 0.5]), 3, "in common", "both are alike", "kappa")
    assert str(one) == "not defined: both are alike" and one.interval is None and not one.decided
    with pytest.raises(ValueError, match="both are alike"):
        _ = one.number
    assert Estimate.of_resamples(np.array([0.5]), 1, "in common", "", "kappa").reason == "only one item in common"


def test_an_interval_is_of_percentiles_where_enough_resamples_are_defined() -> None:
    values = np.array([0.5, *np.linspace(0, 1, 101)])
    found = Estimate.of_resamples(values, 9, "in common", "", "kappa")
    assert found.interval == pytest.approx((0.025, 0.975)) and (found.number, found.n, found.reason) == (0.5, 9, None)
    few = Estimate.of_resamples(np.array([0.5, *[np.nan] * 6, *[0.1] * 94]), 9, "in common", "", "kappa")
    assert few.number == 0.5 and few.interval is None and "6 of 100 resamples" in str(few.reason)
    assert Estimate(0.2, 0.1, 0.3).decided and not Estimate(0.2, -0.1, 0.3).decided
