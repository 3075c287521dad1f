// Packing and uploading, in buffers of at most what the device takes at once.
#include "backends/gpu/weight_store.h"

#include <cstring>

#include "base/half.h"
#include "base/log.h"

namespace pinnace::gpu {
namespace {

constexpr size_t kStep = 256;  // the largest alignment that a device may ask for
size_t stepped(size_t bytes) {
  return (bytes + kStep - 1) / kStep * kStep;
}

Status write(const WeightRequest& request, std::byte* to) {
  if (!request.f16) return request.fill({reinterpret_cast<float*>(to), request.count});
  PINNACE_ASSIGN(auto wide, Scratch<float>::allocate(static_cast<int64_t>(request.count), "weights"));
  PINNACE_TRY(request.fill(wide.span()));
  auto* words = reinterpret_cast<uint16_t*>(to);
  for (size_t i = 0; i < request.count; ++i) words[i] = float_to_half(wide.data()[i]);
  return {};
}

/// Makes and uploads the requests `missing` and tells where each lies.
Status upload(Context& context, std::span<const WeightRequest> requests, std::span<const size_t> missing,
              std::vector<std::unique_ptr<DeviceBuffer>>& buffers,
              const std::function<void(const WeightRequest&, const Binding&)>& placed) {
  Device& device = context.device();
  const size_t most = std::min<uint64_t>(context.caps().max_buffer_bytes, uint64_t{256} << 20);
  for (size_t begin = 0; begin < missing.size();) {
    size_t total = 0, end = begin;
    while (end < missing.size() && (end == begin || total + stepped(requests[missing[end]].bytes()) <= most)) {
      total += stepped(requests[missing[end++]].bytes());
    }
    PINNACE_ASSIGN(auto buffer, device.buffer(total, BufferUse::kDevice));
    std::unique_ptr<DeviceBuffer> staging;
    if (!buffer->host()) {
      PINNACE_ASSIGN(staging, device.buffer(total, BufferUse::kUpload));
    }
    std::byte* const host = staging ? staging->host() : buffer->host();
    std::vector<size_t> offsets;
    size_t at = 0;
    for (size_t m = begin; m < end; ++m) {
      offsets.push_back(at);
      at += stepped(requests[missing[m]].bytes());
    }
    std::vector<Status> done(end - begin);
    ThreadPool::shared().run(static_cast<int64_t>(end - begin), available_processors(), [&](int64_t k) {
      const auto i = static_cast<size_t>(k);
      const WeightRequest& request = requests[missing[begin + i]];
      std::memset(host + offsets[i], 0, request.bytes());
      done[i] = write(request, host + offsets[i]);
    });
    for (const Status& status : done) PINNACE_TRY(status);
    if (staging) {
      PINNACE_ASSIGN(auto list, device.command_list(0));
      list->copy(*staging, 0, *buffer, 0, total);
      PINNACE_TRY(list->finish());
      PINNACE_TRY(device.submit(*list));
      PINNACE_TRY(device.wait(*list));
    }
    for (size_t m = begin; m < end; ++m) {
      const WeightRequest& request = requests[missing[m]];
      placed(request, {buffer.get(), offsets[m - begin], request.bytes()});
    }
    buffers.push_back(std::move(buffer));
    begin = end;
  }
  return {};
}

}  // namespace

WeightStore::OnDevice& WeightStore::on(const std::shared_ptr<Context>& context) {
  if (!current_ || current_->context != context) current_ = std::make_shared<OnDevice>(OnDevice{context, {}, {}, {}});
  return *current_;
}

Result<WeightStore::Placed> WeightStore::place(const std::shared_ptr<Context>& context,
                                               std::span<const WeightRequest> requests) {
  const WorkLock lock(mutex_, kWork);
  PINNACE_TRY(lock.status());
  const LogTime time;
  OnDevice& all = on(context);
  std::erase_if(all.tables, [](const auto& entry) { return entry.second.group.expired(); });
  Placed placed{{}, current_, {}};
  std::vector<size_t> constants, tables;
  for (size_t i = 0; i < requests.size(); ++i) {
    const WeightRequest& request = requests[i];
    if (request.bytes() > context->caps().max_buffer_bytes) {
      return out_of_memory("a constant of ", request.bytes(), " bytes, a buffer of the device has ",
                           context->caps().max_buffer_bytes);
    }
    if (!request.of_sizes) {
      if (!all.places.contains(request.key)) constants.push_back(i);
      continue;
    }
    const auto found = all.tables.find(request.key);
    auto group = found == all.tables.end() ? nullptr : found->second.group.lock();
    if (group) {
      placed.tables.insert(std::move(group));
    } else {
      tables.push_back(i);
    }
  }
  PINNACE_TRY(upload(*context, requests, constants, all.buffers,
                     [&](const WeightRequest& request, const Binding& at) { all.places[request.key] = at; }));
  if (!tables.empty()) {
    const auto group = std::make_shared<Tables>(Tables{context, {}});
    placed.tables.insert(group);
    PINNACE_TRY(
        upload(*context, requests, tables, group->buffers,
               [&](const WeightRequest& request, const Binding& at) { all.tables[request.key] = {group, at}; }));
  }
  if (!constants.empty() || !tables.empty()) {
    log_several(LogLevel::kInfo, [&] {
      size_t bytes = 0;
      for (size_t i : constants) bytes += requests[i].bytes();
      for (size_t i : tables) bytes += requests[i].bytes();
      PINNACE_LOG_INFO("weights for ", context->caps().identity, ": ", constants.size() + tables.size(),
                       " packed and uploaded, ", bytes, " bytes, in ", time.text());
    });
  }
  for (const WeightRequest& request : requests) {
    placed.bindings.push_back(request.of_sizes ? all.tables[request.key].place : all.places[request.key]);
  }
  return placed;
}

Result<WeightStore::Held> WeightStore::held() {
  const WorkLock lock(mutex_, kWork);
  PINNACE_TRY(lock.status());
  Held all;
  if (!current_) return all;
  all.constants = current_->places.size();
  for (const auto& [key, place] : current_->places) all.constant_bytes += place.bytes;
  for (const auto& [key, table] : current_->tables) {
    if (table.group.expired()) continue;
    ++all.tables;
    all.table_bytes += table.place.bytes;
  }
  return all;
}

}  // namespace pinnace::gpu
