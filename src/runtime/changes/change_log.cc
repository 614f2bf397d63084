// SPDX-License-Identifier: Apache-2.0
#include "runtime/changes/change_log.h"

#include <utility>

#include "base/strings.h"
#include "iri/labels.h"

namespace berth::runtime {
namespace {

std::string_view UidLabelOf(iri::ObjectKind kind) {
  switch (kind) {
    case iri::ObjectKind::kMachine: return iri::kMachineUidLabel;
    case iri::ObjectKind::kVolume: return iri::kVolumeUidLabel;
    case iri::ObjectKind::kBucket: return iri::kBucketUidLabel;
    case iri::ObjectKind::kVolumeSnapshot: return iri::kSnapshotUidLabel;
    case iri::ObjectKind::kUnknown: break;
  }
  return {};
}

}  // namespace

class ChangeLog::Stream final : public iri::ChangeStream {
 public:
  // No place: the first change is a resync.
  Stream(ChangeLog& log, std::optional<uint64_t> place) : log_(log), place_(place) {}

  rt::Task<Result<iri::Change>> Next() override {
    while (!log_.ended_ && !closed_) {
      const uint64_t oldest = log_.last_ - log_.changes_.size();  // the last one forgotten
      if (!place_.has_value() || *place_ < oldest || *place_ > log_.last_) {
        place_ = log_.last_;
        iri::Change resync;
        resync.cursor = log_.CursorAt(log_.last_);
        co_return resync;
      }
      if (*place_ < log_.last_) {
        iri::Change change = log_.changes_[static_cast<size_t>(*place_ - oldest)];
        change.cursor = log_.CursorAt(++*place_);
        co_return change;
      }
      CO_TRY_STATUS(co_await log_.watchers_.Wait());
    }
    co_return Unavailable("the watch has ended");
  }
  rt::Task<Status> Close() override {
    closed_ = true;
    co_return OkStatus();
  }

 private:
  ChangeLog& log_;
  std::optional<uint64_t> place_;  // the change that was told last
  bool closed_ = false;
};

void ChangeLog::Add(iri::ObjectKind kind,
                    iri::ChangeType type,
                    const iri::ObjectMetadata& metadata,
                    std::string_view what) {
  iri::Change change;
  change.type = type;
  change.kind = kind;
  change.id = metadata.id;
  change.uid = std::string(LabelOf(metadata, UidLabelOf(kind)));
  change.what = std::string(what);
  changes_.push_back(std::move(change));
  ++last_;
  if (changes_.size() > kChangesMax) changes_.pop_front();
  watchers_.CompleteAll(OkStatus());
}

std::unique_ptr<iri::ChangeStream> ChangeLog::Watch(std::string_view cursor) {
  std::optional<uint64_t> place;
  const std::string prefix = epoch_ + ".";
  if (cursor.starts_with(prefix)) place = ParseUint(cursor.substr(prefix.size()));
  return std::make_unique<Stream>(*this, place);
}

void ChangeLog::End() {
  ended_ = true;
  watchers_.CompleteAll(OkStatus());
}

}  // namespace berth::runtime
