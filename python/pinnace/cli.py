"""The command `pinnace`: convert, inspect, check, run, compare, bench, devices, diff.

Exit status 0: all is well; 1: a negative answer (does not match, cannot run there, cannot convert, out of memory);
2: wrong use, or what cannot be read or written, standard output included; 130: Ctrl-C, after which no file is
half-written. Data on stdout, messages on stderr; --log LEVEL has the library's own messages there too.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import statistics
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import numpy as np

from pinnace import __version__, _core
from pinnace.array_file import read_array
from pinnace.comparison import compare
from pinnace.files import member_names, printable, reason, replaced
from pinnace.log import log_to_stderr
from pinnace.made_inputs import seeded_inputs
from pinnace.model import load
from pinnace.program import Program, diff
from pinnace.session import Session, devices
from pinnace.types import Array, Dim, TensorSpec, json_text
from pinnace.verify import is_inconclusive


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names may have letters that the terminal's encoding lacks
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        if level := getattr(options, "log", None):
            log_to_stderr(level)
        status: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except BrokenPipeError:  # `pinnace inspect net.pnc | head`: what is left to write has no reader
        _drop_output()
        return 0
    except OSError as error:  # of standard output, on a full disk for instance: those of files are FileError
        _drop_output()
        return _failed(f"cannot write: {reason(error)}" if error.filename is None else error, 2)
    except KeyboardInterrupt:
        return _failed("interrupted", 130)
    except (_core.InvalidArgument, _core.FileError) as error:
        return _failed(error, 2)
    except _core.Error as error:
        return _failed(error, 1)
    except MemoryError:
        return _failed("out of memory", 1)


def _failed(text: object, status: int) -> int:
    """The status, after a message, if there is a place for it."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            _print(f"pinnace: {text}", file=sys.stderr)
    return status


