"""Tensors in what torch.save wrote, read without unpickling.

A pickle runs what the file tells it to. So its opcodes are read here, by pickletools, which executes none, and values
are made of those alone that write tensors in tuples, lists and dicts.
"""

from __future__ import annotations

import io
import itertools
import pickletools
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pinnace.torch.zip_file import PlainZip

_MAX_RANK = 32
_LOCAL_HEADER = 30  # bytes in front of an entry's name in a zip archive; the lengths of name and extra field end it
_STORAGES = {
    "torch.DoubleStorage": "float64",
    "torch.FloatStorage": "float32",
    "torch.HalfStorage": "float16",
    "torch.BFloat16Storage": "bfloat16",
    "torch.LongStorage": "int64",
    "torch.IntStorage": "int32",
    "torch.ShortStorage": "int16",
    "torch.CharStorage": "int8",
    "torch.ByteStorage": "uint8",
    "torch.BoolStorage": "bool",
    "torch.ComplexFloatStorage": "complex64",
    "torch.ComplexDoubleStorage": "complex128",
}

_UNTYPED = {"torch.uint16": "uint16", "torch.uint32": "uint32", "torch.uint64": "uint64"}
# Functions that make a tensor, with the number of arguments before the flags of its conjugate and negative views.
_TENSORS = {"torch._utils._rebuild_tensor_v2": 6, "torch._utils._rebuild_tensor_v3": 7}
_PARAMETERS = ("torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state")
# Of a tensor with attributes of Python's, (function, class, its arguments, attributes): nn.Buffer has such.
_WITH_ATTRIBUTES = "torch._tensor._rebuild_from_type_v2"
_PLAIN = ("torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter")


class NoTensor(ValueError):
    """The pickle would make an object of a class, or call a function, that makes no plain tensor."""


@dataclass(frozen=True)
class SavedStorage:
    """Memory that tensors share: their element type, by numpy's name or "bfloat16", and the entry that holds it."""

    dtype: str
    key: str


@dataclass(frozen=True)
class SavedTensor:
    """A tensor's place in its storage; offset and strides count elements."""

    storage: SavedStorage
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    is_parameter: bool = False


class SavedObject:
    """What torch.save wrote: an archive of a pickle and of storages.

    Its methods raise NoTensor, and of damaged data ValueError, IndexError, KeyError, TypeError and what zipfile,
    pickletools and struct raise.
    """

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._zip = PlainZip(io.BytesIO(data))
        pickles = [name for name in self._zip.namelist() if name.split("/", 1)[-1] == "data.pkl"]
        if len(pickles) != 1:
            raise ValueError(f"{len(pickles)} pickles")
        self._pickle = pickles[0]
        self._root = self._pickle.removesuffix("data.pkl")
        order = f"{self._root}byteorder"
        if order in self._zip.namelist() and bytes(self._entry(order)) != b"little":
            raise ValueError("its bytes are not in little-endian order")

    def value(self, most_bytes: int, most_opcodes: int) -> Any:
        """The object, with SavedTensor for tensors; of a pickle of at most so many bytes and opcodes."""
        pickle = self._entry(self._pickle)
        if len(pickle) > most_bytes:
            raise ValueError(f"a pickle of {len(pickle)} bytes, at most {most_bytes} are read")
        return _built(bytes(pickle), most_opcodes)

    def storage(self, storage: SavedStorage) -> memoryview:
        """Its bytes, which are those of `data`; the checksum has been compared."""
        stored = self._entry(f"{self._root}data/{storage.key}")
        if storage.dtype == "bool" and bytes(stored).translate(None, b"\0\1"):
            raise ValueError("a bool is neither 0 nor 1")
        return stored

    def _entry(self, name: str) -> memoryview:
        info = self._zip.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"an entry that is compressed by method {info.compress_type}")
        lengths = struct.unpack_from("<HH", self._data, info.header_offset + _LOCAL_HEADER - 4)
        start = info.header_offset + _LOCAL_HEADER + sum(lengths)
        found = self._data[start : start + info.file_size]
        if len(found) != info.file_size or zlib.crc32(found) != info.CRC:
            raise ValueError(f"the entry {name[:100]!r} does not have its checksum")
        return found


@dataclass(frozen=True)
class _Global:
    name: str


_MARK = object()
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
_TEXTS = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_STORES = {"PUT", "BINPUT", "LONG_BINPUT"}
_LOADS = {"GET", "BINGET", "LONG_BINGET"}


