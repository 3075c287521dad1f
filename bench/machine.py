"""What a timing depends on besides the code: the machine, its measured peaks, what else ran, sizes of libraries."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

from cases import FOLDER, ROOT

Row = dict[str, Any]
PEAK = ROOT / "build" / "release" / "pinnace-peak"

# Engine -> environment of bench/setup.sh, and the shared libraries in it that inference on the CPU needs.
LIBRARIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "onnxruntime": ("main", ("onnxruntime/capi/onnxruntime_pybind11_state*.so",)),
    "openvino": (
        "main",
        (
            "openvino/libs/libopenvino.so.*",
            "openvino/libs/libopenvino_intel_cpu_plugin.so",
            "openvino/libs/libopenvino_onnx_frontend.so.*",
            "openvino/libs/libtbb.so.*",
        ),
    ),
    "ncnn": ("main", ("ncnn/ncnn*.so", "ncnn.libs/*.so*")),
    "MNN": ("main", ("_mnncengine*.so", "mnn.libs/*.so*")),
    "litert": ("main", ("ai_edge_litert/_pywrap_litert_interpreter_wrapper*.so", "ai_edge_litert/libpywrap_*.so")),
    "executorch": (
        "executorch",
        (
            "executorch/lib/libexecutorch.so",
            "executorch/lib/libexecutorch_kernels_*.so",
            "executorch/lib/libexecutorch_backend_xnnpack.so",
            "executorch/lib/libexecutorch_threadpool.so",
        ),
    ),
    "torch": ("main", ("torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libgomp*.so*")),
}


def busy_seconds() -> float:
    """Processor time that all processes of the machine have used, all processors together."""
    with open("/proc/stat") as file:
        fields = [int(x) for x in file.readline().split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:8])) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor time of this process and its threads, finer than the ticks that busy_seconds() counts in."""
    return time.process_time()


def peak_mb(pid: str = "self") -> float:
    """Most memory that a process has had resident. Not getrusage: that counts what its parent had before it."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM")) / 1024


# AMD's names are often "AMD EPYC" alone in virtual machines. (family, first and last model): from Linux,
# arch/x86/kernel/cpu/amd.c.
ZEN = {
    (0x17, 0x00, 0x2F): "Zen",
    (0x17, 0x30, 0xFF): "Zen 2",
    (0x19, 0x00, 0x0F): "Zen 3",
    (0x19, 0x10, 0x1F): "Zen 4",
    (0x19, 0x20, 0x5F): "Zen 3",
    (0x19, 0x60, 0x7F): "Zen 4",
    (0x19, 0xA0, 0xAF): "Zen 4",
    (0x1A, 0x00, 0xFF): "Zen 5",
}


def processor_name(cpuinfo: str) -> str:
    """What /proc/cpuinfo calls the first processor, with the generation where AMD's name leaves it out."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    name = fields.get("model name", "unknown")
    if fields.get("vendor_id") == "AuthenticAMD":
        family, model = int(fields["cpu family"]), int(fields["model"])
        for (of, first, last), zen in ZEN.items():
            if of == family and first <= model <= last:
                return f"{name} ({zen})"
    return name


def describe() -> Row:
    model = processor_name(Path("/proc/cpuinfo").read_text())
    memory = next(int(x.split()[1]) for x in Path("/proc/meminfo").read_text().splitlines() if x.startswith("MemTotal"))
    return {
        "processor": model,
        "processors": len(os.sched_getaffinity(0)),
        "memory_mb": memory // 1024,
        "system": platform.platform(),
        "date": str(date.today()),
    }


def processors(threads: int) -> list[int]:
    """Those that `threads` threads are pinned to: the last ones, as interrupts prefer the first."""
    return sorted(os.sched_getaffinity(0))[-threads:]


def measure_peak(threads: int) -> Row:
    """What pinnace-peak finds on as many processors, with the part of a processor that others used meanwhile."""
    if not PEAK.exists():
        return {"failed": f"{PEAK.relative_to(ROOT)} is not built"}
    pin = ["taskset", "-c", ",".join(map(str, processors(threads)))]
    best: Row = {}
    for _attempt in range(3):
        busy, own = busy_seconds(), os.times()
        done = subprocess.run([*pin, str(PEAK), str(threads)], capture_output=True, text=True, timeout=120)
        after = os.times()
        if done.returncode:
            return {"failed": done.stderr.strip() or f"ended with {done.returncode}"}
        row: Row = json.loads(done.stdout)
        spent = after.children_user + after.children_system - own.children_user - own.children_system
        row["others"] = max(0.0, busy_seconds() - busy - spent) / max(after.elapsed - own.elapsed, 1e-3)
        for kind in ("arithmetic", "memory"):  # a machine's peak is the most that was ever seen
            for i, old in enumerate(best.get(kind, [])):
                row[kind][i] |= {
                    key: max(value, old[key]) for key, value in row[kind][i].items() if key != "level" and key != "type"
                }
        best = row
        if row["others"] <= 0.05:
            break
    return best


def library_sizes() -> Row:
    """Engine -> bytes of its libraries after strip; remembered, as stripping copies of some takes seconds."""
    known_path = FOLDER / "libraries.json"
    known: dict[str, int] = json.loads(known_path.read_text()) if known_path.exists() else {}
    found: dict[str, list[Path]] = {}
    release = ROOT / "build" / "release"
    for name in ("libpinnace_runtime.so", "libpinnace.so"):
        if (release / name).exists():
            found[f"pinnace: {name}"] = [(release / name).resolve()]
    for engine, (environment, patterns) in LIBRARIES.items():
        for site in (ROOT / ".venv-bench" / environment).glob("lib/python3*/site-packages"):
            files = sorted({p.resolve() for pattern in patterns for p in site.glob(pattern)})
            if files:
                found[engine] = files
    sizes = {}
    for engine, files in found.items():
        total = 0
        for path in files:
            stat = path.stat()
            key = f"{path} {stat.st_size} {stat.st_mtime_ns}"
            if key not in known:
                known[key] = _stripped(path)
            total += known[key]
        sizes[engine] = total
    known_path.write_text(json.dumps(known, indent=1))
    return sizes


def _stripped(path: Path) -> int:
    strip = shutil.which("strip")
    if strip is None:
        return path.stat().st_size
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "stripped"
        done = subprocess.run([strip, "--strip-unneeded", "-o", str(out), str(path)], capture_output=True, timeout=120)
        return out.stat().st_size if done.returncode == 0 else path.stat().st_size
