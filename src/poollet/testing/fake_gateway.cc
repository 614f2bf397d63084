// SPDX-License-Identifier: Apache-2.0
#include "poollet/testing/fake_gateway.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "berth/agent/v1/agent.pb.h"
#include "rt/event.h"
#include "rt/sim/run_task.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;

std::string PoolKind(const std::string& kind) {
  if (kind == "VolumeSnapshot") return "VolumePool";
  return kind == "Reservation" ? "MachinePool" : kind + "Pool";
}

template <class Message>
void FillResources(const fleet::Vector& resources, Message& out) {
  for (const auto& [name, amount] : resources) (*out.mutable_resources())[name] = amount;
}

std::map<std::string, fleet::Vector> ClassesOf(
    const google::protobuf::RepeatedPtrField<pb::ClassOffer>& offers) {
  std::map<std::string, fleet::Vector> classes;
  for (const auto& offer : offers) {
    classes[offer.name()] = fleet::Vector(offer.capabilities().begin(), offer.capabilities().end());
  }
  return classes;
}

}  // namespace

FakeGateway::FakeGateway(rt::SimLoop& loop, net::SimNetwork& network, std::string node)
    : loop_(loop), network_(network), node_(std::move(node)) {
  network_.AddNode(node_, loop_);
  Up();
}

FakeGateway::~FakeGateway() { Down(); }

void FakeGateway::Up() {
  net::RpcRoutes routes;
  net::RpcRoutes::Stream connect;
  connect.handler = [this](net::RpcCall, net::MessageStream& stream) { return Serve(&stream); };
  routes.streams["/berth.agent.v1.AgentService/Connect"] = connect;
  net::RpcRoutes::Stream tunnel;
  tunnel.handler = [this](net::RpcCall, net::MessageStream& stream) {
    return ServeTunnel(&stream);
  };
  routes.streams["/berth.agent.v1.AgentService/Tunnel"] = tunnel;
  auto server = network_.Serve(node_, {}, std::move(routes));
  CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
}

void FakeGateway::Down() {
  if (server_ == nullptr) return;
  CloseSession();
  CHECK(rt::RunTask(loop_, server_->Stop()).ok());
  server_.reset();
}

rt::Task<Status> FakeGateway::Serve(net::MessageStream* stream) {
  stream_ = stream;
  synced_ = false;
  Status ended;
  while (ended.ok()) {
    auto bytes = co_await stream->Read();
    if (!bytes.ok() || !bytes->has_value()) {
      ended = bytes.ok() ? Unavailable("the host is gone") : bytes.status();
      break;
    }
    if (stream_ != stream) break;  // a later session took over
    pb::HostMessage message;
    CHECK(message.ParseFromString(**bytes));
    Hear(message);
  }
  if (stream_ == stream) {
    stream_ = nullptr;
    synced_ = false;
  }
  co_return OkStatus();
}

rt::Task<Status> FakeGateway::ServeTunnel(net::MessageStream* stream) {
  std::string ticket;
  std::string text;
  while (true) {
    auto bytes = co_await stream->Read();
    if (!bytes.ok() || !bytes->has_value()) break;
    pb::TunnelFrame frame;
    CHECK(frame.ParseFromString(**bytes));
    if (ticket.empty()) {
      ticket = frame.ticket();
      for (const std::string& line : tunnel_input[ticket]) {
        pb::TunnelFrame in;
        in.set_data(line);
        const Status written = co_await stream->Write(in.SerializeAsString());
        if (!written.ok()) co_return written;
      }
    }
    if (!reads_tunnels) {
      rt::Event never;
      co_return co_await never.Wait();  // until the call is broken off
    }
    text += frame.data();
    tunnel_bytes[ticket] = text.size();
    if (frame.channel() == 3) tunnels[ticket] = text;
  }
  co_return OkStatus();
}

void FakeGateway::OpenTunnel(const std::string& ticket,
                             const std::string& uid,
                             uint64_t placement,
                             const std::string& what) {
  pb::ServerMessage message;
  pb::TunnelRequest& request = *message.mutable_batch()->add_tunnels();
  request.set_ticket(ticket);
  request.set_uid(uid);
  request.set_placement(placement);
  request.set_what(what);
  Send(message);
}

void FakeGateway::Send(const pb::ServerMessage& message) {
  // A session that just broke hears nothing more.
  if (stream_ != nullptr && !stream_->TryWrite(message.SerializeAsString())) stream_ = nullptr;
}

