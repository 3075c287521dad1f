"""The command `pinnace`: convert, inspect, check, run, compare, bench, devices, diff.

Exit status 0: all is well; 1: a negative answer (does not match, cannot convert); 2: wrong use. Data on stdout,
messages on stderr.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.compare import compare
from pinnace.model import load
from pinnace.program import Program, diff
from pinnace.session import Session, devices
from pinnace.types import Array, Dim
from pinnace.verify import seeded_inputs


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        return status
    except BrokenPipeError:
        return 0
    except (_core.InvalidArgument, _core.FileError) as error:
        print(f"pinnace: {error}", file=sys.stderr)
        return 2
    except _core.Error as error:
        print(f"pinnace: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pinnace", description="Convert, run and compare models.")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        return sub

    def target(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--target", action="append", help="cpu, cpu:avx2, …; may be given several times")

    def inputs(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input; others are seeded"
        )

    convert = command("convert", _convert, "a .pt2 or .onnx model to a verified .pnc file")
    convert.add_argument("model")
    convert.add_argument("-o", "--output", required=True)
    convert.add_argument(
        "--no-verify", action="store_true", help="do not compare with the source; the file records that"
    )
    convert.add_argument(
        "--dim", action="append", default=[], metavar="NAME=MIN..MAX", help="range of an open dimension"
    )
    convert.add_argument("--disable-pass", action="append", default=[], metavar="PASS")
    convert.add_argument("--json", action="store_true")
    target(convert)
    inputs(convert)

    inspect = command("inspect", _inspect, "what a .pnc file holds")
    inspect.add_argument("program")
    inspect.add_argument("--text", action="store_true", help="the whole graph in its text form")
    inspect.add_argument("--json", action="store_true")

    check = command("check", _check, "whether each node of a model can run on a target; needs no device")
    check.add_argument("model")
    check.add_argument("--json", action="store_true")
    target(check)

    run = command("run", _run, "run a .pnc file once")
    run.add_argument("program")
    run.add_argument("--threads", type=int, default=0)
    run.add_argument("--output", metavar="FILE.npz", help="where to write the outputs; else a summary is printed")
    target(run)
    inputs(run)

    comp = command("compare", _compare, "a .pnc file against its source, layer by layer")
    comp.add_argument("program")
    comp.add_argument("--reference", required=True, help=".pt2, .onnx or .pnc")
    comp.add_argument("--html", metavar="FILE")
    comp.add_argument("--json", action="store_true")
    target(comp)
    inputs(comp)

    bench = command("bench", _bench, "time a .pnc file")
    bench.add_argument("program")
    bench.add_argument("--threads", default="1", help="list, such as 1,2")
    bench.add_argument("--runs", type=int, default=50)
    bench.add_argument("--json", action="store_true")
    target(bench)
    inputs(bench)

    command("devices", _devices, "targets of this build, and whether they can run here").add_argument(
        "--json", action="store_true"
    )

    differ = command("diff", _diff, "what differs between two .pnc files; status 1 if anything does")
    differ.add_argument("a")
    differ.add_argument("b")
    return parser


def _load_inputs(pairs: Sequence[str]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals:
            raise _core.InvalidArgument(f"--input {pair!r}: must be NAME=FILE.npy")
        try:
            arrays[name] = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise _core.FileError(f"--input {name}: {path}: {error}") from error
    return arrays


def _feed(program: Program, pairs: Sequence[str]) -> dict[str, Array]:
    given = _load_inputs(pairs)
    rest = {name: spec for name, spec in program.inputs.items() if name not in given}
    return {**seeded_inputs(rest), **given}


def _dims(texts: Sequence[str]) -> list[Dim]:
    dims = []
    for text in texts:
        name, _, bounds = text.partition("=")
        low, dots, high = bounds.partition("..")
        try:
            dims.append(Dim(name, int(low), int(high) if dots else int(low)))
        except ValueError as error:
            raise _core.InvalidArgument(f"--dim {text!r}: must be NAME=MIN..MAX") from error
    return dims


def _convert(options: argparse.Namespace) -> int:
    model = load(
        options.model, _load_inputs(options.input), symbols=_dims(options.dim), disabled_passes=options.disable_pass
    )
    for note in model.notes:
        print(f"note: {note}", file=sys.stderr)
    program = model.build(options.target or ["cpu"], verify=not options.no_verify)
    program.save(options.output)
    facts = {
        "output": options.output,
        "bytes": len(program.to_bytes()),
        "nodes": len(program.nodes),
        **program.metadata,
    }
    if options.json:
        print(json.dumps(facts))
    else:
        print(f"{options.output}: {facts['bytes']:,} bytes, {facts['nodes']} nodes")
        for key, value in program.metadata.items():
            if key.startswith("verified"):
                print(f"  {key}: {value}")
    return 0


def _inspect(options: argparse.Namespace) -> int:
    program = Program.open(options.program)
    if options.text:
        print(program.text())
    elif options.json:
        rows = {
            "inputs": [str(s) for s in program.inputs.values()],
            "outputs": [str(s) for s in program.outputs.values()],
            "states": [str(s) for s in program.states.values()],
            "metadata": program.metadata,
            "nodes": [vars(n) for n in program.nodes],
        }
        print(json.dumps(rows, indent=1))
    else:
        for kind, specs in (("input", program.inputs), ("output", program.outputs), ("state", program.states)):
            for spec in specs.values():
                print(f"{kind:8}{spec}")
        for key, value in program.metadata.items():
            print(f"{key}: {value}")
        for node in program.nodes:
            place = f"  {node.source}" if node.source else ""
            print(
                f"{node.path + '/' if node.path else ''}{node.name}: {node.op} -> {', '.join(node.output_types)}{place}"
            )
    return 0


def _check(options: argparse.Namespace) -> int:
    report = load(options.model).check(options.target or ["cpu"])
    if options.json:
        print(json.dumps([vars(n) for n in report.nodes], indent=1))
    else:
        print(report)
    return 0 if report.ok else 1


def _run(options: argparse.Namespace) -> int:
    program = Program.open(options.program)
    session = Session(program, options.target or "auto", options.threads)
    outputs = session.run(_feed(program, options.input))
    if options.output:
        np.savez(options.output, allow_pickle=False, **outputs)
        return 0
    for name, array in outputs.items():
        print(
            f"{name}: {array.dtype}{list(array.shape)} {np.array2string(array.ravel()[:8], precision=6, separator=' ')}"
        )
    return 0


def _compare(options: argparse.Namespace) -> int:
    program = Program.open(options.program)
    result = compare(program, options.reference, [_feed(program, options.input)], targets=options.target or ["cpu"])
    if options.html:
        result.to_html(options.html)
    print(result.to_json() if options.json else result)
    return 0 if result.ok else 1


def _bench(options: argparse.Namespace) -> int:
    program = Program.open(options.program)
    feed = _feed(program, options.input)
    rows = []
    for target in options.target or ["cpu"]:
        for threads in (int(t) for t in options.threads.split(",")):
            start = time.perf_counter()
            session = Session(program, target, threads)
            session.run(feed)
            first = time.perf_counter() - start
            times = []
            for _ in range(max(1, options.runs)):
                start = time.perf_counter()
                session.run(feed)
                times.append((time.perf_counter() - start) * 1e3)
            times.sort()
            rows.append(
                {
                    "target": target,
                    "threads": threads,
                    "runs": len(times),
                    "median_ms": statistics.median(times),
                    "p10_ms": times[len(times) // 10],
                    "p90_ms": times[len(times) * 9 // 10],
                    "create_and_first_run_ms": first * 1e3,
                    "peak_bytes": session.plan.peak_bytes,
                }
            )
    if options.json:
        print(json.dumps(rows))
    else:
        for r in rows:
            print(
                f"{r['target']} threads {r['threads']}: median {r['median_ms']:.2f} ms (p10 {r['p10_ms']:.2f}, p90 "
                f"{r['p90_ms']:.2f}, {r['runs']} runs), first {r['create_and_first_run_ms']:.1f} ms, "
                f"{r['peak_bytes']:,} bytes"
            )
    return 0


def _devices(options: argparse.Namespace) -> int:
    rows = devices()
    if options.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(f"{row['target']}: {'' if row['available'] else 'not available: '}{row['description']}")
    return 0


def _diff(options: argparse.Namespace) -> int:
    lines = diff(Program.open(options.a), Program.open(options.b))
    print("\n".join(lines) if lines else "no difference")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
