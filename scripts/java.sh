#!/usr/bin/env bash
# Builds the Java package: build/java/pinnace.jar with the classes, for Java 8 and later, and the native libraries of the
# machine itself and, where build/arm64 has one, of ARM64. `scripts/java.sh tests` builds its tests beside it,
# build/java/tests.jar. What is up to date is not built again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v javac >/dev/null || { echo "java: there is no javac: install openjdk-17-jdk-headless" >&2; exit 1; }
out=build/java
sources=java/src/main/java
annotations=java/src/annotations/java # what null annotations are compiled against, and no part of the jar
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

if newer $out/classes.stamp $sources; then
  rm -rf $out/classes $out/annotations
  mkdir -p $out/classes $out/annotations
  # -options: javac 17 warns that it will not know Java 8 for ever.
  javac --release 8 -Xlint:all,-options -Werror -d $out/annotations $(find $annotations -name '*.java')
  javac --release 8 -Xlint:all,-options -Werror -cp $out/annotations -d $out/classes $(find $sources -name '*.java')
  touch $out/classes.stamp
fi
cmake --build build/release --parallel "${JOBS:-2}" --target pinnace_jni
library release strip "linux-$(uname -m)"
# Cross-building takes minutes: what was built is taken, `cmake --build build/arm64 --target pinnace_jni` builds it.
if [[ $(uname -m) == x86_64 && -f build/arm64/libpinnace_jni.so ]]; then
  library arm64 aarch64-linux-gnu-strip linux-aarch64
fi
if newer $out/pinnace.jar $out/classes; then
  jar --create --file $out/pinnace.jar -C $out/classes .
fi

if [[ ${1:-} == tests ]]; then
  if newer $out/tests.jar java/src/test $out/pinnace.jar; then
    rm -rf $out/test-classes
    mkdir -p $out/test-classes
    javac --release 8 -Xlint:all,-options -Werror -cp $out/pinnace.jar:$out/annotations:/usr/share/java/junit4.jar -d $out/test-classes \
      $(find java/src/test -name '*.java')
    jar --create --file $out/tests.jar -C $out/test-classes .
  fi
fi
echo "java: $out/pinnace.jar"
