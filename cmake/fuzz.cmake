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

# pinnace_fuzz_options(VAR): of a source of the current folder. In operators and back ends it is not followed what is compared
# with what: no constant of a file's format is found there, and it takes up to a third of the time of a run.
function(pinnace_fuzz_options variable)
  set(options)
  foreach(folder ops backends)
    string(FIND ${CMAKE_CURRENT_SOURCE_DIR}/ ${PROJECT_SOURCE_DIR}/cpp/${folder}/ at)
    if(at EQUAL 0)
      set(options -fno-sanitize-coverage=trace-cmp)
    endif()
  endforeach()
  set(${variable} ${options} PARENT_SCOPE)
endfunction()

# pinnace_fuzz_isa(target): options of an instruction set's object library.
function(pinnace_fuzz_isa target)
  if(target STREQUAL "cpu_generic")
    target_compile_options(${target} PRIVATE -O1 -fno-sanitize-coverage=trace-cmp)
  else()
    target_compile_options(${target} PRIVATE -O0 -g0 -fno-sanitize=all)
  endif()
endfunction()

# Headers that nearly every file reads take a third of the time that the build takes.
function(pinnace_fuzz_headers)
  foreach(target runtime_objects graph_objects host_objects)
    target_precompile_headers(${target} PRIVATE <algorithm> <cmath> <functional> <map> <unordered_map>
                              ${PROJECT_SOURCE_DIR}/cpp/ops/type_inference.h)
  endforeach()
  target_precompile_headers(host_objects PRIVATE ${PROJECT_SOURCE_DIR}/cpp/import/torch/mapping.h)
endfunction()
