"""PyTorch's own sample inputs (OpInfo) as modules: what torch_samples_test exports, imports, runs and compares.

Exporting takes longest by far, so that all samples of an operator, of every dtype, are one module with many outputs.
Samples that the importer refuses are taken out, tried through torch's decompositions, and listed with their reason.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
import types
import unittest.mock
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import torch
from pinnace import _core
from pinnace.sources.vector_signs import vector_signs
from pinnace.torch.export import decompose
from pinnace.verify.reference_runs import ReferenceRun
from torch import Tensor, nn
from torch.utils import _pytree

# OpInfo stands in a module that also holds PyTorch's test cases, which need a package that nothing here uses.
_stub: Any = types.ModuleType("expecttest")
_stub.TestCase = unittest.TestCase
sys.modules.setdefault("expecttest", _stub)

DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "i64": torch.int64,
    "bool": torch.bool,
    "c64": torch.complex64,
}
NO_VALUES = ("empty", "new_empty", "jiterator")  # memory as it is; CUDA only
# Complex samples are taken of transforms, of arithmetic and of what moves elements. The model takes and gives them as
# real tensors with a last dimension of 2.
_COMPLEX = (
    "T abs add adjoint angle atleast_1d atleast_2d atleast_3d block_diag bmm broadcast_tensors broadcast_to cat chunk "
    "clone column_stack complex conj conj_physical contiguous diag_embed diagonal diff div dot dsplit "
    "dstack eq exp expand expand_as fill flatten flip fliplr flipud full full_like hsplit hstack imag "
    "index_select isreal istft linalg.vecdot log mH mT masked_fill matmul mean meshgrid mm "
    "movedim mul mv narrow ne neg new_full new_ones new_zeros nn.functional.pad ones ones_like outer permute polar "
    "positive pow ravel real reciprocal repeat reshape reshape_as resolve_conj resolve_neg roll rot90 rsub select sgn "
    "slice split split_with_sizes square squeeze stack stft sub sum swapaxes t tensor_split tile to trace transpose "
    "true_divide unbind unflatten unfold unsqueeze view view_as view_as_complex view_as_real vsplit vstack where "
    "zeros zeros_like"
)
COMPLEX = _COMPLEX.split()
PER_DTYPE = 8  # samples of an operator and dtype, where it has as many
UNSTABLE = ("argsort", "sort", "topk", "kthvalue", "median", "nanmedian", "mode")  # may take any of equal elements
VECTORS = ("linalg.eigh", "linalg.svd", "svd")  # whose signs are the operators', not LAPACK's
MAX_ELEMENTS = 20_000  # in all inputs of a sample together: larger ones show nothing new


@dataclass
class Sample:
    """One call of an operator with fixed arguments other than tensors."""

    op: str
    dtype: str
    function: Callable[..., Any]
    spec: Any  # of (args, kwargs)
    leaves: list[Any]  # tensors and others, in the spec's order; complex ones as pairs
    expected: list[Tensor]
    precise: list[Tensor] | None  # the same in float64, where that works
    paired: set[int]  # places among the leaves
    tolerance: tuple[float, float] | None  # (atol, rtol), where OpInfo has looser ones than PyTorch's default

    def tensors(self) -> list[Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]

    def call(self, tensors: Sequence[Any]) -> list[Any]:
        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
        leaves = [torch.view_as_complex(leaf) if i in self.paired else leaf for i, leaf in enumerate(leaves)]
        args, kwargs = _pytree.tree_unflatten(leaves, self.spec)
        return [_pair(leaf) for leaf in _pytree.tree_leaves(self.function(*args, **kwargs)) if isinstance(leaf, Tensor)]

    def eager(self, tensors: Sequence[Any]) -> list[Any]:
        """The same with the operators' signs of vectors. Not for export, which would trace how they are made."""
        with vector_signs() if self.op in VECTORS else contextlib.nullcontext():
            return self.call(tensors)


def _pair(t: Tensor) -> Tensor:
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


