// SPDX-License-Identifier: Apache-2.0
// pool fence, isolate and remove: hosts that are off, that are not trusted any
// more, that go.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "apis/core/loss_reasons.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/host_checks.h"
#include "cli/commands/host_volumes.h"
#include "cli/commands/pool_commands.h"
#include "cli/commands/pool_identity.h"
#include "cli/commands/pool_mode.h"
#include "cli/commands/pool_work.h"
#include "cli/commands/revocation.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/patience.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

// As gateway/rules/pool_plan.h has it: nothing is waited for on this host after a restore.
constexpr std::string_view kOffAnnotation = "berth.dev/off";

using meta::Value;

constexpr std::string_view kRecords = "/api/v1/namespaces/berth-system/configmaps";
constexpr std::array<std::string_view, 3> kPoolKinds = {"machinepool", "volumepool", "bucketpool"};
// A host whose certificate is revoked is cut off within a second; its pool says
// so after its grace.
constexpr Duration kCutLimit = Duration::Seconds(30);

struct KnownPool {
  Target target;
  Value object;
  std::string uid;
  std::string host;  // "" if none runs it in a session
};

Result<KnownPool> Know(Api& api, Target target) {
  KnownPool out;
  TRY(out.object, FetchObject(api, target.resource, "", target.name));
  out.uid = out.object.GetString({"metadata", "uid"});
  out.host = out.object.GetString({"spec", "hostRef", "name"});
  out.target = std::move(target);
  return out;
}

Result<std::vector<KnownPool>> KnowNamed(Session& session, const Arguments& arguments) {
  TRY(std::vector<Target> targets, FindPools(session, arguments.words()));
  TRY(Api * api, session.GetApi());
  std::vector<KnownPool> out;
  for (Target& target : targets) {
    TRY(KnownPool pool, Know(*api, std::move(target)));
    out.push_back(std::move(pool));
  }
  return out;
}

// All pools of these hosts, of every kind.
Result<std::vector<KnownPool>> PoolsOfHosts(Session& session, const std::set<std::string>& hosts) {
  TRY(Api * api, session.GetApi());
  TRY(Discovery * discovery, session.GetDiscovery());
  std::vector<KnownPool> out;
  for (const std::string_view kind : kPoolKinds) {
    const Result<Resource> resource = discovery->FindByWord(kind);
    if (!resource.ok()) continue;  // a server without that kind
    TRY(FetchedList list, FetchList(*api, *resource, {}));
    for (Value& object : list.items) {
      KnownPool pool;
      pool.host = object.GetString({"spec", "hostRef", "name"});
      if (!hosts.contains(pool.host)) continue;
      pool.uid = object.GetString({"metadata", "uid"});
      pool.target = {.resource = *resource,
                     .name = std::string(object.GetString({"metadata", "name"}))};
      pool.object = std::move(object);
      out.push_back(std::move(pool));
    }
  }
  return out;
}

std::set<std::string> HostsOf(const std::vector<KnownPool>& pools) {
  std::set<std::string> hosts;
  for (const KnownPool& pool : pools) {
    if (!pool.host.empty()) hosts.insert(pool.host);
  }
  return hosts;
}

std::string NamesOf(const std::vector<KnownPool>& pools) {
  std::vector<std::string> names;
  for (const KnownPool& pool : pools) names.push_back(LabelOf(pool.target));
  return Join(names, ", ");
}

