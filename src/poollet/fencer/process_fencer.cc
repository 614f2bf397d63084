// SPDX-License-Identifier: Apache-2.0
#include "poollet/fencer/process_fencer.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <array>
#include <span>
#include <utility>

#include "base/log.h"
#include "iri/grpc/boot_clock.h"
#include "net/owned_fd.h"
#include "net/socket.h"
#include "poollet/fencer/fence_words.h"
#include "poollet/fencer/fencer_process.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::poollet {
namespace {

// A fencer that does not answer within this is none.
constexpr Duration kAnswerLimit = Duration::Seconds(1);
constexpr Duration kRuntimeLimit = Duration::Seconds(2);
// How long a new one is waited for before another is started.
constexpr Duration kStartLimit = Duration::Seconds(2);
constexpr Duration kConnectPause = Duration::Millis(20);

}  // namespace

rt::Task<Result<bool>> NeedsProcessFencer(iri::HostRuntime* runtime) {
  const auto guests = co_await runtime->ListGuests();
  if (guests.ok()) co_return true;
  if (guests.status().Is(Reason::kMethodNotSupported)) co_return false;
  // Which guests it has it may say later; whose their leases are it says now.
  iri::LeaseRenewal nothing;
  const auto leases = co_await runtime->RenewLease(std::move(nothing));
  if (leases.ok()) co_return false;
  if (leases.status().Is(Reason::kMethodNotSupported)) co_return true;
  co_return guests.status();
}

ProcessFencer::ProcessFencer(rt::AsioLoop& loop,
                             iri::HostRuntime& runtime,
                             std::string folder,
                             std::function<Status()> launch)
    : loop_(loop),
      runtime_(runtime),
      folder_(std::move(folder)),
      launch_(std::move(launch)),
      scope_(loop) {}

ProcessFencer::~ProcessFencer() = default;

void ProcessFencer::Start() { scope_.Spawn("fencer.supervise", Supervise()); }

rt::Task<Status> ProcessFencer::Close() {
  CO_TRY_STATUS(co_await scope_.Close());
  stream_.reset();
  co_return OkStatus();
}

