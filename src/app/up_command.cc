// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/host_plan.h"
#include "app/process/flag_tables.h"
#include "app/serve.h"
#include "app/serve_commands.h"
#include "app/server_flags.h"
#include "app/up/instance.h"
#include "app/up/local_host.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/render/progress_bar.h"
#include "cli/session/session.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Session;

constexpr auto kUpFlags = JoinFlags(kServerFlags, kHostFlags);

// Says where the server is, and brings up the host beside it.
class UpCompanion final : public Companion {
 public:
  UpCompanion(Session& session, std::string data_dir, HostPlan plan)
      : session_(session),
        data_dir_(std::move(data_dir)),
        plan_(std::move(plan)),
        bar_(session.environment(), "host") {}

  void Start(rt::AsioLoop& loop, const Server& server) override {
    session_.out() << fmt::format(
        "Berth serves {}\n"
        "poollets      {}\n"
        "kubeconfig    {}\n"
        "next          export KUBECONFIG={}; kubectl get namespaces\n",
        server.url(),
        server.gateway_address(),
        server.kubeconfig_path(),
        server.kubeconfig_path());
    session_.out().flush();
    if (!plan_.why_not.empty()) {
      Tell({.state = HostProgress::State::kNone, .text = plan_.why_not});
      bar_.End("none: " + plan_.why_not);
      return;
    }
    plan_.options.gateway = server.gateway_address();
    plan_.options.kubeconfig = server.kubeconfig_path();
    host_.emplace(loop, plan_.options);
    scope_.emplace(loop);
    scope_->Spawn("up.host", Bring());
  }

  rt::Task<Status> Stop() override {
    if (!scope_.has_value()) co_return OkStatus();
    CO_TRY_STATUS(co_await scope_->Close());
    co_return co_await host_->Stop();
  }

 private:
  void Tell(const HostProgress& progress) {
    const Status written = WriteProgress(data_dir_, progress);
    if (!written.ok()) LOG_WARNING("{}", written.message());
  }

  void Show(const HostProgress& progress) {
    Tell(progress);
    bar_.Turn(progress.what);
    bar_.Show(progress.done, progress.of, progress.text);
  }

  rt::Task<Status> Bring() {
    const auto told = [this](size_t done, size_t of, std::string_view step) {
      Show({.done = done, .of = of, .text = std::string(step)});
    };
    const auto image_told = [this](size_t bytes, size_t of, std::string_view text) {
      Show({.what = "image", .done = bytes, .of = of, .text = std::string(text)});
    };
    const Status brought = co_await host_->Bring(told, image_told);
    bar_.Turn("host");
    if (brought.Is(Reason::kCancelled)) co_return brought;
    if (!brought.ok()) {
      const std::string why(brought.message());
      Tell({.state = HostProgress::State::kNone, .text = why});
      bar_.End("none: " + why);
      co_return brought;
    }
    const std::string& name = plan_.options.name;
    Tell({.state = HostProgress::State::kReady, .text = name});
    bar_.End(
        fmt::format("{} is ready: machines on pool {}, volumes on {}-disks", name, name, name));
    co_return OkStatus();
  }

  Session& session_;
  const std::string data_dir_;
  HostPlan plan_;
  cli::ProgressBar bar_;
  std::optional<LocalHost> host_;
  std::optional<rt::TaskScope> scope_;
};

// Somebody runs it already: says where it is, and shows how its host comes up.
Status FollowInstance(Session& session, const std::string& data_dir) {
  TRY(const auto running, FindInstance(data_dir));
  session.out() << fmt::format("Berth runs already, as process {}\nkubeconfig    {}/kubeconfig\n",
                               running.value_or(0),
                               data_dir)
                << std::flush;
  cli::ProgressBar bar(session.environment(), "host");
  rt::AsioLoop loop("follow");
  while (true) {
    const auto progress = ReadProgress(data_dir);
    if (progress.ok()) bar.Turn(progress->what);
    if (progress.ok() && progress->state == HostProgress::State::kReady) {
      bar.End(progress->text + " is ready");
      return OkStatus();
    }
    if (progress.ok() && progress->state == HostProgress::State::kNone) {
      bar.End("none: " + progress->text);
      return OkStatus();
    }
    if (progress.ok()) bar.Show(progress->done, progress->of, progress->text);
    TRY(const auto still, FindInstance(data_dir));
    if (!still.has_value()) {
      return cli::Advise(Unavailable("it ended before its host was ready"),
                         "its log says why; without one, run berth up in the foreground");
    }
    constexpr Duration kLook = Duration::Millis(100);
    TRY_STATUS(rt::RunTask(loop, rt::Sleep(kLook)));
  }
}

Status RunUp(Session& session, const Arguments& arguments) {
  ConfigureLog(arguments);
  TRY(auto options, ReadServerOptions(arguments, session.environment()));
  const std::string data_dir = options.data_dir;
  TRY(const auto lock, InstanceLock::Take(data_dir));
  if (lock == nullptr) return FollowInstance(session, data_dir);
  TRY(HostPlan plan, PlanHost(arguments, session.environment(), data_dir));
  UpCompanion companion(session, data_dir, std::move(plan));
  return Serve(std::move(options), companion);
}

}  // namespace

cli::Command UpCommand() {
  return {.name = "up",
          .group = "Server",
          .summary = "Start a server, and this machine as its host",
          .details =
              "Starts a server with its store in one folder, and beside it what makes this machine "
              "a host: a libvirtd of its own, runtimes for machines and volumes, and a poollet. "
              "Runs until it is told to stop; guests run on, and are found again by the next "
              "start. Run again while it runs, it shows how far the host is, and returns when that "
              "is ready.\n\n"
              "The first start makes a certificate authority and a kubeconfig for the "
              "administrator. Without QEMU and libvirt it says what is missing, and serves "
              "without a host.",
          .examples =
              "# a server and a host on this machine\n"
              "berth up\n"
              "# with images of a registry in this network\n"
              "berth up --registry registry.lan:5000 --registry-ca /etc/ssl/lan.pem\n"
              "# a server for tests, on a free port, without a host\n"
              "berth up --data-dir /tmp/berth --listen 127.0.0.1:0 --host none",
          .flags = kUpFlags,
          .run = &RunUp};
}

}  // namespace berth::app
