// SPDX-License-Identifier: Apache-2.0
#include "apiserver/scheduling/scheduling_service.h"

#include <optional>
#include <utility>

#include "apiserver/registry/loopback_client.h"
#include "apiserver/scheduling/cluster_feed.h"
#include "apiserver/scheduling/outlet.h"
#include "apiserver/scheduling/status_feed.h"
#include "apiserver/scheduling/workload.h"
#include "base/strings.h"
#include "meta/names.h"
#include "rt/chaos.h"
#include "rt/deadline.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using apis::compute::kMachinePoolKind;
using apis::compute::Machine;

// How long a client may take to say what it wants.
constexpr Duration kRequestLimit = Duration::Seconds(10);
// A name that is freed and taken between two looks, again and again, is fought over.
constexpr int kEnsureAttempts = 4;

template <class T>
Result<T> Parse(const std::string& bytes) {
  T request;
  if (!request.ParseFromString(bytes)) {
    return BadRequest("the message is not a " + std::string(T::descriptor()->full_name()));
  }
  return request;
}

template <class T>
rt::Task<Result<T>> ReadRequest(net::MessageStream& stream) {
  CO_TRY(const std::optional<std::string> bytes,
         co_await rt::WithDeadline(stream.Read(), kRequestLimit));
  if (!bytes) co_return BadRequest("the call has no request");
  co_return Parse<T>(*bytes);
}

template <class T>
Result<client::ObjectKey> KeyIn(const T& request) {
  TRY_STATUS(CheckInstanceKey(request.namespace_(), request.instance_id()));
  return client::ObjectKey{.namespace_ = request.namespace_(), .name = request.instance_id()};
}

std::string NameOf(const client::ObjectKey& key) { return key.namespace_ + "/" + key.name; }

Status CheckIsInstance(const meta::Object& machine) {
  if (IsInstance(machine)) return OkStatus();
  return NotFound("machine " + machine.metadata().namespace_ + "/" + machine.metadata().name +
                  " was not scheduled by this service");
}

Status CheckSameContent(const meta::Object& there, const meta::Object& wanted) {
  const std::string name = there.metadata().namespace_ + "/" + there.metadata().name;
  if (!IsInstance(there)) {
    return AlreadyExists("machine " + name +
                         " exists and was not scheduled by this service: choose another id");
  }
  if (ContentOf(there) == ContentOf(wanted)) return OkStatus();
  REACHED("scheduling.other_content");
  return AlreadyExists("instance " + name + " was scheduled with other content (sha256 " +
                       std::string(ContentOf(there)) + ", not " + std::string(ContentOf(wanted)) +
                       "): Update changes it");
}

}  // namespace

SchedulingService::SchedulingService(Deps deps, RequestLimits limits)
    : loop_(deps.loop),
      scheme_(deps.scheme),
      registry_(deps.registry),
      door_({.loop = deps.loop,
             .scheme = deps.scheme,
             .authenticator = deps.authenticator,
             .authorizer = deps.authorizer,
             .audit = std::move(deps.audit)}),
      limiter_(limits, deps.metrics) {}

void SchedulingService::AddRoutes(net::RpcRoutes& routes) {
  const net::RpcLimits limits{.message_bytes_max = kManifestBytesMax + 4096,
                              .outbox_bytes_max = Outlet::kOutboxBytesMax};
  const auto stream =
      [&](const char* method,
          rt::Task<Status> (SchedulingService::*serve)(net::RpcCall, net::MessageStream&)) {
        routes.streams[std::string(kName) + method] = {
            .handler =
                [this, serve](net::RpcCall call, net::MessageStream& messages) {
                  return (this->*serve)(std::move(call), messages);
                },
            .limits = limits};
      };
  const auto unary = [&](const char* method,
                         Answer (SchedulingService::*serve)(net::RpcCall, std::string)) {
    routes.unary[std::string(kName) + method] = {
        .handler =
            [this, serve](net::RpcCall call, std::string request) {
              return (this->*serve)(std::move(call), std::move(request));
            },
        .limits = limits};
  };
  stream("Schedule", &SchedulingService::Schedule);
  stream("Attach", &SchedulingService::Attach);
  stream("Watch", &SchedulingService::Watch);
  unary("Update", &SchedulingService::Update);
  unary("Stop", &SchedulingService::Stop);
  unary("Destroy", &SchedulingService::Destroy);
}

