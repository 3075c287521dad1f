"""Live modules and exported programs enter through memory: the same bytes as through an archive of the same program,
weights that are used where they lie and stored once, and nothing left behind where the way in ends early."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import weakref
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from pinnace import _core
from pinnace.torch.export import exported_parts
from slices import rotating_slice
from torch import Tensor, nn
from torch_modules import CASES


def exported(name: str) -> torch.export.ExportedProgram:
    case = CASES[name]
    torch.manual_seed(1)
    module = case.module().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        return torch.export.export(module, case.inputs(generator, case.sizes[0]), dynamic_shapes=case.dynamic)


def as_numbers(config: bytes, storages: dict[str, bytes]) -> dict[str, Any]:
    """Per weight what the config says of it, with its storage's bytes for the storage's name."""
    rows = json.loads(config)["config"]
    return {key: {**row, "path_name": storages.get(row["path_name"])} for key, row in rows.items()}


def built(load: Callable[[], Any]) -> bytes:
    return bytes(load().build(["cpu"], {}).bytes())


def refused(load: Callable[[], Any]) -> list[tuple[str, str, str]]:
    """What cannot be imported; some operators need torch to decompose them first."""
    try:
        load()
    except _core.ConversionError as error:
        return [(p.op, p.node, p.rule) for p in error.nodes]
    return []


@pytest.mark.parametrize("name", rotating_slice(list(CASES), 0.2, "torch_in_memory"))
def test_memory_and_archive_give_the_same_program(name: str, tmp_path: Path) -> None:
    program = exported(name)
    path = tmp_path / "m.pt2"
    torch.export.save(program, path)
    parts = {part: bytes(content) for part, content in exported_parts(program, name)}
    with zipfile.ZipFile(path) as archive:
        written = {entry.split("/", 1)[1]: archive.read(entry) for entry in archive.namelist()}
    assert parts["models/model.json"] == written["models/model.json"]
    for kind in ("weights", "constants"):
        config = f"data/{kind}/model_{kind}_config.json"
        ours, theirs = (
            as_numbers(group[config], {k.rsplit("/", 1)[1]: v for k, v in group.items() if f"data/{kind}/" in k})
            for group in (parts, written)
        )
        assert ours == theirs, kind

    def from_archive() -> Any:
        return _core.Model.load(str(path))

    def from_memory() -> Any:
        return _core.Model.load_torch_program(name, exported_parts(program, name))

    if refused(from_archive) or refused(from_memory):
        assert refused(from_memory) == refused(from_archive)
    else:
        assert built(from_memory) == built(from_archive)


# --------------------------------------------------------------------------------------------------------- weights


class Tied(nn.Module):
    """A language model's frame: the table of the embedding is the weight of the output layer."""

    def __init__(self, words: int = 500, width: int = 64) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.hidden = nn.Linear(width, width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.head(torch.tanh(self.hidden(self.words(ids))))
        return out


IDS = torch.arange(12).reshape(2, 6)


@pytest.mark.parametrize("shapes", [None, {"ids": {0: pn.Dim("n", 1, 8), 1: pn.Dim("t", 1, 32)}}])
@pytest.mark.parametrize("ids", [IDS, IDS[0]], ids=["batch", "sequence"])
def test_tied_weights_are_stored_once(ids: Tensor, shapes: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Tied().eval()
    shapes = {"ids": {0: pn.Dim("t", 1, 32)}} if shapes and ids.dim() == 1 else shapes
    program = pn.load(net, (ids,), shapes).build()
    assert program.metadata.verified_on["cpu"].startswith("yes")
    weights = sum(p.numel() * 4 for p in net.parameters())
    assert len(program.to_bytes()) < weights + 16_000
    program.save(tmp_path / "net.pnc")
    other = torch.tensor([[7, 3, 1, 0, 2, 499]]).expand(ids.shape[0] if ids.dim() > 1 else 1, 6).reshape(ids.shape)
    (got,) = pn.Session(tmp_path / "net.pnc").run({"ids": other}).values()
    assert_agree(got, net(other).detach().numpy())


def test_equal_weights_are_stored_once() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).eval()
    net[2].load_state_dict(net[0].state_dict())
    program = pn.load(net, (torch.randn(3, 64),)).build()
    assert len(program.to_bytes()) < 64 * 64 * 4 + 12_000


class Counter(nn.Module):
    """Writes to a buffer that begins with the bytes of a weight."""

    total: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(4096.0))
        self.register_buffer("total", torch.arange(4096.0))

    def forward(self, x: Tensor) -> Tensor:
        self.total.add_(x)
        return self.total * self.weight


def test_what_is_written_to_is_not_shared() -> None:
    net = Counter().eval()
    model = pn.load(net, (torch.ones(4096),))
    with torch.no_grad():
        net.total.fill_(-1)  # the state's first value is the one at load()
    program = model.build()
    session = pn.Session(program)
    first, second = (next(iter(session.run({"x": np.ones(4096, np.float32)}).values())) for _ in range(2))
    base = np.arange(4096, dtype=np.float32)
    np.testing.assert_array_equal(first, (base + 1) * base)
    np.testing.assert_array_equal(second, (base + 2) * base)
    other = next(iter(pn.Session(program).run({"x": np.ones(4096, np.float32)}).values()))
    np.testing.assert_array_equal(other, first)


