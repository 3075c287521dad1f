"""The commands: each takes the options that the parser read, and returns its exit status."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.cli.arguments import check_writable, dims, feed, new_names, sizes
from pinnace.cli.device_report import device_line, imported_command
from pinnace.cli.input_files import InputFiles
from pinnace.cli.output import bold, cyan, dim, failed, green, red, show
from pinnace.cli.quantize_options import quantization_of
from pinnace.cli.totals import Totals, amount, totals_of
from pinnace.files import member_names, place_text, printable, replaced
from pinnace.inputs.attempts import range_text
from pinnace.loading import load
from pinnace.model import Model
from pinnace.program import NodeInfo, Program, diff
from pinnace.quantization import FACT
from pinnace.session import Session
from pinnace.targets import devices
from pinnace.torch.zip_file import PlainZip
from pinnace.torchscript.script import is_script_file
from pinnace.types import Dim, TensorSpec, json_text
from pinnace.verify.comparison import compare


def convert_command(options: argparse.Namespace) -> int:
    """Imports a model, verifies the program and writes it."""
    check_writable(options.output, [options.model, options.reference, *InputFiles(options).paths])
    model, examples = _loaded(options, symbols=dims(options.dim), disabled_passes=options.disable_pass)
    for note in () if options.quiet else model.notes:
        show(f"note: {printable(note)}", file=sys.stderr)
    program = model.build(
        options.target or ["cpu"],
        quantization_of(options, model),
        verify=not options.no_verify,
        examples=examples,
        reference=options.reference,
        tolerance=options.tolerance,
        input_names=new_names("--input-name", options.input_name),
        output_names=new_names("--output-name", options.output_name),
    )
    if not options.quiet:
        _print_found(program)
    program.save(options.output)
    facts = {
        "output": options.output,
        "bytes": Path(options.output).stat().st_size,
        "nodes": len(program.nodes),
        "notes": model.notes,
        **{key: value for key, value in program.metadata.items() if key != FACT},
        **({"quantization": json.loads(report.to_json(ranges=False))} if (report := program.quantization) else {}),
    }
    if options.json:
        show(json.dumps(facts))
    else:
        show(f"{options.output}: {facts['bytes']:,} bytes, {facts['nodes']} nodes")
        for key, value in program.metadata.items():
            if key.startswith("verified"):
                show(f"  {printable(key)}: {printable(value)}")
        if program.quantization is not None:
            show(f"  {program.quantization}".replace("\n", "\n  "))
    if program.metadata.inconclusive and not options.allow_inconclusive:
        return failed(
            f"{options.output} is written, but its verification proves nothing ({program.metadata.verified}). Give "
            "inputs of your own (--input NAME=FILE.npy), or take it as it is (--allow-inconclusive)",
            1,
        )
    return 0


def _loaded(
    options: argparse.Namespace, symbols: Sequence[Dim] = (), disabled_passes: Sequence[str] = ()
) -> tuple[Model, list[Mapping[str, Any]]]:
    """The model, and examples for build() where load() could not have them: arrays of images follow from the inputs
    that it declares."""
    files = InputFiles(options)
    images = files.has_images and not (Path(options.model).is_file() and is_script_file(options.model))
    arrays = () if images else files.arrays() or ()  # none at all: TorchScript has no names for them
    model = load(options.model, arrays, symbols=symbols, disabled_passes=disabled_passes, random=options.random)
    return model, [files.arrays_for(model.inputs)] if images else []


def _print_found(program: Program) -> None:
    """What the build made up and found out, for whoever gave neither inputs nor sizes."""
    metadata = program.metadata
    for found, title in (
        (metadata.made_up, "made up, since it was not given (--input NAME=FILE.npy gives an input):"),
        (metadata.ranges, "sizes that the model takes, by its shape rules (--dim NAME=MIN..MAX narrows them):"),
    ):
        if found:
            show(title, file=sys.stderr)
        for name, value in found.items():
            show(f"  {printable(name)}: {printable(value)}", file=sys.stderr)
    if "made_up" in metadata:
        show(f"note: {printable(metadata['made_up'])}", file=sys.stderr)


def _spec_facts(spec: TensorSpec) -> dict[str, Any]:
    """Sizes are numbers, {"name", "min", "max", "multiple_of"} where each run fixes them, null where data decide."""
    shape = [asdict(d) if isinstance(d, Dim) else d for d in spec.shape]
    quantization = asdict(spec.quantization) if spec.quantization else None
    return {"name": spec.name, "dtype": str(spec.dtype), "shape": shape, "quantization": quantization}


def inspect_command(options: argparse.Namespace) -> int:
    """Shows what a file holds, a .pnc or any that load() takes: totals, inputs and outputs, nodes."""
    owner: Program | Model
    given: Mapping[str, Any]
    if _core.Model.format_of(options.program) == "pnc":
        owner = Program.open(options.program)
        given = InputFiles(options).arrays_for(owner.inputs, sizes(options.dim))
    else:
        options.model = options.program
        owner, examples = _loaded(options)
        given = examples[0] if examples else InputFiles(options).arrays_for(owner.inputs, sizes(options.dim))
    if options.text:
        show(owner.text())
        return 0
    totals = totals_of(owner, given, sizes(options.dim))
    size = Path(options.program).stat().st_size
    if options.json:
        _inspect_as_json(owner, totals, size)
    else:
        _inspect_as_text(owner, totals, size)
    return 0


def _inspect_as_json(owner: Program | Model, totals: Totals, size: int) -> None:
    rows: dict[str, Any] = {
        "totals": {"nodes": len(owner.nodes), "file_bytes": size, **asdict(totals)},
        "inputs": [_spec_facts(s) for s in owner.inputs.values()],
        "outputs": [_spec_facts(s) for s in owner.outputs.values()],
    }
    if isinstance(owner, Program):
        rows["states"] = [_spec_facts(s) for s in owner.states.values()]
        rows["metadata"] = dict(owner.metadata)
        rows["payloads"] = [asdict(payload) for payload in owner.payloads]
    else:
        rows["notes"] = owner.notes
    rows["nodes"] = [asdict(node) for node in owner.nodes]
    show(json.dumps(rows, indent=1))


def _inspect_as_text(owner: Program | Model, totals: Totals, size: int) -> None:
    at = ", ".join(f"{name} = {size}" for name, size in totals.at.items())
    least = "at least " if totals.multiply_adds_are_least else ""
    adds = "unknown" if totals.multiply_adds is None else f"{least}{amount(totals.multiply_adds)}"
    show(bold(f"{amount(totals.parameters)} parameters"), f", {totals.constant_bytes:,} bytes of constants")
    show(bold(f"{adds} multiply-adds"), f" at {at}" if at and totals.multiply_adds is not None else "")
    show(bold(f"{size:,} bytes"), f" of file, {len(owner.nodes):,} nodes")
    states = owner.states if isinstance(owner, Program) else {}
    dynamic_dims: dict[str, Dim] = {}
    for kind, specs in (("input", owner.inputs), ("output", owner.outputs), ("state", states)):
        for spec in specs.values():
            show(f"{kind:8}", bold(spec))
            dynamic_dims |= {size.name: size for size in spec.shape if isinstance(size, Dim)}
    for name, dynamic_dim in dynamic_dims.items():
        show(f"{'size':8}", bold(printable(name)), f": {range_text(dynamic_dim)}")
    if isinstance(owner, Program):
        for key, value in owner.metadata.items():
            if key != FACT:
                show(dim(f"{printable(key)}: "), printable(value))
        if owner.quantization is not None:
            show(owner.quantization)
        parts: dict[str, list[int]] = {}
        for payload in owner.payloads:
            parts.setdefault(payload.target, []).append(payload.bytes)
        for target, each in parts.items():
            show(f"payload for {target}: {len(each)} parts, {sum(each):,} bytes")
    else:
        for note in owner.notes:
            show(dim("note: "), printable(note))
    for node in owner.nodes:
        _show_node(node)


def _show_node(node: NodeInfo) -> None:
    place = place_text(node.name, node.module, node.source)
    name = printable(f"{node.path}/{node.name}" if node.path else node.name)
    types = printable(", ".join(node.output_types))
    show(f"{name}: ", cyan(printable(node.op)), f" -> {types}", dim(f"  {printable(place)}") if place else "")


def check_command(options: argparse.Namespace) -> int:
    """Shows whether each node can run on a target; 1 if some cannot."""
    report = _loaded(options)[0].check(options.target or ["cpu"])
    if options.json:
        show(json.dumps([asdict(node) for node in report.nodes], indent=1))
    else:
        for line in str(report).splitlines():
            show(red(line) if line.startswith(" ") else line)
    return 0 if report.ok else 1


def run_command(options: argparse.Namespace) -> int:
    """Runs a .pnc file once."""
    if options.output:
        check_writable(options.output, [options.program, *InputFiles(options).paths])
    program = Program.open(options.program)
    kept = not options.no_pack_cache
    session = Session(program, options.target or "auto", options.threads, options.precision, pack_cache=kept)
    outputs = session.run(feed(program, options))
    if options.output:
        members = member_names(outputs)
        # np.savez takes the arrays as keyword arguments, and some names of outputs are arguments of its own.
        with replaced(options.output) as whole, PlainZip(whole, "w") as archive:
            for name, array in outputs.items():
                with archive.open(f"{members[name]}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
    if options.json:
        rows = {
            name: {"dtype": str(a.dtype), "shape": list(a.shape), "values": a.tolist()} for name, a in outputs.items()
        }
        show(json_text(rows))
    elif options.output:
        shapes = ", ".join(f"{printable(name)} {array.dtype}{list(array.shape)}" for name, array in outputs.items())
        show(f"{printable(options.output)}: {shapes}")
    else:
        for name, array in outputs.items():
            values = np.array2string(array.ravel()[:8], precision=6, separator=" ", max_line_width=10_000)
            show(f"{printable(name)}: {array.dtype}{list(array.shape)} {values}{' …' if array.size > 8 else ''}")
    return 0


def compare_command(options: argparse.Namespace) -> int:
    """Compares a .pnc file with its source; 1 unless all is equal, proven and available."""
    if options.html:
        check_writable(options.html, [options.program, options.reference, *InputFiles(options).paths])
    program = Program.open(options.program)
    result = compare(
        program,
        options.reference,
        [feed(program, options)],
        targets=options.target or ["cpu"],
        precision=options.precision or ["fp32"],
        tolerance=options.tolerance,
    )
    result = replace(result, about={**result.about, "made by": options.line})
    if options.html:
        result.to_html(options.html)
    if options.json:
        show(result.to_json())
    else:
        *lines, verdict = str(result).splitlines()
        for line in lines:
            show(red(line) if line.rstrip().endswith("!") or " !  " in line else line)
        show((green if result.ok and not result.inconclusive else red)(verdict))
    proven = not result.inconclusive or options.allow_inconclusive
    return 0 if result.ok and not result.unavailable and proven else 1


def devices_command(options: argparse.Namespace) -> int:
    """Shows the targets of this build, or the report of a device."""
    if options.imported is not None:
        return imported_command(options)
    rows = devices()
    if options.json:
        show(json_text([asdict(row) for row in rows]))
    else:
        for row in rows:
            show(device_line(row))
    return 0


def diff_command(options: argparse.Namespace) -> int:
    """Shows what differs between two .pnc files; 1 if anything does."""
    lines = diff(Program.open(options.a), Program.open(options.b))
    if options.json:
        show(json.dumps(lines))
    else:
        show("\n".join(lines) if lines else "no difference")
    return 1 if lines else 0


__all__ = [
    "check_command",
    "compare_command",
    "convert_command",
    "devices_command",
    "diff_command",
    "inspect_command",
    "run_command",
]
