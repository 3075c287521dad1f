"""Where in which Python file each part of a TorchScript archive's code was written: entries beside the code, which
torch reads without a look at what they say, and ends its process where they are damaged."""

from __future__ import annotations

import pickletools
from typing import Any, cast

from pinnace import _core
from pinnace.torch.zip_file import INFLATED_MOST, ZipFile

_ENDING = ".debug_pkl"
_WITH_TABLE = "FORMAT_WITH_STRING_TABLE"  # the first element where texts are numbers of a table's rows
_INT_LIST = "torch.jit._pickle build_intlist"  # what torch calls to make a list of numbers; all that may be called
_MOST_LINES = 1 << 31
MOST_OPCODES = 4_000_000  # of an entry; a line of a trace takes about 40
_NUMBERS = ("BININT", "BININT1", "BININT2", "LONG1")
_MARK, _CALL = object(), object()


class _Other(Exception):
    """What torch does not write."""


def check_source_ranges(archive: ZipFile) -> None:
    """CorruptFile: an entry has another form than torch.jit.save's, or names text that is not there."""
    for entry in archive.names:
        if not entry.endswith(_ENDING):
            continue
        try:
            _check(_read(archive.read(entry, INFLATED_MOST)))
        except _core.Error:
            raise
        except Exception as error:  # what pickletools raises of damaged bytes, for which there is no list
            raise archive.corrupt(f"entry {ascii(entry)[:80]} is no list of lines: {error}") from error


def _read(data: bytes) -> Any:
    """Of texts, numbers, tuples and lists alone."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def from_mark() -> list[Any]:
        at = len(stack) - 1
        while stack[at] is not _MARK:  # IndexError: there is none
            at -= 1
        values = stack[at + 1 :]
        del stack[at:]
        return values

    for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if number >= MOST_OPCODES:
            raise _Other(f"more than {MOST_OPCODES} opcodes")
        name, value = opcode.name, cast(Any, argument)
        if name in ("PROTO", "STOP"):
            continue
        if name in ("BINPUT", "LONG_BINPUT"):
            memo[value] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[value])
        elif name in _NUMBERS or name == "BINUNICODE":
            stack.append(value)
        elif name in ("MARK", "NONE", "EMPTY_LIST", "EMPTY_TUPLE"):
            stack.append({"MARK": _MARK, "NONE": None, "EMPTY_LIST": [], "EMPTY_TUPLE": ()}[name])
        elif name == "TUPLE":
            stack.append(tuple(from_mark()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "APPENDS":
            values = from_mark()
            stack[-1].extend(values)
        elif name == "APPEND":
            value = stack.pop()
            stack[-1].append(value)
        elif name == "GLOBAL" and value == _INT_LIST:
            stack.append(_CALL)
        elif name == "REDUCE":
            (numbers,) = stack.pop()
            if stack.pop() is not _CALL:
                raise _Other("a call of what torch does not call")
            stack.append(numbers)
        else:
            raise _Other(f"opcode {name}")
    (root,) = stack
    return root


def _check(root: Any) -> None:
    table: tuple[Any, ...] | None = None
    if root and root[0] == _WITH_TABLE:
        _, table, root = root
    lengths = [len(text.encode(errors="surrogatepass")) for text in table or ()]
    sizes: dict[int, int] = {}  # of texts in parts, by id: lines may share one
    for row in root:
        offset, (source, start, end), *tag = row
        text, name, line = source
        if table is None:
            size = len(text.encode(errors="surrogatepass"))
            named = name is None or isinstance(name, str)
        else:
            if id(text) not in sizes:
                if not isinstance(text, list) or not all(_within(i, len(lengths)) for i in text):
                    raise _Other("a text that is not in its table")
                sizes[id(text)] = sum(lengths[i] for i in text)
            size = sizes[id(text)]
            named = _within(name, len(lengths))
        if not named:
            raise _Other("the name of a file that is none")
        if not (_within(offset, _MOST_LINES) and _within(line, _MOST_LINES) and all(map(_is_number, tag))):
            raise _Other("a line that is none")
        most = max(size, 1)  # where there is no text, torch writes characters 0 to 1 of it
        if not (_within(start, most + 1) and _within(end, most + 1) and start <= end):
            raise _Other(f"characters {start} to {end} of a text of {size}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _within(value: Any, count: int) -> bool:
    return _is_number(value) and 0 <= value < count


__all__ = ["check_source_ranges"]
