"""What long calls show on a terminal: the name of the phase and its time, once it has lasted; nothing anywhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pinnace as pn
import pytest
import torch
from pinnace import cli, progress

ROOT = Path(__file__).resolve().parents[3]
CHILD = """
import sys, threading, time
import pinnace as pn
from pinnace import progress
progress.AFTER = 0.1

@progress.phase("importing")
def work(seconds):
    with progress.phase("inner"):
        time.sleep(seconds)

{before}
work({seconds})
print("done")
"""


def on_a_terminal(seconds: float, before: str = "", terminal: str = "xterm") -> str:
    """What a process of that phase writes to stderr, which is a terminal; its stdout is checked."""
    ours, theirs = pty.openpty()
    code = CHILD.format(seconds=seconds, before=before)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TERM": terminal, "COLUMNS": "100"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, env=environment, text=True
    ) as child:
        os.close(theirs)
        written = b""
        while True:
            try:
                got = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not got:
                break
            written += got
        assert child.stdout is not None
        assert child.stdout.read() == "done\n", written
    os.close(ours)
    assert child.returncode == 0
    return written.decode()


def test_a_long_phase_is_named_with_its_time() -> None:
    pytest.importorskip("rich")
    written = on_a_terminal(1.5)
    assert "importing" in written
    assert "0:00:0" in written
    assert "inner" not in written
    assert written.rstrip("\r\n").endswith("\x1b[2K") or "\x1b[?25h" in written  # the line is taken away at the end


def test_nothing_is_shown() -> None:
    assert on_a_terminal(0.01) == ""  # of what ends at once
    assert on_a_terminal(0.5, "pn.set_progress(False)") == ""
    assert on_a_terminal(0.5, "sys.modules['rich'] = None; sys.modules['rich.console'] = None") == ""
    assert on_a_terminal(0.5, terminal="dumb") == ""


def test_nothing_is_shown_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "AFTER", 0.01)
    with progress.phase("importing"):
        time.sleep(0.2)
    assert capfd.readouterr() == ("", "")


def test_a_quiet_command_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    made = tmp_path / "net.pnc"
    pn.load(torch.nn.ReLU(), torch.zeros(2)).build().save(made)
    for path, status in ((made, 0), (tmp_path / "nowhere.pnc", 2)):
        assert cli.main(["check", str(path), "--quiet"]) == status
        assert progress.is_shown()


def test_phases_end_with_the_exceptions_of_their_work() -> None:
    for _ in range(2):
        with pytest.raises(KeyError), progress.phase("importing"):
            raise KeyError
    pn.set_progress(False)
    pn.set_progress(True)
