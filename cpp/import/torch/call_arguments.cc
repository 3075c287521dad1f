// Call: reading arguments by name, with the forms that each may have.
#include <algorithm>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

const char* kind_name(ArgumentKind kind) {
  constexpr const char* kNames[] = {
      "None",     "a tensor",         "tensors",       "an int",   "a symbolic int",  "ints",
      "a float",  "a symbolic float", "floats",        "a bool",   "a symbolic bool", "bools",
      "a string", "strings",          "a dtype",       "a layout", "a memory format", "a device",
      "a graph",  "a complex number", "something else"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace

void Call::fail(std::string rule, std::string value) {
  if (failed_) return;
  failed_ = true;
  rule_ = std::move(rule);
  value_ = std::move(value);
}

void Call::check_all_used() {
  for (size_t i = 0; i < used_.size(); ++i) {
    const NamedArgument& named = node_.inputs[i];
    if (used_[i] || named.value.kind == ArgumentKind::kNone) continue;
    // Where a tensor lies and how it is strided has no meaning here.
    if (named.name == "device" || named.name == "layout" || named.name == "memory_format" ||
        named.name == "pin_memory" || named.name == "non_blocking" || named.name == "copy") {
      continue;
    }
    return fail(str_cat("argument ", named.name, " is not supported"), kind_name(named.value.kind));
  }
}

const Argument* Call::argument(std::string_view name) {
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (node_.inputs[i].name != name) continue;
    used_[i] = true;
    const Argument& a = node_.inputs[i].value;
    return a.kind == ArgumentKind::kNone ? nullptr : &a;
  }
  return nullptr;
}

const Argument* Call::positional(size_t i) {
  if (i >= node_.inputs.size()) return nullptr;
  used_[i] = true;
  return &node_.inputs[i].value;
}

bool Call::given(std::string_view name) {
  return argument(name) != nullptr;
}

void Call::ignore(std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) argument(name);
}

void Call::refuse_true(std::string_view name, std::string rule) {
  if (boolean(name, false)) fail(std::move(rule), str_cat(name, "=True"));
}

int Call::handle_of(const std::string& name) {
  const auto at = scope_.tensors.find(name);
  if (at == scope_.tensors.end()) return failed<int>("a tensor is used before it is made", name, -1);
  return at->second;
}

ValueId Call::read_tensor(const Argument& a) {
  if (!ok()) return kNoValue;
  const int index = handle_of(a.text);
  if (index < 0) return kNoValue;
  auto value = builder_.read(index);
  if (!value) {
    fail(value.status());
    return kNoValue;
  }
  if (builder_.handle(index).complex) mark_pair(*value);
  return *value;
}

ValueId Call::optional_tensor(std::string_view name) {
  const Argument* a = argument(name);
  if (!a) return kNoValue;
  if (a->kind != ArgumentKind::kTensor)
    return failed(str_cat("argument ", name, " must be a tensor"), kind_name(a->kind), kNoValue);
  return read_tensor(*a);
}

ValueId Call::tensor(std::string_view name) {
  if (ok() && !given(name)) return failed(str_cat("argument ", name, " is missing"), "", kNoValue);
  return optional_tensor(name);
}

std::vector<ValueId> Call::tensors(std::string_view name) {
  std::vector<ValueId> ids;
  const Argument* a = argument(name);
  if (!a) return ids;
  if (a->kind != ArgumentKind::kTensors &&
      !((a->kind == ArgumentKind::kInts || a->kind == ArgumentKind::kFloats) && a->items.empty())) {
    fail(str_cat("argument ", name, " must be tensors"), kind_name(a->kind));
    return ids;
  }
  for (const Argument& item : a->items) ids.push_back(item.kind == ArgumentKind::kNone ? kNoValue : read_tensor(item));
  return ids;
}

Scalar Call::scalar_of(const Argument& a) {
  switch (a.kind) {
    case ArgumentKind::kInt:
      return Scalar::of_int(a.integer);
    case ArgumentKind::kBool:
      return Scalar::of_bool(a.integer != 0);
    case ArgumentKind::kFloat:
      return Scalar::of_float(a.real);
    case ArgumentKind::kSymInt:
    case ArgumentKind::kSymFloat:
    case ArgumentKind::kSymBool: {
      const auto at = scope_.scalars.find(a.text);
      if (at == scope_.scalars.end()) return failed("a symbolic number is used before it is made", a.text, Scalar{});
      return at->second;
    }
    default:
      return failed("a number is expected", kind_name(a.kind), Scalar{});
  }
}

Scalar Call::scalar(std::string_view name) {
  const Argument* a = argument(name);
  if (!a) return failed(str_cat("argument ", name, " is missing"), "", Scalar{});
  return scalar_of(*a);
}

Scalar Call::scalar(std::string_view name, Scalar otherwise) {
  return given(name) ? scalar(name) : otherwise;
}

