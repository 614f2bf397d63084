// SPDX-License-Identifier: Apache-2.0
// The machine runtime on a hypervisor that does what the test says: the contract of all runtimes,
// and what becomes of one guest: its power, its console, what it was asked for.
#include "runtime/machine/machine_host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "iri/conformance/blocking.h"
#include "iri/efi_variables.h"
#include "iri/labels.h"
#include "runtime/machine/machine_world.h"

namespace berth::runtime {
namespace {

using iri::MachineState;

TEST(MachineHost, KeepsTheContractOfMachineRuntimes) {
  for (const iri::RuntimeContract& contract : iri::MachineContracts()) {
    SCOPED_TRACE(contract.name);
    MachineWorld world;
    contract.run(world);
  }
}

TEST(MachineHost, KeepsTheContractOfHostsAsFarAsItHasNoVolumesAndNoLeases) {
  int ran = 0;
  for (const iri::RuntimeContract& contract : iri::HostContracts()) {
    const std::string_view name = contract.name;
    if (name != "WatchAnswersALostCursorWithAResync" && name != "KeepsRoomForReservations" &&
        name != "TakesIgnitionAgain") {
      continue;
    }
    SCOPED_TRACE(contract.name);
    MachineWorld world;
    contract.run(world);
    ++ran;
  }
  EXPECT_EQ(ran, 3);
}

TEST(MachineHost, P6_4_CreatesOnlyOnceByUid) {
  MachineWorld world;
  const auto first = world.Await(world.host().CreateMachine(world.Wanted("u-1")));
  const auto second = world.Await(world.host().CreateMachine(world.Wanted("u-1")));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->metadata.id, second->metadata.id);
  EXPECT_EQ(world.hypervisor.guests.size(), 1U);
}

TEST(MachineHost, P6_8_AGuestThatEndsStaysOffUntilItIsSwitchedOnAgain) {
  const struct {
    OffReason reason;
    MachineState state;
    std::string_view says;
  } kCases[] = {{OffReason::kShutDown, MachineState::kStopped, ""},
                {OffReason::kFailed, MachineState::kTerminated, "Crashed"},
                {OffReason::kDestroyed, MachineState::kTerminated, "Destroyed"}};
  for (const auto& c : kCases) {
    MachineWorld world;
    const std::string id = iri::Running(world, "u-1").metadata.id;
    world.End(id, c.reason);
    ASSERT_TRUE(world.Becomes(id, c.state)) << c.says;
    EXPECT_EQ(world.ReasonOf(id), c.says);
    world.Restart();
    EXPECT_EQ(world.Get(id).status.state, c.state) << "also after a restart";
    EXPECT_EQ(world.Guest(id).starts, 1);
    EXPECT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
    EXPECT_TRUE(world.Becomes(id, MachineState::kRunning));
    EXPECT_EQ(world.Guest(id).starts, 2);
    EXPECT_EQ(world.ReasonOf(id), "");
  }
}

TEST(MachineHost, AGuestThatDoesNotHearItsPowerButtonLosesItsPlug) {
  MachineWorld world;
  world.hypervisor.heeds_power_button = false;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)), OkStatus());
  EXPECT_TRUE(world.Becomes(id, MachineState::kStopped));
  EXPECT_EQ(world.Guest(id).domain.off_reason, OffReason::kDestroyed);
}

TEST(MachineHost, P3_3_AGuestThatMayMoveStartsHeld) {
  MachineWorld world;
  iri::Machine wanted = world.Wanted("u-1");
  wanted.metadata.annotations = {
      {std::string(iri::kOnPoolLossAnnotation), std::string(iri::kOnPoolLossMove)}};
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(iri::Eventually(world, [&] { return world.Guest(id).starts == 1; }));
  world.Pass(Duration::Millis(20));
  EXPECT_EQ(world.Guest(id).domain.state, GuestState::kPaused);
  EXPECT_EQ(world.Get(id).status.state, MachineState::kPending);
  EXPECT_EQ(world.Await(world.host().ResumeGuest("u-2")).reason(), Reason::kNotFound);
  EXPECT_EQ(world.Await(world.host().ResumeGuest("u-1")), OkStatus());
  EXPECT_EQ(world.Await(world.host().ResumeGuest("u-1")), OkStatus());
  EXPECT_TRUE(world.Becomes(id, MachineState::kRunning));
  EXPECT_EQ(world.Await(world.host().RenewLease(iri::LeaseRenewal())).status().reason(),
            Reason::kMethodNotSupported);
}

