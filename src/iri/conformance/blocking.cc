// SPDX-License-Identifier: Apache-2.0
#include "iri/conformance/blocking.h"

#include <gtest/gtest.h>

#include "iri/labels.h"

namespace berth::iri {

bool Eventually(RuntimeUnderTest& under_test, const std::function<bool()>& done) {
  const Time limit = under_test.Now() + Duration::Minutes(1);
  while (!done()) {
    if (under_test.Now() > limit) return false;
    under_test.Pass(Duration::Millis(5));
  }
  return true;
}

Machine NewMachine(RuntimeUnderTest& under_test, const std::string& uid) {
  const auto classes = Await(under_test, under_test.runtimes().machine->ClassStatus());
  CHECK(classes.ok() && !classes->empty()) << classes.status();
  Machine machine;
  machine.metadata.labels = {{std::string(kMachineUidLabel), uid},
                             {std::string(kMachineNameLabel), "web"}};
  machine.spec.class_name = classes->front().machine_class.name;
  return machine;
}

Volume NewVolume(RuntimeUnderTest& under_test, const std::string& uid) {
  const auto classes = Await(under_test, under_test.runtimes().volume->ClassStatus());
  CHECK(classes.ok() && !classes->empty()) << classes.status();
  Volume volume;
  volume.metadata.labels = {{std::string(kVolumeUidLabel), uid}};
  volume.spec.class_name = classes->front().volume_class.name;
  volume.spec.storage_bytes = 1 << 20;
  return volume;
}

Bucket NewBucket(RuntimeUnderTest& under_test, const std::string& uid) {
  const auto classes = Await(under_test, under_test.runtimes().bucket->ListBucketClasses());
  CHECK(classes.ok() && !classes->empty()) << classes.status();
  Bucket bucket;
  bucket.metadata.labels = {{std::string(kBucketUidLabel), uid}};
  bucket.class_name = classes->front().name;
  return bucket;
}

namespace {

template <class T>
std::optional<T> OnlyOne(const Result<std::vector<T>>& listed) {
  CHECK(listed.ok()) << listed.status();
  CHECK(listed->size() <= 1) << "an id names several objects";
  if (listed->empty()) return std::nullopt;
  return listed->front();
}
ObjectFilter ById(const std::string& id) {
  ObjectFilter filter;
  filter.id = id;
  return filter;
}

}  // namespace

std::optional<Machine> GetMachine(RuntimeUnderTest& under_test, const std::string& id) {
  return OnlyOne(Await(under_test, under_test.runtimes().machine->ListMachines(ById(id))));
}
std::optional<Volume> GetVolume(RuntimeUnderTest& under_test, const std::string& id) {
  return OnlyOne(Await(under_test, under_test.runtimes().volume->ListVolumes(ById(id))));
}
std::optional<Bucket> GetBucket(RuntimeUnderTest& under_test, const std::string& id) {
  return OnlyOne(Await(under_test, under_test.runtimes().bucket->ListBuckets(ById(id))));
}

bool BecomesState(RuntimeUnderTest& under_test, const std::string& id, MachineState state) {
  return Eventually(under_test, [&] {
    const std::optional<Machine> machine = GetMachine(under_test, id);
    return machine.has_value() && machine->status.state == state;
  });
}

Machine Running(RuntimeUnderTest& under_test, const std::string& uid) {
  MachineRuntime& runtime = *under_test.runtimes().machine;
  const auto made = Await(under_test, runtime.CreateMachine(NewMachine(under_test, uid)));
  CHECK(made.ok()) << made.status();
  EXPECT_TRUE(BecomesState(under_test, made->metadata.id, MachineState::kRunning));
  return *GetMachine(under_test, made->metadata.id);
}

}  // namespace berth::iri
