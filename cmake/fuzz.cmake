# Libraries for the fuzz targets of tests/fuzz: instrumented for coverage and kept small.

# pinnace_instrument(): targets run the CPU's baseline kernels; those of other instruction sets are there for the linker
# alone and compiled as quickly as can be. No other back end is built in.
function(pinnace_instrument)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PINNACE_FUZZ needs clang: cmake --preset fuzz")
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/fuzz/backends/backends.inc CONTENT "BACKEND(cpu)\n")
  include_directories(BEFORE ${PROJECT_BINARY_DIR}/fuzz)
  add_compile_options(-fsanitize=fuzzer-no-link)
endfunction()

# pinnace_fuzz_options(VAR): of the current folder's sources. What operators and back ends compare with what is not followed:
# no constant of a file's format is found there, and following it takes up to a third of a run's time.
function(pinnace_fuzz_options variable)
  set(${variable} PARENT_SCOPE)
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/cpp/(ops|backends)(/|$)")
    set(${variable} -fno-sanitize-coverage=trace-cmp PARENT_SCOPE)
  endif()
endfunction()

# pinnace_fuzz_isa(target): options of an instruction set's object library.
function(pinnace_fuzz_isa target)
  if(target STREQUAL "cpu_generic")
    target_compile_options(${target} PRIVATE -O1 -fno-sanitize-coverage=trace-cmp)
  else()
    target_compile_options(${target} PRIVATE -O0 -g0 -fno-sanitize=all)
  endif()
endfunction()
