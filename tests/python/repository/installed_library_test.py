"""The installed library as applications meet it: programs outside the tree, through CMake and through pkg-config, with
the shared and the static library; headers that stand alone; and nothing exported or needed that is not ours.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import struct
import subprocess
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import spectral_gate
import speech_samples
import suppress_noise
import torch
from agreeing import assert_agree
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build/release"

pytestmark = pytest.mark.skipif(
    not list(BUILD.glob("libpinnace_runtime.so*")), reason="build/release has no libraries: make build"
)


def call(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """Standard output of a command that has to succeed."""
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `cmake --install` leaves, moved afterwards: nothing in it may know where it was installed to."""
    folder = tmp_path_factory.mktemp("installed")
    call("cmake", "--install", BUILD, "--prefix", folder / "first")
    (folder / "first").rename(folder / "moved")
    return folder / "moved"


class Net(nn.Module):
    """The shape of the digits example: [N, 1, 8, 8] -> [N, 10]."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.head = nn.Linear(256, 10)

    def forward(self, image: torch.Tensor) -> Any:
        return self.head(torch.relu(self.conv(image * 0.01)).flatten(1))


@pytest.fixture(scope="module")
def net() -> nn.Module:
    return Net().eval()


@pytest.fixture(scope="module")
def archive(net: nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("net") / "net.pt2"
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(net, (torch.zeros(2, 1, 8, 8),), dynamic_shapes={"image": {0: batch}})
    torch.export.save(exported, str(path))
    return path


@pytest.fixture(scope="module")
def program(archive: Path) -> Path:
    path = archive.with_suffix(".pnc")
    pn.load(archive).build().save(path)
    return path


class CountingNet(Net):
    """The same with a state."""

    runs: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, image: torch.Tensor) -> Any:
        self.runs.add_(1)
        return super().forward(image)


@pytest.fixture(scope="module")
def counting(net: nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    counts = CountingNet().eval()
    counts.load_state_dict({**net.state_dict(), "runs": torch.zeros(1)})
    path = tmp_path_factory.mktemp("counting") / "counting.pnc"
    shapes = {"image": {0: pn.Dim("batch", 1, 64)}}
    pn.load(counts, (torch.zeros(2, 1, 8, 8),), dynamic_shapes=shapes).build().save(path)
    return path


def expected(net: nn.Module, images: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        result: np.ndarray = net(torch.from_numpy(images)).numpy()
    return result


def check_consumer(net: nn.Module, output: str) -> None:
    """The last 20 numbers printed are the network's on 0, 1, 2, ..."""
    numbers = np.array([float(word) for word in output.split()[-20:]], np.float32).reshape(2, 10)
    want = expected(net, np.arange(128, dtype=np.float32).reshape(2, 1, 8, 8))
    assert_agree(numbers, want)


def needed(library: Path) -> set[str]:
    return set(re.findall(r"NEEDED.*\[(\S+?)\.so", call("readelf", "-d", library)))


@pytest.mark.rotating
def test_cmake_package(
    prefix: Path, net: nn.Module, archive: Path, program: Path, counting: Path, tmp_path: Path
) -> None:
    source = shutil.copytree(ROOT / "tests/installed", tmp_path / "source")
    call("cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", tmp_path / "build", "--parallel", "2")
    for language in ("cpp", "c"):
        for kind in ("runtime", "runtime_static"):
            executable = tmp_path / "build" / f"consumer_{language}_{kind}"
            check_consumer(net, call(executable, program))
            assert ("libpinnace_runtime" in needed(executable)) == (kind == "runtime")
    for kind in ("runtime", "runtime_static"):
        every_call = tmp_path / "build" / f"every_call_c_{kind}"
        check_consumer(net, call(every_call, counting, tmp_path / "written.pnc"))
    call(tmp_path / "build/converter", archive, tmp_path / "converted.pnc")
    assert pn.diff(pn.Program.open(tmp_path / "converted.pnc"), pn.Program.open(program), include_metadata=False) == []
    check_consumer(net, call(tmp_path / "build/consumer_c_runtime", tmp_path / "converted.pnc"))


