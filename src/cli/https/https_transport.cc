// SPDX-License-Identifier: Apache-2.0
#include "cli/https/https_transport.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "cli/failure.h"
#include "cli/https/servers.h"
#include "client/http/error_body.h"
#include "net/http_client.h"
#include "rt/asio/asio_loop.h"
#include "rt/channel.h"
#include "rt/deadline.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::cli {
namespace {

// Without --request-timeout: as long as it takes, which on a loop is a number.
constexpr Duration kNoDeadline = Duration::Hours(24);
constexpr Duration kWatchHeadDeadline = Duration::Seconds(60);
// A list of 100,000 machines in one piece is 150 MB.
constexpr uint64_t kAnswerBytesMax = 512ULL << 20;
// Chunks of at most one TLS record (16 KiB) each: 64 * 16 KiB = 1 MiB waits for a slow terminal.
constexpr size_t kChunksMax = 64;
// Of a refused watch, to tell why.
constexpr size_t kRefusalBytesMax = 64 << 10;

Status Explain(const Status& status, const std::string& server) {
  if (status.Is(Reason::kTimeout)) {
    return Advise(Unavailable(fmt::format("{}: {}", server, status.message())),
                  "is the server busy or far away? --request-timeout=1m gives it more time");
  }
  return status;
}

class HttpsStreams final : public Streams {
 public:
  HttpsStreams(rt::AsioLoop& loop, std::vector<std::unique_ptr<net::HttpStream>> streams)
      : loop_(loop), streams_(std::move(streams)), chunks_(kChunksMax), readers_(loop) {}

  ~HttpsStreams() override {
    const Status closed = rt::RunTask(loop_, readers_.Close());
    CHECK(closed.ok()) << closed;
  }

  Result<Chunk> Next(std::optional<Duration> limit) override {
    if (!started_) {
      started_ = true;
      for (size_t i = 0; i < streams_.size(); ++i) readers_.Spawn("cli.watch", ReadStream(i));
    }
    TRY(Result<Chunk> chunk,
        limit ? rt::RunTask(loop_, rt::WithDeadline(chunks_.Receive(), *limit))
              : rt::RunTask(loop_, chunks_.Receive()));
    return chunk;
  }

 private:
  // An error travels like a chunk, so that what arrived before it is seen first.
  rt::Task<Status> ReadStream(size_t index) {
    while (true) {
      auto bytes = co_await streams_[index]->Read();
      if (!bytes.ok()) {
        Result<Chunk> failure = bytes.status();
        co_return co_await chunks_.Send(std::move(failure));
      }
      const bool ended = bytes->empty();
      Chunk chunk;
      chunk.stream = index;
      chunk.bytes = *std::move(bytes);
      Result<Chunk> sent = std::move(chunk);
      CO_TRY_STATUS(co_await chunks_.Send(std::move(sent)));
      if (ended) co_return OkStatus();
    }
  }

  rt::AsioLoop& loop_;
  std::vector<std::unique_ptr<net::HttpStream>> streams_;
  rt::Channel<Result<Chunk>> chunks_;
  rt::TaskScope readers_;
  bool started_ = false;
};

// Whether another server may have a better answer: this one is about to stop, or cut off from the
// store. What it says about itself (/readyz) is an answer.
bool IsElsewhere(const Request& request, int status) {
  return status == 503 && (request.path.starts_with("/api/") || request.path.starts_with("/apis/"));
}

class HttpsTransport final : public Transport {
 public:
  explicit HttpsTransport(const Connection& connection)
      : server_(Printable(connection.server)),
        deadline_(connection.request_timeout.value_or(kNoDeadline)) {}

  Status Start(const Connection& connection, ServerTimes times) {
    TRY(servers_, Servers::New(loop_, connection, times));
    return OkStatus();
  }

  Result<Response> Send(Request request) override {
    auto answer = rt::RunTask(loop_, SendToAny(std::move(request)));
    if (!answer.ok()) return Explain(answer.status(), server_);
    return Response{.status = answer->status,
                    .headers = std::move(answer->headers),
                    .body = std::move(answer->body)};
  }

  Result<std::unique_ptr<Streams>> Open(std::vector<Request> requests) override {
    auto streams = rt::RunTask(loop_, OpenAll(std::move(requests)));
    if (!streams.ok()) return Explain(streams.status(), server_);
    return std::unique_ptr<Streams>(new HttpsStreams(loop_, *std::move(streams)));
  }

 private:
  using OpenStreams = std::vector<std::unique_ptr<net::HttpStream>>;

  rt::Task<Result<net::HttpClientResponse>> SendToAny(Request request) {
    const Time until = loop_.Now() + deadline_;
    const bool may_repeat = MayRepeat(request);
    for (size_t left = servers_->size();; --left) {
      CO_TRY(Servers::Server * server,
             co_await rt::WithDeadline(servers_->Reach(), until - loop_.Now()));
      const net::SendOptions options{.deadline = until - loop_.Now(), .body_max = kAnswerBytesMax};
      auto answer = co_await servers_->While(
          server, server->client->Send(server->requests.Make(request), options));
      const bool is_answer = answer.ok() ? !IsElsewhere(request, answer->status)
                                         : !answer.status().Is(Reason::kUnavailable);
      if (is_answer || left == 1) co_return answer;
      if (!may_repeat && !answer.ok()) co_return InDoubt(answer.status());
      if (!may_repeat) co_return answer;
      servers_->PassOver(server);
    }
  }

  static Status InDoubt(const Status& status) {
    return Advise(
        Unavailable(fmt::format("{}; whether it was carried out is not known", status.message())),
        "look at the object before you do it again");
  }

  // All of one server, so that they tell of one time.
  rt::Task<Result<OpenStreams>> OpenAll(std::vector<Request> requests) {
    for (size_t left = servers_->size();; --left) {
      CO_TRY(Servers::Server * server, co_await servers_->Reach());
      auto streams = co_await OpenAt(server, &requests);
      if (left == 1 || !streams.status().Is(Reason::kUnavailable)) co_return streams;
      servers_->PassOver(server);
    }
  }

  rt::Task<Result<OpenStreams>> OpenAt(Servers::Server* server,
                                       const std::vector<Request>* requests) {
    OpenStreams streams;
    for (const Request& request : *requests) {
      CO_TRY(std::unique_ptr<net::HttpStream> stream,
             co_await servers_->While(
                 server, server->client->Open(server->requests.Make(request), kWatchHeadDeadline)));
      if (stream->status() != 200) co_return co_await Refusal(stream.get());
      streams.push_back(std::move(stream));
    }
    co_return streams;
  }

  static rt::Task<Status> Refusal(net::HttpStream* stream) {
    std::string body;
    while (body.size() < kRefusalBytesMax) {
      auto bytes = co_await rt::WithDeadline(stream->Read(), kWatchHeadDeadline);
      if (!bytes.ok() || bytes->empty()) break;
      body += *bytes;
    }
    co_return client::StatusOfAnswer(stream->status(), body);
  }

  std::string server_;
  Duration deadline_;
  rt::AsioLoop loop_{"cli"};
  std::unique_ptr<Servers> servers_;  // after the loop they run on
};

}  // namespace

Result<std::unique_ptr<Transport>> ConnectHttps(const Connection& connection, ServerTimes times) {
  auto transport = std::make_unique<HttpsTransport>(connection);
  const Status started = transport->Start(connection, times);
  if (!started.ok()) {
    return Advise(started, "look at the certificates and keys: berth config view --minify");
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace berth::cli
