// SPDX-License-Identifier: Apache-2.0
// The connection, its events, and how calls run. What the calls do is in libvirt_domains.cc.
#include "runtime/machine/libvirt_hypervisor.h"

#include <fmt/core.h>

#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "rt/deadline.h"
#include "rt/sleep.h"
#include "runtime/machine/libvirt_error.h"
#include "runtime/machine/libvirt_library.h"
#include "runtime/machine/libvirt_states.h"

namespace berth::runtime {
namespace {

// A libvirtd that answers does so well within.
constexpr Duration kOpenPatience = Duration::Seconds(1);

std::atomic<bool> exists = false;

void IgnoreError(void* /*data*/, virErrorPtr /*error*/) {}  // we tell errors ourselves
// libvirt takes callbacks of all events as one type; they go through the type of no arguments.
template <class Function>
virConnectDomainEventGenericCallback AsCallback(Function* function) {
  return reinterpret_cast<virConnectDomainEventGenericCallback>(
      reinterpret_cast<void (*)()>(function));
}

void IgnoreTimer(int /*timer*/, void* /*data*/) {}

// libvirt's event functions are for the whole process and for ever.
bool RegisterEvents() {
  Libvirt().virSetErrorFunc(nullptr, &IgnoreError);
  return Libvirt().virEventRegisterDefaultImpl() == 0;
}

}  // namespace

// Shared with libvirt, which calls on its own thread and may do so once more after we are gone.
class LibvirtHypervisor::Bridge {
 public:
  Bridge(rt::Loop& loop, LibvirtHypervisor& owner) : loop_(&loop), owner_(&owner) {}

  // From any thread.
  static void Post(const std::shared_ptr<Bridge>& bridge, DomainEvent event) {
    MutexLock lock(bridge->mutex_);
    if (bridge->loop_ == nullptr) return;
    bridge->loop_->Post("libvirt.event", [bridge, event = std::move(event)] {
      if (bridge->owner_ != nullptr) bridge->owner_->Deliver(event);
    });
  }
  // On the loop.
  void Cut() {
    MutexLock lock(mutex_);
    loop_ = nullptr;
    owner_ = nullptr;
  }

  static int OnLife(virConnectPtr, virDomainPtr domain, int event, int detail, void* data) {
    std::optional<DomainEvent> told = LifeEventOf(event, detail);
    if (!told.has_value()) return 0;
    told->name = Libvirt().virDomainGetName(domain);
    Post(*static_cast<std::shared_ptr<Bridge>*>(data), *std::move(told));
    return 0;
  }
  template <DomainEvent::Kind kind>
  static void OnDevice(virConnectPtr, virDomainPtr domain, const char* alias, void* data) {
    DomainEvent told;
    told.kind = kind;
    told.name = Libvirt().virDomainGetName(domain);
    told.detail = alias == nullptr ? "" : alias;
    Post(*static_cast<std::shared_ptr<Bridge>*>(data), std::move(told));
  }
  static void OnClose(virConnectPtr, int reason, void* data) {
    DomainEvent told;
    told.kind = DomainEvent::Kind::kLost;
    told.detail =
        reason == VIR_CONNECT_CLOSE_REASON_KEEPALIVE ? "it does not answer" : "it is gone";
    Post(*static_cast<std::shared_ptr<Bridge>*>(data), std::move(told));
  }
  static void* Share(const std::shared_ptr<Bridge>& bridge) {
    return new std::shared_ptr<Bridge>(bridge);  // owned by libvirt until Unshare
  }
  static void Unshare(void* data) { delete static_cast<std::shared_ptr<Bridge>*>(data); }

