// SPDX-License-Identifier: Apache-2.0
// The next step, from what is desired and what was observed: every decision without any runtime.
#include "poollet/reconcile/step.h"

#include <gtest/gtest.h>

#include "berth/agent/v1/agent.pb.h"
#include "iri/efi_variables.h"
#include "iri/labels.h"
#include "poollet/reconcile/report.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;
using Kind = Step::Kind;
using iri::MachineState;
using iri::Power;

Desired Parse(const pb::Assign& assign) {
  auto desired = ParseAssign(assign.SerializeAsString(), "cluster");
  CHECK(desired.ok()) << desired.status();
  return *std::move(desired);
}

pb::Assign MachineAssign() {
  pb::Assign assign;
  assign.set_uid("u");
  assign.set_incarnation(1);
  assign.set_placement(2);
  assign.set_name("web");
  assign.set_namespace_("default");
  assign.mutable_machine()->set_class_name("small");
  assign.mutable_machine()->set_power_on(true);
  assign.mutable_machine()->set_generation(3);
  return assign;
}

pb::MachineVolume& AddVolume(pb::Assign& assign, const std::string& name, int64_t bytes = 10) {
  pb::MachineVolume& volume = *assign.mutable_machine()->add_volumes();
  volume.set_name(name);
  volume.set_device("oda");
  volume.mutable_access()->set_driver("d");
  volume.mutable_access()->set_handle("h-" + name);
  volume.set_storage_bytes(bytes);
  return volume;
}

// The runtime's object, as if made from the assignment.
iri::Machine Made(const pb::Assign& assign, MachineState state = MachineState::kRunning) {
  iri::Machine machine = std::get<DesiredMachine>(Parse(assign).body).object;
  machine.metadata.id = "m-1";
  machine.status.state = state;
  return machine;
}

Step Next(const pb::Assign& assign,
          const std::vector<iri::Machine>& observed,
          const Situation& situation = {}) {
  return NextMachineStep(Parse(assign), observed, situation);
}

TEST(MachineStep, NothingThereIsCreated) {
  EXPECT_EQ(Next(MachineAssign(), {}).kind, Kind::kCreate);
}

TEST(MachineStep, WhatIsAsDesiredIsLeftAlone) {
  EXPECT_EQ(Next(MachineAssign(), {Made(MachineAssign())}).kind, Kind::kSettled);
}

TEST(MachineStep, PrerequisitesComeFirstAndAreNamed) {
  auto assign = MachineAssign();
  // In this order: volumes, addresses, secrets. The last of them is looked at first here.
  assign.mutable_machine()->add_missing("ignition secret default/ign does not exist");
  EXPECT_EQ(Next(assign, {}).reason, "SecretsMissing");
  EXPECT_EQ(Next(assign, {}).message, "ignition secret default/ign does not exist");
  pb::MachineNic& nic = *assign.mutable_machine()->add_network_interfaces();
  nic.set_name("eth0");
  nic.set_waits_for("no address");
  EXPECT_EQ(Next(assign, {}).reason, "NetworkInterfaceNotReady");
  EXPECT_EQ(Next(assign, {}).message, "network interface eth0: no address");
  AddVolume(assign, "data").set_waits_for("Pending");
  EXPECT_EQ(Next(assign, {}).reason, "VolumeNotReady");
  EXPECT_EQ(Next(assign, {}).message, "volume data: Pending");
  Situation situation;
  situation.secrets_missing = true;
  EXPECT_EQ(Next(MachineAssign(), {}, situation).reason, "SecretsMissing");
}

TEST(MachineStep, Seq12_NoSecondCreateWhileTheOutcomeOfTheFirstIsUnknown) {
  Situation situation;
  situation.create_is_idempotent = false;
  situation.create_unknown = true;
  EXPECT_EQ(Next(MachineAssign(), {}, situation).reason, "CreateOutcomeUnknown");
  situation.create_is_idempotent = true;
  EXPECT_EQ(Next(MachineAssign(), {}, situation).kind, Kind::kCreate) << "it finds the first one";
}

TEST(MachineStep, AForeignRuntimeIsAskedForAMachineThatIsOff) {
  const auto machine = std::get<DesiredMachine>(Parse(MachineAssign()).body);
  Situation situation;
  EXPECT_EQ(MachineToCreate(machine, situation).spec.power, Power::kOn);
  situation.create_is_idempotent = false;
  EXPECT_EQ(MachineToCreate(machine, situation).spec.power, Power::kOff);
  auto off = Made(MachineAssign(), MachineState::kStopped);
  off.spec.power = Power::kOff;
  EXPECT_EQ(Next(MachineAssign(), {off}, situation).kind, Kind::kPowerOn);
}

