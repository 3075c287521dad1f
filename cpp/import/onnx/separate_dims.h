// import_onnx for files that give one name to what has different sizes.
#pragma once

#include "import/import.h"

namespace pinnace {

/// import_onnx(), with names of open dimensions whose every occurrence is a dimension of its own, as if it had none; an
/// empty one means all names. A name that no dimension has is passed over.
Result<Imported> import_onnx_separated(const std::string& path, const ImportOptions& options,
                                       std::span<const std::string> separate_dims);

}  // namespace pinnace
