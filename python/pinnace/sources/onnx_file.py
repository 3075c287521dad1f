"""ONNX files as what a conversion is held against: run by onnxruntime, or by ONNX's reference evaluator."""

from __future__ import annotations

import contextlib
import functools
import itertools
import mmap
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.files import one_line, open_regular
from pinnace.packages import import_package
from pinnace.sources.base import Source, source_errors
from pinnace.sources.onnx_evaluator import evaluator
from pinnace.sources.onnx_float64 import double_model
from pinnace.types import Array

_ACCURACY = "accuracy_level"
# Operators whose products are of integers of 8 bits, and what onnxruntime would make of some of them that rounds
# otherwise.
_INTEGER_PRODUCTS = (b"QLinearConv", b"QLinearMatMul", b"MatMulInteger", b"ConvInteger", b"QGemm")
_FUSIONS = ["DynamicQuantizeMatMulFusion", "MatMulIntegerToFloatFusion"]
_OPTIMISED_MOST = 256 << 20  # bytes
_EXTERNAL = b"\x0a\x08location"  # as protobuf writes the key of a tensor's external data
# As protobuf writes an output of a node that is left out, before another one: tags, lengths and the name, of which a
# short one is followed by another tag. Weights have such bytes by chance about once in a gigabyte.
_LEFT_OUT = re.compile(
    rb"\x12\x00\x12(?:\x01.[\x12\x1a\x22]|\x02..[\x12\x1a\x22]|\x03...[\x12\x1a\x22]|[\x04-\x7f][ -~]{4})", re.DOTALL
)
_REASON = 200  # characters: metadata has such values