class _Eager:
    """A sample as a source of verification: torch itself, or torch in float64."""

    description = "torch"

    def __init__(self, sample: Sample, wide: bool = False) -> None:
        self.sample, self.wide = sample, wide

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        # As the sample has them in memory: some operators ask for strides.
        tensors = [t.clone().copy_(torch.from_numpy(x)) for t, x in zip(self.sample.tensors(), inputs, strict=True)]
        try:
            made = self.sample.eager([t.double() if self.wide and t.is_floating_point() else t for t in tensors])
        except Exception as error:
            raise _core.Unsupported(str(error)) from None
        return [t.detach().contiguous().numpy() for t in made]

    def layers(self, inputs: Sequence[np.ndarray], names: set[str]) -> dict[str, np.ndarray]:
        return {}

    def float64(self) -> _Eager | None:
        return None if self.sample.precise is None else _Eager(self.sample, wide=True)


@dataclass
class Outcome:
    """What became of the samples of one operator."""

    passed: int = 0
    decomposed: int = 0  # of the passed ones: only after a decomposition by torch
    unexportable: int = 0  # torch.export itself fails
    refused: dict[str, str] = field(default_factory=dict)  # "op dtype" -> reason
    refused_samples: int = 0
    wrong: list[str] = field(default_factory=list)


class _One(nn.Module):
    def __init__(self, sample: Sample) -> None:
        super().__init__()
        self.sample = sample

    def forward(self, *tensors: Tensor) -> list[Any]:
        return self.sample.call(tensors)


