// Messages of the core in Python's `logging`.
//
// They arise on threads that have no GIL and may hold locks that a thread with the GIL waits for. So none is handed
// over where it arises: the core keeps it, and calls that have the GIL anyway deliver what there is, at their end and
// about every 50 ms meanwhile. No thread waits for the GIL because of a message.
#pragma once

#include <pinnace/host_log.h>
#include <pybind11/pybind11.h>

namespace pinnace::bindings {

/// At the end of a call: hands what is kept to the logger "pinnace", for a tenth of a second at most; the rest waits
/// for the next call. With the GIL. What a handler raises is printed and dropped, as `logging` does with errors of
/// handlers; exceptions that are no errors, such as KeyboardInterrupt, are thrown.
void deliver_log();
/// The same in the middle of a call, for a twentieth of that.
void deliver_log_meanwhile();

/// At the end of the interpreter: from now on nothing is kept.
void end_log();
/// In a forked child: what the parent has not delivered yet is the parent's.
void begin_log_of_child();

/// Adds set_log_level(), log_to_stderr() and log(), and begins to keep warnings.
void add_log(pybind11::module_& module);

}  // namespace pinnace::bindings
