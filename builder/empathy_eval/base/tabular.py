"""Tables: CSV and JSONL read line by line, parquet read and written in row groups, with errors that name the place."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from empathy_eval.base.errors import Problem, input_error
from empathy_eval.base.files import whole_file
from empathy_eval.base.parsing import ParseError, json_value

# What a line of a text file may hold, in signs.
LONGEST = 2**20
TOO_LONG = f"is a line of more than {LONGEST:,} characters"
OBJECTS = "write one JSON object per line, in UTF-8 without a byte order mark"
DELIMITERS = {".csv": ",", ".tsv": "\t"}
TableRow = dict[str, Any]
WHOLE = "name the folder of a release; if it is one, fetch it again whole"
# What a group of rows may hold; those of our data have 2,000 rows.
MOST_ROWS, MOST_BYTES = 100_000, 2**29
# Rows are written in groups of this many: memory does not grow with the release, and who reads a row from afar fetches no more than these.
GROUP = 2000


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of a UTF-8 CSV or TSV file; a byte order mark is skipped.

    Raises:
        InputError: if the file cannot be read, is not UTF-8 or not CSV.
    """
    form = "TSV" if delimiter == "\t" else "CSV"
    with _opened(path, form, "utf-8-sig") as stream:
        reader = csv.reader(_lines(stream), strict=True, delimiter=delimiter)
        try:
            for row in reader:
                yield reader.line_num, row
        except ParseError as error:
            raise input_error(f"{path}: line {reader.line_num + 1}", str(error), "split the file into shorter lines") from error
        except csv.Error as error:
            raise input_error(f"{path}: line {reader.line_num}", f"is not {form}: {error}", "quote cells that contain quotes") from error


def headed_rows(path: Path, otherwise: str | None = None) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header of a CSV or TSV file, by its suffix, and (line number, cells) of the other lines.

    ``otherwise`` is the fix for another suffix; without it such a file is read as CSV.

    Raises:
        InputError: as :func:`csv_rows`, or for another suffix.
    """
    delimiter = DELIMITERS.get(path.suffix.lower())
    if delimiter is None and otherwise:
        raise input_error(path, f'ends in "{path.suffix}"', otherwise)
    lines = csv_rows(path, delimiter or ",")
    return [name.strip() for name in next(lines, (0, list[str]()))[1]], lines


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    """(line number, object) of a UTF-8 JSONL file, or the problem of the line; empty lines are skipped.

    Raises:
        InputError: if the file cannot be read, or is not UTF-8.
    """
    with _opened(path, "JSONL", "utf-8") as stream:
        for number, line in enumerate(_lines(stream, stop=False), 1):
            try:
                if line.strip():
                    yield number, _object(line)
            except ParseError as error:
                yield number, Problem(f"{path}: line {number}", str(error), OBJECTS)


def _object(line: str) -> dict[str, Any]:
    if len(line) > LONGEST:
        raise ParseError(TOO_LONG)
    if line.startswith("\ufeff"):
        raise ParseError("begins with a byte order mark")
    if not isinstance(value := json_value(line), dict):
        raise ParseError(f"is not an object: {line.strip()[:80]}")
    return value


@contextmanager
def _opened(path: Path, form: str, encoding: str) -> Iterator[TextIO]:
    """Opens an untrusted text file; errors while it is read become an :class:`InputError`."""
    try:
        with path.open(encoding=encoding, newline="") as stream:
            yield stream
    except OSError as error:
        raise input_error(path, f"cannot be read: {error.strerror}", "check the path") from error
    except UnicodeDecodeError as error:
        what = f"is not UTF-8: {error.reason} ({error.object[error.start]:#04x})"
        raise input_error(path, what, f"save it as {form} in UTF-8") from error


def _lines(stream: TextIO, *, stop: bool = True) -> Iterator[str]:
    """The lines of a file. A line that is too long is cut, or with ``stop`` raises a :class:`ParseError`."""
    while line := stream.readline(LONGEST + 1):
        if len(line) > LONGEST and stop:
            raise ParseError(TOO_LONG)
        yield line
        while len(line) > LONGEST and not line.endswith(("\n", "\r")):
            line = stream.readline(LONGEST + 1)  # noqa: PLW2901 (the rest of the same line)


def table_batches(path: Path, columns: list[str] | None = None, rows: int = 1000) -> Iterator[pa.RecordBatch]:
    """Record batches of a parquet file of a release, all columns or the named ones.

    Raises:
        InputError: if the file is missing or damaged, lacks a column, or has two of one name.
    """
    with parquet_errors(path), pq.ParquetFile(path) as table:
        names = table.schema_arrow.names
        if missing := [name for name in columns or () if name not in names]:
            raise input_error(path, f'misses the column "{missing[0]}"', WHOLE)
        if len(set(names)) < len(names):
            twice = next(name for index, name in enumerate(names) if name in names[:index])
            raise input_error(path, f'has the column "{twice[:80]}" twice', WHOLE)
        check_group_sizes(path, table.metadata)
        for batch in table.iter_batches(rows, columns=columns):
            batch.validate(full=True)
            yield batch


def check_group_sizes(path: Path, metadata: pq.FileMetaData) -> None:
    """Raises an :class:`InputError` for a file with row groups too large for memory."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if group.num_rows > MOST_ROWS or group.total_byte_size > MOST_BYTES:
            what = f"group {number} has {group.num_rows:,} rows and {group.total_byte_size:,} bytes"
            raise input_error(path, what, f"a group has at most {MOST_ROWS:,} rows and {MOST_BYTES:,} bytes; {WHOLE}")


def schema_of(path: Path) -> pa.Schema:
    """The columns of a parquet file.

    Raises:
        InputError: as :func:`table_batches`.
    """
    with parquet_errors(path):
        return pq.read_schema(path)


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Turns errors of a missing or damaged parquet file into an :class:`InputError`."""
    if not path.is_file():
        raise input_error(path, "is not there", WHOLE)
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise input_error(path, f"cannot be read: {error}", WHOLE) from error
    except UnicodeEncodeError as error:
        fix = "rename the folder, or run the command inside it"
        raise input_error(path, "cannot be read: parquet needs a path in UTF-8", fix) from error


class TableWriter:
    """Writes a parquet file of one schema in row groups; without rows it is a valid empty file. ``about`` is stored as file metadata;
    without it the schema's own metadata stay.
    """

    def __init__(self, path: Path, schema: pa.Schema, about: Mapping[str, str] | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._schema = schema = schema.with_metadata(dict(about)) if about else schema
        self._rows: list[TableRow] = []
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def add(self, row: TableRow) -> None:
        """Adds a row."""
        self._rows.append(row)
        if len(self._rows) >= GROUP:
            self._flush()

    def add_table(self, rows: pa.Table) -> None:
        """Adds a row group of the schema."""
        self._writer.write_table(rows)

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *error: object) -> None:
        if self._rows:
            self._flush()
        self._writer.close()


def write_rows(path: Path, columns: pa.Schema, rows: Iterable[dict[str, Any]]) -> None:
    """Writes rows as parquet or CSV, by the suffix."""
    with whole_file(path) as partial:
        if path.suffix == ".parquet":
            with TableWriter(partial, columns) as table:
                for row in rows:
                    table.add(row)
            return
        with partial.open("w", encoding="utf-8", newline="") as stream:
            lines = csv.DictWriter(stream, columns.names, lineterminator="\n")
            lines.writeheader()
            lines.writerows(rows)
