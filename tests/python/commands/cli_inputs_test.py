"""What the commands take as inputs: arrays by name and in order, archives, images, sizes; and what inspect counts."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from command_line import Command
from onnx import TensorProto, helper
from PIL import Image
from pinnace.cli.array_file import read_arrays
from pinnace.cli.image_file import read_image
from pinnace.cli.output import bold, red, show
from pinnace.cli.totals import amount, totals_of

TYPES = {"float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int32": TensorProto.INT32}


@pytest.fixture
def pinnace(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def onnx_model(path: Path, inputs: dict[str, tuple[str, list[int | str]]]) -> Path:
    """Each input, as float32, times 2: outputs y0, y1, …"""
    nodes = [helper.make_node("Constant", [], ["two"], value_float=2.0)]
    outputs = []
    for i, name in enumerate(inputs):
        nodes.append(helper.make_node("Cast", [name], [f"c{i}"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Mul", [f"c{i}", "two"], [f"y{i}"]))
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None))
    given = [helper.make_tensor_value_info(n, TYPES[dtype], shape) for n, (dtype, shape) in inputs.items()]
    graph = helper.make_graph(nodes, "twice", given, outputs)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(made.SerializeToString())
    return path


def program_at(folder: Path, inputs: dict[str, tuple[str, list[int | str]]], name: str = "twice") -> Path:
    path = folder / f"{name}.pnc"
    pn.load(onnx_model(folder / f"{name}.onnx", inputs)).build(verify=False).save(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    random = np.random.default_rng(1)
    pixels = random.integers(0, 256, (4, 6, 3), np.uint8)
    Image.fromarray(pixels).save(folder / "cat.png")
    Image.fromarray(pixels[:, :, 0]).save(folder / "grey.png")
    Image.fromarray(np.dstack([pixels, pixels[:, :, :1]]), "RGBA").save(folder / "alpha.PNG")
    Image.fromarray(pixels[:, :, 0].astype(np.uint16) << 8).save(folder / "deep.png")
    (folder / "text.png").write_text("no image")
    (folder / "cut.png").write_bytes((folder / "cat.png").read_bytes()[:70])
    np.save(folder / "pixels.npy", pixels)
    np.save(folder / "a.npy", np.full((2, 3), 1, np.float32))
    np.save(folder / "b.npy", np.full((2, 3), 2, np.float32))
    both: dict[str, Any] = {"a": np.full((2, 3), 1, np.float32), "b%2Fc": np.full((2, 3), 2, np.float32)}
    np.savez(folder / "both.npz", **both)
    np.savez_compressed(folder / "packed.npz", a=np.full((2, 3), 3, np.float32))
    return folder


def spec(shape: tuple[Any, ...], dtype: Any = np.float32) -> pn.TensorSpec:
    return pn.TensorSpec("image", np.dtype(dtype), shape, None)


# ---- images


def test_layout_and_channels_follow_the_declared_shape(folder: Path) -> None:
    pixels = np.load(folder / "pixels.npy")
    path = str(folder / "cat.png")
    unit = pixels.astype(np.float64) / 255
    shape: Any
    for shape, want in (
        ((1, 3, 4, 6), unit.transpose(2, 0, 1)[None]),
        ((1, 4, 6, 3), unit[None]),
        ((3, 4, 6), unit.transpose(2, 0, 1)),
        ((4, 6, 3), unit),
        ((pn.Dim("n", 1, 8), 3, pn.Dim("h"), pn.Dim("w", 2, None, 2)), unit.transpose(2, 0, 1)[None]),
        ((None, None, None, 3), unit[None]),
    ):
        got = read_image(path, spec(shape))
        assert got.dtype == np.float32
        assert got.flags.c_contiguous
        np.testing.assert_allclose(got, want, atol=1e-7)
    grey = np.asarray(Image.open(path).convert("L"))
    for shape, want in (((1, 1, 4, 6), grey[None, None]), ((1, 4, 6, 1), grey[None, :, :, None]), ((4, 6), grey)):
        np.testing.assert_allclose(read_image(path, spec(shape)), want / 255, atol=1e-7)
    np.testing.assert_array_equal(read_image(path, spec((1, 4, 6, 3), np.uint8)), pixels[None])
    np.testing.assert_array_equal(read_image(str(folder / "alpha.PNG"), spec((4, 6, 3), np.uint8)), pixels)
    rgb = read_image(str(folder / "grey.png"), spec((1, 3, 4, 6), np.uint8))
    np.testing.assert_array_equal(rgb[0, 0], pixels[:, :, 0])
    np.testing.assert_array_equal(rgb[0, 2], pixels[:, :, 0])


def test_an_image_is_each_element_of_a_batch(folder: Path, pinnace: Command) -> None:
    """Of the input's batch, of the smallest that a dynamic one may be, or of what --dim says."""
    one = read_image(str(folder / "cat.png"), spec((1, 3, 4, 6)))
    for batch, count in ((8, 8), (pn.Dim("n", 0, 9), 1), (pn.Dim("n", 3, 9, 2), 4), (None, 1)):
        got = read_image(str(folder / "cat.png"), spec((batch, 3, 4, 6)))
        np.testing.assert_array_equal(got, np.repeat(one, count, 0))
    assert read_image(str(folder / "cat.png"), spec((pn.Dim("n"), 4, 6, 3)), sizes={"n": 5}).shape == (5, 4, 6, 3)
    program = program_at(folder, {"image": ("float32", ["n", 3, 4, 6])}, "open")
    given = ["--input", f"image={folder / 'cat.png'}"]
    answer = pinnace("run", program, *given, "--dim", "n=3", "--json")
    assert answer.status == 0, answer.err
    np.testing.assert_allclose(json.loads(answer.out)["y0"]["values"], 2 * np.repeat(one, 3, 0), atol=1e-6)
    wrong = pinnace("run", program, *given, "--dim", "m=3")
    assert wrong.status == 2
    assert "'m'" in wrong.err


