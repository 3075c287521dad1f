"""The submodules of a script as modules of torch's: what they are called, with their tensors and attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from pinnace.torchscript.graph import Script, check_layout, type_name
from pinnace.torchscript.packed import packed_module

_core_torch: Any = torch._C
_qualified_name: Any = torch._jit_internal._qualified_name
_PLAIN = (bool, int, float, complex, str, type(None), torch.device, torch.dtype)


class Part(nn.Module):
    """A submodule of the script, with its tensors: torch knows by its path what a step belongs to."""

    def __init__(self, module: Any, script: Script, packed: Sequence[tuple[bool, bool]]) -> None:
        super().__init__()
        self.script_kind = type_name(module)
        self.script_values: dict[str, Any] = {}
        self._classes = {*script.read, *script.written}
        for name, tensor in _core_torch.ParameterDict(module).items():
            self._parameters[name] = _parameter(tensor, script)
        for name, tensor in _core_torch.BufferDict(module).items():
            check_layout(tensor)
            self._buffers[name] = tensor.detach()
        for name, child in _core_torch.ModuleDict(module).items():
            self._modules[name] = _part(child, script, packed)
        own = {*self._parameters, *self._buffers, *self._modules, "training"}
        touched = script.read.get(self.script_kind, set()) | script.written.get(self.script_kind, set())
        for name in sorted(touched - own):
            if module.hasattr(name):
                self.script_values[name] = self._held(name, module.getattr(name), packed)

    def _held(self, name: str, value: Any, packed: Sequence[tuple[bool, bool]]) -> Any:
        """An attribute that is no tensor itself; tensors in it become buffers."""
        if isinstance(value, torch.Tensor):
            key = f"{name}_{len(self._buffers)}"
            self.register_buffer(key, value.detach(), persistent=False)
            return HeldBuffer(key)
        if isinstance(value, (list, tuple)):
            made = [self._held(name, v, packed) for v in value]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, dict):
            return {k: self._held(name, v, packed) for k, v in value.items()}
        if isinstance(value, torch.ScriptObject):
            return self._object(name, value, packed)
        if not isinstance(value, _PLAIN) and (kind := _qualified_name(type(value))) in self._classes:
            return Instance(kind, _PythonObject(value))
        return value

    def _object(self, name: str, value: Any, packed: Sequence[tuple[bool, bool]]) -> Any:
        kind = type_name(value)
        if not kind.startswith("__torch__.torch.classes."):
            return Instance(kind, value)
        made = packed_module(value, packed)
        if made is None:
            return Opaque(kind.removeprefix("__torch__."))
        key = f"{name}_{len(self._modules)}"
        self.add_module(key, made)
        return made

    def forward(self, run: Callable[[], Any]) -> Any:
        """Runs what is called on this submodule."""
        return run()


class HeldBuffer(str):
    """The name of a buffer in which a tensor of an attribute is."""


class Opaque:
    """An object of a class of torch's that no step here works on."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


class Instance:
    """An object of a class of the script, as an attribute."""

    def __init__(self, kind: str, value: Any) -> None:
        self.kind, self.value = kind, value


class _PythonObject:
    """One of a class that Python has too: torch gives an object of Python for it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def hasattr(self, name: str) -> bool:
        return hasattr(self._value, name)

    def getattr(self, name: str) -> Any:
        return getattr(self._value, name)


def _parameter(tensor: Any, script: Script) -> nn.Parameter:
    """One for each tensor, so that tied weights stay one."""
    check_layout(tensor)
    known = script.parameters
    if id(tensor) not in known:
        known[id(tensor)] = (tensor, nn.Parameter(tensor.detach(), requires_grad=False))
    made: nn.Parameter = known[id(tensor)][1]
    return made


def _part(module: Any, script: Script, packed: Sequence[tuple[bool, bool]]) -> Part:
    name = re.sub(r"^___torch_mangle_\d+\.", "", type_name(module)).rpartition(".")[2]
    kind = type(name, (Part,), {"__module__": "torchscript"})
    made: Part = kind(module, script, packed)
    return made


def all_parts(module: Any) -> list[Any]:
    found = [module]
    for child in found:
        found.extend(m for _, m in _core_torch.ModuleDict(child).items())
    return found


__all__ = ["HeldBuffer", "Instance", "Opaque", "Part", "all_parts"]
