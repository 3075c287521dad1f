"""How each engine is given a case and a number of threads: prepare() converts once, load() gives a function to time.

Every engine gets the same float32 weights and is asked for float32 arithmetic; settings are those that its own
documentation gives for latency. Cases in 8 bits go to engines that have such arithmetic on the CPU and a tool, in their
package, that makes their files; the others say why not. Only the chosen engine is imported: each runs in a process of
its own. Engines named "-avx2" are held to that instruction set; NOT_LIMITED says why the others have no such twin.
Those named "-installed" compute in whatever precision they choose by themselves; the others stay in float32 on a
processor.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from cases import FOLDER, quantized

Arrays = list[np.ndarray[Any, Any]]
Run = Callable[[Arrays], Arrays]


class Engine:
    """An engine by name. environment: which of bench/setup.sh's environments it is run in ("" is .venv)."""

    name = ""
    environment = "main"
    converts_in = ""  # the environment of prepare(), where that is another one
    variables: Mapping[str, str] = MappingProxyType({})  # of its process's environment
    modules: tuple[str, ...] = ()  # imported before the clock of the start-up runs
    twin_of = ""  # whose conversion it uses

    only_starts = False  # whether it takes part in start_up.py alone
    gpu = False  # whether it runs on a GPU, and takes part in `report.py --gpu` alone
    tolerance = 1e-3  # of its outputs, in parts of the largest; what is off by more computes something else

    not_quantized = ""  # why it does not take the cases in 8 bits; empty if it does
    not_float = ""  # why it takes only those

    def prepare(self, case: Path) -> None:
        """Converts the case's model where the engine's file is missing."""

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        raise NotImplementedError

    def version(self) -> str:
        from importlib.metadata import version

        return version(self.name)


class Pinnace(Engine):
    """From a .pt2 file; in 8 bits from ONNX with quantize and dequantize nodes."""

    name = "pinnace"
    modules = ("pinnace",)
    environment = ""
    target = "cpu"
    precision = "fp32"
    file = "model.pnc"

    def source(self, case: Path) -> Path:
        return case / ("model.onnx" if quantized(case.name) else "model.pt2")

    def prepare(self, case: Path) -> None:
        import pinnace as pn

        with np.load(case / "inputs.npz") as inputs:
            # As one does for a known processor: weights packed ahead for its level, and for the one of pinnace-avx2.
            (cpu,) = (d for d in pn.devices() if d.target == "cpu")
            levels = {cpu.description.split(", ")[-2], "avx2"} if platform.machine() == "x86_64" else {"neon"}
            targets = [f"cpu:{level}" for level in sorted(levels)]
            pn.load(self.source(case), dict(inputs)).build(targets=targets).save(case / self.file)

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        import pinnace as pn

        session = pn.Session(case / self.file, self.target, threads, self.precision)
        names = list(session.inputs)
        return lambda arrays: list(session.run(dict(zip(names, arrays, strict=True))).values())

    def version(self) -> str:
        import pinnace as pn

        return str(pn.__version__)


class PinnaceAvx2(Pinnace):
    name = "pinnace-avx2"
    target = "cpu:avx2"
    twin_of = "pinnace"


class PinnaceAuto(Pinnace):
    """In the fastest precision that it has here, which one has to ask for."""

    name = "pinnace-auto"
    twin_of = "pinnace"
    precision = "auto"
    not_quantized = "computes what pinnace does"
    tolerance = 0.5  # random weights make much of 16 bits


class PinnacePacked(Pinnace):
    """As one starts it without naming a target; weights were packed when the file was built."""

    name = "pinnace-packed"
    twin_of = "pinnace"
    target = "auto"
    only_starts = True


class PinnacePlain(PinnacePacked):
    """The same from a file without packed weights, and without a cache folder."""

    name = "pinnace-plain"
    twin_of = ""
    file = "plain.pnc"
    variables = MappingProxyType({"PINNACE_CACHE": ""})

    def prepare(self, case: Path) -> None:
        import pinnace as pn

        with np.load(case / "inputs.npz") as inputs:
            pn.load(self.source(case), dict(inputs)).build().save(case / self.file)


class PinnaceCached(PinnacePlain):
    """The same again, whose weights an earlier start has packed into the user's cache folder."""

    name = "pinnace-cached"
    file = "cached.pnc"
    variables = MappingProxyType({"PINNACE_CACHE": str(FOLDER / "cache")})

    def prepare(self, case: Path) -> None:
        from pinnace import _core

        super().prepare(case)
        with np.load(case / "inputs.npz") as inputs:
            for threads in (1, 2):
                self.load(case, threads, dict(inputs))(list(inputs.values()))
        if not _core.wait_for_pack_cache(60.0):
            raise RuntimeError("packed weights were not written within a minute")


