// SPDX-License-Identifier: Apache-2.0
// What is encoded decodes to the same, and no damage goes unnoticed.
#include "store/mvcc/record.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "store/mvcc/crc32c.h"

namespace berth::store {
namespace {

std::string Join(const EncodedRecord& encoded, const Record& record) {
  return encoded.head + std::string(record.value.view()) + encoded.tail;
}

Record Sample() {
  Record record;
  record.at = {.revision = {1'234'567'890'123}, .sub = 127};
  record.previous = {.revision = {1'234'567'890'000}, .sub = 3};
  record.key = std::string("a\0key", 5);
  record.value = Bytes(std::string_view("value\0with zero", 15));
  record.create_revision = {7};
  record.version = 300;
  record.lease = {0x7fffffffffffffff};
  return record;
}

TEST(Record, DecodesToWhatWasEncoded) {
  const Record record = Sample();
  const Result<Record> decoded = DecodeRecord(record.at, Join(EncodeRecord(record), record));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->at, record.at);
  EXPECT_EQ(decoded->type, Op::Type::kPut);
  EXPECT_EQ(decoded->previous, record.previous);
  EXPECT_EQ(decoded->key, record.key);
  EXPECT_EQ(decoded->value, record.value);
  EXPECT_EQ(decoded->create_revision, record.create_revision);
  EXPECT_EQ(decoded->version, record.version);
  EXPECT_EQ(decoded->lease, record.lease);
}

TEST(Record, EveryFlippedBitAndEveryCutIsNoticed) {
  const Record record = Sample();
  const std::string bytes = Join(EncodeRecord(record), record);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(DecodeRecord(record.at, damaged).ok()) << "bit " << bit;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeRecord(record.at, bytes.substr(0, size)).ok()) << size;
  }
}

TEST(Record, AtAnotherPlaceIsDamaged) {
  const Record record = Sample();
  const std::string bytes = Join(EncodeRecord(record), record);
  EXPECT_FALSE(DecodeRecord({.revision = record.at.revision, .sub = 126}, bytes).ok());
  EXPECT_FALSE(DecodeRecord({.revision = record.at.revision.Next(), .sub = 127}, bytes).ok());
}

TEST(Record, GarbageWithARightChecksumIsNoticed) {
  const Position at{.revision = {5}, .sub = 0};
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random.Below(40), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Next());
    if (!bytes.empty()) bytes[0] = static_cast<char>(random.Below(4));
    PutFixed32(bytes, ExtendCrc32c(ExtendCrc32c(0, EncodePosition(at)), bytes));
    const Result<Record> decoded = DecodeRecord(at, bytes);  // must not crash or read too far
    if (decoded.ok()) EXPECT_LE(decoded->key.size() + decoded->value.size(), bytes.size());
  }
}

TEST(Position, SortsAsItsBytes) {
  Random random(1);
  Position before{.revision = {1}, .sub = 0};
  for (int i = 0; i < 1'000; ++i) {
    const Position at{.revision = {static_cast<int64_t>(random.Next() >> random.Between(2, 60))},
                      .sub = static_cast<uint8_t>(random.Below(128))};
    EXPECT_EQ(DecodePosition(EncodePosition(at)), at);
    EXPECT_EQ(at < before, EncodePosition(at) < EncodePosition(before));
    before = at;
  }
}

TEST(Crc32c, IsTheKnownFunctionOnAnyProcessor) {
  EXPECT_EQ(ExtendCrc32c(0, "123456789"), 0xe3069283U);
  EXPECT_EQ(ExtendCrc32cPortable(0, "123456789"), 0xe3069283U);
  EXPECT_EQ(ExtendCrc32c(0, std::string(32, '\0')), 0x8a9136aaU);
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text.push_back(static_cast<char>(i * 7));
    EXPECT_EQ(ExtendCrc32c(0, text), ExtendCrc32cPortable(0, text));
    const std::string_view view = text;
    EXPECT_EQ(ExtendCrc32c(ExtendCrc32c(0, view.substr(0, 3)),
                           view.substr(std::min<size_t>(3, view.size()))),
              ExtendCrc32c(0, text));
  }
}

}  // namespace
}  // namespace berth::store
