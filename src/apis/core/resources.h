// SPDX-License-Identifier: Apache-2.0
// Amounts of things by name, and the names that have a meaning.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "meta/quantity.h"
#include "meta/type.h"

namespace berth::apis::core {

using ResourceList = std::map<std::string, meta::Quantity>;

inline constexpr std::string_view kCpu = "cpu";
inline constexpr std::string_view kMemory = "memory";
inline constexpr std::string_view kStorage = "storage";
inline constexpr std::string_view kTps = "tps";
inline constexpr std::string_view kIops = "iops";

// What quotas count.
inline constexpr std::string_view kRequestsCpu = "requests.cpu";
inline constexpr std::string_view kRequestsMemory = "requests.memory";
inline constexpr std::string_view kRequestsStorage = "requests.storage";
inline constexpr std::string_view kRequestsTps = "requests.tps";
inline constexpr std::string_view kRequestsIops = "requests.iops";
inline constexpr std::string_view kCountMachines = "count/machines.compute.ironcore.dev";
inline constexpr std::string_view kCountVolumes = "count/volumes.storage.ironcore.dev";
inline constexpr std::string_view kCountBuckets = "count/buckets.storage.ironcore.dev";
inline constexpr std::string_view kCountReservations = "count/reservations.core.ironcore.dev";

// Keys of a pool's capacity: how many machines (or bytes) of one class it can hold.
std::string MachineClassResource(std::string_view class_name);  // "class/machine.<name>"
std::string VolumeClassResource(std::string_view class_name);   // "class/volume.<name>"

// The amount of `name`, or null if the list does not say.
const meta::Quantity* FindResource(const ResourceList& list, std::string_view name);

}  // namespace berth::apis::core
