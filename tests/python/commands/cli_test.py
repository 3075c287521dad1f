"""The commands as a shell sees them: data on stdout, messages on stderr, status 0, 1 or 2, JSON that parses.

Each subcommand of `pinnace` is called as a function; `python -m pinnace` and pinnace-run as processes.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from command_line import Command
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
PINNACE_RUN = ROOT / "build/release/pinnace-run"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.conv = nn.Conv2d(3, 8, 3)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


class Two(nn.Module):
    """An input of integers that index, and two of which the first fixes the other's size."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, ids: torch.Tensor, gain: torch.Tensor) -> Any:
        return self.table(ids) * gain[:, None]


@dataclass
class Files:
    folder: Path
    net: Path
    onnx: Path
    two: Path
    program: Path
    x: Path

    def __truediv__(self, name: str) -> str:
        return str(self.folder / name)


def save_without_example(program: Any, path: Path) -> None:
    """As torch.export.save, so that inputs are made up."""
    whole = io.BytesIO()
    torch.export.save(program, whole)
    with zipfile.ZipFile(whole) as saved, zipfile.ZipFile(path, "w") as left:
        for name in saved.namelist():
            if "/data/sample_inputs/" not in name:
                left.writestr(name, saved.read(name))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    import onnx
    from onnx import TensorProto, helper

    folder = tmp_path_factory.mktemp("cli")
    made = Files(folder, *(folder / n for n in ("net.pt2", "net.onnx", "two.pt2", "net.pnc", "x.npy")))
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    save_without_example(torch.export.export(Net().eval(), (x,)), made.net)
    batch = torch.export.Dim("batch", min=1, max=8)
    exported = torch.export.export(
        Two().eval(),
        (torch.tensor([1, 2, 3]), torch.ones(3)),
        dynamic_shapes={"ids": {0: batch}, "gain": {0: batch}},
    )
    save_without_example(exported, made.two)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["file"]), helper.make_node("Log", ["x"], ["b/c"])],
        "exp",
        [value("x", TensorProto.FLOAT, ["n", 3])],
        [value("file", TensorProto.FLOAT, ["n", 3]), value("b/c", TensorProto.FLOAT, ["n", 3])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), made.onnx)
    np.save(made.x, x.numpy())
    np.save(folder / "ids.npy", np.array([4, 5, 6, 7]))
    np.savez(folder / "many.npz", a=np.ones(2))
    (folder / "empty.npy").write_bytes(b"")
    pn.load(made.net).build().save(made.program)
    return made