def test_mean_and_std(folder: Path) -> None:
    pixels = np.load(folder / "pixels.npy")
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    want = ((pixels / 255 - np.array(mean)) / np.array(std)).transpose(2, 0, 1)[None]
    got = read_image(str(folder / "cat.png"), spec((1, 3, 4, 6)), mean, std)
    np.testing.assert_allclose(got, want, atol=1e-6)
    half = read_image(str(folder / "cat.png"), spec((1, 3, 4, 6), np.float16), [0.5], [0.5])
    assert half.dtype == np.float16
    assert half.min() >= -1


@pytest.mark.parametrize(
    ("file", "shape", "dtype", "said"),
    [
        ("cat.png", (1, 3, 8, 6), np.float32, "is 6 x 4 pixels (width x height)"),
        ("cat.png", (1, 3, 8, 6), np.float32, "takes 6 x 8; images are not resized"),
        ("cat.png", (1, 3, pn.Dim("h", 32, 64, 32), 6), np.float32, "takes 6 x h (32..64 by 32)"),
        ("cat.png", (1, 3, 3, 3), np.float32, "takes 3 x 3; images"),
        ("cat.png", (1, 4, 4, 6), np.float32, "takes no image: it has no dimension of 3 channels (RGB) or 1 (grey)"),
        ("cat.png", (1, 10), np.float32, "takes 10 x 1"),
        ("cat.png", (10,), np.float32, "takes no image"),
        ("cat.png", (1, 3, 4, 6), np.int64, "pixels are uint8 or floats"),
        ("text.png", (1, 3, 4, 6), np.float32, "text.png: not a readable image"),
        ("cut.png", (1, 3, 4, 6), np.float32, "cut.png: not a readable image"),
        ("deep.png", (1, 1, 4, 6), np.float32, "which are not 8 bits a channel"),
        ("none.png", (1, 3, 4, 6), np.float32, "none.png"),
    ],
)
def test_images_that_do_not_fit(folder: Path, file: str, shape: Any, dtype: Any, said: str) -> None:
    with pytest.raises((pn.InvalidArgument, pn.FileError)) as refusal:
        read_image(str(folder / file), spec(shape, dtype))
    assert file in str(refusal.value)
    assert said in str(refusal.value)


