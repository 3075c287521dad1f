"""pn.preprocess(): what the graph makes of a picture is what numpy makes of it, to the bit; faults and wrong use.

`how.run()` is pinnace's own arithmetic in numpy, which verification holds graphs against. That itself is held here
against torch and against formulas that are written out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import _core, picture_arithmetic
from slices import rotating_slice
from target_problem import problem
from torch import nn

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ISAS = ("cpu:sse2", "cpu:avx2", "cpu:avx512", "cpu:neon")
TARGETS = (*ISAS, "softmetal", "vulkan")


def identity(*shape: int | str, dtype: str = "f32") -> pn.Model:
    """A model that gives its input back: what it gives is what the preprocessing made."""
    symbols = "".join(f"symbol {s} 1..inf\n" for s in dict.fromkeys(s for s in shape if isinstance(s, str)))
    dims = ",".join(map(str, shape))
    text = f'graph "g" {{\n{symbols}input %x : {dtype}[{dims}]\n%y = identity(%x)\noutput "y" %y\n}}'
    return pn.Model(_core.Model.parse(text, ["all"], False, []), None, [], "identity")


def planes_of(how: pn.Preprocessing, model: pn.Model, rng: np.random.Generator, **sizes: int) -> dict[str, np.ndarray]:
    """Random bytes for each input, dynamic dimensions by name."""
    shapes = {
        name: [sizes[d.name] if isinstance(d, pn.Dim) else int(d or 0) for d in spec.shape]
        for name, spec in model.inputs.items()
    }
    assert list(shapes) == how.input_names
    return {name: rng.integers(0, 256, shape).astype(np.uint8) for name, shape in shapes.items()}


def ran(program: pn.Program, planes: dict[str, np.ndarray], target: str) -> np.ndarray:
    (made,) = pn.Session(program, target=target).run(planes).values()
    return np.array(made)


def here(*targets: str) -> list[str]:
    """Those of the targets that this machine has."""
    return [target for target in targets if not problem(target)]


def held(how: pn.Preprocessing, model: pn.Model, planes: dict[str, np.ndarray], *targets: str) -> np.ndarray:
    """Runs it on targets, against numpy, to the bit."""
    want = how.run(planes)
    program = model.preprocessed(how).build(verify=False)
    for target in targets:
        got = ran(program, planes, target)
        assert (got.dtype, got.shape) == (want.dtype, want.shape), target
        assert got.tobytes() == want.tobytes(), (target, np.abs(got - want).max(), str(how))
    return want


# ---- bits -----------------------------------------------------------------------------------------------------------

FRAMES: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "nv21 of odd sizes, dense": ({"input": "nv21", "picture": (45, 61)}, {}),
    "nv21 with gaps": ({"input": "nv21", "picture": (45, 61), "row_stride": 64, "chroma_row_stride": 80}, {}),
    "nv12 with open gaps": (
        {"input": "nv12", "picture": (46, 62), "row_stride": "open", "chroma_row_stride": "open"},
        {"image.y.row_stride": 71, "image.uv.row_stride": 62},
    ),
    "i420, limited": ({"input": "i420", "picture": (31, 30), "row_stride": 32, "matrix": "bt601"}, {}),
    "i420 of every second byte": (
        {"input": "i420", "picture": (31, 33), "chroma_row_stride": 40, "pixel_stride": 2, "matrix": "bt709"},
        {},
    ),
    "nv21 as Android's buffers": (
        {"input": "nv21", "picture": (9, 13), "rows": "cut", "row_stride": "open", "chroma_row_stride": 16},
        {"image.y.bytes": 8 * 20 + 13},
    ),
    "i420 as Android's buffers": (
        {
            "input": "i420",
            "picture": (9, 13),
            "rows": "cut",
            "row_stride": 14,
            "chroma_row_stride": "open",
            "pixel_stride": 2,
        },
        {"image.u.bytes": 4 * 16 + 13, "image.v.bytes": 4 * 17 + 13},
    ),
    "nv21 of dynamic sizes": (
        {"input": "nv21", "size": (20, 24)},
        {"image.height": 33, "image.width": 47, "image.uv.height": 17, "image.uv.width": 48},
    ),
    "rgb of dynamic sizes": ({"input": "rgb", "size": (20, 24)}, {"image.height": 33, "image.width": 47}),
    "bgra, a pixel's bytes together": ({"input": "bgra", "picture": (17, 9)}, {}),
    "rgb by planes": ({"input": "rgb", "picture": (17, 9), "input_layout": "nchw"}, {}),
    "rgb with gaps": ({"input": "rgb", "picture": (17, 9), "row_stride": 29}, {}),
    "rgba as a cut buffer": ({"input": "rgba", "picture": (17, 9), "row_stride": 48, "rows": "cut"}, {}),
    "grey": ({"input": "grey", "picture": (17, 9)}, {}),
}
STEPS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "cut at odd places": {"crop": (3, 1, 5, 7)},
    "a box in the middle": {"crop": (8, 5)},
    "a part": {"crop": 0.7},
    "resized with filter": {"size": (12, 10)},
    "resized without": {"size": (25, 30), "antialias": False},
    "torch's nearest": {"size": (12, 31), "resize": "nearest"},
    "nearest middle": {"size": (12, 31), "resize": "nearest_exact"},
    "as torchvision": {"size": 16, "center_crop": 12},
    "the model's shape": {"crop": "aspect", "size": (5, 8)},
}


def case(frame: str, step: str, **more: Any) -> tuple[pn.Preprocessing, dict[str, int]]:
    given, sizes = FRAMES[frame]
    return pn.preprocess(**{"mean": MEAN, "std": STD, **given, **STEPS[step], **more}), sizes


def model_for(how: pn.Preprocessing, sizes: dict[str, int]) -> pn.Model:
    """The identity on what it makes."""
    any_size = pn.Preprocessing(**{**vars(how), "size": (4, 4), "center_crop": ()})
    inputs = identity("n", 1 if how.output == "grey" else 3, "h", "w").preprocessed(any_size).inputs.values()
    shapes = [[sizes.get(d.name, 1) if isinstance(d, pn.Dim) else int(d or 0) for d in spec.shape] for spec in inputs]
    blank = {name: np.zeros(shape, np.uint8) for name, shape in zip(how.input_names, shapes, strict=True)}
    return identity(1, *how.run(blank).shape[1:])


CASES = list(itertools.product(FRAMES, STEPS))


@pytest.mark.parametrize("frame", FRAMES)
def test_bits_of_frames(frame: str, rng: np.random.Generator) -> None:
    """Every way in which a picture enters, on two instruction sets and on the GPU's kernels."""
    how, sizes = case(frame, "as it is")
    model = model_for(how, sizes)
    held(how, model, planes_of(how, model.preprocessed(how), rng, **sizes), *here("cpu:sse2", "cpu", "softmetal"))


