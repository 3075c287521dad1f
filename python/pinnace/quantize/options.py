"""What a user asks of a quantisation: Int8, WeightOnly, DynamicInt8, Float16."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from pinnace import _core
from pinnace.cluster import check_client, check_here, is_partitioned
from pinnace.program import NodeInfo
from pinnace.types import Array

# A program as a function: arrays by input, arrays by output.
Run = Callable[[Mapping[str, Any]], dict[str, Array]]
OBSERVERS = ("minmax", "percentile", "mse", "entropy")


@dataclass(frozen=True, kw_only=True)
class Int8:
    """Static quantisation to 8-bit integers: weights with a scale for each output channel, other values with one scale
    and zero point each, which follow from runs on samples. Tables whose rows are gathered, and the weights of recurrent
    cells, which compute in float, are stored in 8 bits, with a scale for each 64 numbers of a row.

    calibration      the samples: arrays by input name, or arrays in the order of the inputs, for each call. A list, a
                     generator, a torch DataLoader; or a function that makes one. It is read once, one sample after the
                     other.
    observer         how the range of a value follows from what was seen of it: "minmax"; "percentile", which leaves out
                     the tails; "mse", whose steps have the least mean square error; "entropy", whose steps lose the
                     least information.
    percentile       of the observer "percentile": the part of elements, in per cent, that is inside on either side.
    bias_correction  takes the mean error that rounded weights make off the biases.
    equalize         evens out the ranges of channels between neighbouring layers first.
    skip             names of nodes, modules ("decoder.0") or operators that stay in float; * and ? as in file names.
                     A node that became a part of another one, as a convolution of the activation behind it, may be
                     called by the name of either. One that the program does not have is refused.
    metric           metric(run) -> float, higher is better, where run(arrays by input) gives arrays by output. Decides
                     with max_drop which layers stay in float.
    max_drop         how much less than the float program's the metric may be; "0.5%": of the float program's. Without
                     a metric: the largest error of an output (root mean square over the samples, relative to that of
                     the output). None: every layer that can be is quantised. Layers that stay in float for it keep
                     their weights in 8 bits where that is good enough.
    progress         shows on a terminal how far the calibration is; with a client and a data set of Dask's also in a
                     notebook.
    client           a dask.distributed.Client (pip install pinnace[dask]): samples and candidates of accuracy control
                     run on its workers. The bytes of the program are the same with it and without, however the data
                     set is divided, where workers have the instruction set of this machine. `calibration` may then also
                     be a Dask bag or a list of delayed partitions, each an iterable of samples, which are read on the
                     workers; samples of any other are sent to them, a few MB at a time. `metric` is pickled, and called
                     on several threads where workers have several. Without a client, each run uses this process's
                     threads.

    InvalidArgument: a value that is none of these.
    """

    calibration: Iterable[Any] | Callable[[], Iterable[Any]]
    observer: str = "minmax"
    percentile: float = 99.99
    bias_correction: bool = True
    equalize: bool = True
    skip: Sequence[str] = ()
    metric: Callable[[Run], float] | None = None
    max_drop: float | str | None = None
    progress: bool = True
    client: Any = None

    def __post_init__(self) -> None:
        """Refuses what no quantisation could be made of, before anything runs."""
        check_client(self.client)
        if self.client is None:
            check_here(self.calibration, "calibration")
        else:
            is_partitioned(self.calibration)
        _check_calibration(self.calibration)
        if self.observer not in OBSERVERS:
            raise _core.InvalidArgument(f"observer must be one of {', '.join(OBSERVERS)}, is {self.observer!r}")
        if not _is_number(self.percentile) or not 50 < self.percentile <= 100:
            raise _core.InvalidArgument(f"percentile must be above 50 and at most 100, is {self.percentile!r}")
        _check_skip(self.skip)
        if self.metric is not None and not callable(self.metric):
            raise _core.InvalidArgument(f"metric must be a function of a program, is {type(self.metric).__name__}")
        if self.metric is not None and self.max_drop is None:
            raise _core.InvalidArgument("metric needs max_drop: how much less than the float program's it may be")
        self.allowed(1.0)

    def allowed(self, of_float: float) -> float | None:
        """The drop that max_drop allows where the float program's metric is `of_float`; None where it says nothing.
        InvalidArgument: max_drop is neither a number nor a part.
        """
        if self.max_drop is None:
            return None
        text = self.max_drop
        relative = isinstance(text, str) and text.strip().endswith("%")
        try:
            number = float(text.strip().removesuffix("%")) if isinstance(text, str) else float(text)
        except (TypeError, ValueError):
            number = math.nan
        if not number >= 0 or math.isinf(number) or isinstance(text, bool) or (isinstance(text, str) and not relative):
            raise _core.InvalidArgument(f'max_drop must be a number from 0 on, or a part such as "0.5%", is {text!r}')
        if not relative:
            return number
        return number / 100 * (abs(of_float) if self.metric is not None else 1.0)


@dataclass(frozen=True, kw_only=True)
class WeightOnly:
    """Weights as integers that products read as they are, and arithmetic in float: smaller files and less memory.
    Products (gemm, mat_mul) by constant matrices are stored so, and tables whose rows are gathered, these in 8 bits
    where a row has an odd length. Weights of recurrent cells (lstm, gru, rnn) are stored so too; floats are made of
    them once, when a session is made, so that they save room in the file and none in memory. Programs that take chunks
    can have it.

    bits         8 or 4.
    block        so many weights, along what a product or a gate sums or a gathered row, share a scale: 32, 64, 128, any
                 multiple of 8; None: all of them.
    symmetric    False: with zero points, for weights that lie on one side of 0.
    skip         as for Int8.
    calibration  samples, as for Int8: weights of products are rounded so that what the samples multiply them by gives
                 the least errors of products (GPTQ), rather than each to the nearest. Some dozens will do; they are
                 kept in memory. None: to the nearest, without samples.
    progress     as for Int8.

    InvalidArgument: a value that is none of these.
    """

    bits: int = 8
    block: int | None = None
    symmetric: bool = True
    skip: Sequence[str] = ()
    calibration: Iterable[Any] | Callable[[], Iterable[Any]] | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        """Refuses other values."""
        if self.calibration is not None:
            check_here(self.calibration, "calibration")
            _check_calibration(self.calibration)
        if self.bits not in (4, 8) or isinstance(self.bits, bool):
            raise _core.InvalidArgument(f"bits must be 8 or 4, is {self.bits!r}")
        block = self.block
        if block is not None and not (isinstance(block, int) and not isinstance(block, bool) and 0 < block < 2**31):
            raise _core.InvalidArgument(f"block must be a multiple of 8, or None, is {block!r}")
        if block is not None and block % 8:
            raise _core.InvalidArgument(f"block must be a multiple of 8, or None, is {block!r}")
        _check_skip(self.skip)


@dataclass(frozen=True, kw_only=True)
class DynamicInt8:
    """Products (gemm, mat_mul) by constant matrices in 8-bit integers, without samples: weights with one scale for each
    column, and what multiplies them rounded when it is there, each row with a scale and a zero point of its own. Tables
    whose rows are gathered and weights of recurrent cells are stored in 8 bits. Everything else stays in float, what
    cells compute included.

    skip       as for Int8.

    InvalidArgument: a value that is none of these.
    """

    skip: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuses other values."""
        _check_skip(self.skip)


