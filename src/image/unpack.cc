// SPDX-License-Identifier: Apache-2.0
#include "image/unpack.h"

#include <fmt/core.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "image/file_reader.h"

namespace berth::image {
namespace {

using Take = std::function<Status(std::string_view bytes)>;

constexpr size_t kOutputBytes = size_t{256} << 10;

Status CutShort(std::string_view packing) {
  return BadRequest(fmt::format("the {} stream is cut short", packing));
}
Status Trailing(std::string_view packing) {
  return BadRequest(fmt::format("something else follows the {} stream", packing));
}

class Gunzip {
 public:
  Gunzip() {
    constexpr int kWithGzipHeader = 16;
    CHECK(inflateInit2(&stream_, MAX_WBITS + kWithGzipHeader) == Z_OK);
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  Status Add(std::string_view packed, const Take& take) {
    // zlib does not write there; its type is older than const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    for (bool is_full = false; is_full || stream_.avail_in > 0;) {
      if (at_end_) {  // the next of several
        CHECK(inflateReset(&stream_) == Z_OK);
        at_end_ = false;
      }
      stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
      stream_.avail_out = static_cast<uInt>(output_.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      const size_t count = output_.size() - stream_.avail_out;
      is_full = stream_.avail_out == 0;
      if (count > 0) TRY_STATUS(take(std::string_view(output_.data(), count)));
      if (code == Z_STREAM_END) {
        at_end_ = true;
        is_full = false;
        ++streams_;
      } else if (code == Z_BUF_ERROR) {
        return OkStatus();  // there was nothing left to do
      } else if (code != Z_OK) {
        return Broken();
      }
    }
    return OkStatus();
  }

  Status Finish() const { return at_end_ ? OkStatus() : CutShort("gzip"); }

 private:
  Status Broken() const {
    if (streams_ > 0 && stream_.total_out == 0) return Trailing("gzip");
    const std::string_view why = stream_.msg != nullptr ? stream_.msg : "it makes no sense";
    return BadRequest(fmt::format("no gzip stream: {}", why));
  }

  z_stream stream_ = {};
  bool at_end_ = false;
  int64_t streams_ = 0;
  std::vector<char> output_ = std::vector<char>(kOutputBytes);
};

class Unzstd {
 public:
  Unzstd() : context_(ZSTD_createDCtx()) {
    constexpr int kWindowLogMax = 27;  // 128 MiB, what `zstd` itself takes without being asked
    CHECK(context_ != nullptr);
    CHECK(ZSTD_isError(ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kWindowLogMax)) == 0);
  }
  ~Unzstd() { ZSTD_freeDCtx(context_); }
  Unzstd(const Unzstd&) = delete;
  Unzstd& operator=(const Unzstd&) = delete;

  Status Add(std::string_view packed, const Take& take) {
    ZSTD_inBuffer input = {.src = packed.data(), .size = packed.size(), .pos = 0};
    for (bool is_full = false; is_full || input.pos < input.size;) {
      ZSTD_outBuffer output = {.dst = output_.data(), .size = output_.size(), .pos = 0};
      const size_t code = ZSTD_decompressStream(context_, &output, &input);
      if (ZSTD_isError(code) != 0) return Broken(code);
      at_end_ = code == 0;
      streams_ += at_end_ ? 1 : 0;
      is_full = !at_end_ && output.pos == output.size;
      if (output.pos > 0) TRY_STATUS(take(std::string_view(output_.data(), output.pos)));
    }
    return OkStatus();
  }

  Status Finish() const { return at_end_ ? OkStatus() : CutShort("zstd"); }

 private:
  Status Broken(size_t code) const {
    const bool is_foreign = ZSTD_getErrorCode(code) == ZSTD_error_prefix_unknown;
    if (streams_ > 0 && is_foreign) return Trailing("zstd");
    return BadRequest(fmt::format("no zstd stream: {}", ZSTD_getErrorName(code)));
  }

