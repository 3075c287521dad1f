"""The Python package as users type it: load, build, save, run, compare, custom operators, errors, the command line."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from pinnace import cli
from torch import nn


class Small(nn.Module):
    """A convolution, batch norm, activation, pooling and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> Any:
        y = nn.functional.hardswish(self.norm(self.conv(x)))
        return self.head(y.mean((2, 3)))


@pytest.fixture(scope="module")
def module() -> nn.Module:
    torch.manual_seed(1)
    net = Small()
    net(torch.randn(16, 3, 8, 8))  # batch statistics that are not 0 and 1
    return net.eval()


@pytest.fixture(scope="module")
def x() -> torch.Tensor:
    return torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(2))


@pytest.fixture(scope="module")
def program(module: nn.Module, x: torch.Tensor) -> pn.Program:
    dims = {"x": {0: pn.Dim("batch", 1, 8)}}
    return pn.load(module, example_inputs=(x,), dynamic_shapes=dims).build()


def expected(module: nn.Module, x: torch.Tensor) -> np.ndarray[Any, Any]:
    with torch.no_grad():
        return module(x).numpy()  # type: ignore[no-any-return]


def test_build_verifies_and_records(program: pn.Program) -> None:
    assert program.metadata["verified.cpu"].startswith("yes")
    assert program.inputs["x"].shape[0] == pn.Dim("batch", 1, 8)


def test_save_open_run(program: pn.Program, module: nn.Module, x: torch.Tensor, tmp_path: Path) -> None:
    path = tmp_path / "small.pnc"
    program.save(path)
    assert pn.Program.open(path).to_bytes() == program.to_bytes() == path.read_bytes()
    session = pn.Session(path, threads=2)
    for batch in (1, 2):
        (y,) = session.run({"x": x[:batch]}).values()
        assert_agree(y, expected(module, x[:batch]))
    assert {p.backend for p in session.placement} <= {"cpu", "none"}
    assert session.plan.peak_bytes > 0


def test_fusions_leave_no_batch_norm(program: pn.Program) -> None:
    assert "batch_normalization" not in {n.op for n in program.nodes}


def test_compare_and_a_wrong_weight(module: nn.Module, x: torch.Tensor, tmp_path: Path) -> None:
    program = pn.load(module, example_inputs=(x,)).build()
    good = pn.compare(program, module, [{"x": x}])
    assert good.ok, str(good)
    assert any(not r.output for r in good.rows)
    page = good.to_html(tmp_path / "page.html")
    assert "Equal within bounds" in page
    assert json.loads(good.to_json())["ok"]
    other = Small()
    other.load_state_dict(module.state_dict())
    with torch.no_grad():
        other.head.weight.mul_(1.01)
    bad = pn.compare(program, other.eval(), [{"x": x}])
    assert not bad.ok
    assert all(r.ok for r in bad.rows if not r.output and r.op == "conv")


def test_verification_names_the_first_difference(module: nn.Module, x: torch.Tensor) -> None:
    from pinnace.sources.torch_program import TorchSource
    from pinnace.torch.export import export_module

    model = pn.load(module, example_inputs=(x,))
    wrong = Small()
    wrong.load_state_dict(module.state_dict())
    with torch.no_grad():
        wrong.conv.weight.mul_(1.01)
    model._source = TorchSource(export_module(wrong.eval(), (x,), {}, None))
    with pytest.raises(pn.VerificationError, match="first difference at"):
        model.build()
    unverified = model.build(verify=False)
    assert unverified.metadata["verified"].startswith("no")


