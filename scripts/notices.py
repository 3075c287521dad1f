#!/usr/bin/env python3
"""Writes the notices of what a binary of ours contains that others wrote: the licence texts that go with it.

    notices.py OUT BINARY

BINARY is a library or an extension of a build. What is compiled into it from headers is listed below; which shared
libraries go along with it, the linker's list says. Texts are those that Debian's packages and Python's distributions
install, so that they are of the very versions that were used. Where one cannot be found, nothing is written.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

# What every library is compiled with; what the importers and the Python extension are compiled with as well.
RUNTIME = ("libflatbuffers-dev", "libxxhash-dev")
HOST = (*RUNTIME, "libspdlog-dev", "libfmt-dev")
EXTENSION_DISTRIBUTIONS = ("pybind11", "onnx")  # onnx.proto's generated code
# Every system has these: they are not brought along.
SYSTEM = re.compile(r"(linux-vdso|ld-linux[\w-]*|libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|librt)\.so")
DOCUMENTS = Path("/usr/share/doc")


class Missing(Exception):
    """What has no notice."""


def shared_libraries(binary: Path) -> list[Path]:
    """Those that the binary needs and that a system may lack, wherever they were found."""
    said = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False)
    if said.returncode:
        raise Missing(f"{binary}: {(said.stderr or said.stdout).strip()}")
    if lost := re.findall(r"^\s*(\S+) => not found", said.stdout, re.MULTILINE):
        raise Missing(f"{binary} needs {', '.join(lost)}, which is not on this machine")
    found = re.findall(r"^\s*(\S+) => (/\S+)", said.stdout, re.MULTILINE)
    return [Path(path) for name, path in found if not SYSTEM.match(name)]


def package_of(library: Path) -> str:
    """The Debian package of a file."""
    for path in (library, Path("/usr") / library.relative_to("/"), library.resolve()):
        done = subprocess.run(["dpkg-query", "--search", str(path)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.partition(":")[0]
    raise Missing(f"{library} is of no Debian package")


def debian_notice(package: str) -> str:
    """Name, version and licence of a package."""
    form = "${Version}"
    done = subprocess.run(["dpkg-query", "-W", "-f", form, package], capture_output=True, text=True, check=False)
    text = DOCUMENTS / package / "copyright"
    if done.returncode or not text.is_file():
        raise Missing(f"Debian's package {package} is not installed, or has no {text}")
    return f"{package} {done.stdout}\n\n{text.read_text(errors='replace').strip()}\n"


def distribution_notice(name: str) -> str:
    """Name, version and licence of a Python distribution."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise Missing(f"Python's distribution {name} is not installed") from error
    texts = [f for f in found.files or [] if re.match(r"(LICEN[CS]E|NOTICE|COPYING)", f.name)]
    if not texts:
        raise Missing(f"Python's distribution {name} has no licence text")
    return f"{name} {found.version}\n\n" + "\n".join(f.read_text().strip() for f in sorted(texts)) + "\n"


def notices(binary: Path) -> str:
    """The whole text."""
    extension = binary.name.startswith("_core")
    host = extension or binary.name.startswith("libpinnace.so")
    parts = [debian_notice(package) for package in (HOST if host else RUNTIME)]
    if extension:
        parts += [distribution_notice(name) for name in EXTENSION_DISTRIBUTIONS]
    packages = sorted({package_of(library) for library in shared_libraries(binary)})
    parts += [debian_notice(package) for package in packages]
    head = "This binary contains the following works of others, under the licences below.\n"
    line = "\n" + "=" * 100 + "\n"
    return head + "".join(line + part for part in parts)


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    out, binary = map(Path, arguments)
    try:
        text = notices(binary)
    except (Missing, OSError) as error:
        print(f"notices: {error}", file=sys.stderr)
        return 1
    out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