def test_without_pillow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(pn.Unsupported, match="needs the Pillow package: pip install pillow"):
        read_image(str(folder / "cat.png"), spec((1, 3, 4, 6)))


def test_an_image_on_the_command_line(folder: Path, pinnace: Command) -> None:
    program = program_at(folder, {"image": ("float32", [1, 3, 4, 6])}, "picture")
    pixels = np.load(folder / "pixels.npy")
    given = ["--input", f"image={folder / 'cat.png'}", "--mean", "0.5", "--std", "0.25,0.5,1"]
    answer = pinnace("run", program, *given, "--json")
    assert (answer.status, answer.err) == (0, "")
    want = 2 * ((pixels / 255 - 0.5) / np.array([0.25, 0.5, 1])).transpose(2, 0, 1)[None]
    np.testing.assert_allclose(json.loads(answer.out)["y0"]["values"], want, atol=1e-5)
    in_order = pinnace("run", program, "--input", folder / "cat.png", "--mean=0.5", "--std=0.25,0.5,1", "--json")
    assert in_order.out == answer.out
    made = folder / "made.pnc"
    answer = pinnace("convert", folder / "picture.onnx", "-o", made, *given, "--json")
    assert answer.status == 0
    assert "made_up.image" not in json.loads(answer.out)
    for arguments, said in (
        (["--input", f"image={folder / 'cat.png'}", "--std", "0"], "must be above 0"),
        (["--input", f"image={folder / 'cat.png'}", "--std", "few"], "is not a number"),
        (["--input", f"image={folder / 'cat.png'}", "--mean", "1,2"], "--mean has 2 numbers"),
        (["--mean", "1"], "no --input is one"),
        (["--input", f"photo={folder / 'cat.png'}"], "unknown ['photo']"),
    ):
        answer = pinnace("run", program, *arguments)
        assert (answer.status, answer.out) == (2, "")
        assert said in answer.err
    pixels_program = program_at(folder, {"image": ("uint8", [1, 4, 6, 3])}, "bytes")
    answer = pinnace("run", pixels_program, "--input", f"image={folder / 'cat.png'}", "--mean", "0.5")
    assert answer.status == 2
    assert "takes the pixels as they are" in answer.err


# ---- arrays


def test_archives_and_inputs_in_order(folder: Path, pinnace: Command) -> None:
    shape: list[int | str] = [2, 3]
    program = program_at(folder, {"a": ("float32", shape), "b/c": ("float32", shape)})
    by_name = pinnace("run", program, "--input", folder / "both.npz", "--json")
    assert (by_name.status, by_name.err) == (0, "")
    values = {name: row["values"] for name, row in json.loads(by_name.out).items()}
    assert values == {"y0": [[2.0] * 3] * 2, "y1": [[4.0] * 3] * 2}
    in_order = pinnace("run", program, "--input", folder / "a.npy", "--input", folder / "b.npy", "--json")
    assert in_order.out == by_name.out
    together = pinnace("run", program, "--input", folder / "packed.npz", "--input", f"b/c={folder / 'b.npy'}", "--json")
    assert json.loads(together.out)["y0"]["values"] == [[6.0] * 3] * 2
    source = folder / "twice.onnx"
    assert pinnace("convert", source, "-o", folder / "n.pnc", "--input", folder / "both.npz").status == 0
    given = ["--input", folder / "a.npy", "--input", folder / "b.npy"]
    answer = pinnace("convert", source, "-o", folder / "n.pnc", *given)
    assert (answer.status, answer.err) == (0, "")
    for arguments, said in (
        (["--input", folder / "a.npy", "--input", f"b/c={folder / 'b.npy'}"], "either every input has a name"),
        (["--input", f"a={folder / 'a.npy'}", "--input", f"a={folder / 'b.npy'}"], "'a' is given twice"),
        (["--input", f"a={folder / 'a.npy'}", "--input", folder / "both.npz"], "'a' is given twice"),
        ([*given, "--input", folder / "a.npy"], "3 files in order, the model takes"),
        (["--input", folder / "none.npz"], "none.npz"),
        (["--input", f"a={folder / 'both.npz'}"], "give archives as FILE.npz, without NAME="),
    ):
        answer = pinnace("run", program, *arguments)
        assert (answer.status, answer.out) == (2, "")
        assert said in answer.err


