"""Sessions, runs and models used by many threads at once, and processes that end while runs are under way.

Nothing here needs torch: the same tests run in builds with the thread sanitizer and the address sanitizer, where every
access of the extension and the library is watched (scripts/sanitized.sh).
"""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
from slices import rotating_slice

THREADS = 16
# Sanitized code is ten times slower, and looks at each access as hard however often it comes.
ROUNDS = 5 if os.environ.get("PINNACE_SANITIZED") else 30

LAYERS = """graph "g" {
  symbol n 1..64
  input %x : f32[n,8]
  const %w : f32[8,8] = {WEIGHTS}
  %a : f32[n,8] = mat_mul(%x, %w)
  %b : f32[n,8] = relu(%a)
  %c : f32[n,8] = softmax(%b)
  output "c" %c
}"""
OPS = ["mat_mul", "softmax"]  # relu becomes part of the product

COUNTER = """graph "g" {
  input %x : f32[2]
  state "total" %s : f32[2] next %t = {0,0}
  %t : f32[2] = add(%s, %x)
  output "t" %t
}"""

opened = threading.Event()
entered = threading.Event()


def same_type(inputs: list[Any], _: dict[str, str]) -> list[Any]:
    return [inputs[0]]


def waits(arrays: list[Any], _: dict[str, str]) -> list[Any]:
    entered.set()
    assert opened.wait(60)
    return [arrays[0]]


pn.custom_op("threads.double", same_type, lambda arrays, _: [arrays[0] * 2])
pn.custom_op("threads.wait", same_type, waits)


def build(text: str) -> pn.Program:
    model = pn._core.Model.parse(text, [], False, pn.types.custom_ops())
    return pn.Program(model.build(["cpu"]))


def custom(name: str) -> str:
    return f"""graph "g" {{
      input %x : f32[4]
      %y : f32[4] = {name}(%x)
      %z : f32[4] = relu(%y)
      output "z" %z
    }}"""


@pytest.fixture(scope="module")
def program() -> pn.Program:
    weights = ",".join(str((i * 7 % 11 - 5) / 8) for i in range(64))
    return build(LAYERS.replace("WEIGHTS", weights))


@pytest.fixture(scope="module")
def waiting() -> pn.Program:
    return build(custom("threads.wait"))


@pytest.fixture(autouse=True)
def closed() -> Any:
    opened.clear()
    entered.clear()
    yield
    opened.set()


def feed(n: int) -> dict[str, Any]:
    return {"x": np.linspace(-1, 1, n * 8, dtype=np.float32).reshape(n, 8)}


