# ruff: noqa: UP006
"""TorchScript that runs without end, grows without bound or is nested too deep: typed errors after bounded work."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# TorchScript reads annotations by these names.
from typing import Any, List, Tuple  # noqa: UP035

import pinnace as pn
import pytest
import torch
from pinnace.torchscript import budget, interpreter, source_ranges, trial
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
        (AppendingLoop, "adds elements to a list until data end it"),
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


class Counting(nn.Module):
    """Its attribute is why load() runs it on tensors with memory."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0


class HugeTensor(Counting):
    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        return x + torch.ones([1 << 20, 1 << 20]).sum() + self.n


class HugeSquare(Counting):
    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        return x + torch.eye(1 << 20).sum() + self.n


class Doubled(Counting):
    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        y = x
        for _ in range(60):
            y = torch.cat([y, y])
        return x + y.sum() + self.n


class Repeated(Counting):
    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        return x + torch.repeat_interleave(torch.tensor([1 << 40])).sum() + self.n


class Counted(Counting):
    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        return x + torch.bincount(torch.tensor([1 << 40])).sum() + self.n


class Product(Counting):
    """Results of half a gigabyte each, of a third of the work that is allowed."""

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        y = torch.ones([1, 1]).expand(1 << 14, 1 << 13)
        z = torch.ones([1, 1]).expand(1 << 13, 1 << 14)
        for _ in range(1000):
            x = x + torch.mm(y, z)[0, 0]
        return x + self.n


class Kept(Counting):
    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        a: List[Tensor] = []
        for _ in range(1000):
            a.append(torch.ones([1 << 20]))
        return x + len(a) + self.n