Result<SchedulingService::Write> SchedulingService::BeginWrite(const net::RpcCall& call,
                                                               std::string_view verb,
                                                               const client::ObjectKey& key) {
  Write write{.caller = {}, .request = {}, .key = key, .start = loop_.Now(), .ticket = {}};
  TRY(write.caller, door_.Admit(call));
  write.request = door_.RequestFor(kMachineKind, verb, key, call.method);
  const Status allowed = door_.Check(write.caller, write.request);
  if (!allowed.ok()) {
    door_.Audit(write.caller, write.request, allowed, write.start);
    return allowed;
  }
  TRY(write.ticket, limiter_.Enter(write.caller.identity.user, RequestLength::kShort));
  return write;
}

rt::Task<Status> SchedulingService::Schedule(net::RpcCall call, net::MessageStream& stream) {
  // Whoever is nobody learns nothing about how requests are read.
  CO_TRY_STATUS(door_.Admit(call));
  CO_TRY(const auto request, co_await ReadRequest<proto::ScheduleRequest>(stream));
  CO_TRY(const client::ObjectKey key, KeyIn(request));
  std::vector<RequestInfo> rights = {door_.RequestFor(kMachineKind, "watch", key, call.method)};
  CO_TRY_STATUS(door_.CheckAgain(call, rights));
  {
    CO_TRY(Write write, BeginWrite(call, "create", key));
    CO_TRY(meta::Object wanted, ReadWorkload(scheme_, key, request.manifest()));
    CO_TRY_STATUS(co_await Ensure(&write, std::move(wanted)));
  }
  co_return co_await Tell(std::move(call), key, std::move(rights), stream);
}

rt::Task<Status> SchedulingService::Ensure(Write* write, meta::Object wanted) {
  for (int attempt = 0; attempt < kEnsureAttempts; ++attempt) {
    WriteContext context = door_.ContextFor(write->caller, write->request);
    const auto made = co_await registry_.Create(wanted, std::move(context));
    if (!made.status().Is(Reason::kAlreadyExists)) {
      door_.Audit(write->caller, write->request, made.status(), write->start);
      co_return made.status();
    }
    const auto there = co_await registry_.Get(kMachineKind, write->key, "");
    if (there.status().Is(Reason::kNotFound)) continue;  // gone meanwhile: its id is free
    CO_TRY_STATUS(there.status());
    CO_TRY(const meta::Object machine, DecodeFor(kMachineKind, *there));
    const Status same = CheckSameContent(machine, wanted);
    if (!same.ok()) door_.Audit(write->caller, write->request, same, write->start);
    co_return same;
  }
  co_return Conflict("instance " + NameOf(write->key) + " comes and goes; call again");
}

rt::Task<Status> SchedulingService::Attach(net::RpcCall call, net::MessageStream& stream) {
  CO_TRY_STATUS(door_.Admit(call));
  CO_TRY(const auto request, co_await ReadRequest<proto::AttachRequest>(stream));
  CO_TRY(const client::ObjectKey key, KeyIn(request));
  std::vector<RequestInfo> rights = {door_.RequestFor(kMachineKind, "watch", key, call.method)};
  CO_TRY_STATUS(door_.CheckAgain(call, rights));
  co_return co_await Tell(std::move(call), key, std::move(rights), stream);
}

rt::Task<Status> SchedulingService::Tell(net::RpcCall call,
                                         client::ObjectKey key,
                                         std::vector<RequestInfo> rights,
                                         net::MessageStream& stream) {
  CO_TRY(const Caller caller, door_.Admit(call));
  CO_TRY(const auto ticket, limiter_.Enter(caller.identity.user, RequestLength::kStream));
  Outlet outlet(stream, [this, &call, &rights] { return door_.CheckAgain(call, rights); });
  StatusFeed feed(registry_, outlet, std::move(key));
  co_return co_await door_.WhileKnown(call, feed.Run());
}

