# What `cmake --install` leaves: libraries, headers, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

install(TARGETS ${PINNACE_TARGETS} EXPORT pinnace-targets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/cpp/include/pinnace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT pinnace-targets NAMESPACE pinnace:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pinnace)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/pinnace-config.cmake.in
                              ${PROJECT_BINARY_DIR}/pinnace-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pinnace)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pinnace-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pinnace-config.cmake ${PROJECT_BINARY_DIR}/pinnace-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pinnace)
file(RELATIVE_PATH PINNACE_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/pinnace.pc.in ${PROJECT_BINARY_DIR}/pinnace.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pinnace.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
