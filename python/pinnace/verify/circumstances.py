"""What a comparison was made with: the call, the date, the machine and the versions of all that took part."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import sys
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.program import Program
from pinnace.targets import devices

_PACKAGES = ("numpy", "ml_dtypes", "torch", "onnx", "onnxruntime")


def circumstances(call: str, program: Program, targets: Sequence[str]) -> dict[str, str]:
    """Facts by name, in the order in which a reader asks for them."""
    facts = {
        "made by": call,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "model": program.metadata.source,
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
        "processor": _processor(),
    }
    named = {part.partition(":")[0] for target in targets for part in target.split(",")} - {"cpu"}
    if named:  # asking opens every driver
        facts |= {f"device {d.target}": d.description for d in devices() if d.target in named}
    facts["pinnace"] = f"{sys.modules['pinnace'].__version__}, built from {_core.built_from}"
    facts["Python"] = platform.python_version()
    facts |= {name: version for name in _PACKAGES if name in sys.modules and (version := _release(name))}
    return {name: text for name, text in facts.items() if text}


def call_text(
    program: Any,
    reference: Any,
    feeds: Sequence[str],
    count: int,
    targets: Sequence[str],
    precisions: Sequence[str],
    tolerance: Mapping[str, float],
    client: Any = None,
) -> str:
    """The call of compare() as it could have been written, arrays and models by their kinds. feeds: feed_text() of the
    first inputs, of which there are `count`."""
    more = f", … {count - len(feeds)} more" if count > len(feeds) else ""
    parts = [_kind(program), _kind(reference), f"[{', '.join(feeds)}{more}]", f"targets={list(targets)!r}"]
    parts += [f"precision={list(precisions)!r}"] if list(precisions) != ["fp32"] else []
    parts += [f"tolerance={dict(tolerance)!r}"] if tolerance else []
    parts += [f"client={_kind(client)}"] if client is not None else []
    return f"pn.compare({', '.join(parts)})"


def feed_text(feed: Mapping[str, Any]) -> str:
    """One dict of inputs, arrays by their kinds."""
    return "{" + ", ".join(f"{name!r}: {_kind(x)}" for name, x in feed.items()) + "}"


def _kind(thing: Any) -> str:
    if isinstance(thing, str | PathLike):
        path = Path(fspath(thing))
        return repr(path.name if path.is_absolute() else str(path))  # a report is passed on, folders stay
    if isinstance(thing, Program):
        return f"<Program {thing.metadata.source}>".replace(" >", ">")
    dtype, shape = getattr(thing, "dtype", None), getattr(thing, "shape", None)
    if dtype is not None and shape is not None:
        return f"{str(dtype).removeprefix('torch.')}{[int(size) for size in shape]}"
    return f"<{type(thing).__name__}>" if not isinstance(thing, int | float | np.generic) else repr(thing)


def _processor() -> str:
    """Its name and how many there are, from the system's table; empty where there is none."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as table:
            names = [line.partition(":")[2].strip() for line in table if line.startswith("model name")]
    except OSError:
        return ""
    return f"{names[0]}, {len(names)} processors" if names else ""


def _release(package: str) -> str:
    """Of a package that is in use; empty where it does not say."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules[package], "__version__", ""))


__all__ = ["call_text", "circumstances", "feed_text"]
