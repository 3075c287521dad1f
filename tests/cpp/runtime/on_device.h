// A case of tests/softmetal/ on a device of the GPU's device interface, whatever the driver.
#pragma once

#include <cstring>

#include "cpp/gpu/softmetal_cases.h"

namespace pinnace {

inline gpu::KernelCode code_of(const SoftmetalCase& c) {
  return {.name = c.kernel,
          .spirv = {},
          .msl = {},
          .bindings = static_cast<uint32_t>(c.buffers.size()),
          .written = c.written,
          .push_bytes = static_cast<uint32_t>(c.push.size()),
          .spec_constants = static_cast<uint32_t>(c.spec.size()),
          .local = c.local,
          .shared_bytes = 4096,
          .f16_storage = c.kernel == "gemm_f16"};
}

// A case's buffers and kernel on a device.
struct OnDevice {
  SoftmetalCase c;
  std::string msl;  // for drivers that compile it
  gpu::KernelCode code;
  std::unique_ptr<gpu::Kernel> kernel;
  std::vector<std::unique_ptr<gpu::DeviceBuffer>> buffers;
  std::vector<gpu::Binding> bindings;

  explicit OnDevice(SoftmetalCase from) : c(std::move(from)) {}
  Status prepare(gpu::Device& device) {
    code = code_of(c);  // which has a view of the name: not before this stays where it is
    code.msl = msl;
    PINNACE_ASSIGN(kernel, device.kernel(code, c.spec));
    for (const auto& bytes : c.buffers) {
      PINNACE_ASSIGN(auto buffer, device.buffer(bytes.size(), gpu::BufferUse::kUpload));
      memcpy(buffer->host(), bytes.data(), bytes.size());
      bindings.push_back({buffer.get(), 0, bytes.size()});
      buffers.push_back(std::move(buffer));
    }
    return {};
  }
  std::string answer() const {
    std::vector<std::vector<std::byte>> results;
    for (const auto& b : buffers) results.emplace_back(b->host(), b->host() + b->bytes());
    return wrong_answer(c, results);
  }
};

inline Status run_list(gpu::Device& device, gpu::CommandList& list) {
  PINNACE_TRY(list.finish());
  PINNACE_TRY(device.submit(list));
  return device.wait(list);
}

}  // namespace pinnace
