// SPDX-License-Identifier: Apache-2.0
// One command's connection to a runtime.
#pragma once

#include <utility>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "iri/grpc/client.h"
#include "iri/grpc/endpoint.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::cli {

inline constexpr Flag kEndpointFlag = {
    .name = "endpoint",
    .letter = 'e',
    .kind = FlagKind::kText,
    .value_name = "SOCKET",
    .help =
        "unix:/PATH of the runtime. Without it IRI_MACHINE_RUNTIME_ENDPOINT (or _VOLUME_, "
        "_BUCKET_) or a well-known socket in /var/run.",
    .completion = Completion::kFiles};
inline constexpr Flag kRuntimeUserFlag = {
    .name = "runtime-user",
    .kind = FlagKind::kCommaList,
    .value_name = "NAME|UID",
    .help = "Who the runtime may be beside root and you. May be repeated.",
    .variable = "BERTH_RUNTIME_USER"};
inline constexpr Flag kCallTimeFlag = {.name = "call-timeout",
                                       .kind = FlagKind::kDuration,
                                       .value_name = "TIME",
                                       .help = "How long one call to the runtime may take.",
                                       .fallback = "10s"};

class RuntimeLink {
 public:
  // Finds the socket as a poollet would, for a runtime of this kind; nothing is sent yet.
  static Result<std::unique_ptr<RuntimeLink>> Make(const Environment& environment,
                                                   const Arguments& arguments,
                                                   iri::RuntimeKind kind);
  iri::RuntimeClient& client() { return *client_; }
  const std::string& path() const { return client_->path(); }
  // On the host's monotonic clock, which deadlines of leases are of.
  Time now() const { return loop_.Now(); }

  // Runs the task to its end. Its error says what to do next.
  template <class T>
  T Await(rt::Task<T> task) {
    return WithAdvice(rt::RunTask(loop_, std::move(task)));
  }

 private:
  RuntimeLink() = default;
  Status Advice(const Status& status) const;
  Status WithAdvice(Status status) const { return Advice(status); }
  template <class T>
  Result<T> WithAdvice(Result<T> result) const {
    if (result.ok()) return result;
    return Advice(result.status());
  }

  rt::AsioLoop loop_;
  std::unique_ptr<iri::RuntimeClient> client_;
};

}  // namespace berth::cli
