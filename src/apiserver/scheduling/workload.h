// SPDX-License-Identifier: Apache-2.0
// A workload as its client describes it, and the Machine that it becomes. Pure.
//
// The machine's name is the instance id, so that the store itself keeps ids unique; what was asked
// for is remembered as a hash, so that asking again with the same content is told from asking for
// something else.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "client/client.h"
#include "meta/object.h"
#include "meta/scheme.h"

namespace berth::apiserver {

// Label of machines that were scheduled by the service; its value is the instance id.
inline constexpr std::string_view kInstanceIdLabel = "berth.dev/instance-id";
// Annotation: the hash of the content as it was last asked for.
inline constexpr std::string_view kInstanceContentAnnotation = "berth.dev/instance-content";

// 1 MiB of object and its escapes.
inline constexpr size_t kManifestBytesMax = 2 * 1024 * 1024;

// BadRequest names the field and what is wrong with it.
Status CheckInstanceKey(std::string_view namespace_, std::string_view instance_id);

// The machine of a manifest. BadRequest for text that is no Machine, has fields that are not known,
// another name or namespace, or the marks of the service.
// REQUIRES: CheckInstanceKey(key) is ok.
Result<meta::Object> ReadWorkload(const meta::Scheme& scheme,
                                  const client::ObjectKey& key,
                                  std::string_view manifest);

// Whether the machine was scheduled by the service under its name.
bool IsInstance(const meta::Object& machine);
// Hash of what was asked for, "" if it was never.
std::string_view ContentOf(const meta::Object& machine);

// The machine with the spec that is wanted now. Labels and annotations are added or set, those of
// others stay; so does its pool, unless the new content names one.
meta::Object Replaced(const meta::Object& current, const meta::Object& wanted);

}  // namespace berth::apiserver
