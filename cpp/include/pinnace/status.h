// How every call of pinnace reports failure: a code that says what the caller can conclude, and a sentence that names
// the place, the rule and the value. Functions that return one throw nothing; others pass on std::bad_alloc.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
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
  std::string module;  ///< path of the submodule of a PyTorch model that it belongs to: "layers.3.conv1", may be empty
};

/// Success, or a code and a sentence. Copying shares the text; a success holds no memory.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(Code code, std::string message);
  Status(const Status& other) noexcept;
  Status(Status&& other) noexcept : failure_(std::exchange(other.failure_, nullptr)) {}
  Status& operator=(const Status& other) noexcept;
  Status& operator=(Status&& other) noexcept;
  ~Status() {
    if (failure_) release(failure_);
  }

  /// kOutOfMemory without taking memory: what every public call answers where the standard library ran out of it.
  static Status no_memory() noexcept;

  bool ok() const noexcept { return failure_ == nullptr; }
  Code code() const noexcept;
  /// The sentence; empty for success.
  const std::string& message() const;
  /// Byte offset of the damage (kCorruptFile), else -1.
  int64_t offset() const noexcept;
  /// Identifier of the broken rule ("F-12"), may be empty.
  const std::string& rule() const;
  /// Every node concerned (kConversion, kUnsupported), may be empty.
  const std::vector<NodeProblem>& nodes() const;

  Status& with_offset(int64_t offset) noexcept;
  Status& with_rule(std::string rule) noexcept;
  Status& with_nodes(std::vector<NodeProblem> nodes) noexcept;
  /// The same failure with `prefix` put before its sentence; success stays success.
  Status with_prefix(const std::string& prefix) const;

 private:
  template <class T>
  friend class Result;
  struct Failure;
  explicit Status(Failure* failure) noexcept : failure_(failure) {}
  static void release(Failure* failure) noexcept;
  Failure* failure_ = nullptr;  ///< counts the Status that share it
};

/// A value, or the Status that says why there is none. Dereference only after testing.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(const T& value) : value_(value) {}                                   // NOLINT: implicit on purpose, so that
  Result(T&& value) noexcept(kMoves) : value_(std::move(value)) {}            // NOLINT: `return value;` works
  Result(const Status& status) noexcept : status_(status) { assert(!ok()); }  // NOLINT: as above
  Result(Status&& status) noexcept : status_(std::move(status)) { assert(!ok()); }  // NOLINT: as above
  Result(const Result& other) : status_(other.status_) {
    if (ok()) new (&value_) T(other.value_);
  }
  Result(Result&& other) noexcept(kMoves) {
    if (other.ok()) {
      new (&value_) T(std::move(other.value_));
    } else {
      status_.failure_ = std::exchange(other.status_.failure_, taken());
    }
  }
  Result& operator=(Result other) noexcept {
    static_assert(kMoves, "there would be neither the old value nor the new one");
    std::destroy_at(this);
    return *new (this) Result(std::move(other));
  }
  ~Result() {
    if (ok()) {
      value_.~T();
    } else if (status_.failure_ != taken()) {
      status_.~Status();
    }
  }

  bool ok() const noexcept { return status_.ok(); }
  explicit operator bool() const noexcept { return ok(); }
  const Status& status() const& noexcept {
    assert(status_.failure_ != taken());
    return status_;
  }
  /// Takes the failure out: of a Result that has none, success. What a failure was taken from can only be assigned to
  /// and destroyed.
  Status status() && noexcept {
    if (ok()) return {};
    return Status(std::exchange(status_.failure_, taken()));
  }
  T& operator*() & noexcept {
    assert(ok());
    return value_;
  }
  const T& operator*() const& noexcept {
    assert(ok());
    return value_;
  }
  T&& operator*() && noexcept {
    assert(ok());
    return std::move(value_);
  }
  T* operator->() noexcept {
    assert(ok());
    return &value_;
  }
  const T* operator->() const noexcept {
    assert(ok());
    return &value_;
  }

 private:
  static constexpr bool kMoves = std::is_nothrow_move_constructible_v<T>;
  /// Stands where a failure was taken out: there is no value either. The address of nothing, and never followed.
  static Status::Failure* taken() noexcept {
    return reinterpret_cast<Status::Failure*>(uintptr_t{1});  // NOLINT(performance-no-int-to-ptr): only compared
  }

  union {
    Status status_{};  ///< success where there is a value
  };
  union {
    T value_;
  };
};

}  // namespace pinnace
#pragma GCC visibility pop