TEST(MachineHost, AGuestThatIsPausedSaysWhy) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  world.OnLoop([&] { world.hypervisor.Pause(DomainNameOf(id), PauseReason::kWatchdog); });
  ASSERT_TRUE(world.Becomes(id, MachineState::kSuspended));
  EXPECT_EQ(world.ReasonOf(id), "Paused");
  EXPECT_EQ(world.Get(id).status.conditions[0].message, "the guest is paused: its watchdog fired");
  EXPECT_NE(world.Events().find("its watchdog fired"), std::string::npos);
  world.Restart();
  EXPECT_EQ(world.Get(id).status.conditions[0].message, "the guest is paused: its watchdog fired");
  world.hypervisor.Tell(DomainNameOf(id), DomainEvent::Kind::kResumed);
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  EXPECT_EQ(world.ReasonOf(id), "");
}

TEST(MachineHost, D2_ClassesShareOneHost) {
  MachineWorld world;
  iri::Machine large = world.Wanted("u-1");
  large.spec.class_name = "large";
  ASSERT_TRUE(world.Await(world.host().CreateMachine(large)).ok());
  const auto full = world.Await(world.host().CreateMachine(world.Wanted("u-2")));
  EXPECT_EQ(full.status().reason(), Reason::kTooManyRequests);
  EXPECT_NE(full.status().message().find("1000 of cpu needed, 0 of 4000 left"),
            std::string_view::npos)
      << full.status();
  const auto capacity = world.Await(world.host().Capacity());
  EXPECT_EQ(capacity->used.at("cpu"), 4000);
  EXPECT_EQ(capacity->facts.at("machine-acceleration"), "tcg");
}

TEST(MachineHost, BadSpecsAreRefusedWithTheReason) {
  MachineWorld world;
  const struct {
    std::string_view says;
    std::function<void(iri::Machine&)> spoil;
  } kCases[] = {
      {"is not offered", [](iri::Machine& m) { m.spec.class_name = "none"; }},
      {"driver \"ceph\"", [](iri::Machine& m) { m.spec.volumes[0].connection->driver = "ceph"; }},
      {"absolute path",
       [](iri::Machine& m) { m.spec.volumes[0].connection->attributes["path"] = "x"; }},
      {"expected qcow2, raw or luks",
       [](iri::Machine& m) { m.spec.volumes[0].connection->attributes["format"] = "vmdk"; }},
      {"from oda to ody", [](iri::Machine& m) { m.spec.volumes[0].device = "sda"; }},
      {"is there twice", [](iri::Machine& m) { m.spec.volumes.push_back(m.spec.volumes[0]); }},
      {"a local disk or a connection",
       [](iri::Machine& m) { m.spec.volumes[0].connection.reset(); }},
      {"has no name", [](iri::Machine& m) { m.spec.volumes[0].name = ""; }},
      {"expected an absolute path of text",
       [](iri::Machine& m) { m.spec.volumes[0].connection->attributes["path"] = "/a\nb"; }},
  };
  for (const auto& c : kCases) {
    iri::Machine wanted = world.Wanted("u-1");
    wanted.spec.volumes = {world.Volume("data", "oda")};
    c.spoil(wanted);
    const auto made = world.Await(world.host().CreateMachine(wanted));
    EXPECT_EQ(made.status().reason(), Reason::kBadRequest) << c.says;
    EXPECT_NE(made.status().message().find(c.says), std::string_view::npos) << made.status();
  }
  EXPECT_TRUE(world.hypervisor.guests.empty());
}

TEST(MachineHost, AHostWithoutNetworksSaysSo) {
  const NoNetworks none;
  iri::MachineNic nic;
  nic.name = "primary";
  const auto refused = none.Describe("m-1", nic);
  EXPECT_EQ(refused.status().reason(), Reason::kBadRequest);
  EXPECT_NE(refused.status().message().find("no networks are configured"), std::string_view::npos);
}