TEST(MachineStep, D7_PowerOffIsCreatedOff) {
  auto assign = MachineAssign();
  assign.mutable_machine()->set_power_on(false);
  const auto desired = Parse(assign);
  EXPECT_EQ(MachineToCreate(std::get<DesiredMachine>(desired.body), {}).spec.power, Power::kOff);
  EXPECT_EQ(Next(assign, {Made(MachineAssign())}).kind, Kind::kPowerOff);
}

TEST(MachineStep, D7_NothingThatMayFailHoldsUpAPowerOff) {
  auto off = MachineAssign();
  off.mutable_machine()->set_power_on(false);
  const auto of = [](const pb::Assign& assign, auto change) {
    pb::Assign changed = assign;
    change(changed);
    return changed;
  };
  const auto with_volume = [](pb::Assign& assign) { AddVolume(assign, "data", 10); };
  const auto with_larger = [](pb::Assign& assign) { AddVolume(assign, "data", 20); };
  const auto with_nic = [](pb::Assign& assign) {
    assign.mutable_machine()->add_network_interfaces()->set_name("eth0");
  };
  const auto annotated = [](pb::Assign& assign) {
    (*assign.mutable_machine()->mutable_annotations())["a"] = "b";
  };
  const iri::Machine plain = Made(MachineAssign());
  EXPECT_EQ(Next(off, {Made(of(MachineAssign(), with_volume))}).kind, Kind::kPowerOff) << "detach";
  EXPECT_EQ(Next(of(off, with_volume), {plain}).kind, Kind::kPowerOff) << "attach";
  EXPECT_EQ(Next(of(off, with_larger), {Made(of(MachineAssign(), with_volume))}).kind,
            Kind::kPowerOff)
      << "resize";
  EXPECT_EQ(Next(off, {Made(of(MachineAssign(), with_nic))}).kind, Kind::kPowerOff) << "detach";
  EXPECT_EQ(Next(of(off, with_nic), {plain}).kind, Kind::kPowerOff) << "attach";
  EXPECT_EQ(Next(of(off, annotated), {plain}).kind, Kind::kPowerOff) << "annotate";
  // What is left to do follows.
  iri::Machine ended = Made(of(MachineAssign(), with_volume), MachineState::kStopped);
  ended.spec.power = Power::kOff;
  EXPECT_EQ(Next(off, {ended}).kind, Kind::kDetachVolume);
}

TEST(MachineStep, D15_SurplusThatIsOffIsRemovedAndTwoThatRunAreForAPerson) {
  auto first = Made(MachineAssign(), MachineState::kStopped);
  first.spec.power = Power::kOff;
  first.metadata.created_at = WallTime::FromSeconds(1);
  auto second = first;
  second.metadata.id = "m-2";
  second.metadata.created_at = WallTime::FromSeconds(2);
  Step step = Next(MachineAssign(), {second, first});
  EXPECT_EQ(step.kind, Kind::kDelete);
  EXPECT_EQ(step.id, "m-2") << "the older one stays";
  second.spec.power = Power::kOn;
  second.status.state = MachineState::kRunning;
  step = Next(MachineAssign(), {second, first});
  EXPECT_EQ(step.id, "m-1") << "the one that runs stays";
  first.metadata.deleted_at = WallTime::FromSeconds(3);
  EXPECT_EQ(Next(MachineAssign(), {second, first}).reason, "RemovingSurplus");
  first = second;
  first.metadata.id = "m-1";
  EXPECT_EQ(Next(MachineAssign(), {second, first}).kind, Kind::kStuck);
  EXPECT_EQ(Next(MachineAssign(), {second, first}).reason, "MultipleObjects");
}

TEST(MachineStep, P7_WithoutALeaseAMoveMachineIsNeitherMadeNorStarted) {
  auto assign = MachineAssign();
  assign.mutable_machine()->set_on_pool_loss("Move");
  EXPECT_EQ(Next(assign, {}).reason, "NoLease");
  auto off = Made(assign, MachineState::kStopped);
  off.spec.power = Power::kOff;
  EXPECT_EQ(Next(assign, {off}).reason, "NoLease");
  Situation situation;
  situation.has_lease = true;
  EXPECT_EQ(Next(assign, {}, situation).kind, Kind::kCreate);
  EXPECT_EQ(Next(assign, {off}, situation).kind, Kind::kPowerOn);
}

TEST(MachineStep, AKeyThatIsAnotherByNowIsToldBeforeTheGuestRuns) {
  auto assign = MachineAssign();
  (*AddVolume(assign, "data").mutable_encryption())["encryptionKey"] = "right";
  auto there = Made(assign, MachineState::kPending);
  EXPECT_EQ(Next(assign, {there}).kind, Kind::kSettled);
  there.spec.volumes[0].connection->encryption_data["encryptionKey"] = "wrong";
  EXPECT_EQ(Next(assign, {there}).kind, Kind::kUpdateVolume);
  EXPECT_EQ(Next(assign, {there}).part, "data");
  Situation situation;
  situation.secrets_missing = true;
  EXPECT_EQ(Next(assign, {there}, situation).kind, Kind::kSettled) << "it is not known yet";
  there.status.state = MachineState::kRunning;
  EXPECT_EQ(Next(assign, {there}).kind, Kind::kSettled) << "its disk is open";
  there.status.state = MachineState::kPending;
  there.spec.volumes[0].connection->encryption_data.clear();
  EXPECT_EQ(Next(assign, {there}).kind, Kind::kUpdateVolume) << "the host was rebooted";
  situation = {};
  situation.create_is_idempotent = false;
  EXPECT_EQ(Next(assign, {there}, situation).kind, Kind::kSettled) << "it shows no keys";
}

