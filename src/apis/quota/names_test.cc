// SPDX-License-Identifier: Apache-2.0
// Defends that a limit is the same limit through every domain and spelling.
#include "apis/quota/names.h"

#include <gtest/gtest.h>

#include "apis/registry.h"

namespace berth::apis::quota {
namespace {

using core::ResourceList;
using meta::Quantity;

struct NameCase {
  std::string_view written;
  std::string_view means;
};

TEST(QuotaNames, AreTheSameThroughEveryDomainAndSpelling) {
  const meta::Scheme scheme(AllKinds(), {"ironcore.dev", "OpenKCM.dev"});
  const NameCase cases[] = {
      {"count/machines.compute.ironcore.dev", core::kCountMachines},
      {"count/machines.compute.IronCore.DEV", core::kCountMachines},
      {"count/machines.compute.OpenKCM.dev", core::kCountMachines},
      {"count/machines.compute.openkcm.dev", core::kCountMachines},
      {"count/machines.COMPUTE.OPENKCM.DEV", core::kCountMachines},
      {"count/volumes.storage.OpenKCM.dev", core::kCountVolumes},
      {"count/buckets.storage.openkcm.dev", core::kCountBuckets},
      // Nothing of ours: to be refused under the name that was written.
      {"count/machines.storage.OpenKCM.dev", "count/machines.storage.OpenKCM.dev"},
      {"count/machines.compute.example.com", "count/machines.compute.example.com"},
      {"count/machinepools.compute.OpenKCM.dev", "count/machinepools.compute.OpenKCM.dev"},
      {"count/machines.compute.evilOpenKCM.dev", "count/machines.compute.evilOpenKCM.dev"},
      {"count/nothing", "count/nothing"},
      {"count/", "count/"},
      {"", ""},
      {"requests.cpu", "requests.cpu"},
  };
  for (const NameCase& row : cases) EXPECT_EQ(CanonicalName(scheme, row.written), row.means);
}

TEST(QuotaNames, AreTheSameWhicheverDomainIsTheFirst) {
  const meta::Scheme scheme(AllKinds(), {"example.com", "ironcore.dev"});
  EXPECT_EQ(CanonicalName(scheme, "count/machines.compute.Example.com"), core::kCountMachines);
  EXPECT_EQ(CanonicalName(scheme, "count/machines.compute.ironcore.dev"), core::kCountMachines);
  const meta::Scheme without(AllKinds(), {"example.com"});
  EXPECT_EQ(CanonicalName(without, "count/machines.compute.ironcore.dev"), core::kCountMachines);
}

TEST(QuotaNames, UnderTwoNamesOfOneThingTheSmallerLimitHolds) {
  const meta::Scheme scheme(AllKinds(), {"ironcore.dev", "OpenKCM.dev"});
  const ResourceList written = {{"count/machines.compute.OpenKCM.dev", Quantity(3)},
                                {"count/machines.compute.ironcore.dev", Quantity(5)},
                                {"count/machines.compute.openkcm.dev", Quantity(4)},
                                {"requests.cpu", Quantity(7)}};
  const ResourceList means = {{"count/machines.compute.ironcore.dev", Quantity(3)},
                              {"requests.cpu", Quantity(7)}};
  EXPECT_EQ(Canonical(scheme, written), means);
}

}  // namespace
}  // namespace berth::apis::quota
