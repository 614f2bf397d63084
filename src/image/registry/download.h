// SPDX-License-Identifier: Apache-2.0
// Fetches one blob of a registry into a layout: resumed where an earlier attempt ended, verified,
// and never more bytes than its manifest says. On-loop only; files are written by a pool.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/layout.h"
#include "image/manifest.h"
#include "image/registry/registry_session.h"
#include "rt/blocking_pool.h"
#include "rt/task.h"

namespace berth::image {

// How many bytes of a blob are there by now.
using Progress = std::function<void(int64_t bytes)>;

// What is still to be fetched of these from this registry, by names of their own. Blocks.
std::map<std::string, int64_t> MissingBytes(const Layout& layout,
                                            const std::vector<Descriptor>& blobs,
                                            std::string_view registry);

// All outlive the task; somebody holds the layout. A blob that is there already, from the same
// registry, is not fetched again, but asked for: NotFound, Unauthorized, Forbidden. One that came
// from another is fetched and compared. Unavailable if the registry stops: what came stays, and the
// next call goes on behind it. BadRequest if it sends something else: nothing stays.
rt::Task<Status> DownloadBlob(RegistrySession* session,
                              rt::BlockingPool* files,
                              const Layout* layout,
                              Descriptor blob,
                              Progress progress);

}  // namespace berth::image
