"""Files tell nothing of the machine that made them: one model gives the same bytes in any folder and environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pinnace as pn
import pytest

ROOT = Path(__file__).resolve().parents[3]

FILES = {
    "mypkg/__init__.py": "",
    "mypkg/models/__init__.py": "",
    "mypkg/models/net.py": """
        import torch
        from torch import nn
        from mypkg.ops import Cosine
        from borrowed.blocks import Block

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.block, self.end = nn.Linear(4, 4), Block(), Cosine()

            def forward(self, x):
                return -self.end(self.block(self.fc(x)))
    """,
    "mypkg/ops.py": """
        from torch import nn

        class Cosine(nn.Module):
            def forward(self, x):
                return x.cos()
    """,
    "venv/site-packages/borrowed/__init__.py": "",
    "venv/site-packages/borrowed/blocks.py": """
        from torch import nn

        class Block(nn.Module):
            def forward(self, x):
                return x.sigmoid() + x
    """,
    "convert.py": """
        import sys
        import onnx
        import pinnace as pn
        import torch
        from mypkg.models.net import Net
        from onnx import TensorProto, helper

        torch.manual_seed(0)
        net, x = Net().eval(), torch.linspace(-1, 1, 8).reshape(2, 4)
        torch.export.save(torch.export.export(net, (x,)), "net.pt2")
        torch.jit.trace(net, (x,)).save("net.pt")
        node = helper.make_node("Relu", ["x"], ["y"], doc_string=f"{sys.argv[0]}(7): forward")
        value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 4]) for n in "xy"]
        graph = helper.make_graph([node], "g", value[:1], value[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), "net.onnx")
        pn.load(net, (x,)).build().save("live.pnc")
        for name in ("net.pt2", "net.pt", "net.onnx"):
            pn.load(sys.path[0] + "/" + name, (x,)).build().save(f"{name}.pnc")
        print(pn.load(net, (x,)).check(["cpu", "nnapi:27"]))
    """,
}
MADE = ["live.pnc", "net.pt2.pnc", "net.pt.pnc", "net.onnx.pnc"]


def convert_in(folder: Path) -> str:
    """What the script prints, run in a folder with copies of all that the model is made of."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line[8:] for line in text.splitlines()) + "\n")
    paths = [str(folder), str(folder / "venv/site-packages"), str(ROOT / "python")]
    done = subprocess.run(
        [sys.executable, str(folder / "convert.py")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": str(len(folder.name))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.rotating
def test_the_same_bytes_in_any_folder(tmp_path: Path) -> None:
    """Of a live module, a .pt2 file, TorchScript and ONNX; none names a folder of this machine."""
    folders = [tmp_path / "here", tmp_path / "a" / "longer" / "way"]
    reports = [convert_in(folder) for folder in folders]
    assert reports[0] == reports[1]
    secrets = {str(tmp_path), str(ROOT), sys.prefix, tempfile.gettempdir() + "/", os.path.expanduser("~") + "/"}
    for name in MADE:
        first, second = [(folder / name).read_bytes() for folder in folders]
        assert first == second, name
        assert not [secret for secret in secrets if secret.encode() in first], name
    assert not [secret for secret in secrets if secret in reports[0]]
    sources = {}
    for name in MADE:
        program = pn.Program.open(folders[0] / name)
        sources[name] = {node.source.rpartition(":")[0] for node in program.nodes}
    assert sources["live.pnc"] == {"mypkg/models/net.py", "mypkg/ops.py", "borrowed/blocks.py"}
    assert sources["net.pt2.pnc"] == sources["live.pnc"]
    assert sources["net.onnx.pnc"] == {"convert.py"}


def test_an_error_names_the_whole_path(tmp_path: Path) -> None:
    """Of a conversion that fails here, where the reader has the file: nothing of it is stored."""
    script = tmp_path / "failing.py"
    script.write_text(
        "import pinnace as pn, torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.geqrf(x)[0]\n"
        "try:\n    pn.load(Net(), (torch.ones(2, 2),))\n"
        "except pn.ConversionError as error:\n    print(error.nodes[0].source)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"{script}:4"
