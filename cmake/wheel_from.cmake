# A wheel of what a build already has (PINNACE_WHEEL_FROM): installing takes the files that bindings/CMakeLists.txt names
# from there. scripts/wheel.sh does so with build/release, so that nothing is compiled twice.
if(NOT EXISTS ${PINNACE_WHEEL_FROM}/cmake_install.cmake)
  message(FATAL_ERROR "PINNACE_WHEEL_FROM: ${PINNACE_WHEEL_FROM} is no build of pinnace")
endif()
add_custom_target(_core)  # which pyproject.toml has built
install(CODE "
  set(strip)
  if(CMAKE_INSTALL_DO_STRIP)
    set(strip --strip)
  endif()
  execute_process(COMMAND \${CMAKE_COMMAND} --install \"${PINNACE_WHEEL_FROM}\" --component wheel \${strip}
                          --prefix \"\${CMAKE_INSTALL_PREFIX}\" COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT wheel)
