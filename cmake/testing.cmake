# SPDX-License-Identifier: Apache-2.0
# What ctest knows. Four kinds of tests, which are also their ctest labels; a preset says which it runs:
#
#   tidy         house rules: layers, banned calls, formatting, cheap static checks
#   unit         the gtest programs of the libraries, one per folder
#   integration  the real binary on loopback: kubectl sessions, transcripts, security
#   release      the same, but only meaningful on the optimised binary: crashes by the hundred, time limits
#
# The target berth_check builds everything that the preset's tests need.

set(BERTH_TEST_KINDS "tidy;unit;integration" CACHE STRING "kinds of tests that ctest runs")
# The tsan preset's pattern leaves net/h2 and net/sim out: they have one thread, and their tests with grpc++ mostly run
# code that is not instrumented; so does store/etcd. It leaves store/rocks/faults out: its tests spend their time inside RocksDB, which is not
# instrumented; the store's own threads (commit, read) are under TSan in store/rocks.
set(BERTH_UNIT_TESTS "." CACHE STRING "regular expression: unit tests of these folders")
set(BERTH_TEST_PREFIX "" CACHE STRING "in front of every test name, to tell presets apart in one summary")

find_program(BERTH_PYTHON python3)
add_custom_target(berth_check)

# What the sanitizers are told. The symbolizer has to be named: left to themselves they find none of these, and then
# suppressions by name match nothing. gRPC is not instrumented; what of it is forgiven is in test/tsan.supp.
find_program(BERTH_SYMBOLIZER NAMES llvm-symbolizer-19 llvm-symbolizer addr2line)
set(BERTH_TEST_ENVIRONMENT
  "ASAN_OPTIONS=external_symbolizer_path=${BERTH_SYMBOLIZER}:detect_stack_use_after_return=1:strict_string_checks=1"
  "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/test/lsan.supp:print_suppressions=0"
  "UBSAN_OPTIONS=print_stacktrace=1:external_symbolizer_path=${BERTH_SYMBOLIZER}"
  "TSAN_OPTIONS=external_symbolizer_path=${BERTH_SYMBOLIZER}:ignore_noninstrumented_modules=1:suppressions=${CMAKE_SOURCE_DIR}/test/tsan.supp"
  "PYTHONDONTWRITEBYTECODE=1")

# berth_register_unit_test(NAME TARGET): a gtest program, if this preset runs it.
function(berth_register_unit_test name target)
  if(NOT "unit" IN_LIST BERTH_TEST_KINDS OR NOT name MATCHES "${BERTH_UNIT_TESTS}")
    return()
  endif()
  add_dependencies(berth_check ${target})
  add_test(NAME ${BERTH_TEST_PREFIX}${name} COMMAND ${target})
  set_tests_properties(${BERTH_TEST_PREFIX}${name} PROPERTIES
    TIMEOUT 300 LABELS unit ENVIRONMENT "${BERTH_TEST_ENVIRONMENT}")
endfunction()

# berth_script_test(NAME KIND SCRIPT file [ARGS ...] [TIMEOUT s] [PROCESSORS n])
#
# A program in Python (or anything executable) as a test. Kinds integration and release get the binary of this preset
# in $BERTH_BINARY.
function(berth_script_test name kind)
  cmake_parse_arguments(arg "" "SCRIPT;TIMEOUT;PROCESSORS" "ARGS" ${ARGN})
  if(NOT kind IN_LIST BERTH_TEST_KINDS)
    return()
  endif()
  set(environment ${BERTH_TEST_ENVIRONMENT})
  if(NOT kind STREQUAL "tidy")
    add_dependencies(berth_check berth)
    list(APPEND environment "BERTH_BINARY=$<TARGET_FILE:berth>")
  endif()
  set(command ${arg_SCRIPT})
  if(arg_SCRIPT MATCHES "\\.py$")
    set(command ${BERTH_PYTHON} ${arg_SCRIPT})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  add_test(NAME ${BERTH_TEST_PREFIX}${name} COMMAND ${command} ${arg_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${BERTH_TEST_PREFIX}${name} PROPERTIES
    TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS} LABELS ${kind} ENVIRONMENT "${environment}")
endfunction()
