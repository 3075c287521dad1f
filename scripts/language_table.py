"""The README's table of what each language has: every call in it is looked up in the language's own declarations."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("Python", "C++", "C", "Java")
NONE = ""

# What one wants, and the call for it in each language; NONE: there is none.
ROWS = (
    ("import a model", "load", "Model::load", NONE, NONE),
    ("build a program", "Model.build", "Model::build", NONE, NONE),
    ("open a file", "Program.open", "Program::open", "pnc_program_open", "Program.open"),
    ("open bytes in memory", "Program.from_bytes", "Program::from_bytes", "pnc_program_from_bytes", "Program.open"),
    ("open a part of a file, such as an asset", NONE, "open_descriptor", "pnc_program_open_descriptor", "Program.open"),
    ("prepare it for a target", "Session", "Session::create", "pnc_session_create_with", "Session.create"),
    ("run", "Session.run", "Session::run", "pnc_session_run_with", "Session.run"),
    ("run on another thread", "Session.run_async", "Session::submit", "pnc_session_submit", "Session.runAsync"),
    ("stop a run", "CancelToken.cancel", "CancelToken::cancel", "pnc_cancel_token_cancel", "CancelToken.cancel"),
    ("read a state", "Session.state", "Session::state", "pnc_session_state", "Session.state"),
    ("set a state", "State.__setitem__", "Session::set_state", "pnc_session_set_state", "Session.setState"),
    ("save all states", "Session.save_state", "Session::save_state", "pnc_session_save_state", "Session.saveState"),
    (
        "restore all states",
        "Session.restore_state",
        "Session::restore_state",
        "pnc_session_restore_state",
        "Session.restoreState",
    ),
    ("a second session with the same states", "Session.fork", "Session::fork", "pnc_session_fork", "Session.fork"),
    (
        "chunks of a stream",
        "Program.stream",
        "Program::streamed_inputs",
        "pnc_program_streamed_inputs",
        "Program.streamedInputs",
    ),
    ("end a stream", "Session.finish", "Session::finish", "pnc_session_finish", "Session.finish"),
    ("where each node runs", "Session.placement", "Session::placement", "pnc_session_placement", "Session.placement"),
    ("time of each node", "Session.profile", "Session::profile", "pnc_session_profile", "Session.profile"),
    ("power, priority, deadlines, processors", "Service", "Service", "pnc_session_options", "Service"),
    ("operators of one's own", "custom_op", "CustomOp", "pnc_custom_op_create", "CustomOp"),
    ("messages", "set_log_level", "set_log_sink", "pnc_set_log_sink", "Log.setSink"),
    ("tests and times of this device", NONE, NONE, NONE, "Report.run"),
)


def _headers() -> str:
    """All public headers of C++ without comments."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "cpp/include/pinnace").glob("*.h")))
    return re.sub(r"//.*", "", text)


def _in_python(call: str) -> bool:
    sys.path.insert(0, str(ROOT / "python"))
    import pinnace

    found: object = pinnace
    for part in call.split("."):
        found = getattr(found, part, None)
    return found is not None and call.partition(".")[0] in pinnace.__all__


def _in_cpp(call: str) -> bool:
    owner, _, method = call.rpartition("::")
    if owner:
        body = re.search(rf"^class {owner} {{.*?^}};", _headers(), re.M | re.S)
        return bool(body and re.search(rf"\b{method}\(", body[0]))
    return bool(re.search(rf"^(?:class|struct) {call} {{|^\S.*\b{call}\(", _headers(), re.M))


def _in_c(call: str) -> bool:
    return bool(
        re.search(rf"^PNC_API .*\b{call}\(|^}} {call};", (ROOT / "cpp/include/pinnace/pinnace.h").read_text(), re.M)
    )


def _in_java(call: str) -> bool:
    name, _, method = call.partition(".")
    path = ROOT / "java/src/main/java/org/pinnace" / f"{name}.java"
    return path.exists() and bool(re.search(rf"^  public .*\b{method or name}\(", path.read_text(), re.M))


def language_table() -> str:
    """The table; SystemExit names what is in no declaration."""
    rows = ["| to | " + " | ".join(LANGUAGES) + " |", "|---|" + "---|" * len(LANGUAGES)]
    for what, *calls in ROWS:
        for language, call, found in zip(LANGUAGES, calls, (_in_python, _in_cpp, _in_c, _in_java), strict=True):
            if call and not found(call):
                raise SystemExit(f"language_table.py: {language} has no {call}")
        rows.append(f"| {what} | " + " | ".join(f"`{call}`" if call else "–" for call in calls) + " |")
    return "\n".join(rows)
