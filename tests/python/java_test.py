"""The Java package: scripts/java.sh builds its jar and its tests, which JUnit runs on this machine's JVM over programs
that Python has run. The tests themselves are in java/src/test/java.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import zoo
from endless_loop import ENDLESS
from pinnace import _core
from slices import all_mode, rotating_slice
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
JAR = ROOT / "build/java/pinnace.jar"
JUNIT = [Path("/usr/share/java") / name for name in ("junit4.jar", "hamcrest-core.jar")]
# Small enough for a JVM's start beside them; everything where everything is tested.
ZOO: dict[str, dict[str, Any]] = {
    "mobilenet_v2": {"size": 64},
    "squeezenet1_1": {"size": 64},
    "lstm": {"batch": 2, "steps": 5, "hidden": 8},
    "gru": {"batch": 2, "steps": 5, "hidden": 8},
    "bert": {"length": 8, "layers": 1, "hidden": 32, "heads": 4, "vocabulary": 100},
    "noise_suppressor_frame": {},
}
RUNS = 100_000 if all_mode() else 5_000

pytestmark = pytest.mark.skipif(
    not shutil.which("javac") or not all(j.exists() for j in JUNIT),
    reason="there is no JDK or no JUnit: scripts/setup.sh",
)


def call(*command: str | Path, timeout: float = 600) -> str:
    """Standard output of a command that has to succeed."""
    done = subprocess.run(
        [str(c) for c in command], cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def jar() -> Path:
    call("scripts/java.sh", "tests")
    return JAR


class Counter(nn.Module):
    """y = 2 x + the number of runs so far, this one included."""

    runs: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs.add_(1)
        return 2 * x + self.runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the tests in Java read; see their comments."""
    made = tmp_path_factory.mktemp("java")
    shapes = {"x": {0: pn.Dim("n", 1, 8)}}
    counter = pn.load(Counter(), (torch.zeros(2, 3),), dynamic_shapes=shapes)
    counter.build(output_names=["y"]).save(made / "counter.pnc")
    pn.Program(_core.Model.parse(ENDLESS, [], False, []).build(["cpu"])).save(made / "endless.pnc")
    names = list(ZOO) if all_mode() else rotating_slice(list(ZOO), 0.3, "java")
    for name in names:
        module, inputs = zoo.build(name, **ZOO[name])
        to = made / "zoo" / name
        to.mkdir(parents=True)
        program = pn.load(module, tuple(inputs.values())).build()
        program.save(to / "net.pnc")
        arrays = [np.ascontiguousarray(x.numpy()) for x in inputs.values()]
        given = dict(zip(program.inputs, arrays, strict=True))
        outputs = pn.Session(program, target="cpu", threads=2).run(given)
        rows = [("input", *item) for item in given.items()] + [("output", *item) for item in outputs.items()]
        lines = []
        for i, (kind, key, array) in enumerate(rows):
            lines.append(" ".join([kind, key, array.dtype.name, *map(str, array.shape)]))
            (to / f"{i}.bin").write_bytes(np.ascontiguousarray(array).tobytes())
        (to / "tensors.txt").write_text("\n".join(lines) + "\n")
    return made


def junit(folder: Path, *classes: str, runs: int = RUNS, java: tuple[str | Path, ...] = ("java",)) -> int:
    """Runs test classes in a JVM that checks calls of JNI and has a small heap; the number of tests that passed."""
    path = os.pathsep.join(map(str, (JAR, JAR.parent / "tests.jar", *JUNIT)))
    properties = [f"-Dpinnace.tests={folder}", f"-Dpinnace.runs={runs}"]
    options = [
        "-Xms64m",
        "-Xmx64m",
        "-XX:+AlwaysPreTouch",
        "-XX:MaxDirectMemorySize=64m",
        "-Xcheck:jni",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
    ]
    named = [f"org.pinnace.{name}" for name in classes]
    said = call(*java, *options, *properties, "-cp", path, "org.junit.runner.JUnitCore", *named, timeout=3600)
    assert "WARNING in native method" not in said, said[-3000:]
    assert "FATAL ERROR" not in said
    match = re.search(r"OK \((\d+) tests?\)", said)
    assert match, said[-3000:]
    return int(match[1])


