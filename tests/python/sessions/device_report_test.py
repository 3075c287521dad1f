"""The report of a device: kits that are made and damaged, answers that are judged, pages that are written and read.

What a kit may lie about byte by byte is in tests/cpp/report/report_test.cc.
"""

from __future__ import annotations

import copy
import json
import os
import re
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
from pinnace import _core
from pinnace.agreement import BOUNDS, agreement
from pinnace.cli import main
from pinnace.device.graph_text import GraphText
from pinnace.device.kit import make_kit, packed
from pinnace.device.known_answers import KnownAnswer, known_answers
from pinnace.device.mobilenet import mobilenet_text
from pinnace.device.page import read_page

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "build/release/pinnace-report"
SECONDS = 60.0


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A narrow network for small images, to time."""
    path = tmp_path_factory.mktemp("device") / "small.pnc"
    pn.Program(_core.Model.parse(mobilenet_text(32, 0.125)).build(["cpu"], {})).save(path)
    return path


@pytest.fixture(scope="module")
def kit(small: Path) -> bytes:
    return make_kit([small])


@pytest.fixture(scope="module")
def page(kit: bytes) -> dict[str, Any]:
    """Of the CPU."""
    return report(kit)


@pytest.fixture
def page_file(page: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(page))
    return path


def report(kit: bytes, *targets: str, seconds: float = SECONDS) -> dict[str, Any]:
    text, good, _ = _core.run_report(kit, list(targets or ("cpu",)), seconds)
    found: dict[str, Any] = json.loads(text)
    counts = found["totals"]
    assert good == (counts["differs"] + counts["failed"] == 0 and counts["equal"] + counts["refused"] > 0)
    return found


def index_of(kit: bytes) -> dict[str, tuple[int, int]]:
    """Offset and size of each range, by the format as docs/device_report.md has it."""
    _, count, _, _ = struct.unpack_from("<IIQQ", kit, 8)
    at, found = 32, {}
    for _ in range(count):
        offset, size, _, name_bytes = struct.unpack_from("<QQII", kit, at)
        found[kit[at + 24 : at + 24 + name_bytes].decode()] = offset, size
        at += -(-(24 + name_bytes) // 8) * 8
    return found


def ranges_of(kit: bytes) -> dict[str, bytes]:
    return {name: kit[offset : offset + size] for name, (offset, size) in index_of(kit).items()}


# ---- kits and answers -----------------------------------------------------------------------------------------------


def test_there_is_an_answer_for_each_important_kind() -> None:
    answers = known_answers()
    text = "\n".join(a.text for a in answers)
    for op in (
        *("conv", "conv_transpose", "gemm", "mat_mul", "max_pool", "average_pool", "softmax", "layer_normalization"),
        *("group_normalization", "batch_normalization", "relu", "gelu", "resize", "gather", "reduce_mean", "arg_max"),
        *("top_k", "lstm", "if", "loop", "dequantize_linear", "where", "concat", "slice"),
    ):
        assert f"= {op}(" in text, op
    assert len(answers) >= 30
    assert len({a.name for a in answers}) == len(answers)
    assert sum(a.exact for a in answers) >= 1
    assert any(len(a.steps) > 1 for a in answers)


def test_the_cpu_gives_every_known_answer(page: dict[str, Any]) -> None:
    threads = {row["threads"] for row in page["answers"]}
    assert threads == ({1, page["machine"]["processors"]})
    assert len(page["answers"]) == len(known_answers()) * len(threads)
    for row in page["answers"]:
        assert row["result"] == "equal", row
        assert row["nodes"]["there"] == row["nodes"]["all"] > 0, row
        assert row["relative_error"] <= 1e-4 or row["test"] == "float16", row
    assert page["left_out"] == []
    assert page["totals"]["equal"] == len(page["answers"]) + len(page["times"])


def test_times(page: dict[str, Any]) -> None:
    assert page["kit"]["times"] == ["small"]
    assert [r["threads"] for r in page["times"]] == [n for n in (1, 2, 4) if n <= page["machine"]["processors"]]
    for row in page["times"]:
        assert 0 < row["p10_ms"] <= row["median_ms"] <= row["p90_ms"]
        assert 5 <= row["runs"] <= 50
        assert row["warm_up"] >= 1
        assert row["cpu_per_wall"] > 0
        assert row["reference_code"] == {}


def test_the_machine_and_its_targets(page: dict[str, Any]) -> None:
    assert page["format"] == "pinnace device report"
    assert page["pinnace"] == {"version": pn.__version__, "commit": _core.built_from}
    assert page["machine"]["architecture"] == os.uname().machine
    assert page["machine"]["processors"] == len(os.sched_getaffinity(0))
    assert page["machine"]["android_api"] is None
    found = {row["target"]: row for row in page["targets"]}
    for device in pn.devices():
        row = found.pop(device.target)
        assert (row["available"], row["description"]) == (device.available, device.description)
        stands_in = device.target in ("softmetal", "nnapi") or "llvmpipe" in device.description
        assert row["software"] == (device.available and stands_in), row
    assert found == {}


def test_a_planted_wrong_answer_differs_with_its_place_and_size(kit: bytes) -> None:
    ranges = ranges_of(kit)
    name = "answers/linear/0/out/0"  # float32 [3, 40]
    planted = bytearray(ranges[name])
    at = 8 + 2 * 8 + 4 * (1 * 40 + 7)
    (wanted,) = struct.unpack_from("<f", planted, at)
    struct.pack_into("<f", planted, at, wanted + 0.25)
    found = report(packed([*(ranges | {name: bytes(planted)}).items()]))
    wrong = [row for row in found["answers"] if row["result"] != "equal"]
    assert {row["test"] for row in wrong} == {"linear"}
    for row in wrong:
        assert row["result"] == "differs"
        worst = row["worst"]
        assert worst["element"] == [1, 7]
        assert worst["output"] == "y"
        assert worst["error"] == pytest.approx(0.25, rel=1e-3)
        assert worst["wanted"] == pytest.approx(wanted + 0.25)
        assert worst["bound"] == 1e-4
        assert "bound 0.0001" in row["why"]


def test_an_answer_that_the_cpu_does_not_give_is_not_written(monkeypatch: pytest.MonkeyPatch, small: Path) -> None:
    test = known_answers()[0]
    monkeypatch.setattr("pinnace.device.kit._program", lambda text: pn.Program.open(small))
    monkeypatch.setattr(pn.Session, "run", lambda self, inputs: dict.fromkeys(self.outputs, np.zeros(1, np.float32)))
    with pytest.raises(pn.VerificationError, match="known answer 'conv_dense'"):
        make_kit([small], [KnownAnswer(test.name, test.text, test.steps)])


def test_arrays_are_judged_as_compare_judges_them(rng: np.random.Generator, small: Path) -> None:
    """By the whole and its slices; sentinels, decades and the arbiter are left out."""
    tests, verdicts = [], {}
    for i in range(60):
        shape = [(2, 3, 5, 7), (4, 33), (1, 200), (30,), (2, 2), (1, 6, 9, 8)][i % 6]
        wanted = rng.standard_normal(shape).astype(np.float32)
        wanted *= np.float32(10.0 ** rng.integers(-2, 1)) if i % 2 else np.float32(1)
        got = wanted.copy()
        for _ in range(int(rng.integers(1, 4))):
            place = tuple(int(rng.integers(0, n)) for n in shape)
            got[place] *= np.float32(1 + 10.0 ** rng.uniform(-6, -1))
        graph = GraphText(1)
        graph.output(graph.node("neg", graph.input("x", got)))
        tests.append(KnownAnswer(f"t{i}", graph.text(), [[-got]]))
        verdicts[f"t{i}"] = got, wanted
    ranges = ranges_of(make_kit([small], tests))
    for name, (_, wanted) in verdicts.items():
        key = f"answers/{name}/0/out/0"
        ranges[key] = ranges[key][: -wanted.nbytes] + wanted.tobytes()
    found = {row["test"]: row for row in report(packed(ranges.items()))["answers"]}
    results = set()
    for name, (got, wanted) in verdicts.items():
        verdict = agreement(got, wanted, BOUNDS)
        ours = found[name]["result"]
        results.add(ours)
        if "elements below" not in verdict.why:  # a decade
            assert (ours == "equal") == verdict.ok, (name, verdict, found[name])
        assert found[name]["relative_error"] == pytest.approx(verdict.relative, rel=1e-5), name
    assert results == {"equal", "differs"}


def test_a_target_that_no_node_runs_on_was_not_tested(small: Path) -> None:
    if not any(d.target == "nnapi" and d.available for d in pn.devices()):
        pytest.skip("nnapi is not available here")
    graph = GraphText(1)
    x = graph.array(4, 6)
    graph.output(graph.node("cum_sum", graph.input("x", x), graph.constant(np.int64(1))))
    found = report(make_kit([small], [KnownAnswer("running_sum", graph.text(), [[x]])]), "nnapi")
    (row,) = found["answers"]
    assert row["result"] == "refused", row
    assert row["nodes"] == {"there": 0, "all": 1, "by": {"cpu": 1}, "elsewhere": row["nodes"]["elsewhere"]}
    assert "no node ran there: cum_sum: nnapi" in row["why"]


@pytest.mark.parametrize("seconds", [1e-6, 0.5])
def test_the_budget_bounds_the_whole_and_what_is_left_out_is_listed(kit: bytes, seconds: float) -> None:
    start = time.monotonic()
    found = report(kit, "cpu", "vulkan", seconds=seconds)
    assert time.monotonic() - start < seconds + 10  # opening a GPU's driver cannot be ended early
    rows = len(found["answers"]) + len(found["times"]) + len(found["left_out"])
    processors, gpus = (
        found["machine"]["processors"],
        sum(r["target"] == "vulkan" and r["available"] for r in found["targets"]),
    )
    kinds = min(processors, 2) + gpus
    timed = sum(n <= processors for n in (1, 2, 4)) * (1 + gpus)
    assert rows == kinds * len(known_answers()) + timed
    if seconds < 1e-3:
        assert found["answers"] == found["times"] == []
    assert {row["why"] for row in found["left_out"]} <= {"the time is used up"}


def test_damaged_kits(kit: bytes, rng: np.random.Generator) -> None:
    for size in [0, 1, 7, 8, 31, 32, 40, 100, *rng.integers(100, len(kit), 20).tolist(), len(kit) - 1]:
        with pytest.raises(pn.CorruptFile, match="kit at 0x"):
            report(kit[:size])
    index_end = 40 + struct.unpack_from("<Q", kit, 24)[0]
    places = [*rng.integers(0, index_end - 4, 20).tolist(), *(at + size // 2 for at, size in index_of(kit).values())]
    for at in places:
        damaged = bytearray(kit)
        damaged[at] ^= 1 << int(rng.integers(8))
        with pytest.raises((pn.CorruptFile, pn.Unsupported), match="kit"):
            report(bytes(damaged), seconds=1e-6)


def test_names_and_types_of_models(small: Path, tmp_path: Path) -> None:
    program = small.read_bytes()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "näh net.pnc").write_bytes(program)
    made = ranges_of(make_kit([tmp_path / "a/näh net.pnc"], []))
    assert "times/n_h_net/program" in made
    with pytest.raises(pn.InvalidArgument, match="would both be called 'n_h_net'"):
        make_kit([tmp_path / "a/näh net.pnc", tmp_path / "b/näh net.pnc"], [])
    text = 'graph "g" { symbol n 1..8 input %x : f32[n,3] %y : f32[n,3] = relu(%x) output "y" %y }'
    pn.Program(_core.Model.parse(text).build(["cpu"], {})).save(tmp_path / "open.pnc")
    assert report(make_kit([tmp_path / "open.pnc"], []))["totals"]["failed"] == 0


# ---- pages ----------------------------------------------------------------------------------------------------------


GONE = object()  # the field is missing


def edited(page: dict[str, Any], *path: str | int, to: Any) -> dict[str, Any]:
    """A copy in which the field at the end of the path is another."""
    changed = copy.deepcopy(page)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    if to is GONE:
        del at[path[-1]]
    else:
        at[path[-1]] = to
    return changed


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("format",), "other", "format is 'other': must be 'pinnace device report'"),
        (("version",), 0, "version is 0: must be 1"),
        (("version",), True, "version is True"),
        (("pinnace",), [], r"pinnace is \[\]: must be an object"),
        (("pinnace", "commit"), GONE, "pinnace.commit is missing"),
        (("machine", "processors"), -1, "machine.processors is -1: must be a whole number from 0 on"),
        (("machine", "processors"), 2.5, "machine.processors is 2.5"),
        (("machine", "android_api"), "33", "machine.android_api is '33'"),
        (("targets", 0, "available"), 1, r"targets\[0\].available is 1: must be true or false"),
        (("targets", 0, "description"), "x" * 20_000, r"targets\[0\].description is 'xxx.*at most 10,000 characters"),
        (
            ("answers", 0, "result"),
            "fine",
            r"answers\[0\].result is 'fine': must be one of equal, differs, refused, failed",
        ),
        (("answers", 0, "result"), ["equal"], r"answers\[0\].result is \['equal'\]"),
        (("answers", 0, "result"), "failed", "totals.equal is"),
        (("answers", 0, "nodes", "there"), 10**6, r"answers\[0\].nodes.there is 1000000: of"),
        (("answers", 0, "nodes", "by"), {"cpu": -1}, r"answers\[0\].nodes.by.cpu is -1"),
        (("answers", 0, "relative_error"), "1\x1b[2J", r"relative_error is '1\\x1b\[2J'"),
        (("answers",), {}, r"answers is \{\}: must be a list"),
        (("times", 0, "median_ms"), None, r"times\[0\].median_ms is None: the result is equal"),
        (("times", 0, "median_ms"), 10**400, r"times\[0\].median_ms is 1000.*: must be a number"),
        (("times", 0, "reference_code"), {"\x1b]0;x\x07": "a"}, r"times\[0\].reference_code.\\x1b\]0;x\\x07 is 'a'"),
        (("left_out",), None, "left_out is None: must be a list"),
        (("totals", "left_out"), 5, "totals.left_out is 5: there are 0 such rows"),
        (("seconds",), "", "seconds is '': must be a number"),
    ],
)
def test_wrong_pages_are_refused_by_field_and_value(
    page: dict[str, Any], tmp_path: Path, path: tuple[str | int, ...], to: Any, said: str
) -> None:
    file = tmp_path / "page.json"
    file.write_text(json.dumps(edited(page, *path, to=to)))
    with pytest.raises(pn.CorruptFile, match=said) as caught:
        read_page(file)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"[" * 200_000, "nested too deep"),
        (b"[]", r"format is \[\]"),
        (b'{"format": NaN}', "NaN is no number of JSON"),
        (b'{"seconds": ' + b"9" * 10_000 + b"}", "is no JSON"),
        (b" " * (17 << 20), "more than 16,777,216 bytes"),
    ],
)
def test_what_is_no_page(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "page.json").write_bytes(content)
    with pytest.raises(pn.CorruptFile, match=said):
        read_page(tmp_path / "page.json")


def test_truncated_and_newer_pages(page_file: Path, rng: np.random.Generator) -> None:
    whole = page_file.read_text()
    assert read_page(page_file)["totals"]["failed"] == 0
    for size in rng.integers(0, len(whole) - 1, 30).tolist():
        page_file.write_text(whole[:size])
        with pytest.raises(pn.CorruptFile):
            read_page(page_file)
    page_file.write_text(whole.replace('"version": 1,', '"version": 2,', 1))
    with pytest.raises(pn.Unsupported, match="version 2"):
        read_page(page_file)
    with pytest.raises(pn.FileError):
        read_page(page_file.parent)


def test_the_documentation_names_every_field(page: dict[str, Any]) -> None:
    text = (ROOT / "docs/device_report.md").read_text()
    assert f"{len(known_answers())} small programs" in text

    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            free = set(value) <= {d.target for d in pn.devices()} | {"none", "runtime"}  # a map of back ends
            return (set() if free else set(value)).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    found = keys(page)
    assert {"relative_error", "cpu_per_wall", "android_api", "budget_seconds"} <= found
    assert not [key for key in found if not re.search(rf"`[\w.]*\b{key}\b[\w.\[\]]*`", text)]


# ---- the command line -----------------------------------------------------------------------------------------------


def called(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main([str(word) for word in words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_import_shows_the_tables(page: dict[str, Any], page_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = called(capsys, "devices", "--import", page_file)
    assert (status, err) == (0, "")
    for device in pn.devices():
        assert f"{device.target}: " in out
        assert device.description in out
    assert f"cpu threads 1: {len(known_answers())} known answers: {len(known_answers())} equal" in out
    row = page["times"][0]
    assert f"small cpu fp32 threads 1: median {row['median_ms']:.2f} ms (p10 {row['p10_ms']:.2f}" in out
    status, out, _ = called(capsys, "devices", "--import", page_file, "--json")
    assert status == 0
    assert json.loads(out) == page


def test_nothing_of_a_page_reaches_the_terminal_as_it_is(
    page: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def hostile(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: hostile(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [hostile(v, key) for v in value]
        fixed = key in ("format", "result", "kind", "version")
        return value + "\x1b[2J\u202e\r" if isinstance(value, str) and not fixed else value

    changed = hostile(page)
    changed["answers"][0] |= {"result": "failed", "why": "\x07\x1b]0;owned\x07"}
    changed["totals"] |= {"failed": 1, "equal": changed["totals"]["equal"] - 1}
    changed["left_out"] = [{"program": "\x1b[1m", "target": "\x9b", "threads": 1, "kind": "time", "why": "\x00"}]
    changed["totals"]["left_out"] = 1
    path = tmp_path / "page.json"
    path.write_text(json.dumps(changed))
    status, out, err = called(capsys, "devices", "--import", path)
    assert status == 1
    assert all(c.isprintable() or c == "\n" for c in out + err)
    assert r"\x1b[2J" in out


def test_report_device(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kit, page = tmp_path / "kit.pnk", tmp_path / "page.json"
    status, out, _ = called(capsys, "report-device", "--make-kit", kit, "--model", small, "-q")
    assert (status, out) == (0, f"{kit}: {kit.stat().st_size:,} bytes\n")
    status, out, err = called(capsys, "report-device", "--kit", kit, "-o", page, "--target", "cpu", "-q")
    assert (status, out) == (0, "")
    assert "equal, 0 differ, 0 refused, 0 failed, 0 left out" in err
    status, out, _ = called(capsys, "report-device", "--kit", kit, "--target", "cpu", "--seconds", "1e-6", "-q")
    assert status == 1, "a page without an answer shows nothing"
    assert json.loads(out)["kit"] == read_page(page)["kit"]
    ranges = ranges_of(kit.read_bytes())
    key = "answers/softmax/0/out/0"
    kit.write_bytes(packed((ranges | {key: ranges[key][:-4] + b"\0\0\x80?"}).items()))
    status, _, err = called(capsys, "report-device", "--kit", kit, "-o", page, "--target", "cpu", "-q")
    assert status == 1
    assert "2 differ" in err or read_page(page)["machine"]["processors"] == 1
    status, out, _ = called(capsys, "devices", "--import", page)
    assert status == 1
    assert "softmax: differs: differs by" in out
    assert "softmax[4, 66], run 1:" in out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--make-kit", "k.pnk", "-o", "page.json"], 2, "only writes a kit"),
        (["--make-kit", "no/folder/k.pnk"], 2, "its folder does not exist"),
        (["--kit", "KIT", "--model", "x.pnc"], 2, "--kit names one that is made"),
        (["--kit", "missing.pnk"], 2, "missing.pnk"),
        (["--kit", "KIT", "--target", "tpu"], 2, "target 'tpu': this build has"),
        (["--model", "missing.pnc"], 2, "missing.pnc"),
        (["--kit", "DAMAGED"], 1, "kit at 0x"),
        (["--seconds", "0"], 2, "must be above 0"),
        (["--seconds", "1,2"], 2, "is not one number"),
    ],
)
def test_wrong_use(
    kit: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int, said: str
) -> None:
    files = {"KIT": kit, "DAMAGED": kit[:-1]}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    given = [str(tmp_path / word) if word in files else word for word in words]
    try:
        found = main(["report-device", *given])
    except SystemExit as error:  # argparse's own
        found = int(str(error.code))
    assert found == status
    assert said in capsys.readouterr().err


@pytest.mark.skipif(not TOOL.exists(), reason="build/release has no pinnace-report: make build")
def test_the_program_for_devices(kit: bytes, page: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "kit.pnk").write_bytes(kit)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([TOOL, *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run("kit.pnk", "-o", "page.json", "--target", "cpu")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    theirs = read_page(tmp_path / "page.json")
    assert theirs["kit"] == page["kit"]
    assert theirs["machine"] == page["machine"]
    same = ("test", "threads", "result", "relative_error", "nodes")
    assert [[row[k] for k in same] for row in theirs["answers"]] == [[row[k] for k in same] for row in page["answers"]]
    done = run("kit.pnk", "--target", "cpu", "--seconds", "0.001")
    short = json.loads(done.stdout)
    assert short["budget_seconds"] == 0.001
    # Whether a millisecond is enough for the first answer is the machine's affair; a page that judges nothing says so.
    assert done.returncode == (0 if short["answers"] else 1), done.stderr
    (tmp_path / "cut.pnk").write_bytes(kit[:100])
    for words, status, said in (
        (["cut.pnk"], 1, "cut.pnk: kit at 0x"),
        (["missing.pnk"], 2, "missing.pnk: cannot be read"),
        (["."], 2, "not a regular file"),
        (["kit.pnk", "-o", "no/page.json"], 2, "cannot be written"),
        (["kit.pnk", "--target", "tpu"], 2, "this build has"),
        (["kit.pnk", "--seconds", "x"], 2, "--seconds"),
        ([], 2, "kit"),
    ):
        done = run(*words)
        assert done.returncode == status, (words, done.stderr)
        assert said in done.stdout + done.stderr, (words, done.stderr)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cut.pnk", "kit.pnk", "page.json"]  # nothing half-written
    assert run("--version").stdout.strip() == f"pinnace-report {pn.__version__}"


@pytest.mark.rotating
def test_every_target_gives_every_known_answer(small: Path) -> None:
    targets = [d.target for d in pn.devices() if d.available]
    found = report(make_kit([small]), *targets, seconds=600)
    assert [row for row in found["answers"] + found["times"] if row["result"] != "equal"] == []
    assert {row["target"] for row in found["answers"]} == set(targets)
    assert found["left_out"] == []
    for row in found["answers"]:
        assert row["nodes"]["there"] > 0, row


@pytest.mark.rotating
def test_the_network_of_a_kit_has_the_shape_of_mobilenet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "net.pnc"
    program = pn.Program(_core.Model.parse(mobilenet_text()).build(["cpu"], {}))
    program.save(path)
    assert {spec.shape for spec in program.inputs.values()} == {(1, 3, 224, 224)}
    main(["inspect", str(path)])
    out = capsys.readouterr().out
    assert "3.49 M parameters" in out  # torchvision's has 3.50 M, with batch normalisation
    assert "300 M multiply-adds" in out or "301 M multiply-adds" in out
