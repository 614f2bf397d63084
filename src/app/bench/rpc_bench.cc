// SPDX-License-Identifier: Apache-2.0
#include "app/bench/rpc_bench.h"

#include <iterator>
#include <list>
#include <memory>
#include <utility>

#include "app/bench/echo_process.h"
#include "net/h2/h2_dialer.h"
#include "pki/certificate_authority.h"
#include "rt/asio/asio_loop.h"
#include "rt/scope.h"

namespace berth::app {
namespace {

constexpr Duration kDialLimit = Duration::Seconds(60);
constexpr int kDialsAtOnce = 16;
constexpr size_t kMessageBytes = 200;  // an offer, or its answer

struct Session {
  std::unique_ptr<net::RpcChannel> channel;
  std::unique_ptr<net::MessageStream> stream;
};

class Sessions {
 public:
  Sessions(rt::AsioLoop& loop, const EchoProcess& server, net::RpcCredentials credentials)
      : loop_(loop),
        address_("127.0.0.1:" + std::to_string(server.port())),
        credentials_(std::move(credentials)),
        dialer_(loop) {}

  // Opens sessions until there are `count`.
  rt::Task<Status> Open(int count) {
    wanted_ = count;
    return Together(kDialsAtOnce, &Sessions::OpenSome);
  }
  // Sends messages there and back on all sessions, one at a time on each.
  rt::Task<Status> Exchange(int pairs) {
    pairs_left_ = pairs;
    next_ = 0;
    return Together(static_cast<int>(sessions_.size()), &Sessions::ExchangeSome);
  }
  rt::Task<Status> Close() {
    for (Session& session : sessions_) {
      session.stream.reset();
      CO_TRY_STATUS(co_await session.channel->Close());
    }
    sessions_.clear();
    co_return OkStatus();
  }

 private:
  rt::Task<Status> Together(int tasks, rt::Task<Status> (Sessions::*work)()) {
    rt::TaskScope scope(loop_);
    for (int i = 0; i < tasks; ++i) scope.Spawn("bench.rpc", Note((this->*work)()));
    CO_TRY_STATUS(co_await scope.Join());
    co_return failed_;
  }
  rt::Task<Status> Note(rt::Task<Status> work) {
    const Status status = co_await work;
    if (!status.ok() && failed_.ok()) failed_ = status;
    co_return OkStatus();
  }

  rt::Task<Status> OpenSome() {
    while (opening_ < wanted_) {
      ++opening_;
      Session session;
      CO_TRY(session.channel, co_await dialer_.Dial(address_, credentials_, kDialLimit));
      sessions_.push_back(std::move(session));
      Session& added = sessions_.back();
      net::RpcOptions options;
      CO_TRY(added.stream, co_await added.channel->Open(kEchoMethod, options));
      CO_TRY_STATUS(co_await Pair(added.stream.get()));
    }
    co_return OkStatus();
  }
  rt::Task<Status> ExchangeSome() {
    net::MessageStream* stream = std::next(sessions_.begin(), next_++)->stream.get();
    while (pairs_left_ > 0) {
      --pairs_left_;
      CO_TRY_STATUS(co_await Pair(stream));
    }
    co_return OkStatus();
  }
  static rt::Task<Status> Pair(net::MessageStream* stream) {
    if (!stream->TryWrite(std::string(kMessageBytes, 'm'))) co_return Unavailable("a full outbox");
    CO_TRY(const std::optional<std::string> back, co_await stream->Read());
    co_return back.has_value() ? OkStatus() : Unavailable("the server ended the stream");
  }

