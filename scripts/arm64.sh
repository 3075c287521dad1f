#!/usr/bin/env bash
# Builds for ARM64 with Debian's cross-compiler and checks the result in qemu's user mode: the C++ tests as several
# processors, instruction counts of the kernels, size and needs of the runtime library. JOBS=2 is the number of
# compilers; arguments go to tests/arm64/check_arm64.py (--slice, --only library|one-model|counts|tests, --write, --model FILE).
# Where the tools cannot be installed it says so and counts as skipped: exit status 77.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  qemu-user crossbuild-essential-arm64 lld-19 googletest libflatbuffers-dev libcli11-dev flatbuffers-compiler
)

have_tools() {
  local tool
  # One at a time: `command -v` of several is content with one of them.
  for tool in qemu-aarch64 aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ flatc ld.lld-19; do
    command -v $tool >/dev/null || return 1
  done
  [[ -d /usr/src/googletest && -d /usr/include/flatbuffers && -d /usr/include/CLI ]]
}

if ! have_tools; then
  as_root=()
  [[ $(id -u) == 0 ]] || as_root=(sudo -n)
  if ! command -v apt-get >/dev/null ||
    ! "${as_root[@]}" apt-get -q -o DPkg::Lock::Timeout=600 update >/dev/null ||
    ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -q -y -o DPkg::Lock::Timeout=600 install --no-install-recommends "${packages[@]}" >/dev/null || ! have_tools; then
    echo "arm64: skipped 1: not installed: ${packages[*]}"
    exit 77
  fi
fi

[[ -f build/arm64/build.ninja && build/arm64/build.ninja -nt CMakePresets.json ]] || cmake --preset arm64
cmake --build build/arm64 --parallel "${JOBS:-2}"
exec python3 tests/arm64/check_arm64.py "$@"
