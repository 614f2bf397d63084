// SPDX-License-Identifier: Apache-2.0
#include "apiserver/scheduling/scheduling_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "apiserver/fairness/brief_seat.h"
#include "apiserver/registry/loopback_client.h"
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
// As the audit log has them, and HTTPS.
constexpr int kOk = 200;
constexpr int kCreated = 201;

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

Result<ClusterFeed::Options> ReadOptions(const proto::WatchRequest& request) {
  ClusterFeed::Options options;
  options.namespace_ = request.namespace_();
  options.wants_machines = request.scope() != proto::WatchRequest::POOLS;
  options.wants_pools = request.scope() != proto::WatchRequest::WORKLOADS;
  if (!proto::WatchRequest::Scope_IsValid(request.scope())) {
    return BadRequest("scope: " + std::to_string(request.scope()) + " is not one of ours");
  }
  if (!options.namespace_.empty() && !meta::IsDnsLabel(options.namespace_)) {
    return BadRequest("namespace: " + Quote(options.namespace_.substr(0, 253)) +
                      " is not a DNS label");
  }
  TRY(options.cursor, Cursor::Parse(request.cursor()));
  return options;
}

}  // namespace

SchedulingService::SchedulingService(Deps deps, RequestLimits limits)
    : loop_(deps.loop),
      scheme_(deps.scheme),
      registry_(deps.registry),
      gate_(deps.gate),
      door_({.loop = deps.loop,
             .scheme = deps.scheme,
             .authenticator = deps.authenticator,
             .authorizer = deps.authorizer,
             .audit = deps.audit}),
      limiter_(limits, deps.metrics) {}

void SchedulingService::AddRoutes(net::RpcRoutes& routes) {
  const net::RpcLimits limits{.message_bytes_max = kManifestBytesMax + 4096,
                              .outbox_bytes_max = Outlet::kOutboxBytesMax};
  const auto stream = [&](const char* name, StreamMethod method) {
    routes.streams[std::string(kName) + name] = {
        .handler =
            [this, method](net::RpcCall call, net::MessageStream& messages) {
              return Serve(std::move(call), &messages, method);
            },
        .limits = limits};
  };
  const auto unary = [&](const char* name, std::string_view verb, WriteMethod method) {
    routes.unary[std::string(kName) + name] = {
        .handler =
            [this, method](net::RpcCall call, std::string request) {
              return Answer(std::move(call), std::move(request), method);
            },
        .limits = limits,
        // Nobody makes the server hold a manifest.
        .admit = [this, verb](net::RpcCall call) { return Admit(std::move(call), verb); }};
  };
  stream("Schedule", &SchedulingService::Schedule);
  stream("Attach", &SchedulingService::Attach);
  stream("Watch", &SchedulingService::Watch);
  unary("Update", "update", &SchedulingService::Update);
  unary("Stop", "patch", &SchedulingService::Stop);
  unary("Destroy", "delete", &SchedulingService::Destroy);
}

rt::Task<Status> SchedulingService::Serve(net::RpcCall call,
                                          net::MessageStream* stream,
                                          StreamMethod method) {
  Visit visit = door_.Receive(std::move(call));
  const Status ended = co_await (this->*method)(&visit, stream);
  door_.Tell(visit, ended, nullptr);  // if it has not begun
  co_return ended;
}

rt::Task<Status> SchedulingService::Admit(net::RpcCall call, std::string_view verb) {
  Visit visit = door_.Receive(std::move(call));
  const Status admitted = door_.Admit(visit, kMachineKind, verb);
  if (!admitted.ok()) door_.Tell(visit, admitted, nullptr);
  co_return admitted;
}

rt::Task<Result<std::string>> SchedulingService::Answer(net::RpcCall call,
                                                        std::string request,
                                                        WriteMethod method) {
  Visit visit = door_.Receive(std::move(call));
  const auto answer = co_await (this->*method)(&visit, std::move(request));
  door_.Tell(visit, answer.status(), answer.ok() ? &*answer : nullptr);
  CO_TRY_STATUS(answer.status());
  co_return answer->SerializeAsString();
}

rt::Task<Result<SchedulingService::Place>> SchedulingService::TakePlace(const Visit* visit,
                                                                        RequestInfo like,
                                                                        RequestLength length) {
  const Identity& who = visit->caller.identity;
  Place place;
  CO_TRY(place.seat, co_await gate_.Enter(LevelOf(who, like), who.user));
  CO_TRY(place.ticket, limiter_.Enter(who.user, length));
  co_return place;
}

rt::Task<Result<SchedulingService::Place>> SchedulingService::BeginWrite(const Visit* visit) {
  CO_TRY_STATUS(door_.Check(*visit));
  co_return co_await TakePlace(visit, visit->requests.front(), RequestLength::kShort);
}

