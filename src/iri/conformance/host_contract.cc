// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "iri/conformance/blocking.h"
#include "iri/labels.h"
#include "rt/deadline.h"

namespace berth::iri {

namespace {

// PROTOCOL 6.4: what was made stays the only one, however often it is asked for.
void D15_CreatesOnlyOnceByUid(RuntimeUnderTest& t) {
  const Runtimes runtimes = t.runtimes();
  const auto machine = Await(t, runtimes.machine->CreateMachine(NewMachine(t, "u-1")));
  const auto again = Await(t, runtimes.machine->CreateMachine(NewMachine(t, "u-1")));
  ASSERT_TRUE(machine.ok() && again.ok());
  EXPECT_EQ(again->metadata.id, machine->metadata.id);
  EXPECT_EQ(Await(t, runtimes.machine->ListMachines(ObjectFilter()))->size(), 1U);
  const auto volume = Await(t, runtimes.volume->CreateVolume(NewVolume(t, "v-1")));
  const auto same_volume = Await(t, runtimes.volume->CreateVolume(NewVolume(t, "v-1")));
  ASSERT_TRUE(volume.ok() && same_volume.ok());
  EXPECT_EQ(same_volume->metadata.id, volume->metadata.id);
  const auto bucket = Await(t, runtimes.bucket->CreateBucket(NewBucket(t, "b-1")));
  const auto same_bucket = Await(t, runtimes.bucket->CreateBucket(NewBucket(t, "b-1")));
  ASSERT_TRUE(bucket.ok() && same_bucket.ok());
  EXPECT_EQ(same_bucket->metadata.id, bucket->metadata.id);
}

std::unique_ptr<ChangeStream> StartWatch(RuntimeUnderTest& t, const std::string& cursor) {
  auto stream = Await(t, t.runtimes().host->Watch(cursor));
  CHECK(stream.ok()) << stream.status();
  return *std::move(stream);
}
Change ReadChange(RuntimeUnderTest& t, ChangeStream& stream) {
  auto change = Await(t, rt::WithDeadline(stream.Next(), Duration::Minutes(1)));
  CHECK(change.ok()) << change.status();
  return *std::move(change);
}
// The first change of this type for this uid; what else happens is skipped.
Change ReadUntil(RuntimeUnderTest& t, ChangeStream& stream, ChangeType type, std::string_view uid) {
  constexpr int kChangesMax = 100;
  for (int i = 0; i < kChangesMax; ++i) {
    Change change = ReadChange(t, stream);
    if (change.type == type && change.uid == uid) return change;
  }
  ADD_FAILURE() << "no change " << ChangeTypeName(type) << " of " << uid;
  return {};
}

void WatchBeginsWithAResyncAndTellsEveryChange(RuntimeUnderTest& t) {
  const auto stream = StartWatch(t, "");
  EXPECT_EQ(ReadChange(t, *stream).type, ChangeType::kResync);
  const Machine machine = Running(t, "u-1");
  const Change created = ReadUntil(t, *stream, ChangeType::kCreated, "u-1");
  EXPECT_EQ(created.kind, ObjectKind::kMachine);
  EXPECT_EQ(created.id, machine.metadata.id);
  ReadUntil(t, *stream, ChangeType::kChanged, "u-1");
  EXPECT_EQ(Await(t, t.runtimes().machine->DeleteMachine(machine.metadata.id)), OkStatus());
  ReadUntil(t, *stream, ChangeType::kDeleted, "u-1");
  ASSERT_TRUE(Await(t, t.runtimes().volume->CreateVolume(NewVolume(t, "v-1"))).ok());
  EXPECT_EQ(ReadUntil(t, *stream, ChangeType::kCreated, "v-1").kind, ObjectKind::kVolume);
  EXPECT_EQ(Await(t, stream->Close()), OkStatus());
}

void WatchGoesOnFromItsCursor(RuntimeUnderTest& t) {
  const auto first = StartWatch(t, "");
  const std::string cursor = ReadChange(t, *first).cursor;
  EXPECT_EQ(Await(t, first->Close()), OkStatus());
  ASSERT_TRUE(Await(t, t.runtimes().volume->CreateVolume(NewVolume(t, "v-1"))).ok());
  const auto second = StartWatch(t, cursor);
  const Change change = ReadChange(t, *second);
  EXPECT_EQ(change.type, ChangeType::kCreated) << "nothing is missed, nothing is listed again";
  EXPECT_EQ(change.uid, "v-1");
  EXPECT_EQ(Await(t, second->Close()), OkStatus());
}

void WatchAnswersALostCursorWithAResync(RuntimeUnderTest& t) {
  for (const std::string cursor : {"nonsense", "another.17", "."}) {
    const auto stream = StartWatch(t, cursor);
    EXPECT_EQ(ReadChange(t, *stream).type, ChangeType::kResync) << cursor;
    EXPECT_EQ(Await(t, stream->Close()), OkStatus());
  }
}

HostCapacity CapacityOf(RuntimeUnderTest& t) {
  auto capacity = Await(t, t.runtimes().host->Capacity());
  CHECK(capacity.ok()) << capacity.status();
  return *std::move(capacity);
}

// One budget for all classes and kinds: two classes cannot both have the whole host.
void D2_CountsTheHostOnce(RuntimeUnderTest& t) {
  const HostCapacity before = CapacityOf(t);
  EXPECT_FALSE(before.boot_id.empty());
  const Machine machine = Running(t, "u-1");
  ASSERT_TRUE(Await(t, t.runtimes().volume->CreateVolume(NewVolume(t, "v-1"))).ok());
  const HostCapacity after = CapacityOf(t);
  EXPECT_EQ(after.total, before.total);
  EXPECT_EQ(after.boot_id, before.boot_id);
  const auto grown = [&](std::string_view name) {
    const auto was = before.used.find(name);
    return after.used.find(name)->second - (was == before.used.end() ? 0 : was->second);
  };
  const auto classes = Await(t, t.runtimes().machine->ClassStatus());
  const ResourceVector needs = ToResourceVector(classes->front().machine_class);
  EXPECT_EQ(grown(kCpu), needs.find(kCpu)->second);
  EXPECT_EQ(grown(kMemory), needs.find(kMemory)->second);
  EXPECT_EQ(grown(kStorage), 1 << 20);
  const auto instance =
      std::ranges::find(after.instances, machine.metadata.id, &InstanceStatistics::id);
  ASSERT_NE(instance, after.instances.end());
  EXPECT_EQ(instance->uid, "u-1");
  EXPECT_GT(instance->memory_bytes, 0);
}

std::vector<LeaseState> Renew(RuntimeUnderTest& t,
                              Duration from_now,
                              std::vector<std::string> uids,
                              std::vector<std::string> released = {}) {
  LeaseRenewal renewal;
  renewal.deadline = t.Now() + from_now;
  renewal.machine_uids = std::move(uids);
  renewal.released_uids = std::move(released);
  auto leases = Await(t, t.runtimes().host->RenewLease(renewal));
  CHECK(leases.ok()) << leases.status();
  return *std::move(leases);
}

void KillsAtTheDeadlineAndStartsOnlyAfterRelease(RuntimeUnderTest& t) {
  MachineRuntime& runtime = *t.runtimes().machine;
  const Machine moving = Running(t, "u-1");
  const Machine staying = Running(t, "u-2");
  const std::string id = moving.metadata.id;
  const auto armed = Renew(t, Duration::Millis(50), {"u-1"});
  ASSERT_EQ(armed.size(), 1U);
  EXPECT_FALSE(armed[0].fenced);
  EXPECT_TRUE(BecomesState(t, id, MachineState::kTerminated));
  EXPECT_EQ(GetMachine(t, staying.metadata.id)->status.state, MachineState::kRunning);

  const auto late = Renew(t, Duration::Hours(1), {"u-1"});
  ASSERT_EQ(late.size(), 1U);
  EXPECT_TRUE(late[0].fenced) << "what has run out is not revived";
  EXPECT_EQ(Await(t, runtime.UpdateMachinePower(id, Power::kOn)).reason(), Reason::kForbidden);

  const auto anew = Renew(t, Duration::Hours(1), {"u-1"}, {"u-1"});
  ASSERT_EQ(anew.size(), 1U);
  EXPECT_FALSE(anew[0].fenced);
  EXPECT_EQ(Await(t, runtime.UpdateMachinePower(id, Power::kOn)), OkStatus());
  EXPECT_TRUE(BecomesState(t, id, MachineState::kRunning));
}

void RenewedGuestsLiveOn(RuntimeUnderTest& t) {
  const Machine machine = Running(t, "u-1");
  Renew(t, Duration::Millis(300), {"u-1"});
  Renew(t, Duration::Hours(1), {"u-1"});
  const auto leases = Renew(t, Duration::Millis(1), {"u-1"});
  EXPECT_GT(leases.at(0).deadline, t.Now() + Duration::Minutes(30))
      << "a deadline never moves back";
  t.Pass(Duration::Millis(400));
  EXPECT_EQ(GetMachine(t, machine.metadata.id)->status.state, MachineState::kRunning);
  EXPECT_TRUE(Renew(t, Duration::Hours(1), {}, {"u-1"}).empty());
}

void StartsMovingMachinesOnlyUnderALease(RuntimeUnderTest& t) {
  Machine wanted = NewMachine(t, "u-1");
  wanted.metadata.annotations = {
      {std::string(kOnPoolLossAnnotation), std::string(kOnPoolLossMove)}};
  const auto refused = Await(t, t.runtimes().machine->CreateMachine(wanted));
  EXPECT_EQ(refused.status().reason(), Reason::kForbidden) << refused.status();
  Renew(t, Duration::Hours(1), {"u-1"});
  EXPECT_TRUE(Await(t, t.runtimes().machine->CreateMachine(wanted)).ok());
}

// Fills the host with reservations for one uid: nobody else gets in, the owner does.
void KeepsRoomForReservations(RuntimeUnderTest& t) {
  HostRuntime& host = *t.runtimes().host;
  const HostCapacity capacity = CapacityOf(t);
  Reservation all;
  all.id = "r-1";
  all.machine_uid = "u-1";
  all.resources = {{std::string(kCpu), capacity.total.find(kCpu)->second}};
  const std::vector<Reservation> wanted = {all};
  EXPECT_EQ(Await(t, host.SetReservations(wanted)), OkStatus());
  EXPECT_EQ(*Await(t, host.ListReservations()), wanted);
  MachineRuntime& machines = *t.runtimes().machine;
  const auto other = Await(t, machines.CreateMachine(NewMachine(t, "u-2")));
  EXPECT_EQ(other.status().reason(), Reason::kTooManyRequests) << other.status();
  EXPECT_TRUE(Await(t, machines.CreateMachine(NewMachine(t, "u-1"))).ok());

  Reservation more = all;
  more.id = "r-2";
  more.machine_uid = "u-3";
  const std::vector<Reservation> too_many = {all, more};
  EXPECT_EQ(Await(t, host.SetReservations(too_many)).reason(), Reason::kConflict);
  EXPECT_EQ(*Await(t, host.ListReservations()), wanted) << "all or nothing";
  EXPECT_EQ(Await(t, host.SetReservations(std::vector<Reservation>())), OkStatus());
  EXPECT_TRUE(Await(t, host.ListReservations())->empty());
}

void TakesIgnitionAgain(RuntimeUnderTest& t) {
  HostRuntime& host = *t.runtimes().host;
  Machine wanted = NewMachine(t, "u-1");
  wanted.spec.power = Power::kOff;
  wanted.spec.ignition_data = "first";
  const auto made = Await(t, t.runtimes().machine->CreateMachine(wanted));
  ASSERT_TRUE(made.ok()) << made.status();
  for (const std::string data : {"second", "second", ""}) {
    Ignition ignition{.machine_uid = "u-1", .data = data};
    EXPECT_EQ(Await(t, host.SetIgnition(ignition)), OkStatus());
    EXPECT_EQ(GetMachine(t, made->metadata.id)->spec.ignition_data, data);
  }
  Ignition nobodys{.machine_uid = "u-2", .data = "x"};
  EXPECT_EQ(Await(t, host.SetIgnition(nobodys)).reason(), Reason::kNotFound);
}

constexpr auto kContracts = std::to_array<RuntimeContract>({
    {"D15_CreatesOnlyOnceByUid", D15_CreatesOnlyOnceByUid},
    {"D5_WatchBeginsWithAResyncAndTellsEveryChange", WatchBeginsWithAResyncAndTellsEveryChange},
    {"WatchGoesOnFromItsCursor", WatchGoesOnFromItsCursor},
    {"WatchAnswersALostCursorWithAResync", WatchAnswersALostCursorWithAResync},
    {"D2_CountsTheHostOnce", D2_CountsTheHostOnce},
    {"P33_KillsAtTheDeadlineAndStartsOnlyAfterRelease",
     KillsAtTheDeadlineAndStartsOnlyAfterRelease},
    {"P33_RenewedGuestsLiveOn", RenewedGuestsLiveOn},
    {"P33_StartsMovingMachinesOnlyUnderALease", StartsMovingMachinesOnlyUnderALease},
    {"KeepsRoomForReservations", KeepsRoomForReservations},
    {"TakesIgnitionAgain", TakesIgnitionAgain},
});

}  // namespace

std::span<const RuntimeContract> HostContracts() { return kContracts; }

}  // namespace berth::iri