def at_once(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """What work(0) to work(threads - 1) return, begun together; the first exception of any is raised."""
    barrier = threading.Barrier(threads)

    def one(i: int) -> Any:
        barrier.wait(60)
        return work(i)

    with ThreadPoolExecutor(threads) as pool:
        return [future.result(120) for future in [pool.submit(one, i) for i in range(threads)]]


def test_sixteen_threads_with_a_session_each(program: pn.Program) -> None:
    want = {n: pn.Session(program, target="cpu").run(feed(n))["c"] for n in range(1, THREADS + 1)}

    def work(i: int) -> None:
        session = pn.Session(program, target="cpu", threads=1 + i % 2)
        for k in range(ROUNDS):
            n = 1 + (i + k) % THREADS
            np.testing.assert_array_equal(session.run(feed(n))["c"], want[n])

    at_once(work)


def test_sessions_come_and_go_on_one_program(program: pn.Program) -> None:
    def work(i: int) -> None:
        for k in range(ROUNDS):
            session = pn.Session(program, target="cpu", threads=1 + (i + k) % 3, plan_cache=1 + i % 4)
            assert session.run(feed(3))["c"].shape == (3, 8)
            assert "nodes" in repr(session)

    at_once(work)


def test_models_are_loaded_and_built_at_once(tmp_path: Path, program: pn.Program) -> None:
    def work(i: int) -> None:
        for k in range(max(2, ROUNDS // 5)):
            path = tmp_path / f"{i % 4}.pnc"  # four threads write each file
            program.save(path)
            again = pn.Program.open(path)
            assert pn.Session(again, target="cpu").run(feed(2))["c"].shape == (2, 8)
            model = pn._core.Model.load(str(path), ops=pn.types.custom_ops())
            assert [node["op"] for node in model.nodes] == OPS
            assert model.check(["cpu"])
            assert build(COUNTER.replace("{0,0}", f"{{{i},{k}}}")).nodes

    at_once(work)


def test_one_run_is_waited_for_by_many(waiting: pn.Program) -> None:
    session = pn.Session(waiting, target="cpu")
    x = np.array([1, -1, 2, -2], np.float32)
    future = session.run_async({"x": x})

    def work(i: int) -> Any:
        if i == 0:
            assert entered.wait(60)
            assert not future.done()
            opened.set()
        return future.result()["z"]

    for z in at_once(work):
        assert z.tolist() == [1, 0, 2, 0]
    assert future.done()


def test_a_run_is_cancelled_while_many_wait(waiting: pn.Program) -> None:
    session = pn.Session(waiting, target="cpu")
    future = session.run_async({"x": np.zeros(4, np.float32)})

    def work(i: int) -> str:
        if i == 0:
            assert entered.wait(60)
            future.cancel()
            opened.set()
        try:
            future.result()
        except pn.Cancelled:
            return "cancelled"
        return "done"

    assert set(at_once(work)) == {"cancelled"}
    assert session.run({"x": np.ones(4, np.float32)})["z"].tolist() == [1] * 4


def test_a_run_outlives_its_future_and_its_session(waiting: pn.Program) -> None:
    session = pn.Session(waiting, target="cpu")
    future = session.run_async({"x": np.zeros(4, np.float32)})
    assert entered.wait(60)
    dropped = threading.Event()

    def drop() -> None:
        nonlocal session, future
        del session, future
        gc.collect()
        dropped.set()

    thread = threading.Thread(target=drop)
    thread.start()
    opened.set()
    thread.join(60)
    assert dropped.is_set()


def test_an_operator_may_drop_the_future_that_it_runs_for() -> None:
    held: list[Any] = []
    there = threading.Event()

    def drops(arrays: list[Any], _: dict[str, str]) -> list[Any]:
        assert there.wait(60)
        held.clear()
        gc.collect()
        return [arrays[0]]

    pn.custom_op("threads.drops", same_type, drops)
    session = pn.Session(build(custom("threads.drops")), target="cpu")
    for _ in range(3):
        held.append(session.run_async({"x": np.ones(4, np.float32)}))
        there.set()
        for _ in range(6000):
            try:
                there.clear()
                there.set()
                assert session.run({"x": np.ones(4, np.float32)})["z"].tolist() == [1] * 4
                break
            except pn.InvalidArgument:  # still under way
                time.sleep(0.01)
        else:
            pytest.fail("the run does not end")
        assert not held


def test_a_result_that_could_not_be_made_is_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """graph "g" {
      symbol n 1..8
      input %x : f32[n]
      %y : f32[n] = relu(%x)
      %z : bf16[n] = cast(%x) {to="bf16"}
      output "y" %y
      output "z" %z
    }"""
    future = pn.Session(build(text), target="cpu").run_async({"x": np.array([1, -2], np.float32)})
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "ml_dtypes", None)
        for _ in range(2):
            with pytest.raises(pn.Unsupported, match="ml_dtypes"):
                future.result()
    for _ in range(2):
        result = future.result()
        assert result["y"].tolist() == [1, 0]
        assert result["z"].astype(np.float32).tolist() == [1, -2]


def test_what_describes_a_session_is_read_during_runs(program: pn.Program) -> None:
    session = pn.Session(program, target="cpu", plan_cache=1)
    session.run(feed(1))
    stop = threading.Event()

    def work(i: int) -> int:
        if i == 0:
            try:
                for k in range(ROUNDS * 20):  # each frees what the one before used
                    session.run(feed(1 + k % 40))
            finally:
                stop.set()
            return 1
        seen = 0
        while True:  # once at least, however late this thread's turn comes
            plan = session.plan
            assert plan.nodes_run == len(OPS)
            assert plan.peak_bytes > 0
            assert [row.op for row in session.placement] == OPS
            assert list(session.inputs) == ["x"]
            assert list(session.outputs) == ["c"]
            assert f"nodes {len(OPS)} on cpu" in repr(session)
            seen += 1
            if stop.is_set():
                return seen

    assert all(at_once(work, 4))


def test_profiles_and_runs_of_one_session(program: pn.Program) -> None:
    session = pn.Session(program, target="cpu")

    def work(i: int) -> int:
        served = 0
        for k in range(ROUNDS):
            with contextlib.suppress(pn.InvalidArgument):  # another thread's run
                if i % 2:
                    profile = session.profile(feed(2))
                    assert [e.op for e in profile.events] == OPS
                    assert profile.outputs["c"].shape == (2, 8)
                elif k % 2:
                    assert session.run(feed(3))["c"].shape == (3, 8)
                else:
                    assert session.run_async(feed(4)).result()["c"].shape == (4, 8)
                served += 1
        return served

    assert sum(at_once(work, 6)) > 0


def test_a_state_is_read_whole_while_others_run() -> None:
    session = pn.Session(build(COUNTER), target="cpu")
    stop = threading.Event()
    served = dict.fromkeys(("run", "set", "reset", "read"), 0)  # a call is refused while another thread's is under way
    end = time.monotonic() + 60

    def attempt(role: str) -> None:
        if role == "run":
            session.run({"x": np.ones(2, np.float32)})
        elif role == "reset":
            session.reset_state()
        else:
            total = session.state["total"]
            assert total[0] == total[1]
            if role == "set":
                session.state["total"] = np.full(2, total[0], np.float32)

    def work(i: int) -> None:
        role = list(served)[i]
        tried = 0
        try:
            while not stop.is_set() and time.monotonic() < end:
                with contextlib.suppress(pn.InvalidArgument):
                    attempt(role)
                    served[role] += 1
                tried += 1
                if role == "run" and tried >= ROUNDS * 20 and all(served.values()):
                    break
        finally:
            stop.set()

    at_once(work, 4)
    assert all(served.values()), served


def test_python_operators_of_many_threads() -> None:
    program = build(custom("threads.double"))

    def work(i: int) -> None:
        session = pn.Session(program, target="cpu")
        for k in range(ROUNDS):
            x = np.full(4, i + k, np.float32)
            z = (session.run({"x": x}) if k % 2 else session.run_async({"x": x}).result())["z"]
            assert z.tolist() == [2.0 * (i + k)] * 4

    at_once(work)


def test_devices_are_listed_at_once() -> None:
    first = pn.devices()
    assert all(rows == first for rows in at_once(lambda _: pn.devices(), 4))


# ---- the end of the process -----------------------------------------------------------------------------------------

PRELUDE = """
import atexit, sys, threading, time
import numpy as np, pinnace as pn
def same(inputs, _): return [inputs[0]]
began = threading.Event()
def slow(arrays, _):
    began.set()
    HOW
    return [arrays[0]]
pn.custom_op("exit.slow", same, slow)
TEXT = '''graph "g" {
  input %x : f32[4]
  %y : f32[4] = exit.slow(%x)
  %z : f32[4] = exit.slow(%y)
  output "z" %z
}'''
program = pn.Program(pn._core.Model.parse(TEXT, [], False, pn.types.custom_ops()).build(["cpu"]))
session = pn.Session(program, target="cpu")
x = {"x": np.ones(4, np.float32)}
"""

DAEMON = "threading.Thread(target={}, daemon=True).start(); began.wait(); print('leaves')"
ENDINGS = {
    "run_async": "future = session.run_async(x); began.wait(); print('leaves')",
    "daemon thread": DAEMON.format("lambda: session.run(x)"),
    "daemon thread in a profile": DAEMON.format("lambda: session.profile(x)"),
    "daemon thread that waits": "future = session.run_async(x)\n" + DAEMON.format("future.result"),
    "daemon thread that makes sessions": """
def forever():
    while True:
        pn.Session(program, target="cpu", threads=2)
        began.set()
"""
    + DAEMON.format("forever"),
    "thread that ends": "threading.Thread(target=session.run, args=(x,)).start(); began.wait(); print('leaves')",
    "sys.exit(3)": "future = session.run_async(x); began.wait(); print('leaves', flush=True); sys.exit(3)",
    "an exception": "future = session.run_async(x); began.wait(); print('leaves', flush=True); raise KeyError('x')",
    "a callback at exit": """
def last():
    try:
        session.run_async(x).result()
    finally:
        print('leaves')
atexit.register(last)""",
}
HOW = {
    "sleeps": "time.sleep(0.3)",
    "computes": "sum(range(3_000_000))",
    "for ever": "while True: time.sleep(0.01)",
}
CASES = [(ending, how) for ending in ENDINGS for how in ("sleeps", "computes")]
# Those that are left to themselves after a while; Python itself waits for threads that are no daemons.
CASES += [(ending, "for ever") for ending in ("run_async", "daemon thread", "daemon thread that waits")]


@pytest.mark.parametrize(("ending", "how"), rotating_slice(CASES, 1 / 3, "endings"))
def test_a_process_ends_while_an_operator_runs(ending: str, how: str) -> None:
    code = PRELUDE.replace("HOW", HOW[how]) + ENDINGS[ending]
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert "leaves" in done.stdout, done.stderr
    assert done.returncode == {"sys.exit(3)": 3, "an exception": 1}.get(ending, 0), (done.stdout, done.stderr)
    for word in ("terminate", "Fatal", "Segmentation", "Aborted"):
        assert word not in done.stderr, done.stderr
    assert time.monotonic() - start < 60


SUBINTERPRETER = """
import numpy, pinnace as pn
import _xxsubinterpreters as interpreters
inner = interpreters.create()
interpreters.run_string(inner, '''
try:
    import pinnace._core
except ImportError as error:
    print("refused:", error)
else:
    print("imported")
''')
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the module for subinterpreters has another name")
def test_a_subinterpreter_is_refused() -> None:
    command = [sys.executable, "-c", SUBINTERPRETER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "refused:" in done.stdout, done.stdout
