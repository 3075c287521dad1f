"""The benchmark: what its tables say of a recorded run, how turns are chosen and runs go on, and a run of its own."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpu_tables
import numpy as np
import operators
import pytest
import quantize
import quantize_cases
import report
import start_up
import tables
from cases import ARM64_TARGETS, TARGETS, batch_of, of_batch, quantized
from operator_cases import OPERATORS

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def recorded() -> dict[str, Any]:
    return dict(json.loads((ROOT / "tests/data/bench_results.json").read_text()))


def cells(lines: list[str], *start: str) -> list[str]:
    """The row of a table that starts with these cells."""
    for line in lines:
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if row[: len(start)] == list(start):
            return row
    raise AssertionError(f"no row {start} in:\n" + "\n".join(lines))


def test_targets_of_a_recorded_run(recorded: dict[str, Any]) -> None:
    lines = tables.targets(recorded)
    assert cells(lines, "mobilenet_v2", "1")[2:] == [
        "0.86 ≤ 0.88 met (litert)",
        "not measured",
        "0.81 ≤ 1.00 met (openvino-avx2)",
        "0.50 > 0.25 **missed** (litert)",
        "0.86 ≤ 1.00 met (onnxruntime)",
        "2.0e-06 ≤ 1e-04 met",
    ]
    # Disturbed, a rival that failed, and our own failure.
    assert cells(lines, "mobilenet_v2", "2")[2:5] == [
        "~0.92 > 0.88 **missed** (onnxruntime)",
        "not measured",
        "not measured: pinnace-avx2 failed",
    ]
    assert cells(lines, "mobilenet_v2_int8 (QDQ)", "1")[2] == "0.67 > 0.58 **missed** (onnxruntime)"
    assert cells(lines, "mobilenet_v2_int8 (PT2E)", "1")[2] == "0.50 ≤ 0.58 met (onnxruntime)"
    assert cells(lines, "runtime library, stripped")[1:] == ["2.50 MB", "3 MB", "met"]
    assert cells(lines, "MobileNetV2 in float32, instructions")[1:] == ["101.00 M", "95 M", "**missed**"]


def test_engines_that_choose_their_precision_have_a_column(recorded: dict[str, Any]) -> None:
    [one] = [r for r in recorded["models"] if (r["case"], r["threads"]) == ("mobilenet_v2", 1)]
    engines, names = one["engines"], ("pinnace", "pinnace-auto", "openvino", "openvino-installed", "litert")
    times = dict(zip(names, (8.0, 4.0, 9.0, 5.0, 10.0), strict=True))
    one["engines"] = {name: {**engines["pinnace"], "median": time} for name, time in times.items()}
    row = cells(tables.targets(recorded), "mobilenet_v2", "1")
    assert row[2:4] == ["0.89 > 0.88 **missed** (openvino)", "0.80 ≤ 1.00 met (openvino-installed)"]
    del one["engines"]["openvino-installed"], one["engines"]["openvino"]  # who has no such twin stays in float32
    assert cells(tables.targets(recorded), "mobilenet_v2", "1")[3] == "0.40 ≤ 1.00 met (litert)"


def test_no_target_is_left_out(recorded: dict[str, Any]) -> None:
    lines = tables.targets(recorded)
    for case in TARGETS:
        for threads in ("1", "2"):
            for name in (f"{case} (QDQ)", f"{case} (PT2E)") if quantized(case) else (case,):
                assert all(cells(lines, name, threads)[2:])
    for name in ARM64_TARGETS:
        assert cells(lines, name)
    assert cells(lines, "bert", "2")[2:] == ["not measured"] * 6
    met, missed, unmeasured = (int(x) for x in lines[-1].split() if x.isdigit())
    body = "\n".join(lines[:-1])
    assert (met, missed) == (body.count(" met"), body.count("**missed**"))
    assert unmeasured == body.count("not measured")


def test_targets_that_were_not_chosen_are_named(recorded: dict[str, Any]) -> None:
    recorded["settings"]["names"] = ["mobilenet_v2*"]
    lines = tables.targets(recorded)
    assert any(line.startswith("Not chosen, so not measured: mobilenet_v3_large, ") for line in lines)


def test_threads_normalised(recorded: dict[str, Any]) -> None:
    lines = tables.scaling(recorded)
    assert cells(lines, "mobilenet_v2", "**pinnace**")[2:] == ["1.000", "0.550", "-"]
    assert cells(lines, "mobilenet_v2", "onnxruntime")[2:] == ["1.000", "0.480", "-"]
    assert cells(lines, "mobilenet_v2", "litert")[2:] == ["1.000", "-", "-"]
    assert lines[-1] == "4 threads: not measurable here, the machine has 2 processors."


def test_models_and_what_is_missing(recorded: dict[str, Any]) -> None:
    row = cells(tables.models(recorded), "mobilenet_v2", "2", "**pinnace**")
    assert row[3] == "3.300"
    assert row[-2:] == ["~0.40", "4"]
    missing = tables.missing(recorded)
    assert "- ncnn (mobilenet_v2): not installed: .venv-bench/main" in missing
    assert "- litert (mobilenet_v2): RuntimeError: no" in missing
    assert "- held to AVX2, onnxruntime: chooses by itself" in missing


def test_operators_and_their_share_of_the_peak(recorded: dict[str, Any]) -> None:
    lines = tables.operators(recorded)
    # 110 M operations at 110 G a second (the faster of the two levels' loops) take 1 ms of 2.
    assert cells(lines, "gemm_128_768_768", "1")[4:6] == ["55.0 GFLOP/s", "50% of f32"]
    # 0.8 MB fit the second level, copied at 80 GB/s: 0.01 ms of 0.1.
    assert cells(lines, "relu_64_at_56", "1")[4:6] == ["8.0 GB/s", "10% of L2"]
    assert cells(lines, "add_64_at_56", "1")[2:6] == ["~0.1000", "0.1000 to 0.1000", "18.0 GB/s", "36% of L3"]
    assert cells(lines, "mish_64_at_56", "1")[-1] == "**reference**"
    assert cells(lines, "top_k_5_of_1000", "1")[-1].startswith("failed: RuntimeError")
    assert "By reference code (1): mish_64_at_56." in lines
    assert lines[-1] == "By kernels that stay below 30% of the measured peak (1): relu_64_at_56 (10%)."


def test_report_shows_machine_versions_and_a_run_that_was_broken_off(recorded: dict[str, Any]) -> None:
    text = tables.report(recorded)
    assert "Example 9000, 2 processors, 8 GB" in text
    assert "onnxruntime 1.0" in text
    assert "broken off" not in text
    recorded["finished"] = False
    assert "broken off" in tables.report(recorded)
    assert "## Targets" in tables.report({})


def gpu_row(median: float, cold: float, warm: float, **more: Any) -> dict[str, Any]:
    """An engine's row of `report.py --gpu`, half of whose starts is loading."""
    start = {"cold_load_ms": cold / 2, "cold_first_ms": cold, "load_ms": warm / 2, "first_ms": warm}
    shown = {"p10": median, "p90": median, "cpu_s": 0.1, "peak_mb": 100.0, "error": 1e-5, "others": 0.0, "version": "1"}
    return {"median": median, **start, **shown, **more}


