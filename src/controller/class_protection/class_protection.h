// SPDX-License-Identifier: Apache-2.0
// ClassProtection keeps classes that are in use: every class carries a finalizer, which is taken
// off a deleted class when nothing refers to it any more.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "client/client.h"
#include "controller/runner.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class ClassProtection final : private Reconciler {
 public:
  // Everything outlives the controller.
  ClassProtection(rt::Loop& loop, client::Client& client);
  ~ClassProtection() override;

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const { return runner_.queue().idle(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const;

 private:
  // A kind of class, and who may use it.
  struct Rule;
  static const std::vector<Rule>& Rules();

  // Keys are "<index of the rule>/<name of the class>".
  rt::Task<Result<std::optional<Duration>>> Reconcile(std::string key) override;
  rt::Task<Result<bool>> IsUsed(size_t index, std::string name);
  rt::Task<Result<bool>> HasUsers(const meta::KindInfo& kind,
                                  std::string_view selector,
                                  std::string name);

  client::Client& client_;
  Runner runner_;
  std::vector<std::unique_ptr<client::Informer>> classes_;
};

}  // namespace berth::controller