@dataclass(frozen=True, kw_only=True)
class Float16:
    """Constants and arithmetic in float16, without samples: half the file, and what a target's float16 kernels save.
    Inputs, outputs and states stay float32. So do nodes whose operators have no float16, whose constants float16 has no
    room for, and which make or read a value that reaches half of float16's largest, 65,504, on the examples. Where a
    target has no float16 arithmetic, it computes in float32 and rounds results.

    skip       as for Int8.

    InvalidArgument: a value that is none of these.
    """

    skip: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuses other values."""
        _check_skip(self.skip)


def _check_calibration(calibration: object) -> None:
    if not callable(calibration) and not isinstance(calibration, Iterable):
        raise _core.InvalidArgument(
            f"calibration must be an iterable of samples, or a function that makes one, is {type(calibration).__name__}"
        )
    if isinstance(calibration, (str, bytes, Mapping)):
        kind = type(calibration).__name__
        raise _core.InvalidArgument(f"calibration must hold samples, with arrays for all inputs; is one {kind}")


def _check_skip(skip: Any) -> None:
    if isinstance(skip, str) or not isinstance(skip, Iterable) or not all(isinstance(name, str) for name in skip):
        raise _core.InvalidArgument(f"skip must be a list of names, is {skip!r}")


def skipped_nodes(
    nodes: Iterable[NodeInfo], patterns: Sequence[str], merged: Sequence[tuple[str, str]] = ()
) -> dict[str, str]:
    """By name of the nodes that a pattern of skip= names: which one. merged: what passes made a part of another node,
    as the extension's model has it. InvalidArgument: a pattern names none.
    """
    listed = list(nodes)
    own = {node.name for node in listed}
    parts: dict[str, str] = {}  # names of what is no node any more, by name of what it is a part of
    for part, whole in reversed(merged):
        parts.setdefault(part, parts.get(whole, whole))
    former = {part: whole for part, whole in parts.items() if whole in own and part not in own}
    by_pattern = {
        pattern: [node.name for node in listed if _names(pattern, node)]
        + [whole for part, whole in former.items() if fnmatchcase(part, pattern)]
        for pattern in patterns
    }
    if unused := [pattern for pattern, found in by_pattern.items() if not found]:
        known = {name for node in listed for name in (node.name, node.op, node.module) if name} | set(former)
        near = [name for pattern in unused for name in get_close_matches(pattern, known, 1)]
        raise _core.InvalidArgument(
            f"skip: {', '.join(map(repr, unused))} names no node, module or operator of the program: `nodes` has them"
            + (f"; is {', '.join(map(repr, near))} meant?" if near else "")
        )
    found: dict[str, str] = {}
    for pattern, names in by_pattern.items():
        for name in names:
            found.setdefault(name, f"skip={pattern!r}")
    return found


def _names(pattern: str, node: NodeInfo) -> bool:
    own = any(fnmatchcase(name, pattern) for name in (node.name, node.op, node.module))
    return own or fnmatchcase(node.module, f"{pattern}.*")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


__all__ = ["OBSERVERS", "DynamicInt8", "Float16", "Int8", "Run", "WeightOnly", "skipped_nodes"]
