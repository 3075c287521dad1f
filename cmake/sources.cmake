# Functions that CMakeLists.txt is made of: finding sources, the flags of the C++ core, generated code, dependencies.

# pinnace_sources(VAR folder...): every .cc below cpp/<folder>, without those that are compiled once per instruction set.
function(pinnace_sources variable)
  set(found)
  foreach(folder ${ARGN})
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cpp/${folder}/*.cc)
    list(APPEND found ${files})
  endforeach()
  get_property(bodies GLOBAL PROPERTY PINNACE_BODIES)
  list(REMOVE_ITEM found ${bodies})
  # Size counts: on devices, and in the memory of every process. All but the CPU's kernels and changes of layout: -O2,
  # and on ARM64, where models are only run, -Os, half of what -O3 makes of it. There what only drives kernels has no
  # loops cloned and unrolled either, and what moves elements of any type is small.
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(others "-O2")
    set(drivers "-O3")
    set(moves "-O3")
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
      # What several objects have in common is shared when they are linked: no copies of it in functions that use it once.
      set(others "-Os" "$<$<CXX_COMPILER_ID:GNU>:--param=comdat-sharing-probability=100>")
      set(drivers "-O2")
      set(moves "-Os")
    endif()
    get_property(small GLOBAL PROPERTY PINNACE_SMALL)
    get_property(fast GLOBAL PROPERTY PINNACE_FAST)
    foreach(file ${found})
      pinnace_is_kernel(kernel ${file})
      if(file IN_LIST small)
        set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS ${moves})
      elseif(kernel)
        set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS ${drivers})
      elseif(NOT file IN_LIST fast)
        set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS ${others})
      endif()
    endforeach()
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# pinnace_only(VAR model.pnc...): leaves in VAR the sources that these models need, puts lists of their operators and
# kernels before the full ones, and builds for size what is not a kernel. What nobody refers to the linker leaves out.
function(pinnace_only variable)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
  set(folder ${PROJECT_BINARY_DIR}/only)
  set(script ${PROJECT_SOURCE_DIR}/cmake/only.py)
  set(models)
  foreach(model ${ARGN})
    get_filename_component(model ${model} ABSOLUTE BASE_DIR ${CMAKE_BINARY_DIR})
    list(APPEND models ${model})
  endforeach()
  execute_process(COMMAND ${Python_EXECUTABLE} ${script} ${PROJECT_SOURCE_DIR} ${folder} ${models}
                  OUTPUT_VARIABLE unused OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cpp/backends/cpu/kernels.inc
       ${PROJECT_SOURCE_DIR}/cpp/backends/cpu/*/kernels.inc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${models} ${script}
               ${PROJECT_SOURCE_DIR}/cmake/kernel_lists.py ${PROJECT_SOURCE_DIR}/cpp/ops/ops.inc
               ${PROJECT_SOURCE_DIR}/cpp/ops/unary.inc ${kernels})
  list(POP_FRONT unused dtypes)
  set(kept ${${variable}})
  # Rules of other back ends ask operators that the models lack for their windows and axes: there the linker decides.
  if(NOT PINNACE_ONLY_GPU AND NOT PINNACE_ONLY_NNAPI)
    foreach(op ${unused})
      list(REMOVE_ITEM kept ${PROJECT_SOURCE_DIR}/cpp/ops/${op}.cc)
    endforeach()
  endif()
  set(backends)
  if(PINNACE_ONLY_GPU)
    string(APPEND backends "#if defined(PINNACE_HAS_VULKAN)\nBACKEND(vulkan)\n#endif\n")
  endif()
  if(PINNACE_ONLY_NNAPI)
    string(APPEND backends "BACKEND(nnapi)\n")
  else()
    list(FILTER kept EXCLUDE REGEX "/cpp/(backends/nnapi|nnapi)/")
  endif()
  file(CONFIGURE OUTPUT ${folder}/backends/backends.inc CONTENT "${backends}BACKEND(cpu)\n")
  get_property(small GLOBAL PROPERTY PINNACE_SMALL)
  foreach(file ${kept})
    pinnace_is_kernel(kernel ${file})
    if(kernel AND NOT file IN_LIST small)
      set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS -O2)
    else()
      set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS -Os)
    endif()
  endforeach()
  set(${variable} ${kept} PARENT_SCOPE)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON PARENT_SCOPE)
  include_directories(BEFORE ${folder})
  add_compile_definitions(PINNACE_DTYPES=${dtypes})
  add_compile_options(-ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables -ffat-lto-objects)
  add_link_options(-Wl,--gc-sections -s)
endfunction()