class OnnxSource:
    """An ONNX file, run by onnxruntime with its optimisations off, some of which approximate; by ONNX's reference
    evaluator where that is not installed or has no code for what the file asks. `description` says which it is, after
    the first run also why. Where onnxruntime's products of uint8 and int8 saturate, as on x86-64 without VNNI, it runs
    models with such products in its exact mode.
    """

    def __init__(self, path: str) -> None:
        """Unsupported, with what to install, where neither package is there."""
        self.path = path
        self._evaluate = False
        try:
            onnxruntime = import_package("onnxruntime")

            self.description = f"onnxruntime {onnxruntime.__version__}, optimisations off"
        except ImportError:
            self._evaluate = True
            try:
                self.description = _evaluator_name()
            except ImportError as error:
                raise _core.Unsupported(
                    "running an ONNX model for comparison needs a package: pip install onnxruntime, or onnx"
                ) from error
        self._session: Any = None
        self._names: list[str] = []

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order. FileError: it is no ONNX file; Unsupported: neither package runs the model."""
        if self._session is None:
            try:
                self._session, self._names = self._open(self.path)
            except _core.Error:
                raise
            except Exception as error:
                return self._run_otherwise(inputs, error)
        with source_errors(self.description):
            try:
                return list(self._call(self._session, self._names, inputs).values())
            except Exception as error:
                # So it says of a node; of inputs that do not fit the model it complains in other words.
                if self._evaluate or "returned while running" not in str(error):
                    raise
                return self._run_otherwise(inputs, error)

    def _run_otherwise(self, inputs: Sequence[Array], refusal: Exception) -> list[Array]:
        """The run by the reference evaluator, and all later ones, after what was to run it refused."""
        self._check_file(refusal)
        reasons = [f"{self.description}: {one_line(refusal, _REASON)}"]
        if not self._evaluate:
            try:
                name = _evaluator_name()
                self._evaluate = True
                session, names = self._open(self.path)
                outputs = list(self._call(session, names, inputs).values())
                self._session, self._names = session, names
                self.description = f"{name}, for {self.description} refuses the model: {one_line(refusal, _REASON)}"
                return outputs
            except _core.Error:
                raise
            except ImportError:
                reasons.append("ONNX's reference evaluator is not installed (pip install onnx)")
            except Exception as error:
                reasons.append(f"{name}: {one_line(error, _REASON)}")
            self._evaluate = False
        raise _core.Unsupported(
            f"{self.path}: nothing here runs it: {'; '.join(reasons)}; verify=False builds without a comparison"
        ) from refusal

    def _check_file(self, refusal: Exception) -> None:
        """FileError if it was the file, and not what it asks for, that was refused."""
        try:
            onnx = import_package("onnx")
        except ImportError:
            bad = type(refusal).__name__ in ("InvalidProtobuf", "NoSuchFile")
        else:
            try:
                with open_regular(self.path) as file:
                    bad = not onnx.load_model_from_string(file.read()).graph.output
            except _core.Error:
                raise
            except Exception:  # protobuf's errors, the system's: whatever it is, the file cannot be read
                bad = True
        if bad:
            raise _core.FileError(f"{self.path}: {self.description} cannot load it: {refusal}") from refusal

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values by ONNX's names: the model with those values as outputs is run once. None without onnx, which
        writes that model."""
        try:
            onnx = import_package("onnx")
        except ImportError:
            return {}
        with source_errors(self.description), open_regular(self.path) as file:
            model = onnx.load_model_from_string(file.read())
        known = {o.name for o in model.graph.output}
        for name in [o for node in model.graph.node for o in node.output if o in names and o not in known]:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
        with source_errors(self.description):
            session, input_names = self._open_changed(model)
            results = self._call(session, input_names, inputs)
        return {name: value for name, value in results.items() if name in names}

    def with_values(self, inputs: Sequence[Array], given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        """As in Source. Each value is made under another name and read as an input. Unsupported: onnx is missing."""
        try:
            onnx = import_package("onnx")
        except ImportError as error:
            raise _core.Unsupported("changing an ONNX model needs a package: pip install onnx") from error
        with source_errors(self.description), open_regular(self.path) as file:
            model = onnx.load_model_from_string(file.read())
        own, graph = [], model.graph
        outputs = list(dict.fromkeys(o.name for o in graph.output))
        for node in graph.node:
            for place, name in enumerate(node.output):
                if name in given and name not in outputs:
                    node.output[place] = f"{name}__own"
                    own.append(name)
                    type_ = onnx.helper.np_dtype_to_tensor_dtype(given[name].dtype)
                    graph.input.append(onnx.helper.make_tensor_value_info(name, type_, given[name].shape))
                    graph.output.append(onnx.ValueInfoProto(name=f"{name}__own"))
        kept = [v for v in graph.value_info if v.name not in given]
        del graph.value_info[:]
        graph.value_info.extend(kept)
        with source_errors(self.description):
            session, names = self._open_changed(model)
            feeds = dict(zip([n for n in names if n not in own], inputs, strict=True)) | {n: given[n] for n in own}
            made = self._call(session, list(feeds), list(feeds.values()))
        return [made[n] for n in outputs], {n: made[f"{n}__own"] for n in own}

    def _open(self, path: str) -> tuple[Any, list[str]]:
        open_regular(path).close()  # what reads it next would wait at a pipe
        if self._evaluate:
            return self._evaluator(path)
        if (model := _to_change(path)) is not None:
            return self._open_changed(model)
        return self._runtime(path, {})

    def _open_changed(self, model: Any) -> tuple[Any, list[str]]:
        """A model that was read from the file and changed; its external data stay where they are, beside the file."""
        if self._evaluate:
            from onnx.external_data_helper import load_external_data_for_model

            load_external_data_for_model(model, str(Path(self.path).absolute().parent))
            return self._evaluator(model)
        _keep_activations(model.graph)
        return self._runtime(*self._bytes_of(model))

    def _bytes_of(self, model: Any) -> tuple[bytes, dict[str, str]]:
        """What onnxruntime opens of a model in memory: its bytes, and where its external data are."""
        _name_left_out(model.graph)
        folder = str(Path(self.path).absolute().parent)
        return model.SerializeToString(), {"session.model_external_initializers_file_folder_path": folder}

    @staticmethod
    def _evaluator(model: Any) -> tuple[Any, list[str]]:
        made = evaluator(model)
        return made, list(made.input_names)

    def float64(self) -> Source | None:
        """The model in double precision, by ONNX's reference evaluator; None without onnx."""
        return double_model(self.path)

    def optimised(self, inputs: Sequence[Array]) -> list[Array] | None:
        """Outputs with onnxruntime's optimisations on. None where that fails or the evaluator runs the model; and where
        the file is larger than _OPTIMISED_MOST or has others beside it, for weights would be in memory once more."""
        if self._evaluate:
            return None
        try:
            if Path(self.path).stat().st_size > _OPTIMISED_MOST or _mentions(self.path, [_EXTERNAL]):
                return None
            changed = _to_change(self.path, [_LEFT_OUT])
            model, entries = (self.path, {}) if changed is None else self._bytes_of(changed)
            session, names = self._runtime(model, entries, optimise=True)
            return list(self._call(session, names, inputs).values())
        except Exception:  # whatever it is, the run without them is the reference
            return None

    @staticmethod
    def _runtime(model: str | bytes, entries: Mapping[str, str], optimise: bool = False) -> tuple[Any, list[str]]:
        onnxruntime = import_package("onnxruntime")
        levels = onnxruntime.GraphOptimizationLevel

        def opened(level: Any, more: Mapping[str, str], disabled: list[str]) -> tuple[Any, list[str]]:
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = level
            options.log_severity_level = 4  # what it refuses is in the exception
            # Calls are few.
            for name, value in {"session.intra_op.allow_spinning": "0", **entries, **more}.items():
                options.add_session_config_entry(name, value)
            session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled
            )
            return session, [i.name for i in session.get_inputs()]

        if optimise:
            return opened(levels.ORT_ENABLE_ALL, {}, [])
        if _mentions(model, _INTEGER_PRODUCTS) and _saturates():
            # Weights of int8 as uint8, which is one of its optimisations; not for all types of activations.
            with contextlib.suppress(Exception):
                return opened(levels.ORT_ENABLE_EXTENDED, {"session.x64quantprecision": "1"}, _FUSIONS)
        return opened(levels.ORT_DISABLE_ALL, {}, [])

    @staticmethod
    def _call(session: Any, names: list[str], inputs: Sequence[Array]) -> dict[str, Array]:
        """Outputs by name, in order: one that a file lists twice is there once, as in a Program."""
        of_runtime = hasattr(session, "get_outputs")
        listed = [o.name for o in session.get_outputs()] if of_runtime else session.output_names
        outputs = list(dict.fromkeys(listed))
        with np.errstate(all="ignore"):  # of the evaluator: what overflows shows in the results
            made = session.run(outputs, dict(zip(names, inputs, strict=True)))
        return {name: np.asarray(value) for name, value in zip(outputs, made, strict=True)}


