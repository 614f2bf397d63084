// SPDX-License-Identifier: Apache-2.0
// The bytes of the local record.
//
//   file   = "BERTHREC" version:u32 entry*
//   entry  = "\x9dREC" length:u32 crc32c(payload):u32 payload       numbers little-endian
//   payload = berth.poollet.v1.Change
//
// An append is one entry. What a crash or a full disk left of the last one is cut off; damage in
// the middle, with a whole entry somewhere behind it, is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "poollet/record/state.h"

namespace berth::poollet {

inline constexpr uint32_t kRecordVersion = 1;
// A change holds at most a batch of assignments: 4 MiB of messages and room to spare.
inline constexpr size_t kRecordEntryMax = size_t{64} * 1024 * 1024;

std::string EncodeEntry(const RecordChange& change);
// A file that holds exactly this state.
std::string EncodeFile(const RecordState& state);

struct ParsedRecord {
  RecordState state;
  size_t valid_bytes = 0;  // what follows is the rest of an append that did not end
  size_t cut_bytes = 0;
};
// `name` is for the messages. Invalid for damage in the middle, naming the file and the offset, and
// for a version that we do not know.
Result<ParsedRecord> ParseFile(std::string_view name, std::string_view bytes);

}  // namespace berth::poollet
