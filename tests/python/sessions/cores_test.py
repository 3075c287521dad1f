"""Which processors count as cores, on folders that the tests make; the process is kept on them; software devices."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pinnace as pn
import pytest
from pinnace.measure import cores
from pinnace.measure.cores import Together, columns, kept_on, own_processors, together
from pinnace.targets import Device


def topology(folder: Path, cores: Sequence[tuple[int, int]]) -> Path:
    """A folder in which processor i is of the package and the core `cores[i]`."""
    for processor, (package, core) in enumerate(cores):
        place = folder / f"cpu{processor}" / "topology"
        place.mkdir(parents=True)
        (place / "physical_package_id").write_text(f"{package}\n")
        (place / "core_id").write_text(f"{core}\n")
    return folder


def never(processors: Sequence[int]) -> Together:
    raise AssertionError(f"measured {processors}")


def test_columns_of_a_machine_that_says_its_cores(tmp_path: Path) -> None:
    asked: list[list[int]] = []

    def cores(processors: Sequence[int]) -> Together:
        asked.append(list(processors))
        return Together(0.93, 0.0)

    folder = topology(tmp_path, [(0, 0), (0, 1), (0, 0), (0, 1)])  # two cores of two threads each
    one, two, four, eight = columns([1, 2, 4, 8], range(4), folder, cores)
    assert (one.processors, one.why) == ([3], "")
    assert (two.processors, two.why, two.share) == ([2, 3], "", 0.93)
    assert asked == [[2, 3]]
    assert four.why == "processors 0, 1, 2, 3 are threads of 2 cores"
    assert eight.why == "the process may use 4 processors"
    # The process may use three, of which two are threads of one core: the other core and one of them are chosen.
    assert columns([2], [0, 2, 3], folder, cores)[0].processors == [2, 3]
    assert columns([2], [0, 1, 2], folder, cores)[0].processors == [1, 2]
    assert columns([2], [0, 2], folder, never)[0].why == "processors 0, 2 are threads of 1 core"
    assert columns([2], [1], folder, never)[0].why == "the process may use 1 processor"
    two_packages = topology(tmp_path / "more", [(0, 0), (1, 0)])
    assert columns([2], [0, 1], two_packages, cores)[0].why == ""


@pytest.mark.parametrize(
    ("share", "others", "why"),
    [
        (1.0, None, ""),
        (0.75, 0.0, ""),
        (0.8, 1.5, ""),  # whatever others did, these are cores
        (0.52, 0.01, "processors 0, 1 do at once 52% of what each does alone: they are no 2 cores"),
        (0.52, None, "processors 0, 1 do at once 52% of what each does alone: they are no 2 cores"),
        (
            0.52,
            0.7,
            "processors 0, 1 do at once 52% of what each does alone, while other programs used 0.70 of a processor: "
            "whether they are cores is open",
        ),
    ],
)
def test_two_processors_are_measured(tmp_path: Path, share: float, others: float | None, why: str) -> None:
    for folder in (tmp_path, topology(tmp_path / "known", [(0, 0), (0, 1)])):  # a virtual machine may say so wrongly
        (column,) = columns([2], [0, 1], folder, lambda _: Together(share, others))
        assert (column.processors, column.why, column.share) == ([0, 1], why, share)


def test_a_system_without_sets_of_processors(tmp_path: Path) -> None:
    one, many = columns([1, 100_000], None, tmp_path, never)
    assert (one.processors, one.why) == ([], "")
    assert many.why.startswith("the process may use ")


@pytest.mark.skipif(own_processors() is None, reason="the system has no sets of processors")
def test_processors_multiply_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_RUNS", 2)
    monkeypatch.setattr(cores, "_ATTEMPTS", 1)
    assert together(own_processors() or []).share > 0


def test_the_best_of_all_attempts_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alone and all at once; attempts end with the first that nobody disturbed."""
    asked: list[list[int]] = []
    loads = iter([0.9, 0.04])

    def rate(places: Sequence[tuple[int, object]], *_: object) -> float:
        asked.append([processor for processor, _ in places])
        attempt = (len(asked) - 1) // (3 * cores._RUNS)
        return [100.0, 90.0][attempt] if len(places) == 1 else [90.0, 104.0][attempt]

    class Load:
        def so_far(self) -> float:
            return next(loads)

    monkeypatch.setattr(cores, "_rate", rate)
    monkeypatch.setattr(cores, "OthersLoad", Load)
    assert together([4, 7]) == Together(104 / 200, 0.04)
    assert asked == 2 * ([[4]] * cores._RUNS + [[7]] * cores._RUNS + [[4, 7]] * cores._RUNS)


@pytest.mark.skipif(own_processors() is None, reason="the system has no sets of processors")
def test_all_threads_are_kept_on_processors() -> None:
    own = own_processors() or []
    go, end = threading.Event(), threading.Event()
    seen: list[list[int]] = []

    def wait() -> None:
        go.wait(20)
        seen.append(sorted(os.sched_getaffinity(0)))
        end.wait(20)
        seen.append(sorted(os.sched_getaffinity(0)))

    def wait_late() -> None:
        end.wait(20)
        seen.append(sorted(os.sched_getaffinity(0)))

    before = threading.Thread(target=wait)
    before.start()
    late = threading.Thread(target=wait_late)
    with kept_on(own[-1:]):
        assert own_processors() == own[-1:]
        late.start()
        go.set()
        while not seen:
            time.sleep(0.001)
    end.set()
    before.join()
    late.join()
    assert seen == [own[-1:], own, own]
    assert own_processors() == own
    with kept_on([]):
        assert own_processors() == own
    with pytest.raises(pn.InvalidArgument, match="may use none of them"), kept_on([4000]):
        pass
    with pytest.raises(RuntimeError, match="inside"), kept_on(own[-1:]):
        raise RuntimeError("inside")
    assert own_processors() == own


def test_software_devices() -> None:
    software = [
        ("softmetal", "softmetal (Metal's kernels on this processor), interface 1"),
        ("vulkan", "llvmpipe (LLVM 15.0.6, 256 bits), Vulkan 1.3.230, driver 1"),
        ("vulkan:1", "SwiftShader Device (LLVM 10.0.0), Vulkan 1.3"),
        ("vulkan", "Some driver of later years, driver 7, software, unified memory"),
        ("nnapi", "pinnace-cpu 0.1.0, feature level 8, libneuralnetworks.so"),
        ("nnapi:fl3", "nnapi-reference 1, feature level 3"),
    ]
    hardware = [
        ("vulkan", "Mali-G78, Vulkan 1.1.191, driver 32, fp16 storage, unified memory"),
        ("nnapi", "google-edgetpu 1.0, feature level 4"),
        ("cpu", "Some processor, avx2, 8 processors"),
    ]
    assert all(Device(target, True, said).software for target, said in software)
    assert not any(Device(target, True, said).software for target, said in hardware)
