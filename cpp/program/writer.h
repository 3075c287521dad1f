// write_program: a graph, facts and payloads to the bytes of a .pnc file.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/memory.h"
#include "program/program_data.h"

namespace pinnace {

/// The same arguments give the same bytes; what read_program made of a file gives that file's bytes again, if no
/// operator was upgraded. Constants with equal bytes are stored once.
///
/// metadata in any order; of entries with equal keys the last one counts. payloads in any order.
///
/// kInvalidArgument: the graph breaks a rule of verify() or one of the format (names that are not UTF-8, metadata of
/// more than one line, a payload twice). kUnsupported: more than 256 MiB beside the weights. kOutOfMemory. Operators
/// that are not built in are marked as the application's.
Result<Buffer> write_program(const Graph& graph, Metadata metadata, std::span<const Payload> payloads);

/// The file that holds `payloads` and `metadata` and a graph without nodes, given to `write` in pieces that follow each
/// other and refer to the payloads' bytes: nothing is copied. Read as any program. Errors as above, and those of
/// `write`.
Status write_payloads(Metadata metadata, std::span<const Payload> payloads,
                      const std::function<Status(std::span<const std::span<const std::byte>>)>& write);

/// The program with other metadata. It shares graph, weights and payloads with `program`, in memory and as the bytes of
/// its file, which are not written again; their hashes are taken over. kInvalidArgument as above. kOutOfMemory.
/// kCorruptFile: the graph in its mapped file was written to since it was opened.
Result<std::shared_ptr<const ProgramData>> with_other_metadata(const ProgramData& program, Metadata metadata);

}  // namespace pinnace
