"""Conformance vectors of NNAPI as models of ours: loaded, saved, placed on a target, run, compared.

A program: reads tasks from standard input, one JSON list [file, case, target] a line, and answers each with one line.
It is started once per target (run_target), for NNAPI's library reads the level that it pretends to have only once, and
so that a crash costs a part of the cases and is told.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[3]

DTYPES = {
    "FLOAT32": "float32",
    "INT32": "int32",
    "UINT32": "uint32",
    "TENSOR_FLOAT32": "float32",
    "TENSOR_INT32": "int32",
    "TENSOR_QUANT8_ASYMM": "uint8",
    "BOOL": "uint8",
    "TENSOR_QUANT16_SYMM": "int16",
    "TENSOR_FLOAT16": "float16",
    "TENSOR_BOOL8": "uint8",
    "FLOAT16": "float16",
    "TENSOR_QUANT8_SYMM_PER_CHANNEL": "int8",
    "TENSOR_QUANT16_ASYMM": "uint16",
    "TENSOR_QUANT8_SYMM": "int8",
    "TENSOR_QUANT8_ASYMM_SIGNED": "int8",
}


def level_of(code: int) -> int:
    """1 to 8 for NNAPI's codes."""
    return code - 26 if code <= 31 else code - 1000000


@dataclass(frozen=True)
class Vector:
    """One case of one file."""

    path: Path
    name: str
    level: int  # that its file states
    expect_failure: bool
    operations: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.name}"


def operations_of(case: dict[str, Any]) -> tuple[str, ...]:
    graphs = [case["main"], *case["refs"]]
    return tuple(sorted({operation["op"] for graph in graphs for operation in graph["operations"]}))


def all_vectors(folder: Path) -> list[Vector]:
    """Every case below the folder, in the order of files."""
    found = []
    for path in sorted(folder.rglob("*.json")):
        document = json.loads(path.read_text())
        for case in document.get("cases", []):
            level, failure = level_of(case["min_level"]), case["expect_failure"]
            found.append(Vector(path, case["name"], level, failure, operations_of(case)))
    return found


@dataclass
class Answer:
    """What became of one vector on one target."""

    case: str
    target: str
    needs: int = 0  # the level that its operations and types need, as the importer counts it
    error: str = ""  # empty: the outputs are right, or the case must fail and did
    refused: bool = False  # it must fail, and loading or running it did
    on_target: int = 0
    on_cpu: int = 0
    # "OPERATION operator RULE" -> how many: NNAPI's operation (-: none), the operator of ours that was left on the
    # CPU, the rule that refuses it (runtime: it is control flow).
    left: dict[str, int] = field(default_factory=dict)


# ---- one case -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def document(path: str) -> Any:
    return json.loads(Path(path).read_text())


def values(buffers: list[list[Any]], operand: dict[str, Any]) -> np.ndarray[Any, Any]:
    numbers = [float(v) if isinstance(v, str) else v for v in buffers[operand["buf"]]]
    return np.array(numbers, DTYPES[operand["type"]]).reshape(operand["dims"])


def multinomial_problem(case: dict[str, Any], buffers: list[list[Any]], got: np.ndarray[Any, Any]) -> str:
    """Classes are drawn as often as their logits say."""
    operand = case["main"]["operands"][case["main"]["inputs"][0]]
    logits = values(buffers, operand).astype(np.float64)
    for row, drawn in zip(logits, got.reshape(len(logits), -1), strict=True):
        wanted = np.exp(row) / np.exp(row).sum()
        if drawn.min() < 0 or drawn.max() >= len(row):
            return "a class out of range was drawn"
        counts = np.bincount(drawn, minlength=len(row)) / len(drawn)
        if np.abs(counts - wanted).max() > case["multinomial_tolerance"]:
            return f"classes were drawn {counts}, not {wanted}"
    return ""


def output_problem(case: dict[str, Any], operand: dict[str, Any], want: Any, got: np.ndarray[Any, Any]) -> str:
    """Tolerances of Android's conformance tests. Empty: right."""
    if list(got.shape) != operand["dims"]:
        return f"is {list(got.shape)}, not {operand['dims']}"
    kind = want.dtype.kind
    absolute = relative = 0.0
    if operand["type"] in ("BOOL", "TENSOR_BOOL8"):
        want, got = want != 0, got != 0
    elif kind == "f":
        if want.dtype == np.float16 or case["relaxed"] or case["any_fp16"]:
            absolute = relative = 5 * 2.0**-10
        else:
            absolute, relative = 1e-5, 5 * 2.0**-23
    else:
        absolute = 3 if "mobilenet" in case["name"] and want.dtype.itemsize == 1 else 1
    a, b = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    with np.errstate(invalid="ignore"):
        right = (a == b) | (np.isnan(a) & np.isnan(b))
        right |= np.isfinite(b) & (np.abs(a - b) <= absolute + relative * np.abs(b))
    if right.all():
        return ""
    first = int(np.argmin(right))
    return f"{int((~right).sum())} of {right.size} elements are wrong, element {first} is {a[first]}, not {b[first]}"


