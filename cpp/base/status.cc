// Status: accessors and the names of codes.
#include "base/status.h"

#include "base/process.h"
#include "base/utf8.h"

namespace pinnace {
namespace {
/// Made when the library is loaded, while there is memory, and never destroyed.
template <class Failure>
Failure* const kNoMemory = new Failure{Code::kOutOfMemory, "the system gives no more memory", -1, {}, {}};
/// Sentences hold names that a file brought, and go to terminals and logs: what these would act on is escaped when a
/// sentence is first read. Copies of a Status share their sentence, on any thread; the first reader changes it, before
/// anybody has a reference to it.
constinit ProcessMutex texts;
void show(std::string& message) {
  if (!is_printable_message(message)) message = printable_message(message);
}
}  // namespace

Status Status::no_memory() noexcept {
  Status status;
  status.failure_ = std::shared_ptr<Failure>(std::shared_ptr<Failure>(), kNoMemory<Failure>);
  return status;
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

Status& Status::with_offset(int64_t offset) {
  if (failure_.use_count()) failure_->offset = offset;
  return *this;
}

Status& Status::with_rule(std::string rule) {
  if (failure_.use_count()) failure_->rule = std::move(rule);
  return *this;
}

Status& Status::with_nodes(std::vector<NodeProblem> nodes) {
  if (failure_.use_count()) failure_->nodes = std::move(nodes);
  return *this;
}

Status Status::with_prefix(const std::string& prefix) const {
  if (!failure_.use_count()) return *this;
  const ProcessLockAnew lock(texts);
  Status copy = *this;
  copy.failure_ = std::make_shared<Failure>(*failure_);
  copy.failure_->message = prefix + failure_->message;
  return copy;
}

}  // namespace pinnace
