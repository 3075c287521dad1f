"""Archives of torch.export.save whose weights and constants are pickles, as torch 2.8 writes them.

Later versions write each storage as an entry of plain bytes, and a table of the tensors that lie in them. Such an
archive is shown here as if a later version had written it, so that all that reads archives reads these too. Nothing is
unpickled: saved_tensors.py reads the pickles, and tensors alone are found in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pinnace import _core
from pinnace.torch.saved_tensors import NoTensor, SavedObject, SavedStorage, SavedTensor
from pinnace.torch.schema import STRIDED, shown
from pinnace.torch.zip_file import ZipFile, damage_named, is_zip

MAX_PICKLE, MAX_OPCODES = 64 << 20, 4_000_000  # some 100,000 tensors
_PICKLE = re.compile(r"(?P<folder>[^/]+/data/(?P<kind>weights|constants)/)(?P<model>[^/]+)\.pt")
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
        plain = PlainArchive(archive, model_name)
        return plain.parts() if plain.has_pickles else None


class PlainArchive:
    """The entries of an archive, with those that are pickles of weights replaced by the table and the storages that
    later versions of torch write. An archive without such pickles is as it is."""

    def __init__(self, archive: ZipFile, model_name: str = "") -> None:
        """`model_name`: of whose weights alone, of an archive with several models.

        CorruptFile; Unsupported: a pickle has something that is no tensor.
        """
        self._archive = archive
        self.path, self.bytes, self.corrupt = archive.path, archive.bytes, archive.corrupt
        self._made: dict[str, bytes | memoryview] = {}
        self._storages = 0
        known = set(archive.names)
        for name in archive.names:
            match = _PICKLE.fullmatch(name)
            if match is None or _table(match) in known or (model_name and match["model"] != model_name):
                continue
            self._replace(name, match)

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
        made = [(name.split("/", 1)[1], data) for name, data in self._made.items()]
        models = [name for name in self._archive.names if re.fullmatch(r"[^/]+/models/[^/]+\.json", name)]
        return [
            ("archive_format", b"pt2"),
            *((name.split("/", 1)[1], self._archive.read(name, self.bytes)) for name in models),
            *made,
        ]

    def _replace(self, name: str, match: re.Match[str]) -> None:
        place = f"{self.path}: {name.split('/', 1)[1]}"
        with damage_named(place):
            data = self._archive.read(name, self.bytes)
            try:
                saved = SavedObject(data)
                tensors = saved.value(MAX_PICKLE, MAX_OPCODES)
                rows = self._rows(tensors, place, match, saved, len(data))
            except NoTensor as error:
                raise _core.Unsupported(f"{place}: {error} is no tensor, and nothing else is read of it") from None
        self._made[_table(match)] = json.dumps({"config": rows}).encode()

    def _rows(
        self, tensors: Any, place: str, match: re.Match[str], saved: SavedObject, bytes_: int
    ) -> dict[str, dict[str, Any]]:
        if not isinstance(tensors, dict):
            raise _core.CorruptFile(f"{place}: it has no tensors by name")
        rows: dict[str, dict[str, Any]] = {}
        entries: dict[SavedStorage, str] = {}
        left = bytes_
        for name, tensor in tensors.items():
            if not isinstance(tensor, SavedTensor):
                raise NoTensor(shown(name))
            if tensor.storage not in entries:
                stored = saved.storage(tensor.storage)
                left -= len(stored)  # entries of an archive may overlap
                if left < 0:
                    raise _core.CorruptFile(f"{place}: its storages have more than its {bytes_} bytes")
                entries[tensor.storage] = f"{_PREFIX[match['kind']]}{self._storages}"
                self._storages += 1
                self._made[match["folder"] + entries[tensor.storage]] = stored
            rows[name] = {
                "path_name": entries[tensor.storage],
                "is_param": tensor.is_parameter,
                "use_pickle": False,
                "tensor_meta": _meta(tensor),
            }
        return rows


def _table(match: re.Match[str]) -> str:
    return f"{match['folder']}{match['model']}_{match['kind']}_config.json"


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
