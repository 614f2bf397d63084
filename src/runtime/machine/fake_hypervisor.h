// SPDX-License-Identifier: Apache-2.0
// A Hypervisor of tests: guests are entries of a table, and do what the test tells them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rt/event.h"
#include "rt/loop.h"
#include "rt/sleep.h"
#include "runtime/machine/domain_text.h"
#include "runtime/machine/domain_xml.h"
#include "runtime/machine/hypervisor.h"

namespace berth::runtime {

class FakeHypervisor final : public Hypervisor {
 public:
  struct Guest {
    Domain domain;
    std::string xml;         // of the next start
    DeviceElements devices;  // of the running guest
    std::map<std::string, int64_t> sizes;
    int starts = 0;
    int resumes = 0;
  };

  explicit FakeHypervisor(rt::Loop& loop) : loop_(loop) {}

  void Listen(Listener listener) override { listener_ = std::move(listener); }
  std::string Trouble() const override { return trouble; }

  rt::Task<Result<std::vector<Domain>>> List() override {
    if (!trouble.empty()) co_return Unavailable(trouble);
    std::vector<Domain> domains;
    for (const auto& [name, guest] : guests) {
      if (name != slow_guest) domains.push_back(guest.domain);
    }
    if (guests.contains(slow_guest)) domains.push_back(guests.at(slow_guest).domain);
    co_return domains;
  }
  rt::Task<Status> Define(std::string xml) override {
    if (!trouble.empty()) co_return Unavailable(trouble);
    const std::string name = DomainNameIn(xml);
    if (name.empty()) co_return BadRequest("the XML names no domain");
    if (!guests.contains(name)) Tell(name, DomainEvent::Kind::kDefined);
    Guest& guest = guests[name];
    guest.domain.name = name;
    guest.domain.uuid = UuidIn(xml);
    const Result<std::string> record = RecordInMetadata(MetadataIn(xml));
    guest.domain.record = record.ok() ? *record : std::string();
    guest.xml = std::move(xml);
    if (looks_after_define) {
      Tell("", DomainEvent::Kind::kConnected);
      co_return co_await rt::Sleep(Duration::Millis(5));  // the answer takes longer than the event
    }
    co_return OkStatus();
  }
  rt::Task<Status> Undefine(std::string name) override {
    if (!trouble.empty()) co_return Unavailable(trouble);
    const auto found = guests.find(name);
    if (found == guests.end()) co_return OkStatus();
    if (found->second.domain.state != GuestState::kOff) co_return Conflict(name + " runs");
    guests.erase(found);
    co_return OkStatus();
  }
  rt::Task<Status> Start(std::string name, StartMode mode) override {
    CO_TRY(Guest* const guest, Find(name));
    if (guest->domain.state != GuestState::kOff) co_return OkStatus();
    if (!start_failure.ok()) co_return start_failure;
    guest->domain.state = mode == StartMode::kHeld ? GuestState::kPaused : GuestState::kRunning;
    guest->domain.pause_reason = PauseReason::kTold;
    guest->devices = DevicesIn(guest->xml);
    ++guest->starts;
    Tell(name, DomainEvent::Kind::kStarted);
    co_return OkStatus();
  }
  rt::Task<Status> Resume(std::string name) override {
    CO_TRY(Guest* const guest, FindRunning(name));
    ++guest->resumes;
    if (guest->domain.state == GuestState::kRunning) co_return OkStatus();
    if (guest->domain.pause_reason == PauseReason::kAsleep) co_return Conflict(name + " sleeps");
    guest->domain.state = GuestState::kRunning;
    Tell(name, DomainEvent::Kind::kResumed);
    if (disk_is_full) Pause(name, PauseReason::kDiskFull);
    co_return OkStatus();
  }
  rt::Task<Status> PressPower(std::string name) override {
    CO_TRY(Guest* const guest, FindRunning(name));
    if (heeds_power_button) End(guest->domain.name, OffReason::kShutDown);
    co_return OkStatus();
  }
  rt::Task<Status> Destroy(std::string name) override {
    CO_TRY_STATUS(Find(name));
    End(name, OffReason::kDestroyed);
    co_return OkStatus();
  }
  rt::Task<Status> AttachDevice(std::string name, std::string xml) override {
    CO_TRY(Guest* const guest, FindRunning(name));
    if (!trouble_after_attach.empty()) trouble = trouble_after_attach;
    if (!attach_failure.ok()) co_return attach_failure;
    for (const auto& [device, element] : DevicesIn(xml)) {
      if (guest->devices.contains(device)) co_return BadRequest(device + " is there");
    }
    Give(name, xml);
    co_return attach_answer;
  }
  rt::Task<Status> DetachDevice(std::string name, std::string xml) override {
    CO_TRY(Guest* const guest, FindRunning(name));
    for (const auto& [device, element] : DevicesIn(xml)) {
      if (!guest->devices.contains(device)) co_return NotFound(device + " is not there");
      if (lets_go) guest->devices.erase(device);
    }
    if (lets_go) Tell(name, DomainEvent::Kind::kDeviceRemoved);
    co_return OkStatus();
  }
  rt::Task<Result<DeviceElements>> LiveDevices(std::string name) override {
    CO_TRY(Guest* const guest, FindRunning(name));
    if (!devices_failure.ok()) co_return devices_failure;
    if (name == slow_guest) CO_TRY_STATUS(co_await slow_guest_goes_on.Wait());
    co_return guest->devices;
  }
  rt::Task<Status> ResizeDisk(std::string name, std::string target, int64_t bytes) override {
    CO_TRY(Guest* const guest, FindRunning(name));
    if (!guest->devices.contains(target)) co_return BadRequest("disk " + target + " is not there");
    guest->sizes[target] = bytes;
    co_return OkStatus();
  }
  rt::Task<Status> SetSecret(std::string uuid,
                             std::string /*description*/,
                             std::string value) override {
    if (!trouble.empty()) co_return Unavailable(trouble);
    secrets[uuid] = std::move(value);
    co_return OkStatus();
  }
  rt::Task<Status> RemoveSecret(std::string uuid) override {
    if (!trouble.empty()) co_return Unavailable(trouble);
    secrets.erase(uuid);
    co_return OkStatus();
  }
  rt::Task<Result<std::vector<DomainStatistics>>> Statistics() override {
    if (!trouble.empty()) co_return Unavailable(trouble);
    std::vector<DomainStatistics> all;
    for (const auto& [name, guest] : guests) {
      if (guest.domain.state == GuestState::kOff) continue;
      DomainStatistics& statistics = all.emplace_back();
      statistics.name = name;
      statistics.cpu_time = Duration::Seconds(1);
    }
    co_return all;
  }
  rt::Task<Result<std::string>> Version() override {
    if (!version_failure.ok()) co_return version_failure;
    co_return std::string("fake");
  }

