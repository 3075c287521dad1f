"""client= of Int8 and compare(): two worker processes give the bytes of one process, however the data set is divided;
samples, metrics, workers and clients that fail are typed errors.
"""

from __future__ import annotations

import functools
import gc
import itertools
import os
import resource
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.bag
import distributed
import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import _core, cluster
from pinnace.agreement import agreement
from pinnace.quantize import calibration, on_workers
from pinnace.quantize.build import Quantizer
from pinnace.quantize.samples import Kept, samples_of
from pinnace.sources.pinnace_program import ProgramSource
from pinnace.types import custom_ops
from pinnace.verify import on_workers as compared_on_workers
from pinnace.verify.error_details import WorstErrors
from pinnace.verify.verification import Verification
from quantize_test import Net

GENERATOR = np.random.default_rng(29)
Sample = dict[str, Any]
# Workers get functions of this file with their code: that they need not import torch takes seconds off.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of two processes with one thread each. A task whose workers die twice is given up."""
    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.worker.profile.enabled": False}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as processes,
        distributed.Client(processes) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def model() -> pn.Model:
    return pn.load(Net().eval(), torch.zeros(1, 3, 16, 16))


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """The first channel grows, so that no two parts of the data set have the same ranges."""
    made = [GENERATOR.standard_normal((1, 3, 16, 16)).astype(np.float32) for _ in range(14)]
    return [{"x": x * np.float32(1 + i / 7)} for i, x in enumerate(made)]


