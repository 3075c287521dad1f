// Where a node comes from in the user's code: torch.onnx leaves a Python traceback and module names with each node.
#include <charconv>

#include "base/utf8.h"
#include "import/onnx/importer.h"
#include "import/source_files.h"

namespace pinnace::onnx {
namespace {
int32_t number_at(std::string_view text) {
  int32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number < 0 ? 0 : number;
}

/// The innermost frame of a Python traceback: `File "net.py", line 41, in forward`.
bool from_traceback(std::string_view text, SourceLocation& to) {
  const size_t start = text.rfind("File \"");
  if (start == std::string_view::npos) return false;
  text.remove_prefix(start + 6);
  const size_t quote = text.find('"');
  if (quote == std::string_view::npos) return false;
  to.file = SourceFiles().stored_name(text.substr(0, quote));
  constexpr std::string_view kLine = "\", line ";
  if (text.substr(quote).starts_with(kLine)) to.line = number_at(text.substr(quote + kLine.size()));
  return true;
}

/// The first line of what older exporters write: `/home/user/net.py(41): forward`.
void from_call_stack(std::string_view text, SourceLocation& to) {
  const size_t mark = text.find(".py(");
  if (mark == std::string_view::npos || text.substr(0, mark).find('\n') != std::string_view::npos) return;
  to.file = SourceFiles().stored_name(text.substr(0, mark + 3));
  to.line = number_at(text.substr(mark + 4));
}

/// The module in "['', 'layers.3', 'layers.3.conv1', 'conv2d']", a Python list whose last entry is the node itself.
std::string module_in(std::string_view list) {
  std::string module, last;
  bool any = false;
  for (size_t at = 0; (at = list.find_first_of("'\"", at)) != std::string_view::npos;) {
    const size_t end = list.find(list[at], at + 1);
    if (end == std::string_view::npos) break;
    if (any) module = last;
    last = list.substr(at + 1, end - at - 1);
    any = true;
    at = end + 1;
  }
  return module;
}
}  // namespace

SourceLocation source_of(const proto::NodeProto& node) {
  SourceLocation source;
  for (const auto& entry : node.metadata_props()) {
    if (entry.key() == "pkg.torch.onnx.stack_trace") from_traceback(entry.value(), source);
    if (entry.key() == "pkg.torch.onnx.name_scopes") source.module = module_in(entry.value());
  }
  if (source.file.empty() && !from_traceback(node.doc_string(), source)) from_call_stack(node.doc_string(), source);
  // A comment in another encoding is no reason to refuse a model.
  if (!is_utf8(source.file)) source.file.clear(), source.line = 0;
  if (!is_utf8(source.module)) source.module.clear();
  return source;
}

}  // namespace pinnace::onnx
