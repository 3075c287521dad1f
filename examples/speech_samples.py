"""Speech at 48 kHz for what shows and tests audio: spoken by espeak-ng where that program is installed, else vowels
made here; and noise beside it. As a program it writes some of it:

    .venv/bin/python examples/speech_samples.py noisy.wav
"""

from __future__ import annotations

import io
import math
import shutil
import subprocess
import sys
import wave
from typing import Any

import numpy as np
from scipy import signal
from wav_files import write_wav

RATE = 48000
TEXT = (
    "The north wind and the sun were disputing which was the stronger, when a traveller came along wrapped in a warm "
    "cloak. They agreed that the one who first made him take it off should be considered stronger than the other."
)
# Hz: the first three resonances of the mouth in "ah", "eh", "ee", "oh", "oo".
VOWELS = ((730, 1090, 2440), (530, 1840, 2480), (270, 2290, 3010), (570, 840, 2410), (300, 870, 2240))

Floats = np.ndarray[Any, np.dtype[np.float32]]


def speech(seconds: float) -> tuple[Floats, str]:
    """Samples whose peak is 0.5, and who spoke them."""
    spoken = by_espeak(TEXT)
    made = vowels(seconds) if spoken is None else np.resize(spoken, round(seconds * RATE))
    return (made * (0.5 / np.abs(made).max())).astype(np.float32), "vowels" if spoken is None else "espeak-ng"


def by_espeak(text: str) -> Floats | None:
    """None where the program is not installed."""
    program = shutil.which("espeak-ng")
    if program is None:
        return None
    done = subprocess.run([program, "-s", "160", "--stdout", text], capture_output=True, timeout=60, check=True)
    with wave.open(io.BytesIO(done.stdout)) as file:
        rate = file.getframerate()
        # A program that writes to a pipe does not know its file's size, and says more: what is there counts.
        samples = np.frombuffer(file.readframes(len(done.stdout)), "<i2").astype(np.float32) / 32768
    common = math.gcd(RATE, rate)
    resampled: Floats = signal.resample_poly(samples, RATE // common, rate // common).astype(np.float32)
    return resampled


def vowels(seconds: float) -> Floats:
    """Four syllables a second with pauses: a hiss, then pulses of a gliding pitch through the mouth's resonances."""
    random = np.random.default_rng(5)
    count = round(seconds * RATE)
    t = np.arange(count) / RATE
    syllable = (t * 4).astype(int)
    within = t * 4 % 1
    spoken = syllable % 7 != 6  # each seventh is a pause
    voiced = np.sin(np.pi * np.clip((within - 0.15) / 0.8, 0, 1)) ** 0.5 * spoken
    hissed = np.sin(np.pi * np.clip(within / 0.25, 0, 1)) ** 2 * spoken
    pitch = (118 + 25 * np.sin(2 * np.pi * 0.31 * t)) * (1.15 - 0.3 * within)
    turns = np.cumsum(pitch) / RATE
    pulses = np.diff(np.floor(turns), prepend=0.0) * (1 + 0.1 * random.standard_normal(count))
    sound = signal.lfilter([1], [1, -0.97], pulses + 0.003 * random.standard_normal(count)) * voiced
    vowel = np.array(VOWELS)[random.integers(0, len(VOWELS), syllable[-1] + 2)]
    block = RATE // 200
    for k, width in enumerate((80, 110, 160, 250)):
        kept = np.zeros(2)
        for i in range(0, count, block):
            glide = min(1.0, 2 * within[i])  # from the vowel before to this one
            around = vowel[syllable[i]], vowel[syllable[i] + 1]
            f = 3500.0 if k == 3 else (1 - glide) * around[0][k] + glide * around[1][k]
            r = np.exp(-np.pi * width / RATE)
            poles = [1, -2 * r * np.cos(2 * np.pi * f / RATE), r * r]
            sound[i : i + block], kept = signal.lfilter([sum(poles)], poles, sound[i : i + block], zi=kept)
    sound = np.diff(sound, prepend=0.0)  # lips
    sound /= np.abs(sound).max()
    hiss = signal.lfilter(*signal.butter(2, [3000, 9000], "bandpass", fs=RATE), random.standard_normal(count))
    return (sound + 0.06 * hiss * hissed).astype(np.float32)


def noise(count: int, seed: int = 0) -> Floats:
    """That of a fan: louder at low frequencies, with a hum, and swelling slowly; its mean square is 1."""
    random = np.random.default_rng(seed)
    t = np.arange(count) / RATE
    made = signal.lfilter([1], [1, -0.93], random.standard_normal(count)) + 0.15 * random.standard_normal(count)
    made += 0.8 * np.sin(2 * np.pi * 100 * t) + 0.5 * np.sin(2 * np.pi * 300 * t)
    made *= 1 + 0.4 * np.sin(2 * np.pi * 0.2 * t)
    return (made / np.sqrt(np.mean(made**2))).astype(np.float32)


def mixed(clean: Floats, decibels: float, seed: int = 0) -> Floats:
    """The samples with noise; `decibels` is the ratio of the speech's power to the noise's."""
    loud = np.sqrt(np.mean(clean**2) / 10 ** (decibels / 10))
    return (clean + loud * noise(len(clean), seed)).astype(np.float32)


def snr(clean: Floats, heard: Floats) -> float:
    """Power of the clean samples over that of what is heard beside them, in dB."""
    error = np.asarray(heard, np.float64) - clean
    return float(10 * np.log10(np.sum(np.asarray(clean, np.float64) ** 2) / np.sum(error**2)))


def si_sdr(clean: Floats, heard: Floats) -> float:
    """The same for the clean samples times the factor that fits best, so that loudness does not count."""
    factor = np.dot(heard, clean) / np.dot(clean, clean)
    return snr(factor * clean, heard)


def main() -> int:
    """Writes eight seconds of speech with noise 5 dB below it: 16 bits, one channel."""
    if len(sys.argv) != 2:
        print("usage: speech_samples.py noisy.wav", file=sys.stderr)
        return 2
    write_wav(sys.argv[1], mixed(speech(8)[0], 5), RATE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
