#!/usr/bin/env bash
# Builds the wheel, copies into it the shared libraries that a machine without our Debian packages lacks (protobuf, zip,
# simdjson and what they need), and tries it: an empty environment with numpy alone has to be able to import it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=$PWD/.venv/bin/python
export PATH="$PWD/.venv/bin:$PATH"
rm -rf build/wheel build/wheel-trial
mkdir -p build/wheel dist

# Without isolation: the build uses .venv's pybind11 and onnx, the versions that the tests ran with.
"$python" -m build --wheel --no-isolation --outdir build/wheel .
"$python" -m auditwheel repair --wheel-dir build/wheel/repaired build/wheel/*.whl
wheel=$(ls build/wheel/repaired/*.whl)

numpy=$(grep -E '^numpy==' requirements.txt)
"$python" -m venv build/wheel-trial
build/wheel-trial/bin/python -m pip --disable-pip-version-check install -qq --no-input "$numpy" "$wheel"
# From a folder that has no pinnace of its own, and with no path that leads to the tree.
(cd build/wheel-trial && env -u PYTHONPATH bin/python - <<'PY'
import pathlib, sys
import pinnace
from pinnace import _core
place = pathlib.Path(_core.__file__)
assert pathlib.Path(sys.prefix) in place.parents, f"imported from {place}"
print("wheel:", pinnace.__version__, "imports with numpy alone")
PY
)
rm -rf build/wheel-trial
cp "$wheel" dist/
echo "wheel: dist/$(basename "$wheel"), $(du -h "$wheel" | cut -f1)"