rt::Task<Status> ProcessFencer::Connect() {
  const net::OwnedFd folder(open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string path = fmt::format("/proc/self/fd/{}/{}", folder.get(), kFencerSocket);
  CO_TRY(const int fd, co_await net::ConnectUnix(&loop_, std::move(path)));
  stream_ = std::make_unique<net::PlainStream>(loop_, fd);
  stream_->SetWriteTimeout(kAnswerLimit);
  co_return OkStatus();
}

// One is there from before, or one is started; and again whenever it is gone.
rt::Task<Status> ProcessFencer::Supervise() {
  while (true) {
    Status connected = co_await Connect();
    if (!connected.ok() && !connected.Is(Reason::kCancelled)) {
      const Status launched = launch_();
      if (!launched.ok()) LOG_ERROR("fencer: {}", launched.message());
      const Time give_up = loop_.Now() + kStartLimit;
      while (!connected.ok() && loop_.Now() < give_up) {
        CO_TRY_STATUS(co_await rt::Sleep(kConnectPause));
        connected = co_await Connect();
      }
    }
    if (connected.Is(Reason::kCancelled)) co_return connected;
    if (!connected.ok()) {
      LOG_ERROR("fencer: {}", connected.message());
      continue;
    }
    lost_.Reset();
    stream_->WatchPeer([this] { Lost(); });
    connected_.Set();
    GuestsChanged();
    CO_TRY_STATUS(co_await lost_.Wait());
    CO_TRY(const auto permit, co_await exchange_.Enter());  // whoever speaks has ended
    (void)permit;
    stream_.reset();
    LOG_WARNING("fencer: gone; it is started again");
  }
}

void ProcessFencer::Lost() {
  connected_.Reset();
  lost_.Set();
}

rt::Task<Result<std::string>> ProcessFencer::ReadAnswer() {
  std::string buffer;
  std::vector<char> chunk(65536);
  while (buffer.size() < kFenceMessageBytesMax) {
    if (auto message = TakeFenceMessage(buffer)) co_return *std::move(message);
    const std::span<char> into(chunk);
    CO_TRY(const size_t got, co_await stream_->Read(into));
    if (got == 0) co_return Unavailable("the fencer is gone");
    buffer.append(chunk.data(), got);
  }
  co_return BadRequest("the fencer's answer is too long");
}

rt::Task<Result<FenceTable::Leases>> ProcessFencer::Exchange(FenceRequest request) {
  CO_TRY(const auto permit, co_await exchange_.Enter());
  (void)permit;
  if (stream_ == nullptr || !connected_.is_set()) co_return Unavailable("there is no fencer");
  stream_->WatchPeer({});
  const std::string text = EncodeFenceRequest(request) + std::string(kFenceEnd);
  const std::array<std::string_view, 1> parts = {text};
  const Status written = co_await stream_->Write(parts);
  if (!written.ok()) {
    Lost();
    co_return written;
  }
  const auto answer = co_await rt::WithDeadline(ReadAnswer(), kAnswerLimit);
  if (!answer.ok()) {
    Lost();
    co_return answer.status();
  }
  stream_->WatchPeer([this] { Lost(); });
  co_return DecodeFenceAnswer(*answer);
}

rt::Task<Status> ProcessFencer::WaitForFencer() {
  if (connected_.is_set()) co_return OkStatus();
  const Status waited = co_await rt::WithDeadline(connected_.Wait(), kAnswerLimit);
  co_return waited.Is(Reason::kTimeout) ? Unavailable("there is no fencer") : waited;
}

rt::Task<Result<std::vector<iri::LeaseState>>> ProcessFencer::Renew(iri::LeaseRenewal renewal) {
  CO_TRY_STATUS(co_await WaitForFencer());
  FenceRequest request;
  request.releases = std::move(renewal.released_uids);
  request.leases = std::move(renewal.machine_uids);
  if (!request.leases.empty()) {
    request.deadline = iri::ToBootNanos(renewal.deadline, loop_.Now());
  }
  // A runtime that is away changes nothing for the guests that the fencer has. One that shows none
  // has none that could be killed in time.
  auto guests = co_await rt::WithDeadline(runtime_.ListGuests(), kRuntimeLimit);
  if (guests.status().Is(Reason::kCancelled) || guests.status().Is(Reason::kMethodNotSupported)) {
    co_return guests.status();
  }
  if (guests.ok()) {
    for (const auto& guest : *guests) {
      if (!IsFenceUid(guest.machine_uid)) continue;
      request.guests.push_back({.uid = guest.machine_uid,
                                .process = {.pid = guest.pid, .start_ticks = guest.start_ticks}});
    }
  }
  CO_TRY(auto leases, co_await Exchange(std::move(request)));
  std::vector<iri::LeaseState> states;
  for (const auto& [uid, lease] : leases) {
    states.push_back({.machine_uid = uid,
                      .deadline = iri::FromBootNanos(lease.deadline, loop_.Now()),
                      .fenced = lease.fenced});
  }
  if (guests.ok()) CO_TRY_STATUS(co_await LetRun(*std::move(guests), std::move(leases)));
  co_return states;
}

// Only what the fencer holds, and may let live, runs.
rt::Task<Status> ProcessFencer::LetRun(std::vector<iri::GuestProcess> guests,
                                       FenceTable::Leases leases) {
  for (const auto& guest : guests) {
    const auto lease = leases.find(guest.machine_uid);
    if (!guest.held || lease == leases.end() || lease->second.expired) continue;
    if (!lease->second.processes.contains({.pid = guest.pid, .start_ticks = guest.start_ticks})) {
      continue;
    }
    const Status resumed =
        co_await rt::WithDeadline(runtime_.ResumeGuest(guest.machine_uid), kRuntimeLimit);
    if (resumed.Is(Reason::kCancelled)) co_return resumed;
    if (!resumed.ok()) LOG_WARNING("{}: {}", guest.machine_uid, resumed.message());
  }
  co_return OkStatus();
}

void ProcessFencer::GuestsChanged() {
  again_ = true;
  if (looking_) return;
  looking_ = true;
  scope_.Spawn("fencer.look", Look());
}

rt::Task<Status> ProcessFencer::Look() {
  while (std::exchange(again_, false)) {
    iri::LeaseRenewal nothing;
    const auto states = co_await Renew(std::move(nothing));
    if (states.status().Is(Reason::kCancelled)) break;
    if (!states.ok()) LOG_DEBUG("fencer: {}", states.status().message());
  }
  looking_ = false;
  co_return OkStatus();
}

}  // namespace berth::poollet