void FakeGateway::Hear(const pb::HostMessage& message) {
  pb::ServerMessage answer;
  switch (message.message_case()) {
    case pb::HostMessage::kHello: {
      lease_left_ms = message.hello().lease_left_ms();
      is_leaving = message.hello().leaving();
      if (!refuses.empty()) {
        answer.mutable_refused()->set_reason(refuses);
        answer.mutable_refused()->set_message("because the test says so");
        return Send(answer);
      }
      ++sessions;
      announce_chunks = 0;
      known.clear();
      orphans.clear();
      pools_.clear();
      pb::Welcome& welcome = *answer.mutable_welcome();
      welcome.set_version(version);
      if (versions) welcome.mutable_versions()->set_min(versions->min);
      if (versions) welcome.mutable_versions()->set_max(versions->max);
      welcome.mutable_session()->set_start(1);
      welcome.mutable_session()->set_counter(sessions);
      welcome.set_incarnation(incarnation);
      welcome.set_cluster_id(cluster_id);
      welcome.set_lease_ms(static_cast<uint64_t>(lease.millis()));
      welcome.set_heartbeat_ms(2000);
      welcome.add_servers(node_ + ":7443");
      welcome.mutable_limits()->set_message_bytes(8192);
      welcome.mutable_limits()->set_events_per_second(events_per_second);
      events_room_ = 2.0 * events_per_second;
      events_at_ = loop_.Now();
      return Send(answer);
    }
    case pb::HostMessage::kAnnounce: return HearAnnounce(message.announce());
    case pb::HostMessage::kBatch: return HearBatch(message.batch());
    case pb::HostMessage::kHeartbeat: return HearHeartbeat(message.heartbeat());
    case pb::HostMessage::kGoodbye:
      goodbye = message.goodbye().mode() == pb::Goodbye::KEEP ? "KEEP" : "DRAIN";
      answer.mutable_farewell();
      if (goodbye == "KEEP") return Send(answer);
      if (on_drain == OnDrain::kKeepAll) return Send(answer);
      if (on_drain == OnDrain::kSilent) return;
      for (const auto& [uid, wish] : std::map(desired_)) Remove(uid, wish.placement);
      return;
    default: return;
  }
}

void FakeGateway::HearHeartbeat(const pb::Heartbeat& heartbeat) {
  ++heartbeats;
  if (!grants) return;
  pb::ServerMessage answer;
  answer.mutable_grant()->set_number(heartbeat.number());
  answer.mutable_grant()->set_ttl_ms(static_cast<uint64_t>(lease.millis()));
  Send(answer);
}

void FakeGateway::HearAnnounce(const pb::Announce& announce) {
  ++announce_chunks;
  for (const auto& pool : announce.pools()) {
    pools_.push_back(pool.kind());
    runtime_facts[pool.kind()] = iri::StringMap(pool.facts().begin(), pool.facts().end());
    classes[pool.kind()] = ClassesOf(pool.classes());
    fleet::PoolFacts& out = facts[pool.kind()];
    out.capacity =
        fleet::Vector(pool.capacity().capacity().begin(), pool.capacity().capacity().end());
    out.fence = pool.capacity().fence_ready() ? fleet::PoolFacts::Fence::kReady
                                              : fleet::PoolFacts::Fence::kNotReady;
  }
  for (const auto& entry : announce.known()) {
    known[entry.uid()] = {.incarnation = entry.incarnation(),
                          .placement = entry.placement(),
                          .hash = entry.hash(),
                          .gone = entry.gone(),
                          .proof = entry.proof(),
                          .leased = entry.leased()};
  }
  for (const auto& orphan : announce.orphans()) orphans[orphan.runtime_id()] = orphan.uid();
  if (announce.last()) Resync();
}

void FakeGateway::FillAssign(const std::string& uid,
                             const Wish& wish,
                             uint64_t in,
                             pb::Assign& out) {
  out.set_incarnation(in);
  out.set_uid(uid);
  out.set_placement(wish.placement);
  out.set_pool_uid(PoolUid(PoolKind(wish.kind)));
  out.set_kind(wish.kind);
  out.set_namespace_("default");
  out.set_name("name-" + uid);
  FillResources(wish.resources, out);
  if (wish.kind == "Machine") {
    out.mutable_machine()->set_class_name(wish.class_name);
    out.mutable_machine()->set_generation(wish.generation);
    out.mutable_machine()->set_power_on(wish.power_on);
    if (wish.moves) out.mutable_machine()->set_on_pool_loss("Move");
    if (!wish.note.empty()) (*out.mutable_machine()->mutable_annotations())["note"] = wish.note;
  } else if (wish.kind == "Volume") {
    out.mutable_volume()->set_class_name(wish.class_name);
    out.mutable_volume()->set_generation(wish.generation);
    out.mutable_volume()->set_storage_bytes(wish.storage_bytes);
  } else if (wish.kind == "Bucket") {
    out.mutable_bucket()->set_class_name(wish.class_name);
  } else if (wish.kind == "VolumeSnapshot") {
    out.mutable_snapshot()->set_generation(wish.generation);
    out.mutable_snapshot()->set_volume_handle(wish.note);
  } else {
    out.mutable_reservation()->set_count(1);
  }
  out.set_proof("given " + std::to_string(wish.placement));
  if (wish.edit) wish.edit(out);
  // Stands for a hash: the same wish has the same one.
  out.set_hash(std::to_string(std::hash<std::string>()(
      uid + std::to_string(wish.generation) + std::to_string(wish.placement) +
      std::to_string(wish.power_on) + std::to_string(wish.storage_bytes) + wish.note)));
}