@pytest.fixture
def pinnace(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def test_convert(pinnace: Any, files: Files) -> None:
    answer = pinnace("convert", files.net, "-o", files / "a.pnc")
    assert answer.status == 0
    assert re.fullmatch(r"made up, .*:\n  x: float32\[2,3,8,8\], normal values\n", answer.err)
    assert "verified.cpu: yes" in answer.out
    facts = pinnace("convert", files.net, "-o", files / "b.pnc", "--input", f"x={files.x}", "--json").json
    assert facts["nodes"] == 3
    assert facts["bytes"] == Path(files / "b.pnc").stat().st_size
    assert facts["verified.cpu"].startswith("yes")
    facts = pinnace("convert", files.net, "-o", files / "c.pnc", "--no-verify", "--json").json
    assert facts["verified"].startswith("no")
    facts = pinnace("convert", files.net, "-o", files / "c.pnc", "--disable-pass", "all", "--json").json
    assert facts["nodes"] > 3
    assert pinnace("convert", files.onnx, "-o", files / "exp.pnc", "--dim", "n=1..4").status == 0
    dim = pn.Program.open(files / "exp.pnc").inputs["x"].shape[0]
    assert isinstance(dim, pn.Dim)
    assert (dim.min, dim.max) == (1, 4)


def test_given_inputs_are_completed(pinnace: Any, files: Files) -> None:
    answer = pinnace("convert", files.two, "-o", files / "two.pnc")
    assert answer.status == 0
    assert "  ids: int64[3], from 0 to 9" in answer.err  # the sizes are those of the exported example
    # gain is seeded in the size that ids has.
    assert pinnace("convert", files.two, "-o", files / "two.pnc", "--input", f"ids={files / 'ids.npy'}").status == 0
    answer = pinnace("run", files / "two.pnc", "--input", f"ids={files / 'ids.npy'}")
    assert "float32[4, 4]" in answer.out


def test_no_output_takes_the_place_of_what_is_read(pinnace: Any, files: Files, tmp_path: Path) -> None:
    """By whatever name, before anything is read or computed."""
    net, program, x = (tmp_path / name for name in ("net.pt2", "net.pnc", "x.npy"))
    for copy, source in ((net, files.net), (program, files.program), (x, files.folder / "x.npy")):
        copy.write_bytes(Path(source).read_bytes())
    link = tmp_path / "link.pnc"
    link.symlink_to(program)
    before = [path.read_bytes() for path in (net, program, x)]
    given = ["--input", f"x={x}"]
    for command in (
        ["run", program, "--output", program],
        ["run", program, "--output", link],
        ["run", program, *given, "--output", x],
        ["compare", program, "--reference", net, "--html", program],
        ["compare", program, "--reference", net, "--html", net],
        ["compare", program, "--reference", net, *given, "--html", x],
        ["convert", net, "-o", net],
        ["convert", net, "-o", x, *given],
        ["report-device", "--make-kit", program, "--model", program],
    ):
        answer = pinnace(*command)
        assert answer.status == 2, command
        assert "itself, which would be lost" in answer.err
        assert [path.read_bytes() for path in (net, program, x)] == before


def test_a_folder_that_may_not_be_written_to(
    pinnace: Any, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path and access(path, mode))
    answer = pinnace("convert", files.folder / "nowhere.pt2", "-o", tmp_path / "net.pnc")
    assert answer.status == 2
    assert "its folder may not be written to" in answer.err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["convert", "NET"], "-o"),
        (["convert", "F/nowhere.pt2", "-o", "F/z.pnc"], "nowhere.pt2"),
        (["convert", "NET", "-o", "F/nowhere/z.pnc"], "folder does not exist"),
        (["convert", "NET", "-o", "F"], "it is a folder"),
        (["convert", "NET", "-o", "F/z.pnc", "--input", "y=F/x.npy"], "unknown ['y']"),
        (["convert", "NET", "-o", "F/z.pnc", "--input", "x=F/ids.npy"], "must be float32"),
        (["convert", "NET", "-o", "F/z.pnc", "--input", "x"], "cannot open 'x'"),
        (["convert", "NET", "-o", "F/z.pnc", "--input", "x=F/many.npz"], "archive of arrays"),
        (["convert", "NET", "-o", "F/z.pnc", "--input", "x=F/empty.npy"], "empty.npy"),
        (["convert", "NET", "-o", "F/z.pnc", "--disable-pass", "nothing"], "no pass 'nothing'"),
        (["convert", "NET", "-o", "F/z.pnc", "--dim", "n=4..1"], "4..1"),
        (["convert", "NET", "-o", "F/z.pnc", "--dim", "n=few"], "MIN..MAX"),
        (["convert", "NET", "-o", "F/z.pnc", "--target", "tpu"], "'tpu' is not known"),
        (["inspect", "F/nowhere.pnc"], "nowhere.pnc"),
        (["inspect", "F"], "directory"),
        (["inspect"], "program"),
        (["inspect", "PNC", "--html", "F/a.html"], "usage: pinnace inspect"),
        (["check", "NET", "--target", "tpu"], "'tpu' is not known"),
        (["run", "PNC", "--input", "x=F/ids.npy"], "must be float32"),
        (["run", "PNC", "--input", "z=F/x.npy"], "unknown ['z']"),
        (["run", "PNC", "--threads", "-1"], "whole number"),
        (["run", "PNC", "--output", "F/nowhere/out.npz"], "folder does not exist"),
        (["compare", "PNC"], "--reference"),
        (["compare", "PNC", "--reference", "F/nowhere.onnx"], "nowhere.onnx"),
        (["compare", "PNC", "--reference", "F/x.npy"], "cannot load it"),
        (["compare", "PNC", "--reference", "TWO"], "cannot be run on these inputs"),
        (["compare", "PNC", "--reference", "ONNX"], "cannot be run on these inputs"),
        (["compare", "PNC", "--reference", "NET", "--html", "F/nowhere/a.html"], "cannot write"),
        (["bench", "PNC", "--threads", "one"], "whole number"),
        (["bench", "PNC", "--runs", "0"], "whole number"),
        (["diff", "PNC"], "b"),
        (["diff", "PNC", "F/nowhere.pnc"], "nowhere.pnc"),
        (["nonsense"], "invalid choice"),
        ([], "command"),
    ],
)
def test_wrong_use(pinnace: Any, files: Files, arguments: list[str], part: str) -> None:
    names = {"NET": str(files.net), "PNC": str(files.program), "TWO": str(files.two), "ONNX": str(files.onnx)}
    names["F"] = str(files.folder)
    filled = [names.get(a) or a.replace("F/", f"{files.folder}/") for a in arguments]
    answer = pinnace(*filled)
    assert answer.status == 2, answer
    assert answer.out == ""
    assert part in answer.err
    assert "Traceback" not in answer.err
    assert not Path(files / "z.pnc").exists()


