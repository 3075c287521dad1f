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
foreach(folder flatbuffers CLI)
  if(EXISTS /usr/include/${folder} AND NOT EXISTS ${CMAKE_BINARY_DIR}/headers/${folder})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/headers)
    file(CREATE_LINK /usr/include/${folder} ${CMAKE_BINARY_DIR}/headers/${folder} SYMBOLIC)
  endif()
endforeach()
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR}/headers)

find_program(PINNACE_QEMU qemu-aarch64)
if(PINNACE_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${PINNACE_QEMU} -L /usr/aarch64-linux-gnu -cpu max)
endif()