class PinnaceVulkan(Pinnace):
    """Every node on the GPU, or an error. Its first start leaves compiled code for later ones: PINNACE_GPU_CACHE."""

    name = "pinnace-vulkan"
    twin_of = "pinnace"
    gpu = True
    precision = "fp32"

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        import pinnace as pn

        options: dict[str, Any] = {"precision": self.precision, "fallback": False}
        session = pn.Session(case / self.file, target="vulkan", threads=threads, **options)
        names = list(session.inputs)
        return lambda arrays: list(session.run(dict(zip(names, arrays, strict=True))).values())


class PinnaceVulkanHalf(PinnaceVulkan):
    """16 bits in memory, 32 in arithmetic."""

    name = "pinnace-vulkan-fp16"
    precision = "fp16"
    tolerance = 0.25  # see NcnnVulkanHalf


class PinnacePt2e(Pinnace):
    """In 8 bits from the .pt2 file that PT2E makes."""

    name = "pinnace-pt2e"
    file = "pt2e.pnc"
    not_float = "is for PT2E"

    def source(self, case: Path) -> Path:
        return case / "int8.pt2"


class OnnxRuntime(Engine):
    name = "onnxruntime"
    modules = ("onnxruntime",)

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        session = ort.InferenceSession(case / "model.onnx", options, providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        return lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))


class OpenVino(Engine):
    name = "openvino"
    modules = ("openvino",)
    precision: Mapping[str, str] = MappingProxyType({"INFERENCE_PRECISION_HINT": "f32"})

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        import openvino as ov

        options = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            **self.precision,
        }
        compiled = ov.Core().compile_model(case / "model.onnx", "CPU", options)
        request = compiled.create_infer_request()

        def run(arrays: Arrays) -> Arrays:
            result = request.infer(dict(enumerate(arrays)), share_inputs=True, share_outputs=True)
            return [result[i] for i in range(len(compiled.outputs))]

        return run

    def version(self) -> str:
        from importlib.metadata import version

        return version("openvino")


class OpenVinoAvx2(OpenVino):
    name = "openvino-avx2"
    twin_of = "openvino"
    variables = MappingProxyType({"ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2"})


class OpenVinoInstalled(OpenVino):
    """In bfloat16 where the processor has tiles for it."""

    name = "openvino-installed"
    twin_of = "openvino"
    precision = MappingProxyType({})
    not_quantized = "computes what openvino does"
    tolerance = 0.5  # see PinnaceAuto


class Ncnn(Engine):
    name = "ncnn"
    modules = ("ncnn",)
    not_quantized = "its package has no tool that quantises (ncnn2table, ncnn2int8)"
    half = False  # 16 bits in memory and arithmetic, where the device has them

    def prepare(self, case: Path) -> None:
        with np.load(case / "inputs.npz") as inputs:
            kinds = {"float32": "f32", "int64": "i64"}
            # Its networks have no batches: those of several images are run one after another.
            one = {key: (1, *x.shape[1:]) for key, x in inputs.items()}
            shapes = ",".join(f"[{','.join(map(str, one[k]))}]{kinds[str(x.dtype)]}" for k, x in inputs.items())
        pnnx = str(Path(sys.executable).with_name("pnnx"))
        command = [pnnx, "model.pt", f"inputshape={shapes}", "fp16=0"]
        done = subprocess.run(command, cwd=case, capture_output=True, text=True, timeout=600)
        if not (case / "model.ncnn.param").exists():
            raise RuntimeError(f"pnnx: {(done.stdout + done.stderr)[-300:]}")

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        import ncnn

        net = ncnn.Net()
        net.opt.num_threads = threads
        net.opt.use_vulkan_compute = self.gpu
        for option in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic"):
            setattr(net.opt, option, self.half)
        net.opt.use_bf16_storage = False
        if self.gpu and ncnn.get_gpu_count() == 0:
            raise RuntimeError("finds no Vulkan device")
        net.load_param(str(case / "model.ncnn.param"))
        net.load_model(str(case / "model.ncnn.bin"))
        ins, outs = net.input_names(), net.output_names()

        def run_one(arrays: Arrays) -> Arrays:
            with net.create_extractor() as extractor:
                for name, array in zip(ins, arrays, strict=True):
                    extractor.input(name, ncnn.Mat(array if array.dtype == np.float32 else array.astype(np.int32)))
                return [np.array(extractor.extract(name)[1])[None] for name in outs]

        def run(arrays: Arrays) -> Arrays:
            images = [run_one([array[i] for array in arrays]) for i in range(len(arrays[0]))]
            return [np.concatenate(outputs) for outputs in zip(*images, strict=True)]

        return run


class NcnnVulkan(Ncnn):
    name = "ncnn-vulkan"
    twin_of = "ncnn"
    gpu = True

    def version(self) -> str:
        from importlib.metadata import version

        return version("ncnn")


