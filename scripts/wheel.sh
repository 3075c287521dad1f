#!/usr/bin/env bash
# Makes the wheel of the extension that a build has (the first argument, build/release for `make wheel`), copies into it the
# shared libraries that a machine without our Debian packages lacks (protobuf, zip, simdjson and what they need), and tries
# it: an empty environment with numpy alone has to be able to import it.
set -euo pipefail
from=$(realpath "${1:?the folder of a build}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=$PWD/.venv/bin/python
export PATH="$PWD/.venv/bin:$PATH"
rm -rf build/wheel build/wheel-trial
mkdir -p build/wheel dist

extension=$(ls "$(sed -n 's/^PINNACE_PYTHON_DIR:PATH=//p' "$from/CMakeCache.txt")"/_core*.so)
"$python" scripts/notices.py "$from/THIRD_PARTY_NOTICES.txt" "$extension"
# Without isolation, and nothing is compiled: this is the extension that the tests ran with.
"$python" -m build --wheel --no-isolation --outdir build/wheel \
  -C build-dir=build/wheel/cmake -C cmake.define.PINNACE_WHEEL_FROM="$from" .
"$python" -m auditwheel repair --wheel-dir build/wheel/repaired build/wheel/*.whl
wheel=$(ls build/wheel/repaired/*.whl)

numpy=$(grep -E '^numpy==' requirements.txt)
"$python" -m venv build/wheel-trial
build/wheel-trial/bin/python -m pip --disable-pip-version-check install -qq --no-input "$numpy" "$wheel"
# From a folder that has no pinnace of its own, and with no path that leads to the tree.
(cd build/wheel-trial && env -u PYTHONPATH bin/python - <<'PY'
import pathlib, re, subprocess, sys
import numpy
import pinnace
from pinnace import _core
place = pathlib.Path(_core.__file__)
assert pathlib.Path(sys.prefix) in place.parents, f"imported from {place}"
graph = 'graph "g" {\n  input %x : f32[2]\n  %y : f32[2] = relu(%x)\n  output "y" %y\n}'
pinnace.Program(_core.Model.parse(graph, [], False, []).build(["cpu"])).save("relu.pnc")
(y,) = pinnace.Session("relu.pnc").run({"x": numpy.array([-1, 2], numpy.float32)}).values()
assert list(y) == [0, 2], y
# Metal's kernels lie beside the extension, where the target looks for them.
if (place.parent / "libpinnace_softmetal.so").is_file():
    session = pinnace.Session("relu.pnc", target="softmetal", fallback=False)
    (y,) = session.run({"x": numpy.array([-1, 2], numpy.float32)}).values()
    assert list(y) == [0, 2], y
else:
    print("wheel: without softmetal, which takes the shader tools and clang 16")
# A library of Debian's would do here and be missing elsewhere.
foreign = [line.split()[-1] for line in open("/proc/self/maps") if "protobuf" in line or "libzip" in line or "simdjson" in line]
assert foreign and all("pinnace.libs" in path for path in foreign), foreign
notices = (place.parent / "THIRD_PARTY_NOTICES.txt").read_text()
brought = [re.match("[a-z]+", path.name)[0] for path in (place.parent.parent / "pinnace.libs").iterdir()]
names = {"libcrypto": "libssl", "libbz": "libbz2", "libz": "zlib"}  # Debian's, where the package is called otherwise
assert brought and all(f"\n{names.get(name, name)}" in notices for name in brought), brought
subprocess.run([pathlib.Path(sys.prefix) / "bin/pinnace", "inspect", "relu.pnc"], check=True, stdout=subprocess.DEVNULL)
print("wheel:", pinnace.__version__, "imports, runs and brings its libraries, with numpy alone")
PY
)
# Beside torch and onnx, which .venv has, in every order.
site=$(build/wheel-trial/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
PINNACE_IMPORT_FROM=$site "$python" -m pytest -q -p no:cacheprovider tests/python/package/import_orders_test.py
rm -rf build/wheel-trial
rm -f dist/pinnace-*.whl
cp "$wheel" dist/
echo "wheel: dist/$(basename "$wheel"), $(du -h "$wheel" | cut -f1)"
