"""Arrays of .npy and .npz files: what a command line gives as inputs. Whatever is wrong with one is a FileError."""

from __future__ import annotations

import io
import math
import os
import zipfile
from typing import Any, BinaryIO

import numpy as np

from pinnace import _core
from pinnace.files import one_line, open_regular, printable, reason
from pinnace.torch.zip_file import INFLATED_FACTOR, INFLATED_MOST, ZipFile
from pinnace.types import Array


def read_array(path: str) -> Array:
    """The array of a .npy file. No object is unpickled, and no more memory is taken than the file has bytes.

    FileError: it cannot be read, or is none; InvalidArgument: it is an archive of arrays.
    """
    try:
        with open_regular(path) as file:
            if file.read(4) == b"PK\3\4" and zipfile.is_zipfile(file):
                raise _core.InvalidArgument(
                    f"{path} is an archive of arrays; must be one .npy file (give archives as FILE.npz, without NAME=)"
                )
            file.seek(0)
            shape, columns_first, dtype, count = _header(file, os.fstat(file.fileno()).st_size)
            array: Array = np.fromfile(file, dtype, count)
            return array.reshape(shape, order="F" if columns_first else "C")
    except _core.Error:
        raise
    except OSError as error:
        raise _core.FileError(f"{path}: {reason(error)}") from error
    except Exception as error:  # the header is a dict in Python's notation, whose reader raises many things
        raise _unreadable(path, error) from error


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of a .npz file, by the names of its members, in order. Nothing is unpickled; compressed ones expand to
    a bounded multiple of the file's size.

    FileError: it cannot be read, is none, or has members that are no arrays.
    """
    try:
        return _members(path)
    except _core.CorruptFile as error:
        raise _core.FileError(str(error)) from error


def _members(path: str) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    with ZipFile(path, inflated=True) as archive:
        for member in archive.names:
            place = f"{path}: member {printable(member)[:80]!r}"
            if not member.endswith(".npy"):
                raise _core.FileError(f"{place} is no .npy file")
            data = archive.read(member, INFLATED_MOST + INFLATED_FACTOR * archive.bytes)
            try:
                file = io.BytesIO(data)
                shape, columns_first, dtype, count = _header(file, len(data))
                array = np.frombuffer(data, dtype, count, file.tell()).copy()
            except Exception as error:
                raise _unreadable(place, error) from error
            arrays[member.removesuffix(".npy")] = array.reshape(shape, order="F" if columns_first else "C")
    return arrays


def _header(file: BinaryIO, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """(shape, whether columns come first, dtype, number of elements) of a .npy file of so many bytes, which then stands
    at its elements. ValueError and what numpy raises: it has none of plain numbers."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the format, which holds no plain arrays")
    read_header = (np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0)[version[0] - 1]
    shape, columns_first, dtype = read_header(file)
    count, left = math.prod(shape), size - file.tell()
    if dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(f"shape {shape} of {dtype}, which are no plain numbers")
    if count * dtype.itemsize > left:
        raise ValueError(f"shape {shape} of {dtype} needs more than the {left} bytes that there are")
    return shape, columns_first, dtype, count


def _unreadable(place: str, error: Exception) -> _core.FileError:
    return _core.FileError(f"{place}: not a readable .npy file: {one_line(error, 200, kind=True)}")


__all__ = ["read_array", "read_arrays"]
