// A walk over the nest; keys of dicts and fields of classes stand in the context that torch serialises beside each
// container's type. Names of hostile files are bounded by length and in sum, depth by simdjson.
#include "import/torch/exported/call_names.h"

#include <simdjson.h>

#include "base/text.h"
#include "base/utf8.h"

namespace pinnace::torch_import {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr size_t kFreeBytes = 1 << 16;  // of all names together, beside as many as the text has

struct Container {
  std::string_view type;  ///< "builtins.dict"; empty for a leaf
  std::string_view context;
  array children;
};

class Walk {
 public:
  explicit Walk(size_t text_bytes) : left_(text_bytes + kFreeBytes) {}

  bool ok = true;
  std::vector<std::string> names;

  static bool read(element e, Container& to) {
    object spec;
    if (e.get_object().get(spec)) return false;
    const auto type = spec["type"];
    if (type.is_null()) return true;
    const auto context = spec["context"];
    return !type.get_string().get(to.type) && !spec["children_spec"].get_array().get(to.children) &&
           (context.is_null() || !context.get_string().get(to.context));
  }

  /// Keys or fields by which the children of a container are reached; empty where these are its items by number.
  std::vector<std::string> keys(const Container& container) {
    if (container.type == "builtins.tuple" || container.type == "builtins.list") return {};
    array list;
    if (parser_.parse(container.context.data(), container.context.size()).get_array().get(list)) return {};
    std::vector<std::string> found = texts(list, container.children.size());
    // Contexts that have a list of keys as a part: of a defaultdict, and of a class that leaves out fields.
    for (element part : list) {
      array inner;
      if (!found.empty()) break;
      if (!part.get_array().get(inner)) found = texts(inner, container.children.size());
    }
    return found;
  }

  /// `path` of the container or leaf: empty where nothing names it. `named`: a key or field is among its parts.
  void go(element e, const std::string& path, bool named, bool outermost) {
    Container container;
    if (!read(e, container)) ok = false;
    if (!ok) return;
    if (container.type.empty()) {
      const bool fits = named && path.size() <= kMaxCallName && is_utf8(path);
      if (fits && path.size() > left_) ok = false;
      if (!ok) return;
      names.push_back(fits ? path : std::string());
      left_ -= names.back().size();
      return;
    }
    const std::vector<std::string> parts = keys(container);
    size_t i = 0;
    for (element child : container.children) {
      const std::string part = parts.empty() ? str_cat(i) : parts[i];
      ++i;
      std::string inner = outermost ? part : str_cat(path, ".", part);
      if (inner.size() > kMaxCallName) inner.resize(kMaxCallName + 1);  // too long to be given, whatever follows
      go(child, inner, named || !parts.empty(), false);
      if (!ok) return;
    }
  }

 private:
  static std::vector<std::string> texts(const array& list, size_t wanted) {
    std::vector<std::string> found;
    if (wanted == 0 || list.size() != wanted) return found;
    for (element item : list) {
      std::string_view text;
      int64_t number;
      if (!item.get_string().get(text) && !text.empty()) {
        found.emplace_back(text.substr(0, kMaxCallName + 1));
      } else if (!item.get_int64().get(number)) {
        found.push_back(str_cat(number));
      } else {
        return {};
      }
    }
    return found;
  }

  simdjson::dom::parser parser_;
  size_t left_;
};

/// The outermost container of "[1, {...}]".
bool parse(simdjson::dom::parser& parser, const std::string& text, element& root) {
  array top;
  return !parser.parse(text).get_array().get(top) && top.size() == 2 && !top.at(1).get(root);
}

}  // namespace

std::vector<std::string> input_names(const std::string& in_spec, const std::vector<std::string>& argument_names) {
  simdjson::dom::parser parser;
  element root;
  Container call, args, kwargs;
  element args_part, kwargs_part;
  if (!parse(parser, in_spec, root) || !Walk::read(root, call) || call.type.empty() || call.children.size() != 2 ||
      call.children.at(0).get(args_part) || call.children.at(1).get(kwargs_part) || !Walk::read(args_part, args) ||
      !Walk::read(kwargs_part, kwargs) || args.type.empty() || kwargs.type.empty()) {
    return {};
  }
  Walk walk(in_spec.size());
  const std::vector<std::string> keywords = walk.keys(kwargs);
  if (keywords.size() != kwargs.children.size() || argument_names.size() < args.children.size()) return {};
  size_t i = 0;
  for (element child : args.children) walk.go(child, argument_names[i++], true, false);
  i = 0;
  for (element child : kwargs.children) walk.go(child, keywords[i++], true, false);
  return walk.ok ? std::move(walk.names) : std::vector<std::string>();
}

std::vector<std::string> output_names(const std::string& out_spec) {
  simdjson::dom::parser parser;
  element root;
  if (!parse(parser, out_spec, root)) return {};
  Walk walk(out_spec.size());
  walk.go(root, "", false, true);
  return walk.ok ? std::move(walk.names) : std::vector<std::string>();
}

}  // namespace pinnace::torch_import
