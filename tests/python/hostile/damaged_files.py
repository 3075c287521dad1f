"""Damaged files of every format that is read, and what is done with each: run as a process of its own, under limits.

python damaged_files.py FOLDER FORMAT SEED FIRST END tries those damages of the files that make_files() put into FOLDER.
It prints the number of each before it tries it, so that whoever started it can say which one ended it; then, as JSON,
what was no error of pinnace's, and how often what came of it.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import resource
import signal
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
from pinnace import _core

PT2_FILES = ("net.pt2", "other.pt2", "older_net.pt2", "older_other.pt2")
FORMATS = ("pt2", "pt", "onnx", "external", "pnc", "nnapi", "nnapi_torch", "npy", "npz")
CPU_SECONDS = 30  # for a file of some kilobytes, imports of torch's parts included
SECONDS = 120  # by the clock, for what waits: other processes may share the processor
MEMORY = 3 << 30  # beyond what the process has when it starts; onnxruntime and torch reserve some hundred megabytes
GROWTH = 512 << 20  # what all cases together may leave resident at their peak
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

# A model in the form that the NNAPI host library dumps.
NNAPI: dict[str, Any] = {
    "format": "nnapi-vectors-1",
    "spec": "s",
    "folder": "f",
    "buffers": [[1, 2, -3.5, 4, 5, 6], [2.0], [0], [1.0], [1]],
    "cases": [
        {
            "name": "first",
            "relaxed": False,
            "min_level": 29,
            "main": {
                "operands": [
                    {"code": 3, "dims": [2, 3], "life": "input", "buf": 0},
                    {"code": 3, "dims": [1], "life": "const", "buf": 1},
                    {"code": 1, "dims": [], "life": "const", "buf": 2},
                    {"code": 3, "dims": [2, 3], "life": "temp"},
                    {"code": 0, "dims": [], "life": "const_ref", "buf": 3},
                    {"code": 1, "dims": [], "life": "const", "buf": 4},
                    {"code": 3, "dims": [2, 3], "life": "output", "buf": 0},
                ],
                "operations": [
                    {"op": "MUL", "code": 18, "in": [0, 1, 2], "out": [3]},
                    {"op": "SOFTMAX", "code": 25, "in": [3, 4, 5], "out": [6]},
                ],
                "inputs": [0],
                "outputs": [6],
            },
            "refs": [],
        }
    ],
}


def make_files(folder: Path) -> None:
    """One good file of each format, of some kilobytes."""
    import onnx
    import torch
    from older_archives import save_as_2_8
    from onnx import TensorProto, helper, numpy_helper
    from torch import nn
    from torch.backends._nnapi import prepare

    class Net(nn.Module):
        scale: torch.Tensor

        def __init__(self, unmapped: bool = False) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 4)
            self.register_buffer("scale", torch.ones(4))
            self.unmapped = unmapped

        def forward(self, x: torch.Tensor) -> Any:
            y = nn.functional.gelu(self.linear(x)) * self.scale
            return torch.trapezoid(y) if self.unmapped else y

    torch.manual_seed(1)
    x = torch.from_numpy(X)
    size = {0: torch.export.Dim("size", min=1, max=64)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, net in (("net.pt2", Net()), ("other.pt2", Net(True))):
            program = torch.export.export(net.eval(), (x,), dynamic_shapes=(size,))
            torch.export.save(program, folder / name)
            save_as_2_8(program, folder / f"older_{name}")
        jit: Any = torch.jit
        jit.save(jit.trace(Net().eval(), x), str(folder / "net.pt"))
    weight = numpy_helper.from_array(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), "w")
    bias = numpy_helper.from_array(np.linspace(0, 1, 4, dtype=np.float32), "b")
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["g"], alpha=0.5),
            helper.make_node("LeakyRelu", ["g"], ["r"], alpha=0.1),
            helper.make_node("Concat", ["r", "r"], ["c"], axis=-1),
            helper.make_node("ReduceMean", ["c"], ["y"], keepdims=1),
        ],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight, bias],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "net.onnx")
    onnx.save(
        copy.deepcopy(model),
        folder / "external.onnx",
        save_as_external_data=True,
        location="external.bin",
        size_threshold=0,
    )
    pn.load(folder / "net.onnx").build(examples=[{"x": X}]).save(folder / "net.pnc")
    (folder / "net.json").write_text(json.dumps(NNAPI))
    plain = jit.trace(nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU()).eval(), torch.ones(1, 2, 6, 5))
    process: Any = prepare.process_for_nnapi
    _, serialised, weights, *_ = process(plain, [torch.ones(1, 2, 6, 5)])
    np.savez(folder / "nnapi_torch.npz", *[w.numpy() for w in weights], serialised=serialised.numpy())
    np.save(folder / "x.npy", X)
    np.savez(folder / "x.npz", x=X)


# --------------------------------------------------------------------------------------------------------------- damage

WORDS = (0, 1, 2, -1, -2, 127, 255, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, 2**63 - 1, -(2**63))
VALUES: tuple[Any, ...] = (
    *WORDS,
    2**64,
    10**400,
    1e308,
    -0.5,
    True,
    None,
    "",
    "x",
    "NaN",
    "é" * 300,
    "\0\x1b[31m",
    "../../../etc/passwd",
    [],
    [[]],
    {},
)


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document holds values, objects and lists."""
    if place:
        yield place
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(item, (*place, key))