rt::Task<Status> SchedulingService::Schedule(Visit* visit, net::MessageStream* stream) {
  // Whoever is nobody learns nothing about how requests are read.
  CO_TRY_STATUS(door_.Admit(*visit, kMachineKind, "create"));
  const std::string& method = visit->call.method;
  CO_TRY(auto request, co_await ReadRequest<proto::ScheduleRequest>(*stream));
  CO_TRY(const client::ObjectKey key, KeyIn(request));
  visit->requests = {door_.RequestFor(kMachineKind, "create", key, method)};
  visit->sent = std::move(*request.mutable_manifest());
  std::vector<RequestInfo> follows = {door_.RequestFor(kMachineKind, "watch", key, method)};
  CO_TRY_STATUS(door_.CheckAgain(visit->call, follows));
  CO_TRY(Place place, co_await BeginWrite(visit));
  CO_TRY(meta::Object wanted, ReadWorkload(scheme_, key, visit->sent));
  CO_TRY_STATUS(co_await Ensure(visit, key, std::move(wanted)));
  door_.Tell(*visit, OkStatus(), nullptr);
  // What is left is a watch of what was made, from the same seat.
  visit->code = kOk;
  visit->requests = std::move(follows);
  CO_TRY(place.ticket, limiter_.Enter(visit->caller.identity.user, RequestLength::kStream));
  co_return co_await TellInstance(visit, std::move(place), key, stream);
}

rt::Task<Status> SchedulingService::Ensure(Visit* visit,
                                           client::ObjectKey key,
                                           meta::Object wanted) {
  for (int attempt = 0; attempt < kEnsureAttempts; ++attempt) {
    WriteContext context = door_.ContextFor(*visit);
    const auto made = co_await registry_.Create(wanted, std::move(context));
    if (made.ok()) visit->code = kCreated;
    if (!made.status().Is(Reason::kAlreadyExists)) co_return made.status();
    const auto there = co_await registry_.Get(kMachineKind, key, "");
    if (there.status().Is(Reason::kNotFound)) continue;  // gone meanwhile: its id is free
    CO_TRY_STATUS(there.status());
    CO_TRY(const meta::Object machine, DecodeFor(kMachineKind, *there));
    co_return CheckSameContent(machine, wanted);
  }
  co_return Conflict("instance " + NameOf(key) + " comes and goes; call again");
}

rt::Task<Status> SchedulingService::Attach(Visit* visit, net::MessageStream* stream) {
  CO_TRY_STATUS(door_.Admit(*visit, kMachineKind, "watch"));
  const std::string& method = visit->call.method;
  CO_TRY(const auto request, co_await ReadRequest<proto::AttachRequest>(*stream));
  CO_TRY(const client::ObjectKey key, KeyIn(request));
  visit->requests = {door_.RequestFor(kMachineKind, "watch", key, method)};
  door_.Note(*visit, request);
  CO_TRY_STATUS(door_.CheckAgain(visit->call, visit->requests));
  // It begins with reading one machine. A controller that comes back to all of its 256 at once has
  // room for that among those who read one object: 128 seats, and 128 may wait.
  RequestInfo like = door_.RequestFor(kMachineKind, "get", key, method);
  CO_TRY(Place place, co_await TakePlace(visit, std::move(like), RequestLength::kStream));
  co_return co_await TellInstance(visit, std::move(place), key, stream);
}

rt::Task<Status> SchedulingService::TellInstance(Visit* visit,
                                                 Place place,
                                                 client::ObjectKey key,
                                                 net::MessageStream* stream) {
  BriefSeat seat(loop_, std::move(place.seat));
  const std::vector<RequestInfo> rights = visit->requests;
  Outlet outlet(*stream, [this, visit, &rights] { return door_.CheckAgain(visit->call, rights); });
  const auto begun = [this, visit, &seat] {
    seat.Leave();
    door_.Tell(*visit, OkStatus(), nullptr);
  };
  StatusFeed feed(registry_, outlet, std::move(key), begun);
  co_return co_await door_.WhileKnown(visit->call, feed.Run());
}

rt::Task<Status> SchedulingService::Watch(Visit* visit, net::MessageStream* stream) {
  CO_TRY_STATUS(door_.Admit(*visit, kMachineKind, "watch"));
  const std::string& method = visit->call.method;
  CO_TRY(const auto request, co_await ReadRequest<proto::WatchRequest>(*stream));
  CO_TRY(ClusterFeed::Options options, ReadOptions(request));
  const client::ObjectKey machines{.namespace_ = options.namespace_, .name = ""};
  const client::ObjectKey pools;
  visit->requests.clear();
  if (options.wants_machines) {
    visit->requests.push_back(door_.RequestFor(kMachineKind, "watch", machines, method));
  }
  if (options.wants_pools) {
    visit->requests.push_back(door_.RequestFor(kMachinePoolKind, "watch", pools, method));
  }
  door_.Note(*visit, request);
  CO_TRY_STATUS(door_.CheckAgain(visit->call, visit->requests));
  RequestInfo like = visit->requests.front();
  CO_TRY(Place place, co_await TakePlace(visit, std::move(like), RequestLength::kStream));
  co_return co_await TellCluster(visit, std::move(place), std::move(options), stream);
}

