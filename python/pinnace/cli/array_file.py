"""Arrays of .npy files: what a command line gives as inputs. Whatever is wrong with one is a FileError."""

from __future__ import annotations

import math
import os
import zipfile

import numpy as np

from pinnace import _core
from pinnace.files import one_line, open_regular, reason
from pinnace.types import Array


def read_array(path: str) -> Array:
    """The array of a .npy file. No object is unpickled, and no more memory is taken than the file has bytes.

    FileError: it cannot be read, or is none; InvalidArgument: it is an archive of arrays.
    """
    try:
        with open_regular(path) as file:
            if file.read(4) == b"PK\3\4" and zipfile.is_zipfile(file):
                raise _core.InvalidArgument(f"{path} is an archive of arrays; must be one .npy file")
            file.seek(0)
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"version {version} of the format, which holds no plain arrays")
            read_header = (np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0)[version[0] - 1]
            shape, columns_first, dtype = read_header(file)
            count, left = math.prod(shape), os.fstat(file.fileno()).st_size - file.tell()
            if dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0:
                raise ValueError(f"shape {shape} of {dtype}, which are no plain numbers")
            if count * dtype.itemsize > left:
                raise ValueError(f"shape {shape} of {dtype} needs more than the {left} bytes that there are")
            array: Array = np.fromfile(file, dtype, count)
            return array.reshape(shape, order="F" if columns_first else "C")
    except _core.Error:
        raise
    except OSError as error:
        raise _core.FileError(f"{path}: {reason(error)}") from error
    except Exception as error:  # the header is a dict in Python's notation, whose reader raises many things
        raise _core.FileError(f"{path}: not a readable .npy file: {one_line(error, 200, kind=True)}") from error


__all__ = ["read_array"]
