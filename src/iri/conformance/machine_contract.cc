// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "iri/conformance/blocking.h"
#include "iri/labels.h"

namespace berth::iri {

namespace {

void NamesItself(RuntimeUnderTest& t) {
  const auto version = Await(t, t.runtimes().machine->Version());
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_FALSE(version->runtime_name.empty());
  EXPECT_FALSE(version->runtime_version.empty());
}

void CreatesAMachineThatBoots(RuntimeUnderTest& t) {
  Machine wanted = NewMachine(t, "u-1");
  wanted.metadata.annotations = {{"note", "hello"}};
  wanted.spec.ignition_data = std::string("\0\1", 2);
  wanted.spec.hostname = "web";
  const auto made = Await(t, t.runtimes().machine->CreateMachine(wanted));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->metadata.id.empty());
  EXPECT_FALSE(made->metadata.created_at.is_zero());
  EXPECT_EQ(made->metadata.labels, wanted.metadata.labels);
  EXPECT_EQ(made->metadata.annotations, wanted.metadata.annotations);
  EXPECT_EQ(made->spec, wanted.spec);
  EXPECT_EQ(made->status.state, MachineState::kPending);
  EXPECT_TRUE(BecomesState(t, made->metadata.id, MachineState::kRunning));
}

void ListsByIdAndByLabels(RuntimeUnderTest& t) {
  MachineRuntime& runtime = *t.runtimes().machine;
  const auto one = Await(t, runtime.CreateMachine(NewMachine(t, "u-1")));
  const auto two = Await(t, runtime.CreateMachine(NewMachine(t, "u-2")));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->metadata.id, two->metadata.id);
  const auto count = [&](const ObjectFilter& filter) {
    const auto listed = Await(t, runtime.ListMachines(filter));
    EXPECT_TRUE(listed.ok()) << listed.status();
    return listed.ok() ? listed->size() : size_t{0};
  };
  ObjectFilter filter;
  EXPECT_EQ(count(filter), 2U);
  filter.labels = {{std::string(kMachineNameLabel), "web"}};
  EXPECT_EQ(count(filter), 2U);
  filter.labels[std::string(kMachineUidLabel)] = "u-2";
  EXPECT_EQ(count(filter), 1U);
  filter.id = one->metadata.id;
  EXPECT_EQ(count(filter), 0U) << "an id and labels must both hold";
  EXPECT_FALSE(GetMachine(t, "no-such-id").has_value());
}

void DeletesUntilGone(RuntimeUnderTest& t) {
  const Machine machine = Running(t, "u-1");
  const std::string id = machine.metadata.id;
  EXPECT_EQ(Await(t, t.runtimes().machine->DeleteMachine(id)), OkStatus());
  if (const auto dying = GetMachine(t, id)) {
    EXPECT_EQ(dying->status.state, MachineState::kTerminating);
    EXPECT_FALSE(dying->metadata.deleted_at.is_zero());
    // It may go between the two questions.
    const Status again = Await(t, t.runtimes().machine->DeleteMachine(id));
    EXPECT_TRUE(again.ok() || again.Is(Reason::kNotFound)) << again;
  }
  EXPECT_TRUE(Eventually(t, [&] { return !GetMachine(t, id).has_value(); }));
  EXPECT_EQ(Await(t, t.runtimes().machine->DeleteMachine(id)).reason(), Reason::kNotFound);
}

void CreatesSwitchedOffWithoutBooting(RuntimeUnderTest& t) {
  Machine wanted = NewMachine(t, "u-1");
  wanted.spec.power = Power::kOff;
  const auto made = Await(t, t.runtimes().machine->CreateMachine(wanted));
  ASSERT_TRUE(made.ok()) << made.status();
  t.Pass(Duration::Millis(200));
  EXPECT_EQ(GetMachine(t, made->metadata.id)->status.state, MachineState::kStopped);
}

