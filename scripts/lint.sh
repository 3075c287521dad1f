#!/usr/bin/env bash
# Checks the look of all code, and what clang-tidy finds in the C++ that changed. Every check runs; any finding fails.
# clang-tidy needs build/release (its compile commands and generated headers) and takes part of a minute a file, so it
# reads only what changed against main (or the last commit, on main itself), within LINT_TIDY_SECONDS.
# `lint.sh --only style` checks all that needs no build, `lint.sh --only tidy` the rest.
# `lint.sh --fix` formats all code and applies what ruff can repair, and checks nothing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=.venv/bin/python
tidy_seconds=${LINT_TIDY_SECONDS:-270}
failed=()

check() { # name command...: runs it, and remembers that it failed
  local name=$1
  shift
  if "$@"; then echo "lint: $name: ok"; else
    echo "lint: $name: FAILED"
    failed+=("$name")
  fi
}

# Files of git's pathspecs that exist, whether committed yet or not.
tracked() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do [[ -f $file ]] && echo "$file"; done; }

changed_base() {
  local base
  for main in origin/main main; do
    base=$(git merge-base HEAD "$main" 2>/dev/null) || continue
    [[ $base != $(git rev-parse HEAD) ]] && { echo "$base"; return; }
  done
  git rev-parse --verify --quiet HEAD~1
}

format() { # options of clang-format...
  local sources
  mapfile -t sources < <(tracked '*.cc' '*.h')
  ((${#sources[@]})) || return 0
  clang-format-19 "$@" "${sources[@]}"
}

if [[ ${1-} == --fix ]]; then
  format -i
  "$python" -m ruff check --quiet --fix .
  "$python" -m ruff format --quiet .
  exit
fi

tidy() {
  local base file sources=() known=build/release/compile_commands.json deadline=$((SECONDS + tidy_seconds)) left status=0 unread=()
  [[ -f $known ]] || { echo "lint: clang-tidy needs $known: make build"; return 1; }
  # Without precompiled headers, which hide that a source does not include what it names, and are GCC's.
  mkdir -p build/tidy
  sed -E 's/ -Winvalid-pch -include [^ "]*cmake_pch[^ "]*//' "$known" >build/tidy/compile_commands.json
  base=$(changed_base) || { echo "lint: clang-tidy: nothing to compare with"; return 0; }
  while read -r file; do
    # A file that this machine's build leaves out (another instruction set) has no command to be read by.
    [[ -f $file ]] && grep -qF "/$file\"" "$known" && sources+=("$file")
  done < <({ git diff --name-only "$base" -- '*.cc'; git ls-files --others --exclude-standard -- '*.cc'; } | sort -u)
  echo "lint: clang-tidy: ${#sources[@]} files changed since ${base:0:12}"
  while ((${#sources[@]})); do
    left=$((deadline - SECONDS))
    ((left > 0)) || { unread=("${sources[@]}"); break; }
    # GCC's own warning options are unknown to clang and no business of this check. Two at a time.
    printf '%s\0' "${sources[@]:0:4}" | xargs -0 -n 1 -P 2 timeout "$left" clang-tidy-19 -p build/tidy --quiet \
      --extra-arg=-Wno-unknown-warning-option 2> >(grep -v -E '^[0-9]+ warnings?( and .*)? generated|^Suppressed|^Use -header-filter' >&2)
    # xargs: 123 is "one of them failed", 124 from timeout is no finding.
    case $? in 0) ;; *) ((SECONDS < deadline)) && status=1 ;; esac
    sources=("${sources[@]:4}")
  done
  ((${#unread[@]})) && echo "lint: clang-tidy: out of time, not read: ${unread[*]}"
  return $status
}

types() {
  local targets=() path
  # The package is checked as a package; tests and scripts as the single files that they are.
  for path in python/pinnace scripts/*.py bench/*.py examples cpp/backends/softmetal/*.py tests/*.py tests/softmetal/*.py tests/models/*.py tests/python/{,*/}*.py; do
    [[ -f $path ]] && targets+=("$path")
    [[ -d $path ]] && compgen -G "$path/*.py" >/dev/null && targets+=("$path")
  done
  "$python" -m mypy "${targets[@]}"
}

style() {
  check clang-format format --dry-run -Werror --ferror-limit=20
  check ruff "$python" -m ruff check --quiet .
  check "ruff format" "$python" -m ruff format --check --quiet .
  check rules "$python" tests/rules_test.py
  check mypy types
}

case ${1-}:${2-} in
  :) style; check clang-tidy tidy ;;
  --only:style) style ;;
  --only:tidy) check clang-tidy tidy ;;
  *) echo "lint: $*: must be nothing, --fix, --only style or --only tidy" >&2; exit 2 ;;
esac

if ((${#failed[@]})); then
  printf 'lint: failed: %s\n' "${failed[*]}"
  exit 1
fi
