"""A ScriptModule as a module that torch.export can follow: it runs the graphs step by step.

Operators are torch's own, and values that Python has are Python's. So sizes may be dynamic, and what does not depend on
data is settled while the graphs are followed: branches are taken, loops are unrolled. control.py has the rest.
Work is bounded: steps, unrolled iterations, elements of lists.
"""

from __future__ import annotations

import collections
import functools
import inspect
import keyword
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from pinnace import _core
from pinnace.torchscript.budget import Budget, check_size
from pinnace.torchscript.graph import Block, Constant, Script, Step, read_script
from pinnace.torchscript.loops import Loops
from pinnace.torchscript.operators import RAW, python_function, sized
from pinnace.torchscript.packed import packed_operator
from pinnace.torchscript.rows import UNAWARE, Rows, has_rows, run_on_rows
from pinnace.torchscript.scalars import by_torch, held
from pinnace.torchscript.size_tensors import known_item, of_sizes, on_known, put_back
from pinnace.torchscript.submodules import HeldBuffer, Instance, Opaque, Part, all_parts
from pinnace.torchscript.values import (
    DTYPES,
    Missing,
    Number,
    Object,
    SizeTensor,
    UnknownText,
    is_symbolic,
    number_kind,
)

LISTING = "<torchscript>"  # the file in which the lines of steps are while they are exported
MOST_RUN = 400_000  # steps of one call

_core_torch: Any = torch._C
_sym: Any = torch  # whose functions of symbolic numbers have no types


Attribute = tuple[str, str]  # path of the submodule, name


@dataclass
class ScriptState:
    """kept: states with their initial values. fixed: attributes that have one value from the first call on."""

    kept: dict[Attribute, torch.Tensor] = field(default_factory=dict)
    numbers: set[Attribute] = field(default_factory=set)  # among those kept
    fixed: dict[Attribute, Any] = field(default_factory=dict)
    dropped: set[Attribute] = field(default_factory=set)  # that calls change, and whose results do not depend on it


def _is_same(value: Any, before: Any) -> bool:
    """Whether a call leaves an attribute as it was."""
    if value is before:
        return True
    plain = (bool, int, float, str, type(None))
    return isinstance(value, plain) and type(value) is type(before) and value == before


def _is_changeable(value: Any) -> bool:
    return isinstance(value, (list, dict, Instance))


