# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: libraries, headers, and what lets CMake and pkg-config find them.
include(CMakePackageConfigHelpers)

# The third parties that the library links, for users of the static one: from the list in the top CMakeLists.txt.
set(pawl_pc_requires "")
set(pawl_find_modules "")
foreach(target ${third_parties})
    if(target MATCHES "^PkgConfig::(.*)$")
        set(name ${CMAKE_MATCH_1})
        string(APPEND pawl_pc_requires " ${${name}_MODULE_NAME}")
        string(APPEND pawl_find_modules
            "pkg_check_modules(${name} QUIET REQUIRED IMPORTED_TARGET ${${name}_MODULE_NAME})\n")
    endif()
endforeach()
string(STRIP "${pawl_pc_requires}" pawl_pc_requires)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pawl)
install(TARGETS pawl pawl_test EXPORT pawlTargets)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/pawl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT pawlTargets NAMESPACE pawl:: DESTINATION ${config_dir})

set(generated ${CMAKE_BINARY_DIR}/install)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/pawlConfig.cmake.in ${generated}/pawlConfig.cmake
    INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${generated}/pawlConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/pawlConfig.cmake ${generated}/pawlConfigVersion.cmake DESTINATION ${config_dir})
# From the .pc file's own place, so that `cmake --install --prefix` works anywhere.
file(RELATIVE_PATH pawl_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pawl_pc_prefix "${pawl_pc_prefix}")
foreach(pc pawl pawl-test)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${pc}.pc.in ${generated}/${pc}.pc @ONLY)
    install(FILES ${generated}/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
