// read_program: bytes of a .pnc file to ProgramData. It trusts nothing in them; docs/threat_model.md says what is
// checked where.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "ops/type_inference.h"
#include "program/program_data.h"
#include "program/upgrade.h"

namespace pinnace {

struct ReadOptions {
  Verify verify = Verify::kFull;
  int descriptor = -1;  ///< of the MappedFile that the bytes are; -1: they are none, or a part of one
  bool mapped = false;  ///< they are a part of a mapped file
  OpTable ops;          ///< built-in operators, and others before them
  std::span<const Upgrade> upgrades = all_upgrades();
};

/// `name` is the file's in messages. `bytes` start at a multiple of 64 and are kept alive by `owner`, which the result
/// and every constant share.
///
/// kCorruptFile: offset() and rule(). kUnsupported: format or operator version newer than this build, or operators that
/// it does not have: nodes() lists every such node. Operators marked as the application's are left to the session.
/// kOutOfMemory. Takes at most the size of the file and 16 MiB beside `bytes`, whatever they are; where `bytes` are a
/// mapped file, a copy of its graph and manifest in addition, so that nothing is read again that was checked.
Result<std::shared_ptr<const ProgramData>> read_program(std::string name, std::shared_ptr<const void> owner,
                                                        std::span<const std::byte> bytes,
                                                        const ReadOptions& options = {});

}  // namespace pinnace
