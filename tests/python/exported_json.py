"""Programs of torch.export as JSON: of the modules that import_torch_test exports, and of single nodes of theirs."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch_modules import CASES


def lean(value: Any) -> Any:
    """The JSON of an archive without what the importer does not read."""
    left_out = {"metadata", "hint", "module_call_graph", "treespec_namedtuple_fields", "guards_code", "opset_version"}
    if isinstance(value, dict):
        return {k: lean(v) for k, v in value.items() if k not in left_out}
    return [lean(v) for v in value] if isinstance(value, list) else value


def tensors_in(value: Any) -> list[str]:
    """Names of the tensors that an argument mentions, in order."""
    if isinstance(value, dict):
        if "as_tensor" in value:
            return [value["as_tensor"]["name"]]
        if "as_tensors" in value:
            return [t["name"] for t in value["as_tensors"]]
        return [name for v in value.values() for name in tensors_in(v)]
    return [name for v in value for name in tensors_in(v)] if isinstance(value, list) else []


def one_node(program: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The program of one node: the tensors that it reads are inputs, those that it makes are outputs."""
    graph = program["graph_module"]["graph"]
    read = list(dict.fromkeys(tensors_in(node["inputs"])))
    made = tensors_in(node["outputs"])
    arguments = [{"as_tensor": {"name": name}} for name in read]
    results = [{"as_tensor": {"name": name}} for name in made]
    values = {name: graph["tensor_values"][name] for name in (*read, *made) if name in graph["tensor_values"]}
    return program | {
        "graph_module": {
            "graph": graph | {"inputs": arguments, "outputs": results, "nodes": [node], "tensor_values": values},
            "signature": {
                "input_specs": [{"user_input": {"arg": a}} for a in arguments],
                "output_specs": [{"user_output": {"arg": r}} for r in results],
            },
        }
    }


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def archive(entries: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as written:
        for name, content in entries.items():
            written.writestr(zipfile.ZipInfo(f"a/{name}"), content)
    return stream.getvalue()


@dataclass
class Exported:
    """What torch.export.save writes of a module, without what the importer does not read."""

    program: dict[str, Any]
    weights: dict[str, bytes]  # other entries by name: weights and constants, and their tables


def exported_programs() -> Iterator[Exported]:
    """Of each module. What torch does not export is named on standard error."""
    for case in CASES.values():
        generator = torch.Generator().manual_seed(1)
        stream = io.BytesIO()
        try:
            module, inputs = case.module().eval(), case.inputs(generator, case.sizes[0])
            torch.export.save(torch.export.export(module, inputs, dynamic_shapes=case.dynamic, strict=False), stream)
        except Exception as error:
            print(f"not exported: {error}", file=sys.stderr)
            continue
        with zipfile.ZipFile(stream) as made:
            entries = {name.partition("/")[2]: made.read(name) for name in made.namelist()}
        weights = {k: v for k, v in entries.items() if k.startswith("data/") and "sample_inputs" not in k}
        weights = {k: compact(lean(json.loads(v))) if k.endswith(".json") else v for k, v in weights.items()}
        yield Exported(lean(json.loads(entries["models/model.json"])), weights)


def programs_of_one_node(programs: Iterator[Exported]) -> Iterator[dict[str, Any]]:
    """For each operator and kinds of its arguments the first."""
    seen: set[str] = set()
    for exported in programs:
        for node in exported.program["graph_module"]["graph"]["nodes"]:
            kind = f"{node['target']} {sorted(next(iter(a['arg'])) for a in node['inputs'])}"
            if kind not in seen:
                seen.add(kind)
                yield one_node(exported.program, node)


__all__ = ["Exported", "archive", "compact", "exported_programs", "one_node", "programs_of_one_node"]
