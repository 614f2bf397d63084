// SPDX-License-Identifier: Apache-2.0
// Filters select exactly what they say, and classes turn into what they take of a host.
#include "iri/object.h"

#include <gtest/gtest.h>

#include "iri/host.h"
#include "iri/machine.h"
#include "iri/volume.h"

namespace berth::iri {
namespace {

ObjectMetadata Web() {
  ObjectMetadata metadata;
  metadata.id = "m-1";
  metadata.labels = {{"app", "web"}, {"zone", "a"}};
  return metadata;
}

struct FilterCase {
  ObjectFilter filter;
  bool matches;
};

TEST(ObjectFilter, WantsTheIdAndEveryLabel) {
  const FilterCase cases[] = {
      {{}, true},
      {{"m-1", {}}, true},
      {{"m-2", {}}, false},
      {{"", {{"app", "web"}}}, true},
      {{"", {{"app", "web"}, {"zone", "a"}}}, true},
      {{"", {{"app", "web"}, {"zone", "b"}}}, false},
      {{"", {{"missing", ""}}}, false},
      {{"m-1", {{"app", "db"}}}, false},
  };
  for (const FilterCase& c : cases) EXPECT_EQ(Matches(c.filter, Web()), c.matches);
}

TEST(EventFilter, TakesBothEndsOfItsTime) {
  Event event;
  event.involved = Web();
  event.time = WallTime::FromSeconds(100);
  const auto between = [&](int64_t from, int64_t to) {
    EventFilter filter;
    filter.from = WallTime::FromSeconds(from);
    filter.to = WallTime::FromSeconds(to);
    return Matches(filter, event);
  };
  EXPECT_TRUE(between(0, 0));
  EXPECT_TRUE(between(100, 100));
  EXPECT_FALSE(between(101, 0));
  EXPECT_FALSE(between(0, 99));
}

TEST(EventFilter, AnEventBelongsToItsWholeSecond) {
  Event event;
  event.time = WallTime::FromSeconds(100) + Duration::Millis(900);
  EventFilter filter;
  filter.to = WallTime::FromSeconds(100);
  EXPECT_TRUE(Matches(filter, event));
  filter.to = WallTime::FromSeconds(99);
  EXPECT_FALSE(Matches(filter, event));
}

TEST(MachineClass, CountsCoresInThousandthsOfTheHost) {
  MachineClass small;
  small.capabilities = {{"cpu", 2}, {"memory", 1024}, {"gpu", 1}};
  EXPECT_EQ(ToResourceVector(small), (ResourceVector{{"cpu", 2000}, {"memory", 1024}, {"gpu", 1}}));
}

TEST(Names, AreUnknownForUnknownNumbers) {
  EXPECT_EQ(MachineStateName(MachineState::kStopped), "Stopped");
  EXPECT_EQ(MachineStateName(MachineState::kUnknown), "Unknown");
  EXPECT_EQ(VolumeStateName(VolumeState::kError), "Error");
  EXPECT_EQ(ObjectKindName(ObjectKind::kVolumeSnapshot), "VolumeSnapshot");
  EXPECT_EQ(ChangeTypeName(ChangeType::kDeleted), "Deleted");
  EXPECT_EQ(PowerName(static_cast<Power>(7)), "Unknown");
}

}  // namespace
}  // namespace berth::iri