def test_dimensions_keep_their_names(module: nn.Module, x: torch.Tensor) -> None:
    class Two(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> Any:
            return a @ b

    rows, inner = pn.Dim("rows", 1, 9), pn.Dim("inner", 2, 7)
    nests: list[Any] = [
        {"a": {0: rows, 1: inner}, "b": {0: inner}},
        ((rows, inner), (inner, None)),
        [{0: rows, 1: inner}, {0: inner}],
    ]
    for shapes in nests:
        a, b = pn.load(Two(), (torch.ones(3, 4), torch.ones(4, 5)), shapes).inputs.values()
        assert (a.shape, b.shape) == ((rows, inner), (inner, 5))
    theirs = torch.export.Dim("images", min=1, max=8)
    assert str(pn.load(module, (x,), {"x": {0: theirs}}).inputs["x"]) == "x: float32[images,3,8,8]"


def test_an_example_of_size_one_leaves_a_dynamic_dimension_open(module: nn.Module, x: torch.Tensor) -> None:
    model = pn.load(module, (x[:1],), {"x": {0: pn.Dim("batch", 1, 8)}})
    session = pn.Session(model.build())
    for size in (1, 5):
        batch = torch.randn(size, *x.shape[1:])
        close = np.abs(next(iter(session.run({"x": batch}).values())) - expected(module, batch)).max()
        assert close < 1e-4
    assert "batch" in repr(model)
    assert repr(session).startswith("<pinnace.Session: nodes ")


def test_bad_inputs_are_named(program: pn.Program) -> None:
    session = pn.Session(program)
    good = np.zeros((2, 3, 8, 8), np.float32)
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "missing 'x'"),
        ({"x": good, "y": good}, "unknown 'y'"),
        ({"x": good.astype(np.float64)}, "must be float32"),
        ({"x": good[:, :2]}, "dimension 1 is 2, must be 3"),
        ({"x": np.zeros((9, 3, 8, 8), np.float32)}, "dimension 0 is 9"),
        ({"x": good[0]}, "rank 3"),
        ({"x": np.zeros((2, 3, 8, 8), object)}, "object"),
    ]
    for feed, part in cases:
        with pytest.raises(pn.InvalidArgument, match=part):
            session.run(feed)


def test_unusual_arrays_give_the_same_result(program: pn.Program) -> None:
    session = pn.Session(program)
    base = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    (want,) = session.run({"x": base}).values()
    read_only = base.copy()
    read_only.flags.writeable = False
    for array in (
        np.asfortranarray(base),
        base.astype(">f4"),
        np.repeat(base, 2, 3)[..., ::2],
        read_only,
        base.tolist(),
    ):
        value = np.asarray(array, np.float32) if isinstance(array, list) else array
        (got,) = session.run({"x": value}).values()
        np.testing.assert_array_equal(got, want)


def test_async_run_and_second_caller(program: pn.Program) -> None:
    session = pn.Session(program)
    array = np.ones((2, 3, 8, 8), np.float32)
    future = session.run_async({"x": array})
    (y,) = future.result().values()
    (z,) = session.run({"x": array}).values()
    np.testing.assert_array_equal(y, z)


