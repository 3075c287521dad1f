"""The Java packages: scripts/java.sh builds their jars and their tests, which JUnit runs on this machine's JVM over
programs that Python has run. The tests themselves are in java/src/test/java, and those of PyTorch Mobile's API in
java/pytorch/src/test/java.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import zoo
from endless_loop import ENDLESS
from pinnace import _core
from pinnace.cli import main
from pinnace.device.kit import make_kit
from pinnace.device.known_answers import known_answers
from pinnace.device.page import read_page
from slices import all_mode, rotating_slice
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
JAR = ROOT / "build/java/pinnace.jar"
PYTORCH = ROOT / "build/java/pinnace-pytorch.jar"
ANDROID = ROOT / "build/java/android"  # what the tests have in place of Android's classes
APPLICATION = ROOT / "java/pytorch/src/test/java/org/example/ImageClassification.java"
HELD = ROOT / "build/java/held"
JUNIT = [Path("/usr/share/java") / name for name in ("junit4.jar", "hamcrest-core.jar")]
# Small enough for a JVM's start beside them; where everything is tested, all of zoo.MODELS.
ZOO: dict[str, dict[str, Any]] = {
    "mobilenet_v2": {"size": 64},
    "squeezenet1_1": {"size": 64},
    "lstm": {"batch": 2, "steps": 5, "hidden": 8},
    "gru": {"batch": 2, "steps": 5, "hidden": 8},
    "bert": {"length": 8, "layers": 1, "hidden": 32, "heads": 4, "vocabulary": 100},
    "noise_suppressor_frame": {},
}
JIT: Any = torch.jit  # untyped in torch's own stubs
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


# Graphs with operators of the application, whose functions are Java's where they run.
OPERATORS = {
    "scaled": """graph "scaled" {
  symbol n 1..8
  input %x : f32[n,3]
  %t : f32[n,3] = mylib.scale(%x) {factor=3, label="a b", sizes=[1,2]}
  %y : f32[n,3] = mylib.scale(%t) {factor=5}
  output "y" %y
}""",
    "joined": """graph "joined" {
  symbol n 1..8
  input %x : f32[n,3]
  const %two : i64[] = {2}
  %p : i64[n], %q : f32[n,0] = mylib.join(%x, %two)
  output "p" %p
  output "q" %q
}""",
}


def joined(inputs: Any, attributes: Any) -> Any:
    n = inputs[0][1][0]
    return [(np.int64, (n,)), (np.float32, (n, 0))]


OPS = [
    _core.CustomOp("mylib.scale", lambda inputs, attributes: inputs, lambda inputs, attributes: inputs, 1),
    _core.CustomOp("mylib.join", joined, lambda inputs, attributes: [], 2),
]


class Ahead(nn.Module):
    """y[t] = x[t] + x[t + n], and 2 x."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + nn.functional.pad(x, (0, self.n))[:, :, self.n :], 2 * x


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the tests in Java read; see their comments."""
    made = tmp_path_factory.mktemp("java")
    for name, text in OPERATORS.items():
        pn.Program(_core.Model.parse(text, [], False, OPS).build(["cpu"])).save(made / f"{name}.pnc")
    shapes = {"x": {0: pn.Dim("n", 1, 8)}}
    counter = pn.load(Counter(), (torch.zeros(2, 3),), dynamic_shapes=shapes)
    counter.build(output_names=["y"]).save(made / "counter.pnc")
    pn.Program(_core.Model.parse(ENDLESS, [], False, []).build(["cpu"])).save(made / "endless.pnc")
    for name, ahead in (("stream", 2), ("causal", 0)):
        stream = pn.load(Ahead(ahead), (torch.zeros(1, 1, 16),), stream={"x": 2}).build(output_names=["y", "z"])
        stream.save(made / f"{name}.pnc")
    stream.with_metadata({"stream.x": "nothing"}).save(made / "lying.pnc")
    sizes = {name: ZOO.get(name, zoo.SMALL.get(name, {})) for name in zoo.MODELS}
    for name in zoo.MODELS if all_mode() else rotating_slice(list(ZOO), 0.3, "java"):
        module, inputs = zoo.build(name, **sizes[name])
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


class Types(nn.Module):
    def forward(self, *given: torch.Tensor) -> list[torch.Tensor]:
        return [(x + x).flatten() for x in given]


class Layouts(nn.Module):
    def forward(self, x: torch.Tensor, v: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"x": x.flatten() + 0.0, "v": v.flatten() + 0.0}


class Nested(nn.Module):
    def forward(
        self, x: torch.Tensor, pair: tuple[torch.Tensor, ...], batch: dict[str, torch.Tensor]
    ) -> dict[str, Any]:
        total = x + 10 * pair[0] + 100 * pair[1] + 1000 * batch["c"] + 10000 * batch["d"]
        return {"sum": total, "parts": [x * 2, x * 3], "n": x.shape[0]}


class Images(nn.Module):
    def forward(self, x: torch.Tensor) -> list[dict[str, torch.Tensor]]:
        return [{"boxes": x * i, "labels": torch.full((1,), i)} for i in (1, 2)]


class Numbers(nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor, k: torch.Tensor, flag: torch.Tensor) -> torch.Tensor:
        return torch.where(flag, x * scale + k, x * scale)


class Mask(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"mask": x > 0}


def small_mobilenet() -> nn.Module:
    """The layers of MobileNet v2, one of each."""

    def layer(given: int, made: int, size: int = 3, stride: int = 1, groups: int = 1) -> nn.Module:
        conv = nn.Conv2d(given, made, size, stride, size // 2, groups=groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(made), nn.ReLU6())

    block = [layer(16, 96, 1), layer(96, 96, stride=2, groups=96), nn.Conv2d(96, 24, 1), nn.BatchNorm2d(24)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 1000)]
    return nn.Sequential(layer(3, 16, stride=2), *block, *head).eval()


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.linear = nn.Linear(4, 7)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.linear(torch.relu(self.conv(image)).mean((2, 3)))
        return features


def picture(path: Path) -> np.ndarray[Any, Any]:
    """Writes a PNG of 48 x 40 pixels; what torchvision's transforms make of it."""
    pixels = np.random.default_rng(1).integers(0, 256, (40, 48, 3), dtype=np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunks = (b"IHDR" + struct.pack(">IIBBBBB", 48, 40, 8, 2, 0, 0, 0), b"IDAT" + zlib.compress(rows), b"IEND")
    parts = [struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in chunks]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    mean, std = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
    floats = (pixels / np.float32(255) - mean) / std
    return np.ascontiguousarray(floats.transpose(2, 0, 1)[None])


@pytest.fixture(scope="module")
def models(folder: Path) -> Path:
    """The folder `pytorch`, which the tests of PyTorch Mobile's API read."""
    to = folder / "pytorch"
    to.mkdir()
    shutil.copy(folder / "counter.pnc", to)
    one, two = torch.ones(1), torch.ones(2)
    kinds = [torch.uint8, torch.int8, torch.int32, torch.float32, torch.int64, torch.float64, torch.float16]
    scalars = (torch.tensor(1.0), torch.tensor(1), torch.tensor(True))
    image = torch.from_numpy(picture(to / "image.png"))
    cases: dict[str, tuple[nn.Module, tuple[Any, ...]]] = {
        "types": (Types(), tuple(torch.ones(1, 2, 1, 2, dtype=t) for t in kinds)),
        "layouts": (Layouts(), (torch.ones(2, 3, 4, 5), torch.ones(2, 3, 2, 4, 5))),
        "nested": (Nested(), (one, (one, one), {"c": one, "d": one})),
        "images": (Images(), (two,)),
        "numbers": (Numbers(), (two, *scalars)),
        "mask": (Mask(), (two,)),
        "mobilenet": (small_mobilenet(), (image,)),
    }
    for name, (module, given) in cases.items():
        pn.load(module, given).build(verify=False).save(to / f"{name}.pnc")
    script = JIT.trace(Classifier().eval(), image)
    script.save(str(to / "script.pt"))
    script._save_for_lite_interpreter(str(to / "script.ptl"))
    shutil.copy(to / "script.ptl", to / "lite_without_suffix")
    torch.save(Classifier().state_dict(), to / "weights.pt")
    damaged = bytearray((to / "types.pnc").read_bytes())
    damaged[60] ^= 1
    files = {
        "damaged.pnc": bytes(damaged),
        "empty": b"",
        "net.onnx": b"\x08\x07",
        "net.pt2": b"PK\3\4",
        "net.pte": b"\x10\0\0\0ET12",
    }
    for name, contents in files.items():
        (to / name).write_bytes(contents)
    return to


def junit(
    folder: Path,
    *classes: str,
    runs: int = RUNS,
    java: tuple[str | Path, ...] = ("java",),
    android: bool = False,
    machine: str = os.uname().machine,
) -> int:
    """Runs test classes in a JVM that checks calls of JNI and has a small heap; the number of tests that passed."""
    beside = [ANDROID] if android else []
    path = os.pathsep.join(map(str, (PYTORCH, JAR.parent / "tests.jar", *beside, *JUNIT)))  # PYTORCH names JAR
    held = HELD / f"linux-{machine}/libheld_memory.so"
    properties = [f"-Dpinnace.tests={folder}", f"-Dpinnace.runs={runs}", f"-Dpinnace.held={held}"]
    options = [
        "-Xms64m",
        "-Xmx64m",
        "-XX:+AlwaysPreTouch",
        "-XX:MaxDirectMemorySize=64m",
        "-Xcheck:jni",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xbatch",  # no compiler works, and takes memory, while others count it
    ]
    named = [name if "." in name else f"org.pinnace.{name}" for name in classes]
    said = call(*java, *options, *properties, "-cp", path, "org.junit.runner.JUnitCore", *named, timeout=3600)
    assert "WARNING in native method" not in said, said[-3000:]
    assert "FATAL ERROR" not in said
    match = re.search(r"OK \((\d+) tests?\)", said)
    assert match, said[-3000:]
    return int(match[1])


def test_calls_and_misuse(jar: Path, folder: Path) -> None:
    assert junit(folder, "SessionTest") >= 10


def test_operators_of_the_application(jar: Path, folder: Path) -> None:
    assert junit(folder, "CustomOpTest") == 6


def test_messages(jar: Path, folder: Path) -> None:
    assert junit(folder, "LogTest") == 9


@pytest.mark.parametrize("caller", ["sink", "operator"])
def test_the_process_ends_while_runs_call_java(jar: Path, folder: Path, caller: str) -> None:
    path = os.pathsep.join(map(str, (JAR, JAR.parent / "tests.jar")))
    command = ["java", f"-Dpinnace.tests={folder}", "-cp", path, "org.pinnace.Exits", caller]
    for how, status in (("exit", 7), ("return", 0)):
        done = subprocess.run([*command, how], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == status, done.stderr[-3000:]


def test_the_bits_of_python_and_no_growth(jar: Path, folder: Path) -> None:
    assert junit(folder, "ZooTest", "EnduranceTest") == 4


def test_the_report_of_a_device(jar: Path, folder: Path) -> None:
    answers = known_answers()[:3]
    (folder / "kit.pnk").write_bytes(make_kit([folder / "counter.pnc"], answers))
    assert junit(folder, "ReportTest") == 3
    page = read_page(folder / "report.json")
    assert page["totals"]["equal"] == len(page["answers"]) + len(page["times"]) > 0
    assert page["pinnace"]["commit"] == _core.built_from


def test_pytorch_mobile(jar: Path, folder: Path, models: Path) -> None:
    classes = [f"org.pytorch.{name}Test" for name in ("Tensor", "IValue", "Module", "TensorImageUtils")]
    assert junit(folder, *classes, android=True) >= 25
    assert junit(folder, "org.pytorch.WithoutAndroidTest") == 1


def test_every_public_member_of_pytorch_mobile_is_there(jar: Path) -> None:
    recorded = (ROOT / "java/pytorch/pytorch_mobile_api.txt").read_text().replace("# ", "#").splitlines()
    wanted: dict[str, list[str]] = {}
    for line in (line for line in recorded if line and not line.startswith("#")):
        if re.fullmatch(r"[a-z]+(\.\w+)+", line):
            wanted[line] = members = []
        else:
            members.append(line)
    assert len(wanted) == 10
    assert sum(map(len, wanted.values())) > 100
    for name, members in wanted.items():
        shown = call("javap", "-public", "-cp", os.pathsep.join(map(str, (PYTORCH, JAR, ANDROID))), name)
        shown = re.sub(r"\b(?:[a-z]\w*\.)+(?=[A-Z])", "", shown).replace("...", "[]")
        there = {re.sub(r"^public | ?\bsynchronized | ?\bfinal |;$", "", line.strip()) for line in shown.splitlines()}
        there |= {line.split()[-1] for line in there if "(" not in line and " " in line}  # fields by their names
        assert not [m for m in members if m not in there], name


def test_an_application_of_pytorch_mobile_runs_unchanged(
    jar: Path, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names nothing of pinnace, and takes one jar; TorchScript is refused with the command that converts it."""
    assert "pinnace" not in APPLICATION.read_text()
    call("javac", "-Werror", "-cp", f"{PYTORCH}{os.pathsep}{ANDROID}", "-d", tmp_path, APPLICATION)
    run = ["java", "-cp", os.pathsep.join(map(str, (PYTORCH, ANDROID, tmp_path))), "org.example.ImageClassification"]
    refused = subprocess.run(
        [*run, models / "script.ptl", models / "image.png"], capture_output=True, text=True, timeout=600, check=False
    )
    assert refused.returncode == 1
    command = re.search(r"load the \.pnc: pinnace (convert .*?) \(", refused.stderr)
    assert command, refused.stderr
    image = picture(tmp_path / "image.png")
    np.save(models / "x.npy", image)
    monkeypatch.chdir(models)
    assert main(command[1].split()) == 0
    with torch.no_grad():
        wanted = JIT.load(str(models / "script.pt"))(torch.from_numpy(image))
    assert call(*run, models / "script.pnc", models / "image.png") == f"class {int(wanted.argmax())}\n"


@pytest.mark.skipif(not all_mode(), reason="PINNACE_TEST_ALL=1 cross-builds the library and runs a JVM in emulation")
def test_under_an_arm64_jvm(jar: Path, folder: Path) -> None:
    """Calls, misuse and endurance; float results of another processor have other last bits."""
    if not shutil.which("qemu-aarch64") or not shutil.which("aarch64-linux-gnu-g++"):
        pytest.skip("the tools for ARM64 are not installed: make test-arm64")
    root = ROOT / "build/arm64-jvm"
    call("tests/arm64/make_root.sh", root, "openjdk-17-jre-headless", timeout=1800)
    both = f"PLATFORMS={os.uname().machine} aarch64"
    call("env", both, "scripts/java.sh", "tests", timeout=7200)
    with zipfile.ZipFile(JAR) as archive:
        assert "org/pinnace/native/linux-aarch64/libpinnace_jni.so" in archive.namelist()
    java = root / "usr/lib/jvm/java-17-openjdk-arm64/bin/java"
    emulated = ("qemu-aarch64", "-L", root, java, "-Xint")
    classes = ("SessionTest", "CustomOpTest", "LogTest", "EnduranceTest")
    assert junit(folder, *classes, runs=2000, java=emulated, machine="aarch64") >= 20


def test_the_jar(jar: Path) -> None:
    with zipfile.ZipFile(jar) as archive:
        names = archive.namelist()
        if shutil.which("dpkg-query"):
            assert b"\nlibflatbuffers-dev" in archive.read("META-INF/THIRD_PARTY_NOTICES.txt")
        program = archive.read("org/pinnace/Program.class")
    machine = os.uname().machine
    libraries = [n for n in names if n.endswith(".so")]
    manifest = zipfile.ZipFile(JAR).read("META-INF/MANIFEST.MF").decode()
    platforms = re.search(r"^Native-Platforms: (.*?)\r$", manifest, re.MULTILINE)
    assert platforms
    assert sorted(libraries) == sorted(f"org/pinnace/native/{one}/libpinnace_jni.so" for one in platforms[1].split())
    assert f"linux-{machine}" in platforms[1].split()
    assert int.from_bytes(program[6:8], "big") == 52  # class files of Java 8
    assert not [n for n in names if "Test" in n]
    version = re.search(r"project\(pinnace VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert version
    manifests = {path: zipfile.ZipFile(path).read("META-INF/MANIFEST.MF").decode() for path in (JAR, PYTORCH)}
    for path, title in ((JAR, "pinnace"), (PYTORCH, "pinnace for PyTorch Mobile's Java API")):
        assert f"Implementation-Title: {title}\r\nImplementation-Version: {version[1]}\r\n" in manifests[path]
    assert "Class-Path: pinnace.jar\r\n" in manifests[PYTORCH]
    with zipfile.ZipFile(PYTORCH) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        for name in names:
            assert re.fullmatch(r"META-INF/MANIFEST.MF|org/pytorch/(torchvision/)?[\w$]+\.class", name), name
            assert name.endswith(".MF") or int.from_bytes(archive.read(name)[6:8], "big") == 52
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


def test_the_jar_has_the_libraries_that_were_asked_for(jar: Path) -> None:
    """What an earlier build has left behind gets into no jar, and what cannot be built is refused."""
    left = ROOT / "build/java/classes/org/pinnace/native/linux-riscv64"
    left.mkdir()
    (left / "libpinnace_jni.so").write_bytes(b"of some other day")
    call("scripts/java.sh")
    assert not left.exists()
    with zipfile.ZipFile(JAR) as archive:
        libraries = [n for n in archive.namelist() if n.endswith(".so")]
    assert libraries == [f"org/pinnace/native/linux-{os.uname().machine}/libpinnace_jni.so"]
    before = JAR.read_bytes()
    for platforms, said in (
        ("riscv64", "no library for riscv64 can be built"),
        (f"{os.uname().machine} s390x", "no library for s390x can be built"),
    ):
        command = ["env", f"PLATFORMS={platforms}", "scripts/java.sh"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert said in done.stderr
    assert JAR.read_bytes() == before


def test_a_machine_without_a_library_is_told_so(jar: Path, tmp_path: Path) -> None:
    source = tmp_path / "Version.java"
    source.write_text(
        "public class Version { public static void main(String[] a) "
        "{ System.out.println(org.pinnace.Device.libraryVersion()); } }\n"
    )
    command = ["java", "-Dos.arch=riscv64", "-cp", str(JAR), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"the jar has libraries for linux-{os.uname().machine}, this is linux-riscv64" in done.stderr


def test_public_members_are_documented(jar: Path, tmp_path: Path) -> None:
    sources = [
        s for tree in ("src", "pytorch/src") for s in sorted((ROOT / "java" / tree / "main/java").rglob("*.java"))
    ]
    known: list[str | Path] = ["-cp", os.pathsep.join(map(str, (JAR.parent / "annotations", ANDROID)))]
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
