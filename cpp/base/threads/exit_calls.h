// What threads of ours need at the end of the process: to stop before the libraries that they are in are torn down.
#pragma once

namespace pinnace {

/// `f` is called when the process ends by exit() or by the return of main, before libraries that are open by now end
/// theirs. If both this and exit() are called on the main thread, it is also called before the end of libraries that
/// other threads are opening then: their constructors run, and their destructors could. It may be called several times,
/// and is remembered once. At most four functions of the library have such a call.
void call_at_exit(void (*f)());

/// The same again for all of them, for libraries that were opened since: what is asked for last is called first. Only
/// on threads that have to stop before those libraries end, for the system keeps every call that it is asked for.
void renew_exit_calls();

/// While one lives, its thread is such a one.
class StopsBeforeLibraries {
 public:
  StopsBeforeLibraries();
  ~StopsBeforeLibraries();
  StopsBeforeLibraries(const StopsBeforeLibraries&) = delete;
  StopsBeforeLibraries& operator=(const StopsBeforeLibraries&) = delete;
};

}  // namespace pinnace
