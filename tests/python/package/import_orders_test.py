"""torch, onnx and pinnace in one process, imported in every order: each brings protobuf or its generated classes along.

PINNACE_IMPORT_FROM names a folder whose pinnace is meant instead of the tree's: scripts/wheel.sh tests the wheel so.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from slices import rotating_slice

PACKAGES = os.environ.get("PINNACE_IMPORT_FROM") or str(Path(__file__).resolve().parents[3] / "python")
ORDERS = [",".join(order) for order in itertools.permutations(["torch", "onnx", "pinnace"])]
# torch.export takes as long as all the rest: a share of the orders in a short run.
EXPORTING = rotating_slice(ORDERS, 1 / 3, "import orders")

# What follows the imports uses each package's protobuf: onnx writes and checks a model, torch exports one, pinnace
# reads both and onnxruntime runs the former.
CODE = """
import pathlib, sys
import numpy
folder, packages = sys.argv[1:3]
assert pathlib.Path(packages).resolve() in pathlib.Path(pinnace.__file__).resolve().parents, pinnace.__file__
from onnx import TensorProto, helper
value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, folder + "/m.onnx")
program = pinnace.load(folder + "/m.onnx").build()
assert "onnxruntime" in program.metadata["verified"]
x = numpy.array([-1, 2], numpy.float32)
assert list(pinnace.Session(program).run({"x": x})["y"]) == [0, 2]
if "export" not in sys.argv:
    sys.exit()
other = pinnace.load(torch.nn.ReLU(), example_inputs=(torch.ones(2),)).build()
assert other.metadata["verified.cpu"].startswith("yes")
assert onnx.load(folder + "/m.onnx") == model
"""


def run(order: str, folder: Path) -> str:
    folder.mkdir()
    rest = ["export"] if order in EXPORTING else []
    done = subprocess.run(
        [sys.executable, "-c", f"import {order}\n{CODE}", str(folder), PACKAGES, *rest],
        env={**os.environ, "PYTHONPATH": PACKAGES},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return "" if done.returncode == 0 else f"import {order}: status {done.returncode}\n{done.stderr[-2000:]}"


def test_imports_in_every_order(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        failures = list(pool.map(lambda order: run(order, tmp_path / order.replace(",", "_")), ORDERS))
    assert len(failures) == 6
    assert not any(failures), "\n".join(failures)