void SwitchesOffAndOn(RuntimeUnderTest& t) {
  MachineRuntime& runtime = *t.runtimes().machine;
  const std::string id = Running(t, "u-1").metadata.id;
  EXPECT_EQ(Await(t, runtime.UpdateMachinePower(id, Power::kOff)), OkStatus());
  EXPECT_EQ(Await(t, runtime.UpdateMachinePower(id, Power::kOff)), OkStatus());
  EXPECT_TRUE(BecomesState(t, id, MachineState::kStopped));
  EXPECT_EQ(GetMachine(t, id)->spec.power, Power::kOff);
  EXPECT_EQ(Await(t, runtime.UpdateMachinePower(id, Power::kOn)), OkStatus());
  EXPECT_TRUE(BecomesState(t, id, MachineState::kRunning));
}

void ReplacesAnnotationsAsAWhole(RuntimeUnderTest& t) {
  Machine wanted = NewMachine(t, "u-1");
  wanted.metadata.annotations = {{"a", "1"}, {"b", "2"}};
  const auto made = Await(t, t.runtimes().machine->CreateMachine(wanted));
  ASSERT_TRUE(made.ok()) << made.status();
  const StringMap annotations = {{"b", "3"}};
  EXPECT_EQ(
      Await(t, t.runtimes().machine->UpdateMachineAnnotations(made->metadata.id, annotations)),
      OkStatus());
  EXPECT_EQ(GetMachine(t, made->metadata.id)->metadata.annotations, annotations);
}

MachineVolume Connected(RuntimeUnderTest& t, const std::string& name, int64_t bytes) {
  MachineVolume volume;
  volume.name = name;
  volume.device = "oda";
  volume.connection = t.Connection(name, bytes);
  return volume;
}

void AttachesAndDetachesVolumes(RuntimeUnderTest& t) {
  MachineRuntime& runtime = *t.runtimes().machine;
  const std::string id = Running(t, "u-1").metadata.id;
  const MachineVolume data = Connected(t, "data", 100);
  EXPECT_EQ(Await(t, runtime.AttachVolume(id, data)), OkStatus());
  EXPECT_EQ(Await(t, runtime.AttachVolume(id, data)).reason(), Reason::kAlreadyExists);
  ASSERT_EQ(GetMachine(t, id)->spec.volumes.size(), 1U);
  EXPECT_EQ(GetMachine(t, id)->spec.volumes[0], data);
  EXPECT_TRUE(Eventually(t, [&] {
    const auto volumes = GetMachine(t, id)->status.volumes;
    return volumes.size() == 1 && volumes[0].state == AttachmentState::kAttached;
  }));
  EXPECT_EQ(Await(t, runtime.UpdateVolume(id, Connected(t, "data", 200))), OkStatus());
  EXPECT_EQ(GetMachine(t, id)->spec.volumes[0].connection->effective_storage_bytes, 200);
  EXPECT_EQ(Await(t, runtime.UpdateVolume(id, Connected(t, "other", 1))).reason(),
            Reason::kNotFound);
  EXPECT_EQ(Await(t, runtime.DetachVolume(id, "data")), OkStatus());
  EXPECT_EQ(Await(t, runtime.DetachVolume(id, "data")).reason(), Reason::kNotFound);
  EXPECT_TRUE(GetMachine(t, id)->spec.volumes.empty());
}

void AttachesAndDetachesNetworkInterfaces(RuntimeUnderTest& t) {
  MachineRuntime& runtime = *t.runtimes().machine;
  const std::string id = Running(t, "u-1").metadata.id;
  MachineNic nic;
  nic.name = "primary";
  nic.network_id = "net-1";
  nic.ips = {"10.0.0.1"};
  EXPECT_EQ(Await(t, runtime.AttachNetworkInterface(id, nic)), OkStatus());
  ASSERT_EQ(GetMachine(t, id)->spec.nics.size(), 1U);
  EXPECT_EQ(GetMachine(t, id)->spec.nics[0], nic);
  EXPECT_FALSE(GetMachine(t, id)->status.nics[0].handle.empty());
  EXPECT_EQ(Await(t, runtime.DetachNetworkInterface(id, "primary")), OkStatus());
  EXPECT_EQ(Await(t, runtime.DetachNetworkInterface(id, "primary")).reason(), Reason::kNotFound);
}

