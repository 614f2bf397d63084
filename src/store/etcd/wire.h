// SPDX-License-Identifier: Apache-2.0
// The store's words as etcd's messages, and back. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "etcd/v3/rpc.pb.h"
#include "store/store.h"

namespace berth::store {

namespace pb = ::berth::etcd::v3;

// etcd has no empty key, so the first key of all ranges is one zero byte.
std::string EtcdStart(std::string_view start);

KeyValue FromEtcd(pb::KeyValue&& kv);
Event FromEtcd(pb::Event&& event);

// If a condition fails, etcd answers with the present state of all conditions' keys.
pb::TxnRequest ToEtcd(const Txn& txn);
// Unavailable if the answer is not one to this transaction.
Result<TxnResult> FromEtcd(const Txn& txn, pb::TxnResponse&& response);

// Everything after `after`, which is not compacted: etcd refuses a watch whose first revision is
// before the compacted one, but takes one at it although deletions there are gone. So the watch
// begins one revision early, and whoever reads drops that.
pb::WatchRequest WatchAfter(Revision after);

}  // namespace berth::store
