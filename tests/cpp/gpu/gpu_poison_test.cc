// What kernels must not read or write: drivers whose memory is full of 0xff (a NaN) when it is made, with guards after
// every buffer. Results are those of clean memory, to the bit, a hundred times; and no byte of the device's own memory
// that no kernel was given has changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "backends/gpu/backend.h"
#include "cases/parse_case.h"
#include "cpp/gpu/gpu_graphs.h"
#include "cpp/gpu/gpu_session.h"
#include "cpp/lone_node.h"

namespace pinnace {
const Backend& vulkan_backend();
}  // namespace pinnace

namespace pinnace::testing {
namespace {

constexpr size_t kGuard = 256;
constexpr std::byte kPoison{0xff};
int spoiled = 0;  // bytes that were found changed where nothing may write

/// All bytes of a buffer through one that the host sees: `to_device` or from it.
Status carry(gpu::Device& device, const gpu::DeviceBuffer& buffer, size_t bytes, std::vector<std::byte>& content,
             bool to_device) {
  PINNACE_ASSIGN(auto host, device.buffer(bytes, to_device ? gpu::BufferUse::kUpload : gpu::BufferUse::kDownload));
  PINNACE_ASSIGN(auto list, device.command_list(0));
  if (to_device) {
    std::memcpy(host->host(), content.data(), bytes);
    list->copy(*host, 0, buffer, 0, bytes);
  } else {
    list->copy(buffer, 0, *host, 0, bytes);
  }
  PINNACE_TRY(list->finish());
  PINNACE_TRY(device.submit(*list));
  PINNACE_TRY(device.wait(*list));
  if (!to_device) std::memcpy(content.data(), host->host(), bytes);
  return {};
}

class PoisonedBuffer final : public gpu::DeviceBuffer {
 public:
  PoisonedBuffer(gpu::Device& device, std::unique_ptr<gpu::DeviceBuffer> own, size_t bytes)
      : DeviceBuffer(bytes, own->host()), device_(device), own_(std::move(own)) {}
  ~PoisonedBuffer() override {
    std::vector<std::byte> content(bytes_ + kGuard);
    if (host_) {
      std::memcpy(content.data(), host_, content.size());
    } else if (!carry(device_, *own_, content.size(), content, false).ok()) {
      return;
    }
    if (!written_) bound_.insert({0, bytes_});  // by the host: weights, inputs
    size_t at = 0;
    bound_.insert({content.size(), content.size()});
    for (const auto& [begin, end] : bound_) {
      for (; at < begin; ++at) spoiled += content[at] != kPoison;
      at = std::max(at, end);
    }
  }
  const gpu::DeviceBuffer& own() const { return *own_; }
  void bind(size_t begin, size_t end, bool writes) const {
    bound_.insert({begin, end});
    written_ |= writes;
  }

 private:
  gpu::Device& device_;
  std::unique_ptr<gpu::DeviceBuffer> own_;
  mutable std::set<std::pair<size_t, size_t>> bound_;
  mutable bool written_ = false;
};

const gpu::DeviceBuffer& own(const gpu::DeviceBuffer& buffer) {
  return static_cast<const PoisonedBuffer&>(buffer).own();
}

class PoisonedList final : public gpu::CommandList {
 public:
  explicit PoisonedList(std::unique_ptr<gpu::CommandList> own) : own_(std::move(own)) {}
  void dispatch(const gpu::Kernel& kernel, std::span<const gpu::Binding> bindings, std::span<const std::byte> push,
                std::array<uint32_t, 3> groups) override {
    std::vector<gpu::Binding> inner;
    for (size_t b = 0; b < bindings.size(); ++b) {
      const auto& buffer = static_cast<const PoisonedBuffer&>(*bindings[b].buffer);
      buffer.bind(bindings[b].offset, bindings[b].offset + bindings[b].bytes, (kernel.code().written >> b & 1) != 0);
      inner.push_back({&buffer.own(), bindings[b].offset, bindings[b].bytes});
    }
    own_->dispatch(kernel, inner, push, groups);
  }
  void barrier() override { own_->barrier(); }
  void copy(const gpu::DeviceBuffer& from, size_t from_offset, const gpu::DeviceBuffer& to, size_t to_offset,
            size_t bytes) override {
    own_->copy(own(from), from_offset, own(to), to_offset, bytes);
  }
  void timestamp(uint32_t slot) override { own_->timestamp(slot); }
  Status finish() override { return own_->finish(); }
  Status timestamps(std::vector<uint64_t>* ns) const override { return own_->timestamps(ns); }
  gpu::CommandList& inner() { return *own_; }

