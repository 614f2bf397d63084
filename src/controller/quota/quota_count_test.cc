// SPDX-License-Identifier: Apache-2.0
// Defends that it shows when the kinds that a quota counts are not followed: what is freed then is
// not given back in time. What is counted is defended with the other controllers.
#include "controller/quota/quota_count.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/quota/usage.h"
#include "rt/scope.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "rt/sleep.h"

namespace berth::controller {
namespace {

// Says nothing until there is trouble.
class SilentWatch final : public client::ObjectWatch {
 public:
  explicit SilentWatch(const Status& trouble) : trouble_(trouble) {}
  rt::Task<Result<std::vector<client::WatchEvent>>> Next() override {
    while (trouble_.ok()) CO_TRY_STATUS(co_await rt::Sleep(Duration::Seconds(1)));
    co_return trouble_;
  }

 private:
  const Status& trouble_;
};

// Has nothing, and has trouble with machines. Nobody writes.
class EmptyClient final : public client::Client {
 public:
  Status trouble;        // of watches
  Status lists_trouble;  // of lists
  rt::Task<Result<client::ObjectList>> List(const meta::KindInfo& kind,
                                            client::ListOptions) override {
    if (&kind == &apis::compute::kMachineKind && !lists_trouble.ok()) co_return lists_trouble;
    co_return client::ObjectList{.resource_version = "1"};
  }
  rt::Task<Result<std::unique_ptr<client::ObjectWatch>>> Watch(const meta::KindInfo& kind,
                                                               client::WatchOptions) override {
    if (!TroubleOf(kind).ok()) co_return TroubleOf(kind);
    std::unique_ptr<client::ObjectWatch> watch = std::make_unique<SilentWatch>(TroubleOf(kind));
    co_return watch;
  }
  rt::Task<Result<meta::Object>> Get(const meta::KindInfo&, client::ObjectKey) override {
    co_return Cancelled();
  }
  rt::Task<Result<meta::Object>> Create(meta::Object, client::WriteOptions) override {
    co_return Cancelled();
  }
  rt::Task<std::vector<Result<meta::Object>>> CreateBatch(std::vector<meta::Object>,
                                                          client::WriteOptions) override {
    co_return std::vector<Result<meta::Object>>();
  }
  rt::Task<Result<meta::Object>> Update(meta::Object, client::WriteOptions) override {
    co_return Cancelled();
  }
  rt::Task<Result<meta::Object>> Patch(const meta::KindInfo&,
                                       client::ObjectKey,
                                       client::PatchType,
                                       std::string,
                                       client::WriteOptions) override {
    co_return Cancelled();
  }
  rt::Task<Status> Delete(const meta::KindInfo&,
                          client::ObjectKey,
                          client::DeleteOptions) override {
    co_return Cancelled();
  }

 private:
  const Status& TroubleOf(const meta::KindInfo& kind) const {
    return &kind == &apis::compute::kMachineKind ? trouble : none_;
  }
  const Status none_;
};

client::ControllerHealth HealthOf(const QuotaCount& quota) {
  client::HealthReport report;
  quota.Report(report);
  return report.all().at("quota");
}

TEST(QuotaCount, TellsWhatItCannotFollow) {
  rt::SimLoop loop(1);
  EmptyClient client;
  const meta::Scheme scheme({}, {"berth.dev"});
  QuotaCount quota(loop, client, scheme);
  EXPECT_EQ(HealthOf(quota).unsynced, 1 + apis::quota::CountedKinds().size());
  rt::TaskScope scope(loop);
  client.lists_trouble = Unavailable("away");
  scope.Spawn("quota", quota.Run());
  loop.RunFor(Duration::Minutes(5));
  EXPECT_EQ(HealthOf(quota).unsynced, 1U) << "machines, which were never listed";
  EXPECT_GT(HealthOf(quota).lost_longest, Duration::Minutes(4));

  client.lists_trouble = OkStatus();
  loop.RunFor(Duration::Minutes(5));
  EXPECT_EQ(HealthOf(quota).unsynced, 0U);
  EXPECT_EQ(HealthOf(quota).lost_longest, Duration());

  client.trouble = Unavailable("away again");  // for those who watch only
  loop.RunFor(Duration::Minutes(5));
  EXPECT_EQ(HealthOf(quota).unsynced, 0U) << "it was listed once";
  EXPECT_GT(HealthOf(quota).lost_longest, Duration::Minutes(4));
  EXPECT_TRUE(rt::RunTask(loop, scope.Close()).ok());
}

}  // namespace
}  // namespace berth::controller
