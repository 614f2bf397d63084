// SPDX-License-Identifier: Apache-2.0
#include "controller/namespaces/namespace_deletion.h"

#include <algorithm>
#include <utility>

#include "apis/core/well_known.h"
#include "apis/k8s/namespace.h"
#include "rt/join_all.h"

namespace berth::controller {

namespace {

using apis::k8s::kNamespaceKind;
using apis::k8s::Namespace;
using apis::k8s::NamespaceCondition;

constexpr size_t kWorkers = 4;
// Deletions in flight at once; they share fsyncs.
constexpr size_t kPage = 64;
// What is kept by finalizers is looked at again after this.
constexpr Duration kLookAgain = Duration::Seconds(1);

std::string Counts(const std::map<std::string, size_t>& counts, std::string_view verb) {
  std::string text;
  for (const auto& [name, count] : counts) {
    if (!text.empty()) text += ", ";
    text += name + " " + std::string(verb) + " " + std::to_string(count) + " resource instances";
  }
  return text;
}

void SetCondition(Namespace& object,
                  std::string_view type,
                  std::string reason,
                  const std::string& message,
                  WallTime now) {
  auto& conditions = object.status.conditions;
  auto found = std::ranges::find(conditions, type, &NamespaceCondition::type);
  if (found == conditions.end()) {
    if (message.empty()) return;
    found = conditions.insert(conditions.end(), NamespaceCondition{.type = std::string(type)});
  }
  const std::string_view status = message.empty() ? "False" : "True";
  if (found->status != status) {
    found->status = status;
    found->last_transition_time = WallTime::FromSeconds(now.seconds());
  }
  found->reason = message.empty() ? "ContentRemoved" : std::move(reason);
  found->message = message;
}

}  // namespace

void NamespaceDeletion::Remains::Add(const std::string& resource,
                                     const meta::ObjectMeta& metadata) {
  ++by_resource[resource];
  for (const std::string& finalizer : metadata.finalizers) ++by_finalizer[finalizer];
}

NamespaceDeletion::NamespaceDeletion(rt::Loop& loop,
                                     client::Client& client,
                                     const meta::Scheme& scheme)
    : loop_(loop),
      client_(client),
      scheme_(scheme),
      runner_(loop, "namespace deletion", *this, kWorkers),
      namespaces_(loop, client, kNamespaceKind, [this](const auto*, const meta::Object* now) {
        if (now != nullptr && now->metadata().deletion_timestamp) {
          runner_.queue().Add(now->metadata().name);
        }
      }) {}

rt::Task<Status> NamespaceDeletion::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(namespaces_.Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

rt::Task<Result<std::optional<Duration>>> NamespaceDeletion::Reconcile(std::string name) {
  client::ObjectKey key{.namespace_ = "", .name = name};
  Result<meta::Object> object = co_await client_.Get(kNamespaceKind, std::move(key));
  if (object.status().Is(Reason::kNotFound)) co_return std::optional<Duration>();
  CO_TRY_STATUS(object);
  if (!object->metadata().deletion_timestamp) co_return std::optional<Duration>();
  const auto& finalizers = object->as<Namespace>().spec.finalizers;
  if (std::ranges::find(finalizers, apis::core::kNamespaceFinalizer) == finalizers.end()) {
    co_return std::optional<Duration>();
  }
  CO_TRY(Remains remains, co_await Empty(name));
  if (remains.empty()) {
    CO_TRY_STATUS(co_await LetGo(*std::move(object)));
    co_return std::optional<Duration>();
  }
  CO_TRY_STATUS(co_await Report(*std::move(object), std::move(remains)));
  co_return kLookAgain;
}

rt::Task<Result<NamespaceDeletion::Remains>> NamespaceDeletion::Empty(std::string name) {
  Remains remains;
  for (const meta::KindInfo* kind : scheme_.kinds()) {
    if (kind->scope != meta::Scope::kNamespaced || kind->view != nullptr ||
        kind->storage != meta::Storage::kStored) {
      continue;
    }
    const Status status = co_await EmptyOf(*kind, name, &remains);
    if (status.Is(Reason::kCancelled)) co_return status;
    // One kind that cannot be emptied does not keep the others.
    if (!status.ok()) remains.failures.push_back(std::string(status.message()));
  }
  co_return remains;
}

rt::Task<Status> NamespaceDeletion::EmptyOf(const meta::KindInfo& kind,
                                            std::string name,
                                            Remains* remains) {
  const std::string group = scheme_.GroupOf(kind);
  const std::string resource = std::string(kind.plural) + (group.empty() ? "" : "." + group);
  client::ListOptions options{.namespace_ = name,
                              .label_selector = "",
                              .field_selector = "",
                              .detail = client::Detail::kMetadata,
                              .limit = kPage,
                              .continue_token = "",
                              .resource_version = "",
                              .unreadable = client::Unreadable::kFail};
  do {
    CO_TRY(client::ObjectList page, co_await client_.List(kind, options));
    options.continue_token = page.continue_token;
    std::vector<rt::Task<Status>> deletions;
    std::vector<const meta::Object*> asked;
    for (const meta::Object& object : page.items) {
      const meta::ObjectMeta& metadata = object.metadata();
      if (!metadata.finalizers.empty()) remains->Add(resource, metadata);
      if (metadata.deletion_timestamp) continue;
      client::DeleteOptions request;
      request.uid = metadata.uid;
      deletions.push_back(client_.Delete(kind, client::KeyOf(object), std::move(request)));
      asked.push_back(&object);
    }
    const std::vector<Status> ends = co_await rt::JoinAll(std::move(deletions));
    for (size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].Is(Reason::kCancelled)) co_return ends[i];
      if (!ends[i].ok() && !ends[i].Is(Reason::kNotFound)) {
        if (asked[i]->metadata().finalizers.empty()) ++remains->by_resource[resource];
        remains->failures.push_back(std::string(ends[i].message()));
        continue;
      }
      if (!asked[i]->metadata().finalizers.empty()) continue;
      // What is in use got the finalizer that keeps it from this very deletion.
      const client::ObjectKey key = client::KeyOf(*asked[i]);
      const Result<meta::Object> kept = co_await client_.Get(kind, key);
      if (kept.ok()) remains->Add(resource, kept->metadata());
      if (!kept.ok() && !kept.status().Is(Reason::kNotFound)) co_return kept.status();
    }
  } while (!options.continue_token.empty());
  co_return OkStatus();
}

