// SPDX-License-Identifier: Apache-2.0
// A memory store in virtual time for the contract of stores: as it is, or behind what wraps it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/check.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/conformance/store_contract.h"
#include "store/memory/memory_store.h"

namespace berth::store {

class MemoryUnderTest final : public StoreUnderTest {
 public:
  // Puts something around a handle, which outlives it.
  using Wrap = std::function<std::unique_ptr<Store>(Store& handle)>;
  explicit MemoryUnderTest(uint64_t seed, Wrap wrap = nullptr)
      : wrap_(std::move(wrap)), loop_(seed) {
    Open();
  }

  rt::Loop& loop() override { return loop_; }
  Status Run(rt::Task<Status> task) override { return rt::RunTask(loop_, std::move(task)); }
  void Pass(Duration duration) override { loop_.RunFor(duration); }
  Store& first() override { return first_.store(); }
  Store& second() override { return second_.store(); }
  Status Close() override { return Run(store_->Close()); }
  void Reopen() override {
    CHECK(Close().ok());
    Open();
  }

 private:
  struct Handle {
    std::unique_ptr<Store> inner;
    std::unique_ptr<Store> wrapped;  // null: it is used as it is
    Store& store() { return wrapped != nullptr ? *wrapped : *inner; }
  };
  void Open() {
    first_.wrapped.reset();  // before the handle that it uses
    second_.wrapped.reset();
    store_ = MemoryStore::Open(loop_, disk_);
    first_ = NewHandle();
    second_ = NewHandle();
  }
  Handle NewHandle() {
    Handle handle;
    handle.inner = store_->NewHandle();
    if (wrap_) handle.wrapped = wrap_(*handle.inner);
    return handle;
  }

  const Wrap wrap_;
  rt::SimLoop loop_;
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::unique_ptr<MemoryStore> store_;
  Handle first_;
  Handle second_;
};

}  // namespace berth::store
