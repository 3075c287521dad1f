"""Sizes of the tensors that a TorchScript file names, held against the bytes that it has: torch takes them on trust,
and reads what lies behind."""

from __future__ import annotations

import pickletools
from typing import Any

from pinnace import _core
from pinnace.torch.zip_file import INFLATED_MOST, ZipFile

_BYTES = {
    **dict.fromkeys(("Half", "BFloat16", "Short", "UInt16"), 2),
    **dict.fromkeys(("Float", "Int", "UInt32", "QInt32", "ComplexHalf"), 4),
    **dict.fromkeys(("Double", "Long", "UInt64", "ComplexFloat"), 8),
    "ComplexDouble": 16,
}
_PUSHED = ("UNICODE", "STRING", "GLOBAL", "BININT", "LONG")
_TUPLE = ("storage", "a class", "a key", "a device", 0)


def check_storages(archive: ZipFile) -> None:
    """CorruptFile: a tensor's memory has more bytes than its entry, or is named in another form than torch's.

    Of inputs that a trace ran on, torch saves sizes alone; nothing reads those.
    """
    for entry in archive.names:
        if entry.partition("/")[2] in ("data.pkl", "constants.pkl"):
            try:
                _check(archive, entry)
            except _core.Error:
                raise
            except Exception as error:  # what pickletools raises of damaged bytes, for which there is no list
                raise archive.corrupt(f"entry {ascii(entry)[:80]} is no pickle: {error}") from error


def _check(archive: ZipFile, entry: str) -> None:
    folder = entry.removesuffix(".pkl")
    memo: dict[Any, Any] = {}
    last: list[Any] = []  # of what was pushed, the last values; None for what is neither text, number nor class
    for opcode, argument, _ in pickletools.genops(archive.read(entry, INFLATED_MOST)):
        name = opcode.name
        if "PUT" in name or name == "MEMOIZE":
            memo[len(memo) if argument is None else argument] = last[-1] if last else None
        elif name == "BINPERSID":
            _check_storage(archive, entry, folder, last)
            last = [None]
        else:
            value = memo.get(argument) if "GET" in name else argument if _is_pushed(name) else None
            last = [*last, "(" if name == "MARK" else ")" if name == "TUPLE" else value][-7:]


def _is_pushed(name: str) -> bool:
    return any(part in name for part in _PUSHED) and name != "STACK_GLOBAL"


def _check_storage(archive: ZipFile, entry: str, folder: str, last: list[Any]) -> None:
    values: list[Any]
    begin, *values, end = last if len(last) == len(_TUPLE) + 2 else [None, None]
    alike = [type(value) for value in values] == [type(value) for value in _TUPLE]
    if begin != "(" or end != ")" or not alike or values[0] != "storage":
        raise archive.corrupt(f"entry {ascii(entry)[:80]} names a tensor's memory in another form than torch.jit.save")
    _, kind, key, _, count = values
    size = _BYTES.get(kind.rpartition(" ")[2].removesuffix("Storage"), 1)
    record = f"{folder}/{key}"
    if not 0 <= count * size <= (archive.size(record) if count else 0):
        raise archive.corrupt(
            f"entry {ascii(record)[:80]} has {archive.size(record)} bytes for a tensor's {count} elements of {size}"
        )


__all__ = ["check_storages"]
