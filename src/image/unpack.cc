// SPDX-License-Identifier: Apache-2.0
#include "image/unpack.h"

#include <fmt/core.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

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

template <class Unpacker>
Status Pour(FileReader& reader, const Take& take) {
  Unpacker unpacker;
  TRY_STATUS(reader.ReadAll(
      [&unpacker, &take](std::string_view packed) { return unpacker.Add(packed, take); }));
  return unpacker.Finish();
}

}  // namespace

Status UnpackFile(const std::string& path, Packing packing, int64_t bytes_max, FileWriter& writer) {
  CHECK(packing != Packing::kNone);
  TRY(FileReader reader, FileReader::Open(path));
  const Take take = [bytes_max, &writer](std::string_view bytes) -> Status {
    if (static_cast<int64_t>(bytes.size()) > bytes_max - writer.bytes()) {
      return BadRequest(
          fmt::format("more than {} bytes come out of it, which is the limit here", bytes_max));
    }
    return writer.Append(bytes);
  };
  const Status done =
      packing == Packing::kGzip ? Pour<Gunzip>(reader, take) : Pour<Unzstd>(reader, take);
  return done.Wrap(path);
}

}  // namespace berth::image