def test_what_an_archive_may_not_hold(folder: Path) -> None:
    path = folder / "bad.npz"

    def made(members: dict[str, bytes]) -> str:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return str(path)

    def npy(array: Any, **options: Any) -> bytes:
        file = io.BytesIO()
        np.save(file, array, **options)
        return file.getvalue()

    assert read_arrays(made({"x.npy": npy(np.asfortranarray([[1, 2], [3, 4]]))}))["x"].tolist() == [[1, 2], [3, 4]]
    for members in (
        {"x.txt": b"1"},
        {"x.npy": b""},
        {"x.npy": npy(np.ones(9))[:-1]},
        {"x.npy": npy(np.array([{}]), allow_pickle=True)},
    ):
        with pytest.raises(pn.FileError, match=r"bad\.npz"):
            read_arrays(made(members))
    path.write_bytes(b"PK\3\4 and no more")
    with pytest.raises(pn.FileError):
        read_arrays(str(path))


def test_torchscript_gets_its_inputs_in_order(folder: Path, pinnace: Command) -> None:
    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.relu(x - y)

    path = folder / "sum.pt"
    example = torch.zeros(2, 3)
    torch.jit.save(torch.jit.trace(Sum(), (example, example)), str(path))  # type: ignore[no-untyped-call]
    given = ["--input", folder / "a.npy", "--input", folder / "b.npy"]
    answer = pinnace("convert", path, "-o", folder / "sum.pnc", *given, "--allow-inconclusive")
    assert answer.status == 0, answer
    assert list(pn.Program.open(folder / "sum.pnc").inputs) == ["x", "y"]
    answer = pinnace("inspect", path, *given)
    assert (answer.status, answer.err) == (0, "")
    assert "x: float32[" in answer.out
    assert pinnace("check", path, *given).out.startswith("cpu: ")
    answer = pinnace("convert", path, "-o", folder / "sum.pnc", "--input", folder / "cat.png")
    assert answer.status == 2
    assert "TorchScript does not declare the shapes of its inputs" in answer.err


# ---- sizes


def test_sizes_of_dynamic_dimensions(folder: Path, pinnace: Command) -> None:
    program = folder / "open.pnc"
    model = onnx_model(folder / "open.onnx", {"x": ("float32", ["n", 3, "w"])})
    pn.load(model, symbols=[pn.Dim("n", 2, 8, 2)]).build(verify=False).save(program)
    answer = pinnace("run", program, "--dim", "n=4", "--dim", "w=5")
    assert answer.out.startswith("y0: float32[4, 3, 5]")
    assert pinnace("run", program, "--dim", "n=6").out.startswith("y0: float32[6, 3,")
    for command in (["bench", program, "--runs", "1"], ["compare", program, "--reference", model]):
        assert pinnace(*command, "--dim", "n=4", "--dim", "w=5").status == 0
    np.save(folder / "x.npy", np.zeros((4, 3, 5), np.float32))
    for arguments, said in (
        (["--dim", "n=3"], "dimension 'n' cannot be 3, it takes 2..8 by 2"),
        (["--dim", "n=10"], "cannot be 10"),
        (["--dim", "h=4"], "there is no dynamic dimension 'h'; the dynamic ones are 'n', 'w'"),
        (["--dim", "n=2..4"], "must be NAME=SIZE"),
        (["--dim", "n"], "must be NAME=SIZE"),
        (["--dim", "n=2", "--dim", "n=4"], "'n' is given twice"),
        (["--dim", "n=2", "--input", f"x={folder / 'x.npy'}"], "dimension 'n' is 4 in an array, not 2"),
    ):
        answer = pinnace("run", program, *arguments)
        assert (answer.status, answer.out) == (2, "")
        assert said in answer.err


