// SPDX-License-Identifier: Apache-2.0
// Which hosts' certificates are void: the record `revoked-hosts`, one entry per host or
// certificate. Checked for every session; a live one is cut when its host is entered.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "client/records/config_record.h"
#include "rt/task.h"

namespace berth::client {

inline constexpr std::string_view kRevocationRecord = "revoked-hosts";

class Revocations {
 public:
  Revocations() = default;
  // Entries that cannot be read revoke for good: a typing error must not let anybody in.
  explicit Revocations(const RecordEntries& entries);

  // Whether a certificate with this serial, issued at `issued` to this host, is void.
  bool Covers(std::string_view host, std::string_view serial, WallTime issued) const;
  size_t size() const { return hosts_.size() + serials_.size(); }

 private:
  std::map<std::string, WallTime, std::less<>> hosts_;  // void if issued by then
  std::map<std::string, WallTime, std::less<>> serials_;
};

// Everything that was issued to the host until now is void; it may join again with a new token.
rt::Task<Status> RevokeHost(Client& client, std::string host, WallTime now);
rt::Task<Status> RevokeSerial(Client& client, std::string serial, WallTime now);

}  // namespace berth::client