class WithoutMemory(nn.Module):
    """Its tensors have sizes alone while it is imported."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.zeros([1 << 20, 1 << 20]).sum()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (HugeTensor, r"1099511627776 elements of 4 bytes.*hostile_torchscript_test\.py:\d+"),
        (HugeSquare, "1099511627776 elements of 4 bytes"),
        (Doubled, "elements of 4 bytes"),
        (Repeated, "1099511627776 elements of 8 bytes"),
        (Counted, "1099511627776 elements of 8 bytes"),
        (Product, "computes more than"),
        (Kept, "holds more than"),
        (WithoutMemory, "1099511627776 elements of 4 bytes"),
    ],
)
def test_tensors_are_bounded(make: Callable[[], nn.Module], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if make is Product:
        monkeypatch.setattr(budget, "MOST_WORK", 1 << 38)
    if make is Kept:
        monkeypatch.setattr(budget, "MOST_HELD", 1 << 28)
    if make is Doubled:
        monkeypatch.setattr(budget, "MOST_BYTES", 1 << 27)
    script = jit.script(make().eval())
    with pytest.raises(pn.Unsupported, match=words):
        pn.load(script, (torch.full((2, 3), -0.5),))


class Centred(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.width, self.text = -1, ""

    def forward(self, x: Tensor) -> Tensor:
        return x + len("abc".center(self.width))


class SplitByNothing(Centred):
    def forward(self, x: Tensor) -> Tensor:
        return x + len("abc".rsplit(self.text))


class ReplacedNothing(Centred):
    def forward(self, x: Tensor) -> Tensor:
        return x + len("abc".replace(self.text, "a"))


def test_texts_on_which_torch_works_without_end() -> None:
    """A negative width, where Python gives the text itself; places of an empty text."""
    model = pn.load(jit.script(Centred().eval()), (torch.zeros(2, 3),))
    session = pn.Session(model.build(verify=False), target="cpu")
    assert float(next(iter(session.run({"x": torch.ones(2, 3).numpy()}).values()))[0, 0]) == 4
    for make in (SplitByNothing, ReplacedNothing):
        with pytest.raises(pn.ConversionError, match=r"empty text.*hostile_torchscript_test\.py"):
            pn.load(jit.script(make().eval()), (torch.zeros(2, 3),))


class Plain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


def rewritten(path: Path, change: Callable[[str], str]) -> Path:
    """A file of Plain whose code is changed."""
    jit.save(jit.script(Plain().eval()), str(path))
    change_code(path, change)
    return path


def change_code(path: Path, change: Callable[[str], str]) -> None:
    with zipfile.ZipFile(path) as before:
        entries = {name: before.read(name) for name in before.namelist()}
    with zipfile.ZipFile(path, "w") as after:
        for name, data in entries.items():
            is_code = name.endswith(".py")
            after.writestr(name, change(data.decode()).encode() if is_code else data)


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


def opener_of(path: Path) -> Any:
    """The process that has just opened the file."""
    with path.open("rb") as file:
        trial.opens(str(path), file.fileno())
    assert trial._opener is not None
    return trial._opener._process


def test_one_process_opens_the_files_and_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = tmp_path / "good.pt"
    jit.save(jit.trace(nn.GELU("tanh"), torch.rand(2, 3)), str(good))
    bad = rewritten(tmp_path / "bad.pt", lambda code: code.replace("x, 1)", "x, undefined)"))
    first = opener_of(good)
    with bad.open("rb") as file, pytest.raises(pn.FileError, match="torch cannot load it: \nundefined value"):
        trial.opens(str(bad), file.fileno())
    assert opener_of(good) is first  # the copy that failed is another process

    # Ended from outside, or after a minute without a file: another one is started, and nothing is said.
    first.kill()
    first.wait()
    second = opener_of(good)
    assert second is not first
    trial._end()
    assert second.poll() is not None
    with monkeypatch.context() as patch:
        patch.setattr(trial, "_IDLE_SECONDS", 0)
        idle = trial._Opener()
    assert idle._process.wait(60) == 0
    monkeypatch.setattr(trial, "_opener", idle)
    assert opener_of(good) is not idle._process


def test_an_opener_that_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.pt"
    jit.save(jit.trace(nn.GELU("tanh"), torch.rand(2, 3)), str(path))
    trial._end()
    broken = tmp_path / "broken.py"
    broken.write_text("import none_of_that_name")
    for place, name, value, words in (
        (sys, "executable", str(tmp_path / "none"), "no process to open it in"),
        (trial, "_PROGRAM", broken, "its process ends with 1"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, value)
            with pytest.raises(pn.FileError, match=words):
                pn.load(path, (torch.rand(2, 3),))
    pn.load(path, (torch.rand(2, 3),))


def test_files_are_opened_by_threads_and_after_a_fork(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    jit.save(jit.trace(nn.GELU("tanh"), torch.rand(2, 3)), str(path))
    first = opener_of(path)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: opener_of(path) is first, range(8))) == [True] * 8
    program = f"""
import os, sys
from pinnace.torchscript import trial
file = os.open({str(path)!r}, os.O_RDONLY)
trial.opens("m.pt", file)
first = trial._opener._process.pid
child = os.fork()
trial.opens("m.pt", file)
assert (trial._opener._process.pid == first) == (child != 0)
if child:
    assert os.waitpid(child, 0)[1] == 0
    trial.opens("m.pt", file)
print(trial._opener._process.pid)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 2
    for pid in done.stdout.split():  # ended with those who started them
        assert not Path(f"/proc/{pid}").exists()


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


