"""Models of Hugging Face's transformers with their default configurations, in small sizes: loaded with one line, built
with verification, and held against the module on inputs that the conversion has not seen.

By default a slice that moves with the seed; PINNACE_TEST_ALL=1 runs all of them. What is refused stands, with its
reason, in huggingface_expected_refusals.txt, which may only shrink: a line that is no longer true fails too.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from slices import rotating_slice, within_budget
from torch import Tensor, nn
from torch.utils import _pytree

pytest.importorskip("torchvision_ops")  # before transformers, which imports torchvision
transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed")

import huggingface_models as models  # noqa: E402

REFUSALS = Path(__file__).with_name("huggingface_expected_refusals.txt")
NAMES = list(models.ARCHITECTURES)
CACHED = ["llama", "gpt2", "qwen2", "gemma2", "phi"]
STEPS = 20
SECONDS = 6
# Of a static cache: (architecture, how it is loaded).
WAYS = [*((name, way) for name in CACHED for way in ("fixed", "open")), ("llama", "exported"), ("llama", "strict")]


def expected() -> dict[str, str]:
    return dict(line.split(": ", 1) for line in REFUSALS.read_text().splitlines())


def reason(error: pn.ConversionError) -> str:
    """One line, without paths of the machine."""
    if error.nodes:
        return "; ".join(sorted({f"{node.op}: {node.rule}" for node in error.nodes}))
    return re.sub(r" \([^()]*\.py:.*", "", str(error).splitlines()[0])


def tensors(value: Any) -> dict[str, Tensor]:
    """Those of a module's result, by the names that outputs get."""
    return {
        ".".join(str(getattr(k, "key", getattr(k, "idx", ""))) for k in path): leaf
        for path, leaf in _pytree.tree_flatten_with_path(value)[0]
        if isinstance(leaf, Tensor)
    }


def agree(session: pn.Session, module: nn.Module, inputs: Mapping[str, Tensor]) -> None:
    """The session's outputs are the module's tensors, to 1e-4 of the largest, and have the names of its fields. Where a
    network makes more of rounding errors (Swin V2), they are as near to its values in float64 as its own."""
    with torch.no_grad():
        wanted = tensors(module(**inputs))
    got = session.run(dict(inputs))
    assert list(got) == list(wanted)
    exact: dict[str, Tensor] = {}
    for name, want in wanted.items():
        assert got[name].shape == want.shape
        try:
            assert_agree(got[name], want.numpy(), name)
        except AssertionError:
            if not exact:
                doubles = {key: value.double() if value.is_floating_point() else value for key, value in inputs.items()}
                with torch.no_grad():
                    exact = tensors(copy.deepcopy(module).double()(**doubles))
            assert_agree(got[name], want.numpy(), name, exact[name].numpy())


def test_the_list_of_refusals_is_sorted_and_names_architectures() -> None:
    lines = REFUSALS.read_text().splitlines()
    assert lines == sorted(set(lines))
    assert {case.rpartition(" ")[0] for case in expected()} <= set(NAMES)
    assert len(NAMES) >= 40


def check(name: str, sizes: str) -> str:
    """What is refused of an architecture; empty where it holds. Vulkan takes every node of all of them."""
    module, inputs = models.make(name)
    try:
        model = pn.load(module, inputs, models.dynamic_dims(inputs) if sizes == "open" else None)
    except pn.ConversionError as error:
        return reason(error)
    assert not model.check(targets=["vulkan"]).refused()
    program = model.build()
    assert program.metadata["verified.cpu"].startswith("yes")
    session = pn.Session(program, target="cpu")
    fresh = models.ARCHITECTURES[name].inputs
    agree(session, module, fresh(2, 12, 7))
    if sizes == "open":
        for batch, length in ((1, 9), (3, 21)):
            agree(session, module, fresh(batch, length, 8))
    return ""