def _drop_output() -> None:
    """What standard output still holds goes nowhere: the interpreter would try once more to write it at its end."""
    with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:  # OSError: a stream that is no file
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _print(text: object, file: TextIO | None = None) -> None:
    """The one way to the terminal. Names come from files: what a terminal would act on is escaped."""
    print(printable(str(text), keep="\n"), file=file or sys.stdout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pinnace", description="Convert, run and compare models.")
    parser.add_argument("--version", action="version", version=f"pinnace {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)

    def log(parser: argparse.ArgumentParser) -> None:
        text = "messages of this level and above on stderr: trace, debug, info, warn, error or off"
        parser.add_argument("--log", metavar="LEVEL", default=argparse.SUPPRESS, help=text)

    log(parser)

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        log(sub)
        return sub

    def target(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--target", action="append", help="cpu, cpu:avx2, …; may be given several times")

    def precision(sub: argparse.ArgumentParser, several: bool) -> None:
        text = "fp32 (default), fp16 or bf16" + ("; may be given several times" if several else "")
        if several:
            sub.add_argument("--precision", action="append", help=text)
        else:
            sub.add_argument("--precision", default="fp32", help=text)

    def inconclusive(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--allow-inconclusive",
            action="store_true",
            help="status 0 although equal outputs prove nothing: they do not move with the input, for instance",
        )

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
    convert.add_argument("--reference", metavar="FILE", help="hold it against this .pt2, .onnx or .pnc, not its source")
    inconclusive(convert)
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
    run.add_argument("--threads", type=_whole(0), default=0, help="most threads of the run; 0: all processors")
    run.add_argument(
        "--output",
        metavar="FILE.npz",
        help="where to write the outputs, each as NAME.npy; in names, %%2F stands for / and so on, as in URLs",
    )
    run.add_argument("--json", action="store_true", help="all values of the outputs as JSON")
    target(run)
    precision(run, several=False)
    inputs(run)

    comp = command(
        "compare",
        _compare,
        "a .pnc file against its source, layer by layer; status 1 too if a target cannot run here",
    )
    comp.add_argument("program")
    comp.add_argument("--reference", required=True, help=".pt2, .onnx or .pnc")
    comp.add_argument("--html", metavar="FILE")
    comp.add_argument("--json", action="store_true")
    inconclusive(comp)
    target(comp)
    precision(comp, several=True)
    inputs(comp)

    bench = command("bench", _bench, "time a .pnc file")
    bench.add_argument("program")
    bench.add_argument("--threads", type=_whole_list, default=[1], metavar="N,N,…", help="default: 1")
    bench.add_argument("--runs", type=_whole(1), default=50)
    bench.add_argument("--json", action="store_true")
    target(bench)
    precision(bench, several=True)
    inputs(bench)

    command("devices", _devices, "targets of this build, and whether they can run here").add_argument(
        "--json", action="store_true"
    )

    differ = command("diff", _diff, "what differs between two .pnc files; status 1 if anything does")
    differ.add_argument("a")
    differ.add_argument("b")
    differ.add_argument("--json", action="store_true", help="the differences as a list of sentences")
    return parser


def _whole(least: int) -> Callable[[str], int]:
    """A type for argparse: whole numbers from `least` on."""

    def whole_number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
        return int(text)

    return whole_number


def _whole_list(text: str) -> list[int]:
    return [_whole(0)(part) for part in text.split(",")]


def _load_inputs(pairs: Sequence[str]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals:
            raise _core.InvalidArgument(f"--input {pair!r}: must be NAME=FILE.npy")
        try:
            array = read_array(path)
        except _core.Error as error:
            error.args = (f"--input {name}: {error}",)
            raise
        arrays[name] = array
    return arrays


def _check_writable(path: str) -> None:
    """FileError now rather than after minutes of work."""
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise _core.FileError(f"cannot write {path!r}: its folder does not exist")
    if os.path.isdir(path):
        raise _core.FileError(f"cannot write {path!r}: it is a folder")


def _feed(program: Program, pairs: Sequence[str]) -> dict[str, Array]:
    return seeded_inputs(program.inputs, _load_inputs(pairs), program=program)


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
    _check_writable(options.output)
    model = load(
        options.model, _load_inputs(options.input), symbols=_dims(options.dim), disabled_passes=options.disable_pass
    )
    for note in model.notes:
        _print(f"note: {printable(note)}", file=sys.stderr)
    program = model.build(options.target or ["cpu"], verify=not options.no_verify, reference=options.reference)
    _print_found(program)
    program.save(options.output)
    facts = {
        "output": options.output,
        "bytes": len(program.to_bytes()),
        "nodes": len(program.nodes),
        "notes": model.notes,
        **program.metadata,
    }
    if options.json:
        _print(json.dumps(facts))
    else:
        _print(f"{options.output}: {facts['bytes']:,} bytes, {facts['nodes']} nodes")
        for key, value in program.metadata.items():
            if key.startswith("verified"):
                _print(f"  {printable(key)}: {printable(value)}")
    if is_inconclusive(program) and not options.allow_inconclusive:
        return _failed(
            f"{options.output} is written, but its verification proves nothing ({program.metadata['verified']}). Give "
            "inputs of your own (--input NAME=FILE.npy), or take it as it is (--allow-inconclusive)",
            1,
        )
    return 0


def _print_found(program: Program) -> None:
    """What the build made up and found out, for whoever gave neither inputs nor sizes."""
    titles = {
        "made_up.": "made up, since it was not given (--input NAME=FILE.npy gives an input):",
        "range.": "sizes that the model takes, by its shape rules (--dim NAME=MIN..MAX narrows them):",
    }
    for prefix, title in titles.items():
        found = {key.removeprefix(prefix): v for key, v in program.metadata.items() if key.startswith(prefix)}
        if found:
            _print(title, file=sys.stderr)
        for name, value in found.items():
            _print(f"  {printable(name)}: {printable(value)}", file=sys.stderr)
    if "made_up" in program.metadata:
        _print(f"note: {printable(program.metadata['made_up'])}", file=sys.stderr)


def _spec_facts(spec: TensorSpec) -> dict[str, Any]:
    """Sizes are numbers, {"name", "min", "max", "multiple_of"} where each run fixes them, null where data decide."""
    shape = [vars(d) if isinstance(d, Dim) else d for d in spec.shape]
    quantization = vars(spec.quantization) if spec.quantization else None
    return {"name": spec.name, "dtype": str(spec.dtype), "shape": shape, "quantization": quantization}


def _inspect(options: argparse.Namespace) -> int:
    program = Program.open(options.program)
    if options.text:
        _print(program.text())
    elif options.json:
        rows = {
            "inputs": [_spec_facts(s) for s in program.inputs.values()],
            "outputs": [_spec_facts(s) for s in program.outputs.values()],
            "states": [_spec_facts(s) for s in program.states.values()],
            "metadata": program.metadata,
            "payloads": [vars(p) for p in program.payloads],
            "nodes": [vars(n) for n in program.nodes],
        }
        _print(json.dumps(rows, indent=1))
    else:
        for kind, specs in (("input", program.inputs), ("output", program.outputs), ("state", program.states)):
            for spec in specs.values():
                _print(f"{kind:8}{spec}")
        for key, value in program.metadata.items():
            _print(f"{printable(key)}: {printable(value)}")
        sizes: dict[str, list[int]] = {}
        for payload in program.payloads:
            sizes.setdefault(payload.target, []).append(payload.bytes)
        for target, parts in sizes.items():
            _print(f"payload for {target}: {len(parts)} parts, {sum(parts):,} bytes")
        for node in program.nodes:
            place = f"  {node.source}" if node.source else ""
            path = f"{node.path}/" if node.path else ""
            _print(printable(f"{path}{node.name}: {node.op} -> {', '.join(node.output_types)}{place}"))
    return 0


def _check(options: argparse.Namespace) -> int:
    report = load(options.model).check(options.target or ["cpu"])
    if options.json:
        _print(json.dumps([vars(n) for n in report.nodes], indent=1))
    else:
        _print(report)
    return 0 if report.ok else 1


def _run(options: argparse.Namespace) -> int:
    if options.output:
        _check_writable(options.output)
    program = Program.open(options.program)
    session = Session(program, options.target or "auto", options.threads, options.precision)
    outputs = session.run(_feed(program, options.input))
    if options.output:
        members = member_names(outputs)
        # np.savez takes the arrays as keyword arguments, and some names of outputs are arguments of its own.
        with replaced(options.output) as whole, zipfile.ZipFile(whole, "w") as archive:
            for name, array in outputs.items():
                with archive.open(f"{members[name]}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
    if options.json:
        rows = {
            name: {"dtype": str(a.dtype), "shape": list(a.shape), "values": a.tolist()} for name, a in outputs.items()
        }
        _print(json_text(rows))
    elif not options.output:
        for name, array in outputs.items():
            values = np.array2string(array.ravel()[:8], precision=6, separator=" ", max_line_width=10_000)
            _print(f"{printable(name)}: {array.dtype}{list(array.shape)} {values}{' …' if array.size > 8 else ''}")
    return 0


def _compare(options: argparse.Namespace) -> int:
    program = Program.open(options.program)
    result = compare(
        program,
        options.reference,
        [_feed(program, options.input)],
        targets=options.target or ["cpu"],
        precision=options.precision or ["fp32"],
    )
    if options.html:
        result.to_html(options.html)
    _print(result.to_json() if options.json else result)
    proven = not result.inconclusive or options.allow_inconclusive
    return 0 if result.ok and not result.unavailable and proven else 1


def _bench(options: argparse.Namespace) -> int:
    program = Program.open(options.program)
    feed = _feed(program, options.input)
    rows = []
    for target, precision in itertools.product(options.target or ["cpu"], options.precision or ["fp32"]):
        for threads in options.threads:
            start = time.perf_counter()
            session = Session(program, target, threads, precision)
            session.run(feed)
            first = time.perf_counter() - start
            times = []
            for _ in range(options.runs):
                start = time.perf_counter()
                session.run(feed)
                times.append((time.perf_counter() - start) * 1e3)
            times.sort()
            rows.append(
                {
                    "target": target,
                    "precision": precision,
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
        _print(json_text(rows))
    else:
        for r in rows:
            _print(
                f"{r['target']} {r['precision']} threads {r['threads']}: median {r['median_ms']:.2f} ms "
                f"(p10 {r['p10_ms']:.2f}, p90 {r['p90_ms']:.2f}, {r['runs']} runs), "
                f"first {r['create_and_first_run_ms']:.1f} ms, {r['peak_bytes']:,} bytes"
            )
    return 0


def _devices(options: argparse.Namespace) -> int:
    rows = devices()
    if options.json:
        _print(json_text(rows))
    else:
        for row in rows:
            _print(f"{row['target']}: {'' if row['available'] else 'not available: '}{row['description']}")
    return 0


def _diff(options: argparse.Namespace) -> int:
    lines = diff(Program.open(options.a), Program.open(options.b))
    if options.json:
        _print(json.dumps(lines))
    else:
        _print("\n".join(lines) if lines else "no difference")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
