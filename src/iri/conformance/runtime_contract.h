// SPDX-License-Identifier: Apache-2.0
// What every runtime promises (the sentences of iri/*.h), as functions that every body passes. Uses
// gtest expectations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "iri/runtimes.h"
#include "rt/task.h"

namespace berth::iri {

// A host without objects that offers all three kinds and `host`, has room for at least two machines
// of its first class, and boots a guest within a minute of its own time.
class RuntimeUnderTest {
 public:
  virtual ~RuntimeUnderTest() = default;
  virtual Runtimes runtimes() = 0;
  virtual Status Run(rt::Task<Status> task) = 0;
  // Lets time pass on the loop.
  virtual void Pass(Duration duration) = 0;
  // The monotonic clock of the host.
  virtual Time Now() = 0;
  // How a volume of its own that takes this many bytes is connected to a machine there.
  virtual VolumeConnection Connection(const std::string& name, int64_t bytes) {
    VolumeConnection connection;
    connection.driver = "fake";
    connection.handle = "h-" + name;
    connection.attributes = {{"a", "b"}};
    connection.secret_data = {{"key", "secret"}};
    connection.effective_storage_bytes = bytes;
    return connection;
  }
};
using RuntimeFactory = std::function<std::unique_ptr<RuntimeUnderTest>()>;

struct RuntimeContract {
  const char* name;
  void (*run)(RuntimeUnderTest&);
};

std::span<const RuntimeContract> MachineContracts();
std::span<const RuntimeContract> StorageContracts();  // volumes, snapshots, buckets
std::span<const RuntimeContract> HostContracts();
// All of the above.
std::vector<RuntimeContract> RuntimeContracts();

}  // namespace berth::iri
