# Fuzz targets on libFuzzer: the libraries instrumented for coverage and kept small, and one program per .cc of
# tests/fuzz/targets.

# pinnace_instrument(VAR): leaves in VAR what the targets reach. They run the CPU's baseline kernels; those of other
# instruction sets are there for the linker alone and compiled as quickly as can be. No other back end is built in.
function(pinnace_instrument variable)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PINNACE_FUZZ needs clang: cmake --preset fuzz")
  endif()
  set(kept ${${variable}})
  list(FILTER kept EXCLUDE REGEX "/cpp/backends/nnapi/")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/fuzz/backends/backends.inc CONTENT "BACKEND(cpu)\n")
  include_directories(BEFORE ${PROJECT_BINARY_DIR}/fuzz)
  set(${variable} ${kept} PARENT_SCOPE)
  add_compile_options(-fsanitize=fuzzer-no-link)
endfunction()

# pinnace_fuzz_isa(target): options of an instruction set's object library.
function(pinnace_fuzz_isa target)
  if(target STREQUAL "cpu_generic")
    target_compile_options(${target} PRIVATE -O1)
  else()
    target_compile_options(${target} PRIVATE -O0 -g0 -fno-sanitize=all)
  endif()
endfunction()

function(pinnace_fuzz_targets)
  # Headers that nearly every file reads take a third of the time that the build takes.
  target_precompile_headers(runtime_objects PRIVATE <algorithm> <cmath> <functional> <map> <unordered_map> ${PROJECT_SOURCE_DIR}/cpp/ops/infer.h)
  target_precompile_headers(graph_objects PRIVATE <algorithm> <cmath> <functional> <map> <unordered_map> ${PROJECT_SOURCE_DIR}/cpp/ops/infer.h)
  target_precompile_headers(host_objects PRIVATE <algorithm> <cmath> <functional> <map> <unordered_map> ${PROJECT_SOURCE_DIR}/cpp/ops/infer.h
                            ${PROJECT_SOURCE_DIR}/cpp/import/torch/mapping.h)
  find_package(GTest REQUIRED)
  file(GLOB shared CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cc)
  # Parts of files, and hashes put right, are the C++ tests' own.
  # Files are taken apart by FlatBuffers' generated code, which reads lists wherever a file has them; decode.cc refuses
  # those that are not aligned, which is checked in its objects.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/cpp/program_fixture.cc
    ${PROJECT_SOURCE_DIR}/tests/fuzz/targets/pnc.cc PROPERTIES COMPILE_OPTIONS -fno-sanitize=alignment)
  add_library(fuzz_shared STATIC ${shared} ${PROJECT_SOURCE_DIR}/tests/cpp/program_fixture.cc)
  target_include_directories(fuzz_shared PUBLIC cpp cpp/include tests ${PROJECT_BINARY_DIR}/generated
                                                ${PROJECT_BINARY_DIR}/generated/onnx)
  target_link_libraries(fuzz_shared PUBLIC pinnace_host_static GTest::gtest)
  add_dependencies(fuzz_shared runtime_objects)
  set(programs)
  file(GLOB targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/targets/*.cc)
  foreach(source ${targets})
    get_filename_component(name ${source} NAME_WE)
    add_executable(fuzz_${name} ${source})
    target_link_libraries(fuzz_${name} PRIVATE fuzz_shared)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    list(APPEND programs fuzz_${name})
  endforeach()
  add_custom_target(fuzz_targets DEPENDS ${programs})
endfunction()
