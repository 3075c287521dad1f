"""The example that an exported program was made with: of a live one, or read from a .pt2 file without unpickling.

In a file it is a pickle, which would run what the file tells it to. So its opcodes are read here, by pickletools, which
executes none, and values are made of those alone that write tensors in tuples, lists and dicts. Whatever else there is,
and whatever does not fit the program, means that there is no example: inputs are then made up, as without one.
"""

from __future__ import annotations

import io
import itertools
import math
import pickletools
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinnace.arrays import to_numpy
from pinnace.files import one_line
from pinnace.log import log
from pinnace.torch.zip_file import ZipFile
from pinnace.types import Array, Dim, TensorSpec

MAX_BYTES = 1 << 28  # of the example in a file, and of the arrays that are made of it
MAX_PICKLE, MAX_OPCODES = 1 << 20, 20_000
MAX_LEAVES = 10_000  # of the call: lists in a pickle may hold each other, or themselves
_MAX_RANK = 32
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
}


def program_example(program: Any, specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    """By input, what a live torch.export.ExportedProgram was exported with; empty where it has none that fits."""
    try:
        example = program.example_inputs
        if example is None:
            return {}
        args, kwargs = example
        found = _by_input(specs, args, kwargs)
        return _fitting(specs, {name: np.array(to_numpy(tensor)) for name, tensor in found.items()})
    except Exception as error:  # tensors without memory, and what torch's properties raise
        log("debug", f"the exported program's example is not used: {one_line(error, 200, kind=True)}")
        return {}


def file_example(path: str, model_name: str, specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    """The same of the example in a .pt2 file, which has been imported; nothing is unpickled."""
    try:
        with ZipFile(path) as archive:
            entry = _entry(archive.names, model_name)
            data = archive.read(entry, MAX_BYTES) if entry else b""
        if not data:
            return {}
        saved = _SavedObject(data)
        args, kwargs = saved.value()
        found = _by_input(specs, args, kwargs)
        return _fitting(specs, saved.arrays(found))
    except Exception as error:  # whatever zipfile and pickletools raise of damaged bytes, for which there is no list
        log("debug", f"{path}: its example is not used: {one_line(error, 200, kind=True)}")
        return {}


def is_placeholder(array: Array) -> bool:
    """Whether the example has nothing but zeros or ones for an input, as people write who only need a shape. Another
    value would find what these hide: rows of a table that no index reads, products with 0."""
    return array.size > 1 and bool(np.all(array == 0) or np.all(array == 1))


def _entry(names: Sequence[str], model_name: str) -> str:
    end = f"/data/sample_inputs/{model_name}.pt" if model_name else ".pt"
    found = [name for name in names if "/data/sample_inputs/" in name and name.endswith(end)]
    return found[0] if len(found) == 1 else ""


# ---- which value is for which input


def _by_input(specs: Mapping[str, TensorSpec], args: Any, kwargs: Any) -> dict[str, Any]:
    """Tensors of a call by the inputs that they are for: those among the positional arguments are the first ones, in
    order, those among the others go by name. ValueError: they are not as many, or have other names."""
    leaves = list(_tensors(args))
    names = list(specs)
    if not isinstance(kwargs, Mapping):
        raise ValueError("the call's keyword arguments are no dict")
    named = {name: value for name, value in kwargs.items() if _is_tensor(value)}
    if len(leaves) + len(named) != len(names) or any(name not in names[len(leaves) :] for name in named):
        raise ValueError(f"{len(leaves)} tensors in order and {sorted(named)} by name for the inputs {names}")
    return {**dict(zip(names, leaves, strict=False)), **named}


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors in nested tuples, lists and dicts, in order."""
    left, seen = [value], 0
    while left:
        seen += 1
        if seen > MAX_LEAVES:
            raise ValueError(f"more than {MAX_LEAVES} parts of a call")
        at = left.pop()
        if _is_tensor(at):
            yield at
        elif isinstance(at, tuple | list):
            left += reversed(at)
        elif isinstance(at, Mapping):
            left += reversed(list(at.values()))
        elif at is not None and not isinstance(at, bool | int | float | str):
            raise ValueError(f"{type(at).__name__} among the arguments")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _Tensor) or hasattr(value, "detach")


def _fitting(specs: Mapping[str, TensorSpec], arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays in the order of inputs, all of which they must fit. ValueError."""
    for name, spec in specs.items():
        array = arrays[name]
        fits = len(array.shape) == len(spec.shape) and array.dtype == spec.dtype
        if not fits or not all(map(_takes, spec.shape, array.shape)):
            raise ValueError(f"{array.dtype}{list(array.shape)} for the input {spec}")
    return {name: arrays[name] for name in specs}


def _takes(dim: int | Dim | None, size: int) -> bool:
    if isinstance(dim, Dim):
        return dim.min <= size and (dim.max is None or size <= dim.max) and size % dim.multiple_of == 0
    return dim is None or dim == size


# ---- what torch.save wrote


@dataclass(frozen=True)
class _Global:
    name: str


@dataclass(frozen=True)
class _Storage:
    dtype: str
    key: str


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class _SavedObject:
    """What torch.save wrote: an archive of a pickle and of storages. ValueError: something in it is not read here."""

    def __init__(self, data: bytes) -> None:
        self._bytes = len(data)
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        pickles = [name for name in self._zip.namelist() if name.split("/", 1)[-1] == "data.pkl"]
        if len(pickles) != 1:
            raise ValueError(f"{len(pickles)} pickles")
        self._pickle = pickles[0]
        self._root = self._pickle.removesuffix("data.pkl")
        self._made = 0
        order = f"{self._root}byteorder"
        if order in self._zip.namelist() and self._read(order, 64) != b"little":
            raise ValueError("its bytes are not in little-endian order")

    def value(self) -> Any:
        """The object, with descriptions of tensors."""
        return _built(self._read(self._pickle, MAX_PICKLE))

    def arrays(self, tensors: Mapping[str, _Tensor]) -> dict[str, Array]:
        """Of these tensors, with memory of their own."""
        return {name: self._array(tensor) for name, tensor in tensors.items()}

    def _read(self, name: str, most: int) -> bytes:
        info = self._zip.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > min(most, self._bytes):
            raise ValueError(f"an entry of {info.file_size} bytes, compressed by method {info.compress_type}")
        return self._zip.read(info)

    def _array(self, tensor: _Tensor) -> Array:
        if tensor.storage.dtype == "bfloat16":
            import ml_dtypes

            dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        else:
            dtype = np.dtype(tensor.storage.dtype)
        data = self._read(f"{self._root}data/{tensor.storage.key}", MAX_BYTES)
        if tensor.storage.dtype == "bool" and data.translate(None, b"\0\1"):
            raise ValueError("a bool is neither 0 nor 1")
        stored = np.frombuffer(data, dtype)
        sizes, strides, elements = tensor.sizes, tensor.strides, math.prod(tensor.sizes)
        last = tensor.offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        self._made += elements * dtype.itemsize
        if (elements and last >= stored.size) or self._made > MAX_BYTES:
            raise ValueError(f"a tensor of {list(sizes)} in a storage of {stored.size} elements")
        if not elements:
            return np.empty(sizes, dtype)
        steps = [stride * dtype.itemsize for stride in strides]
        return np.lib.stride_tricks.as_strided(stored[tensor.offset :], sizes, steps, writeable=False).copy()


_MARK = object()
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
_TEXTS = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_STORES = {"PUT", "BINPUT", "LONG_BINPUT"}
_LOADS = {"GET", "BINGET", "LONG_BINGET"}


def _built(data: bytes) -> Any:
    """What a pickle of nothing but tensors, numbers, texts, tuples, lists and dicts says. ValueError, IndexError,
    KeyError, TypeError: it has an opcode, a class or a function that is none of these, or is damaged."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def from_mark() -> list[Any]:
        values = []
        while (value := stack.pop()) is not _MARK:
            values.append(value)
        return values[::-1]

    argument: Any
    for opcode, argument, _ in itertools.islice(pickletools.genops(data), MAX_OPCODES):
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
            raise ValueError(f"opcode {name}")
    raise ValueError(f"a pickle of more than {MAX_OPCODES} opcodes")


def _owner(stack: list[Any], kind: type) -> Any:
    if type(stack[-1]) is not kind:
        raise ValueError(f"items for {type(stack[-1]).__name__}")
    return stack[-1]


def _items(values: Sequence[Any]) -> dict[str, Any]:
    keys = values[::2]
    if not all(isinstance(key, str) for key in keys):
        raise ValueError("a key is no text")
    return dict(zip(keys, values[1::2], strict=True))


def _storage(reference: Any) -> _Storage:
    """('storage', class, key, device, number of elements)."""
    kind, storage, key = reference[:3]
    if kind != "storage" or not isinstance(storage, _Global) or not isinstance(key, str) or "/" in key:
        raise ValueError("a reference that is none to a storage")
    return _Storage(_STORAGES[storage.name], key)


def _called(function: Any, arguments: Any) -> Any:
    name = function.name if isinstance(function, _Global) else ""
    if name == "collections.OrderedDict" and arguments == ():  # of hooks, that every tensor has
        return {}
    if name != "torch._utils._rebuild_tensor_v2":
        raise ValueError(f"a call of {name[:100]!r}")
    storage, offset, sizes, strides = arguments[:4]
    numbers = [offset, *sizes, *strides]
    if (
        not isinstance(storage, _Storage)
        or len(sizes) != len(strides)
        or len(sizes) > _MAX_RANK
        or not all(type(number) is int and 0 <= number < 1 << 40 for number in numbers)
    ):
        raise ValueError("a tensor of sizes that are none")
    return _Tensor(storage, offset, tuple(sizes), tuple(strides))


__all__ = ["file_example", "is_placeholder", "program_example"]
