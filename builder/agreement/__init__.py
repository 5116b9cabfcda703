"""Agreement of raters, one file a family: figures that say when they are not defined, with intervals over items."""

from builder.agreement.agreeing import Agreement, agree
from builder.agreement.bootstrap import Measure
from builder.agreement.reading import read_table
from builder.agreement.table import Table

__all__ = ["Agreement", "Measure", "Table", "agree", "read_table"]
