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
from pinnace.torch.schema import STRIDED, TYPE_NUMBERS, shown
from pinnace.torch.zip_file import ZipFile, damage_named, is_zip

MAX_PICKLE, MAX_OPCODES = 64 << 20, 4_000_000
MAX_TENSORS = 100_000
_PREFIX = {"weights": "weight_", "constants": "tensor_"}  # of entries with a storage, as torch names them


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
        marks = _marks(archive)
        if len(marks) != 1 or archive.read(marks[0], archive.bytes) != b"pt2":
            return None
        plain = PlainArchive(archive, model_name)
        return plain.parts() if plain.has_pickles else None


def _marks(archive: ZipFile) -> list[str]:
    """The entries that make an archive one of torch.export.save: there is one, in its root folder."""
    return [name for name in archive.names if name.endswith("/archive_format")]


class PlainArchive:
    """The entries of an archive, with those that are pickles of weights replaced by the table and the storages that
    later versions of torch write. An archive without such pickles is as it is.

    root    the folder that all entries are in, with a slash at its end
    models  names of the models, each of which is an entry models/NAME.json
    """

    def __init__(self, archive: ZipFile, model_name: str = "") -> None:
        """`model_name`: whose weights are looked for; by default those of the only model. An archive that has no such
        model stays as it is: who asks for the model says so.

        CorruptFile: there are several root folders, or none, or a pickle is damaged. Unsupported: it has something that
        is no tensor.
        """
        self._archive = archive
        self.path, self.bytes, self.corrupt = archive.path, archive.bytes, archive.corrupt
        self._made: dict[str, bytes | memoryview] = {}
        self._storages = 0
        names, marks = set(archive.names), _marks(archive)
        if len(marks) != 1:
            raise self.corrupt(f"{len(marks)} entries end in /archive_format, must be one")
        self.root = marks[0].removesuffix("archive_format")
        start, end = f"{self.root}models/", ".json"
        self.models = [n[len(start) : -len(end)] for n in archive.names if n.startswith(start) and n.endswith(end)]
        if not model_name and len(self.models) == 1:
            model_name = self.models[0]
        if model_name not in self.models:
            return
        for kind, prefix in _PREFIX.items():
            folder = f"{self.root}data/{kind}/"
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
        texts = [f"{self.root}models/{name}.json" for name in self.models]
        read = {name: self._archive.read(name, self.bytes) for name in texts} | self._made
        return [("archive_format", b"pt2"), *((name.removeprefix(self.root), data) for name, data in read.items())]

    def _replace(self, folder: str, pickle: str, table: str, prefix: str) -> None:
        place = f"{self.path}: {(folder + pickle).removeprefix(self.root)}"
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
        "dtype": TYPE_NUMBERS[tensor.storage.dtype],
        "sizes": numbers(tensor.sizes),
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": numbers(tensor.strides),
        "storage_offset": {"as_int": tensor.offset},
        "layout": STRIDED,
    }


__all__ = ["PlainArchive", "pickled_parts"]
