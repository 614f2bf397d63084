// SPDX-License-Identifier: Apache-2.0
#include "image/registry/download.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "base/strings.h"
#include "image/file_writer.h"
#include "image/layout_writer.h"
#include "image/registry/blob_origins.h"
#include "rt/loop.h"
#include "rt/sleep.h"

namespace berth::image {
namespace {

// What is handed to the pool at once: few hops, little memory.
constexpr size_t kWriteBytes = 1 << 20;
constexpr Duration kOtherWriterPause = Duration::Millis(200);
// 17 KB/s: what is slower lets others go first, and goes on behind what came.
constexpr Duration kPaceWindow = Duration::Minutes(1);
constexpr int64_t kPaceBytes = 1 << 20;
// Each has to bring something; a registry that always stops at the same byte is given up at once.
constexpr int kAttemptsMax = 8;

// What another registry sends under this digest is none of this one's business.
std::string PartName(const Descriptor& blob, std::string_view registry) {
  return blob.digest + "." + RegistryWord(registry) + ".blob";
}

// Null: the blob is there. Conflict: somebody else fetches it right now.
Result<std::unique_ptr<FileWriter>> OpenPart(const Layout& layout,
                                             const Descriptor& blob,
                                             std::string_view registry,
                                             FileWriter::Begin begin) {
  if (IsFrom(layout, blob, registry)) return std::unique_ptr<FileWriter>();
  const std::string part = PartFile(layout, PartName(blob, registry));
  TRY(auto writer, FileWriter::Open(part, begin));
  // It may have become the blob between the two looks, and the lock is that of the blob then.
  if (IsFrom(layout, blob, registry)) {
    unlink(part.c_str());
    return std::unique_ptr<FileWriter>();
  }
  if (writer->bytes() > blob.size) {
    writer.reset();
    TRY(writer, FileWriter::Open(part, FileWriter::Begin::kEmpty));
  }
  struct statvfs room = {};
  const int64_t needed = blob.size - writer->bytes();
  if (statvfs(layout.folder().c_str(), &room) == 0) {
    const auto free = static_cast<int64_t>(room.f_bavail * room.f_frsize);
    if (needed > free) {
      return Status(
          Reason::kTooManyRequests,
          fmt::format("{} more bytes do not fit: {} has {}", needed, layout.folder(), free));
    }
  }
  return writer;
}

Status Settle(const Layout& layout,
              const Descriptor& blob,
              std::string_view registry,
              std::unique_ptr<FileWriter> writer) {
  const std::string part = PartFile(layout, PartName(blob, registry));
  TRY(const std::string digest, writer->Finish());
  if (digest != blob.digest) {
    unlink(part.c_str());
    return BadRequest(
        fmt::format("what came has digest sha256:{}, expected sha256:{}", digest, blob.digest));
  }
  if (IsThere(layout, blob)) {
    unlink(part.c_str());
  } else {
    TRY_STATUS(SettlePart(layout, part, digest));
  }
  return NoteOrigin(layout, blob, registry);
}

// "bytes 7-9/10" begins at 7.
bool ContinuesAt(std::string_view content_range, int64_t at) {
  constexpr std::string_view kUnit = "bytes ";
  if (!content_range.starts_with(kUnit)) return false;
  content_range.remove_prefix(kUnit.size());
  return ParseInt(content_range.substr(0, content_range.find('-'))) == at;
}

// Perhaps it is whole another time.
Status EndedAt(int64_t bytes, const Descriptor& blob) {
  return Unavailable(fmt::format("it ended after {} of {} bytes", bytes, blob.size));
}

struct Transfer {
  RegistrySession* session;
  rt::BlockingPool* files;
  const Layout* layout;
  Descriptor blob;
  Progress progress;

  std::string part() const { return PartFile(*layout, PartName(blob, session->registry())); }
};

rt::Task<Result<std::unique_ptr<FileWriter>>> OpenWhenFree(const Transfer* transfer,
                                                           FileWriter::Begin begin) {
  const auto open = [transfer, begin] {
    return OpenPart(*transfer->layout, transfer->blob, transfer->session->registry(), begin);
  };
  const auto look = [transfer]() -> Result<int64_t> {
    struct stat status = {};
    return lstat(transfer->part().c_str(), &status) == 0 ? int64_t{status.st_size} : 0;
  };
  for (;;) {
    auto writer = co_await transfer->files->Run("image.open_part", open);
    if (!writer.status().Is(Reason::kConflict)) co_return writer;
    // Whoever waits for another's download sees how far that is.
    CO_TRY(const int64_t bytes, co_await transfer->files->Run("image.look_at_part", look));
    if (transfer->progress && bytes > 0) transfer->progress(bytes);
    CO_TRY_STATUS(co_await rt::Sleep(kOtherWriterPause));
  }
}

// Whether enough comes: a registry that drips would keep others from being asked.
class Pace {
 public:
  Pace(Time now, int64_t bytes) : since_(now), then_(bytes) {}
  Status Look(Time now, int64_t bytes) {
    if (now - since_ < kPaceWindow) return OkStatus();
    const int64_t came = bytes - then_;
    since_ = now;
    then_ = bytes;
    if (came >= kPaceBytes) return OkStatus();
    return Unavailable(
        fmt::format("only {} bytes came within {}", came, FormatDuration(kPaceWindow)));
  }

