#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: `make_seeds.py FOLDER` fills FOLDER/<target>/ for each of them.

Small models of everything that the readers know, made here by the onnx package, by torch.export, by PyTorch's NNAPI
converter and by pinnace itself: one graph per operator and form, one exported program per node. Beside them the texts
in tests/fuzz/seeds, which are copied, and NNAPI's conformance vectors where they are (PINNACE_NNAPI_VECTORS). Names are
hashes of the contents, so that making them again adds nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import struct
import sys
import tarfile
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "python"
sys.path[:0] = [str(HERE.parents[1] / "python"), str(TESTS), str(TESTS / "import_torchscript")]
from exported_json import archive, compact, exported_programs, programs_of_one_node  # noqa: E402

MOST_BYTES = {
    "onnx": 2000,
    "text": 3000,
    "run": 3000,
    "pnc": 4096,
    "pt2": 6000,
    "pt2_json": 6000,
    "nnapi_torch": 3000,
    "nnapi_json": 3000,
}


class Seeds:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: dict[str, int] = {}

    def add(self, target: str, content: bytes) -> None:
        """Keeps it as a seed unless it is too long to be mutated well."""
        if len(content) > MOST_BYTES.get(target, 4096):
            return
        folder = self.folder / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha1(content).hexdigest()[:16]).write_bytes(content)
        self.counts[target] = self.counts.get(target, 0) + 1


def stored_texts(seeds: Seeds) -> None:
    """tests/fuzz/seeds/<target>.txt: texts between lines of ---; <target>/*: one seed a file."""
    for path in sorted((HERE / "seeds").rglob("*")):
        if path.is_dir():
            continue
        if path.parent == HERE / "seeds":
            for text in path.read_text().split("\n---\n"):
                seeds.add(path.stem, text.rstrip("\n").encode())
        else:
            seeds.add(path.parent.name, path.read_bytes())


def add_model(seeds: Seeds, model: Any) -> None:
    """A model that pinnace has loaded: as text and as a program."""
    text = model.text(1 << 20).encode()
    seeds.add("text", text)
    seeds.add("run", text)
    with contextlib.suppress(Exception):
        seeds.add("pnc", model.build(["cpu"]).bytes())


def onnx_models() -> Iterator[bytes]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        cases = load_model_tests(kind="node")
    for case in cases:
        if case.model is not None:
            yield case.model.SerializeToString()


def onnx_seeds(seeds: Seeds) -> None:
    """The models of the onnx package's own node tests; what pinnace makes of each, as text and as a program."""
    from pinnace import _core

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        for content in onnx_models():
            if len(content) > MOST_BYTES["onnx"]:
                continue
            seeds.add("onnx", content)
            path.write_bytes(content)
            with contextlib.suppress(_core.Error):
                add_model(seeds, _core.Model.load(str(path), disabled_passes=["all"]))


def torch_seeds(seeds: Seeds) -> None:
    """Exported programs: whole ones where they are small, and one archive per kind of node."""
    programs = list(exported_programs())
    for exported in programs:
        whole = compact(exported.program)
        for text in re.findall(r'"expr_str":"((?:[^"\\]|\\.)*)"', whole.decode()):
            seeds.add("expression", json.loads(f'"{text}"').encode())
        seeds.add("pt2", archive({"archive_format": b"pt2", "models/model.json": whole} | exported.weights))
        seeds.add("pt2_json", whole + b"\0" + exported.weights.get("data/weights/model_weights_config.json", b""))
    for i, program in enumerate(programs_of_one_node(iter(programs))):
        seeds.add("pt2_json", compact(program))
        if i % 8 == 7:
            seeds.add("pt2", archive({"archive_format": b"pt2", "models/model.json": compact(program)}))


def torch_nnapi_seeds(seeds: Seeds) -> None:
    """What PyTorch's NNAPI converter makes of the tests' models, with all weights in one buffer."""
    import torch
    import torch_nnapi_models as models
    from torch.backends._nnapi import prepare

    process: Any = prepare.process_for_nnapi
    for case in (*models.plain(), *models.shapes(), *models.windows(), *models.quantised_modules()):
        try:
            traced = (
                torch.jit.trace(case.model, case.inputs)
                if not isinstance(case.model, torch.nn.Module)
                else (torch.jit.trace(case.model.eval(), case.inputs))
            )
            if not isinstance(traced, torch.jit.ScriptModule):
                traced = torch.jit.trace(models.Function(case.model).eval(), case.inputs)
            _, serialised, weights, formats, _, _ = process(traced, case.inputs)
        except Exception:  # a model that the converter does not take is no seed
            continue
        words = serialised.numpy().tobytes()
        buffer = b"".join(bytes(w.contiguous().untyped_storage()) for w in weights[:1])
        last = 1 if any(f == 1 for f in formats) else 0
        seeds.add("nnapi_torch", struct.pack("<I", len(words) | last << 24 | last << 25) + words + buffer)


def lone_case(vectors: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """The document of one case, with the buffers that it mentions."""
    case = json.loads(json.dumps(case))
    graphs = [case["main"], *case.get("refs", [])]
    operands = [o for g in graphs for o in g["operands"] if "buf" in o]
    used = sorted({o["buf"] for o in operands})
    for operand in operands:
        operand["buf"] = used.index(operand["buf"])
    return {"format": vectors["format"], "buffers": [vectors["buffers"][i] for i in used], "cases": [case]}


def nnapi_seeds(seeds: Seeds) -> None:
    """Conformance vectors where they are: at most two cases for each list of operations."""
    vectors = Path(os.environ.get("PINNACE_NNAPI_VECTORS") or "/nonexistent") / "vectors.tar.xz"
    if not vectors.is_file():
        return
    seen: Counter[str] = Counter()
    with tarfile.open(vectors) as files:
        for member in files:
            stream = files.extractfile(member) if member.name.endswith(".json") else None
            document = json.load(stream) if stream and member.size < 300_000 else {"cases": []}
            for case in document["cases"]:
                kind = f"{member.name} {[o['code'] for o in case['main']['operations']]}"
                content = compact(lone_case(document, case)) if seen[kind] < 2 else b""
                if 0 < len(content) < MOST_BYTES["nnapi_json"]:
                    seen[kind] += 1
                    seeds.add("nnapi_json", content)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    warnings.simplefilter("ignore")
    seeds = Seeds(Path(sys.argv[1]))
    for make in (stored_texts, onnx_seeds, torch_seeds, torch_nnapi_seeds, nnapi_seeds):
        make(seeds)
    print("make_seeds:", ", ".join(f"{count} {target}" for target, count in sorted(seeds.counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
