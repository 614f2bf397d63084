// SPDX-License-Identifier: Apache-2.0
// A watch misses nothing, says so when it must, and ends with the runtime.
#include "runtime/changes/change_log.h"

#include <gtest/gtest.h>

#include "iri/labels.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::runtime {
namespace {

class ChangeLogTest : public testing::Test {
 protected:
  iri::Change Next(iri::ChangeStream& stream) {
    auto change = rt::RunTask(loop_, stream.Next());
    CHECK(change.ok()) << change.status();
    return *std::move(change);
  }
  void Add(const std::string& id) {
    iri::ObjectMetadata metadata;
    metadata.id = id;
    metadata.labels = {{std::string(iri::kVolumeUidLabel), "uid-" + id}};
    log_.Add(iri::ObjectKind::kVolume, iri::ChangeType::kCreated, metadata, "created");
  }

  rt::SimLoop loop_{1};
  ChangeLog log_{"life1"};
};

TEST_F(ChangeLogTest, BeginsWithAResyncThenTellsAllInOrder) {
  const auto stream = log_.Watch("");
  EXPECT_EQ(Next(*stream).type, iri::ChangeType::kResync);
  Add("a");
  Add("b");
  EXPECT_EQ(Next(*stream).uid, "uid-a");
  EXPECT_EQ(Next(*stream).id, "b");
}

TEST_F(ChangeLogTest, GoesOnFromACursorOfThisLifeOnly) {
  Add("a");
  const auto first = log_.Watch("");
  const std::string cursor = Next(*first).cursor;
  Add("b");
  const auto second = log_.Watch(cursor);
  EXPECT_EQ(Next(*second).id, "b");
  for (const std::string lost : {"life0.1", "life1.x", "life1.99", "."}) {
    const auto stream = log_.Watch(lost);
    EXPECT_EQ(Next(*stream).type, iri::ChangeType::kResync) << lost;
  }
}

TEST_F(ChangeLogTest, WhoIsTooFarBehindIsToldToListAgain) {
  const auto stream = log_.Watch("");
  const std::string cursor = Next(*stream).cursor;
  for (size_t i = 0; i < kChangesMax; ++i) Add("x");
  const auto in_time = log_.Watch(cursor);
  EXPECT_EQ(Next(*in_time).type, iri::ChangeType::kCreated);
  Add("y");
  const auto late = log_.Watch(cursor);
  EXPECT_EQ(Next(*late).type, iri::ChangeType::kResync);
}

TEST_F(ChangeLogTest, EndsWithTheRuntime) {
  const auto stream = log_.Watch("");
  Next(*stream);
  log_.End();
  EXPECT_EQ(rt::RunTask(loop_, stream->Next()).status().reason(), Reason::kUnavailable);
}

}  // namespace
}  // namespace berth::runtime