Operand Call::operand(std::string_view name) {
  const Argument* a = argument(name);
  if (!a) return failed(str_cat("argument ", name, " is missing"), "", Operand{});
  if (a->kind == ArgumentKind::kTensor) return {read_tensor(*a), {}};
  return {kNoValue, scalar_of(*a)};
}

int64_t Call::integer(std::string_view name) {
  const Scalar s = scalar(name);
  if (ok() && (!s.known || s.kind == Scalar::Kind::kFloat)) {
    return failed<int64_t>(str_cat("argument ", name, " must be an integer known at export"), "", 0);
  }
  return s.integer;
}

int64_t Call::integer(std::string_view name, int64_t otherwise) {
  return given(name) ? integer(name) : otherwise;
}

double Call::number(std::string_view name, double otherwise) {
  if (!given(name)) return otherwise;
  const Scalar s = scalar(name);
  if (ok() && !s.known) return failed(str_cat("argument ", name, " must be known at export"), "", 0.0);
  return s.number();
}

bool Call::boolean(std::string_view name, bool otherwise) {
  return integer(name, otherwise) != 0;
}

std::string Call::string(std::string_view name, std::string otherwise) {
  const Argument* a = argument(name);
  if (!a) return otherwise;
  if (a->kind != ArgumentKind::kString)
    return failed(str_cat("argument ", name, " must be a string"), kind_name(a->kind), otherwise);
  return a->text;
}

std::vector<Scalar> Call::sizes(std::string_view name) {
  std::vector<Scalar> list;
  const Argument* a = argument(name);
  if (!a) return list;
  if (a->kind == ArgumentKind::kInt || a->kind == ArgumentKind::kSymInt) return {scalar_of(*a)};
  if (a->kind != ArgumentKind::kInts && !a->items.empty()) {
    fail(str_cat("argument ", name, " must be a list of integers"), kind_name(a->kind));
    return list;
  }
  for (const Argument& item : a->items) list.push_back(scalar_of(item));
  return list;
}

std::vector<int64_t> Call::ints(std::string_view name) {
  std::vector<int64_t> list;
  for (const Scalar& s : sizes(name)) {
    if (!s.known) fail(str_cat("argument ", name, " must be known at export"));
    list.push_back(s.integer);
  }
  return list;
}

std::vector<int64_t> Call::ints(std::string_view name, size_t count, int64_t otherwise) {
  std::vector<int64_t> list = ints(name);
  if (list.empty()) list.assign(count, otherwise);
  if (list.size() == 1) list.assign(count, list[0]);
  if (list.size() != count) {
    fail(str_cat("argument ", name, " must have ", count, " numbers"), list_text<int64_t>(list));
    list.assign(count, otherwise);
  }
  return list;
}

std::vector<double> Call::floats(std::string_view name) {
  std::vector<double> list;
  const Argument* a = argument(name);
  if (!a) return list;
  for (const Argument& item : a->items) {
    const Scalar s = scalar_of(item);
    if (!s.known) fail(str_cat("argument ", name, " must be known at export"));
    list.push_back(s.number());
  }
  return list;
}

std::optional<DType> Call::dtype(std::string_view name) {
  const Argument* a = argument(name);
  if (!a) return std::nullopt;
  // In lists of plain arguments (prims) the type may come as its number.
  if (a->kind != ArgumentKind::kScalarType && a->kind != ArgumentKind::kInt) {
    fail(str_cat("argument ", name, " must be a dtype"), kind_name(a->kind));
    return std::nullopt;
  }
  const auto dtype = dtype_of_scalar_type(a->integer);
  if (!dtype) fail("this element type is not supported", scalar_type_name(a->integer));
  return dtype;
}

int64_t Call::axis(std::string_view name, int rank) {
  const int64_t at = integer(name);
  const int64_t limit = std::max(rank, 1);
  if (at < -limit || at >= limit) return failed<int64_t>(str_cat(name, " is outside rank ", rank), str_cat(at), 0);
  return at < 0 ? at + limit : at;
}

int64_t Call::axis(std::string_view name, int rank, int64_t otherwise) {
  if (given(name)) return axis(name, rank);
  return otherwise < 0 ? otherwise + std::max(rank, 1) : otherwise;
}

std::vector<int64_t> Call::axes(std::string_view name, int rank, bool empty_is_all) {
  std::vector<int64_t> list = ints(name);
  const int64_t limit = std::max(rank, 1);
  for (int64_t& at : list) {
    if (at < -limit || at >= limit) {
      fail(str_cat(name, " is outside rank ", rank), str_cat(at));
      return {};
    }
    if (at < 0) at += limit;
  }
  std::sort(list.begin(), list.end());
  if (std::adjacent_find(list.begin(), list.end()) != list.end())
    fail(str_cat(name, " names an axis twice"), list_text<int64_t>(list));
  if (list.empty() && empty_is_all) {
    for (int i = 0; i < rank; ++i) list.push_back(i);
  }
  if (rank == 0) list.clear();
  return list;
}

}  // namespace pinnace::torch_import