// As a runtime shows it whose host was rebooted.
iri::Machine WithoutIgnition(const pb::Assign& assign, MachineState state) {
  iri::Machine machine = Made(assign, state);
  machine.spec.ignition_data.clear();
  if (state == MachineState::kTerminated) {
    machine.status.conditions.push_back(
        {.type = "Running", .status = "False", .reason = "HostLostPower", .message = "no power"});
  }
  machine.status.conditions.push_back({.type = "SecretsReady",
                                       .status = "False",
                                       .reason = "SecretsMissing",
                                       .message = "its ignition is gone"});
  return machine;
}

TEST(MachineStep, P9_IgnitionThatARebootTookIsGivenAgainBeforeTheGuestStarts) {
  auto assign = MachineAssign();
  assign.mutable_machine()->set_ignition("secret");
  for (const MachineState state : {MachineState::kTerminated, MachineState::kPending}) {
    const auto there = WithoutIgnition(assign, state);
    EXPECT_EQ(Next(assign, {there}).kind, Kind::kGiveIgnition);
    EXPECT_EQ(Next(assign, {there}).id, "m-1");
    Situation situation;
    situation.secrets_missing = true;
    EXPECT_EQ(Next(assign, {there}, situation).kind, Kind::kWait) << "the server has it";
    EXPECT_EQ(Next(assign, {there}, situation).reason, "SecretsMissing");
    auto gone = MachineAssign();
    gone.mutable_machine()->add_missing("secret ign does not exist");
    EXPECT_EQ(Next(gone, {there}).message, "secret ign does not exist") << "nor has the server";
    EXPECT_EQ(Next(MachineAssign(), {there}).kind, Kind::kGiveIgnition) << "it has none any more";
    situation = {};
    situation.create_is_idempotent = false;
    EXPECT_NE(Next(assign, {there}, situation).kind, Kind::kGiveIgnition) << "a foreign runtime";
  }
}

TEST(MachineStep, P9_AMachineThatIsNotToRunWaitsForNoIgnition) {
  auto assign = MachineAssign();
  assign.mutable_machine()->set_ignition("secret");
  Situation situation;
  situation.secrets_missing = true;
  const auto shut_down = WithoutIgnition(assign, MachineState::kStopped);
  EXPECT_EQ(Next(assign, {shut_down}, situation).kind, Kind::kSettled);
  EXPECT_EQ(Next(assign, {shut_down}).kind, Kind::kGiveIgnition) << "for its next start";
  const auto running = WithoutIgnition(assign, MachineState::kRunning);
  EXPECT_EQ(Next(assign, {running}, situation).kind, Kind::kSettled);
  assign.mutable_machine()->set_power_on(false);
  EXPECT_EQ(Next(assign, {running}, situation).kind, Kind::kPowerOff);
  EXPECT_EQ(Next(assign, {running}).kind, Kind::kPowerOff) << "before anything else";
}

TEST(MachineStep, VolumesAreAttachedDetachedAndResized) {
  auto assign = MachineAssign();
  const auto bare = Made(assign);
  AddVolume(assign, "data");
  Step step = Next(assign, {bare});
  EXPECT_EQ(step.kind, Kind::kAttachVolume);
  EXPECT_EQ(step.part, "data");
  const auto attached = Made(assign);
  EXPECT_EQ(Next(MachineAssign(), {attached}).kind, Kind::kDetachVolume);
  auto larger = MachineAssign();
  AddVolume(larger, "data", 20);
  EXPECT_EQ(Next(larger, {attached}).kind, Kind::kUpdateVolume);
  auto smaller = MachineAssign();
  AddVolume(smaller, "data", 5);
  EXPECT_EQ(Next(smaller, {attached}).kind, Kind::kSettled) << "nothing shrinks";
  auto other = MachineAssign();
  AddVolume(other, "data").mutable_access()->set_handle("another");
  EXPECT_EQ(Next(other, {attached}).kind, Kind::kDetachVolume);
}

TEST(MachineStep, ARotatedSecretDoesNotDetachAVolume) {
  auto assign = MachineAssign();
  AddVolume(assign, "data");
  const auto attached = Made(assign);
  auto rotated = MachineAssign();
  (*AddVolume(rotated, "data").mutable_access()->mutable_secret_data())["key"] = "new";
  EXPECT_EQ(Next(rotated, {attached}).kind, Kind::kSettled);
}

