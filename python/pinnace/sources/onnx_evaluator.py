"""ONNX's reference evaluator, with nine operators of our own.

Its convolutions take minutes in deep networks: here they are products of matrices. So do its ConvTranspose and
ScatterElements, and in detectors its NonMaxSuppression and RoiAlign (onnx_boxes.py). Its batch normalisation of
operator sets 9 to 13 mixes the statistics of the batch in wherever the file gives a momentum, which means something to
training alone (https://onnx.ai/onnx/operators/onnx__BatchNormalization.html). Its global maximum takes two axes,
wherever there are one or three. Its loops join what each round gives along the first axis, where ONNX asks for a new
one (https://onnx.ai/onnx/operators/onnx__Loop.html). Its GatherElements takes no fewer indices than elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pinnace.packages import import_package
from pinnace.sources.onnx_boxes import align, suppress
from pinnace.types import Array


def evaluator(model: Any, outputs: Sequence[str] = ()) -> Any:
    """The evaluator of a model, a path or a ModelProto; of `outputs` instead of its own, for a ModelProto."""
    import_package("onnx.reference")
    import onnx
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun
    from onnx.reference.ops import op_loop

    class Conv(OpRun):
        def _run(self, X: Array, W: Array, B: Array | None = None, **options: Any) -> tuple[Array, ...]:
            made = _convolution(X, W, options)
            return (made if B is None else made + B.reshape(1, -1, *[1] * (X.ndim - 2)),)

    class ConvTranspose(OpRun):
        def _run(self, X: Array, W: Array, B: Array | None = None, **options: Any) -> tuple[Array, ...]:
            made = _transposed_convolution(X, W, options)
            return (made if B is None else made + B.reshape(1, -1, *[1] * (X.ndim - 2)),)

    class BatchNormalization(OpRun):
        def _run(self, X: Array, scale: Array, B: Array, mean: Array, var: Array, **options: Any) -> tuple[Array, ...]:
            oldest = self.run_params["opsets"][""] < 7  # there is_test tells, and is 0 where it is left out
            trains = not options.get("is_test") if oldest else options.get("training_mode")
            if trains or sum(bool(name) for name in self.onnx_node.output) > 1:
                raise NotImplementedError("batch normalisation that is training")
            if mean.ndim != 1:
                raise NotImplementedError("batch normalisation of each element of a sample (spatial = 0)")
            over = (-1, *[1] * (X.ndim - 2))
            factor = scale / np.sqrt(var + options.get("epsilon", 1e-5))
            return (((X - mean.reshape(over)) * factor.reshape(over) + B.reshape(over)).astype(X.dtype),)

    class GlobalMaxPool(OpRun):
        def _run(self, X: Array) -> tuple[Array, ...]:
            return (X.max(axis=tuple(range(2, X.ndim)), keepdims=True),)

    class GatherElements(OpRun):
        def _run(self, data: Array, indices: Array, axis: int | None = None) -> tuple[Array, ...]:
            places: list[Array] = list(np.indices(indices.shape, sparse=True))
            places[axis or 0] = indices
            return (data[tuple(places)],)

    class ScatterElements(OpRun):
        def _run(
            self, data: Array, indices: Array, updates: Array, axis: int = 0, reduction: str = "none"
        ) -> tuple[Array, ...]:
            places: list[Array] = list(np.indices(indices.shape, sparse=True))
            places[axis] = indices
            made = data.copy()
            if reduction in (None, "none"):
                made[tuple(places)] = updates
            else:
                gather = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
                gather.at(made, tuple(places), updates)
            return (made,)

    class NonMaxSuppression(OpRun):
        def _run(
            self,
            boxes: Array,
            scores: Array,
            most: Array | None = None,
            overlap: Array | None = None,
            least: Array | None = None,
            center_point_box: int = 0,
        ) -> tuple[Array, ...]:
            given = [None if x is None or not x.size else x.reshape(-1)[0] for x in (most, overlap, least)]
            count, above, score = given
            limit = None if score is None else float(score)
            return (suppress(boxes, scores, int(count or 0), float(above or 0.0), limit, bool(center_point_box)),)

    class RoiAlign(OpRun):
        def _run(self, X: Array, rois: Array, batch_indices: Array, **options: Any) -> tuple[Array, ...]:
            if self.run_params["opsets"][""] < 16:  # without the attribute; it was added with another default
                options["coordinate_transformation_mode"] = "output_half_pixel"
            return (align(X, rois, batch_indices, options),)

    rounds: Any = op_loop.Loop

    class Loop(rounds):  # type: ignore[misc]
        def _run(
            self,
            M: Array | None,
            cond: Array | None,
            *carried: Array,
            context: dict[str, Array] | None = None,
            body: Any = None,
            **more: Any,
        ) -> tuple[Array, ...]:
            values, state = dict(context or {}), list(carried)
            scanned: list[list[Array]] = [[] for _ in range(self.K)]
            going, turn = cond is None or bool(cond), 0
            while going and (M is None or turn < int(np.asarray(M).reshape(()))):
                given = [np.array(turn, np.int64), np.array(going), *state]
                values.update(zip(self.body.input_names, given, strict=True))
                made = self._run_body(values, **more)
                going, state, turn = bool(made[0]), list(made[1 : 1 + self.N]), turn + 1
                for kept, value in zip(scanned, made[1 + self.N :], strict=True):
                    kept.append(value)
            if scanned and not turn:
                raise NotImplementedError("a loop without a round, whose outputs have no shape")
            return (*state, *(np.stack(kept) for kept in scanned))

    if outputs:
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        del changed.graph.output[:]
        changed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
        model = changed
    products = [Conv, ConvTranspose]
    elements = [BatchNormalization, GlobalMaxPool, GatherElements, ScatterElements]
    ours = [*products, *elements, NonMaxSuppression, RoiAlign, Loop]
    return ReferenceEvaluator(model, new_ops=ours)


def _convolution(x: Array, w: Array, options: dict[str, Any]) -> Array:
    """[n, c, ...] with [m, c / group, ...], without bias."""
    rank = x.ndim - 2
    group = int(options.get("group") or 1)
    strides = list(options.get("strides") or [1] * rank)
    dilations = list(options.get("dilations") or [1] * rank)
    kernel = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    pads = _padding(x.shape[2:], kernel, strides, options)
    x = np.pad(x, [(0, 0), (0, 0), *((pads[i], pads[i + rank]) for i in range(rank))])
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=tuple(range(2, 2 + rank)))
    places = tuple(slice(None, None, s) for s in strides)
    taps = tuple(slice(None, None, d) for d in dilations)
    windows = windows[(slice(None), slice(None), *places, *taps)]
    n, channels, out = x.shape[0], x.shape[1], windows.shape[2 : 2 + rank]
    made = np.empty((n, w.shape[0], *out), np.result_type(x, w))
    each_in, each_out = channels // group, w.shape[0] // group
    if each_in == 1 and each_out == 1:  # depthwise: one sum over the taps
        made = np.zeros((n, channels, *out), np.result_type(x, w))
        for tap in np.ndindex(*w.shape[2:]):
            made += windows[(..., *tap)] * w[(slice(None), 0, *tap)].reshape(1, -1, *[1] * rank)
        return made
    axes = [1, *range(2 + rank, 2 + 2 * rank)]
    for g in range(group):
        part, weights = windows[:, g * each_in : (g + 1) * each_in], w[g * each_out : (g + 1) * each_out]
        product = np.tensordot(part, weights, (axes, [1, *range(2, 2 + rank)]))
        made[:, g * each_out : (g + 1) * each_out] = np.moveaxis(product, -1, 1)
    return made


def _transposed_convolution(x: Array, w: Array, options: dict[str, Any]) -> Array:
    """[n, c, ...] with [c, m / group, ...], without bias. Source: https://onnx.ai/onnx/operators/onnx__ConvTranspose.html"""
    rank = x.ndim - 2
    group = int(options.get("group") or 1)
    strides = list(options.get("strides") or [1] * rank)
    dilations = list(options.get("dilations") or [1] * rank)
    more = list(options.get("output_padding") or [0] * rank)
    pads = list(options.get("pads") or [0] * (2 * rank))
    kernel = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    sizes = [s * (n - 1) + k + m for s, n, k, m in zip(strides, x.shape[2:], kernel, more, strict=True)]
    automatic = options.get("auto_pad") or "NOTSET"
    wanted = options.get("output_shape")
    if wanted is not None and len(wanted) > rank:
        wanted = wanted[-rank:]
    if wanted is None and automatic.startswith("SAME"):
        wanted = [n * s for n, s in zip(x.shape[2:], strides, strict=True)]
    if wanted is not None:
        total = [max(0, size - n) for size, n in zip(sizes, wanted, strict=True)]
        smaller, larger = [n // 2 for n in total], [n - n // 2 for n in total]
        pads = smaller + larger if automatic == "SAME_UPPER" else larger + smaller
        sizes = [max(size, n) for size, n in zip(sizes, wanted, strict=True)]
    elif automatic == "VALID":
        pads = [0] * (2 * rank)
    each_in, each_out = x.shape[1] // group, w.shape[1]
    made = np.zeros((x.shape[0], group * each_out, *sizes), np.result_type(x, w))
    for g in range(group):
        part, weights = x[:, g * each_in : (g + 1) * each_in], w[g * each_in : (g + 1) * each_in]
        for tap in np.ndindex(*w.shape[2:]):
            spans = zip(tap, dilations, strides, x.shape[2:], strict=True)
            places = tuple(slice(t * d, t * d + s * (n - 1) + 1, s) for t, d, s, n in spans)
            product = np.moveaxis(np.tensordot(part, weights[(..., *tap)], (1, 0)), -1, 1)
            made[(slice(None), slice(g * each_out, (g + 1) * each_out), *places)] += product
    inside = tuple(slice(pads[i], size - pads[i + rank]) for i, size in enumerate(sizes))
    return made[(slice(None), slice(None), *inside)]


def _padding(sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], options: dict[str, Any]) -> list[int]:
    """Before each axis, then behind each. SAME: so many that ceil(size / stride) results come out."""
    automatic = options.get("auto_pad") or "NOTSET"
    if automatic == "NOTSET":
        return list(options.get("pads") or [0] * (2 * len(sizes)))
    if automatic == "VALID":
        return [0] * (2 * len(sizes))
    needed = [max(0, (-(-n // s) - 1) * s + k - n) for n, k, s in zip(sizes, kernel, strides, strict=True)]
    smaller, larger = [n // 2 for n in needed], [n - n // 2 for n in needed]
    return smaller + larger if automatic == "SAME_UPPER" else larger + smaller


__all__ = ["evaluator"]
