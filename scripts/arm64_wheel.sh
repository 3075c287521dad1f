#!/usr/bin/env bash
# Cross-builds the wheel for ARM64 Linux, copies its shared libraries into it, and tries it in a root of ARM64 packages
# under qemu's user mode: Python 3.11 there, with numpy and onnx from PyPI, has to import it, run a model and pass the
# Python tests that need neither torch nor onnxruntime. JOBS=2 is the number of compilers.
# Where the tools or packages cannot be had it says so and counts as skipped: exit status 77.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

host=$PWD/.venv/bin/python
root=$PWD/build/arm64-root
out=$PWD/build/arm64-wheel
for tool in qemu-aarch64 aarch64-linux-gnu-g++ flatc protoc; do
  command -v $tool >/dev/null || {
    echo "arm64 wheel: skipped 1: $tool is not installed (qemu-user, crossbuild-essential-arm64, protobuf-compiler)"
    exit 77
  }
done
tests/arm64/make_root.sh "$root" || {
  echo "arm64 wheel: skipped 1: no archive of ARM64 packages can be reached"
  exit 77
}

# As scripts/wheel.sh does, but for another processor, whose name packaging takes from the environment.
rm -rf "$out"
mkdir -p "$out"
# The packages of the other architecture have the same licences.
mkdir -p build/arm64-python
"$host" scripts/notices.py build/arm64-python/THIRD_PARTY_NOTICES.txt python/pinnace/_core*.so
CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-2} _PYTHON_HOST_PLATFORM=linux-aarch64 "$host" -m build --wheel --no-isolation \
  --outdir "$out" -C build-dir=build/arm64-python -C cmake.define.CMAKE_TOOLCHAIN_FILE="$PWD/cmake/arm64.cmake" \
  -C cmake.define.PINNACE_ARM64_ROOT="$root" .
libraries=$root/usr/lib/aarch64-linux-gnu:$root/lib/aarch64-linux-gnu
PATH=$PWD/.venv/bin:$PATH LD_LIBRARY_PATH=$libraries "$host" -m auditwheel repair --ldpaths "$libraries" \
  --wheel-dir "$out/repaired" "$out"/*.whl
wheel=$(ls "$out"/repaired/*.whl)

# An ARM64 folder of packages: pip chooses them by platform, and installs without running them.
site=$out/site
versions=$(grep -iE '^(numpy|onnx|ml_dtypes|protobuf|jinja2|markupsafe|typing_extensions|pytest|pluggy|iniconfig|packaging|pygments|hypothesis|sortedcontainers)==' requirements.txt)
# shellcheck disable=SC2086  # one word each
"$host" -m pip --disable-pip-version-check install -qq --no-input --no-deps --only-binary=:all: --target "$site" \
  --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_26_aarch64 \
  --platform manylinux2014_aarch64 --platform manylinux_2_36_aarch64 --python-version 311 --implementation cp \
  $versions "$wheel"

# What Python takes for its own executable: tests start it again, which the kernel would refuse of an ARM64 program.
python=$out/python
cat >"$python" <<SH
#!/bin/sh
exec qemu-aarch64 -0 "\$0" -L "$root" -cpu max "$root/usr/bin/python3.11" "\$@"
SH
chmod +x "$python"
(cd "$out" && env -i PATH="$PATH" PYTHONPATH="$site" "$python" - <<'PY'
import platform
import numpy
import pinnace
from pinnace import _core
assert platform.machine() == "aarch64", platform.machine()
graph = 'graph "g" {\n  input %x : f32[2]\n  %y : f32[2] = relu(%x)\n  output "y" %y\n}'
pinnace.Program(_core.Model.parse(graph, [], False, []).build(["cpu"])).save("relu.pnc")
(y,) = pinnace.Session("relu.pnc").run({"x": numpy.array([-1, 2], numpy.float32)}).values()
assert list(y) == [0, 2], y
foreign = [line.split()[-1] for line in open("/proc/self/maps") if "protobuf" in line or "libzip" in line or "simdjson" in line]
assert foreign and all("pinnace.libs" in path for path in foreign), foreign
print("arm64 wheel:", pinnace.__version__, "imports, runs and brings its libraries")
PY
)
# Tests that take numpy and onnx alone; the package is the wheel's, not the tree's.
env -i PATH="$PATH" PYTHONPATH="$site" ${PINNACE_TEST_SEED:+PINNACE_TEST_SEED=$PINNACE_TEST_SEED} "$python" \
  -m pytest -q -p no:cacheprovider -o pythonpath="tests/models tests/python scripts" \
  tests/python/operators/{small_floats_test,test_ops_image_signal}.py \
  tests/python/import_onnx/{random_graphs_test,onnx_backend_test}.py

mkdir -p dist
rm -f dist/pinnace-*aarch64.whl
cp "$wheel" dist/
echo "arm64 wheel: dist/$(basename "$wheel"), $(du -h "$wheel" | cut -f1)"
