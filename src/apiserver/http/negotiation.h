// SPDX-License-Identifier: Apache-2.0
// Which form an answer takes (Accept) and which form a body has (Content-Type).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::apiserver {

// What a read answers with. Tables and partial metadata are what kubectl's `get` and metadata
// clients ask for.
enum class Shape : uint8_t { kObject, kTable, kPartialMetadata };

struct AcceptedForm {
  Shape shape = Shape::kObject;
  std::string meta_version = "v1";  // of meta.k8s.io: v1 or v1beta1
};

// The first form in the client's list that we have. NotAcceptable if there is none; an absent
// header accepts all.
Result<AcceptedForm> NegotiateAccept(std::string_view accept);

// Which version of apidiscovery.k8s.io an Accept header asks for, in front of plain JSON: "v2",
// "v2beta1", or "" for discovery document by document.
std::string AcceptedDiscovery(std::string_view accept);

// Whether a list is asked for as one of usages (apis/meta_v1/usage.h), in front of everything else.
bool AsksForUsages(std::string_view accept);

// kProtobuf is Kubernetes' own, which only the kinds of Kubernetes have.
enum class BodyForm : uint8_t { kJson, kYaml, kProtobuf };
// UnsupportedMediaType names what was sent and what is served.
Result<BodyForm> NegotiateBody(std::string_view content_type);

enum class PatchForm : uint8_t { kJsonPatch, kMergePatch, kStrategicMergePatch, kApply };
Result<PatchForm> NegotiatePatch(std::string_view content_type);

// "application/json; charset=utf-8" without its parameters, in lower case.
std::string MediaType(std::string_view content_type);
// True if an Accept header lists exactly this media type (parameters ignored).
bool Accepts(std::string_view accept, std::string_view media_type);

}  // namespace berth::apiserver