TEST(MachineStep, D13_AVolumeThatIsNotReadyIsNotDetached) {
  auto assign = MachineAssign();
  AddVolume(assign, "data");
  const auto attached = Made(assign);
  auto waiting = MachineAssign();
  AddVolume(waiting, "data").set_waits_for("Pending");
  EXPECT_EQ(Next(waiting, {attached}).kind, Kind::kSettled);
}

TEST(MachineStep, D6_EmptyAndLocalDisksAreDisksOfTheMachine) {
  auto assign = MachineAssign();
  pb::MachineVolume& disk = *assign.mutable_machine()->add_volumes();
  disk.set_name("scratch");
  disk.set_local_disk(true);
  disk.set_local_disk_bytes(1 << 20);
  const auto desired = Parse(assign);
  const auto& machine = std::get<DesiredMachine>(desired.body);
  ASSERT_EQ(machine.object.spec.volumes.size(), 1U);
  EXPECT_EQ(machine.object.spec.volumes[0].local_disk->size_bytes, 1 << 20);
  EXPECT_EQ(AmountOf(desired.amounts, kStorage), 1 << 20) << "and of the one disk budget";
  EXPECT_EQ(Next(assign, {}).kind, Kind::kCreate);
}

TEST(MachineStep, NetworkInterfacesAreAttachedAndDetached) {
  auto assign = MachineAssign();
  const auto bare = Made(assign);
  pb::MachineNic& nic = *assign.mutable_machine()->add_network_interfaces();
  nic.set_name("eth0");
  nic.add_ips("10.0.0.1");
  EXPECT_EQ(Next(assign, {bare}).kind, Kind::kAttachNic);
  const auto attached = Made(assign);
  EXPECT_EQ(Next(MachineAssign(), {attached}).kind, Kind::kDetachNic);
  nic.set_waits_for("no address");
  EXPECT_EQ(Next(assign, {attached}).kind, Kind::kSettled);
}

pb::Assign WithNic(std::string network_uid) {
  auto assign = MachineAssign();
  pb::MachineNic& nic = *assign.mutable_machine()->add_network_interfaces();
  nic.set_name("eth0");
  nic.set_network_id("example://1");
  nic.add_ips("10.0.0.1");
  nic.set_network_uid(std::move(network_uid));
  if (!nic.network_uid().empty()) nic.set_nic_uid("nic-uid");
  return assign;
}

TEST(MachineStep, WhatTheServerCameToSayOfAnInterfaceDoesNotTakeItFromARunningGuest) {
  // Attached by an earlier poollet.
  const auto there = Made(WithNic(""));
  const auto assign = WithNic("net-uid");
  EXPECT_NE(Next(assign, {there}).kind, Kind::kDetachNic);
  auto annotated = Made(assign);
  annotated.spec.nics = there.spec.nics;
  EXPECT_EQ(Next(assign, {annotated}).kind, Kind::kSettled);
  // Nor does an earlier server that is back.
  EXPECT_NE(Next(WithNic(""), {Made(assign)}).kind, Kind::kDetachNic);
}

TEST(MachineStep, AnInterfaceLearnsItsNetworkBeforeTheGuestStartsAgain) {
  const auto assign = WithNic("net-uid");
  Situation foreign;
  foreign.create_is_idempotent = false;
  for (const MachineState state : {MachineState::kTerminated, MachineState::kStopped}) {
    auto ended = Made(assign, state);
    ended.spec.nics = Made(WithNic("")).spec.nics;
    EXPECT_EQ(Next(assign, {ended}).kind, Kind::kDetachNic);
    EXPECT_NE(Next(assign, {ended}, foreign).kind, Kind::kDetachNic) << "it may never show it";
    ended.spec.nics.clear();
    EXPECT_EQ(Next(assign, {ended}).kind, Kind::kAttachNic);
    EXPECT_NE(Next(assign, {Made(assign, state)}).kind, Kind::kDetachNic);
  }
}

TEST(MachineStep, AnInterfaceOfAnotherNetworkWithTheSameIdIsTakenOut) {
  const auto there = Made(WithNic("net-uid"));
  EXPECT_EQ(Next(WithNic("other-uid"), {there}).kind, Kind::kDetachNic);
  EXPECT_EQ(Next(WithNic("net-uid"), {there}).kind, Kind::kSettled);
}

