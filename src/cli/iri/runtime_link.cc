// SPDX-License-Identifier: Apache-2.0
#include "cli/iri/runtime_link.h"

#include "cli/failure.h"
#include "net/grpc_status.h"

namespace berth::cli {

namespace {

Result<std::string> FindSocketOf(rt::AsioLoop& loop,
                                 const Environment& environment,
                                 const std::string& flag,
                                 iri::RuntimeKind kind) {
  iri::EndpointSearch search;
  search.kind = kind;
  search.flag = flag;
  search.variable = environment.Variable(iri::EndpointVariable(kind));
  search.limit = Duration();
  return rt::RunTask(loop, iri::FindEndpoint(std::move(search)));
}

// The socket of another kind serves as well: many runtimes serve everything on one.
Result<std::string> FindSocket(rt::AsioLoop& loop,
                               const Environment& environment,
                               const std::string& flag,
                               iri::RuntimeKind wanted) {
  Result<std::string> best = FindSocketOf(loop, environment, flag, wanted);
  if (best.ok() || !flag.empty()) return best;
  for (const auto kind :
       {iri::RuntimeKind::kMachine, iri::RuntimeKind::kVolume, iri::RuntimeKind::kBucket}) {
    Result<std::string> other = FindSocketOf(loop, environment, flag, kind);
    if (other.ok()) return other;
  }
  return Advise(best.status(),
                "start one with: berth runtime fake --socket /run/berth, and name its socket with "
                "--endpoint");
}

}  // namespace

Result<std::unique_ptr<RuntimeLink>> RuntimeLink::Make(const Environment& environment,
                                                       const Arguments& arguments,
                                                       iri::RuntimeKind kind) {
  net::InitGrpcProcess();
  std::unique_ptr<RuntimeLink> link(new RuntimeLink());
  TRY(std::string path, FindSocket(link->loop_, environment, arguments.Text("endpoint"), kind));
  iri::RuntimeClientOptions options;
  TRY(options.allowed_uids, iri::UsersOf(arguments.List("runtime-user")));
  options.ask_limit = options.change_limit = arguments.Span("call-timeout");
  link->client_ = std::make_unique<iri::RuntimeClient>(link->loop_, std::move(path), options);
  return link;
}

Status RuntimeLink::Advice(const Status& status) const {
  switch (status.reason()) {
    case Reason::kMethodNotSupported:
      return Advise(status, "berth iri version shows what this runtime serves");
    case Reason::kUnavailable:
      return Advise(status, "see whether the runtime behind " + path() + " still runs");
    case Reason::kTimeout:
      return Advise(status, "the call may have been carried out: look, or try --call-timeout 60s");
    case Reason::kTooManyRequests: return Advise(status, "berth iri capacity shows what is free");
    default: return status;
  }
}

}  // namespace berth::cli