def test_architectures_agree_with_eager(capsys: pytest.CaptureFixture[str]) -> None:
    table, problems, held, refused = expected(), [], 0, 0
    for name, sizes in within_budget([(n, s) for n in NAMES for s in ("fixed", "open")], SECONDS, "hugging face"):
        case = f"{name} {sizes}"
        try:
            found = check(name, sizes)
        except (pn.Error, AssertionError) as error:
            problems.append(f"{case}: {type(error).__name__}: {error}")
            continue
        held += not found
        refused += bool(found)
        if found and case not in table:
            problems.append(f"{case} is refused: {found}")
        elif found and found != table[case]:
            problems.append(f"{case} is refused for another reason: {found}; listed: {table[case]}")
        elif not found and case in table:
            problems.append(f"{case} is no longer refused: take its line out of {REFUSALS.name}")
    with capsys.disabled():
        print(
            f"\nhugging face: {held} of {held + refused + len(problems)} cases hold, {refused} refused", file=sys.stderr
        )
    assert not problems, "\n".join(problems)


def test_a_cache_that_is_returned_is_left_out_with_a_note() -> None:
    module, inputs = models.make("llama")
    registered = set(_pytree.SUPPORTED_NODES)
    with torch.no_grad():
        kinds = {name: type(value).__name__ for name, value in module(**inputs).items()}
    (cache,) = [name for name, kind in kinds.items() if kind == "DynamicCache"]
    model = pn.load(module, inputs)
    assert list(model.outputs) == ["logits"]
    (note,) = model.notes
    assert note.startswith(f"output {cache!r} is left out: the keys and values of this call, in a DynamicCache")
    assert set(_pytree.SUPPORTED_NODES) == registered
    assert "forward" not in vars(module)


class InsideOfAnother(nn.Module):
    """What users write around a model, with its output in a nest."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, ids: Tensor) -> tuple[Any, Tensor]:
        made = self.inner(input_ids=ids)
        return made, made.logits.argmax(-1)


def test_a_cache_in_a_nest_is_left_out_as_well() -> None:
    module, inputs = models.make("gpt2")
    model = pn.load(InsideOfAnother(module), inputs["input_ids"])
    assert next(iter(model.outputs)) == "0.logits"
    assert len(model.outputs) == 2
    assert len(model.notes) == 1
    assert re.match(r"output '0\.\w+' is left out", model.notes[0])


def test_a_cache_as_an_argument_is_refused_with_what_to_do() -> None:
    module, inputs = models.make("llama")
    cache: Any = transformers.DynamicCache(config=module.config)
    with pytest.raises(pn.InvalidArgument, match=r"of type DynamicCache; .* leave it out .* state of the session"):
        pn.load(module, {**inputs, "past_key_values": cache})


def static(name: str) -> tuple[Any, Any]:
    """transformers' module with a static cache, and the model in it."""
    from transformers.integrations.executorch import TorchExportableModuleForDecoderOnlyLM

    model: Any = models.make(name)[0]
    model.generation_config.cache_implementation = "static"
    wrapper: Any = TorchExportableModuleForDecoderOnlyLM(model, 1, 32)
    return wrapper.eval(), model


def greedy(session: pn.Session, prompt: list[int], in_one: bool) -> list[int]:
    """STEPS tokens after the prompt, which is given in one call or token by token."""
    calls = [prompt] if in_one else [[token] for token in prompt]
    made: list[int] = []
    position = 0
    while len(made) < STEPS:
        ids = calls.pop(0) if calls else made[-1:]
        at = np.arange(position, position + len(ids))
        (logits,) = session.run({"input_ids": np.array([ids]), "cache_position": at}).values()
        position += len(ids)
        if not calls:
            made.append(int(logits[0, -1].argmax()))
    return made


def greedy_of_eager(model: nn.Module, prompt: list[int]) -> list[int]:
    ids = torch.tensor([prompt])
    with torch.no_grad():
        for _ in range(STEPS):
            ids = torch.cat([ids, model(input_ids=ids, use_cache=False).logits[:, -1:].argmax(-1)], 1)
    return ids[0, len(prompt) :].tolist()


