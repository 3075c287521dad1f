"""Archives of torch.export.save as torch 2.8 lays them out: weights and constants are one pickle each."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch


def saved(value: Any) -> bytes:
    """What torch.save writes."""
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def save_as_2_8(program: torch.export.ExportedProgram, path: Path, changed: Mapping[str, bytes] | None = None) -> None:
    """Writes the program. `changed`: contents of pickles by their place, "data/weights/model.pt"."""
    stream = io.BytesIO()
    torch.export.save(program, stream)
    pickles = {
        "data/weights/model.pt": saved(program.state_dict),
        "data/constants/model.pt": saved(program.constants),
        **(changed or {}),
    }
    with zipfile.ZipFile(stream) as new, zipfile.ZipFile(path, "w") as old:
        root = new.namelist()[0].split("/", 1)[0]
        for name in new.namelist():
            if not name.startswith((f"{root}/data/weights/", f"{root}/data/constants/")):
                old.writestr(name, new.read(name))
        for place, data in pickles.items():
            old.writestr(f"{root}/{place}", data)
