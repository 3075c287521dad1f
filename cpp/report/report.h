/* The report of a device: known-answer tests and times of every target, as one page of JSON. docs/device_report.md says
 * what stands in it. pinnace-report, the Java package and the Python extension run this code, over the C API. */
#ifndef PINNACE_REPORT_REPORT_H
#define PINNACE_REPORT_REPORT_H

#include <pinnace/pinnace.h>

#ifdef __cplusplus
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace pinnace::report {

struct Options {
  std::vector<std::string> targets;  ///< those to test; empty: all of the build
  double seconds = 60;               ///< in which the whole ends; what is left out then is listed in the page
};

struct Page {
  std::string text;
  int64_t equal = 0, differs = 0, refused = 0, failed = 0;  ///< answers, those of timed programs included
  int64_t left_out = 0;
};

/// Runs a kit's tests on every target that is available, then times its programs.
///
/// kit  borrowed until return.
/// kInvalidArgument: a target that this build does not have, or a budget that is not above 0; kCorruptFile,
/// kUnsupported: see read_kit(); kCancelled: a CancelScope of this thread ended it. What fails in a test stands in the
/// page.
Result<Page> run_report(std::span<const std::byte> kit, const Options& options);

/// The bytes of a regular file. kFile: there is none, or it cannot be read.
Result<std::vector<std::byte>> read_kit_file(const std::string& path);

/// Whether at least one answer was judged, and none differs or failed. A budget that ends before any was judged shows
/// nothing.
inline bool passed(const Page& page) {
  return page.differs + page.failed == 0 && page.equal + page.refused > 0;
}

/// "12 equal, 0 differ, 3 refused, 0 failed, 2 left out"
std::string totals(const Page& page);

}  // namespace pinnace::report

extern "C" {
#endif

/* The same in C. kit NULL: the file `path`. Both given texts are of malloc: the page, or the sentence of a failure,
 * NULL where there is no memory for it. offset: as pnc_error_offset. */
pnc_status pinnace_report_run(const char* path, const void* kit, size_t bytes, const char* const* targets,
                              int32_t target_count, double seconds, char** text, int64_t* offset);

#ifdef __cplusplus
}
#endif
#endif /* PINNACE_REPORT_REPORT_H */
