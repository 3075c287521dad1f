"""Files that hold no model that load() reads: what they are, and what to do instead."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from pinnace import _core
from pinnace.files import open_regular, printable
from pinnace.torch.pickles import pickle_kind
from pinnace.torch.zip_file import ZipFile, is_zip

_MODULE = "build the module, load_state_dict() of these weights, then pn.load(module, x)"
_EXPORT = "convert it to ONNX, and load that"
# (place of the bytes, bytes, what the file is and what to do).
_MAGIC = (
    (8, b"{", f"safetensors, weights by name without the module that they belong to: {_MODULE}"),
    (0, b"\x89HDF\r\n\x1a\n", f"HDF5, as of Keras: {_EXPORT} (tf2onnx does it)"),
    (4, b"TFL3", f"TensorFlow Lite: {_EXPORT} (tf2onnx does it)"),
    (
        0,
        b"GGUF",
        "GGUF, weights and settings for llama.cpp, without a graph: load the model in PyTorch, and give the module",
    ),
    (0, b"version https://git-lfs.", "a pointer of Git LFS in place of the file: fetch it with `git lfs pull`"),
    (0, b"<!DOCTYPE", "a web page: the download gave a page in place of the file"),
    (0, b"<!doctype", "a web page: the download gave a page in place of the file"),
    (0, b"<html", "a web page: the download gave a page in place of the file"),
    (0, b"\x93NUMPY", "an array of numpy, no model: give it as an example, pn.load(model, numpy.load(path))"),
)
_MOST_ENTRIES = 1000  # of a folder that are looked at


@contextlib.contextmanager
def other_files_named(path: str) -> Iterator[None]:
    """For a block that reads a model: where it fails and the file is known to be something else, a FileError says so.
    Other errors stay what they are.
    """
    try:
        yield
    except (_core.CorruptFile, _core.FileError) as error:
        kind = _folder_kind(path) if os.path.isdir(path) else other_format(path)
        if not kind:
            raise
        raise other_file(path, kind) from error


def other_file(path: str, kind: str) -> _core.FileError:
    """The error for a file of that kind."""
    return _core.FileError(f"{path}: cannot load it: {kind}")


def other_format(path: str) -> str:
    """What a file is that load() does not read, and what to do; "" where nothing is known of it."""
    if path.endswith((".py", ".ipynb")) and os.path.isfile(path):
        return "Python source code: import the module's class, make an instance, and pn.load(module, x)"
    if kind := pickle_kind(path):
        return kind
    if is_zip(path):
        return _zip_kind(path)
    try:
        with open_regular(path) as file:
            head = file.read(64)
    except (_core.FileError, OSError):
        return ""
    for place, magic, kind in _MAGIC:
        if head[place:].startswith(magic) and (place != 8 or _fits_safetensors(head, path)):
            return kind
    return ""


def _fits_safetensors(head: bytes, path: str) -> bool:
    """Its first eight bytes are the length of the JSON that follows."""
    return 2 <= int.from_bytes(head[:8], "little") <= os.path.getsize(path) - 8


def _zip_kind(path: str) -> str:
    try:
        with ZipFile(path, inflated=True) as archive:
            names = archive.names
    except _core.Error:
        return ""
    if "model.weights.h5" in names:
        return f"a model of Keras: {_EXPORT} (tf2onnx does it)"
    if names and all(name.endswith(".npy") for name in names):
        return "arrays of numpy, no model: give them as examples, pn.load(model, dict(numpy.load(path)))"
    return ""


def _folder_kind(path: str) -> str:
    try:
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in itertools.islice(entries, _MOST_ENTRIES))
    except OSError:
        return "a folder; load() takes a file"
    if "saved_model.pb" in names:
        return f"a folder with a SavedModel of TensorFlow; load() takes a file: {_EXPORT} (tf2onnx does it)"
    models = [name for name in names if Path(name).suffix in (".onnx", ".pt2", ".pnc")]
    if models:
        return f"a folder; load() takes a file, such as {printable(models[0])!r} in it"
    if "config.json" in names:
        return (
            "a folder of Transformers; load() takes a file: make the module with from_pretrained(), pn.load(module, x)"
        )
    return "a folder; load() takes a file"


__all__ = ["other_file", "other_files_named", "other_format"]