 private:
  Mutex mutex_;
  rt::Loop* loop_ GUARDED_BY(mutex_);
  LibvirtHypervisor* owner_;  // touched on the loop only
};

LibvirtHypervisor::LibvirtHypervisor(rt::Loop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      bridge_(std::make_shared<Bridge>(loop, *this)),
      calls_({.threads = options_.threads, .queue_max = options_.queue_max, .name = "libvirt"}),
      events_({.threads = 1, .queue_max = 1, .name = "libvirt-events"}),
      work_(loop) {
  CHECK(!exists.exchange(true)) << "libvirt's events are global: one hypervisor per process";
  settled_.Set();
}

LibvirtHypervisor::~LibvirtHypervisor() { exists = false; }

rt::Task<Result<std::unique_ptr<LibvirtHypervisor>>> LibvirtHypervisor::Start(rt::Loop& loop,
                                                                              Options options) {
  CO_TRY_STATUS(LoadLibvirt());
  static const bool registered = RegisterEvents();
  if (!registered) co_return LibvirtFailure("register for events");
  auto made = std::unique_ptr<LibvirtHypervisor>(new LibvirtHypervisor(loop, std::move(options)));
  made->waker_ = Libvirt().virEventAddTimeout(-1, &IgnoreTimer, nullptr, nullptr);
  made->work_.Spawn("libvirt.events", made->RunEvents());
  made->work_.Spawn("libvirt.connection", made->KeepConnected());
  const Status answer = co_await made->FirstAnswer();
  if (!answer.ok()) {
    CO_TRY_STATUS(co_await made->Stop());
    co_return answer;
  }
  co_return made;
}

rt::Task<Status> LibvirtHypervisor::Stop() {
  listener_ = nullptr;
  bridge_->Cut();
  lost_.Set();
  work_.Cancel();
  if (!settled_.is_set()) {
    static_cast<void>(co_await rt::WithDeadline(settled_.Wait(), kOpenPatience));
    if (!settled_.is_set()) {
      co_return Timeout("a thread waits for libvirt at " + options_.uri +
                        ", which took the connection and says nothing");
    }
  }
  // The connection ends while events still run: libvirt closes its socket there.
  const Connection last = std::exchange(connection_, nullptr);
  const auto close = [&last] {
    if (last == nullptr) return OkStatus();
    Libvirt().virConnectUnregisterCloseCallback(last.get(), &Bridge::OnClose);
    return OkStatus();
  };
  const Status closed = co_await calls_.Run("libvirt.close", close);
  if (!closed.ok()) LOG_WARNING("close libvirt: {}", closed.message());
  stopping_ = true;
  Libvirt().virEventUpdateTimeout(waker_, 0);
  CO_TRY_STATUS(co_await work_.Close());
  Libvirt().virEventRemoveTimeout(waker_);
  co_return OkStatus();
}

rt::Task<Status> LibvirtHypervisor::RunEvents() {
  const auto run = [this] {
    while (!stopping_) {
      if (Libvirt().virEventRunDefaultImpl() < 0) return LibvirtFailure("wait for events");
    }
    return OkStatus();
  };
  co_return co_await events_.Run("libvirt.events", run);
}

std::string LibvirtHypervisor::Trouble() const {
  if (connection_ == nullptr) {
    return fmt::format("libvirt at {} is not connected: {}", options_.uri, trouble_);
  }
  if (stuck_ >= options_.threads) {
    return fmt::format("libvirt at {} does not answer: {} calls hang", options_.uri, stuck_);
  }
  return {};
}

// On a thread of the pool.
Result<LibvirtHypervisor::Connection> LibvirtHypervisor::Open() {
  const std::string doing = "connect to libvirt at " + options_.uri;
  Connection connection(Libvirt().virConnectOpen(options_.uri.c_str()), [](virConnectPtr closed) {
    if (closed != nullptr) Libvirt().virConnectClose(closed);
  });
  if (connection == nullptr) {
    return Unavailable(std::string(LibvirtFailure(doing).message()));
  }
  // Drivers inside of this process have none, and need none.
  if (Libvirt().virConnectSetKeepAlive(
          connection.get(), options_.keepalive_seconds, options_.keepalive_count) < 0) {
    return LibvirtFailure(doing + ": keepalive");
  }
  if (Libvirt().virConnectRegisterCloseCallback(
          connection.get(), &Bridge::OnClose, Bridge::Share(bridge_), &Bridge::Unshare) < 0) {
    return LibvirtFailure(doing + ": close callback");
  }
  using Kind = DomainEvent::Kind;
  const std::pair<int, virConnectDomainEventGenericCallback> events[] = {
      {VIR_DOMAIN_EVENT_ID_LIFECYCLE, AsCallback(&Bridge::OnLife)},
      {VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, AsCallback(&Bridge::OnDevice<Kind::kDeviceAdded>)},
      {VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, AsCallback(&Bridge::OnDevice<Kind::kDeviceRemoved>)}};
  for (const auto& [event, callback] : events) {
    const int registered = Libvirt().virConnectDomainEventRegisterAny(
        connection.get(), nullptr, event, callback, Bridge::Share(bridge_), &Bridge::Unshare);
    if (registered < 0) return LibvirtFailure(doing + ": events");
  }
  return connection;
}

// virConnectOpen has no limit.
rt::Task<Status> LibvirtHypervisor::Connect() {
  const auto open = [this] { return Open(); };
  settled_.Reset();
  Result<Connection> opened = co_await calls_.Run("libvirt.connect", open);
  settled_.Set();
  if (!opened.ok()) {
    trouble_ = opened.status().message();
    co_return opened.status();
  }
  connection_ = *std::move(opened);
  lost_.Reset();
  co_return OkStatus();
}

// A libvirtd that was stopped takes the connection and says nothing; keepalive begins only behind
// its first words.
rt::Task<Status> LibvirtHypervisor::FirstAnswer() {
  const Status waited = co_await rt::WithDeadline(first_.over.Wait(), options_.call_limit);
  first_.is_awaited = false;
  if (first_.over.is_set()) co_return first_.outcome;
  trouble_ = "it took the connection and says nothing";
  if (waited.Is(Reason::kTimeout)) LOG_WARNING("{}", Trouble());
  co_return OkStatus();
}

rt::Task<Status> LibvirtHypervisor::KeepConnected() {
  rt::Backoff backoff(options_.reconnect);
  for (;;) {
    const Status connected = co_await Connect();
    if (connected.Is(Reason::kCancelled)) co_return connected;
    if (first_.is_awaited && !first_.over.is_set()) {
      first_.outcome = connected;
      first_.over.Set();
      if (!connected.ok()) co_return OkStatus();  // nobody wants another attempt
    }
    if (connected.ok()) {
      backoff.Reset();
      LOG_INFO("libvirt at {} is connected", options_.uri);
      DomainEvent event;
      event.kind = DomainEvent::Kind::kConnected;
      if (listener_) listener_(event);
      CO_TRY_STATUS(co_await lost_.Wait());
    }
    CO_TRY_STATUS(co_await rt::Sleep(backoff.Next(loop_.random())));
  }
}

void LibvirtHypervisor::Deliver(const DomainEvent& event) {
  if (event.kind == DomainEvent::Kind::kLost) {
    if (connection_ == nullptr) return;  // of an earlier connection
    trouble_ = event.detail;
    LOG_WARNING("libvirt at {} is lost: {}", options_.uri, event.detail);
    connection_ = nullptr;
    lost_.Set();
  }
  if (listener_) listener_(event);
}

}  // namespace berth::runtime
