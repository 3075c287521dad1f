"""Conformance vectors for NNAPI as models: loaded, placed on NNAPI at their level and one below, run, compared.

nnapi_left_on_cpu.txt lists what the back end does not lower: `OPERATION operator RULE`, an operator of ours that an
operation became and that stayed on the CPU, and `nothing FOLDER/SPEC`, files with cases of which nothing went to NNAPI.
It may only shrink: a line that is not seen any more in a run of everything has to go.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pinnace as pn
import pytest
from nnapi_vector_models import Answer, Vector, all_vectors, level_of, run_level
from nnapi_vectors_test import LIBRARY, pytestmark, run, vectors
from slices import all_mode, rotating_slice

__all__ = ["pytestmark", "vectors"]

LISTED = set(Path(__file__).with_name("nnapi_left_on_cpu.txt").read_text().splitlines())
# Levels at which vectors start, with how many there are, so that a slice of each takes about the same time.
LEVELS = {1: 355, 2: 326, 3: 3001, 4: 1192, 6: 73, 7: 90}
SLICE = 30


def lines_of(vector: Vector, answer: Answer) -> set[str]:
    lines = set(answer.left)
    if answer.on_target == 0 and not answer.refused:
        lines.add(f"nothing {vector.path.parent.name}/{vector.path.stem}")
    return lines


def answers(chosen: list[Vector], level: int) -> list[tuple[Vector, Answer]]:
    return list(zip(chosen, run_level(chosen, level, LIBRARY), strict=True))


@pytest.fixture(scope="module")
def every(vectors: Path) -> list[Vector]:
    return all_vectors(vectors)


def slice_of(every: list[Vector], level: int, salt: str) -> list[Vector]:
    there = [v for v in every if v.level == level]
    assert len(there) >= LEVELS[level]
    return rotating_slice(there, min(1.0, SLICE / LEVELS[level]), f"{salt} {level}")


@pytest.fixture(scope="module")
def seen() -> set[str]:
    return set()


@pytest.mark.parametrize("level", rotating_slice(list(LEVELS), 0.5, "nnapi vector levels"))
def test_vectors_run_as_models(every: list[Vector], level: int, seen: set[str]) -> None:
    """At their own level: right, and what stays on the CPU is listed with its rule."""
    for vector, answer in answers(slice_of(every, level, "own"), level):
        assert not answer.error, f"{vector}: {answer.error}"
        assert answer.refused == vector.expect_failure, str(vector)
        lines = lines_of(vector, answer)
        assert lines <= LISTED, f"{vector}: {lines - LISTED}"
        seen |= lines


@pytest.mark.skipif(not all_mode(), reason="only a run of everything says what is not seen any more")
def test_the_list_only_shrinks(seen: set[str]) -> None:
    stale = sorted(LISTED - seen)
    assert stale == [], "not seen any more:\n" + "\n".join(stale)


@pytest.mark.parametrize("level", rotating_slice([n for n in LEVELS if n > 1], 0.4, "nnapi vector levels below"))
def test_one_level_below_nothing_newer_is_used(every: list[Vector], level: int) -> None:
    """The library pretends the level below, so it refuses what is newer: what the back end cannot rewrite it must have
    kept on the CPU, by a rule of its own and not because the device refused."""
    whole = 0
    for vector, answer in answers(slice_of(every, level, "below"), level - 1):
        assert not answer.error, f"{vector}: {answer.error}"
        for line in answer.left:
            rule = line.split()[-1]
            assert re.fullmatch(r"N-\d+|P-1|runtime", rule), f"{vector}: {line}"
            assert rule not in ("N-17", "N-18"), f"{vector}: {line}"
        whole += answer.on_cpu == 0 and not answer.refused
    # Some of what a level brought is made of older operations; more is not.
    if all_mode():
        assert whole > 0


@pytest.mark.parametrize("level", rotating_slice([n - 1 for n in LEVELS if n > 1], 0.2, "nnapi refusing levels"))
def test_the_library_refuses_models_above_its_level(
    vectors: Path, every: list[Vector], tmp_path: Path, level: int
) -> None:
    """The level that the importer counts is the one below which the library's calls refuse the model."""
    operations = {operation for v in every for operation in v.operations}
    drawn = set(rotating_slice(sorted(operations), 0.1, "nnapi refused operations"))
    chosen = [v for v in every if drawn & set(v.operations) and not v.expect_failure]
    result = run(
        vectors,
        tmp_path / "result.json",
        "--level",
        "1000008",
        "--ops",
        ",".join(sorted(drawn)),
        environment={"PINNACE_NNAPI_LEVEL": f"fl{level}"},
    )
    build = r"Model_(addOperand|addOperation|setOperand\w*|finish): BAD_DATA"
    refused = {f"{f['folder']}/{f['case']}" for f in result["failures"] if re.match(build, f["detail"])}
    for vector in chosen:
        notes: list[Any] = pn.load(str(vector.path), model_name=vector.name).notes
        needs = int(notes[0].split()[-1])
        assert (str(vector) in refused) == (needs > level), f"{vector}: needs {needs}, the library has {level}"


def test_dumps_of_the_library_are_models(vectors: Path, tmp_path: Path) -> None:
    """What a client's model was, as the library dumps it, loads as the vector does."""
    dumps = tmp_path / "dumps"
    folders = {"TRANSPOSE_CONV_2D": "V1_2", "IF": "V1_3", "L2_POOL_2D": "V1_2", "BATCH_MATMUL": "AIDL_V2"}
    for operation in rotating_slice(list(folders), 0.3, "nnapi dumps"):
        run(
            vectors / folders[operation],
            tmp_path / "a.json",
            "--ops",
            operation,
            environment={"PINNACE_NNAPI_DUMP": f"{dumps}/"},
        )
    files = sorted(dumps.glob("*.json"))
    assert files
    for file in files:
        case = json.loads(file.read_text())["cases"][0]
        model = pn.load(str(file))
        assert model.notes[0] == f"needs NNAPI feature level {level_of(case['min_level'])}"
