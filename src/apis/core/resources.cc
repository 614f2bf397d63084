// SPDX-License-Identifier: Apache-2.0
#include "apis/core/resources.h"

namespace berth::apis::core {

std::string MachineClassResource(std::string_view class_name) {
  return "class/machine." + std::string(class_name);
}

std::string VolumeClassResource(std::string_view class_name) {
  return "class/volume." + std::string(class_name);
}

const meta::Quantity* FindResource(const ResourceList& list, std::string_view name) {
  const auto found = list.find(std::string(name));
  return found == list.end() ? nullptr : &found->second;
}

}  // namespace berth::apis::core