def test_negative_answers(pinnace: Any, files: Files) -> None:
    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.special.bessel_j0(x) + torch.special.bessel_j1(x)

    torch.export.save(torch.export.export(Odd(), (torch.ones(3),)), files / "odd.pt2")
    for command in (["convert", files / "odd.pt2", "-o", files / "odd.pnc"], ["check", files / "odd.pt2"]):
        answer = pinnace(*command)
        assert (answer.status, answer.out) == (1, "")
        assert "bessel_j0" in answer.err
        assert "bessel_j1" in answer.err
    assert not Path(files / "odd.pnc").exists()
    answer = pinnace("run", files.program, "--target", "metal")
    assert (answer.status, answer.out) == (1, "")
    assert "'metal' is not in this build" in answer.err
    damaged = Path(files / "damaged.pnc")
    damaged.write_bytes(files.program.read_bytes()[:-9])
    for words in (["inspect", damaged], ["run", damaged], ["bench", damaged], ["diff", damaged, files.program]):
        answer = pinnace(*words)
        assert (answer.status, answer.out) == (1, "")
        assert "damaged.pnc" in answer.err


def test_inspect(pinnace: Any, files: Files) -> None:
    answer = pinnace("inspect", files.program)
    assert (answer.status, answer.err) == (0, "")
    assert "input   x: float32[2,3,8,8]" in answer.out
    assert "conv -> float32[2,8,6,6]" in answer.out
    facts = pinnace("inspect", files.program, "--json").json
    assert facts["inputs"] == [{"name": "x", "dtype": "float32", "shape": [2, 3, 8, 8], "quantization": None}]
    assert [n["op"] for n in facts["nodes"]] == ["conv", "reduce_mean", "gemm"]
    assert facts["metadata"]["verified.cpu"].startswith("yes")
    assert pinnace("inspect", files.program, "--text").out.startswith('graph "')
    pinnace("convert", files.onnx, "-o", files / "open.pnc")
    (x,) = pinnace("inspect", files / "open.pnc", "--json").json["inputs"]
    assert x["shape"][0] == {"name": "n", "min": 0, "max": None, "multiple_of": 1}
    assert "\nsize    n: any size\n" in pinnace("inspect", files / "open.pnc").out


def test_check(pinnace: Any, files: Files) -> None:
    answer = pinnace("check", files.net, "--target", "cpu", "--target", "cpu:generic")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.splitlines() == ["cpu: 3 of 3 nodes", "cpu:generic: 3 of 3 nodes"]
    rows = pinnace("check", files.program, "--json").json
    assert [(r["op"], r["supported"]) for r in rows] == [("conv", True), ("reduce_mean", True), ("gemm", True)]


