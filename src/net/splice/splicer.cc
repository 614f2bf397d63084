// SPDX-License-Identifier: Apache-2.0
#include "net/splice/splicer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "net/census.h"
#include "net/owned_fd.h"
#include "net/socket.h"
#include "net/url.h"
#include "rt/deadline.h"
#include "rt/event.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

// Passed on before others have a turn: 16 * 16 KiB = 256 KiB.
constexpr int kPiecesPerTurn = 16;

}  // namespace

// Two connections that are one.
struct Splicer::Joint {
  Joint(rt::AsioLoop& loop, int near_fd, int far_fd) : near(loop, near_fd), far(loop, far_fd) {}

  PlainStream near;
  PlainStream far;
  int ended = 0;  // directions
  rt::Event over;
};

Splicer::Splicer(rt::AsioLoop& loop, int listener, SplicerOptions options, SpliceFigures figures)
    : loop_(loop),
      options_(options),
      figures_(figures),
      knocks_(options.again_within),
      connections_(loop),
      acceptor_(loop, listener, [this](int fd) { Take(fd); }) {}

void Splicer::SetTarget(SpliceTarget target) {
  if (target.addresses.size() > kAddressesMax) target.addresses.resize(kAddressesMax);
  // The order may have become another one here.
  if (std::ranges::is_permutation(target.addresses, target_.addresses)) {
    target.addresses = target_.addresses;
  }
  const bool is_same = target.IsSame(target_);
  target_ = std::move(target);
  if (is_same) return;
  ++targets_;
  failed_until_ = Time();
  const std::vector<Joint*> joints(joints_.begin(), joints_.end());
  for (Joint* joint : joints) joint->over.Set();
}

rt::Task<Status> Splicer::Stop() {
  CO_TRY_STATUS(co_await acceptor_.Stop());
  co_return co_await connections_.Close();
}

void Splicer::Take(int fd) {
  OwnedFd near(fd);
  std::string host = HostOf(PeerAddress(fd));
  if (!MayPass(host)) {
    figures_.refused.Add();
    return;
  }
  ConfigureTcp(fd);
  connections_.Spawn("net.splice", Serve(near.Release(), std::move(host)));
}

bool Splicer::MayPass(const std::string& host) {
  const Time now = loop_.Now();
  if (target_.name.empty() || target_.addresses.empty() || now >= target_.until) return false;
  if (now < failed_until_ || connections_.size() >= options_.connections_max) return false;
  // Who has a session through here reaches nobody else: its renewals and tunnels come here, too.
  return options_.again_within == Duration() || open_.contains(host) || knocks_.Again(host, now);
}

rt::Task<Status> Splicer::Serve(int fd, std::string host) {
  OwnedFd near(fd);
  const uint64_t target = targets_;
  Result<int> dialled = co_await Dial();
  if (dialled.status().Is(Reason::kCancelled)) co_return dialled.status();
  if (!dialled.ok()) {
    figures_.unreachable.Add();
    LOG_DEBUG("{}: {}", acceptor_.address(), dialled.status().message());
    co_return OkStatus();
  }
  OwnedFd far(*dialled);
  if (target != targets_) co_return OkStatus();
  figures_.passed.Add();
  figures_.open.Add(1);
  ++open_[host];
  const Status joined = co_await Join(near.Release(), far.Release());
  if (--open_[host] == 0) open_.erase(host);
  figures_.open.Add(-1);
  // Who comes back now is not sent elsewhere first: it has been there.
  if (options_.again_within != Duration()) knocks_.Again(host, loop_.Now());
  co_return joined;
}

rt::Task<Result<int>> Splicer::Dial() {
  const uint64_t target = targets_;
  const std::vector<std::string> addresses = target_.addresses;
  Status last = Unavailable("no address");
  for (const std::string& address : addresses) {
    const Result<HostPort> where = ParseHostPort(address, 0);
    if (!where.ok()) {
      last = where.status();
      continue;
    }
    Result<int> fd = co_await rt::WithDeadline(ConnectTcp(&loop_, where->host, where->port),
                                               options_.dial_limit);
    if (fd.status().Is(Reason::kCancelled)) co_return fd;
    auto& known = target_.addresses;
    const auto found = std::ranges::find(known, address);
    const bool is_known = target == targets_ && found != known.end();
    if (fd.ok() && LeadsBack(*fd)) {
      // What comes in by it now goes another way.
      if (is_known) std::rotate(found, found + 1, known.end());
      const OwnedFd back(*fd);
      fd = Unavailable("leads back here");
    }
    if (fd.ok()) {
      // The next one begins with what is known to work.
      if (is_known) std::rotate(known.begin(), found, found + 1);
      co_return fd;
    }
    last = fd.status().Wrap(address);
    if (target != targets_) co_return last;
  }
  failed_until_ = loop_.Now() + options_.failed_pause;
  co_return last;
}

// An address that was the target's may be this machine's by now: connections would go round.
bool Splicer::LeadsBack(int fd) const {
  const std::string peer = PeerAddress(fd);
  const Result<HostPort> there = ParseHostPort(peer, 0);
  const Result<HostPort> here = ParseHostPort(acceptor_.address(), 0);
  if (!there.ok() || !here.ok() || there->port != here->port) return false;
  const bool listens_there =
      here->host == "0.0.0.0" || here->host == "::" || here->host == there->host;
  return listens_there && there->host == HostOf(LocalAddress(fd));
}

rt::Task<Status> Splicer::Join(int near, int far) {
  Joint joint(loop_, near, far);
  joint.near.SetWriteTimeout(options_.write_limit);
  joint.far.SetWriteTimeout(options_.write_limit);
  const auto place = joints_.insert(joints_.end(), &joint);
  rt::TaskScope pumps(loop_);
  pumps.Spawn("net.splice.up", Pump(&joint, &joint.near, &joint.far));
  pumps.Spawn("net.splice.down", Pump(&joint, &joint.far, &joint.near));
  const Status waited = co_await joint.over.Wait();
  joints_.erase(place);
  const Status closed = co_await pumps.Close();
  CHECK(closed.ok());
  co_return waited;
}

// Until `from` has nothing more to say, which `to` is told: an answer that is on its way the other
// way arrives all the same.
rt::Task<Status> Splicer::Pump(Joint* joint, Stream* from, Stream* to) {
  Status status;
  for (int pieces = 0; status.ok(); ++pieces) {
    Result<size_t> read = co_await from->Read(piece_);
    status = read.status();
    if (!status.ok()) break;
    if (*read == 0) {
      to->Shutdown();
      to->SetReadDeadline(loop_.Now() + options_.farewell_limit);
      if (++joint->ended == 2) joint->over.Set();
      co_return OkStatus();
    }
    const std::string held(piece_.data(), *read);
    const std::string_view part = held;
    bytes_held_ += held.size();
    status = co_await to->Write(std::span(&part, 1));
    bytes_held_ -= held.size();
    if (status.ok() && pieces % kPiecesPerTurn == kPiecesPerTurn - 1) status = co_await rt::Yield();
  }
  if (status.Is(Reason::kCancelled)) co_return status;
  joint->over.Set();
  co_return OkStatus();  // what the ends do is no failure of this
}

}  // namespace berth::net
