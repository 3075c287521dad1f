"""Complex tensors of exported programs: transforms and their inverses, arithmetic, buffers; and what is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import _core
from torch import Tensor, nn


class Of(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


def check(module: nn.Module, inputs: tuple[Tensor, ...], path: Path, tolerance: float = 1e-5) -> None:
    """Both dialects against eager, as a fraction of the largest element."""
    for decomposed in (False, True):
        with torch.no_grad():
            program = torch.export.export(copy.deepcopy(module).eval(), inputs)
            if decomposed:
                program = program.run_decompositions()
            torch.export.save(program, path)
            wanted = module(*inputs)
        got = _core.run_model_reference(str(path), [[x.numpy() for x in inputs]])[0]
        wanted = [wanted] if isinstance(wanted, Tensor) else wanted
        assert len(got) == len(wanted)
        for i, (g, want) in enumerate(zip(got, wanted, strict=True)):
            own = torch.from_numpy(np.array(g))
            assert (own.dtype, own.shape) == (want.dtype, want.shape), i
            if not want.is_floating_point():
                assert torch.equal(own, want), i
                continue
            worst = float((own.double() - want.double()).abs().max()) / float(want.abs().max().clamp(min=1e-3))
            assert worst <= tolerance, f"decomposed={decomposed}, output {i}: {worst:.3g}"


class Whisper(nn.Module):
    """The front end of speech models: 80 bands of a power spectrogram, their logarithm, cut and scaled."""

    mel: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mel", torch.rand(80, 201) * (torch.rand(80, 201) > 0.9))

    def forward(self, audio: Tensor) -> Tensor:
        stft = torch.stft(audio, 400, 160, window=torch.hann_window(400), return_complex=True)
        power = stft[..., :-1].abs() ** 2
        log = torch.clamp(self.mel @ power, min=1e-10).log10()
        return (torch.maximum(log, log.max() - 8.0) + 4.0) / 4.0


class Denoiser(nn.Module):
    """stft, a mask from magnitudes, istft."""

    def __init__(self, normalized: bool, complex_mask: bool) -> None:
        super().__init__()
        self.gate = nn.Conv1d(33, 66 if complex_mask else 33, 3, padding=1)
        self.register_buffer("window", torch.hann_window(48))
        self.normalized, self.complex_mask = normalized, complex_mask

    def forward(self, audio: Tensor) -> Tensor:
        options: dict[str, Any] = {"win_length": 48, "window": self.window, "normalized": self.normalized}
        z = torch.stft(audio, 64, 16, return_complex=True, **options)
        gate = torch.sigmoid(self.gate(z.abs().clamp(min=1e-6).log()))
        mask = torch.complex(*gate.chunk(2, 1)) if self.complex_mask else gate
        return torch.istft(z * mask, 64, 16, length=audio.shape[-1], **options)


class Rotary(nn.Module):
    """Positions as complex factors in a buffer, as Llama's first release has them."""

    factors: Tensor
    turned: Tensor

    def __init__(self) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(6.0), 1 / 10000 ** (torch.arange(4.0) / 4))
        self.register_buffer("factors", torch.polar(torch.ones_like(angles), angles))
        self.register_buffer("turned", torch.randn(4, 6, dtype=torch.complex64).t())  # strided

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # [batch, 6, heads, 8]
        z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        y = torch.view_as_real(z * self.factors[:, None, :]).flatten(3)
        return y, torch.view_as_real(z * self.turned[:, None]).flatten(3)


def arithmetic(a: Tensor, b: Tensor, x: Tensor) -> Any:  # [3, 4, 2] twice, [3, 4]
    z, w = torch.view_as_complex(a), torch.view_as_complex(b)
    made = (
        z + w, z - w, z * w, z / w, z + x, x - z, z * x, x * z, z / x, x / z, z + 2, 2 - z, z * 1.5, z * (1 - 2j),
        z + 3j, torch.add(z, w, alpha=2), torch.rsub(z, w), -z, z.conj(), z.conj() * z, z.exp(), z.log(), z.sgn(),
        z**2, z.square(), z.reciprocal(), torch.complex(x, x * 2), torch.complex(x, x[:1]), torch.polar(x.abs(), x),
        torch.where(x > 0, z, w), torch.where(x > 0, z, 0), z.masked_fill(x > 0, 1j), x.to(torch.complex64) * z,
        z.sum(0), z.mean((0, 1), keepdim=True), z @ w.t(), z[0].dot(w[0]), z @ w[0],
        torch.ones(3, 4, dtype=torch.complex64) * z, torch.full((3, 4), 2j) + z, torch.zeros_like(z) + w,
    )  # fmt: skip
    seen = (z.abs(), z.angle(), z.real, z.imag, z.conj().imag, z == w, z != z, (z * w).real + x, z.abs().sum())
    return [*(torch.view_as_real(m.resolve_conj()) for m in made), *seen]


