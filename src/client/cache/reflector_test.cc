// SPDX-License-Identifier: Apache-2.0
// Defends the order in which a sink hears of changes: announced first, a few at a time, then told.
#include "client/cache/reflector.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::client {
namespace {

// One batch of changes, then the end.
class OneBatch final : public ObjectWatch {
 public:
  explicit OneBatch(size_t changes) : changes_(changes) {}
  rt::Task<Result<std::vector<WatchEvent>>> Next() override {
    if (changes_ == 0) co_return Cancelled();
    std::vector<WatchEvent> events(std::exchange(changes_, 0));
    for (size_t i = 0; i < events.size(); ++i) events[i].resource_version = std::to_string(i);
    co_return events;
  }

 private:
  size_t changes_;
};

// Lists nothing and watches one batch. Nobody writes.
class BatchClient final : public Client {
 public:
  explicit BatchClient(size_t changes) : changes_(changes) {}
  rt::Task<Result<ObjectList>> List(const meta::KindInfo& /*kind*/,
                                    ListOptions /*options*/) override {
    co_return ObjectList{.resource_version = "1"};
  }
  rt::Task<Result<std::unique_ptr<ObjectWatch>>> Watch(const meta::KindInfo& /*kind*/,
                                                       WatchOptions /*options*/) override {
    std::unique_ptr<ObjectWatch> watch = std::make_unique<OneBatch>(changes_);
    co_return watch;
  }
  rt::Task<Result<meta::Object>> Get(const meta::KindInfo& /*kind*/, ObjectKey /*key*/) override {
    co_return Cancelled();
  }
  rt::Task<Result<meta::Object>> Create(meta::Object /*object*/,
                                        WriteOptions /*options*/) override {
    co_return Cancelled();
  }
  rt::Task<std::vector<Result<meta::Object>>> CreateBatch(std::vector<meta::Object> /*objects*/,
                                                          WriteOptions /*options*/) override {
    co_return std::vector<Result<meta::Object>>();
  }
  rt::Task<Result<meta::Object>> Update(meta::Object /*object*/,
                                        WriteOptions /*options*/) override {
    co_return Cancelled();
  }
  rt::Task<Result<meta::Object>> Patch(const meta::KindInfo& /*kind*/,
                                       ObjectKey /*key*/,
                                       PatchType /*type*/,
                                       std::string /*body*/,
                                       WriteOptions /*options*/) override {
    co_return Cancelled();
  }
  rt::Task<Status> Delete(const meta::KindInfo& /*kind*/,
                          ObjectKey /*key*/,
                          DeleteOptions /*options*/) override {
    co_return Cancelled();
  }

 private:
  size_t changes_;
};

class CountingSink final : public Sink {
 public:
  void OnListBegin() override {}
  void OnListed(meta::Object /*object*/) override {}
  void OnListEnd() override {}
  void OnComing(std::span<const WatchEvent> events) override {
    EXPECT_EQ(told, announced) << "what was announced before is told first";
    EXPECT_EQ(events.front().resource_version, std::to_string(told));
    announced += events.size();
    sizes.push_back(events.size());
  }
  void OnEvent(WatchEvent event) override {
    EXPECT_LT(told, announced);
    EXPECT_EQ(event.resource_version, std::to_string(told));
    ++told;
  }
  size_t announced = 0;
  size_t told = 0;
  std::vector<size_t> sizes;
};

TEST(Reflector, AnnouncesTheChangesAtHandBeforeItTellsThem) {
  const std::vector<std::pair<size_t, std::vector<size_t>>> cases = {
      {1, {1}}, {16, {16}}, {37, {16, 16, 5}}};
  for (const auto& [changes, sizes] : cases) {
    rt::SimLoop loop(1);
    BatchClient client(changes);
    CountingSink sink;
    const meta::KindInfo kind{};
    Reflector reflector(loop, client, kind, sink, {});
    EXPECT_TRUE(rt::RunTask(loop, reflector.Run()).Is(Reason::kCancelled));
    EXPECT_EQ(sink.told, changes);
    EXPECT_EQ(sink.sizes, sizes);
  }
}

}  // namespace
}  // namespace berth::client