void FakeGateway::FillDelete(const std::string& uid,
                             const PendingDelete& wanted,
                             pb::ServerBatch& out) {
  pb::Delete& made = *out.add_deletes();
  made.set_uid(uid);
  made.set_incarnation(incarnation);
  made.set_placement(wanted.placement);
  made.set_why(pb::Delete::DELETED);
  made.set_kind("Machine");
  made.set_approved(wanted.is_approved);
}

void FakeGateway::Resync() {
  pb::ServerMessage message;
  pb::ServerBatch& batch = *message.mutable_batch();
  for (const auto& kind : pools_) {
    pb::PoolWelcome& pool = *batch.add_pools();
    pool.set_kind(kind);
    pool.set_name("pool-" + kind);
    pool.set_uid(PoolUid(kind));
  }
  for (const auto& [uid, wish] : desired_) {
    pb::Assign assign;
    FillAssign(uid, wish, incarnation, assign);
    const auto there = known.find(uid);
    const bool same =
        there != known.end() && !there->second.gone && there->second.incarnation == incarnation &&
        there->second.placement == wish.placement && there->second.hash == assign.hash();
    const bool is_old = there != known.end() && there->second.incarnation != incarnation;
    if (is_open && is_old) {
      batch.add_confirms()->set_uid(uid);
      batch.mutable_confirms()->rbegin()->set_keep_only(true);
    } else if (!same) {
      *batch.add_assigns() = std::move(assign);
    } else if (confirms) {
      pb::Confirm& confirm = *batch.add_confirms();
      confirm.set_uid(uid);
      confirm.set_incarnation(incarnation);
      confirm.set_placement(wish.placement);
    }
  }
  for (const auto& [uid, wanted] : deletes_) FillDelete(uid, wanted, batch);
  for (const auto& [uid, entry] : known) {
    if (!entry.gone) continue;
    gone[uid] = entry.placement;
    deletes_.erase(uid);
    if (!acknowledges_gone) continue;
    pb::Gone& forget = *batch.add_forget();
    forget.set_uid(uid);
    forget.set_incarnation(entry.incarnation);
    forget.set_placement(entry.placement);
  }
  Send(message);
  pb::ServerMessage synced;
  synced.mutable_synced()->set_revision(revision);
  synced.mutable_synced()->set_open(is_open);
  Send(synced);
  synced_ = true;
}

void FakeGateway::Settle() {
  is_open = false;
  Resync();
}

