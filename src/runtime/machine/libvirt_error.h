// SPDX-License-Identifier: Apache-2.0
// What libvirt says of a call that failed, as a Status.
#pragma once

#include <string_view>

#include "base/status.h"

namespace berth::runtime {

// Unavailable and Timeout: nobody can say whether it was done. All others: it was not.
Reason ReasonOfLibvirt(int domain, int code, std::string_view text);

// Of the last call on this thread. The text is libvirt's, made printable and cut.
Status LibvirtFailure(std::string_view doing);

}  // namespace berth::runtime
