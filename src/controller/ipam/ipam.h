// SPDX-License-Identifier: Apache-2.0
// Ipam gives out parts of Prefixes:
//
//   NetworkInterface ──makes──► Prefix ──asks by──► PrefixAllocation ──part of──► parent Prefix
//          ▲ addresses            ▲ range                  │ range
//          └──────────────────────┴────────────────────────┘
//
// Each of the three has its own file, and each is a step that may be repeated. Beside them it says
// of a Network that it is there, as of an interface: who wants addresses wants to know.
//
// References stay within a namespace. One in which something cannot be read waits as a whole: what
// cannot be seen is not free (ADR 0038).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "apis/ipam/prefix.h"
#include "apis/ipam/prefix_allocation.h"
#include "apis/networking/network_interface.h"
#include "base/result.h"
#include "base/time.h"
#include "client/cache/informer.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "controller/ipam/range_book.h"
#include "controller/runner.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::controller {

class Ipam final : private Reconciler {
 public:
  // How often `status.used` of one Prefix is written at most.
  static constexpr Duration kPublishEvery = Duration::Seconds(1);
  // How often what could not be read is asked for, as long as there is any.
  static constexpr Duration kLookAtUnreadEvery = Duration::Seconds(5);

  // Everything outlives the controller.
  Ipam(rt::Loop& loop, client::Client& client, const meta::Scheme& scheme);

  // Runs until it is cancelled.
  rt::Task<Status> Run();
  bool idle() const { return is_synced() && runner_.queue().idle(); }
  // How well it keeps up.
  void Report(client::HealthReport& report) const {
    runner_.Report(report, prefixes_, allocations_, nics_, networks_);
    events_.Report(report);
  }

 private:
  using Again = Result<std::optional<Duration>>;
  // A Prefix that parts are taken from.
  struct Parent {
    std::string uid;
    RangeBook book;
    // By UID of the Prefix that asked for it, or of the PrefixAllocation if none did.
    std::map<std::string, meta::IpPrefix> parts;
    std::optional<Time> published;
  };
  // Why there is no part. Final: there never will be.
  struct Refusal {
    std::string reason;
    std::string message;
    bool is_final = false;
    bool operator==(const Refusal&) const = default;
  };
  // What a NetworkInterface wants to have made.
  struct Wanted {
    std::string name;
    std::string field;  // "spec.ips[0]", for people
    apis::ipam::PrefixTemplateSpec from;
  };

  static std::string QueueKey(const meta::KindInfo& kind, const client::ObjectKey& key);
  bool is_synced() const { return prefixes_.synced() && allocations_.synced() && nics_.synced(); }
  rt::Task<Again> Reconcile(std::string key) override;

  // ipam_unread.cc
  // Why nothing can be given out in the namespace; nullopt: everything in it is known.
  std::optional<Refusal> WhyUnknown(const std::string& namespace_name) const;
  // The key of the queue waits until its namespace is known, and what it is about says why.
  rt::Task<Again> Hold(std::string key, client::ObjectKey name, Refusal why);
  rt::Task<Status> LookAtUnread();
  void WakeHeld();

  void OnPrefix(const meta::Object* before, const meta::Object* now);
  void OnAllocation(const meta::Object* before, const meta::Object* now);
  void OnNic(const meta::Object* before, const meta::Object* now);

  // ipam_networks.cc
  void OnNetwork(const meta::Object* now);
  // One write in a Network's life: a state that somebody has written stays.
  rt::Task<Again> ReconcileNetwork(client::ObjectKey key);

