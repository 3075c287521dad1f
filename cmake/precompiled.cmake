# Headers that nearly every source of a target reads, parsed once for all of them: a third of the time that those
# sources take to compile (docs/building.md). Each source includes what it names all the same: clang-tidy reads it without
# them (scripts/lint.sh). -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without.

# pinnace_precompile(target header...): with headers of the standard library that all targets share.
function(pinnace_precompile target)
  set(headers "<algorithm>" "<cmath>" "<functional>" "<map>" "<memory>" "<mutex>" "<optional>" "<span>" "<string>"
              "<unordered_map>" "<variant>" "<vector>" ${ARGN})
  list(TRANSFORM headers REPLACE ">$" "$<ANGLE-R>")
  list(TRANSFORM headers REPLACE "^(.+)$" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()

# pinnace_precompile_headers(): for every target with more than a few sources that are not kernels. GCC optimises a file as
# the header that it uses was optimised: in release builds headers of the C++ core are compiled with -O2, and so is each
# source that uses one (cmake/sources.cmake). Where sources are compiled for size, they use none.
function(pinnace_precompile_headers)
  set(cpp ${PROJECT_SOURCE_DIR}/cpp)
  set(release OFF)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(release ON)
  endif()
  if(NOT PINNACE_ONLY AND NOT (release AND CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64"))
    foreach(target runtime_objects graph_objects host_objects neuralnetworks)
      if(TARGET ${target} AND release)
        target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O2>)
      endif()
    endforeach()
    pinnace_precompile(runtime_objects ${cpp}/ops/type_inference.h)
    if(PINNACE_HOST)
      pinnace_precompile(graph_objects ${cpp}/ops/type_inference.h)
      pinnace_precompile(host_objects ${cpp}/ops/type_inference.h ${cpp}/import/torch/mapping.h)
    endif()
    if(TARGET neuralnetworks)
      pinnace_precompile(neuralnetworks ${cpp}/nnapi/model.h ${cpp}/nnapi_host/calls.h)
    endif()
  endif()
  if(TARGET _core)
    pinnace_precompile(_core <pybind11/numpy.h> <pybind11/stl.h>)
  endif()
  if(TARGET pinnace_tests)
    pinnace_precompile(pinnace_tests ${cpp}/ops/type_inference.h <gtest/gtest.h>)
  endif()
endfunction()
