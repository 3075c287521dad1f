#!/usr/bin/env python3
"""What libneuralnetworks.so costs over a Session: MobileNetV2 through its C interface and imported directly, one ADD in
a reusable execution, and a compilation with and without its cache.

  nnapi.py [--library FILE] [--seconds 4] [--threads 1,2] [--json]

Both run the same weights on the same threads, turn by turn, and are compared with PyTorch's outputs before anything is
timed. Times are medians of a whole call from Python; a call through ctypes is part of them.
"""

from __future__ import annotations

import argparse
import ctypes as C
import functools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "models")]

# At most: of a direct Session's time, and of one call.
OVERHEAD_TARGET = 0.05
ADD_TARGET_US = 20.0

FLOAT32, INT32, TENSOR_FLOAT32, TENSOR_INT32 = 0, 1, 3, 4
ADD, AVERAGE_POOL_2D, CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, RESHAPE = 0, 1, 3, 4, 9, 22
NONE, RELU6 = 0, 3
LOW_POWER, FAST_SINGLE_ANSWER = 0, 1  # the library computes on one thread, or on all


class OperandType(C.Structure):
    _fields_ = (
        ("type", C.c_int32),
        ("count", C.c_uint32),
        ("dims", C.POINTER(C.c_uint32)),
        ("scale", C.c_float),
        ("zero_point", C.c_int32),
    )


class Library:
    def __init__(self, path: Path) -> None:
        self.dll = C.CDLL(str(path))

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.dll, f"ANeuralNetworks{name}")(*arguments)
        if code:
            raise RuntimeError(f"{name} gave result code {code}")

    def make(self, name: str, *arguments: Any) -> C.c_void_p:
        made = C.c_void_p()
        self.call(name, *arguments, C.byref(made))
        return made


class Model:
    """A model under construction. It keeps the constants, which the library does not copy."""

    def __init__(self, library: Library) -> None:
        self.library, self.operands, self.kept = library, 0, list[Any]()
        self.handle = library.make("Model_create")

    def operand(self, kind: int, dims: tuple[int, ...] = ()) -> int:
        list_of = (C.c_uint32 * max(1, len(dims)))(*dims)
        operand = OperandType(kind, len(dims), list_of if dims else None, 0.0, 0)
        self.library.call("Model_addOperand", self.handle, C.byref(operand))
        self.operands += 1
        return self.operands - 1

    def constant(self, value: Any) -> int:
        array = np.asarray(value, order="C")
        tensor = array.ndim > 0
        kind = {"f": (FLOAT32, TENSOR_FLOAT32), "i": (INT32, TENSOR_INT32)}[array.dtype.kind][tensor]
        index = self.operand(kind, array.shape if tensor else ())
        self.kept.append(array)
        data = array.ctypes.data_as(C.c_void_p)
        self.library.call("Model_setOperandValue", self.handle, index, data, C.c_size_t(array.nbytes))
        return index

    def scalars(self, *values: int) -> list[int]:
        return [self.constant(np.int32(v)) for v in values]

    def add(self, code: int, inputs: list[int], dims: tuple[int, ...]) -> int:
        output = self.operand(TENSOR_FLOAT32, dims)
        list_of = (C.c_uint32 * len(inputs))(*inputs)
        out = (C.c_uint32 * 1)(output)
        self.library.call("Model_addOperation", self.handle, code, len(inputs), list_of, 1, out)
        return output

    def finish(self, inputs: list[int], output: int) -> None:
        list_of = (C.c_uint32 * len(inputs))(*inputs)
        out = (C.c_uint32 * 1)(output)
        self.library.call("Model_identifyInputsAndOutputs", self.handle, len(inputs), list_of, 1, out)
        self.library.call("Model_finish", self.handle)

    def compile(self, preference: int, cache: str = "") -> C.c_void_p:
        compilation = self.library.make("Compilation_create", self.handle)
        self.library.call("Compilation_setPreference", compilation, preference)
        if cache:
            self.library.call("Compilation_setCaching", compilation, cache.encode(), (C.c_uint8 * 32)(*range(32)))
        self.library.call("Compilation_finish", compilation)
        return compilation

    def free(self, compilation: C.c_void_p) -> None:
        self.library.dll.ANeuralNetworksCompilation_free(compilation)