rt::Task<Status> SchedulingService::TellCluster(Visit* visit,
                                                Place place,
                                                ClusterFeed::Options options,
                                                net::MessageStream* stream) {
  BriefSeat seat(loop_, std::move(place.seat));
  const std::vector<RequestInfo> rights = visit->requests;
  Outlet outlet(*stream, [this, visit, &rights] { return door_.CheckAgain(visit->call, rights); });
  options.begun = [this, visit, &seat] {
    seat.Leave();
    door_.Tell(*visit, OkStatus(), nullptr);
  };
  ClusterFeed feed(registry_, outlet, std::move(options));
  co_return co_await door_.WhileKnown(visit->call, feed.Run());
}

SchedulingService::Written SchedulingService::Update(Visit* visit, std::string message) {
  CO_TRY_STATUS(door_.Admit(*visit, kMachineKind, "update"));
  CO_TRY(auto update, Parse<proto::UpdateRequest>(message));
  CO_TRY(const client::ObjectKey key, KeyIn(update));
  visit->requests = {door_.RequestFor(kMachineKind, "update", key, visit->call.method)};
  visit->sent = std::move(*update.mutable_manifest());
  CO_TRY(const Place place, co_await BeginWrite(visit));
  CO_TRY(const meta::Object wanted, ReadWorkload(scheme_, key, visit->sent));
  Mutation mutation = [wanted](const meta::Object& current) -> Result<meta::Object> {
    TRY_STATUS(CheckIsInstance(current));
    return Replaced(current, wanted);
  };
  co_return co_await Change(visit, key, std::move(mutation));
}

SchedulingService::Written SchedulingService::Stop(Visit* visit, std::string message) {
  CO_TRY_STATUS(door_.Admit(*visit, kMachineKind, "patch"));
  CO_TRY(const auto stop, Parse<proto::StopRequest>(message));
  CO_TRY(const client::ObjectKey key, KeyIn(stop));
  visit->requests = {door_.RequestFor(kMachineKind, "patch", key, visit->call.method)};
  door_.Note(*visit, stop);
  CO_TRY(const Place place, co_await BeginWrite(visit));
  Mutation mutation = [](const meta::Object& current) -> Result<meta::Object> {
    TRY_STATUS(CheckIsInstance(current));
    meta::Object next = current;
    next.as<Machine>().spec.power = apis::compute::kPowerOff;
    return next;
  };
  co_return co_await Change(visit, key, std::move(mutation));
}

SchedulingService::Written SchedulingService::Change(Visit* visit,
                                                     client::ObjectKey key,
                                                     Mutation mutation) {
  WriteContext context = door_.ContextFor(*visit);
  CO_TRY(const auto written,
         co_await registry_.Mutate(kMachineKind, key, std::move(mutation), std::move(context)));
  CO_TRY(const meta::Object machine, DecodeFor(kMachineKind, written.object));
  co_return StatusOf(machine.as<Machine>());
}

SchedulingService::Written SchedulingService::Destroy(Visit* visit, std::string message) {
  CO_TRY_STATUS(door_.Admit(*visit, kMachineKind, "delete"));
  CO_TRY(const auto destroy, Parse<proto::DestroyRequest>(message));
  CO_TRY(const client::ObjectKey key, KeyIn(destroy));
  visit->requests = {door_.RequestFor(kMachineKind, "delete", key, visit->call.method)};
  door_.Note(*visit, destroy);
  CO_TRY(const Place place, co_await BeginWrite(visit));
  CO_TRY(const StoredObject stored, co_await registry_.Get(kMachineKind, key, ""));
  CO_TRY(const meta::Object machine, DecodeFor(kMachineKind, stored));
  CO_TRY_STATUS(CheckIsInstance(machine));
  DeleteRequest deletion;
  deletion.force = destroy.force() ? client::Force::kYes : client::Force::kNo;
  deletion.uid = machine.metadata().uid;  // the one that was looked at, no later one of its name
  WriteContext context = door_.ContextFor(*visit);
  CO_TRY(const auto deleted,
         co_await registry_.Delete(kMachineKind, key, std::move(deletion), std::move(context)));
  CO_TRY(const meta::Object last, DecodeFor(kMachineKind, deleted.object));
  const auto& now = last.as<Machine>();
  co_return deleted.gone ? GoneStatusOf(now) : StatusOf(now);
}

}  // namespace berth::apiserver