bool IsReady(const Value& pool) {
  const Value* conditions = pool.Get({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  return std::ranges::any_of(conditions->items(), [](const Value& condition) {
    return condition.GetString({"type"}) == "Ready" && condition.GetString({"status"}) == "True";
  });
}

// ---- The host's identity

Status Revoke(Session& session, const std::string& host) {
  TRY_STATUS(EnterRevocation(session, "revoked-hosts", "host." + host));
  session.out() << fmt::format("host {}: its certificate is revoked\n", Printable(host));
  session.out().flush();
  return OkStatus();
}

// Without the record no certificate of the host is renewed, whenever it was
// issued.
Status ForgetHost(Api& api, const std::string& host) {
  const Status deleted =
      api.Delete(fmt::format("{}/host-{}", kRecords, host), Value::Object()).status();
  return deleted.Is(Reason::kNotFound) ? OkStatus() : deleted;
}

// ---- fence

Status LetGo(Api& api, const Resource& resource, const Value& object) {
  Value body = Value::Object();
  body.Set("uid", std::string(object.GetString({"metadata", "uid"})));
  const Value* epoch = object.Get({"status", "placement", "epoch"});
  body.Set("placement", epoch != nullptr && epoch->is_int() ? epoch->as_int() : int64_t{0});
  body.Set("proof", "OperatorFenced");
  body.Set("reason", apis::core::kReasonOperatorFenced);
  body.Set("message", "an operator has said that its host is off");
  return api
      .Delete(PathOf(resource,
                     object.GetString({"metadata", "namespace"}),
                     object.GetString({"metadata", "name"}),
                     "binding"),
              body)
      .status();
}

Status CheckFence(const KnownPool& pool) {
  if (pool.target.resource.kind != "MachinePool") {
    return Advise(
        BadRequest(fmt::format("{} holds data, which is nowhere else", LabelOf(pool.target))),
        "delete what is on it, if it is lost");
  }
  if (!IsReady(pool.object)) return OkStatus();
  return Advise(
      BadRequest(fmt::format("{} is ready: its host runs what is on it", LabelOf(pool.target))),
      ModeOf(pool.object) == PoolMode::kSession
          ? fmt::format("berth drain {} moves it off safely", pool.target.name)
          : std::string("turn the host off first; its poollet says so no more after a minute"));
}

Status FencePool(Session& session, const KnownPool& pool) {
  TRY(Api * api, session.GetApi());
  TRY_STATUS(Cordon(session, pool.target));
  TRY_STATUS(AnnotatePool(*api, pool.target, kOffAnnotation, Value("true")));
  // After the cordon nothing new comes: what is there now is all.
  TRY(const std::vector<Bound> all, FetchBound(session, pool.target, pool.object));
  Failures failures(session.environment());
  size_t count = 0;
  for (const Bound& bound : all) {
    for (const Value& object : bound.objects) {
      if (!IsPlaced(object)) {
        // The reference is the assignment, and whoever wrote it decides.
        failures.Add(Advise(BadRequest(fmt::format("{} names {} itself, and was not placed there",
                                                   ObjectLabel(object),
                                                   LabelOf(pool.target))),
                            "delete it, and create it again without that reference"));
        continue;
      }
      const Status let_go = LetGo(*api, bound.resource, object);
      if (let_go.Is(Reason::kNotFound)) continue;
      failures.Add(let_go);
      if (!let_go.ok()) continue;
      ++count;
      session.out() << ObjectLabel(object) << " let go\n";
      session.out().flush();
    }
  }
  session.out() << fmt::format("{} fenced: {} let go\n", LabelOf(pool.target), count);
  return failures.Outcome();
}

// What a fence may cost where the poollet comes back and stops nothing.
std::string LegacyRisk(const std::vector<KnownPool>& pools) {
  const bool any = std::ranges::any_of(
      pools, [](const KnownPool& pool) { return ModeOf(pool.object) != PoolMode::kSession; });
  if (!any) return {};
  return "A poollet that uses the API does not stop what was started elsewhere when it comes back: "
         "make sure that the host runs nothing any more before its poollet starts.\n";
}

Result<size_t> CountBound(Session& session, const std::vector<KnownPool>& pools) {
  size_t count = 0;
  for (const KnownPool& pool : pools) {
    TRY(const std::vector<Bound> all, FetchBound(session, pool.target, pool.object));
    // What is reserved runs nowhere.
    count += all.front().objects.size();
  }
  return count;
}

Status RunFence(Session& session, const Arguments& arguments) {
  TRY(const std::vector<KnownPool> pools, KnowNamed(session, arguments));
  for (const KnownPool& pool : pools) TRY_STATUS(CheckFence(pool));
  TRY(const size_t count, CountBound(session, pools));
  if (arguments.Switch("dry-run")) {
    session.out() << fmt::format("{} would be fenced: {} would be let go\n", NamesOf(pools), count);
    return OkStatus();
  }
  TRY_STATUS(Confirm(session,
                     arguments,
                     fmt::format("{}: you say that the host is off and stays off until it has "
                                 "spoken to the server again. {} on it will be started elsewhere. "
                                 "If the host still runs, the same machine runs twice and may "
                                 "destroy its volumes.\n",
                                 NamesOf(pools),
                                 count == 1 ? "1 machine" : fmt::format("{} machines", count)) +
                         LegacyRisk(pools)));
  Failures failures(session.environment());
  for (const KnownPool& pool : pools) failures.Add(FencePool(session, pool));
  return failures.Outcome();
}

// ---- isolate

// Namespaces and names of Secrets, with what they were sent for.
using SecretUses = std::map<std::pair<std::string, std::string>, std::set<std::string>>;

void NoteSecret(const Value& object,
                std::initializer_list<std::string_view> path,
                SecretUses& uses) {
  const std::string name(object.GetString(path));
  if (name.empty()) return;
  uses[{std::string(object.GetString({"metadata", "namespace"})), name}].insert(
      ObjectLabel(object));
}

void NoteSecretsOfVolume(const Value& volume, SecretUses& uses) {
  NoteSecret(volume, {"status", "access", "secretRef", "name"}, uses);
  NoteSecret(volume, {"spec", "encryption", "secretRef", "name"}, uses);
}

Status NoteSecretsOfMachine(Session& session, const Value& machine, SecretUses& uses) {
  NoteSecret(machine, {"spec", "ignitionRef", "name"}, uses);
  NoteSecret(machine, {"spec", "imagePullSecretRef", "name"}, uses);
  const Value* volumes = machine.Get({"spec", "volumes"});
  if (volumes == nullptr || !volumes->is_array()) return OkStatus();
  TRY(Api * api, session.GetApi());
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const Resource resource, discovery->FindByWord("volume"));
  const std::string space(machine.GetString({"metadata", "namespace"}));
  for (const Value& volume : volumes->items()) {
    const std::string name = VolumeNameOf(machine, volume);
    if (name.empty()) continue;
    const Result<Value> object = FetchObject(*api, resource, space, name);
    if (object.status().Is(Reason::kNotFound)) continue;
    TRY_STATUS(object);
    NoteSecretsOfVolume(*object, uses);
  }
  return OkStatus();
}

Result<SecretUses> SecretsOn(Session& session, const std::vector<KnownPool>& pools) {
  SecretUses uses;
  for (const KnownPool& pool : pools) {
    TRY(const std::vector<Bound> all, FetchBound(session, pool.target, pool.object));
    const Bound& bound = all.front();
    for (const Value& object : bound.objects) {
      if (bound.resource.kind == "Machine") {
        TRY_STATUS(NoteSecretsOfMachine(session, object, uses));
      } else {
        NoteSecretsOfVolume(object, uses);
        // Who makes the volume fetches its image; who only uses it does not.
        NoteSecret(object, {"spec", "imagePullSecretRef", "name"}, uses);
      }
    }
  }
  return uses;
}

void PrintSecrets(Session& session, const SecretUses& uses) {
  if (uses.empty()) {
    session.out() << "the host had been sent no secrets of what is on it\n";
    return;
  }
  session.out() << "the host had been sent these secrets; put new ones in their place:\n";
  TextTable table({"Namespace", "Secret", "For"});
  for (const auto& [secret, objects] : uses) {
    table.AddRow({secret.first,
                  secret.second,
                  Join(std::vector<std::string>(objects.begin(), objects.end()), ", ")});
  }
  session.out() << table.Flush();
}

Status AwaitCut(Session& session, const KnownPool& pool) {
  TRY(Api * api, session.GetApi());
  const ObjectAddress address{
      .resource = pool.target.resource, .namespace_ = "", .name = pool.target.name};
  const Patience patience(session.environment(), kCutLimit);
  const ObjectTest is_cut = [](const Value* now) -> Result<bool> {
    return now == nullptr || !IsReady(*now);
  };
  return AwaitObject(*api, address, is_cut, patience, "being cut off");
}

Result<std::vector<KnownPool>> PoolsToIsolate(Session& session, const Arguments& arguments) {
  TRY(const std::vector<KnownPool> named, KnowNamed(session, arguments));
  for (const KnownPool& pool : named) {
    if (!pool.host.empty()) continue;
    return Advise(
        BadRequest(fmt::format("{} is run by no host in a session", LabelOf(pool.target))),
        fmt::format("berth certificate revoke {} locks a poollet out that uses the API",
                    UserOf(pool.target)));
  }
  return PoolsOfHosts(session, HostsOf(named));
}

Status RunIsolate(Session& session, const Arguments& arguments) {
  TRY(const std::vector<KnownPool> pools, PoolsToIsolate(session, arguments));
  const std::set<std::string> hosts = HostsOf(pools);
  if (arguments.Switch("dry-run")) {
    TRY(const SecretUses uses, SecretsOn(session, pools));
    session.out() << fmt::format("{} would be cordoned and cut off\n", NamesOf(pools));
    PrintSecrets(session, uses);
    return OkStatus();
  }
  TRY_STATUS(Confirm(session,
                     arguments,
                     fmt::format("{}: the host loses its session and its "
                                 "certificate at once, and can come back "
                                 "only with a new token. What is on it stays "
                                 "bound to it and is not watched any "
                                 "more; what may be replaced or moved after a "
                                 "loss will be, by its own policy.\n",
                                 NamesOf(pools))));
  for (const KnownPool& pool : pools) TRY_STATUS(Cordon(session, pool.target));
  for (const std::string& host : hosts) TRY_STATUS(Revoke(session, host));
  TRY(const SecretUses uses, SecretsOn(session, pools));
  for (const KnownPool& pool : pools) {
    TRY_STATUS(AwaitCut(session, pool));
    session.out() << LabelOf(pool.target) << " isolated\n";
    session.out().flush();
  }
  PrintSecrets(session, uses);
  return OkStatus();
}

// ---- remove

// A host that keeps a pool would announce the others again: all of its pools
// go, or none.
Status CheckComplete(Session& session, const std::vector<KnownPool>& pools) {
  TRY(const std::vector<KnownPool> all, PoolsOfHosts(session, HostsOf(pools)));
  std::vector<KnownPool> missing;
  for (const KnownPool& pool : all) {
    const bool is_named = std::ranges::any_of(
        pools, [&pool](const KnownPool& named) { return named.uid == pool.uid; });
    if (!is_named) missing.push_back(pool);
  }
  if (missing.empty()) return OkStatus();
  return Advise(BadRequest(fmt::format("the same host also runs {}", NamesOf(missing))),
                "name them too: a host is removed as a whole");
}

// Data is not drained: whoever owns it has to let it go first.
Status CheckNoData(Session& session, const KnownPool& pool) {
  if (pool.target.resource.kind == "MachinePool") return OkStatus();
  TRY(const std::vector<Bound> all, FetchBound(session, pool.target, pool.object));
  const Bound& bound = all.front();
  if (bound.objects.empty()) return OkStatus();
  std::vector<std::string> held;
  for (const Value& object : bound.objects) held.push_back(NameOf(object));
  return Advise(BadRequest(fmt::format("{} holds {} {}: {}",
                                       LabelOf(pool.target),
                                       bound.objects.size(),
                                       bound.resource.plural,
                                       FirstOf(held))),
                fmt::format("delete the {} that nobody needs", bound.resource.plural));
}

Status Empty(Session& session,
             const Arguments& arguments,
             const KnownPool& pool,
             const Patience& patience) {
  if (pool.target.resource.kind != "MachinePool") return Cordon(session, pool.target);
  if (arguments.Switch("fence")) return FencePool(session, pool);
  // The host's pools of volumes are empty: nothing is tied to it by them.
  const DrainChoice choice{
      .local_disks = arguments.Switch("delete-local-data") ? LocalDisks::kLost : LocalDisks::kKept,
      .tied_machines = TiedMachines::kStopped};
  return DrainPool(session, pool.target, choice, patience);
}

Status DeletePool(Session& session, const KnownPool& pool, const Patience& patience) {
  TRY(Api * api, session.GetApi());
  const Status deleted =
      api->Delete(PathOf(pool.target.resource, "", pool.target.name), Value::Object()).status();
  if (!deleted.Is(Reason::kNotFound)) TRY_STATUS(deleted);
  const ObjectAddress address{
      .resource = pool.target.resource, .namespace_ = "", .name = pool.target.name};
  TRY_STATUS(AwaitGone(*api, address, pool.uid, patience));
  session.out() << LabelOf(pool.target) << " removed\n";
  session.out().flush();
  return OkStatus();
}

std::string RemovalRisk(const std::vector<KnownPool>& pools, bool is_fenced, size_t count) {
  std::vector<KnownPool> of_hosts;
  std::vector<KnownPool> others;
  for (const KnownPool& pool : pools) (pool.host.empty() ? others : of_hosts).push_back(pool);
  std::string text;
  if (!of_hosts.empty()) {
    text += fmt::format(
        "{}: the host leaves for good. Its certificate is revoked; it comes back only with a new "
        "token.\n",
        NamesOf(of_hosts));
  }
  if (!others.empty()) {
    text += fmt::format(
        "{}: the pool leaves for good. The certificates of a poollet that uses the API are "
        "revoked, and its wide rights are taken back; it comes back only with a new certificate.\n",
        NamesOf(others));
  }
  if (count == 0) return text;
  const std::string machines = count == 1 ? "1 machine" : fmt::format("{} machines", count);
  return text + (is_fenced
                     ? fmt::format("You say that it is off: {} on it will be started "
                                   "elsewhere. If it still runs, they run twice and may "
                                   "destroy their volumes.\n",
                                   machines) +
                           LegacyRisk(pools)
                     : fmt::format("{} on it will be stopped and started elsewhere.\n", machines));
}

Status RunRemove(Session& session, const Arguments& arguments) {
  TRY(const std::vector<KnownPool> pools, KnowNamed(session, arguments));
  TRY_STATUS(CheckComplete(session, pools));
  const bool is_fenced = arguments.Switch("fence");
  for (const KnownPool& pool : pools) {
    if (pool.host.empty()) TRY_STATUS(CheckRevocable(UserOf(pool.target)));
    TRY_STATUS(CheckNoData(session, pool));
    if (pool.target.resource.kind != "MachinePool") continue;
    TRY_STATUS(is_fenced ? CheckFence(pool) : CheckLeavable(session, pool.target, pool.object));
  }
  TRY(const size_t count, CountBound(session, pools));
  if (arguments.Switch("dry-run")) {
    session.out() << fmt::format("{} would be removed; {} would be {} first\n",
                                 NamesOf(pools),
                                 count == 1 ? "1 machine" : fmt::format("{} machines", count),
                                 is_fenced ? "let go" : "drained");
    return OkStatus();
  }
  TRY_STATUS(Confirm(session, arguments, RemovalRisk(pools, is_fenced, count)));
  TRY(Api * api, session.GetApi());
  const Patience patience(session.environment(), arguments.Span("timeout"));
  for (const KnownPool& pool : pools) TRY_STATUS(Empty(session, arguments, pool, patience));
  for (const std::string& host : HostsOf(pools)) {
    TRY_STATUS(Revoke(session, host));
    TRY_STATUS(ForgetHost(*api, host));
  }
  for (const KnownPool& pool : pools) {
    if (pool.host.empty()) TRY_STATUS(LockOut(session, pool.target));
  }
  for (const KnownPool& pool : pools) TRY_STATUS(DeletePool(session, pool, patience));
  return OkStatus();
}

constexpr Flag kYes = {.name = "yes", .help = "Do not ask: you know the risk."};
constexpr Flag kOnlyTell = {.name = "dry-run", .help = "Only say what would be done."};
constexpr std::array kRiskFlags = {kYes, kOnlyTell};
constexpr std::array kRemoveFlags = {
    Flag{.name = "fence",
         .help = "The host is off: what is on it is not stopped there but let go."},
    Flag{.name = "delete-local-data",
         .help = "Also machines with disks on their host, which are lost."},
    Flag{.name = "timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long to wait until the pools are empty and gone; 0 means "
                 "as long as it "
                 "takes.",
         .fallback = "0"},
    kYes,
    kOnlyTell,
};

}  // namespace

