# The linker of builds for ARM64 Linux, where size counts: lld gives functions with the same code, and tables with the
# same numbers, one place (6 % of the library), and packs the relocations of pointers (4 %). GNU's linker does neither
# there. So nothing below cpp/ may tell functions, or constants of equal contents, apart by their addresses. Programs are
# linked in the same way: the C++ tests run what ships.
# Not for a build for one model (PINNACE_ONLY), which GCC optimises as a whole when it is linked: lld cannot read that.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" OR NOT CMAKE_SYSTEM_NAME MATCHES "Linux|Android" OR PINNACE_ONLY)
  return()
endif()

find_program(PINNACE_LLD ld.lld NO_CMAKE_FIND_ROOT_PATH
             HINTS /usr/lib/llvm-19/bin /usr/lib/llvm-18/bin /usr/lib/llvm-17/bin /usr/lib/llvm-16/bin)
if(NOT PINNACE_LLD)
  message(STATUS "lld is not found: libraries are linked by the compiler's own linker, and a tenth larger")
  return()
endif()
get_filename_component(PINNACE_LLD_FOLDER ${PINNACE_LLD} DIRECTORY)
# pybind11 asks for GCC's optimisation of a whole extension where nothing is said about it, and lld cannot read that.
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
add_link_options(-fuse-ld=lld -B${PINNACE_LLD_FOLDER} -Wl,-O2 -Wl,--icf=all -Wl,--ignore-data-address-equality)

# Packed relocations are read by glibc from 2.36 on; who builds against an older one gets a library for that. Android's
# toolchain decides by the API level.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#include <features.h>
#if !defined(__GLIBC_PREREQ) || !__GLIBC_PREREQ(2, 36)
#error older
#endif
int main() {}" PINNACE_PACKS_RELOCATIONS)
if(PINNACE_PACKS_RELOCATIONS)
  add_link_options(-Wl,-z,pack-relative-relocs)
endif()
