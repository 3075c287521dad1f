// A kit: one file with the programs, inputs and answers that a device is tested with. docs/device_report.md has the
// format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pinnace/pinnace.h>

namespace pinnace::report {

struct CloseProgram {
  void operator()(pnc_program* program) const { pnc_program_close(program); }
};
using ProgramPtr = std::unique_ptr<pnc_program, CloseProgram>;

/// One run: inputs, and of a known-answer test the outputs, in the program's order. `data` points into the kit, at no
/// particular alignment, and is only read.
struct KitStep {
  std::vector<pnc_tensor> inputs, outputs;
};

struct KitProgram {
  std::string name;
  bool timed = false;          ///< it has no answers, and is timed
  ProgramPtr program;          ///< null where this build cannot open it
  Status refusal;              ///< why not
  std::vector<double> bounds;  ///< one per output: of the largest difference, relative to the largest magnitude
  std::vector<KitStep> steps;  ///< run one after the other by one session: states go from one to the next
};

struct Kit {
  std::vector<KitProgram> programs;  ///< in the order of the file: answers first
  uint32_t checksum = 0;             ///< of header and index, which hold the checksums of all else
};

/// Reads a kit. Every field is checked before its first use, sizes and types against those of the programs.
///
/// bytes  borrowed as long as the kit lives.
/// kCorruptFile: the offset, the range and the rule that it breaks; kUnsupported: a version newer than this library's.
Result<Kit> read_kit(std::span<const std::byte> bytes);

/// The checksum of the format: CRC-32 as in zip.
uint32_t crc32(std::span<const std::byte> bytes);

}  // namespace pinnace::report
