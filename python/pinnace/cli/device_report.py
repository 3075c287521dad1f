"""`pinnace report-device`, and what `pinnace devices --import` shows of its page."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import fields
from typing import Any

from pinnace import _core
from pinnace.cli.arguments import check_writable
from pinnace.cli.output import bold, dim, green, red, show
from pinnace.cli.timing import Timing
from pinnace.device.kit import make_kit, write_kit
from pinnace.device.page import read_page
from pinnace.files import open_regular, write_text
from pinnace.progress import phase
from pinnace.targets import Device
from pinnace.types import json_text


def report_device_command(options: argparse.Namespace) -> int:
    """Makes a kit, or tests and times this machine by one; 1 if an answer differs or fails, or none was judged."""
    if options.make_kit is not None:
        if options.kit is not None or options.output is not None or options.target or options.seconds is not None:
            raise _core.InvalidArgument("--make-kit only writes a kit: it takes --model, and no option of a report")
        check_writable(options.make_kit, options.model)
        size = write_kit(options.make_kit, options.model)
        show(f"{options.make_kit}: {size:,} bytes")
        return 0
    if options.kit is not None and options.model:
        raise _core.InvalidArgument("--model is for making a kit, and --kit names one that is made")
    if options.output is not None:
        check_writable(options.output, [options.kit])
    if options.kit is None:
        kit = make_kit(options.model)
    else:
        with open_regular(options.kit) as file:
            kit = file.read()
    with phase("testing and timing"):
        seconds = 60.0 if options.seconds is None else options.seconds
        try:
            page, good, totals = _core.run_report(kit, options.target or [], seconds)
        except (_core.CorruptFile, _core.Unsupported) as error:
            raise type(error)(f"{options.kit}: {error}" if options.kit is not None else str(error)) from None
    if options.output is None:
        show(json_text(json.loads(page), indent=1))
    else:
        write_text(options.output, page)
    show(totals, file=sys.stderr)
    return 0 if good else 1


def device_line(device: Device) -> str:
    """One target as a line."""
    return f"{device.target}: {'' if device.available else 'not available: '}{device.description}"


def imported_command(options: argparse.Namespace) -> int:
    """Shows the page of another device; 1 if an answer in it differs or failed, or none was judged."""
    page = read_page(options.imported)
    if options.json:
        show(json_text(page, indent=1))
    else:
        _show_page(page)
    return 0 if _passed(page["totals"]) else 1


def _passed(totals: dict[str, int]) -> bool:
    """As passed() in cpp/report/report.h."""
    return totals["differs"] + totals["failed"] == 0 and totals["equal"] + totals["refused"] > 0


def _show_page(page: dict[str, Any]) -> None:
    machine = page["machine"]
    api = f"Android API level {machine['android_api']}" if machine["android_api"] is not None else None
    about = [machine["device"], machine["chip"], machine["architecture"], machine["system"], api]
    show(bold(", ".join(filter(None, about))), f", {machine['processors']} processors")
    show(dim(f"{page['date']}, pinnace {page['pinnace']['version']}, built from {page['pinnace']['commit']}"))
    for row in page["targets"]:
        line = device_line(Device(row["target"], row["available"], row["description"]))
        show(line, dim("  [software: the processor stands in for the device]") if row["software"] else "")
    _show_answers(page["answers"])
    for row in page["times"]:
        if row["result"] == "equal":
            timing = Timing(**{field.name: row[field.name] for field in fields(Timing)})
            show(bold(row["program"]), f" {timing}; {row['cpu_per_wall']:.2f} processors busy{_elsewhere(row)}")
        else:
            show(red(f"{row['program']} {_place(row)}: {_what(row)}"))
    for row in page["left_out"]:
        show(dim(f"left out: {row['kind']} of {row['program']} {_place(row)}: {row['why']}"))
    totals = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in page["totals"].items())
    show((green if _passed(page["totals"]) else red)(totals))


def _show_answers(rows: list[dict[str, Any]]) -> None:
    """A line for each target, then one for each answer that is not equal."""
    for place in dict.fromkeys(map(_place, rows)):
        own = [row for row in rows if _place(row) == place]
        counts = Counter(row["result"] for row in own)
        partly = sum(row["nodes"]["there"] < row["nodes"]["all"] for row in own if row["result"] == "equal")
        said = ", ".join(f"{count} {result}" for result, count in counts.items())
        show(bold(place), f": {len(own)} known answers: {said}", f" ({partly} partly elsewhere)" if partly else "")
        for row in own:
            if row["result"] != "equal":
                line = f"  {row['test']}: {_what(row)}"
                show(dim(line) if row["result"] == "refused" else red(line))


def _place(row: dict[str, Any]) -> str:
    return f"{row['target']} threads {row['threads']}"


def _elsewhere(row: dict[str, Any]) -> str:
    """How many nodes did not run on the target; nothing where all did."""
    nodes = row["nodes"]
    return (
        f"; {nodes['all'] - nodes['there']} of {nodes['all']} nodes elsewhere" if nodes["there"] < nodes["all"] else ""
    )


def _what(row: dict[str, Any]) -> str:
    text = f"{row['result']}: {row['why']}"
    if worst := row["worst"]:
        at = f"{worst['output']}{json.dumps(worst['element'])}, run {worst['step'] + 1}"
        text += f": {at}: {worst['got']}, must be {worst['wanted']}"
    return text + _elsewhere(row)


__all__ = ["device_line", "imported_command", "report_device_command"]
