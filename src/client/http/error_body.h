// SPDX-License-Identifier: Apache-2.0
// Errors as the API server writes them (metav1.Status), read back into a Status.
#pragma once

#include <string_view>

#include "base/status.h"
#include "meta/value.h"

namespace berth::client {

// The error that a metav1.Status object stands for, with causes, object and retry time. Its texts
// are printable.
Status StatusOfObject(const meta::Value& object);

// The error that an answer other than 2xx stands for: its metav1.Status, or what its code means and
// how its body begins.
Status StatusOfAnswer(int http_status, std::string_view body);

}  // namespace berth::client