void FakeGateway::HearBatch(const pb::HostBatch& batch) {
  ++batches;
  if (batch.has_heartbeat()) HearHeartbeat(batch.heartbeat());
  for (const auto& answer : batch.answers()) {
    fleet::Answer out;
    out.verdict = answer.verdict() == pb::Answer::ACCEPTED ? fleet::Answer::Verdict::kAccepted
                  : answer.verdict() == pb::Answer::ALREADY_HERE
                      ? fleet::Answer::Verdict::kAlreadyHere
                      : fleet::Answer::Verdict::kRejected;
    out.reason = answer.reason();
    out.missing = fleet::Vector(answer.missing().begin(), answer.missing().end());
    out.placement = answer.placement();
    answers[std::to_string(answer.id().term()) + "/" + std::to_string(answer.id().number())] = out;
  }
  for (const auto& ack : batch.acks()) acks[ack.uid()] = ack.placement();
  for (const auto& refusal : batch.refusals()) {
    refused[refusal.uid()] = refusal.reason();
    desired_.erase(refusal.uid());
  }
  for (const auto& status : batch.statuses()) {
    Heard& out = heard[status.uid()];
    out.state = status.state();
    out.runtime_id = status.runtime_id();
    out.placement = status.placement();
    out.incarnation = status.incarnation();
    out.conditions.clear();
    for (const auto& condition : status.conditions()) {
      out.conditions[condition.type()] = condition.status() == "True" ? "True" : condition.reason();
    }
  }
  pb::ServerMessage message;
  for (const auto& entry : batch.gone()) {
    gone[entry.uid()] = entry.placement();
    deletes_.erase(entry.uid());
    heard.erase(entry.uid());
    if (acknowledges_gone) *message.mutable_batch()->add_forget() = entry;
  }
  if (message.has_batch()) Send(message);
  for (const auto& event : batch.events()) {
    if (AdmitEvent()) events.push_back(event.uid() + " " + event.reason());
  }
  for (const auto& facts_of : batch.facts()) {
    const std::string kind = facts_of.pool_uid().substr(std::string("uid-of-").size());
    if (facts_of.runtime_facts_changed()) {
      runtime_facts[kind] =
          iri::StringMap(facts_of.runtime_facts().begin(), facts_of.runtime_facts().end());
    }
    if (facts_of.classes_changed()) {
      ++classes_told;
      classes[kind] = ClassesOf(facts_of.classes());
    }
    fleet::PoolFacts& out = facts[kind];
    const auto& figures = facts_of.facts();
    out.capacity = fleet::Vector(figures.capacity().begin(), figures.capacity().end());
    out.allocated = fleet::Vector(figures.allocated().begin(), figures.allocated().end());
    out.held = fleet::Vector(figures.held().begin(), figures.held().end());
    out.fence = figures.fence_ready() ? fleet::PoolFacts::Fence::kReady
                                      : fleet::PoolFacts::Fence::kNotReady;
  }
  if (batch.orphans_changed()) {
    orphans.clear();
    for (const auto& orphan : batch.orphans()) orphans[orphan.runtime_id()] = orphan.uid();
  }
  if (batch.statistics_size() > 0) ++statistics_told;
  for (const auto& one : batch.statistics()) {
    statistics[one.uid()] = {.uid = one.uid(),
                             .cpu_cores = one.cpu_cores(),
                             .memory_bytes = one.memory_bytes(),
                             .disk_bytes = one.disk_bytes(),
                             .network_receive_bytes = one.network_receive_bytes(),
                             .network_send_bytes = one.network_send_bytes(),
                             .load = one.load(),
                             .time = loop_.WallNow()};
  }
}

bool FakeGateway::AdmitEvent() {
  const double rate = events_per_second;
  events_room_ = std::min(2 * rate, events_room_ + (loop_.Now() - events_at_).to_seconds() * rate);
  events_at_ = loop_.Now();
  if (events_room_ < 1) {
    ++events_left_out;
    return false;
  }
  --events_room_;
  return true;
}

void FakeGateway::Desire(const std::string& uid, Wish wish) {
  desired_[uid] = wish;
  deletes_.erase(uid);
  if (synced_) SendAssign(uid, wish, incarnation);
}

void FakeGateway::SendAssign(const std::string& uid, const Wish& wish, uint64_t in) {
  pb::ServerMessage message;
  FillAssign(uid, wish, in, *message.mutable_batch()->add_assigns());
  Send(message);
}

void FakeGateway::Remove(const std::string& uid, uint64_t placement, bool is_approved) {
  desired_.erase(uid);
  deletes_[uid] = {.placement = placement, .is_approved = is_approved};
  if (!synced_) return;
  pb::ServerMessage message;
  FillDelete(uid, deletes_[uid], *message.mutable_batch());
  Send(message);
}

void FakeGateway::Offer(uint64_t term, uint64_t number, const std::string& uid, Wish wish) {
  pb::ServerMessage message;
  pb::Offer& offer = *message.mutable_batch()->add_offers();
  offer.mutable_id()->set_term(term);
  offer.mutable_id()->set_number(number);
  offer.set_pool_uid(PoolUid(PoolKind(wish.kind)));
  offer.set_kind(wish.kind);
  offer.set_uid(uid);
  offer.set_placement(wish.placement);
  offer.set_class_name(wish.class_name);
  FillResources(wish.resources, offer);
  offer.set_hold_ms(10'000);
  Send(message);
}

void FakeGateway::Release(uint64_t term, uint64_t number) {
  pb::ServerMessage message;
  pb::OfferId& id = *message.mutable_batch()->add_releases();
  id.set_term(term);
  id.set_number(number);
  Send(message);
}

void FakeGateway::Purge(const std::string& uid, const std::string& runtime_id) {
  pb::ServerMessage message;
  pb::OrphanVerdict& verdict = *message.mutable_batch()->add_orphans();
  verdict.set_uid(uid);
  verdict.set_runtime_id(runtime_id);
  verdict.set_verdict(pb::OrphanVerdict::PURGE);
  Send(message);
}

void FakeGateway::CloseSession() {
  if (stream_ != nullptr) stream_->Abort(Unavailable("the test closed the session"));
  stream_ = nullptr;
  synced_ = false;
}

void FakeGateway::Redirect(const std::string& server) {
  pb::ServerMessage message;
  message.mutable_redirect()->add_servers(server);
  Send(message);
}

}  // namespace berth::poollet
