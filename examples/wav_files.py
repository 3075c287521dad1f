"""WAV files of one channel and 16 bits, as samples [N] in [-1, 1]."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float32]]


def read_wav(path: str | Path, rate: int) -> Floats:
    """The samples of a file of that many a second; raises ValueError for other files, and what wave raises."""
    with wave.open(str(path)) as file:
        form = file.getframerate(), file.getnchannels(), 8 * file.getsampwidth()
        if form != (rate, 1, 16):
            raise ValueError(
                f"{path}: must have {rate} Hz, 1 channel and 16 bits, has {form[0]}, {form[1]} and {form[2]}"
            )
        data = file.readframes(file.getnframes())
        if len(data) != 2 * file.getnframes():
            raise ValueError(f"{path}: ends after {len(data)} of {2 * file.getnframes()} bytes of samples")
    return np.frombuffer(data, "<i2").astype(np.float32) / np.float32(32768)


def write_wav(path: str | Path, samples: Floats, rate: int) -> None:
    """A file of that many samples a second; what is louder than 1 is cut off."""
    with Path(path).open("wb") as output, wave.open(output) as file:
        file.setframerate(rate)
        file.setnchannels(1)
        file.setsampwidth(2)
        file.writeframes(np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes())