def movement(a: Tensor) -> Any:  # [2, 3, 4, 2]
    z = torch.view_as_complex(a)
    p, q = torch.split(z, [1, 2], 1)
    made = (
        z.view(6, 4), z.reshape(-1), z.flatten(1), torch.unflatten(z, 2, (2, 2)), z.unsqueeze(0), z[:, :1].squeeze(1),
        z.transpose(0, 2), z.permute(2, 0, 1), z.mT, z.mH, z.adjoint(), z.movedim(0, -1), z.expand(5, 2, 3, 4),
        z.repeat(2, 1, 3), z.tile(2), torch.cat([z, z.conj()], 1), torch.stack([z, z], -1), torch.cat([z, z.real], 2),
        p, q, z.chunk(2, 2)[1], z.unbind(1)[2], z.narrow(1, 1, 2), z[:, 1], z[..., ::2], z[:, -2:], z.flip(0, 2),
        z.roll(1, 2), z.roll(3), nn.functional.pad(z, (1, 2)), z.diagonal(0, 1, 2), z.unfold(2, 2, 1),
        z[torch.tensor([1, 0, 1])], z[:, torch.tensor([2, 0])], z[torch.tensor([0, 1]), torch.tensor([2, 0])],
        z.index_select(1, torch.tensor([2, 0])), z.clone(), z.contiguous(), z[0].t(), z[..., None] * z[..., None, :],
        torch.fft.fftshift(z), torch.fft.ifftshift(z, 1),
    )  # fmt: skip
    return [torch.view_as_real(m.resolve_conj()) for m in made]


def transforms(x: Tensor, a: Tensor) -> Any:  # [3, 10], [3, 6, 2]
    f, z = torch.fft, torch.view_as_complex(a)
    complex_results = [
        f.fft(x), f.ifft(z), f.fft(z, 4), f.fft(z, 9, 0), f.rfft(x), f.rfft(x, 7), f.ihfft(x), f.fft2(z), f.ifft2(z),
        f.rfft2(x), f.fftn(z, (4, 4)), f.ifftn(z, dim=(0,)), f.rfftn(x, (-1, 6)),
    ]  # fmt: skip
    real_results = [f.irfft(z), f.irfft(z, 9), f.hfft(z), f.irfft2(z), f.irfftn(z, (4, 7)), f.hfft(x), f.irfft(x)]
    for norm in ("forward", "backward", "ortho"):
        complex_results += [f.fft(z, norm=norm), f.ifft(z, norm=norm), f.rfft2(x, norm=norm), f.ihfft(x, norm=norm)]
        real_results += [f.irfft(z, norm=norm), f.hfft(z, norm=norm), f.irfft2(z, norm=norm)]
    return [*(torch.view_as_real(c.resolve_conj()) for c in complex_results), *real_results]


def spectrograms(x: Tensor) -> Any:  # [2, 100]
    def stft(**options: Any) -> Tensor:
        return torch.view_as_real(torch.stft(x, 16, return_complex=True, **options))

    return (
        stft(window=torch.ones(16)), stft(hop_length=5, window=torch.hamming_window(16)),
        stft(win_length=9, window=torch.hann_window(9, periodic=False)),
        stft(center=False, window=torch.ones(16)), stft(normalized=True, window=torch.ones(16)),
        stft(onesided=False, window=torch.ones(16)), stft(pad_mode="constant", window=torch.ones(16)),
        torch.view_as_real(torch.stft(x[0], 16, 4, window=torch.ones(16), return_complex=True)),
        torch.istft(torch.stft(x, 16, 4, window=torch.ones(16), return_complex=True), 16, 4, window=torch.ones(16)),
        torch.istft(torch.stft(x[0], 16, 5, window=torch.ones(16), return_complex=True), 16, 5, length=110),
        torch.istft(torch.stft(x, 16, 4, window=torch.ones(16), return_complex=True, center=False), 16, 4,
                    center=False),
    )  # fmt: skip


