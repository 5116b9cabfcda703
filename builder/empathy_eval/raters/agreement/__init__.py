"""Agreement of raters, with confidence intervals over items; undefined figures give a reason."""

from empathy_eval.raters.agreement.agree import Agreement, agree
from empathy_eval.raters.agreement.table import RatingTable, read_table, read_tables
from empathy_eval.statistics.estimate import Estimate

__all__ = ["Agreement", "Estimate", "RatingTable", "agree", "read_table", "read_tables"]
