// SPDX-License-Identifier: Apache-2.0
#include "image/registry/puller.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "image/layout_writer.h"
#include "image/registry/cache_trim.h"
#include "image/registry/download.h"
#include "pki/digest.h"

namespace berth::image {
namespace {

constexpr int kIndexDepthMax = 3;
constexpr std::string_view kDefaultTag = "latest";

net::Headers AcceptDocuments() {
  net::Headers headers;
  headers.Set("Accept",
              fmt::format("{}, {}, application/vnd.ironcore.image.artifacts.v1+json, "
                          "application/vnd.docker.distribution.manifest.list.v2+json, "
                          "application/vnd.docker.distribution.manifest.v2+json",
                          kIndexType,
                          kManifestType));
  return headers;
}

std::string MediaTypeOfAnswer(const net::Headers& headers) {
  const std::string_view type = headers.Get("Content-Type");
  return std::string(Trim(type.substr(0, type.find(';'))));
}

struct Document {
  Descriptor descriptor;
  std::string text;
};

// A manifest or index by tag or digest. The digest that is expected is that of what came.
rt::Task<Result<Document>> FetchDocument(RegistrySession* session,
                                         std::string name,
                                         std::string expected) {
  CO_TRY(const RegistrySession::Answer answer,
         co_await session->Get("manifests/" + name, AcceptDocuments()));
  Document document;
  CO_TRY(document.text, co_await session->ReadBody(answer.stream.get(), kDocumentBytesMax));
  document.descriptor.media_type = MediaTypeOfAnswer(answer.stream->headers());
  document.descriptor.digest = pki::Sha256Hex(document.text);
  document.descriptor.size = static_cast<int64_t>(document.text.size());
  if (!expected.empty() && expected != document.descriptor.digest) {
    co_return BadRequest(
        fmt::format("manifest {}: what came has digest sha256:{}, expected sha256:{}",
                    name,
                    document.descriptor.digest,
                    expected));
  }
  co_return document;
}

// Under which it is remembered.
std::string TagOf(const Reference& reference) { return ToText(reference); }

}  // namespace

struct Puller::Resolved {
  Document document;
  Manifest manifest;
  std::string architecture;
};

rt::Task<Result<Puller::Resolved>> Puller::Resolve(RegistrySession* session,
                                                   const PullRequest* request) {
  const Reference& reference = request->reference;
  std::string name = reference.digest.empty()
                         ? (reference.tag.empty() ? std::string(kDefaultTag) : reference.tag)
                         : "sha256:" + reference.digest;
  CO_TRY(Document document, co_await FetchDocument(session, name, reference.digest));
  for (int depth = 0; document.descriptor.is_index(); ++depth) {
    if (depth == kIndexDepthMax) co_return BadRequest("an index in an index in an index");
    CO_TRY(const auto entries, ParseIndex(document.text));
    CO_TRY(const Descriptor entry, ChoosePlatform(entries, request->architecture));
    CO_TRY(document, co_await FetchDocument(session, "sha256:" + entry.digest, entry.digest));
    if (document.descriptor.size != entry.size) {
      co_return BadRequest(fmt::format("sha256:{} has {} bytes, its index says {}",
                                       entry.digest,
                                       document.descriptor.size,
                                       entry.size));
    }
  }
  Resolved resolved;
  CO_TRY(resolved.manifest, ParseManifest(document.text));
  resolved.document = std::move(document);
  resolved.architecture = request->architecture;
  co_return resolved;
}

Result<int64_t> Puller::TotalBytes(const Manifest& manifest) const {
  int64_t total = 0;
  for (const Descriptor& part : manifest.parts()) {
    if (part.size > options_.image_bytes_max - total) {
      return BadRequest(fmt::format("its parts have more than {} bytes, which is the limit here",
                                    options_.image_bytes_max));
    }
    total += part.size;
  }
  return total;
}

rt::Task<Status> Puller::MakeRoom(int64_t bytes) {
  const WallTime now = loop_.WallNow();
  const int64_t keep = std::max<int64_t>(0, options_.cache_bytes_max - bytes);
  const auto trim = [this, keep, now] { return TrimCache(layout_, keep, now); };
  const Result<int64_t> trimmed = co_await files_.Run("image.trim", trim);
  // While somebody uses the layout nothing goes; another time, then.
  if (trimmed.ok() || trimmed.status().Is(Reason::kConflict)) co_return OkStatus();
  co_return trimmed.status();
}

rt::Task<Status> Puller::FetchParts(RegistrySession* session,
                                    const Manifest* manifest,
                                    const PullRequest* request,
                                    int64_t total) {
  int64_t before = 0;
  for (const Descriptor& part : manifest->parts()) {
    const Progress progress = [request, before, total](int64_t bytes) {
      if (request->progress) request->progress(before + bytes, total);
    };
    CO_TRY_STATUS(co_await DownloadBlob(session, &files_, &layout_, part, progress));
    before += part.size;
    progress(0);
  }
  co_return OkStatus();
}

Result<ImageFiles> Puller::Enter(const Resolved& resolved,
                                 const Reference& reference,
                                 int64_t disk_bytes_max) {
  TRY(LayoutWriter writer, LayoutWriter::Open(layout_.folder()));
  const Descriptor& document = resolved.document.descriptor;
  TRY(Descriptor entry, writer.AddText(document.media_type, resolved.document.text));
  entry.tag = TagOf(reference);
  entry.architecture = resolved.architecture;
  TRY_STATUS(writer.SetEntry(entry));
  TRY(LayoutHold hold, LayoutHold::Take(layout_.folder(), LayoutHold::Kind::kShared));
  TRY(const FoundImage image, layout_.Read(entry, resolved.architecture));
  return FilesOf(layout_, image, std::move(hold), disk_bytes_max);
}

rt::Task<Result<ImageFiles>> Puller::Pull(PullRequest request) {
  const std::string name = "image " + Quote(ToText(request.reference));
  RegistrySession session(loop_, options_.registry, request.reference, request.credentials);
  Result<Resolved> resolved = co_await Resolve(&session, &request);
  if (!resolved.ok()) co_return resolved.status().Wrap(name);
  const Result<int64_t> total = TotalBytes(resolved->manifest);
  if (!total.ok()) co_return total.status().Wrap(name);
  CO_TRY_STATUS(co_await MakeRoom(*total));
  const auto open = [this] { return LayoutWriter::Open(layout_.folder()); };
  CO_TRY(const LayoutWriter hold, co_await files_.Run("image.open", open));
  const Status fetched = co_await FetchParts(&session, &resolved->manifest, &request, *total);
  if (!fetched.ok()) co_return fetched.Wrap(name);
  const int64_t disk_bytes_max = std::min(request.disk_bytes_max, options_.image_bytes_max);
  const auto enter = [this, &resolved, &request, disk_bytes_max] {
    return Enter(*resolved, request.reference, disk_bytes_max);
  };
  Result<ImageFiles> files = co_await files_.Run("image.enter", enter);
  if (!files.ok()) co_return files.status().Wrap(name);
  co_return files;
}

}  // namespace berth::image
