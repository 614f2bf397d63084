// SPDX-License-Identifier: Apache-2.0
// Objects of the API in the words of scheduler/core. Pure: the same object gives the same words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "apis/core/resources.h"
#include "apis/storage/bucket.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_pool.h"
#include "scheduler/core/pool.h"
#include "scheduler/core/request.h"
#include "scheduler/core/words.h"

namespace berth::scheduler {

// How a pool is spoken to; kUnknown until a poollet has announced it, then nothing is placed there.
enum class PoolMode : uint8_t { kUnknown, kSession, kApi };

// A pool of any of the three kinds. state.has_session is true for pools in API mode only: whether a
// session lives, the fleet knows.
struct TranslatedPool {
  PoolSpec spec;
  PoolMode mode = PoolMode::kUnknown;
  // How much of each class it holds, if that is all that it says: machines, or bytes of volumes.
  std::map<std::string, int64_t, std::less<>> class_capacity;
};
TranslatedPool Translate(const apis::compute::MachinePool& pool);
TranslatedPool Translate(const apis::storage::VolumePool& pool);
TranslatedPool Translate(const apis::storage::BucketPool& pool);

// What an object asks for. A machine's size is its class' capabilities, and its local disks.
Requirements Translate(const apis::compute::Machine& machine,
                       const apis::compute::MachineClass& size);
// Room for one machine of a reservation; `size` is its class, null if it names resources.
Requirements Translate(const apis::core::Reservation& reservation,
                       const apis::compute::MachineClass* size);
// The same for `count` of them.
Requirements Times(Requirements one, int64_t count);
Requirements Translate(const apis::storage::Volume& volume);
Requirements Translate(const apis::storage::Bucket& bucket);

// What one object takes of a pool: its resources, or its share of a pool that only counts per
// class.
Resources TakenOf(const TranslatedPool& pool,
                  std::string_view class_name,
                  const Resources& resources);

// Whether the machine's own disks tie it to its host.
bool HasLocalState(const apis::compute::Machine& machine);

// The volumes that a machine names, by name in its own namespace; ephemeral ones by the name that
// they are made with.
std::vector<std::string> VolumeNamesOf(const apis::compute::Machine& machine);

}  // namespace berth::scheduler
