"""Messages of pinnace: in Python's logging, on stderr, by the command line; from threads, in forked children, at the
end of the interpreter; and what they never hold.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pinnace as pn
import pytest
from endless_loop import ENDLESS
from endless_loop import feed as endless_feed

TEXT = """graph "net" {
  symbol n 1..64
  input %x : f32[n,8]
  const %w : f32[8,8] = {WEIGHTS}
  %a : f32[n,8] = mat_mul(%x, %w)
  %b : f32[n,8] = relu(%a)
  output "b" %b
}""".replace("WEIGHTS", ",".join(str(1234.5 + i) for i in range(64)))

BEGIN = r"\d\d:\d\d:\d\d\.\d{3} \d+ "

# Children begin with this.
SETUP = f"""
import logging, os, sys, threading, time
import numpy as np, pinnace as pn
program = pn.Program(pn._core.Model.parse({TEXT!r}, [], False, []).build(["cpu"]))
def feed(n): return {{"x": np.ones((n, 8), np.float32)}}
"""


def child(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SETUP + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def make_program() -> pn.Program:
    return pn.Program(pn._core.Model.parse(TEXT, [], False, []).build(["cpu"]))


def feed(n: int = 2) -> dict[str, np.ndarray]:
    return {"x": np.full((n, 8), 4321.5, np.float32)}


class Records(logging.Handler):
    """What reached the logger, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def lines(self) -> list[str]:
        return [r.getMessage() for r in self.records]


@pytest.fixture
def records() -> Iterator[Records]:
    handler = Records()
    logger = logging.getLogger("pinnace")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    pn.set_log_level("warn")
    logger.setLevel(logging.NOTSET)


def test_levels_have_names() -> None:
    for wrong in ("", "loud", "DEBUG", "warning", "debug\n"):
        with pytest.raises(pn.InvalidArgument, match="is not one of trace, debug, info, warn, error, off"):
            pn.set_log_level(wrong)


def test_messages_arrive_in_logging(records: Records) -> None:
    pn.set_log_level("trace")
    session = pn.Session(make_program(), target="cpu", threads=1)
    session.run(feed())
    assert {r.name for r in records.records} == {"pinnace"}
    assert {r.levelno for r in records.records} == {5, logging.DEBUG, logging.INFO}
    lines = [(r.levelno, r.getMessage()) for r in records.records]
    (at,) = [i for i, (level, text) in enumerate(lines) if level == 5]
    assert re.fullmatch(r"ran 'net' in [\d.]+ ms", lines[at][1])
    assert any(text.startswith("prepared 'net' for cpu: fp32, 1 threads, ") for _, text in lines[:at])
    assert any("' on cpu: " in text for level, text in lines if level == logging.DEBUG)


def test_as_pytest_captures_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="pinnace"):
        pn.set_log_level("info")
        pn.Session(make_program(), target="cpu", threads=1)
        pn.set_log_level("warn")
    assert [r for r in caplog.records if r.name == "pinnace"]
    assert "prepared 'net' for cpu: fp32, 1 threads, " in caplog.text


def test_the_level_filters_where_messages_arise(records: Records) -> None:
    for level, numbers in {"info": {logging.INFO}, "warn": set(), "off": set()}.items():
        pn.set_log_level(level)
        records.records.clear()
        pn.Session(make_program(), target="cpu").run(feed())
        assert {r.levelno for r in records.records} == numbers, level


def test_messages_hold_no_values(records: Records) -> None:
    pn.set_log_level("trace")
    session = pn.Session(make_program(), target="cpu")
    session.run(feed())
    session.run_async(feed(3)).result()
    gather = """graph "g" {
      input %x : f32[4]
      input %i : i64[2]
      %y : f32[2] = gather(%x, %i)
      output "y" %y
    }"""
    program = pn.Program(pn._core.Model.parse(gather, [], False, []).build(["cpu"]))
    future = pn.Session(program).run_async({"x": np.zeros(4, np.float32), "i": np.array([1, 4321])})
    while not future.done():
        time.sleep(0.001)
    del future
    pn._core.deliver_log()
    text = "\n".join(records.lines())
    assert "a run that nobody waited for failed (" in text
    assert "4321" not in text
    assert not re.search(r"12[3-9]\d\.5", text)


def test_names_are_escaped(records: Records, tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    evil = "evil\x1b[31m\n2026 forged: line\u202e"
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], name=evil)],
        evil,
        [value("x", TensorProto.FLOAT, [2, 3])],
        [value("y", TensorProto.FLOAT, [2, 3])],
    )
    path = tmp_path / "evil\x1b[32m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    pn.set_log_level("trace")
    pn.load(path)
    program = pn.load(path.rename(tmp_path / "evil.onnx")).build()
    pn.Session(program, target="cpu").run({"x": np.ones((2, 3), np.float32)})
    lines = records.lines()
    assert any(r"evil\x1b[31m\n2026 forged: line\u202e" in line for line in lines), lines
    assert any(r"evil\x1b[32m.onnx' (onnx): 1 nodes" in line for line in lines), lines
    assert not [line for line in lines if re.search("[\x00-\x1f\u202e]", line)]


