# SPDX-License-Identifier: Apache-2.0
# Debian's libraries, each as one target dep_<name>. Includes are SYSTEM: their warnings are not ours.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)

function(berth_dependency name)
  add_library(dep_${name} INTERFACE)
  target_link_libraries(dep_${name} INTERFACE ${ARGN})
endfunction()

# pkg_check_modules asks pkg-config a dozen times, 17 s for gRPC with its Abseil tree; two questions are enough.
function(berth_pkg_dependency name package)
  if(NOT DEFINED BERTH_PKG_${name}_LIBS)
    execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --libs ${package}
      OUTPUT_VARIABLE libs OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --cflags-only-I ${package}
      OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(libs UNIX_COMMAND "${libs}")
    separate_arguments(flags UNIX_COMMAND "${flags}")
    list(FILTER libs INCLUDE REGEX "^-l")
    list(REMOVE_DUPLICATES libs)
    set(BERTH_PKG_${name}_LIBS "${libs}" CACHE INTERNAL "what ${package} links")
    set(BERTH_PKG_${name}_FLAGS "${flags}" CACHE INTERNAL "how ${package} is compiled against")
  endif()
  berth_dependency(${name} ${BERTH_PKG_${name}_LIBS})
  target_compile_options(dep_${name} INTERFACE ${BERTH_PKG_${name}_FLAGS})
endfunction()

berth_dependency(threads Threads::Threads)
berth_dependency(nghttp2 nghttp2)
berth_dependency(openssl OpenSSL::SSL OpenSSL::Crypto)
berth_dependency(fmt fmt)
target_compile_definitions(dep_fmt INTERFACE FMT_SHARED)
berth_dependency(spdlog spdlog fmt)
target_compile_definitions(dep_spdlog INTERFACE SPDLOG_COMPILED_LIB SPDLOG_SHARED_LIB SPDLOG_FMT_EXTERNAL)
# Headers only: asio, beast. Where Debian's default Boost (1.74) is installed, scripts/ unpack 1.81 beside it.
berth_dependency(boost)
if(EXISTS ${CMAKE_SOURCE_DIR}/build/tools/boost-1.81/usr/include/boost)
  target_include_directories(dep_boost SYSTEM INTERFACE ${CMAKE_SOURCE_DIR}/build/tools/boost-1.81/usr/include)
endif()
berth_dependency(simdjson simdjson)
berth_dependency(yaml yaml-cpp)
berth_dependency(packing z zstd)
berth_dependency(rocksdb rocksdb)
# Loaded when a hypervisor starts (runtime/machine/libvirt_library.h). A sanitizer looks up what it intercepts of the
# libraries behind it when the program starts, so there they are loaded with it.
berth_dependency(libvirt)
if(BERTH_SANITIZE)
  target_link_libraries(dep_libvirt INTERFACE "-Wl,--push-state,--no-as-needed,-lvirt,--pop-state")
endif()
berth_dependency(prometheus prometheus-cpp-core)
# The allocator of what users run (docs/adr): a sanitizer brings its own.
berth_dependency(allocator)
if(NOT BERTH_SANITIZE)
  target_link_libraries(dep_allocator INTERFACE jemalloc)
endif()
berth_pkg_dependency(grpc grpc++)
berth_pkg_dependency(protobuf protobuf)

find_package(GTest REQUIRED)
berth_dependency(gtest GTest::gtest GTest::gmock)
