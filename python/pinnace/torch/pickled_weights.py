"""Archives of torch.export.save whose weights and constants are pickles, as torch 2.8 writes them.

Later versions write each storage as an entry of plain bytes, and a table of the tensors that lie in them. Such an
archive is shown here as if a later version had written it, so that all that reads archives reads these too. Nothing is
unpickled: saved_tensors.py reads the pickles, and tensors alone are found in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pinnace import _core
from pinnace.torch.saved_tensors import NoTensor, SavedObject, SavedTensor
from pinnace.torch.schema import STRIDED, shown
from pinnace.torch.zip_file import ZipFile, damage_named, is_zip

MAX_PICKLE, MAX_OPCODES = 64 << 20, 4_000_000
MAX_TENSORS = 100_000
_MARK = "/archive_format"
_PREFIX = {"weights": "weight_", "constants": "tensor_"}  # of entries with a storage, as torch names them
_TYPES = {
    "uint8": 1,
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "complex64": 10,
    "complex128": 11,
    "bool": 12,
    "bfloat16": 13,
    "uint16": 28,
    "uint32": 34,
    "uint64": 35,
}
"""torch's numbers of element types."""


def pickled_parts(path: str, model_name: str = "") -> list[tuple[str, Any]] | None:
    """What _core's load_torch_program takes of such an archive; None of every other file, also of damaged ones, which
    the importer refuses. Raises as PlainArchive does."""
    if not is_zip(path):
        return None
    try:
        archive = ZipFile(path)
    except _core.CorruptFile:
        return None
    with archive:
        marks = [name for name in archive.names if name.endswith(_MARK)]
        if len(marks) != 1 or archive.size(marks[0]) > 64 or archive.read(marks[0], 64) != b"pt2":
            return None
        plain = PlainArchive(archive, model_name)
        return plain.parts() if plain.has_pickles else None


class PlainArchive:
    """The entries of an archive, with those that are pickles of weights replaced by the table and the storages that
    later versions of torch write. An archive without such pickles is as it is."""

    def __init__(self, archive: ZipFile, model_name: str = "") -> None:
        """`model_name`: whose weights are looked for; by default those of the only model. An archive that has no such
        model stays as it is: who asks for the model says so.

        CorruptFile; Unsupported: a pickle has something that is no tensor.
        """
        self._archive = archive
        self.path, self.bytes, self.corrupt = archive.path, archive.bytes, archive.corrupt
        self._made: dict[str, bytes | memoryview] = {}
        self._storages = 0
        names = set(archive.names)
        self._root = next((name[: 1 - len(_MARK)] for name in archive.names if name.endswith(_MARK)), "")
        start, end = f"{self._root}models/", ".json"
        self._models = [name for name in archive.names if name.startswith(start) and name.endswith(end)]
        if not model_name and len(self._models) == 1:
            model_name = self._models[0][len(start) : -len(end)]
        if f"{start}{model_name}{end}" not in names:
            return
        for kind, prefix in _PREFIX.items():
            folder = f"{self._root}data/{kind}/"
            table = f"{folder}{model_name}_{kind}_config.json"
            if f"{folder}{model_name}.pt" in names and table not in names:
                self._replace(folder, f"{model_name}.pt", table, prefix)

    @property
    def has_pickles(self) -> bool:
        """Whether anything was replaced."""
        return bool(self._made)

    @property
    def names(self) -> list[str]:
        """Every entry."""
        return [*self._archive.names, *self._made]

    def size(self, name: str) -> int:
        """Bytes of an entry. CorruptFile: there is none of that name."""
        return len(self._made[name]) if name in self._made else self._archive.size(name)

    def read(self, name: str, most: int) -> bytes:
        """The bytes of an entry of at most so many, its checksum compared."""
        return bytes(self._made[name]) if name in self._made else self._archive.read(name, most)

    def chunks(self, name: str) -> Iterator[bytes | memoryview]:
        """The same in pieces."""
        if name in self._made:
            yield self._made[name]
        else:
            yield from self._archive.chunks(name)

    def parts(self) -> list[tuple[str, Any]]:
        """Texts of models, tables and storages, by their names below the archive's root."""
        read = {name: self._archive.read(name, self.bytes) for name in self._models} | self._made
        return [("archive_format", b"pt2"), *((name[len(self._root) :], data) for name, data in read.items())]

    def _replace(self, folder: str, pickle: str, table: str, prefix: str) -> None:
        place = f"{self.path}: {(folder + pickle)[len(self._root) :]}"
        with damage_named(place):
            data = self._archive.read(folder + pickle, self.bytes)
            try:
                saved = SavedObject(data)
                tensors = saved.value(MAX_PICKLE, MAX_OPCODES)
                rows = self._rows(tensors, place, folder, prefix, saved, len(data))
            except NoTensor as error:
                raise _core.Unsupported(f"{place}: {error} is no tensor, and nothing else is read of it") from None
        self._made[table] = json.dumps({"config": rows}).encode()

    def _rows(
        self, tensors: Any, place: str, folder: str, prefix: str, saved: SavedObject, bytes_: int
    ) -> dict[str, dict[str, Any]]:
        if not isinstance(tensors, dict):
            raise _core.CorruptFile(f"{place}: it has no tensors by name")
        if len(tensors) > MAX_TENSORS:
            raise _core.CorruptFile(f"{place}: {len(tensors)} tensors, at most {MAX_TENSORS} are read")
        rows: dict[str, dict[str, Any]] = {}
        entries: dict[str, str] = {}
        left = bytes_
        for name, tensor in tensors.items():
            if not isinstance(tensor, SavedTensor):
                raise NoTensor(shown(name))
            key = tensor.storage.key
            if key not in entries:
                stored = saved.storage(tensor.storage)
                left -= len(stored)  # entries of an archive may overlap
                if left < 0:
                    raise _core.CorruptFile(f"{place}: its storages have more than its {bytes_} bytes")
                entries[key] = f"{prefix}{self._storages}"
                self._storages += 1
                self._made[folder + entries[key]] = stored
            rows[name] = {
                "path_name": entries[key],
                "is_param": tensor.is_parameter,
                "use_pickle": False,
                "tensor_meta": _meta(tensor),
            }
        return rows


def _meta(tensor: SavedTensor) -> dict[str, Any]:
    def numbers(values: tuple[int, ...]) -> list[dict[str, int]]:
        return [{"as_int": value} for value in values]

    return {
        "dtype": _TYPES[tensor.storage.dtype],
        "sizes": numbers(tensor.sizes),
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": numbers(tensor.strides),
        "storage_offset": {"as_int": tensor.offset},
        "layout": STRIDED,
    }


__all__ = ["PlainArchive", "pickled_parts"]
