"""The public names of pinnace: each is documented, and whatever a user is given has a class that pinnace exports.

The walk begins at `pinnace.__all__` and follows annotations: of parameters, results, properties and fields. Classes of
the extension have theirs in python/pinnace/_core.pyi, which test_generated.py compares with the extension.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import pickle
import re
import types
import typing
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest

PACKAGE = Path(pn.__file__).resolve().parent
EXTENSION = "pinnace._core"
CLASSES = [name for name in pn.__all__ if isinstance(getattr(pn, name), type)]
ERRORS = {name for name in CLASSES if issubclass(getattr(pn, name), Exception)}
FUNCTIONS = [name for name in pn.__all__ if inspect.isfunction(getattr(pn, name))]
# Type aliases: what annotations of public functions are written with.
ALIASES = {"Array", "ReferenceFunction", "Shape", "ShapeFunction"}
# Parts of the extension that constructors take which only the package calls: `Program(core)` is made by Program.open.
MADE_BY_THE_PACKAGE = {"Future", "Metadata", "Model", "Program", "State"}
# Functions and methods that raise nothing of pinnace's own, or what their class says of all of them.
RAISES_NOTHING = {
    *("CheckReport.refused", "Comparison.table", "Comparison.worst", "Future.cancel", "Future.done", "Model.text"),
    *("Program.text", "Program.to_bytes", "Session.reset_state", "devices"),
}


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods of a class of the package, those that it defines itself; class methods as functions."""
    for name, value in vars(cls).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function


def properties(cls: type) -> Iterator[tuple[str, property]]:
    return ((name, value) for name, value in vars(cls).items() if isinstance(value, property) and name[0] != "_")


def ours(cls: type) -> bool:
    """Written in Python; errors and the extension's classes have their text in C++."""
    return cls.__module__.startswith("pinnace.") and cls.__module__ != EXTENSION


@cache
def hints(thing: Any) -> dict[str, Any]:
    """Annotations as types; those that name torch, which is imported for type checkers alone, stay as they are."""
    return typing.get_type_hints(thing)


def parts(annotation: Any) -> Iterator[Any]:
    """Every class in an annotation."""
    inner = typing.get_args(annotation)
    if isinstance(annotation, list):  # the arguments of a Callable
        inner = tuple(annotation)
    for part in inner:
        yield from parts(part)
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type) and origin is not types.UnionType:
        yield origin


def places(name: str) -> Iterator[tuple[str, Any]]:
    """(place, annotation) of all that a user gives to, or is given by, a public name."""
    thing = getattr(pn, name)
    if name in FUNCTIONS:
        yield from ((f"{name}: {key}", value) for key, value in hints(thing).items())
        return
    if not ours(thing):
        return
    if dataclasses.is_dataclass(thing) or issubclass(thing, tuple):
        yield from ((f"{name}.{key}", value) for key, value in hints(thing).items())
    for method, function in methods(thing):
        yield from ((f"{name}.{method}: {key}", value) for key, value in hints(function).items())
    for key, value in properties(thing):
        yield f"{name}.{key}", hints(value.fget)["return"]
    if name not in MADE_BY_THE_PACKAGE:
        yield from ((f"{name}(): {key}", value) for key, value in hints(thing.__init__).items())


def test_every_name_is_there() -> None:
    assert len(set(pn.__all__)) == len(pn.__all__)
    assert set(pn.__all__) == {*CLASSES, *FUNCTIONS, *ALIASES}
    assert set(pn.__all__) <= set(dir(pn))


@pytest.mark.parametrize("name", sorted({*CLASSES, *FUNCTIONS}))
def test_whatever_a_user_meets_is_exported(name: str) -> None:
    exported = {getattr(pn, each) for each in CLASSES}
    missing = {
        f"{place}: {cls.__module__}.{cls.__qualname__}"
        for place, annotation in places(name)
        for cls in parts(annotation)
        if cls.__module__.partition(".")[0] == "pinnace" and cls not in exported
    }
    assert not missing