TEST(MachineClasses, AreReadFromYamlAndErrorsNameThem) {
  const auto classes = ParseMachineClasses(
      "classes:\n- {name: a, capabilities: {cpu: 2, memory: 1Gi, gpu: 1}, firmware: efi}\n");
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_EQ(classes->front().machine_class.capabilities.at("gpu"), 1);
  EXPECT_EQ(classes->front().firmware, OfferedMachineClass::Firmware::kEfi);
  const struct {
    std::string_view yaml;
    std::string_view says;
  } kCases[] = {{"classes: []", "at least one class"},
                {"classes:\n- {name: a}", "capabilities"},
                {"classes:\n- {name: a, capabilities: {cpu: 1}}", "capabilities.memory is missing"},
                {"classes:\n- {name: a, capabilities: {cpu: 0, memory: 1}}", "capabilities.cpu"},
                {"classes:\n- {name: a, capabilities: {cpu: 1, memory: 1}, firmware: x}",
                 "expected bios or efi"},
                {"classes:\n- {name: a, more: 1}", "unknown field \"more\""}};
  for (const auto& c : kCases) {
    const auto refused = ParseMachineClasses(c.yaml);
    EXPECT_EQ(refused.status().reason(), Reason::kBadRequest) << c.yaml;
    EXPECT_NE(refused.status().message().find(c.says), std::string_view::npos) << refused.status();
  }
  EXPECT_EQ(PromisedAmount(100, 20, 1.5), 120);
  EXPECT_EQ(PromisedAmount(10, 20, 1.5), 0);
}

TEST(MachineHost, AConsoleIsSharedAndOpenedAgainForTheNextGuest) {
  MachineWorld world;
  const auto made = world.Await(world.host().CreateMachine(world.Wanted("u-1")));
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string id = made->metadata.id;
  const iri::AttachRequest console{.machine_uid = "u-1", .what = "console"};
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  const auto one = world.Await(world.host().Attach(console));
  const auto two = world.Await(world.host().Attach(console));
  ASSERT_TRUE(one.ok() && two.ok()) << one.status() << two.status();
  ASSERT_EQ(world.lines.wires.size(), 1U) << "one line for both";
  EXPECT_TRUE(world.lines.wires[0]->socket.ends_with("/run/" + id + "/console.sock"));
  for (const auto& viewer : {one->get(), two->get()}) {
    ASSERT_TRUE(world.Run(viewer->Close()).ok());
  }
  const auto three = world.Await(world.host().Attach(console));
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(world.lines.wires.size(), 2U);
  ASSERT_TRUE(world.Run((*three)->Close()).ok());

  ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)).ok());
  ASSERT_TRUE(world.Becomes(id, MachineState::kStopped));
  EXPECT_TRUE(world.Await(world.host().Attach(console)).status().Is(Reason::kConflict));
  const iri::AttachRequest shell{.machine_uid = "u-1", .what = "exec"};
  EXPECT_TRUE(world.Await(world.host().Attach(shell)).status().Is(Reason::kConflict)) << "off";
}

TEST(MachineHost, AUrlOpensTheConsoleOfAGuestThatRuns) {
  MachineWorld world;
  const std::string id = iri::Running(world, "u-1").metadata.id;
  ASSERT_TRUE(world.Await(world.host().Exec(id)).ok());
  ASSERT_EQ(world.doors.doors.size(), 1U);
  const auto console = world.Await(world.doors.doors[0]());
  ASSERT_TRUE(console.ok()) << console.status();
  ASSERT_EQ(world.lines.wires.size(), 1U);
  ASSERT_TRUE(world.Run((*console)->Close()).ok());
  ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)).ok());
  ASSERT_TRUE(world.Becomes(id, MachineState::kStopped));
  EXPECT_TRUE(world.Await(world.host().Exec(id)).status().Is(Reason::kConflict));
  EXPECT_TRUE(world.Await(world.doors.doors[0]()).status().Is(Reason::kConflict)) << "it is off";
}

