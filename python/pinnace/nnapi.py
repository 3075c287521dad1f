"""Where the packaged NNAPI library for Linux lies: what C and C++ clients, and PyTorch's NNAPI runtime, load."""

from __future__ import annotations

from pathlib import Path

from pinnace import _core


def nnapi_library_path() -> str:
    """Absolute path of libneuralnetworks.so, in the package. Unsupported: this build has none (it is made on Linux)."""
    path = Path(_core.__file__).resolve().parent / "libneuralnetworks.so"
    if not path.exists():
        raise _core.Unsupported(f"{path} is not there: this build has no NNAPI library, which is made on Linux")
    return str(path)


__all__ = ["nnapi_library_path"]
