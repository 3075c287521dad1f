// Status: accessors and the names of codes.
#include "base/status.h"

#include <atomic>

#include "base/process.h"
#include "base/utf8.h"

namespace pinnace {
/// What a failure is. Those who share it are counted; the one of no_memory() is everybody's and stays.
struct Status::Failure {
  Code code;
  std::string message;
  int64_t offset = -1;
  std::string rule;
  std::vector<NodeProblem> nodes;
  std::atomic<int> owners = 1;
  bool shared_by_all = false;

  Failure(Code c, std::string text) : code(c), message(std::move(text)) {}
  /// A copy of its own; the caller holds `texts`.
  Failure(const Failure& other, std::string text)
      : code(other.code), message(std::move(text)), offset(other.offset), rule(other.rule), nodes(other.nodes) {}
};

namespace {
/// Made when the library is loaded, while there is memory, and never destroyed.
template <class Failure>
Failure* const kNoMemory = [] {
  auto* failure = new Failure(Code::kOutOfMemory, "the system gives no more memory");
  failure->shared_by_all = true;
  return failure;
}();
/// Sentences hold names that a file brought, and go to terminals and logs: what these would act on is escaped when a
/// sentence is first read. Copies of a Status share their sentence, on any thread; the first reader changes it, before
/// anybody has a reference to it.
constinit ProcessMutex texts;
void show(std::string& message) {
  if (!is_printable_message(message)) message = printable_message(message);
}
}  // namespace

Status::Status(Code code, std::string message) : failure_(new Failure(code, std::move(message))) {}

Status::Status(const Status& other) noexcept : failure_(other.failure_) {
  if (failure_ && !failure_->shared_by_all) failure_->owners.fetch_add(1, std::memory_order_relaxed);
}

Status& Status::operator=(const Status& other) noexcept {
  return *this = Status(other);
}

Status& Status::operator=(Status&& other) noexcept {
  Failure* const taken = std::exchange(other.failure_, nullptr);
  const Status old(std::exchange(failure_, taken));  // released last: it may own what `other` lies in
  return *this;
}

void Status::release(Failure* failure) noexcept {
  if (!failure->shared_by_all && failure->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete failure;
}

Status Status::no_memory() noexcept {
  return Status(kNoMemory<Failure>);
}

Code Status::code() const noexcept {
  return failure_ ? failure_->code : Code::kOk;
}

int64_t Status::offset() const noexcept {
  return failure_ ? failure_->offset : -1;
}

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "Ok";
    case Code::kInvalidArgument:
      return "InvalidArgument";
    case Code::kUnsupported:
      return "Unsupported";
    case Code::kCorruptFile:
      return "CorruptFile";
    case Code::kOutOfMemory:
      return "OutOfMemory";
    case Code::kDeviceLost:
      return "DeviceLost";
    case Code::kCancelled:
      return "Cancelled";
    case Code::kConversion:
      return "Conversion";
    case Code::kFile:
      return "File";
    case Code::kVerification:
      return "Verification";
  }
  return "unknown";
}

const std::string& Status::message() const {
  static const std::string* const empty = new std::string;  // never destroyed: no exit-time destructors
  if (!failure_) return *empty;
  const ProcessLockAnew lock(texts);
  show(failure_->message);
  return failure_->message;
}

const std::string& Status::rule() const {
  static const std::string* const empty = new std::string;
  return failure_ ? failure_->rule : *empty;
}

const std::vector<NodeProblem>& Status::nodes() const {
  static const std::vector<NodeProblem>* const empty = new std::vector<NodeProblem>;
  return failure_ ? failure_->nodes : *empty;
}

Status& Status::with_offset(int64_t offset) noexcept {
  if (failure_ && !failure_->shared_by_all) failure_->offset = offset;
  return *this;
}

Status& Status::with_rule(std::string rule) noexcept {
  if (failure_ && !failure_->shared_by_all) failure_->rule = std::move(rule);
  return *this;
}

Status& Status::with_nodes(std::vector<NodeProblem> nodes) noexcept {
  if (failure_ && !failure_->shared_by_all) failure_->nodes = std::move(nodes);
  return *this;
}

Status Status::with_prefix(const std::string& prefix) const {
  if (!failure_ || failure_->shared_by_all) return *this;
  const ProcessLockAnew lock(texts);
  return Status(new Failure(*failure_, prefix + failure_->message));
}

Status failure_of(Code code, const PartKind* kinds, const Part* parts) {
  return Status(code, join_parts(kinds, parts));
}

}  // namespace pinnace