class NcnnVulkanHalf(NcnnVulkan):
    """As its own documentation has it for GPUs: arithmetic in 16 bits too."""

    name = "ncnn-vulkan-fp16"
    half = True
    # Networks of random weights make much of 16 bits: MobileNetV2 is off by 0.12 here, by 0.05 on ours.
    tolerance = 0.25


class Mnn(Engine):
    name = "MNN"
    modules = ("MNN.expr", "MNN.nn", "onnx")
    not_quantized = "its quantiser reads image files, and ended with an exception on arrays"

    def prepare(self, case: Path) -> None:
        # The command of this name would install a package and report what it converts.
        import _tools

        paths = ["--modelFile", str(case / "model.onnx"), "--MNNModel", str(case / "model.mnn")]
        _tools.mnnconvert(["mnnconvert", "-f", "ONNX", *paths, "--bizCode", "x"])
        if not (case / "model.mnn").exists():
            raise RuntimeError("mnnconvert wrote no file")

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        from MNN import expr, nn

        manager = nn.create_runtime_manager(({"backend": "CPU", "precision": "high", "numThread": threads},))
        import onnx

        graph = onnx.load(case / "model.onnx", load_external_data=False).graph
        ins, outs = [i.name for i in graph.input], [o.name for o in graph.output]
        net = nn.load_module_from_file(str(case / "model.mnn"), ins, outs, runtime_manager=manager)
        places = []
        for array in inputs.values():
            dtype = expr.float if array.dtype == np.float32 else expr.int
            places.append(expr.placeholder(list(array.shape), expr.NCHW, dtype))

        def run(arrays: Arrays) -> Arrays:
            for place, array in zip(places, arrays, strict=True):
                place.write(array if array.dtype == np.float32 else array.astype(np.int32))
            return [expr.convert(y, expr.NCHW).read() for y in net.onForward(places)]

        return run


class LiteRt(Engine):
    name = "litert"
    modules = ("ai_edge_litert.interpreter",)
    converts_in = "litert"

    def prepare(self, case: Path) -> None:
        import litert_torch
        import torch

        with np.load(case / "inputs.npz") as inputs:
            example = {key: torch.from_numpy(value) for key, value in inputs.items()}
        module = torch.export.load(case / "model.pt2").module()
        file = case / "model.tflite"
        litert_torch.convert(module, sample_kwargs=example).export(str(file))
        if quantized(case.name):
            self.quantize(file, case, next(iter(example)))

    def quantize(self, file: Path, case: Path, key: str) -> None:
        """By LiteRT's own tool: activations and weights i8, weights per channel."""
        from ai_edge_litert.interpreter import Interpreter
        from ai_edge_quantizer import qtyping, quantizer, recipe

        [signature] = Interpreter(str(file)).get_signature_list()
        with np.load(case / "calibration.npz") as images:
            samples = [{key: image} for image in images.values()]
        tool = quantizer.Quantizer(str(file), recipe.static_wi8_ai8())
        for place in (qtyping.TFLOperationName.INPUT, qtyping.TFLOperationName.OUTPUT):  # float, like everybody's
            tool.update_quantization_recipe(".*", place, algorithm_key="no_quantize")
        result = tool.quantize(tool.calibrate({signature: samples}))
        result.export_model(str(file), overwrite=True)

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter(str(case / "model.tflite"), num_threads=threads)
        runner = interpreter.get_signature_runner()
        names = list(inputs)
        if set(names) != set(runner.get_input_details()):
            raise RuntimeError(f"inputs are {sorted(runner.get_input_details())}")
        keys = sorted(runner.get_output_details(), key=lambda k: int(k.rpartition("_")[2]) if "_" in k else 0)

        def run(arrays: Arrays) -> Arrays:
            result = runner(**dict(zip(names, arrays, strict=True)))
            return [result[key] for key in keys]

        return run

    def version(self) -> str:
        from importlib.metadata import version

        return version("ai-edge-litert")


class ExecuTorch(Engine):
    name = "executorch"
    modules = ("torch", "executorch.extension.pybindings.portable_lib")
    environment = "executorch"

    def prepare(self, case: Path) -> None:
        import torch
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import to_edge_transform_and_lower

        if quantized(case.name):
            import torchao.quantization.pt2e  # noqa: F401  # the operators that the file names
        program = torch.export.load(case / ("int8.pt2" if quantized(case.name) else "model.pt2"))
        lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch()
        (case / "model.pte").write_bytes(lowered.buffer)

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        import torch
        from executorch.extension.pybindings import portable_lib

        portable_lib._unsafe_reset_threadpool(threads)
        torch.set_num_threads(threads)
        module = portable_lib._load_for_executorch(str(case / "model.pte"))
        return lambda arrays: [t.numpy() for t in module.run_method("forward", [torch.from_numpy(a) for a in arrays])]


