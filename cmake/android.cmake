# Cross-builds for Android with the toolchain of an NDK, which the environment names: ANDROID_NDK=/path/to/ndk. The presets
# android-* use it. No NDK has been at hand here: these presets have not been run.
if(NOT DEFINED ENV{ANDROID_NDK})
  message(FATAL_ERROR "ANDROID_NDK is not set: it names the folder of an Android NDK (r27 or later)")
endif()
set(PINNACE_NDK_TOOLCHAIN $ENV{ANDROID_NDK}/build/cmake/android.toolchain.cmake)
if(NOT EXISTS ${PINNACE_NDK_TOOLCHAIN})
  message(FATAL_ERROR "ANDROID_NDK: $ENV{ANDROID_NDK} is no Android NDK: it has no build/cmake/android.toolchain.cmake")
endif()
set(ANDROID_STL c++_static)  # inside the library, which shows none of it
include(${PINNACE_NDK_TOOLCHAIN})

# What consists of headers alone is the same everywhere, but lies beside headers that are not: seen through links.
foreach(header CLI flatbuffers vulkan vk_video xxhash.h)
  if(EXISTS /usr/include/${header} AND NOT EXISTS ${CMAKE_BINARY_DIR}/headers/${header})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/headers)
    file(CREATE_LINK /usr/include/${header} ${CMAKE_BINARY_DIR}/headers/${header} SYMBOLIC)
  endif()
endforeach()
list(APPEND CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR}/headers)
