// SPDX-License-Identifier: Apache-2.0
// A start runs through code that is never needed again: linking, parsing flags, finding runtimes,
// making certificates, and the initialisers of libraries that a process does not use.
#pragma once

#include "base/time.h"

namespace berth::app {

// How long after it is ready a process has done everything once that it does all the time.
inline constexpr Duration kStartOver = Duration::Seconds(5);

// Lets go of the pages of files that this process has mapped and touched so far, code and
// constants; those that are needed come back from the page cache with a soft fault each. Changes
// nothing but the resident size.
void GiveBackStartPages();

}  // namespace berth::app