class _Batch(nn.Module):
    """Every sample in a submodule of its own, so that a node tells which sample it belongs to."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        super().__init__()
        self.counts = [len(s.tensors()) for s in samples]
        self.parts = nn.ModuleList(_One(s) for s in samples)

    def forward(self, *tensors: Tensor) -> list[list[Any]]:
        out, start = [], 0
        for part, count in zip(self.parts, self.counts, strict=True):
            out.append(part(*tensors[start : start + count]))
            start += count
        return out


def operators() -> dict[str, Any]:
    """OpInfo by name, "linalg.norm" or "div.floor_rounding"."""
    # It forbids the whole process to set flags of torch.backends.
    with warnings.catch_warnings(), unittest.mock.patch("torch.backends.disable_global_flags"):
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    named = {o.name + ("." + o.variant_test_name if o.variant_test_name else ""): o for o in op_db}
    return {name: o for name, o in named.items() if not name.startswith(NO_VALUES)}


def _tolerance(info: Any, dtype: torch.dtype) -> tuple[float, float] | None:
    if info.name.startswith("fft."):  # errors are a fraction of the largest result, here about 200
        return 5e-5, 1.3e-6
    from torch.testing._internal.common_device_type import toleranceOverride

    found = [
        inner.d[dtype]
        for outer in info.decorators
        for inner in getattr(outer, "decorators", [outer])
        if isinstance(inner, toleranceOverride) and dtype in inner.d
    ]
    return (max(t.atol for t in found), max(t.rtol for t in found)) if found else None


def _usable(tensors: Sequence[Any]) -> bool:
    plain = all(
        type(t) in (Tensor, nn.Parameter)
        and t.layout == torch.strided
        and t.dtype != torch.complex128
        and not t.is_quantized
        and t.device.type == "cpu"
        and t.dtype != torch.bfloat16  # numpy has none
        for t in tensors
    )
    return plain and sum(t.numel() for t in tensors) <= MAX_ELEMENTS


def _sample(name: str, short: str, info: Any, raw: Any) -> Sample | None:
    leaves, spec = _pytree.tree_flatten(((raw.input, *raw.args), dict(raw.kwargs)))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    if not _usable(tensors):
        return None
    paired = {i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.is_complex()}
    leaves = [_pair(leaf.detach()).clone() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    sample = Sample(name, short, info.op, spec, leaves, [], None, paired, _tolerance(info, DTYPES[short]))
    try:
        sample.expected = [t.detach().clone() for t in sample.eager([t.clone() for t in sample.tensors()])]
    except Exception:  # some samples show errors
        return None
    if not sample.expected or not _usable(sample.expected):
        return None
    if any(t.is_floating_point() for t in sample.expected):
        try:
            wide = [t.double() if t.is_floating_point() else t.clone() for t in sample.tensors()]
            sample.precise = [t.detach().clone() for t in sample.eager(wide)]
        except Exception:  # a number type given as an argument, for instance
            sample.precise = None
    return sample


def samples_of(name: str, info: Any) -> list[Sample]:
    """PER_DTYPE samples of every dtype, spread over OpInfo's list; the same ones in every run."""
    found: list[Sample] = []
    supported = info.supported_dtypes("cpu")
    for short, dtype in DTYPES.items():
        complex_too = name in COMPLEX or name.startswith("fft.")
        if dtype not in supported or (dtype.is_complex and not complex_too):
            continue
        torch.manual_seed(zlib.crc32(f"{name}/{short}".encode()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                raw = [
                    s for _, s in zip(range(400), info.sample_inputs("cpu", dtype, requires_grad=False), strict=False)
                ]
            except Exception:  # the generator itself wants an optional package
                continue
            usable: list[Sample] = []
            # A first round spread evenly, then whatever is left, until there are enough.
            step = max(1, len(raw) // PER_DTYPE)
            for item in [*raw[::step], *(r for i, r in enumerate(raw) if i % step)]:
                if len(usable) >= PER_DTYPE + 4:
                    break
                sample = _sample(name, short, info, item)
                if sample is not None:
                    usable.append(sample)
        found += usable
    return found


def _export(samples: Sequence[Sample]) -> Any:
    flat = tuple(t.clone() for s in samples for t in s.tensors())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(_Batch(samples).eval(), flat, strict=False)


def _place(node: Any) -> int | None:
    """Which sample a node of the batch came from."""
    for path, _ in (node.meta.get("nn_module_stack") or {}).values():
        parts = path.split(".")
        if "parts" in parts and parts.index("parts") + 1 < len(parts):
            return int(parts[parts.index("parts") + 1])
    return None


def _reason(problem: Any) -> str:
    """Operator and rule, without the names, numbers and places of this one sample."""
    rule = re.sub(r" '[^']*'| \([^() ]+:\d+\)", "", problem.rule)
    return re.sub(r"\[[^\]]*\]", "[]", f"{problem.op}: {rule}")


def _exportable(samples: list[Sample], outcome: Outcome) -> tuple[list[Sample], Any]:
    """The samples that torch.export takes, and their program."""
    try:
        return samples, _export(samples)
    except Exception:
        if len(samples) == 1:
            outcome.unexportable += 1
            return [], None
    good = [kept for sample in samples for kept in _exportable([sample], outcome)[0]]
    return good, _export(good) if good else None


@dataclass
class _Import:
    model: Any = None
    kept: list[Sample] = field(default_factory=list)
    decomposed: set[int] = field(default_factory=set)  # places in kept


def _imported(samples: list[Sample], outcome: Outcome) -> _Import:
    """Imports what can be imported of a batch; the rest is refused, its reasons in the outcome."""
    while samples:
        samples, program = _exportable(samples, outcome)
        if program is None:
            break
        decomposed: set[int] = set()
        hit: dict[str, int | None] = {}
        error: Any = None
        while True:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "m.pt2"
                torch.export.save(program, path)
                try:
                    core = _core.Model.load(str(path), [], False, [], "", [], [])
                    return _Import(pn.Model(core, None, [], "samples"), samples, decomposed)
                except _core.ConversionError as caught:
                    if error is not None and not caught.nodes:
                        break  # as pinnace.load does: what was wrong before says more
                    error = caught
            places = {node.name: _place(node) for node in program.graph.nodes}
            hit = {problem.node: places.get(problem.node) for problem in error.nodes}
            decomposed |= {place for place in hit.values() if place is not None}
            simpler = decompose(program, error)
            if simpler is None or str(simpler.graph) == str(program.graph):
                break
            program = simpler
        bad = {place: problem for problem in reversed(error.nodes) if (place := hit[problem.node]) is not None}
        if not bad and len(samples) > 1:  # of no node, or of one that torch made
            return _Import(None, samples)
        if not bad and not error.nodes:
            _refuse(samples[0], str(error).rsplit(": ", 1)[-1], outcome)
            break
        for place, problem in (bad or {0: error.nodes[0]}).items():
            _refuse(samples[place], _reason(problem), outcome)
        bad = bad or {0: error.nodes[0]}
        samples = [s for i, s in enumerate(samples) if i not in bad]
    return _Import()


def _arrays(samples: Sequence[Sample]) -> list[np.ndarray]:
    return [t.contiguous().numpy() for s in samples for t in s.tensors()]


def _same_choice(sample: Sample, got: Tensor, want: Tensor) -> bool:
    """Indices of elements as large as PyTorch's: which of equal ones an unstable sort takes is nobody's promise."""
    source = sample.tensors()[0]
    for dim in range(source.dim()):
        for extra in ([], [dim]):
            own, other = got, want
            if extra and dim <= got.dim():
                own, other = got.unsqueeze(dim), want.unsqueeze(dim)
            if own.dim() != source.dim() or own.min() < 0 or own.max() >= source.shape[dim]:
                continue
            if any(a > b for d, (a, b) in enumerate(zip(own.shape, source.shape, strict=True)) if d != dim):
                continue
            if torch.equal(source.gather(dim, own), source.gather(dim, other)):
                return True
    return False


def _close(sample: Sample, i: int, got: Tensor) -> str | None:
    """None, or what differs: beyond PyTorch's tolerance, and further from the float64 result than PyTorch's own."""
    want = sample.expected[i]
    choice = got.dtype == want.dtype == torch.int64 and got.shape == want.shape and want.numel() > 0
    if sample.op in UNSTABLE and choice and _same_choice(sample, got, want):
        return None
    limits: dict[str, Any] = {}
    if sample.tolerance is not None and want.is_floating_point():
        probe = torch.testing._comparison.default_tolerances(want.dtype)
        limits = {"rtol": max(probe[0], sample.tolerance[1]), "atol": max(probe[1], sample.tolerance[0])}
    try:
        torch.testing.assert_close(got, want, equal_nan=True, **limits)
        return None
    except AssertionError as error:
        message = " ".join(str(error).split())
    if not want.is_floating_point() or sample.precise is None or got.shape != want.shape or got.dtype != want.dtype:
        return message
    exact = sample.precise[i]
    if exact.shape != want.shape or not exact.is_floating_point():
        return message
    own, theirs = (got.double() - exact).abs(), (want.double() - exact).abs()
    rtol, atol = torch.testing._comparison.default_tolerances(want.dtype)
    same = (got == want) | (got.isnan() & want.isnan()) | (got.double() == exact.to(got.dtype).double())
    fine = same | (own <= theirs.nan_to_num(0) * 2 + atol + rtol * exact.abs())
    return None if bool(fine.all()) else message


def _refused_by_build(sample: Sample, results: Sequence[Tensor]) -> str | None:
    """None, or why a verified build would refuse these results, all of which are right."""
    run = ReferenceRun(_Eager(sample), [_arrays([sample])])
    for i, got in enumerate(results):
        verdict = run.judge(0, i, got.numpy())
        if not verdict.ok:
            return f"a right result is refused: output {i} {verdict.why}"
    return None


def check(samples: list[Sample]) -> Outcome:
    """Exports, imports, runs and compares the samples of one operator: by PyTorch's tolerances, then by what a build
    calls equal."""
    outcome = Outcome()
    pending = [samples]
    while pending:
        batch = pending.pop()
        made = _imported(batch, outcome)
        results: list[Tensor] | None = None
        try:
            if made.model is not None:
                session = pn.Session(made.model.build(verify=False), target="cpu")
                results = [torch.from_numpy(np.array(r)) for r in session._core.run(_arrays(made.kept))]
        except _core.Error as error:
            if len(made.kept) == 1:
                outcome.wrong.append(f"{_text(made.kept[0])}: {error}")
                continue
        if results is None:
            pending += [[sample] for sample in made.kept]
            continue
        for place, sample in enumerate(made.kept):
            own, results = results[: len(sample.expected)], results[len(sample.expected) :]
            problems = [p for i, t in enumerate(own) if (p := _close(sample, i, t))]
            if not problems and sample.op not in UNSTABLE and (refused := _refused_by_build(sample, own)):
                problems.append(refused)
            if problems:
                outcome.wrong.append(f"{_text(sample)}: {problems[0]}")
            else:
                outcome.passed += 1
                outcome.decomposed += place in made.decomposed
    return outcome


def _text(sample: Sample) -> str:
    shown = [
        f"{str(leaf.dtype)[6:]}{list(leaf.shape)}" if isinstance(leaf, Tensor) else repr(leaf) for leaf in sample.leaves
    ]
    return f"{sample.op} {sample.dtype} ({', '.join(shown)})"


def _refuse(sample: Sample, reason: str, outcome: Outcome) -> None:
    outcome.refused_samples += 1
    outcome.refused.setdefault(f"{sample.op} {sample.dtype}", reason)
