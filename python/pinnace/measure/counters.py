"""What the system counts of energy: RAPL counters of processors, and the power that batteries give.

Both are files, whose folders tests make. A counter that cannot be read, or that could not be understood, gives no
figure: Unsupported names the file and what is wrong with it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pinnace import _core
from pinnace.files import reason

POWERCAP = Path("/sys/class/powercap")
SUPPLIES = Path("/sys/class/power_supply")
# No package draws more: a counter that such power takes around its range may have gone around more than once.
_MOST_WATTS = 1000.0
_SAMPLE_SECONDS = 0.2


class Meter(Protocol):
    """Something that tells the energy used between two moments.

    source   what it counts: "RAPL package-0, dram".
    seconds  the shortest time over which its figures mean something.
    """

    source: str
    seconds: float

    def begin(self) -> None:
        """Counts from now on. Unsupported: it cannot be read."""

    def joules(self) -> float:
        """Since begin(). Unsupported: it cannot be read, or what it gave is no figure."""


class Rapl:
    """The counters of all packages, and of their memory where there are such.

    Their domains core and uncore are parts of the package, and psys is of the whole platform with the package in it:
    neither is added. Graphics that share the package are counted in it; a device with power of its own is not.
    """

    seconds = 0.5  # the counters move every millisecond

    def __init__(self, folder: Path = POWERCAP) -> None:
        """folder: of the class powercap. Unsupported: there are no counters of packages, or one cannot be read."""
        zones = sorted(folder.glob("intel-rapl:*")) if folder.is_dir() else []
        zones += [inner for zone in zones for inner in sorted(zone.glob("intel-rapl:*"))]
        by_name = {zone.name: zone for zone in reversed(zones) if re.fullmatch(r"intel-rapl:\d+(:\d+)?", zone.name)}
        names = {zone: _text(zone / "name") for _, zone in sorted(by_name.items())}
        self._zones = {zone: name for zone, name in names.items() if name.startswith("package") or name == "dram"}
        if not any(name.startswith("package") for name in self._zones.values()):
            raise _core.Unsupported(f"{folder} has no RAPL counter of a package")
        self.source = "RAPL " + ", ".join(_counted(list(self._zones.values())))
        self._ranges = {zone: _whole(zone / "max_energy_range_uj") for zone in self._zones}
        for zone, largest in self._ranges.items():
            if largest == 0:
                raise _core.Unsupported(f"{zone / 'max_energy_range_uj'}: the counter's range is 0")
        self._start: dict[Path, int] = {}
        self._when = 0.0
        self.begin()

    def begin(self) -> None:
        """As Meter.begin()."""
        self._start = {zone: _whole(zone / "energy_uj") for zone in self._zones}
        self._when = time.monotonic()

    def joules(self) -> float:
        """As Meter.joules(). A counter that is smaller than before has gone around its range once."""
        passed = time.monotonic() - self._when
        total = 0
        for zone, start in self._start.items():
            now, largest = _whole(zone / "energy_uj"), self._ranges[zone]
            if max(start, now) > largest:
                raise _core.Unsupported(f"{zone / 'energy_uj'}: {max(start, now)} is above its range of {largest}")
            if passed * _MOST_WATTS * 1e6 > largest:
                raise _core.Unsupported(
                    f"{zone / 'energy_uj'}: may have gone around its range of {largest / 1e6:g} J more than once in "
                    f"{passed:.0f} s"
                )
            total += now - start if now >= start else now + largest - start
        return total / 1e6


class Battery:
    """The power that batteries give, sampled while it counts: the whole device, its screen too.

    A battery that is charged gives no figure, nor does one that is full or idle because the mains feed the device.
    """

    seconds = 5.0  # gauges bring their figures up to date every second or less often

    def __init__(self, folder: Path = SUPPLIES, sample_seconds: float = _SAMPLE_SECONDS) -> None:
        """folder: of the class power_supply. Unsupported: there is no battery that feeds the device, or it does not
        say its power."""
        self._batteries = [supply for supply in _listed(folder) if _is_battery(supply)]
        if not self._batteries:
            raise _core.Unsupported(f"{folder} has no battery of the device")
        self.source = "battery " + ", ".join(supply.name for supply in self._batteries)
        self._sample_seconds = sample_seconds
        self._samples: list[float] = []
        self._failure: _core.Error | None = None
        self._end = threading.Event()
        self._sampler: threading.Thread | None = None
        self._when = 0.0
        self._watts()

    def begin(self) -> None:
        """As Meter.begin()."""
        self._samples, self._failure = [self._watts()], None
        self._end.clear()
        self._when = time.monotonic()
        self._sampler = threading.Thread(target=self._sample, name="pinnace-battery", daemon=True)
        self._sampler.start()

    def joules(self) -> float:
        """As Meter.joules(): the mean of the samples times the time. Unsupported too: a battery began to be charged."""
        self._end.set()
        if self._sampler is not None:
            self._sampler.join()
        passed = time.monotonic() - self._when
        if self._failure is not None:
            raise self._failure
        self._samples.append(self._watts())
        return sum(self._samples) / len(self._samples) * passed

    def _sample(self) -> None:
        while not self._end.wait(self._sample_seconds):
            try:
                self._samples.append(self._watts())
            except _core.Unsupported as error:
                self._failure = error
                return

    def _watts(self) -> float:
        return sum(_battery_watts(battery) for battery in self._batteries)


def find_meter(powercap: Path = POWERCAP, supplies: Path = SUPPLIES) -> Meter:
    """RAPL's counters, else the battery's. Unsupported: why there is neither."""
    makers: list[Callable[[], Meter]] = [lambda: Rapl(powercap), lambda: Battery(supplies)]
    reasons = []
    for make in makers:
        try:
            return make()
        except _core.Unsupported as error:
            reasons.append(str(error))
    raise _core.Unsupported("; ".join(reasons))


def _counted(names: list[str]) -> list[str]:
    """Each name once, with its number where there are several."""
    return [name if (n := names.count(name)) == 1 else f"{n} x {name}" for name in dict.fromkeys(names)]


def _is_battery(supply: Path) -> bool:
    """Whether it is a battery that is there and is the device's own, not one of a mouse."""
    return (
        _text(supply / "type", "") == "Battery"
        and _text(supply / "scope", "System") == "System"
        and _text(supply / "present", "1") == "1"
    )


def _battery_watts(battery: Path) -> float:
    status = _text(battery / "status")
    if status != "Discharging":
        raise _core.Unsupported(f"{battery / 'status'}: {status!r}: only a battery that is discharged tells the power")
    if (battery / "power_now").exists():
        return abs(_whole(battery / "power_now")) / 1e6
    # Some gauges count what leaves the battery as negative.
    return abs(_whole(battery / "current_now")) / 1e6 * _whole(battery / "voltage_now") / 1e6


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(path: Path, missing: str | None = None) -> str:
    """The file's only line. Unsupported: it cannot be read, unless it is not there and `missing` stands for it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        if missing is not None:
            return missing
        raise _core.Unsupported(f"{path} is not there") from None
    except PermissionError:
        raise _core.Unsupported(f"{path} may not be read: most systems let root alone") from None
    except OSError as error:
        raise _core.Unsupported(f"{path} cannot be read: {reason(error)}") from error


def _whole(path: Path) -> int:
    text = _text(path)
    if not re.fullmatch(r"-?[0-9]{1,20}", text):
        raise _core.Unsupported(f"{path}: {text[:40]!r} is no whole number")
    return int(text)


__all__ = ["Battery", "Meter", "Rapl", "find_meter"]
