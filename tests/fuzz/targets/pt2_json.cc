// The JSON entries of .pt2 archives, in an archive that is otherwise right: the program, and after a zero byte the
// weights' configuration. The four weights and constants that it may name have 64 bytes each.
#include "cpp/import/torch_fixture.h"
#include "fuzz/text_target.h"

namespace pinnace {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::InputFile file("model.pt2");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(text.find('\0'), size);
  const std::string config(text.substr(std::min(end + 1, size)));
  std::vector<torch_import::Entry> entries = {{"a/archive_format", "pt2"},
                                              {"a/models/model.json", std::string(text.substr(0, end))}};
  if (!config.empty()) {
    entries.push_back({"a/data/weights/model_weights_config.json", config});
    entries.push_back({"a/data/constants/model_constants_config.json", config});
    for (const char* name : {"a/data/weights/weight_0", "a/data/weights/weight_1", "a/data/weights/weight_2",
                             "a/data/weights/weight_3", "a/data/constants/tensor_0"}) {
      entries.push_back({name, std::string(64, '\1')});
    }
  }
  file.write(torch_import::zip_of(entries));
  const auto model = Model::load(file.path());
  fuzz::judge(model, {data, size});
  return 0;
}

}  // namespace pinnace
