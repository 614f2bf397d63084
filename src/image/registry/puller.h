// SPDX-License-Identifier: Apache-2.0
// A Puller brings images of registries into a layout that all runtimes of a host share. The
// registry is asked every time, on behalf of whoever wants the image: what is there already is not
// fetched again, but that it is there is no permission. On-loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "image/image_folder.h"
#include "image/layout.h"
#include "image/layout_writer.h"
#include "image/manifest.h"
#include "image/reference.h"
#include "image/registry/credentials.h"
#include "image/registry/registry_session.h"
#include "rt/asio/asio_loop.h"
#include "rt/blocking_pool.h"
#include "rt/task.h"

namespace berth::image {

struct PullerOptions {
  RegistryOptions registry;
  // Of all parts of one image, and of what comes out of a packed disk.
  int64_t image_bytes_max = kDiskBytesMax;
  // What the layout may hold; what was fetched the longest ago goes first.
  int64_t cache_bytes_max = int64_t{64} << 30;
};

struct PullRequest {
  Reference reference;       // with a registry
  std::string architecture;  // "amd64"
  Credentials credentials;
  int64_t disk_bytes_max = kDiskBytesMax;  // that come out of a packed disk
  // Bytes that are there by now, and of how many.
  std::function<void(int64_t bytes, int64_t of)> progress;
  // The same of packed parts that are being unpacked. Both are told on the loop.
  std::function<void(int64_t bytes, int64_t of)> unpacking;
  // Asked on the loop before so many bytes are fetched or unpacked, each by a name under which they
  // are written once; may be none. What it refuses is the answer. Once it is asked again, all that
  // it granted before is there.
  std::function<rt::Task<Status>(std::map<std::string, int64_t> pieces)> claim;
};

class Puller {
 public:
  // The loop and the pool outlive this.
  Puller(rt::AsioLoop& loop, rt::BlockingPool& files, Layout layout, PullerOptions options)
      : loop_(loop), files_(files), layout_(std::move(layout)), options_(std::move(options)) {}

  // NotFound, Unauthorized, Forbidden; BadRequest: it is not what its digests say, or larger than
  // allowed; TooManyRequests: no room; Unavailable: another time, behind what came.
  rt::Task<Result<ImageFiles>> Pull(PullRequest request);

 private:
  // A manifest with the text of every document on the way to it.
  struct Resolved;
  rt::Task<Result<Resolved>> Resolve(RegistrySession* session, const PullRequest* request);
  // BadRequest if it is more than one image may have.
  Result<int64_t> TotalBytes(const Manifest& manifest) const;
  rt::Task<Status> MakeRoom(int64_t bytes);
  // Holds the layout, with room for what `admit` claims: what is kept of others goes before it is
  // refused, the oldest first, but for the image of the digest `kept`.
  using Admission = std::function<rt::Task<Status>()>;
  rt::Task<Result<LayoutWriter>> HoldWithRoom(std::optional<LayoutWriter> hold,
                                              Admission admit,
                                              std::string kept);
  // Claims what is missing.
  rt::Task<Status> Admit(const Manifest* manifest, const PullRequest* request);
  rt::Task<Status> FetchParts(RegistrySession* session,
                              const Manifest* manifest,
                              const PullRequest* request,
                              int64_t total);
  Result<FoundImage> Enter(const Resolved& resolved, const Reference& reference);
  // Claims what is going to come out of packed parts.
  rt::Task<Result<LayoutWriter>> HoldUnpacked(LayoutWriter hold,
                                              const FoundImage* image,
                                              const PullRequest* request,
                                              int64_t disk_bytes_max);
  Result<ImageFiles> OpenParts(const FoundImage& image,
                               const PullRequest& request,
                               int64_t disk_bytes_max);

  rt::AsioLoop& loop_;
  rt::BlockingPool& files_;
  const Layout layout_;
  const PullerOptions options_;
};

}  // namespace berth::image
