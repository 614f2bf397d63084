// SPDX-License-Identifier: Apache-2.0
#include "rt/asio/asio_loop.h"

#include <chrono>
#include <ctime>
#include <deque>
#include <list>
#include <map>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"

namespace berth::rt {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr Duration kTurnLogged = Duration::Millis(10);
constexpr Duration kTurnCounted = Duration::Millis(100);
// Reading the thread's CPU time is a system call (0.3 us), reading the monotonic clock is not. So
// the former is read at most once per millisecond, and after a turn that looks slow.
constexpr Duration kCpuSampleEvery = Duration::Millis(1);

uint64_t EntropySeed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) ^ device();
}

Duration ThreadCpuTime() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return Duration::Seconds(spent.tv_sec) + Duration::Nanos(spent.tv_nsec);
}

struct Posted {
  std::string_view name;
  Fn fn;
};

struct Timer {
  std::string_view name;
  Time due;
  Fn fn;
};

struct SignalWatch {
  explicit SignalWatch(asio::io_context& io) : set(io) {}
  asio::signal_set set;
  std::function<void(int)> fn;
};

}  // namespace

class AsioLoop::Body {
 public:
  explicit Body(std::string name)
      : name_(std::move(name)),
        wake_timer_(io_),
        random_(EntropySeed()),
        owner_(std::this_thread::get_id()) {}

  ~Body() {
    // Functions may own objects that post or set timers when they go: empty until nothing is left.
    signals_.clear();
    for (;;) {
      std::deque<Posted> local;
      std::unordered_map<uint64_t, Timer> timers;
      std::deque<Posted> inbox;
      local.swap(local_);
      timers.swap(timers_);
      {
        MutexLock lock(mutex_);
        inbox.swap(inbox_);
      }
      if (local.empty() && timers.empty() && inbox.empty()) break;
    }
  }

