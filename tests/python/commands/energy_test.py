"""Energy: counters and batteries in folders that the tests make, the subtraction of idle power on a clock of theirs,
and the model, which is never called measured."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
from pinnace import _core
from pinnace.measure import energy, energy_model
from pinnace.measure.counters import Battery, Rapl, find_meter
from pinnace.measure.energy import Energy, measured_energy
from pinnace.measure.energy_model import COEFFICIENTS, modelled_energy, multiply_adds_of_an_instruction

ROOT = Path(__file__).resolve().parents[3]
TARGETS = {device.target for device in pn.devices() if device.available}
RANGE = 262_143_328_850
PACKAGES = {
    "intel-rapl:0": ("package-0", 1_000_000),
    "intel-rapl:0:0": ("core", 500_000),
    "intel-rapl:0:1": ("dram", 200_000),
    "intel-rapl:1": ("package-1", 7_000_000),
    "intel-rapl:1:0": ("dram", 300_000),
    "intel-rapl:2": ("psys", 90_000_000),
    "intel-rapl-mmio:0": ("package-0", 1_000_000),
}


def zones(folder: Path, zones: dict[str, tuple[str, int]], largest: int = RANGE) -> Path:
    for zone, (name, count) in zones.items():
        (folder / zone).mkdir(parents=True)
        (folder / zone / "name").write_text(f"{name}\n")
        (folder / zone / "energy_uj").write_text(f"{count}\n")
        (folder / zone / "max_energy_range_uj").write_text(f"{largest}\n")
    return folder


def count(folder: Path, zone: str, value: object) -> None:
    (folder / zone / "energy_uj").write_text(f"{value}\n")


# ---- RAPL -----------------------------------------------------------------------------------------------------------


def test_packages_and_their_memory_are_added_and_nothing_twice(tmp_path: Path) -> None:
    meter = Rapl(zones(tmp_path, PACKAGES))
    assert meter.source == "RAPL package-0, 2 x dram, package-1"
    meter.begin()
    for zone, (_, start) in PACKAGES.items():
        count(tmp_path, zone, start + 10 ** (6 + list(PACKAGES).index(zone)))
    # 1 J of package 0, 100 J of its memory, 1,000 J of package 1, 10,000 J of its memory. Core is a part of a package.
    assert meter.joules() == pytest.approx(1 + 100 + 1000 + 10_000)


def test_domains_inside_of_their_package(tmp_path: Path) -> None:
    zones(tmp_path, {"intel-rapl:0": ("package-0", 0)})
    zones(tmp_path / "intel-rapl:0", {"intel-rapl:0:0": ("dram", 5)})
    meter = Rapl(tmp_path)
    count(tmp_path / "intel-rapl:0", "intel-rapl:0:0", 2_000_005)
    assert meter.joules() == pytest.approx(2.0)


def test_a_counter_goes_around_its_range(tmp_path: Path) -> None:
    meter = Rapl(zones(tmp_path, {"intel-rapl:0": ("package-0", RANGE - 400_000)}))
    count(tmp_path, "intel-rapl:0", 1_100_000)
    assert meter.joules() == pytest.approx(1.5)


def test_a_counter_that_may_have_gone_around_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    meter = Rapl(zones(tmp_path, {"intel-rapl:0": ("package-0", 5)}))
    now += 262
    assert meter.joules() == 0
    now += 1
    with pytest.raises(pn.Unsupported, match="more than once in 263 s"):
        meter.joules()


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("energy_uj", "12x", "'12x' is no whole number"),
        ("energy_uj", "", "'' is no whole number"),
        ("energy_uj", None, "is not there"),
        ("energy_uj", str(RANGE + 1), "is above its range"),
        ("max_energy_range_uj", "none", "'none' is no whole number"),
        ("max_energy_range_uj", "0", "range is 0"),
        ("name", None, "is not there"),
    ],
)
def test_one_unreadable_counter_gives_no_figure(tmp_path: Path, file: str, text: str | None, said: str) -> None:
    """Of several packages too: a sum of some would look like the sum of all."""
    path = zones(tmp_path, PACKAGES) / "intel-rapl:1" / file
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(pn.Unsupported, match=re.escape(said)) as error:
        Rapl(tmp_path).joules()
    assert str(path) in str(error.value)


def test_a_counter_that_only_root_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zones(tmp_path, PACKAGES)
    read = Path.read_text

    def refuse(path: Path, *arguments: Any, **options: Any) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(pn.Unsupported, match="energy_uj may not be read: most systems let root alone"):
        Rapl(tmp_path)
    monkeypatch.undo()
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    (tmp_path / "intel-rapl:0" / "energy_uj").mkdir()
    with pytest.raises(pn.Unsupported, match="energy_uj cannot be read: Is a directory"):
        Rapl(tmp_path)


def test_no_package(tmp_path: Path) -> None:
    for folder in (tmp_path / "missing", zones(tmp_path / "psys", {"intel-rapl:0": ("psys", 1)})):
        with pytest.raises(pn.Unsupported, match="has no RAPL counter of a package"):
            Rapl(folder)


# ---- batteries ------------------------------------------------------------------------------------------------------


def supply(folder: Path, name: str, **lines: object) -> Path:
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    for file, text in {"type": "Battery", "status": "Discharging", **lines}.items():
        (place / file).write_text(f"{text}\n")
    return place


def test_power_of_batteries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 50.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    supply(tmp_path, "AC", type="Mains", status="Charging")
    supply(tmp_path, "mouse", scope="Device", power_now=10**9)
    supply(tmp_path, "empty_bay", present=0)
    first = supply(tmp_path, "BAT0", present=1, power_now=4_000_000, current_now=1, voltage_now=1)
    second = supply(tmp_path, "BAT1", current_now=-500_000, voltage_now=12_000_000)  # 6 W
    meter = Battery(tmp_path, sample_seconds=60)
    assert meter.source == "battery BAT0, BAT1"
    meter.begin()
    (first / "power_now").write_text("6000000")
    now += 5
    assert meter.joules() == pytest.approx((10 + 12) / 2 * 5)
    meter.begin()
    (second / "current_now").write_text("one")
    with pytest.raises(pn.Unsupported, match="'one' is no whole number"):
        meter.joules()


def test_samples_are_taken_while_it_counts(tmp_path: Path) -> None:
    battery = supply(tmp_path, "BAT0", power_now=1_000_000)
    meter = Battery(tmp_path, sample_seconds=0.001)
    meter.begin()
    (battery / "status").write_text("Charging")
    deadline = time.monotonic() + 10
    while meter._failure is None and time.monotonic() < deadline:
        time.sleep(0.001)
    (battery / "status").write_text("Discharging")
    with pytest.raises(pn.Unsupported, match="'Charging': only a battery that is discharged"):
        meter.joules()  # although it is discharged again
    meter.begin()
    assert meter.joules() > 0


@pytest.mark.parametrize("status", ["Charging", "Full", "Not charging", "Unknown"])
def test_a_battery_that_is_not_discharged_gives_no_figure(tmp_path: Path, status: str) -> None:
    supply(tmp_path, "BAT0", power_now=1_000_000)
    supply(tmp_path, "BAT1", power_now=1_000_000, status=status)
    with pytest.raises(pn.Unsupported, match=f"BAT1/status: '{status}'"):
        Battery(tmp_path)


def test_no_battery_and_one_without_figures(tmp_path: Path) -> None:
    with pytest.raises(pn.Unsupported, match="has no battery of the device"):
        Battery(tmp_path / "missing")
    supply(tmp_path, "BAT0", current_now=5)
    with pytest.raises(pn.Unsupported, match="voltage_now is not there"):
        Battery(tmp_path)


def test_the_better_meter_is_taken_and_every_reason_told(tmp_path: Path) -> None:
    with pytest.raises(pn.Unsupported, match=r"no RAPL counter of a package; .* has no battery of the device"):
        find_meter(tmp_path / "a", tmp_path / "b")
    supply(tmp_path / "b", "BAT0", power_now=1)
    assert isinstance(find_meter(tmp_path / "a", tmp_path / "b"), Battery)
    zones(tmp_path / "a", PACKAGES)
    assert isinstance(find_meter(tmp_path / "a", tmp_path / "b"), Rapl)


# ---- idle power is subtracted ---------------------------------------------------------------------------------------


class Machine:
    """A meter and a clock: `idle(t)` watts at all times, `busy(n)` joules more for run n, which takes 2 ms."""

    seconds = 0.5
    source = "made counters"

    def __init__(self, idle: Callable[[float], float], busy: Callable[[int], float]) -> None:
        self.idle, self.busy = idle, busy
        self.now = self.used = self.start = 0.0
        self.runs = 0

    def sleep(self, seconds: float) -> None:
        self.used += self.idle(self.now + seconds / 2) * seconds
        self.now += seconds

    def run(self) -> None:
        self.sleep(0.002)
        self.used += self.busy(self.runs)
        self.runs += 1

    def begin(self) -> None:
        self.start = self.used

    def joules(self) -> float:
        return self.used - self.start

    def measured(self) -> Energy:
        return measured_energy(self.run, self, self.sleep, lambda: self.now)


def test_idle_power_is_subtracted() -> None:
    found = Machine(lambda _: 10.0, lambda _: 0.04).measured()
    assert (found.kind, found.repetitions, found.source) == ("measured", 5, "made counters")
    assert found.joules == pytest.approx(0.04)
    assert found.low == pytest.approx(0.04)
    assert found.high == pytest.approx(0.04)
    assert list(found.idle_watts or ()) == pytest.approx([10.0, 10.0])


def test_idle_power_that_drifts_is_that_of_before_and_after() -> None:
    found = Machine(lambda at: 10.0 + 2 * at, lambda _: 0.04).measured()
    assert found.joules == pytest.approx(0.04, rel=1e-2)  # 3 % off by the power of before alone
    assert found.idle_watts
    assert found.idle_watts[1] > found.idle_watts[0]


def test_figures_that_scatter_are_repeated_and_their_spread_stated() -> None:
    found = Machine(lambda _: 10.0, lambda n: 0.04 if n // 250 % 2 else 0.08).measured()
    assert found.repetitions == energy.MOST_REPETITIONS
    assert found.low == pytest.approx(0.04, rel=0.05)
    assert found.high == pytest.approx(0.08, rel=0.05)


def test_runs_that_cannot_be_told_from_idle_power() -> None:
    with pytest.raises(
        pn.Unsupported, match=r"cannot be told from 10 W of idle power: -0\.0094 to 0\.02 J a run in 15"
    ):
        Machine(lambda _: 10.0, lambda n: -0.01 if n // 250 % 3 == 2 else 0.02).measured()
    with pytest.raises(pn.Unsupported, match="the counters do not move"):  # as in virtual machines
        Machine(lambda _: 0.0, lambda _: 0.0).measured()


# ---- the model ------------------------------------------------------------------------------------------------------

NET = """graph "net" {
  input %x : f32[1,64,8,8]
  const %w : f32[32,64,1,1] = {WEIGHTS}
  %c = conv(%x, %w)
  output "y" %c
}""".replace("WEIGHTS", ",".join(["1"] * 2048))
X = {"x": np.ones((1, 64, 8, 8), np.float32)}


def net() -> pn.Program:
    return pn.Program(_core.Model.parse(NET).build(["cpu"]))


def modelled(target: str, software: bool = False, precision: str = "fp32") -> Energy:
    session = pn.Session(net(), target, 1, precision)
    session.run(X)
    return modelled_energy(session, session.program, X, software, "no counters")


def test_multiply_adds_and_bytes_have_their_coefficients() -> None:
    found = modelled("cpu:generic")
    adds, values = 64 * 32 * 8 * 8, (64 + 32) * 64 * 4
    picojoules = {name: coefficient.picojoules for name, coefficient in COEFFICIENTS.items()}
    wanted = adds * (picojoules["fp32"] + picojoules["cpu instruction"] / 4)
    wanted += values * picojoules["cache"] + (values + 2048 * 4) * picojoules["dram"]
    assert found.kind == "modelled"
    assert found.joules == pytest.approx(wanted * 1e-12, rel=1e-6)
    assert found.low == pytest.approx(wanted * 1e-13)
    assert found.high == pytest.approx(wanted * 1e-11)
    assert found.why == "no counters"
    assert re.search(r"arithmetic \d+%, instructions \d+%, cache \d+%, dram \d+%", found.source)


def test_instructions_of_the_kernels_own_set() -> None:
    for kernel, kind, each in (
        ("conv_nhwc_f32_avx512", "fp32", 16),
        ("row-tiled fusion of to channels last, conv_nhwc_f32_avx2", "fp32", 8),
        ("mat_mul_i8_avx512_vnni", "int8", 64),
        ("mat_mul_i8_avx2", "int8", 32 / 3),
        ("mat_mul_i8_amx_int8", "int8", 16384),
        ("mat_mul_bf16_amx_bf16", "fp16", 8192),
        ("mat_mul_f32_amx_bf16", "int8", 64),
        ("conv_i8_neon_dotprod", "int8", 16),
        ("conv_nc4hw4_f32", "fp32", 4),
        ("reference", "fp32", 1),
    ):
        assert multiply_adds_of_an_instruction(kernel, kind) == pytest.approx(each), kernel


def test_what_has_no_coefficients_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    if "softmetal" in TARGETS:
        found = modelled("softmetal", software=True)
        assert (found.kind, found.joules) == ("none", None)
        assert found.why.startswith("no counters; not modelled either: this processor stands in for the device")
    if "nnapi" in TARGETS:  # on hardware
        assert "what stands behind NNAPI" in modelled("nnapi").why
    monkeypatch.setattr(energy_model, "_GPUS", ("softmetal",))  # in a GPU's place
    if "softmetal" in TARGETS:
        on_gpu, on_cpu = modelled("softmetal").joules, modelled("cpu:generic").joules
        assert on_gpu
        assert on_cpu
        difference = 64 * 32 * 8 * 8 * (COEFFICIENTS["gpu instruction"].picojoules - 70 / 4) * 1e-12
        assert on_gpu - on_cpu == pytest.approx(difference)


def test_sizes_that_depend_on_data_have_no_figure() -> None:
    text = """graph "g" {
  input %x : f32[4,4]
  const %w : f32[2,2] = {1,2,3,4}
  %places = non_zero(%x)
  %floats = cast(%places) {to="f32"}
  %y = mat_mul "product" (%w, %floats)
  output "y" %y
}"""
    session = pn.Session(pn.Program(_core.Model.parse(text).build(["cpu"])), "cpu", 1)
    x = {"x": np.ones((4, 4), np.float32)}
    session.run(x)
    found = modelled_energy(session, session.program, x, False, "no counters")
    assert (found.kind, found.joules) == ("none", None)
    assert found.why == "no counters; not modelled either: the sizes of node 'product' depend on data"


def test_the_page_has_every_coefficient() -> None:
    page = " ".join((ROOT / "docs/performance.md").read_text().split())
    for coefficient in COEFFICIENTS.values():
        assert f"| {coefficient.of} | {coefficient.picojoules:g} |" in page
    for said in ("ISSCC 2014", "45 nm", "DAC 2021", f"factor of {energy_model.FACTOR:g}"):
        assert said in page
