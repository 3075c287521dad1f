#!/usr/bin/env bash
# Builds the Java package: build/java/pinnace.jar with the classes, for Java 8 and later, and the native libraries of the
# machine itself and, where build/arm64 has one, of ARM64; and build/java/pinnace-pytorch.jar, PyTorch Mobile's Java API over it.
# `scripts/java.sh tests` builds their tests beside them, build/java/tests.jar. What is up to date is not built again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v javac >/dev/null || { echo "java: there is no javac: install openjdk-17-jdk-headless" >&2; exit 1; }
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

# library PRESET STRIP PLATFORM: the library of a build, stripped, where the jar has it.
library() {
  local to=$out/classes/org/pinnace/native/$3/libpinnace_jni.so
  if newer "$to" "build/$1/libpinnace_jni.so"; then
    mkdir -p "$(dirname "$to")"
    "$2" -o "$to" "build/$1/libpinnace_jni.so"
  fi
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
cmake --build build/release --parallel "${JOBS:-2}" --target pinnace_jni
library release strip "linux-$(uname -m)"
# Cross-building takes minutes: what was built is taken, `cmake --build build/arm64 --target pinnace_jni` builds it.
if [[ $(uname -m) == x86_64 && -f build/arm64/libpinnace_jni.so ]]; then
  library arm64 aarch64-linux-gnu-strip linux-aarch64
fi
# The licences of what the libraries contain of others; texts are those of Debian's packages.
notices=$out/classes/META-INF/THIRD_PARTY_NOTICES.txt
if command -v dpkg-query >/dev/null && newer "$notices" build/release/libpinnace_jni.so scripts/notices.py; then
  mkdir -p "$(dirname "$notices")"
  python3 scripts/notices.py "$notices" build/release/libpinnace_jni.so
fi
if newer $out/pinnace.jar $out/classes CMakeLists.txt; then
  pack $out/pinnace.jar $out/classes pinnace org.pinnace
fi
if newer $out/pinnace-pytorch.jar $pytorch $android $out/pinnace.jar; then
  compile $out/android $out $android
  compile $out/pytorch-classes $out/pinnace.jar:$out/annotations:$out/android $pytorch
  pack $out/pinnace-pytorch.jar $out/pytorch-classes "pinnace for PyTorch Mobile's Java API" org.pytorch "Class-Path: pinnace.jar"
fi

if [[ ${1:-} == tests ]]; then
  junit=/usr/share/java/junit4.jar
  if newer $out/tests.jar java/src/test java/pytorch/src/test $out/pinnace-pytorch.jar; then
    compile $out/test-classes $out/pinnace.jar:$out/annotations:$junit java/src/test
    compile $out/pytorch-test-classes $out/pinnace-pytorch.jar:$out/annotations:$out/android:$junit java/pytorch/src/test
    jar --create --file $out/tests.jar -C $out/test-classes . -C $out/pytorch-test-classes .
  fi
fi
echo "java: $out/pinnace.jar $out/pinnace-pytorch.jar"
