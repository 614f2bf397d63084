# SPDX-License-Identifier: Apache-2.0
# Compiler flags, ccache, mold and sanitizers. Everything that a preset may set is a cache variable here.

set(BERTH_SANITIZE "" CACHE STRING "value of -fsanitize=, empty for none")
set(BERTH_OPTIMIZE "-O1 -g1" CACHE STRING "optimisation and debug flags of the product")
set(BERTH_TEST_OPTIMIZE "-O0 -g1" CACHE STRING "the same for tests, which should compile quickly")
set(BERTH_CHAOS ON CACHE BOOL "compile CHAOS and REACHED marks in (rt/chaos.h); off in what users run")
set(BERTH_CLANG_TIDY OFF CACHE BOOL "run the full clang-tidy set while compiling")

find_program(BERTH_CCACHE ccache)
if(BERTH_CCACHE)
  # Relative paths and no directory in the hash: a fresh clone elsewhere hits the same cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 ${BERTH_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# Flags of our own code live on this target; generated code does not link it.
add_library(berth_flags INTERFACE)
target_include_directories(berth_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(berth_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror)
if(BERTH_CHAOS)
  target_compile_definitions(berth_flags INTERFACE BERTH_CHAOS)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # offsetof on described structs is how meta/type.h builds its tables; both compilers support it.
  target_compile_options(berth_flags INTERFACE -Wthread-safety -Wno-invalid-offsetof -Wno-sign-conversion
    -Wno-missing-field-initializers -Wno-missing-designated-field-initializers)
  add_compile_options(-fPIE)
  add_link_options(-pie -fuse-ld=mold)
  add_compile_options(-fdebug-prefix-map=${CMAKE_SOURCE_DIR}=.)
  # Without the header itself, which CMake names beside it: ccache does not make that path relative.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
  # A time of day inside the precompiled header would make it a new one for ccache in every tree.
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
else()
  # A second opinion, not a gate: g++ 12 miscompiles braces inside co_await (see docs/adr), so nothing is linked.
  target_compile_options(berth_flags INTERFACE -Wno-invalid-offsetof -Wno-sign-conversion
    -Wno-missing-field-initializers -Wno-error)
  add_compile_options(-fsyntax-only)
  set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_COMMAND> -E touch <TARGET>")
  set(CMAKE_CXX_ARCHIVE_APPEND "")
  set(CMAKE_CXX_ARCHIVE_FINISH "")
  set(CMAKE_CXX_LINK_EXECUTABLE "<CMAKE_COMMAND> -E touch <TARGET>")
endif()

if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
  if(BERTH_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()

# Everything is instrumented for libFuzzer, which is linked to one program only (test/fuzz).
option(BERTH_FUZZ "build the fuzzers" OFF)
if(BERTH_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

separate_arguments(BERTH_OPTIMIZE_LIST UNIX_COMMAND "${BERTH_OPTIMIZE}")
separate_arguments(BERTH_TEST_OPTIMIZE_LIST UNIX_COMMAND "${BERTH_TEST_OPTIMIZE}")

if(BERTH_CLANG_TIDY)
  set(CMAKE_CXX_CLANG_TIDY clang-tidy-19)
endif()
