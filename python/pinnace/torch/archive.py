"""Programs of .pt2 files for torch, which runs them as the reference and decomposes operators.

The rule: torch is given no byte of a user's file but the contents of tensors. torch.export.load unpickles, loads
libraries, evaluates sizes as Python and writes names into source code that it executes, as the file tells it to. So the
file is read here, by the lists of torch_schema.py, and torch loads an archive that is written anew: graph and signature
from checked fields alone, sizes printed from our own parse, each tensor as plain bytes under a name of ours, flat specs
of arguments and results, and an empty example. All else in the file is left out: pickles (own_example.py reads one of
them, without torch), compiled code, guards, extra files, classes and functions of metadata. What the lists do not have
is refused, with the place in the file.
"""

from __future__ import annotations

import io
import json
import os
import re
import threading
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pinnace import _core
from pinnace.files import failures_named, one_line, temporary_folder
from pinnace.packages import import_package
from pinnace.torch.pickled_weights import PlainArchive
from pinnace.torch.schema import (
    BOOL,
    FUNCTIONS,
    HIGHER_ORDER,
    SCALAR_TYPES,
    Kind,
    ProgramSchema,
    Refusal,
    file_schema,
    shown,
)
from pinnace.torch.zip_file import PlainZip, ZipFile, damage_named, is_zip
from pinnace.types import custom_op_names

if TYPE_CHECKING:
    import torch

MAX_JSON = 1 << 30  # as in C++
MAX_RANK = 64
MAX_NAME = 200  # of an output, as in C++
# A tensor may be an expansion of its storage. Together they keep to what the importer allows.
EXPANSION_FACTOR, EXPANSION_SLACK = 12, 64 << 20

_reading = {"lock": threading.Lock()}  # torch's reader keeps what it reads in a global variable
# A child that is forked while another thread reads has the lock as it was, with nobody to release it.
os.register_at_fork(after_in_child=lambda: _reading.update(lock=threading.Lock()))
_WEIGHT_NAME = re.compile(r"(?!.*__)[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*", re.ASCII)
# Packages of torch's that declare operators when they are imported, by namespace.
_NAMESPACES = {
    "aten": "",
    "prims": "",
    "quantized_decomposed": "torch.ao.quantization.fx._decomposed",
    "torchvision": "torchvision",
}


def archive_kind(path: str) -> str:
    """ "export" for an archive of torch.export.save, "script" for one of torch.jit.save, "" for any other file.

    CorruptFile: a zip archive that cannot be read.
    """
    if not is_zip(path):
        return ""
    with ZipFile(path, inflated=True) as archive:
        parts = {name.split("/", 1)[-1] for name in archive.names}
    if "constants.pkl" in parts and any(part.startswith("code/") for part in parts):
        return "script"
    return "export" if "archive_format" in parts else ""


def load_archive(path: str, model_name: str = "") -> torch.export.ExportedProgram:
    """The program of a .pt2 file, loaded by torch from an archive that is written here.

    `model_name` says which, of an archive with several. CorruptFile; Unsupported: torch is not installed, or the place
    in the file and the rule; FileError: torch cannot load what it says, or no temporary file can be written;
    InvalidArgument: the archive holds several models and `model_name` is empty; OutOfMemory.
    """
    try:
        import_package("torch")
        from torch.export.pt2_archive._package import load_pt2
    except ImportError as error:
        raise _core.Unsupported(f"{path}: comparing with a .pt2 file needs torch: pip install torch") from error
    with temporary_folder() as folder:
        copy = Path(folder) / "model.pt2"
        with ZipFile(path) as archive, failures_named(path, "a temporary copy for torch"):
            _Rewriter(PlainArchive(archive, model_name), model_name).write(copy)
        try:
            # torch.export.load would take an error for a file of an older layout, and lose what it says.
            with _reading["lock"], warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = load_pt2(str(copy)).exported_programs["model"]
        except MemoryError as error:
            raise _core.OutOfMemory(f"{path}: torch reads it") from error
        except Exception as error:
            text = one_line(error)[-500:]  # the cause comes last
            raise _core.FileError(f"{path}: torch cannot load it without its pickles: {text}") from error
    program._example_inputs = None  # the empty ones would be bound to the module's signature
    return program