TEST(MachineStep, TheRuntimesGenerationGoesAlongAndIsNoReasonToAnnotate) {
  const std::string key(iri::kIriMachineGenerationAnnotation);
  auto there = Made(MachineAssign());
  there.metadata.generation = 7;
  EXPECT_EQ(Next(MachineAssign(), {there}).kind, Kind::kSettled);
  auto changed = MachineAssign();
  changed.mutable_machine()->set_generation(4);
  EXPECT_EQ(Next(changed, {there}).kind, Kind::kAnnotate);
  const auto desired = Parse(changed);
  const auto& machine = std::get<DesiredMachine>(desired.body);
  there.metadata.annotations = AnnotationsFor(machine, there);
  EXPECT_EQ(there.metadata.annotations.at(key), "7");
  // Of an object whose generation is not known it stays.
  there.metadata.generation = 0;
  EXPECT_EQ(AnnotationsFor(machine, there).at(key), "7");
}

TEST(MachineStep, AnnotationsOfTheRuntimeStay) {
  auto there = Made(MachineAssign());
  there.metadata.annotations["runtime/own"] = "x";
  EXPECT_EQ(Next(MachineAssign(), {there}).kind, Kind::kSettled);
  auto changed = MachineAssign();
  changed.mutable_machine()->set_generation(4);
  EXPECT_EQ(Next(changed, {there}).kind, Kind::kAnnotate);
  const auto desired = Parse(changed);
  const auto annotations = AnnotationsFor(std::get<DesiredMachine>(desired.body), there);
  EXPECT_EQ(annotations.at("runtime/own"), "x");
  EXPECT_EQ(annotations.at(std::string(iri::kMachineGenerationAnnotation)), "4");
}

TEST(MachineStep, D7_EfiVariablesAreAnAnnotationOfTheSpecAlone) {
  auto assign = MachineAssign();
  pb::EfiVariable& variable = *assign.mutable_machine()->add_efi_variables();
  variable.set_name("Boot Order");
  variable.set_uuid("8be4df61");
  variable.set_value("x y");
  const std::string key(iri::kEfiVariablesAnnotation);
  const auto there = Made(assign);
  EXPECT_EQ(there.metadata.annotations.at(key), "8be4df61 Boot%20Order x%20y\n");
  auto none = MachineAssign();
  (*none.mutable_machine()->mutable_annotations())[key] = "somebody's";
  EXPECT_EQ(Next(none, {there}).kind, Kind::kAnnotate);
  const auto desired = Parse(none);
  EXPECT_FALSE(AnnotationsFor(std::get<DesiredMachine>(desired.body), there).contains(key));
}

TEST(MachineStep, RestartPolicies) {
  struct Case {
    const char* policy;
    MachineState state;
    const char* why;
    Kind kind;
  };
  for (const Case& c : {Case{"", MachineState::kTerminated, "Crashed", Kind::kPowerOn},
                        Case{"OnFailure", MachineState::kStopped, "", Kind::kSettled},
                        Case{"Always", MachineState::kStopped, "", Kind::kPowerOn},
                        Case{"Always", MachineState::kTerminated, "Crashed", Kind::kPowerOn},
                        Case{"Never", MachineState::kTerminated, "Crashed", Kind::kSettled},
                        Case{"Never", MachineState::kTerminated, "HostLostPower", Kind::kPowerOn},
                        Case{"Never", MachineState::kTerminated, "Fenced", Kind::kPowerOn}}) {
    auto assign = MachineAssign();
    assign.mutable_machine()->set_restart_policy(c.policy);
    auto dead = Made(assign, c.state);
    dead.status.conditions.push_back({.type = "Running", .status = "False", .reason = c.why});
    EXPECT_EQ(Next(assign, {dead}).kind, c.kind) << c.policy << " " << c.why;
  }
  Situation situation;
  situation.may_restart = false;
  EXPECT_EQ(
      Next(MachineAssign(), {Made(MachineAssign(), MachineState::kTerminated)}, situation).reason,
      "RestartBackoff");
}

TEST(VolumeStep, GrowsWithinItsAllocationAndIsNeverReplacedByAnEmptyOne) {
  pb::Assign assign;
  assign.set_uid("v");
  assign.mutable_volume()->set_storage_bytes(100);
  const Desired desired = Parse(assign);
  EXPECT_EQ(AmountOf(desired.amounts, kStorage), 100) << "6.6: at its full size";
  Situation situation;
  situation.storage_allowed = 100;
  EXPECT_EQ(NextVolumeStep(desired, {}, situation).kind, Kind::kCreate);
  situation.was_available = true;
  EXPECT_EQ(NextVolumeStep(desired, {}, situation).reason, "VolumeLost");
  std::vector<iri::Volume> there = {std::get<DesiredVolume>(desired.body).object};
  EXPECT_EQ(NextVolumeStep(desired, there, situation).kind, Kind::kSettled);
  there[0].spec.storage_bytes = 50;
  EXPECT_EQ(NextVolumeStep(desired, there, situation).kind, Kind::kExpand);
  situation.storage_allowed = 50;
  EXPECT_EQ(NextVolumeStep(desired, there, situation).reason, "InsufficientStorage");
  there.push_back(there[0]);
  there[1].metadata.id = "z";
  EXPECT_EQ(NextVolumeStep(desired, there, situation).kind, Kind::kStuck) << "data may be on both";
  situation.was_available = false;
  EXPECT_EQ(NextVolumeStep(desired, there, situation).kind, Kind::kDelete);
}