# Include paths and flags of code below cpp/: no RTTI. Nothing is thrown there, but the standard library throws
# std::bad_alloc: frames clean up behind it (-fexceptions) until a public border turns it into kOutOfMemory.
function(pinnace_core target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cpp ${PROJECT_SOURCE_DIR}/cpp/include)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fexceptions -fno-rtti>)
  # On devices size counts: functions are sections of their own, and the linker leaves out what nothing calls. Tables to
  # unwind by describe calls alone (an exception is thrown by a call), not every instruction.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables)
  endif()
  target_compile_definitions(${target} PRIVATE PINNACE_BUILDING=1 PINNACE_VERSION="${PROJECT_VERSION}")
endfunction()

# The threads of the pool live as long as the process, asleep in the library's code: dlclose leaves it where it is, and
# the next dlopen finds it there with its threads. What a library lacks is missed when it is linked, not when it is
# loaded; only a sanitizer's functions may be the program's.
function(pinnace_shared target)
  target_link_options(${target} PRIVATE -Wl,-z,nodelete)
  if(NOT PINNACE_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

# What every installed library has: public headers, threads.
function(pinnace_library target)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/cpp/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC Threads::Threads)
  target_link_options(${target} PRIVATE -Wl,-z,max-page-size=16384)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    target_link_options(${target} PRIVATE -Wl,--gc-sections)
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    set(map ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    if(PINNACE_ONLY)  # what is exported cannot be left out: C functions alone, C++ has the static library
      set(map ${PROJECT_SOURCE_DIR}/cmake/exports_c.map)
    endif()
    target_link_options(${target} PRIVATE -Wl,--version-script=${map})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
    pinnace_shared(${target})
  endif()
endfunction()

# Header from a FlatBuffers schema, when the schema is there. The object API is what the writer and the tests use.
function(pinnace_flatbuffers target schema)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${schema})
    return()
  endif()
  find_program(FLATC flatc REQUIRED)
  get_filename_component(name ${schema} NAME_WE)
  set(folder ${PROJECT_BINARY_DIR}/generated/program)
  add_custom_command(
    OUTPUT ${folder}/${name}_generated.h
    COMMAND ${FLATC} --cpp --no-prefix --scoped-enums --gen-object-api -o ${folder} ${PROJECT_SOURCE_DIR}/${schema}
    DEPENDS ${PROJECT_SOURCE_DIR}/${schema}
    VERBATIM)
  target_sources(${target} PRIVATE ${folder}/${name}_generated.h)
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/generated)
endfunction()

# onnx.proto comes from the pinned onnx package. Its C++ package is renamed: another library in the process may hold the
# generated classes of the same proto.
function(pinnace_host_dependencies target)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
  find_package(Protobuf REQUIRED)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
            "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('onnx').origin).parent / 'onnx.proto')"
    OUTPUT_VARIABLE onnx_proto OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(folder ${PROJECT_BINARY_DIR}/generated/onnx)
  file(MAKE_DIRECTORY ${folder})
  file(READ ${onnx_proto} text)
  string(REGEX REPLACE "\npackage onnx;" "\npackage pinnace.onnx_proto;\noption optimize_for = LITE_RUNTIME;" text "${text}")
  string(REGEX REPLACE "\noption optimize_for = LITE_RUNTIME;(.*)\noption optimize_for = LITE_RUNTIME;"
                       "\noption optimize_for = LITE_RUNTIME;\\1" text "${text}")
  file(CONFIGURE OUTPUT ${folder}/onnx_model.proto CONTENT "${text}" @ONLY)
  add_custom_command(
    OUTPUT ${folder}/onnx_model.pb.cc ${folder}/onnx_model.pb.h
    COMMAND protobuf::protoc --cpp_out=${folder} --proto_path=${folder} ${folder}/onnx_model.proto
    DEPENDS ${folder}/onnx_model.proto
    VERBATIM)
  set_source_files_properties(${folder}/onnx_model.pb.cc PROPERTIES COMPILE_OPTIONS "-w")
  target_sources(${target} PRIVATE ${folder}/onnx_model.pb.cc ${folder}/onnx_model.pb.h)
  target_include_directories(${target} PRIVATE ${folder})
  target_compile_definitions(${target} PRIVATE SIMDJSON_EXCEPTIONS=0)
  # spdlog and fmt are headers here (convert/host_log.cc), nothing to link or to bring along. For another processor they
  # lie where the compiler looks anyway.
  find_path(PINNACE_SPDLOG spdlog/logger.h REQUIRED)
  if(NOT CMAKE_CROSSCOMPILING)
    target_include_directories(${target} SYSTEM PRIVATE ${PINNACE_SPDLOG})
  endif()
endfunction()

function(pinnace_host_link target scope)
  find_package(simdjson REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
  find_package(Protobuf REQUIRED)
  target_link_libraries(${target} ${scope} protobuf::libprotobuf-lite simdjson::simdjson PkgConfig::LIBZIP)
endfunction()
