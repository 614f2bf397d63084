// SPDX-License-Identifier: Apache-2.0
#include "net/sim/sim_network.h"

#include <utility>

#include "net/sim/sim_channel.h"
#include "net/sim/sim_fabric.h"
#include "net/sim/sim_server.h"

namespace berth::net {

SimNetwork::SimNetwork(rt::SimLoop& world, SimNetworkOptions options)
    : fabric_(std::make_shared<SimFabric>(world.seed(), options)) {}
SimNetwork::~SimNetwork() = default;

void SimNetwork::AddNode(const std::string& name, rt::Loop& loop) { fabric_->AddNode(name, loop); }

Result<std::unique_ptr<RpcServer>> SimNetwork::Serve(const std::string& node,
                                                     SimServerOptions options,
                                                     RpcRoutes routes) {
  return SimServer::Start(fabric_, node, std::move(options), std::move(routes));
}

std::unique_ptr<RpcDialer> SimNetwork::NewDialer(const std::string& node) {
  return std::make_unique<SimDialer>(fabric_, node);
}

void SimNetwork::Block(const std::string& from, const std::string& to) {
  SimFabric::SetBlocked(fabric_, from, to, true);
}
void SimNetwork::Unblock(const std::string& from, const std::string& to) {
  SimFabric::SetBlocked(fabric_, from, to, false);
}
void SimNetwork::Partition(const std::string& a, const std::string& b) {
  Block(a, b);
  Block(b, a);
}
void SimNetwork::Heal(const std::string& a, const std::string& b) {
  Unblock(a, b);
  Unblock(b, a);
}
void SimNetwork::Isolate(const std::string& node) { SimFabric::SetIsolated(fabric_, node, true); }
void SimNetwork::Rejoin(const std::string& node) { SimFabric::SetIsolated(fabric_, node, false); }
void SimNetwork::HealAll() { SimFabric::HealAll(fabric_); }
void SimNetwork::SetDelay(const std::string& from, const std::string& to, Duration extra) {
  fabric_->SetDelay(from, to, extra);
}
void SimNetwork::ResetConnections(const std::string& a, const std::string& b) {
  SimFabric::Reset(fabric_, a, b);
}
void SimNetwork::Pause(const std::string& node) { SimFabric::SetPaused(fabric_, node, true); }
void SimNetwork::Resume(const std::string& node) { SimFabric::SetPaused(fabric_, node, false); }
void SimNetwork::Crash(const std::string& node, CrashStyle style) {
  SimFabric::Crash(fabric_, node, style);
}
void SimNetwork::Restart(const std::string& node) { SimFabric::Restart(fabric_, node); }

size_t SimNetwork::connections() const { return fabric_->connections(); }
uint64_t SimNetwork::frames_delivered() const { return fabric_->frames_delivered(); }

}  // namespace berth::net
