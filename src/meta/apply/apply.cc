// SPDX-License-Identifier: Apache-2.0
#include "meta/apply/apply.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace berth::meta {

namespace {

// What is beyond this many is counted, not told.
constexpr size_t kConflictsTold = 100;

// "kubectl-edit" with subresource "status" using v1
std::string ManagerText(const ManagerId& id, std::string_view api_version) {
  std::string text = Quote(id.name);
  if (!id.subresource.empty()) text += " with subresource " + Quote(id.subresource);
  if (id.operation == ManagerOperation::kUpdate) text += " using " + std::string(api_version);
  return text;
}

class ConflictList {
 public:
  explicit ConflictList(std::string_view api_version) : api_version_(api_version) {}

  bool empty() const { return count_ == 0; }

  void Add(const ManagerId& manager, const FieldSet& fields) {
    fields.ForEach([&](const PathElements& path) {
      if (++count_ > kConflictsTold) return;
      by_manager_[ManagerText(manager, api_version_)].push_back(PathText(path));
    });
  }

  Status ToStatus() const {
    std::vector<Cause> causes;
    std::string text;
    for (const auto& [manager, paths] : by_manager_) {
      if (count_ > 1) text += (text.empty() ? "" : "\n") + ("conflicts with " + manager + ":");
      for (const std::string& path : paths) {
        text += count_ > 1 ? "\n- " + path : "conflict with " + manager + ": " + path;
        causes.push_back(
            {.kind = CauseKind::kDuplicate, .field = path, .message = "conflict with " + manager});
      }
    }
    if (count_ > kConflictsTold) text += "\n- and more";
    return Status(Reason::kConflict,
                  "Apply failed with " + std::to_string(count_) +
                      (count_ == 1 ? " conflict: " : " conflicts: ") + text,
                  std::move(causes));
  }

 private:
  std::string_view api_version_;
  size_t count_ = 0;
  std::map<std::string, std::vector<std::string>> by_manager_;
};

FieldSet AllOwned(const Managers& managers) {
  FieldSet all;
  for (const auto& [id, managed] : managers) all.Unite(managed.fields);
  return all;
}

Status CheckRoom(const Managers& managers) {
  const auto appliers = std::ranges::count_if(managers, [](const auto& entry) {
    return entry.first.operation == ManagerOperation::kApply;
  });
  if (static_cast<size_t>(appliers) <= kMaxApplyManagers) return OkStatus();
  return Status(Reason::kRequestTooLarge,
                "metadata.managedFields: more than " + std::to_string(kMaxApplyManagers) +
                    " managers apply this object");
}

}  // namespace

Result<Applied> Apply(const Application& application,
                      const Value& live,
                      const Value& configuration,
                      Managers managers) {
  const TypeInfo& type = *application.type;
  const ManagerId self{.name = application.manager,
                       .operation = ManagerOperation::kApply,
                       .subresource = application.subresource};
  TRY(FieldSet stated, FieldsOf(type, configuration));
  DropUnowned(application.subresource, stated);
  const auto known = managers.find(self);
  const ManagedFields last = known == managers.end() ? ManagedFields{} : known->second;
  managers[self] = {.fields = stated, .time = application.now};
  TRY_STATUS(CheckRoom(managers));

  Applied applied;
  applied.tree = Merge(type, live, configuration);
  Prune(type, last.fields, AllOwned(managers), applied.tree);

  const Differences differences =
      OwnableDifferences(type, application.subresource, live, applied.tree);
  ConflictList conflicts(application.api_version);
  for (auto at = managers.begin(); at != managers.end();) {
    if (at->first == self) {
      ++at;
      continue;
    }
    FieldSet& fields = at->second.fields;
    FieldSet disputed = fields.Intersection(differences.modified);
    disputed.Subtract(application.takeover);
    conflicts.Add(at->first, disputed);
    fields.Subtract(differences.modified);
    fields.Subtract(differences.added);
    fields.Subtract(differences.removed);
    at = fields.empty() ? managers.erase(at) : std::next(at);
  }
  if (application.conflicts == Conflicts::kRefused && !conflicts.empty()) {
    return conflicts.ToStatus();
  }
  if (differences.empty() && last.fields == stated) managers[self].time = last.time;
  if (stated.empty()) managers.erase(self);
  applied.managers = std::move(managers);
  return applied;
}

}  // namespace berth::meta