# ------------------------------------------------------------------------------------------------------------ operators


def _target(value: Any) -> Any:
    """What a node calls: a function on sizes, or an operator of torch.ops in a namespace of the list or registered with
    pinnace.custom_op. torch would follow any path of attributes, such as torch.os.system."""
    if not isinstance(value, str) or not all(part.isidentifier() for part in value.split(".")):
        raise Refusal(f"{shown(value)} is no operator")
    if value in FUNCTIONS or value in {f"torch.ops.higher_order.{name}" for name in HIGHER_ORDER}:
        return value
    parts = value.split(".")
    if len(parts) == 5 and parts[:2] == ["torch", "ops"]:
        space, name, overload = parts[2:]
        own = custom_op_names()
        if (space in _NAMESPACES or f"{space}.{name}" in own) and _is_operator(space, name, overload):
            return value
    raise Refusal(f"{shown(value)} is no operator that is handed to torch")


def _is_operator(space: str, name: str, overload: str) -> bool:
    """Whether torch has it, and it names no file: aten.from_file and aten.save do."""
    import importlib

    import torch

    if _NAMESPACES.get(space):
        try:
            importlib.import_module(_NAMESPACES[space])
        except ImportError as error:
            raise Refusal(f"torch.ops.{space}.{name} needs a package: {error}") from None
    packet: Any = getattr(getattr(torch.ops, space), name, None)
    operator: Any = getattr(packet, overload, None) if isinstance(packet, torch._ops.OpOverloadPacket) else None
    if not isinstance(operator, torch._ops.OpOverload):
        return False
    return all("file" not in argument.name for argument in operator._schema.arguments)


# ------------------------------------------------------------------------------------------------------------- the call


