// SPDX-License-Identifier: Apache-2.0
// A PowerCut kills a volume runtime between two steps: from then on nothing that it does has any
// effect. For tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/volume/disks.h"
#include "runtime/volume/shelf.h"

namespace berth::runtime {

class PowerCut {
 public:
  // Power goes off at this moment; moments are before and after every step.
  explicit PowerCut(int at) : left_(at) {}
  bool is_off() const { return is_off_; }
  Status Moment() {
    if (left_-- == 0) is_off_ = true;
    return is_off_ ? Unavailable("the power is off") : OkStatus();
  }

 private:
  int left_;
  bool is_off_ = false;
};

template <class T>
rt::Task<T> Powered(PowerCut* power, rt::Task<T> step) {
  CO_TRY_STATUS(power->Moment());
  T answer = co_await step;
  CO_TRY_STATUS(power->Moment());
  co_return answer;
}

class PoweredShelf final : public Shelf {
 public:
  PoweredShelf(Shelf& shelf, PowerCut& power) : shelf_(shelf), power_(&power) {}
  rt::Task<Result<std::vector<ShelfItem>>> Load() override { return shelf_.Load(); }
  rt::Task<Status> Put(ShelfKind kind, std::string id, std::string record) override {
    return Powered(power_, shelf_.Put(kind, std::move(id), std::move(record)));
  }
  rt::Task<Result<DiskPresence>> Prepare(ShelfKind kind,
                                         std::string id,
                                         DiskFormat format) override {
    return Powered(power_, shelf_.Prepare(kind, std::move(id), format));
  }
  rt::Task<Status> Settle(ShelfKind kind, std::string id, DiskFormat format) override {
    return Powered(power_, shelf_.Settle(kind, std::move(id), format));
  }
  rt::Task<Status> Remove(ShelfKind kind, std::string id) override {
    return Powered(power_, shelf_.Remove(kind, std::move(id)));
  }
  rt::Task<Result<ShelfRoom>> Room() override { return shelf_.Room(); }
  DiskFile PartOf(ShelfKind kind, std::string_view id, DiskFormat format) const override {
    return shelf_.PartOf(kind, id, format);
  }
  DiskFile DiskOf(ShelfKind kind, std::string_view id, DiskFormat format) const override {
    return shelf_.DiskOf(kind, id, format);
  }

 private:
  Shelf& shelf_;
  PowerCut* power_;
};

class PoweredDisks final : public Disks {
 public:
  PoweredDisks(Disks& disks, PowerCut& power) : disks_(disks), power_(&power) {}
  rt::Task<Status> Create(DiskFile target, int64_t bytes, std::string key) override {
    return Powered(power_, disks_.Create(std::move(target), bytes, std::move(key)));
  }
  rt::Task<Status> Copy(DiskCopy copy) override {
    return Powered(power_, disks_.Copy(std::move(copy)));
  }
  rt::Task<Result<int64_t>> VirtualBytes(DiskFile disk) override {
    return disks_.VirtualBytes(std::move(disk));
  }
  rt::Task<Result<int64_t>> ForeignVirtualBytes(DiskFile disk) override {
    return disks_.ForeignVirtualBytes(std::move(disk));
  }
  rt::Task<Result<Growth>> Grow(DiskFile disk, int64_t bytes) override {
    return Powered(power_, disks_.Grow(std::move(disk), bytes));
  }
  rt::Task<Status> Unlock(DiskFile disk, std::string key) override {
    return Powered(power_, disks_.Unlock(std::move(disk), std::move(key)));
  }

 private:
  Disks& disks_;
  PowerCut* power_;
};

}  // namespace berth::runtime
