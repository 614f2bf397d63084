// SPDX-License-Identifier: Apache-2.0
// Blocking calls on a runtime under test, so that contracts read as a list of steps.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "iri/conformance/runtime_contract.h"
#include "rt/join_all.h"

namespace berth::iri {

template <class T>
T Await(RuntimeUnderTest& under_test, rt::Task<T> task) {
  std::optional<T> answer;
  const Status ran = under_test.Run(rt::internal::StoreResult(std::move(task), &answer));
  CHECK(ran.ok()) << ran;
  return *std::move(answer);
}

// True once `done` holds; lets at most a minute pass.
bool Eventually(RuntimeUnderTest& under_test, const std::function<bool()>& done);

// Objects with a uid, of the first class that is offered.
Machine NewMachine(RuntimeUnderTest& under_test, const std::string& uid);
Volume NewVolume(RuntimeUnderTest& under_test, const std::string& uid);
Bucket NewBucket(RuntimeUnderTest& under_test, const std::string& uid);

// The object with this id; nullopt if it is gone.
std::optional<Machine> GetMachine(RuntimeUnderTest& under_test, const std::string& id);
std::optional<Volume> GetVolume(RuntimeUnderTest& under_test, const std::string& id);
std::optional<Bucket> GetBucket(RuntimeUnderTest& under_test, const std::string& id);

// Creates a machine and waits until it runs.
Machine Running(RuntimeUnderTest& under_test, const std::string& uid);
bool BecomesState(RuntimeUnderTest& under_test, const std::string& id, MachineState state);

}  // namespace berth::iri
