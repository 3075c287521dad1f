"""The onnx package's own backend tests, run twice: by importer and reference code alone, and as a user runs a model.

The second way is load (with every pass), build, and a session on the CPU. Both must give the expected values. Cases run
in worker processes: a crash ends the worker and is recorded against the case; a new worker goes on.
As a program it runs cases and prints counts: `python onnx_backend.py [--kind node] [--match test_conv] [--verbose]`.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import itertools
import json
import os
import pathlib
import selectors
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from typing import Any

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "real")
EXPECTED_REFUSALS = pathlib.Path(__file__).with_name("onnx_expected_refusals.txt")
WORKER = pathlib.Path(__file__)
# A case is a few nodes on small tensors, or a "light" network on one image; a worker silent for this long hangs.
SECONDS_PER_CASE = 120
# Beside that for the first one, until the worker has imported what it needs: in emulation on a busy machine a minute.
SECONDS_TO_START = 240


# Cases whose expected values are not what the operator's text says, or what other engines do; they must differ.
KNOWN_DIFFERENCES = {
    "test_resize_downsample_scales_linear_align_corners": "expects corners of the size before rounding, 2.4",
    "test_resize_downsample_scales_cubic_align_corners": "as above",
}
# Expected values that carry rounding errors of single precision where the true one is 0; ours are rounded once.
ABSOLUTE_TOLERANCE = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}
# Expected values of short floats were rounded after every step, ours once: two units in the last place.
SHORT_FLOAT_RTOL = {"float16": 2 * 2**-10, "bfloat16": 2 * 2**-7}


@dataclass
class Outcome:
    kind: str
    name: str
    result: str  # pass, refused, fail, crash
    operator: str = ""  # the first operator that is refused, else the case's first operator
    text: str = ""
    seconds: float = 0  # processor time of the slowest data set in a session, its making included


_cases: dict[str, dict[str, Any]] = {}


def load_cases(kind: str) -> dict[str, Any]:
    """name -> TestCase of the onnx package, for one kind."""
    if kind not in _cases:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # the package provokes overflow on purpose while it makes its cases
            from onnx.backend.test.loader import load_model_tests

            _cases[kind] = {case.name: case for case in load_model_tests(kind=kind)}
    return _cases[kind]


def _model_of(case: Any) -> tuple[Any, pathlib.Path | None, list[Any]]:
    """The model, its path if it has one, and the data sets as (inputs, outputs) of arrays or protos."""
    import onnx
    from onnx import numpy_helper

    if case.model is not None:
        return case.model, None, case.data_sets
    folder = pathlib.Path(case.model_dir) if case.model_dir else None
    if folder is None:  # the "light" networks: the model is in the package, its data are made with it
        path = pathlib.Path(onnx.__file__).parent.parent / case.url
        stem = path.with_suffix("")
        return onnx.load(path), path, [(_light_inputs(path), [numpy_helper.to_array(_tensor(f"{stem}_output_0.pb"))])]
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        inputs = [_tensor(data / f"input_{i}.pb") for i in range(len(list(data.glob("input_*.pb"))))]
        outputs = [_tensor(data / f"output_{i}.pb") for i in range(len(list(data.glob("output_*.pb"))))]
        sets.append((inputs, outputs))
    return onnx.load(folder / "model.onnx"), folder / "model.onnx", sets


def _tensor(path: str | pathlib.Path) -> Any:
    import onnx

    tensor = onnx.TensorProto()
    tensor.ParseFromString(pathlib.Path(path).read_bytes())
    return tensor


def _light_inputs(path: pathlib.Path) -> list[Any]:
    """As onnx.backend.test.runner makes them: 0, 1, 2, … in the shape of each input, divided by their number."""
    import numpy as np
    import onnx

    model = onnx.load(path)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = []
    for value in model.graph.input:
        if value.name in constants:
            continue
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        count = int(np.prod(shape))
        inputs.append((np.arange(count).astype(np.float32) / count).reshape(shape))
    return inputs


def _array(value: Any) -> Any:
    """An array from what the loader gives; None for sequences, optionals and strings."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "OUSc":
        return np.asarray(value)
    return None