 private:
  Time since_;
  int64_t then_;
};

// From what the registry sends to what is written, until its end or ours.
rt::Task<Status> Pour(const Transfer* transfer, net::HttpStream* stream, FileWriter* writer) {
  std::string waiting;
  rt::Loop& loop = transfer->session->loop();
  Pace pace(loop.Now(), writer->bytes());
  for (bool at_end = false; !at_end;) {
    Result<std::string> part = co_await transfer->session->ReadSome(stream);
    if (part.ok()) waiting += *part;
    const int64_t so_far = writer->bytes() + static_cast<int64_t>(waiting.size());
    const bool is_over = !part.ok() || part->empty();
    if (const Status paced = pace.Look(loop.Now(), so_far); !is_over && !paced.ok()) part = paced;
    at_end = !part.ok() || part->empty();
    if (so_far > transfer->blob.size) {
      co_return BadRequest(
          fmt::format("more than the {} bytes that its manifest says", transfer->blob.size));
    }
    if (waiting.size() >= kWriteBytes || at_end) {
      const auto append = [writer, &waiting] { return writer->Append(waiting); };
      CO_TRY_STATUS(co_await transfer->files->Run("image.append", append));
      waiting.clear();
      if (transfer->progress) transfer->progress(writer->bytes());
    }
    if (!part.ok()) co_return part.status();
  }
  if (writer->bytes() == transfer->blob.size) co_return OkStatus();
  co_return EndedAt(writer->bytes(), transfer->blob);
}

// Whether the registry would give it to whoever asks now: its last byte is enough to know.
rt::Task<Status> AskFor(const Transfer* transfer) {
  if (transfer->blob.size == 0) co_return OkStatus();
  net::Headers headers;
  headers.Set("Range", fmt::format("bytes={}-", transfer->blob.size - 1));
  const Result<RegistrySession::Answer> answer =
      co_await transfer->session->Get("blobs/sha256:" + transfer->blob.digest, headers);
  // It has fewer bytes under this digest, so it has not this blob.
  if (answer.status().Is(Reason::kExpired)) co_return NotFound("the registry has another blob");
  co_return answer.status();
}

// One attempt; says how far it came in `reached`.
rt::Task<Status> Attempt(const Transfer* transfer, int64_t* reached) {
  CO_TRY(auto writer, co_await OpenWhenFree(transfer, FileWriter::Begin::kResume));
  if (writer == nullptr) co_return co_await AskFor(transfer);
  if (writer->bytes() < transfer->blob.size) {
    net::Headers headers;
    const int64_t at = writer->bytes();
    if (at > 0) headers.Set("Range", fmt::format("bytes={}-", at));
    Result<RegistrySession::Answer> got =
        co_await transfer->session->Get("blobs/sha256:" + transfer->blob.digest, headers);
    if (got.status().Is(Reason::kExpired)) co_return EndedAt(at, transfer->blob);
    CO_TRY(const RegistrySession::Answer answer, std::move(got));
    const bool continues = answer.stream->status() == 206;
    if (continues && !ContinuesAt(answer.stream->headers().Get("Content-Range"), at)) {
      co_return BadRequest("it sends another range than it was asked for");
    }
    if (!continues && at > 0) {
      // It cannot resume: from the beginning, then.
      writer.reset();
      CO_TRY(writer, co_await OpenWhenFree(transfer, FileWriter::Begin::kEmpty));
      if (writer == nullptr) co_return OkStatus();
    }
    const Status poured = co_await Pour(transfer, answer.stream.get(), writer.get());
    *reached = writer->bytes();
    if (!poured.ok()) co_return poured;
  }
  const auto settle = [transfer, &writer] {
    return Settle(
        *transfer->layout, transfer->blob, transfer->session->registry(), std::move(writer));
  };
  co_return co_await transfer->files->Run("image.settle", settle);
}

}  // namespace

std::map<std::string, int64_t> MissingBytes(const Layout& layout,
                                            const std::vector<Descriptor>& blobs,
                                            std::string_view registry) {
  std::map<std::string, int64_t> missing;
  for (const Descriptor& blob : blobs) {
    if (IsFrom(layout, blob, registry)) continue;
    struct stat status = {};
    const std::string name = PartName(blob, registry);
    const bool is_begun = lstat(PartFile(layout, name).c_str(), &status) == 0;
    const int64_t there = is_begun ? int64_t{status.st_size} : 0;
    // One that is longer than it may be is begun anew.
    missing[name] = there > blob.size ? blob.size : blob.size - there;
  }
  return missing;
}

rt::Task<Status> DownloadBlob(RegistrySession* session,
                              rt::BlockingPool* files,
                              const Layout* layout,
                              Descriptor blob,
                              Progress progress) {
  const Transfer transfer = {.session = session,
                             .files = files,
                             .layout = layout,
                             .blob = std::move(blob),
                             .progress = std::move(progress)};
  const std::string name = "sha256:" + transfer.blob.digest;
  int64_t before = -1;
  for (int attempt = 1;; ++attempt) {
    int64_t reached = before;
    const Status done = co_await Attempt(&transfer, &reached);
    if (done.ok() || done.Is(Reason::kCancelled)) co_return done;
    if (done.Is(Reason::kBadRequest)) {
      const auto forget = [&transfer]() -> Status {
        unlink(transfer.part().c_str());
        return OkStatus();
      };
      CO_TRY_STATUS(co_await files->Run("image.forget", forget));
      co_return done.Wrap(name);
    }
    const bool came_further = done.Is(Reason::kUnavailable) && reached > before;
    if (!came_further || attempt == kAttemptsMax) co_return done.Wrap(name);
    before = reached;
  }
}

}  // namespace berth::image