def test_calls_and_misuse(jar: Path, folder: Path) -> None:
    assert junit(folder, "SessionTest") >= 10


def test_the_bits_of_python_and_no_growth(jar: Path, folder: Path) -> None:
    assert junit(folder, "ZooTest", "EnduranceTest") == 2


@pytest.mark.skipif(not all_mode(), reason="PINNACE_TEST_ALL=1 cross-builds the library and runs a JVM in emulation")
def test_under_an_arm64_jvm(jar: Path, folder: Path) -> None:
    """Calls, misuse and endurance; float results of another processor have other last bits."""
    if not shutil.which("qemu-aarch64") or not shutil.which("aarch64-linux-gnu-g++"):
        pytest.skip("the tools for ARM64 are not installed: make test-arm64")
    root = ROOT / "build/arm64-jvm"
    call("tests/arm64/make_root.sh", root, "openjdk-17-jre-headless", timeout=1800)
    call("cmake", "--preset", "arm64")
    call("cmake", "--build", "build/arm64", "--parallel", "2", "--target", "pinnace_jni", timeout=7200)
    call("scripts/java.sh", "tests")
    java = root / "usr/lib/jvm/java-17-openjdk-arm64/bin/java"
    emulated = ("qemu-aarch64", "-L", root, java, "-Xint")
    assert junit(folder, "SessionTest", "EnduranceTest", runs=2000, java=emulated) >= 11


def test_the_jar(jar: Path) -> None:
    with zipfile.ZipFile(jar) as archive:
        names = archive.namelist()
        program = archive.read("org/pinnace/Program.class")
    machine = os.uname().machine
    assert f"org/pinnace/native/linux-{machine}/libpinnace_jni.so" in names
    assert int.from_bytes(program[6:8], "big") == 52  # class files of Java 8
    assert not [n for n in names if "Test" in n]
    library = ROOT / "build/java/classes/org/pinnace/native" / f"linux-{machine}" / "libpinnace_jni.so"
    exported = {line.split()[-1] for line in call("nm", "-D", "--defined-only", library).splitlines()}
    assert exported
    assert all(name.startswith("Java_org_pinnace_Native_") or name == "JNI_OnLoad" for name in exported)
    declared = re.findall(
        r"static native [^;]*?(\w+)\(", (ROOT / "java/src/main/java/org/pinnace/Native.java").read_text()
    )
    assert {f"Java_org_pinnace_Native_{name}" for name in declared} == exported - {"JNI_OnLoad"}
    needed = set(re.findall(r"NEEDED.*\[(\S+?)\.so", call("readelf", "-d", library)))
    assert needed <= {"libstdc++", "libm", "libgcc_s", "libc", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64"}


def test_public_members_are_documented(jar: Path, tmp_path: Path) -> None:
    sources = sorted((ROOT / "java/src/main/java").rglob("*.java"))
    known: list[str | Path] = ["-cp", JAR.parent / "annotations"]
    call("javadoc", "-quiet", "-Xdoclint:all,-missing", "-Werror", *known, "-d", tmp_path, *sources)
    for source in sources:
        lines = [line.strip() for line in source.read_text().splitlines()]
        public_type = any(
            line.startswith(("public final class", "public class", "public enum", "public @")) for line in lines
        )
        for i, line in enumerate(lines):
            if not public_type or not re.match(r"(?:@\w+ )?public (?!static final class \w+Thread)", line):
                continue
            above = next(line for line in reversed(lines[:i]) if not re.fullmatch(r"@(?!Override)\w+(?:\(.*\))?", line))
            assert above.endswith("*/") or above == "@Override", f"{source.name}:{i + 1}: {line}"