 private:
  std::unique_ptr<gpu::CommandList> own_;
};

class PoisonedDevice final : public gpu::Device {
 public:
  explicit PoisonedDevice(std::unique_ptr<gpu::Device> own) : own_(std::move(own)) {}
  const gpu::DeviceCaps& caps() const override { return own_->caps(); }
  Result<std::unique_ptr<gpu::DeviceBuffer>> buffer(size_t bytes, gpu::BufferUse use) override {
    PINNACE_ASSIGN(auto made, own_->buffer(bytes + kGuard, use));
    std::vector<std::byte> content(bytes + kGuard, kPoison);
    if (made->host()) {
      std::memcpy(made->host(), content.data(), content.size());
    } else {
      PINNACE_TRY(carry(*own_, *made, content.size(), content, true));
    }
    // What the host reads, it may write too: words that say what is wrong.
    auto poisoned = std::make_unique<PoisonedBuffer>(*own_, std::move(made), bytes);
    if (use != gpu::BufferUse::kDevice) poisoned->bind(0, bytes, true);
    return std::unique_ptr<gpu::DeviceBuffer>(std::move(poisoned));
  }
  Result<std::unique_ptr<gpu::Kernel>> kernel(const gpu::KernelCode& code, std::span<const int32_t> spec) override {
    return own_->kernel(code, spec);
  }
  Result<std::unique_ptr<gpu::CommandList>> command_list(uint32_t timestamps) override {
    PINNACE_ASSIGN(auto made, own_->command_list(timestamps));
    return std::unique_ptr<gpu::CommandList>(new PoisonedList(std::move(made)));
  }
  Status submit(gpu::CommandList& list) override { return own_->submit(static_cast<PoisonedList&>(list).inner()); }
  Status wait(gpu::CommandList& list) override { return own_->wait(static_cast<PoisonedList&>(list).inner()); }
  std::vector<std::byte> cache_blob() const override { return own_->cache_blob(); }
  uint64_t validation_messages() const override { return own_->validation_messages(); }
  std::string validation_texts() const override { return own_->validation_texts(); }

 private:
  std::unique_ptr<gpu::Device> own_;
};

std::string vulkan_unavailable(uint32_t index) {
  return vulkan::unavailable(index);
}
Result<std::unique_ptr<gpu::Device>> open_poisoned(uint32_t index, const gpu::DeviceOptions& options) {
  PINNACE_ASSIGN(auto own, vulkan::open_device(index, options));
  return std::unique_ptr<gpu::Device>(new PoisonedDevice(std::move(own)));
}
constexpr gpu::Driver kPoisoned{"poisoned", false, &vulkan_unavailable, &open_poisoned};
const Backend& poisoned_backend() {
  static const Backend* const backend = gpu::make_backend(kPoisoned);
  return *backend;
}

class GpuPoison : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
    spoiled = 0;
  }
};

TEST_P(GpuPoison, CasesReadAndWriteOnlyWhatTheyAreGiven) {
  const char* all = std::getenv("PINNACE_TEST_ALL");
  const size_t share = all && *all == '1' ? 1 : 40;
  const GpuOptions with(str_cat("no_self_check,validation,", GetParam()));
  const auto clean = gpu::Context::open(vulkan::kDriver, 0);
  const auto context = gpu::Context::open(kPoisoned, 0);
  ASSERT_TRUE(clean.ok() && context.ok());
  int ran = 0;
  for (const CaseList& list : all_cases()) {
    for (size_t i = 0; i < list.cases.size(); ++i) {
      const uint64_t turn = (case_seed(list.op, i) + test_seed()) / 11;
      if (turn % share != 0) continue;
      auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
      ASSERT_TRUE(built.ok());
      if (built->expect.error) continue;
      const char* precision = turn / share % 2 == 0 ? "fp32" : "fp16";
      const auto made = [&](const Backend& backend) {
        return run_case_with(
            [&](const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
              return run_on(backend, {std::string(backend.name()), "", precision}, 1, node, in, out);
            },
            *built);
      };
      const auto want = made(vulkan_backend());
      if (!want.ok()) continue;
      const auto got = made(poisoned_backend());
      const std::string where = str_cat(list.op, " case ", i, ": ", list.cases[i].inputs, ", ", precision);
      ASSERT_TRUE(got.ok()) << where << ": " << got.status().message();
      ++ran;
      for (size_t k = 0; k < want->size(); ++k) {
        const auto bytes = static_cast<size_t>((*want)[k].type.bytes());
        EXPECT_EQ(bytes == 0 ? 0 : std::memcmp((*want)[k].bytes.data(), (*got)[k].bytes.data(), bytes), 0) << where;
      }
      EXPECT_EQ(spoiled, 0) << where;
      spoiled = 0;
    }
  }
  EXPECT_GT(ran, 0);
  EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
  printf("%-24s %d cases on poisoned memory\n", GetParam(), ran);
}

