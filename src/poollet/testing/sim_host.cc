// SPDX-License-Identifier: Apache-2.0
#include "poollet/testing/sim_host.h"

#include <utility>

#include "base/check.h"
#include "iri/labels.h"
#include "rt/sim/run_task.h"

namespace berth::poollet {

runtime::FakeHostOptions SimHost::DefaultFake() {
  runtime::FakeHostOptions fake = runtime::DefaultFakeHost();
  fake.times.call_min = Duration::Micros(200);
  fake.times.call_max = Duration::Millis(5);
  return fake;
}

SimHost::SimHost(rt::SimLoop& loop,
                 net::SimNetwork& network,
                 uint64_t seed,
                 runtime::FakeHostOptions fake)
    : loop_(loop),
      fake_(loop, std::make_shared<runtime::FakeHostState>(std::move(fake), seed)),
      disk_(seed) {
  network.AddNode("host", loop);
  dialer_ = network.NewDialer("host");
  for (const char* kind : {"MachinePool", "VolumePool", "BucketPool"}) {
    options.host.pools.push_back(
        {.kind = kind, .name = std::string("pool-") + kind, .provider_id = "fake://host"});
  }
  options.host.servers = {"server:7443"};
  options.host.version = "test";
}

SimHost::~SimHost() {
  if (poollet_ != nullptr) Kill();
}

void SimHost::Start() {
  CHECK(poollet_ == nullptr);
  Poollet::Deps deps;
  deps.loop = &loop_;
  deps.dialer = dialer_.get();
  deps.credentials = &credentials_;
  deps.disk = &disk_;
  deps.runtimes = ToHostRuntimes(fake_.runtimes());
  auto started = rt::RunTask(loop_, Poollet::Start(deps, options));
  CHECK(started.ok()) << started.status();
  poollet_ = *std::move(started);
}

void SimHost::Kill() {
  disk_.Crash();
  CHECK(rt::RunTask(loop_, poollet_->Abandon()).ok());
  poollet_.reset();
}

Status SimHost::Stop(LeaveMode mode) {
  const Status stopped = rt::RunTask(loop_, poollet_->Stop(mode));
  if (stopped.ok()) poollet_.reset();
  return stopped;
}

int SimHost::Running(const std::string& uid) {
  return fake_.state().RunningCopies(fake_.clock(), uid);
}

int SimHost::Objects(const std::string& uid) {
  fake_.state().Advance(fake_.clock());
  int count = 0;
  for (const auto& [_, machine] : fake_.state().machines()) {
    if (iri::LabelOf(machine.object.metadata, iri::kMachineUidLabel) == uid) ++count;
  }
  for (const auto& [_, volume] : fake_.state().volumes()) {
    if (iri::LabelOf(volume.object.metadata, iri::kVolumeUidLabel) == uid) ++count;
  }
  for (const auto& [_, snapshot] : fake_.state().snapshots()) {
    if (iri::LabelOf(snapshot.object.metadata, iri::kSnapshotUidLabel) == uid) ++count;
  }
  return count;
}

}  // namespace berth::poollet