  // On the loop: the guest ends; nothing if it is off.
  void End(const std::string& name, OffReason reason) {
    Guest& guest = guests.at(name);
    if (guest.domain.state == GuestState::kOff) return;
    guest.domain.state = GuestState::kOff;
    guest.domain.off_reason = reason;
    guest.devices.clear();
    Tell(name, DomainEvent::Kind::kStopped, reason);
  }
  // On the loop: the guest pauses; nothing if it does not run.
  void Pause(const std::string& name, PauseReason reason) {
    Guest& guest = guests.at(name);
    if (guest.domain.state != GuestState::kRunning) return;
    guest.domain.state = GuestState::kPaused;
    guest.domain.pause_reason = reason;
    DomainEvent event;
    event.kind = DomainEvent::Kind::kPaused;
    event.name = name;
    event.pause = reason;
    Tell(std::move(event));
  }
  // On the loop: the running guest has this device, whoever asked for it.
  void Give(const std::string& name, const std::string& xml) {
    guests.at(name).devices.merge(DevicesIn(xml));
    Tell(name, DomainEvent::Kind::kDeviceAdded);
  }
  // On the loop: and now it has not.
  void Take(const std::string& name, const std::string& device) {
    guests.at(name).devices.erase(device);
    Tell(name, DomainEvent::Kind::kDeviceRemoved);
  }
  void Tell(const std::string& name,
            DomainEvent::Kind kind,
            OffReason reason = OffReason::kUnknown) {
    DomainEvent event;
    event.kind = kind;
    event.name = name;
    event.reason = reason;
    Tell(std::move(event));
  }
  void Tell(DomainEvent event) {
    loop_.Post("fake.event", [this, event = std::move(event)] {
      if (listener_) listener_(event);
    });
  }

  std::map<std::string, Guest> guests;
  std::map<std::string, std::string> secrets;
  std::string trouble;
  Status start_failure;
  Status attach_failure;
  Status attach_answer;              // to an attach that was done
  std::string trouble_after_attach;  // from then on
  Status devices_failure;            // of LiveDevices
  Status version_failure;
  std::string slow_guest;  // the last of a list; its devices are told when that is set:
  rt::Event slow_guest_goes_on;
  bool heeds_power_button = true;
  bool disk_is_full = false;        // a guest that is resumed pauses again
  bool lets_go = true;              // of devices
  bool looks_after_define = false;  // the connection is opened again while it answers

 private:
  Result<Guest*> Find(const std::string& name) {
    if (!trouble.empty()) return Unavailable(trouble);
    const auto found = guests.find(name);
    if (found == guests.end()) return NotFound("no domain " + name);
    return &found->second;
  }
  Result<Guest*> FindRunning(const std::string& name) {
    TRY(Guest* const guest, Find(name));
    if (guest->domain.state == GuestState::kOff) return Conflict(name + " does not run");
    return guest;
  }

  rt::Loop& loop_;
  Listener listener_;
};

}  // namespace berth::runtime
