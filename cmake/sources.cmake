# Functions that the CMakeLists.txt files are made of: a folder's sources, the flags of the C++ core.

# pinnace_sources(target [ONLY file...] [EXCEPT file...]): every .cc of this folder, or these alone, or all but these, is
# compiled as part of the target, once; but not those that are compiled once per instruction set.
function(pinnace_sources target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ONLY;EXCEPT")
  file(GLOB found CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(arg_ONLY)
    set(found ${arg_ONLY})
  endif()
  list(REMOVE_ITEM found ${arg_EXCEPT})
  list(TRANSFORM found PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  get_property(bodies GLOBAL PROPERTY PINNACE_BODIES)
  list(REMOVE_ITEM found ${bodies})
  target_sources(${target} PRIVATE ${found})
  foreach(file ${found})
    pinnace_optimization(options ${file})
    if(PINNACE_FUZZ)
      pinnace_fuzz_options(more)
      list(APPEND options ${more})
    endif()
    set_property(SOURCE ${file} TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_OPTIONS ${options})
    # What a precompiled header was compiled with is what GCC optimises the whole file with (cmake/precompiled.cmake).
    if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT options STREQUAL "-O2")
      set_property(SOURCE ${file} TARGET_DIRECTORY ${target} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# Size counts: on devices, and in the memory of every process. All but the CPU's kernels and changes of layout: -O2,
# and on ARM64, where models are only run, -Os, half of what -O3 makes of it. There what only drives kernels has no
# loops cloned and unrolled either, and what moves elements of any type is small. A build for one model (PINNACE_ONLY) is
# built for size wherever it runs.
function(pinnace_optimization variable file)
  set(options)
  pinnace_is_kernel(kernel ${file})
  get_property(small GLOBAL PROPERTY PINNACE_SMALL)
  get_property(fast GLOBAL PROPERTY PINNACE_FAST)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(others "-O2")
    set(drivers "-O3")
    set(moves "-O3")
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
      # What several objects have in common is shared when they are linked: no copies of it in functions that use it once.
      # Nor frame pointers, which two instructions of every function keep: who unwinds such code has its tables. Kernels of
      # an instruction set have none, and keep theirs.
      set(others "-Os" "-fomit-frame-pointer" "$<$<CXX_COMPILER_ID:GNU>:--param=comdat-sharing-probability=100>")
      set(drivers "-O2" "-fomit-frame-pointer")
      set(moves "-Os" "-fomit-frame-pointer")
    endif()
    if(file IN_LIST small)
      set(options ${moves})
    elseif(kernel)
      set(options ${drivers})
    elseif(file IN_LIST fast)
      set(options "-O3")
    else()
      set(options ${others})
    endif()
  endif()
  if(PINNACE_ONLY AND kernel AND NOT file IN_LIST small)
    list(APPEND options -O2)
  elseif(PINNACE_ONLY)
    list(APPEND options -Os)
  endif()
  set(${variable} ${options} PARENT_SCOPE)
endfunction()

# pinnace_subfolders(): every folder in this one that has a CMakeLists.txt.
function(pinnace_subfolders)
  file(GLOB lists CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(list ${lists})
    cmake_path(GET list PARENT_PATH folder)
    add_subdirectory(${folder})
  endforeach()
endfunction()

# pinnace_test_sources([HOST name...]): every .cc of this folder is part of the C++ tests; those named need the host library
# and are left out where only the runtime is built.
function(pinnace_test_sources)
  cmake_parse_arguments(arg "" "" HOST ${ARGN})
  file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT PINNACE_HOST)
    list(TRANSFORM arg_HOST PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(TRANSFORM arg_HOST APPEND .cc)
    list(REMOVE_ITEM found "" ${arg_HOST})
  endif()
  target_sources(pinnace_tests PRIVATE ${found})
endfunction()

# pinnace_only(model.pnc...): a build for these models. Puts lists of their operators and kernels before the full ones, and
# leaves in PINNACE_UNUSED_OPERATORS the operators whose files are left out. What nobody refers to the linker leaves out.
function(pinnace_only)
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
  # Rules of other back ends ask operators that the models lack for their windows and axes: there the linker decides.
  if(PINNACE_ONLY_GPU OR PINNACE_ONLY_NNAPI)
    set(unused)
  endif()
  set(PINNACE_UNUSED_OPERATORS ${unused} PARENT_SCOPE)
  set(backends)
  if(PINNACE_ONLY_GPU)
    string(APPEND backends "#if defined(PINNACE_HAS_VULKAN)\nBACKEND(vulkan)\n#endif\n")
  endif()
  if(PINNACE_ONLY_NNAPI)
    string(APPEND backends "BACKEND(nnapi)\n")
  endif()
  file(CONFIGURE OUTPUT ${folder}/backends/backends.inc CONTENT "${backends}BACKEND(cpu)\n")
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
    set(map ${PROJECT_BINARY_DIR}/exports.map)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/exports.map.in ${map} @ONLY)
    if(PINNACE_ONLY)  # what is exported cannot be left out: C functions alone, C++ has the static library
      set(map ${PROJECT_SOURCE_DIR}/cmake/exports_c.map)
    endif()
    target_link_options(${target} PRIVATE -Wl,--version-script=${map})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
    pinnace_shared(${target})
  endif()
endfunction()

# What links the importers needs their libraries.
function(pinnace_host_link target scope)
  target_link_libraries(${target} ${scope} protobuf::libprotobuf-lite simdjson::simdjson PkgConfig::LIBZIP)
endfunction()