def operation_of(node: str) -> str:
    """NNAPI's operation, which names the nodes that it becomes."""
    found = re.match(r"(?:.*/)?([A-Z][A-Z0-9_]*)_\d+", node)
    return found[1] if found else "-"


def run_case(path: str, name: str, target: str, folder: Path) -> Answer:
    import pinnace as pn

    whole = document(path)
    case = next(c for c in whole["cases"] if c["name"] == name)
    answer = Answer(f"{Path(path).parent.name}/{name}", target)
    try:
        model = pn.load(path, model_name=name)
        answer.needs = int(next(n for n in model.notes if n.startswith("needs")).split()[-1])
        file = folder / "model.pnc"
        model.build([target], verify=False).save(file)
        relaxed = case["relaxed"] and target.startswith("nnapi") and target != "nnapi:fl1"
        session = pn.Session(str(file), target=target, threads=1, precision="fp16" if relaxed else "fp32")
        main = case["main"]
        inputs = {}
        for key in session.inputs:
            operand = main["operands"][main["inputs"][int(key.removeprefix("input_"))]]
            inputs[key] = values(whole["buffers"], operand)
        if case["expect_failure"] and "WHILE" in operations_of(case):
            run = session.run_async(inputs)  # it would never end
            time.sleep(0.2)
            run.cancel()
            made = list(run.result().values())
        else:
            made = list(session.run(inputs).values())
    except pn.Error as error:
        answer.refused = True
        answer.error = "" if case["expect_failure"] else f"{type(error).__name__}: {error}"
        return answer
    if case["expect_failure"]:
        answer.error = "an invalid case ran without an error"
        return answer

    left: Counter[str] = Counter()
    for row in session.placement:
        if row.backend == target.partition(":")[0]:
            answer.on_target += 1
            continue
        answer.on_cpu += 1
        rule = re.search(r"rule ([A-Z]-\d+)", " ".join(row.why))
        left[f"{operation_of(row.node)} {row.op} {rule[1] if rule else 'runtime'}"] += 1
    answer.left = dict(left)
    for k, (index, got) in enumerate(zip(main["outputs"], made, strict=True)):
        operand = main["operands"][index]
        problem = ""
        if case["multinomial_tolerance"]:
            problem = multinomial_problem(case, whole["buffers"], got)
        elif not operand.get("ignored"):
            problem = output_problem(case, operand, values(whole["buffers"], operand), got)
        if problem:
            answer.error = f"output {k}: {problem}"
    return answer


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            path, name, target = json.loads(line)
            print(json.dumps(asdict(run_case(path, name, target, Path(folder)))), flush=True)


# ---- all of a target ------------------------------------------------------------------------------------------------


def run_level(vectors: Iterable[Vector], level: int, library: Path) -> Iterator[Answer]:
    """Each vector at the level, through a library that pretends to have that level."""
    environment = {
        "PINNACE_NNAPI_LEVEL": f"fl{level}",
        "PINNACE_NNAPI_LIBRARY": str(library),
        "PINNACE_NNAPI_WORK": "any",
    }
    return run_target(vectors, f"nnapi:fl{level}", environment)


def run_target(vectors: Iterable[Vector], target: str, environment: dict[str, str]) -> Iterator[Answer]:
    """Each vector on the target. A crash is an error of its case."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]),
        **environment,
    }
    todo = list(vectors)
    while todo:
        tasks = "".join(json.dumps([str(v.path), v.name, target]) + "\n" for v in todo)
        done = subprocess.run(
            [sys.executable, __file__],
            input=tasks,
            capture_output=True,
            text=True,
            env=environment,
            timeout=3600,
            check=False,
        )
        lines = done.stdout.splitlines()
        for line in lines:
            yield Answer(**json.loads(line))
        if len(lines) < len(todo):
            crashed = todo[len(lines)]
            yield Answer(str(crashed), target, error=f"ended with {done.returncode}: {done.stderr[-800:]}")
        todo = todo[len(lines) + 1 :]


if __name__ == "__main__":
    main()
