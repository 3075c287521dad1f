"""What `pinnace bench` and the report of a device say of one timing."""

from __future__ import annotations

from dataclasses import dataclass

LARGE_SHARE = 0.2  # of a run, from which on reference code is worth a word


@dataclass(frozen=True)
class Timing:
    """What one choice of target, precision and threads took.

    create_and_first_run_ms  has the session's creation.
    reference_code           what part of a run operators without a kernel took: {"einsum": 0.31}, largest first.
    cpu_per_wall             processor seconds of the whole process by seconds, during the runs.
    """

    target: str
    precision: str
    threads: int
    runs: int
    median_ms: float
    p10_ms: float
    p90_ms: float
    create_and_first_run_ms: float
    peak_bytes: int
    reference_code: dict[str, float]
    cpu_per_wall: float

    def __str__(self) -> str:
        text = (
            f"{self.target} {self.precision} threads {self.threads}: median {self.median_ms:.2f} ms "
            f"(p10 {self.p10_ms:.2f}, p90 {self.p90_ms:.2f}, {self.runs} runs), "
            f"first run with its preparation {self.create_and_first_run_ms:.1f} ms, "
            f"{self.peak_bytes:,} bytes beside weights"
        )
        if sum(self.reference_code.values()) > LARGE_SHARE:
            text += f"; {sum(self.reference_code.values()):.0%} by reference code, as no kernel takes these nodes: "
            text += ", ".join(f"{op} {share:.0%}" for op, share in list(self.reference_code.items())[:5])
        return text


__all__ = ["Timing"]