class TorchEager(Engine):
    name = "torch"
    modules = ("torch.export", "torch.utils._pytree")
    not_quantized = "computes what PT2E makes in float32, between quantize and dequantize operators"

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        import torch
        from torch.utils import _pytree

        torch.set_num_threads(threads)
        module = self.compiled(torch.export.load(case / "model.pt2").module())
        names = list(inputs)

        def run(arrays: Arrays) -> Arrays:
            with torch.inference_mode():
                result = module(**{n: torch.from_numpy(a) for n, a in zip(names, arrays, strict=True)})
            return [t.numpy() for t in _pytree.tree_leaves(result)]

        return run

    def compiled(self, module: Any) -> Any:
        return module

    def version(self) -> str:
        import torch

        return str(torch.__version__)


class TorchInductor(TorchEager):
    name = "torch-inductor"
    not_quantized = "wants files of X86InductorQuantizer, which fails on ResNet-50 (two outputs of a partition)"

    def compiled(self, module: Any) -> Any:
        import torch

        torch._inductor.config.freezing = True
        return torch.compile(module)

    def prepare(self, case: Path) -> None:
        """Compiles, which the cache of generated code remembers."""
        with np.load(case / "inputs.npz") as inputs:
            self.load(case, 1, dict(inputs))(list(inputs.values()))


class TorchCuda(TorchEager):
    """Eager PyTorch on the first CUDA device, from and to the host's memory like everybody."""

    name = "torch-cuda"
    environment = ""
    gpu = True
    half = False
    tf32 = False  # products of 10-bit mantissas

    def load(self, case: Path, threads: int, inputs: dict[str, np.ndarray[Any, Any]]) -> Run:
        import torch
        from torch.utils import _pytree

        if not torch.cuda.is_available():
            raise RuntimeError("finds no CUDA device")
        if not self.tf32:
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        dtype = torch.float16 if self.half else torch.float32
        module = torch.export.load(case / "model.pt2").module().to("cuda", dtype)
        names = list(inputs)

        def on_device(array: np.ndarray[Any, Any]) -> torch.Tensor:
            tensor = torch.from_numpy(array).to("cuda")
            return tensor.to(dtype) if tensor.is_floating_point() else tensor

        def run(arrays: Arrays) -> Arrays:
            with torch.inference_mode():
                result = module(**{n: on_device(a) for n, a in zip(names, arrays, strict=True)})
            return [t.float().cpu().numpy() for t in _pytree.tree_leaves(result)]

        return run


class TorchCudaInstalled(TorchCuda):
    """As installed: its convolutions, and not its products, are rounded to TF32."""

    name = "torch-cuda-installed"
    tf32 = True
    tolerance = 0.25  # see NcnnVulkanHalf


class TorchCudaHalf(TorchCuda):
    name = "torch-cuda-fp16"
    half = True
    tolerance = 0.25  # see NcnnVulkanHalf


class TorchAvx2(TorchEager):
    name = "torch-avx2"
    twin_of = "torch"
    variables = MappingProxyType(
        {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
    )


# Rivals that run their fastest kernels whatever one says.
NOT_LIMITED = {
    "onnxruntime": "its kernels are chosen by what the processor says; no option or variable changes that",
    "ncnn": "chosen by what the processor says; its package has no option for it",
    "MNN": "chosen by what the processor says; its package has no option for it",
    "litert": "XNNPACK chooses by what the processor says; only a build of one's own can leave levels out",
    "executorch": "XNNPACK, as in LiteRT",
    "torch-inductor": "eager PyTorch, which uses the same libraries, stands for it",
}


ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Pinnace(),
        PinnacePt2e(),
        OnnxRuntime(),
        OpenVino(),
        Ncnn(),
        Mnn(),
        LiteRt(),
        ExecuTorch(),
        TorchEager(),
        TorchInductor(),
        PinnaceAuto(),
        OpenVinoInstalled(),
        PinnaceAvx2(),
        OpenVinoAvx2(),
        TorchAvx2(),
        PinnacePacked(),
        PinnacePlain(),
        PinnaceCached(),
        PinnaceVulkan(),
        PinnaceVulkanHalf(),
        NcnnVulkan(),
        NcnnVulkanHalf(),
        TorchCuda(),
        TorchCudaInstalled(),
        TorchCudaHalf(),
    )
}
CPU_ENGINES = [name for name, engine in ENGINES.items() if not engine.gpu and not engine.only_starts]
START_UP_ENGINES = [name for name, engine in ENGINES.items() if engine.only_starts]
GPU_ENGINES = [name for name, engine in ENGINES.items() if engine.gpu]
