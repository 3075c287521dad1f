#!/usr/bin/env python3
"""Checks of the ARM64 build in qemu's user mode: tests, instruction counts, and the shared library's shape.

Called by scripts/arm64.sh after it has built. Instruction sets are run as processors that have them: cortex-a53
(ARMv8.0, no dot products), cortex-a76 and neoverse-n1 (ARMv8.2), max (everything, with SVE registers of 128, 256 and
512 bits).

An instruction count is what one more run of a kernel executes, exact and repeatable. tests/data/arm64_counts.json holds
what it was; more than 2 % above it is a failure. --write stores today's, which a reviewer then sees in the diff.

The library for one model (-DPINNACE_ONLY, MobileNetV2 with weights packed for the baseline) is built and measured too,
where the Python package and torch are there to make its file, or --one-model names one.

--slice takes part of that: the library, the counts, and a quarter of the tests, which moves with PINNACE_TEST_SEED, as
three processors.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COUNTS = ROOT / "tests/data/arm64_counts.json"
# Processors, and the instruction set that each must be given.
PROCESSORS = {
    "cortex-a53": "generic",
    "cortex-a76": "neon_dotprod",
    "neoverse-n1": "neon_dotprod",
    "max,sve128=on": "neon_i8mm",
    "max,sve256=on": "sve",
    "max,sve512=on": "sve",
}
# What differs between processors and instruction sets; the rest is the same code everywhere, and runs on the first of
# them.
EVERYWHERE = (
    "*KernelLine*:*KernelCases*:Kernel.*:KernelI8.*:KernelDenseConv.*:KernelGated.*:KernelWeights.*:UnaryKernel.*:"
    "CpuFeatures.*:*CpuPrecision*"
)
ONCE = EVERYWHERE + ":All/Faults.*:*Contract*:ThreadPool*:StepTeam*:Golden*:*Parity*:*HostileValues*"
# Of --slice: one processor for each way of calculating, and one test in so many.
SLICE_PROCESSORS = ("cortex-a53", "neoverse-n1", "max,sve256=on")
SLICE_SHARDS = 4
GROWTH = 1.02
# Ends of the names of files by instruction set; how symbols begin of what may throw: of C++, and of its runtime.
INSTRUCTION_SETS = ("generic", "neon_dotprod", "neon_i8mm", "sve")
THROWING = ("_Z", "__cxa", "__gxx", "_Unwind")
LIBRARY_BYTES = 3_400_000
ONE_MODEL_BYTES = 600_000
STATIC_TLS_BYTES = 64
PAGE_BYTES = 16384
LIBRARIES = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "ld-linux-aarch64.so.1"}


def emulate(processor: str, *command: str, plugin: str = "") -> list[str]:
    return [
        "qemu-aarch64",
        *(["-plugin", plugin] if plugin else []),
        *("-L", "/usr/aarch64-linux-gnu", "-cpu", processor),
        *command,
    ]


def run_tests(build: Path, part: bool) -> list[str]:
    """The C++ tests as every processor; a line for each that failed."""
    wrong = []
    shard = {}
    if part:
        seed = int(os.environ.get("PINNACE_TEST_SEED") or "0")
        shard = {"GTEST_TOTAL_SHARDS": str(SLICE_SHARDS), "GTEST_SHARD_INDEX": str(seed % SLICE_SHARDS)}
    for processor, instruction_set in PROCESSORS.items():
        if part and processor not in SLICE_PROCESSORS:
            continue
        pattern = ONCE if processor == next(iter(PROCESSORS)) else EVERYWHERE
        start = time.monotonic()
        done = subprocess.run(
            emulate(processor, str(build / "pinnace_tests"), f"--gtest_filter={pattern}", "--gtest_brief=1"),
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
            env={**os.environ, **shard, "PINNACE_TEST_INSTRUCTION_SET": instruction_set},
        )
        count = re.search(r"(\d+) tests? from \d+ test suites? ran", done.stdout)
        skipped = re.search(r"\[  SKIPPED \] (\d+)", done.stdout)
        left_out = int(skipped[1]) if skipped else 0
        failed = len(re.findall(r"^\[  FAILED  \] .*\(\d+ ms\)$", done.stdout, re.MULTILINE))
        ran = int(count[1]) - left_out if count else 0
        print(
            f"arm64: tests: {processor}: {ran - failed} passed, {failed} failed, {left_out} skipped, "
            f"exit status {done.returncode}, {time.monotonic() - start:.0f} s",
            flush=True,
        )
        if done.returncode != 0 or ran == 0:
            print(*re.findall(r"\[  FAILED  \] .*", done.stdout), sep="\n")
            print(done.stdout[-4000:] + done.stderr[-2000:])
            wrong.append(f"tests on {processor}")
    return wrong


def count(build: Path, plugin: Path, processor: str, program: list[str], times: list[str]) -> int:
    """Instructions of the run with times[1] less those with times[0]."""
    counts = []
    for argument in times:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "count.json"
            command = emulate(processor, *program, argument, plugin=f"{plugin},out={out}")
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
            counts.append(int(json.loads(out.read_text())["instructions"]))
    return counts[1] - counts[0]


def check_counts(build: Path, write: bool) -> list[str]:
    plugin = build / "count_instructions.so"
    source = ROOT / "tests/arm64/count_instructions.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(plugin), str(source)], check=True)
    program = str(build / "count_kernels")
    listed = subprocess.run(emulate("max", program), capture_output=True, text=True, check=True, timeout=60)
    got = {name: count(build, plugin, "max", [program, name], ["1", "2"]) for name in listed.stdout.split()}
    if write:
        COUNTS.write_text(json.dumps(got, indent=2) + "\n")
    if not COUNTS.exists():
        print(f"arm64: skipped 1: {COUNTS.name} is not there to compare with; --write makes it")
        return []
    known: dict[str, int] = json.loads(COUNTS.read_text())
    wrong = []
    for name in sorted(known.keys() | got.keys()):
        now, before = got.get(name), known.get(name)
        if now is None or before is None:
            wrong.append(f"{name}: {'no such kernel' if now is None else 'not in ' + COUNTS.name}")
        elif now > before * GROWTH:
            wrong.append(f"{name}: {now} instructions, were {before}")
        else:
            print(f"arm64: {name}: {now} instructions ({now / before - 1:+.1%})")
    return wrong


def count_model(build: Path, model: Path, processor: str, precision: str) -> int:
    """Instructions of one inference on one thread, as the difference of one and two runs behind a first.

    On one processor: where there are more, weights are packed by several threads, of which some wait, counted too.
    """
    plugin = build / "count_instructions.so"
    program = [str(build / "pinnace-run"), str(model), "--threads", "1", "--target", "cpu"]
    program += ["--precision", precision, "--bench"]
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        return count(build, plugin, processor, program, ["1", "2"])
    finally:
        os.sched_setaffinity(0, processors)


def check_library(build: Path) -> list[str]:
    library = build / "libpinnace_runtime.so"
    stripped = build / "libpinnace_runtime.stripped.so"
    subprocess.run(["aarch64-linux-gnu-strip", "-o", str(stripped), str(library)], check=True)
    size = stripped.stat().st_size
    text = subprocess.run(
        ["readelf", "--wide", "--program-headers", "--dynamic", str(stripped)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    ).stdout
    segments = [line.split() for line in text.splitlines()]
    tls = sum(int(words[5], 16) for words in segments if words[:1] == ["TLS"])
    aligned = [int(words[-1], 16) for words in segments if words[:1] == ["LOAD"]]
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", text))
    print(
        f"arm64: libpinnace_runtime.so stripped {size} bytes, {tls} bytes of static TLS, "
        f"segments aligned to {min(aligned)}, needs {' '.join(sorted(needed))}"
    )
    rules = {
        f"stripped library is {size} bytes, may have {LIBRARY_BYTES}": size <= LIBRARY_BYTES,
        f"static TLS is {tls} bytes, must be less than {STATIC_TLS_BYTES}": tls < STATIC_TLS_BYTES,
        f"a segment is aligned to {min(aligned)}, must be to {PAGE_BYTES}": min(aligned) >= PAGE_BYTES,
        f"the library needs {' '.join(sorted(needed - LIBRARIES))}": needed <= LIBRARIES,
    }
    return [sentence for sentence, holds in rules.items() if not holds]


def symbols(objects: list[Path], option: str) -> set[str]:
    """Names as the linker has them."""
    made = subprocess.run(
        ["aarch64-linux-gnu-nm", option, "--format=just-symbols", *map(str, objects)],
        capture_output=True,
        text=True,
        check=True,
    )
    return {line for line in made.stdout.split() if not line.endswith(":")}


def check_kernels(build: Path) -> list[str]:
    """Objects by instruction set have no tables to unwind by: they may call each other and C's functions alone."""
    objects = [path for isa in INSTRUCTION_SETS for path in (build / f"CMakeFiles/cpu_{isa}.dir").rglob("*.cc.o")]
    called = symbols(objects, "--undefined-only") - symbols(objects, "--defined-only")
    wrong = sorted(name for name in called if name.startswith(THROWING))
    print(f"arm64: {len(objects)} objects by instruction set call {', '.join(sorted(called - set(wrong)))}")
    if not objects:
        return ["no object by instruction set was found"]
    return [f"kernels without tables to unwind by call {', '.join(wrong)}"] if wrong else []


