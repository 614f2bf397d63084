// SPDX-License-Identifier: Apache-2.0
#include "app/serve.h"

#include <sys/stat.h>

#include <csignal>
#include <utility>

#include "app/open_files.h"
#include "app/process/start_pages.h"
#include "base/log.h"
#include "rt/event.h"
#include "rt/scope.h"

namespace berth::app {
namespace {

rt::Task<Status> ServeUntil(rt::AsioLoop& loop,
                            ServerOptions options,
                            Companion* companion,
                            rt::Event& stop) {
  CO_TRY(auto server, co_await Server::Start(loop, std::move(options)));
  companion->Start(loop, *server);
  const rt::TimerId trim = loop.After("server.trim", kStartOver, &GiveBackStartPages);
  const Status stopped = co_await stop.Wait();
  loop.CancelTimer(trim);
  CO_TRY_STATUS(stopped);
  LOG_INFO("stopping");
  const Status left = co_await companion->Stop();
  const Status served = co_await server->Stop();
  co_return left.ok() ? served : left;
}

}  // namespace

Status Serve(ServerOptions options, Companion& companion) {
  umask(0077);  // nothing that a server writes is for others
  RaiseOpenFiles();
  rt::AsioLoop loop("main");
  rt::Event stop;
  loop.OnSignal({SIGTERM, SIGINT}, [&stop](int) { stop.Set(); });
  return rt::RunTask(loop, ServeUntil(loop, std::move(options), &companion, stop));
}

}  // namespace berth::app