  rt::AsioLoop& loop_;
  const std::string address_;
  const net::RpcCredentials credentials_;
  net::H2Dialer dialer_;
  std::list<Session> sessions_;
  Status failed_;
  int wanted_ = 0;
  int opening_ = 0;
  int pairs_left_ = 0;
  int next_ = 0;
};

// What a stretch of work took.
struct Spent {
  double wall_ms = 0;
  double server_cpu_ms = 0;
};
rt::Task<Result<Spent>> Measure(rt::AsioLoop* loop,
                                const EchoProcess* server,
                                rt::Task<Status> work) {
  CO_TRY(const double cpu_before, server->CpuMs());
  const Time before = loop->Now();
  CO_TRY_STATUS(co_await work);
  CO_TRY(const double cpu_after, server->CpuMs());
  co_return Spent{.wall_ms = (loop->Now() - before).to_seconds() * 1e3,
                  .server_cpu_ms = cpu_after - cpu_before};
}

Figure MakeFigure(std::string metric, double value, std::string unit, int sessions) {
  return {.metric = std::move(metric),
          .value = value,
          .unit = std::move(unit),
          .params = {{"sessions", std::to_string(sessions)},
                     {"message_bytes", std::to_string(kMessageBytes)},
                     {"tls", "mutual, TLS 1.3"}}};
}

rt::Task<Result<std::vector<Figure>>> RunOn(rt::AsioLoop* loop,
                                            const EchoProcess* server,
                                            Sessions* sessions,
                                            RpcBenchOptions options) {
  std::vector<Figure> figures;
  const int count = options.sessions;
  CO_TRY_STATUS(co_await sessions->Open(1));  // what the first one costs is not a session's
  options.progress("one session");
  CO_TRY(const Spent one, co_await Measure(loop, server, sessions->Exchange(options.pairs)));
  options.progress("opening sessions");
  CO_TRY(const double kb_before, server->AnonymousKb());
  CO_TRY(const Spent setup, co_await Measure(loop, server, sessions->Open(count + 1)));
  CO_TRY(const double kb_after, server->AnonymousKb());
  options.progress("all sessions");
  CO_TRY(const Spent all, co_await Measure(loop, server, sessions->Exchange(options.pairs)));
  const double pairs = options.pairs;
  figures.push_back(MakeFigure("session_setup_ms", setup.wall_ms / count, "ms", count));
  figures.push_back(
      MakeFigure("session_setup_server_cpu_ms", setup.server_cpu_ms / count, "ms", count));
  figures.push_back(MakeFigure("session_server_kb", (kb_after - kb_before) / count, "KB", count));
  figures.push_back(MakeFigure("pair_us_1", one.wall_ms * 1e3 / pairs, "us", 1));
  figures.push_back(MakeFigure("pair_us_1000", all.wall_ms * 1e3 / pairs, "us", count));
  figures.push_back(
      MakeFigure("pair_server_cpu_us_1000", all.server_cpu_ms * 1e3 / pairs, "us", count));
  co_return figures;
}

rt::Task<Result<std::vector<Figure>>> RunAndClose(rt::AsioLoop* loop,
                                                  const EchoProcess* server,
                                                  Sessions* sessions,
                                                  RpcBenchOptions options) {
  auto figures = co_await RunOn(loop, server, sessions, std::move(options));
  CO_TRY_STATUS(co_await sessions->Close());
  co_return figures;
}

}  // namespace

Result<std::vector<Figure>> RunRpcBench(const RpcBenchOptions& options) {
  rt::AsioLoop loop("bench");
  TRY(const auto authority,
      pki::CertificateAuthority::LoadOrCreate(options.dir + "/pki", loop.WallNow()));
  const pki::ServerNames names{.dns_names = {}, .addresses = {"127.0.0.1"}};
  TRY(const pki::Credentials serving, authority.IssueServer(names, loop.WallNow()));
  TRY(const pki::Credentials calling, authority.IssueClient({.user = "bench"}, loop.WallNow()));
  net::TlsServerOptions tls;
  tls.certificate_pem = serving.certificate_pem;
  tls.key_pem = serving.key_pem;
  tls.client_certificates = net::ClientCertificates::kRequired;
  tls.client_ca_pem = authority.certificate_pem();
  TRY(const auto server, EchoProcess::Start(tls));
  net::RpcCredentials credentials;
  credentials.ca_pem = authority.certificate_pem();
  credentials.certificate_pem = calling.certificate_pem;
  credentials.key_pem = calling.key_pem;
  Sessions sessions(loop, *server, std::move(credentials));
  return rt::RunTask(loop, RunAndClose(&loop, server.get(), &sessions, options));
}

}  // namespace berth::app
