"""The options of every command."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any

from pinnace import __version__
from pinnace.cli import commands
from pinnace.cli.bench import bench_command
from pinnace.cli.device_report import report_device_command
from pinnace.cli.quantize_options import METHODS
from pinnace.quantize.options import OBSERVERS


def option_parser() -> argparse.ArgumentParser:
    """Reads every command's options; `options.run` is the function of `commands` to call with them."""
    parser = argparse.ArgumentParser(prog="pinnace", description="Convert, run and compare models.")
    parser.add_argument("--version", action="version", version=f"pinnace {__version__}")
    subcommands = parser.add_subparsers(dest="command", required=True)

    def log(parser: argparse.ArgumentParser) -> None:
        text = "messages of this level and above on stderr: trace, debug, info, warn, error or off"
        parser.add_argument("--log", metavar="LEVEL", default=argparse.SUPPRESS, help=text)

    log(parser)

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        sub = subcommands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run, parser=sub)
        log(sub)
        return sub

    def target(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--target", action="append", help="cpu, cpu:avx2, …; may be given several times")

    def precision(sub: argparse.ArgumentParser, several: bool) -> None:
        text = "fp32 (default), fp16, bf16, or auto, the fastest of them" + (
            "; may be given several times" if several else ""
        )
        if several:
            sub.add_argument("--precision", action="append", help=text)
        else:
            sub.add_argument("--precision", default="fp32", help=text)

    def pack_cache(sub: argparse.ArgumentParser) -> None:
        text = "neither take packed weights from the user's cache folder nor leave any there"
        sub.add_argument("--no-pack-cache", action="store_true", help=text)

    def inconclusive(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--allow-inconclusive",
            action="store_true",
            help="status 0 although equal outputs prove nothing: they do not move with the input, for instance",
        )

    def inputs(sub: argparse.ArgumentParser) -> None:
        text = (
            "an input: NAME=FILE.npy, NAME=FILE.png (or .jpg, .bmp, .webp, .ppm; needs Pillow), FILE.npz with all by "
            "name, or FILE.npy for the inputs in order; may be given several times. Others are seeded"
        )
        sub.add_argument("--input", action="append", default=[], metavar="NAME=FILE", help=text)
        text = "of images for inputs of floats: (pixel / 255 - mean) / std; one number, or one per channel"
        sub.add_argument("--mean", type=_numbers, default=[], metavar="X,X,…", help=text)
        sub.add_argument("--std", type=_divisors, default=[], metavar="X,X,…", help="see --mean")

    def size(sub: argparse.ArgumentParser) -> None:
        text = "size of a dynamic dimension that no --input fixes; may be given several times"
        sub.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE", help=text)

    def quantization(sub: argparse.ArgumentParser) -> None:
        text = (
            "int8: layers compute in 8-bit integers, by ranges that samples show; dynamic8: products by constant "
            "weights do, without samples; weights8, weights4: weights alone are integers of so many bits; "
            "float16: constants and arithmetic in float16"
        )
        sub.add_argument("--quantize", choices=METHODS, help=text)
        text = (
            "with int8, weights8, weights4: samples to run, in order of their names: .npz with all inputs; .npy or "
            "images for one input"
        )
        sub.add_argument("--calibration", metavar="FOLDER", help=text)
        text = "with int8: how a value's range follows from the samples (default minmax)"
        sub.add_argument("--observer", choices=OBSERVERS, help=text)
        text = "with int8: largest error of an output (0.005 or 0.5%%); layers stay in float until it is reached"
        sub.add_argument("--max-drop", metavar="X", help=text)
        sub.add_argument("--block", type=_whole(1), metavar="N", help="with weights8, weights4: weights of one scale")
        text = "a node, module or operator that stays in float, with * and ?; may be given several times"
        sub.add_argument("--skip", action="append", default=[], metavar="NAME", help=text)

    def random(sub: argparse.ArgumentParser) -> None:
        text = "operators that draw random numbers: refuse them by name (default), or draw from pinnace's own generator"
        sub.add_argument("--random", choices=("refuse", "seeded"), default="refuse", help=text)

    def tolerance(sub: argparse.ArgumentParser) -> None:
        text = "bound on differences of floats relative to an output's largest magnitude, in place of the stated ones"
        sub.add_argument("--tolerance", type=float, metavar="X", help=text)

    def talk(sub: argparse.ArgumentParser) -> None:
        how_much = sub.add_mutually_exclusive_group()
        text = "neither progress nor notes on stderr: the result and errors alone"
        how_much.add_argument("-q", "--quiet", action="store_true", help=text)
        text = "what each phase did and how long it took, on stderr; the same as --log info"
        how_much.add_argument("-v", "--verbose", action="store_true", help=text)

    convert = command("convert", commands.convert_command, "a .pt2 or .onnx model to a verified .pnc file")
    convert.add_argument("model")
    convert.add_argument("-o", "--output", required=True)
    convert.add_argument(
        "--no-verify", action="store_true", help="do not compare with the source; the file records that"
    )
    convert.add_argument(
        "--dim", action="append", default=[], metavar="NAME=MIN..MAX", help="range of a dynamic dimension"
    )
    for kind in ("input", "output"):
        text = f"another name for an {kind}; may be given several times"
        convert.add_argument(f"--{kind}-name", action="append", default=[], metavar="OLD=NEW", help=text)
    convert.add_argument("--disable-pass", action="append", default=[], metavar="PASS")
    convert.add_argument("--json", action="store_true")
    convert.add_argument("--reference", metavar="FILE", help="hold it against this .pt2, .onnx or .pnc, not its source")
    quantization(convert)
    tolerance(convert)
    inconclusive(convert)
    talk(convert)
    target(convert)
    random(convert)
    inputs(convert)

    inspect = command("inspect", commands.inspect_command, "what a .pnc file or a model holds")
    inspect.add_argument("program", help=".pnc, .onnx, .pt2 or .pt (with an --input for each of its inputs)")
    inspect.add_argument("--text", action="store_true", help="the whole graph in its text form")
    inspect.add_argument("--json", action="store_true")
    size(inspect)
    random(inspect)
    inputs(inspect)

    check = command(
        "check", commands.check_command, "whether each node of a model can run on a target; needs no device"
    )
    check.add_argument("model")
    check.add_argument("--json", action="store_true")
    random(check)
    inputs(check)
    talk(check)
    target(check)

    run = command("run", commands.run_command, "run a .pnc file once")
    run.add_argument("program")
    run.add_argument("--threads", type=_whole(0), default=0, help="most threads of the run; 0: all processors")
    run.add_argument(
        "--output",
        metavar="FILE.npz",
        help="where to write the outputs, each as NAME.npy; in names, %%2F stands for / and so on, as in URLs",
    )
    run.add_argument("--json", action="store_true", help="all values of the outputs as JSON")
    pack_cache(run)
    target(run)
    precision(run, several=False)
    size(run)
    inputs(run)

    comp = command(
        "compare",
        commands.compare_command,
        "a .pnc file against its source, layer by layer; status 1 too if a target cannot run here",
    )
    comp.add_argument("program")
    comp.add_argument("--reference", required=True, help=".pt2, .onnx or .pnc")
    comp.add_argument("--html", metavar="FILE")
    comp.add_argument("--json", action="store_true")
    tolerance(comp)
    inconclusive(comp)
    talk(comp)
    target(comp)
    precision(comp, several=True)
    size(comp)
    inputs(comp)

    bench = command("bench", bench_command, "time a .pnc file")
    bench.add_argument("program")
    text = "most threads of a run, default 1; with --table numbers of cores to keep the process on, default 1,2,4"
    bench.add_argument("--threads", type=_whole_list, metavar="N,N,…", help=text)
    text = "how many runs are timed, default 50; with --table at most, and 5 of those that take long"
    bench.add_argument("--runs", type=_whole(1), default=50, help=text)
    text = (
        "tables in Markdown: latency and latency times cores by number of cores, and CPU consumption with offload, "
        "for each target that can run here or each --target; answers are compared with the CPU's first, status 1 "
        "where they differ"
    )
    bench.add_argument("--table", action="store_true", help=text)
    text = (
        "energy of a run: measured by RAPL counters (readable by root on most systems) or a battery that is "
        "discharged, with idle power subtracted, in 5 to 15 repetitions of about a second, of ten with a battery; "
        "elsewhere modelled from multiply-adds and bytes, an order of magnitude, and called so"
    )
    bench.add_argument("--energy", action="store_true", help=text)
    bench.add_argument("--json", action="store_true", help="the figures as JSON; with --table those of the tables")
    pack_cache(bench)
    target(bench)
    precision(bench, several=True)
    size(bench)
    inputs(bench)

    listed = command(
        "devices",
        commands.devices_command,
        "targets of this build, and whether they can run here; or a device's report",
    )
    text = "show what report-device or pinnace-report wrote on a device; status 1 if an answer in it differs or failed"
    listed.add_argument("--import", dest="imported", metavar="REPORT.json", help=text)
    listed.add_argument("--json", action="store_true")

    report = command(
        "report-device",
        report_device_command,
        "test and time every target of this machine, as one page of JSON; status 1 if an answer differs or fails",
    )
    text = "what to run; without it, the known answers and a network of MobileNetV2's shape"
    report.add_argument("--kit", metavar="KIT.pnk", help=text)
    report.add_argument("--make-kit", metavar="KIT.pnk", help="only write a kit, for a device without Python")
    text = "a .pnc file to time, in place of that network; may be given several times"
    report.add_argument("--model", action="append", default=[], metavar="FILE.pnc", help=text)
    report.add_argument("-o", "--output", metavar="REPORT.json", help="where to write the page; default: stdout")
    text = "in which the whole ends (default 60); what is left out then is listed in the page"
    report.add_argument("--seconds", type=_seconds, metavar="X", help=text)
    target(report)
    talk(report)

    differ = command("diff", commands.diff_command, "what differs between two .pnc files; status 1 if anything does")
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


def _seconds(text: str) -> float:
    """A type for argparse: one finite number above 0."""
    if len(found := _divisors(text)) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not one number")
    return found[0]


def _numbers(text: str) -> list[float]:
    """A type for argparse: finite numbers."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(map(math.isfinite, found)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, or numbers with commas between them")
    return found


def _divisors(text: str) -> list[float]:
    """A type for argparse: finite numbers above 0."""
    if min(found := _numbers(text)) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r}: must be above 0")
    return found


def _whole_list(text: str) -> list[int]:
    return [_whole(0)(part) for part in text.split(",")]


def options_of(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the arguments say. Unknown ones are wrong use of the command among them, whose usage is shown."""
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


__all__ = ["option_parser", "options_of"]
