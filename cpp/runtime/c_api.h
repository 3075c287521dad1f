// What the files of the C API share: its objects, how a function reports, and how lists are made.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <pinnace/pinnace.h>

#include "base/exception_boundary.h"
#include "base/status.h"

struct pnc_program {
  pinnace::Program program;
};

namespace pinnace::c_api {

/// Keeps a failure for pnc_error() and gives the number of its code.
pnc_status report(const Status& status);

/// What f(context) gives, reported; the one place of the C functions where exceptions of the standard library end.
pnc_status report_call(Status (*f)(void* context), void* context);

/// f()'s status, reported.
template <class F>
pnc_status guarded(F f) {
  return report_call([](void* context) { return (*static_cast<F*>(context))(); }, &f);
}

Status null_argument(const char* what);
/// The same, reported.
pnc_status report_null(const char* what);

Status check_index(int32_t index, size_t count);
/// PNC_UNSUPPORTED above PNC_MAX_RANK.
Status check_rank(const TensorType& type);
/// Dimensions of a type of at most PNC_MAX_RANK.
void fill_shape(const TensorType& from, int64_t* shape);
/// What is to be filled may be null, which is an error.
Status fill_spec(const std::string& name, const TensorType& type, pnc_spec* spec);
Status fill_type(const TensorType& from, pnc_type* type);

/// Lays *made out as a new program, or leaves it null.
Status give_program(Result<Program> program, pnc_program** made);

/// A copy of `text` for pnc_free.
Status give_text(const std::string& text, const char** given);

/// A list as the C API gives it: rows of first texts, then numbers of 64 bits, all in one block for pnc_free.
class Rows {
 public:
  explicit Rows(size_t texts, size_t numbers = 0) : texts_(texts), numbers_(numbers) {}
  /// The next text of a row. What follows a null character is left out.
  void text(const std::string& text);
  /// The next texts.
  void texts(std::initializer_list<const std::string*> texts);
  /// The next text, with a line for each of these.
  void lines(const std::vector<std::string>& texts);
  void number(int64_t number) { number_list_.push_back(number); }
  /// *rows and *count, which are null and 0 before.
  Status give(const void** rows, int32_t* count) const;

 private:
  size_t texts_, numbers_;
  std::string text_list_;  ///< each closed by a null character
  std::vector<int64_t> number_list_;
};

/// Fills a list with what `object`, which is not null, has.
using FillRows = Status (*)(const void* object, Rows& list);
pnc_status give_rows(const void* object, Rows list, const void** rows, int32_t* count, FillRows fill);

template <class Row>
pnc_status give_rows(const void* object, Rows list, const Row** rows, int32_t* count, FillRows fill) {
  static_assert(sizeof(Row) % sizeof(int64_t) == 0 && alignof(Row) <= alignof(int64_t));
  return give_rows(object, std::move(list), reinterpret_cast<const void**>(rows), count, fill);
}

}  // namespace pinnace::c_api
