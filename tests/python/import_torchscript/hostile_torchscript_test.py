# ruff: noqa: UP006
"""TorchScript that runs without end, grows without bound or is nested too deep: typed errors after bounded work."""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

# TorchScript reads annotations by these names.
from typing import Any, List  # noqa: UP035

import pinnace as pn
import pytest
import torch
from pinnace.torchscript import interpreter, trial
from torch import Tensor, nn

# mypy: disable-error-code="no-untyped-call"
jit: Any = torch.jit
pytestmark = pytest.mark.filterwarnings("ignore")


class Endless(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = 0
        while n >= 0:
            n += 1
        return x + n


class EndlessOnData(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        while bool(x.sum() < 100):
            x = x * 1.0
        return x


class EndlessForOtherData(nn.Module):
    """Ends for the example."""

    def forward(self, x: Tensor) -> Tensor:
        while bool(x[0, 0] != 0.25):
            x = x + 0.0 * x
        return x


class HugeList(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + len([0] * 10_000_000_000)


class GrowingList(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a = [1]
        for _ in range(64):
            a.extend(a)
        return x + len(a)


class AppendingLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a: List[Tensor] = []
        while bool(x.sum() < 100):
            x = x + 1
            a.append(x)
        return torch.stack(a)


class HugeText(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        text = "a"
        for _ in range(64):
            text = text + text
        return x + len(text)


class HugeNumber(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = 3
        for _ in range(64):
            n = n * n
        return x + n


class ManyLoops(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = 0
        for _ in range(1000):
            for _ in range(1000):
                for _ in range(1000):
                    n += 1
        return x + n


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Endless, "without end|more than .* operators"),
        (EndlessOnData, "more than .* operators"),
        (HugeList, "10000000000 elements"),
        (GrowingList, "elements"),
        (AppendingLoop, "a list of 0 .* a list of 1"),
        (HugeText, "elements"),
        (HugeNumber, "64 bits"),
        (ManyLoops, "more than .* operators"),
    ],
)
def test_work_is_bounded(make: Callable[[], nn.Module], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MOST_RUN", 20_000)
    script = jit.script(make().eval())
    with pytest.raises(pn.Error, match=words):
        pn.load(script, (torch.full((2, 3), -0.5),)).build()


def test_inputs_of_the_verification_that_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example ends the loop at once; the inputs that build() tries beside it would not, and are left out."""
    monkeypatch.setattr(interpreter, "MOST_RUN", 20_000)
    script = jit.script(EndlessForOtherData().eval())
    program = pn.load(script, (torch.full((2, 3), 0.25),)).build()
    assert "no: the source refuses it" in program.metadata["verified.second"]


class Plain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


def rewritten(path: Path, change: Callable[[str], str]) -> Path:
    """A file of Plain whose code is changed."""
    jit.save(jit.script(Plain().eval()), str(path))
    with zipfile.ZipFile(path) as before:
        entries = {name: before.read(name) for name in before.namelist()}
    with zipfile.ZipFile(path, "w") as after:
        for name, data in entries.items():
            is_code = name.endswith(".py")
            after.writestr(name, change(data.decode()).encode() if is_code else data)
    return path


def many_functions(code: str) -> str:
    functions = ["def f0(x: Tensor) -> Tensor:\n  return torch.neg(x)\n"]
    for i in range(1, 40):
        call = f"__torch__.hostile_torchscript_test.f{i - 1}"
        functions.append(f"def f{i}(x: Tensor) -> Tensor:\n  return {call}({call}(x, ), )\n")
    called = "__torch__.hostile_torchscript_test.f39(x, )"
    return code.replace("return torch.add(x, 1)", f"return {called}") + "\n" + "\n".join(functions)


def opening(body: str) -> Callable[[str], str]:
    return lambda code: (
        code
        + f"""
  def __setstate__(self: __torch__.hostile_torchscript_test.Plain,
    state: int) -> NoneType:
    {body}
    return None
"""
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda code: code.replace("x, 1)", "(" * 5000 + "x" + ")" * 5000 + ", 1)"), "nested"),
        (lambda code: code.replace("x, 1)", "x, " + "-" * 20000 + "1)"), "nested"),
        (lambda code: code.replace("x, 1)", "x, " + "1 + " * 20000 + "1)"), "nested"),
        (lambda code: code.replace("x, 1)", "x" + ".a" * 20000 + ", 1)"), "nested"),
        (many_functions, "bodies"),
        (opening("while True:\n      pass"), "loop in __setstate__"),
        (opening("_0 = (self).other()"), "in __setstate__"),
    ],
    ids=["brackets", "signs", "sums", "attributes", "functions", "loop when opened", "call when opened"],
)
def test_code_is_looked_at_before_torch_compiles_it(tmp_path: Path, change: Callable[[str], str], words: str) -> None:
    path = rewritten(tmp_path / "m.pt", change)
    with pytest.raises(pn.Unsupported, match=words):
        pn.load(path, (torch.rand(2, 3),))


def doubled(code: str) -> str:
    """Texts that torch adds up while it compiles: 2^40 characters."""
    lines = [f"  _{i + 1} = torch.add(_{i}, _{i})" for i in range(100, 140)]
    return code.replace(
        "    return torch.add(x, 1)",
        '    _100 = "a"\n  ' + "\n  ".join(lines) + "\n    return torch.add(x, torch.len(_140))",
    )


def test_opening_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the process that asks holds more than the one that opens the file may take."""
    path = rewritten(tmp_path / "m.pt", doubled)
    monkeypatch.setattr(trial, "MOST_BYTES", 1 << 26)
    held = torch.ones(1 << 27)
    with pytest.raises(pn.Unsupported, match="64 MiB to open it"):
        trial.opens(str(path), os.open(path, os.O_RDONLY))
    del held


@pytest.mark.parametrize("change", ["short entry", "long tensor", "other form"])
def test_tensors_are_in_their_entries(tmp_path: Path, change: str) -> None:
    """torch reads behind the end of an entry: another module's weights, or the process ends."""
    path = tmp_path / "m.pt"
    jit.save(jit.trace(nn.Linear(16, 16), torch.rand(2, 16)), str(path))
    with zipfile.ZipFile(path) as before:
        entries = {name: before.read(name) for name in before.namelist()}
    with zipfile.ZipFile(path, "w") as after:
        for name, data in entries.items():
            if change == "short entry" and name.endswith("/data/0"):
                data = data[:-4]
            if name.endswith("/data.pkl") and change != "short entry":
                count, more = b"M\x00\x01", b"J\x00\x00\x00\x10"  # 256 elements, 2^28
                assert count in data
                data = data.replace(count, more) if change == "long tensor" else data.replace(b"tQ", b"tq\xf0h\xf0Q")
            after.writestr(name, data)
    words = "another form than" if change == "other form" else "bytes for a tensor's"
    with pytest.raises(pn.CorruptFile, match=words):
        pn.load(path, (torch.rand(2, 16),))


def test_a_file_that_is_rewritten_without_change_loads(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "m.pt", lambda code: code)
    pn.load(path, (torch.rand(2, 3),)).build()
