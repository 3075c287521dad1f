// The commit that the extension was built from, as pinnace._core.built_from.
#pragma once

namespace pinnace::bindings {
/// The full hash, "+changes" behind it where the tree had uncommitted ones, or "unknown" outside git.
const char* built_from();
}  // namespace pinnace::bindings