@pytest.mark.parametrize(("name", "way"), rotating_slice(WAYS, 0.1, "static caches"))
def test_a_static_cache_is_state_of_the_session(name: str, way: str) -> None:
    """fixed, open: the module, with one token in a call or with any number; else what transformers exports of it."""
    wrapper, model = static(name)
    ids = torch.tensor([[5, 9, 4] if way == "open" else [5]])
    example = {"input_ids": ids, "cache_position": torch.arange(ids.shape[1])}
    length = pn.Dim("length", 1, 16)
    if way in ("fixed", "open"):
        shapes = {"input_ids": {1: length}, "cache_position": {0: length}} if way == "open" else None
        loaded = pn.load(wrapper, example, shapes)
    else:
        with torch.no_grad():
            exported = wrapper.export(**example, strict=way == "strict")
        loaded = pn.load(exported, example)
    program = loaded.build()
    assert program.metadata["verified.cpu"].startswith("yes")
    session = pn.Session(program, target="cpu")
    layers = range(model.config.num_hidden_layers)
    assert {f"{kind}_cache_{i}" for kind in ("key", "value") for i in layers} <= set(session.state)
    prompt = [5, 17, 30, 8]
    assert greedy(session, prompt, way == "open") == greedy_of_eager(model, prompt)


class WithPast(nn.Module):
    """What callers write who keep keys and values themselves: the cache comes and goes as tensors."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, past: list[tuple[Tensor, Tensor]]) -> dict[str, Any]:
        cache: Any = transformers.DynamicCache()
        for layer, (keys, values) in enumerate(past):
            cache.update(keys, values, layer)
        made = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        return {"logits": made.logits, "past": [(one.keys, one.values) for one in made.past_key_values.layers]}


@pytest.mark.parametrize("name", rotating_slice(CACHED, 0.2, "caches as tensors"))
def test_a_cache_that_comes_and_goes_as_tensors(name: str) -> None:
    model: Any = models.make(name)[0]
    prompt = [5, 17, 30, 8]
    with torch.no_grad():
        layers = model(input_ids=torch.tensor([prompt[:-1]]), use_cache=True).past_key_values.layers
    past = [(one.keys, one.values) for one in layers]
    length = pn.Dim("past", 1, 60)
    shapes = {"ids": {1: pn.Dim("length", 1, 4)}, "past": [({2: length}, {2: length}) for _ in past]}
    program = pn.load(WithPast(model).eval(), (torch.tensor([[9, 4]]), past), shapes).build()
    assert program.metadata["verified.cpu"].startswith("yes")
    kept = [f"past.{layer}.{part}" for layer in range(len(past)) for part in (0, 1)]
    assert list(program.inputs) == ["ids", *kept]
    assert list(program.outputs) == ["logits", *kept]
    session = pn.Session(program, target="cpu")
    arrays = [value.numpy() for pair in past for value in pair]
    made: list[int] = []
    for _ in range(STEPS):
        (logits, *arrays) = session.run(
            {"ids": np.array([[(prompt + made)[-1]]]), **dict(zip(kept, arrays, strict=True))}
        ).values()
        arrays = [array.copy() for array in arrays]  # the session computes the next ones there
        made.append(int(logits[0, -1].argmax()))
    assert made == greedy_of_eager(model, prompt)


def test_what_transformers_exports_with_a_dynamic_cache() -> None:
    """Its program takes tokens, and returns keys and values of all layers beside the logits."""
    from transformers.integrations.executorch import export_with_dynamic_cache

    made = models.make("llama")
    model: Any = made[0]
    inputs = made[1]
    registered = set(_pytree.SUPPORTED_NODES)
    exported = export_with_dynamic_cache(model, inputs["input_ids"], inputs["attention_mask"])
    program = pn.load(exported).build()
    assert program.metadata["verified.cpu"].startswith("yes")
    layers = range(model.config.num_hidden_layers)
    assert list(program.outputs) == [
        "logits",
        *(f"cache.{kind}_cache.{i}" for kind in ("key", "value") for i in layers),
    ]
    fresh = models.text(2, 12, 7)
    with torch.no_grad():
        wanted: Any = model(**fresh, use_cache=True)
    got = pn.Session(program, target="cpu").run(dict(fresh))
    assert_agree(got["logits"], wanted.logits.numpy())
    assert_agree(got["cache.value_cache.1"], wanted.past_key_values.layers[1].values.numpy())
    for kind in set(_pytree.SUPPORTED_NODES) - registered:  # transformers registers it for the whole process
        _pytree._deregister_pytree_node(kind)


def test_pinnace_imports_no_transformers() -> None:
    for path in Path(pn.__file__).parent.rglob("*.py"):
        assert not re.search(r"^\s*(import|from) transformers", path.read_text(), re.MULTILINE), path