def _same(expected: Any, actual: Any, rtol: float, atol: float) -> str:
    """Empty, or how the arrays differ."""
    import numpy as np

    if expected.shape != actual.shape:
        return f"shape is {actual.shape}, expected {expected.shape}"
    if expected.dtype != actual.dtype:
        return f"dtype is {actual.dtype}, expected {expected.dtype}"
    if expected.dtype.kind in "biu" or expected.dtype.name in ("int4", "uint4"):
        wrong = np.asarray(expected != actual)
        return f"{int(wrong.sum())} of {wrong.size} elements differ" if wrong.any() else ""
    rtol = max(rtol, SHORT_FLOAT_RTOL.get(expected.dtype.name, 0))
    wide_expected, wide_actual = expected.astype(np.float64), actual.astype(np.float64)
    try:
        np.testing.assert_allclose(wide_actual, wide_expected, rtol=rtol, atol=atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""


def _run(program: Any, arrays: list[Any]) -> list[Any]:
    """Outputs in order, of a new session on the CPU: what an earlier data set left behind must not help."""
    import pinnace as pn

    session = pn.Session(program, target="cpu")
    return list(session.run(dict(zip(session.inputs, arrays, strict=True))).values())


def run_case(kind: str, name: str) -> Outcome:
    """One case, in this process."""
    import onnx
    import pinnace as pn
    from pinnace import _core

    case = load_cases(kind)[name]
    model, path, data_sets = _model_of(case)
    first = model.graph.node[0].op_type if model.graph.node else ""
    with tempfile.TemporaryDirectory() as folder:
        if path is None:
            path = pathlib.Path(folder) / "model.onnx"
            onnx.save(model, path)
        try:
            program = pn.load(path).build(verify=False)
            seconds = 0.0
            for inputs, outputs in data_sets:
                arrays = [_array(value) for value in inputs]
                expected = [_array(value) for value in outputs]
                if any(array is None for array in arrays + expected):
                    return Outcome(kind, name, "refused", first, "the case's data are not all tensors of numbers")
                atol = max(case.atol, ABSOLUTE_TOLERANCE.get(name, 0))
                ways = {"reference": _core.run_model_reference(str(path), [arrays])[0]}
                began = time.process_time()
                ways["session"] = _run(program, arrays)
                seconds = max(seconds, time.process_time() - began)
                for (way, actual), i in itertools.product(ways.items(), range(len(expected))):
                    difference = _same(expected[i], actual[i], case.rtol, atol)
                    if name in KNOWN_DIFFERENCES:
                        difference = "" if difference else "is listed as a known difference, and is none"
                    if difference:
                        return Outcome(kind, name, "fail", first, f"{way}: output {i}: {difference}")
        except (pn.ConversionError, pn.Unsupported) as error:
            nodes = list(error.nodes)
            # A refusal has to say what it refuses: the operator is its proof.
            operator = nodes[0].op.removeprefix("ai.onnx.") if nodes else first
            named = nodes or isinstance(error, pn.Unsupported)
            return Outcome(kind, name, "refused" if named else "fail", operator, str(error))
        except pn.Error as error:
            return Outcome(kind, name, "fail", first, f"{type(error).__name__}: {error}")
    return Outcome(kind, name, "pass", first, seconds=seconds)


def _worker() -> None:
    """Reads [kind, name] lines, writes a line before and after each case."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    for line in sys.stdin:
        kind, name = json.loads(line)
        try:
            outcome = run_case(kind, name)
        except Exception as error:  # a fault of the runner, or an error without a type: only this case fails
            outcome = Outcome(kind, name, "fail", "", f"{type(error).__name__}: {error}")
        out.write(json.dumps(outcome.__dict__) + "\n")


def run_cases(cases: list[tuple[str, str]]) -> list[Outcome]:
    """Runs (kind, name) pairs, each in a worker process that outlives none of their crashes."""
    outcomes: list[Outcome] = []
    left = list(cases)
    while left:
        worker = subprocess.Popen(
            [sys.executable, str(WORKER), "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert worker.stdin
        assert worker.stdout
        selector = selectors.DefaultSelector()
        selector.register(worker.stdout, selectors.EVENT_READ)
        patience = SECONDS_PER_CASE + SECONDS_TO_START
        while left:
            kind, name = left[0]
            with contextlib.suppress(BrokenPipeError):  # a worker that has died is seen by its silence below
                worker.stdin.write(json.dumps([kind, name]) + "\n")
                worker.stdin.flush()
            line = worker.stdout.readline() if selector.select(patience) else ""
            patience = SECONDS_PER_CASE
            left.pop(0)
            if line:
                outcomes.append(Outcome(**json.loads(line)))
                continue
            worker.kill()
            outcomes.append(Outcome(kind, name, "crash", "", f"the worker ended with status {worker.wait()}"))
            break
        selector.close()
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.close()
        worker.stdout.close()
        worker.wait()
    return outcomes


def expected_refusals() -> dict[str, str]:
    """Case name -> operator, from the list that may only shrink: lines `Operator: test_name test_name …`."""
    expected = {}
    for line in EXPECTED_REFUSALS.read_text().splitlines():
        if line and not line.startswith("#"):
            operator, _, names = line.partition(":")
            expected.update(dict.fromkeys(names.split(), operator))
    return expected


def print_counts(outcomes: list[Outcome]) -> None:
    by_kind = collections.Counter((o.kind, o.result) for o in outcomes)
    for kind in KINDS:
        counts = {r: by_kind[kind, r] for r in ("pass", "refused", "fail", "crash")}
        if any(counts.values()):
            print(f"{kind:18}" + "".join(f" {n:5} {r}" for r, n in counts.items()))
    slowest = max(outcomes, key=lambda o: o.seconds, default=Outcome("", "", ""))
    print(f"slowest in a session: {slowest.name}, {slowest.seconds:.2f} s of processor time")
    by_operator: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for o in outcomes:
        if o.result != "pass":
            by_operator[o.operator][o.result] += 1
    for operator, counts in sorted(by_operator.items()):
        print(f"  {operator:28}" + "".join(f" {n} {r}" for r, n in sorted(counts.items())))


def write_refusals(outcomes: list[Outcome]) -> None:
    by_operator: dict[str, list[str]] = collections.defaultdict(list)
    for o in outcomes:
        if o.result == "refused":
            by_operator[o.operator].append(o.name)
    lines = [
        "# Backend cases of the onnx package that pinnace refuses, by operator. May only shrink.\n",
        "# If and Squeeze: the expanded affine grids squeeze a dimension that an input's contents give, and only\n",
        "# where it is 1; the rank of all that follows is known only at run time, whatever the inputs' shapes are.\n",
        "# input, output: sequences, optional values and text, which no graph of pinnace takes or gives.\n",
    ]
    for operator, names in sorted(by_operator.items()):
        lines.append(f"{operator}: {' '.join(sorted(names))}\n")
    EXPECTED_REFUSALS.write_text("".join(lines))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--match", default="")
    parser.add_argument("--verbose", action="store_true", help="print the reason of every case that does not pass")
    parser.add_argument("--write-refusals", action="store_true", help="write the list anew from this run")
    arguments = parser.parse_args()
    if arguments.worker:
        _worker()
        return 0
    cases = [(k, n) for k in arguments.kind or KINDS for n in load_cases(k) if arguments.match in n]
    outcomes = run_cases(cases)
    if arguments.verbose:
        for o in outcomes:
            if o.result != "pass":
                print(f"{o.result:8} {o.name}: {o.operator}: {o.text}")
    print_counts(outcomes)
    if arguments.write_refusals:
        write_refusals(outcomes)
    return int(any(o.result in ("fail", "crash") for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
