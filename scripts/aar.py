#!/usr/bin/env python3
"""Packs the Android packages: build/aar/maven/org/pinnace/ARTIFACT/VERSION/ with an AAR, its POM and its Gradle module
metadata, as a local Maven repository. The artifacts are pinnace-android, the classes of org.pinnace with the native
libraries, and pinnace-pytorch-android, PyTorch Mobile's Java API (org.pytorch) over it.

    aar.py [--libraries FOLDER] [--out FOLDER] [--jars FOLDER]

Native libraries are built with the NDK that ANDROID_NDK names, for each ABI; --libraries takes
FOLDER/ABI/libpinnace_jni.so instead. Every library is checked before anything is packed: architecture, pages of 16 KiB,
which libraries it needs, which functions it shows. Libraries for glibc do not load on Android and are refused. The
classes are those of build/java/pinnace.jar and pinnace-pytorch.jar (`make java`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ABIS = {"arm64-v8a": "AArch64", "x86_64": "Advanced Micro Devices X86-64"}  # and readelf's name of the processor
LIBRARY = "libpinnace_jni.so"
# What every Android has and applications may link.
SYSTEM_LIBRARIES = {"libc.so", "libm.so", "libdl.so", "liblog.so"}
PAGE = 16 * 1024
GROUP = "org.pinnace"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes of the same content


class Artifact(NamedTuple):
    """One package of the repository."""

    name: str
    jar: str  # where its classes are
    packages: str  # how the names of these begin, as a regular expression
    namespace: str  # of its manifest; Gradle wants another one for each package of an app
    needs: str = ""  # the artifact that it is used with; without one it has the native libraries


ARTIFACTS = (
    Artifact("pinnace-android", "pinnace.jar", "org/pinnace/", "org.pinnace"),
    Artifact(
        "pinnace-pytorch-android", "pinnace-pytorch.jar", "org/pytorch/", "org.pinnace.pytorch", "pinnace-android"
    ),
)


class Refused(Exception):
    """Why there is no package."""


def version() -> str:
    found = re.search(r"project\(pinnace VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert found
    return found[1]


def native_methods() -> set[str]:
    """The functions that the classes look for."""
    text = (ROOT / "java/src/main/java/org/pinnace/Native.java").read_text()
    return {f"Java_org_pinnace_Native_{name}" for name in re.findall(r"static native [^;]*?(\w+)\(", text)}


def elf(*arguments: str | Path) -> str:
    """What readelf says; Refused where it does not know the file."""
    done = subprocess.run(["readelf", "-W", *arguments], capture_output=True, text=True, check=False)
    if done.returncode or "Error:" in done.stderr:
        raise Refused(f"{arguments[-1]}: {done.stderr.strip() or 'readelf cannot read it'}")
    return done.stdout


def check(library: Path, abi: str) -> str:
    """One line about a library; Refused where Android would not load it, or the classes not find their functions."""
    if not library.is_file():
        raise Refused(f"there is no {library}")
    machine = re.search(r"Machine:\s+(.*)", elf("-h", library))
    if machine is None or machine[1].strip() != ABIS[abi]:
        raise Refused(f"{library} is for {machine[1].strip() if machine else 'nothing'}, {abi} is {ABIS[abi]}")
    aligned = [int(x, 16) for x in re.findall(r"^\s*LOAD\s.*\s(0x[0-9a-f]+)$", elf("-l", library), re.MULTILINE)]
    if not aligned or min(aligned) < PAGE:
        raise Refused(f"{library} has segments aligned to {min(aligned, default=0)} bytes, pages have {PAGE}")
    needed = set(re.findall(r"\(NEEDED\).*\[(\S+)\]", elf("-d", library)))
    if foreign := sorted(needed - SYSTEM_LIBRARIES):
        glibc = ": a library for glibc does not load on Android" if "libc.so.6" in foreign else ""
        raise Refused(f"{library} needs {', '.join(foreign)}, which Android does not have{glibc}")
    symbols = elf("--dyn-syms", library)
    shown = set(re.findall(r"\b(?:FUNC|OBJECT)\s+(?:GLOBAL|WEAK)\s+\w+\s+\d+\s+(\w+)", symbols))
    if missing := sorted((native_methods() | {"JNI_OnLoad"}) - shown):
        raise Refused(f"{library} lacks {', '.join(missing[:3])}{' and more' if len(missing) > 3 else ''}")
    if others := sorted(n for n in shown if not n.startswith("Java_org_pinnace_") and n != "JNI_OnLoad"):
        raise Refused(f"{library} shows {', '.join(others[:3])}, which another library could be bound to")
    return f"{abi}: {library.stat().st_size / 1e6:.2f} MB, needs {', '.join(sorted(needed)) or 'nothing'}"


def built(ndk: str, folder: Path) -> Path:
    """The libraries as the NDK builds and strips them: folder/ABI/libpinnace_jni.so."""
    strips = sorted(Path(ndk).glob("toolchains/llvm/prebuilt/*/bin/llvm-strip"))
    if not strips:
        raise Refused(f"ANDROID_NDK: {ndk} is no Android NDK: it has no toolchains/llvm/prebuilt/*/bin/llvm-strip")
    for abi in ABIS:
        preset = f"android-{abi}"
        jobs = ["--parallel", os.environ.get("JOBS", "2")]
        for command in (
            ["cmake", "--preset", preset],
            ["cmake", "--build", str(ROOT / "build" / preset), *jobs, "--target", "pinnace_jni"],
        ):
            if subprocess.run(command, cwd=ROOT, check=False).returncode:
                raise Refused(f"{' '.join(command)} failed")
        (folder / abi).mkdir(parents=True, exist_ok=True)
        source, to = ROOT / "build" / preset / LIBRARY, folder / abi / LIBRARY
        if subprocess.run([str(strips[0]), "-o", str(to), str(source)], check=False).returncode:
            raise Refused(f"{source} cannot be stripped")
    return folder


def classes(jar: Path, packages: str) -> bytes:
    """The classes of a Java package as classes.jar, without native libraries; Refused where there are others."""
    if not jar.is_file():
        raise Refused(f"there is no {jar}: make java")
    to = jar.parent / "classes.jar"
    with zipfile.ZipFile(jar) as source, zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as out:
        names = [name for name in sorted(source.namelist()) if name.endswith(".class")]
        if foreign := [name for name in names if not name.startswith(packages)] or (not names and ["no classes"]):
            to.unlink()
            raise Refused(f"{jar} has {foreign[0]}, not the classes of {packages}")
        for name in names:
            out.writestr(zipfile.ZipInfo(name, EPOCH), source.read(name), zipfile.ZIP_DEFLATED)
    data = to.read_bytes()
    to.unlink()
    return data


def pack(artifact: Artifact, path: Path, libraries: Path, jars: Path) -> None:
    """Writes the AAR. Libraries are stored, not compressed."""
    android = ROOT / "java/android"
    manifest = (android / "AndroidManifest.xml").read_text().replace('"org.pinnace"', f'"{artifact.namespace}"')
    texts = {
        "AndroidManifest.xml": manifest,
        "R.txt": "",
        "META-INF/com/android/build/gradle/aar-metadata.properties": "aarFormatVersion=1.0\naarMetadataVersion=1.0\n",
    }
    if not artifact.needs:  # native code finds nothing of the others by name
        texts["proguard.txt"] = (android / "proguard.txt").read_text()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, text in texts.items():
            out.writestr(zipfile.ZipInfo(name, EPOCH), text, zipfile.ZIP_DEFLATED)
        packed = classes(jars / artifact.jar, artifact.packages)
        out.writestr(zipfile.ZipInfo("classes.jar", EPOCH), packed, zipfile.ZIP_STORED)
        for abi in ABIS if not artifact.needs else ():
            out.writestr(zipfile.ZipInfo(f"jni/{abi}/{LIBRARY}", EPOCH), (libraries / abi / LIBRARY).read_bytes())


def metadata(artifact: Artifact, aar: Path) -> dict[str, object]:
    """Gradle's module metadata 1.1: the one variant, for those who compile and those who run."""
    data = aar.read_bytes()
    file: dict[str, object] = {"name": aar.name, "url": aar.name, "size": len(data)}
    file |= {kind: hashlib.new(kind, data).hexdigest() for kind in ("sha512", "sha256", "sha1", "md5")}
    needed = {"group": GROUP, "module": artifact.needs, "version": {"requires": version()}}
    dependencies = {"dependencies": [needed]} if artifact.needs else {}
    variants = []
    for name, usage in (("api", "java-api"), ("runtime", "java-runtime")):
        attributes = {
            "org.gradle.category": "library",
            "org.gradle.dependency.bundling": "external",
            "org.gradle.libraryelements": "aar",
            "org.gradle.jvm.environment": "android",
            "org.gradle.usage": usage,
        }
        variants.append({"name": name, "attributes": attributes, **dependencies, "files": [file]})
    component = {
        "group": GROUP,
        "module": artifact.name,
        "version": version(),
        "attributes": {"org.gradle.status": "release"},
    }
    return {"formatVersion": "1.1", "component": component, "variants": variants}


