"""Calls that end early, from Python: timeouts, tokens, and Ctrl-C in child processes at seeded moments.

Half a second is promised from the signal to the end of a call, and that is what a call may take, beside the time in
which its threads, or the machine, had no processor to run on. Tests print what they measured.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from endless_loop import ENDLESS, feed
from pinnace import _core, cli
from pinnace.verify.unseen_paths import UnseenPaths
from slices import all_mode, test_seed

SOON = 5.0 if os.environ.get("PINNACE_SANITIZED") else 0.5  # sanitized code is ten times slower
INTERRUPTS = 3 if all_mode() else 1  # of each call and command, at moments that differ

# Hours of work in one operator.
ONE_SUM = """graph "g" {
  symbol n 1..30000
  input %x : f64[n]
  %y = einsum(%x, %x, %x) {equation="i,j,k->"}
  output "y" %y
}"""


def program_of(text: str) -> pn.Program:
    return pn.Program(_core.Model.parse(text).build(["cpu"]))


class Watch:
    """Seconds that a process takes, without those in which others had the processor that its first thread waited for,
    the host of a virtual machine included."""

    def __init__(self, process: int | None = None) -> None:
        first = process or os.getpid()
        self._schedule = Path(f"/proc/{first}/task/{first}/schedstat")
        self._start, self._lost_before = time.perf_counter(), self._lost()

    def _lost(self) -> float:
        """Ready to run, and not running; and what the host took of one processor. What has ended waits no more."""
        waited = 0.0
        with contextlib.suppress(OSError):
            waited = int(self._schedule.read_text().split()[1]) / 1e9
        stolen = int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK")
        self._waited = max(waited, getattr(self, "_waited", 0.0))
        return self._waited + stolen / (os.cpu_count() or 1)

    def wall(self) -> float:
        return time.perf_counter() - self._start

    def taken(self) -> float:
        return self.wall() - (self._lost() - self._lost_before)


@pytest.fixture(scope="module")
def endless() -> pn.Program:
    return program_of(ENDLESS)


def test_timeout(endless: pn.Program) -> None:
    session = pn.Session(endless, "cpu")
    watch = Watch()
    with pytest.raises(pn.Cancelled, match=r"timed out after 0\.2 s at "):
        session.run(feed(True), timeout=0.2)
    assert watch.wall() >= 0.2
    assert watch.taken() < 0.2 + SOON
    assert float(session.state["count"]) == 0
    session.run(feed(False), timeout=60)
    assert float(session.state["count"]) == 1
    with pytest.raises(pn.Cancelled):
        session.profile(feed(True), timeout=0.05)
    with pytest.raises(pn.Cancelled):
        session.run_async(feed(True), timeout=0.05).result()


def test_what_is_no_token_is_a_type_error(endless: pn.Program) -> None:
    session = pn.Session(endless, "cpu")
    no_token: Any = object()
    for call in (session.run, session.profile, session.run_async):
        with pytest.raises(TypeError):
            call(feed(False), cancel=no_token)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_refused_timeouts(endless: pn.Program, timeout: float) -> None:
    with pytest.raises(pn.InvalidArgument, match="must be a number of seconds above 0"):
        pn.Session(endless, "cpu").run(feed(False), timeout=timeout)


def test_endless_timeouts(endless: pn.Program) -> None:
    assert "last" in pn.Session(endless, "cpu").run(feed(False), timeout=float("inf"))


@pytest.mark.parametrize("threads", [1, 2])
def test_token_ends_a_run_inside_an_operator(threads: int) -> None:
    session = pn.Session(program_of(ONE_SUM), "cpu", threads)
    token = pn.CancelToken()
    threading.Timer(0.2, token.cancel).start()
    watch = Watch()
    with pytest.raises(pn.Cancelled, match="cancelled at einsum"):
        session.run({"x": np.ones(30000)}, cancel=token)
    assert watch.taken() < 0.2 + SOON
    assert token.cancelled
    (y,) = session.run({"x": np.ones(20)}).values()
    assert float(y) == 8000
    with pytest.raises(pn.Cancelled):  # it stays cancelled
        session.run({"x": np.ones(30000)}, cancel=token)


# One step of each takes seconds to hours.
LONG = {
    "detection_postprocessing": """
      input %scores : f32[1,60000,2]
      input %deltas : f32[1,60000,4]
      input %anchors : f32[60000,4]
      %y, %b, %l, %n = detection_postprocessing(%scores, %deltas, %anchors) {
        max_detections=60000, iou_threshold=2.0
      }""",
    "generate_proposals": """
      input %scores : f32[1,250,250,1]
      input %deltas : f32[1,250,250,4]
      input %anchors : f32[1,4]
      const %sizes : f32[1,2] = {250,250}
      %y, %b, %i = generate_proposals(%scores, %deltas, %anchors, %sizes) {iou_threshold=2.0, min_size=-1.0}""",
    "dft": """
      input %x : f32[1,2097153,1]
      %y = dft(%x)""",
    "max_roi_pool": """
      input %x : f32[1,1,3000,3000]
      input %rois : f32[3000,5]
      const %corners : f32[5] = {0,0,0,2999,2999}
      %boxes = mul(%rois, %corners)
      %y = max_roi_pool(%x, %boxes) {pooled_shape=[1,1]}""",
    "search_sorted": """
      input %x : f32[1000000]
      input %v : f32[20000000]
      %y = search_sorted(%x, %v)""",
    "unique": """
      input %x : u8[20000,8000]
      %y = unique(%x) {axis=0}""",
    "max_pool": """
      input %x : f64[1,1,3000,3000]
      %y = max_pool(%x) {kernel_shape=[1000,1000]}""",
    "conv": """
      input %x : f64[1,1,3000,3000]
      input %w : f64[1,1,1000,1000]
      %y = conv(%x, %w)""",
    "conv_transpose": """
      input %x : f64[1,1,2000,2000]
      input %w : f64[1,1,1000,1000]
      %y = conv_transpose(%x, %w)""",
    "lrn": """
      input %x : f64[1,200000,1]
      %y = lrn(%x) {size=200000}""",
    "linear_attention": """
      input %q : f32[1,20000,512]
      input %k : f32[1,20000,512]
      input %v : f32[1,20000,512]
      %y = linear_attention(%q, %k, %v) {update_rule="linear", q_num_heads=1, kv_num_heads=1}""",
    "random_multinomial": """
      input %logits : f32[1,1000000]
      input %seeds : i32[2]
      %y = random_multinomial(%logits, %seeds) {samples=20000000}""",
    "solve": """
      input %a : f64[3000,3000]
      input %b : f64[3000,3000]
      %y, %info = solve(%a, %b)""",
    "qr": """
      input %a : f64[4000,4000]
      %y, %r = qr(%a)""",
}


@pytest.mark.parametrize("op", LONG)
def test_timeout_inside_one_step(op: str) -> None:
    session = pn.Session(program_of(f'graph "g" {{{LONG[op]}\n output "y" %y }}'), "cpu", 1)
    # Numbers that rise from 0.5 to 1: boxes score above 0. Integers are 0 but for the last.
    inputs = {}
    for name, spec in session.inputs.items():
        shape = [size for size in spec.shape if isinstance(size, int)]
        inputs[name] = np.linspace(0.5, 1, math.prod(shape)).reshape(shape).astype(spec.dtype)
    watch = Watch()
    with pytest.raises(pn.Cancelled, match=rf"timed out after 0\.2 s at {op} "):
        session.run(inputs, timeout=0.2)
    print(f"{op}: {watch.taken():.2f} s")
    assert watch.taken() < 0.2 + SOON


def test_token_of_other_calls(endless: pn.Program, tmp_path: Path) -> None:
    token = pn.CancelToken()
    endless.save(tmp_path / "net.pnc")
    model = pn.load(tmp_path / "net.pnc", cancel=token)
    token.cancel()
    for call in (
        lambda: pn.load(tmp_path / "net.pnc", cancel=token),
        lambda: model.build(verify=False, cancel=token),
        lambda: pn.compare(endless, tmp_path / "net.pnc", [feed(False)], cancel=token),
    ):
        with pytest.raises(pn.Cancelled):
            call()
    assert model.build(verify=False).inputs
    assert pn.compare(endless, tmp_path / "net.pnc", [feed(False)]).ok


def test_a_token_in_the_middle_of_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of the program that is cancelled is no difference from its source, whichever of the runs it is."""
    model = pn.load(torch.nn.Linear(4, 4).eval(), torch.zeros(1, 4))
    plain, at = UnseenPaths.run, [0, 0]

    def cancelled(self: UnseenPaths, session: pn.Session, inputs: Any) -> Any:
        at[0] += 1
        if at[0] == at[1]:
            raise pn.Cancelled("cancelled at gemm 'y'")
        return plain(self, session, inputs)

    monkeypatch.setattr(UnseenPaths, "run", cancelled)
    model.build()
    runs = at[0]
    assert runs > 1
    for number in range(1, runs + 1):
        at[:] = [0, number]
        with pytest.raises(pn.Cancelled):
            model.build()


