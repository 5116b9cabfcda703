"""CSV files that people hand in, line by line, with errors that say where."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from builder.errors import input_error


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of a CSV file in UTF-8; a byte order mark does no harm.

    Raises:
        InputError: if the file cannot be read, is not UTF-8 or not CSV.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            try:
                for row in reader:
                    yield reader.line_num, row
            except csv.Error as error:
                raise input_error(f"{path}: line {reader.line_num}", f"is not CSV: {error}", "quote cells that hold quotes") from error
    except OSError as error:
        raise input_error(path, f"cannot be read: {error.strerror}", "check the path") from error
    except UnicodeDecodeError as error:
        raise input_error(path, f"is not UTF-8: {error.reason} ({error.object[error.start]:#04x})", "save it as CSV in UTF-8") from error