def test_run(pinnace: Any, files: Files) -> None:
    answer = pinnace("run", files.program, "--input", f"x={files.x}", "--threads", "2", "--target", "cpu")
    assert (answer.status, answer.err) == (0, "")
    assert len(answer.out.splitlines()) == 1
    x = np.load(files.x)
    with torch.no_grad():
        want = Net().eval()(torch.from_numpy(x)).numpy()
    (row,) = pinnace("run", files.program, "--input", f"x={files.x}", "--json").json.values()
    assert row["shape"] == [2, 5]
    np.testing.assert_allclose(row["values"], want, atol=1e-5)
    answer = pinnace("run", files.program, "--input", f"x={files.x}", "--output", files / "out.npz")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith(f"{files / 'out.npz'}: ")
    assert answer.out.endswith(" float32[2, 5]\n")
    (values,) = np.load(files / "out.npz").values()
    np.testing.assert_allclose(values, want, atol=1e-5)


def test_outputs_of_any_name_and_value(pinnace: Any, files: Files) -> None:
    pinnace("convert", files.onnx, "-o", files / "log.pnc")
    np.save(files / "edge.npy", np.array([[0, -1, 1]], np.float32))
    given = ["--input", f"x={files / 'edge.npy'}"]
    assert pinnace("run", files / "log.pnc", *given, "--output", files / "log.npz").status == 0
    assert set(np.load(files / "log.npz")) == {"file", "b%2Fc"}
    rows = pinnace("run", files / "log.pnc", *given, "--json").json
    assert [float(v) for v in rows["b/c"]["values"][0]] == pytest.approx([-np.inf, np.nan, 0], nan_ok=True)


def test_compare(pinnace: Any, files: Files) -> None:
    answer = pinnace("compare", files.program, "--reference", files.net, "--html", files / "page.html")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.splitlines()[-1] == "equal within bounds"
    assert "Equal within bounds" in Path(files / "page.html").read_text()
    with torch.no_grad():
        other = Net().eval()
        other.head.weight.mul_(1.01)
    torch.export.save(torch.export.export(other, (torch.ones(2, 3, 8, 8),)), files / "other.pt2")
    answer = pinnace("compare", files.program, "--reference", files / "other.pt2", "--json")
    assert (answer.status, answer.err) == (1, "")
    report = answer.json
    assert not report["ok"]
    assert {r["op"]: r["ok"] for r in report["rows"]} == {
        "conv": True, "reduce_mean": True, "gemm": False, "output": False
    }  # fmt: skip
    assert pinnace("compare", files.program, "--reference", files.program).status == 0


def test_bench(pinnace: Any, files: Files) -> None:
    answer = pinnace("bench", files.program, "--runs", "3", "--threads", "1,2", "--target", "cpu", "--json")
    assert (answer.status, answer.err) == (0, "")
    rows = answer.json
    assert [(r["target"], r["threads"], r["runs"]) for r in rows] == [("cpu", 1, 3), ("cpu", 2, 3)]
    assert all(0 < r["p10_ms"] <= r["median_ms"] <= r["p90_ms"] and r["peak_bytes"] > 0 for r in rows)
    assert all(0 < r["cpu_per_wall"] < 64 and (r["others"] is None or r["others"] >= 0) for r in rows)
    line = pinnace("bench", files.program, "--runs", "2").out
    assert "median" in line
    assert "first run with its preparation" in line
    assert "bytes beside weights" in line