class Run:
    """A reusable execution with its memory bound."""

    def __init__(self, library: Library, compilation: C.c_void_p, inputs: list[np.ndarray], output: np.ndarray) -> None:
        self.handle = library.make("Execution_create", compilation)
        self.kept = (inputs, output)
        library.call("Execution_setReusable", self.handle, True)
        for i, array in enumerate(inputs):
            size = C.c_size_t(array.nbytes)
            library.call("Execution_setInput", self.handle, i, None, array.ctypes.data_as(C.c_void_p), size)
        size = C.c_size_t(output.nbytes)
        library.call("Execution_setOutput", self.handle, 0, None, output.ctypes.data_as(C.c_void_p), size)
        self.compute = library.dll.ANeuralNetworksExecution_compute
        self.dll = library.dll

    def __call__(self) -> None:
        if code := self.compute(self.handle):
            raise RuntimeError(f"compute gave result code {code}")

    def free(self) -> None:
        self.dll.ANeuralNetworksExecution_free(self.handle)


class MobileNet:
    """torchvision's MobileNetV2 as an NNAPI model: channels last, batch norms folded into the convolutions."""

    def __init__(self, library: Library, module: Any, size: int) -> None:
        self.model = Model(library)
        self.shape: tuple[int, ...] = (1, size, size, 3)
        self.input = self.at = self.model.operand(TENSOR_FLOAT32, self.shape)
        for block in module.features:
            if hasattr(block, "use_res_connect"):
                self.residual(block)
            else:
                self.convolution(block[0], block[1], RELU6)
        n, h, w, c = self.shape
        pool = self.model.scalars(0, 0, 0, 0, 1, 1, w, h, NONE)
        self.at = self.model.add(AVERAGE_POOL_2D, [self.at, *pool], (n, 1, 1, c))
        linear = module.classifier[-1]
        weights = [self.model.constant(p.detach().numpy()) for p in (linear.weight, linear.bias)]
        self.shape = (n, linear.out_features)
        self.at = self.model.add(FULLY_CONNECTED, [self.at, *weights, *self.model.scalars(NONE)], self.shape)
        self.model.finish([self.input], self.at)

    def residual(self, block: Any) -> None:
        before = self.at
        *activated, last, norm = block.conv
        for layer in activated:
            self.convolution(layer[0], layer[1], RELU6)
        self.convolution(last, norm, NONE)
        if block.use_res_connect:
            self.at = self.model.add(ADD, [before, self.at, *self.model.scalars(NONE)], self.shape)

    def convolution(self, layer: Any, norm: Any, activation: int) -> None:
        scale = (norm.weight / (norm.running_var + norm.eps).sqrt()).detach()
        weight = (layer.weight * scale.reshape(-1, 1, 1, 1)).detach().numpy()
        bias = (norm.bias - norm.running_mean * scale).detach().numpy()
        n, h, w, _ = self.shape
        (stride, _), (pad, _), (kernel, _) = layer.stride, layer.padding, layer.kernel_size
        depthwise = layer.groups > 1
        filter_ = self.model.constant(weight.transpose((1, 2, 3, 0) if depthwise else (0, 2, 3, 1)))
        numbers = [pad, pad, pad, pad, stride, stride, *([1] if depthwise else []), activation]
        inputs = [self.at, filter_, self.model.constant(bias), *self.model.scalars(*numbers)]
        self.shape = (n, (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1, layer.out_channels)
        self.at = self.model.add(DEPTHWISE_CONV_2D if depthwise else CONV_2D, inputs, self.shape)


def turns(runs: list[Callable[[], Any]], seconds: float) -> list[float]:
    """The median time of each in seconds; each has its turns, so that what else runs hits all alike."""
    times: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds
    for run in runs:
        run()
    while time.perf_counter() < end:
        for run, taken in zip(runs, times, strict=True):
            for _ in range(5):
                begin = time.perf_counter()
                run()
                taken.append(time.perf_counter() - begin)
    return [statistics.median(taken) for taken in times]


def compare(name: str, got: np.ndarray, want: np.ndarray) -> None:
    error = float(np.abs(got - want).max() / np.abs(want).max())
    if not error < 1e-3:
        raise RuntimeError(f"{name}: outputs differ from PyTorch's by {error:.2g} of the largest value")


def mobilenet(library: Library, seconds: float, threads: list[int]) -> list[dict[str, Any]]:
    import pinnace as pn
    import torch
    import zoo

    module, inputs = zoo.build("mobilenet_v2")
    (image,) = inputs.values()
    with torch.no_grad():
        want = module(image).numpy()
    program = pn.load(module, (image,)).build()
    net = MobileNet(library, module, image.shape[-1])
    channels_last = np.ascontiguousarray(image.numpy().transpose(0, 2, 3, 1))
    rows = []
    for count in threads:
        # The library has one thread or as many as the process may use processors.
        if count > 1:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
        compilation = net.model.compile(LOW_POWER if count == 1 else FAST_SINGLE_ANSWER)
        output = np.empty(net.shape, np.float32)
        through = Run(library, compilation, [channels_last], output)
        session = pn.Session(program, target="cpu", threads=count)
        name = next(iter(session.inputs))
        feed = {name: image.numpy()}
        through()
        compare("library", output, want)
        compare("session", next(iter(session.run(feed).values())), want)
        ours, direct = turns([through, functools.partial(session.run, feed)], seconds)
        over = ours / direct - 1
        rows.append(
            {
                "what": f"MobileNetV2, {count} threads: over a Session",
                "value": over,
                "target": OVERHEAD_TARGET,
                "detail": f"{ours * 1e3:.2f} ms through the library, {direct * 1e3:.2f} ms in a session",
            }
        )
        through.free()
        net.model.free(compilation)
    with tempfile.TemporaryDirectory() as folder:

        def compiled(cache: str) -> None:
            net.model.free(net.model.compile(FAST_SINGLE_ANSWER, cache))

        compiled(folder)
        plain, cached = turns([lambda: compiled(""), lambda: compiled(folder)], seconds)
    detail = f"{plain * 1e3:.1f} ms without, {cached * 1e3:.1f} ms with a cache"
    rows.append(
        {"what": "compilation with a cache: of one without", "value": cached / plain, "target": 1.0, "detail": detail}
    )
    return rows


def one_add(library: Library, seconds: float) -> dict[str, Any]:
    model = Model(library)
    x, y = model.operand(TENSOR_FLOAT32, (8,)), model.operand(TENSOR_FLOAT32, (8,))
    z = model.add(ADD, [x, y, *model.scalars(NONE)], (8,))
    model.finish([x, y], z)
    a, b = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    sum_ = np.zeros(8, np.float32)
    run = Run(library, model.compile(FAST_SINGLE_ANSWER), [a, b], sum_)
    run()
    compare("ADD", sum_, a + b)

    def hundred() -> None:
        for _ in range(100):
            run()

    (taken,) = turns([hundred], seconds)
    return {"what": "one ADD, microseconds a call", "value": taken * 1e4, "target": ADD_TARGET_US, "detail": ""}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--library", type=Path, default=ROOT / "build/release/libneuralnetworks.so")
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement")
    parser.add_argument("--threads", default="1,2", help="1 first: more cannot be taken back")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    library = Library(args.library)
    rows = [one_add(library, args.seconds)]
    rows += mobilenet(library, args.seconds, [int(n) for n in args.threads.split(",")])
    if args.json:
        print(json.dumps(rows))
        return 0
    for row in rows:
        met = "met" if row["value"] <= row["target"] else "missed"
        print(f"{row['what']:46} {row['value']:8.3f}  (at most {row['target']:g}: {met})  {row['detail']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
