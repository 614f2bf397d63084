// SPDX-License-Identifier: Apache-2.0
// The checker finds what a broken store would do, and nothing in what a right one does.
#include "store/conformance/linearizable.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::store {
namespace {

using Type = Observation::Type;

Observation Make(Type type, int64_t begun, int64_t ended, std::string value, int64_t revision) {
  Observation seen;
  seen.type = type;
  seen.begun = Time::FromNanos(begun);
  seen.ended = Time::FromNanos(ended);
  seen.key = "k";
  seen.value = std::move(value);
  seen.revision = {revision};
  return seen;
}
Observation Write(int64_t begun, int64_t ended, std::string value, int64_t revision) {
  return Make(Type::kWrite, begun, ended, std::move(value), revision);
}
Observation Read(
    int64_t begun, int64_t ended, std::string value, int64_t revision, int64_t changed) {
  Observation seen = Make(Type::kRead, begun, ended, std::move(value), revision);
  seen.changed = {changed};
  return seen;
}

void ExpectOne(const std::vector<Observation>& history, std::string_view part) {
  const std::vector<std::string> found = FindViolations(history);
  ASSERT_FALSE(found.empty()) << part;
  EXPECT_NE(found[0].find(part), std::string::npos) << found[0];
}

TEST(Linearizable, AcceptsAnOrderThatAgreesWithTime) {
  Observation second = Write(4, 9, "b", 3);
  second.is_conditional = true;
  second.replaces = {2};
  EXPECT_TRUE(FindViolations({Write(1, 5, "a", 2),
                              second,
                              Read(6, 7, "a", 2, 2),
                              Read(6, 8, "b", 3, 3),
                              Read(0, 2, "", 1, 0),
                              Make(Type::kUnknown, 10, 11, "c", 0),
                              Read(12, 13, "c", 4, 4)})
                  .empty());
}

TEST(Linearizable, FindsAStaleRead) {
  ExpectOne({Write(1, 2, "a", 2), Read(3, 4, "", 1, 0)}, "began after the end of");
}
TEST(Linearizable, FindsAReadThatMissesAWrite) {
  ExpectOne({Write(1, 2, "a", 2), Read(3, 4, "", 3, 0)}, "does not know of");
}
TEST(Linearizable, FindsALostUpdate) {
  Observation late = Write(1, 9, "b", 4);
  late.is_conditional = true;
  late.replaces = {2};
  ExpectOne({Write(1, 9, "a", 3), late}, "does not know of");
}
TEST(Linearizable, FindsWhatNobodyWrote) { ExpectOne({Read(1, 2, "x", 3, 3)}, "never written"); }
TEST(Linearizable, FindsAWriteThatHappenedTwice) {
  ExpectOne({Make(Type::kUnknown, 1, 2, "a", 0), Read(3, 4, "a", 3, 3), Read(5, 6, "a", 9, 8)},
            "written twice");
}
TEST(Linearizable, FindsTwoWritesAtOneRevision) {
  ExpectOne({Write(1, 9, "a", 3), Write(1, 9, "b", 3)}, "has the revision of");
}

}  // namespace
}  // namespace berth::store
