// SPDX-License-Identifier: Apache-2.0
#include "cli/https/https_transport.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/strings.h"
#include "cli/failure.h"
#include "cli/https/signed_requests.h"
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

class HttpsTransport final : public Transport {
 public:
  explicit HttpsTransport(const Connection& connection)
      : server_(Printable(connection.server)),
        deadline_(connection.request_timeout.value_or(kNoDeadline)) {}

  Status Start(const Connection& connection) {
    TRY(requests_, SignedRequests::For(connection));
    TRY(client_, NewHttpClient(loop_, connection));
    return OkStatus();
  }

  Result<Response> Send(Request request) override {
    net::SendOptions options{.deadline = deadline_, .body_max = kAnswerBytesMax};
    auto answer = rt::RunTask(loop_, client_->Send(requests_.Make(std::move(request)), options));
    if (!answer.ok()) return Explain(answer.status(), server_);
    return Response{.status = answer->status,
                    .headers = std::move(answer->headers),
                    .body = std::move(answer->body)};
  }

  Result<std::unique_ptr<Streams>> Open(std::vector<Request> requests) override {
    std::vector<std::unique_ptr<net::HttpStream>> streams;
    for (Request& request : requests) {
      auto stream =
          rt::RunTask(loop_, client_->Open(requests_.Make(std::move(request)), kWatchHeadDeadline));
      if (!stream.ok()) return Explain(stream.status(), server_);
      if ((*stream)->status() != 200) return Refusal(**stream);
      streams.push_back(*std::move(stream));
    }
    return std::unique_ptr<Streams>(new HttpsStreams(loop_, std::move(streams)));
  }

 private:
  Status Refusal(net::HttpStream& stream) {
    Response response{.status = stream.status(), .headers = stream.headers(), .body = {}};
    while (response.body.size() < kRefusalBytesMax) {
      auto bytes = rt::RunTask(loop_, rt::WithDeadline(stream.Read(), kWatchHeadDeadline));
      if (!bytes.ok() || bytes->empty()) break;
      response.body += *bytes;
    }
    return client::StatusOfAnswer(response.status, response.body);
  }

  std::string server_;
  Duration deadline_;
  SignedRequests requests_;
  rt::AsioLoop loop_{"cli"};
  std::unique_ptr<net::HttpClient> client_;  // after the loop it runs on
};

}  // namespace

Result<std::unique_ptr<Transport>> ConnectHttps(const Connection& connection) {
  auto transport = std::make_unique<HttpsTransport>(connection);
  const Status started = transport->Start(connection);
  if (!started.ok()) {
    return Advise(started, "look at the certificates and keys: berth config view --minify");
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace berth::cli
