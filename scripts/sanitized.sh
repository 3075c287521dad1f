#!/usr/bin/env bash
# The C++ tests and the Python extension under sanitizers: sanitized.sh PRESET [--budget SECONDS] [--only cpp|python]
# [FILTER]. PRESET is asan (address and undefined behaviour) or tsan (data races). The build is brought up to date first
# and takes none of the budget, which the C++ tests and the Python tests share evenly. FILTER is GoogleTest's, for C++.
#
# Status 0: tests of each kind ran, all passed, and no process printed a report. Reports of every process, children
# included, go to build/results/PRESET/reports and are printed at the end. What is suppressed, and why, stands in
# tests/sanitizers/PRESET.supp.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-}
[[ $preset == asan || $preset == tsan ]] || { echo "usage: $0 asan|tsan [--budget SECONDS] [--only cpp|python] [FILTER]" >&2; exit 2; }
shift
budget=240 only='' filter=''
while (($#)); do
  case $1 in
    --budget) budget=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    *) filter=$1; shift ;;
  esac
done

root=$PWD
build=build/$preset
results=$root/build/results/$preset
reports=$results/reports
python=$root/.venv/bin/python
suppressions=$root/tests/sanitizers/$preset.supp

# Only what runs threads, under the thread sanitizer: it slows kernels of one thread down by ten for nothing. Each of
# these must pass at least one test. rules_test.py holds that no file of tests that starts threads is left out; those of
# failures and of GPUs are not here: the sanitizer has the functions that are to fail, and the GPU drivers are hidden.
thread_tests=(
  'ThreadPool*' 'StepTeam*' 'ReferenceThreads*' 'Session*' 'Process*' 'PerProcess*' 'Thread.*'
  'Cancel.*' '*CancelInside*' '*LooksInside*' 'WorkMutex*' 'PackedConstants*' 'PackCaches*' 'CpuPayload*'
  'ChangingFile*' 'DeviceSearches*' 'MeasuredChoice*' 'MeasuredTimes*' 'Log.*' 'HostLog*'
  'Nnapi*Lifetimes*' 'NnapiDeadline*' 'NnapiBadStates*' 'NnapiCache*' 'NnapiTestBed*'
  '*Sixteen*' '*Threads*' '*AtOnce*'
)
cpp_filter=${filter:-'*'}
# Not where a forked child starts threads while threads of its parent ran: they get the addresses of those, which the
# sanitizer holds for alive, and it ends the child ("dup thread with used id").
left_out='DeviceSearches.AProcessEndsInTheMiddleOfOne'
[[ $preset == tsan && -z $filter ]] && cpp_filter=$(IFS=: && echo "${thread_tests[*]}:-$left_out")
python_tests=(sessions/{threads,forks,cancel,await,session_threads}_test.py package/logging_test.py)
[[ $preset == asan ]] && python_tests+=(hostile/argument_kinds_test.py)

targets=()
[[ $only != python ]] && targets+=(pinnace_tests)
[[ $only != cpp ]] && targets+=(_core)
if [[ ! -f $build/build.ninja || CMakePresets.json -nt $build/build.ninja ]]; then
  cmake --preset "$preset" -DPython_EXECUTABLE="$python" -DPython3_EXECUTABLE="$python" >/dev/null || exit 1
fi
nice cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}" || exit 1

rm -rf "$reports"
mkdir -p "$reports"
# A report does not end the process: all of them are wanted, and they fail the run by being there.
common=log_path=$reports/report:suppressions=$suppressions
if [[ $preset == tsan ]]; then
  # die_after_fork: children of tests that fork start threads of their own. history_size: stacks of older accesses.
  export TSAN_OPTIONS=$common:halt_on_error=0:exitcode=66:die_after_fork=0:history_size=4:second_deadlock_stack=1
else
  # No leaks: CPython keeps its modules at exit, and Mesa what it loaded.
  export ASAN_OPTIONS=log_path=$reports/report:suppressions=$suppressions:detect_leaks=0:detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1
  export UBSAN_OPTIONS=log_path=$reports/report:print_stacktrace=1:halt_on_error=1
fi
export PINNACE_TEST_BUDGET=$((budget / 2))
[[ -n $only ]] && PINNACE_TEST_BUDGET=$budget
export PINNACE_TEST_SEED=${PINNACE_TEST_SEED:-$((16#$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1)))}
# The sanitizers want addresses where they expect them; where the system does not allow that to be asked for, as it is.
run=()
setarch -R true 2>/dev/null && run=(setarch -R)
limit=$((PINNACE_TEST_BUDGET * 6 + 300))
failed=0

report() { # what failed
  echo "sanitized: $preset: $1"
  failed=1
}

if [[ $only != python ]]; then
  # Without a GPU driver: Mesa's and LLVM's own threads are not what is tested here.
  log=$results/cpp.log
  VK_ICD_FILENAMES=/dev/null VK_DRIVER_FILES=/dev/null timeout "$limit" "${run[@]}" "$build/pinnace_tests" \
    --gtest_filter="$cpp_filter" --gtest_color=no >"$log" 2>&1
  status=$?
  passed=$(grep -c '^\[       OK \]' "$log")
  echo "sanitized: $preset: C++: $passed passed, status $status"
  ((status == 0)) || { tail -n 60 "$log"; report "C++ tests ended with status $status"; }
  ((passed > 0)) || report "no C++ test ran"
  if [[ $preset == tsan && -z $filter ]]; then
    for tests in "${thread_tests[@]}"; do
      # shellcheck disable=SC2053 # a pattern
      while read -r name; do [[ $name == $tests ]] && continue 2; done < <(sed -n 's/^\[       OK \] \([^ ]*\).*/\1/p' "$log")
      report "no test $tests passed"
    done
  fi
fi

if [[ $only != cpp ]]; then
  log=$results/python.log
  library=$([[ $preset == tsan ]] && echo libtsan.so || echo libasan.so)
  # libstdc++ beside it: the sanitizer looks for __cxa_throw when the process starts, and Python brings none.
  preload="$(gcc -print-file-name=$library) $(gcc -print-file-name=libstdc++.so.6)"
  path=$root/$build/python
  where=$(LD_PRELOAD=$preload PYTHONPATH=$path "${run[@]}" "$python" -c 'import pinnace._core as c; print(c.__file__)')
  [[ $where == "$path/"* ]] || report "the extension is $where, not that of $build"
  LD_PRELOAD=$preload PYTHONPATH=$path PINNACE_SANITIZED=$preset timeout "$limit" "${run[@]}" "$python" -m pytest -q \
    -p no:cacheprovider -o pythonpath="$path tests/models tests/python scripts bench" -rp \
    "${python_tests[@]/#/tests/python/}" >"$log" 2>&1
  status=$?
  passed=$(grep -oE '[0-9]+ passed' "$log" | tail -n 1 | grep -oE '[0-9]+')
  echo "sanitized: $preset: Python: ${passed:-0} passed, status $status"
  ((status == 0)) || { tail -n 60 "$log"; report "Python tests ended with status $status"; }
  for tests in "${python_tests[@]}"; do
    grep -q "^PASSED tests/python/$tests::" "$log" || report "no test of $tests passed"
  done
fi

if compgen -G "$reports/*" >/dev/null; then
  head -n 120 "$reports"/*
  report "$(compgen -G "$reports/*" | wc -l) processes wrote reports, in $reports"
fi
((failed == 0)) && echo "sanitized: $preset: ok, no report"
exit $failed
