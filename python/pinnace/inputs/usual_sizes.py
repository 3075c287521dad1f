"""Sizes that inputs usually have, by what their shape says of them: pictures, sound, frames, tokens."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from pinnace.types import TensorSpec

# (height, width)
PICTURES = ((224, 224), (640, 640), (48, 320), (320, 320), (512, 512), (256, 256))
SERIES = {1: (16000, 1600, 512), 2: (16000, 1600, 512, 480), 3: (96, 100, 76, 200, 64), 4: (96, 100, 64)}
TOKENS = (16, 24, 32, 64, 128)
CHANNELS = (1, 3, 4)


def usual_sizes(
    specs: Iterable[TensorSpec], leading: Mapping[str, bool], tokens: Container[str] = ()
) -> list[tuple[list[str], list[tuple[int, ...]]]]:
    """Dynamic dimensions that go together, with the sizes to try for them, in this order; one entry for each group.

    leading  the dynamic dimensions by name: whether it is a number of pictures or sentences, which has no usual size.
    tokens   inputs whose elements are indices, as those of texts are, whatever their type.
    """
    groups: list[tuple[list[str], list[tuple[int, ...]]]] = []
    for spec in specs:
        shape = [d if isinstance(d, int) else d.name if d else f"{spec.name}_dim{i}" for i, d in enumerate(spec.shape)]
        places = picture_axes(shape)
        if places:
            pair = [shape[place] for place in places]
            fitting = [s for s in PICTURES if all(p in (size, *leading) for p, size in zip(pair, s, strict=True))]
            names = [str(p) for p in pair if p in leading]
            sizes = [tuple(s for s, p in zip(c, pair, strict=True) if p in leading) for c in fitting or PICTURES]
            if names:
                groups.append((names, sizes))
            continue
        for place in reversed(shape):
            if not leading.get(str(place), True):
                whole = spec.dtype.kind in "iub" or spec.name in tokens
                series = TOKENS if whole else SERIES.get(len(shape), TOKENS)
                groups.append(([str(place)], [(size,) for size in series]))
    return groups


def picture_axes(shape: Sequence[int | str]) -> tuple[int, int] | None:
    """Height and width of what has 1, 3 or 4 channels first or last; None for what is no picture."""
    if len(shape) == 4 and shape[1] in CHANNELS:
        return (2, 3)
    if len(shape) == 4 and shape[3] in CHANNELS:
        return (1, 2)
    return None


__all__ = ["picture_axes", "usual_sizes"]