def test_cmake_project_in_c_alone(prefix: Path, net: nn.Module, program: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(only_c LANGUAGES C)\nfind_package(pinnace REQUIRED)\n"
        "add_executable(consumer consumer.c)\ntarget_link_libraries(consumer PRIVATE pinnace::runtime)\n"
        "add_executable(fixed consumer.c)\ntarget_link_libraries(fixed PRIVATE pinnace::runtime_static)\n"
    )
    shutil.copy(ROOT / "tests/installed/consumer.c", tmp_path)
    call("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", tmp_path / "build")
    check_consumer(net, call(tmp_path / "build/consumer", program))
    check_consumer(net, call(tmp_path / "build/fixed", program))


def test_pkg_config(prefix: Path, net: nn.Module, program: Path, tmp_path: Path) -> None:
    (folder,) = prefix.rglob("pkgconfig")
    libraries = folder.parent
    for language, compiler in (("cc", ["g++", "-std=c++20"]), ("c", ["gcc", "-std=c11"])):
        source = ROOT / f"tests/installed/consumer.{language}"
        for static in (False, True):
            options = ["--static"] if static else []
            flags = call("pkg-config", *options, "--cflags", "--libs", "pinnace", PKG_CONFIG_PATH=str(folder)).split()
            if static:  # what applications write to take one library of several by its archive
                flags = [f.replace("-lpinnace_runtime", "-l:libpinnace_runtime.a") for f in flags]
            executable = tmp_path / f"{language}_{static}"
            call(*compiler, source, "-o", executable, *flags)
            check_consumer(net, call(executable, program, LD_LIBRARY_PATH="" if static else str(libraries)))
    version = call("pkg-config", "--modversion", "pinnace", PKG_CONFIG_PATH=str(folder)).strip()
    assert version == pn.__version__