class ScriptInterpreter(Loops):
    """Runs forward() of a ScriptModule. `module` is what torch.export gets: its tensors and a forward()."""

    def __init__(self, module: torch.jit.ScriptModule, state: ScriptState | None = None) -> None:
        """state: attributes that become buffers.

        ConversionError: the graphs are larger than read_script() takes.
        """
        core: Any = operator.attrgetter("_c")(module)  # what torch calls the module in C++
        script = self._script = read_script(core, iter(all_parts(core)))
        self.module = _root(self, module, script)
        for place, tensor in enumerate(script.tensors):
            self.module.register_buffer(f"constant_{place}", tensor, persistent=False)
        self.kept: dict[Attribute, str] = {}
        state = state or ScriptState()
        for (path, name), tensor in state.kept.items():
            part: Any = self.module.get_submodule(path)
            self.kept[path, name] = (
                number_kind(part.script_values.get(name)) if (path, name) in state.numbers else "tensor"
            )
            held = part.script_values.pop(name, None)
            if isinstance(held, HeldBuffer):
                del part._buffers[held]
            part._buffers[name] = tensor.detach().clone()
        self._paths = {id(part): path for path, part in self.module.named_modules() if isinstance(part, Part)}
        self._places: list[Any] = [None]
        self._signature = signature_of(module)
        self.bound = MOST_RUN
        self.start: dict[Attribute, Any] = dict(
            state.fixed
        )  # attributes that a call starts with, in place of the module's
        self.after: dict[Attribute, Any] = {}  # what the last call left, where nothing is recorded
        self.emitted = 0  # loops and branches in the exported program
        self.unsettled: dict[
            Attribute, Any
        ] = {}  # no states, but the last call that was recorded reads and changes them
        self.exceptions: list[str] = []  # places of those that it leaves out
        self._begin(())

    # ------------------------------------------------------------------------------------------------------- a call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the script's."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = [_given(v) for v in bound.arguments.values()]
        self._begin(given)
        try:
            made = self._code(self._method(self.module.script_kind, "forward"), [self.module, *given])
            made = self._returned(made)
            if self.active:
                self.unsettled = self._changed_attributes()
                self.exceptions = list(self.left_out)
            self._keep_state()
            if not self.active:
                self.after = self._attribute_values()
            return made
        except RecursionError:
            raise _core.Unsupported("TorchScript whose calls and blocks are nested too deep to be followed") from None
        finally:
            self._begin(())

    def _begin(self, given: Sequence[Any]) -> None:
        Loops.__init__(self, given, [*self.module._parameters.values(), *self.module._buffers.values()])
        self.left = self.bound
        self._budget = Budget()
        self._attributes = {}
        if given or self._script.methods:
            self._attributes = {
                id(part): self._initial(part) for part in self.module.modules() if isinstance(part, Part)
            }
        self._started = self._attribute_values()
        self._read_first: set[Attribute] = set()
        self._set: set[Attribute] = set()  # outside of branches and loops that depend on data

    def _changed_attributes(self) -> dict[Attribute, Any]:
        """What the call leaves in attributes that are no states, where it reads before it sets them."""
        return {
            at: value
            for at, value in self._attribute_values().items()
            if at in self._read_first and at not in self.kept and not _is_same(value, self._started.get(at))
        }

    def _attribute_values(self) -> dict[Attribute, Any]:
        return {(path, n): v for key, path in self._paths.items() for n, v in self._attributes[key].items()}

    def initial_values(self) -> dict[Attribute, Any]:
        """Attributes that a call may change, as the module has them."""
        parts = [part for part in self.module.modules() if isinstance(part, Part)]
        made = {(self._paths[id(p)], n): v for p in parts for n, v in self._initial(p).items()}
        for part in parts:
            for name in self._script.written.get(part.script_kind, ()):
                if name in part._buffers:
                    made[self._paths[id(part)], name] = part._buffers[name]
        return made

    @property
    def keeps_attributes(self) -> bool:
        """Whether a call may leave something in attributes, buffers apart that are written in place."""
        written = self._script.written
        return any(
            any(n != "training" for n in written.get(part.script_kind, ()))
            or any(map(_is_changeable, part.script_values.values()))
            for part in self.module.modules()
            if isinstance(part, Part)
        )

    @property
    def argument_names(self) -> list[str]:
        """Of forward()."""
        return list(self._signature.parameters)

    @property
    def kinds(self) -> set[str]:
        """Of all steps."""
        return self._script.kinds

    def _initial(self, part: Part) -> dict[str, Any]:
        path = self._paths.get(id(part), "")
        made = {name: self._fresh(part, value) for name, value in part.script_values.items()}
        for (place, name), value in self.start.items():
            if place == path:
                made[name] = _given(value)
        for (place, name), kind in self.kept.items():
            if place == path:
                own: Any = part._buffers[name]
                tensor = own.clone() if self.active else own
                made[name] = tensor if kind == "tensor" else self.item(tensor, kind)
        return made

    def _fresh(self, part: Part, value: Any) -> Any:
        if isinstance(value, HeldBuffer):
            return part._buffers[value]
        if isinstance(value, list):
            return [self._fresh(part, v) for v in value]
        if isinstance(value, tuple):
            return tuple(self._fresh(part, v) for v in value)
        if isinstance(value, dict):
            return {k: self._fresh(part, v) for k, v in value.items()}
        if isinstance(value, Instance):
            read = self._script.read.get(value.kind, set()) | self._script.written.get(value.kind, set())
            names = [n for n in sorted(read) if value.value.hasattr(n)]
            return Object(value.kind, value.value, {n: value.value.getattr(n) for n in names})
        return value

    def _keep_state(self) -> None:
        """What the call leaves in attributes that are state, into their buffers."""
        for (path, name), kind in self.kept.items():
            part: Any = self.module.get_submodule(path)
            value = self._attributes[id(part)][name]
            own = part._buffers[name]
            value = self.here(value) if kind == "tensor" else self.tensor_of(value, kind)
            if value.shape != own.shape or value.dtype != own.dtype:
                place = f"{path}.{name}" if path else name
                raise _core.ConversionError(
                    f"forward() leaves {_typed(value)} in {place!r}, which was {_typed(own)}: a state is a tensor of "
                    "one shape and type, or a number"
                )
            own.copy_(value)

    def _returned(self, value: Any) -> Any:
        """A result as Python's values."""
        self.check_fresh(value)
        if isinstance(value, SizeTensor):
            return torch.ops.aten.scalar_tensor.default(value.value, dtype=value.dtype)
        if isinstance(value, Number) or is_symbolic(value):
            # Outputs are tensors and integers; a program has no others.
            return (
                {"bool": False, "float": 0.0}.get(number_kind(value)) if self._is_left_out(value) else self.plain(value)
            )
        if isinstance(value, Object):
            raise _core.ConversionError(
                f"forward() returns an object of class {value.kind.rpartition('.')[2]}; a program has tensors and "
                "numbers as outputs, in lists, tuples and dicts"
            )
        if isinstance(value, Missing):
            return None
        if isinstance(value, Rows):
            raise _core.ConversionError(
                "forward() returns a list of which the number of elements follows from a dynamic size; a program has "
                "as many outputs as it says: return torch.stack() of the list"
            )
        if isinstance(value, list):
            return [self._returned(v) for v in value]
        if isinstance(value, tuple):
            parts = [self._returned(v) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if isinstance(value, dict):
            return {k: self._returned(v) for k, v in value.items()}
        return value

    def _is_left_out(self, value: Any) -> bool:
        return self.active and number_kind(value) in ("bool", "float")

    # -------------------------------------------------------------------------------------------------------- steps

    def _method(self, kind: str, name: str) -> Block:
        found = self._script.methods.get((kind, name))
        if found is None:
            raise _core.ConversionError(f"a call of {name!r} of {kind}, whose code the TorchScript does not show")
        return found

    def _code(self, block: Block, values: Sequence[Any]) -> Any:
        env = dict(zip(block.inputs, values, strict=True))
        self.block(block, env)
        made = [env[place] for place in block.outputs]
        return made[0] if len(made) == 1 else tuple(made)

    def block(self, block: Block, env: dict[int, Any]) -> None:
        """Runs the steps of a block; their values come into `env`."""
        for step in block.steps:
            self.left -= 1
            if self.left < 0:
                raise _core.Unsupported(
                    f"TorchScript: one call of forward() runs more than {self.bound} operators ({step.kind}, "
                    f"{step.place}): a loop that is this long, or without end, is not converted"
                )
            self._in_frame(step, functools.partial(self._step, step, env))

    def _in_frame(self, step: Step, run: Callable[[], None]) -> None:
        """Runs it in a function whose line is the step's number in a listing: torch notes it with each operator."""
        if not self.active or not step.place.line:
            run()
            return
        places = self._places
        if places[-1] is not step.place:
            places.append(step.place)
        _frame(len(places) - 1)(run)

    def place_of(self, line: int) -> str:
        """The file and line that a line of the listing stands for."""
        places = self._places
        return str(places[line]) if 0 < line < len(places) else ""

    def _step(self, step: Step, env: dict[int, Any]) -> None:
        values = [env[place] for place in step.inputs]
        self.place = str(step.place)
        try:
            if self.twins.stale:
                for value in values:
                    self.check_fresh(value)
            control = _CONTROL.get(step.kind)
            if self.has_rows and step.kind not in UNAWARE and any(map(has_rows, values)):
                made = run_on_rows(self, step.kind, values, self.place)
            else:
                made = control(self, step, values, env) if control else self._operator(step, values)
        except Exception as error:
            if not hasattr(error, "script_place"):  # an error of a step within this one has that step's
                error.script_place = step.place  # type: ignore[attr-defined]
                if isinstance(error, _core.Error) and self.place and self.place not in str(error):
                    error.args = (f"{error} ({self.place})",)
            raise
        if step.blocks:
            return  # they have put their results where they belong
        if step.kind not in _PASSED_ON:
            self.note_made(made, values)
        if len(step.outputs) == 1:
            env[step.outputs[0]] = made
        elif step.outputs:
            env.update(zip(step.outputs, made, strict=True))

    def _operator(self, step: Step, values: list[Any]) -> Any:
        if step.kind == "aten::_convolution":  # of traces: with four settings of CUDA's libraries at the end
            given = [self.argument(v, "") for v in values[:9]]
            return self._within_budget("convolution", torch.ops.aten.convolution.default, given, {})
        if step.kind == "prim::PythonOp":
            raise _core.ConversionError(f"a call of Python's {step.name!r}, left in TorchScript by torch.jit.ignore")
        texts = any(isinstance(v, UnknownText) for v in values)
        if texts and step.kind not in _OF_UNKNOWN_TEXT:
            raise _core.ConversionError(
                f"{step.kind} of a text ({step.place}) with numbers that depend on data or on a dynamic size"
            )
        raw = RAW.get(step.kind)
        if raw is not None:
            return raw(self, *values)
        packed = packed_operator(step.kind)
        if packed is not None:
            return self._packed_call(packed, values)
        if step.overload is not None and _of_dispatcher(step.kind, step.schema.overload_name):
            if any(isinstance(v, SizeTensor) for v in values):
                made = on_known(step, values) or of_sizes(self, step.kind, values)
                if made is not None:
                    return put_back(self, step, values, made)
            return self._dispatched(step, values)
        function, computes = python_function(step.kind)
        if function is not None and computes:
            given = list(map(self.plain_parts, values))
            made = by_torch(step.kind, step.schema, given)
            made = function(self, *given) if made is None else made
            return UnknownText(made) if texts else held(_as_declared(made, step.schema))
        if function is not None:
            return function(self, *values)
        if step.overload is not None:
            return self._dispatched(step, values)
        raise _core.ConversionError(f"TorchScript's {step.kind} ({step.place}) has no meaning here")

    def _packed_call(self, function: Callable[..., Any], values: list[Any]) -> Any:
        """A call of what reads tensors of modules itself: they are those of the graph that is recorded."""
        given = [self.argument(v, "") for v in values]
        modules = [m for v in values for m in (v if isinstance(v, list) else [v]) if isinstance(m, nn.Module)]
        before = [(part._buffers, dict(part._buffers)) for m in modules for part in m.modules()] if self.levels else []
        try:
            for own, buffers in before:
                own.update({name: None if b is None else self.here(b) for name, b in buffers.items()})
            return function(*given)
        finally:
            for own, buffers in before:
                own.update(buffers)

    def _dispatched(self, step: Step, values: list[Any]) -> Any:
        positional, by_name = [], {}
        for value, declared in zip(values, step.schema.arguments, strict=True):
            alias = declared.alias_info
            if alias is not None and alias.is_write and isinstance(value, torch.Tensor):
                self.twins.change(value, self.place)
            if alias is not None and alias.is_write and isinstance(value, SizeTensor):
                raise _core.ConversionError(
                    f"{step.kind} ({step.place}) writes into a number that is a constant or a size: write into a copy "
                    "of a tensor with dimensions"
                )
            given = self.argument(value, str(declared.type))
            if declared.kwarg_only:
                by_name[declared.name] = given
            else:
                positional.append(given)
        return self._within_budget(step.kind.partition("::")[2], step.overload, positional, by_name)

    def _within_budget(self, name: str, overload: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What an operator gives. Unsupported: it is too large."""
        if self.active:
            made = overload(*args, **kwargs)
            check_size(made)
            return made
        self._budget.look_at(name, overload, args, kwargs)
        made = overload(*args, **kwargs)
        self._budget.note(made)
        return made

    def argument(self, value: Any, kind: str) -> Any:
        """A value as an operator of torch takes it."""
        if isinstance(value, torch.Tensor):
            return self.here(value)
        if isinstance(value, SizeTensor):
            number = self.plain(value.value)
            if "Tensor" not in kind and kind:
                return number
            return torch.ops.aten.scalar_tensor.default(number, dtype=value.dtype)
        if isinstance(value, (list, tuple)):
            return [self.argument(v, kind) for v in value]
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if isinstance(value, Number) or is_symbolic(value):
            return self.plain(value)
        if isinstance(value, Missing):
            raise _core.ConversionError("TorchScript reads a value that nothing has given")
        if isinstance(value, Rows):
            raise _core.ConversionError("a list of which the number of elements follows from a dynamic size")
        if isinstance(value, Opaque):
            raise _core.ConversionError(f"an object of {value.kind} in TorchScript")
        return value

    def constant(self, numbers: list[Any], shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor of known numbers."""
        if not self.levels:
            return torch.tensor(numbers, dtype=dtype).reshape(shape)
        if not numbers:
            return torch.ops.aten.full.default(shape, 0, dtype=dtype)
        # The graph of a branch or loop has no constants of its own.
        parts = [torch.ops.aten.full.default([], v, dtype=dtype) for v in numbers]
        return torch.ops.aten.stack.default(parts).reshape(shape) if shape else parts[0]

    def raised(self, text: str) -> Exception:
        """The error for an exception of the script."""
        return _core.ConversionError(f"forward() raises on the example inputs: {text[:400]}")

    def text(self, form: str, values: Sequence[Any]) -> str:
        """What str.format() makes of values, of which some are not known."""

        def shown(value: Any) -> Any:
            if isinstance(value, SizeTensor):
                value = value.value
            return "?" if unknown(value) else value

        def unknown(value: Any) -> bool:
            if isinstance(value, (list, tuple)):
                return any(map(unknown, value))
            if isinstance(value, dict):
                return any(map(unknown, value.values()))
            return isinstance(value, (torch.Tensor, Number, SizeTensor, UnknownText)) or is_symbolic(value)

        # As TorchScript does it: one value for each {}.
        first, *others = form.split("{}")
        given = [str(shown(v)) for v in values]
        given += ["{}"] * (len(others) - len(given))
        sized(len(form) + sum(map(len, given)))
        made = "".join([first, *(v + text for v, text in zip(given, others, strict=False))])
        return UnknownText(made) if any(map(unknown, values)) or isinstance(form, UnknownText) else made

    def index(self, value: Any) -> Any:
        """A number as an index of Python's lists."""
        value = self.plain(value)
        return int(value) if is_symbolic(value) and self.known(value == value) is None else value

    def key(self, value: Any) -> Any:
        """A key of a dict. ConversionError: it depends on data."""
        value = self.plain(value)
        if is_symbolic(value) or isinstance(value, torch.Tensor):
            raise _core.ConversionError("a dict of TorchScript with keys that depend on data")
        return value

    # ------------------------------------------------------------------------------------ steps with forms of their own

    def _constant_step(self, step: Step, _values: list[Any], _env: dict[int, Any]) -> Any:
        if step.name == "unknown":
            raise _core.ConversionError(f"a constant of type {step.value}, which TorchScript does not show")
        return self._held_value(step.value)

    def _held_value(self, value: Any) -> Any:
        if isinstance(value, Constant):
            tensor = self._script.tensors[value.place]
            if tensor.dim() == 0 and not tensor.is_complex() and not tensor.is_quantized:
                return SizeTensor(tensor.item() if not self.active else known_item(tensor), tensor.dtype)
            return self.module._buffers[f"constant_{value.place}"]
        if isinstance(value, (list, tuple)):
            made = [self._held_value(v) for v in value]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, dict):
            return {k: self._held_value(v) for k, v in value.items()}
        return value

    def _get_attribute(self, step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        (own,) = values
        name = step.name
        if isinstance(own, Object):
            if name not in own.attributes:
                raise self.raised(f"attribute {name!r} is read before it is set")
            return own.attributes[name]
        plain = self._attributes[id(own)]
        if name in plain:
            at = self._paths[id(own)], name
            if at not in self._set:
                self._read_first.add(at)
            return plain[name]
        if name == "training":
            return False
        for table in (own._modules, own._parameters, own._buffers):
            if name in table:
                return table[name]
        raise _core.ConversionError(f"{own.script_kind} has no attribute {name!r}")

    def _set_attribute(self, step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        own, value = values
        if isinstance(own, Object):
            self.changing(own).attributes[step.name] = value
            return None
        if not self.levels:
            self._set.add((self._paths[id(own)], step.name))
        self.changing(self._attributes[id(own)])[step.name] = value
        return None

    def _call_method(self, step: Step, values: list[Any], env: dict[int, Any]) -> Any:
        own = values[0]
        if not isinstance(own, (Part, Object)):
            raise _core.ConversionError(f"a call of {step.name!r} of {step.owner} ({step.place}), which is no module")
        kind = own.kind if isinstance(own, Object) else own.script_kind
        code = self._method(kind, step.name)
        given = [*values, *[None] * (len(code.inputs) - len(values))]  # no exception, for __exit__
        run = functools.partial(self._code, code, given)
        if isinstance(own, Object) or own is self.module or own is next(iter(env.values()), None):
            return run()
        return own(run)

    def _call_code(self, step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        if step.code is None:
            raise _core.ConversionError(f"a call of a function without code ({step.place})")
        return self._code(step.code, values)

    def _construct_list(self, _step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        return list(values)

    def _construct_tuple(self, step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        fields = _field_names(step.value)
        return _named(fields)(*values) if len(fields) == len(values) and fields else tuple(values)

    def _construct_dict(self, _step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        return {self.key(k): v for k, v in zip(values[::2], values[1::2], strict=True)}

    def _unpacked(self, step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        made = list(values[0])
        if len(made) != len(step.outputs):
            raise self.raised(f"{len(made)} values to unpack into {len(step.outputs)}")
        return made[0] if len(made) == 1 else made

    def _create_object(self, step: Step, _values: list[Any], _env: dict[int, Any]) -> Any:
        made = _core_torch._create_object_with_type(step.value)
        return Object(str(step.value.qualified_name()), made, {})

    def _raise(self, _step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        raise self.raised(str(values[0]))

    def _chunks(self, step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        chunks, dim = step.value
        made = list(torch.ops.aten.chunk.default(self.here(values[0]), chunks, dim))
        return made[0] if len(step.outputs) == 1 else made

    def _is_instance(self, step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        (value,) = values
        return any(_has_type(value, kind) for kind in step.value)

    def _to_list(self, step: Step, values: list[Any], _env: dict[int, Any]) -> Any:
        """Numbers of a tensor, which depend on data, in lists."""
        tensor = self.here(values[0]) if isinstance(values[0], torch.Tensor) else self.argument(values[0], "Tensor")
        kind = "float" if "float" in str(step.value) else "bool" if "bool" in str(step.value) else "int"

        def listed(value: torch.Tensor) -> Any:
            if value.dim() == 0:
                return self.item(value, kind)
            sized(value.shape[0])
            return [listed(row) for row in torch.ops.aten.unbind.int(value)]

        return listed(tensor)


_CONTROL: dict[str, Callable[..., Any]] = {
    "prim::If": ScriptInterpreter.branch,
    "prim::Loop": ScriptInterpreter.loop,
    "prim::Constant": ScriptInterpreter._constant_step,
    "prim::GetAttr": ScriptInterpreter._get_attribute,
    "prim::SetAttr": ScriptInterpreter._set_attribute,
    "prim::CallMethod": ScriptInterpreter._call_method,
    "prim::Enter": ScriptInterpreter._call_method,
    "prim::Exit": ScriptInterpreter._call_method,
    "prim::CallFunction": ScriptInterpreter._call_code,
    "prim::fork": ScriptInterpreter._call_code,
    "prim::ListConstruct": ScriptInterpreter._construct_list,
    "prim::TupleConstruct": ScriptInterpreter._construct_tuple,
    "prim::DictConstruct": ScriptInterpreter._construct_dict,
    "prim::ListUnpack": ScriptInterpreter._unpacked,
    "prim::TupleUnpack": ScriptInterpreter._unpacked,
    "prim::CreateObject": ScriptInterpreter._create_object,
    "prim::RaiseException": ScriptInterpreter._raise,
    "prim::ConstantChunk": ScriptInterpreter._chunks,
    "prim::isinstance": ScriptInterpreter._is_instance,
    "prim::tolist": ScriptInterpreter._to_list,
}
# Steps that pass on or put together a text, or only show it.
_OF_UNKNOWN_TEXT = frozenset(
    (
        "aten::add",
        "aten::format",
        "aten::str",
        "aten::percentFormat",
        "aten::warn",
        "prim::Print",
        "prim::unchecked_cast",
    )
)
# Steps whose results are values that were there before.
_PASSED_ON = frozenset(
    (
        "prim::If",
        "prim::Loop",
        "prim::GetAttr",
        "prim::SetAttr",
        "prim::CallMethod",
        "prim::CallFunction",
        "prim::Enter",
        "prim::Exit",
        "prim::fork",
        "prim::ListUnpack",
        "prim::TupleUnpack",
        "prim::TupleIndex",
        "prim::unchecked_cast",
        "prim::unchecked_unwrap_optional",
        "aten::_unwrap_optional",
        "aten::wait",
        "aten::__getitem__",
        "aten::get",
        "aten::setdefault",
        "aten::pop",
        "aten::append",
        "aten::extend",
        "aten::clear",
        "aten::_set_item",
        "aten::add_",
    )
)


def _as_declared(value: Any, schema: Any) -> Any:
    """A number of the type that the operator says: 2 ** 3 is a float in TorchScript."""
    declared = str(schema.returns[0].type) if schema is not None and schema.returns else ""
    return _sym.sym_float(value) if declared == "float" and number_kind(value) in ("int", "bool") else value


@functools.cache
def _of_dispatcher(kind: str, overload: str) -> bool:
    name = f"{kind}.{overload}" if overload else kind
    try:
        return bool(_core_torch._dispatch_has_kernel(name))
    except RuntimeError:
        return False


@functools.cache
def _frame(line: int) -> Callable[[Callable[[], None]], None]:
    def forward(run: Callable[[], None]) -> None:
        run()

    forward.__code__ = forward.__code__.replace(co_filename=LISTING, co_firstlineno=line - 1)
    return forward


@functools.cache
def _field_names(text: str) -> tuple[str, ...]:
    """Names in "NamedTuple(a : Tensor, b : (int, int))"."""
    if not text.startswith("NamedTuple("):
        return ()
    names, depth, start = [], 0, len("NamedTuple(")
    for at in range(start, len(text)):
        depth += (text[at] in "([") - (text[at] in ")]")
        if (text[at] == "," and depth == 0) or depth < 0:
            names.append(text[start:at].partition(":")[0].strip())
            start = at + 1
    return tuple(names) if all(n.isidentifier() and not keyword.iskeyword(n) for n in names) else ()


@functools.cache
def _named(fields: tuple[str, ...]) -> Any:
    return collections.namedtuple("Outputs", fields)


def _has_type(value: Any, kind: str) -> bool:
    table = {"int": "int", "float": "float", "bool": "bool"}
    if kind in table:
        return number_kind(value) == kind
    if kind == "Tensor":
        return isinstance(value, (torch.Tensor, SizeTensor))
    if kind == "str":
        return isinstance(value, str)
    if kind == "NoneType":
        return value is None
    if kind.startswith("List"):
        return isinstance(value, list) and all(_has_type(v, kind[5:-1]) for v in value)
    if kind.startswith("Dict"):
        return isinstance(value, dict)
    if kind.startswith(("Tuple", "NamedTuple")):
        return isinstance(value, tuple)
    return isinstance(value, Object) and value.kind == kind


def _given(value: Any) -> Any:
    """An argument: containers of the call's own, which the script may change."""
    if isinstance(value, list):
        return [_given(v) for v in value]
    if isinstance(value, dict):
        return {k: _given(v) for k, v in value.items()}
    if type(value) is tuple:
        return tuple(_given(v) for v in value)
    return next(n for n, d in DTYPES.items() if d == value) if isinstance(value, torch.dtype) else value


def _typed(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _dynamic_calls(script: Script) -> list[tuple[bool, bool]]:
    """How dynamically quantised linear layers are called: with a reduced range or not, with relu or not."""
    found = set()
    for block in script.methods.values():
        left, constants = [block], {}
        while left:
            for step in left.pop().steps:
                left.extend(step.blocks)
                left.extend([step.code] if step.code else [])
                if step.kind == "prim::Constant":
                    constants[step.outputs[0]] = step.value
                if step.kind.startswith("quantized::linear") and "dynamic" in step.kind:
                    reduced = constants.get(step.inputs[2]) if len(step.inputs) > 2 else False
                    found.add((bool(reduced), "relu" in step.kind))
    return sorted(found)


def signature_of(module: torch.jit.ScriptModule) -> inspect.Signature:
    """Of forward(), by its schema."""
    forward: Any = module.forward
    made, names = [], set()
    for place, argument in enumerate(forward.schema.arguments[1:]):
        name = re.sub(r"\.\d+$", "", argument.name)
        if not name.isidentifier() or keyword.iskeyword(name) or name in names:
            name = f"input_{place}"
        names.add(name)
        default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
        made.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    return inspect.Signature(made)


def _root(run: ScriptInterpreter, module: torch.jit.ScriptModule, script: Script) -> Part:
    """The module itself, with the arguments of the script's forward()."""

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        del self
        return run(*args, **kwargs)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *signature_of(module).parameters.values()]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    name = str(getattr(module, "original_name", type(module).__name__))
    kind = type(name, (Part,), {"forward": forward, "__module__": "torchscript"})
    made: Part = kind(operator.attrgetter("_c")(module), script, _dynamic_calls(script))
    return made


__all__ = ["LISTING", "Attribute", "Part", "ScriptInterpreter", "ScriptState", "signature_of"]
