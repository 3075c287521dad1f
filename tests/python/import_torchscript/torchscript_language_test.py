"""TorchScript, row by row of its language reference: each module is converted with verification, and its program gives
what the module gives for other values, and at other sizes where these are dynamic."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import torchscript_modules as scripts
from agreeing import assert_agree
from pinnace import cli
from slices import rotating_slice
from torch import Tensor, nn

jit: Any = torch.jit
pytestmark = pytest.mark.filterwarnings("ignore")


def seeded(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


x24 = (seeded(2, 4),)
n24: dict[int, Any] = {0: pn.Dim("n", 1, 64)}
# name: module, arguments, dynamic dimensions
ROWS: dict[str, tuple[Callable[[], Any], tuple[Any, ...], Any]] = {
    "types: int, float, bool and their operators": (scripts.Scalars, x24, n24),
    "types: list of tensors and its methods": (scripts.Lists, x24, n24),
    "types: list of int and its methods": (scripts.IntLists, x24, n24),
    "types: dict, its methods and items": (scripts.Dicts, x24, n24),
    "types: tuple, unpacking, slices": (scripts.Tuples, x24, n24),
    "types: NamedTuple": (scripts.NamedTuples, x24, n24),
    "types: Optional left out": (scripts.Optionals, x24, n24),
    "types: Optional given": (scripts.Optionals, (seeded(2, 4), seeded(2, 4, seed=1), 0.5), None),
    "types: Union and isinstance": (scripts.Unions, x24, n24),
    "types: enum": (scripts.Enums, x24, n24),
    "types: str and f-strings": (scripts.Texts, x24, n24),
    "types: str, places in it": (scripts.TextPlaces, x24, n24),
    "types: classes": (scripts.Objects, x24, n24),
    "types: interfaces of modules": (scripts.Interfaces, x24, n24),
    "types: Dict and List inputs": (
        scripts.DictInput,
        ({"x": seeded(2, 4), "y": seeded(2, 4)}, [seeded(4), seeded(1)]),
        None,
    ),
    "types: Tuple and int inputs": (scripts.TupleInput, ((seeded(2, 4), seeded(4)), 3), None),
    "types: Future": (scripts.Forked, x24, n24),
    "statements: assert and raise": (scripts.Asserted, x24, n24),
    "statements: assert on data": (scripts.AssertedData, x24, n24),
    "statements: if, elif, else on data": (scripts.Branch, x24, n24),
    "statements: if that changes numbers": (scripts.BranchNumbers, x24, n24),
    "statements: if on sizes": (scripts.ShapeBranch, x24, n24),
    "statements: if on a size of 1": (scripts.SizeOne, x24, n24),
    "statements: early return": (scripts.EarlyReturn, x24, n24),
    "statements: return out of a loop": (scripts.Uninitialised, x24, n24),
    "statements: while on data": (scripts.While, x24, n24),
    "statements: while True and break": (scripts.WhileBreak, x24, n24),
    "statements: for, break and continue": (scripts.ForBreak, x24, n24),
    "statements: for as often as data say": (scripts.ForData, (seeded(2, 4), torch.tensor(5)), None),
    "statements: nested for and if": (scripts.Nested, (seeded(3, 4),), None),
    "statements: for over a dynamic size": (scripts.Recurrence, (seeded(3, 4),), n24),
    "statements: for over rows, append": (scripts.Stacked, (seeded(3, 4),), None),
    "statements: loop in branch in loop": (scripts.Loops, x24, None),
    "statements: range, zip, enumerate, comprehensions": (scripts.Ranges, x24, n24),
    "statements: assignment to slices": (scripts.Slices, (seeded(2, 4),), None),
    "statements: in-place operators": (scripts.InPlace, x24, n24),
    "statements: in place in a branch": (scripts.InPlaceInBranch, x24, None),
    "statements: lists and dicts changed in a branch": (scripts.ListInBranch, x24, n24),
    "statements: lists changed in a loop": (scripts.ListInLoop, x24, None),
    "statements: objects changed in a branch": (scripts.ObjectInBranch, x24, n24),
    "expressions: ternary": (scripts.Ternary, x24, n24),
    "expressions: and, or, not on tensors": (scripts.AndOr, x24, n24),
    "expressions: calls of functions with defaults": (scripts.Functions, x24, n24),
    "expressions: an index that depends on data": (scripts.IndexData, x24, None),
    "builtins: math": (scripts.Math, x24, n24),
    "builtins: chunk, split, unbind": (scripts.Chunked, x24, None),
    "builtins: tensor, zeros, arange, full": (scripts.Creation, x24, n24),
    "builtins: casts and dtypes": (scripts.Casts, x24, n24),
    "builtins: int, float, item of tensors": (scripts.ItemMath, x24, None),
    "builtins: shapes": (scripts.Shapes, x24, n24),
    "modules: ModuleList, ModuleDict, parameters, constants": (scripts.Submodules, x24, n24),
    "types: lists of lists and of tuples": (scripts.ListsOfLists, x24, n24),
    "types: dicts of lists": (scripts.DictOfLists, x24, n24),
    "types: complex": (scripts.Complex, x24, n24),
    "types: Final and annotate": (scripts.Annotated, x24, n24),
    "statements: del and nested unpacking": (scripts.Deleted, x24, n24),
    "statements: with torch.no_grad, print": (scripts.NoGrad, x24, n24),
    "statements: while over a dynamic size": (scripts.SizeLoop, x24, n24),
    "expressions: operators of tensors, chained comparisons": (scripts.Operators, x24, n24),
    "expressions: numbers of data through calls and lists": (scripts.Passed, x24, n24),
    "builtins: tolist": (scripts.ToList, (seeded(2, 4),), None),
    "modules: methods with defaults, properties": (scripts.Methods, x24, n24),
    "modules: export and unused": (scripts.Ignored, x24, n24),
}


def leaves(value: Any) -> list[np.ndarray]:
    return [np.asarray(v) for v in torch.utils._pytree.tree_leaves(value) if isinstance(v, Tensor | int)]


def others(args: Any, size: int | None, seed: int) -> Any:
    """Arguments of other values, and of another first size."""

    def other(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        shape = (size, *value.shape[1:]) if size is not None else value.shape
        return seeded(*shape, seed=seed) * 1.5 if value.is_floating_point() else value + 1

    return torch.utils._pytree.tree_map(other, args)


def check(script: Any, session: pn.Session, args: Any) -> None:
    flat = [v for v in torch.utils._pytree.tree_leaves(args) if isinstance(v, Tensor)]
    got = list(session.run(dict(zip(session.inputs, flat, strict=True))).values())
    with torch.no_grad():
        want = leaves(script(*args))
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        assert_agree(a, b)


@pytest.mark.parametrize("name", rotating_slice(list(ROWS), 1 / 3))
def test_row(name: str) -> None:
    make, args, dims = ROWS[name]
    torch.manual_seed(0)
    script = jit.script(make().eval())
    program = pn.load(script, args, dims).build()
    session = pn.Session(program, target="cpu")
    for seed in range(1, 5):
        check(script, session, others(args, None, seed))
    if dims:
        for size in (1, 5, 9):
            check(script, session, others(args, size, size))


@pytest.mark.parametrize("make", [scripts.SlicedFrom, scripts.SlicedBetween, scripts.Narrowed])
def test_slices_whose_start_data_decide(make: Callable[[], Any]) -> None:
    module = jit.script(make())
    x = seeded(5, 4)
    program = pn.load(module, (torch.tensor([1, 3]), x)).build()
    session = pn.Session(program)
    for start, end in ((0, 2), (2, 3), (3, 3), (1, 5)):
        places = torch.tensor([start, end])
        (got,) = session.run(dict(zip(session.inputs, (places, x), strict=True))).values()
        assert_agree(np.asarray(got), module(places, x).numpy())


@pytest.mark.parametrize("make", [scripts.Counter, scripts.FirstCall, scripts.StateInBranch])
def test_attributes_that_forward_sets_are_state(make: Callable[[], Any]) -> None:
    script = jit.script(make().eval())
    session = pn.Session(pn.load(script, (seeded(2, 4),)).build(), target="cpu")
    for seed in range(5):
        check(script, session, (seeded(2, 4, seed=seed),))


@pytest.mark.parametrize("version", ["2", "3", "7"])
def test_a_file_of_an_older_version_does_as_it_did(version: str, tmp_path: Path) -> None:
    """Before version 4, integers were divided to integers: torch puts a graph with branches in the operator's place."""
    path = tmp_path / "old.pt"
    jit.save(jit.script(scripts.OldDivision()), str(path))
    with zipfile.ZipFile(path) as before:
        entries = {name: before.read(name) for name in before.namelist()}
    with zipfile.ZipFile(path, "w") as after:
        for name, data in entries.items():
            after.writestr(name, version.encode() if name.endswith("/version") else data)
    x, y = torch.tensor([7, -7, 9]), torch.tensor([2, 2, -4])
    session = pn.Session(pn.load(path, (x, y)).build(), target="cpu")
    (got,) = session.run(dict(zip(session.inputs, (x, y), strict=True))).values()
    assert got.dtype == (np.int64 if int(version) < 4 else np.float32)
    np.testing.assert_array_equal(got, jit.load(str(path))(x, y).numpy())


