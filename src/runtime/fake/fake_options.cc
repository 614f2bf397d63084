// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/fake_options.h"

namespace berth::runtime {

namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

iri::MachineClass Class(std::string name, int64_t cores, int64_t memory) {
  iri::MachineClass machine_class;
  machine_class.name = std::move(name);
  machine_class.capabilities = {{std::string(iri::kCpu), cores},
                                {std::string(iri::kMemory), memory}};
  return machine_class;
}

}  // namespace

FakeHostOptions DefaultFakeHost() {
  FakeHostOptions options;
  options.capacity = {{std::string(iri::kCpu), 8000},
                      {std::string(iri::kMemory), 32 * kGiB},
                      {std::string(iri::kStorage), 1024 * kGiB}};
  options.machine_classes = {
      Class("small", 1, kGiB), Class("medium", 2, 4 * kGiB), Class("large", 4, 8 * kGiB)};
  options.volume_classes = {{.name = "fast", .tps = 100 << 20, .iops = 10'000},
                            {.name = "slow", .tps = 10 << 20, .iops = 500}};
  options.bucket_classes = {{.name = "standard", .tps = 100 << 20, .iops = 1'000}};
  return options;
}

}  // namespace berth::runtime
