#!/usr/bin/env python3
"""Writes the tables of cores and offload for this processor: MobileNetV2 and a network that replaces backgrounds.

  core_tables.py [--threads 1,2,4] [--runs 50] [--energy] [--write]

Each network of CASES is written as for the other benchmarks (cases.py), converted, and given to `pinnace bench --table`
in a process of its own, with every back end that can run here. The tables go to standard output and
build/bench/core_tables.md (PINNACE_BENCH_FOLDER is another folder than build/bench); with --write also to PAGE, in
place of what that has for this processor. Figures that other programs disturbed are not written there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import machine
from cases import FOLDER, ROOT
from process import python_of, variables
from report import write_case

PAGE = ROOT / "docs" / "performance" / "cores_and_offload.md"
CASES = {"mobilenet_v2": "MobileNetV2", "lraspp_mobilenet_v3_large": "Background: LR-ASPP with MobileNetV3"}
NONE_YET = "No processor has been measured yet."
LIMIT_S = 3600.0


def run(*arguments: str) -> str:
    """What a `pinnace` command prints; RuntimeError: what it said when it failed."""
    command = [str(python_of("")), "-m", "pinnace", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=variables())
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip() or f"ended with {done.returncode}")
    return done.stdout.strip()


def tables_of(case: str, options: list[str]) -> str:
    """The tables of one network. RuntimeError: its files cannot be written, or its answers differ."""
    if why := write_case(case):
        raise RuntimeError(why)
    folder = FOLDER / case
    program = folder / f"{case}.pnc"  # the tables name it
    run("convert", str(folder / "model.pt2"), "-o", str(program), "--input", str(folder / "inputs.npz"), "--quiet")
    return run("bench", str(program), "--table", "--input", str(folder / "inputs.npz"), *options)


def section(processor: str, tables: dict[str, str], command: str) -> str:
    """What the page has for one processor. tables: by network."""
    parts = [f"## {processor}", f"`{command}`"]
    for network, text in tables.items():
        parts += [f"### {network}", text]
    return "\n\n".join(parts) + "\n"


def with_section(page: str, processor: str, text: str) -> str:
    """The page with this section in place of the processor's own, or behind the others."""
    head, *sections = page.split("\n## ")
    kept = [s for s in sections if s.partition("\n")[0] != processor]
    parts = [
        head.replace(f"\n{NONE_YET}\n", "").rstrip(),
        *(s.rstrip() for s in kept),
        text.removeprefix("## ").rstrip(),
    ]
    return "\n\n## ".join(parts) + "\n"


def disturbed(text: str) -> bool:
    """Whether tables have figures that other programs disturbed, or a column that was left out for that."""
    return "~" in text or "while other programs used" in " ".join(text.split())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", default="1,2,4", help="numbers of cores, with commas between")
    parser.add_argument("--runs", default="50", help="of a figure, at most")
    parser.add_argument("--energy", action="store_true", help="joules of a run too")
    parser.add_argument("--write", action="store_true", help=f"to {PAGE.relative_to(ROOT)} too")
    options = parser.parse_args(arguments)
    asked = ["--threads", options.threads, "--runs", options.runs, *(["--energy"] if options.energy else [])]
    try:
        tables = {title: tables_of(case, asked) for case, title in CASES.items()}
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    processor = str(machine.describe()["processor"])
    given = [] if asked[:4] == ["--threads", "1,2,4", "--runs", "50"] else asked[:4]
    command = " ".join([".venv/bin/python bench/core_tables.py", *given, *asked[4:], "--write"])
    text = section(processor, tables, command)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "core_tables.md").write_text(text)
    print(text)
    if options.write:
        if disturbed(text):
            print(f"not written to {PAGE.relative_to(ROOT)}: other programs ran meanwhile", file=sys.stderr)
            return 1
        PAGE.write_text(with_section(PAGE.read_text(), processor, text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
