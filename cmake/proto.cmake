# SPDX-License-Identifier: Apache-2.0
# berth_proto_library(NAME ROOT dir PROTOS file...)
#
# Makes the library dep_NAME from .proto files: messages and gRPC services, compiled without our warnings. ROOT is the
# directory below the source tree that imports and includes are relative to: ROOT proto, PROTOS a/b.proto gives
# #include "a/b.pb.h" and "a/b.grpc.pb.h". Link it with LINK NAME (or TEST_LINK NAME).

find_program(BERTH_PROTOC protoc REQUIRED)
find_program(BERTH_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)

function(berth_proto_library name)
  cmake_parse_arguments(arg "" "ROOT" "PROTOS" ${ARGN})
  set(root ${CMAKE_SOURCE_DIR}/${arg_ROOT})
  set(out ${CMAKE_BINARY_DIR}/proto/${name})
  file(MAKE_DIRECTORY ${out})
  set(sources)
  foreach(proto IN LISTS arg_PROTOS)
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(generated ${out}/${stem}.pb.cc ${out}/${stem}.pb.h ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
    add_custom_command(OUTPUT ${generated}
      COMMAND ${BERTH_PROTOC} -I${root} --cpp_out=${out} --grpc_out=${out}
              --plugin=protoc-gen-grpc=${BERTH_GRPC_PLUGIN} ${proto}
      DEPENDS ${root}/${proto} VERBATIM)
    list(APPEND sources ${out}/${stem}.pb.cc ${out}/${stem}.grpc.pb.cc)
  endforeach()
  add_library(dep_${name} STATIC ${sources})
  target_include_directories(dep_${name} SYSTEM PUBLIC ${out})
  target_compile_options(dep_${name} PRIVATE -w ${BERTH_OPTIMIZE_LIST})
  target_link_libraries(dep_${name} PUBLIC dep_grpc dep_protobuf)
endfunction()