def _built(data: bytes, most_opcodes: int) -> Any:
    """What a pickle of nothing but tensors, numbers, texts, tuples, lists and dicts says."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def from_mark() -> list[Any]:
        values = []
        while (value := stack.pop()) is not _MARK:
            values.append(value)
        return values[::-1]

    argument: Any
    for opcode, argument, _ in itertools.islice(pickletools.genops(data), most_opcodes):
        name = opcode.name
        if name == "STOP":
            return stack.pop()
        if name in ("PROTO", "FRAME"):
            continue
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _NUMBERS or name in _TEXTS:
            stack.append(argument)
        elif name == "MARK":
            stack.append(_MARK)
        elif name == "EMPTY_TUPLE":
            stack.append(())
        elif name in _TUPLES:
            values = [stack.pop() for _ in range(_TUPLES[name])]
            stack.append(tuple(values[::-1]))
        elif name == "TUPLE":
            stack.append(tuple(from_mark()))
        elif name == "EMPTY_LIST":
            stack.append([])
        elif name in ("APPEND", "APPENDS"):
            values = from_mark() if name == "APPENDS" else [stack.pop()]
            _owner(stack, list).extend(values)
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name in ("SETITEM", "SETITEMS"):
            values = from_mark() if name == "SETITEMS" else [stack.pop(), stack.pop()][::-1]
            _owner(stack, dict).update(_items(values))
        elif name == "GLOBAL":
            stack.append(_Global(".".join(str(argument).split(" ", 1))))
        elif name == "STACK_GLOBAL":
            last, first = stack.pop(), stack.pop()
            stack.append(_Global(f"{first}.{last}"))
        elif name == "BINPERSID":
            stack.append(_storage(stack.pop()))
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            stack.append(_called(function, arguments))
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in _STORES:
            memo[int(argument)] = stack[-1]
        elif name in _LOADS:
            stack.append(memo[int(argument)])
        else:
            raise NoTensor(f"opcode {name}")
    raise ValueError(f"a pickle of more than {most_opcodes} opcodes")


def _owner(stack: list[Any], kind: type) -> Any:
    if type(stack[-1]) is not kind:
        raise ValueError(f"items for {type(stack[-1]).__name__}")
    return stack[-1]


def _items(values: Sequence[Any]) -> dict[str, Any]:
    keys = values[::2]
    if not all(isinstance(key, str) for key in keys):
        raise ValueError("a key is no text")
    return dict(zip(keys, values[1::2], strict=True))


def _storage(reference: Any) -> SavedStorage:
    """('storage', class, key, device, number of elements)."""
    kind, storage, key = reference[:3]
    if kind != "storage" or not isinstance(storage, _Global) or not isinstance(key, str) or "/" in key:
        raise ValueError("a reference that is none to a storage")
    if storage.name == "torch.storage.UntypedStorage":  # whose tensors say their type
        return SavedStorage("", key)
    if storage.name not in _STORAGES:
        raise NoTensor(f"a storage of {storage.name[:100]!r}")
    return SavedStorage(_STORAGES[storage.name], key)


def _called(function: Any, arguments: Any) -> Any:
    name = function.name if isinstance(function, _Global) else ""
    if name == "collections.OrderedDict" and arguments == ():  # of weights by name, and of hooks that a tensor has
        return {}
    if name in _PARAMETERS and isinstance(arguments[0], SavedTensor):
        return replace(arguments[0], is_parameter=True)
    if name == _WITH_ATTRIBUTES and isinstance(arguments[1], _Global) and arguments[1].name in _PLAIN:
        return _called(arguments[0], arguments[2])
    if name not in _TENSORS:
        raise NoTensor(f"a call of {name[:100]!r}")
    storage, offset, sizes, strides = arguments[:4]
    flags = arguments[_TENSORS[name] :]
    if flags and flags[0]:
        raise NoTensor("a tensor that is conjugated or negated when it is read")
    if name.endswith("_v3") and isinstance(storage, SavedStorage):
        kind = arguments[6].name if isinstance(arguments[6], _Global) else ""
        if storage.dtype or kind not in _UNTYPED:
            raise NoTensor(f"a tensor of {kind[:100]!r}")
        storage = SavedStorage(_UNTYPED[kind], storage.key)
    numbers = [offset, *sizes, *strides]
    if (
        not isinstance(storage, SavedStorage)
        or len(sizes) != len(strides)
        or len(sizes) > _MAX_RANK
        or not storage.dtype
        or not all(type(number) is int and 0 <= number < 1 << 40 for number in numbers)
    ):
        raise ValueError("a tensor of sizes that are none")
    return SavedTensor(storage, offset, tuple(sizes), tuple(strides))


__all__ = ["NoTensor", "SavedObject", "SavedStorage", "SavedTensor"]
