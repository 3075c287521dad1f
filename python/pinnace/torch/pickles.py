"""What torch.save or pickle wrote into a file, told from names of entries and opcodes: nothing is unpickled."""

from __future__ import annotations

import io
import itertools
import pickletools
from collections.abc import Iterator
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
            pickles = [name for name in archive.names if name.split("/", 1)[-1] == "data.pkl"]
            if len(pickles) != 1 or any("constants.pkl" in name or "/code/" in name for name in archive.names):
                return b"", False  # none, or TorchScript, which the importer names
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
    root = _root(data)
    if root == "dict" and by_torch and (key := _checkpoint_key(data)):
        return (
            "a checkpoint of torch.save, a dict with weights by name, without the module that they belong to. Build "
            f"the module, module.load_state_dict(torch.load(path, weights_only=True)[{key!r}]), then pn.load(module, x)"
        )
    if root in ("dict", "collections.OrderedDict") and by_torch:
        return (
            "a state dict of torch.save, weights by name without the module that they belong to. Build the module, "
            "module.load_state_dict(torch.load(path, weights_only=True)), then pn.load(module, x)"
        )
    if root.startswith("torch._utils._rebuild_") and by_torch:
        return "a tensor of torch.save, no model: give it to pn.load(module, x) as an example"
    what = f"a pickled object of {printable(root)[:_SHORT]}" if root else "a pickled object"
    if by_torch:
        return (
            f"{what}, a whole module of torch.save, which is not opened because unpickling runs code of the file. "
            "Build the module from its class, load_state_dict() of its weights, then pn.load(module, x)"
        )
    return (
        f"{what}, which is not opened because unpickling runs code of the file. Export the model as ONNX or with "
        "torch.export.save, or pn.load(module, x) a PyTorch module"
    )


def _root(data: bytes) -> str:
    """ "dict" for a dict, else the first class or function that the pickle names: that of the object itself."""
    texts: list[str] = []
    for place, (name, argument) in enumerate(_opcodes(data)):
        if name == "EMPTY_DICT" and place <= 2 and not texts:  # after PROTO and FRAME
            return "dict"
        if name == "GLOBAL":
            return ".".join(str(argument).split(" ", 1))
        if name == "STACK_GLOBAL":
            return ".".join(texts[-2:])
        if isinstance(argument, str):
            texts.append(argument)
    return ""


def _checkpoint_key(data: bytes) -> str:
    """The key under which such dicts usually have the weights, where it is one of the texts in the pickle."""
    texts = {argument for _, argument in _opcodes(data) if isinstance(argument, str)}
    return next((key for key in _CHECKPOINT_KEYS if key in texts), "")


__all__ = ["pickle_kind"]
