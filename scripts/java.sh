#!/usr/bin/env bash
# Builds the Java package: build/java/pinnace.jar with the classes, for Java 8 and later, and native libraries for Linux; and
# build/java/pinnace-pytorch.jar, PyTorch Mobile's Java API over it. PLATFORMS="x86_64 aarch64" names the processors that the jar
# has libraries for, this machine's among them, and no others: without it that one. Each is built from this tree as it is now,
# ARM64's with a cross-compiler in build/arm64; the manifest lists them. `scripts/java.sh tests` builds the tests beside them:
# build/java/tests.jar, and build/java/held/PLATFORM/libheld_memory.so. What is up to date is not built again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v javac >/dev/null || { echo "java: there is no javac: install openjdk-17-jdk-headless" >&2; exit 1; }
machine=$(uname -m)
platforms=${PLATFORMS:-$machine}
for platform in $platforms; do
  case $machine-$platform in
    "$platform-$platform") ;;
    x86_64-aarch64)
      command -v aarch64-linux-gnu-g++ >/dev/null ||
        { echo "java: there is no compiler for aarch64: install crossbuild-essential-arm64" >&2; exit 1; }
      ;;
    *) echo "java: PLATFORMS: no library for $platform can be built on $machine" >&2; exit 1 ;;
  esac
done
[[ " $platforms " == *" $machine "* ]] || { echo "java: PLATFORMS must name $machine, this machine's, too" >&2; exit 1; }

out=build/java
sources=java/src/main/java
annotations=java/src/annotations/java # what null annotations are compiled against, and no part of the jar
pytorch=java/pytorch/src/main/java
android=java/pytorch/src/android/java # the classes of Android that it is compiled and tested with, and no part of the jar
mkdir -p $out

# newer TARGET WHERE...: whether anything there is newer than the target, or the target is missing.
newer() {
  local target=$1
  shift
  [[ ! -e $target || -n $(find "$@" -newer "$target" -print -quit) ]]
}

# library PRESET PREFIX PLATFORM: builds the library by a preset, and strips it to where the jar has it. PREFIX is that of the
# names of the platform's tools.
library() {
  local to=$out/classes/org/pinnace/native/linux-$3/libpinnace_jni.so
  [[ $1 == release || build/$1/build.ninja -nt CMakePresets.json ]] || cmake --preset "$1"
  cmake --build "build/$1" --parallel "${JOBS:-2}" --target pinnace_jni
  if newer "$to" "build/$1/libpinnace_jni.so"; then
    mkdir -p "$(dirname "$to")"
    "$2strip" -o "$to" "build/$1/libpinnace_jni.so"
  fi
}

# each FUNCTION: calls it with PRESET PREFIX PLATFORM of each platform.
each() {
  local platform
  for platform in $platforms; do
    if [[ $platform == "$machine" ]]; then "$1" release "" "$platform"; else "$1" arm64 aarch64-linux-gnu- "$platform"; fi
  done
}

# compile TO CLASSPATH FROM: the classes of a folder of sources, in a folder that has no others.
compile() {
  rm -rf "$1"
  mkdir -p "$1"
  # -options: javac 17 warns that it will not know Java 8 for ever.
  find "$3" -name '*.java' -print0 | xargs -0 javac --release 8 -Xlint:all,-options -Werror -cp "$2" -d "$1"
}

# pack JAR CLASSES TITLE MODULE LINE...: a jar whose manifest says what it is, and these lines.
pack() {
  local jar=$1 classes=$2 version manifest
  version=$(sed -n 's/^project(pinnace VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
  manifest=$(mktemp)
  printf '%s\n' "Implementation-Title: $3" "Implementation-Version: $version" "Automatic-Module-Name: $4" "${@:5}" >"$manifest"
  jar --create --file "$jar" --manifest "$manifest" -C "$classes" .
  rm "$manifest"
}

if newer $out/classes.stamp $sources $annotations scripts/java.sh; then
  compile $out/annotations $out $annotations
  compile $out/classes $out/annotations $sources
  touch $out/classes.stamp
fi
each library
for there in "$out"/classes/org/pinnace/native/linux-*; do # of an earlier call with other platforms
  [[ " $platforms " == *" ${there##*linux-} "* ]] || rm -r "$there"
done
# The licences of what the libraries contain of others; texts are those of Debian's packages.
notices=$out/classes/META-INF/THIRD_PARTY_NOTICES.txt
if command -v dpkg-query >/dev/null && newer "$notices" build/release/libpinnace_jni.so scripts/notices.py; then
  mkdir -p "$(dirname "$notices")"
  python3 scripts/notices.py "$notices" build/release/libpinnace_jni.so
fi
if newer $out/pinnace.jar $out/classes CMakeLists.txt scripts/java.sh; then
  pack $out/pinnace.jar $out/classes pinnace org.pinnace "Native-Platforms: $(printf 'linux-%s ' $platforms | sed 's/ $//')"
fi
if newer $out/pinnace-pytorch.jar $pytorch $android $out/pinnace.jar; then
  compile $out/android $out $android
  compile $out/pytorch-classes $out/pinnace.jar:$out/annotations:$out/android $pytorch
  pack $out/pinnace-pytorch.jar $out/pytorch-classes "pinnace for PyTorch Mobile's Java API" org.pytorch "Class-Path: pinnace.jar"
fi

# held PRESET PREFIX PLATFORM: what HeldMemory.java asks.
held() {
  local to=$out/held/linux-$3/libheld_memory.so javac
  newer "$to" java/src/test/c || return 0
  javac=$(readlink -f "$(command -v javac)")
  local include=${javac%/bin/javac}/include
  mkdir -p "$(dirname "$to")"
  "$2gcc" -std=c11 -Wall -Wextra -Werror -shared -fPIC -I "$include" -I "$include/linux" java/src/test/c/held_memory.c -o "$to"
}

if [[ ${1:-} == tests ]]; then
  each held
  junit=/usr/share/java/junit4.jar
  if newer $out/tests.jar java/src/test java/pytorch/src/test $out/pinnace-pytorch.jar; then
    compile $out/test-classes $out/pinnace.jar:$out/annotations:$junit java/src/test
    compile $out/pytorch-test-classes $out/pinnace-pytorch.jar:$out/test-classes:$out/annotations:$out/android:$junit java/pytorch/src/test
    jar --create --file $out/tests.jar -C $out/test-classes . -C $out/pytorch-test-classes .
  fi
fi
echo "java: $out/pinnace.jar $out/pinnace-pytorch.jar"