def test_a_conversion_tells_its_phases(records: Records) -> None:
    torch = pytest.importorskip("torch")
    pn.set_log_level("info")
    pn.load(torch.nn.ReLU(), (torch.ones(2, 3),)).build()
    text = "\n".join(records.lines())
    for phase in ("torch exported ReLU", "imported ReLU (pt2): ", "passes: ", "built for cpu: ", "verified.cpu: yes: "):
        assert phase in text, text


def test_a_handler_that_fails_fails_no_call(records: Records) -> None:
    class Failing(logging.Handler):
        raised: type[BaseException] = ValueError

        def emit(self, record: logging.LogRecord) -> None:
            raise self.raised("in a handler")

    handler = Failing()
    logging.getLogger("pinnace").addHandler(handler)
    unraisable: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda args: unraisable.append(args.exc_value)
    try:
        pn.set_log_level("trace")
        session = pn.Session(make_program(), target="cpu")
        assert session.run(feed())["b"].shape == (2, 8)
        assert unraisable
        assert all(isinstance(error, ValueError) for error in unraisable)
        handler.raised = KeyboardInterrupt
        with pytest.raises(KeyboardInterrupt):
            session.run(feed())
        handler.raised = ValueError
        assert session.run(feed())["b"].shape == (2, 8)
    finally:
        sys.unraisablehook = before
        logging.getLogger("pinnace").removeHandler(handler)


def test_what_is_left_waits_for_the_next_call(records: Records) -> None:
    """A call spends a tenth of a second on messages, and none is lost where a handler raises what is no error."""

    class Slow(logging.Handler):
        raised: type[BaseException] | None = None

        def emit(self, record: logging.LogRecord) -> None:
            time.sleep(0.02)
            if self.raised:
                raised, self.raised = self.raised, None
                raise raised

    handler = Slow()
    logging.getLogger("pinnace").addHandler(handler)
    try:
        session = pn.Session(make_program(), target="cpu")
        pn.set_log_level("info")
        before = time.time()
        for i in range(40):
            pn.log.log("info", f"message {i}") if i == 39 else pn._core.write_log("info", f"message {i}")
        after = time.time()
        assert after - before < 0.5, "40 messages of 20 ms each were all delivered by one call"
        assert len(records.records) < 20
        handler.raised = KeyboardInterrupt
        with pytest.raises(KeyboardInterrupt):
            session.run(feed())
        for _ in range(20):
            session.run(feed())
        mine = [r for r in records.records if r.getMessage().startswith("message ")]
        assert [r.getMessage() for r in mine] == [f"message {i}" for i in range(40)]
        assert all(before - 0.001 <= r.created <= after for r in mine), "the time at which they arose"
    finally:
        logging.getLogger("pinnace").removeHandler(handler)


def test_messages_come_while_a_result_is_waited_for(records: Records) -> None:
    session = pn.Session(pn.Program(pn._core.Model.parse(ENDLESS, [], False, []).build(["cpu"])), target="cpu")
    pn.set_log_level("info")
    future = session.run_async(endless_feed(True), timeout=1.5)
    pn._core.write_log("info", "meanwhile")
    seen: list[float] = []

    def wait_for_it() -> None:
        for _ in range(100):
            if records.records:
                break
            time.sleep(0.01)
        seen.append(time.time())

    watch = threading.Thread(target=wait_for_it)
    watch.start()
    start = time.time()
    with pytest.raises(pn.Cancelled):
        future.result()
    assert time.time() - start > 1
    watch.join()
    assert "meanwhile" in records.lines()
    assert seen[0] - start < 1


def test_threads_that_wait_for_each_other_log(records: Records) -> None:
    """Some pack and plan under locks for which others wait; all of them log, to a handler that gives up the GIL."""

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            threading.Event().wait(0.0005)

    handler = Slow()
    logging.getLogger("pinnace").addHandler(handler)
    pn.set_log_level("trace")
    program, wrong = make_program(), []

    def work() -> None:
        for n in (2, 3, 4):
            session = pn.Session(program, target="cpu", threads=2)
            if session.run(feed(n))["b"].shape != (n, 8) or not session.placement:
                wrong.append(n)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not [t for t in threads if t.is_alive()]
        assert not wrong
        for _ in range(100):  # what slow handlers left
            pn._core.deliver_log()
    finally:
        logging.getLogger("pinnace").removeHandler(handler)
    assert sum(r.levelno == 5 for r in records.records) == 24


# ---- processes of their own ---------------------------------------------------------------------------------------


def test_the_environment_sets_the_level_and_uses_stderr() -> None:
    code = "pn.Session(program, target='cpu').run(feed(2)); print('data')"
    done = child(code, PINNACE_LOG="debug")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "data\n"
    lines = done.stderr.splitlines()
    assert all(re.match(f"{BEGIN}(debug|info) pinnace: ", line) for line in lines), done.stderr
    assert any("info pinnace: prepared 'net' for cpu" in line for line in lines)
    assert sum("info pinnace: prepared 'net' for cpu" in line for line in lines) == 1, "each message once"
    assert child(code, PINNACE_LOG="off").stderr == ""
    assert child("pn.log.log('error', 'x')", PINNACE_LOG="off").stderr == ""
    assert child(code, PINNACE_LOG="").stderr == ""
    assert child(code).stderr == ""
    assert "error pinnace: PINNACE_LOG: log level 'loud' is not one of" in child(code, PINNACE_LOG="loud").stderr


