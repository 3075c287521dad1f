#!/usr/bin/env bash
# Installs the engines that pinnace is timed against, each set into an environment of its own below .venv-bench:
# main, executorch, quantize (other quantisers) and litert (which only converts). An engine that cannot be installed is
# named, and the report goes on without it. Nothing changed: nothing done.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

install() { # environment requirements-file [package without what it asks for...]
  local venv=.venv-bench/$1 list=$2 key
  shift 2
  key=$(cat "$list" <(echo "$@") | sha256sum)
  [[ -f $venv/.requirements && $(<"$venv/.requirements") == "$key" ]] && return
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return
  echo "bench: installing $list into $venv"
  local pip=("$venv/bin/python" -m pip --disable-pip-version-check install -qq --no-input)
  "${pip[@]}" -r "$list" && { (($# == 0)) || "${pip[@]}" --no-deps "$@"; } && echo "$key" >"$venv/.requirements"
}

install main bench/requirements.txt || echo "bench: not all rivals could be installed (see above)"
install executorch bench/requirements-executorch.txt || echo "bench: ExecuTorch could not be installed (see above)"
install quantize bench/requirements-quantize.txt || echo "bench: NNCF could not be installed (see above)"
install litert bench/requirements-litert.txt litert-torch==0.10.0 litert-converter==0.5.0 ||
  echo "bench: LiteRT's converter could not be installed (see above)"
exit 0
