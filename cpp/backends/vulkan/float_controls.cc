// Adds a capability, an extension and an execution mode to a module, each where SPIR-V's order of sections has it.
#include "backends/vulkan/float_controls.h"

#include <cassert>
#include <cstring>
#include <string_view>

namespace pinnace::vulkan {
namespace {

constexpr uint32_t kHeaderWords = 5;
// Numbers of SPIR-V's specification: opcodes, and the capability and mode of SPV_KHR_float_controls.
constexpr uint32_t kOpExtension = 10, kOpEntryPoint = 15, kOpExecutionMode = 16, kOpCapability = 17;
constexpr uint32_t kSignedZeroInfNanPreserve = 4466, kModeSignedZeroInfNanPreserve = 4461;
constexpr std::string_view kExtension = "SPV_KHR_float_controls";

uint32_t head(uint32_t opcode, uint32_t words) {
  return words << 16 | opcode;
}

}  // namespace

std::vector<uint32_t> preserving_special_values(std::span<const uint32_t> spirv) {
  std::vector<uint32_t> made(spirv.begin(), spirv.begin() + kHeaderWords);
  bool declared = false;
  for (size_t at = kHeaderWords; at < spirv.size();) {
    const uint32_t opcode = spirv[at] & 0xffff, words = spirv[at] >> 16;
    assert(words > 0 && at + words <= spirv.size());
    if (!declared && opcode != kOpCapability) {
      made.insert(made.end(), {head(kOpCapability, 2), kSignedZeroInfNanPreserve});
      uint32_t name[kExtension.size() / 4 + 1] = {};  // ends with a zero byte
      std::memcpy(name, kExtension.data(), kExtension.size());
      made.push_back(head(kOpExtension, 1 + std::size(name)));
      made.insert(made.end(), std::begin(name), std::end(name));
      declared = true;
    }
    made.insert(made.end(), spirv.begin() + static_cast<ptrdiff_t>(at),
                spirv.begin() + static_cast<ptrdiff_t>(at + words));
    if (opcode == kOpEntryPoint) {
      made.insert(made.end(), {head(kOpExecutionMode, 4), spirv[at + 2], kModeSignedZeroInfNanPreserve, 32});
    }
    at += words;
  }
  return made;
}

}  // namespace pinnace::vulkan
