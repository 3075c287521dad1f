"""A trained voice activity detector. Every ONNX file that its package carries: 200 frames, its state carried from each
to the next, as onnxruntime runs it. The scripted module, which keeps its state itself, as torch runs it.

The files differ in opset (15, 16, 18), in precision (half: weights in f16), in how they choose between 8 and 16 kHz (by
If, by arithmetic, not at all) and in what they leave open.
"""

from __future__ import annotations

import itertools
import pathlib
from importlib import metadata
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from onnx import numpy_helper

FRAMES = 200
# name -> sampling rates
MODELS = {
    "silero_vad.onnx": (16000, 8000),
    "silero_vad_op18_ifless.onnx": (16000, 8000),
    "silero_vad_16k_op15.onnx": (16000,),
    "silero_vad_half.onnx": (16000,),
    "silero_vad_openvino_16k.onnx": (16000,),
    "silero_vad_16k_sequence.onnx": (16000,),
}
BOUNDS = {"silero_vad_half.onnx": 5e-3}


def model_path(name: str) -> pathlib.Path:
    """In the package's folder; importing it would ask for torchaudio."""
    files = metadata.files("silero-vad") or []
    return pathlib.Path(str(next(f.locate() for f in files if f.name == name)))


def frames(rate: int) -> list[np.ndarray]:
    """Noise with bursts of a voiced sound: harmonics of a moving pitch through two formants.

    Each frame begins with the last samples of the one before, as the package gives them.
    """
    random = np.random.default_rng(20)
    step, context = (512, 64) if rate == 16000 else (256, 32)
    count = FRAMES * step + context
    t = np.arange(count) / rate
    pitch = 130 + 40 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    voice = np.zeros(count)
    for k in range(1, 25):
        f = k * pitch
        gain = np.exp(-(((f - 600) / 300) ** 2)) + 0.6 * np.exp(-(((f - 1500) / 400) ** 2))
        voice += gain * np.sin(k * phase) * (f < rate / 2)
    loud = (np.sin(2 * np.pi * 0.45 * t) > 0) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t))
    audio = 0.12 * voice * loud + 0.004 * random.standard_normal(count)
    return [audio[i * step : i * step + step + context].astype(np.float32)[None] for i in range(FRAMES)]


@pytest.mark.parametrize(("name", "rate"), [(name, rate) for name, rates in MODELS.items() for rate in rates])
def test_follows_a_stream_as_onnxruntime_does(name: str, rate: int) -> None:
    path = model_path(name)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    theirs = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    ours = pn.Session(pn.load(path).build(verify=False), target="cpu", threads=1)
    names = [i.name for i in theirs.get_inputs()]
    carried = [n for n in names if n not in ("input", "sr")]
    fixed = {"sr": np.array(rate, np.int64)} if "sr" in names else {}
    start = {n: np.zeros((2 if n == "state" else 1, 1, 128), np.float32) for n in carried}
    our_state, their_state = dict(start), dict(start)
    bound, probabilities = BOUNDS.get(name, 1e-4), []
    for i, frame in enumerate(frames(rate)):
        want = theirs.run(None, {"input": frame, **fixed, **their_state})
        got = list(ours.run({"input": frame, **fixed, **our_state}).values())
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape
            assert float(np.abs(a - b).max()) <= bound, f"frame {i}"
        their_state, our_state = dict(zip(carried, want[1:], strict=True)), dict(zip(carried, got[1:], strict=True))
        probabilities.append(float(got[0].ravel()[0]))
    # The detector hears something, and not all the time.
    assert min(probabilities) < 0.1
    assert max(probabilities) > 0.5


