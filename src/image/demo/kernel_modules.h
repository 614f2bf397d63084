// SPDX-License-Identifier: Apache-2.0
// Which kernel and which of its modules a small guest needs. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::image {

// The newest kernel among the names of a boot folder ("vmlinuz-6.1.0-18-cloud-amd64"), one for
// clouds before others: they need the fewest modules. "" if there is none.
std::string ChooseKernel(const std::vector<std::string>& names);

// The files of modules, each behind those that it needs, as `modules_dep` (the file modules.dep)
// says: "kernel/drivers/net/virtio_net.ko". Wanted ones that it does not know are built into the
// kernel and left out.
std::vector<std::string> LoadOrder(std::string_view modules_dep,
                                   std::span<const std::string_view> wanted);

}  // namespace berth::image
