# What the GPU back ends need to be built is looked for, and without it they are left out, with a line that says what was
# missing. VAR says whether this build has them.
function(pinnace_gpu variable)
  find_package(Python 3.11 COMPONENTS Interpreter)
  find_program(PINNACE_GLSLC glslc)
  find_program(PINNACE_SPIRV_OPT spirv-opt)
  find_program(PINNACE_SPIRV_VAL spirv-val)
  # Loaded by the build itself, so it is this machine's whatever is built for. Where a cross-build looks for libraries
  # elsewhere, folders must be named.
  find_library(PINNACE_SPIRV_CROSS spirv-cross-c-shared NO_CMAKE_FIND_ROOT_PATH
               PATHS /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
  # Of the system or a toolchain's include folders, so it needs no flag.
  find_path(PINNACE_VULKAN_HEADERS vulkan/vulkan.h HINTS ${CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES}
            NO_CMAKE_FIND_ROOT_PATH)
  set(missing)
  foreach(need Python_EXECUTABLE PINNACE_GLSLC PINNACE_SPIRV_OPT PINNACE_SPIRV_VAL PINNACE_SPIRV_CROSS
          PINNACE_VULKAN_HEADERS)
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
