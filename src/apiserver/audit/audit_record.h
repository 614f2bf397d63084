// SPDX-License-Identifier: Apache-2.0
// What the audit log says about one request: who did what, from where, when, with what result.
// What was in the bodies only if a policy asks for it, and never those of Secrets
// (audit_policy.h).
#pragma once

#include <string>
#include <string_view>

#include "apiserver/identity.h"
#include "base/time.h"

namespace berth::apiserver {

// Writes of stored objects, reads of Secrets, conversations with guests, and calls other than GET
// to paths that are no resources. Reviews are questions, not writes.
bool IsAudited(const RequestInfo& request);

// Refers to what the request's handler holds.
struct AuditRecord {
  WallTime time;  // when the request came in
  std::string_view request_id;
  const Identity& identity;       // on whose behalf
  std::string_view impersonator;  // who really sent it, "" without impersonation
  std::string_view source;        // address of the peer
  std::string_view user_agent;
  const RequestInfo& request;
  std::string_view name;  // of the object, where the request has none (create)
  int code = 0;           // of the answer
  Duration duration;
  // Of a conversation with a guest, which has two lines: when it begins, and when it is over, with
  // how much was said. "" for everything else.
  std::string_view stage;
  int64_t bytes_in = 0;  // to the guest
  int64_t bytes_out = 0;
  // Bodies that are told; "" for none.
  std::string_view request_body = {};
  std::string_view response_body = {};
  size_t response_bytes = 0;  // of the answer, if it is too large to be told
};
// 64 KiB: larger bodies are told by their size only.
inline constexpr size_t kAuditBodyMax = 64 * 1024;

inline constexpr std::string_view kAuditStarted = "Started";
inline constexpr std::string_view kAuditEnded = "Ended";

// Appends one line of JSON, ended by a newline. Costs about a microsecond.
void AppendAuditLine(const AuditRecord& record, std::string& out);
// The line that stands for records that were lost.
void AppendAuditGap(WallTime time, uint64_t lost, std::string& out);

}  // namespace berth::apiserver
