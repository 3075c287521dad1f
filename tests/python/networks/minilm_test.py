"""A trained sentence encoder, of dynamic batch and length: PyTorch's embeddings, and the same neighbours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pinnace as pn
import pytest
import torch
import zoo
from torch import nn

# Five subjects by ten, so that every sentence has neighbours that mean something.
SENTENCES = [
    # the sea
    "The ferry leaves the harbour at six in the morning.",
    "A storm kept the fishing boats in port for three days.",
    "Her grandfather was the keeper of a lighthouse.",
    "At low tide one can walk across to the island.",
    "The crew lowered a small boat and rowed to the beach.",
    "Sailors used to find their way by the stars.",
    "Salt water ruins an engine that is not rinsed.",
    "The anchor would not hold in the soft mud.",
    "Dolphins followed our ship for an hour.",
    "He learned to sail before he could ride a bicycle.",
    # the kitchen
    "Knead the dough until it no longer sticks to your hands.",
    "This soup tastes better on the second day.",
    "Never salt the beans before they are soft.",
    "She bakes two loaves of bread every Saturday.",
    "The recipe asks for four eggs and a cup of sugar.",
    "Garlic burns quickly, so turn down the heat.",
    "We ate cold noodles with cucumber and sesame.",
    "A sharp knife is safer than a blunt one.",
    "My brother cannot stand the smell of fried fish.",
    "Let the tea stand for four minutes.",
    # computers
    "The program crashed because the disk was full.",
    "Most of the running time goes into multiplying matrices.",
    "A compiler turns source code into machine instructions.",
    "She wrote a test before she repaired the fault.",
    "Please restart the server after the update.",
    "The cache holds the last two hundred results.",
    "His password was the name of his dog.",
    "Neural networks need many examples to learn from.",
    "The new phone has twice as much memory.",
    "Somebody deleted the wrong branch of the repository.",
    # weather and country
    "Snow blocked the mountain pass until April.",
    "It has not rained in the valley since May.",
    "Fog hid the tops of the towers.",
    "The farmers are waiting for a dry week to cut the hay.",
    "A warm wind melted the ice on the lake.",
    "Lightning struck the old oak beside the church.",
    "In autumn the whole forest smells of mushrooms.",
    "The river rose by two metres in one night.",
    "Clouds gathered over the western hills.",
    "It is too cold for tomatoes here.",
    # town and travel
    "The last tram had already gone, so we walked home.",
    "Tickets are cheaper if you buy them a month ahead.",
    "The museum is closed on Mondays.",
    "A train to the capital takes a little over two hours.",
    "They are building a bridge for bicycles across the canal.",
    "Our hotel was above a noisy market.",
    "He lost his passport at the airport.",
    "The mayor promised more trees for the main square.",
    "There is no room to park near the station.",
    "Two streets further on you will find the library.",
]
MODEL_BATCH, MODEL_LENGTH = pn.Dim("batch", 1, 64), pn.Dim("length", 2, 512)


@pytest.fixture(scope="module")
def module() -> nn.Module:
    return zoo.build("minilm")[0]


@pytest.fixture(scope="module")
def session(module: nn.Module) -> pn.Session:
    example = zoo.tokenize(SENTENCES[:3])
    shapes = {name: {0: MODEL_BATCH, 1: MODEL_LENGTH} for name in example}
    return pn.Session(pn.load(module, example, shapes).build(), target="cpu")


def batches(size: int) -> Iterator[list[str]]:
    for start in range(0, len(SENTENCES), size):
        yield SENTENCES[start : start + size]


def embed(session: pn.Session, sentences: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    (vectors,) = session.run(zoo.tokenize(sentences)).values()
    return vectors


@pytest.fixture(scope="module")
def wanted(module: nn.Module) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    with torch.no_grad():
        return np.concatenate([module(**zoo.tokenize([s])).numpy() for s in SENTENCES])


def test_both_dimensions_are_open(session: pn.Session) -> None:
    for spec in session.inputs.values():
        assert spec.shape == (MODEL_BATCH, MODEL_LENGTH)
    assert session.outputs[next(iter(session.outputs))].shape == (MODEL_BATCH, 384)


# One by one there is no padding at all; all at once, every sentence but the longest is padded.
@pytest.mark.rotating
@pytest.mark.parametrize("size", [1, 50])
def test_embeddings_and_neighbours(
    session: pn.Session, wanted: np.ndarray[tuple[int, int], np.dtype[np.float32]], size: int
) -> None:
    got = np.concatenate([embed(session, part) for part in batches(size)])
    assert got.shape == wanted.shape == (50, 384)
    assert float(np.abs(got - wanted).max()) <= 1e-5
    likeness, reference = got @ got.T, wanted @ wanted.T
    np.fill_diagonal(likeness, -1)
    np.fill_diagonal(reference, -1)
    assert likeness.argmax(1).tolist() == reference.argmax(1).tolist()
    # The encoder is trained: a neighbour is mostly of the same subject, which random weights would give one in five.
    same = reference.argmax(1) // 10 == np.arange(50) // 10
    assert int(same.sum()) >= 30


def test_all_sentences_differ() -> None:
    assert len(set(SENTENCES)) == 50
