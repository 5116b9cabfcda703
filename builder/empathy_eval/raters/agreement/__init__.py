"""Agreement of raters, one file a family: figures that say when they are not defined, with intervals over items."""

from empathy_eval.raters.agreement.agree import Agreement, agree
from empathy_eval.raters.agreement.table import Table, read_table, read_tables
from empathy_eval.statistics.estimate import Measure

__all__ = ["Agreement", "Measure", "Table", "agree", "read_table", "read_tables"]
