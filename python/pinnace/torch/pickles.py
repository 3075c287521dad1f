"""What torch.save or pickle wrote into a file, told from names of entries and opcodes: nothing is unpickled."""

from __future__ import annotations

import contextlib
import io
import itertools
import pickletools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pinnace import _core
from pinnace.files import open_regular, printable
from pinnace.torch.zip_file import ZipFile, is_zip

MAX_BYTES, MAX_OPCODES = 1 << 20, 20_000  # of a pickle; what it is stands at its beginning
_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the first of the four pickles of torch.save before 1.6
_CHECKPOINT_KEYS = ("state_dict", "model_state_dict", "model", "net", "ema", "params")
_SHORT = 100  # characters of a name that a message repeats


def pickle_kind(path: str) -> str:
    """One sentence that says what such a file holds and what to do instead of loading it; "" for any other file."""
    try:
        data, by_torch = _pickle_of(path)
    except (_core.Error, OSError):
        return ""
    return _sentence(data, by_torch) if data else ""


def _pickle_of(path: str) -> tuple[bytes, bool]:
    """The first MAX_BYTES of the object's pickle; whether torch.save wrote it. Empty: the file is none."""
    if is_zip(path):
        with ZipFile(path, inflated=True) as archive:
            parts = [name.split("/", 1)[-1] for name in archive.names]
            pickles = [name for name, part in zip(archive.names, parts, strict=True) if part == "data.pkl"]
            # TorchScript has these: what is wrong with such an archive is torch's to say.
            if len(pickles) != 1 or "constants.pkl" in parts or any(part.startswith("code/") for part in parts):
                return b"", False
            return next(iter(archive.chunks(pickles[0])), b"")[:MAX_BYTES], True
    with open_regular(path) as file:
        data = file.read(MAX_BYTES)
    if data.startswith(_LEGACY):
        stream = io.BytesIO(data)
        for _ in range(3):  # a magic number, a version, and facts of the system
            for _ in _opcodes(stream):
                pass
        return data[stream.tell() :], True
    return (data, False) if data[:1] == b"\x80" and data[1:2] in (b"\2", b"\3", b"\4", b"\5") else (b"", False)


def _opcodes(data: bytes | io.BytesIO) -> Iterator[tuple[str, Any]]:
    """Names of opcodes with their arguments, up to the end, a bound, or what is none."""
    try:
        for opcode, argument, _ in itertools.islice(pickletools.genops(data), MAX_OPCODES):
            yield opcode.name, argument
    except Exception:  # what pickletools raises of damaged bytes, for which there is no list
        return


def _sentence(data: bytes, by_torch: bool) -> str:
    root = _read(data)
    if root.name.startswith("__torch__"):  # of TorchScript, of which torch says what is wrong with it
        return ""
    if by_torch and root.is_weights:
        return (
            "a state dict of torch.save, weights by name without the module that they belong to. Build the module, "
            "module.load_state_dict(torch.load(path, weights_only=True)), then pn.load(module, x)"
        )
    if by_torch and (key := _checkpoint_key(root)):
        return (
            "a checkpoint of torch.save, a dict with weights by name, without the module that they belong to. Build "
            f"the module, module.load_state_dict(torch.load(path, weights_only=True)[{key!r}]), then pn.load(module, x)"
        )
    if by_torch and root.is_tensor:
        return "a tensor of torch.save, no model: give it to pn.load(module, x) as an example"
    inner = next((v.name for _, v in root.items if v.name and not v.is_dict and not v.is_tensor), "")
    if root.name and not root.is_dict:
        what = f"a pickled object of {printable(root.name)[:_SHORT]}"
    elif inner:
        what = f"a pickled {root.kind} with an object of {printable(inner)[:_SHORT]}"
    elif by_torch and root.kind:
        return f"a {root.kind} of torch.save, no model: pn.load() takes a module, or a file with the graph of one"
    else:
        what = f"a pickled {root.kind or 'object'}"
    if by_torch:
        return (
            f"{what}, a whole module if that is the class of one, which is not opened because unpickling runs code of "
            "the file. Build the module from its class, load_state_dict() of its weights, then pn.load(module, x)"
        )
    return (
        f"{what}, which is not opened because unpickling runs code of the file. Export the model as ONNX or with "
        "torch.export.save, or pn.load(module, x) a PyTorch module"
    )


def _checkpoint_key(root: _Described) -> str:
    """The key under which a dict has weights, a usual one first; "" where it has none."""
    keys = [
        key
        for key, value in root.items
        if isinstance(key, str) and value.is_weights and key.isprintable() and len(key) <= _SHORT
    ]
    return next((key for key in (*_CHECKPOINT_KEYS, *keys) if key in keys), "") if root.is_dict else ""


# ------------------------------------------------------------------------------------------ what a pickle would build


