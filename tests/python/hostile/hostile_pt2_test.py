"""Archives of torch.export.save that carry code: none of it runs, whatever is done with the file.

Each attack writes a marker file when it succeeds. Those that torch itself falls for are tried against torch first, so
that a test which passes says something. Then every field of a real archive in turn holds something hostile.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import cli
from pinnace.sources.torch_program import open_torch_archive
from pinnace.torchscript import script
from slices import rotating_slice
from torch import Tensor, nn

MODEL, WEIGHTS, CONSTANTS = (
    "models/model.json",
    "data/weights/model_weights_config.json",
    "data/constants/model_constants_config.json",
)
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


class Net(nn.Module):
    """A weight, a buffer, a constant, a dynamic size, an argument that is a string, a branch, a result by name."""

    scale: Tensor

    def __init__(self, unmapped: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.register_buffer("scale", torch.ones(4))
        self.shift = torch.full((4,), 0.5)
        self.unmapped = unmapped

    def forward(self, x: Tensor, factor: int = 2) -> Any:
        y = nn.functional.gelu(self.linear(x), approximate="tanh") * self.scale + self.shift * factor
        y = torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (y,))
        return {"y": torch.trapezoid(y) if self.unmapped else y, "size": x.shape[0] * 2}


class Package:
    """Entries of an archive by name below its root; JSON parsed."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self.entries = entries

    @property
    def program(self) -> Any:
        return self.entries[MODEL]

    @property
    def graph(self) -> Any:
        return self.program["graph_module"]["graph"]

    def node(self, op: str) -> Any:
        return next(n for n in self.graph["nodes"] if op in n["target"])

    def write(self, path: Path) -> Path:
        with zipfile.ZipFile(path, "w") as archive:
            for name, value in self.entries.items():
                archive.writestr(f"net/{name}", value if isinstance(value, bytes) else json.dumps(value))
        return path


def package_of(unmapped: bool) -> Package:
    torch.manual_seed(1)
    size = torch.export.Dim("size", min=1, max=64)
    program = torch.export.export(
        Net(unmapped).eval(), (torch.from_numpy(X), 2), dynamic_shapes={"x": {0: size}, "factor": None}
    )
    saved = io.BytesIO()
    torch.export.save(program, saved)
    with zipfile.ZipFile(saved) as archive:
        entries = {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}
    return Package({n: json.loads(v) if n.endswith(".json") else v for n, v in entries.items()})


@pytest.fixture(scope="module")
def packages() -> dict[str, Package]:
    """By what the importer does with it: take it, or ask torch to decompose one of its operators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"imported": package_of(False), "decomposed": package_of(True)}


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "marker"


# --------------------------------------------------------------------------------------------------------- entry points


@pytest.fixture(scope="module")
def good(packages: dict[str, Package], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A program of each, and the input: what compare() holds an archive against."""
    folder = tmp_path_factory.mktemp("good")
    files = {}
    for name, package in packages.items():
        files[name] = folder / f"{name}.pnc"
        pn.load(package.write(folder / f"{name}.pt2")).build(examples=[{"x": X}]).save(files[name])
    files["x"] = folder / "x.npy"
    np.save(files["x"], X)
    return files


def command(*arguments: Any) -> None:
    """The command line: a status of its own, no traceback."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert cli.main([str(a) for a in arguments]) in (0, 1, 2)


def entry_points(path: Path, base: str, good: dict[str, Path]) -> dict[str, Callable[[], Any]]:
    x = f"x={good['x']}"
    return {
        "build": lambda: pn.load(path).build(examples=[{"x": X}]),
        "check": lambda: pn.load(path).check(),
        "load with examples": lambda: pn.load(path, {"x": X}, check_passes=True),
        "compare": lambda: pn.compare(good[base], path, [{"x": X}]),
        "pinnace check": lambda: command("check", path),
        "pinnace convert": lambda: command("convert", path, "-o", path.with_suffix(".pnc"), "--input", x),
        "pinnace compare": lambda: command("compare", good[base], "--reference", path, "--input", x),
    }


# -------------------------------------------------------------------------------------------------------------- attacks


class Payload:
    """Writes the marker when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.marker}",)


def pickled(marker: Path) -> bytes:
    data = io.BytesIO()
    torch.save(Payload(marker), data)
    return data.getvalue()


