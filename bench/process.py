"""Processes that the report starts: one per engine, asked for turns by lines, never outliving the report."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any

from cases import FOLDER, ROOT
from engines import ENGINES

Row = dict[str, Any]


def python_of(environment: str) -> Path:
    """The interpreter of one of bench/setup.sh's environments; "" is .venv."""
    return ROOT / (f".venv-bench/{environment}" if environment else ".venv") / "bin" / "python"


def variables(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "OMP_PROC_BIND": "true",  # rivals with OpenMP keep their threads where they are
        "TORCHINDUCTOR_CACHE_DIR": str(FOLDER / "inductor"),
        **more,
    }


class Process:
    """A Python process that answers in lines of JSON. Its standard error goes to a log below build/bench/logs."""

    def __init__(self, environment: str, command: list[str], log: str, pinned: list[int], **more: str) -> None:
        python = python_of(environment)
        self.child: subprocess.Popen[bytes] | None = None
        self.log = FOLDER / "logs" / f"{log}.txt"
        self.missing = "" if python.exists() else f"not installed: .venv-bench/{environment}"
        self.rest = b""
        if self.missing:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        pin = ["taskset", "-c", ",".join(map(str, pinned))]
        with self.log.open("wb") as errors:
            self.child = subprocess.Popen(
                [*pin, str(python), str(ROOT / "bench" / command[0]), *command[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=variables(**more),
            )

    def ask(self, line: str) -> None:
        if self.child is not None and self.child.stdin is not None:
            try:
                self.child.stdin.write(line.encode() + b"\n")
                self.child.stdin.flush()
            except BrokenPipeError:
                pass  # answer() says how it ended

    def answer(self, limit_s: float) -> Row:
        """The next line; {"failed": why} where none comes."""
        if self.child is None or self.child.stdout is None:
            return {"failed": self.missing}
        deadline, out = time.monotonic() + limit_s, self.child.stdout.fileno()
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                self.close()
                return {"failed": f"not done after {limit_s:.0f} s"}
            part = os.read(out, 1 << 16)
            if not part:
                said = self.log.read_text(errors="replace").strip().splitlines()
                return {"failed": f"ended with {self.child.wait()}: {(said or [''])[-1][-200:]}"}
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        return dict(json.loads(line))

    def close(self, gently: bool = False) -> None:
        """gently: by the end of its input, so that it may write what it keeps on disk."""
        if self.child is not None:
            if gently and self.child.stdin is not None:
                with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
                    self.child.stdin.close()
                    self.child.wait(10)
            self.child.kill()
            self.child.wait()
            for pipe in (self.child.stdin, self.child.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()


def driver_cache(case: Path, name: str) -> Path:
    """Where drivers, and our library, keep the compiled code of an engine's kernels."""
    return FOLDER / "drivers" / f"{case.name}-{name}"


def engine_process(action: str, name: str, case: Path, pinned: list[int], *arguments: str) -> Process:
    engine = ENGINES[name]
    environment = engine.environment if action != "prepare" else engine.converts_in or engine.environment
    command = ["worker.py", action, name, str(case), *arguments]
    more = dict(engine.variables)
    if engine.gpu:
        folder = driver_cache(case, name)
        folder.mkdir(parents=True, exist_ok=True)
        kept = ("MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH", "CUDA_CACHE_PATH", "PINNACE_GPU_CACHE")
        more |= dict.fromkeys(kept, str(folder))
    return Process(environment, command, f"{case.name}-{name}", pinned, **more)