def pom(artifact: Artifact) -> str:
    coordinates = "<groupId>{}</groupId>\n{}<artifactId>{}</artifactId>\n{}<version>{}</version>"
    needed = ""
    if artifact.needs:
        indent = " " * 6
        needed = f"""  <dependencies>
    <dependency>
{indent}{coordinates.format(GROUP, indent, artifact.needs, indent, version())}
{indent}<type>aar</type>
{indent}<scope>compile</scope>
    </dependency>
  </dependencies>
"""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <!-- do_not_remove: published-with-gradle-metadata -->
  <modelVersion>4.0.0</modelVersion>
  {coordinates.format(GROUP, "  ", artifact.name, "  ", version())}
  <packaging>aar</packaging>
{needed}</project>
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--libraries", type=Path, help="take FOLDER/ABI/libpinnace_jni.so instead of building them")
    parser.add_argument("--out", type=Path, default=ROOT / "build/aar", help="the folder of the packages")
    parser.add_argument("--jars", type=Path, default=ROOT / "build/java", help="the folder with the classes' jars")
    options = parser.parse_args(arguments)
    try:
        libraries = options.libraries
        if libraries is None:
            ndk = os.environ.get("ANDROID_NDK")
            if not ndk:
                raise Refused(
                    "ANDROID_NDK is not set: native libraries for Android are built with an Android NDK (r27 or later)"
                )
            libraries = built(ndk, options.out / "jni")
        said = [check(libraries / abi / LIBRARY, abi) for abi in ABIS]
        new = options.out / "new"
        shutil.rmtree(new, ignore_errors=True)
        for artifact in ARTIFACTS:
            (new / artifact.name).mkdir(parents=True)
            stem = new / artifact.name / f"{artifact.name}-{version()}"
            package = stem.parent / f"{stem.name}.aar"  # with_suffix would take the version's last number for one
            pack(artifact, package, libraries, options.jars)
            text = json.dumps(metadata(artifact, package), indent=2) + "\n"
            (stem.parent / f"{stem.name}.module").write_text(text)
            (stem.parent / f"{stem.name}.pom").write_text(pom(artifact))
    except (Refused, OSError) as error:
        print(f"aar: {error}", file=sys.stderr)
        return 1
    for line in said:
        print(f"aar: {line}")
    for artifact in ARTIFACTS:
        place = options.out / "maven" / GROUP.replace(".", "/") / artifact.name / version()
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        (new / artifact.name).rename(place)
        print(f"aar: {place / artifact.name}-{version()}.aar")
    new.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main())
