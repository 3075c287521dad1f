// How every call of pinnace reports failure: a code that says what the caller can conclude, and a sentence that names
// the place, the rule and the value. Functions that return one throw nothing; others pass on std::bad_alloc.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace pinnace {

/// What the caller can conclude. The numbers are stable: the C API uses them.
enum class Code : uint8_t {
  kOk = 0,
  kInvalidArgument = 1,  ///< the call breaks a stated rule; nothing was changed
  kUnsupported = 2,      ///< legal, but not in this build or on this device; the text names the rule
  kCorruptFile = 3,      ///< bytes break the format; offset() and rule() say where and which
  kOutOfMemory = 4,      ///< nothing was changed
  kDeviceLost = 5,       ///< the device is gone, rule() names its back end; make a new Session
  kCancelled = 6,        ///< ended early, without effect; of a run outputs are unspecified
  kConversion = 7,       ///< the source model cannot be imported as a whole; nodes() lists every reason
  kFile = 8,             ///< a file could not be opened, read or written; the text has the path and the system's reason
  kVerification = 9,  ///< the converted model does not match its source or itself; the text names the first difference
};

/// The name of a code as it is spelt in C++ without the k: "InvalidArgument".
const char* code_name(Code code);

/// One node that could not be imported, compiled or placed.
struct NodeProblem {
  std::string node;    ///< the node's name in the source model
  std::string op;      ///< its operator as the source spells it: "aten.foo.default", "ai.onnx.Foo", "resize"
  std::string source;  ///< "file.py:41" where the source says so, else empty
  std::string rule;    ///< the rule that refuses it, one phrase
  std::string value;   ///< the offending value, may be empty
};

/// Success, or a code and a sentence. Copying shares the text; a success holds no memory.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : failure_(std::make_shared<Failure>(Failure{code, std::move(message), -1, {}, {}})) {}

  /// kOutOfMemory without taking memory: what every public call answers where the standard library ran out of it.
  static Status no_memory() noexcept;

  bool ok() const { return failure_ == nullptr; }
  Code code() const { return failure_ ? failure_->code : Code::kOk; }
  /// The sentence; empty for success.
  const std::string& message() const;
  /// Byte offset of the damage (kCorruptFile), else -1.
  int64_t offset() const { return failure_ ? failure_->offset : -1; }
  /// Identifier of the broken rule ("F-12"), may be empty.
  const std::string& rule() const;
  /// Every node concerned (kConversion, kUnsupported), may be empty.
  const std::vector<NodeProblem>& nodes() const;

  Status& with_offset(int64_t offset);
  Status& with_rule(std::string rule);
  Status& with_nodes(std::vector<NodeProblem> nodes);
  /// The same failure with `prefix` put before its sentence; success stays success.
  Status with_prefix(const std::string& prefix) const;

 private:
  struct Failure {
    Code code;
    std::string message;
    int64_t offset = -1;
    std::string rule;
    std::vector<NodeProblem> nodes;
  };
  std::shared_ptr<Failure> failure_;  ///< owns nothing for no_memory(), whose text is one for all
};

/// A value, or the Status that says why there is none. Dereference only after testing.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit on purpose, so that `return value;` works
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT: as above

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  T& operator*() & {
    assert(ok());
    return *value_;
  }
  const T& operator*() const& {
    assert(ok());
    return *value_;
  }
  T&& operator*() && {
    assert(ok());
    return std::move(*value_);
  }
  T* operator->() {
    assert(ok());
    return &*value_;
  }
  const T* operator->() const {
    assert(ok());
    return &*value_;
  }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace pinnace
#pragma GCC visibility pop