@pytest.mark.rotating
def test_examples(prefix: Path, net: nn.Module, program: Path, tmp_path: Path) -> None:
    source = shutil.copytree(ROOT / "examples/native", tmp_path / "source")
    call("cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", tmp_path / "build", "--parallel", "2")
    images = np.random.default_rng(0).random((5, 1, 8, 8), np.float32)
    images.tofile(tmp_path / "images.bin")
    for name in ("digits_cpp", "digits_c"):
        call(tmp_path / "build" / name, program, tmp_path / "images.bin", tmp_path / "logits.bin")
        logits = np.fromfile(tmp_path / "logits.bin", np.float32).reshape(5, 10)
        assert_agree(logits, expected(net, images))
        for wrong in ([], [tmp_path / "nowhere.pnc", tmp_path / "images.bin", tmp_path / "logits.bin"]):
            command = [str(tmp_path / "build" / name), *map(str, wrong)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == (1 if wrong else 2)
            assert done.stderr
            assert not done.stdout


class Segmentation(nn.Module):
    """A mask [1, 1, h, w] of a picture."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))

    def forward(self, x: torch.Tensor) -> Any:
        return torch.sigmoid(4 * self.body(x))


def test_the_background_example(prefix: Path, tmp_path: Path) -> None:
    """Frames with strides go through the network as they lie in memory; only the first one allocates."""
    source = shutil.copytree(ROOT / "examples/native", tmp_path / "source")
    call("cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", tmp_path / "build", "--target", "background")
    height, width, luma_stride, chroma_stride = 37, 53, 64, 58
    options: dict[str, Any] = {"picture": (height, width), "row_stride": "open", "chroma_row_stride": "open"}
    how = pn.preprocess((32, 48), 0.5, 0.5, "nv21", **options)
    net = Segmentation().eval()
    pn.load(net, (torch.zeros(1, 3, 32, 48),), preprocess=how).build().save(tmp_path / "mask.pnc")
    frames = [frame(k, height, luma_stride, chroma_stride) for k in range(3)]
    (tmp_path / "frames.bin").write_bytes(b"".join(y.tobytes() + uv.tobytes() for y, uv in frames))
    sizes = (height, width, luma_stride, chroma_stride)
    said = call(
        tmp_path / "build/background",
        tmp_path / "mask.pnc",
        tmp_path / "frames.bin",
        *map(str, sizes),
        tmp_path / "rgb",
    )
    match = re.fullmatch(r"3 frames; allocations: (\d+) in the first, (\d+) in all others\n", said)
    assert match
    assert int(match[1]) > 0
    assert int(match[2]) == 0
    made = np.fromfile(tmp_path / "rgb", np.uint8).reshape(3, height, width, 3).astype(float)
    plain = pn.preprocess(
        input="nv21", scale=1, **{**options, "row_stride": luma_stride, "chroma_row_stride": chroma_stride}
    )
    for picture, (y, uv) in zip(made, frames, strict=True):
        rgb = plain.run({"image.y": y, "image.uv": uv})[0].transpose(1, 2, 0)
        want = blurred_background(net, how.run({"image.y": y, "image.uv": uv}), rgb)
        assert np.abs(picture - want).max() <= 4  # the example rounds after each step
    wrong = subprocess.run([tmp_path / "build/background"], capture_output=True, text=True, timeout=60, check=False)
    assert (wrong.returncode, wrong.stderr[:6]) == (2, "usage:")


def frame(seed: int, height: int, luma_stride: int, chroma_stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Smooth planes, with rubbish in the gaps too."""
    rows, columns = np.mgrid[0:height, 0:luma_stride]
    y = (128 + 90 * np.sin(rows / 7 + seed) * np.cos(columns / 9)).astype(np.uint8)
    rows, columns = np.mgrid[0 : (height + 1) // 2, 0:chroma_stride]
    return y, (128 + 60 * np.sin(columns / 11 + seed) + 20 * np.cos(rows / 5)).astype(np.uint8)


def blurred_background(net: nn.Module, x: np.ndarray, rgb: np.ndarray) -> np.ndarray:
    """What the example makes, in floats: a box of 13 x 13 pixels where the mask is 0."""
    height, width = rgb.shape[:2]
    with torch.no_grad():
        mask = net(torch.from_numpy(x))[0, 0].numpy()
    person = mask[np.arange(height) * mask.shape[0] // height][:, np.arange(width) * mask.shape[1] // width, None]
    padded = np.pad(rgb, ((6, 6), (6, 6), (0, 0)), "edge").astype(float)
    across = np.sum([padded[:, k : k + width] for k in range(13)], 0) / 13
    blurred = np.sum([across[k : k + height] for k in range(13)], 0) / 13
    return np.asarray(rgb * person + blurred * (1 - person))


def wav(samples: np.ndarray, size: int | None = None, rate: int = spectral_gate.RATE) -> bytes:
    """A file of 16 bits of samples [count, channels], with a part that nobody reads; `size`: what it says of them."""
    data = np.ascontiguousarray(samples, "<i2").tobytes()
    channels = samples.shape[1]
    form = struct.pack("<HHIIHH", 1, channels, rate, rate * channels * 2, channels * 2, 16)
    parts = b"WAVEfmt " + struct.pack("<I", 16) + form + b"LIST" + struct.pack("<I", 3) + b"odd\0"
    parts += b"data" + struct.pack("<I", len(data) if size is None else size) + data
    return b"RIFF" + struct.pack("<I", len(parts)) + parts


def test_the_denoise_example(prefix: Path, tmp_path: Path) -> None:
    """WAV in, WAV out: what the network gives for the whole, in chunks; only the first one allocates."""
    source = shutil.copytree(ROOT / "examples/native", tmp_path / "source")
    call("cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", tmp_path / "build", "--target", "denoise")
    check_denoise(tmp_path / "build/denoise", tmp_path)
    check_suppressor(tmp_path / "build/denoise", tmp_path)


def check_suppressor(program: Path, folder: Path) -> None:
    """The published suppressor by the same pipe: what it makes in Python, and better than what came in."""
    made = suppress_noise.suppressor_program()
    made.save(folder / "suppressor.pnc")
    clean = speech_samples.speech(2)[0]
    noisy = np.rint(speech_samples.mixed(clean, 5) * 32767)[:, None]
    command = [str(program), str(folder / "suppressor.pnc")]
    data = wav(noisy, rate=suppress_noise.RATE)
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=True)
    assert b"96000 samples in 200 chunks of 480, 1440 late" in done.stderr
    assert b" 0 in all others" in done.stderr
    got = np.frombuffer(done.stdout[44:], "<i2") / 32768
    stream = suppress_noise.Suppressor(made, target="cpu", threads=1)
    samples = (noisy[:, 0] / 32768).astype(np.float32)
    python = np.concatenate([stream.run(samples), stream.finish()])[stream.latency :]
    assert got.shape == clean.shape
    assert np.abs(got - python).max() <= 1.5 / 32768
    assert speech_samples.snr(clean, got.astype(np.float32)) > speech_samples.snr(clean, samples) + 2


def check_denoise(program: Path, folder: Path) -> None:
    noise = np.random.default_rng(7).standard_normal((20001, 2)).astype(np.float32) * 0.02
    gate, net = spectral_gate.gate_program(noise[:, 0])
    gate.save(folder / "gate.pnc")
    t = np.arange(len(noise)) / spectral_gate.RATE
    tones = 0.3 * np.sin(2 * np.pi * t[:, None] * [440, 700]) * (np.sin(2 * np.pi * 3 * t[:, None]) > 0)
    sound = np.rint((tones + noise) * 32768).astype("<i2")

    def denoised(data: bytes, *options: str, code: int = 0) -> tuple[bytes, str]:
        command = [str(program), str(folder / "gate.pnc"), *options]
        done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr.decode()

    for channels in (1, 2):
        samples = sound[:, :channels]
        blocks = np.zeros((-(-len(samples) // 128) * 128, channels), np.float32)
        blocks[: len(samples)] = samples / np.float32(32768)
        with torch.no_grad():
            want = np.stack([net(torch.from_numpy(column[None, None].copy()))[0, 0] for column in blocks.T], 1)
        session = pn.Session(gate, target="cpu", threads=1)
        python = np.stack([in_python(session, column) for column in blocks.T], 1)[: len(samples)]
        assert_agree(python, want[: len(samples)])
        for options, chunk in (((), 256), (("3",), 128), (("700",), 11264)):
            made, said = denoised(wav(samples), *options)
            match = re.fullmatch(
                r"20001 samples in (\d+) chunks of (\d+), 384 late; "
                r"allocations: (\d+) in the first chunk, (\d+) in all others\n",
                said,
            )
            assert match, said
            assert (int(match[1]), int(match[2])) == (-(-20001 // chunk), chunk)
            assert int(match[3]) > 0
            assert int(match[4]) == 0
            with wave.open(io.BytesIO(made)) as file:
                assert (file.getnchannels(), file.getframerate()) == (channels, spectral_gate.RATE)
                got = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, channels)
            assert got.shape == samples.shape
            assert np.abs(got - np.rint(python * 32768)).max() <= 1
        error = [np.mean((y - tones[:, :channels]) ** 2) for y in (samples / 32768, got / 32768)]
        assert error[1] < error[0] / 2
    whole = denoised(wav(sound))[0]
    for unknown in (0, 0xFFFFFFFF):  # as programs say that write to a pipe
        assert denoised(wav(sound, unknown))[0][44:] == whole[44:]
    assert len(denoised(wav(sound[:0]))[0]) == 44
    assert len(denoised(wav(sound[:5, :1]))[0]) == 44 + 10
    cut, said = denoised(wav(sound)[:5000], code=1)
    assert said.endswith("ends before its last sample\n")
    assert len(cut) == 44 + 5000 - 56
    assert cut[44:2800] == whole[44:2800]  # later samples depend on those that are not there
    good = wav(sound)
    for data, why in [
        (b"", "no WAV file"),
        (b"OggS" + good[4:], "no WAV file"),
        (good[:30], "ends before its samples"),
        (good[:20] + b"\3\0" + good[22:], "of form 3 with 16 bits"),
        (good[:34] + b"\x18\0" + good[36:], "of form 1 with 24 bits"),
        (good[:22] + b"\6\0" + good[24:], "6 channels"),
        (good[:16] + b"\4\0" + good[18:], "fmt part has 4 bytes"),
        (good[:12] + good[48:], "before it says of what form"),
        (wav(sound, rate=44100), "is for 16000 Hz, and the WAV file has 44100"),
    ]:
        made, said = denoised(data, code=1)
        assert why in said
        assert said.count("\n") == 1
        assert not made
    pn.load(nn.ReLU(), torch.ones(1, 1, 8)).build().save(folder / "gate.pnc")
    assert "is no stream of samples" in denoised(good, code=1)[1]
    assert denoised(good, "0", code=2)[1].startswith("usage:")


def in_python(session: pn.Session, samples: np.ndarray) -> np.ndarray:
    """Blocks of 1,280 samples, and what is left."""
    made = [session.run({"audio": samples[None, None, i : i + 1280]}) for i in range(0, len(samples), 1280)]
    joined = np.concatenate([next(iter(y.values())) for y in [*made, session.finish()]], axis=2)
    return np.asarray(joined[0, 0, 384:])


@pytest.mark.rotating
def test_headers_stand_alone(prefix: Path, tmp_path: Path) -> None:
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    include = prefix / "include"
    headers = sorted((include / "pinnace").iterdir())
    assert {h.name for h in headers} == {h.name for h in (ROOT / "cpp/include/pinnace").iterdir()}
    for header in headers:
        unit = tmp_path / "unit.cc"
        unit.write_text(f"#include <pinnace/{header.name}>\n#include <pinnace/{header.name}>\n")
        call("g++", "-std=c++20", *warnings, "-I", include, unit)
    unit = tmp_path / "unit.c"
    unit.write_text("#include <pinnace/pinnace.h>\n#include <pinnace/pinnace.h>\n")
    for standard in ("c11", "c17"):
        call("gcc", f"-std={standard}", *warnings, "-I", include, unit)


def exported(library: Path) -> list[str]:
    """Names without the version, which c_abi_test.py looks at; the versions themselves left out."""
    lines = call("nm", "-D", "--defined-only", "-C", library).splitlines()
    return [line.split(maxsplit=2)[2].partition("@@")[0] for line in lines if line.split()[1] != "A"]


@pytest.mark.parametrize("name", ["libpinnace_runtime.so", "libpinnace.so"])
def test_exports_are_ours(prefix: Path, name: str) -> None:
    (library,) = prefix.rglob(name)
    symbols = exported(library)
    foreign = [s for s in symbols if not re.match(r"pnc_|pinnace::", s)]
    assert foreign == []
    declared = set(re.findall(r"\b(pnc_\w+)\(", (prefix / "include/pinnace/pinnace.h").read_text()))
    assert declared == {s for s in symbols if s.startswith("pnc_")}
    assert any(s.startswith("pinnace::Session::run(") for s in symbols)
    assert not [s for s in symbols if "onnx_proto" in s]


def test_device_library_needs_the_c_and_cpp_runtimes_alone(prefix: Path) -> None:
    (library,) = prefix.rglob("libpinnace_runtime.so")
    assert needed(library) <= {"libstdc++", "libm", "libgcc_s", "libc", "libpthread", "ld-linux-x86-64"}
    tool = prefix / "bin/pinnace-run"
    assert needed(tool) <= {"libstdc++", "libm", "libgcc_s", "libc", "libpthread", "ld-linux-x86-64"}
    # The archive, which no linker has checked yet, asks for nothing of theirs either.
    (static,) = prefix.rglob("libpinnace_runtime.a")
    wanted = call("nm", "--undefined-only", "-C", static)
    assert not re.search(r"google::protobuf|simdjson|\bzip_", wanted)