def test_bench_says_what_reference_code_takes(pinnace: Any, tmp_path: Path) -> None:
    class Product(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x @ x  # in float64, which has no kernel

    program = pn.load(Product(), torch.ones(30, 30, dtype=torch.float64)).build()
    program.save(tmp_path / "product.pnc")
    answer = pinnace("bench", tmp_path / "product.pnc", "--runs", "2", "--json")
    assert json.loads(answer.out)[0]["reference_code"] == {"mat_mul": 1.0}
    line = pinnace("bench", tmp_path / "product.pnc", "--runs", "2").out
    assert "100% by reference code, as no kernel takes these nodes: mat_mul 100%" in line
    session = pn.Session(program)
    profile = session.profile({name: np.ones((30, 30)) for name in session.inputs})
    assert profile.reference_code == {"mat_mul": 1.0}
    assert [row.notice for row in session.placement if row.kernel == "reference"] == [
        "runs by reference code: no kernel takes its types and sizes"
    ]


def test_devices(pinnace: Any) -> None:
    assert "cpu: " in pinnace("devices").out
    assert any(row["target"] == "cpu" and row["available"] for row in pinnace("devices", "--json").json)


def test_diff(pinnace: Any, files: Files) -> None:
    answer = pinnace("diff", files.program, files.program)
    assert (answer.status, answer.out, answer.err) == (0, "no difference\n", "")
    assert pinnace("diff", files.program, files.program, "--json").json == []
    pinnace("convert", files.net, "-o", files / "plain.pnc", "--disable-pass", "all")
    answer = pinnace("diff", files.program, files / "plain.pnc", "--json")
    assert (answer.status, answer.err) == (1, "")
    assert all(isinstance(line, str) for line in answer.json)
    assert len(answer.json) == len(pinnace("diff", files.program, files / "plain.pnc").out.splitlines()) > 0


def test_help_and_version(pinnace: Any) -> None:
    for command in ("", "convert", "inspect", "check", "run", "compare", "bench", "devices", "report-device", "diff"):
        answer = pinnace(*filter(None, [command]), "--help")
        assert (answer.status, answer.err) == (0, "")
        assert answer.out.startswith("usage: pinnace")
    assert pinnace("--version").out == f"pinnace {pn.__version__}\n"


def process(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
        **options,
    )


def test_quiet_and_verbose(pinnace: Any, files: Files) -> None:
    answer = pinnace("convert", files.net, "-o", files / "quiet.pnc", "--quiet")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith(f"{files / 'quiet.pnc'}: ")
    assert pinnace("compare", files.program, "--reference", files.net, "-q").err == ""
    assert pinnace("check", files.net, "--quiet").status == 0
    assert pinnace("convert", files.net, "-o", files / "q.pnc", "--quiet", "--verbose").status == 2
    done = process(sys.executable, "-m", "pinnace", "convert", files.net, "-o", files / "v.pnc", "--verbose")
    assert done.returncode == 0
    for part in ("imported", "passes:", "built for cpu", "verified in", "saved"):
        assert part in done.stderr
    for command in ("convert", "check", "compare"):
        text = pinnace(command, "--help").out
        assert "--quiet" in text
        assert "--verbose" in text


def test_as_a_process(files: Files) -> None:
    command = [sys.executable, "-m", "pinnace"]
    done = process(*command, "convert", files.net, "-o", files / "p.pnc", "--json")
    assert done.returncode == 0
    assert re.fullmatch(r"made up, .*:\n  x: float32\[2,3,8,8\], normal values\n", done.stderr)
    assert json.loads(done.stdout)["nodes"] == 3
    assert process(*command, "inspect", files / "nowhere.pnc").returncode == 2
    assert process(*command, "nonsense").returncode == 2
    # A reader that stops early is no failure.
    shell = f"set -o pipefail; {sys.executable} -m pinnace inspect {files.program} --text | head -n 1"
    done = process("bash", "-c", shell)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_of_any_encoding_and_a_full_disk(files: Files) -> None:
    command = [sys.executable, "-m", "pinnace"]
    shutil.copy(files.net, files / "größe.pt2")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONIOENCODING": "ascii"}
    arguments = [*command, "convert", files / "größe.pt2", "-o", files / "größe.pnc", "--no-verify"]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xf6\\xdfe.pnc" in done.stdout
    for output, error in ((">/dev/full", ""), (">/dev/full", "2>/dev/full")):
        done = process("bash", "-c", f"{sys.executable} -m pinnace inspect {files.program} --text {output} {error}")
        assert done.returncode == 2
        assert done.stderr.startswith("pinnace: cannot write: No space left") or error
        assert done.stderr.count("\n") == (0 if error else 1)
    assert process("bash", "-c", f"{sys.executable} -m pinnace inspect {files.program} >&-").returncode == 0


def test_memory_that_ends_is_a_negative_answer(pinnace: Any, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(pn.Program, "open", refuse)
    answer = pinnace("inspect", files.program)
    assert (answer.status, answer.err) == (1, "pinnace: out of memory\n")


@pytest.mark.skipif(not PINNACE_RUN.exists(), reason="build/release has no pinnace-run: make build")
def test_pinnace_run(files: Files) -> None:
    np.load(files.x).tofile(files / "x.bin")
    given = ["--input", f"x={files / 'x.bin'}"]
    (name,) = pn.Program.open(files.program).outputs
    done = process(PINNACE_RUN, files.program, *given, "--output", f"{name}={files / 'y.bin'}", "--threads", "2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (want,) = pn.Session(files.program).run({"x": np.load(files.x)}).values()
    np.testing.assert_array_equal(np.fromfile(files / "y.bin", np.float32).reshape(2, 5), want)
    done = process(PINNACE_RUN, files.program)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, f"{name}: float32[2,5]", "")
    assert "median" in process(PINNACE_RUN, files.program, "--bench", "3").stdout
    assert "conv" in process(PINNACE_RUN, files.program, "--placement").stdout
    assert process(PINNACE_RUN, "--version").stdout.strip() == f"pinnace-run {pn.__version__}"
    assert process(PINNACE_RUN, "--help").returncode == 0
    pn.load(files.onnx, symbols=[pn.Dim("n", 1, 4)]).build().save(files / "n.pnc")
    assert "float32[3,3]" in process(PINNACE_RUN, files / "n.pnc", "--size", "n=3").stdout
    pn.load(files.onnx).build().save(files / "any.pnc")
    shutil.copy(files.x, files / "short.bin")
    wrong: list[tuple[list[object], str]] = [
        ([], "program"),
        ([files / "nowhere.pnc"], "nowhere.pnc"),
        ([files.program, "--threads", "-1"], "--threads"),
        ([files.program, "--bench", "none"], "--bench"),
        ([files.program, "--deadline-ms", "nan"], "--deadline-ms"),
        ([files.program, "--target", "tpu"], "'tpu' is not known"),
        ([files.program, "--input", "x"], "NAME=FILE"),
        ([files.program, "--input", f"z={files / 'x.bin'}"], "no input 'z'"),
        ([files.program, "--input", f"x={files / 'short.bin'}"], "one run of 'x' takes 1536"),
        ([files.program, "--input", f"x={files / 'nowhere.bin'}"], "cannot be read"),
        ([files.program, "--output", f"z={files / 'y.bin'}"], "no output 'z'"),
        ([files.program, "--output", f"{name}={files / 'nowhere/y.bin'}"], "cannot be written"),
        ([files / "n.pnc", "--size", "n=5"], "1..4"),
        ([files / "n.pnc", "--size", "n=two"], "NAME=NUMBER"),
        ([files / "n.pnc", "--size", "m=2"], "no dynamic dimension 'm'"),
        ([files / "any.pnc", "--size", "n=9000000000000000000"], "beyond any memory"),
    ]
    for arguments, part in wrong:
        done = process(PINNACE_RUN, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), (arguments, done)
        assert part in done.stderr
    damaged = Path(files / "cut.pnc")
    damaged.write_bytes(files.program.read_bytes()[:-9])
    many = ["--size", "n=100000000000000"]
    for bad, extra in ((damaged, []), (files.program, ["--target", "metal"]), (files / "any.pnc", many)):
        done = process(PINNACE_RUN, bad, *extra)
        assert (done.returncode, done.stdout) == (1, "")
