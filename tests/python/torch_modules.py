"""Small modules that import_torch_test exports, one per group of operators; CASES has them by name.

Inputs are functions of a generator, so that every case runs on several seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # declares torch.ops.quantized_decomposed
import torch.nn.functional as F
from torch import Tensor, nn

Inputs = Callable[[torch.Generator, int], tuple[Tensor, ...]]


@dataclass
class Case:
    module: Callable[[], nn.Module]
    inputs: Inputs  # of a generator and a batch size
    dynamic: Any = None  # dynamic_shapes of export
    sizes: tuple[int, ...] = (2,)  # batch sizes: the first is exported, all are run
    tolerance: float = 1e-5  # of the largest magnitude
    steps: int = 1  # how often a model with state is run


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


def floats(*shape: int) -> Inputs:
    return lambda g, n: (torch.randn(*shape, generator=g),)


def batched(*shape: int) -> Inputs:
    return lambda g, n: (torch.randn(n, *shape, generator=g),)


def two(a: tuple[int, ...], b: tuple[int, ...]) -> Inputs:
    return lambda g, n: (torch.randn(*a, generator=g), torch.randn(*b, generator=g))


def ints(low: int, high: int, *shape: int) -> Inputs:
    return lambda g, n: (torch.randint(low, high, shape, generator=g),)


BATCH = torch.export.Dim("batch", min=1, max=64)


def elementwise(x: Tensor, y: Tensor) -> Any:
    p = x.abs() + 0.5
    return (
        x + y, x - y * 2, torch.rsub(x, y, alpha=3), x * y, x / p, torch.add(x, y, alpha=0.5), x.neg(), p.sqrt(),
        p.rsqrt(), p.log(), p.log2(), p.log10(), p.log1p(), (x / 4).exp(), (x / 4).expm1(), x.sin(), x.cos(),
        x.tanh(), x.atan(), x.erf(), p.reciprocal(), p**1.5, x**2, x**3, 2.0**x, torch.maximum(x, y),
        torch.minimum(x, y), x.clamp(-0.5, 0.5), x.clamp(min=0.1), x.clamp_max(y), torch.lerp(x, y, 0.3),
        torch.addcmul(x, y, y, value=0.5), torch.addcdiv(x, y, p, value=2), x.sign(), x.floor(), x.ceil(), x.round(),
        x.trunc(), x.frac(), torch.atan2(x, y), torch.nan_to_num(x / 0.0), p.exp2(), x.erfc(), x.asinh(),
        x.sinh() / 10, x.cosh() / 10, (x / 10).asin(), (x / 10).acos(), (x / 10).atanh(), x.tan() / 100,
        (p + 1).acosh(), x.square(), torch.where(x > y, x, y), torch.where(x > 0, 1.0, y), x.masked_fill(x > 0, -1.0),
    )  # fmt: skip


def integers(a: Tensor, b: Tensor) -> Any:
    return (
        a + b, a * 3, a // 4, a // -4, a % 5, a % -5, a / 4, torch.div(a, 3, rounding_mode="trunc"),
        torch.div(a, 3, rounding_mode="floor"), a & b, a | b, a ^ b, ~a, a << 1, a >> 1, a == b, a != b, a < b,
        a >= 3, a > 0.5, a + 0.5, a * True, a.float() // 3, a.float() % 3, a.float() % -3, torch.fmod(a, 3),
        torch.fmod(a.float(), -3), a.to(torch.int32) + b, a.bool() & b.bool(), a.bool() | b.bool(),
        a.bool() + b.bool(), a.sum(), a.prod(dim=1), a.cumsum(0), a.abs(), -a, a.clamp(0, 3), a**2, (a > 0).sum(),
        a.max(), a.float().exp(), a.to(torch.uint8), a.byte() + 3, torch.logical_not(a), torch.logical_and(a, b),
        torch.logical_xor(a, b), a.sin(), (a > 0) == (b > 0), a.float() + b.double(),
    )  # fmt: skip


def activations(x: Tensor) -> Any:
    return (
        F.relu(x), F.relu6(x), F.hardtanh(x, -0.3, 0.7), F.hardswish(x), F.hardsigmoid(x), F.silu(x), F.gelu(x),
        F.gelu(x, approximate="tanh"), F.elu(x, 0.7), F.selu(x), F.celu(x, 0.5), F.leaky_relu(x, 0.2), F.softplus(x),
        F.softplus(x, 2.0, 5.0), F.mish(x), F.softsign(x), F.tanhshrink(x), F.hardshrink(x, 0.3),
        F.softshrink(x, 0.3), F.threshold(x, 0.1, 2.0), F.logsigmoid(x), F.glu(x, 1), torch.sigmoid(x),
        F.softmax(x, -1), F.log_softmax(x, 1), F.softmax(x, 0, dtype=torch.float64), torch.logit(torch.sigmoid(x)),
        F.dropout(x, 0.5, False), F.softmin(x, 1),
    )  # fmt: skip


def movement(x: Tensor) -> Any:  # [2, 3, 4]
    a, b = x.split([1, 2], 1)
    return (
        x.view(6, 4), x.reshape(-1), x.flatten(1), x.unflatten(2, (2, 2)), x.unsqueeze(0), x[:, :1].squeeze(1),
        x.transpose(0, 2), x.permute(2, 0, 1), x.mT, x.movedim(0, -1), x.expand(5, 2, 3, 4),
        x[:, None].expand(-1, 5, -1, -1), x.repeat(2, 1, 3), torch.tile(x, (2,)), torch.cat([x, x], 1),
        torch.stack([x, x], -1), a, b, x.chunk(2, 2)[1], x.unbind(1)[2], x.narrow(1, 1, 2), x[:, 1], x[..., ::2],
        x[:, -2:], x[1:, 1:-1, -3:-1], x.flip(0, 2), x.roll(1, 2), x.roll((1, -2), (0, 2)), x.roll(3),
        torch.rot90(x, 1, (1, 2)), F.pad(x, (1, 2)), F.pad(x, (1, 2, 0, 1), value=3.0), F.pad(x, (-1, 1)),
        F.pad(x, (2, 1), mode="reflect"), F.pad(x, (2, 1), mode="replicate"), F.pad(x, (2, 1), mode="circular"),
        x.tril(), x.triu(1), x.diagonal(0, 1, 2), x.unfold(2, 2, 1), x.swapaxes(0, 1), x.repeat_interleave(2, 1),
        torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij"), torch.meshgrid(x[0, 0], x[0, :, 0], indexing="xy"),
        x.tensor_split(2, 2)[0], torch.hstack([x, x]), torch.vstack([x, x]), torch.broadcast_to(x, (2, 2, 3, 4)),
        x.contiguous(), x.clone(), x.transpose(0, 1).contiguous(), x.view_as(x), x.tensor_split((1, 3), 2)[1],
        x.select(2, -1), x.diff(), x.squeeze(),
    )  # fmt: skip


def reductions(x: Tensor) -> Any:
    return (
        x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean(), x.mean(-1), x.mean((1, 2), keepdim=True), x.amax(1),
        x.amin((0, 1)), x.max(), x.min(), *x.max(1), *x.min(2, keepdim=True), x.argmax(), x.argmax(1),
        x.argmin(2, keepdim=True), x.prod(1), x.var(), x.var(1), x.std(1, unbiased=False), x.std((0, 2)),
        *torch.var_mean(x, 1), *torch.std_mean(x, (0, 1), keepdim=True), x.logsumexp(1), x.norm(), x.norm(dim=1),
        torch.linalg.vector_norm(x, 1, 2), torch.linalg.vector_norm(x, 3, (0, 1)),
        torch.linalg.vector_norm(x, float("inf"), 1), (x > 0).any(), (x > 0).all(1), (x > -9).all(),
        (x > 0).any(1, keepdim=True), x.cumsum(1), *x.topk(2), *x.topk(2, 1, False), *x.sort(1),
        *x.sort(2, descending=True), x.argsort(1), x.count_nonzero(), F.normalize(x, dim=1),
        F.cosine_similarity(x, x + 1, 1), *x.aminmax(), x.sum(dtype=torch.float64), x.sum(()),
        x.abs().sum(0, dtype=torch.float32),
    )  # fmt: skip


def indexing(x: Tensor, i: Tensor) -> Any:  # x [4, 5, 6], i [3] in 0..3
    mask = x[:, :, 0] > 0
    return (
        x[i], x[:, i], x[:, :, i], x[i, i], x[:, i, i], x[i, :, i], x[i[:, None], i], x.index_select(1, i),
        x.gather(1, i.view(3, 1, 1).expand(3, 2, 2)), x[mask], x[x > 0], x[:, x[0, :, 0] > 0],
        x.masked_select(x > 0.5), F.embedding(i, x[0]), x.scatter(1, i.view(1, 3, 1), 2.0),
        x.scatter_add(0, i.view(1, 3, 1), x), torch.zeros(4, 5, 6).scatter_reduce(1, i.view(1, 3, 1), x, "amax"),
        x.index_add(0, i, x[:3]), x.index_fill(1, i, 7.0), x.index_copy(0, torch.tensor([0, 2]), x[2:]),
        torch.nonzero(mask), torch.where(mask), F.one_hot(i, 5), x.take_along_dim(i.view(1, 3, 1), 1),
        x.index_put((i, i), torch.tensor(9.0)), x.index_put((torch.tensor([0, 1]),), x[2:]),
        torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), torch.argwhere(mask), x[-1, i], x[None, i],
        x.take_along_dim(x.argsort(1), 1), x[i, 1:3], x[..., i, None],
    )  # fmt: skip


def creation(x: Tensor) -> Any:
    return (
        torch.arange(5), torch.arange(1, 9, 3), torch.arange(0, 1, 0.25),
        torch.arange(4, dtype=torch.float32) + x[0, 0], torch.zeros(2, 3), torch.ones_like(x), torch.full((2,), 7),
        x.new_full((2, 2), 1.5), x.new_zeros(3), torch.eye(3), torch.eye(2, 4), torch.linspace(0, 1, 7),
        torch.full_like(x, -2), torch.zeros_like(x, dtype=torch.int64), torch.tensor([1.0, 2.0]) + x[0, :2],
        torch.empty(2).fill_(3.0), torch.scalar_tensor(2.0), x.new_ones(1),
    )  # fmt: skip


def matmuls(x: Tensor, y: Tensor) -> Any:  # [2, 3, 4], [2, 4, 5]
    w, v = torch.ones(4, 5) * 0.5, x[0, 0]
    return (
        x @ y, torch.bmm(x, y), x[0] @ y[0], torch.mm(x[0], y[0]), x @ w, x @ v, v @ w, v.dot(v), torch.mv(x[0], v),
        torch.addmm(y[0, 0], x[0], w, beta=0.5, alpha=2), torch.baddbmm(y[:, :3], x, y, beta=2, alpha=0.5),
        F.linear(x, w.t()), F.linear(x[0], w.t(), y[0, 0]), F.linear(v, w.t()), torch.outer(v, v),
        torch.einsum("bij,bjk->bik", x, y), torch.einsum("bij,bjk->ik", x, y), torch.einsum("bij->bji", x),
        torch.einsum("bij,j->bi", x, v), torch.einsum("...ij,...jk->...ik", x, y), torch.einsum("i,j->ij", v, v),
        torch.einsum("bij,bjk,kl->bil", x, y, y[0].t()), torch.einsum("bij,bij", x, x),
        F.bilinear(x[:, 0], x[:, 1], torch.ones(2, 4, 4)),
    )  # fmt: skip


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(4, 8, 3, padding=1)
        self.b = nn.Conv2d(8, 8, 3, stride=2, groups=8, dilation=2, bias=False)
        self.c = nn.Conv2d(4, 4, (3, 2), padding="same")
        self.d = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)
        self.e = nn.Conv1d(4, 3, 3, padding=1, padding_mode="circular")
        self.f = nn.Conv3d(1, 2, 2)
        self.g = nn.ConvTranspose1d(4, 4, 4, stride=2, groups=2)

    def forward(self, x: Tensor) -> Any:
        return (
            self.b(self.a(x)), self.c(x), self.d(x), self.e(x[:, :, 0]), self.f(x[:, None]), self.g(x[:, :, 0]),
            self.a(x[0]), F.conv2d(x, self.a.weight, stride=(2, 1), padding=(0, 1)),
        )  # fmt: skip


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.batch = nn.BatchNorm2d(4)
        self.plain = nn.BatchNorm2d(4, affine=False)
        self.layer = nn.LayerNorm([6, 6])
        self.bare = nn.LayerNorm(6, elementwise_affine=False)
        self.nobias = nn.LayerNorm(6, bias=False)
        self.group = nn.GroupNorm(2, 4)
        self.instance = nn.InstanceNorm2d(4, affine=True)
        self.instance_bare = nn.InstanceNorm2d(4)
        self.rms = nn.RMSNorm(6)
        self.lrn = nn.LocalResponseNorm(3)
        self.weight = torch.nn.utils.parametrizations.weight_norm(nn.Linear(6, 3))
        for p in self.parameters():
            nn.init.uniform_(p, 0.5, 1.5)
        for m in (self.batch, self.plain):
            nn.init.uniform_(m.running_mean, -1, 1)
            nn.init.uniform_(m.running_var, 0.5, 1.5)

    def forward(self, x: Tensor) -> Any:
        return (
            self.batch(x), self.plain(x), self.layer(x), self.bare(x), self.nobias(x), self.group(x),
            self.instance(x), self.instance_bare(x), self.rms(x), self.weight(x), F.group_norm(x, 4),
            F.batch_norm(x, None, None, training=True), self.lrn(x),
        )  # fmt: skip


def pools(x: Tensor) -> Any:  # [2, 3, 9, 10]
    return (
        F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 3, 2, ceil_mode=True),
        F.max_pool2d(x, 3, 1, 1, 1), F.max_pool2d(x, 2, dilation=2), F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.avg_pool2d(x, 3, 2, ceil_mode=True),
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 2, divisor_override=3), F.adaptive_avg_pool2d(x, 1),
        F.adaptive_avg_pool2d(x, (4, 3)), F.adaptive_avg_pool2d(x, (None, 5)), F.adaptive_max_pool2d(x, 1),
        F.adaptive_max_pool2d(x, (3, 5)), F.max_pool1d(x[:, :, 0], 2), F.avg_pool1d(x[:, :, 0], 3, 2, 1),
        F.adaptive_avg_pool1d(x[:, :, 0], 4), F.max_pool2d(x[0], 2), F.avg_pool3d(x, 2), F.max_pool3d(x, 2),
        F.max_pool2d(x, 3, (2, 1), (1, 0), ceil_mode=True), F.lp_pool2d(x, 2, 2),
    )  # fmt: skip


def resizes(x: Tensor) -> Any:  # [1, 2, 5, 6]
    return (
        F.interpolate(x, scale_factor=2), F.interpolate(x, size=(7, 9)),
        F.interpolate(x, scale_factor=2, mode="bilinear"), F.interpolate(x, size=(7, 4), mode="bilinear"),
        F.interpolate(x, size=(9, 9), mode="bilinear", align_corners=True),
        F.interpolate(x, scale_factor=(1.7, 2.3), mode="bilinear"),
        F.interpolate(x, scale_factor=0.6, mode="nearest"), F.interpolate(x, size=(8, 8), mode="nearest-exact"),
        F.interpolate(x[:, :, 0], scale_factor=2, mode="linear"),
        F.interpolate(x, scale_factor=1.5, mode="bilinear", recompute_scale_factor=True),
        F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2), F.pixel_unshuffle(x[:, :, :4], 2),
        F.channel_shuffle(x.repeat(1, 2, 1, 1), 2), F.interpolate(x[:, :, 0], size=3),
        F.interpolate(x, size=(3, 3), mode="bilinear"),
        F.interpolate(x[:, :, None], scale_factor=2, mode="trilinear"),
    )  # fmt: skip


def bicubic(x: Tensor) -> Any:
    return F.interpolate(x, scale_factor=2, mode="bicubic"), F.interpolate(
        x, size=(7, 5), mode="bicubic", align_corners=True
    )


def attention(q: Tensor, k: Tensor, v: Tensor) -> Any:  # [2, 4, 5, 8], [2, 4, 7, 8]
    mask = torch.arange(35).view(5, 7) % 3 > 0
    return (
        F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, q, q, is_causal=True),
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask.float()),
        F.scaled_dot_product_attention(q, k, v, scale=0.3),
        F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
        F.scaled_dot_product_attention(q[:, 0], k[:, 0], v[:, 0]),
        F.scaled_dot_product_attention(q[:, 0], k[:, 0], v[:, 0], attn_mask=mask),
        F.scaled_dot_product_attention(q[0, 0], k[0, 0], v[0, 0]),
        F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask),
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask.expand(2, 1, 5, 7)),
    )  # fmt: skip


def qkv(g: torch.Generator, n: int) -> tuple[Tensor, ...]:
    return (
        torch.randn(2, 4, 5, 8, generator=g),
        torch.randn(2, 4, 7, 8, generator=g),
        torch.randn(2, 4, 7, 8, generator=g),
    )


class Recurrent(nn.Module):
    def __init__(self, kind: Callable[..., nn.Module], **options: Any) -> None:
        super().__init__()
        self.rnn = kind(6, 5, **options)

    def forward(self, x: Tensor) -> Any:
        return self.rnn(x)


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(6, 5), nn.GRUCell(6, 5), nn.RNNCell(6, 5, nonlinearity="relu")

    def forward(self, x: Tensor) -> Any:
        return self.lstm(x), self.gru(x), self.rnn(x)


class Given(nn.Module):
    """LSTM with a state that is given."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(6, 5, num_layers=2)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Any:
        y, (h, c) = self.rnn(x, (h, c))
        return {"y": y, "h": h, "c": c}


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
        self.embed = nn.Embedding(50, 16)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, ids: Tensor) -> Any:
        mask = ids == 0
        return self.head(self.encoder(self.embed(ids), src_key_padding_mask=mask).mean(1))


