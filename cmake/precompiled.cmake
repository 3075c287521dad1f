# Headers that nearly every source of a target reads, parsed once for all of them: four tenths of the time that those
# sources take to compile (docs/building.md). Each source includes what it names all the same: clang-tidy reads it without
# them (scripts/lint.sh). -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without.

# pinnace_precompile(target header...): with headers of the standard library that all targets share.
function(pinnace_precompile target)
  set(headers "<algorithm>" "<cmath>" "<functional>" "<map>" "<memory>" "<mutex>" "<optional>" "<span>" "<string>"
              "<unordered_map>" "<variant>" "<vector>" ${ARGN})
  list(TRANSFORM headers REPLACE ">$" "$<ANGLE-R>")
  list(TRANSFORM headers REPLACE "^(.+)$" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
  target_precompile_headers(${target} PRIVATE ${headers})
  # For ccache, which preprocesses a file to tell whether it knows it.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endfunction()

# pinnace_precompile_headers(): for every target with more than a few sources that are not kernels. Sources that are
# compiled for size (cmake/sources.cmake) cannot use a header that was not.
function(pinnace_precompile_headers)
  set(cpp ${PROJECT_SOURCE_DIR}/cpp)
  if(NOT PINNACE_ONLY AND NOT (CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64"))
    pinnace_precompile(runtime_objects ${cpp}/ops/type_inference.h)
  endif()
  if(PINNACE_HOST)
    pinnace_precompile(graph_objects ${cpp}/ops/type_inference.h)
    pinnace_precompile(host_objects ${cpp}/ops/type_inference.h ${cpp}/import/torch/mapping.h)
  endif()
  if(TARGET neuralnetworks)
    pinnace_precompile(neuralnetworks ${cpp}/nnapi/model.h ${cpp}/nnapi_host/calls.h)
  endif()
  if(TARGET _core)
    pinnace_precompile(_core <pybind11/numpy.h> <pybind11/stl.h>)
  endif()
  if(TARGET pinnace_tests)
    pinnace_precompile(pinnace_tests ${cpp}/ops/type_inference.h <gtest/gtest.h>)
  endif()
endfunction()
