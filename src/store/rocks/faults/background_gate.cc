// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/faults/background_gate.h"

#include <utility>

namespace berth::store {

void BackgroundGate::Hold() {
  MutexLock lock(mutex_);
  is_held_ = true;
}

void BackgroundGate::Finish() {
  MutexLock lock(mutex_);
  is_held_ = false;
  changed_.NotifyAll();
  while (pending_ > 0) changed_.Wait(mutex_);
}

void BackgroundGate::OnScheduled() {
  MutexLock lock(mutex_);
  ++pending_;
}

void BackgroundGate::Pass() {
  MutexLock lock(mutex_);
  while (is_held_) changed_.Wait(mutex_);
}

void BackgroundGate::OnDone() {
  MutexLock lock(mutex_);
  --pending_;
  changed_.NotifyAll();
}

GatedWork::GatedWork(std::shared_ptr<BackgroundGate> gate,
                     Function run,
                     void* argument,
                     Function drop)
    : gate_(std::move(gate)), run_(run), argument_(argument), drop_(drop) {
  gate_->OnScheduled();
}

GatedWork::~GatedWork() { gate_->OnDone(); }

void GatedWork::Run(void* self) {
  const std::unique_ptr<GatedWork> work(static_cast<GatedWork*>(self));
  work->gate_->Pass();
  work->run_(work->argument_);
}

void GatedWork::Drop(void* self) {
  const std::unique_ptr<GatedWork> work(static_cast<GatedWork*>(self));
  if (work->drop_ != nullptr) work->drop_(work->argument_);
}

}  // namespace berth::store
