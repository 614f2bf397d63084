// SPDX-License-Identifier: Apache-2.0
// Networks: one is there as soon as it is written down, as hosts make what it takes when they need
// it. People and clients of IronCore look for that in its state.
#include <string>
#include <utility>

#include "apis/networking/network.h"
#include "base/log.h"
#include "controller/ipam/ipam.h"
#include "controller/object_failure.h"

namespace berth::controller {

using apis::networking::kNetworkKind;
using apis::networking::Network;

namespace {

bool IsWithoutState(const meta::Object& network) {
  return network.as<Network>().status.state.empty() && !network.metadata().deletion_timestamp;
}

}  // namespace

void Ipam::OnNetwork(const meta::Object* now) {
  if (now != nullptr && IsWithoutState(*now)) {
    runner_.queue().Add(QueueKey(kNetworkKind, client::KeyOf(*now)));
  }
}

rt::Task<Ipam::Again> Ipam::ReconcileNetwork(client::ObjectKey key) {
  // As it is now: a provider of networks may have said something meanwhile.
  auto object = co_await client_.Get(kNetworkKind, key);
  Status outcome = object.status();
  if (object.ok()) {
    if (!IsWithoutState(*object)) co_return std::optional<Duration>();
    object->as<Network>().status.state = "Available";
    client::WriteOptions options;
    options.subresource = client::Subresource::kStatus;
    const auto written = co_await client_.Update(*std::move(object), options);
    outcome = written.status();
  }
  if (outcome.Is(Reason::kNotFound)) co_return std::optional<Duration>();
  if (IsObjectFailure(outcome)) {
    // It has no state until somebody changes it, and that is all.
    LOG_WARNING("network {}/{}: {}", key.namespace_, key.name, outcome.message());
    co_return std::optional<Duration>();
  }
  CO_TRY_STATUS(outcome);
  co_return std::optional<Duration>();
}

}  // namespace berth::controller
