// SPDX-License-Identifier: Apache-2.0
// Runtime objects for people and programs. Secrets are left out unless they are asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/session/session.h"
#include "iri/runtimes.h"
#include "iri/wire/json.h"
#include "meta/value.h"

namespace berth::cli {

enum class RuntimeSecrets : uint8_t { kHidden, kShown };

// The object of iri/wire/json.h as a tree; hidden secrets are "<17 bytes>".
meta::Value ValueOf(const std::string& json, RuntimeSecrets secrets);
// Replaces what is secret in a tree.
void HideSecrets(meta::Value& value);

template <class T>
meta::Value ListValue(const std::vector<T>& objects, RuntimeSecrets secrets) {
  meta::Value list = meta::Value::Array();
  for (const T& object : objects) list.Append(ValueOf(iri::ToJson(object), secrets));
  return list;
}

// "8", "500m", "32Gi": an amount of a resource vector.
std::string AmountText(std::string_view resource, int64_t amount);
// "cpu=2, memory=4Gi"
std::string VectorText(const iri::ResourceVector& resources);

std::string MachinesTable(const std::vector<iri::Machine>& machines, WallTime now);
std::string VolumesTable(const std::vector<iri::Volume>& volumes, WallTime now);
std::string SnapshotsTable(const std::vector<iri::VolumeSnapshot>& snapshots, WallTime now);
std::string BucketsTable(const std::vector<iri::Bucket>& buckets, WallTime now);
std::string EventsTable(const std::vector<iri::Event>& events, WallTime now);
std::string CapacityTable(const iri::HostCapacity& capacity);
std::string InstancesTable(const iri::HostCapacity& capacity);
std::string ReservationsTable(const std::vector<iri::Reservation>& reservations);
std::string LeasesTable(const std::vector<iri::LeaseState>& leases, Time now);

}  // namespace berth::cli