@pytest.mark.rotating
@pytest.mark.parametrize("quantize", [None, pn.WeightOnly()])
def test_the_file_for_sequences_as_a_stream(
    quantize: pn.WeightOnly | None, tmp_path: pathlib.Path, rng: np.random.Generator
) -> None:
    """The cell's state, which that file hands in and out, becomes the program's own: any number of frames a call gives
    what the package's other file gives frame by frame, with its state carried on by hand."""
    whole = onnx.load(model_path("silero_vad_16k_sequence.onnx"))
    del whole.graph.output[1:]
    for name in ("h", "c"):
        whole.graph.input.remove(next(i for i in whole.graph.input if i.name == name))
        whole.graph.initializer.append(numpy_helper.from_array(np.zeros((1, 1, 128), np.float32), name))
    path = tmp_path / "sequence.onnx"
    onnx.save(whole, path)
    audio = np.concatenate(frames(16000))
    targets = ["cpu", *(d.target for d in pn.devices() if d.target == "vulkan" and d.available)]
    program = pn.load(path, {"input": audio[:20]}, stream={"input": 0}).build(targets, quantize=quantize)
    assert program.stream["input"].latency == 0
    assert all(said.startswith("yes") for said in program.metadata.verified_on.values())
    theirs = onnxruntime.InferenceSession(
        str(model_path("silero_vad_openvino_16k.onnx")), providers=["CPUExecutionProvider"]
    )
    state, want = np.zeros((2, 1, 128), np.float32), []
    for frame in frames(16000):
        probability, state = theirs.run(None, {"input": frame, "state": state})
        want.append(float(probability.ravel()[0]))
    for target in targets:
        random = [int(n) for n in rng.integers(1, 40, FRAMES)]
        for sizes in ([1] * FRAMES, [7] * FRAMES, [100] * FRAMES, random, [FRAMES]):
            session, found = pn.Session(program, [target, "cpu"]), []
            ends = [0, *(int(n) for n in np.cumsum(sizes) if n < FRAMES), FRAMES]
            for start, end in itertools.pairwise(ends):
                (got,) = session.run({"input": audio[start:end]}).values()
                found += list(got)
            assert session.finish()["speech_probs"].size == 0
            if quantize is None:
                assert_agree(np.array(found, np.float32), np.array(want, np.float32))
            else:
                assert np.mean((np.array(found) > 0.5) == (np.array(want) > 0.5)) >= 0.99


def test_a_squeeze_that_depends_on_a_size_is_said() -> None:
    notes = " ".join(pn.load(model_path("silero_vad_16k_op15.onnx")).notes)
    assert "other sizes are an error when the model runs" in notes


def test_frames_of_another_length_are_refused_when_they_run() -> None:
    session = pn.Session(pn.load(model_path("silero_vad_16k_op15.onnx")).build(verify=False), target="cpu")
    state = np.zeros((2, 1, 128), np.float32)
    with pytest.raises(pn.InvalidArgument, match="squeeze"):
        session.run({"input": np.zeros((1, 1600), np.float32), "sr": np.array(16000, np.int64), "state": state})


@pytest.mark.rotating
@pytest.mark.parametrize("rate", [16000, 8000])
def test_scripted_module_as_a_stream(rate: int) -> None:
    """It makes its state in the first call, for the rate that is an argument, and checks sizes with texts."""
    path = model_path("silero_vad.jit")
    context = 64 if rate == 16000 else 32
    chunks = [frame[:, context:] for frame in frames(rate)[:20]]
    model = pn.load(path, (chunks[0], rate))
    program = model.build()
    assert sorted(program.states) == ["_context", "_state"]
    session = pn.Session(program, target="cpu")
    jit: Any = torch.jit
    script = jit.load(str(path)).eval()
    name = next(iter(session.inputs))
    for chunk in chunks:
        (got,) = session.run({name: chunk}).values()
        with torch.no_grad():
            want = script(torch.from_numpy(chunk), rate).numpy()
        assert_agree(got, want)


class At16kHz(torch.nn.Module):
    """The scripted module, with one input."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.inner(x, 16000)
        return made


@pytest.mark.rotating
def test_layers_of_the_scripted_module() -> None:
    jit: Any = torch.jit
    script = jit.script(At16kHz(jit.load(str(model_path("silero_vad.jit")))).eval())
    chunk = frames(16000)[30][:, 64:]
    program = pn.load(script, (chunk,)).build()
    made = pn.compare(program, script, [{"x": chunk}])
    assert made.ok
    assert sum(not row.output for row in made.rows) > 5
    assert any(row.module.startswith("inner._model.encoder") for row in made.rows)
