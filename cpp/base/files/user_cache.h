// The user's cache folder: where what took time to find out or to make lies for the next process.
#pragma once

#include <string>

#include "base/files/private_folder.h"

namespace pinnace {

/// PINNACE_CACHE; where it is not set, `pinnace` in $XDG_CACHE_HOME or else in ~/.cache. Empty if PINNACE_CACHE is, and
/// where no variable names an absolute path: then nothing is kept.
std::string user_cache_folder();

/// Opens that folder. `make`: it and the folder that it lies in are made (mode 0700) where they are missing; else
/// nothing is. kFile: there is none, it is missing, or it is not the user's alone (PrivateFolder::open).
Result<PrivateFolder> open_user_cache(bool make);

/// What tells one build of this library from the next, for keys of what is kept: version, size and time of its file.
std::string library_build();

}  // namespace pinnace