def json_field(text: bytes, rng: random.Random) -> bytes:
    """One value replaced, removed or nested."""
    document = json.loads(text)
    place = rng.choice(list(leaves(document)))
    at = document
    for key in place[:-1]:
        at = at[key]
    how = rng.randrange(8)
    if how == 0:
        del at[place[-1]]
    elif how == 1 and isinstance(at, list):
        at.insert(place[-1], copy.deepcopy(at[place[-1]]))
    else:
        at[place[-1]] = rng.choice(VALUES)
    made = json.dumps(document)
    if how == 2:  # levels that no document can hold
        made = made.replace('""', "[" * 5000 + "]" * 5000, 1)
    return made.encode()


def bytes_damaged(data: bytes, rng: random.Random) -> bytes:
    """Truncated, flipped, spliced with itself, overwritten."""
    made = bytearray(data)
    how = rng.randrange(5)
    at = rng.randrange(max(1, len(made)))
    length = rng.choice((1, 4, 16, 64, 256))
    if how == 0:
        return data[:at]
    if how == 1:
        for _ in range(rng.choice((1, 1, 2, 8))):
            bit = rng.randrange(8 * max(1, len(made)))
            if bit // 8 < len(made):
                made[bit // 8] ^= 1 << bit % 8
    elif how == 2:
        start = rng.randrange(max(1, len(made)))
        made[at : at + rng.choice((0, length))] = made[start : start + length]
    elif how == 3:
        made[at : at + length] = bytes([rng.choice((0, 255, 0x80, 0x7F))]) * min(length, len(made) - at)
    else:
        word = rng.choice(WORDS) % 2**64
        size = rng.choice((1, 2, 4, 8))
        at -= at % size
        made[at : at + size] = word.to_bytes(8, "little")[:size]
    return bytes(made)


def entries_damaged(data: bytes, rng: random.Random, inner: Callable[[str, bytes, random.Random], bytes]) -> bytes:
    """An archive that is whole as such, checksums right, with one entry that is changed, missing, moved or twice."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
    at = rng.randrange(len(entries))
    name, contents = entries[at]
    how = rng.randrange(12)
    method = zipfile.ZIP_STORED
    if how == 0:
        del entries[at]
    elif how == 1:
        entries[at] = (rng.choice((f"../{name}", f"/{name}", f"{name}/", "x", f"{name}é")), contents)
    elif how == 2:
        entries.append((name, contents))
    elif how == 3:
        entries[at] = (name, bytes(4 << 20))
        method = zipfile.ZIP_DEFLATED
    else:
        entries[at] = (name, inner(name, contents, rng))
    made = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w", method) as archive:
        warnings.simplefilter("ignore")
        for entry, value in entries:
            archive.writestr(entry, value)
    return made.getvalue()


def entry_field(name: str, contents: bytes, rng: random.Random) -> bytes:
    if name.endswith(".pt") and rng.randrange(2) == 0:  # an archive in the archive, of a pickle and of storages
        return entries_damaged(contents, rng, entry_field)
    return json_field(contents, rng) if name.endswith(".json") else bytes_damaged(contents, rng)


def onnx_field(data: bytes, rng: random.Random) -> bytes:
    """One field of one message: another number, another text, left out, or twice."""
    import onnx

    model = onnx.ModelProto.FromString(data)

    def messages(message: Any) -> Iterator[Any]:
        yield message
        for field, value in message.ListFields():
            if field.message_type is not None:
                for one in value if field.is_repeated else [value]:
                    yield from messages(one)

    message = rng.choice(list(messages(model)))
    field = rng.choice(message.DESCRIPTOR.fields)
    values: list[Any] = [1e38, -1, 0, 2**31 - 1, -(2**31), 2**62, "x", "", "é" * 300, b"", b"\0" * 300, "../../x", True]
    with contextlib.suppress(TypeError, ValueError, AttributeError, IndexError):
        if rng.randrange(6) == 0:
            message.ClearField(field.name)
        elif field.is_repeated:
            items = getattr(message, field.name)
            if len(items) and rng.randrange(3) == 0:
                items.append(items[rng.randrange(len(items))])
            elif len(items) and rng.randrange(2):
                del items[rng.randrange(len(items))]
            else:
                items.append(rng.choice(values))
        else:
            for _ in range(8):  # until one is of the field's type
                with contextlib.suppress(TypeError, ValueError):
                    setattr(message, field.name, rng.choice(values))
                    break
    made: bytes = model.SerializeToString()
    return made


def npy_field(rng: random.Random) -> bytes:
    """A header of strange words."""
    shapes = ("(2, 3)", "(-1,)", "(2**70,)", "(10**12,)", "()", "(0, 9)", "[2]", "2", "((2,),)", "(" * 300, "(True,)")
    types = ("'<f4'", "'|O'", "'<f8'", "'V0'", "[('a', '<f4')]", "'U9'", "3", "'>f4'", "'M8[D]'", "None", "'é'")
    order = ("False", "True", "None", "3")
    header = f"{{'descr': {rng.choice(types)}, 'fortran_order': {rng.choice(order)}, 'shape': {rng.choice(shapes)}, }}"
    header = rng.choice((header, header, header, header[:-3], header * 2, "x" * 70000)) + "\n"
    return b"\x93NUMPY\1\0" + (len(header) % 65536).to_bytes(2, "little") + header.encode() + X.tobytes()


def damage(folder: Path, kind: str, rng: random.Random) -> dict[str, bytes]:
    """Contents by file name; the first is the one to open."""
    fields = rng.randrange(3) == 0
    if kind in ("pt2", "pt"):
        name = "net.pt" if kind == "pt" else rng.choice(PT2_FILES)
        data = (folder / name).read_bytes()
        whole = fields or rng.randrange(2) == 0
        return {f"bad.{kind}": entries_damaged(data, rng, entry_field) if whole else bytes_damaged(data, rng)}
    if kind == "onnx":
        data = (folder / "net.onnx").read_bytes()
        return {"bad.onnx": onnx_field(data, rng) if fields else bytes_damaged(data, rng)}
    if kind == "external":
        files = {"bad.onnx": (folder / "external.onnx").read_bytes(), "external.bin": b""}
        files["external.bin"] = (folder / "external.bin").read_bytes()
        name = rng.choice(list(files))
        files[name] = onnx_field(files[name], rng) if fields and name == "bad.onnx" else bytes_damaged(files[name], rng)
        return files
    if kind == "nnapi":
        data = (folder / "net.json").read_bytes()
        return {"bad.json": bytes_damaged(data, rng) if rng.randrange(3) == 0 else json_field(data, rng)}
    if kind == "nnapi_torch":
        with np.load(folder / "nnapi_torch.npz") as parts:
            data = bytes_damaged(parts["serialised"].tobytes(), rng)
        return {"bad.words": data[: len(data) // 4 * 4]}
    if kind == "npy" and fields:
        return {"bad.npy": npy_field(rng)}
    source = {"pnc": "net.pnc", "npy": "x.npy", "npz": "x.npz"}[kind]
    return {f"bad.{kind}": bytes_damaged((folder / source).read_bytes(), rng)}


# ----------------------------------------------------------------------------------------------------------------- what


def command(*arguments: str) -> str:
    """The command line's answer, as a word."""
    from pinnace import cli

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = cli.main(list(arguments))
    return "right" if status == 0 else "refused" if status in (1, 2) else f"status {status}"


def use(path: Path, kind: str, folder: Path, rng: random.Random) -> str:
    """What a user would do with it; "right" if all of it went well. build() holds results against the source."""
    if kind in ("npy", "npz"):
        return command("run", str(folder / "net.pnc"), "--input", f"x={path}")
    if kind == "pnc":
        (result,) = pn.Session(pn.Program.open(path), threads=1).run({"x": X}).values()
        (wanted,) = pn.Session(folder / "net.pnc", threads=1).run({"x": X}).values()
        np.testing.assert_array_equal(result, wanted)
        return "right"
    if kind == "nnapi":
        model = pn.load(path)
        feed = {n: np.ones([d if isinstance(d, int) else 2 for d in s.shape], s.dtype) for n, s in model.inputs.items()}
        pn.Session(model.build(verify=False), threads=1).run(feed)
        return "right"
    if kind == "nnapi_torch":
        with np.load(folder / "nnapi_torch.npz") as parts:
            weights = [parts[f"arr_{i}"] for i in range(len(parts.files) - 1)]
        words = np.frombuffer(path.read_bytes(), np.int32)
        core = _core.Model.load_torch_nnapi(words, weights, [[1, 2, 6, 5]], [0], [0])
        program = pn.Program(core.build(["cpu"], {}))
        pn.Session(program, threads=1).run({name: np.ones((1, 2, 6, 5), np.float32) for name in program.inputs})
        return "right"
    if rng.randrange(12) == 0:
        pn.compare(folder / "net.pnc", path, [{"x": X}])
    model = pn.load(path, (X,)) if kind == "pt" else pn.load(path)
    model.check()
    if rng.randrange(3) == 0 or kind == "external":
        model.build(examples=[{"x": X}])
    return "right"


def main(folder: Path, kind: str, seed: int, first: int, end: int) -> None:
    """Prints; see the top of the file."""
    signal.alarm(SECONDS)
    import onnx  # noqa: F401
    import onnxruntime
    import torch

    torch.set_num_threads(1)
    onnxruntime.set_default_logger_severity(4)
    warnings.simplefilter("ignore")
    with contextlib.suppress(pn.Error):  # what the packages take once is no file's fault
        pn.load(folder / "other.pt2").build(examples=[{"x": X}])
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    work = folder / f"work_{kind}_{first}"
    work.mkdir()
    outcomes: Counter[str] = Counter()
    wrong = []
    for index in range(first, end):
        rng = random.Random(f"{seed}/{kind}/{index}")
        print(index, flush=True)
        files = damage(folder, kind, rng)
        for name, contents in files.items():
            (work / name).write_bytes(contents)
        # Nobody catches the signals of the two, which end the process.
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        signal.alarm(SECONDS)
        try:
            outcomes[use(work / next(iter(files)), kind, folder, rng)] += 1
        except pn.Error as error:
            outcomes[type(error).__name__] += 1
        except Exception as error:
            wrong.append(f"{kind}, seed {seed}, index {index}: {type(error).__name__}: {str(error)[:300]}")
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    if grown > GROWTH:
        wrong.append(f"{kind}, seed {seed}, {first} to {end}: the process grew by {grown >> 20} MiB")
    print(json.dumps({"outcomes": outcomes, "wrong": wrong, "grown": grown}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6]))
