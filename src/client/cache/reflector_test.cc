// SPDX-License-Identifier: Apache-2.0
// Defends the order in which a sink hears of changes: announced first, a few at a time, then told;
// and that a reflector knows for how long it has not been able to follow.
#include "client/cache/reflector.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"

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

// Says nothing until there is trouble.
class SilentWatch final : public ObjectWatch {
 public:
  explicit SilentWatch(const Status& trouble) : trouble_(trouble) {}
  rt::Task<Result<std::vector<WatchEvent>>> Next() override {
    while (trouble_.ok()) CO_TRY_STATUS(co_await rt::Sleep(Duration::Seconds(1)));
    co_return trouble_;
  }

 private:
  const Status& trouble_;
};

// Lists nothing and watches one batch, or nothing if that is empty. Nobody writes.
class BatchClient final : public Client {
 public:
  explicit BatchClient(size_t changes) : changes_(changes) {}
  Status trouble;  // of lists and watches
  rt::Task<Result<ObjectList>> List(const meta::KindInfo& /*kind*/,
                                    ListOptions /*options*/) override {
    if (!trouble.ok()) co_return trouble;
    co_return ObjectList{.resource_version = "1"};
  }
  rt::Task<Result<std::unique_ptr<ObjectWatch>>> Watch(const meta::KindInfo& /*kind*/,
                                                       WatchOptions /*options*/) override {
    if (!trouble.ok()) co_return trouble;
    std::unique_ptr<ObjectWatch> watch = std::make_unique<OneBatch>(changes_);
    if (changes_ == 0) watch = std::make_unique<SilentWatch>(trouble);
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

TEST(Reflector, KnowsForHowLongItCannotFollow) {
  rt::SimLoop loop(1);
  BatchClient client(0);
  CountingSink sink;
  const meta::KindInfo kind{};
  Reflector reflector(loop, client, kind, sink, {});
  rt::TaskScope scope(loop);
  client.trouble = Unavailable("nobody answers");
  scope.Spawn("reflector", reflector.Run());
  loop.RunFor(Duration::Seconds(40));
  EXPECT_FALSE(reflector.synced());
  EXPECT_GT(reflector.state().failing(), Duration::Seconds(39)) << "from the first failure on";
  client.trouble = OkStatus();
  loop.RunFor(Duration::Minutes(1));
  EXPECT_TRUE(reflector.synced());
  EXPECT_EQ(reflector.state().failing(), Duration()) << "a list is news";
  client.trouble = Unavailable("nobody answers");
  loop.RunFor(Duration::Seconds(20));
  EXPECT_GT(reflector.state().failing(), Duration::Seconds(15)) << "now watches fail";
  client.trouble = OkStatus();
  loop.RunFor(Duration::Minutes(1));
  EXPECT_EQ(reflector.state().failing(), Duration())
      << "a watch that stays open is good, silent or not";
  client.trouble = Unavailable("nobody answers");
  loop.RunFor(Duration::Seconds(5));
  EXPECT_GT(reflector.state().failing(), Duration());
  EXPECT_LE(reflector.state().failing(), Duration::Seconds(5)) << "the good time in between counts";
  EXPECT_TRUE(rt::RunTask(loop, scope.Close()).ok());
}

}  // namespace
}  // namespace berth::client
