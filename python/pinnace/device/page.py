"""Reading a page that a device wrote: checked field by field, for it may come from anyone."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from typing import Any, NoReturn

from pinnace import _core
from pinnace.files import open_regular, printable

FORMAT, VERSION = "pinnace device report", 1
_MOST_BYTES = 16 << 20  # a page of the default kit has some 100 KB
_MOST_ROWS = 100_000
_LONGEST = 10_000  # characters of a text

_Check = Callable[[Any, str], None]


class _Wrong(Exception):
    """What is wrong with a field."""


def read_page(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The page in a file, as cpp/report writes it and docs/device_report.md describes it. Fields that are not known
    stay as they are.

    FileError: it cannot be read. CorruptFile: it is no such page; the sentence names the field and its value.
    Unsupported: its version is newer than this library's.
    """
    with open_regular(path) as file:
        data = file.read(_MOST_BYTES + 1)
    name = printable(os.fspath(path))
    if len(data) > _MOST_BYTES:
        raise _core.CorruptFile(f"{name}: more than {_MOST_BYTES:,} bytes, which no report of a device has")
    try:
        page = json.loads(data.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise _core.CorruptFile(f"{name}: is no report of a device: its values are nested too deep") from None
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are; an integer of thousands of digits, too
        raise _core.CorruptFile(f"{name}: is no JSON: {error}") from None
    try:
        _check_head(page)
        _PAGE(page, "")
        _check_rows(page)
    except _Wrong as error:
        raise _core.CorruptFile(f"{name}: {error}") from None
    except _core.Unsupported as error:
        raise _core.Unsupported(f"{name}: {error}") from None
    checked: dict[str, Any] = page
    return checked


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _wrong(value: Any, place: str, rule: str) -> NoReturn:
    text = repr(value)
    raise _Wrong(printable(f"{place or 'the page'} is {text if len(text) <= 80 else text[:79] + '…'}: {rule}"))


def _check_head(page: Any) -> None:
    if not isinstance(page, dict) or page.get("format") != FORMAT:
        found = page.get("format") if isinstance(page, dict) else page
        _wrong(found, "format", f"must be {FORMAT!r}")
    version = page.get("version")
    if type(version) is int and version > VERSION:
        raise _core.Unsupported(f"the report has version {version}, this library reads version {VERSION}")
    if type(version) is not int or version != VERSION:
        _wrong(version, "version", f"must be {VERSION}")


def _text(value: Any, place: str) -> None:
    if not isinstance(value, str) or len(value) > _LONGEST:
        _wrong(value, place, f"must be a text of at most {_LONGEST:,} characters")


def _flag(value: Any, place: str) -> None:
    if not isinstance(value, bool):
        _wrong(value, place, "must be true or false")


def _whole(value: Any, place: str) -> None:
    if type(value) is not int or not 0 <= value < 2**63:
        _wrong(value, place, "must be a whole number from 0 on")


def _any_number(value: Any, place: str) -> None:
    if type(value) not in (int, float) or not abs(value) < math.inf:
        _wrong(value, place, "must be a number")


def _number(value: Any, place: str) -> None:
    _any_number(value, place)
    if value < 0 or value > 1e300:
        _wrong(value, place, "must be a number from 0 on")


def _or_null(check: _Check) -> _Check:
    def checked(value: Any, place: str) -> None:
        if value is not None:
            check(value, place)

    return checked


def _one_of(*texts: str) -> _Check:
    def checked(value: Any, place: str) -> None:
        if value not in texts or not isinstance(value, str):
            _wrong(value, place, f"must be one of {', '.join(texts)}")

    return checked


def _list(check: _Check) -> _Check:
    def checked(value: Any, place: str) -> None:
        if not isinstance(value, list) or len(value) > _MOST_ROWS:
            _wrong(value, place, f"must be a list of at most {_MOST_ROWS:,}")
        for i, item in enumerate(value):
            check(item, f"{place}[{i}]")

    return checked


def _map(check: _Check) -> _Check:
    def checked(value: Any, place: str) -> None:
        if not isinstance(value, dict) or len(value) > _MOST_ROWS:
            _wrong(value, place, "must be an object")
        for key, item in value.items():
            _text(key, f"a name in {place}")
            check(item, f"{place}.{key[:80]}")

    return checked


def _record(**fields: _Check) -> _Check:
    def checked(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            _wrong(value, place, "must be an object")
        for name, check in fields.items():
            inside = f"{place}.{name}" if place else name
            if name not in value:
                raise _Wrong(f"{inside} is missing")
            check(value[name], inside)

    return checked


_FINDING: dict[str, _Check] = {
    "target": _text,
    "threads": _whole,
    "result": _one_of("equal", "differs", "refused", "failed"),
    "why": _text,
    "relative_error": _or_null(_number),
    "nodes": _record(there=_whole, all=_whole, by=_map(_whole), elsewhere=_list(_text)),
    "worst": _or_null(
        _record(
            output=_text,
            step=_whole,
            element=_list(_whole),
            got=_or_null(_any_number),
            wanted=_or_null(_any_number),
            error=_or_null(_number),
            bound=_number,
        )
    ),
}
_PAGE = _record(
    format=_text,
    version=_whole,
    pinnace=_record(version=_text, commit=_text),
    date=_text,
    machine=_record(
        architecture=_or_null(_text),
        processor=_or_null(_text),
        processors=_whole,
        system=_or_null(_text),
        android_api=_or_null(_whole),
        device=_or_null(_text),
        chip=_or_null(_text),
    ),
    kit=_record(checksum=_whole, answers=_list(_text), times=_list(_text)),
    targets=_list(_record(target=_text, available=_flag, description=_text, software=_flag)),
    answers=_list(_record(test=_text, **_FINDING)),
    times=_list(
        _record(
            program=_text,
            **_FINDING,
            precision=_text,
            runs=_whole,
            warm_up=_whole,
            create_and_first_run_ms=_number,
            median_ms=_or_null(_number),
            p10_ms=_or_null(_number),
            p90_ms=_or_null(_number),
            cpu_per_wall=_or_null(_number),
            peak_bytes=_whole,
            reference_code=_map(_number),
        )
    ),
    left_out=_list(_record(program=_text, target=_text, threads=_whole, kind=_one_of("answer", "time"), why=_text)),
    totals=_record(equal=_whole, differs=_whole, refused=_whole, failed=_whole, left_out=_whole),
    budget_seconds=_number,
    seconds=_number,
)


def _check_rows(page: dict[str, Any]) -> None:
    """What several fields say together."""
    totals = page["totals"]
    rows = [*page["answers"], *page["times"]]
    for result in ("equal", "differs", "refused", "failed"):
        count = sum(row["result"] == result for row in rows)
        if totals[result] != count:
            _wrong(totals[result], f"totals.{result}", f"there are {count} such rows")
    if totals["left_out"] != len(page["left_out"]):
        _wrong(totals["left_out"], "totals.left_out", f"there are {len(page['left_out'])} such rows")
    for kind in ("answers", "times"):
        for i, row in enumerate(page[kind]):
            if (row["worst"] is None) != (row["result"] != "differs"):
                _wrong(row["worst"], f"{kind}[{i}].worst", f"the result is {row['result']}")
            if row["nodes"]["there"] > row["nodes"]["all"]:
                _wrong(row["nodes"]["there"], f"{kind}[{i}].nodes.there", f"of {row['nodes']['all']} nodes")
    for i, row in enumerate(page["times"]):
        for field in ("median_ms", "p10_ms", "p90_ms", "cpu_per_wall"):
            if (row[field] is None) != (row["result"] != "equal"):
                _wrong(row[field], f"times[{i}].{field}", f"the result is {row['result']}")


__all__ = ["read_page"]
