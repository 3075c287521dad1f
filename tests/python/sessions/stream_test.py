"""load(stream=...): what networks give for chunks of any size, joined, is what they give for the whole."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import torch.nn.functional as F
from agreeing import assert_agree
from pinnace.program import core_of
from pinnace.verify.streams import run_in_chunks, splits
from stream_networks import NETWORKS, Network, Wave
from torch import nn

TARGETS = ["cpu", *(["vulkan,cpu"] if any(d.target == "vulkan" and d.available for d in pn.devices()) else [])]
# The operators of these networks that Vulkan has no kernel for.
NOT_ON_VULKAN = {"range", "tensor_scatter", "attention", "stft", "dft", "col2im"}
_BUILT: dict[str, tuple[pn.Program, nn.Module, torch.Tensor]] = {}


def seeded(network: Network) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(3)
    return network.make().eval(), torch.randn(network.shape)


def built(name: str) -> tuple[pn.Program, nn.Module, torch.Tensor]:
    """A network's program for chunks, built once, with the module and its example."""
    if name not in _BUILT:
        network = NETWORKS[name]
        module, x = seeded(network)
        shapes = [{network.axis: pn.Dim("t", 1, network.longest)}] if network.longest else None
        (argument,) = inspect.signature(module.forward).parameters
        model = pn.load(module, (x,), shapes, stream={argument: network.axis})
        _BUILT[name] = model.build(verify=False), module, x
    return _BUILT[name]


def whole(module: nn.Module, x: torch.Tensor) -> list[np.ndarray[Any, Any]]:
    with torch.no_grad():
        y = module(x)
    return [one.numpy() for one in (y if isinstance(y, tuple) else (y,))]