class Small(nn.Module):
    """A little of a vision model: in-place activations, residuals, squeeze and excite."""

    def __init__(self) -> None:
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.c2, self.n2 = nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8)
        self.s1, self.s2 = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
        self.relu, self.swish, self.drop = (
            nn.ReLU(inplace=True),
            nn.Hardswish(inplace=True),
            nn.Dropout(0.2, inplace=True),
        )
        self.fc = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.n1(self.c1(x)))
        y = self.swish(self.n2(self.c2(x)))
        y = y * F.hardsigmoid(self.s2(F.relu(self.s1(F.adaptive_avg_pool2d(y, 1)))))
        y += x
        return self.fc(self.drop(F.adaptive_avg_pool2d(y, 1).flatten(1)))


class Views(nn.Module):
    """Writes through views of a computed tensor."""

    def forward(self, x: Tensor) -> Any:
        a = x * 1
        a[:, 0] = 1.0
        a[0].mul_(2)
        a[:, 1:3] += 5
        a.view(-1)[3:7].fill_(0.25)
        a.transpose(0, 1)[2].neg_()
        b = x + 1
        first, rest = b.split([1, b.shape[1] - 1], 1)
        rest.clamp_(max=0.5)
        c = x.clone()
        row = c[1]
        c.add_(1)
        c[:, ::2] = -1
        d = torch.zeros(4, 6)
        d[1:3, 2:] = x[1:3, 2:]
        d[d > 0] = 9.0
        e = x.clone()
        e[torch.tensor([0, 2])] = x[:2]
        e.unbind(1)[1].zero_()
        f = x.clone()
        f.unsqueeze(0).permute(2, 0, 1)[0] = 3
        return a, b, first, row, c, d, e, f