def windows(x: Tensor) -> Any:
    made = [
        f(n, periodic)
        for f in (torch.hann_window, torch.hamming_window, torch.blackman_window, torch.bartlett_window)
        for n in (0, 1, 2, 7, 16)
        for periodic in (True, False)
    ]
    made += [torch.hamming_window(9, True, 0.5, 0.4), torch.kaiser_window(9), torch.kaiser_window(8, False, 5.0)]
    return [torch.cat([w, x]) for w in made]


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]] = {
    "whisper": (Whisper, ((2, 16000),)),
    "denoiser": (lambda: Denoiser(False, False), ((2, 500),)),
    "denoiser_complex_mask": (lambda: Denoiser(True, True), ((2, 500),)),
    "rotary": (Rotary, ((2, 6, 3, 8),)),
    "arithmetic": (lambda: Of(arithmetic), ((3, 4, 2), (3, 4, 2), (3, 4))),
    "movement": (lambda: Of(movement), ((2, 3, 4, 2),)),
    "transforms": (lambda: Of(transforms), ((3, 10), (3, 6, 2))),
    "spectrograms": (lambda: Of(spectrograms), ((2, 100),)),
    "windows": (lambda: Of(windows), ((2,),)),
}


@pytest.mark.rotating
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_eager(name: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    module, shapes = CASES[name]
    check(module(), tuple(torch.randn(shape) for shape in shapes), tmp_path / "m.pt2", 2e-5)


def test_any_length_of_a_spectrogram() -> None:
    torch.manual_seed(0)
    module = Of(lambda x: torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).abs())
    dynamic_length = (({0: torch.export.Dim.AUTO},),)  # a named one fails at a guard of torch's own
    program = torch.export.export(module, (torch.randn(100),), dynamic_shapes=dynamic_length)
    session = pn.Session(pn.load(program).build(), target="cpu")
    for size in (32, 100, 1001):
        x = torch.randn(size)
        got = next(iter(session.run({"args_0": x.numpy()}).values()))
        torch.testing.assert_close(torch.from_numpy(np.array(got)), module(x), rtol=1e-4, atol=1e-4)


def refusal(module: nn.Module, inputs: tuple[Tensor, ...], path: Path) -> str:
    torch.export.save(torch.export.export(module, inputs), path)
    with pytest.raises(_core.ConversionError) as caught:
        _core.Model.load(str(path), [], False, [], "", [], [])
    return str(caught.value)


def test_complex_inputs_and_outputs_are_refused(tmp_path: Path) -> None:
    z = torch.randn(3, dtype=torch.complex64)
    assert "torch.view_as_real(" in refusal(Of(lambda z: z.abs()), (z,), tmp_path / "a.pt2")
    assert "torch.view_as_real" in refusal(Of(lambda x: torch.fft.rfft(x)), (torch.randn(4),), tmp_path / "b.pt2")


def test_what_is_not_mapped_is_refused_by_name(tmp_path: Path) -> None:
    def unknown(x: Tensor) -> Tensor:
        return torch.abs(torch.fft.rfft(x).cumsum(0))

    text = refusal(Of(unknown), (torch.randn(4),), tmp_path / "m.pt2")
    assert "aten.cumsum.default (" in text
    assert "operator not mapped for complex tensors" in text


def test_writes_into_views_of_complex_tensors(tmp_path: Path) -> None:
    """Also through their parts; refused for parts of a view that lists places."""

    def written(x: Tensor) -> Tensor:
        z = torch.fft.rfft(x)
        torch.view_as_real(z).mul_(2)
        return torch.abs(z)

    def places_of_a_part(x: Tensor) -> Tensor:
        z = torch.fft.fft(x)
        z.real.diagonal().mul_(2)
        return torch.abs(z)

    def a_part_of_places(x: Tensor) -> Tensor:
        z = torch.fft.fft(x)
        z.diagonal().real.mul_(2)
        return torch.abs(z)

    check(Of(written), (torch.randn(4),), tmp_path / "m.pt2")
    check(Of(places_of_a_part), (torch.randn(4, 4),), tmp_path / "p.pt2")
    text = refusal(Of(a_part_of_places), (torch.randn(4, 4),), tmp_path / "n.pt2")
    assert "writes into a view of a complex tensor" in text


def test_in_place_on_a_whole_complex_tensor(tmp_path: Path) -> None:
    def written(x: Tensor) -> Tensor:
        z = torch.fft.rfft(x)
        part = z[1:]
        z *= 2j
        return torch.view_as_real(part + z[:-1])

    check(Of(written), (torch.randn(6),), tmp_path / "m.pt2")