  bool IsOnLoop() const {
    return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  void Post(std::string_view name, Fn fn) {
    if (IsOnLoop()) {
      // What others posted before stays before: one order for all.
      local_.push_back({.name = name, .fn = std::move(fn)});
      WakeLocal();
      return;
    }
    bool first = false;
    {
      MutexLock lock(mutex_);
      first = inbox_.empty();
      inbox_.push_back({.name = name, .fn = std::move(fn)});
    }
    if (first) asio::post(io_, [this] { TakeInbox(); });
  }

  TimerId After(std::string_view name, Duration delay, Fn fn) {
    const uint64_t id = ++last_timer_;
    const Time due = Now() + delay;
    timers_.emplace(id, Timer{.name = name, .due = due, .fn = std::move(fn)});
    schedule_.emplace(std::pair(due, id), 0);
    Arm();
    return {id};
  }

  bool CancelTimer(TimerId timer) {
    const auto found = timers_.find(timer.value);
    if (found == timers_.end()) return false;
    schedule_.erase({found->second.due, timer.value});
    const Fn dropped = std::move(found->second.fn);  // destroyed last: it may come back to us
    timers_.erase(found);
    return true;  // the armed wait stays: a wake-up for nothing costs less than arming anew
  }

  static Time Now() {
    return Time::FromNanos(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
            .count());
  }

  void Run() {
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    cpu_sample_ = ThreadCpuTime();
    cpu_sampled_at_ = Now();
    const auto work = asio::make_work_guard(io_);
    io_.restart();
    io_.run();
  }
  void Stop() { io_.stop(); }

  void OnSignal(std::initializer_list<int> signals, std::function<void(int)> fn) {
    SignalWatch& watch = signals_.emplace_back(io_);
    watch.fn = std::move(fn);
    for (const int signal : signals) {
      boost::system::error_code error;
      watch.set.add(signal, error);
      CHECK(!error) << "signal " << signal << ": " << error.message();
    }
    WaitForSignal(watch);
  }

  void Turn(std::string_view name, Fn fn) {
    draining_ = true;
    Call(name, fn);
    draining_ = false;
    Settle();
  }

  const std::string& name() const { return name_; }
  Random& random() { return random_; }
  uint64_t slow_turns() const { return slow_turns_.load(std::memory_order_relaxed); }
  asio::io_context& io() { return io_; }

 private:
  void WakeLocal() {
    if (draining_ || drain_posted_) return;
    drain_posted_ = true;
    asio::post(io_, [this] { DrainLocal(); });
  }

  // At the end of a handler: runs what it posted, unless a drain is on its way already.
  void Settle() {
    if (!drain_posted_ && !local_.empty()) DrainLocal();
  }

  void TakeInbox() {
    {
      MutexLock lock(mutex_);
      if (local_.empty()) {
        local_.swap(inbox_);
      } else {
        for (Posted& posted : inbox_) local_.push_back(std::move(posted));
        inbox_.clear();
      }
    }
    Settle();
  }

  // Runs what was queued when it began. What is posted meanwhile comes after the sockets had their
  // turn.
  void DrainLocal() {
    drain_posted_ = false;
    draining_ = true;
    for (size_t left = local_.size(); left > 0 && !io_.stopped(); --left) {
      Posted posted = std::move(local_.front());
      local_.pop_front();
      Call(posted.name, posted.fn);
    }
    draining_ = false;
    if (!local_.empty()) WakeLocal();
  }

  void Call(std::string_view name, Fn& fn) {
    const Time start = Now();
    if (start - cpu_sampled_at_ > kCpuSampleEvery) {
      cpu_sample_ = ThreadCpuTime();
      cpu_sampled_at_ = start;
    }
    fn();
    const Duration wall = Now() - start;
    if (wall > kTurnLogged) Judge(name, wall);
  }

  void Judge(std::string_view name, Duration wall) {
    const Duration cpu = std::min(ThreadCpuTime() - cpu_sample_, wall);
    if (cpu <= kTurnLogged) return;
    LOG_DEBUG("loop {}: {} took {} ms of cpu", name_, name, cpu.millis());
    if (cpu > kTurnCounted) slow_turns_.fetch_add(1, std::memory_order_relaxed);
  }

  void Arm() {
    if (schedule_.empty()) return;
    const Time due = schedule_.begin()->first.first;
    if (armed_ && armed_for_ <= due) return;
    armed_ = true;
    armed_for_ = due;
    wake_timer_.expires_at(Clock::time_point(std::chrono::nanoseconds(due.nanos())));
    wake_timer_.async_wait([this, due](const boost::system::error_code& error) {
      if (error || !armed_ || armed_for_ != due) return;
      armed_ = false;
      RunTimers();
    });
  }

  void RunTimers() {
    const Time now = Now();
    draining_ = true;
    while (!schedule_.empty() && schedule_.begin()->first.first <= now && !io_.stopped()) {
      const uint64_t id = schedule_.begin()->first.second;
      schedule_.erase(schedule_.begin());
      const auto found = timers_.find(id);
      Timer timer = std::move(found->second);
      timers_.erase(found);
      Call(timer.name, timer.fn);
    }
    draining_ = false;
    Arm();
    Settle();
  }

  void WaitForSignal(SignalWatch& watch) {
    watch.set.async_wait([this, &watch](const boost::system::error_code& error, int signal) {
      if (error) return;
      Turn("rt.signal", [&watch, signal] { watch.fn(signal); });
      WaitForSignal(watch);
    });
  }

  const std::string name_;
  asio::io_context io_{1};
  asio::steady_timer wake_timer_;
  Random random_;
  std::atomic<std::thread::id> owner_;
  std::atomic<uint64_t> slow_turns_{0};

  // Only touched on the loop.
  std::deque<Posted> local_;
  bool drain_posted_ = false;
  bool draining_ = false;
  uint64_t last_timer_ = 0;
  std::unordered_map<uint64_t, Timer> timers_;
  std::map<std::pair<Time, uint64_t>, char> schedule_;  // by due time, then by age
  bool armed_ = false;
  Time armed_for_;
  Duration cpu_sample_;
  Time cpu_sampled_at_;
  std::list<SignalWatch> signals_;

  Mutex mutex_;
  std::deque<Posted> inbox_ GUARDED_BY(mutex_);  // posts of other threads
};

AsioLoop::AsioLoop(std::string name) : body_(std::make_unique<Body>(std::move(name))) {}
AsioLoop::~AsioLoop() = default;

void AsioLoop::Post(std::string_view name, Fn fn) { body_->Post(name, std::move(fn)); }
TimerId AsioLoop::After(std::string_view name, Duration delay, Fn fn) {
  Assert();
  return body_->After(name, delay, std::move(fn));
}
bool AsioLoop::CancelTimer(TimerId timer) {
  Assert();
  return body_->CancelTimer(timer);
}
Time AsioLoop::Now() const { return Body::Now(); }
WallTime AsioLoop::WallNow() const {
  return WallTime::FromMicros(std::chrono::duration_cast<std::chrono::microseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count());
}
Random& AsioLoop::random() {
  Assert();
  return body_->random();
}
bool AsioLoop::IsOnLoop() const { return body_->IsOnLoop(); }
void AsioLoop::Run() { body_->Run(); }
void AsioLoop::Stop() { body_->Stop(); }
void AsioLoop::OnSignal(std::initializer_list<int> signals, std::function<void(int)> fn) {
  Assert();
  body_->OnSignal(signals, std::move(fn));
}
const std::string& AsioLoop::name() const { return body_->name(); }
uint64_t AsioLoop::slow_turns() const { return body_->slow_turns(); }
boost::asio::io_context& AsioLoop::io_context() { return body_->io(); }
void AsioLoop::Turn(std::string_view name, Fn fn) { body_->Turn(name, std::move(fn)); }

}  // namespace berth::rt
