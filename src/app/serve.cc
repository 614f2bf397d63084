// SPDX-License-Identifier: Apache-2.0
#include "app/serve.h"

#include <sys/stat.h>

#include <csignal>
#include <memory>
#include <utility>

#include "app/process/memory_limit.h"
#include "app/process/open_files.h"
#include "app/process/start_pages.h"
#include "base/log.h"
#include "cli/failure.h"
#include "rt/deadline.h"
#include "rt/event.h"
#include "rt/scope.h"

namespace berth::app {
namespace {

constexpr Duration kStartAgain = Duration::Seconds(1);

// What a server is stopped for.
struct Turn {
  rt::Event event;
  bool is_end = false;  // the process is to end; otherwise another server leads
};

// A server that has led and does not any more begins anew, on the same ports: nothing of what it
// knew as the leader is left. Null if it was told to stop meanwhile.
rt::Task<Result<std::unique_ptr<Server>>> BeginAnew(rt::AsioLoop* loop,
                                                    ServerOptions options,
                                                    Turn* turn) {
  while (!turn->is_end) {
    turn->event.Reset();
    auto started = co_await Server::Start(*loop, options);
    if (started.ok() || started.status().Is(Reason::kCancelled)) co_return started;
    LOG_WARNING("{}", started.status().message());
    const Status waited = co_await rt::WithDeadline(turn->event.Wait(), kStartAgain);
    if (waited.Is(Reason::kCancelled)) co_return waited;
  }
  co_return std::unique_ptr<Server>();
}

Status AdviseStart(const ServerOptions& options, const Status& status) {
  if (!status.Is(Reason::kUnavailable)) return status;
  return cli::Advise(status,
                     options.etcd ? "see that etcd serves, and that --listen and --gateway-listen "
                                    "name free ports"
                                  : "a server needs a folder (--data-dir) and ports (--listen, "
                                    "--gateway-listen) of its own; berth down ends one that runs");
}

// Whether the process is to end.
rt::Task<Result<bool>> AwaitTurn(rt::AsioLoop* loop, Turn* turn) {
  const rt::TimerId trim = loop->After("server.trim", kStartOver, &GiveBackStartPages);
  const Status stopped = co_await turn->event.Wait();
  loop->CancelTimer(trim);
  CO_TRY_STATUS(stopped);
  LOG_INFO("{}", turn->is_end ? "stopping" : "beginning anew");
  co_return turn->is_end;
}

rt::Task<Status> ServeUntil(rt::AsioLoop* loop,
                            ServerOptions options,
                            Companion* companion,
                            Turn* turn) {
  options.on_deposed = [turn] { turn->event.Set(); };
  auto started = co_await Server::Start(*loop, options);
  if (!started.ok()) co_return AdviseStart(options, started.status());
  std::unique_ptr<Server> server = *std::move(started);
  options.port = server->port();
  options.gateway_port = server->gateway_port();
  companion->Start(*loop, *server);
  for (;;) {
    CO_TRY(const bool is_end, co_await AwaitTurn(loop, turn));
    if (is_end) break;
    CO_TRY_STATUS(co_await server->Stop());
    server.reset();
    CO_TRY(server, co_await BeginAnew(loop, options, turn));
    if (server == nullptr) break;
  }
  const Status left = co_await companion->Stop();
  const Status served = server == nullptr ? OkStatus() : co_await server->Stop();
  co_return left.ok() ? served : left;
}

}  // namespace

Status Serve(ServerOptions options, Companion& companion) {
  umask(0077);  // nothing that a server writes is for others
  TRY_STATUS(CheckOpenFiles(RaiseOpenFiles()));
  TRY_STATUS(CheckMemory(ReadMemoryLimit()));
  rt::AsioLoop loop("main");
  Turn turn;
  loop.OnSignal({SIGTERM, SIGINT}, [&turn](int) {
    turn.is_end = true;
    turn.event.Set();
  });
  return rt::RunTask(loop, ServeUntil(&loop, std::move(options), &companion, &turn));
}

}  // namespace berth::app