def in_parts(samples: list[Any], count: int) -> list[list[Any]]:
    edges = [i * len(samples) // count for i in range(count + 1)]
    return [samples[a:b] for a, b in itertools.pairwise(edges)]


def delayed(samples: list[Any], count: int) -> list[Any]:
    return [dask.delayed(part) for part in in_parts(samples, count)]


def facts(program: pn.Program) -> tuple[bytes, Any]:
    """The file without its report, which has nanoseconds, and the report without them."""
    report = program.quantization
    assert report is not None
    rows = [(r.node, r.kept_float, r.reason, r.error, r.sensitivity, r.bytes_after) for r in report.rows]
    found = (rows, report.ranges, report.samples, report.errors, report.score, report.said)
    return program.with_metadata({"quantization": ""}).to_bytes(), found


def signed_mean(run: Any) -> float:
    """A metric that falls as outputs move: of a few fixed inputs."""
    random = np.random.default_rng(3)
    total = 0.0
    for _ in range(3):
        y = next(iter(run({"x": random.standard_normal((1, 3, 16, 16)).astype(np.float32)}).values()))
        total += float(np.abs(y).astype(np.float64).mean())
    return round(total, 12)


@pytest.fixture(scope="module")
def here(model: pn.Model, samples: list[Sample]) -> tuple[bytes, Any]:
    """Without a client; some layers stay in float."""
    found = facts(model.build(quantize=pn.Int8(calibration=samples, max_drop=0.02)))
    assert any(reason.startswith("max_drop") for _, _, reason, *_ in found[1][0])
    return found


@pytest.mark.parametrize("count", [1, 2, 7])
def test_partitions_give_the_same_bytes(
    client: Any, model: pn.Model, samples: list[Sample], here: tuple[bytes, Any], count: int
) -> None:
    options = pn.Int8(calibration=delayed(samples, count), max_drop=0.02, client=client)
    assert facts(model.build(quantize=options)) == here


@pytest.mark.parametrize("count", [1, 2, 7])
def test_chunks_give_the_same_bytes(
    client: Any,
    model: pn.Model,
    samples: list[Sample],
    here: tuple[bytes, Any],
    count: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(on_workers, "SLICE_CALLS", count)
    options = pn.Int8(calibration=iter(samples), max_drop=0.02, client=client)
    assert facts(model.build(quantize=options)) == here


def test_other_forms_of_a_data_set(client: Any, model: pn.Model, samples: list[Sample]) -> None:
    plain = facts(model.build(quantize=pn.Int8(calibration=samples, bias_correction=False)))
    rows = [s["x"] for s in samples]
    batches = [np.concatenate(part) for part in in_parts(rows, 2)]  # each is several calls
    futures = client.scatter(in_parts(samples, 3))
    empty = [*delayed([], 9), *delayed(samples, 2)]  # the first samples are past the partitions that are looked at
    for data in (
        dask.bag.from_sequence(samples, npartitions=4),
        dask.bag.from_sequence(rows, npartitions=3).map(lambda x: {"x": x}),
        dask.delayed(batches),
        futures,
        empty,
        batches,
    ):
        program = model.build(quantize=pn.Int8(calibration=data, bias_correction=False, client=client))
        assert facts(program) == plain


def test_threads_give_the_same_statistics(model: pn.Model, samples: list[Sample]) -> None:
    work = Quantizer(model._core, pn.Int8(calibration=samples), {})

    def gathered(threads: int) -> dict[str, bytes]:
        calls = samples_of(samples, work.float_program.inputs, {})
        done = calibration.calibrate(work.float_program, work.values, calls, False, threads)
        return {name: s.to_bytes() for name, s in done.statistics.items()}

    assert gathered(1) == gathered(2)


def test_a_metric_runs_on_workers(client: Any, model: pn.Model, samples: list[Sample]) -> None:
    found = []
    for given in (None, client):
        options = pn.Int8(calibration=samples, metric=signed_mean, max_drop=0.0, client=given)
        found.append(facts(model.build(quantize=options)))
    assert found[0] == found[1]
    assert found[0][1][4] is not None
    me = os.getpid()

    def elsewhere(run: Any) -> float:
        return float(os.getpid() != me)

    options = pn.Int8(calibration=samples, metric=elsewhere, max_drop=0.0, client=client)
    report = model.build(quantize=options).quantization
    assert report is not None
    assert report.score == (1.0, 1.0)


def test_the_first_calls_are_the_same_in_any_parts() -> None:
    large = [np.zeros(size << 20, np.int8) for size in (40, 20, 30, 1)]
    whole = Kept()
    for array in large:
        whole.offer([array])
    assert [k[0].size >> 20 for k in whole.samples] == [40, 20]  # not the last one, before which one had no room
    parts = Kept()
    for part in (large[:1], large[1:]):
        own = Kept()
        for array in part:
            own.offer([array])
        for (array,) in own.samples:
            parts.offer([array])
    assert [k[0].size for k in parts.samples] == [k[0].size for k in whole.samples]


# ---- what fails


def with_nan(samples: list[Sample], at: int) -> list[Sample]:
    wrong = samples[at]["x"].copy()
    wrong[0, 1, 2, 3] = np.nan
    return [*samples[:at], {"x": wrong}, *samples[at + 1 :]]


def test_a_sample_that_is_refused(client: Any, model: pn.Model, samples: list[Sample]) -> None:
    def refused(data: Any, part: str) -> None:
        with pytest.raises(pn.InvalidArgument, match=part):
            model.build(quantize=pn.Int8(calibration=data, client=client), verify=False)

    nan = with_nan(with_nan(samples, 5), 12)
    for data in (nan, *(delayed(nan, count) for count in (1, 2, 7))):
        refused(data, "^calibration sample 5: .*NaN")
    other = [*samples[:9], {"y": samples[9]["x"]}]
    for data in (other, delayed(other, 2)):
        refused(data, "^calibration sample 9: inputs: missing 'x'; unknown 'y'")
    refused(delayed([*nan[:6], *other[6:]], 3), "^calibration sample 5")
    refused([*nan[:6], *other[6:]], "^calibration sample 5")
    refused([], "calibration has no sample")
    refused(delayed([], 2), "calibration has no sample")
    missing = dask.delayed(open)("/nowhere/at/all")
    refused([dask.delayed(samples[:4]), missing], "partition 1 of 2, samples from 4 on cannot be read: FileNotFound")
    refused([dask.delayed(3)], "iterable of samples|int")


def test_metrics_that_fail(client: Any, model: pn.Model, samples: list[Sample]) -> None:
    def refused(metric: Any, part: str) -> None:
        with pytest.raises(pn.InvalidArgument, match=part):
            model.build(quantize=pn.Int8(calibration=samples, metric=metric, max_drop=1, client=client), verify=False)

    lock = threading.Lock()

    def locked(run: Any) -> float:
        with lock:
            return 1.0

    class Odd(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__("no pickle of it can be read")

    def odd(run: Any) -> float:
        raise Odd(1, 2)

    refused(lambda run: 1 / 0, "accuracy control, the float program: metric failed: ZeroDivisionError")
    refused(lambda run: float("nan"), "the float program: metric gave NaN")
    refused(odd, "metric failed: Odd: no pickle")
    refused(locked, "the metric cannot be sent to the workers, it cannot be pickled: TypeError")


def killed(part: list[Any], marker: str) -> list[Any]:
    """Ends its worker where a file is, and takes the file away: once. With no name, each time."""
    if not marker or Path(marker).exists():
        if marker:
            Path(marker).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def test_a_worker_that_is_killed(client: Any, model: pn.Model, samples: list[Sample], tmp_path: Path) -> None:
    plain = facts(model.build(quantize=pn.Int8(calibration=samples)))
    marker = tmp_path / "once"
    marker.touch()
    parts = in_parts(samples, 4)
    ending = dask.delayed(killed, pure=False)
    data = [dask.delayed(parts[0]), ending(parts[1], str(marker)), *map(dask.delayed, parts[2:])]
    assert facts(model.build(quantize=pn.Int8(calibration=data, client=client))) == plain
    assert not marker.exists()
    data[1] = ending(parts[1], "")
    # Dask counts an end against each task that the worker had, so that a partition beside it may be the one named.
    with pytest.raises(pn.DeviceLost, match=r"partition [0-3] of 4, samples from \d+ on: 2 workers that"):
        model.build(quantize=pn.Int8(calibration=data, client=client))
    client.wait_for_workers(2, timeout=30)


def ending(run: Any, marker: str) -> float:
    killed([], marker)
    return 1.0


def test_a_worker_that_is_killed_in_a_metric(
    client: Any, model: pn.Model, samples: list[Sample], tmp_path: Path
) -> None:
    def built(metric: Any) -> pn.Program:
        return model.build(quantize=pn.Int8(calibration=samples[:4], metric=metric, max_drop=1, client=client))

    marker = tmp_path / "once"
    plain = facts(built(functools.partial(ending, marker=str(marker))))
    marker.touch()
    assert facts(built(functools.partial(ending, marker=str(marker)))) == plain
    assert not marker.exists()
    with pytest.raises(pn.DeviceLost, match=r"accuracy control, the float program: 2 workers that were given"):
        built(functools.partial(ending, marker=""))
    client.wait_for_workers(2, timeout=30)


def bounded(limit: int) -> None:
    """The largest file that this process may write."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def test_a_worker_whose_disk_is_full(client: Any, model: pn.Model, samples: list[Sample]) -> None:
    options = pn.Int8(calibration=samples[:2], max_drop=1e-3, client=client)
    whole = facts(model.build(quantize=options, verify=False))
    client.run(bounded, 1000)
    try:
        with pytest.raises(pn.FileError, match="cannot write the float program, on a worker: File too large"):
            model.build(quantize=options, verify=False)
    finally:
        client.run(bounded, resource.RLIM_INFINITY)
    assert facts(model.build(quantize=options, verify=False)) == whole


def slow(run: Any) -> float:
    time.sleep(3)
    return 1.0


def metrics(client: Any) -> list[str]:
    """Those that the scheduler knows of, with their states and who wants them."""

    def known(dask_scheduler: Any) -> list[str]:
        tasks = dask_scheduler.tasks.values()
        return [f"{t.key} {t.state} {t.who_wants}" for t in tasks if str(t.key).startswith("pinnace-score")]

    found: list[str] = client.run_on_scheduler(known)
    return found


def no_metrics(client: Any) -> bool:
    """Futures that a caught error's traceback holds are released with it, at a collection."""
    gc.collect()
    return not metrics(client)


def waited(condition: Callable[[], bool]) -> bool:
    """Whether it comes true within half a minute."""
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def test_a_call_that_is_ended(client: Any, model: pn.Model, samples: list[Sample]) -> None:
    options = pn.Int8(calibration=samples[:2], metric=slow, max_drop=1, client=client)
    token = pn.CancelToken()
    endings: list[tuple[Any, Callable[[], None]]] = [
        (pn.Cancelled, token.cancel),
        (KeyboardInterrupt, lambda: os.kill(os.getpid(), signal.SIGINT)),
    ]
    for error, end in endings:
        assert waited(lambda: no_metrics(client)), f"of tests before: {metrics(client)}"

        def once_metrics_run(end: Callable[[], None] = end) -> None:
            waited(lambda: bool(metrics(client)))
            end()

        watching = threading.Thread(target=once_metrics_run)
        watching.start()
        with pytest.raises(error):
            model.build(quantize=options, verify=False, cancel=token)
        watching.join()
        assert waited(lambda: no_metrics(client)), f"after {error.__name__}: {metrics(client)}"
        token = pn.CancelToken()


def test_clients_that_are_refused(client: Any, samples: list[Sample], model: pn.Model) -> None:
    for wrong, part in [("tcp://here:1", "str 'tcp"), (3, "int 3"), (distributed.Client, "the class Client")]:
        with pytest.raises(pn.InvalidArgument, match=f"client must be a dask.distributed.Client, is {part}"):
            pn.Int8(calibration=samples, client=wrong)
    for data in (delayed(samples, 2), dask.delayed(samples)):
        with pytest.raises(pn.InvalidArgument, match="client= must say"):
            pn.Int8(calibration=data)
    with pytest.raises(pn.InvalidArgument, match="1 of 2 items are delayed"):
        pn.Int8(calibration=[samples[0], dask.delayed(samples)], client=client)
    closed = distributed.Client(client.scheduler.address)
    options = pn.Int8(calibration=samples, client=closed)
    meanwhile = pn.Int8(calibration=(closing(closed, s) for s in samples), client=closed)
    with pytest.raises(pn.DeviceLost, match="lost its cluster"):
        model.build(quantize=meanwhile)
    with pytest.raises(pn.InvalidArgument, match="client is closed, must be running"):
        model.build(quantize=options)


def closing(client: Any, sample: Sample) -> Sample:
    client.close()
    return sample


def test_without_the_package(client: Any, samples: list[Sample], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(pn.Unsupported, match=r"pip install pinnace\[dask\]"):
        cluster.Cluster(client)


def register_same() -> None:
    import pinnace

    if "dask.same" not in pinnace.types.custom_op_names():
        pinnace.custom_op(
            "dask.same",
            lambda inputs, attributes: [(inputs[0][0], inputs[0][1])],
            lambda arrays, attributes: [arrays[0]],
        )


def test_custom_operators_are_registered_on_each_worker(client: Any) -> None:
    register_same()
    text = """graph "g" {
      input %x : f32[2, 4]
      const %w : f32[4, 4] = {1,0,0,0, 0,2,0,0, 0,0,1,0, 0,0,0,1}
      %s : f32[2, 4] = dask.same(%x)
      %y : f32[2, 4] = mat_mul(%s, %w)
      output "y" %y
    }"""
    ops = [op for op in custom_ops() if op.name == "dask.same"]
    work = pn.Model(_core.Model.parse(text, ops=ops), None, [], "custom", [], dict)
    data = [GENERATOR.standard_normal((2, 4)).astype(np.float32) for _ in range(4)]
    plain = facts(work.build(quantize=pn.Int8(calibration=data), verify=False))
    options = pn.Int8(calibration=data, client=client)
    with pytest.raises(pn.Unsupported, match=r"samples 0 to 3: .*dask\.same"):
        work.build(quantize=options, verify=False)
    client.run(register_same)
    assert facts(work.build(quantize=options, verify=False)) == plain


def test_a_model_with_states_is_refused(client: Any) -> None:
    text = """graph "g" {
      input %x : f32[1, 4]
      state "sum" %before : f32[1, 4] next %after = {0, 0, 0, 0}
      const %w : f32[4, 4] = {1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,0,1}
      %after : f32[1, 4] = add(%x, %before)
      %y : f32[1, 4] = mat_mul(%after, %w)
      output "y" %y
    }"""
    work = pn.Model(_core.Model.parse(text), None, [], "states", [], dict)
    data = [np.ones((1, 4), np.float32)]
    assert work.build(quantize=pn.Int8(calibration=data), verify=False).quantization is not None
    with pytest.raises(pn.Unsupported, match="no model with states \\('sum'\\)"):
        work.build(quantize=pn.Int8(calibration=data, client=client), verify=False)


def test_statistics_of_a_worker_are_checked() -> None:
    done = calibration.Calibration({"x": _core.ValueStatistics()})
    for wrong in (b"", b"nonsense", zlib.compress(b"\x05" + bytes(7) + b"short")):
        with pytest.raises(pn.CorruptFile):
            on_workers._merge(done, on_workers.Part(1, 1, wrong))


def test_dasks_bar(client: Any, model: pn.Model, samples: list[Sample], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for on a terminal; what it draws, and when, is Dask's."""
    drawn: list[int] = []
    monkeypatch.setattr(distributed, "progress", lambda futures, notebook: drawn.append(len(futures)))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for shown in (False, True):
        model.build(quantize=pn.Int8(calibration=delayed(samples, 7), client=client, progress=shown))
        assert waited(lambda: bool(drawn)) if shown else not drawn
    assert drawn == [7]


# ---- compare()


@pytest.fixture(scope="module")
def program(model: pn.Model) -> pn.Program:
    return model.build()


@pytest.fixture(scope="module")
def apart() -> pn.Program:
    """Another model by a little: most rows differ, and each input's differs by another amount."""
    net = Net().eval()
    with torch.no_grad():
        net.last.weight.mul_(1.01)
        net.gate[1].get_parameter("weight").mul_(1.02)
        net.first[0].get_parameter("weight").mul_(1.001)
    return pn.load(net, torch.zeros(1, 3, 16, 16)).build()


def compared(result: pn.Comparison) -> Any:
    return (
        *(result.rows, result.targets, result.unavailable, result.nodes, result.inconclusive, result.details),
        result.graph,
    )


def test_inputs_in_any_parts_compare_equal(
    client: Any, program: pn.Program, apart: pn.Program, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    def on(inputs: Any, given: Any = client) -> pn.Comparison:
        return pn.compare(program, apart, inputs, precision=("fp32", "bf16"), client=given)

    one = on(delayed(samples, 1))
    assert not one.ok
    assert len(one.details) >= 6
    assert compared(on([*delayed([], 1), *delayed(samples, 2)])) == compared(one)
    assert compared(on(delayed(samples, 7))) == compared(one)
    for most in (1, 5):
        monkeypatch.setattr(compared_on_workers, "SLICE_INPUTS", most)
        again = on(iter(samples))
        assert compared(again) == compared(one)
    assert "… 11 more" in again.about["made by"]
    assert "client=<Client>" in again.about["made by"]
    assert compared(on(samples, None)) == compared(one)
    assert compared(on(samples[0])) == compared(on([samples[0]]))


def test_the_first_input_of_all_has_a_second_one(
    client: Any, program: pn.Program, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds: list[bool] = []
    results = cluster.Cluster.results

    def noted(self: cluster.Cluster, function: Any, shared: Any, jobs: Any, title: str) -> Any:
        jobs = list(jobs)
        seconds.extend(job.arguments[1] for job in jobs if function is compared_on_workers.compare_part)
        return results(self, function, shared, jobs, title)

    monkeypatch.setattr(cluster.Cluster, "results", noted)
    monkeypatch.setattr(compared_on_workers, "SLICE_INPUTS", 2)
    pn.compare(program, program, samples[:5], client=client)
    assert seconds == [True, False, False]
    seconds.clear()
    pn.compare(program, program, [*delayed([], 1), *delayed(samples[:4], 2)], client=client)
    assert seconds == [False, True, False]
    inputs = [[s["x"]] for s in samples[:2]]
    for second, steps in ((True, [2, 1]), (False, [1, 1])):
        work = Verification(program, ProgramSource(program), inputs, second=second)
        assert [len(reference.steps) for reference in work.referred()] == steps


def test_equal_errors_are_the_earlier_inputs() -> None:
    want = np.ones(4, np.float32)
    looks = [
        (number, name, (number * 7 + place * 5) % 11)
        for number in range(6)
        for place, name in enumerate("abcdefghijkl")
    ]

    def seen(parts: list[list[int]]) -> Any:
        whole, before = WorstErrors(), 0
        for numbers in parts:
            own = WorstErrors()
            for number, name, size in looks:
                if number in numbers:
                    own.place = (numbers.index(number), 0)
                    got = want + np.float32(0.01 * (1 + size // 6)) * np.eye(4, dtype=np.float32)[number % 4]
                    own.look("cpu", name, False, agreement(got, want), got, want)
            own.shift(before)
            before += len(numbers)
            whole.merge(own)
        return whole.details({})

    one = seen([[0, 1, 2, 3, 4, 5]])
    assert len(one) == 8
    assert len({detail.worst[0][0][0] for detail in one}) > 1
    for parts in ([[0], [1, 2], [3, 4, 5]], [[0, 1, 2, 3, 4], [5]], [[n] for n in range(6)]):
        assert seen(parts) == one


@pytest.mark.rotating
def test_outputs_that_do_not_move_are_named(client: Any, program: pn.Program, samples: list[Sample]) -> None:
    net = Net().eval()
    with torch.no_grad():
        net.last.weight.zero_()
    still = pn.load(net, torch.zeros(1, 3, 16, 16)).build()
    doubts = pn.compare(still, net, samples, client=client).inconclusive
    assert doubts == pn.compare(still, net, samples).inconclusive
    assert len(doubts) == 1
    assert pn.compare(program, program, samples, client=client).inconclusive == []


def test_what_compare_refuses(client: Any, program: pn.Program, samples: list[Sample]) -> None:
    def refused(inputs: Any, part: str, reference: Any = program, given: Any = client) -> None:
        with pytest.raises(pn.InvalidArgument, match=part):
            pn.compare(program, reference, inputs, client=given)

    wrong = [*samples[:9], {"y": samples[9]["x"]}]
    refused(wrong, "compare: input 9: inputs: missing 'x'")
    refused(wrong, "compare: input 9: inputs: missing 'x'", given=None)
    refused(delayed(wrong, 3), "compare: input 9: inputs: missing 'x'")
    refused([*samples[:9], 3], "compare: input 9: it must be a dict")
    refused([3], "compare: input 0: it must be a dict")
    refused([], "at least one dict")
    refused(delayed([], 2), "at least one dict")
    refused(delayed(samples, 2), "client= must say", given=None)
    refused(samples, "client must be a dask", given="here")
    refused([{"x": samples[0]["x"][:, :2]}], "^compare, input 0: ")
    refused(samples, "the reference cannot be sent to the workers", threading.Lock())
    with pytest.raises(pn.Error, match="nowhere"):
        pn.compare(program, "/nowhere/at/all.pnc", samples, client=client)
