// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/in_use.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/core/well_known.h"
#include "apis/k8s/secret.h"
#include "apis/networking/network.h"
#include "apis/networking/network_interface.h"
#include "apis/object_references.h"
#include "apis/storage/volume.h"
#include "apiserver/cache/keys.h"
#include "apiserver/registry/write_parts.h"
#include "meta/at_rest.h"

namespace berth::apiserver {
namespace {

using apis::compute::kMachineKind;
using apis::k8s::kSecretKind;
using apis::networking::kNetworkInterfaceKind;
using apis::networking::kNetworkKind;
using apis::storage::kVolumeKind;

std::string NameOf(const meta::Object& user) {
  return std::string(user.kind().singular) + " " + user.metadata().name;
}

// The machine that has claimed the part and uses it; "" if there is none.
std::string ClaimantOf(const WatchCache& cache, const meta::Object& part) {
  const auto claim = apis::ClaimOf(part);
  if (!claim || claim->uid.empty()) return {};
  const ObjectKey key{.namespace_ = part.metadata().namespace_, .name = claim->name};
  // It may run, and use it.
  if (cache.Of(kMachineKind).FindAside(KeySuffix(key)) != nullptr) return "machine " + claim->name;
  const auto machine = CacheSource(cache).Find(kMachineKind, key);
  if (!machine || machine->metadata().uid != claim->uid) return {};
  if (apis::IsGone(machine->metadata()) || !apis::NamesPart(*machine, part)) return {};
  return NameOf(*machine);
}

// The volume that is being made as a copy of this one; "" if there is none.
std::string CopyOf(const WatchCache& cache, const meta::Object& volume) {
  const ObjectKey key{.namespace_ = volume.metadata().namespace_, .name = volume.metadata().name};
  const KindCache& volumes = cache.Of(kVolumeKind);
  for (const std::string& suffix : volumes.CopiesOf(KeySuffix(key))) {
    const Result<meta::Object> copy = Decode(kVolumeKind, *volumes.Find(suffix));
    if (!copy.ok()) continue;
    if (apis::storage::IsBeingCopiedFrom(copy->as<apis::storage::Volume>(), key.name)) {
      return NameOf(*copy);
    }
  }
  return {};
}

// Kinds that name a secret, and the field selector that finds them.
struct SecretUser {
  const meta::KindInfo& kind;
  std::string_view selector;
  std::string (*secret)(const meta::Object& user);
};
const SecretUser kSecretUsers[] = {
    {kMachineKind,
     "spec.ignitionRef.name",
     [](const meta::Object& user) {
       const auto& ignition = user.as<apis::compute::Machine>().spec.ignition_ref;
       return ignition ? ignition->name : std::string();
     }},
    {kMachineKind,
     "spec.imagePullSecretRef.name",
     [](const meta::Object& user) {
       const auto& pull = user.as<apis::compute::Machine>().spec.image_pull_secret_ref;
       return pull ? pull->name : std::string();
     }},
    {kVolumeKind,
     "spec.imagePullSecretRef.name",
     [](const meta::Object& user) {
       const auto& pull = user.as<apis::storage::Volume>().spec.image_pull_secret_ref;
       return pull ? pull->name : std::string();
     }},
    {kVolumeKind,
     "spec.encryption.secretRef.name",
     [](const meta::Object& user) {
       const auto& encryption = user.as<apis::storage::Volume>().spec.encryption;
       return encryption ? encryption->secret_ref.name : std::string();
     }},
};

bool UsesSecret(const SecretUser& rule, const meta::Object& user, const std::string& secret) {
  return rule.secret(user) == secret && !apis::IsGone(user.metadata());
}

// The first object of the namespace for which `judge` says who uses what is asked for. Only those
// are decoded whose selector has the value, or that were written before there was that selector.
std::string FindUser(const WatchCache& cache,
                     const meta::KindInfo& kind,
                     std::string_view selector,
                     const meta::ObjectMeta& used,
                     const std::function<std::string(const meta::Object&)>& judge) {
  const auto index = static_cast<size_t>(std::ranges::find(kind.field_selectors, selector) -
                                         kind.field_selectors.begin());
  const KindCache::Objects& all = cache.Of(kind).objects();
  const std::string scope = used.namespace_ + '/';
  for (auto at = all.lower_bound(scope); at != all.end() && at->first.starts_with(scope); ++at) {
    const Result<meta::AtRestView> view = meta::AtRestView::Parse(at->second.at_rest.view());
    if (!view.ok()) continue;
    const std::string_view value = view->FieldValue(index);
    const bool is_older = value.data() == nullptr;
    if (!is_older && value != used.name) continue;
    const Result<meta::Object> object = Decode(kind, at->second);
    if (!object.ok()) continue;
    if (std::string user = judge(*object); !user.empty()) return user;
  }
  return {};
}

std::string NetworkUserOf(const WatchCache& cache, const meta::Object& network) {
  return FindUser(cache,
                  kNetworkInterfaceKind,
                  "spec.networkRef.name",
                  network.metadata(),
                  [&](const meta::Object& object) -> std::string {
                    const auto& spec = object.as<apis::networking::NetworkInterface>().spec;
                    if (spec.network_ref.name != network.metadata().name) return {};
                    return ClaimantOf(cache, object);
                  });
}

// The gateway makes one for each volume with something secret about its access. They go with their
// volumes, many at a time, and nobody else names them.
bool IsAccessSecret(const meta::ObjectMeta& secret) {
  return std::ranges::any_of(secret.owner_references, [&](const auto& owner) {
    return secret.name == "access-" + owner.uid;
  });
}

std::string SecretUserOf(const WatchCache& cache, const meta::Object& secret) {
  const meta::ObjectMeta& metadata = secret.metadata();
  if (IsAccessSecret(metadata)) return {};
  // Who used it the last time most probably still does: a secret that waits is looked at often.
  const auto last = metadata.annotations.find(std::string(apis::core::kUsedByAnnotation));
  for (const SecretUser& rule : kSecretUsers) {
    const std::string prefix = std::string(rule.kind.singular) + " ";
    if (last == metadata.annotations.end() || !last->second.starts_with(prefix)) continue;
    const auto user = CacheSource(cache).Find(
        rule.kind, {.namespace_ = metadata.namespace_, .name = last->second.substr(prefix.size())});
    if (user && UsesSecret(rule, *user, metadata.name)) return last->second;
  }
  for (const SecretUser& rule : kSecretUsers) {
    const auto judge = [&](const meta::Object& user) {
      return UsesSecret(rule, user, metadata.name) ? NameOf(user) : std::string();
    };
    std::string user = FindUser(cache, rule.kind, rule.selector, metadata, judge);
    if (!user.empty()) return user;
  }
  return {};
}

}  // namespace

bool IsKeptWhileUsed(const meta::KindInfo& kind) {
  return &kind == &kVolumeKind || &kind == &kNetworkInterfaceKind || &kind == &kNetworkKind ||
         &kind == &kSecretKind;
}

std::string UserOf(const WatchCache& cache, const meta::Object& object) {
  if (&object.kind() == &kNetworkKind) return NetworkUserOf(cache, object);
  if (&object.kind() == &kSecretKind) return SecretUserOf(cache, object);
  std::string user = ClaimantOf(cache, object);
  if (user.empty() && &object.kind() == &kVolumeKind) user = CopyOf(cache, object);
  return user;
}

void MarkUsed(meta::Object& object, const std::string& user) {
  const std::string used_by(apis::core::kUsedByAnnotation);
  const std::string finalizer(apis::InUseFinalizer(object.kind()));
  meta::ObjectMeta& metadata = object.metadata();
  if (user.empty()) {
    std::erase(metadata.finalizers, finalizer);
    metadata.annotations.erase(used_by);
    return;
  }
  metadata.annotations[used_by] = user;
  if (std::ranges::find(metadata.finalizers, finalizer) == metadata.finalizers.end()) {
    metadata.finalizers.push_back(finalizer);
  }
}

}  // namespace berth::apiserver