def test_tables_of_gpus() -> None:
    engines = {
        "pinnace-vulkan": gpu_row(90, 400, 100),
        "pinnace-vulkan-fp16": gpu_row(80, 400, 100, others=0.4),
        "ncnn-vulkan": gpu_row(100, 1000, 150),
        "ncnn-vulkan-fp16": gpu_row(120, 1000, 150),
        "torch-cuda": {"failed": "RuntimeError: finds no CUDA device"},
    }
    gpu = {"device": "llvmpipe", "software": True}
    settings = {"gpu": gpu, "cases": ["mobilenet_v2", "resnet50_batch16"]}
    data = {"settings": settings, "models": [{"case": "mobilenet_v2", "threads": 2, "engines": engines}]}
    lines = gpu_tables.targets(data)
    assert cells(lines, "mobilenet_v2")[1:] == [
        "0.90 ≤ 1.00 met",
        "~0.67 ≤ 1.00 met",
        "~0.80 ≤ 1.00 met",
        "0.40 ≤ 0.50 met",
        "0.67 > 0.50 **missed**",
    ]
    assert cells(lines, "resnet50_batch16")[1:] == ["not measured: pinnace-vulkan"] * 5
    assert lines[-1].startswith("Targets: 4 met, 1 missed, 5 not measured here.")
    assert cells(gpu_tables.models(data), "mobilenet_v2", "ncnn-vulkan")[5:7] == ["500 + 500", "75 + 75"]
    gpu["software"] = False
    assert cells(gpu_tables.targets(data), "mobilenet_v2")[1] == "0.90 > 0.80 **missed**"
    text = gpu_tables.report(data)
    assert "torch-cuda (mobilenet_v2): RuntimeError: finds no CUDA device" in text
    assert "broken off" in text


def test_cases_of_several_images() -> None:
    assert of_batch("resnet50", 1) == "resnet50"
    assert batch_of(of_batch("resnet50", 16)) == 16
    assert batch_of("resnet50_int8") == 1


