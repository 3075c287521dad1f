# The GPU back ends: shaders become embedded arrays. What they need to be built is looked for, and without it they are
# left out, with a line that says what was missing.

# pinnace_gpu(VAR): VAR is true if this build has the GPU back ends; their sources are taken off RUNTIME_SOURCES if not.
function(pinnace_gpu variable)
  find_package(Python 3.11 COMPONENTS Interpreter)
  find_program(PINNACE_GLSLC glslc)
  find_program(PINNACE_SPIRV_VAL spirv-val)
  # Loaded by the build itself, so it is this machine's whatever is built for. Where a cross-build looks for libraries
  # elsewhere, folders must be named.
  find_library(PINNACE_SPIRV_CROSS spirv-cross-c-shared NO_CMAKE_FIND_ROOT_PATH
               PATHS /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
  # Of the system or a toolchain's include folders, so it needs no flag.
  find_path(PINNACE_VULKAN_HEADERS vulkan/vulkan.h HINTS ${CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES}
            NO_CMAKE_FIND_ROOT_PATH)
  set(missing)
  foreach(need Python_EXECUTABLE PINNACE_GLSLC PINNACE_SPIRV_VAL PINNACE_SPIRV_CROSS PINNACE_VULKAN_HEADERS)
    if(NOT ${need})
      list(APPEND missing ${need})
    endif()
  endforeach()
  if(missing)
    string(REPLACE "PINNACE_" "" missing "${missing}")
    string(TOLOWER "${missing}" missing)
    message(STATUS "The GPU back ends are left out; not found: ${missing}")
    set(${variable} OFF PARENT_SCOPE)
    return()
  endif()
  set(${variable} ON PARENT_SCOPE)
endfunction()

# pinnace_shaders(target): the generated source with all kernels.
function(pinnace_shaders target)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
  set(folder ${PROJECT_SOURCE_DIR}/cpp/backends/gpu)
  set(output ${PROJECT_BINARY_DIR}/generated/gpu/kernel_data.cc)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/gpu)
  file(GLOB_RECURSE shaders CONFIGURE_DEPENDS ${folder}/*.comp ${folder}/*.glsl ${folder}/*.metal)
  file(GLOB lists CONFIGURE_DEPENDS ${folder}/*/kernels.inc ${folder}/*/params.inc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/shaders.py ${folder} ${output} ${PINNACE_SPIRV_CROSS}
            --glslc ${PINNACE_GLSLC} --spirv-val ${PINNACE_SPIRV_VAL} --keep ${PROJECT_BINARY_DIR}/generated/gpu/msl
    DEPENDS ${shaders} ${lists} ${folder}/functions.inc ${PROJECT_SOURCE_DIR}/cpp/ops/unary.inc
            ${PROJECT_SOURCE_DIR}/cmake/shaders.py
    COMMENT "Compiling GPU kernels"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
  # Numbers and text: nothing for an optimiser.
  set_source_files_properties(${output} PROPERTIES COMPILE_OPTIONS "-O0")
endfunction()
