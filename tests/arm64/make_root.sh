#!/usr/bin/env bash
# Makes a folder with Debian's ARM64 packages that the Python extension is built against and tried in: Python, pytest,
# protobuf, libzip, simdjson, spdlog. Nothing is installed on this machine, and no architecture added to it: apt
# resolves against an empty list of installed packages, only downloads, and dpkg-deb unpacks.
#   make_root.sh FOLDER [PACKAGE...]     a finished folder with the same packages is left alone
set -euo pipefail
root=${1:?make_root.sh FOLDER [PACKAGE...]}
shift
packages=(python3-minimal libpython3-stdlib libpython3.11-dev python3-pytest libstdc++6
  libprotobuf-dev libzip-dev libsimdjson-dev libspdlog-dev "$@")
mkdir -p "$root"
root=$(cd "$root" && pwd)
[[ -f $root/.packages && $(<"$root/.packages") == "${packages[*]}" ]] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work"/{lists,debs}/partial "$work"/{parts,state,log}
: >"$work/status"
# The machine's own sources, without those of source packages.
if [[ -f /etc/apt/sources.list.d/debian.sources ]]; then
  sed 's/^Types:.*/Types: deb/' /etc/apt/sources.list.d/debian.sources >"$work/parts/debian.sources"
else
  grep -E '^deb ' /etc/apt/sources.list >"$work/parts/debian.list"
fi
# Lists and hooks of the machine's configuration are cleared here; options on the command line would add to them.
cat >"$work/conf" <<'CONF'
#clear APT::Architectures;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::DEP-11-icons;
#clear Acquire::IndexTargets::deb::DEP-11-icons-small;
#clear Acquire::IndexTargets::deb::DEP-11-icons-hidpi;
CONF
export APT_CONFIG=$work/conf
apt=(apt-get -qq
  -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Install-Recommends=0 -o APT::Sandbox::User=root
  -o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::State::lists="$work/lists"
  -o Dir::Cache="$work" -o Dir::Cache::archives="$work/debs" -o Dir::Log="$work/log"
  -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/parts" -o Acquire::Languages=none
  -o Debug::NoLocking=1)
"${apt[@]}" update
"${apt[@]}" -y --download-only install "${packages[@]}" >"$work/log/install" 2>&1 || {
  cat "$work/log/install" >&2
  exit 1
}
for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
# What maintainer scripts would have made.
[[ -e $root/lib/ld-linux-aarch64.so.1 ]] || ln -s aarch64-linux-gnu/ld-linux-aarch64.so.1 "$root/lib/ld-linux-aarch64.so.1"
mkdir -p "$root/proc" "$root/tmp"
# Programs that read /proc/cpuinfo would see this machine's; qemu opens the root's first.
for core in 0 1; do
  printf 'processor\t: %d\nBogoMIPS\t: 100.00\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0b\nCPU revision\t: 1\n\n' "$core"
done >"$root/proc/cpuinfo"
echo "${packages[*]}" >"$root/.packages"
echo "arm64: $root has $(ls "$work"/debs/*.deb | wc -l) packages, $(du -sm "$root" | cut -f1) MB"
