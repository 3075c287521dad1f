# Metal's kernels compiled for this processor: translated to C++ by translate.py, compiled by clang, which alone has the
# vectors and half floats that they are made of, and linked with the engine to a library of one exported function.

# pinnace_find_softmetal(VAR): whether clang 16 or later is found, PINNACE_SOFTMETAL_CLANG, and the build is for this machine.
# Fibers are unknown to the thread sanitizer.
function(pinnace_find_softmetal variable)
  set(${variable} OFF PARENT_SCOPE)
  set(missing)
  find_program(PINNACE_SOFTMETAL_CLANG NAMES clang++-19 clang++-18 clang++-17 clang++-16 clang++)
  if(CMAKE_CROSSCOMPILING OR PINNACE_SANITIZE MATCHES "thread")
    set(missing "cross builds and thread sanitizer builds go without")
  elseif(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|aarch64")
    set(missing "there is no switch between fibers for ${CMAKE_SYSTEM_PROCESSOR}")
  elseif(NOT PINNACE_SOFTMETAL_CLANG)
    set(missing "there is no clang++ 16 or later")
  else()
    execute_process(COMMAND ${PINNACE_SOFTMETAL_CLANG} -dumpversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(version VERSION_LESS 16)
      set(missing "${PINNACE_SOFTMETAL_CLANG} is version ${version}, needs 16")
    endif()
  endif()
  if(missing)
    message(STATUS "Target softmetal is left out: ${missing}")
    return()
  endif()
  set(${variable} ON PARENT_SCOPE)
endfunction()

# pinnace_find_objcxx(VAR): whether tests can build Objective-C++ on Linux, which takes GCC with gobjc++. A macro: languages
# are enabled where they are used.
macro(pinnace_find_objcxx variable)
  set(${variable} OFF)
  if(PINNACE_TESTS AND PINNACE_HAS_SOFTMETAL AND NOT APPLE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(CMAKE_OBJCXX_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "Objective-C++ compiler")
    set(CMAKE_OBJCXX_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -x objective-c++ -fsyntax-only /dev/null
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      enable_language(OBJCXX)
      set(${variable} ON)
    else()
      message(STATUS "The Metal driver's test is left out: ${CMAKE_CXX_COMPILER} has no Objective-C++ (gobjc++)")
    endif()
  endif()
endmacro()

# pinnace_softmetal_library(TARGET BATCHES FOLDER file...): a library of every kernel in FOLDER's .metal files, which exist
# when the `file`s do. BATCHES: in so many objects, by name, so that a changed kernel compiles little.
function(pinnace_softmetal_library target batches folder)
  set(made ${PROJECT_BINARY_DIR}/generated/${target})
  set(sources)
  math(EXPR last "${batches} - 1")
  foreach(i RANGE ${last})
    list(APPEND sources ${made}/kernels_${i}.cc)
  endforeach()
  set(script ${PROJECT_SOURCE_DIR}/cpp/backends/softmetal/translate.py)
  add_custom_command(
    OUTPUT ${sources} ${made}/kernel_table.cc
    COMMAND ${Python_EXECUTABLE} ${script} ${made} ${batches} ${folder}
    DEPENDS ${script} ${ARGN}
    VERBATIM)
  # -O1 compiles in a third of the time of -O2 and runs as fast within a tenth. Metal's char is signed, half is rounded
  # after every operation, and products are fused where the text says so.
  set(flags -std=c++2b -O1 -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -fno-math-errno -ffp-contract=off
            -fsigned-char -Xclang -ffloat16-excess-precision=none -Wall -Wno-unused-variable)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND flags -march=x86-64-v3)  # engine.cc asks the processor for it
  endif()
  set(objects)
  foreach(source ${sources})
    set(object ${source}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${PINNACE_COMPILER_LAUNCHER} ${PINNACE_SOFTMETAL_CLANG} ${flags} -I${PROJECT_SOURCE_DIR}/cpp
              -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source}
      DEPFILE ${object}.d
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_library(${target} SHARED $<TARGET_OBJECTS:softmetal_engine> ${made}/kernel_table.cc ${objects})
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cpp)
  target_link_libraries(${target} PRIVATE Threads::Threads)
  target_link_options(${target} PRIVATE -Wl,-z,max-page-size=16384)
endfunction()