def test_threads_and_fork(program: pn.Program) -> None:
    array = np.ones((4, 3, 8, 8), np.float32)
    (want,) = pn.Session(program, threads=2).run({"x": array}).values()
    results: list[np.ndarray[Any, Any]] = []

    def work() -> None:
        session = pn.Session(program, threads=2)
        for _ in range(20):
            (y,) = session.run({"x": array}).values()
        results.append(y)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 4
    for y in results:
        np.testing.assert_array_equal(y, want)
    child = os.fork()
    if child == 0:
        (y,) = pn.Session(program, threads=2).run({"x": array}).values()
        os._exit(0 if np.array_equal(y, want) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_state_of_a_buffer() -> None:
    class Counter(nn.Module):
        total: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            return self.total * 2

    model = pn.load(Counter(), example_inputs=(torch.ones(2),))
    session = pn.Session(model.build())
    (name,) = session.state
    for i in range(1, 4):
        (y,) = session.run({"x": np.ones(2, np.float32)}).values()
        np.testing.assert_array_equal(y, np.full(2, 2.0 * i))
    np.testing.assert_array_equal(session.state[name], np.full(2, 3.0))
    session.state[name] = np.zeros(2, np.float32)
    session.reset_state()
    with pytest.raises(pn.InvalidArgument, match="no state"):
        session.state["nothing"]


def test_every_unknown_operator_is_reported_at_once() -> None:
    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.special.bessel_j0(x) + torch.special.bessel_j1(x)

    with pytest.raises(pn.ConversionError) as caught:
        pn.load(Odd(), example_inputs=(torch.ones(3),))
    assert len(caught.value.nodes) == 2
    assert all("test_api.py" in n.source for n in caught.value.nodes)


def test_damaged_and_missing_files(program: pn.Program, tmp_path: Path) -> None:
    path = tmp_path / "p.pnc"
    program.save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(pn.CorruptFile) as caught:
        pn.Session(path)
    assert caught.value.rule
    with pytest.raises(pn.FileError, match="nowhere"):
        pn.load(tmp_path / "nowhere.onnx")


def test_passes_can_be_switched_off_and_checked(module: nn.Module, x: torch.Tensor) -> None:
    plain = pn.load(module, example_inputs=(x,), disabled_passes=["all"])
    assert "batch_normalization" in {n.op for n in plain.nodes}
    one = pn.load(module, example_inputs=(x,), disabled_passes=["fold_batch_norm"])
    assert "batch_normalization" in {n.op for n in one.nodes}
    pn.load(module, example_inputs=(x,), check_passes=True)
    with pytest.raises(pn.InvalidArgument, match="no pass 'nothing'"):
        pn.load(module, example_inputs=(x,), disabled_passes=["nothing"])


def test_passes_are_checked_on_the_examples(tmp_path: Path) -> None:
    """Seeded integers are 0 and 1; this model takes ids from 100 on."""

    class Ids(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(64, 4)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            rows: torch.Tensor = self.embedding(ids - 100)
            return (rows * torch.ones(3, 1)).relu()

    ids = torch.tensor([145, 100, 161])
    with pytest.raises(pn.VerificationError, match="refuses seeded inputs"):
        pn.load(torch.export.export(Ids(), (ids,)), check_passes=True)
    assert pn.load(Ids(), (ids,), check_passes=True).passes
    path = tmp_path / "ids.pt2"
    torch.export.save(torch.export.export(Ids(), (ids,)), path)
    assert pn.load(path, {"ids": ids}, check_passes=True).passes
    with pytest.raises(pn.InvalidArgument, match=r"example 'ids' is float32\[3\], the input takes int64\[3\]"):
        pn.load(path, {"ids": ids.float()}, check_passes=True)
    with pytest.raises(pn.InvalidArgument, match=r"example 'id': there is no such input"):
        pn.load(path, {"id": ids}, check_passes=True)


def test_command_line(
    program: pn.Program, module: nn.Module, x: torch.Tensor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, output, array = tmp_path / "m.pt2", tmp_path / "m.pnc", tmp_path / "x.npy"
    torch.export.save(torch.export.export(module, (x,)), str(archive))
    np.save(array, x.numpy())
    assert cli.main(["convert", str(archive), "-o", str(output), "--input", f"x={array}"]) == 0
    for command in (
        ["inspect", str(output)],
        ["inspect", str(output), "--json"],
        ["check", str(archive)],
        ["run", str(output), "--input", f"x={array}"],
        ["compare", str(output), "--reference", str(archive), "--input", f"x={array}"],
        ["bench", str(output), "--runs", "3", "--json"],
        ["devices"],
        ["diff", str(output), str(output)],
    ):
        assert cli.main(command) == 0, command
        assert capsys.readouterr().out
    program.save(tmp_path / "other.pnc")
    assert cli.main(["diff", str(output), str(tmp_path / "other.pnc")]) == 1
    assert cli.main(["inspect", str(tmp_path / "absent.pnc")]) == 2
    output.write_bytes(output.read_bytes()[:-9])
    assert cli.main(["inspect", str(output)]) == 1
    with pytest.raises(SystemExit) as caught:
        cli.main(["nonsense"])
    assert caught.value.code == 2


def test_custom_operator() -> None:
    from pinnace import _core
    from pinnace.types import custom_ops

    pn.custom_op(
        "testing.scale",
        lambda inputs, attributes: [inputs[0]],
        lambda arrays, attributes: [arrays[0] * np.float32(attributes["factor"])],
    )
    text = """graph "g" {
      input %x : f32[3]
      %y : f32[3] = testing.scale(%x) {factor=2.5}
      output "y" %y
    }"""
    core = _core.Model.parse(text, [], False, custom_ops())
    session = pn.Session(pn.Program(core.build(["cpu"])))
    (y,) = session.run({"x": np.ones(3, np.float32)}).values()
    np.testing.assert_array_equal(y, np.full(3, 2.5))
    with pytest.raises(pn.InvalidArgument, match="registered already"):
        pn.custom_op("testing.scale", lambda i, a: [], lambda i, a: [])


def test_what_could_not_be_made_has_a_text(program: pn.Program, module: nn.Module, x: torch.Tensor) -> None:
    """Debuggers and test runners ask for it, of the frames of an error."""
    net = nn.Sequential(nn.AdaptiveAvgPool1d(1))
    makers: list[tuple[str, Any]] = [
        ("<pinnace.Session, not made>", lambda: pn.Session(program, target="gpu")),
        ("<pinnace.Program, not made>", lambda: pn.Program("net.pnc")),  # type: ignore[arg-type]
        ("<pinnace.StreamModel, not made>", lambda: pn.load(net, torch.ones(1, 2, 8), stream={"input": 2})),
    ]
    for text, make in makers:
        with pytest.raises(pn.Error) as refusal:
            make()
        frames = [entry.frame.f_locals for entry in refusal.traceback]
        assert text in [repr(values["self"]) for values in frames if "self" in values]
