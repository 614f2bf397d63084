// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/etcd_errors.h"

#include <array>
#include <string>
#include <string_view>

#include "base/time.h"

namespace berth::store {
namespace {

struct Row {
  std::string_view text;  // in etcd's message
  EtcdFault fault;
  Reason reason;
  std::string_view advice;  // behind it
};

// The first row that fits counts.
constexpr std::array kRows = {
    Row{"required revision has been compacted", EtcdFault::kFinal, Reason::kExpired, ""},
    Row{"required revision is a future revision", EtcdFault::kFinal, Reason::kBadRequest, ""},
    Row{"requested lease not found", EtcdFault::kFinal, Reason::kNotFound, ""},
    Row{"database space exceeded",
        EtcdFault::kFinal,
        Reason::kUnavailable,
        "its quota is used up: raise --quota-backend-bytes or run 'etcdctl defrag', then 'etcdctl "
        "alarm disarm'"},
    Row{"no space",
        EtcdFault::kFinal,
        Reason::kUnavailable,
        "its quota is used up: raise --quota-backend-bytes or run 'etcdctl defrag', then 'etcdctl "
        "alarm disarm'"},
    Row{"corrupt cluster",
        EtcdFault::kFinal,
        Reason::kUnavailable,
        "its members differ: see 'etcdctl alarm list'"},
    Row{"request is too large",
        EtcdFault::kFinal,
        Reason::kBadRequest,
        "its --max-request-bytes is below 1572864"},
    Row{"received message larger than max",
        EtcdFault::kFinal,
        Reason::kBadRequest,
        "its --max-request-bytes is below 1572864"},
    Row{"too many operations in txn",
        EtcdFault::kFinal,
        Reason::kBadRequest,
        "its --max-txn-ops is below 128"},
    Row{"invalid auth token", EtcdFault::kToken, Reason::kUnauthorized, ""},
    Row{"revision of auth store is old", EtcdFault::kToken, Reason::kUnauthorized, ""},
    Row{"invalid user ID or password", EtcdFault::kFinal, Reason::kUnauthorized, ""},
    Row{"user name is empty",
        EtcdFault::kFinal,
        Reason::kUnauthorized,
        "it wants a user: --etcd-user and --etcd-password-file, or a client certificate with a "
        "name that it knows"},
    Row{"authentication is not enabled",
        EtcdFault::kFinal,
        Reason::kUnauthorized,
        "it knows no users: leave --etcd-user out, or run 'etcdctl auth enable'"},
    Row{"permission denied",
        EtcdFault::kFinal,
        Reason::kForbidden,
        "the user needs to read and write all keys: the role root, or one with 'etcdctl role "
        "grant-permission NAME readwrite \"\" --from-key=true'"},
    Row{"too many requests", EtcdFault::kBusy, Reason::kTooManyRequests, ""},
    // Answers of a member that is without a leader, or about to end.
    Row{"no leader", EtcdFault::kRefused, Reason::kUnavailable, ""},
    Row{"raft proposal dropped", EtcdFault::kRefused, Reason::kUnavailable, ""},
    Row{"not leader", EtcdFault::kMember, Reason::kUnavailable, ""},
    Row{"server stopped", EtcdFault::kMember, Reason::kUnavailable, ""},
    Row{"rpc not supported for learner", EtcdFault::kMember, Reason::kUnavailable, ""},
    Row{"leader changed", EtcdFault::kBusy, Reason::kUnavailable, ""},
};

const Row* Find(const Status& status) {
  for (const Row& row : kRows) {
    if (status.message().find(row.text) != std::string_view::npos) return &row;
  }
  return nullptr;
}

}  // namespace

EtcdFault FaultOf(const Status& status) {
  if (const Row* row = Find(status)) return row->fault;
  switch (status.reason()) {
    case Reason::kUnavailable:
    case Reason::kTimeout: return EtcdFault::kMember;
    default: return EtcdFault::kFinal;
  }
}

Status ExplainEtcd(const Status& status) {
  if (status.ok() || status.Is(Reason::kCancelled)) return status;
  const Row* row = Find(status);
  std::string message = "etcd: " + std::string(status.message());
  if (row == nullptr) {
    const bool is_ours = status.Is(Reason::kBadRequest) || status.Is(Reason::kUnauthorized) ||
                         status.Is(Reason::kForbidden) || status.Is(Reason::kRequestTooLarge);
    return {is_ours ? status.reason() : Reason::kUnavailable, std::move(message)};
  }
  if (!row->advice.empty()) message += "; " + std::string(row->advice);
  Status explained(row->reason, std::move(message));
  if (!explained.Is(Reason::kTooManyRequests)) return explained;
  return explained.WithRetryAfter(Duration::Seconds(1));
}

bool IsOutOfSpace(const Status& status) {
  return status.message().find("database space exceeded") != std::string_view::npos ||
         status.message().find("etcdserver: no space") != std::string_view::npos;
}

}  // namespace berth::store
