// SPDX-License-Identifier: Apache-2.0
#include "client/events/event_recorder.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "client/cache/informer.h"
#include "rt/sleep.h"

namespace berth::client {
namespace {

// Events that say that all is well are the first to go when thousands happen in a second: the
// objects' conditions say the same, and each event would cost another write.
constexpr size_t kNormalQueueMax = 256;
// 127 every half a second, or 256 every second.
constexpr size_t kMany = kNormalQueueMax / 2;

std::string Printable(std::string text) {
  if (text.size() > EventRecorder::kMessageMax) {
    size_t end = EventRecorder::kMessageMax - 3;
    // Not in the middle of a character: its further bytes are 10xxxxxx.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text.resize(end);
    text += "...";
  }
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text;
}

}  // namespace

EventSubject EventSubject::Of(const meta::Object& object) {
  return {.kind = &object.kind(), .key = KeyOf(object), .uid = object.metadata().uid};
}

void EventRecorder::Record(const EventSubject& subject,
                           EventType type,
                           std::string_view reason,
                           std::string_view action,
                           std::string message) {
  if (type == EventType::kNormal && queue_.size() >= kNormalQueueMax) {
    ++untold_.skipped;
    return;
  }
  message = Printable(std::move(message));
  Sameness sameness(subject.uid, std::string(reason), message);
  if (const auto found = remembered_.find(sameness); found != remembered_.end()) {
    ++found->second.count;
    if (!std::exchange(found->second.changed, true)) counted_.push_back(std::move(sameness));
    work_.Set();
    return;
  }
  if (queue_.size() >= kQueueMax) {
    ++untold_.dropped;
    return;
  }
  queue_.push_back(Make(subject, type, reason, action, std::move(message)));
  const meta::ObjectMeta& metadata = queue_.back().metadata;
  Remember(sameness, {.namespace_ = metadata.namespace_, .name = metadata.name});
  work_.Set();
}

apis::k8s::CoreEvent EventRecorder::Make(const EventSubject& subject,
                                         EventType type,
                                         std::string_view reason,
                                         std::string_view action,
                                         std::string message) {
  apis::k8s::CoreEvent event;
  // Events of cluster-scoped objects live in `default`, as kubectl expects.
  event.metadata.namespace_ = subject.key.namespace_.empty() ? "default" : subject.key.namespace_;
  std::string suffix;
  for (int i = 0; i < 10; ++i) suffix += "0123456789abcdef"[loop_.random().Below(16)];
  event.metadata.name = subject.key.name.substr(0, 240) + '.' + suffix;
  event.involved_object.kind = subject.kind->kind;
  event.involved_object.api_version = scheme_.ApiVersionOf(*subject.kind);
  event.involved_object.namespace_ = subject.key.namespace_;
  event.involved_object.name = subject.key.name;
  event.involved_object.uid = subject.uid;
  event.type = type == EventType::kNormal ? apis::k8s::kEventNormal : apis::k8s::kEventWarning;
  event.reason = reason;
  event.action = action;
  event.message = std::move(message);
  event.source.component = component_;
  event.reporting_component = component_;
  event.reporting_instance = component_;
  const WallTime now = loop_.WallNow();
  event.first_timestamp = WallTime::FromSeconds(now.seconds());
  event.last_timestamp = event.first_timestamp;
  event.event_time = meta::MicroTime{now};
  event.count = 1;
  return event;
}

void EventRecorder::Remember(const Sameness& sameness, const ObjectKey& event) {
  if (remembered_.size() >= kRememberedMax) {
    remembered_.erase(ages_.front());
    ages_.pop_front();
  }
  const auto age = ages_.insert(ages_.end(), sameness);
  remembered_.insert_or_assign(sameness, Remembered{.event = event, .age = age});
}

rt::Task<Status> EventRecorder::Run() {
  for (;;) {
    CO_TRY_STATUS(co_await work_.Wait());
    work_.Reset();
    CO_TRY(const size_t written, co_await WriteNew());
    CO_TRY_STATUS(co_await WriteCounts());
    CO_TRY_STATUS(co_await rt::Sleep(written < kMany ? kWriteEvery : kWriteManyEvery));
  }
}

rt::Task<Result<size_t>> EventRecorder::WriteNew() {
  // What comes meanwhile has its turn after the next pause: in a steady stream there would be none.
  const size_t due = queue_.size();
  for (size_t written = 0; written < due;) {
    std::vector<meta::Object> batch;
    for (; written < due && batch.size() < kBatchMax; ++written) {
      batch.push_back(meta::Object::Of(apis::k8s::kCoreEventKind, std::move(queue_.front())));
      queue_.pop_front();
    }
    const WriteOptions options;
    const auto verdicts = co_await client_.CreateBatch(std::move(batch), options);
    for (const Result<meta::Object>& verdict : verdicts) {
      if (verdict.status().Is(Reason::kCancelled)) co_return verdict.status();
      // The namespace may be on its way out; an event is not worth another attempt.
      if (!verdict.ok()) ++untold_.refused;
    }
  }
  co_return due;
}

rt::Task<Status> EventRecorder::WriteCounts() {
  for (const Sameness& sameness : std::exchange(counted_, {})) {
    const auto found = remembered_.find(sameness);
    if (found == remembered_.end()) continue;
    found->second.changed = false;
    const ObjectKey key = found->second.event;
    const int32_t count = found->second.count;
    const std::string body = R"({"count":)" + std::to_string(count) + R"(,"lastTimestamp":")" +
                             FormatRfc3339(loop_.WallNow()) + R"("})";
    const WriteOptions options;
    const Result<meta::Object> written =
        co_await client_.Patch(apis::k8s::kCoreEventKind, key, PatchType::kMerge, body, options);
    if (written.status().Is(Reason::kCancelled)) co_return written.status();
    // It has expired: the next one is a new event.
    if (written.status().Is(Reason::kNotFound)) {
      if (const auto again = remembered_.find(sameness); again != remembered_.end()) {
        ages_.erase(again->second.age);
        remembered_.erase(again);
      }
    }
  }
  co_return OkStatus();
}

}  // namespace berth::client