@pytest.mark.parametrize("step", STEPS)
def test_bits_of_steps(step: str, rng: np.random.Generator) -> None:
    frame = "nv21 with gaps" if STEPS[step].get("crop") != "aspect" else "nv21 of dynamic sizes"
    how, sizes = case(frame, step)
    model = model_for(how, sizes)
    held(how, model, planes_of(how, model.preprocessed(how), rng, **sizes), *here("cpu:avx2", "cpu", "softmetal"))


@pytest.mark.rotating
@pytest.mark.parametrize(("frame", "step"), rotating_slice(CASES, 0.4))
def test_bits_everywhere(frame: str, step: str, rng: np.random.Generator) -> None:
    how, sizes = case(frame, step)
    model = model_for(how, sizes)
    held(how, model, planes_of(how, model.preprocessed(how), rng, **sizes), *here(*TARGETS))


@pytest.mark.parametrize("output", ["bgr", "grey"])
@pytest.mark.parametrize("frame", ["nv21 with gaps", "i420, limited", "bgra, a pixel's bytes together", "grey"])
def test_channels(frame: str, output: str, rng: np.random.Generator) -> None:
    how, sizes = case(frame, "as it is", output=output, mean=0.5, std=None)
    model = model_for(how, sizes)
    held(how, model, planes_of(how, model.preprocessed(how), rng, **sizes), "cpu", *here("softmetal"))