def test_an_undisturbed_turn_is_preferred() -> None:
    turn = {"others": 0.0, "attempt": 0, "peak_mb": 10.0, "first_ms": 12.0}
    disturbed = turn | {"median": 1.0, "others": 0.5}
    quiet = turn | {"median": 2.0, "attempt": 1, "peak_mb": 11.0}
    best = report.best_turn([disturbed, quiet, quiet | {"median": 3.0, "attempt": 0}])
    assert (best["median"], best["repeated"], best["peak_mb"], best["medians"]) == (2.0, 1, 11.0, [1.0, 2.0, 3.0])
    assert best["start_up"] == 10.0
    assert report.best_turn([disturbed, disturbed | {"median": 0.9}])["median"] == 0.9


def test_a_start_up_below_one_run_is_not_measured(recorded: dict[str, Any]) -> None:
    engines = recorded["models"][0]["engines"]
    engines["litert"]["start_up"] = -1.0
    assert tables.compared(engines, "pinnace", "start_up", 0.25) == "0.08 ≤ 0.25 met (onnxruntime)"
    engines["pinnace"]["start_up"] = -1.0
    assert tables.compared(engines, "pinnace", "start_up", 0.25) == "not measured: disturbed"


def test_a_run_that_was_broken_off_goes_on(recorded: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    fresh = copy.deepcopy(recorded) | {"finished": False, "models": [], "operators": []}
    assert report.resumed(path, fresh, False) is fresh
    path.write_text(json.dumps(recorded | {"finished": False}))
    assert report.resumed(path, fresh, False)["models"] == recorded["models"]
    assert report.resumed(path, fresh, True) is fresh
    changes: list[dict[str, Any]] = [{"library": "other"}, {"settings": {}}, {"machine": {"processor": "other"}}]
    for changed in changes:
        other = fresh | changed
        assert report.resumed(path, other, False) is other
    path.write_text(json.dumps(recorded | {"finished": True}))
    assert report.resumed(path, fresh, False) is fresh


def test_a_wrong_operator_is_not_timed() -> None:
    want = np.array([1.0, -2.0], np.float32)
    assert operators.check([want], [want]) == 0
    with pytest.raises(RuntimeError, match=r"differs from the reference by 0\.5, may by 0\.0001"):
        operators.check([np.array([1.0, -1.0], np.float32)], [want])
    with pytest.raises(RuntimeError, match="may by 0"):
        operators.check([np.array([1, 3], np.uint8)], [np.array([1, 2], np.uint8)])
    with pytest.raises(RuntimeError, match="float64"):
        operators.check([want.astype(np.float64)], [want])


@pytest.mark.parametrize("name", ["conv_i8_3x3_64_64_at_56", "softmax_1_1000", "lstm_both_ways_50_steps_128_128"])
def test_operator_cases_are_the_same_every_time(name: str) -> None:
    first, second = OPERATORS[name].build(), OPERATORS[name].build()
    assert first.model().SerializeToString() == second.model().SerializeToString()
    for key, array in first.inputs.items():
        assert np.array_equal(array, second.inputs[key])


@pytest.mark.rotating
def test_a_small_run(tmp_path: Path) -> None:
    """One model and one operator, without rivals, as `make bench` does it."""
    command = [sys.executable, str(ROOT / "bench/report.py"), "noise_suppressor_frame", "conv_i8_1x1_160_960_at_7"]
    command += ["--engines=pinnace,pinnace-avx2,ncnn", "--threads=1", "--seconds=0.02", "--rounds=2"]
    environment = {**os.environ, "PINNACE_BENCH_FOLDER": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    data = json.loads((tmp_path / "selected.json").read_text())
    assert data["finished"]
    [operator] = data["operators"]
    assert operator["error"] == 0
    assert operator["median"] > 0
    [model] = data["models"]
    ours = model["engines"]["pinnace"]
    assert ours["error"] < 1e-4
    assert ours["runs"] >= 4
    assert len(ours["medians"]) >= 2
    assert "noise_suppressor_frame" in (tmp_path / "selected.md").read_text()


def test_a_table_of_start_up() -> None:
    """Ratios are to the soonest of the others, whatever ours are; who could not start says why."""

    def engine(best: float) -> dict[str, Any]:
        return {"best": best, "median": best + 1, "run": 5.0, "starts": 7, "disturbed": 1, "version": "1"}

    engines = {
        "pinnace-plain": engine(8.0),
        "pinnace-packed": engine(4.0),
        "onnxruntime": engine(40.0),
        "ncnn": engine(20.0),
        "openvino": {"failed": "not installed: .venv-bench/main"},
    }
    data = {
        "machine": {"processor": "P", "processors": 2, "date": "2026-01-01"},
        "engines": list(engines),
        "starts": 7,
        "models": [{"case": "bert", "threads": 1, "engines": engines}],
    }
    text = start_up.report(data)
    row = cells(text.splitlines(), "bert", "1")
    assert row[2:] == ["8.00 (9.00)", "4.00 (5.00)", "20.00 (ncnn)", "0.40 **missed**", "0.20 met"]
    assert "4 of 28 starts were disturbed" in text
    assert start_up.best_rival({"pinnace-plain": engine(1.0)}) is None


def test_a_figure_is_the_soonest_of_its_starts() -> None:
    starts = [
        {"start_up": s, "median": m, "others": o, "version": "1"} for s, m, o in ((9, 2, 0.0), (7, 3, 0.5), (8, 1, 0.0))
    ]
    figure = start_up.figure(starts)
    assert (figure["best"], figure["median"], figure["run"], figure["disturbed"]) == (7, 8, 1, 1)


@pytest.mark.rotating
def test_start_up_without_rivals(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "bench/start_up.py"), "noise_suppressor_frame", "--threads=1"]
    command += ["--engines=pinnace-plain,pinnace-cached,pinnace-packed,ncnn", "--starts=1", "--seconds=0.02"]
    environment = {**os.environ, "PINNACE_BENCH_FOLDER": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    [model] = json.loads((tmp_path / "start_up.json").read_text())["models"]
    assert all(model["engines"][name]["best"] > 0 for name in ("pinnace-plain", "pinnace-packed"))
    assert "pinnace" not in str(start_up.best_rival(model["engines"]))
    assert list((tmp_path / "cache").glob("packed-*.pnc"))
    assert "noise_suppressor_frame" in (tmp_path / "start_up.md").read_text()


def test_the_table_of_quantisers() -> None:
    rows = [
        {"case": "minilm", "method": "int8", "accuracy": 0.8, "size": 26, "whole": 100, "ms": 1.25},
        {"case": "minilm", "method": "nncf", "accuracy": 0.933, "size": 25, "whole": 100},
        {"case": "silero_vad", "method": "nncf", "failed": "cannot | be read"},
    ]
    text = quantize.report({"machine": {"processor": "A processor", "date": "2026-01-01"}, "rows": rows})
    assert text.startswith("A processor, 2026-01-01. Time not measured in 2 of 3 rows")
    lines = text.splitlines()
    assert cells(lines, "minilm", 'pinnace, `Int8(observer="minmax")`')[2:] == ["80.0 %", "0.26", "1.25"]
    assert cells(lines, "minilm", "NNCF, `quantize`, on OpenVINO")[2:] == ["93.3 %", "0.25", "not measured"]
    assert cells(lines, "silero_vad")[2:] == ["failed: cannot / be read", "", ""]
    page = quantize.insert(f"before\n{quantize.BEGIN}\nold\n{quantize.END}\nafter\n", text)
    assert page == f"before\n{quantize.BEGIN}\n{text}\n{quantize.END}\nafter\n"
    assert quantize.insert(quantize.PAGE.read_text(), text) != quantize.PAGE.read_text()
    with pytest.raises(ValueError, match="has no place"):
        quantize.insert("no markers", text)


def test_accuracies_of_quantised_models() -> None:
    vectors = np.random.default_rng(4).standard_normal((12, 6))
    assert quantize_cases.agreement("minilm", 3 * vectors, vectors) == 1
    turned = vectors.copy()
    turned[0] *= -1
    assert 0 < quantize_cases.agreement("minilm", turned, vectors) < 1
    speech = np.array([[0.1], [0.9], [0.6], [0.4]])
    assert quantize_cases.agreement("silero_vad", speech, np.array([[0.2], [0.7], [0.3], [0.4]])) == 0.75
    assert quantize_cases.agreement("digits_cnn", np.eye(4), np.array([0, 1, 2, 0])) == 0.75


@pytest.mark.rotating
def test_a_quantiser_is_measured(tmp_path: Path) -> None:
    """All of one case in small: written, quantised, run, timed."""
    environment = os.environ | {"PINNACE_BENCH_FOLDER": str(tmp_path), "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, str(ROOT / "bench" / "quantize_cases.py"), "digits_cnn"]
    subprocess.run(command, check=True, env=environment, timeout=300)
    command = [sys.executable, str(ROOT / "bench" / "quantize.py"), "digits_cnn", "int8", "0.05", "0"]
    done = subprocess.run(command, check=True, env=environment, timeout=300, capture_output=True, text=True)
    row = json.loads(done.stdout.splitlines()[-1])
    assert row["accuracy"] > 0.95
    assert row["size"] < 0.7 * row["whole"]
    refused = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "report.py"), "--quantize", "resnet"], capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert "'resnet' is none of digits_cnn" in refused.stderr
