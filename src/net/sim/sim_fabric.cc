// SPDX-License-Identifier: Apache-2.0
#include "net/sim/sim_fabric.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/check.h"

namespace berth::net {
namespace {

size_t Other(size_t side) { return 1 - side; }

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

}  // namespace

SimFabric::SimFabric(uint64_t seed, SimNetworkOptions options)
    : options_(options), random_(seed ^ 0x6e65742f73696dULL) {}

void SimFabric::AddNode(const std::string& name, rt::Loop& loop) { nodes_[name].loop = &loop; }

rt::Loop& SimFabric::loop_of(const std::string& node) const {
  const auto found = nodes_.find(node);
  CHECK(found != nodes_.end()) << "no node " << node << " in the network";
  return *found->second.loop;
}

std::shared_ptr<SimEnd> SimFabric::Connect(const Self& self,
                                           const std::string& from,
                                           const std::string& address,
                                           const std::string& certificate_pem) {
  const uint64_t id = ++self->last_connection_;
  Connection& connection = self->connections_[id];
  connection.nodes = {from, HostOf(address)};
  connection.address = address;
  auto end = std::make_shared<SimEnd>(SimEnd::Side::kClient,
                                      self->loop_of(from),
                                      self->options_,
                                      Sender(self, id, kClient),
                                      nullptr);
  connection.ends[kClient] = end;
  if (!self->nodes_.contains(connection.nodes[kServer])) {
    end->Lose(Unavailable("no such host"));
    self->ForgetIfGone(id);
    return end;
  }
  connection.is_held_up = self->IsHeldUp(connection);
  Send(self, id, kClient, {.kind = SimFrame::Kind::kHello, .bytes = certificate_pem});
  return end;
}

Status SimFabric::Listen(const std::string& address, Listener listener) {
  if (!listeners_.emplace(address, std::move(listener)).second) {
    return Unavailable("listen on " + address + ": address in use");
  }
  return OkStatus();
}

SimEnd::Send SimFabric::Sender(const Self& self, uint64_t id, size_t from) {
  // Ends are owned by the fabric: they must not own it.
  return [weak = std::weak_ptr<SimFabric>(self), id, from](SimFrame frame) {
    if (const Self fabric = weak.lock()) Send(fabric, id, from, std::move(frame));
  };
}

Duration SimFabric::Latency(const std::string& from, const std::string& to) {
  Duration latency =
      Duration::Nanos(random_.Between(options_.latency_min.nanos(), options_.latency_max.nanos()));
  if (options_.spike_chance > 0 && random_.Chance(options_.spike_chance)) {
    latency += Duration::Nanos(random_.Between(0, options_.spike_max.nanos()));
  }
  const auto extra = delays_.find({from, to});
  return extra == delays_.end() ? latency : latency + extra->second;
}

void SimFabric::Send(const Self& self, uint64_t id, size_t from, SimFrame frame) {
  Connection* connection = self->Find(id);
  if (connection == nullptr) return;
  const std::string& sender = connection->nodes[from];
  const std::string& receiver = connection->nodes[Other(from)];
  if (self->nodes_.at(sender).crashed) return;
  Put(self, id, Other(from), self->Latency(sender, receiver), std::move(frame));
}

void SimFabric::Put(const Self& self, uint64_t id, size_t to, Duration latency, SimFrame frame) {
  Connection& connection = *self->Find(id);
  const Time now = self->loop_of(connection.nodes[to]).Now();
  const Time due = std::max(connection.last_due[to], now + latency);
  connection.last_due[to] = due;
  connection.to[to].push_back({.due = due, .frame = std::move(frame)});
  ArriveAfter(self, id, to, due - now);
}

void SimFabric::PutReset(const Self& self, uint64_t id, size_t to) {
  const Connection& connection = *self->Find(id);
  const Duration latency = self->Latency(connection.nodes[Other(to)], connection.nodes[to]);
  Put(self,
      id,
      to,
      latency,
      {.kind = SimFrame::Kind::kClose, .status = Unavailable("connection reset by peer")});
}

void SimFabric::ArriveAfter(const Self& self, uint64_t id, size_t to, Duration delay) {
  rt::Loop& loop = self->loop_of(self->Find(id)->nodes[to]);
  loop.Post("sim.send", [self, &loop, id, to, delay] {
    loop.After("sim.arrive", delay, [self, id, to] { Arrive(self, id, to); });
  });
}

// Every frame has a timer of its own, and every timer takes the first frame that is due: the order
// of timers at one instant does not matter.
void SimFabric::Arrive(const Self& self, uint64_t id, size_t to) {
  Connection* connection = self->Find(id);
  if (connection == nullptr || connection->to[to].empty()) return;
  const std::string& sender = connection->nodes[Other(to)];
  const std::string& receiver = connection->nodes[to];
  const Node& node = self->nodes_.at(receiver);
  if (self->IsBlocked(sender, receiver) || node.paused || self->nodes_.at(sender).paused) return;
  InFlight& first = connection->to[to].front();
  if (first.due > node.loop->Now()) return;  // a later timer is for it
  SimFrame frame = std::move(first.frame);
  connection->to[to].pop_front();
  ++self->frames_delivered_;
  if (frame.kind == SimFrame::Kind::kHello) {
    Accept(self, id, std::move(frame));
    return;
  }
  if (node.crashed) return;
  const std::shared_ptr<SimEnd> end = connection->ends[to];
  if (end != nullptr) end->Receive(std::move(frame));
  self->ForgetIfGone(id);
}

void SimFabric::Accept(const Self& self, uint64_t id, SimFrame hello) {
  Connection& connection = *self->Find(id);
  const Node& node = self->nodes_.at(connection.nodes[kServer]);
  if (node.crashed && node.crash_style == CrashStyle::kSilent) return;
  const auto listener = self->listeners_.find(connection.address);
  if (node.crashed || listener == self->listeners_.end()) {
    // The node's kernel answers, not the node.
    Put(self,
        id,
        kClient,
        self->Latency(connection.nodes[kServer], connection.nodes[kClient]),
        {.kind = SimFrame::Kind::kRefusal, .status = Unavailable("connection refused")});
    return;
  }
  SimEnd::Send send = Sender(self, id, kServer);
  const Listener answer = listener->second;
  Result<std::shared_ptr<SimEnd>> end = answer({.address = connection.nodes[kClient] + ":0",
                                                .certificate_pem = std::move(hello.bytes),
                                                .send = send});
  if (!end.ok()) {
    send({.kind = SimFrame::Kind::kRefusal, .status = end.status()});
    return;
  }
  Connection* still = self->Find(id);
  if (still != nullptr) still->ends[kServer] = *std::move(end);
}

SimFabric::Connection* SimFabric::Find(uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

// An end that is lost hears nothing more; once both are, and nothing is on its way, it is over.
void SimFabric::ForgetIfGone(uint64_t id) {
  Connection* connection = Find(id);
  if (connection == nullptr) return;
  for (const size_t side : {kClient, kServer}) {
    const std::shared_ptr<SimEnd>& end = connection->ends[side];
    const bool gone = end == nullptr || end->lost().has_value();
    const bool deaf =
        nodes_.contains(connection->nodes[side]) && nodes_.at(connection->nodes[side]).crashed;
    if (!gone) return;
    if (end != nullptr || deaf) connection->to[side].clear();
    if (!connection->to[side].empty()) return;
  }
  connections_.erase(id);
}

bool SimFabric::IsBlocked(const std::string& from, const std::string& to) const {
  if (from == to) return false;
  return blocked_.contains({from, to}) || nodes_.at(from).isolated || nodes_.at(to).isolated;
}

bool SimFabric::IsHeldUp(const Connection& connection) const {
  const std::string& client = connection.nodes[kClient];
  const std::string& server = connection.nodes[kServer];
  const Node& a = nodes_.at(client);
  const Node& b = nodes_.at(server);
  const bool silent = (a.crashed && a.crash_style == CrashStyle::kSilent) ||
                      (b.crashed && b.crash_style == CrashStyle::kSilent);
  return IsBlocked(client, server) || IsBlocked(server, client) || a.paused || b.paused || silent;
}

void SimFabric::Review(const Self& self) {
  for (auto& [id, connection] : self->connections_) {
    if (!self->nodes_.contains(connection.nodes[kServer])) continue;
    const bool held_up = self->IsHeldUp(connection);
    if (held_up && !connection.is_held_up) {
      connection.is_held_up = true;
      ++connection.held_up_times;
      for (const size_t side : {kClient, kServer}) GiveUpLater(self, id, side);
    } else if (connection.is_held_up) {
      connection.is_held_up = held_up;
      Resume(self, id);
    }
  }
}

// What was held up is sent again, a while later. Timers too many find nothing to do.
void SimFabric::Resume(const Self& self, uint64_t id) {
  Connection& connection = *self->Find(id);
  for (const size_t to : {kClient, kServer}) {
    const bool stuck = self->IsBlocked(connection.nodes[Other(to)], connection.nodes[to]) ||
                       self->nodes_.at(connection.nodes[kClient]).paused ||
                       self->nodes_.at(connection.nodes[kServer]).paused;
    if (connection.to[to].empty() || stuck) continue;
    const Time now = self->loop_of(connection.nodes[to]).Now();
    const bool late = connection.to[to].front().due <= now;
    if (!late) continue;
    const Duration pause =
        Duration::Nanos(self->random_.Between(0, self->options_.retransmit_max.nanos()));
    Time due = now + pause;
    for (InFlight& frame : connection.to[to]) {
      frame.due = std::max(frame.due, due);
      due = frame.due;
      ArriveAfter(self, id, to, frame.due - now);
    }
    connection.last_due[to] = std::max(connection.last_due[to], due);
  }
}

// A process that is paused or dead gives nothing up.
void SimFabric::GiveUpLater(const Self& self, uint64_t id, size_t side) {
  const Connection& connection = *self->Find(id);
  const uint64_t times = connection.held_up_times;
  rt::Loop& loop = self->loop_of(connection.nodes[side]);
  loop.Post("sim.hold_up", [self, &loop, id, side, times] {
    loop.After("sim.silence", self->options_.silence_timeout, [self, id, side, times] {
      Connection* now = self->Find(id);
      if (now == nullptr || !now->is_held_up || now->held_up_times != times) return;
      const Node& node = self->nodes_.at(now->nodes[side]);
      const std::shared_ptr<SimEnd> end = now->ends[side];
      if (node.paused || node.crashed || end == nullptr) return;
      end->Close(Unavailable("the peer has been silent for " +
                             FormatDuration(self->options_.silence_timeout)));
      self->ForgetIfGone(id);
    });
  });
}

void SimFabric::LoseEnd(const Self& self, uint64_t id, size_t side, const Status& why) {
  self->loop_of(self->Find(id)->nodes[side]).Post("sim.lose", [self, id, side, why] {
    Connection* connection = self->Find(id);
    if (connection == nullptr || connection->ends[side] == nullptr) return;
    const std::shared_ptr<SimEnd> end = connection->ends[side];
    end->Lose(why);
    self->ForgetIfGone(id);
  });
}

void SimFabric::SetBlocked(const Self& self,
                           const std::string& from,
                           const std::string& to,
                           bool blocked) {
  if (blocked) {
    self->blocked_.emplace(from, to);
  } else {
    self->blocked_.erase({from, to});
  }
  Review(self);
}

void SimFabric::SetIsolated(const Self& self, const std::string& node, bool isolated) {
  self->nodes_.at(node).isolated = isolated;
  Review(self);
}

void SimFabric::SetPaused(const Self& self, const std::string& node, bool paused) {
  self->nodes_.at(node).paused = paused;
  Review(self);
}

void SimFabric::HealAll(const Self& self) {
  self->blocked_.clear();
  self->delays_.clear();
  for (auto& [name, node] : self->nodes_) {
    node.isolated = false;
    node.paused = false;
  }
  Review(self);
}

void SimFabric::Crash(const Self& self, const std::string& node, CrashStyle style) {
  Node& crashed = self->nodes_.at(node);
  crashed.crashed = true;
  crashed.crash_style = style;
  crashed.paused = false;
  std::erase_if(self->listeners_,
                [&node](const auto& listener) { return HostOf(listener.first) == node; });
  for (auto& [id, connection] : self->connections_) {
    for (const size_t side : {kClient, kServer}) {
      if (connection.nodes[side] != node) continue;
      connection.to[side].clear();
      LoseEnd(self, id, side, Unavailable("the process has crashed"));
      if (style == CrashStyle::kReset) {
        PutReset(self, id, Other(side));
      }
    }
  }
  Review(self);
}

// The new process knows nothing of the old one's connections and says so.
void SimFabric::Restart(const Self& self, const std::string& node) {
  if (!std::exchange(self->nodes_.at(node).crashed, false)) return;
  for (auto& [id, connection] : self->connections_) {
    for (const size_t side : {kClient, kServer}) {
      if (connection.nodes[side] == node) PutReset(self, id, Other(side));
    }
  }
  Review(self);
}

void SimFabric::SetDelay(const std::string& from, const std::string& to, Duration extra) {
  delays_[{from, to}] = extra;
}

void SimFabric::Reset(const Self& self, const std::string& a, const std::string& b) {
  for (auto& [id, connection] : self->connections_) {
    const bool between = (connection.nodes[0] == a && connection.nodes[1] == b) ||
                         (connection.nodes[0] == b && connection.nodes[1] == a);
    if (!between) continue;
    for (const size_t side : {kClient, kServer}) {
      connection.to[side].clear();
      LoseEnd(self, id, side, Unavailable("connection reset by peer"));
    }
  }
}

}  // namespace berth::net