@dataclass(eq=False)
class _Described:
    """What a pickle would build, without building it.

    kind   "dict", "list", "tuple", "set" or "text"; "" for all else.
    name   of the class or function that the pickle names, or that it would call for the object.
    items  pairs of a key and what it has for that, of dicts; the key is None of lists and tuples, and of most others.
    """

    kind: str = ""
    name: str = ""
    items: list[tuple[Any, _Described]] = field(default_factory=list)

    @property
    def is_dict(self) -> bool:
        return self.kind == "dict" or self.name == "collections.OrderedDict"

    @property
    def is_tensor(self) -> bool:
        return self.name.startswith("torch._utils._rebuild_")

    @property
    def is_weights(self) -> bool:
        return self.is_dict and any(value.is_tensor for _, value in self.items)


_MARK = _Described()
_EMPTY = {"EMPTY_DICT": "dict", "EMPTY_LIST": "list", "EMPTY_TUPLE": "tuple", "EMPTY_SET": "set"}
_FROM_MARK = {"TUPLE": "tuple", "LIST": "list", "DICT": "dict", "FROZENSET": "set"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_STORES = {"PUT", "BINPUT", "LONG_BINPUT"}
_LOADS = {"GET", "BINGET", "LONG_BINGET"}
_IGNORED = {"PROTO", "FRAME", "READONLY_BUFFER", "NEXT_BUFFER"}


class _Machine:
    """pickle's stack machine, with descriptions in place of objects."""

    def __init__(self) -> None:
        self._stack: list[Any] = []  # descriptions; texts as they are, since they name keys and classes
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        """One opcode. IndexError, KeyError: it does not fit those before it."""
        stack, pop = self._stack, self._stack.pop
        if name in _IGNORED:
            return
        if name in _EMPTY:
            stack.append(_Described(_EMPTY[name]))
        elif name == "MARK":
            stack.append(_MARK)
        elif name in _FROM_MARK:
            self._push_filled(_Described(_FROM_MARK[name]), self._from_mark())
        elif name in _TUPLES:
            self._push_filled(_Described("tuple"), [pop() for _ in range(_TUPLES[name])][::-1])
        elif name in ("GLOBAL", "INST"):
            if name == "INST":
                self._from_mark()
            stack.append(_Described(name=".".join(str(argument).split(" ", 1))))
        elif name == "STACK_GLOBAL":
            last, first = pop(), pop()
            stack.append(_Described(name=f"{first}.{last}" if isinstance(first, str) else ""))
        elif name in ("REDUCE", "NEWOBJ", "NEWOBJ_EX"):
            if name == "NEWOBJ_EX":
                pop()
            pop()
            stack.append(_Described(name=_described(pop()).name))
        elif name == "OBJ":
            stack.append(_Described(name=_described(self._from_mark()[0]).name))
        elif name in ("BUILD", "POP"):
            pop()
        elif name == "BINPERSID":
            # torch.save before 1.6 names the class of a module in the second place, storages have theirs there.
            named = [v.name for _, v in _described(pop()).items[1:2]]
            stack.append(_Described(name="".join(named)))
        elif name in ("SETITEM", "APPEND"):
            values = [pop()] if name == "APPEND" else [pop(), pop()][::-1]
            _fill(stack[-1], values)
        elif name in ("SETITEMS", "APPENDS", "ADDITEMS"):
            values = self._from_mark()
            _fill(stack[-1], values)
        elif name == "POP_MARK":
            self._from_mark()
        elif name == "DUP":
            stack.append(stack[-1])
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in _STORES:
            self._memo[int(argument)] = stack[-1]
        elif name in _LOADS:
            stack.append(self._memo[int(argument)])
        else:  # a constant
            stack.append(argument if isinstance(argument, str) else _Described())

    def root(self) -> _Described:
        """The object, with what it has so far where the pickle is cut."""
        for _ in range(sum(v is _MARK for v in self._stack[1:])):
            values = self._from_mark()
            _fill(self._stack[-1], values)
        return _described(self._stack[0]) if self._stack and self._stack[0] is not _MARK else _Described()

    def _from_mark(self) -> list[Any]:
        values = []
        while (value := self._stack.pop()) is not _MARK:
            values.append(value)
        return values[::-1]

    def _push_filled(self, made: _Described, values: list[Any]) -> None:
        _fill(made, values)
        self._stack.append(made)


def _fill(owner: Any, values: list[Any]) -> None:
    if not isinstance(owner, _Described):
        return
    if owner.is_dict:
        owner.items += [(k, _described(v)) for k, v in zip(values[::2], values[1::2], strict=False)]
    else:
        owner.items += [(None, _described(v)) for v in values]


def _described(value: Any) -> _Described:
    return _Described("text") if isinstance(value, str) else value


def _read(data: bytes) -> _Described:
    machine = _Machine()
    with contextlib.suppress(IndexError, KeyError):  # of damaged bytes: what was read until there
        for name, argument in _opcodes(data):
            if name == "STOP":
                break
            machine.step(name, argument)
    try:
        return machine.root()
    except IndexError:
        return _Described()


__all__ = ["pickle_kind"]
