# How the CPU back end's sources are compiled. A family's CMakeLists.txt (cpp/backends/cpu/*/) says which of its files are
# compiled once per instruction set, and for which sets; isa.cmake lists the sets. Its other files are compiled once.

# BODY(file [EXACT] isa...): the file is compiled once for each of these sets that the processor built for may have.
# Products and sums may be fused; EXACT files, which promise bits, fuse none. Files with a BODY line are part of no other
# library.
function(BODY file)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_property(GLOBAL APPEND PROPERTY PINNACE_BODIES ${source})
  foreach(isa ${ARGN})
    set_property(GLOBAL APPEND PROPERTY PINNACE_BODIES_${isa} ${source})
    set_property(GLOBAL APPEND PROPERTY PINNACE_BODY_SETS ${isa})
  endforeach()
endfunction()

# BODY_OPTIONS(file option...): options of one file in all sets, in release builds.
function(BODY_OPTIONS file)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/${file} DIRECTORY ${PROJECT_SOURCE_DIR}
                 APPEND PROPERTY COMPILE_OPTIONS ${ARGN})
  endif()
endfunction()

# SMALL(file...): on devices, files of this folder that are better small than fast. FAST(file...): those that drive no
# kernels and are better fast.
function(SMALL)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY PINNACE_SMALL ${ARGN})
endfunction()
function(FAST)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY PINNACE_FAST ${ARGN})
endfunction()

# pinnace_is_kernel(VAR file): whether the file drives kernels: it is in the folder of a family of operators.
function(pinnace_is_kernel variable file)
  set(${variable} OFF PARENT_SCOPE)
  if(file MATCHES "/cpp/backends/cpu/[a-z]+/" AND NOT file MATCHES "/cpp/backends/cpu/plan/")
    set(${variable} ON PARENT_SCOPE)
  endif()
endfunction()

# ISA(name processors flag...): an object library, cpu_<name>, of the files that name the set; its objects join
# PINNACE_CPU_OBJECTS.
function(ISA name processors)
  set(PINNACE_ISAS ${PINNACE_ISAS} ${name} PARENT_SCOPE)
  set(kernel KERNEL)
  if(processors STREQUAL x86_64)
    set(kernel KERNEL_X86)
  elseif(processors STREQUAL arm64)
    set(kernel KERNEL_ARM64)
  endif()
  set(PINNACE_ISA_KERNELS "${PINNACE_ISA_KERNELS}#define PINNACE_KERNEL_${name}(...) ${kernel}(__VA_ARGS__)\n"
      PARENT_SCOPE)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(${processors})$")
    return()
  endif()
  set(target cpu_${name})
  get_property(bodies GLOBAL PROPERTY PINNACE_BODIES_${name})
  add_library(${target} OBJECT ${bodies})
  pinnace_core(${target})
  target_compile_definitions(${target} PRIVATE PINNACE_ISA_HEADER="backends/cpu/simd/${name}.h"
                                               $<$<BOOL:${PINNACE_PACKS_ARM64}>:PINNACE_PACKS_ARM64=1>)
  # GCC 12's own AVX-512 headers read what they then mask out.
  target_compile_options(${target} PRIVATE
    ${ARGN} -ffp-contract=fast -O3 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>)
  # They call nothing that throws (tests/arm64/check_arm64.py looks), so that on devices no table says how to unwind them.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    target_compile_options(${target} PRIVATE -fno-exceptions -fno-unwind-tables)
  endif()
  if(PINNACE_ONLY)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-ipa-cp-clone>)
  endif()
  # GCC 12 aligns stack frames that outlive their function to 32 bytes (its bug 110027); 64-byte registers are spilled
  # there all the same.
  if(PINNACE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND name MATCHES "avx512")
    target_compile_options(${target} PRIVATE --param=asan-use-after-return=0)
  endif()
  if(PINNACE_FUZZ)
    pinnace_fuzz_isa(${target})
  endif()
  set(PINNACE_CPU_OBJECTS ${PINNACE_CPU_OBJECTS} $<TARGET_OBJECTS:${target}> PARENT_SCOPE)
endfunction()

# After the last ISA line. Writes what kernel_lists.h includes.
macro(pinnace_end_of_instruction_sets)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/cpu/backends/cpu/instruction_set_kernels.h
       CONTENT "// Made of cmake/isa.cmake.\n#pragma once\n\n${PINNACE_ISA_KERNELS}" @ONLY)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/cpp/backends/cpu/dispatch.cc
               APPEND PROPERTY INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR}/generated/cpu)
  get_property(exact GLOBAL PROPERTY PINNACE_BODIES_EXACT)
  set_property(SOURCE ${exact} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)
  get_property(named GLOBAL PROPERTY PINNACE_BODY_SETS)
  list(REMOVE_DUPLICATES named)
  list(REMOVE_ITEM named EXACT ${PINNACE_ISAS})
  if(named)
    message(FATAL_ERROR "BODY lines name sets that cmake/isa.cmake lacks: ${named}")
  endif()
endmacro()
