"""Archives of torch.export.save as torch 2.8 to 2.13 write them: files that each of these versions wrote, and the
layout of 2.8, whose weights are pickles, with everything that may stand in one."""

from __future__ import annotations

import io
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from older_archives import save_as_2_8, saved
from pinnace import _core
from pinnace.sources.torch_program import open_torch_archive
from pinnace.torch import pickled_weights
from torch import nn

FILES = sorted((Path(__file__).parents[2] / "data/pt2").glob("torch_*.pt2"), key=lambda path: path.stat().st_size)


def test_every_version_has_a_file() -> None:
    minors = {int(path.stem.split(".")[1]) for path in FILES}
    assert minors == set(range(8, 14))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_a_version_gives_what_that_version_gives(path: Path) -> None:
    program = pn.load(path).build()
    assert program.metadata.verified.startswith("1 input(s) against torch")
    with np.load(path.with_suffix(".npz")) as said:
        session = pn.Session(program, "cpu")
        for call in (1, 2):
            y, calls = session.run({"x": said["x"], "ids": said["ids"]}).values()
            assert_agree(y, said["y"])
            assert calls == call * said["calls"]
        dynamic_batch = {"x": np.repeat(said["x"], 3, 0), "ids": np.repeat(said["ids"], 3, 0)}
        assert next(iter(session.run(dynamic_batch).values())).shape == (6, 10)
    # An embedding and the product that is tied to it are one constant.
    assert sum(constant["bytes"] == 160 for constant in _core_constants(program)) == 1


def _core_constants(program: pn.Program) -> Any:
    from pinnace.program import core_of

    return core_of(program).constants


def test_the_layout_of_2_8_is_read_in_python_alone() -> None:
    (path,) = (path for path in FILES if path.stem == "torch_2.8.0")
    with pytest.raises(pn.Unsupported, match=r"data/weights/model.pt is a pickle of weights, as torch 2\.8 writes"):
        _core.Model.load(str(path))