def test_the_walk_reaches_what_results_hold() -> None:
    met = {cls for name in (*CLASSES, *FUNCTIONS) for _, annotation in places(name) for cls in parts(annotation)}
    inner = {pn.Agreement, pn.CheckNode, pn.ComparisonRow, pn.Event, pn.ExactDistances, pn.NodeCount, pn.NodeInfo}
    assert inner | {pn.Payload, pn.Quantization, pn.State, pn.TrialNode, pn.TrialValue} <= met


@pytest.mark.parametrize("name", CLASSES)
def test_results_are_objects_with_typed_fields(name: str) -> None:
    """No dict of text to anything stands where a class with fields could."""
    loose = [place for place, annotation in places(name) if "dict[str, typing.Any]" in str(annotation)]
    assert not loose


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_has_a_repr(name: str) -> None:
    cls = getattr(pn, name)
    assert issubclass(cls, Exception) or cls is pn.CancelToken or cls.__repr__ is not object.__repr__


def documented(place: str, text: str | None) -> str:
    assert text, f"{place} has no docstring"
    assert text != (dict.__doc__ or "")
    assert re.search(r"[.:]\s", f"{text.strip()}\n"), f"{place}: no sentence"
    return text


def says(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def check_callable(place: str, function: Callable[..., Any], text: str) -> None:
    """The docstring names every parameter, and errors or that there are none."""
    unnamed = [p for p in inspect.signature(function).parameters if p not in ("self", "cls") and not says(text, p)]
    assert not unnamed, f"{place} does not say what {unnamed} are"
    if place not in RAISES_NOTHING:
        refers = re.search(r"\b(?:see|errors are those of|as) \w+", text, re.IGNORECASE)
        told = any(says(text, error) for error in ERRORS) or "raises nothing" in text.lower() or refers
        assert told, f"{place} does not say what it raises"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_documented(name: str) -> None:
    function = getattr(pn, name)
    check_callable(name, function, documented(name, function.__doc__))


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_documented(name: str) -> None:
    cls = getattr(pn, name)
    text = documented(name, cls.__doc__)
    if ours(cls) and dataclasses.is_dataclass(cls):
        assert not text.startswith(f"{name}("), f"{name} has the docstring that dataclasses make"
        unnamed = [field.name for field in dataclasses.fields(cls) if not says(text, field.name)]
        assert not unnamed, f"{name} does not say what {unnamed} are"
        assert vars(cls)["__dataclass_params__"].frozen, f"{name} can be written to"
    if not ours(cls):
        return
    for method, function in methods(cls):
        check_callable(f"{name}.{method}", function, documented(f"{name}.{method}", function.__doc__))
    for key, value in properties(cls):
        documented(f"{name}.{key}", value.__doc__)
    if name == "Session":
        unnamed = [p for p in inspect.signature(cls).parameters if not says(text, p)]
        assert not unnamed, f"{name} does not say what {unnamed} are"


def test_classes_of_the_extension_are_typed_and_documented() -> None:
    """In the stub: no property of a public class is of any type, and each has a text."""
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    found = 0
    for cls in (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in pn.__all__):
        for function in (node for node in cls.body if isinstance(node, ast.FunctionDef)):
            if getattr(pn, cls.name).__module__ != EXTENSION or function.name.startswith("_"):
                continue
            found += 1
            assert function.returns is not None, f"{cls.name}.{function.name}"
            assert "Any" not in ast.unparse(function.returns), f"{cls.name}.{function.name}"
            assert ast.get_docstring(function), f"{cls.name}.{function.name}"
    assert found >= 7


def test_shapes_and_dtypes_are_stated() -> None:
    """Where arrays go in or come out."""
    for thing in (pn.load, pn.compare, pn.custom_op, pn.TensorSpec, pn.TrialValue, pn.State.__setitem__):
        text = thing.__doc__ or ""
        assert "shape" in text or "exactly the state's type" in text
        assert "type" in text


GRAPH = """graph "g" {
  symbol n 1..8
  input %x : f32[n, 2]
  %y : f32[n, 2] = relu(%x)
  %z : f32[n, 2] = neg(%y)
  output "y" %z
}"""


@pytest.fixture(scope="module")
def program() -> pn.Program:
    return pn.Program(pn._core.Model.parse(GRAPH, [], False, []).build(["cpu"]))


def test_a_session_tells_its_arguments(program: pn.Program) -> None:
    session = pn.Session(program, ["cpu"], threads=2, fallback=False, plan_cache=3)
    assert (session.target, session.threads, session.precision) == ("cpu", 2, "fp32")
    assert (session.fallback, session.plan_cache, session.program) == (False, 3, program)


def test_kept_values_are_told_from_outputs(program: pn.Program) -> None:
    """The kept value %y and the output "y" have one name."""
    session = pn.Session(program, "cpu", keep=["y"])
    x = np.array([[-1, 2]], np.float32)
    assert session.kept_values({"x": x})["y"].tolist() == [[0, 2]]
    assert pn.Session(program, "cpu").run({"x": x})["y"].tolist() == [[0, -2]]
    with pytest.raises(pn.InvalidArgument, match="missing 'x'"):
        session.kept_values({})


def test_metadata_are_text_by_name(program: pn.Program) -> None:
    entries = {"source": "net.py", "verified": "inconclusive: x", "verified.cpu": "yes: 0", "verified.second": "yes"}
    metadata = program.with_metadata({**entries, "made_up.x": "ones", "range.n": "at least 2"}).metadata
    assert metadata["verified"] == metadata.verified == "inconclusive: x"
    assert metadata.inconclusive
    assert metadata.source == "net.py"
    assert metadata.verified_on == {"cpu": "yes: 0"}
    assert metadata.made_up == {"x": "ones"}
    assert metadata.ranges == {"n": "at least 2"}
    assert metadata == dict(metadata)
    assert repr(metadata) == f"Metadata({dict(metadata)!r})"
    with pytest.raises(KeyError):
        metadata["nothing"]
    assert not program.metadata.inconclusive


def test_shapes_are_tried(program: pn.Program) -> None:
    fits = program.try_shapes([[3, 2]], details=True)
    assert fits.fits
    assert [node.op for node in fits.nodes] == ["relu", "neg"]
    assert fits.values["y"] == pn.TrialValue("float32", [3, 2], None, None)
    with pytest.raises(pn.InvalidArgument):
        program.try_shapes([[3, 3]])


def test_results_can_be_compared_copied_and_taken_apart(program: pn.Program) -> None:
    session = pn.Session(program, "cpu")
    profile = session.profile({"x": np.zeros((1, 2), np.float32)})
    results: list[Any] = [
        *session.placement,
        *profile.events,
        *program.nodes,
        *program.payloads,
        session.plan,
        *pn.devices(),
    ]
    for result in results:
        again = pickle.loads(pickle.dumps(result))
        assert again == result
        assert type(result)(**dataclasses.asdict(result)) == result
        assert repr(result).startswith(f"{type(result).__name__}(")
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.node = "other"
    assert repr(profile).startswith("<pinnace.Profile: ")
    assert repr(session.state) == "<pinnace.State: none>"
    assert "x" not in session.state


def test_a_comparison_is_told_as_json(program: pn.Program) -> None:
    """Numbers that JSON has not, wherever they stand, are text."""
    far = pn.Agreement(np.inf, np.inf, False, "far", pn.ExactDistances(np.inf, 0.5))
    row = pn.ComparisonRow("y", "", "output", "", True, {"cpu": far})
    told = json.loads(pn.Comparison([row], ["cpu"], {}, "a", {"cpu": pn.NodeCount(1, 2)}).to_json())
    assert told["nodes"] == {"cpu": {"ran_there": 1, "all": 2}}
    assert told["rows"][0]["targets"]["cpu"]["exact"] == ["inf", 0.5]
