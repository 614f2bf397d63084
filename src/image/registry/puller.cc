// SPDX-License-Identifier: Apache-2.0
#include "image/registry/puller.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "image/registry/cache_trim.h"
#include "image/registry/download.h"
#include "image/unpack_needs.h"
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

rt::Task<Status> Puller::Admit(const Manifest* manifest, const PullRequest* request) {
  if (request->claim == nullptr) co_return OkStatus();
  const auto look = [this, manifest, request] {
    return MissingBytes(layout_, manifest->parts(), request->reference.registry);
  };
  CO_TRY(auto pieces, co_await files_.Run("image.missing", look));
  std::erase_if(pieces, [](const auto& piece) { return piece.second == 0; });
  if (pieces.empty()) co_return OkStatus();
  co_return co_await request->claim(std::move(pieces));
}

rt::Task<Result<LayoutWriter>> Puller::HoldWithRoom(std::optional<LayoutWriter> hold,
                                                    Admission admit,
                                                    std::string kept) {
  const auto open = [this] { return LayoutWriter::Open(layout_.folder()); };
  const WallTime now = loop_.WallNow();
  const auto forget = [this, &kept, now] { return ForgetOldest(layout_, kept, now); };
  for (;;) {
    if (!hold.has_value()) {
      CO_TRY(LayoutWriter opened, co_await files_.Run("image.open", open));
      hold.emplace(std::move(opened));
    }
    const Status admitted = co_await admit();
    if (admitted.ok()) co_return *std::move(hold);
    if (!admitted.Is(Reason::kTooManyRequests)) co_return admitted;
    hold.reset();  // nothing goes while somebody holds it
    const Result<bool> forgotten = co_await files_.Run("image.forget_oldest", forget);
    if (forgotten.status().Is(Reason::kConflict)) co_return admitted;  // another time, then
    if (!forgotten.ok()) co_return forgotten.status();
    if (!*forgotten) co_return admitted;
  }
}

rt::Task<Result<LayoutWriter>> Puller::HoldUnpacked(LayoutWriter hold,
                                                    const FoundImage* image,
                                                    const PullRequest* request,
                                                    int64_t disk_bytes_max) {
  if (request->claim == nullptr) co_return std::move(hold);
  const auto look = [this, image, disk_bytes_max] {
    return UnpackNeeds(layout_, image->manifest, disk_bytes_max);
  };
  CO_TRY(const auto pieces, co_await files_.Run("image.unpack_needs", look));
  if (pieces.empty()) co_return std::move(hold);
  Admission admit = [&pieces, request] { return request->claim(pieces); };
  co_return co_await HoldWithRoom(std::move(hold), std::move(admit), image->entry.digest);
}

Result<FoundImage> Puller::Enter(const Resolved& resolved, const Reference& reference) {
  TRY(LayoutWriter writer, LayoutWriter::Open(layout_.folder()));
  const Descriptor& document = resolved.document.descriptor;
  TRY(Descriptor entry, writer.AddText(document.media_type, resolved.document.text));
  entry.tag = TagOf(reference);
  entry.architecture = resolved.architecture;
  TRY_STATUS(writer.SetEntry(entry));
  return layout_.Read(entry, resolved.architecture);
}

Result<ImageFiles> Puller::OpenParts(const FoundImage& image,
                                     const PullRequest& request,
                                     int64_t disk_bytes_max) {
  TRY(LayoutHold hold, LayoutHold::Take(layout_.folder(), LayoutHold::Kind::kShared));
  UnpackProgress told;
  if (request.unpacking != nullptr) {
    // This is a thread of the pool; what it posts comes before its own end.
    told = [this, &request](int64_t bytes, int64_t of) {
      loop_.Post("image.unpacking", [tell = request.unpacking, bytes, of] { tell(bytes, of); });
    };
  }
  return FilesOf(layout_, image, std::move(hold), disk_bytes_max, told);
}

rt::Task<Result<ImageFiles>> Puller::Pull(PullRequest request) {
  const std::string name = "image " + Quote(ToText(request.reference));
  RegistrySession session(loop_, options_.registry, request.reference, request.credentials);
  Result<Resolved> resolved = co_await Resolve(&session, &request);
  if (!resolved.ok()) co_return resolved.status().Wrap(name);
  const Result<int64_t> total = TotalBytes(resolved->manifest);
  if (!total.ok()) co_return total.status().Wrap(name);
  CO_TRY_STATUS(co_await MakeRoom(*total));
  Admission admit = [this, &resolved, &request] { return Admit(&resolved->manifest, &request); };
  Result<LayoutWriter> hold =
      co_await HoldWithRoom(std::nullopt, std::move(admit), resolved->document.descriptor.digest);
  if (!hold.ok()) co_return hold.status().Wrap(name);
  const Status fetched = co_await FetchParts(&session, &resolved->manifest, &request, *total);
  if (!fetched.ok()) co_return fetched.Wrap(name);
  const int64_t disk_bytes_max = std::min(request.disk_bytes_max, options_.image_bytes_max);
  const auto enter = [this, &resolved, &request] { return Enter(*resolved, request.reference); };
  const Result<FoundImage> image = co_await files_.Run("image.enter", enter);
  if (!image.ok()) co_return image.status().Wrap(name);
  // It has its place by now: what came is not fetched again if there is no room to unpack it.
  const Result<LayoutWriter> still_held =
      co_await HoldUnpacked(*std::move(hold), &*image, &request, disk_bytes_max);
  if (!still_held.ok()) co_return still_held.status().Wrap(name);
  const auto open = [this, &image, &request, disk_bytes_max] {
    return OpenParts(*image, request, disk_bytes_max);
  };
  Result<ImageFiles> files = co_await files_.Run("image.open_parts", open);
  if (!files.ok()) co_return files.status().Wrap(name);
  co_return files;
}

}  // namespace berth::image