@pytest.mark.parametrize("shape", [(1, 12, 10, 3), (12, 10, 3)])
def test_the_models_layout(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    how = pn.preprocess((12, 10), MEAN, STD, picture=(20, 30), output_layout="nhwc")
    planes = {"image": rng.integers(0, 256, (*((1,) if len(shape) == 4 else ()), 20, 30, 3)).astype(np.uint8)}
    want = how.run(planes).transpose(0, 2, 3, 1).reshape(shape)
    got = ran(identity(*shape).preprocessed(how).build(verify=False), planes, "cpu")
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


def test_models_of_other_types(rng: np.random.Generator) -> None:
    image = rng.integers(0, 256, (2, 6, 7, 3)).astype(np.uint8)
    bytes_in = identity("n", 3, 6, 7, dtype="u8").preprocessed(pn.preprocess())
    assert (ran(bytes_in.build(verify=False), {"image": image}, "cpu") == image.transpose(0, 3, 1, 2)).all()
    same = identity("n", 6, 7, 3, dtype="u8").preprocessed(pn.preprocess(output_layout="nhwc"))
    assert (ran(same.build(verify=False), {"image": image}, "cpu") == image).all()
    how = pn.preprocess(mean=MEAN, std=STD)
    halves = ran(identity("n", 3, 6, 7, dtype="f16").preprocessed(how).build(verify=False), {"image": image}, "cpu")
    assert halves.tobytes() == how.run(image).astype(np.float16).tobytes()
    with pytest.raises(pn.InvalidArgument, match="mean and std make floats, input 'x' is uint8"):
        identity("n", 3, 6, 7, dtype="u8").preprocessed(how)


# ---- the arithmetic, against others ---------------------------------------------------------------------------------


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("size", [(12, 31), (70, 90), (45, 20)])
def test_bilinear_is_torchs(size: tuple[int, int], antialias: bool, rng: np.random.Generator) -> None:
    """torch's floats, rounded; where they are nearly half-way, either neighbour."""
    image = rng.integers(0, 256, (1, 45, 61, 3)).astype(np.uint8)
    made = pn.preprocess(size, scale=1, antialias=antialias).run(image)
    planes = torch.from_numpy(image.transpose(0, 3, 1, 2).astype(np.float32))
    want = nn.functional.interpolate(planes, size, mode="bilinear", align_corners=False, antialias=antialias).numpy()
    assert np.abs(made - want).max() <= 0.501
    clear = np.abs(np.abs(want - np.floor(want)) - 0.5) > 1e-3
    assert clear.mean() > 0.9
    assert (made == np.rint(want))[clear].all()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("size", [(12, 31), (70, 90), (45, 20), (1, 1)])
def test_nearest_is_torchs(size: tuple[int, int], mode: str, rng: np.random.Generator) -> None:
    image = rng.integers(0, 256, (1, 45, 61, 3)).astype(np.uint8)
    made = pn.preprocess(size, scale=1, resize=mode.replace("-", "_")).run(image)
    planes = torch.from_numpy(image.transpose(0, 3, 1, 2).astype(np.float32))
    assert (made == nn.functional.interpolate(planes, size, mode=mode).numpy()).all()


@pytest.mark.parametrize(
    ("shape", "short", "new"), [((45, 61), 20, (20, 27)), ((61, 45), 20, (27, 20)), ((45, 45), 50, (50, 50))]
)
def test_the_shorter_side_and_the_middle_are_torchvisions(
    shape: tuple[int, int], short: int, new: tuple[int, int], rng: np.random.Generator
) -> None:
    """As Resize(short) and CenterCrop have them: the longer side is cut to a whole number, halves go to even."""
    image = rng.integers(0, 256, (1, *shape, 3)).astype(np.uint8)
    whole = pn.preprocess(new, scale=1).run(image)
    top, left = round((new[0] - 17) / 2), round((new[1] - 16) / 2)
    made = pn.preprocess(short, scale=1, center_crop=(17, 16)).run(image)
    assert (made == whole[:, :, top : top + 17, left : left + 16]).all()


# Of bytes Y, U, V: the textbook's R, G, B, worked out by hand from the standards' numbers.
COLOURS = [
    ("bt601_full", (255, 128, 128), (255, 255, 255)),
    ("bt601_full", (76, 85, 255), (254, 0, 0)),  # red, as JPEG stores it
    ("bt601_full", (150, 44, 21), (0, 255, 1)),
    ("bt601_full", (29, 255, 107), (0, 0, 254)),
    ("bt601", (235, 128, 128), (255, 255, 255)),
    ("bt601", (16, 128, 128), (0, 0, 0)),
    ("bt601", (81, 90, 240), (254, 0, 0)),  # 75 % bars' red at full saturation, to a level
    ("bt709", (235, 128, 128), (255, 255, 255)),
    ("bt709", (63, 102, 240), (255, 1, 0)),
    ("bt709", (16, 128, 128), (0, 0, 0)),
]


@pytest.mark.parametrize(("matrix", "yuv", "rgb"), COLOURS)
def test_colours(matrix: str, yuv: tuple[int, int, int], rgb: tuple[int, int, int]) -> None:
    y, u, v = (np.full(shape, x, np.uint8) for shape, x in zip(((2, 2), (1, 1), (1, 1)), yuv, strict=True))
    how = pn.preprocess(input="i420", picture=(2, 2), scale=1, matrix=matrix)
    made = how.run({"image.y": y, "image.u": u, "image.v": v})
    assert np.abs(made - np.array(rgb, np.float32)[None, :, None, None]).max() <= 1
    got = ran(
        identity(1, 3, 2, 2).preprocessed(how).build(verify=False), {"image.y": y, "image.u": u, "image.v": v}, "cpu"
    )
    assert (got == made).all()


@pytest.mark.parametrize("matrix", ["bt601_full", "bt601", "bt709"])
def test_every_colour_is_within_a_level_of_the_real_numbers(matrix: str) -> None:
    """Of all 2^24 triples those of every 5th level; weights of 14 bits cost at most a step that rounding decides."""
    kr, kb, limited = {
        "bt601_full": (0.299, 0.114, False),
        "bt601": (0.299, 0.114, True),
        "bt709": (0.2126, 0.0722, True),
    }[matrix]
    levels = np.arange(0, 256, 5, dtype=np.uint8)
    y, u, v = (a.reshape(-1) for a in np.meshgrid(levels, levels, levels, indexing="ij"))
    luma = (y.astype(float) - 16) / 219 if limited else y / 255
    cb, cr = ((c.astype(float) - 128) / (224 if limited else 255) for c in (u, v))
    red, blue = luma + 2 * (1 - kr) * cr, luma + 2 * (1 - kb) * cb
    green = (luma - kr * red - kb * blue) / (1 - kr - kb)
    want = np.clip(np.stack([red, green, blue]) * 255, 0, 255)
    rows, columns = len(levels), len(levels) ** 2
    how = pn.preprocess(input="i420", picture=(2 * rows, 2 * columns), scale=1, matrix=matrix)
    light, blue_of, red_of = (plane.reshape(rows, columns) for plane in (y, u, v))
    made = how.run({"image.y": light.repeat(2, 0).repeat(2, 1), "image.u": blue_of, "image.v": red_of})
    assert np.abs(made[0, :, ::2, ::2].reshape(3, -1) - want).max() < 0.53


def test_normalisation_is_torchs(rng: np.random.Generator) -> None:
    image = rng.integers(0, 256, (1, 8, 8, 3)).astype(np.uint8)
    planes = torch.from_numpy(image.transpose(0, 3, 1, 2)) / 255
    mean, std = (torch.tensor(x).reshape(1, 3, 1, 1) for x in (MEAN, STD))
    np.testing.assert_allclose(pn.preprocess(mean=MEAN, std=STD).run(image), ((planes - mean) / std).numpy(), atol=2e-6)


# ---- models ---------------------------------------------------------------------------------------------------------


class Small(nn.Module):
    """A few convolutions."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.body(x).mean((2, 3))
        return made


CAMERA: dict[str, Any] = {"input": "nv21", "picture": (45, 61), "row_stride": 64, "chroma_row_stride": "open"}


def test_load_build_save_run(tmp_path: Path, rng: np.random.Generator) -> None:
    how = pn.preprocess((24, 24), MEAN, STD, **CAMERA)
    net = Small().eval()
    model = pn.load(net, (torch.zeros(1, 3, 24, 24),), preprocess=how)
    assert [str(d) for d in model.inputs["image.uv"].shape] == ["23", "image.uv.row_stride"]
    program = model.build(targets=["cpu", "softmetal"])
    assert program.metadata["verified.cpu"].startswith("yes")
    assert "behind numpy's preprocessing" in program.metadata["verified"]
    assert program.metadata["input.image.y"] == (
        "luma plane of a picture (nv21) of 45 x 61 pixels, [rows, bytes from row to row]"
    )
    assert program.metadata["input.image.uv"].startswith("chroma (V, U) plane of a picture (nv21)")
    assert program.metadata["preprocessing.x"] == str(how)
    program.save(tmp_path / "net.pnc")
    planes = {"image.y": rng.integers(0, 256, (45, 64)), "image.uv": rng.integers(0, 256, (23, 70))}
    planes = {name: array.astype(np.uint8) for name, array in planes.items()}
    (got,) = pn.Session(tmp_path / "net.pnc").run(planes).values()
    with torch.no_grad():
        want = net(torch.from_numpy(how.run(planes)))
    np.testing.assert_allclose(got, want.numpy(), atol=1e-5)


def test_dynamic_batches_and_own_names(rng: np.random.Generator) -> None:
    model = pn.load(Small().eval(), (torch.zeros(2, 3, 24, 24),), {0: pn.Dim("batch", 1, 8)})
    whole = model.preprocessed(pn.preprocess(24, MEAN, STD, picture=(30, 30), name="photo"))
    assert [str(d) for d in whole.inputs["photo"].shape] == ["batch", "30", "30", "3"]
    program = whole.build(input_names=["picture"])
    assert "input.picture" in program.metadata
    assert "input.photo" not in program.metadata
    photo = rng.integers(0, 256, (3, 30, 30, 3)).astype(np.uint8)
    assert pn.Session(program).run({"picture": photo})["mean"].shape == (3, 4)
    one = model.preprocessed(pn.preprocess((24, 24), input="nv12", picture=(30, 30)))
    (made,) = one.outputs.values()
    assert made.shape == (1, 4)


def test_several_inputs_by_name(rng: np.random.Generator) -> None:
    class Two(nn.Module):
        def forward(self, left: torch.Tensor, right: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
            return (left - right).mean((2, 3)) * gain

    args = (torch.zeros(1, 3, 8, 8), torch.zeros(1, 3, 8, 8), torch.full((1, 3), 2.0))
    how = {side: pn.preprocess((8, 8), name=side, picture=(10, 12)) for side in ("right", "left")}
    model = pn.load(Two(), args, preprocess=how)
    assert list(model.inputs) == ["left", "right", "gain"]
    program = model.build()
    feed = {side: rng.integers(0, 256, (1, 10, 12, 3)).astype(np.uint8) for side in ("left", "right")}
    (got,) = pn.Session(program).run({**feed, "gain": np.full((1, 3), 2, np.float32)}).values()
    want = (how["left"].run(feed["left"]) - how["right"].run(feed["right"])).mean((2, 3)) * 2
    np.testing.assert_allclose(got, want, atol=1e-5)
    with pytest.raises(pn.InvalidArgument, match="say which input is the picture, 2 of 'left', 'right', 'gain' can be"):
        pn.load(Two(), args, preprocess=how["left"])
    with pytest.raises(pn.InvalidArgument, match=r"unknown \['top'\]; the model takes \['left', 'right', 'gain'\]"):
        pn.load(Two(), args, preprocess={"top": how["left"]})
    with pytest.raises(pn.InvalidArgument, match="another input has the name 'right'"):
        pn.load(Two(), args, preprocess={"left": how["right"]})


def test_dynamic_sizes_build_and_say_what_does_not_fit(rng: np.random.Generator) -> None:
    net = nn.Conv2d(3, 2, 3, padding=1)
    dims = {2: pn.Dim("height", 8, 99), 3: pn.Dim("width", 8, 99)}
    model = pn.load(net, (torch.zeros(1, 3, 20, 22),), dims, preprocess=pn.preprocess(input="nv21"))
    assert [str(d) for d in model.inputs["image.y"].shape] == ["height", "width"]
    program = model.build()
    assert program.metadata["verified.cpu"].startswith("yes")
    session = pn.Session(program)
    y = rng.integers(0, 256, (21, 23)).astype(np.uint8)
    right = {"image.y": y, "image.uv": rng.integers(0, 256, (11, 24)).astype(np.uint8)}
    assert session.run(right)["conv2d"].shape == (1, 2, 21, 23)
    # The third has as many bytes as a right one.
    for shape, side in (((10, 24), "height"), ((11, 22), "width"), ((24, 11 + 1), "width"), ((22, 12), "width")):
        with pytest.raises(pn.InvalidArgument, match=f"uv_{side}_must_fit_y"):
            session.run({"image.y": y, "image.uv": np.zeros(shape, np.uint8)})
        with pytest.raises(pn.InvalidArgument, match=r"image.uv is \(.*, must be \(11, 24\), 24 bytes of pixels a row"):
            pn.preprocess(input="nv21").run({"image.y": y, "image.uv": np.zeros(shape, np.uint8)})
    with pytest.raises(pn.InvalidArgument, match=r"image\.uv"):
        session.run({"image.y": y, "image.uv": np.zeros((11, 23), np.uint8)})


def test_cut_buffers_of_a_wrong_length() -> None:
    how = pn.preprocess(input="nv21", picture=(9, 13), rows="cut", row_stride="open", chroma_row_stride=16)
    session = pn.Session(identity(1, 3, 9, 13).preprocessed(how).build(verify=False))
    uv = np.zeros(4 * 16 + 14, np.uint8)
    session.run({"image.y": np.zeros(8 * 20 + 13, np.uint8), "image.uv": uv})
    with pytest.raises(pn.InvalidArgument, match="image/y_rows_whole"):
        session.run({"image.y": np.zeros(8 * 20 + 14, np.uint8), "image.uv": uv})
    with pytest.raises(pn.InvalidArgument, match=r"image\.y"):
        session.run({"image.y": np.zeros(9 * 13 - 1, np.uint8), "image.uv": uv})


def test_nnapi_runs_or_says_why(rng: np.random.Generator) -> None:
    how, _ = case("nv21 with gaps", "torch's nearest")
    model = identity(1, 3, 12, 31).preprocessed(how)
    rules = {n.rule.split(":")[0] for n in model.check("nnapi:27").refused()}
    assert rules
    assert rules <= {"N-2", "N-3"}
    assert model.check("nnapi:30").ok
    assert model.check("vulkan").ok
    if why := problem("nnapi"):
        pytest.skip(why)
    planes = planes_of(how, model, rng)
    assert (ran(model.build(verify=False), planes, "nnapi:30") == how.run(planes)).all()


@pytest.mark.rotating
def test_quantised_models_keep_their_pictures_in_float(rng: np.random.Generator) -> None:
    how = pn.preprocess((24, 24), MEAN, STD, **CAMERA)
    model = pn.load(Small().eval(), (torch.zeros(1, 3, 24, 24),), preprocess=how)
    batches = [
        {
            "image.y": rng.integers(0, 256, (45, 64)).astype(np.uint8),
            "image.uv": rng.integers(0, 256, (23, 64)).astype(np.uint8),
        }
        for _ in range(3)
    ]
    for options in (pn.Int8(calibration=batches), pn.Float16()):
        program = model.build(quantize=options)
        dtypes = {n.name: n.output_types for n in program.nodes}
        assert any("float32" in str(t) for t in dtypes["image/colours"])


# ---- planted faults -------------------------------------------------------------------------------------------------

FAULTS: list[tuple[str, Callable[[pytest.MonkeyPatch], None]]] = [
    ("a weight of blue", lambda m: m.setitem(picture_arithmetic._MATRICES, "bt601_full", (0.299, 0.1155, False))),
    ("a rounding of weights", lambda m: m.setattr(picture_arithmetic, "_rounded", lambda w: w + 2.0**-9)),
    ("a half pixel", lambda m: m.setattr(picture_arithmetic, "_places", lambda old, new: np.arange(new) * old / new)),
]


@pytest.mark.parametrize("fault", [name for name, _ in FAULTS])
def test_planted_faults_in_numpy_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    how = pn.preprocess((24, 24), MEAN, STD, **CAMERA)
    model = pn.load(nn.AvgPool2d(1), (torch.zeros(1, 3, 24, 24),), preprocess=how)
    model.build()
    dict(FAULTS)[fault](monkeypatch)
    with pytest.raises(pn.VerificationError):
        model.build()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("1.4019775", "1.4039307"),  # V in red: 32 units of 2^-14
        ("-0.3441162", "-0.3421631"),
        ("perm=[0,3,1,2]", "perm=[0,3,2,1]"),
        ('nearest_mode="floor"', 'nearest_mode="ceil"'),
    ],
)
def test_planted_faults_in_the_graph_are_found(right: str, wrong: str) -> None:
    how = pn.preprocess(None, MEAN, STD, input="nv21", picture=(24, 24))
    model = pn.load(nn.AvgPool2d(1), (torch.zeros(1, 3, 24, 24),), preprocess=how)
    text = model.text(1 << 20)
    assert text.count(right) == 1, text
    core = _core.Model.parse(text.replace(right, wrong), ["all"], False, [])
    with pytest.raises(pn.VerificationError, match="image/"):
        pn.Model(core, model._source, [], "faulty").build()


# ---- wrong use ------------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"size": (0, 5)}, "size: a side is 1 to 65536, is 0"),
    ({"size": (5, 6, 7)}, r"size must have 1 or 2 numbers, is \(5, 6, 7\)"),
    ({"size": 2.5}, "size must be a whole number, is 2.5"),
    ({"size": "big"}, "size must be a whole number, is 'big'"),
    ({"input": "yuyv"}, "input must be rgb, bgr, rgba, bgra, grey, nv21, nv12 or i420, is 'yuyv'"),
    ({"input": 3}, "input must be text, is 3"),
    ({"input_layout": "hwc"}, "input_layout must be nhwc or nchw, is 'hwc'"),
    ({"input": "nv21", "input_layout": "nchw"}, "input_layout is of pictures without planes, not of nv21"),
    ({"picture": (4,)}, r"picture must have 2 numbers, is \(4,\)"),
    ({"picture": (4, 70000)}, "picture: a side is 1 to 65536, is 70000"),
    ({"row_stride": 64}, "row_stride with gaps needs a known width"),
    ({"row_stride": 3, "picture": (4, 4)}, "row_stride is at least a row of 12 bytes, is 3"),
    ({"row_stride": 0, "picture": (4, 4)}, "row_stride must be a positive number of bytes, 'open' or None, is 0"),
    (
        {"row_stride": "any", "picture": (4, 4)},
        "row_stride must be a positive number of bytes, 'open' or None, is 'any'",
    ),
    (
        {"input": "nv21", "picture": (5, 5), "chroma_row_stride": 5},
        "chroma_row_stride is at least a row of 6 bytes, is 5",
    ),
    ({"chroma_row_stride": 5}, "chroma_row_stride is of planes, not of rgb"),
    ({"pixel_stride": 2}, "pixel_stride is of planes, not of rgb"),
    ({"input": "nv21", "pixel_stride": 2}, "pixel_stride is 1 for nv21, is 2"),
    ({"input": "i420", "pixel_stride": 3}, "pixel_stride is 1 or 2 for i420, is 3"),
    ({"input": "i420", "pixel_stride": 2}, "pixel_stride 2 needs a chroma_row_stride"),
    ({"rows": "some"}, "rows must be 'whole' or 'cut', is 'some'"),
    ({"rows": "cut"}, "rows 'cut' needs a known height and width"),
    ({"matrix": "bt2020"}, "matrix must be bt601_full, bt601 or bt709, is 'bt2020'"),
    ({"crop": "middle"}, "crop must be .* is 'middle'"),
    ({"crop": (1, 2, 3)}, r"crop must have 2 or 4 numbers, is \(1, 2, 3\)"),
    ({"crop": (-1, 0, 3, 3)}, "crop begins at 0 to 65536, top is -1"),
    ({"crop": 0.0}, "crop is at least 0.0001 and at most 1, is 0"),
    ({"crop": 1.5}, "crop is at least 0.0001 and at most 1, is 1.5"),
    ({"crop": "aspect"}, "crop 'aspect' takes the ratio of size's height and width, size has 0 numbers"),
    ({"resize": "cubic"}, "resize must be bilinear, nearest or nearest_exact, is 'cubic'"),
    ({"antialias": 1}, "antialias must be True or False, is 1"),
    ({"center_crop": 5}, "center_crop cuts what was resized, size is not given"),
    ({"center_crop": 9, "size": 8}, "center_crop 9x9 is larger than size 8"),
    ({"output": "yuv"}, "output must be rgb, bgr or grey, is 'yuv'"),
    ({"scale": 0}, "scale is a positive number, is 0"),
    ({"scale": "1/255"}, "scale must be a number, is '1/255'"),
    ({"mean": (1, 2)}, "mean has 2 numbers, rgb has 3 channels"),
    ({"mean": float("nan")}, "mean must be a finite number, is nan"),
    ({"mean": []}, "mean must be a number, or one for each channel, is empty"),
    ({"std": (1, 0, 1)}, "std is positive, is 0"),
    ({"output_layout": "chw"}, "output_layout must be nhwc or nchw, is 'chw'"),
    ({"name": ""}, "the name of its input is empty"),
]


@pytest.mark.parametrize(("given", "says"), WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_wrong_arguments(given: dict[str, Any], says: str) -> None:
    with pytest.raises(pn.InvalidArgument, match=says):
        pn.preprocess(**given)


MISFITS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((1, 3, 8, 8), {"size": (9, 8)}, r"makes 9 of dimension 2, input 'x' is float32\[1,3,8,8\]"),
    ((1, 1, 8, 8), {}, r"output rgb has 3 channels, input 'x' is float32\[1,1,8,8\] \(nchw\)"),
    ((1, 3, 8, 8), {"output": "grey"}, "output grey has 1 channels"),
    ((2, 3, 8, 8), {"input": "nv21"}, r"makes 1 of dimension 0, input 'x' is float32\[2,3,8,8\]"),
    ((8, 8), {}, "the model|say which input is the picture"),
    ((1, 3, 8, 8), {"picture": (10, 8)}, "makes 10 of dimension 2"),
    ((1, 3, 8, 8), {"crop": (9, 9), "picture": (8, 20)}, "larger than the picture: height is 8, must be at least 9"),
    ((1, 3, 8, 8), {"crop": (4, 0, 5, 5), "size": 8, "picture": (8, 8)}, "height is 8, must be at least 9"),
    ((1, 3, "h", "w"), {"crop": 0.5}, "the model's sizes would follow from the picture's, which are dynamic"),
    ((1, 3, "h", "w"), {"size": 20}, "the model's sizes would follow from the picture's, which are dynamic"),
]


@pytest.mark.parametrize(("shape", "given", "says"), MISFITS)
def test_descriptions_that_do_not_fit_the_model(shape: tuple[Any, ...], given: dict[str, Any], says: str) -> None:
    with pytest.raises(pn.InvalidArgument, match=says):
        identity(*shape).preprocessed(pn.preprocess(**given))


def test_what_is_no_description() -> None:
    model = identity(1, 3, 8, 8)
    for wrong in ("nv21", {"x": "nv21"}, 5, {}):
        with pytest.raises(pn.InvalidArgument, match=r"preprocess must be what pn\.preprocess\(\) gives"):
            model.preprocessed(wrong)  # type: ignore[arg-type]
    with pytest.raises(pn.InvalidArgument, match="preprocessing has no field 'sise'"):
        _core.describe_preprocessing({"sise": [1]})
    with pytest.raises(pn.InvalidArgument, match=r"takes \['image.y', 'image.uv'\], is given \['image'\]"):
        pn.preprocess(input="nv21").run(np.zeros((4, 4), np.uint8))
    with pytest.raises(pn.InvalidArgument, match="a picture is uint8, is float32"):
        pn.preprocess().run(np.zeros((1, 4, 4, 3), np.float32))


def test_a_picture_is_described_once() -> None:
    model = identity(1, 3, 8, 8).preprocessed(pn.preprocess(mean=MEAN, std=STD))
    for again in (pn.preprocess(input_layout="nchw"), {"image": pn.preprocess()}):
        with pytest.raises(pn.InvalidArgument, match=r"input 'image' is the picture of an earlier preprocessed\(\)"):
            model.preprocessed(again)
