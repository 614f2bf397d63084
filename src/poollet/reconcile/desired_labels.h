// SPDX-License-Identifier: Apache-2.0
// Which objects are behind a machine's parts, as text: IronCore's poollets say it so, and runtimes
// that were written for them look for it.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace berth::poollet {

struct ObjectName {
  std::string_view uid;
  std::string_view namespace_;
  std::string_view name;
};

// Values of the attributes rawNICLabels, rawNetworkLabels and rawVolumeLabels: an object of JSON
// with three labels, compact and in order of keys, as Go writes a map.
std::string RawNicLabels(const ObjectName& nic);
std::string RawNetworkLabels(const ObjectName& network);
std::string RawVolumeLabels(const ObjectName& volume);

// Value of the annotation networkinterfacemapping: {"NIC":{"name":..,"uid":..}}, by the names that
// the machine has for its interfaces; "{}" for none.
std::string NicMapping(const std::map<std::string, ObjectName, std::less<>>& nics);

}  // namespace berth::poollet