rt::Task<Status> NamespaceDeletion::Report(meta::Object object, Remains remains) {
  auto& space = object.as<Namespace>();
  const apis::k8s::NamespaceStatus before = space.status;
  const WallTime now = loop_.WallNow();
  space.status.phase = apis::k8s::kNamespaceTerminating;
  const std::string content = Counts(remains.by_resource, "has");
  SetCondition(space,
               "NamespaceContentRemaining",
               "SomeResourcesRemain",
               content.empty() ? "" : "Some resources are remaining: " + content,
               now);
  const std::string finalizers = Counts(remains.by_finalizer, "in");
  SetCondition(space,
               "NamespaceFinalizersRemaining",
               "SomeFinalizersRemain",
               finalizers.empty()
                   ? ""
                   : "Some content in the namespace has finalizers remaining: " + finalizers,
               now);
  SetCondition(space,
               "NamespaceDeletionContentFailure",
               "ContentDeletionFailed",
               remains.failures.empty() ? ""
                                        : "Failed to delete all resource types, " +
                                              std::to_string(remains.failures.size()) +
                                              " remaining: " + remains.failures.front(),
               now);
  if (space.status == before) co_return OkStatus();
  const client::WriteOptions options{.dry_run = client::DryRun::kNo,
                                     .subresource = client::Subresource::kStatus};
  const Result<meta::Object> written = co_await client_.Update(std::move(object), options);
  co_return written.status();
}

rt::Task<Status> NamespaceDeletion::LetGo(meta::Object object) {
  std::erase(object.as<Namespace>().spec.finalizers, apis::core::kNamespaceFinalizer);
  const client::WriteOptions options{.dry_run = client::DryRun::kNo,
                                     .subresource = client::Subresource::kFinalize};
  const Result<meta::Object> written = co_await client_.Update(std::move(object), options);
  co_return written.status().Is(Reason::kNotFound) ? OkStatus() : written.status();
}

}  // namespace berth::controller