  // ipam_allocations.cc
  rt::Task<Again> ReconcileAllocation(client::ObjectKey key);
  // Names the parent where the spec only selects it.
  rt::Task<Result<meta::Object>> NameParent(meta::Object object, std::string parent);
  rt::Task<Status> Grant(meta::Object object, meta::IpPrefix part);
  rt::Task<Status> Fail(meta::Object object, Refusal why);
  std::variant<std::string, Refusal> ChooseParent(const meta::Object& allocation);
  std::variant<meta::IpPrefix, Refusal> TakePart(const client::ObjectKey& parent,
                                                 const meta::Object& allocation);
  // The object waits until something in its namespace changes, and says why.
  void Wait(const meta::Object& allocation, const Refusal& why);
  // The Prefix that asks; null: none does, or it is not known.
  const meta::Object* AskerOf(const meta::Object& allocation) const;
  // The interface that the Prefix was made for; the same.
  const meta::Object* NicOf(const meta::Object& prefix) const;
  // Which addresses are of use to whoever asks.
  RangeBook::Suits SuitsOf(const meta::Object& allocation) const;
  static std::optional<client::EventSubject> MachineOf(const meta::Object& nic);
  void Tell(const meta::Object& allocation, const Refusal& why);
  // The interface shows it, if that is new.
  void NoteRefusal(const client::ObjectKey& prefix, const client::ObjectKey& nic, Refusal why);
  void WakeWaiting(const std::string& namespace_name);
  // Null, with the reason, if nothing can be taken from it now.
  Parent* ParentAt(const client::ObjectKey& key, Refusal& why);
  void Fill(Parent& parent, const client::ObjectKey& key);
  // Gives the part back unless somebody still holds it.
  void Drop(const client::ObjectKey& parent, const std::string& holder);
  bool IsHeld(const client::ObjectKey& parent, const std::string& holder) const;

  // ipam_prefixes.cc
  rt::Task<Again> ReconcilePrefix(client::ObjectKey key);
  rt::Task<Again> Release(meta::Object object);
  rt::Task<Again> Obtain(meta::Object object);
  rt::Task<Again> Publish(meta::Object object);
  rt::Task<Status> Ask(meta::Object object);
  bool MayGo(const meta::Object& prefix) const;

  // ipam_nics.cc
  static std::vector<Wanted> WantedBy(const meta::Object& nic);
  // Whether the Prefix is for an address of the interface, and not for a range that is routed to
  // it.
  static bool IsForAddress(const meta::Object& nic, const meta::Object& prefix);
  // Whether the interface asks for the Prefix, or still shows what it got from it.
  static bool IsNeeded(const meta::Object& nic, const meta::Object& prefix);
  rt::Task<Again> ReconcileNic(client::ObjectKey key);
  rt::Task<Status> MakePrefix(meta::Object nic, Wanted wanted);
  rt::Task<Status> PrunePrefixes(meta::Object nic, std::set<std::string> wanted);
  // The range of a Prefix that was made for the NetworkInterface; nullopt: not there yet.
  std::optional<meta::IpPrefix> RangeOf(const meta::Object& nic, const std::string& name) const;
  rt::Task<Status> ShowAddresses(meta::Object nic);
  // Why it has none, as a condition that is gone when it has them.
  rt::Task<Status> ShowRefusal(meta::Object nic, std::vector<Wanted> wanted);
  rt::Task<Status> SayWhy(meta::Object nic, Refusal why);

  rt::Loop& loop_;
  client::Client& client_;
  client::EventRecorder events_;
  client::Informer prefixes_;
  client::Informer allocations_;
  client::Informer nics_;
  client::Informer networks_;  // not waited for, and only their names
  std::map<client::ObjectKey, Parent> parents_;
  std::map<client::ObjectKey, size_t> parts_of_;  // allocations that name the Prefix
  // Prefixes and allocations by who asked for them.
  std::map<std::string, std::set<client::ObjectKey>> prefixes_of_nic_;  // by UID of the interface
  std::map<std::string, client::ObjectKey> allocation_of_;              // by UID of the Prefix
  std::map<std::string, client::ObjectKey> prefix_by_uid_;
  std::map<std::string, std::set<client::ObjectKey>> waiting_;  // allocations, by namespace
  // Why a Prefix that was made for an interface, or should be, has no range; gone when it has one.
  std::map<client::ObjectKey, Refusal> refusals_;
  std::map<std::string, std::set<std::string>> held_;  // keys of the queue, by namespace
  // Prefixes that are others', and the interface that waits for their end.
  std::map<client::ObjectKey, client::ObjectKey> in_the_way_;
  Runner runner_;
};

}  // namespace berth::controller