def python(marker: Path) -> str:
    return f"__import__('os').system('touch {marker}')"


ATTACKS: dict[str, Callable[[Package, Path], None]] = {}
TORCH_RUNS: list[str] = []


def attack(torch_runs: bool = False) -> Callable[[Callable[[Package, Path], None]], Callable[[Package, Path], None]]:
    def add(change: Callable[[Package, Path], None]) -> Callable[[Package, Path], None]:
        ATTACKS[change.__name__] = change
        if torch_runs:
            TORCH_RUNS.append(change.__name__)
        return change

    return add


@attack(torch_runs=True)
def a_row_more_that_is_a_pickle(p: Package, marker: Path) -> None:
    row = {"path_name": "weight_9", "is_param": False, "use_pickle": True, "tensor_meta": None}
    p.entries[WEIGHTS]["config"]["more"] = row
    p.entries["data/weights/weight_9"] = pickled(marker)


@attack(torch_runs=True)
def a_weight_that_is_a_pickle(p: Package, marker: Path) -> None:
    row = p.entries[WEIGHTS]["config"]["scale"]
    row["use_pickle"] = True
    p.entries[f"data/weights/{row['path_name']}"] = pickled(marker)


@attack(torch_runs=True)
def a_constant_that_is_a_pickle(p: Package, marker: Path) -> None:
    p.entries[CONSTANTS]["config"]["shift"]["use_pickle"] = True
    p.entries["data/constants/" + p.entries[CONSTANTS]["config"]["shift"]["path_name"]] = pickled(marker)


@attack(torch_runs=True)
def an_opaque_object(p: Package, marker: Path) -> None:
    row = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}
    p.entries[CONSTANTS]["config"]["more"] = row
    p.entries["data/constants/opaque_obj_0"] = pickle.dumps(Payload(marker))


@attack(torch_runs=True)
def weights_of_an_older_layout(p: Package, marker: Path) -> None:
    p.entries["data/weights/model.pt"] = pickled(marker)


@attack(torch_runs=True)
def constants_of_an_older_layout(p: Package, marker: Path) -> None:
    p.entries["data/constants/model.pt"] = pickled(marker)


@attack()
def example_inputs(p: Package, marker: Path) -> None:
    p.entries["data/sample_inputs/model.pt"] = pickled(marker)


@attack()
def a_file_of_an_older_layout(p: Package, marker: Path) -> None:
    for name in ("state_dict", "constants", "example_inputs"):
        p.entries[f"../serialized_{name}.pt"] = p.entries[f"serialized_{name}.pt"] = pickled(marker)
    p.entries["serialized_exported_program.json"] = p.program
    p.entries["version"] = b"8.20"


