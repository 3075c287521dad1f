// Finds and opens libpinnace_softmetal.so, and reads from the environment how it is to execute.
#include <dlfcn.h>

#include <charconv>

#include "backends/softmetal/device.h"
#include "base/environment.h"

namespace pinnace::softmetal {
namespace {

constexpr const char* kName = "libpinnace_softmetal.so";

Result<const SoftmetalLibrary*> open_library() {
  Dl_info info{};
  std::string path = kName;
  if (dladdr(reinterpret_cast<const void*>(&parse_execution), &info) && info.dli_fname) {
    const std::string file = info.dli_fname;
    if (const size_t slash = file.rfind('/'); slash != std::string::npos) path = file.substr(0, slash + 1) + kName;
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return unsupported("not in this build: there is no ", path);
  const auto entry = reinterpret_cast<SoftmetalEntry>(dlsym(handle, SOFTMETAL_ENTRY));
  if (!entry) return unsupported(path, " does not export ", SOFTMETAL_ENTRY);
  const SoftmetalLibrary* found = entry();
  if (!found) return unsupported("this processor lacks AVX2, FMA or F16C, which Metal's kernels are compiled for");
  if (found->interface != SOFTMETAL_INTERFACE) {
    return unsupported(path, " has interface ", found->interface, ", this library ", SOFTMETAL_INTERFACE);
  }
  return found;
}

}  // namespace

Result<const SoftmetalLibrary*> library() {
  static const auto* const opened = new Result<const SoftmetalLibrary*>(open_library());
  return *opened;
}

Result<Execution> parse_execution(std::string_view text) {
  Execution execution;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : item.substr(equals + 1);
    uint32_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_number = !value.empty() && read.ec == std::errc() && read.ptr == value.data() + value.size();
    if (key == "order" && value == "forward") {
      execution.order = kSoftmetalForward;
    } else if (key == "order" && value == "reverse") {
      execution.order = kSoftmetalReverse;
    } else if (key == "order" && value == "shuffled") {
      execution.order = kSoftmetalShuffled;
    } else if (key == "seed" && is_number) {
      execution.seed = number;
    } else if (key == "width" && is_number && (number == 8 || number == 16 || number == 32 || number == 64)) {
      execution.simd_width = number;
    } else if (key == "races" && is_number && number <= 1) {
      execution.races = number == 1;
    } else {
      return invalid("PINNACE_SOFTMETAL: '", item,
                     "' is none of order=forward|reverse|shuffled, seed=N, width=8|16|32|64, races=0|1");
    }
  }
  return execution;
}

std::string unavailable(uint32_t index) {
  if (index > 0) return "has one device, number 0";
  const auto found = library();
  return found.ok() ? std::string() : found.status().message();
}

Result<std::unique_ptr<gpu::Device>> open_device(uint32_t index, const gpu::DeviceOptions& options) {
  if (std::string reason = unavailable(index); !reason.empty()) return unsupported(reason);
  const char* text = environment("PINNACE_SOFTMETAL");
  PINNACE_ASSIGN(const Execution execution, parse_execution(text ? text : ""));
  return open(options, execution);
}

}  // namespace pinnace::softmetal
