# Cross-builds for ARM64 Linux with Debian's crossbuild-essential-arm64; `cmake --preset arm64` uses it. Tests run in
# qemu's user mode, where that is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Libraries and headers of this machine are another architecture's; programs (flatc, qemu) are this machine's.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# What consists of headers alone is the same everywhere, but lies beside those that are not: seen through links.
foreach(folder flatbuffers CLI vulkan vk_video)
  if(EXISTS /usr/include/${folder} AND NOT EXISTS ${CMAKE_BINARY_DIR}/headers/${folder})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/headers)
    file(CREATE_LINK /usr/include/${folder} ${CMAKE_BINARY_DIR}/headers/${folder} SYMBOLIC)
  endif()
endforeach()
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR}/headers)

# For importers and the Python extension: a folder with Debian's ARM64 packages (tests/arm64/make_root.sh).
set(PINNACE_ARM64_ROOT "" CACHE PATH "Root of ARM64 packages; empty: the runtime library alone can be built")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PINNACE_ARM64_ROOT)
if(PINNACE_ARM64_ROOT)
  set(packages ${PINNACE_ARM64_ROOT}/usr/lib/aarch64-linux-gnu)
  list(APPEND CMAKE_FIND_ROOT_PATH ${PINNACE_ARM64_ROOT})
  set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
  set(ENV{PKG_CONFIG_SYSROOT_DIR} ${PINNACE_ARM64_ROOT})
  set(ENV{PKG_CONFIG_LIBDIR} ${packages}/pkgconfig)
  # Of Python the interpreter is this machine's, headers and the extension's name are the other's.
  set(Python_INCLUDE_DIR ${PINNACE_ARM64_ROOT}/usr/include/python3.11)
  set(Python_SOABI cpython-311-aarch64-linux-gnu)
  set(PYTHON_MODULE_EXTENSION .cpython-311-aarch64-linux-gnu.so)
  # Headers behind the compiler's own; what its libraries need lies beside them.
  string(APPEND CMAKE_CXX_FLAGS_INIT " -idirafter ${PINNACE_ARM64_ROOT}/usr/include")
  string(APPEND CMAKE_SHARED_LINKER_FLAGS_INIT " -Wl,-rpath-link,${packages}")
  string(APPEND CMAKE_MODULE_LINKER_FLAGS_INIT " -Wl,-rpath-link,${packages}")
endif()

find_program(PINNACE_QEMU qemu-aarch64)
if(PINNACE_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${PINNACE_QEMU} -L /usr/aarch64-linux-gnu -cpu max)
endif()
