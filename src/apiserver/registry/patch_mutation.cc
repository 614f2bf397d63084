// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/patch_mutation.h"

#include <utility>

#include "meta/json.h"
#include "meta/patch/patch.h"
#include "meta/value.h"

namespace berth::apiserver {

namespace {

Result<meta::Value> Apply(client::PatchType type,
                          const meta::Value& current,
                          const meta::Value& patch,
                          const meta::TypeInfo& described) {
  switch (type) {
    case client::PatchType::kJson: return meta::ApplyJsonPatch(current, patch);
    case client::PatchType::kMerge: return meta::ApplyMergePatch(current, patch);
    case client::PatchType::kStrategicMerge:
      return meta::ApplyStrategicMergePatch(current, patch, described);
  }
  return BadRequest("unknown type of patch");
}

}  // namespace

Result<Mutation> MakePatch(const meta::Scheme& scheme,
                           const meta::KindInfo& kind,
                           client::PatchType type,
                           const std::string& body) {
  TRY(meta::Value patch, meta::ParseJson(body));
  std::string api_version = scheme.ApiVersionOf(kind);
  return Mutation([&scheme, &kind, type, api_version, patch = std::move(patch)](
                      const meta::Object& current) -> Result<meta::Object> {
    meta::Value tree = meta::ToValue(*kind.type, current.data());
    tree.Set("apiVersion", api_version);
    tree.Set("kind", kind.kind);
    TRY(const meta::Value patched, Apply(type, tree, patch, *kind.type));
    meta::Object next(kind);
    meta::TypeMeta is;
    meta::DecodeOptions options;
    options.type_meta = &is;
    TRY_STATUS(meta::FromValue(patched, *kind.type, next.data(), options));
    if (is.kind != kind.kind || scheme.CanonicalApiVersion(is.api_version) != api_version) {
      return BadRequest("a patch may not change apiVersion or kind");
    }
    return next;
  });
}

}  // namespace berth::apiserver