def test_weights_that_change_before_the_build_are_refused() -> None:
    net = nn.Linear(64, 64).eval()
    model = pn.load(net, (torch.randn(3, 64),))
    model.build()
    with torch.no_grad():
        net.weight[3, 5] += 1
    with pytest.raises(
        pn.InvalidArgument, match=r"weight 'weight' of Linear was written to after the model was loaded"
    ):
        model.build(verify=False)
    pn.load(net, (torch.randn(3, 64),)).build()


def test_the_module_may_go_before_the_build() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(128, 128), nn.Tanh()).eval()
    x = torch.randn(3, 128)
    want = net(x).detach().numpy()
    model = _core.Model.load_torch_program("net", exported_parts(torch.export.export(net, (x,)), "net"))
    del net
    gc.collect()
    [torch.full((128, 128), 3.0) for _ in range(50)]  # would lie where the weights were
    program = pn.Program(model.build(["cpu"], {}))
    (got,) = pn.Session(program).run({"input": x}).values()
    assert_agree(got, want)


def test_views_of_one_storage_and_odd_layouts() -> None:
    class Views(nn.Module):
        rows: Tensor
        turned: Tensor
        odd: Tensor
        empty: Tensor
        wide: Tensor

        def __init__(self) -> None:
            super().__init__()
            whole = torch.randn(40, 33)
            self.register_buffer("rows", whole[3:7])
            self.register_buffer("turned", whole.t())
            self.register_buffer("odd", whole.flatten()[1:34])
            self.register_buffer("empty", whole[:0])
            self.register_buffer("wide", torch.randn(1, 33).expand(5, 33))

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            parts = (self.rows, self.turned.t()[:2], self.odd, self.wide)
            return (*(x + part for part in parts), torch.cat([self.empty, x[None]]))

    pn.load(Views().eval(), (torch.randn(33),)).build()


# ------------------------------------------------------------------------------------------------- what is refused


def test_parts_are_checked_as_an_archive_is() -> None:
    parts = exported_parts(torch.export.export(nn.Linear(4, 4), (torch.randn(2, 4),)), "net")
    for wrong in ("../a", "/a", "a//b", "a\\b"):
        with pytest.raises(pn.InvalidArgument, match="not a relative path"):
            _core.Model.load_torch_program("net", [*parts, (wrong, b"")])
    with pytest.raises(pn.InvalidArgument, match="twice"):
        _core.Model.load_torch_program("net", [*parts, parts[0]])
    with pytest.raises(pn.InvalidArgument, match="not a row of bytes"):
        _core.Model.load_torch_program("net", [("models/model.json", np.zeros((2, 2), np.uint8))])
    short = [(name, content[:8] if "weight_" in name else content) for name, content in parts]
    with pytest.raises(pn.CorruptFile, match=r"net: weight .* of a storage of"):
        _core.Model.load_torch_program("net", short)
    missing = [(name, content) for name, content in parts if "weight_0" not in name]
    with pytest.raises(pn.CorruptFile, match="no entry"):
        _core.Model.load_torch_program("net", missing)
    with pytest.raises(pn.CorruptFile, match=r"models/NAME\.json"):
        _core.Model.load_torch_program("net", [])
    text = dict(parts)["models/model.json"]
    with pytest.raises(pn.CorruptFile):
        _core.Model.load_torch_program("net", [("models/model.json", text[: len(text) // 2])])


def test_an_end_on_the_way_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    token = pn.CancelToken()
    token.cancel()
    net = nn.Linear(64, 64).eval()
    weight = weakref.ref(net.weight)
    with pytest.raises(pn.Cancelled):
        pn.load(net, (torch.randn(3, 64),), cancel=token)
    model = pn.load(net, (torch.randn(3, 64),))
    with pytest.raises(pn.Cancelled):
        model.build(cancel=token)
    model.build()
    del net, model
    gc.collect()
    assert weight() is None
    assert list(tmp_path.iterdir()) == []


CHILD = """
import sys
import torch
from torch import nn

def status(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(16384, 512)
        self.layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(32))
        self.head = nn.Linear(512, 16384, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)

def load(width):
    small = nn.Linear(width, width)
    return pn.load(small, (torch.randn(2, width),)).build(verify=False)

import pinnace as pn
load(8)  # what imports and first calls take does not count
torch.manual_seed(0)
net = Net().eval()
weights = sum(p.numel() * 4 for p in net.parameters())
before = status("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
program = pn.load(net, (torch.zeros(1, 4, dtype=torch.int64),)).build(verify=False)
print((status("VmHWM") - before) / weights)
program.save(sys.argv[1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is counted as on Linux")
def test_memory_of_a_conversion(tmp_path: Path) -> None:
    """Beside the module: the file's bytes once, transposed weights of layers once, and what export takes. An archive
    would be two copies more, and a file that is written again one."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "net.pnc")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert float(done.stdout) < 2.3, done.stdout
