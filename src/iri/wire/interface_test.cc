// SPDX-License-Identifier: Apache-2.0
// Other people's runtimes and tools understand us: every field, enumerator and call has the name,
// the number and the type that they were built with, and there is nothing beside them.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "iri/wire/wire.h"

namespace berth::iri {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::ServiceDescriptor;

std::string ScalarName(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_MESSAGE: return field.message_type()->name();
    case FieldDescriptor::TYPE_ENUM: return field.enum_type()->name();
    default: return field.type_name();
  }
}

std::string TypeName(const FieldDescriptor& field) {
  if (field.is_map()) {
    return "map<" + ScalarName(*field.message_type()->map_key()) + "," +
           ScalarName(*field.message_type()->map_value()) + ">";
  }
  return (field.is_repeated() ? "repeated:" : "") + ScalarName(field);
}

void Describe(const Descriptor& message, std::set<std::string>& lines) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    lines.insert("field " + field.full_name() + " " + std::to_string(field.number()) + " " +
                 TypeName(field));
  }
}
void Describe(const EnumDescriptor& enumeration, std::set<std::string>& lines) {
  for (int i = 0; i < enumeration.value_count(); ++i) {
    lines.insert("value " + enumeration.full_name() + " " +
                 std::to_string(enumeration.value(i)->number()) + " " +
                 enumeration.value(i)->name());
  }
}
void Describe(const ServiceDescriptor& service, std::set<std::string>& lines) {
  for (int i = 0; i < service.method_count(); ++i) {
    lines.insert("call " + service.full_name() + " " + std::to_string(i) + " " +
                 service.method(i)->name());
  }
}
void Describe(const FileDescriptor& file, std::set<std::string>& lines) {
  for (int i = 0; i < file.message_type_count(); ++i) Describe(*file.message_type(i), lines);
  for (int i = 0; i < file.enum_type_count(); ++i) Describe(*file.enum_type(i), lines);
  for (int i = 0; i < file.service_count(); ++i) Describe(*file.service(i), lines);
}

std::set<std::string> Ours() {
  std::set<std::string> lines;
  for (const Descriptor* message : {meta_pb::ObjectMetadata::descriptor(),
                                    event_pb::Event::descriptor(),
                                    machine_pb::Machine::descriptor(),
                                    volume_pb::Volume::descriptor(),
                                    bucket_pb::Bucket::descriptor()}) {
    Describe(*message->file(), lines);
  }
  return lines;
}

std::set<std::string> Theirs() {
  std::set<std::string> lines;
  std::ifstream file(BERTH_IRI_TESTDATA "/interface.txt");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("#")) lines.insert(line);
  }
  return lines;
}

TEST(RuntimeInterface, HasTheNamesNumbersAndTypesOfTheReference) {
  const std::set<std::string> theirs = Theirs();
  const std::set<std::string> ours = Ours();
  ASSERT_GT(theirs.size(), 200U);
  for (const std::string& line : theirs) EXPECT_TRUE(ours.contains(line)) << "missing: " << line;
  for (const std::string& line : ours) EXPECT_TRUE(theirs.contains(line)) << "added: " << line;
}

TEST(RuntimeInterface, KeepsTheNumberOfTheOldImageFieldFree) {
  EXPECT_TRUE(volume_pb::VolumeSpec::descriptor()->IsReservedNumber(1));
}

TEST(RuntimeInterface, HasOurAdditionsInAPackageOfTheirOwn) {
  EXPECT_EQ(host_pb::Change::descriptor()->file()->package(), "berth.iri.v1");
  const FileDescriptor& file = *host_pb::Change::descriptor()->file();
  ASSERT_EQ(file.service_count(), 1);
  std::set<std::string> calls;
  Describe(*file.service(0), calls);
  EXPECT_EQ(calls,
            (std::set<std::string>{"call berth.iri.v1.HostRuntime 0 Watch",
                                   "call berth.iri.v1.HostRuntime 1 Capacity",
                                   "call berth.iri.v1.HostRuntime 2 RenewLease",
                                   "call berth.iri.v1.HostRuntime 3 SetReservations",
                                   "call berth.iri.v1.HostRuntime 4 ListReservations",
                                   "call berth.iri.v1.HostRuntime 5 ListGuests",
                                   "call berth.iri.v1.HostRuntime 6 ResumeGuest",
                                   "call berth.iri.v1.HostRuntime 7 Attach",
                                   "call berth.iri.v1.HostRuntime 8 SetPullSecret",
                                   "call berth.iri.v1.HostRuntime 9 SetIgnition"}));
  EXPECT_TRUE(file.service(0)->method(0)->server_streaming());
}

}  // namespace
}  // namespace berth::iri
