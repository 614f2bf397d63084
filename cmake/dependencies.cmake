# SPDX-License-Identifier: Apache-2.0
# Debian's libraries, each as one target dep_<name>. Includes are SYSTEM: their warnings are not ours.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)

function(berth_dependency name)
  add_library(dep_${name} INTERFACE)
  target_link_libraries(dep_${name} INTERFACE ${ARGN})
endfunction()

function(berth_pkg_dependency name package)
  pkg_check_modules(${name}_pc REQUIRED IMPORTED_TARGET ${package})
  berth_dependency(${name} PkgConfig::${name}_pc)
endfunction()

berth_dependency(threads Threads::Threads)
berth_dependency(openssl OpenSSL::SSL OpenSSL::Crypto)
berth_dependency(fmt fmt)
target_compile_definitions(dep_fmt INTERFACE FMT_SHARED)
berth_dependency(spdlog spdlog fmt)
target_compile_definitions(dep_spdlog INTERFACE SPDLOG_COMPILED_LIB SPDLOG_SHARED_LIB SPDLOG_FMT_EXTERNAL)
berth_dependency(boost)  # headers only: asio, beast
berth_dependency(simdjson simdjson)
berth_dependency(yaml yaml-cpp)
berth_dependency(rocksdb rocksdb)
berth_dependency(prometheus prometheus-cpp-core)
berth_dependency(cli11)  # headers only
berth_pkg_dependency(grpc grpc++)
berth_pkg_dependency(protobuf protobuf)

find_package(GTest REQUIRED)
berth_dependency(gtest GTest::gtest GTest::gmock)