def test_without_a_handler_messages_are_on_stderr() -> None:
    code = "pn.set_log_level('info'); pn.Session(program, target='cpu'); print('data')"
    done = child(code)
    assert done.returncode == 0, done.stderr
    assert re.search(f"{BEGIN}info pinnace: prepared 'net' for cpu", done.stderr)
    assert done.stdout == "data\n"
    done = child("logging.basicConfig(format='mine %(name)s %(levelname)s %(message)s')\n" + code)
    assert "mine pinnace INFO prepared 'net' for cpu" in done.stderr
    assert " info pinnace: " not in done.stderr


def test_the_logger_decides() -> None:
    """A level above the message's silences it, handler or none; the last ones come before logging shuts down."""
    done = child("logging.getLogger('pinnace').setLevel(logging.CRITICAL); pn.log.log('error', 'x')")
    assert done.stderr == ""
    code = """
handler = logging.FileHandler(os.environ["LOG_FILE"], mode="w")
logging.getLogger().addHandler(handler)
pn._core.write_log("warn", "the last one")
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.txt"
        done = child(code, LOG_FILE=str(path))
        assert done.returncode == 0, done.stderr
        assert path.read_text() == "the last one\n"


def test_warnings_come_unasked() -> None:
    done = child("print(pn.log.log('warn', 'a warning'), pn.log.log('info', 'a phase'))")
    assert re.search(f"{BEGIN}warn pinnace: a warning\n", done.stderr), done.stderr
    assert "a phase" not in done.stderr


@pytest.mark.parametrize("how", ["logging", "stderr"])
def test_forked_children_log(how: str) -> None:
    code = """
import signal
HANDLER = HOW == "logging"
if HANDLER: logging.basicConfig(level=1, format="%(process)d %(message)s")
pn.set_log_level("trace") if HANDLER else pn.log.log_to_stderr("trace")
session = pn.Session(program, target="cpu")
stop = threading.Event()
def others():
    while not stop.is_set(): pn.Session(program, target="cpu").run(feed(3))
threads = [threading.Thread(target=others) for _ in range(2)]
for t in threads: t.start()
codes = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            mine = pn.Session(program, target="cpu")
            good = mine.run(feed(2))["b"].shape == (2, 8) and session.run(feed(2))["b"].shape == (2, 8)
        except pn.InvalidArgument as error:  # the program was at work when it was forked: refused, not waited for
            good = "forked while another thread was at" in str(error)
        sys.exit(0 if good else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
stop.set()
for t in threads: t.join()
print(codes)
"""
    done = child(f"HOW = {how!r}\n" + code)
    assert done.stdout == f"{[0] * 8}\n", done.stderr[-2000:]
    assert done.returncode == 0
    assert "ran 'net' in " in done.stderr


def test_the_interpreter_ends_while_threads_log() -> None:
    code = """
logging.basicConfig(level=1)
pn.set_log_level("trace")
def forever():
    session = pn.Session(program, target="cpu")
    while True: session.run(feed(4))
for _ in range(3): threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
future = pn.Session(program, target="cpu").run_async(feed(2))
print("ends")
"""
    for environment in ({}, {"PINNACE_LOG": "trace"}):
        done = child(code, **environment)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout == "ends\n"


def test_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "net.pnc"
    make_program().save(path)

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pinnace", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    plain = call("run", str(path), "--target", "cpu")
    assert plain.returncode == 0, plain.stderr
    for arguments in (["--log", "info", "run", str(path)], ["run", str(path), "--log", "info"]):
        done = call(*arguments, "--target", "cpu")
        assert (done.returncode, done.stdout) == (0, plain.stdout)
        assert re.search(f"{BEGIN}info pinnace: opened '.*net.pnc': ", done.stderr)
    wrong = call("devices", "--log", "loud")
    assert wrong.returncode == 2
    assert "is not one of trace, debug, info, warn, error, off" in wrong.stderr


def test_pinnace_run(tmp_path: Path) -> None:
    tool = Path(__file__).resolve().parents[3] / "build/release/pinnace-run"
    if not tool.is_file():
        pytest.skip("build/release has no pinnace-run: make build")
    path = tmp_path / "net.pnc"
    make_program().save(path)
    done = subprocess.run(
        [tool, path, "--target", "cpu", "--log", "debug"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "pinnace-run: info: prepared 'net' for cpu" in done.stderr
    assert "pinnace-run: debug: mat_mul '" in done.stderr
    wrong = subprocess.run([tool, path, "--log", "loud"], capture_output=True, text=True, timeout=60, check=False)
    assert wrong.returncode == 2
    assert "log level 'loud'" in wrong.stderr