def test_a_tolerance(folder: Path, pinnace: Command) -> None:
    program = program_at(folder, {"a": ("float32", [2, 3])}, "near")
    answer = pinnace("convert", folder / "near.onnx", "-o", folder / "t.pnc", "--tolerance", "0.01", "--json")
    assert json.loads(answer.out)["verified.tolerance"].startswith("float32 0.01, ")
    answer = pinnace("compare", program, "--reference", folder / "near.onnx", "--tolerance", "0.01", "--json")
    assert json.loads(answer.out)["about"]["tolerance"].startswith("float32 0.01, ")
    answer = pinnace("compare", program, "--reference", folder / "near.onnx", "--tolerance", "-1")
    assert answer.status == 2
    assert "tolerance is -1.0" in answer.err


def test_new_names(folder: Path, pinnace: Command) -> None:
    model = onnx_model(folder / "named.onnx", {"a": ("float32", [2, 3]), "b": ("float32", [2, 3])})
    made = folder / "named.pnc"
    answer = pinnace("convert", model, "-o", made, "--input-name", "a=left=1", "--output-name", "y1=second")
    assert answer.status == 0, answer
    program = pn.Program.open(made)
    assert (list(program.inputs), list(program.outputs)) == (["left=1", "b"], ["y0", "second"])
    for arguments, said in (
        (["--input-name", "a"], "--input-name 'a': must be OLD=NEW"),
        (["--input-name", "a=c", "--input-name", "a=d"], "'a' is given twice"),
        (["--input-name", "c=d"], "unknown 'c'"),
        (["--output-name", "y0="], "is empty"),
    ):
        answer = pinnace("convert", model, "-o", folder / "no.pnc", *arguments)
        assert (answer.status, answer.out) == (2, "")
        assert said in answer.err


# ---- inspect


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


def test_inspect_begins_with_totals_for_every_format(folder: Path, pinnace: Command) -> None:
    x = torch.randn(2, 3, 8, 8)
    torch.export.save(torch.export.export(Net().eval(), (x,)), str(folder / "net.pt2"))
    pn.load(folder / "net.pt2").build().save(folder / "net.pnc")
    torch.jit.save(torch.jit.trace(Net().eval(), x), str(folder / "net.pt"))  # type: ignore[no-untyped-call]
    np.save(folder / "x.npy", x.numpy())
    for name, more in (("net.pnc", ()), ("net.pt2", ()), ("net.pt", ("--input", folder / "x.npy"))):
        answer = pinnace("inspect", folder / name, *more)
        assert answer.status == 0, answer
        lines = answer.out.splitlines()
        assert lines[0] == "269 parameters, 1,092 bytes of constants", name  # with the axes of the mean
        assert lines[1].startswith("15,632 multiply-adds")
        assert lines[2].startswith(f"{(folder / name).stat().st_size:,} bytes of file, ")
        assert "x: float32[" in lines[3]
        assert any("conv -> float32[" in line for line in lines)
        facts = json.loads(pinnace("inspect", folder / name, *more, "--json").out)
        assert facts["totals"]["multiply_adds"] == 15632
        assert next(iter(facts)) == "totals"
        assert pinnace("inspect", folder / name, *more, "--text").out.startswith('graph "')


def test_inspect_of_onnx(folder: Path, pinnace: Command) -> None:
    """An image gives the sizes."""
    model = onnx_model(folder / "shown.onnx", {"image": ("float32", ["n", 3, "h", "w"])})
    answer = pinnace("inspect", model, "--input", f"image={folder / 'cat.png'}")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.splitlines()[1] == "0 multiply-adds at n = 1, h = 4, w = 6"
    assert "mul -> float32[n,3,h,w]" in answer.out
    answer = pinnace("inspect", folder / "text.png")
    assert answer.status != 0
    assert answer.out == ""