class Counter(nn.Module):
    """State: a counter, an average, a window of the last inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("average", torch.zeros(3))
        self.register_buffer("window", torch.zeros(4, 3), persistent=False)
        self.register_buffer("unused", torch.zeros(7))

    def forward(self, x: Tensor) -> Any:
        self.count += 1
        self.average.mul_(0.5).add_(x, alpha=0.5)
        with torch.no_grad():
            self.window[:-1] = self.window[1:].clone()
            self.window[-1] = x
        return self.count, self.average + 0, self.window.sum(0), x * self.count


class Cache(nn.Module):
    """A cache of keys written at a position that is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 8, 4))

    def forward(self, x: Tensor, at: Tensor) -> Any:
        self.keys[:, at] = x
        return self.keys.sum(1), self.keys.index_select(1, at)


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: self.a(x).relu(), lambda x: self.b(x) - 1, (x,))


class While(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> Any:
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(
            lambda i, x: i < n.sum(), lambda i, x: (i + 1, x * 1.5 + 0.25), (torch.zeros((), dtype=torch.int64), x)
        )


class Scan(nn.Module):
    def forward(self, xs: Tensor) -> Any:
        from torch._higher_order_ops.scan import scan

        return scan(lambda c, x: (c * 0.5 + x, c.sin() + x), torch.zeros(3), xs)


class Detached(nn.Module):
    """no_grad around part of forward; a list, a dict and None among the outputs."""

    def forward(self, x: Tensor, more: dict[str, Tensor]) -> Any:
        with torch.no_grad():
            scale = x.abs().amax(1, keepdim=True)
        return {"y": x / scale, "z": more["z"] + scale}


def shapes(x: Tensor) -> Any:
    b = x.shape[0]
    return (
        x.view(b, 2, -1), x.reshape(b * 3, 4), x.flatten(), x.mean(0), torch.zeros(b, 2) + b, x[:1],
        x.permute(1, 0, 2).reshape(3, -1), torch.arange(b), x.expand(2, b, 3, 4), torch.cat([x, x]),
        x.transpose(0, 1).reshape(3, b, 2, 2), x.sum() / b, torch.full((b, 1), 2.0),
        x.view(b, -1) @ x.view(b, -1).t(), x.numel() * x.mean(), torch.ones(b, b).tril(), x.softmax(0), x[-1],
        x.var(0, correction=0), x.repeat(2, 1, 1), x.unsqueeze(1).expand(-1, 2, -1, -1).reshape(b * 2, 3, 4),
        x.flip(0), x.view(b, 12)[:, 1:-1],
    )  # fmt: skip


def detections(boxes: Tensor, scores: Tensor) -> Any:
    kept = scores > 0.2
    return boxes[kept], scores[kept], kept.nonzero().squeeze(1)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.out = nn.Linear(4, 9, bias=False)
        self.out.weight = self.embed.weight
        store = torch.arange(24.0)
        self.register_buffer("part", store[4:12].view(2, 4))
        self.register_buffer("turned", store[1:19].view(3, 6).t()[:2])
        self.register_buffer("wide", torch.ones(1).expand(3, 4))
        self.register_buffer("last", torch.randn(2, 3, 2, 2).to(memory_format=torch.channels_last))

    def forward(self, ids: Tensor) -> Any:
        return self.out(self.embed(ids)), self.part * 2, self.turned + 1, self.wide * 3, self.last + 0


def quantised(x: Tensor) -> Any:
    """As PT2E models: per tensor for values, per channel for weights, a narrow range, scales found at run time."""
    qd = torch.ops.quantized_decomposed
    q = qd.quantize_per_tensor.default(x, 0.05, 3, -128, 127, torch.int8)
    n = qd.quantize_per_tensor.default(x, 0.02, 0, -127, 127, torch.int8)
    u = qd.quantize_per_tensor.default(x, 0.1, 100, 0, 255, torch.uint8)
    weight = torch.arange(-10, 10, dtype=torch.int8).view(4, 5)
    scales, zeros = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0, 1, -1, 2])
    w = qd.dequantize_per_channel.default(weight, scales, zeros, 0, -127, 127, torch.int8)
    scale, zero = qd.choose_qparams.tensor(x, -128, 127, 1e-7, torch.int8)
    d = qd.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
    return (
        q, n, u, w, qd.dequantize_per_tensor.default(q, 0.05, 3, -128, 127, torch.int8),
        qd.dequantize_per_tensor.default(u, 0.1, 100, 0, 255, torch.uint8),
        qd.dequantize_per_tensor.tensor(d, scale, zero, -128, 127, torch.int8), F.linear(x, w),
    )  # fmt: skip


