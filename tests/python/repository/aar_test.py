"""scripts/aar.py: the layout of the Android packages and its checks, over libraries that stand for those of an NDK,
which is not at hand here."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from scripts_by_name import script

ROOT = Path(__file__).resolve().parents[3]
aar = script("aar")

COMPILERS = {"arm64-v8a": "aarch64-linux-gnu-gcc", "x86_64": "x86_64-linux-gnu-gcc"}
pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, [*COMPILERS.values(), "readelf"])), reason="compilers for ARM64 and x86-64 are missing"
)


def compile_library(
    to: Path,
    abi: str,
    leave_out: str = "",
    add: str = "",
    page: int = aar.PAGE,
    options: tuple[str, ...] = ("-nostdlib",),
) -> None:
    """A library with the functions that the classes look for, which do nothing."""
    names = ((aar.native_methods() | {"JNI_OnLoad"}) - {leave_out}) | ({add} if add else set())
    source = to.with_suffix(".c")
    to.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in sorted(names)))
    size = f"-Wl,-z,max-page-size={page}"
    subprocess.run([COMPILERS[abi], "-shared", "-fPIC", size, source, "-o", to, *options], check=True)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """FOLDER/ABI/libpinnace_jni.so of both ABIs, as Android would load them."""
    folder = tmp_path_factory.mktemp("right")
    for abi in COMPILERS:
        compile_library(folder / abi / aar.LIBRARY, abi)
    return folder


@pytest.fixture
def libraries(right: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return shutil.copytree(right, tmp_path / "libraries")


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """A folder with a class of each Java package."""
    with zipfile.ZipFile(tmp_path / "pinnace.jar", "w") as out:
        out.writestr("org/pinnace/Native.class", b"\xca\xfe\xba\xbe")
        out.writestr("org/pinnace/native/linux-x86_64/libpinnace_jni.so", b"glibc's")
    with zipfile.ZipFile(tmp_path / "pinnace-pytorch.jar", "w") as out:
        for name in ("Module", "IValue", "torchvision/TensorImageUtils"):
            out.writestr(f"org/pytorch/{name}.class", b"\xca\xfe\xba\xbe")
    return tmp_path


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "ANDROID_NDK"}
    command = [sys.executable, ROOT / "scripts/aar.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=kept | environment)


def classes_of(aar_file: Path, tmp_path: Path) -> list[str]:
    with zipfile.ZipFile(aar_file) as package:
        (tmp_path / "classes.jar").write_bytes(package.read("classes.jar"))
    with zipfile.ZipFile(tmp_path / "classes.jar") as classes:
        return classes.namelist()


def test_the_layout(libraries: Path, jars: Path, tmp_path: Path) -> None:
    done = run("--libraries", libraries, "--out", tmp_path / "out", "--jars", jars)
    assert done.returncode == 0, done.stderr
    assert "arm64-v8a: " in done.stdout
    place = tmp_path / "out/maven/org/pinnace/pinnace-android" / aar.version()
    stem = f"pinnace-android-{aar.version()}"
    assert sorted(p.name for p in place.iterdir()) == [f"{stem}.aar", f"{stem}.module", f"{stem}.pom"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["maven"]
    with zipfile.ZipFile(place / f"{stem}.aar") as package:
        assert {n for n in package.namelist() if not n.startswith("META-INF/")} == {
            "AndroidManifest.xml",
            "R.txt",
            "classes.jar",
            "proguard.txt",
            "jni/arm64-v8a/libpinnace_jni.so",
            "jni/x86_64/libpinnace_jni.so",
        }
        assert b'package="org.pinnace"' in package.read("AndroidManifest.xml")
    assert classes_of(place / f"{stem}.aar", tmp_path) == ["org/pinnace/Native.class"], "no library for glibc"
    module = json.loads((place / f"{stem}.module").read_text())
    data = (place / f"{stem}.aar").read_bytes()
    assert [v["attributes"]["org.gradle.usage"] for v in module["variants"]] == ["java-api", "java-runtime"]
    for variant in module["variants"]:
        assert "dependencies" not in variant
        (file,) = variant["files"]
        assert file["size"] == len(data)
        assert file["sha256"] == hashlib.sha256(data).hexdigest()
    pom = (place / f"{stem}.pom").read_text()
    assert "published-with-gradle-metadata" in pom
    assert "<dependency>" not in pom
    # The same again has the same bytes.
    assert run("--libraries", libraries, "--out", tmp_path / "out", "--jars", jars).returncode == 0
    assert (place / f"{stem}.aar").read_bytes() == data


def test_pytorch_mobile_is_a_package_of_its_own(libraries: Path, jars: Path, tmp_path: Path) -> None:
    """An app of PyTorch Mobile takes it, and with it the native libraries of the package that it depends on."""
    assert run("--libraries", libraries, "--out", tmp_path / "out", "--jars", jars).returncode == 0
    place = tmp_path / "out/maven/org/pinnace/pinnace-pytorch-android" / aar.version()
    stem = f"pinnace-pytorch-android-{aar.version()}"
    assert sorted(p.name for p in place.iterdir()) == [f"{stem}.aar", f"{stem}.module", f"{stem}.pom"]
    with zipfile.ZipFile(place / f"{stem}.aar") as package:
        names = {n for n in package.namelist() if not n.startswith("META-INF/")}
        assert names == {"AndroidManifest.xml", "R.txt", "classes.jar"}, "libraries are in the other package alone"
        # Two packages of one name cannot be in one app.
        assert b'package="org.pinnace.pytorch"' in package.read("AndroidManifest.xml")
    assert sorted(classes_of(place / f"{stem}.aar", tmp_path)) == [
        "org/pytorch/IValue.class",
        "org/pytorch/Module.class",
        "org/pytorch/torchvision/TensorImageUtils.class",
    ]
    module = json.loads((place / f"{stem}.module").read_text())
    assert module["component"]["module"] == "pinnace-pytorch-android"
    wanted = {"group": "org.pinnace", "module": "pinnace-android", "version": {"requires": aar.version()}}
    assert [variant["dependencies"] for variant in module["variants"]] == [[wanted], [wanted]]
    maven = "{http://maven.apache.org/POM/4.0.0}"
    (dependency,) = ElementTree.parse(place / f"{stem}.pom").iter(f"{maven}dependency")
    assert {child.tag.removeprefix(maven): child.text for child in dependency} == {
        "groupId": "org.pinnace",
        "artifactId": "pinnace-android",
        "version": aar.version(),
        "type": "aar",
        "scope": "compile",
    }


@pytest.mark.parametrize(
    ("jar", "name"), [("pinnace.jar", "org/other/A.class"), ("pinnace-pytorch.jar", "org/pinnace/Tensor.class")]
)
def test_classes_of_others_are_refused(libraries: Path, jars: Path, tmp_path: Path, jar: str, name: str) -> None:
    """A class that is in two packages of an app ends its build."""
    with zipfile.ZipFile(jars / jar, "a") as out:
        out.writestr(name, b"\xca\xfe\xba\xbe")
    done = run("--libraries", libraries, "--out", tmp_path / "out", "--jars", jars)
    assert done.returncode == 1
    assert f"{jar} has {name}, not the classes of" in done.stderr
    assert not (tmp_path / "out/maven").exists()


def test_what_shrinking_keeps_is_what_the_library_asks_for() -> None:
    rules = (ROOT / "java/android/proguard.txt").read_text()
    asked = "\n".join(path.read_text() for path in sorted((ROOT / "java/src/main/c").glob("*.c")))
    assert "org/pinnace/PinnaceException" in asked
    assert "class org.pinnace.PinnaceException { static org.pinnace.PinnaceException of(...); }" in rules
    assert "class org.pinnace.CustomOp { static byte[] called(...); }" in rules
    assert "class org.pinnace.Log { static void called(...); }" in rules
    found = set(re.findall(r'FindClass\(env, "(org/pinnace/\w+)"\)', asked))
    assert found == {"org/pinnace/PinnaceException", "org/pinnace/CustomOp", "org/pinnace/Log"}
    assert "class org.pinnace.Native { native <methods>; }" in rules


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"page": 4096}, "has segments aligned to 4096 bytes, pages have 16384"),
        ({"leave_out": "JNI_OnLoad"}, "lacks JNI_OnLoad"),
        ({"leave_out": "Java_org_pinnace_Native_run"}, "lacks Java_org_pinnace_Native_run"),
        ({"add": "malloc"}, "shows malloc"),
        ({"options": ("-lc", "-Wl,--no-as-needed")}, "a library for glibc does not load on Android"),
    ],
)
@pytest.mark.parametrize("abi", list(COMPILERS))
def test_what_android_would_not_load_is_refused(
    libraries: Path, jars: Path, tmp_path: Path, abi: str, changed: dict[str, Any], said: str
) -> None:
    compile_library(libraries / abi / aar.LIBRARY, abi, **changed)
    done = run("--libraries", libraries, "--out", tmp_path / "out", "--jars", jars)
    assert done.returncode == 1
    assert said in done.stderr
    assert abi in done.stderr
    assert not (tmp_path / "out").exists()


def test_other_refusals(libraries: Path, right: Path, jars: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out", "--jars", jars)
    assert "ANDROID_NDK is not set" in run(*out).stderr
    assert "is no Android NDK" in run(*out, ANDROID_NDK=str(tmp_path)).stderr
    shutil.copy(libraries / "x86_64" / aar.LIBRARY, libraries / "arm64-v8a" / aar.LIBRARY)
    assert "arm64-v8a is AArch64" in run("--libraries", libraries, *out).stderr
    (libraries / "arm64-v8a" / aar.LIBRARY).write_bytes(b"\x7fELF")
    assert run("--libraries", libraries, *out).returncode == 1
    (libraries / "arm64-v8a" / aar.LIBRARY).unlink()
    assert "there is no " in run("--libraries", libraries, *out).stderr
    (jars / "pinnace-pytorch.jar").unlink()
    done = run("--libraries", right, *out)
    assert "pinnace-pytorch.jar: make java" in done.stderr
    assert not (tmp_path / "out/maven").exists()


@pytest.mark.parametrize("abi", list(COMPILERS))
def test_presets_ask_for_an_ndk(abi: str, tmp_path: Path) -> None:
    """With none, CMake says so; with a folder that is like one, its toolchain file is what configures."""
    command = ["cmake", "--preset", f"android-{abi}", "-B", str(tmp_path / "build")]
    kept = {name: value for name, value in os.environ.items() if name != "ANDROID_NDK"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=kept)
    assert done.returncode != 0
    assert "ANDROID_NDK is not set" in done.stderr
    toolchain = tmp_path / "ndk/build/cmake/android.toolchain.cmake"
    toolchain.parent.mkdir(parents=True)
    toolchain.write_text('message(FATAL_ERROR "asked for ${ANDROID_ABI} ${ANDROID_PLATFORM} ${ANDROID_STL}")\n')
    kept["ANDROID_NDK"] = str(tmp_path / "ndk")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=kept)
    assert f"asked for {abi} android-26 c++_static" in done.stderr