TEST(RemovalStep, C25_DeletesEverythingOnceAndIsGoneWhenNothingIsLeft) {
  Situation situation;
  EXPECT_EQ(NextRemovalStep({}, situation).kind, Kind::kGone);
  std::vector<RuntimeObject> there = {{.id = "a", .is_being_deleted = true},
                                      {.id = "b", .is_being_deleted = false}};
  EXPECT_EQ(NextRemovalStep(there, situation).id, "b");
  there[1].is_being_deleted = true;
  EXPECT_EQ(NextRemovalStep(there, situation).kind, Kind::kWait);
  situation.create_unknown = true;
  EXPECT_EQ(NextRemovalStep({}, situation).reason, "CreateOutcomeUnknown");
}

TEST(Report, D7_EveryStateOfARuntimeHasAWord) {
  const Desired desired = Parse(MachineAssign());
  const std::map<MachineState, std::string> words = {{MachineState::kPending, "Pending"},
                                                     {MachineState::kRunning, "Running"},
                                                     {MachineState::kSuspended, "Shutdown"},
                                                     {MachineState::kTerminated, "Terminated"},
                                                     {MachineState::kTerminating, "Terminating"},
                                                     {MachineState::kStopped, "Shutdown"},
                                                     {MachineState::kUnknown, "Pending"}};
  for (const auto& [state, word] : words) {
    const std::vector<iri::Machine> there = {Made(MachineAssign(), state)};
    Progress progress;
    progress.runtime = "fake";
    const auto report = ReportMachine(desired, there, progress);
    EXPECT_EQ(report.state, word);
    EXPECT_EQ(report.runtime_id, "fake://m-1");
    EXPECT_EQ(report.observed_generation, 3);
  }
}

TEST(Report, AGenerationIsObservedOnceTheRuntimeKnowsOfThePower) {
  auto assign = MachineAssign();
  const std::vector<iri::Machine> there = {Made(assign, MachineState::kStopped)};
  assign.mutable_machine()->set_power_on(false);
  EXPECT_EQ(ReportMachine(Parse(assign), there, {}).observed_generation, 2);
  assign.mutable_machine()->set_power_on(true);
  EXPECT_EQ(ReportMachine(Parse(assign), there, {}).observed_generation, 3);
}

TEST(Report, AGenerationIsObservedOnceTheRuntimeHasActedOnIt) {
  std::vector<iri::Machine> there = {Made(MachineAssign())};
  there[0].metadata.annotations[std::string(iri::kIriMachineGenerationAnnotation)] = "7";
  const auto observed = [&there](int64_t seen) {
    there[0].status.observed_generation = seen;
    return ReportMachine(Parse(MachineAssign()), there, {}).observed_generation;
  };
  EXPECT_EQ(observed(6), 2);
  EXPECT_EQ(observed(7), 3);
  EXPECT_EQ(observed(8), 3);
  EXPECT_EQ(observed(0), 3) << "it does not count";
}

TEST(Report, R3_2_AMachineIsLeasedIfItMovesAndTheLeaseIsThere) {
  for (const bool moves : {false, true}) {
    for (const bool is_armed : {false, true}) {
      auto assign = MachineAssign();
      assign.mutable_machine()->set_on_pool_loss(moves ? "Move" : "Keep");
      Progress progress;
      progress.is_armed = is_armed;
      EXPECT_EQ(ReportMachine(Parse(assign), {}, progress).is_leased, moves && is_armed);
    }
  }
}

TEST(Report, C12_TheTextOfAnErrorReachesTheCondition) {
  Progress progress;
  progress.error = "no such image";
  const auto report = ReportMachine(Parse(MachineAssign()), {}, progress);
  EXPECT_EQ(report.conditions.back().type, "Ready");
  EXPECT_FALSE(report.conditions.back().is_true);
  EXPECT_EQ(report.conditions.back().reason, "RuntimeError");
  EXPECT_EQ(report.conditions.back().message, "no such image");
}

TEST(Report, C12_AGuestThatIsPausedSaysWhy) {
  std::vector<iri::Machine> machines = {Made(MachineAssign(), iri::MachineState::kSuspended)};
  machines[0].status.conditions = {
      {.type = "Running", .status = "False", .reason = "Paused", .message = "its disk is full"}};
  const auto report = ReportMachine(Parse(MachineAssign()), machines, {});
  EXPECT_EQ(report.state, "Shutdown");
  EXPECT_FALSE(report.conditions.back().is_true);
  EXPECT_EQ(report.conditions.back().reason, "Paused");
  EXPECT_EQ(report.conditions.back().message, "its disk is full");
}