MAKE_MODEL = """
import sys
import pinnace, zoo
net, inputs = zoo.build("mobilenet_v2")
pinnace.load(net, tuple(inputs.values())).build(targets=["cpu:neon"]).save(sys.argv[1])
"""


def check_one_model(build: Path, model: Path | None) -> list[str]:
    """The library that holds what one model needs, built from `model`, or from MobileNetV2 of the tests' models."""
    build.mkdir(parents=True, exist_ok=True)
    if model is None:
        model = build / "mobilenet_v2.pnc"
        path = os.pathsep.join([str(ROOT / "python"), str(ROOT / "tests/models")])
        python = ROOT / ".venv/bin/python"
        made = subprocess.run(
            [str(python if python.exists() else sys.executable), "-c", MAKE_MODEL, str(model)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            env={**os.environ, "PYTHONPATH": path},
        )
        if "ModuleNotFoundError" in made.stderr or "ImportError" in made.stderr:
            print("arm64: skipped 1: one model: no Python package or no torch to make its file with")
            return []
        if made.returncode != 0:
            return [f"MobileNetV2 could not be made: {made.stderr[-2000:]}"]
    steps: list[list[str]] = [
        [
            *("cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"),
            *("--toolchain", str(ROOT / "cmake/arm64.cmake"), f"-DPINNACE_ONLY={model.resolve()}"),
        ],
        ["cmake", "--build", str(build), "--target", "pinnace_runtime", "--parallel", os.environ.get("JOBS", "2")],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False, timeout=3600)
        if done.returncode != 0:
            return [f"the library for one model was not built: {done.stdout[-2000:]}{done.stderr[-2000:]}"]
    size = (build / "libpinnace_runtime.so").stat().st_size
    print(f"arm64: libpinnace_runtime.so for {model.name} alone {size} bytes")
    if size > ONE_MODEL_BYTES:
        return [f"the library for {model.name} alone is {size} bytes, may have {ONE_MODEL_BYTES}"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/arm64")
    parser.add_argument("--write", action="store_true", help="store today's instruction counts")
    parser.add_argument("--slice", action="store_true", help="the library, the counts, and a moving part of the tests")
    parser.add_argument("--only", action="append", default=[], choices=["library", "one-model", "counts", "tests"])
    parser.add_argument("--one-model", type=Path, help="the .pnc file for which a library is built and measured")
    parser.add_argument("--model", type=Path, help="a .pnc file, whose instructions for one inference are printed")
    parser.add_argument("--precision", default="fp32", help="of that inference")
    args = parser.parse_args()
    steps = args.only or (["library", "counts", "tests"] if args.slice else ["library", "one-model", "counts", "tests"])
    wrong = []
    if "library" in steps:
        wrong += check_library(args.build) + check_kernels(args.build)
    if "one-model" in steps:
        wrong += check_one_model(args.build.with_name(args.build.name + "-one"), args.one_model)
    if "counts" in steps:
        wrong += check_counts(args.build, args.write)
    if args.model:
        for processor in ("cortex-a53", "cortex-a76", "max"):
            million = count_model(args.build, args.model, processor, args.precision) / 1e6
            print(f"arm64: {args.model} on {processor}: {million:.2f} M instructions an inference")
    if "tests" in steps:
        wrong += run_tests(args.build, args.slice)
    for sentence in wrong:
        print(f"arm64: FAILED: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
