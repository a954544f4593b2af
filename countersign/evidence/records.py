"""The records of a CSV file told by their separators alone, quickly; and, slowly, which record is wrong.

It stands apart because DuckDB's reader is not strict enough: it skips empty lines and drops a trailing separator. Here
everything but separators is deleted from the file, and what remains must be the same line again and again.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from countersign.domain.errors import DataRefused

MAX_RECORD = 4 << 20
"""The longest record, in bytes."""


class Shape:
    """Compares the separators of a file with those of its header, a block at a time."""

    def __init__(self, width: int, delimiter: str, line_end: bytes) -> None:
        self.records = 0
        self.regular = True
        self.width = width
        self.delimiter = delimiter
        self._unit = delimiter.encode() * (width - 1) + line_end
        self._line_end = line_end
        self._others = bytes(code for code in range(256) if code not in b"\r\n" + delimiter.encode())
        self._rest = b""

    def take(self, text: bytes) -> None:
        """Go on with `text`, which lies outside quotes."""
        separators = self._rest + text.translate(None, self._others)
        count = len(separators) // len(self._unit)
        end = count * len(self._unit)
        self.regular = self.regular and separators[:end] == self._unit * count
        self.records += count
        self._rest = separators[end:]

    def finish(self, text_ends_with_line_end: bool) -> None:
        """Count a last record whose line is not ended."""
        if not text_ends_with_line_end:
            self.take(self._line_end)
        self.regular = self.regular and not self._rest


def records_of(path: Path, delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """Each data record as `(row, line, fields)`, both counted from 1; slow, for explaining a refusal."""
    csv.field_size_limit(MAX_RECORD)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        next(reader)
        line = reader.line_num + 1
        for row, fields in enumerate(reader, start=1):
            yield row, line, fields
            line = reader.line_num + 1


def broken_record(path: Path, delimiter: str, width: int, cause: str) -> DataRefused:
    """The refusal of a file with a record that is not as long as the header, or else for `cause`."""
    try:
        for row, line, fields in records_of(path, delimiter):
            if not fields and width > 1:
                return DataRefused(f"line {line} is empty; remove it, since every record needs {width} fields")
            if len(fields) not in (0, width):
                return DataRefused(
                    f"row {row} (line {line}) has {len(fields)} fields, but the header has {width}; put a field that"
                    f" holds {delimiter!r} in quotes, or fill the missing ones"
                )
    except csv.Error as error:
        return DataRefused(f"a record cannot be read: {error}; shorten it or correct its quotes")
    return DataRefused(f"the file cannot be read as CSV: {cause}; save it again with plain line ends")


def check_line_ends(path: Path) -> None:
    """Refuse a file without quotes whose lines end in different ways.

    Raises:
        DataRefused: naming the first such line.
    """
    with path.open("rb") as file:
        first = file.readline()
        ending = b"\r\n" if first.endswith(b"\r\n") else b"\n"
        for number, line in enumerate([first, *file], start=1):
            body = line.removesuffix(ending)
            if b"\r" in body or b"\n" in body:
                raise DataRefused(f"line {number} ends unlike the first line; save the file with one kind of line end")
