// SPDX-License-Identifier: Apache-2.0
// What /version says. The Kubernetes minor version is the one whose conventions we serve: clients
// compare it with their own and warn when it is far away.
#pragma once

#include <string_view>

#include "meta/value.h"

namespace berth::apiserver {

meta::Value VersionDocument();

}  // namespace berth::apiserver
