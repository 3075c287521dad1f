// The environment: the only way in which pinnace reads variables.
#pragma once

namespace pinnace {

/// The value of a variable, null if it is not set. In a process that has rights which its caller lacks (set-user-id,
/// set-group-id, file capabilities) no variable is set: there the environment is the caller's, and variables name
/// libraries and folders, and switch checks off.
const char* environment(const char* name);

/// True in such a process.
bool has_foreign_environment();
/// For tests: as if the process were one, or what it is again.
void pretend_foreign_environment(bool pretend);

}  // namespace pinnace