TEST_P(GpuPoison, AHundredRunsGiveTheSameBits) {
  const GpuOptions with(str_cat("no_self_check,validation,", GetParam()));
  const auto clean = gpu::Context::open(vulkan::kDriver, 0);
  const auto context = gpu::Context::open(kPoisoned, 0);
  ASSERT_TRUE(clean.ok() && context.ok());
  const auto graphs = family_graphs();
  const char* all = std::getenv("PINNACE_TEST_ALL");
  for (size_t g = 0; g < graphs.size(); ++g) {
    if (!(all && *all == '1') && (g + test_seed()) % 5 != 0) continue;
    for (const char* precision : {"fp32", "fp16"}) {
      const auto want = graph_answers(vulkan_backend(), graphs[g], precision, 1);
      ASSERT_TRUE(want.ok()) << graphs[g] << want.status().message();
      for (int made = 0; made < 4; ++made) {  // each with memory of its own
        const auto got = graph_answers(poisoned_backend(), graphs[g], precision, 25);
        ASSERT_TRUE(got.ok()) << graphs[g] << got.status().message();
        EXPECT_TRUE(*got == *want) << graphs[g] << precision;
      }
    }
  }
  EXPECT_EQ(spoiled, 0);
  EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
}

// The test of the test: a byte in a gap, and one beyond the end, are seen.
TEST_P(GpuPoison, AChangedByteIsSeen) {
  const GpuOptions with(str_cat("no_self_check,", GetParam()));
  const auto context = gpu::Context::open(kPoisoned, 0);
  ASSERT_TRUE(context.ok());
  gpu::Device& device = (*context)->device();
  std::vector<gpu::KernelKey> keys = {{gpu::KernelId::fill_int32, false, {}}};
  const auto kernels = (*context)->kernels(keys);
  ASSERT_TRUE(kernels.ok());
  const int32_t push[2] = {16, 7};
  for (const size_t last : {size_t{0}, size_t{512}, size_t{1024}}) {  // in what is bound, in a gap, in the guard
    spoiled = 0;
    {
      auto buffer = std::move(*device.buffer(1024, gpu::BufferUse::kDevice));
      auto scratch = std::move(*device.buffer(64, gpu::BufferUse::kUpload));
      std::memset(scratch->host(), 1, 64);
      auto list = std::move(*device.command_list(0));
      const gpu::Binding binding{buffer.get(), 0, 64};
      list->dispatch(*(*kernels)[0], {&binding, 1}, std::as_bytes(std::span(push)), {1, 1, 1});
      list->barrier();
      list->copy(*scratch, 0, *buffer, last, 64);
      ASSERT_TRUE(list->finish().ok());
      ASSERT_TRUE(device.submit(*list).ok());
      ASSERT_TRUE(device.wait(*list).ok());
    }
    EXPECT_EQ(spoiled, last == 0 ? 0 : 64) << last;
  }
  spoiled = 0;
}

INSTANTIATE_TEST_SUITE_P(Vulkan, GpuPoison, ::testing::Values("offset_alignment=16", "staging,offset_alignment=256"),
                         [](const auto& info) { return std::string(info.param[0] == 's' ? "Staging" : "Unified"); });

}  // namespace
}  // namespace pinnace::testing
