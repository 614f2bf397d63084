// SPDX-License-Identifier: Apache-2.0
// Calls: transactions, reads, compaction and leases.
#include "store/etcd/etcd_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "store/etcd/etcd_errors.h"
#include "store/etcd/wire.h"
#include "store/key_range.h"

namespace berth::store {
namespace {

constexpr std::string_view kUnknown =
    "; whether the transaction happened is unknown until a read tells";
constexpr Duration kCommitRetryAfter = Duration::Seconds(1);
// How often a list is begun again because its state was compacted under it.
constexpr int kRangeTries = 3;

int64_t WholeSeconds(Duration duration) {
  return duration.seconds() + (duration.nanos() % Duration::Seconds(1).nanos() == 0 ? 0 : 1);
}

}  // namespace

EtcdEngine::EtcdEngine(rt::Loop& loop, std::unique_ptr<net::RpcDialer> dialer, EtcdOptions options)
    : loop_(loop),
      dialer_(std::move(dialer)),
      link_(loop, *dialer_, std::move(options)),
      hub_(loop),
      scope_(loop) {}

EtcdEngine::~EtcdEngine() = default;

Status EtcdEngine::health() const {
  if (closed_) return Unavailable("the store is closed");
  return feed_trouble_.ok() ? space_trouble_ : feed_trouble_;
}

Status EtcdEngine::CheckOpen() const {
  return closed_ ? Unavailable("the store is closed") : OkStatus();
}

Status EtcdEngine::CheckHeader(const pb::Header& header, Revision known) {
  const Revision at{header.revision()};
  if (at < known) {
    return Unavailable(fmt::format(
        "etcd: member {:x} answers with revision {} after {} was seen: it lags behind, or etcd was "
        "restored from a backup and this server must be started anew",
        header.member_id(),
        at.value,
        known.value));
  }
  known_ = std::max(known_, at);
  return OkStatus();
}

template <class Response, class Request>
rt::Task<Result<Response>> EtcdEngine::Ask(std::string method,
                                           Request request,
                                           EtcdLink::Repeat repeat) {
  const std::string bytes = request.SerializeAsString();
  for (size_t tries = 1;; ++tries) {
    CO_TRY_STATUS(CheckOpen());
    // A renewal is answered by the leader without a look at how far the asked member is.
    constexpr bool kIsOrdered = !std::is_same_v<Response, pb::LeaseKeepAliveResponse>;
    const Revision known = kIsOrdered ? known_ : Revision{};
    CO_TRY(const std::string answer, co_await link_.Call(method, bytes, repeat));
    Response response;
    if (!response.ParseFromString(answer)) {
      co_return Unavailable("etcd: the answer to " + method + " cannot be read");
    }
    const Status checked = CheckHeader(response.header(), known);
    if (checked.ok()) co_return std::move(response);
    link_.MoveOn(checked);
    if (repeat == EtcdLink::Repeat::kNever || tries > link_.options().endpoints.size()) {
      co_return checked;
    }
  }
}

rt::Task<Result<TxnResult>> EtcdEngine::Commit(Txn txn) {
  CO_TRY_STATUS(CheckOpen());
  CO_TRY_STATUS(ValidateTxn(txn));
  pb::TxnRequest request = ToEtcd(txn);
  const size_t bytes = request.ByteSizeLong();
  if (commits_ >= kEtcdCommitsMax || commit_bytes_ + bytes > kEtcdCommitBytesMax) {
    co_return Status(
        Reason::kTooManyRequests,
        fmt::format("{} transactions ({} bytes) wait for etcd, at most {} ({} bytes) may",
                    commits_,
                    commit_bytes_,
                    kEtcdCommitsMax,
                    kEtcdCommitBytesMax))
        .WithRetryAfter(kCommitRetryAfter);
  }
  ++commits_;
  commit_bytes_ += bytes;
  Result<pb::TxnResponse> response = co_await Ask<pb::TxnResponse>(
      "/etcdserverpb.KV/Txn", std::move(request), EtcdLink::Repeat::kNever);
  --commits_;
  commit_bytes_ -= bytes;
  if (response.ok()) {
    space_trouble_ = OkStatus();
    co_return FromEtcd(txn, *std::move(response));
  }
  const Status& status = response.status();
  if (IsOutOfSpace(status)) {
    space_trouble_ = status;
    co_return status;
  }
  if (!status.Is(Reason::kUnavailable)) co_return status;
  co_return Unavailable(std::string(status.message()) + std::string(kUnknown));
}

rt::Task<Result<RangeResult>> EtcdEngine::Range(RangeRequest request) {
  CO_TRY_STATUS(CheckOpen());
  CO_TRY_STATUS(ValidateRange(request.start, request.end));
  for (int tries = 1;; ++tries) {
    Result<RangeResult> result = co_await RangeOnce(request);
    const bool again = result.status().Is(Reason::kExpired) && request.revision.value == 0;
    if (!again || tries >= kRangeTries) co_return result;
  }
}

rt::Task<Result<RangeResult>> EtcdEngine::RangeOnce(RangeRequest request) {
  pb::RangeRequest page;
  page.set_key(EtcdStart(request.start));
  page.set_range_end(request.end);
  page.set_revision(request.revision.value);
  page.set_keys_only(request.keys_only);
  RangeResult result;
  for (;;) {
    const size_t left = request.limit == 0 ? kEtcdRangePage : request.limit - result.items.size();
    const size_t asked = std::min(left, range_page_);
    page.set_limit(static_cast<int64_t>(asked));
    Result<pb::RangeResponse> response =
        co_await Ask<pb::RangeResponse>("/etcdserverpb.KV/Range", page, EtcdLink::Repeat::kSafe);
    if (response.status().Is(Reason::kRequestTooLarge) && asked > 1) {
      range_page_ = std::max<size_t>(1, asked / 8);
      continue;
    }
    if (!response.ok()) co_return response.status();
    if (const auto keys = static_cast<size_t>(response->kvs_size()); keys > 0) {
      const size_t bytes_per_key = response->ByteSizeLong() / keys + 1;
      range_page_ = std::clamp<size_t>(kEtcdRangePageBytes / bytes_per_key, 1, kEtcdRangePage);
    }
    if (result.revision.value == 0) {
      result.count = static_cast<size_t>(response->count());
      result.revision = request.revision;
      if (request.revision.value == 0) result.revision = {response->header().revision()};
      page.set_revision(result.revision.value);
    }
    result.items.reserve(result.items.size() + static_cast<size_t>(response->kvs_size()));
    for (pb::KeyValue& kv : *response->mutable_kvs()) {
      result.items.push_back(FromEtcd(std::move(kv)));
    }
    result.more = response->more();
    if (!result.more || result.items.empty()) break;
    if (request.limit != 0 && result.items.size() >= request.limit) break;
    page.set_key(result.items.back().key + '\0');
  }
  co_return std::move(result);
}

// One question at a time; it answers whoever had asked before it left.
rt::Task<Status> EtcdEngine::AskRevisions() {
  while (next_question_ != nullptr) {
    const std::shared_ptr<Question> question = std::exchange(next_question_, nullptr);
    Result<Revision> revision = co_await ReadRevision();
    if (revision.status().Is(Reason::kCancelled)) revision = Unavailable("the store is closed");
    question->waiters.CompleteAll(revision);
  }
  asking_ = false;
  co_return OkStatus();
}

rt::Task<Result<Revision>> EtcdEngine::ReadRevision() {
  pb::RangeRequest request;
  request.set_key(EtcdStart(""));
  request.set_count_only(true);
  CO_TRY(const pb::RangeResponse response,
         co_await Ask<pb::RangeResponse>(
             "/etcdserverpb.KV/Range", std::move(request), EtcdLink::Repeat::kSafe));
  co_return Revision{response.header().revision()};
}

rt::Task<Result<Revision>> EtcdEngine::CurrentRevision() {
  CO_TRY_STATUS(CheckOpen());
  if (next_question_ == nullptr) next_question_ = std::make_shared<Question>();
  const std::shared_ptr<Question> question = next_question_;
  if (!std::exchange(asking_, true)) scope_.Spawn("etcd.revision", AskRevisions());
  co_return co_await question->waiters.Wait();
}

rt::Task<Status> EtcdEngine::Probe(Revision revision) {
  pb::RangeRequest request;
  request.set_key(EtcdStart(""));
  request.set_count_only(true);
  request.set_revision(revision.value);
  const Result<pb::RangeResponse> response = co_await Ask<pb::RangeResponse>(
      "/etcdserverpb.KV/Range", std::move(request), EtcdLink::Repeat::kSafe);
  co_return response.status();
}

// etcd does not tell; but the compacted revision is the first that can be read. At most 63
// questions, and one if nothing changed since the last time.
rt::Task<Result<Revision>> EtcdEngine::CompactedRevision() {
  CO_TRY(const Revision now, co_await CurrentRevision());
  Revision low = std::max(compacted_, Revision{1});
  Revision high = now;
  Revision middle = low;
  while (low < high) {
    const Status probed = co_await Probe(middle);
    if (probed.ok()) {
      high = middle;
    } else if (probed.Is(Reason::kExpired)) {
      low = middle.Next();
    } else {
      co_return probed;
    }
    middle = Revision{low.value + (high.value - low.value) / 2};
  }
  // Revision 1 is the empty store: nothing is before it.
  if (low.value > 1) compacted_ = std::max(compacted_, low);
  co_return compacted_;
}

rt::Task<Status> EtcdEngine::Compact(Revision revision) {
  CO_TRY_STATUS(CheckOpen());
  if (revision.value <= 1) co_return OkStatus();
  pb::CompactionRequest request;
  request.set_revision(revision.value);
  const Result<pb::CompactionResponse> response = co_await Ask<pb::CompactionResponse>(
      "/etcdserverpb.KV/Compact", std::move(request), EtcdLink::Repeat::kSafe);
  const bool is_done = response.ok() || response.status().Is(Reason::kExpired);
  if (!is_done) co_return response.status();
  if (response.ok()) compacted_ = std::max(compacted_, revision);
  hub_.OnCompacted(revision);
  co_return OkStatus();
}

rt::Task<Result<LeaseId>> EtcdEngine::GrantLease(Duration ttl) {
  CO_TRY_STATUS(CheckOpen());
  CO_TRY_STATUS(ValidateLeaseTtl(ttl));
  pb::LeaseGrantRequest request;
  request.set_ttl(WholeSeconds(ttl));
  CO_TRY(const pb::LeaseGrantResponse response,
         co_await Ask<pb::LeaseGrantResponse>(
             "/etcdserverpb.Lease/LeaseGrant", std::move(request), EtcdLink::Repeat::kSafe));
  if (!response.error().empty()) co_return Unavailable("etcd: grant a lease: " + response.error());
  co_return LeaseId{response.id()};
}

rt::Task<Status> EtcdEngine::RenewLease(LeaseId lease) {
  CO_TRY_STATUS(CheckOpen());
  pb::LeaseKeepAliveRequest request;
  request.set_id(lease.value);
  // A stream of one question: gRPC does not tell the two apart.
  CO_TRY(const pb::LeaseKeepAliveResponse response,
         co_await Ask<pb::LeaseKeepAliveResponse>(
             "/etcdserverpb.Lease/LeaseKeepAlive", std::move(request), EtcdLink::Repeat::kSafe));
  if (response.ttl() <= 0) co_return NotFound(fmt::format("lease {} not found", lease.value));
  co_return OkStatus();
}

rt::Task<Status> EtcdEngine::RevokeLease(LeaseId lease) {
  CO_TRY_STATUS(CheckOpen());
  pb::LeaseRevokeRequest request;
  request.set_id(lease.value);
  const Result<pb::LeaseRevokeResponse> response = co_await Ask<pb::LeaseRevokeResponse>(
      "/etcdserverpb.Lease/LeaseRevoke", std::move(request), EtcdLink::Repeat::kNever);
  if (response.status().Is(Reason::kNotFound)) {
    co_return NotFound(fmt::format("lease {} not found", lease.value));
  }
  co_return response.status();
}

}  // namespace berth::store
