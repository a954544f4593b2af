"""Quotes in a CSV file, checked exactly by RFC 4180 section 2, in time proportional to the number of quotes.

It stands apart because it is an algorithm of its own: the file is cut at every quote character; the pieces lie outside
and inside quotes by turns, and a piece outside must touch separators at both ends or be the middle of a doubled quote.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from countersign.domain.errors import DataRefused
from countersign.evidence.records import Shape

_BLOCK = 4 << 20
_BOM = b"\xef\xbb\xbf"


def unify_line_ends(path: Path, delimiter: str, copy: Path, shape: Shape) -> None:
    """Write `path` to `copy` with LF after each record, quoted text untouched; what is outside quotes goes to `shape`.

    Raises:
        DataRefused: a quote inside an unquoted field, text after a closing quote, a quote that is never closed, or a
            carriage return outside quotes that is no part of a line end.
    """
    start, line, first = 0, 1, True
    with path.open("rb") as source, copy.open("wb") as target:
        for pieces, final in _pieces(source):
            _check_edges(pieces, start, delimiter.encode(), (first, final), line)
            line += sum(piece.count(b"\n") for piece in pieces)
            pieces[start::2] = [piece.replace(b"\r\n", b"\n") for piece in pieces[start::2]]
            shape.take(b"".join(pieces[start::2]))
            target.write(b'"'.join(pieces) if final else b'"'.join([*pieces, b""]))
            start, first = (start + len(pieces)) % 2, False
    if start == 0:
        raise DataRefused(f"the quote opened in line {_opened(pieces, line)} is never closed; close it")
    shape.finish(pieces[-1].endswith(b"\n"))


def _pieces(source: BinaryIO) -> Iterator[tuple[list[bytes], bool]]:
    """The parts of the file between quote characters, in lists; the last list holds the part after the last quote."""
    rest = source.read(_BLOCK).removeprefix(_BOM)
    while block := source.read(_BLOCK):
        *whole, rest = rest.split(b'"')
        if whole:
            yield whole, False
        rest += block
    yield rest.split(b'"'), True


def _check_edges(pieces: list[bytes], start: int, delimiter: bytes, ends: tuple[bool, bool], line: int) -> None:
    first, final = ends
    for position in range(start, len(pieces), 2):
        piece = pieces[position]
        if not piece:
            continue
        if not (first and position == 0) and not piece.startswith((delimiter, b"\n", b"\r\n")):
            fault = "goes on after a closing quote; double a quote that is text"
        elif not (final and position == len(pieces) - 1) and not piece.endswith((delimiter, b"\n")):
            fault = "has a quote inside an unquoted field; put the whole field in quotes"
        elif b"\r" in piece and b"\r" in piece.replace(b"\r\n", b""):
            fault = "or a later one holds a carriage return that ends no line; use LF or CR LF"
        else:
            continue
        line += sum(before.count(b"\n") for before in pieces[:position])
        line += piece.count(b"\n") if fault.startswith("has") else 0
        raise DataRefused(f"line {line} {fault}")


def _opened(pieces: list[bytes], line_after: int) -> int:
    """The line in which the last piece, which lies inside quotes, begins."""
    return line_after - pieces[-1].count(b"\n")
