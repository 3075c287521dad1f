// The commit that this was built from.
#pragma once

namespace pinnace::report {

/// "4f2c…", with "+changes" behind it where the tree had uncommitted ones; "unknown" outside git. As long as the
/// process.
const char* built_from();

}  // namespace pinnace::report