def _mentions(model: str | bytes, names: Sequence[bytes | re.Pattern[bytes]]) -> bool:
    """Whether the file of that path, or the model of these bytes, has one of the texts."""

    def found(data: bytes | mmap.mmap) -> bool:
        return any(name.search(data) if isinstance(name, re.Pattern) else data.find(name) >= 0 for name in names)

    if isinstance(model, bytes):
        return found(model)
    with (
        open_regular(model) as file,
        contextlib.suppress(ValueError, OSError),  # an empty file cannot be mapped
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        return found(data)
    return False


@functools.cache
def _saturates() -> bool:
    """Whether onnxruntime's products of uint8 and int8 are wrong here: on x86-64 without VNNI it adds pairs of them in
    16 bits, which large ones exceed. Found by multiplying the largest. False without onnx."""
    try:
        onnx = import_package("onnx")
        onnxruntime = import_package("onnxruntime")
    except ImportError:
        return False
    length, helper = 64, onnx.helper
    left, right = np.full((1, length), 255, np.uint8), np.full((length, 16), 127, np.int8)
    a = helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, left.shape)
    y = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [1, 16])
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    graph = helper.make_graph([node], "saturates", [a], [y], [onnx.numpy_helper.from_array(right, "b")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {"a": left})
    return bool((np.asarray(got) != 255 * 127 * length).any())


def _to_change(path: str, marks: Sequence[bytes | re.Pattern[bytes]] = (_ACCURACY.encode(), _LEFT_OUT)) -> Any:
    """The model, where its file may have what onnxruntime is not to see as it is; else None. ImportError: onnx is not
    there to read it, and what accuracy_level asks for would count."""
    if not _mentions(path, marks):
        return None
    try:
        onnx = import_package("onnx")
    except ImportError:
        if not _mentions(path, [_ACCURACY.encode()]):
            return None
        raise
    with open_regular(path) as file:
        return onnx.load_model_from_string(file.read())


def _name_left_out(graph: Any, taken: set[str] | None = None) -> None:
    """Outputs that are left out before others get names that nothing reads: Split of onnxruntime writes to the place of
    one that has none, and ends the process."""
    names = taken if taken is not None else set()
    names.update(name for node in graph.node for name in node.output)
    names.update(value.name for value in (*graph.input, *graph.initializer))
    for node in graph.node:
        for place, name in enumerate(node.output):
            if not name and any(node.output[place + 1 :]):
                node.output[place] = made = next(n for i in itertools.count() if (n := f"left_out_{i}") not in names)
                names.add(made)
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _name_left_out(inner, names)


def _keep_activations(graph: Any) -> None:
    """MatMulNBits on activations as they are: what accuracy_level allows beside depends on the processor."""
    for node in graph.node:
        for attribute in list(node.attribute):
            if attribute.name == _ACCURACY and node.op_type == "MatMulNBits":
                node.attribute.remove(attribute)
            elif attribute.HasField("g"):
                _keep_activations(attribute.g)


def _evaluator_name() -> str:
    onnx = import_package("onnx")

    return f"onnx {onnx.__version__} reference evaluator"


__all__ = ["OnnxSource"]