class Everything(nn.Module):
    """A tensor of each element type that pickles may have; views of one storage; none of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 6))
        self.weight.no_weight_decay = True  # type: ignore[attr-defined]  # attributes of Python's are written by functions of their own
        self.kept = nn.Buffer(torch.linspace(2, 3, 6))
        for i, dtype in enumerate(
            (
                torch.uint8,
                torch.int8,
                torch.int16,
                torch.int32,
                torch.int64,
                torch.float16,
                torch.bfloat16,
                torch.uint16,
            )
        ):
            self.register_buffer(f"numbers{i}", torch.arange(6).to(dtype))
        self.register_buffer("doubles", torch.linspace(0, 1, 6, dtype=torch.float64))
        self.register_buffer("flags", torch.tensor([True, False] * 3))
        self.register_buffer("spectrum", torch.complex(torch.arange(6.0), -torch.arange(6.0)))
        whole = torch.arange(12.0)
        self.register_buffer("even", whole[::2])
        self.register_buffer("late", whole[6:], persistent=False)
        self.register_buffer("row", torch.tensor([3.0]).expand(6))
        self.register_buffer("none", torch.zeros(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        of = self.get_buffer
        y = x * self.weight + of("doubles").float() + of("even") - of("late") + of("row") + self.kept
        for i in range(8):
            y = y + of(f"numbers{i}").float()
        y = torch.where(of("flags"), y, -y)
        return torch.cat([y + of("spectrum").imag * of("spectrum").real, of("none")])


def exported(net: nn.Module) -> torch.export.ExportedProgram:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(net.eval(), (torch.linspace(-2, 2, 6),))


def test_pickles_have_every_type_and_views(tmp_path: Path) -> None:
    net = Everything()
    save_as_2_8(exported(net), tmp_path / "net.pt2")
    program = pn.load(tmp_path / "net.pt2").build()
    x = np.linspace(-3, 1, 6, dtype=np.float32)
    (y,) = pn.Session(program, "cpu").run({"x": x}).values()
    with torch.no_grad():
        assert_agree(y, net(torch.from_numpy(x)).numpy())


def test_operators_that_are_decomposed_and_several_models(tmp_path: Path) -> None:
    class Area(nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.full((6,), factor))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.trapezoid(x * self.factor)  # which the importer does not have

    parts: list[dict[str, bytes]] = []
    for factor in (2.0, 3.0):
        path = tmp_path / "one.pt2"
        save_as_2_8(exported(Area(factor)), path)
        with zipfile.ZipFile(path) as one:
            parts.append({name.split("/", 1)[1]: one.read(name) for name in one.namelist()})
    x = np.ones(6, np.float32)
    (y,) = pn.Session(pn.load(tmp_path / "one.pt2").build(), "cpu").run({"x": x}).values()
    assert y == 15
    with zipfile.ZipFile(tmp_path / "two.pt2", "w") as two:
        for name, data in parts[0].items():
            two.writestr(f"two/{name}", data)
        for name in ("models/{}.json", "data/weights/{}.pt", "data/constants/{}.pt"):
            two.writestr("two/" + name.format("other"), parts[1][name.format("model")])
    for model, right in (("model", 10), ("other", 15)):
        program = pn.load(tmp_path / "two.pt2", model_name=model).build()
        (y,) = pn.Session(program, "cpu").run({"x": x}).values()
        assert y == right
    with pytest.raises(pn.InvalidArgument, match="2 models"):
        pn.load(tmp_path / "two.pt2")
    with pytest.raises(pn.InvalidArgument, match="no model 'third'"):
        pn.load(tmp_path / "two.pt2", model_name="third")


# ---- what a file may have instead


def refused(path: Path, error: type[pn.Error], match: str) -> None:
    """By the importer, and by the reader that hands a program to torch."""
    with pytest.raises(error, match=match):
        pn.load(path)
    with pytest.raises(error, match=match):
        open_torch_archive(str(path))


def test_pickles_that_run_code_are_refused(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Attack:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {marker}",)

    program = exported(Everything())
    for place, value in (
        ("data/weights/model.pt", Attack()),
        ("data/weights/model.pt", {**program.state_dict, "weight": Attack()}),
        ("data/constants/model.pt", {"late": Attack()}),
    ):
        path = tmp_path / "attack.pt2"
        save_as_2_8(program, path, {place: saved(value)})
        refused(path, pn.Unsupported, f"{place}: a call of '[a-z]+.system' is no tensor")
        assert not marker.exists()


def test_what_is_no_tensor_is_named(tmp_path: Path) -> None:
    program = exported(Everything())
    weights = program.state_dict
    for value, error, match in (
        ([], pn.CorruptFile, "no tensors by name"),
        ({**weights, "weight": 3}, pn.Unsupported, "'weight' is no tensor"),
        ({**weights, "weight": torch.ones(6).to_sparse()}, pn.Unsupported, "a call of 'torch[a-z._]+' is no tensor"),
        ({**weights, "spectrum": weights["spectrum"].conj()}, pn.Unsupported, "conjugated or negated when it is read"),
        ({name: t for name, t in weights.items() if name != "weight"}, pn.CorruptFile, "'weight' is not among the"),
        (
            {**weights, "weight": torch.ones(7)},
            pn.CorruptFile,
            "'weight' is float32.7., which is not what the graph says",
        ),
    ):
        save_as_2_8(program, tmp_path / "net.pt2", {"data/weights/model.pt": saved(value)})
        with pytest.raises(error, match=match):
            pn.load(tmp_path / "net.pt2")


def test_damaged_pickles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = exported(Everything())
    good = saved(program.state_dict)
    path = tmp_path / "net.pt2"
    place = "data/weights/model.pt"
    at = good.index(torch.linspace(-1, 1, 6).numpy().tobytes())
    for bad in (good[: len(good) // 2], b"", good[:at] + b"\1" + good[at + 1 :], good.replace(b"little", b"bigger")):
        save_as_2_8(program, path, {place: bad})
        refused(path, pn.CorruptFile, place)
    with zipfile.ZipFile(io.BytesIO(good)) as inner:
        entries = {info.filename: inner.read(info) for info in inner.infolist()}
    save_as_2_8(program, path, {place: archive({**entries, "archive/byteorder": b"big"})})
    refused(path, pn.CorruptFile, "not in little-endian order")
    # Entries that are one: many of them would be many times the file.
    many = {"a": torch.ones(1000), "b": torch.ones(1000), "c": torch.ones(1000)}
    save_as_2_8(program, path, {place: overlapping(saved(many))})
    refused(path, pn.CorruptFile, "its storages have more than its")
    save_as_2_8(program, path)
    monkeypatch.setattr(pickled_weights, "MAX_OPCODES", 20)
    refused(path, pn.CorruptFile, "more than 20 opcodes")
    monkeypatch.undo()
    monkeypatch.setattr(pickled_weights, "MAX_TENSORS", 3)
    refused(path, pn.CorruptFile, "at most 3 are read")


def archive(entries: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, data in entries.items():
            made.writestr(name, data)
    return stream.getvalue()


def overlapping(data: bytes) -> bytes:
    """The archive, with every storage the same entry, and no other kept."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as inner, zipfile.ZipFile(stream, "w") as made:
        first: zipfile.ZipInfo | None = None
        for info in inner.infolist():
            if "/data/" not in info.filename:
                made.writestr(info.filename, inner.read(info))
            elif first is None:
                made.writestr(info.filename, inner.read(info))
                first = made.infolist()[-1]
            else:
                again = zipfile.ZipInfo(info.filename)
                again.header_offset, again.CRC = first.header_offset, first.CRC
                again.file_size = again.compress_size = first.file_size
                made.filelist.append(again)
                made.NameToInfo[again.filename] = again
        made._didModify = True  # type: ignore[attr-defined]
    return stream.getvalue()


def test_other_archives_are_what_they_were(tmp_path: Path) -> None:
    """With an entry whose name looks like a pickle of weights, and with two programs."""
    path = tmp_path / "project.pt2"
    path.write_bytes(archive({"project/data/weights/best.pt": b"x" * 100, "project/models/best.json": b"{}"}))
    with pytest.raises(pn.CorruptFile, match="archive_format"):
        pn.load(path)
    save_as_2_8(exported(Everything()), tmp_path / "net.pt2")
    with zipfile.ZipFile(tmp_path / "net.pt2") as one:
        entries = {name: one.read(name) for name in one.namelist()}
    path.write_bytes(archive({**entries, **{f"second/{name}": data for name, data in entries.items()}}))
    with pytest.raises(pn.CorruptFile, match="archive_format"):
        pn.load(path)
