// Archives as torch.export.save writes them, put together byte by byte, so that a test can break one rule of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pinnace::torch_import {

struct Entry {
  std::string name, bytes;
  uint16_t method = 0;
  uint32_t stated_size = UINT32_MAX;  ///< UINT32_MAX: the true one
  std::string own_name;               ///< in the header before its bytes; empty: `name`, as it should be
  int place_of = -1;                  ///< the directory says that it lies where entry number place_of does
};

inline uint32_t crc_of(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (unsigned char c : bytes) {
    crc ^= c;
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string zip_of(const std::vector<Entry>& entries) {
  std::string file, directory;
  std::vector<uint32_t> offsets;
  for (const Entry& e : entries) {
    offsets.push_back(static_cast<uint32_t>(file.size()));
    const uint32_t offset = e.place_of < 0 ? offsets.back() : offsets[static_cast<size_t>(e.place_of)];
    const std::string& own_name = e.own_name.empty() ? e.name : e.own_name;
    const auto size = static_cast<uint32_t>(e.bytes.size());
    const uint32_t stated = e.stated_size == UINT32_MAX ? size : e.stated_size;
    const auto fields = [&](std::string& to, const std::string& name) {
      put<uint16_t>(to, 0);  // flags
      put<uint16_t>(to, e.method);
      put<uint32_t>(to, 0x210000);  // 1980
      put<uint32_t>(to, crc_of(e.bytes));
      put<uint32_t>(to, stated);
      put<uint32_t>(to, stated);
      put<uint16_t>(to, static_cast<uint16_t>(name.size()));
      put<uint16_t>(to, 0);
    };
    put<uint32_t>(file, 0x04034b50);
    put<uint16_t>(file, 20);
    fields(file, own_name);
    file += own_name + e.bytes;
    put<uint32_t>(directory, 0x02014b50);
    put<uint16_t>(directory, 20);
    put<uint16_t>(directory, 20);
    fields(directory, e.name);
    put<uint16_t>(directory, 0);
    put<uint16_t>(directory, 0);
    put<uint16_t>(directory, 0);
    put<uint32_t>(directory, 0);
    put<uint32_t>(directory, offset);
    directory += e.name;
  }
  const auto start = static_cast<uint32_t>(file.size());
  file += directory;
  put<uint32_t>(file, 0x06054b50);
  put<uint32_t>(file, 0);
  put<uint16_t>(file, static_cast<uint16_t>(entries.size()));
  put<uint16_t>(file, static_cast<uint16_t>(entries.size()));
  put<uint32_t>(file, static_cast<uint32_t>(directory.size()));
  put<uint32_t>(file, start);
  put<uint16_t>(file, 0);
  return file;
}

inline constexpr const char* kTensor =
    R"({"dtype":7,"sizes":[{"as_int":2}],"strides":[{"as_int":1}],"storage_offset":{"as_int":0},"layout":7})";

inline std::string program_of(const std::string& nodes, const std::string& more_tensors = "",
                              const std::string& major = "8") {
  const std::string tensor = kTensor;
  return R"({"graph_module":{"graph":{"inputs":[{"as_tensor":{"name":"p_w"}},{"as_tensor":{"name":"x"}}],"outputs":[{"as_tensor":{"name":"y"}}],"nodes":[)" +
         nodes + R"(],"tensor_values":{"p_w":)" + tensor + R"(,"x":)" + tensor + R"(,"y":)" + tensor + more_tensors +
         R"(},"sym_int_values":{}},"signature":{"input_specs":[{"parameter":{"arg":{"name":"p_w"},"parameter_name":"w"}},{"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],"output_specs":[{"user_output":{"arg":{"as_tensor":{"name":"y"}}}}]},"module_call_graph":[]},"range_constraints":{},"schema_version":{"major":)" +
         major + R"(,"minor":20},"verifiers":["TRAINING"],"torch_version":"2.13.0"})";
}

inline const std::string kAdd =
    R"({"target":"torch.ops.aten.add.Tensor","name":"y","inputs":[{"name":"self","arg":{"as_tensor":{"name":"x"}},"kind":1},{"name":"other","arg":{"as_tensor":{"name":"p_w"}},"kind":1}],"outputs":[{"as_tensor":{"name":"y"}}],"metadata":{"stack_trace":"File \"/home/me/net.py\", line 7, in forward\n    y\nFile \"/x/site-packages/torch/nn/f.py\", line 9, in g\n"}})";

inline std::string weights_of(const std::string& meta) {
  return R"({"config":{"w":{"path_name":"weight_0","is_param":true,"use_pickle":false,"tensor_meta":)" + meta + "}}}";
}

inline std::vector<Entry> good_entries() {
  const float w[2] = {1, 2};
  return {{"a/archive_format", "pt2"},
          {"a/models/model.json", program_of(kAdd)},
          {"a/data/weights/model_weights_config.json", weights_of(kTensor)},
          {"a/data/weights/weight_0", std::string(reinterpret_cast<const char*>(w), sizeof w)}};
}

}  // namespace pinnace::torch_import