def test_dropped_future_ends_its_run(endless: pn.Program) -> None:
    session = pn.Session(endless, "cpu")
    watch = Watch()
    future = session.run_async(feed(True))
    del future
    assert watch.taken() < SOON
    session.run(feed(False))


def test_exceptions_of_signal_handlers(endless: pn.Program) -> None:
    """Any handler that raises ends a call with what it raises; one that does not leaves it alone."""
    session = pn.Session(endless, "cpu")
    calls = []

    class Enough(Exception):
        pass

    def handler(*_: object) -> None:
        calls.append(time.perf_counter())
        if len(calls) == 3:
            raise Enough

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.raises(Enough):
            session.run(feed(True))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(calls) >= 3
    session.run(feed(False))


# ------------------------------------------------------------------------------------------------ Ctrl-C of a process

PROLOGUE = """
import sys, time
import numpy as np
import pinnace as pn
from pinnace import _core

def ready():
    print("ready", flush=True)

def ended(error):
    print(type(error).__name__, flush=True)
"""


@contextlib.contextmanager
def child_of(code: str, folder: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process in that folder; killed after two minutes, whatever waits for it, and when the block ends."""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        timer = threading.Timer(120, child.kill)
        timer.start()
        try:
            yield child
        finally:
            child.kill()
            timer.cancel()


def interrupt(code: str, delay: float, folder: Path) -> tuple[float, str]:
    """Runs code in a child, sends SIGINT `delay` after it says "ready": seconds until its next line, and all lines."""
    source = PROLOGUE + textwrap.dedent(code)
    with child_of(source, folder) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        line = child.stdout.readline()
        assert line == "ready\n", child.stderr.read()
        time.sleep(delay)
        watch = Watch(child.pid)
        child.send_signal(signal.SIGINT)
        line = child.stdout.readline().strip()
        taken = watch.taken()
        rest, errors = child.stdout.read(), child.stderr.read()
        status = child.wait()
        assert status == 0, errors
        return taken, f"{line} {rest.strip()}"


RUNS = {
    "run": """
        session = pn.Session(pn.Program.open("endless.pnc"), "cpu")
        feed = {"go": np.bool_(True), "x": np.ones(1000, np.float32)}
        work = lambda: session.run(feed)
        again = lambda: session.run({**feed, "go": np.bool_(False)})
    """,
    "operator": """
        session = pn.Session(pn.Program.open("sum.pnc"), "cpu")
        work = lambda: session.run({"x": np.ones(30000)})
        again = lambda: session.run({"x": np.ones(20)})["y"] == 8000 or sys.exit(1)
    """,
    "future": """
        session = pn.Session(pn.Program.open("endless.pnc"), "cpu")
        feed = {"go": np.bool_(True), "x": np.ones(1000, np.float32)}
        work = lambda: session.run_async(feed).result()
        again = lambda: session.run({**feed, "go": np.bool_(False)})
    """,
    "load": """
        def work():
            while True:
                pn.load("large.onnx")
        again = lambda: pn.load("small.onnx")
    """,
    "build": """
        model = pn.load("large.onnx")
        def work():
            while True:
                model.build(["cpu:avx2"], verify=False).save("out.pnc")
        again = lambda: pn.load("small.onnx").build()
    """,
    "load .pt2": """
        def work():
            while True:
                pn.load("large.pt2")
        again = lambda: pn.load("small.onnx")
    """,
    "load a stream": """
        def work():
            while True:
                pn.load("stream.pt2", stream={"input": 2})
        again = lambda: pn.load("stream.pt2", stream={"input": 2})
    """,
    "build and verify": """
        model = pn.load("large.onnx")
        pn.load("small.onnx").build()  # imports onnxruntime, which ends before a signal is heard
        def work():
            while True:
                model.build().save("out.pnc")
        again = lambda: pn.load("small.onnx").build()
    """,
    "build of a .pt2": """
        import torch  # which takes longer, and ends before the signal is heard
        model = pn.load("stream.pt2")
        def work():
            while True:
                model.build().save("out.pnc")
        again = lambda: pn.load("small.onnx").build()
    """,
    "quantise": """
        model = pn.load("large.onnx")
        samples = [{"x": np.full((1, 64), i / 64, np.float32)} for i in range(64)]
        pn.load("small.onnx").build()
        def work():
            while True:
                model.build(quantize=pn.Int8(calibration=samples)).save("out.pnc")
        again = lambda: pn.load("small.onnx").build(quantize=pn.Int8(calibration=samples))
    """,
    "compare": """
        program = pn.load("large.onnx").build(verify=False)
        def work():
            while True:
                pn.compare(program, program, [{"x": np.ones((1, 64), np.float32)}])
        again = lambda: pn.Session(program).run({"x": np.ones((1, 64), np.float32)})
    """,
    "operator of the application": """
        def reference(inputs, attributes):
            time.sleep(100)
        pn.custom_op("slow", lambda inputs, attributes: inputs, reference)
        text = 'graph "g" { input %x : f32[4] %y : f32[4] = slow(%x) output "y" %y }'
        model = _core.Model.parse(text, ops=pn.types.custom_ops())
        session = pn.Session(pn.Program(model.build(["cpu"])), "cpu")
        work = lambda: session.run({"x": np.ones(4, np.float32)})
        again = lambda: None
    """,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, endless: pn.Program) -> Path:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    path = tmp_path_factory.mktemp("cancel")
    endless.save(path / "endless.pnc")
    program_of(ONE_SUM).save(path / "sum.pnc")
    for name, layers in (("small", 2), ("large", 400)):
        rng = np.random.default_rng(0)
        nodes, weights = [], []
        for i in range(layers):
            weights.append(numpy_helper.from_array(rng.standard_normal((64, 64)).astype(np.float32) / 8, f"w{i}"))
            nodes.append(helper.make_node("MatMul", ["x" if i == 0 else f"h{i}", f"w{i}"], [f"p{i}"], f"mul{i}"))
            nodes.append(helper.make_node("Tanh", [f"p{i}"], [f"h{i + 1}"], f"tanh{i}"))
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
            [helper.make_tensor_value_info(f"h{layers}", TensorProto.FLOAT, [1, 64])],
            weights,
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path / f"{name}.onnx")
    pn.load(path / "large.onnx").build(verify=False).save(path / "large.pnc")
    many = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(200))).eval()
    torch.export.save(torch.export.export(many, (torch.zeros(1, 16),)), path / "large.pt2")
    time_axis = torch.export.Dim("t", min=200, max=4096)
    convolutions = torch.nn.Sequential(*(torch.nn.Conv1d(4, 4, 3) for _ in range(40))).eval()
    exported = torch.export.export(convolutions, (torch.zeros(1, 4, 300),), dynamic_shapes=({2: time_axis},))
    torch.export.save(exported, path / "stream.pt2")
    return path


# The operator's shape function, which planning calls, raises the signal, so that its handler runs in the middle.
INTERRUPTED = """
import signal
import numpy as np
import pinnace as pn

armed, said = [], []

def shape(inputs, _):
    if armed:
        signal.raise_signal(armed.pop())
    return [inputs[0]]

def handler(*_):
    try:
        call()
        said.append("done")
    except pn.InvalidArgument as error:
        said.append(str(error))

def feed(n):
    return {"x": np.arange(n, dtype=np.float32)}

def interrupted(outer, inner):
    global call
    call = inner
    armed.append(signal.SIGUSR1)
    made = outer()
    assert not armed
    return made

pn.custom_op("cancel.same", shape, lambda arrays, _: [arrays[0]])
signal.signal(signal.SIGUSR1, handler)
text = '''graph "g" {
  symbol n 1..64
  input %x : f32[n]
  %y : f32[n] = cancel.same(%x)
  output "y" %y
}'''
program = pn.Program(pn._core.Model.parse(text, [], False, pn.types.custom_ops()).build(["cpu"]))
first = interrupted(lambda: pn.Session(program, "cpu"), lambda: pn.Session(program, "cpu"))
second = pn.Session(program, "cpu")
interrupted(lambda: first.run(feed(5)), lambda: second.run(feed(6)))
interrupted(lambda: first.run(feed(7)), lambda: first.run(feed(5)))
interrupted(lambda: first.run(feed(8)), lambda: pn.Session(program, "cpu", plan_cache=3).run(feed(6)))
for n in (5, 6, 7, 8):
    for session in (first, second, pn.Session(program, "cpu")):
        assert session.run(feed(n))["y"].tolist() == list(range(n))
print("\\n".join(said))
"""


def test_a_signal_handler_does_not_wait_for_the_call_that_it_interrupts(tmp_path: Path) -> None:
    with child_of(INTERRUPTED, tmp_path) as child:
        out, err = child.communicate()
    assert child.returncode == 0, err
    making, planning, running, other = out.splitlines()
    assert making.startswith("this thread is at the preparation of the same program already")
    assert planning.startswith("this thread is at the planning of a run already")
    assert running.startswith("the session is running")
    assert other == "done"


@pytest.mark.parametrize("name", RUNS)
def test_ctrl_c_ends_a_call(name: str, folder: Path) -> None:
    """KeyboardInterrupt within half a second; what was used can be used again; no file that was begun stays."""
    rng = random.Random(f"{test_seed()}/{name}")
    made = {path.name for path in folder.iterdir()}
    code = textwrap.dedent(RUNS[name]) + textwrap.dedent("""
        ready()
        try:
            work()
        except BaseException as error:
            ended(error)
        again()
        print("again")
    """)
    times = []
    for _ in range(INTERRUPTS):
        taken, said = interrupt(code, rng.uniform(0.05, 0.8), folder)
        assert said == "KeyboardInterrupt again"
        times.append(taken)
    print(f"{name}: {sorted(round(1e3 * t) for t in times)} ms")
    assert max(times) < SOON
    assert not {path.name for path in folder.iterdir()} - made - {"out.pnc"}
    if (folder / "out.pnc").exists():  # the last one that was written whole
        pn.Program.open(folder / "out.pnc")
        (folder / "out.pnc").unlink()


COMMANDS = {
    "run": ["run", "endless.pnc", "--input", "go=go.npy", "--output", "made/y.npz"],
    "bench": ["bench", "endless.pnc", "--input", "go=go.npy"],
    "convert": ["convert", "large.onnx", "-o", "made/net.pnc", "--target", "cpu:avx2"],
    "compare": ["compare", "endless.pnc", "--reference", "endless.pnc", "--input", "go=go.npy"],
    "check": ["check", "large.onnx", *["--target", "cpu"] * 50],
    "inspect": ["inspect", "large.onnx"],
    "diff": ["diff", "large.pnc", "large.pnc"],
    "report-device": ["report-device", "-o", "made/device.json"],
}


def test_a_signal_during_an_import_is_not_lost(tmp_path: Path) -> None:
    """Python's import system and packages drop exceptions in places: the handler runs when the import has ended."""
    (tmp_path / "swallows.py").write_text(
        "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    for _ in range(1000): pass\n"
        "except BaseException:\n    pass\nended = True\n"
    )
    code = """
    import signal, sys
    from pinnace.packages import import_package
    before = signal.getsignal(signal.SIGINT)
    try:
        import_package("swallows")
    except KeyboardInterrupt:
        print(sys.modules["swallows"].ended, signal.getsignal(signal.SIGINT) is before)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    del sys.modules["swallows"]
    print(import_package("swallows").ended)
    """
    with child_of(
        textwrap.dedent(code), tmp_path, PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    ) as child:
        output, errors = child.communicate()
    assert output == "True True\nTrue\n", errors


def test_ctrl_c_while_options_are_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "option_parser", interrupted)
    assert cli.main(["devices"]) == 130
    assert capsys.readouterr().err.endswith("interrupted\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command(name: str, folder: Path) -> None:
    """Status 130, a last line on stderr that says so, no output that is half there, and no temporary file left."""
    rng = random.Random(f"{test_seed()}/{name}")
    np.save(folder / "go.npy", np.bool_(True))
    made, temporary = folder / "made", folder / "temporary"
    made.mkdir(exist_ok=True)
    temporary.mkdir(exist_ok=True)
    # The command says when it has been imported: before, Python itself has not yet begun. One that is done before the
    # signal comes is called again.
    code = textwrap.dedent(f"""
        import os, sys, onnx, onnxruntime, pinnace.cli as c  # imports end before a signal is heard
        print("ready", flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads on
        while (status := c.main({COMMANDS[name]!r})) == 0:
            pass
        sys.exit(status)
    """)
    times = []
    for _ in range(INTERRUPTS):
        with child_of(code, folder, TMPDIR=str(temporary)) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            assert child.stderr is not None
            time.sleep(rng.uniform(0.05, 0.6))
            watch = Watch(child.pid)
            child.send_signal(signal.SIGINT)
            errors = child.stderr.read()  # to its end, which comes with that of the process
            times.append(watch.taken())
            child.wait()
        assert child.returncode == 130, errors
        lines = errors.splitlines()
        assert lines[-1] == "pinnace: interrupted"
        # What comes before it is what a conversion says of inputs that it made up, where it had got that far.
        assert all(line.startswith(("made up", "  ")) for line in lines[:-1]), errors
        for whole in made.iterdir():  # of a call before the one that was ended
            pn.Program.open(whole)
            whole.unlink()
        # onnxruntime keeps a number of its own for all its processes, which is not ours to remove.
        assert not [p for p in temporary.iterdir() if p.name != ".ses"]
    print(f"{name}: {sorted(round(1e3 * t) for t in times)} ms until the process had ended")
    assert max(times) < SOON
    (folder / "go.npy").unlink()
    made.rmdir()
    shutil.rmtree(temporary)
