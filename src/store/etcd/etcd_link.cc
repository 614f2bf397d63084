// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/etcd_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "etcd/v3/rpc.pb.h"
#include "rt/deadline.h"
#include "rt/sleep.h"
#include "store/etcd/etcd_errors.h"

namespace berth::store {
namespace {

namespace pb = ::berth::etcd::v3;

constexpr rt::BackoffOptions kRedial = {.initial = Duration::Millis(50),
                                        .max = Duration::Seconds(2)};
constexpr rt::BackoffOptions kRetry = {.initial = Duration::Millis(20),
                                       .max = Duration::Millis(500)};
// A page of a list (kRangePageBytes aims at 4 MiB) with one very large object more; an answer to a
// transaction shows the state of what was in its way.
constexpr net::RpcLimits kLimits = {.message_bytes_max = 32 * 1024 * 1024,
                                    .outbox_bytes_max = 8 * 1024 * 1024};
// A token that is refused right after it was made will be refused again.
constexpr int kTokensMax = 3;

bool IsFinalDialError(const Status& status) {
  return status.Is(Reason::kUnauthorized) || status.Is(Reason::kForbidden) ||
         status.Is(Reason::kBadRequest);
}

}  // namespace

struct EtcdLink::Connection {
  std::string endpoint;
  std::unique_ptr<net::RpcChannel> channel;
  std::string token;
  std::set<net::MessageStream*> streams;
  bool given_up = false;
};

EtcdLink::Stream::Stream(std::shared_ptr<Connection> connection,
                         std::unique_ptr<net::MessageStream> stream)
    : connection_(std::move(connection)), stream_(std::move(stream)) {
  connection_->streams.insert(stream_.get());
}

EtcdLink::Stream::~Stream() { connection_->streams.erase(stream_.get()); }

EtcdLink::EtcdLink(rt::Loop& loop, net::RpcDialer& dialer, EtcdOptions options)
    : loop_(loop), dialer_(dialer), options_(std::move(options)), backoff_(kRedial), scope_(loop) {}

EtcdLink::~EtcdLink() = default;

rt::Task<Status> EtcdLink::Close() {
  closed_ = true;
  if (current_ != nullptr) GiveUp(current_, Unavailable("the store is closed"));
  const Status closed = co_await scope_.Close();
  dialed_.CompleteAll(OkStatus());
  co_return closed;
}

void EtcdLink::MoveOn(const Status& why) {
  if (current_ != nullptr) GiveUp(current_, why);
}

void EtcdLink::GiveUp(const std::shared_ptr<Connection>& connection, const Status& why) {
  const std::shared_ptr<Connection> keep = connection;
  if (current_ == keep) {
    current_.reset();
    const auto place = std::ranges::find(options_.endpoints, keep->endpoint);
    const auto index = static_cast<size_t>(place - options_.endpoints.begin());
    next_ = (index + 1) % options_.endpoints.size();
  }
  if (std::exchange(keep->given_up, true)) return;
  if (!closed_) LOG_INFO("etcd {}: {}; moving on", keep->endpoint, why.message());
  for (net::MessageStream* stream : keep->streams) {
    stream->Abort(Unavailable(std::string(why.message())));
  }
  const Duration grace = closed_ ? Duration() : options_.try_timeout;
  scope_.Spawn("etcd.retire", Retire(keep, grace));
}

rt::Task<Status> EtcdLink::Retire(std::shared_ptr<Connection> connection, Duration grace) {
  // Whoever still waits for an answer has a time limit of its own, which is not longer.
  if (grace > Duration()) {
    const Status slept = co_await rt::Sleep(grace);
    if (!slept.ok() && !slept.Is(Reason::kCancelled)) co_return slept;
  }
  co_return co_await connection->channel->Close();
}

net::RpcOptions EtcdLink::OptionsFor(const Connection& connection) const {
  net::RpcOptions options;
  options.limits = kLimits;
  // A member that has lost its leader says so instead of waiting.
  options.metadata["hasleader"] = "true";
  if (!connection.token.empty()) options.metadata["token"] = connection.token;
  return options;
}

rt::Task<Result<std::string>> EtcdLink::Authenticate(net::RpcChannel* channel) {
  pb::AuthenticateRequest request;
  request.set_name(options_.user);
  request.set_password(options_.password);
  net::RpcOptions options;
  options.deadline = options_.try_timeout;
  Result<std::string> answer = co_await channel->Call(
      "/etcdserverpb.Auth/Authenticate", request.SerializeAsString(), std::move(options));
  if (!answer.ok()) {
    co_return ExplainEtcd(answer.status().Wrap("authenticate user " + Quote(options_.user)));
  }
  pb::AuthenticateResponse response;
  if (!response.ParseFromString(*answer)) co_return Unavailable("etcd's token cannot be read");
  co_return response.token();
}

// A name may lead to a member of another cluster; nothing must be written there.
rt::Task<Status> EtcdLink::Greet(Connection* connection) {
  if (!options_.user.empty()) {
    CO_TRY(connection->token, co_await Authenticate(connection->channel.get()));
  }
  pb::RangeRequest request;
  request.set_key(std::string(1, '\0'));
  request.set_count_only(true);
  request.set_serializable(true);
  net::RpcOptions options = OptionsFor(*connection);
  options.metadata.erase("hasleader");
  options.deadline = options_.try_timeout;
  Result<std::string> answer = co_await connection->channel->Call(
      "/etcdserverpb.KV/Range", request.SerializeAsString(), std::move(options));
  if (!answer.ok()) co_return ExplainEtcd(answer.status());
  pb::RangeResponse response;
  if (!response.ParseFromString(*answer) || response.header().cluster_id() == 0) {
    co_return Unavailable("etcd: the answer of " + connection->endpoint + " cannot be read");
  }
  const uint64_t id = response.header().cluster_id();
  if (cluster_id_ == 0) cluster_id_ = id;
  if (cluster_id_ == id) co_return OkStatus();
  co_return Unavailable(fmt::format("etcd: {} belongs to cluster {:x}, the others to {:x}",
                                    connection->endpoint,
                                    id,
                                    cluster_id_));
}

rt::Task<Result<std::shared_ptr<EtcdLink::Connection>>> EtcdLink::Dial(std::string endpoint) {
  auto connection = std::make_shared<Connection>();
  connection->endpoint = endpoint;
  CO_TRY(connection->channel,
         co_await dialer_.Dial(endpoint, options_.credentials, options_.dial_timeout));
  const Status greeted = co_await Greet(connection.get());
  if (greeted.ok()) co_return std::move(connection);
  CO_TRY_STATUS(co_await connection->channel->Close());
  co_return greeted;
}

// Tries every member once.
rt::Task<Status> EtcdLink::DialAll() {
  Status status;
  if (failed_) {
    const Duration pause = backoff_.Next(loop_.random());
    status = co_await rt::Sleep(pause);
  }
  std::vector<std::string> messages;
  Reason reason = Reason::kUnavailable;
  for (size_t i = 0; status.ok() && i < options_.endpoints.size(); ++i) {
    const size_t index = (next_ + i) % options_.endpoints.size();
    Result<std::shared_ptr<Connection>> connection = co_await Dial(options_.endpoints[index]);
    failed_ = !connection.ok();
    if (connection.ok()) {
      next_ = index;
      current_ = *std::move(connection);
      backoff_.Reset();
      break;
    }
    if (connection.status().Is(Reason::kCancelled)) status = connection.status();
    messages.emplace_back(connection.status().message());
    if (IsFinalDialError(connection.status())) reason = connection.status().reason();
  }
  if (failed_) last_error_ = Status(reason, Join(messages, "; "));
  dialing_ = false;
  // Closed meanwhile: nobody takes it.
  if (closed_ && current_ != nullptr) GiveUp(current_, Unavailable("the store is closed"));
  dialed_.CompleteAll(OkStatus());
  co_return status;
}

rt::Task<Result<std::shared_ptr<EtcdLink::Connection>>> EtcdLink::Connect(Time deadline) {
  for (int rounds = 0;; ++rounds) {
    if (closed_) co_return Unavailable("the store is closed");
    if (current_ != nullptr && !current_->channel->usable()) {
      GiveUp(current_, Unavailable("the connection is lost"));
    }
    if (current_ != nullptr) co_return current_;
    if (rounds > 0 && failed_ && IsFinalDialError(last_error_)) co_return last_error_;
    const Duration left = deadline - loop_.Now();
    Status waited = Timeout("");
    if (left > Duration()) {
      if (!std::exchange(dialing_, true)) scope_.Spawn("etcd.dial", DialAll());
      waited = co_await rt::WithDeadline(dialed_.Wait(), left);
    }
    if (waited.ok()) continue;
    if (!waited.Is(Reason::kTimeout)) co_return waited;
    const std::string why = last_error_.ok() ? "no answer" : std::string(last_error_.message());
    co_return Unavailable(fmt::format(
        "no member of etcd can be reached at {}: {}", Join(options_.endpoints, ", "), why));
  }
}

rt::Task<Result<std::string>> EtcdLink::Call(std::string method,
                                             std::string request,
                                             Repeat repeat) {
  const Time deadline = loop_.Now() + options_.call_timeout;
  auto permit = co_await rt::WithDeadline(calls_.Enter(), options_.call_timeout);
  if (permit.status().Is(Reason::kTimeout)) {
    co_return Unavailable(fmt::format("etcd: {} calls wait for an answer", kEtcdCallsMax));
  }
  if (!permit.ok()) co_return permit.status();
  co_return co_await CallWithin(std::move(method), std::move(request), repeat, deadline);
}

rt::Task<Result<std::string>> EtcdLink::CallWithin(std::string method,
                                                   std::string request,
                                                   Repeat repeat,
                                                   Time deadline) {
  rt::Backoff backoff(kRetry);
  for (int tokens = 1;;) {
    CO_TRY(std::shared_ptr<Connection> connection, co_await Connect(deadline));
    net::RpcOptions options = OptionsFor(*connection);
    options.deadline = std::min(options_.try_timeout, deadline - loop_.Now());
    Result<std::string> answer =
        co_await connection->channel->Call(method, request, std::move(options));
    if (answer.ok() || answer.status().Is(Reason::kCancelled)) co_return answer;
    const Status status = answer.status();
    const EtcdFault fault = FaultOf(status);
    if (fault == EtcdFault::kToken && tokens < kTokensMax) {
      // A new connection has a new token; nothing has happened yet.
      ++tokens;
      GiveUp(connection, status);
      continue;
    }
    if (fault == EtcdFault::kFinal || fault == EtcdFault::kToken) co_return ExplainEtcd(status);
    const bool is_refused = fault == EtcdFault::kRefused;
    if (fault == EtcdFault::kMember || is_refused) GiveUp(connection, status);
    const Duration pause = backoff.Next(loop_.random());
    const bool may_repeat = repeat == Repeat::kSafe || is_refused;
    if (!may_repeat || loop_.Now() + pause >= deadline) co_return ExplainEtcd(status);
    CO_TRY_STATUS(co_await rt::Sleep(pause));
  }
}

rt::Task<Result<std::unique_ptr<EtcdLink::Stream>>> EtcdLink::Open(std::string method) {
  CO_TRY(std::shared_ptr<Connection> connection,
         co_await Connect(loop_.Now() + options_.call_timeout));
  CO_TRY(std::unique_ptr<net::MessageStream> stream,
         co_await connection->channel->Open(std::move(method), OptionsFor(*connection)));
  co_return std::make_unique<Stream>(std::move(connection), std::move(stream));
}

}  // namespace berth::store