@attack()
def a_compiled_library(p: Package, marker: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "no C compiler"
    code = f'#include <stdlib.h>\n__attribute__((constructor)) void go(void) {{ (void)!system("touch {marker}"); }}'
    library = marker.with_name("library.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=code.encode(), check=True)
    p.entries["data/aotinductor/model/library.wrapper.so"] = library.read_bytes()
    p.entries["data/aotinductor/model/library_metadata.json"] = {"AOTI_DEVICE_KEY": "cpu"}


@attack(torch_runs=True)
def a_size_that_is_python(p: Package, marker: Path) -> None:
    p.graph["tensor_values"]["x"]["sizes"][0] = {"as_expr": {"expr_str": python(marker), "hint": {"as_int": 2}}}


@attack(torch_runs=True)
def a_stride_that_is_python(p: Package, marker: Path) -> None:
    p.graph["tensor_values"]["linear"]["strides"][0] = {"as_expr": {"expr_str": python(marker), "hint": None}}


@attack(torch_runs=True)
def an_integer_that_is_python(p: Package, marker: Path) -> None:
    name = next(iter(p.graph["sym_int_values"]))
    p.graph["sym_int_values"][name] = {"as_expr": {"expr_str": f"Max(2, {python(marker)})", "hint": None}}


@attack()
def a_symbol_that_ends_its_quotes(p: Package, marker: Path) -> None:
    text = f"Symbol('s' if {python(marker)} else 's', integer=True)"
    p.graph["tensor_values"]["x"]["sizes"][0] = {"as_expr": {"expr_str": text, "hint": {"as_int": 2}}}


@attack()
def an_assumption_that_is_python(p: Package, marker: Path) -> None:
    text = f"Symbol('s77', integer={python(marker)})"
    p.graph["tensor_values"]["x"]["sizes"][0] = {"as_expr": {"expr_str": text, "hint": {"as_int": 2}}}


@attack()
def a_hint_that_is_python(p: Package, marker: Path) -> None:
    p.graph["tensor_values"]["x"]["sizes"][0]["as_expr"]["hint"] = {"as_int": python(marker)}


@attack()
def a_range_of_python(p: Package, marker: Path) -> None:
    p.program["range_constraints"][python(marker)] = {"min_val": python(marker), "max_val": python(marker)}


def call(p: Package, target: str, *arguments: dict[str, Any]) -> None:
    """A node more, whose result is none."""
    inputs = [{"name": "", "arg": a, "kind": 1} for a in arguments]
    node = {"target": target, "inputs": inputs, "outputs": [{"as_none": True}], "metadata": {}, "name": "more"}
    p.graph["nodes"].insert(0, node)


@attack()
def a_call_of_the_system(p: Package, marker: Path) -> None:
    call(p, "torch.os.system", {"as_string": f"touch {marker}"})


@attack()
def a_call_of_torch_load(p: Package, marker: Path) -> None:
    marker.with_name("pickle").write_bytes(pickled(marker))
    name = {"name": "weights_only", "arg": {"as_bool": False}, "kind": 2}
    call(p, "torch.load", {"as_string": str(marker.with_name("pickle"))})
    p.graph["nodes"][0]["inputs"].append(name)


@attack()
def a_library_of_operators(p: Package, marker: Path) -> None:
    a_compiled_library(p, marker)
    for name in [n for n in p.entries if "aotinductor" in n]:
        del p.entries[name]
    call(p, "torch.ops.load_library", {"as_string": str(marker.with_name("library.so"))})


@attack()
def an_operator_that_makes_a_file(p: Package, marker: Path) -> None:
    arguments = ("filename", {"as_string": str(marker)}), ("shared", {"as_bool": True}), ("size", {"as_int": 4})
    call(p, "torch.ops.aten.from_file.default")
    p.graph["nodes"][0]["inputs"] = [{"name": n, "arg": a, "kind": 1} for n, a in arguments]
    p.graph["nodes"][0]["outputs"] = [{"as_tensor": {"name": "more"}}]
    p.graph["tensor_values"]["more"] = copy.deepcopy(p.graph["tensor_values"]["linear"])


@attack()
def an_operator_that_calls_methods(p: Package, marker: Path) -> None:
    call(p, "_operator.methodcaller", {"as_string": "system"}, {"as_string": f"touch {marker}"})


@attack()
def an_operator_as_an_argument(p: Package, marker: Path) -> None:
    p.node("linear")["inputs"][2]["arg"] = {"as_operator": "torch.os.system"}


def renamed(p: Package, old: str, new: str) -> None:
    """Every use of a value's name."""
    p.entries[MODEL] = json.loads(json.dumps(p.program).replace(f'"{old}"', json.dumps(new)))


@attack()
def an_input_named_with_python(p: Package, marker: Path) -> None:
    renamed(p, "x", f"x=({python(marker)})")


@attack()
def a_node_named_with_python(p: Package, marker: Path) -> None:
    renamed(p, "linear", f"linear = {python(marker)}; linear")


@attack()
def a_weight_named_with_python(p: Package, marker: Path) -> None:
    for name in (MODEL, WEIGHTS):
        text = json.dumps(p.entries[name]).replace('"linear.weight"', json.dumps(f'l"+str({python(marker)})+".w'))
        p.entries[name] = json.loads(text)


@attack()
def a_graph_named_with_python(p: Package, marker: Path) -> None:
    for item in p.node("cond")["inputs"]:
        if "as_graph" in item["arg"]:
            item["arg"]["as_graph"]["name"] = f'g"+{python(marker)}+"'


@attack()
def a_keyword_of_python(p: Package, marker: Path) -> None:
    p.node("cond")["inputs"].append(
        {"name": f"more={python(marker)}, other", "arg": {"as_int": 1}, "kind": 2},
    )


@attack()
def arguments_named_with_python(p: Package, marker: Path) -> None:
    signature = p.program["graph_module"]["module_call_graph"][0]["signature"]
    signature["forward_arg_names"] = [f"x=({python(marker)})", "factor=2"]


@attack()
def a_spec_of_arguments_with_python(p: Package, marker: Path) -> None:
    signature = p.program["graph_module"]["module_call_graph"][0]["signature"]
    leaf: Any = {"type": None, "context": None, "children_spec": []}
    for name in ("in_spec", "out_spec"):
        context = json.dumps([f"x=({python(marker)})", "factor"])
        inner = {"type": "builtins.dict", "context": context, "children_spec": [leaf, leaf]}
        empty = {"type": "builtins.tuple", "context": "null", "children_spec": []}
        whole = {"type": "builtins.tuple", "context": "null", "children_spec": [empty, inner]}
        signature[name] = json.dumps([1, whole if name == "in_spec" else inner])
    signature["forward_arg_names"] = None


@attack()
def a_spec_of_a_class(p: Package, marker: Path) -> None:
    signature = p.program["graph_module"]["module_call_graph"][0]["signature"]
    for kind in ("collections.namedtuple", "os.system", "torch.os.system", "builtins.eval"):
        spec: Any = {"type": kind, "context": json.dumps([python(marker)]), "children_spec": []}
        signature["in_spec"] = signature["out_spec"] = json.dumps([1, spec])


@attack()
def guards_of_python(p: Package, marker: Path) -> None:
    p.program["guards_code"] = [python(marker), f"L['x'].size()[0] >= {python(marker)}"]


@attack()
def metadata_of_a_node(p: Package, marker: Path) -> None:
    for node in p.graph["nodes"]:
        node["metadata"] = {
            "stack_trace": f'File "net.py", line 3, in forward\n    """\n{python(marker)}\n"""',
            "nn_module_stack": f"a,{python(marker)},torch.os.system",
            "source_fn_stack": f"{python(marker)},torch.os.system",
            "torch_fn": "torch.os.system;torch.os.system",
            "custom": json.dumps({"x": python(marker)}),
            "from_node": json.dumps([{"name": python(marker), "target": "torch.os.system", "graph_id": 1, "pass": ""}]),
        }


@attack()
def metadata_of_the_graph(p: Package, marker: Path) -> None:
    p.program["graph_module"]["metadata"] = {"custom": json.dumps([python(marker)])}
    fields = {"torch.os.system": {"field_names": [python(marker)]}}
    p.program["graph_module"]["treespec_namedtuple_fields"] = fields


@attack()
def a_text_that_ends_its_quotes(p: Package, marker: Path) -> None:
    p.node("gelu")["inputs"][-1]["arg"] = {"as_string": f"tanh' + str({python(marker)}) + '"}
    for spec in p.program["graph_module"]["signature"]["input_specs"]:
        if "constant_input" in spec:
            spec["constant_input"]["value"] = {"as_string": f"' or {python(marker)} or '"}


@attack()
def files_beside_the_model(p: Package, marker: Path) -> None:
    for name in ("extra/hook.py", "data/executorch/x.pte", "data/xl_weights/x", "code/__torch__.py", "data.pkl"):
        p.entries[name] = pickled(marker)


@attack()
def a_custom_object(p: Package, marker: Path) -> None:
    p.graph["custom_obj_values"] = {"x": {"name": "x", "class_fqn": "torch.os.system"}}
    p.program["graph_module"]["signature"]["input_specs"][-1] = {
        "custom_obj": {"arg": {"name": "x", "class_fqn": "os.system"}, "custom_obj_name": python(marker)}
    }
    p.entries[CONSTANTS]["config"]["x"] = {
        "path_name": "custom_obj_0",
        "is_param": False,
        "use_pickle": True,
        "tensor_meta": None,
    }
    p.entries["data/constants/custom_obj_0"] = pickled(marker)


@attack()
def a_verifier_by_name(p: Package, marker: Path) -> None:
    p.program["verifiers"] = ["os.system", python(marker)]
    p.program["torch_version"] = python(marker)
    p.program["opset_version"] = {python(marker): 1}


@pytest.mark.parametrize("name", TORCH_RUNS)
def test_torch_runs_the_code(name: str, packages: dict[str, Package], marker: Path, tmp_path: Path) -> None:
    package = copy.deepcopy(packages["imported"])
    ATTACKS[name](package, marker)
    path = package.write(tmp_path / "net.pt2")
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.load(path).module()(torch.from_numpy(X), 2)
    assert marker.exists()


@pytest.mark.parametrize("name", ATTACKS)
def test_no_code_runs(name: str, packages: dict[str, Package], good: dict[str, Path], tmp_path: Path) -> None:
    """At the one place where torch is given a file, and through every way there."""
    for base in rotating_slice(list(packages), 0.5, name):
        marker = tmp_path / base / "marker"
        marker.parent.mkdir()
        package = copy.deepcopy(packages[base])
        ATTACKS[name](package, marker)
        path = package.write(marker.with_name("net.pt2"))
        with contextlib.suppress(pn.Error):
            open_torch_archive(str(path)).run([X])
        assert not marker.exists()
        for entry, run in rotating_slice(list(entry_points(path, base, good).items()), 0.15, f"{name} {base}"):
            with contextlib.suppress(pn.Error):
                run()
            assert not marker.exists(), entry


# ---------------------------------------------------------------------------------------------------------- every field


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document holds something other than objects and lists with something in them."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    empty = True
    for key, item in items:
        empty = False
        yield from leaves(item, (*place, key))
    if empty:
        yield place


def replaced(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    made = copy.deepcopy(document)
    at = made
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return made


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


FIELD_PARTS = 6  # tests that share the cases, since they take long where all are tried

HOSTILE: dict[str, Callable[[Path], Any]] = {
    "python": python,
    "python that ends a call": lambda marker: f"x) or {python(marker)} or (0",
    "python that ends quotes": lambda marker: f"') or {python(marker)} or ('",
    "python on a line of its own": lambda marker: f"x\n    {python(marker)}\n",
    "a path to a function": lambda marker: "torch.os.system",
    "a path to a file": lambda marker: f"../../../../{marker}",
    "no text": lambda marker: "",
    "text that is no Unicode": lambda marker: "\ud800",
    "nothing": lambda marker: None,
    "a list": lambda marker: [],
    "an object": lambda marker: {"as_int": {}},
    "true": lambda marker: True,
    "a large number": lambda marker: 2**63 - 1,
    "a negative number": lambda marker: -(2**63),
    "a number of many digits": lambda marker: 10**400,
    "a fraction": lambda marker: 1e308,
    "deep": lambda marker: deep(900),
}


@pytest.mark.parametrize("part", range(FIELD_PARTS))
def test_every_field_in_turn(
    part: int, packages: dict[str, Package], good: dict[str, Path], marker: Path, tmp_path: Path
) -> None:
    """Through build(), and every fourth through another way to where torch is given the file as well."""
    cases = [
        (base, entry, place, kind)
        for base, package in packages.items()
        for entry in (MODEL, WEIGHTS, CONSTANTS)
        for place in leaves(package.entries[entry])
        for kind in HOSTILE
    ]
    path = tmp_path / "net.pt2"
    refused = 0
    chosen = rotating_slice(cases, min(1, 24 / len(cases)), "fields")[part::FIELD_PARTS]
    for number, (base, entry, place, kind) in enumerate(chosen):
        entries = packages[base].entries
        Package({**entries, entry: replaced(entries[entry], place, HOSTILE[kind](marker))}).write(path)
        points = entry_points(path, base, good)
        names = list(points)
        for name in ("build", names[number // 4 % len(names)])[: 2 if number % 4 == 0 else 1]:
            where = f"{name}: {base}, {entry} {'.'.join(map(str, place))}: {kind}"
            try:
                points[name]()
            except pn.Error:
                refused += 1
            except Exception as error:
                raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
            assert not marker.exists(), where
    assert refused >= len(chosen) // 4 - 1  # of a slice there are four


# ---------------------------------------------------------------------------------------------------------- TorchScript

# torch.jit.script reads annotations as they are written, which they are not in this file.
SAVES = """
import torch

class Saves(torch.nn.Module):
    target: str

    def __init__(self, target: str):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.target = target

    def forward(self, x):
        return x * self.weight

    @torch.jit.export
    def __getstate__(self):
        return (self.weight, self.target, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[torch.Tensor, str, bool]):
        self.weight = state[0]
        self.target = state[1]
        self.training = state[2]
        torch.save(state[0], state[1])
"""


@pytest.mark.parametrize("suffix", [".pt2", ".pt", ".onnx"])
def test_torchscript_that_writes_files(suffix: str, marker: Path, tmp_path: Path) -> None:
    """Torch runs __setstate__ when it reads a module."""
    source = tmp_path / f"saves_{suffix[1:]}.py"
    source.write_text(SAVES)
    spec: Any = importlib.util.spec_from_file_location(source.stem, source)
    saves = importlib.util.module_from_spec(spec)
    sys.modules[source.stem] = saves
    spec.loader.exec_module(saves)
    path = tmp_path / f"net{suffix}"
    jit: Any = torch.jit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jit.save(jit.script(saves.Saves(str(marker))), str(path))
    assert not marker.exists()
    for run in (lambda: pn.load(path, (torch.ones(3),)), lambda: pn.load(path), lambda: command("check", path)):
        with contextlib.suppress(pn.Error):
            run()
        assert not marker.exists()
    with pytest.raises(pn.Unsupported, match=r"TorchScript|reaches files"):
        pn.load(path, (torch.ones(3),))
    jit.load(str(path))
    assert marker.exists()


def test_torchscript_with_numbered_children_loads(tmp_path: Path) -> None:
    """Their names are no identifiers, for which TorchScript writes getattr."""
    jit: Any = torch.jit
    net = nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), nn.Linear(3, 2)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jit.save(jit.trace(net, torch.from_numpy(X)), str(tmp_path / "net.pt"))
        assert pn.load(tmp_path / "net.pt", (X,)).build().metadata["verified"].startswith("1 input(s)")


@pytest.mark.parametrize("by_path", [True, False], ids=["by number", "by its bytes"])
def test_torch_reads_the_torchscript_that_was_checked(
    by_path: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another file takes its name between the check and torch, also on systems without paths for open files."""
    jit: Any = torch.jit
    path, other = tmp_path / "net.pt", tmp_path / "other.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jit.save(jit.trace(nn.ReLU(), torch.ones(3)), str(path))
        jit.save(jit.trace(nn.Sigmoid(), torch.ones(3)), str(other))
    check = script.check_code

    def check_and_replace(archive: Any) -> bool:
        texts = check(archive)
        other.replace(path)
        return texts

    monkeypatch.setattr(script, "check_code", check_and_replace)
    if not by_path:
        exists = os.path.exists
        monkeypatch.setattr(os.path, "exists", lambda p: exists(p) and not str(p).startswith("/proc/"))
    x = torch.tensor([-1.0, 0.0, 2.0])
    assert torch.equal(script.open_script(str(path))(x), x.relu())


@pytest.mark.parametrize("name", ["", "nobody"])
def test_a_condition_that_is_made_by_nobody(packages: dict[str, Package], name: str, tmp_path: Path) -> None:
    entries = packages["imported"].entries
    nodes = entries[MODEL]["graph_module"]["graph"]["nodes"]
    (at,) = [i for i, node in enumerate(nodes) if node["target"].endswith("higher_order.cond")]
    place = ("graph_module", "graph", "nodes", at, "inputs", 0, "arg", "as_tensor", "name")
    path = Package({**entries, MODEL: replaced(entries[MODEL], place, name)}).write(tmp_path / "net.pt2")
    with pytest.raises(pn.Error, match="used before it is made"):
        pn.load(path)


@pytest.mark.parametrize("suffix", ["pt2", "pt"])
def test_an_archive_of_several_disks(packages: dict[str, Package], suffix: str, tmp_path: Path) -> None:
    """zipfile refuses it already where it is asked whether the file is an archive."""
    data = packages["imported"].write(tmp_path / "whole.pt2").read_bytes()
    end = data.rindex(b"PK\x05\x06")
    locator = b"PK\x06\x07" + (0).to_bytes(4, "little") + end.to_bytes(8, "little") + (7).to_bytes(4, "little")
    path = tmp_path / f"net.{suffix}"
    path.write_bytes(data[:end] + locator + data[end:])
    with pytest.raises(pn.Error):
        pn.load(path, (X,))