rt::Task<Status> SchedulingService::Watch(net::RpcCall call, net::MessageStream& stream) {
  CO_TRY(const Caller caller, door_.Admit(call));
  CO_TRY(const auto request, co_await ReadRequest<proto::WatchRequest>(stream));
  ClusterFeed::Options options;
  options.namespace_ = request.namespace_();
  options.wants_machines = request.scope() != proto::WatchRequest::POOLS;
  options.wants_pools = request.scope() != proto::WatchRequest::WORKLOADS;
  if (!proto::WatchRequest::Scope_IsValid(request.scope())) {
    co_return BadRequest("scope: " + std::to_string(request.scope()) + " is not one of ours");
  }
  if (!options.namespace_.empty() && !meta::IsDnsLabel(options.namespace_)) {
    co_return BadRequest("namespace: " + Quote(options.namespace_.substr(0, 253)) +
                         " is not a DNS label");
  }
  CO_TRY(options.cursor, Cursor::Parse(request.cursor()));
  std::vector<RequestInfo> rights;
  const client::ObjectKey machines{.namespace_ = options.namespace_, .name = ""};
  const client::ObjectKey pools;
  if (options.wants_machines) {
    rights.push_back(door_.RequestFor(kMachineKind, "watch", machines, call.method));
  }
  if (options.wants_pools) {
    rights.push_back(door_.RequestFor(kMachinePoolKind, "watch", pools, call.method));
  }
  CO_TRY_STATUS(door_.CheckAgain(call, rights));
  CO_TRY(const auto ticket, limiter_.Enter(caller.identity.user, RequestLength::kStream));
  Outlet outlet(stream, [this, &call, &rights] { return door_.CheckAgain(call, rights); });
  ClusterFeed feed(registry_, outlet, std::move(options));
  co_return co_await door_.WhileKnown(call, feed.Run());
}

SchedulingService::Answer SchedulingService::Update(net::RpcCall call, std::string request) {
  CO_TRY_STATUS(door_.Admit(call));
  CO_TRY(const auto update, Parse<proto::UpdateRequest>(request));
  CO_TRY(const client::ObjectKey key, KeyIn(update));
  CO_TRY(Write write, BeginWrite(call, "update", key));
  CO_TRY(const meta::Object wanted, ReadWorkload(scheme_, key, update.manifest()));
  Mutation mutation = [wanted](const meta::Object& current) -> Result<meta::Object> {
    TRY_STATUS(CheckIsInstance(current));
    return Replaced(current, wanted);
  };
  co_return co_await Change(&write, std::move(mutation));
}

SchedulingService::Answer SchedulingService::Stop(net::RpcCall call, std::string request) {
  CO_TRY_STATUS(door_.Admit(call));
  CO_TRY(const auto stop, Parse<proto::StopRequest>(request));
  CO_TRY(const client::ObjectKey key, KeyIn(stop));
  CO_TRY(Write write, BeginWrite(call, "patch", key));
  Mutation mutation = [](const meta::Object& current) -> Result<meta::Object> {
    TRY_STATUS(CheckIsInstance(current));
    meta::Object next = current;
    next.as<Machine>().spec.power = apis::compute::kPowerOff;
    return next;
  };
  co_return co_await Change(&write, std::move(mutation));
}

SchedulingService::Answer SchedulingService::Change(Write* write, Mutation mutation) {
  WriteContext context = door_.ContextFor(write->caller, write->request);
  const auto written =
      co_await registry_.Mutate(kMachineKind, write->key, std::move(mutation), std::move(context));
  door_.Audit(write->caller, write->request, written.status(), write->start);
  CO_TRY_STATUS(written.status());
  CO_TRY(const meta::Object machine, DecodeFor(kMachineKind, written->object));
  co_return StatusOf(machine.as<Machine>()).SerializeAsString();
}

SchedulingService::Answer SchedulingService::Destroy(net::RpcCall call, std::string request) {
  CO_TRY_STATUS(door_.Admit(call));
  CO_TRY(const auto destroy, Parse<proto::DestroyRequest>(request));
  CO_TRY(const client::ObjectKey key, KeyIn(destroy));
  CO_TRY(Write write, BeginWrite(call, "delete", key));
  CO_TRY(const StoredObject stored, co_await registry_.Get(kMachineKind, key, ""));
  CO_TRY(const meta::Object machine, DecodeFor(kMachineKind, stored));
  CO_TRY_STATUS(CheckIsInstance(machine));
  DeleteRequest deletion;
  deletion.force = destroy.force() ? client::Force::kYes : client::Force::kNo;
  deletion.uid = machine.metadata().uid;  // the one that was looked at, no later one of its name
  WriteContext context = door_.ContextFor(write.caller, write.request);
  const auto deleted =
      co_await registry_.Delete(kMachineKind, key, std::move(deletion), std::move(context));
  door_.Audit(write.caller, write.request, deleted.status(), write.start);
  CO_TRY_STATUS(deleted.status());
  CO_TRY(const meta::Object last, DecodeFor(kMachineKind, deleted->object));
  const auto& now = last.as<Machine>();
  co_return (deleted->gone ? GoneStatusOf(now) : StatusOf(now)).SerializeAsString();
}

}  // namespace berth::apiserver
