"""PyTorch's own NNAPI runtime, torch.classes._nnapi.Compilation, driving libneuralnetworks.so: every kind of node that
its converter takes, float and quantised, in both layouts, with fixed and flexible shapes, against eager.

The library is loaded by name, so the models of torch_nnapi_models.py run in a process of their own that finds it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pinnace
import pytest
import torch_nnapi_models
from torch.backends._nnapi.serializer import _NnapiSerializer

Answer = dict[str, Any]

# Freezing, which the converter does first, leaves none of these.
NEVER_SEEN = {"prim::GetAttr", "aten::detach"}


@pytest.fixture(scope="module")
def answers() -> dict[str, list[Answer]]:
    """What each case had to tell, by group."""
    folder = Path(pinnace.nnapi_library_path()).parent
    environment = os.environ | {"LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    command = [sys.executable, str(Path(torch_nnapi_models.__file__))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"after {told[-1]['name'] if told else 'nothing'}: {done.stderr[-2000:]}"
    return {group: [a for a in told if a["group"] == group] for group in torch_nnapi_models.GROUPS}


def agrees(answer: Answer) -> bool:
    """As eager, or as the model means where that differs; the same in a second run. Stored integers may differ by 1."""
    difference = answer.get("means", answer.get("eager"))
    most = 1 if "quant" in answer["name"] and "quantised-" not in answer["name"] else 1e-5
    return isinstance(difference, float) and difference <= most and answer["repeats"] == 0


@pytest.mark.rotating
@pytest.mark.parametrize("group", [g for g in torch_nnapi_models.GROUPS if g != "converted to something else"])
def test_eager_and_the_library_agree(answers: dict[str, list[Answer]], group: str) -> None:
    assert len(answers[group]) >= 13
    assert [a for a in answers[group] if not agrees(a)] == []


def test_every_kind_of_node_that_the_converter_takes_is_run(answers: dict[str, list[Answer]]) -> None:
    seen = {kind for group in answers.values() for a in group if agrees(a) for kind in a["kinds"]}
    assert set(_NnapiSerializer.ADDER_MAP) - seen == NEVER_SEEN


# What the converter makes of these is not the model that it was given. A runtime sees only what was made: the library
# computes that, and refuses it where shapes contradict each other.
COMPUTED_AS_CONVERTED = [
    "max_pool-ceil_mode",  # smaller than in eager
    "avg_pool-ceil_mode",
    "avg_pool-padded",  # NNAPI's mean is of the elements inside
    "conv_transpose-output_padding",
    "slice-step-of-everything",
    "to-int32",  # stays float
    "softmax-channels-nhwc",  # over the height
    "log_softmax-channels-nhwc",
    "reshape-nhwc",  # channels last
]
REFUSED = [
    "conv_transpose-groups",  # a depthwise convolution, which is smaller than its result is said to be
    "slice-uneven-step",  # 2 rows said, 3 taken
    "slice-beyond-the-end",  # 98 rows said
    "slice-channels-nhwc",  # bounds of channels for rows
]
RIGHT = ["cat-of-two-scales"]  # CONCATENATION requantises where the converter thinks that it joins bytes


@pytest.fixture(scope="module")
def converted(answers: dict[str, list[Answer]]) -> dict[str, Answer]:
    return {a["name"]: a for a in answers["converted to something else"]}


@pytest.mark.parametrize("name", COMPUTED_AS_CONVERTED)
def test_converted_to_something_else_and_computed(converted: dict[str, Answer], name: str) -> None:
    answer = converted[name]
    assert agrees(answer)
    assert isinstance(answer["eager"], str) or answer["eager"] > 0.1, "the converter has learnt this: list it as right"


@pytest.mark.parametrize("name", REFUSED)
def test_converted_to_something_contradictory_and_refused(converted: dict[str, Answer], name: str) -> None:
    assert "Execution_compute" in converted[name]["refused"]
    assert converted[name]["refused"].endswith("error 5")


@pytest.mark.parametrize("name", RIGHT)
def test_converted_carelessly_and_right(converted: dict[str, Answer], name: str) -> None:
    assert agrees(converted[name])
    assert converted[name]["eager"] <= 1


def test_every_known_conversion_to_something_else_is_listed(converted: dict[str, Answer]) -> None:
    assert set(converted) == {*COMPUTED_AS_CONVERTED, *REFUSED, *RIGHT}