Command PoolFenceCommand() {
  return {.name = "fence",
          .usage = "POOL...",
          .summary = "Say that a host is off, so that its machines start elsewhere",
          .details =
              "For a host that is silent and that you have switched off "
              "yourself. The pool is "
              "cordoned, and every machine on it is let go and placed "
              "anew. Needs the right to "
              "fence the pool.",
          .examples = "berth pool fence rack1-07\nberth pool fence rack1-07 --dry-run",
          .flags = kRiskFlags,
          .run = &RunFence};
}

Command PoolIsolateCommand() {
  return {.name = "isolate",
          .usage = "POOL...",
          .summary = "Cut a host off that is not trusted any more",
          .details =
              "All pools of the host are cordoned, its session ends "
              "within a second and its "
              "certificate is void. What is bound to it stays bound. "
              "The secrets that it had been "
              "sent are listed, so that they can be replaced.",
          .examples = "berth pool isolate rack1-07 --yes",
          .flags = kRiskFlags,
          .run = &RunIsolate};
}

Command PoolRemoveCommand() {
  return {.name = "remove",
          .usage = "POOL...",
          .summary = "Take a host out for good",
          .details =
              "Cordons and drains its pools (or lets everything go with "
              "--fence, if it is off), "
              "revokes its certificate and deletes the pools. All pools of "
              "a host are removed "
              "together; a pool that holds volumes or buckets must be "
              "emptied first. Of a poollet that uses the API the certificates "
              "and wide rights go with its pool.",
          .examples =
              "berth pool remove machinepool/rack1-07 volumepool/rack1-07-disks\n"
              "berth pool remove rack1-07 --fence --yes",
          .flags = kRemoveFlags,
          .run = &RunRemove};
}

}  // namespace berth::cli
