// SPDX-License-Identifier: Apache-2.0
#include "store/conformance/store_contract.h"

#include <initializer_list>

namespace berth::store {

std::vector<StoreContract> StoreContracts() {
  std::vector<StoreContract> all;
  for (const auto part : {TxnContracts(), RangeContracts(), WatchContracts(), LeaseContracts()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void RunStoreContract(const StoreFactory& factory, const StoreContract& contract) {
  const std::unique_ptr<StoreUnderTest> under_test = factory();
  contract.run(*under_test);
}

}  // namespace berth::store