# Files that torch itself was shipped with for its tests of older versions, which wrote them: version 2 (torch 1.5).
OLD_FILES = sorted((Path(torch.__file__).parent / "bin/upgrader_models").glob("*.ptl"))
# By the part of a file's name: why it is no program. All else is imported.
OLD_REFUSALS = {
    "inplace": "mutates an input: 'a'",
    "tensor_out": "argument out is not supported",
    "scalar_scalar": "the program would have no inputs",
}


def test_there_are_files_of_older_versions() -> None:
    assert len(OLD_FILES) >= 10


@pytest.mark.parametrize("path", OLD_FILES, ids=lambda path: path.stem)
def test_a_file_that_an_older_version_wrote_does_as_it_did(path: Path) -> None:
    x = torch.tensor([7.5, -7, 9]) if "float" in path.stem else torch.tensor([7, -7, 9])
    arguments: list[Any] = []
    script = jit.load(str(path))
    for argument in script.forward.schema.arguments[1:]:
        kind = str(argument.type)
        arguments.append(x if kind == "Tensor" else 2.5 if kind == "float" else 2)
    why = next((why for part, why in OLD_REFUSALS.items() if part in path.stem), "")
    if why:
        with pytest.raises(pn.Error, match=why):
            pn.load(path, tuple(arguments))
        return
    session = pn.Session(pn.load(path, tuple(arguments)).build(), target="cpu")
    for sign in (1, -2):
        given = [sign * a if isinstance(a, torch.Tensor) else a for a in arguments]
        tensors = [a for a in given if isinstance(a, torch.Tensor)]
        want = script(*given)
        got = session.run(dict(zip(session.inputs, tensors, strict=False))).values()
        for one, right in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
            assert one.dtype == right.numpy().dtype
            assert_agree(one, right.numpy())


def test_a_file_of_the_lite_interpreter_converts(tmp_path: Path) -> None:
    """What PyTorch Mobile's users have: the code beside the bytecode is a TorchScript file's."""
    script = jit.script(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5)).eval())
    path = tmp_path / "net.ptl"
    script._save_for_lite_interpreter(str(path))
    x = seeded(1, 3, 8, 8)
    model = pn.load(path, (x,))
    assert all(node.supported for node in model.check(targets=["cpu"]).nodes)
    (got,) = pn.Session(model.build(), target="cpu").run({next(iter(model.inputs)): x}).values()
    assert_agree(got, script(x).detach().numpy())
    np.save(tmp_path / "x.npy", x.numpy())
    assert cli.main(["convert", str(path), "-o", str(tmp_path / "net.pnc"), "--input", str(tmp_path / "x.npy")]) == 0
    assert pn.Program.open(tmp_path / "net.pnc").metadata.verified.startswith("1 input(s) against torch")
