// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/wire.h"

#include <algorithm>
#include <utility>

namespace berth::store {

std::string EtcdStart(std::string_view start) {
  return start.empty() ? std::string(1, '\0') : std::string(start);
}

KeyValue FromEtcd(pb::KeyValue&& kv) {
  return {.key = std::move(*kv.mutable_key()),
          .value = Bytes(kv.value()),
          .create_revision = {kv.create_revision()},
          .mod_revision = {kv.mod_revision()},
          .version = kv.version(),
          .lease = {kv.lease()}};
}

Event FromEtcd(pb::Event&& event) {
  Event out;
  if (event.has_prev_kv()) out.previous = FromEtcd(std::move(*event.mutable_prev_kv()));
  if (event.type() == pb::Event::DELETE) {
    out.type = Event::Type::kDelete;
    out.kv.key = std::move(*event.mutable_kv()->mutable_key());
    out.kv.mod_revision = {event.kv().mod_revision()};
    return out;
  }
  out.kv = FromEtcd(std::move(*event.mutable_kv()));
  return out;
}

pb::TxnRequest ToEtcd(const Txn& txn) {
  pb::TxnRequest request;
  for (const Condition& condition : txn.conditions) {
    // A key that is absent counts as one with mod_revision zero.
    pb::Compare* compare = request.add_compare();
    compare->set_result(pb::Compare::EQUAL);
    compare->set_target(pb::Compare::MOD);
    compare->set_key(condition.key);
    compare->set_mod_revision(condition.mod_revision.value);
    request.add_failure()->mutable_request_range()->set_key(condition.key);
  }
  for (const Op& op : txn.ops) {
    pb::RequestOp* out = request.add_success();
    if (op.type == Op::Type::kDelete) {
      out->mutable_request_delete_range()->set_key(op.key);
      continue;
    }
    pb::PutRequest* put = out->mutable_request_put();
    put->set_key(op.key);
    put->set_value(std::string(op.value.view()));
    put->set_lease(op.lease.value);
  }
  // Of a transaction that reads and writes nothing a member would say how far it is itself, which
  // may be less than what others have been told.
  if (txn.conditions.empty() && txn.ops.empty()) {
    request.add_success()->mutable_request_range()->set_key(std::string(1, '\0'));
  }
  return request;
}

Result<TxnResult> FromEtcd(const Txn& txn, pb::TxnResponse&& response) {
  TxnResult result{.committed = response.succeeded(),
                   .revision = {response.header().revision()},
                   .conflicts = {}};
  if (result.committed) return result;
  const auto conditions = static_cast<int>(txn.conditions.size());
  if (response.responses_size() != conditions) {
    return Unavailable("etcd answered a transaction with " +
                       std::to_string(response.responses_size()) + " reads instead of " +
                       std::to_string(conditions));
  }
  for (int i = 0; i < conditions; ++i) {
    const Condition& condition = txn.conditions[static_cast<size_t>(i)];
    pb::RangeResponse* range = response.mutable_responses(i)->mutable_response_range();
    KeyValue now{.key = condition.key};
    if (range->kvs_size() > 0) now = FromEtcd(std::move(*range->mutable_kvs(0)));
    if (now.mod_revision != condition.mod_revision) result.conflicts.push_back(std::move(now));
  }
  return result;
}

pb::WatchRequest WatchAfter(Revision after) {
  pb::WatchRequest request;
  pb::WatchCreateRequest* create = request.mutable_create_request();
  create->set_key(EtcdStart(""));
  create->set_range_end(std::string(kNoEnd));
  // Zero would mean "now"; at revision 1 nothing ever happened.
  create->set_start_revision(std::max<int64_t>(1, after.value));
  create->set_prev_kv(true);
  create->set_fragment(true);
  return request;
}

}  // namespace berth::store
