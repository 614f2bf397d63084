# SPDX-License-Identifier: Apache-2.0
# berth_library(FOLDER LAYER n DEPS folder... LINK dep...)
#
# One folder below src/ is one library: all its .cc files, and one test program of its *_test.cc files, named
# after the folder. A library may depend on lower layers, and on its own top folder (store/rocks on store). Anything
# else fails here, at configure time; tools/tidy compares the #includes with the same table.

set_property(GLOBAL PROPERTY BERTH_LAYERS "")

function(berth_target_name out folder)
  string(REPLACE "/" "_" name "${folder}")
  set(${out} "berth_${name}" PARENT_SCOPE)
endfunction()

function(berth_check_layers folder layer)
  string(REGEX REPLACE "/.*" "" top "${folder}")
  foreach(dep IN LISTS ARGN)
    get_property(dep_layer GLOBAL PROPERTY "BERTH_LAYER_${dep}")
    if("${dep_layer}" STREQUAL "")
      message(FATAL_ERROR "${folder} depends on ${dep}, which is not declared above it in src/CMakeLists.txt")
    endif()
    string(REGEX REPLACE "/.*" "" dep_top "${dep}")
    if(dep_layer GREATER_EQUAL layer AND NOT dep_top STREQUAL top)
      message(FATAL_ERROR "layers: ${folder} (L${layer}) must not depend on ${dep} (L${dep_layer})")
    endif()
  endforeach()
endfunction()

function(berth_library folder)
  cmake_parse_arguments(arg "" "LAYER" "DEPS;LINK;TEST_DEPS;TEST_LINK" ${ARGN})
  berth_check_layers(${folder} ${arg_LAYER} ${arg_DEPS})
  set_property(GLOBAL PROPERTY "BERTH_LAYER_${folder}" ${arg_LAYER})

  set(dir ${CMAKE_SOURCE_DIR}/src/${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  berth_target_name(target ${folder})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(${target} PRIVATE ${BERTH_OPTIMIZE_LIST})
    target_precompile_headers(${target} REUSE_FROM berth_pch)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(${target} ${scope} berth_flags)
  foreach(dep IN LISTS arg_DEPS)
    berth_target_name(dep_target ${dep})
    target_link_libraries(${target} ${scope} ${dep_target})
  endforeach()
  foreach(dep IN LISTS arg_LINK)
    target_link_libraries(${target} ${scope} dep_${dep})
  endforeach()

  if(tests)
    berth_test(${folder} SOURCES ${tests} DEPS ${folder} ${arg_TEST_DEPS} LINK ${arg_TEST_LINK})
  endif()
endfunction()

# One gtest program per folder, one ctest entry per program.
function(berth_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LINK" ${ARGN})
  berth_target_name(target ${name})
  add_executable(${target}_test ${arg_SOURCES})
  target_compile_options(${target}_test PRIVATE ${BERTH_TEST_OPTIMIZE_LIST})
  target_precompile_headers(${target}_test REUSE_FROM berth_test_pch)
  foreach(dep IN LISTS arg_DEPS)
    berth_target_name(dep_target ${dep})
    target_link_libraries(${target}_test PRIVATE ${dep_target})
  endforeach()
  foreach(dep IN LISTS arg_LINK)
    target_link_libraries(${target}_test PRIVATE dep_${dep})
  endforeach()
  target_link_libraries(${target}_test PRIVATE berth_flags berth_test_main dep_gtest)
  berth_register_unit_test(${name} ${target}_test)
endfunction()

# A precompiled header holds the paths of its tree, so that ccache would know it in that tree only. This is what it takes
# instead (CCACHE_PCH_EXTSUM): all that the headers say.
function(berth_sum_of_pch target)
  set(folder ${CMAKE_BINARY_DIR}/CMakeFiles/${target}.dir)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \\1\n" OUTPUT_VARIABLE lines)
  string(CONCAT text ${lines})
  file(WRITE ${folder}/sum.cc "${text}")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${CMAKE_CXX23_STANDARD_COMPILE_OPTION} -E -P -dD ${folder}/sum.cc
    OUTPUT_FILE ${folder}/sum.txt RESULT_VARIABLE failed)
  if(NOT failed)
    file(SHA256 ${folder}/sum.txt sum)
    file(WRITE ${folder}/cmake_pch.hxx.pch.sum "${sum}")
  endif()
  file(REMOVE ${folder}/sum.txt)
endfunction()

# Precompiled std (and gtest) headers: -0.8 s per library file, -1.9 s per test file.
set(pch_headers <algorithm> <chrono> <coroutine> <cstdint> <deque> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <unordered_map> <utility> <variant> <vector>)
set(test_pch_headers <coroutine> <functional> <map> <memory> <optional> <string> <string_view> <vector> <gtest/gtest.h>)
file(WRITE ${CMAKE_BINARY_DIR}/pch.cc "")
add_library(berth_pch OBJECT ${CMAKE_BINARY_DIR}/pch.cc)
target_link_libraries(berth_pch PRIVATE berth_flags)
target_compile_options(berth_pch PRIVATE ${BERTH_OPTIMIZE_LIST})
target_precompile_headers(berth_pch PRIVATE ${pch_headers})
berth_sum_of_pch(berth_pch ${pch_headers})

add_library(berth_test_pch OBJECT ${CMAKE_BINARY_DIR}/pch.cc)
target_link_libraries(berth_test_pch PRIVATE berth_flags dep_gtest)
target_compile_options(berth_test_pch PRIVATE ${BERTH_TEST_OPTIMIZE_LIST})
target_precompile_headers(berth_test_pch PRIVATE ${test_pch_headers})
berth_sum_of_pch(berth_test_pch ${test_pch_headers})
