"""What ``preview`` prints of its estimates."""

from empathy_eval.commands.preview import estimate_table
from empathy_eval.completions.requests import Usage
from empathy_eval.generation.preview import Estimate

PRICED = Estimate("self_chat", "writer", 1200, Usage(3_000_000, 0, 900_000), 12.5, 1.25, True)
FREE = Estimate("far_empathetic", "a-model-whose-name-is-long", 10, Usage(100, 0, 50), None, 0.5, False)


def test_the_estimates_add_up_under_their_columns() -> None:
    head, row, total = estimate_table((PRICED,)).splitlines()
    assert row.split() == ["self_chat", "writer", "1,200", "3,000,000", "900,000", "$12.50", "1.2", "the", "ledger's", "averages"]
    assert total.split() == ["in", "all", "1,200", "3,000,000", "900,000", "$12.50", "1.2"]
    assert head.index("hours") + len("hours") == row.index("1.2  the") + len("1.2") == len(total)


def test_where_one_kind_has_no_prices_there_is_no_sum_of_dollars() -> None:
    *_, row, total = estimate_table((PRICED, FREE)).splitlines()
    assert "no prices" in row and row.endswith("assumed sizes") and "a-model-whose-name-is- " in row
    assert "no prices" in total and "1,210" in total and "3,000,100" in total
