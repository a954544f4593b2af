"""The bytes of a CSV file before any value is read: the pinned ones, in UTF-8, with a header and whole records.

It stands apart because it needs the file's bytes only once and no table, and because what it refuses DuckDB would
forgive: NUL bytes, quotes inside unquoted fields, lines that end in different ways.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

from countersign.domain.errors import DataRefused
from countersign.domain.report import DatasetSchema
from countersign.evidence.quotes import unify_line_ends
from countersign.evidence.records import MAX_RECORD, Shape, broken_record, check_line_ends
from countersign.evidence.store import changed

MAX_COLUMNS = 1_000

_BLOCK = 256 << 10
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Layout:
    """A file in UTF-8 with records of equal length, once `records` says so."""

    path: Path
    names: tuple[str, ...]
    delimiter: str
    quoted: bool
    """Whether the file uses the quote character at all."""
    blank: tuple[str, ...]
    """Texts that stand for a blank field beside the empty one."""
    counted: Future[int]

    @property
    def records(self) -> int:
        """How many data records there are; waits until all bytes are checked, and nothing read before counts.

        Raises:
            DataRefused: other bytes than the hash names, not UTF-8, NUL, unequal records.
        """
        return self.counted.result()


def lay_out(path: Path, sha256: str, schema: DatasetSchema, scratch: Path, beside: Executor) -> Layout:
    """Check the header of the file `path`, and its bytes and records on `beside`, while DuckDB can read it already.

    Where DuckDB needs a cleaner copy, it goes to `scratch`, and all bytes are checked at return.

    Raises:
        DataRefused: an encoding or header that is wrong; with quotes or another encoding, also what `records` refuses.
    """
    text = _in_utf8(path, sha256, schema.encoding, scratch)
    names, line_end = _header(text, schema)
    pinned = sha256 if text == path else None
    if not any(b'"' in block for block in _blocks(text)):
        shape = Shape(len(names), schema.delimiter, line_end)
        checked = beside.submit(_check_plain, text, pinned, shape)
        return Layout(text, names, schema.delimiter, False, schema.blank, checked)
    _scan(text, pinned)
    copy = scratch / "records.csv"
    shape = Shape(len(names), schema.delimiter, b"\n")
    unify_line_ends(text, schema.delimiter, copy, shape)
    counted: Future[int] = Future()
    counted.set_result(_whole_records(copy, shape))
    return Layout(copy, names, schema.delimiter, True, schema.blank, counted)


def _check_plain(text: Path, sha256: str | None, shape: Shape) -> int:
    """The number of data records of a file without quotes."""
    _scan(text, sha256, shape)
    if not shape.regular:
        check_line_ends(text)
    return _whole_records(text, shape)


def _whole_records(text: Path, shape: Shape) -> int:
    if not shape.regular:
        raise broken_record(text, shape.delimiter, shape.width, "its records are not alike")
    if shape.records < 2:
        raise DataRefused("the file has a header line and no records; a dataset needs at least one")
    return shape.records - 1


def _scan(path: Path, sha256: str | None, shape: Shape | None = None) -> None:
    """Read all bytes once: hash, UTF-8, and the shape of a file without quotes."""
    digest, decoder = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")()
    last = b""
    for last in _blocks(path):
        digest.update(last)
        _check_text(last, decoder, path)
        if shape is not None:
            shape.take(last)
    if decoder.getstate()[0]:
        raise DataRefused("the file ends inside a character; it is cut off or not UTF-8: declare its encoding")
    if sha256 is not None and f"sha256:{digest.hexdigest()}" != sha256:
        raise changed(sha256)
    if shape is not None:
        shape.finish(last.endswith(b"\n"))


def _check_text(block: bytes, decoder: codecs.IncrementalDecoder, path: Path) -> None:
    if b"\0" in block:
        line = _line_of(path, b"\0")
        raise DataRefused(f"line {line} holds a NUL byte; save the file as UTF-8 text or declare its encoding")
    if block.isascii() and not decoder.getstate()[0]:
        return
    try:
        decoder.decode(block)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataRefused(
            f"line {_line_not_utf8(path)} is not UTF-8 (byte 0x{byte:02x}); save it as UTF-8 or declare its encoding,"
            " for example encoding: latin-1"
        ) from None


def _line_of(path: Path, byte: bytes) -> int:
    with path.open("rb") as file:
        return next((number for number, line in enumerate(file, start=1) if byte in line), 0)


def _line_not_utf8(path: Path) -> int:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 0


def _header(path: Path, schema: DatasetSchema) -> tuple[tuple[str, ...], bytes]:
    """The column names, and what ends the first line."""
    with path.open("rb") as file:
        start = file.read(MAX_RECORD)
    if start.startswith(_BOMS):
        raise DataRefused("the file is in UTF-16, not UTF-8; save it as UTF-8 or declare encoding: utf-16")
    lines = io.StringIO(start.decode("utf-8-sig", errors="replace"), newline="")
    try:
        names = next(csv.reader(lines, delimiter=schema.delimiter, strict=True), None)
    except csv.Error as error:
        raise DataRefused(f"the header in line 1 cannot be read: {error}; write plain names") from None
    if names is None:
        raise DataRefused("the file is empty; a dataset needs a header line and at least one record")
    _check_names(names)
    if len(names) == 1 and (other := next((mark for mark in ";\t|" if mark in names[0]), None)):
        raise DataRefused(
            f"the header in line 1 is one name with {other!r} in it; declare delimiter: {other!r}, or rename it"
        )
    missing = [name for name in schema.columns if name not in names]
    if missing:
        raise DataRefused(f"the schema declares column {missing[0]!r}, but the header has {_listed(names)}")
    return tuple(names), b"\r\n" if start.partition(b"\n")[0].endswith(b"\r") else b"\n"


def _check_names(names: list[str]) -> None:
    if not names or len(names) > MAX_COLUMNS:
        raise DataRefused(f"the header in line 1 has {len(names)} columns; from 1 to {MAX_COLUMNS} are allowed")
    seen: dict[str, str] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise DataRefused(f"column {position} has no name in the header in line 1; give each column a name")
        if other := seen.get(name.casefold()):
            raise DataRefused(
                f"the header names column {name!r} twice ({other!r} before); names must differ by more than letter case"
            )
        seen[name.casefold()] = name


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (", ..." if len(names) > 8 else "")


def _in_utf8(path: Path, sha256: str, encoding: str, scratch: Path) -> Path:
    """The file itself where UTF-8 is declared, else a strict transcription of the pinned bytes in `scratch`."""
    try:
        codec = codecs.lookup(encoding)
    except LookupError:
        raise DataRefused(f"the schema's encoding {encoding!r} is not known; use utf-8 or latin-1") from None
    if codec.name in ("utf-8", "utf-8-sig"):
        return path
    with path.open("rb") as file:
        if f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" != sha256:
            raise changed(sha256)
    copy = scratch / "utf8.csv"
    try:
        with path.open(encoding=encoding, newline="") as source, copy.open("w", encoding="utf-8", newline="") as target:
            while text := source.read(_BLOCK):
                target.write(text)
    except (UnicodeError, LookupError) as error:
        raise DataRefused(f"the file is not in the declared encoding {encoding}: {error}") from None
    return copy


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block