def _calls(signature: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """How the program is called: its inputs one after the other, its results as a tuple, or by name, which is how the
    importer gets names for them."""
    from torch.utils import _pytree

    inputs = _argument_names(signature)
    outputs = sum("user_output" in s for s in signature["output_specs"])
    given: Any = ((0,) * len(inputs), {})
    taken: Any = dict.fromkeys(names, 0) if len(names) == outputs else (0,) * outputs
    specs = [_pytree.treespec_dumps(_pytree.tree_structure(value)) for value in (given, taken)]
    call = {"inputs": [], "outputs": [], "in_spec": specs[0], "out_spec": specs[1], "forward_arg_names": inputs}
    return {"fqn": "", "signature": call}


def _argument_names(signature: dict[str, Any]) -> list[str]:
    """Identifiers for the inputs of a call, those of the graph's inputs where these have one."""
    names: list[str] = []
    for spec in signature["input_specs"]:
        if "constant_input" in spec:
            name = spec["constant_input"]["name"]
        elif "user_input" in spec:
            ((kind, value),) = spec["user_input"]["arg"].items()
            name = value["name"] if kind == "as_tensor" else value.get("as_name", "") if kind == "as_sym_int" else ""
        else:
            continue
        names.append(name if name and name not in names and name != "self" else f"argument_{len(names)}")
    return names


def _result_names(program: Any) -> list[str]:
    """Names of the leaves of what the program returns, as the importer gives them; none where a leaf has no name."""
    names: list[str] = []

    def walk(spec: Any, path: str, named: bool, outermost: bool) -> None:
        if spec["type"] is None:
            names.append(path if named else "")
            return
        children = spec["children_spec"]
        keys = _keys(spec, len(children))
        for i, child in enumerate(children):
            part = keys[i] if keys else str(i)
            walk(child, part if outermost else f"{path}.{part}", named or bool(keys), False)

    try:
        walk(json.loads(program["graph_module"]["module_call_graph"][0]["signature"]["out_spec"])[1], "", False, True)
    except (KeyError, IndexError, TypeError, ValueError, RecursionError):
        return []
    fits = all(name.isprintable() and 0 < len(name) <= MAX_NAME for name in names)
    return names if fits and len(set(names)) == len(names) else []


def _keys(spec: Any, wanted: int) -> list[str]:
    """Keys or fields of a container's children; none where these are its items by number."""
    if spec["type"] in ("builtins.tuple", "builtins.list") or not wanted:
        return []
    context = json.loads(spec["context"])
    lists = [context, *context] if isinstance(context, list) else []
    for keys in lists:
        if isinstance(keys, list) and len(keys) == wanted and all(isinstance(k, str | int) and k != "" for k in keys):
            return [str(k) for k in keys]
    return []


# -------------------------------------------------------------------------------------------------------------- writing


class _Rewriter:
    """One model of an archive, written again."""

    def __init__(self, archive: PlainArchive, model_name: str) -> None:
        self._archive = archive
        self._model = model_name or self._only_model()
        self._names: dict[str, str] = {}  # the file's names of weights: ours
        self._schema = ProgramSchema(_target, self._weight_name)
        self._expanded = 0

    def _only_model(self) -> str:
        found = self._archive.models
        if len(found) == 1:
            return found[0]
        if not found:
            raise self._archive.corrupt("the archive has no entry models/NAME.json")
        raise _core.InvalidArgument(
            f"{self._archive.path}: the archive holds {len(found)} models; name one with model_name"
        )

    def _weight_name(self, value: Any) -> str:
        """Of a weight, which torch makes an attribute of a module: as it is where that is safe."""
        if not isinstance(value, str):
            raise Refusal(f"{shown(value)} is no name")
        if value not in self._names:
            safe = _WEIGHT_NAME.fullmatch(value) and len(value) <= 500
            self._names[value] = value if safe else f"renamed.w{len(self._names)}"
        return self._names[value]

    def write(self, path: Path) -> None:
        """The new archive. Refusals become Unsupported, with the entry and the place in it."""
        import torch

        entry = f"models/{self._model}.json"
        value = self._json(entry)
        program = self._passed(entry, value, self._schema.program)
        signature = program["graph_module"]["signature"]
        specs = [next(iter(spec.items())) for spec in signature["input_specs"]]
        used = {
            "weights": {b[f"{kind}_name"] for kind, b in specs if kind == "parameter" or b.get("persistent")},
            "constants": {
                b["tensor_constant_name" if kind == "tensor_constant" else "buffer_name"]
                for kind, b in specs
                if kind == "tensor_constant" or b.get("persistent") is False
            },
        }
        program["graph_module"]["module_call_graph"] = [_calls(signature, _result_names(value))]
        program["graph_module"]["metadata"] = {}
        program["graph_module"]["treespec_namedtuple_fields"] = {}
        program |= {"opset_version": {"aten": 10}, "guards_code": [], "torch_version": torch.__version__}
        program["schema_version"]["minor"] = 0
        with PlainZip(path, "w", zipfile.ZIP_STORED) as made:
            for name, text in (("archive_format", "pt2"), ("archive_version", "0"), ("byteorder", "little")):
                made.writestr(f"model/{name}", text)
            made.writestr("model/.data/version", "6\n")
            made.writestr("model/models/model.json", json.dumps(program))
            no_inputs = io.BytesIO()
            torch.save(((), {}), no_inputs)  # torch insists on one
            made.writestr("model/data/sample_inputs/model.pt", no_inputs.getvalue())
            for folder, prefix in (("weights", "weight_"), ("constants", "tensor_")):
                rows = self._tensors(made, folder, prefix, used[folder])
                made.writestr(f"model/data/{folder}/model_{folder}_config.json", json.dumps({"config": rows}))

    def _json(self, entry: str) -> Any:
        """A JSON entry. CorruptFile: it is none, or an object has a key twice."""

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            made = dict(pairs)
            if len(made) != len(pairs):
                raise ValueError("a key appears twice")
            return made

        def never(text: str) -> float:
            raise ValueError(f"{text} is no JSON")

        data = self._archive.read(self._archive.root + entry, MAX_JSON)
        with damage_named(f"{self._archive.path}: {entry}"):
            return json.loads(data.decode("utf-8"), object_pairs_hook=once, parse_constant=never)

    def _passed(self, entry: str, value: Any, kind: Kind) -> Any:
        """What `kind` passes on of it. Unsupported: the place of what it does not."""
        with damage_named(f"{self._archive.path}: {entry}"):
            try:
                return kind(value)
            except Refusal as error:
                raise _core.Unsupported(f"{self._archive.path}: {entry}: {error}") from None

    def _tensors(self, made: zipfile.ZipFile, folder: str, prefix: str, used: set[str]) -> dict[str, Any]:
        """Writes the bytes of the rows that the signature uses, and returns the rows. A storage that several rows share
        is written once for each type of element."""
        entry = f"data/{folder}/{self._model}_{folder}_config.json"
        if self._archive.root + entry not in self._archive.names:
            return {}
        written: dict[tuple[str, int], str] = {}
        rows = {}
        for name, row in self._passed(entry, self._json(entry), file_schema(self._schema))["config"].items():
            ours = self._names.get(name)
            if ours not in used:
                continue
            meta, source = row["tensor_meta"], row["path_name"]
            place = f"{self._archive.path}: {entry}: {shown(name)}"
            if row["use_pickle"] or meta is None:
                raise _core.Unsupported(
                    f"{place} is a pickle (a tensor subclass or a script object), which is not read"
                )
            stored = self._stored(source, place)
            self._check_bounds(meta, self._archive.size(stored), place)
            key = (stored, meta["dtype"])
            if key not in written:
                written[key] = f"{prefix}{len(written)}"
                with made.open(f"model/data/{folder}/{written[key]}", "w", force_zip64=True) as file:
                    for piece in self._contents(stored, meta["dtype"], place):
                        file.write(piece)
            rows[ours] = {
                "path_name": written[key],
                "is_param": row["is_param"],
                "use_pickle": False,
                "tensor_meta": meta,
            }
        return rows

    def _stored(self, source: str, place: str) -> str:
        """The entry that holds a storage: a file of one of these two folders."""
        for folder in ("weights", "constants"):
            if "/" not in source and f"{self._archive.root}data/{folder}/{source}" in self._archive.names:
                return f"{self._archive.root}data/{folder}/{source}"
        raise _core.CorruptFile(f"{place}: there is no entry {shown(source)}")

    def _check_bounds(self, meta: dict[str, Any], stored: int, place: str) -> None:
        """CorruptFile where the tensor reaches beyond its storage, or expands it beyond measure."""
        numbers = [next(iter(n.items())) for n in (*meta["sizes"], *meta["strides"], meta["storage_offset"])]
        if any(key != "as_int" or value < 0 for key, value in numbers):
            raise _core.CorruptFile(f"{place}: a size, stride or offset is negative or symbolic")
        rank = len(meta["sizes"])
        sizes, strides = [v for _, v in numbers[:rank]], [v for _, v in numbers[rank:-1]]
        if len(strides) != rank or rank > MAX_RANK:
            raise _core.CorruptFile(f"{place}: {rank} sizes and {len(strides)} strides, at most {MAX_RANK}")
        element = SCALAR_TYPES[meta["dtype"]]
        if stored % element:
            raise _core.CorruptFile(f"{place}: a storage of {stored} bytes for elements of {element}")
        last, elements = numbers[-1][1], 1
        for size, stride in zip(sizes, strides, strict=True):
            last += (size - 1) * stride
            elements *= size
        if elements and (last + 1) * element > stored:
            raise _core.CorruptFile(f"{place}: its last element is number {last} of a storage of {stored // element}")
        if not elements and max(*sizes, *strides, last, 0) > stored + EXPANSION_SLACK:
            raise _core.CorruptFile(f"{place}: its sizes are those of no tensor without elements")
        if elements * element > stored:
            self._expanded += elements * element
        if self._expanded > EXPANSION_FACTOR * self._archive.bytes + EXPANSION_SLACK:
            raise _core.CorruptFile(f"{place}: its {elements} elements are an expansion of {stored} bytes")

    def _contents(self, stored: str, dtype: int, place: str) -> Iterator[bytes | memoryview]:
        for piece in self._archive.chunks(stored):
            if dtype == BOOL and bytes(piece).translate(None, b"\0\1"):
                raise _core.CorruptFile(f"{place}: a bool is neither 0 nor 1")
            yield piece


__all__ = ["archive_kind", "load_archive"]