def source_lines(text: bytes = b"X\x02\x00\x00\x00ab", rows: bytes = b"]K\x01a", end: bytes = b"K\x02") -> bytes:
    """An entry as torch writes it, of one text and one line: by default of characters 0 to 2 of a text of 2."""
    table = b"(" + b"X\x00\x00\x00\x00" + text + b"t"
    source = b"(" + b"ctorch.jit._pickle\nbuild_intlist\n" + b"(" + rows + b"tR" + b"K\x01K\x07t"
    line = b"(K\x00(" + source + b"K\x00" + end + b"tK\x03t"
    return b"\x80\x02(X\x18\x00\x00\x00FORMAT_WITH_STRING_TABLE" + table + b"(" + line + b"tt."


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (source_lines(), None),
        (source_lines(rows=b"]K\x00a", end=b"K\x01"), None),  # as torch writes of what has no text
        (b"\x80\x02(t.", None),
        (source_lines(rows=b"]K\x02a"), "a text that is not in its table"),  # ends torch's process
        (source_lines(rows=b"]J\xff\xff\xff\xffa"), "a text that is not in its table"),
        (source_lines(rows=b"X\x01\x00\x00\x00a"), "a text that is not in its table"),
        (source_lines(end=b"K\x03"), "characters 0 to 3 of a text of 2"),  # read behind the text
        (source_lines(end=b"J\xfe\xff\xff\xff"), "characters 0 to -2 of a text of 2"),
        (source_lines(end=b"X\x01\x00\x00\x000"), "characters 0 to 0 of a text of 2"),
        (source_lines(text=b"X\xff\xff\xff\xffab"), "expected 4294967295 bytes"),  # takes 4 GiB and 36 s
        (source_lines(text=b"cos\nsystem\n"), "opcode GLOBAL"),
        (source_lines().replace(b"build_intlist", b"build_floatli"), "opcode GLOBAL"),
        (source_lines()[:-9], "is no list of lines"),
        (b"\x80\x02K\x01.", "is no list of lines"),
        (b"", "is no list of lines"),
    ],
)
def test_source_lines_are_in_their_texts(tmp_path: Path, entry: bytes, words: str | None) -> None:
    path = tmp_path / "m.pt"
    jit.save(jit.trace(nn.Linear(4, 4), torch.rand(2, 4)), str(path))
    with zipfile.ZipFile(path) as before:
        entries = {name: before.read(name) for name in before.namelist()}
    assert any(name.endswith(".debug_pkl") for name in entries)
    with zipfile.ZipFile(path, "w") as after:
        for name, data in entries.items():
            after.writestr(name, entry if name.endswith(".debug_pkl") else data)
    if words is None:
        assert pn.load(path, (torch.rand(2, 4),)).build().metadata.verified
        return
    with pytest.raises(pn.CorruptFile, match=words):
        pn.load(path, (torch.rand(2, 4),))


def test_source_lines_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.pt"
    jit.save(jit.trace(nn.Linear(4, 4), torch.rand(2, 4)), str(path))
    assert pn.load(path, (torch.rand(2, 4),)).nodes
    monkeypatch.setattr(source_ranges, "MOST_OPCODES", 50)
    with pytest.raises(pn.CorruptFile, match="debug_pkl' is no list of lines: more than 50 opcodes"):
        pn.load(path, (torch.rand(2, 4),))


def test_a_module_without_forward_is_refused_by_name(tmp_path: Path) -> None:
    class Other(nn.Module):
        @jit.export  # type: ignore[untyped-decorator]
        def infer(self, x: Tensor) -> Tensor:
            return x + 1

    path = tmp_path / "m.pt"
    jit.save(jit.script(Other()), str(path))
    with pytest.raises(pn.ConversionError, match=r"no method 'forward', .*; its methods: 'infer'"):
        pn.load(path, (torch.rand(2, 4),))


class Stated(nn.Module):
    """Its __setstate__ runs while torch opens the file."""

    def __init__(self) -> None:
        super().__init__()
        self.total = torch.zeros(1)

    @jit.export  # type: ignore[untyped-decorator]
    def __getstate__(self) -> Tuple[Tensor, bool]:
        return self.total, self.training

    @jit.export  # type: ignore[untyped-decorator]
    def __setstate__(self, state: Tuple[Tensor, bool]) -> None:
        self.total = state[0] + torch.ones([77]).sum()
        self.training = state[1]

    def forward(self, x: Tensor) -> Tensor:
        return x + self.total


def test_what_runs_when_a_file_is_opened_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MOST_BYTES", 1 << 28)
    path = tmp_path / "m.pt"
    jit.save(jit.script(Stated().eval()), str(path))
    change_code(path, lambda code: code.replace("[77]", "[2000000000]"))
    with zipfile.ZipFile(path) as archive:
        (code,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith(".py"))
    assert "2000000000" in code
    assert "'" not in code
    assert '"' not in code
    with pytest.raises(pn.Unsupported, match="256 MiB to open it"):
        pn.load(path, (torch.rand(2, 3),))


def test_a_file_that_is_rewritten_without_change_loads(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "m.pt", lambda code: code)
    pn.load(path, (torch.rand(2, 3),)).build()