def behind_zeros(y: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What of a stream's output stands for `right`: all but the zeros by which it lags behind."""
    time = next((i for i in range(y.ndim) if y.shape[i] != right.shape[i]), 0)
    early, rest = np.split(y, [y.shape[time] - right.shape[time]], axis=time)
    assert not early.any()
    assert rest.shape == right.shape
    return rest


def held(program: pn.Program, session: pn.Session, x: torch.Tensor, want: Sequence[Any], sizes: Sequence[int]) -> None:
    """Chunks of these sizes, joined, are `want` behind zeros, within 1e-6 of its magnitude."""
    (name,) = program.stream
    got = run_in_chunks(session, {name: x.numpy()}, sizes)
    for y, right in zip(got.values(), want, strict=True):
        rest = behind_zeros(y, right)
        assert np.abs(rest - right).max(initial=0) <= 1e-6 * np.abs(right).max(), sizes


@pytest.mark.rotating
@pytest.mark.parametrize("name", NETWORKS)
def test_stream_says_axis_latency_and_multiple(name: str) -> None:
    program, _, _ = built(name)
    network = NETWORKS[name]
    (stream,) = program.stream.values()
    assert stream == pn.Stream(network.axis, network.latency, network.multiple)


@pytest.mark.rotating
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETWORKS)
def test_chunks_are_the_whole(name: str, target: str, rng: np.random.Generator) -> None:
    program, module, x = built(name)
    (stream,) = program.stream.values()
    session = pn.Session(program, target=target, threads=1)
    count = x.shape[stream.axis] // stream.multiple
    want = whole(module, x)
    random = [int(n) for n in rng.integers(1, 40, count)]
    for sizes in ([1] * count, [7] * (count // 7 + 1), [100] * (count // 100 + 1), random, [count]):
        if target != "cpu" and len(sizes) == count and count > 1:
            sizes = [1] * 20 + [count - 20]  # hundreds of runs are long on a software driver
        ends = np.minimum(np.cumsum(sizes), count)
        cut = [int(n) * stream.multiple for n in np.diff(ends, prepend=0) if n]
        held(program, session, x, want, cut)
    if target != "cpu":
        # Sizes are computed once for each size of chunk, ahead of its runs.
        assert {row.op for row in session.placement if row.backend not in ("vulkan", "none")} <= NOT_ON_VULKAN


@pytest.mark.rotating
@pytest.mark.parametrize("isa", ["", "sse2", "avx2"])
@pytest.mark.parametrize("name", NETWORKS)
def test_shape_invariant_chunks_have_the_bits_of_the_whole(name: str, isa: str, rng: np.random.Generator) -> None:
    program, module, x = built(name)
    (stream,) = program.stream.values()
    (argument,) = program.inputs
    target = f"cpu:{isa}" if isa else "cpu"
    count = x.shape[stream.axis] // stream.multiple
    used = {argument: x.numpy().take(range(count * stream.multiple), stream.axis)}
    # With sizes that are open: others are computed with at conversion, by reference code.
    longest = NETWORKS[name].longest or 4000 * stream.multiple
    time = {stream.axis: pn.Dim("t", stream.multiple, longest, multiple_of=stream.multiple)}
    whole_program = pn.load(module, (torch.from_numpy(used[argument]),), [time]).build(verify=False)
    want = pn.Session(whole_program, target=target, shape_invariant=True).run(used)
    session = pn.Session(program, target=target, shape_invariant=True, threads=1)
    random = [int(n) for n in rng.integers(1, 40, count)]
    for sizes in ([1] * count, [7] * (count // 7 + 1), random, [count]):
        ends = np.minimum(np.cumsum(sizes), count)
        cut = [int(n) * stream.multiple for n in np.diff(ends, prepend=0) if n]
        got = run_in_chunks(session, used, cut)
        for y, right in zip(got.values(), want.values(), strict=True):
            differ = np.flatnonzero(behind_zeros(y, right) != right)
            assert not len(differ), (sizes[:3], len(differ), [(row.op, row.kernel) for row in session.placement])


def test_shape_invariant_batches_have_the_bits_of_their_parts() -> None:
    """Convolutions of which others would take Winograd's, and sums over dimensions before others."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.Softmax(1), nn.Conv2d(32, 16, 1), nn.Flatten(2)).eval()
    example = torch.randn(4, 16, 12, 12)
    program = pn.load(module, (example,), [{0: pn.Dim("n", 1, 8)}]).build(verify=False)
    (x,) = program.inputs
    session = pn.Session(program, target="cpu", shape_invariant=True)
    assert session.precision == "fp32"
    (together,) = session.run({x: example.numpy()}).values()
    for i in range(4):
        (part,) = session.run({x: example.numpy()[i : i + 1]}).values()
        np.testing.assert_array_equal(part, together[i : i + 1])
    (usual,) = pn.Session(program, target="cpu").run({x: example.numpy()}).values()
    assert_agree(together, usual)
    (again,) = copy.copy(session).run({x: example.numpy()}).values()
    np.testing.assert_array_equal(again, together)
    with pytest.raises(pn.InvalidArgument, match="needs the precision fp32, was given bf16"):
        pn.Session(program, target="cpu", precision="bf16", shape_invariant=True)
    with pytest.raises(pn.Unsupported, match="is the CPU's alone, not softmetal's"):
        pn.Session(program, target="softmetal", shape_invariant=True)
    assert {row.backend for row in pn.Session(program, shape_invariant=True).placement} <= {"cpu", "none"}


def test_a_build_verifies_in_chunks() -> None:
    module, x = seeded(NETWORKS["wave"])
    program = pn.load(module, (x,), stream={"x": 2}).build()
    assert "whole by torch" in program.metadata.verified
    assert program.metadata.verified_on["cpu"].startswith("yes: largest relative difference")
    assert "chunks of 1, chunks of 7, random chunks, one chunk" in program.metadata.verified_on["cpu"]
    again = pn.Program.from_bytes(program.to_bytes())
    assert again.stream == program.stream == {"x": pn.Stream(2, 15, 1)}


def test_a_planted_error_is_found() -> None:
    """A state of one element more: each window begins one element too early, as if it were one late."""
    module, x = seeded(NETWORKS["causal_wave"])
    model = pn.load(module, (x,), stream={"x": 2})
    right = model._core
    assert model.build().metadata.verified
    text = right.text(1 << 30)
    state = re.search(r'state "(gates\.3\.tail)" %gates\.3\.tail : f32\[1,8,8\] next %(\S+) = \{(.*?)\}', text)
    assert state, text
    longer = state[0].replace("[1,8,8]", "[1,8,9]").replace(state[3], ",".join(["0"] * 72))
    text = text.replace(state[0], f"const %planted : i64[1] = {{-9}}\n  {longer}")
    text = re.sub(rf"(%{re.escape(state[2])} : .*? = slice@1 .*?\(%\S+, )%[^,]*,", r"\1%planted,", text)
    joined = re.search(r'%gates\.3 : .* = conv@1 "gates\.3" \((%[^,]*),', text)
    assert joined
    cut = f"%shorter = slice({joined[1]}, %p_first, %p_last, %p_axis)"
    ints = "const %p_first : i64[1] = {0} const %p_last : i64[1] = {-1} const %p_axis : i64[1] = {2}"
    text = text.replace(joined[0], f"{ints}\n  {cut}\n  {joined[0].replace(joined[1], '%shorter')}")
    core = type(right).parse(text, disabled_passes=["all"])
    model._core = _WithFacts(core, right.facts)  # type: ignore[assignment]
    with pytest.raises(pn.VerificationError, match="in chunks of 1: output"):
        model.build()


class _WithFacts:
    """A model of the extension whose programs record what another says of its stream."""

    def __init__(self, core: Any, facts: dict[str, str]) -> None:
        self._core, self._facts = core, facts

    def build(self, targets: list[str], metadata: dict[str, str]) -> Any:
        return self._core.build(targets, {**metadata, **self._facts})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["unet", "lstm_ahead", "transformer", "wave"])
def test_streams_interleave_and_are_saved_restored_and_forked(name: str, target: str) -> None:
    """Two streams chunk by chunk in turn; in the middle one is forked, and one goes on in another session from the
    bytes of its states. Each gives the bits of a session that nothing happened to."""
    program, _, x = built(name)
    ((argument, stream),) = program.stream.items()
    step = 4 * stream.multiple
    cuts = np.split(x.numpy(), range(step, x.shape[stream.axis], step), axis=stream.axis)
    cuts = [cut for cut in cuts if cut.shape[stream.axis] % stream.multiple == 0][:20]

    def run(session: pn.Session, cut: Any, sign: float) -> list[Any]:
        return [np.array(y) for y in session.run({argument: sign * cut}).values()]

    def ended(session: pn.Session) -> list[Any]:
        return [np.array(y) for y in session.finish().values()]

    wanted: list[list[Any]] = []
    for sign in (1.0, -0.5):
        session = pn.Session(program, target=target)
        wanted.append([*(run(session, cut, sign) for cut in cuts), ended(session)])
    sessions = [pn.Session(program, target=target) for _ in range(2)]
    found: list[list[Any]] = [[], [], []]
    for at, cut in enumerate(cuts):
        if at == len(cuts) // 2:
            sessions.append(sessions[0].fork())
            found[2] = list(found[0])
            saved = sessions[1].save_state()
            sessions[1] = pn.Session(program, target=target)
            sessions[1].restore_state(saved)
        for i, session in enumerate(sessions):
            found[i].append(run(session, cut, -0.5 if i == 1 else 1.0))
    for i, session in enumerate(sessions):
        found[i].append(ended(session))
        for chunk, right in zip(found[i], wanted[i % 2], strict=True):
            for y, exact in zip(chunk, right, strict=True):
                np.testing.assert_array_equal(y, exact)


def test_finish_begins_another_stream() -> None:
    program, module, x = built("wave")
    session = pn.Session(program, target="cpu")
    for sign in (1, -1):
        held(program, session, sign * x, whole(module, sign * x), [64, x.shape[2] - 64])
    session.run({"x": x.numpy()[:, :, :5]})  # shorter than the latency
    short = next(iter(session.finish().values()))
    assert short.shape == (1, 1, 15)
    want = whole(module, x[:, :, :5])[0]
    assert np.abs(short[:, :, 10:] - want).max() <= 1e-6 * np.abs(want).max()
    with pytest.raises(pn.InvalidArgument, match="takes what is left"):
        session.finish({"x": x.numpy()})
    plain = pn.Session(pn.load(nn.Conv1d(1, 1, 1), torch.ones(1, 1, 4)).build(), target="cpu")
    with pytest.raises(pn.InvalidArgument, match="the program has none"):
        plain.finish()


def test_a_causal_network_has_no_masks_and_no_counter() -> None:
    for name in ("tcn", "causal_wave", "gru"):
        program, _, _ = built(name)
        assert not [s for s in program.states if s.endswith((".seen", ".open"))], name
        assert not [n for n in program.nodes if n.op == "where"], name
    program, _, _ = built("wave")
    assert {"x.seen", "x.open"} <= set(program.states)


def test_sizes_of_chunks_are_checked() -> None:
    program, _, x = built("unet")
    session = pn.Session(program, target="cpu")
    with pytest.raises(pn.InvalidArgument, match="multiple"):
        session.run({"x": x.numpy()[:, :, :20]})
    program, _, x = built("transformer")
    session = pn.Session(program, target="cpu")
    for _ in range(0, 240, 60):
        session.run({"x": np.zeros((2, 60, 8), np.float32)})
    with pytest.raises(pn.InvalidArgument, match="keys"):
        session.run({"x": np.zeros((2, 1, 8), np.float32)})


class _Refused(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.both = nn.GRU(4, 4, bidirectional=True, batch_first=True)
        self.group = nn.GroupNorm(1, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "mean":
            return x - x.mean(2, keepdim=True)
        if self.kind == "pool":
            return F.adaptive_avg_pool1d(x, 1)
        if self.kind == "bidirectional":
            made: torch.Tensor = self.both(x.transpose(1, 2))[0]
            return made
        if self.kind == "circular":
            return F.pad(x, (2, 2), mode="circular")
        if self.kind == "group":
            group: torch.Tensor = self.group(x)
            return group
        if self.kind == "softmax":
            return x.softmax(2)
        if self.kind == "last":
            return x[:, :, -3:] + 1
        if self.kind == "first":
            return x[:, :, :3] + 1
        if self.kind == "flip":
            return x.flip(2)
        if self.kind == "scores":
            return torch.einsum("bct,bcs->bts", x, x)
        assert self.kind == "length"
        return x / x.shape[2]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("mean", "along time"),
        ("pool", ""),
        ("bidirectional", "backwards"),
        ("circular", "last elements|other end of time"),
        ("group", ""),
        ("softmax", "along time"),
        ("last", "last elements"),
        ("first", "first elements"),
        ("flip", "backwards|no rule"),
        ("scores", ""),
        ("length", "number of elements"),
    ],
)
def test_what_needs_the_future_is_refused_by_name(kind: str, why: str) -> None:
    with pytest.raises(pn.ConversionError, match=why or None) as refused:
        pn.load(_Refused(kind), torch.randn(1, 4, 16), stream={"x": 2})
    (node, *_) = refused.value.nodes
    assert all((node.node, node.op, node.rule))
    assert "stream_test.py" in node.source


def test_arguments_are_checked() -> None:
    net, x = Wave(True), torch.randn(1, 1, 30)
    for stream, why in [
        ({}, "dict input name"),
        ([("x", 2)], "dict input name"),
        ({"x": "2"}, "no input name with an axis"),
        ({"y": 2}, "no such input"),
        ({"x": 5}, "rank 3|dimension"),
    ]:
        with pytest.raises(pn.InvalidArgument, match=why):
            pn.load(net, (x,), stream=stream)  # type: ignore[arg-type]
    with pytest.raises(pn.InvalidArgument, match="fixed size"):
        pn.load(net, (x,), {"x": None}, stream={"x": 2})
    model = pn.load(net, (x,), stream={"x": -1})
    assert model.build().stream["x"].axis == 2


@pytest.mark.parametrize("options", [pn.WeightOnly(), pn.WeightOnly(bits=4, block=8, symmetric=False)])
def test_weights_of_streams_are_stored(options: pn.WeightOnly) -> None:
    """Held twice: the whole against the floats that its integers stand for, chunks against the whole."""
    module, x = seeded(NETWORKS["lstm_ahead"])
    model = pn.load(module, (x,), stream={"x": NETWORKS["lstm_ahead"].axis})
    targets = ["cpu", *(["vulkan"] if len(TARGETS) > 1 else [])]
    program = model.build(targets, quantize=options, input_names=["sound"], output_names=["clean"])
    assert list(program.stream) == ["sound"]
    assert list(program.streamed_outputs) == ["clean"]
    assert "whole by the quantised program of the whole" in program.metadata.verified
    assert all(said.startswith("yes") for said in program.metadata.verified_on.values())
    assert program.quantization is not None
    assert {row.op for row in program.quantization.rows if not row.kept_float} >= {"lstm"}
    stored = sum(c["bytes"] for c in core_of(program).constants)
    assert stored < 0.7 * sum(c["bytes"] for c in core_of(model.build()).constants)  # convolutions stay in float
    session = pn.Session(program, "cpu")
    got = run_in_chunks(session, {"sound": x.numpy()}, [7] * (x.shape[NETWORKS["lstm_ahead"].axis] // 7))
    (want,) = whole(module, x)
    y = got["clean"]
    time = next(i for i in range(y.ndim) if y.shape[i] != want.shape[i]) if y.shape != want.shape else 1
    late = program.stream["sound"].latency
    exact = np.take(want, range(y.shape[time] - late), axis=time)
    error = np.abs(np.take(y, range(late, y.shape[time]), axis=time) - exact).max() / np.abs(want).max()
    assert 0 < error < 0.1
    assert model.build(quantize=options, verify=False).metadata.verified.startswith("no")


def quantised(name: str, options: Any, targets: Sequence[str] = ("cpu",)) -> tuple[pn.Program, pn.Program]:
    """The network's programs for chunks and for the whole, quantised alike."""
    network = NETWORKS[name]
    module, x = seeded(network)
    (argument,) = inspect.signature(module.forward).parameters
    longest = network.longest or 4000 * network.multiple
    time = {network.axis: pn.Dim("t", network.multiple, longest, multiple_of=network.multiple)}
    made = options() if not issubclass(options, pn.Int8) else pn.Int8(calibration=[{argument: x}])
    in_chunks = pn.load(module, (x,), [time], stream={argument: network.axis}).build(targets, quantize=made)
    return in_chunks, pn.load(module, (x,), [time]).build(quantize=made, verify=False)


@pytest.mark.rotating
@pytest.mark.parametrize("name", ["tcn", "wave", "conv_tasnet", "unet", "mirrored", "picture"])
def test_integers_of_chunks_are_those_of_the_whole(name: str, rng: np.random.Generator) -> None:
    """To the bit, on a session of any kind; the states hold integers."""
    program, of_the_whole = quantised(name, pn.Int8)
    _, x = seeded(NETWORKS[name])
    ((argument, stream),) = program.stream.items()
    count = x.shape[stream.axis] // stream.multiple
    used = {argument: x.numpy().take(range(count * stream.multiple), stream.axis)}
    (want,) = pn.Session(of_the_whole, target="cpu").run(used).values()
    session = pn.Session(program, target="cpu")
    assert "uint8" in {str(spec.dtype) for spec in program.states.values()}
    for sizes in ([1] * count, [int(n) for n in rng.integers(1, 40, count)], [count]):
        cut = [int(n) * stream.multiple for n in np.diff(np.minimum(np.cumsum(sizes), count), prepend=0) if n]
        (y,) = run_in_chunks(session, used, cut).values()
        np.testing.assert_array_equal(behind_zeros(y, want), want)
    middle = count // 2 * stream.multiple
    first, second = np.split(used[argument], [middle], axis=stream.axis)
    session.run({argument: first})
    other = pn.Session(program, target="cpu")
    other.restore_state(session.save_state())
    (went_on,), (restored,) = (s.run({argument: second}).values() for s in (session, other))
    np.testing.assert_array_equal(restored, went_on)


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mirrored", pn.Int8), ("lstm_ahead", pn.Int8), ("transformer", pn.Int8), ("denoiser", pn.DynamicInt8),
        ("frames", pn.DynamicInt8), ("lstm", pn.DynamicInt8), ("picture", pn.Float16), ("lstm_ahead", pn.Float16),
    ],
)  # fmt: skip
def test_streams_are_quantised(name: str, options: Any) -> None:
    """On every target that can run here; held against the quantised whole."""
    targets = [d.target for d in pn.devices() if d.available and d.target in ("cpu", "vulkan", "softmetal")]
    program, _ = quantised(name, options, targets)
    assert "whole by the quantised program of the whole" in program.metadata.verified
    assert set(program.metadata.verified_on) >= set(targets)
    assert all(said.startswith("yes") for said in program.metadata.verified_on.values())
    assert program.quantization is not None
    assert any(not row.kept_float for row in program.quantization.rows)
    network = NETWORKS[name]  # quantisers between a pad and its window make nothing later
    assert list(program.stream.values()) == [pn.Stream(network.axis, network.latency, network.multiple)]


def test_splits_cover_every_element() -> None:
    for count in (1, 2, 7, 8, 50, 1000):
        for _, sizes in splits(count * 4, 4):
            assert sum(sizes) == count * 4
            assert all(size > 0 and size % 4 == 0 for size in sizes)


@pytest.mark.parametrize("target", [d.target for d in pn.devices() if d.available and d.target != "cpu"])
def test_networks_that_look_ahead_run_on_devices_of_32_bits(target: str) -> None:
    module, x = seeded(NETWORKS["wave"])
    program = pn.load(module, (x,), stream={"x": 2}).build([target])
    said = program.metadata.verified_on[target]
    ran, nodes = map(int, re.search(r"(\d+) of (\d+) nodes ran there", said).groups())  # type: ignore[union-attr]
    assert said.startswith("yes"), said
    assert ran > nodes / 2, said


def test_compare_takes_another_stream_alone() -> None:
    module, x = seeded(NETWORKS["wave"])
    program = pn.load(module, (x,), stream={"x": 2}).build()
    chunk = {"x": x[:, :, :16]}
    assert pn.compare(program, program, chunk).ok
    with pytest.raises(pn.InvalidArgument, match="takes \\['x'\\] in chunks"):
        pn.compare(program, module, chunk)


@pytest.mark.parametrize(
    ("key", "lie", "error"),
    [
        ("streamed.y", "axis 2, rate 1/1, more 2000000000", None),  # more than there is: what there is comes
        ("streamed.y", "axis 9, rate 1/1, more 0", "not of the form"),
        ("streamed.y", "axis 2, rate 1/0, more 0", "not of the form"),
        ("streamed.y", "axis 2, rate 1/1, more 0, and more", "not of the form"),
        ("streamed.y", "axis 2, rate 1/1, more -", "not of the form"),
        ("streamed.z", "axis 2, rate 1/1, more 0", "no input or output"),
        ("stream.y", "axis 2, latency 0, multiple 1, tail 0", "no input or output"),
        ("stream.x", "axis 2, latency 15, multiple 1, tail 4000", None),
        ("stream.x", "axis 7, latency 15, multiple 1, tail 15", "not of the form"),
        ("stream.x", "axis 2, latency 99999999999, multiple 1, tail 15", "not of the form"),
        ("stream.x", "axis 2, latency 15, multiple 0, tail 15", "not of the form"),
        ("stream.x", "axis 2, latency -1, multiple 1, tail 15", "not of the form"),
        ("stream.x", "a stream", "not of the form"),
    ],
)
def test_metadata_that_lie_about_a_stream_are_survived(key: str, lie: str, error: str | None) -> None:
    module, x = seeded(NETWORKS["wave"])
    program = pn.load(module, (x,), stream={"x": 2}).build(verify=False, output_names=["y"])
    session = pn.Session(program.with_metadata({key: lie}))
    session.run({"x": x[:, :, :40]})
    before = session.save_state()
    if error is None:
        assert session.finish()["y"].shape[2] == 15
        return
    with pytest.raises(pn.CorruptFile, match=error):
        session.finish()
    assert session.save_state() == before