void DoesNotKnowUnknownIds(RuntimeUnderTest& t) {
  MachineRuntime& runtime = *t.runtimes().machine;
  const std::string id = "no-such-machine";
  const Status answers[] = {
      Await(t, runtime.DeleteMachine(id)),
      Await(t, runtime.UpdateMachineAnnotations(id, StringMap())),
      Await(t, runtime.UpdateMachinePower(id, Power::kOff)),
      Await(t, runtime.AttachVolume(id, Connected(t, "v", 1))),
      Await(t, runtime.DetachVolume(id, "v")),
      Await(t, runtime.UpdateVolume(id, Connected(t, "v", 1))),
      Await(t, runtime.AttachNetworkInterface(id, MachineNic())),
      Await(t, runtime.DetachNetworkInterface(id, "n")),
      Await(t, runtime.Exec(id)).status(),
  };
  for (const Status& answer : answers) EXPECT_EQ(answer.reason(), Reason::kNotFound) << answer;
}

void RefusesClassesThatItDoesNotOffer(RuntimeUnderTest& t) {
  Machine wanted = NewMachine(t, "u-1");
  wanted.spec.class_name = "no-such-class";
  const auto made = Await(t, t.runtimes().machine->CreateMachine(wanted));
  EXPECT_EQ(made.status().reason(), Reason::kBadRequest) << made.status();
}

// Counts must not depend on what runs: whoever asks subtracts by itself.
void D1_CountsClassesOfTheWholeHost(RuntimeUnderTest& t) {
  const auto before = Await(t, t.runtimes().machine->ClassStatus());
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_GT(before->front().quantity, 0);
  Running(t, "u-1");
  const auto after = Await(t, t.runtimes().machine->ClassStatus());
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(*after, *before);
}

void OpensAConsoleOnceItRuns(RuntimeUnderTest& t) {
  const Machine machine = Running(t, "u-1");
  const auto first = Await(t, t.runtimes().machine->Exec(machine.metadata.id));
  const auto second = Await(t, t.runtimes().machine->Exec(machine.metadata.id));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_NE(*first, *second) << "a URL is for one use";
}

void TellsEventsOfItsMachines(RuntimeUnderTest& t) {
  const Machine machine = Running(t, "u-1");
  EventFilter filter;
  filter.id = machine.metadata.id;
  const auto events = Await(t, t.runtimes().machine->ListEvents(filter));
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_FALSE(events->empty());
  EXPECT_FALSE(events->front().action.empty());
  EXPECT_EQ(LabelOf(events->front().involved, kMachineUidLabel), "u-1");
  filter.id = "another";
  EXPECT_TRUE(Await(t, t.runtimes().machine->ListEvents(filter))->empty());
}

constexpr auto kContracts = std::to_array<RuntimeContract>({
    {"NamesItself", NamesItself},
    {"CreatesAMachineThatBoots", CreatesAMachineThatBoots},
    {"ListsByIdAndByLabels", ListsByIdAndByLabels},
    {"DeletesUntilGone", DeletesUntilGone},
    {"D7_CreatesSwitchedOffWithoutBooting", CreatesSwitchedOffWithoutBooting},
    {"SwitchesOffAndOn", SwitchesOffAndOn},
    {"ReplacesAnnotationsAsAWhole", ReplacesAnnotationsAsAWhole},
    {"AttachesAndDetachesVolumes", AttachesAndDetachesVolumes},
    {"AttachesAndDetachesNetworkInterfaces", AttachesAndDetachesNetworkInterfaces},
    {"DoesNotKnowUnknownIds", DoesNotKnowUnknownIds},
    {"RefusesClassesThatItDoesNotOffer", RefusesClassesThatItDoesNotOffer},
    {"D1_CountsClassesOfTheWholeHost", D1_CountsClassesOfTheWholeHost},
    {"OpensAConsoleOnceItRuns", OpensAConsoleOnceItRuns},
    {"TellsEventsOfItsMachines", TellsEventsOfItsMachines},
});

}  // namespace

std::span<const RuntimeContract> MachineContracts() { return kContracts; }

std::vector<RuntimeContract> RuntimeContracts() {
  std::vector<RuntimeContract> all;
  for (const auto part : {MachineContracts(), StorageContracts(), HostContracts()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace berth::iri
