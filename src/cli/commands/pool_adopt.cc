// SPDX-License-Identifier: Apache-2.0
// pool adopt: what a host runs and the server does not know becomes an object again.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/placement.h"
#include "cli/commands/pool_commands.h"
#include "cli/commands/pool_work.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/patience.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kAdoptAnnotation = "berth.dev/adopt";

struct Orphan {
  std::string kind;
  std::string namespace_;
  std::string name;
  std::string uid;
  std::string state;
};

Result<std::vector<Orphan>> FetchOrphans(Api& api, const Target& pool) {
  TRY(const Value usage, api.Get(PathOf(pool.resource, "", pool.name, "usage")));
  std::vector<Orphan> orphans;
  const Value* listed = usage.Get({"orphans"});
  if (listed == nullptr || !listed->is_array()) return orphans;
  for (const Value& one : listed->items()) {
    orphans.push_back({.kind = std::string(one.GetString({"kind"})),
                       .namespace_ = std::string(one.GetString({"namespace"})),
                       .name = std::string(one.GetString({"name"})),
                       .uid = std::string(one.GetString({"uid"})),
                       .state = std::string(one.GetString({"state"}))});
  }
  return orphans;
}

// Those that the command line names; all of them if it names none.
Result<std::vector<Orphan>> Chosen(std::vector<Orphan> orphans,
                                   const Target& pool,
                                   const std::vector<std::string>& uids) {
  if (uids.empty()) return orphans;
  std::vector<Orphan> chosen;
  for (const std::string& uid : uids) {
    const auto found = std::ranges::find(orphans, uid, &Orphan::uid);
    if (found == orphans.end()) {
      return Advise(NotFound(fmt::format("{} shows no orphan {}", LabelOf(pool), Quote(uid))),
                    fmt::format("berth pool adopt {} lists them", pool.name));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

void Show(Session& session, const std::vector<Orphan>& orphans) {
  TextTable table({"KIND", "NAMESPACE", "NAME", "UID", "STATE"});
  for (const Orphan& orphan : orphans) {
    table.AddRow({orphan.kind, orphan.namespace_, orphan.name, orphan.uid, orphan.state});
  }
  session.out() << table.Flush();
}

// That nothing is listed is not always that nothing is there.
Status SayThatNoneIsListed(Session& session, Api& api, const Target& pool) {
  TRY(const Value object, FetchObject(api, pool.resource, "", pool.name));
  const OrphansSaid said = OrphansSaidOf(object);
  switch (said.state) {
    case OrphansSaid::State::kNone:
      session.out() << LabelOf(pool) << " has nothing that the server does not know\n";
      return OkStatus();
    case OrphansSaid::State::kSome:
      session.out() << fmt::format("{} lists no orphans now; the last that was said of them: {}\n",
                                   LabelOf(pool),
                                   Printable(said.message));
      return OkStatus();
    case OrphansSaid::State::kUnknown: break;
  }
  return Advise(
      Unavailable(fmt::format(
          "{} lists no orphans, and may have some: {}", LabelOf(pool), Printable(said.message))),
      "adopt or purge those of the host's other pools first");
}

// "machinePoolRef" of "MachinePool".
std::string ReferenceTo(const Target& pool) {
  std::string field = pool.resource.kind + "Ref";
  field.front() = ToLower(field.substr(0, 1)).front();
  return field;
}

// The manifest as the object that takes the orphan over. What only the server writes is left out:
// manifests are often copies of objects.
void BecomeAdopter(Placement& placement, const Target& pool, const Orphan& orphan) {
  Value& object = placement.object;
  object.Remove("status");
  Value& metadata = *object.Find("metadata");
  for (const auto* field : {"uid", "resourceVersion", "creationTimestamp", "managedFields"}) {
    metadata.Remove(field);
  }
  if (metadata.Find("annotations") == nullptr) metadata.Set("annotations", Value::Object());
  metadata.Find("annotations")->Set(kAdoptAnnotation, orphan.uid);
  if (object.Find("spec") == nullptr) object.Set("spec", Value::Object());
  Value reference = Value::Object();
  reference.Set("name", pool.name);
  object.Find("spec")->Set(ReferenceTo(pool), std::move(reference));
}

// Until a pool has it: its host was asked, and keeps what runs.
Status AwaitBound(Api& api, const Placement& placement, const Patience& patience) {
  const ObjectAddress address{
      .resource = placement.resource, .namespace_ = placement.namespace_, .name = placement.name};
  const ObjectTest is_bound = [](const Value* now) -> Result<bool> {
    return now != nullptr && !now->GetString({"status", "placement", "poolUID"}).empty();
  };
  return Advise(AwaitObject(api, address, is_bound, patience, "its host to take it over"),
                fmt::format("it runs on, and waits; berth why {}/{} says for what",
                            placement.resource.singular,
                            placement.name));
}

class Adopting {
 public:
  Adopting(Session& session, const Arguments& arguments, Api& api, const Target& pool)
      : session_(session),
        arguments_(arguments),
        api_(api),
        pool_(pool),
        patience_(session.environment(), arguments.Span("timeout")) {}

  Status Adopt(Placement placement, const Orphan& orphan) {
    BecomeAdopter(placement, pool_, orphan);
    const bool is_dry = arguments_.Switch("dry-run");
    Api::Query query = {{"fieldManager", "berth"}};
    if (is_dry) query.emplace_back("dryRun", "All");
    const std::string path = PathOf(placement.resource, placement.namespace_);
    TRY(const Value created, api_.Post(path, placement.object, std::move(query)));
    if (!is_dry) TRY_STATUS(AwaitBound(api_, placement, patience_));
    session_.out() << fmt::format(
        "{} adopted{}\n", ObjectLabel(created), is_dry ? " (server dry run)" : "");
    return OkStatus();
  }

 private:
  Session& session_;
  const Arguments& arguments_;
  Api& api_;
  const Target& pool_;
  const Patience patience_;
};

Status RunAdopt(Session& session, const Arguments& arguments) {
  if (arguments.words().empty()) return BadRequest("no pool is named");
  TRY(const std::vector<Target> pools, FindPools(session, {arguments.words().front()}));
  const Target& pool = pools.front();
  TRY(Api * api, session.GetApi());
  TRY(std::vector<Orphan> all, FetchOrphans(*api, pool));
  const std::vector<std::string> uids(arguments.words().begin() + 1, arguments.words().end());
  TRY(std::vector<Orphan> orphans, Chosen(std::move(all), pool, uids));
  if (orphans.empty()) return SayThatNoneIsListed(session, *api, pool);
  if (arguments.List("filename").empty()) {
    Show(session, orphans);
    return OkStatus();
  }
  TRY(const std::vector<Manifest> manifests, ManifestsOf(session, arguments));
  Adopting adopting(session, arguments, *api, pool);
  Failures failures(session.environment());
  size_t described = 0;
  for (const Manifest& manifest : manifests) {
    TRY(Placement placement, PlaceManifest(session, manifest));
    const auto found = std::ranges::find_if(orphans, [&](const Orphan& orphan) {
      return orphan.kind == placement.resource.kind && orphan.name == placement.name &&
             orphan.namespace_ == placement.namespace_;
    });
    if (found == orphans.end()) continue;
    ++described;
    const Status status = adopting.Adopt(std::move(placement), *found);
    failures.Add(status.Wrap(manifest.source));
    orphans.erase(found);
  }
  if (described == 0) {
    return Advise(
        BadRequest(fmt::format(
            "no manifest describes any of the {} orphans of {}", orphans.size(), LabelOf(pool))),
        "kind, namespace and name must be those that the host knows");
  }
  for (const Orphan& orphan : orphans) {
    session.err() << fmt::format("{} {}/{} ({}) is not described, and is left alone\n",
                                 Printable(orphan.kind),
                                 Printable(orphan.namespace_),
                                 Printable(orphan.name),
                                 Printable(orphan.uid));
  }
  return failures.Outcome();
}

constexpr std::array kAdoptFlags = {
    flags::kFilename,
    flags::kRecursive,
    Flag{.name = "timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long to wait for the host; 0 means as long as it takes.",
         .fallback = "2m"},
    Flag{.name = "dry-run", .help = "Checked by the server and not kept."},
};

}  // namespace

Command PoolAdoptCommand() {
  return {
      .name = "adopt",
      .usage = "POOL [UID...] [-f FILE]",
      .summary = "Take over what a host runs and the server does not know",
      .details =
          "After a restore of an older backup hosts run things that the server has forgotten: "
          "they are left alone, and shown as orphans. Without -f this lists them. With -f each "
          "orphan that a manifest describes is created again under the UID that it has on its "
          "host, and goes on running there. The manifest must be the one that it was made with: "
          "the host makes what runs as the manifest says. Needs the verb adopt on the pool.",
      .examples =
          "berth pool adopt rack1-07\n"
          "berth pool adopt rack1-07 -f shop/ --dry-run\n"
          "berth pool adopt rack1-07 0b9f6a52-5d0e-4f5c-9f7e-0d8a6a3c1e11 -f web.yaml\n"
          "berth pool adopt volumepool/rack1-07-disks -f volumes.yaml",
      .flags = kAdoptFlags,
      .run = &RunAdopt};
}

}  // namespace berth::cli
