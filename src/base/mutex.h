// SPDX-License-Identifier: Apache-2.0
// A mutex that clang's thread-safety analysis understands. For engines with threads of their own
// (store, metrics, loops' inboxes); components use a loop instead.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/thread_annotations.h"

namespace berth {

class CAPABILITY("mutex") Mutex {
 public:
  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // Waits for a notification; the caller loops on its own condition.
  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    variable_.wait(lock);
    lock.release();
  }
  void NotifyOne() { variable_.notify_one(); }
  void NotifyAll() { variable_.notify_all(); }

 private:
  std::condition_variable variable_;
};

}  // namespace berth