  ZSTD_DCtx* const context_;
  bool at_end_ = false;
  int64_t streams_ = 0;
  std::vector<char> output_ = std::vector<char>(kOutputBytes);
};

// Passes bytes on in whole buffers: blocks of zeros that come in pieces would not become holes.
class Gatherer {
 public:
  explicit Gatherer(const Take& take) : take_(take) { gathered_.reserve(kOutputBytes); }
  Status Add(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, kOutputBytes - gathered_.size());
      gathered_ += piece;
      bytes.remove_prefix(piece.size());
      if (gathered_.size() == kOutputBytes) TRY_STATUS(Flush());
    }
    return OkStatus();
  }
  Status Flush() {
    const Status taken = gathered_.empty() ? OkStatus() : take_(gathered_);
    gathered_.clear();
    return taken;
  }

 private:
  const Take& take_;
  std::string gathered_;
};

// Tells each percent once.
class PercentTeller {
 public:
  PercentTeller(const UnpackProgress& progress, int64_t of) : progress_(progress), of_(of) {}
  void Add(size_t bytes) {
    constexpr int64_t kPercents = 100;
    bytes_ += static_cast<int64_t>(bytes);
    if (progress_ == nullptr || of_ <= 0 || bytes_ < next_) return;
    next_ = bytes_ + std::max<int64_t>(of_ / kPercents, 1);
    progress_(bytes_, of_);
  }

 private:
  const UnpackProgress& progress_;
  const int64_t of_;
  int64_t bytes_ = 0;
  int64_t next_ = 0;
};

template <class Unpacker>
Status Pour(FileReader& reader, const Take& take, const UnpackProgress& progress) {
  Unpacker unpacker;
  PercentTeller teller(progress, reader.bytes());
  TRY_STATUS(reader.ReadAll([&unpacker, &take, &teller](std::string_view packed) -> Status {
    TRY_STATUS(unpacker.Add(packed, take));
    teller.Add(packed.size());
    return OkStatus();
  }));
  return unpacker.Finish();
}

// No more than so many bytes.
Take Limited(const Take& take, int64_t bytes_max) {
  return [&take, bytes_max, taken = int64_t{0}](std::string_view bytes) mutable -> Status {
    taken += static_cast<int64_t>(bytes.size());
    if (taken <= bytes_max) return take(bytes);
    return BadRequest(
        fmt::format("more than {} bytes come out of it, which is the limit here", bytes_max));
  };
}

Status UnpackInto(const std::string& path,
                  Packing packing,
                  int64_t bytes_max,
                  const Take& take,
                  const UnpackProgress& progress) {
  CHECK(packing != Packing::kNone);
  TRY(FileReader reader, FileReader::Open(path));
  Gatherer gatherer(take);
  const Take gather = [&gatherer](std::string_view bytes) { return gatherer.Add(bytes); };
  const Take limited = Limited(gather, bytes_max);
  Status done = packing == Packing::kGzip ? Pour<Gunzip>(reader, limited, progress)
                                          : Pour<Unzstd>(reader, limited, progress);
  if (done.ok()) done = gatherer.Flush();
  return done.Wrap(path);
}

}  // namespace

Status UnpackFile(const std::string& path,
                  Packing packing,
                  int64_t bytes_max,
                  FileWriter& writer,
                  const UnpackProgress& progress) {
  const Take append = [&writer](std::string_view bytes) { return writer.Append(bytes); };
  return UnpackInto(path, packing, bytes_max, append, progress);
}

Result<int64_t> UnpackedWritten(const std::string& path, Packing packing, int64_t bytes_max) {
  int64_t length = 0;
  int64_t written = 0;
  const Take count = [&length, &written](std::string_view bytes) {
    written += WrittenBytes(length, bytes);
    length += static_cast<int64_t>(bytes.size());
    return OkStatus();
  };
  TRY_STATUS(UnpackInto(path, packing, bytes_max, count, {}));
  return written;
}

}  // namespace berth::image
