// One program on one target: answers, placement, times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "report/json.h"
#include "report/judge.h"
#include "report/kit.h"

namespace pinnace::report {

struct CloseSession {
  void operator()(pnc_session* session) const { pnc_session_close(session); }
};
using SessionPtr = std::unique_ptr<pnc_session, CloseSession>;

/// An array with memory of its own, aligned for any type.
struct Copy {
  pnc_tensor tensor{};
  std::unique_ptr<std::byte[]> bytes;
};
Copy copy_of(const pnc_tensor& tensor);

/// Of the nodes that compute something in a run: how many did where.
struct Places {
  int64_t there = 0, all = 0;                         ///< on the target's own back end
  std::vector<std::pair<std::string, int64_t>> each;  ///< by back end
  std::vector<std::string> why;                       ///< why nodes are not there, each reason once, at most four
};

enum class Outcome { kEqual, kDiffers, kRefused, kFailed };
const char* outcome_name(Outcome outcome);

/// What became of one program on one target.
struct Finding {
  Outcome outcome = Outcome::kEqual;
  std::string why;  ///< of what is not equal
  Places places;
  double relative = 0;  ///< the largest of all outputs and steps, where judged
  Difference worst;     ///< where an output differs
  std::string output;   ///< the name of that
  int64_t step = 0;
  double bound = 0;
  double run_seconds = 0;  ///< of check_outputs(): what its run took
};

/// A session for a program, or why there is none. kCancelled passes on.
Result<SessionPtr> make_session(const KitProgram& program, const std::string& target, int threads, Finding* finding);

/// Runs all steps on a new session and judges each output by the kit's answers.
Status check_answers(const KitProgram& program, const std::string& target, int threads, Finding* finding);

/// Runs the first step on a session, and judges its outputs by `wanted`, or gives them where that is empty.
Status check_outputs(pnc_session* session, const KitProgram& program, const std::vector<Copy>& inputs,
                     const std::string& target, std::vector<Copy>* wanted, Finding* finding);

struct Times {
  int64_t runs = 0, warm_up = 0;
  double median_ms = 0, p10_ms = 0, p90_ms = 0;
  double cpu_per_wall = 0;  ///< processor time of the process over time
  int64_t peak_bytes = 0;
  std::vector<std::pair<std::string, double>> reference_code;  ///< shares of a run of operators without a kernel
};

/// Times runs of a session that has run once, for about so many seconds, at least kLeastRuns and at most kMostRuns.
Status time_runs(pnc_session* session, const std::vector<Copy>& inputs, double seconds, Times* times);

constexpr int64_t kLeastRuns = 5, kMostRuns = 50;  // as many as `pinnace bench` takes unless told otherwise

}  // namespace pinnace::report
