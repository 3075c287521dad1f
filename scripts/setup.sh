#!/usr/bin/env bash
# Gives a Debian 12 machine what pinnace builds and tests with: Debian packages where they are missing, then the
# virtual environment .venv with the exact versions of requirements.txt and requirements-nodeps.txt.
# Safe to call again at any time: nothing missing and an unchanged list of requirements costs well under a second.
# Package sources are those that apt and pip are set up with; a mirror is chosen there (PIP_FIND_LINKS, sources.list).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# clang-format and clang-tidy by number: another release formats and warns differently. qemu-user is for processors that
# this one is not; Mesa's software Vulkan for GPUs that it does not have. clang
# compiles Metal's kernels for softmetal and, with libFuzzer of its runtime, the fuzz targets; gobjc++ the Metal driver for
# its test. The JDK and JUnit are for the Java package and its tests, ARM64's compiler for those of the Android package;
# espeak-ng speaks for what suppresses noise; Chromium shows the pages of reports.
packages=(
  build-essential cmake ninja-build ccache pkg-config git
  protobuf-compiler libprotobuf-dev flatbuffers-compiler libflatbuffers-dev
  libspdlog-dev libsimdjson-dev libzip-dev libxxhash-dev libcli11-dev libgtest-dev
  python3-venv python3-dev
  qemu-user
  mesa-vulkan-drivers libvulkan-dev vulkan-validationlayers glslc spirv-tools libspirv-cross-c-shared-dev
  clang-19 libclang-rt-19-dev gobjc++
  clang-format-19 clang-tidy-19
  openjdk-17-jdk-headless junit4 gcc-aarch64-linux-gnu libc6-dev-arm64-cross
  espeak-ng
  chromium
)

install_debian_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "setup: not a Debian system; install the equivalents of: ${packages[*]}" >&2
    return
  fi
  local installed missing=() package
  # dpkg-query answers non-zero when a name is unknown to it, which is the ordinary "missing" here, and no failure.
  installed=" $({ dpkg-query -W -f='${db:Status-Status}:${Package}\n' "${packages[@]}" 2>/dev/null || true; } | sed -n 's/^installed://p' | tr '\n' ' ')"
  for package in "${packages[@]}"; do
    [[ "$installed" == *" $package "* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || { echo "setup: as root, run: apt-get install ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o DPkg::Lock::Timeout=600 install --no-install-recommends "${missing[@]}"
}

# The first interpreter that is new enough and has its C headers, which the bindings need.
find_python() {
  local candidate
  for candidate in python3 python3.11 python3.12 python3.13 /usr/bin/python3; do
    if "$candidate" - <<'PY' 2>/dev/null
import os, sys, sysconfig
sys.exit(sys.version_info < (3, 11) or not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))
PY
    then
      command -v "$candidate"
      return
    fi
  done
  echo "setup: no Python >= 3.11 with headers found" >&2
  return 1
}

make_venv() {
  local stamp=.venv/.requirements key
  key=$(sha256sum requirements.txt requirements-nodeps.txt scripts/setup.sh | sha256sum)
  # The interpreter is started as well: a .venv whose base Python was removed still has its stamp.
  if [[ -f $stamp && $(<"$stamp") == "$key" ]] && .venv/bin/python -c '' 2>/dev/null; then return; fi

  local python
  python=$(find_python)
  .venv/bin/python -c '' 2>/dev/null || rm -rf .venv
  [[ -d .venv ]] || "$python" -m venv .venv
  rm -f "$stamp"
  echo "setup: installing Python packages into .venv"
  local pip=(.venv/bin/python -m pip --disable-pip-version-check install -qq --no-input)
  "${pip[@]}" -r requirements.txt
  "${pip[@]}" --no-deps -r requirements-nodeps.txt
  # The tree's own package is imported from where the build writes its extension.
  .venv/bin/python - <<'PY'
import pathlib, sysconfig
pathlib.Path(sysconfig.get_path("purelib"), "pinnace_tree.pth").write_text(f"{pathlib.Path('python').resolve()}\n")
import torch
if torch.version.cuda is not None:
    print("setup: this torch is a CUDA build; a CPU wheel (see docs/contributing.md) saves several GB and works as well")
PY
  echo "$key" >"$stamp"
}

install_debian_packages
make_venv