TEST(Report, C12_AGuestThatIsPausedIsSaidToBeWhateverElseIsInTheWay) {
  std::vector<iri::Machine> machines = {Made(MachineAssign(), iri::MachineState::kSuspended)};
  Progress progress;
  progress.error = "cannot attach";
  auto report = ReportMachine(Parse(MachineAssign()), machines, progress);
  EXPECT_EQ(report.conditions.back().reason, "Paused");
  EXPECT_EQ(report.conditions.back().message, "cannot attach");
  machines[0].status.conditions = {
      {.type = "Running", .status = "False", .reason = "Paused", .message = "its disk is full"}};
  report = ReportMachine(Parse(MachineAssign()), machines, progress);
  EXPECT_EQ(report.conditions.back().reason, "Paused");
  EXPECT_EQ(report.conditions.back().message, "its disk is full; cannot attach");
}

TEST(MachineStep, R3_3_NobodyButItsPolicySaysThatAMachineMayBeMoved) {
  auto assign = MachineAssign();
  const std::string key(iri::kOnPoolLossAnnotation);
  (*assign.mutable_machine()->mutable_annotations())[key] = "Move";
  const auto machine = [&assign] { return std::get<DesiredMachine>(Parse(assign).body); };
  EXPECT_FALSE(machine().object.metadata.annotations.contains(key)) << "it would start held";
  (*assign.mutable_machine()->mutable_annotations())[key] = "Keep";
  assign.mutable_machine()->set_on_pool_loss("Move");
  EXPECT_EQ(machine().object.metadata.annotations.at(key), "Move");
}

TEST(Report, APrerequisiteOfAPartIsOneOfTheWhole) {
  auto assign = MachineAssign();
  const auto prerequisites = [&assign] {
    return ReportMachine(Parse(assign), {}, {}).conditions.front();
  };
  EXPECT_EQ(prerequisites().type, "PrerequisitesMet");
  EXPECT_TRUE(prerequisites().is_true);
  AddVolume(assign, "data").set_waits_for("Pending");
  EXPECT_FALSE(prerequisites().is_true);
  EXPECT_EQ(prerequisites().reason, "PrerequisiteMissing");
  EXPECT_EQ(prerequisites().message, "data: Pending");
  pb::MachineNic& nic = *assign.mutable_machine()->add_network_interfaces();
  nic.set_name("eth0");
  nic.set_waits_for("no address");
  assign.mutable_machine()->add_missing("secret ign does not exist");
  EXPECT_EQ(prerequisites().message, "data: Pending; eth0: no address; secret ign does not exist");
}

TEST(Report, EveryPrerequisiteIsAConditionInTheOrderInWhichTheyAreNeeded) {
  auto assign = MachineAssign();
  assign.mutable_machine()->set_ignition("secret");
  std::vector<iri::Machine> machines = {Made(assign)};
  machines[0].status.conditions = {
      {.type = "ImageReady", .status = "True", .reason = "ImageReady", .message = ""}};
  std::vector<std::string> types;
  for (const auto& condition : ReportMachine(Parse(assign), machines, {}).conditions) {
    types.push_back(condition.type);
    EXPECT_TRUE(condition.is_true) << condition.type;
  }
  EXPECT_EQ(types,
            (std::vector<std::string>{"PrerequisitesMet",
                                      "VolumesReady",
                                      "NetworkInterfacesReady",
                                      "SecretsReady",
                                      "ImageReady",
                                      "Ready"}));
}

TEST(Report, SecretsThatAreMissingAreACondition) {
  auto assign = MachineAssign();
  assign.mutable_machine()->set_ignition("secret");
  const auto secrets = [&assign](const std::vector<iri::Machine>& there, const Progress& progress) {
    const ReportCondition found = ReportMachine(Parse(assign), there, progress).conditions.at(3);
    EXPECT_EQ(found.type, "SecretsReady");
    return (found.is_true ? "" : found.reason + ": ") + found.message;
  };
  Progress progress;
  EXPECT_EQ(secrets({}, progress), "");
  progress.secrets_missing = true;
  EXPECT_EQ(secrets({}, progress), "SecretsMissing: waiting for the server to send them");
  EXPECT_EQ(secrets({Made(assign)}, progress), "") << "the runtime has them";
  const std::vector<iri::Machine> rebooted = {WithoutIgnition(assign, MachineState::kTerminated)};
  EXPECT_EQ(secrets(rebooted, {}), "SecretsMissing: its ignition is gone");
  progress.step = Next(assign, rebooted, {.secrets_missing = true});
  const ReportCondition ready = ReportMachine(Parse(assign), rebooted, progress).conditions.back();
  EXPECT_EQ(ready.reason, "SecretsMissing");
  EXPECT_EQ(ready.message, "no power; its secrets are not kept on disk: waiting for the server");
  assign.mutable_machine()->add_missing("secret ign does not exist");
  EXPECT_EQ(secrets({}, {}), "SecretsMissing: secret ign does not exist");
}

