// SPDX-License-Identifier: Apache-2.0
// The users of a simulated world: they make machines, sets, volumes, buckets and reservations,
// edit, move, scale and delete them, cordon, taint and drain pools, each with a request to the
// server as a client would send it. One of them is the operator, who is there in calm times too.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "client/client.h"
#include "meta/object.h"
#include "rt/task.h"
#include "sim/world.h"

namespace berth::sim {

inline constexpr char kNamespace[] = "default";

// Whether it waits to show that something is placed: nobody else touches it.
inline bool IsProbe(const PlacedFact& fact) {
  return fact.key.name.starts_with("probe-") && fact.pool_uid.empty();
}

class Users {
 public:
  explicit Users(World& world) : world_(world), random_(world.seed() ^ 0x7573657273ULL) {}

  // Classes and sets; then everybody begins.
  void Begin();
  // Nobody asks for anything any more; what was cordoned or tainted is not any more. The operator
  // stays.
  void End();

  // Requests of others.
  void Edit(const std::string& uid);
  void Delete(const std::string& uid, client::Force force);
  void Cordon(const std::string& pool, bool is_cordoned);
  void DeletePool(const std::string& pool);
  // The host of the pool is off, and nothing of it runs.
  void SayOff(const std::string& pool);
  // A machine that any pool takes.
  void CreateProbe();
  // Takes everything off the pool's hands by force.
  void ForceEverythingFrom(const std::string& pool_uid);

 private:
  void Repeat(double per_minute, void (Users::*act)());
  void Create();
  void CreateMachine();
  void DeleteSome();
  void ForceSome();
  void EditSome();
  void CordonSome();
  void DrainSome();
  void MoveSome();
  void ScaleSome();
  void GroupUp();
  void CreateUrgent();
  void Reserve();
  void EndReservation();
  void CreateOrDeleteBucket();
  void TaintSome();
  // How many machines there are of that sort.
  size_t CountOf(const std::function<bool(const PlacedFact&)>& wanted) const;
  void DeleteRogue();
  void Operate();
  void Annotate(const std::string& pool, std::string_view annotation);
  // An effect of "" takes the taint away.
  void Taint(const std::string& pool, std::string_view effect);

  void Send(std::string_view what, rt::Task<Status> request);
  void Release(const PlacedFact& fact, std::string_view why);
  // One of those that are there, by chance; null if there is none.
  const PlacedFact* Pick(const std::function<bool(const PlacedFact&)>& wanted);
  const PoolFact* PickPool();
  size_t lone_machines() const;
  // Of the server that gets the next request.
  client::Client* client();
  rt::Task<Status> PatchObject(client::Client* client,
                               const meta::KindInfo* kind,
                               client::ObjectKey key,
                               std::string body,
                               client::Subresource subresource);
  rt::Task<Status> EditObject(client::Client* client,
                              std::string uid,
                              const meta::KindInfo* kind,
                              client::ObjectKey key,
                              std::string body);
  rt::Task<Status> DeleteObject(client::Client* client,
                                const meta::KindInfo* kind,
                                client::ObjectKey key,
                                client::DeleteOptions options);
  rt::Task<Status> CreateObjects(client::Client* client, std::vector<meta::Object> objects);
  rt::Task<Status> DeleteGroup(client::Client* client,
                               std::string group,
                               std::vector<client::ObjectKey> members);

  World& world_;
  Random random_;
  bool is_on_ = false;
  int last_name_ = 0;
  int64_t last_edit_ = 0;
  std::set<std::string> editing_;  // one edit of an object at a time
};

}  // namespace berth::sim