def half(x: Tensor) -> Any:
    h = x.half()
    return h * 2, (h + x).dtype == torch.float32, h @ h.t(), x.bfloat16() + 1, (h * x).sum(), h.float()


CASES: dict[str, Case] = {
    "elementwise": Case(lambda: Of(elementwise), two((3, 4), (3, 4))),
    "broadcast": Case(lambda: Of(lambda x, y: (x + y, x * y, x > y, torch.where(x > y, x, y))), two((3, 1, 4), (2, 1))),
    "integers": Case(
        lambda: Of(integers),
        lambda g, n: (torch.randint(-9, 9, (3, 4), generator=g), torch.randint(-9, 9, (3, 4), generator=g)),
    ),
    "activations": Case(lambda: Of(activations), floats(3, 4)),
    "prelu": Case(lambda: nn.Sequential(nn.PReLU(4), nn.PReLU()), floats(2, 4, 3, 3)),
    "movement": Case(lambda: Of(movement), floats(2, 3, 4)),
    "reductions": Case(lambda: Of(reductions), floats(3, 4, 5), tolerance=2e-5),
    "indexing": Case(
        lambda: Of(indexing), lambda g, n: (torch.randn(4, 5, 6, generator=g), torch.randperm(4, generator=g)[:3])
    ),
    "creation": Case(lambda: Of(creation), floats(3, 4)),
    "matmuls": Case(lambda: Of(matmuls), two((2, 3, 4), (2, 4, 5))),
    "convolutions": Case(Convolutions, floats(2, 4, 6, 6)),
    "norms": Case(Norms, floats(2, 4, 6, 6)),
    "pools": Case(lambda: Of(pools), floats(2, 3, 9, 10)),
    "resizes": Case(lambda: Of(resizes), floats(1, 2, 5, 6)),
    "bicubic": Case(lambda: Of(bicubic), floats(1, 2, 5, 6)),
    "attention": Case(lambda: Of(attention), qkv),
    "lstm": Case(lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True, batch_first=True), floats(3, 4, 6)),
    "lstm_plain": Case(lambda: Recurrent(nn.LSTM, bias=False), floats(4, 3, 6)),
    "lstm_given": Case(
        Given,
        lambda g, n: (
            torch.randn(4, 3, 6, generator=g),
            torch.randn(2, 3, 5, generator=g),
            torch.randn(2, 3, 5, generator=g),
        ),
    ),
    "gru": Case(lambda: Recurrent(nn.GRU, num_layers=2, bidirectional=True), floats(2, 3, 6)),
    "gru_plain": Case(lambda: Recurrent(nn.GRU, bias=False, batch_first=True), floats(3, 4, 6)),
    "rnn_tanh": Case(lambda: Recurrent(nn.RNN, bidirectional=True), floats(4, 3, 6)),
    "rnn_relu": Case(lambda: Recurrent(nn.RNN, nonlinearity="relu"), floats(4, 3, 6)),
    "cells": Case(Cells, floats(3, 6)),
    "encoder": Case(Encoder, ints(0, 50, 2, 7)),
    "small": Case(Small, batched(3, 16, 16), dynamic=({0: BATCH},), sizes=(2, 1, 5)),
    "views": Case(Views, floats(4, 6)),
    "counter": Case(Counter, floats(3), steps=4),
    "cache": Case(Cache, lambda g, n: (torch.randn(1, 2, 4, generator=g), torch.randperm(8, generator=g)[:2]), steps=3),
    "branch": Case(Branch, floats(2, 4)),
    "while": Case(While, lambda g, n: (torch.randn(3, generator=g), torch.randint(0, 3, (3,), generator=g))),
    "scan": Case(Scan, floats(5, 3)),
    "detached": Case(Detached, lambda g, n: (torch.randn(2, 3, generator=g), {"z": torch.randn(2, 3, generator=g)})),
    "shapes": Case(lambda: Of(shapes), batched(3, 4), dynamic=(({0: BATCH},),), sizes=(2, 3, 7)),
    "dynamic_encoder": Case(
        Encoder,
        lambda g, n: (torch.randint(0, 50, (n, 5), generator=g),),
        dynamic=({0: BATCH},),
        sizes=(2, 4),
    ),
    "dynamic_lstm": Case(
        lambda: Recurrent(nn.LSTM, num_layers=2, batch_first=True), batched(2, 6), dynamic=({0: BATCH},), sizes=(2, 5)
    ),
    "data_dependent": Case(
        lambda: Of(detections), lambda g, n: (torch.rand(6, 4, generator=g), torch.rand(6, generator=g))
    ),
    "tied": Case(Tied, ints(0, 9, 3)),
    "quantised": Case(lambda: Of(quantised), floats(3, 5)),
    "half": Case(lambda: Of(half), floats(3, 3), tolerance=2e-3),
}