def test_totals_at_sizes(folder: Path, pinnace: Command) -> None:
    program = pn.Program(
        pn._core.Model.parse(
            f"""graph "g" {{
  symbol n 1..8
  input %x : f32[n,3,8,8]
  const %w : f32[8,3,3,3] = {{{",".join(["0"] * 216)}}}
  %y : f32[n,8,6,6] = conv(%x, %w)
  output "y" %y
}}""",
            ["all"],
            False,
            [],
        ).build(["cpu"])
    )
    program.save(folder / "conv.pnc")
    assert totals_of(program, {}, {"n": 4}).multiply_adds == 4 * 8 * 36 * 27
    lines = pinnace("inspect", folder / "conv.pnc", "--dim", "n=4").out.splitlines()
    assert lines[1] == "31,104 multiply-adds at n = 4"
    assert pinnace("inspect", folder / "conv.pnc", "--dim", "n=9").status == 2


ZEROS = "{" + ",".join(["0"] * 20) + "}"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("input %x : f32[2,3,4] input %z : f32[4,5] %y : f32[2,3,5] = mat_mul(%x, %z)", 120),
        (f"input %x : f32[4,3] const %w : f32[4,5] = {ZEROS} %y : f32[3,5] = gemm(%x, %w) {{trans_a=1}}", 60),
        (f"input %x : f32[1,1,3,3] const %w : f32[1,5,2,2] = {ZEROS} %y : f32[1,5,4,4] = conv_transpose(%x, %w)", 180),
        (
            "input %q : f32[1,4,3,8] input %k : f32[1,2,5,8] input %v : f32[1,2,5,6] "
            "%y : f32[1,4,3,6] = attention(%q, %k, %v)",
            840,
        ),
        (
            "input %q : f32[1,3,32] input %k : f32[1,5,16] input %v : f32[1,5,12] "
            "%y : f32[1,3,24] = attention(%q, %k, %v) {q_num_heads=4, kv_num_heads=2}",
            840,
        ),
        (
            "input %q : f32[1,4,1,8] input %k : f32[1,4,1,8] input %v : f32[1,4,1,6] "
            "input %pk : f32[1,4,7,8] input %pv : f32[1,4,7,6] %y : f32[1,4,1,6], %nk : f32[1,4,8,8], "
            "%nv : f32[1,4,8,6] = attention(%q, %k, %v, none, %pk, %pv)",
            4 * 8 * (8 + 6),
        ),
        ("input %x : u8[2,3,4] input %z : i8[4,5] %y : i32[2,3,5] = mat_mul_integer(%x, %z)", 120),
        ("input %x : u8[1,4,5,5] input %w : u8[6,2,3,3] %y : i32[1,6,3,3] = conv_integer(%x, %w) {group=2}", 972),
        ("input %x : f32[3,4] %y : f32[3,4] = relu(%x)", 0),
    ],
)
def test_multiply_adds_of_operators(body: str, count: int) -> None:
    for word in ("input ", "const ", "%y : "):
        body = body.replace(f" {word}", f"\n{word}")
    text = f'graph "g" {{\n{body}\noutput "y" %y\n}}'
    program = pn.Program(pn._core.Model.parse(text, ["all"], False, []).build(["cpu"]))
    assert totals_of(program, {}, {}).multiply_adds == count


def test_amounts() -> None:
    assert [amount(n) for n in (0, 999_999, 25_530_472, 4_089_000_000)] == ["0", "999,999", "25.5 M", "4.09 G"]


# ---- colours


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def shown(file: io.StringIO) -> str:
        show(bold("a\x1b[31m"), " b ", red("c"), file=file)
        return file.getvalue()

    assert shown(Terminal()) == "\x1b[1ma\\x1b[31m\x1b[0m b \x1b[31mc\x1b[0m\n"
    assert shown(io.StringIO()) == "a\\x1b[31m b c\n"
    monkeypatch.setenv("TERM", "dumb")
    assert shown(Terminal()) == "a\\x1b[31m b c\n"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(Terminal()) == "a\\x1b[31m b c\n"
    monkeypatch.setenv("NO_COLOR", "")
    assert "\x1b[1m" in shown(Terminal())