TEST(Report, TheRuntimesWordOnAnImageIsACondition) {
  const Progress progress;
  std::vector<iri::Machine> machines = {Made(MachineAssign(), iri::MachineState::kPending)};
  machines[0].status.conditions = {
      {.type = "ImageReady", .status = "False", .reason = "ImageNotFound", .message = "no demo"},
      {.type = "Running", .status = "False", .reason = "Failed", .message = "no demo"}};
  auto report = ReportMachine(Parse(MachineAssign()), machines, progress);
  const ReportCondition image = report.conditions[report.conditions.size() - 2];
  EXPECT_EQ(image.type, "ImageReady");
  EXPECT_FALSE(image.is_true);
  EXPECT_EQ(image.reason, "ImageNotFound");
  EXPECT_EQ(report.conditions.back().reason, "RuntimeError");
  EXPECT_EQ(report.conditions.back().message, "no demo");

  pb::Assign assign;
  assign.set_uid("u");
  assign.mutable_volume()->set_storage_bytes(100);
  std::vector<iri::Volume> volumes(1);
  volumes[0].spec.image = "late.raw";
  volumes[0].status.state = iri::VolumeState::kError;
  volumes[0].metadata.annotations = {{"berth.dev/problem", "image late.raw is not there"},
                                     {"berth.dev/image-problem", "ImageNotFound"}};
  report = ReportVolume(Parse(assign), volumes, progress);
  EXPECT_EQ(report.state, "Error");
  EXPECT_EQ(report.conditions[1].type, "ImageReady");
  EXPECT_EQ(report.conditions[1].reason, "ImageNotFound");
  EXPECT_EQ(report.conditions.back().message, "image late.raw is not there");
  volumes[0].status.state = iri::VolumeState::kAvailable;
  volumes[0].metadata.annotations.clear();
  report = ReportVolume(Parse(assign), volumes, progress);
  EXPECT_TRUE(report.conditions[1].is_true);
  volumes[0].spec.image.clear();
  EXPECT_EQ(ReportVolume(Parse(assign), volumes, progress).conditions.size(), 2U);
}

TEST(Report, WhatTheRuntimeWaitsForWhileItCopiesIsACondition) {
  const Progress progress;
  pb::Assign assign;
  assign.set_uid("u");
  assign.mutable_snapshot();
  std::vector<iri::VolumeSnapshot> snapshots(1);
  snapshots[0].state = iri::SnapshotState::kPending;
  EXPECT_EQ(ReportSnapshot(Parse(assign), snapshots, progress).conditions.back().message,
            "it is being taken");
  snapshots[0].metadata.annotations = {{"berth.dev/problem", "libvirt says nothing"}};
  const ObjectReport snapshot = ReportSnapshot(Parse(assign), snapshots, progress);
  EXPECT_EQ(snapshot.state, "Pending");
  EXPECT_EQ(snapshot.conditions.back().message, "libvirt says nothing");

  assign.mutable_volume()->set_storage_bytes(100);
  std::vector<iri::Volume> volumes(1);
  volumes[0].status.state = iri::VolumeState::kPending;
  volumes[0].metadata.annotations = snapshots[0].metadata.annotations;
  const ObjectReport volume = ReportVolume(Parse(assign), volumes, progress);
  EXPECT_EQ(volume.state, "Pending");
  EXPECT_EQ(volume.conditions.back().type, "Ready");
  EXPECT_FALSE(volume.conditions.back().is_true);
  EXPECT_EQ(volume.conditions.back().message, "libvirt says nothing");
}

TEST(Desired, SecretsAreNotInWhatIsRecorded) {
  auto assign = MachineAssign();
  assign.mutable_machine()->set_ignition("hidden-1");
  pb::MachineVolume& volume = AddVolume(assign, "data");
  (*volume.mutable_access()->mutable_secret_data())["k"] = "hidden-2";
  (*volume.mutable_encryption())["k"] = "hidden-3";
  const auto stripped = WithoutSecrets(assign.SerializeAsString());
  ASSERT_TRUE(stripped.ok());
  EXPECT_EQ(stripped->find("hidden"), std::string::npos);
  EXPECT_TRUE(Parse(assign).had_secrets);
  EXPECT_FALSE(Parse(MachineAssign()).had_secrets);
  EXPECT_FALSE(ParseAssign("\xff\xff", "c").ok());
}

TEST(Desired, LabelsSayWhoseObjectItIs) {
  const auto desired = Parse(MachineAssign());
  const auto& labels = std::get<DesiredMachine>(desired.body).object.metadata.labels;
  EXPECT_EQ(labels.at(std::string(iri::kMachineUidLabel)), "u");
  EXPECT_EQ(labels.at(std::string(iri::kClusterIdLabel)), "cluster");
  EXPECT_EQ(labels.at(std::string(iri::kPlacementLabel)), "2");
}

}  // namespace
}  // namespace berth::poollet
