// SPDX-License-Identifier: Apache-2.0
// The Hypervisor of production: libvirt. All of its calls block, so each runs on a thread of its
// own pool; whoever asked waits no longer than the limit, and a call that hangs holds nothing but
// its thread. Events arrive without polling. A connection that is lost, or whose other end no
// longer answers, is opened again.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rt/backoff.h"
#include "rt/event.h"
#include "rt/leaf.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/thread_pool.h"
#include "runtime/machine/backup_jobs.h"
#include "runtime/machine/hypervisor.h"

// Of <libvirt/libvirt.h>.
struct _virConnect;
struct _virDomain;

namespace berth::runtime {

// Of one call of libvirt.
constexpr Duration kLibvirtCallLimit = Duration::Seconds(20);

class LibvirtHypervisor final : public Hypervisor, public BackupJobs {
 public:
  struct Options {
    std::string uri = "qemu:///system";
    Duration call_limit = kLibvirtCallLimit;
    // As long without an answer, and the connection is given up: as many questions, this often.
    int keepalive_seconds = 5;
    unsigned keepalive_count = 3;
    size_t threads = 4;
    size_t queue_max = 256;
    rt::BackoffOptions reconnect = {.initial = Duration::Millis(100), .max = Duration::Seconds(5)};
  };

  // Connects. Unavailable names the URI: there is nobody. If there is, and says nothing for as long
  // as a call may take, or the caller is cancelled meanwhile, what is made is not connected yet:
  // Trouble says so, and kConnected is told when it is.
  // One at a time in a process: libvirt's events are global.
  static rt::Task<Result<std::unique_ptr<LibvirtHypervisor>>> Start(rt::Loop& loop,
                                                                    Options options);
  // REQUIRES: Stop() was awaited.
  ~LibvirtHypervisor() override;
  LibvirtHypervisor(const LibvirtHypervisor&) = delete;
  LibvirtHypervisor& operator=(const LibvirtHypervisor&) = delete;

  // Waits for calls in progress. Timeout: a thread waits for a connection that may never come, and
  // nothing ends it; the process has to end without it (std::_Exit), or to ask again.
  rt::Task<Status> Stop();

  void Listen(Listener listener) override { listener_ = std::move(listener); }
  std::string Trouble() const override;
  rt::Task<Result<std::vector<Domain>>> List() override;
  rt::Task<Status> Define(std::string xml) override;
  rt::Task<Status> Undefine(std::string name) override;
  rt::Task<Status> Start(std::string name, StartMode mode) override;
  rt::Task<Status> Resume(std::string name) override;
  rt::Task<Status> PressPower(std::string name) override;
  rt::Task<Status> Destroy(std::string name) override;
  rt::Task<Status> AttachDevice(std::string name, std::string xml) override;
  rt::Task<Status> DetachDevice(std::string name, std::string xml) override;
  rt::Task<Result<DeviceElements>> LiveDevices(std::string name) override;
  rt::Task<Status> ResizeDisk(std::string name, std::string target, int64_t bytes) override;
  rt::Task<Status> SetSecret(std::string uuid, std::string description, std::string value) override;
  rt::Task<Status> RemoveSecret(std::string uuid) override;
  rt::Task<Result<std::vector<DomainStatistics>>> Statistics() override;
  rt::Task<Result<std::string>> Version() override;

  // libvirt_backups.cc
  rt::Task<Result<DiskUser>> FindDiskUser(std::string path) override;
  rt::Task<Status> BeginBackup(DiskUser user, DiskFile target) override;
  rt::Task<Result<BackupState>> LookAtBackup(std::string domain) override;
  rt::Task<Status> AbortBackup(std::string domain) override;

 private:
  class Bridge;
  using Connection = std::shared_ptr<_virConnect>;
  template <class T>
  struct Pending;

  LibvirtHypervisor(rt::Loop& loop, Options options);
  rt::Task<Status> RunEvents();
  rt::Task<Status> Connect();
  // Ok too if there is no answer yet.
  rt::Task<Status> FirstAnswer();
  rt::Task<Status> KeepConnected();
  Result<Connection> Open();
  void Deliver(const DomainEvent& event);

  // Runs `job` on a thread; T is a Status or a Result.
  template <class T>
  rt::Task<T> Call(std::string_view name, std::function<T(_virConnect*)> job);
  template <class T>
  rt::Task<Status> RunCall(std::string_view name,
                           std::function<T(_virConnect*)> job,
                           std::shared_ptr<Pending<T>> pending);
  // The same with the domain of this name.
  rt::Task<Status> OnDomain(std::string_view what,
                            std::string name,
                            std::function<Status(_virDomain*)> job);

  rt::Loop& loop_;
  const Options options_;
  Listener listener_;
  Connection connection_;                            // null: there is none, or none any more
  std::string trouble_ = "it has not answered yet";  // why there is none
  size_t stuck_ = 0;                                 // calls that nobody waits for any more
  rt::Event lost_;
  rt::Event settled_;  // set while no thread opens a connection
  // The outcome of the first attempt, for Start while it waits for that.
  struct First {
    bool is_awaited = true;
    rt::Event over;
    Status outcome;
  };
  First first_;
  std::shared_ptr<Bridge> bridge_;  // to the thread of the events
  std::atomic<bool> stopping_ = false;
  int waker_ = -1;  // a timer of libvirt that ends a wait for events
  rt::ThreadPool calls_;
  rt::ThreadPool events_;
  rt::TaskScope work_;
};

template <class T>
struct LibvirtHypervisor::Pending {
  rt::Leaf<Status>* waiter = nullptr;  // null: nobody waits any more
  std::optional<T> answer;
};

template <class T>
rt::Task<T> LibvirtHypervisor::Call(std::string_view name, std::function<T(_virConnect*)> job) {
  const std::string trouble = Trouble();
  if (!trouble.empty()) co_return Unavailable(trouble);
  auto pending = std::make_shared<Pending<T>>();
  rt::Leaf<Status> done;
  pending->waiter = &done;
  const rt::TimerId timer = loop_.After("libvirt.limit", options_.call_limit, [&done, this, name] {
    done.Complete(Timeout(std::string(name) + ": libvirt at " + options_.uri +
                          " does not answer within " + FormatDuration(options_.call_limit)));
  });
  work_.Spawn(name, RunCall(name, std::move(job), pending));
  const Status waited = co_await done;
  pending->waiter = nullptr;
  loop_.CancelTimer(timer);
  if (pending->answer.has_value()) co_return *std::move(pending->answer);
  ++stuck_;
  co_return waited.ok() ? Internal("a call of libvirt ended without an answer") : waited;
}

template <class T>
rt::Task<Status> LibvirtHypervisor::RunCall(std::string_view name,
                                            std::function<T(_virConnect*)> job,
                                            std::shared_ptr<Pending<T>> pending) {
  const Connection connection = connection_;  // lives as long as the call
  const auto run = [&job, &connection] { return job(connection.get()); };
  pending->answer.emplace(co_await calls_.Run(name, run));
  if (pending->waiter != nullptr) {
    pending->waiter->Complete(OkStatus());
  } else {
    --stuck_;
  }
  co_return OkStatus();
}

}  // namespace berth::runtime
