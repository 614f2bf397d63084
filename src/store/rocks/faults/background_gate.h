// SPDX-License-Identifier: Apache-2.0
// A BackgroundGate is what RocksDB's background work passes before it begins: a test decides when
// that is.
#pragma once

#include <memory>

#include "base/mutex.h"

namespace berth::store {

class BackgroundGate {
 public:
  // Nothing begins from now on.
  void Hold();
  // Lets everything begin, and waits until all of it is done.
  void Finish();

 private:
  friend class GatedWork;
  void OnScheduled();
  void Pass();
  void OnDone();

  Mutex mutex_;
  CondVar changed_;
  bool is_held_ GUARDED_BY(mutex_) = false;
  int pending_ GUARDED_BY(mutex_) = 0;  // scheduled, not done yet
};

// One piece of work for a thread pool, in the form in which it takes them. It may outlive the
// database, which counts the work as done before the function returns.
class GatedWork {
 public:
  using Function = void (*)(void*);

  GatedWork(std::shared_ptr<BackgroundGate> gate, Function run, void* argument, Function drop);
  ~GatedWork();
  GatedWork(const GatedWork&) = delete;
  GatedWork& operator=(const GatedWork&) = delete;

  // Of a GatedWork that the caller has released; one of the two, once.
  static void Run(void* self);
  static void Drop(void* self);

 private:
  const std::shared_ptr<BackgroundGate> gate_;
  const Function run_;
  void* const argument_;
  const Function drop_;  // may be null
};

}  // namespace berth::store
