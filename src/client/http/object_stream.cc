// SPDX-License-Identifier: Apache-2.0
#include "client/http/object_stream.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/strings.h"
#include "client/http/error_body.h"
#include "meta/json.h"

namespace berth::client {
namespace {

using meta::KindInfo;
using meta::Object;
using meta::Value;

// One event is one object of at most 1 MiB and its frame.
constexpr size_t kEventBytesMax = 4 << 20;
constexpr size_t kRefusalBytesMax = 64 << 10;

Result<WatchEvent::Type> TypeOf(std::string_view name) {
  if (name == "ADDED") return WatchEvent::Type::kAdded;
  if (name == "MODIFIED") return WatchEvent::Type::kModified;
  if (name == "DELETED") return WatchEvent::Type::kDeleted;
  if (name == "BOOKMARK") return WatchEvent::Type::kBookmark;
  return Internal(fmt::format("watch: unknown event type {}", Quote(name)));
}

class ObjectStream final : public ObjectWatch {
 public:
  ObjectStream(const KindInfo& kind, std::unique_ptr<net::HttpStream> stream, Detail detail)
      : kind_(kind), stream_(std::move(stream)), detail_(detail) {}

  rt::Task<Result<std::vector<WatchEvent>>> Next() override {
    std::vector<WatchEvent> events;
    while (events.empty()) {
      // What arrived before a failure was delivered; the failure comes with the next call.
      if (!failed_.ok()) co_return failed_;
      CO_TRY(const std::string bytes, co_await stream_->Read());
      if (bytes.empty()) co_return Unavailable("watch: the server has ended it");
      failed_ = Take(bytes, events);
    }
    co_return events;
  }

 private:
  Status Take(std::string_view bytes, std::vector<WatchEvent>& out) {
    while (true) {
      const size_t end = bytes.find('\n');
      if (end == std::string_view::npos) break;
      partial_ += bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
      if (!partial_.empty()) TRY_STATUS(TakeLine(partial_, out));
      partial_.clear();
    }
    partial_ += bytes;
    if (partial_.size() <= kEventBytesMax) return OkStatus();
    return Internal(fmt::format("watch: one event is larger than {} MiB", kEventBytesMax >> 20));
  }

  Status TakeLine(std::string_view line, std::vector<WatchEvent>& out) {
    TRY(const Value event, meta::ParseJson(line, kEventBytesMax));
    const Value* object = event.Find("object");
    if (object == nullptr) return Internal("watch: an event without an object");
    if (event.GetString({"type"}) == "ERROR") return StatusOfObject(*object);
    WatchEvent made;
    TRY(made.type, TypeOf(event.GetString({"type"})));
    made.resource_version = object->GetString({"metadata", "resourceVersion"});
    if (made.type == WatchEvent::Type::kBookmark) {
      made.object = Object(kind_);
    } else {
      TRY(made.object, ReadObject(kind_, *object, detail_));
    }
    out.push_back(std::move(made));
    return OkStatus();
  }

  const KindInfo& kind_;
  std::unique_ptr<net::HttpStream> stream_;
  const Detail detail_;
  std::string partial_;  // the beginning of a line
  Status failed_;
};

}  // namespace

Result<Object> ReadObject(const KindInfo& kind, std::string_view json) {
  Object out(kind);
  meta::TypeMeta type_meta;
  const meta::DecodeOptions options{.type_meta = &type_meta};
  TRY_STATUS(meta::DecodeJson(json, *kind.type, out.data(), options).Wrap(kind.kind));
  return out;
}

Result<Object> ReadObject(const KindInfo& kind, const Value& value, Detail detail) {
  Object out(kind);
  meta::TypeMeta type_meta;
  const meta::DecodeOptions options{.type_meta = &type_meta};
  if (detail == Detail::kFull) {
    TRY_STATUS(meta::FromValue(value, *kind.type, out.data(), options).Wrap(kind.kind));
    return out;
  }
  Value part = Value::Object();
  if (const Value* metadata = value.Find("metadata")) part.Set("metadata", *metadata);
  TRY_STATUS(meta::FromValue(part, *kind.type, out.data(), options).Wrap(kind.kind));
  return out;
}

Result<std::unique_ptr<ObjectWatch>> MakeObjectStream(const KindInfo& kind,
                                                      std::unique_ptr<net::HttpStream> stream,
                                                      Detail detail) {
  return std::unique_ptr<ObjectWatch>(new ObjectStream(kind, std::move(stream), detail));
}

rt::Task<Result<std::string>> ReadRefusal(net::HttpStream* stream) {
  std::string out;
  while (out.size() < kRefusalBytesMax) {
    CO_TRY(const std::string bytes, co_await stream->Read());
    if (bytes.empty()) break;
    out += bytes;
  }
  co_return out;
}

}  // namespace berth::client