TEST(MachineHost, EfiVariablesAreThereBeforeTheGuestIs) {
  MachineWorld world;
  world.Stop();
  world.options.classes = *ParseMachineClasses(
      "classes:\n- {name: bios, capabilities: {cpu: 1, memory: 64Mi}}\n"
      "- {name: efi, capabilities: {cpu: 1, memory: 64Mi}, firmware: efi}\n");
  world.Start();
  iri::Machine wanted = world.Wanted("u-1");
  const std::string key(iri::kEfiVariablesAnnotation);
  const std::string uuid = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
  wanted.spec.class_name = "bios";
  wanted.metadata.annotations[key] = uuid + " Name value-of-the-spec\n";
  const auto refused = world.Await(world.host().CreateMachine(wanted));
  EXPECT_EQ(refused.status().reason(), Reason::kBadRequest);
  EXPECT_TRUE(refused.status().message().contains("no EFI firmware")) << refused.status();
  wanted.spec.class_name = "efi";
  wanted.metadata.annotations[key] = "8be4df61 Name value\n";
  EXPECT_TRUE(world.Await(world.host().CreateMachine(wanted))
                  .status()
                  .message()
                  .contains("efiVars[0]: uuid \"8be4df61\""));
  EXPECT_TRUE(world.hypervisor.guests.empty());

  wanted.metadata.annotations[key] = uuid + " Name value-of-the-spec\n";
  const std::string id = world.Await(world.host().CreateMachine(wanted))->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  const std::string path = world.root + "/machines/" + id + "/efi-variables.fd";
  EXPECT_TRUE(FileText(path).contains("value-of-the-spec"));
  // What the firmware has done with it since stays, until the spec says something else.
  std::filesystem::copy_file(
      world.options.efi_variables, path, std::filesystem::copy_options::overwrite_existing);
  const auto start_again = [&] {
    ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)).ok());
    ASSERT_TRUE(world.Becomes(id, MachineState::kStopped));
    world.Restart();
    ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)).ok());
    ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  };
  start_again();
  EXPECT_FALSE(FileText(path).contains("value-of-the-spec"));
  iri::StringMap other = {{key, "x"}};
  ASSERT_TRUE(world.Await(world.host().UpdateMachineAnnotations(id, other)).ok());
  ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)).ok());
  ASSERT_TRUE(world.Becomes(id, MachineState::kStopped)) << "it can be switched off all the same";
  ASSERT_TRUE(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)).ok());
  ASSERT_TRUE(iri::Eventually(world, [&] {
    const auto conditions = world.Get(id).status.conditions;
    return !conditions.empty() && conditions.front().message.contains("efiVars[0]");
  }));
  ASSERT_TRUE(world.Await(world.host().UpdateMachineAnnotations(id, {})).ok());
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning));
  other[key] = uuid + " Name another-value\n";
  ASSERT_TRUE(world.Await(world.host().UpdateMachineAnnotations(id, other)).ok());
  EXPECT_FALSE(FileText(path).contains("another-value")) << "it is the firmware's while it runs";
  start_again();
  EXPECT_TRUE(FileText(path).contains("another-value"));
}

TEST(MachineHost, EfiFirmwareThatIsNotInstalledIsNamedWithItsPackage) {
  MachineWorld world;
  world.Stop();
  world.options.classes = *ParseMachineClasses(
      "classes:\n- {name: small, capabilities: {cpu: 1, memory: 64Mi}}\n"
      "- {name: efi, capabilities: {cpu: 1, memory: 64Mi}, firmware: efi}\n");
  world.options.efi_code = world.root + "/code.fd";
  world.options.efi_variables = world.root + "/variables.fd";
  world.Start();
  iri::Machine wanted = world.Wanted("u-1");
  wanted.spec.class_name = "efi";
  for (const std::string& path : {world.options.efi_code, world.options.efi_variables}) {
    const auto refused = world.Await(world.host().CreateMachine(wanted));
    EXPECT_EQ(refused.status().reason(), Reason::kBadRequest);
    EXPECT_EQ(refused.status().message(),
              "machines of class \"efi\" have EFI firmware, and " + path +
                  " is not on this host: install it (Debian: apt-get install ovmf)");
    std::ofstream(path) << "firmware";
  }
  EXPECT_TRUE(world.hypervisor.guests.empty());
  wanted.spec.class_name = "small";
  EXPECT_TRUE(world.Await(world.host().CreateMachine(wanted)).ok()) << "others need none";
  wanted = world.Wanted("u-2");
  wanted.spec.class_name = "efi";
  const auto made = world.Await(world.host().CreateMachine(wanted));
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string id = made->metadata.id;
  ASSERT_TRUE(world.Becomes(id, MachineState::kRunning)) << world.Events();
  // Somebody removes the package.
  std::filesystem::remove(world.options.efi_code);
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOff)), OkStatus());
  ASSERT_TRUE(world.Becomes(id, MachineState::kStopped));
  ASSERT_EQ(world.Await(world.host().UpdateMachinePower(id, iri::Power::kOn)), OkStatus());
  EXPECT_TRUE(iri::Eventually(world, [&] {
    const auto conditions = world.Get(id).status.conditions;
    return !conditions.empty() && conditions.front().message.contains("apt-get install ovmf");
  }));
  std::ofstream(world.options.efi_code) << "firmware";
  EXPECT_TRUE(world.Becomes(id, MachineState::kRunning)) << "and installs it again";
}

}  // namespace
}  // namespace berth::runtime
