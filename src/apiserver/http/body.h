// SPDX-License-Identifier: Apache-2.0
// Objects in and out of bodies: JSON, YAML or protobuf, checked against the kind that the path
// names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/http/negotiation.h"
#include "apiserver/http/query.h"
#include "base/result.h"
#include "meta/json.h"
#include "meta/object.h"
#include "meta/scheme.h"

namespace berth::apiserver {

// ?fieldValidation=Ignore|Warn|Strict; Warn if absent.
Result<meta::FieldValidation> ReadFieldValidation(const Query& query);

struct DecodeTarget {
  const meta::Scheme& scheme;
  const meta::KindInfo& kind;
  std::string api_version;  // as the path spells it
};

// BadRequest with a field path (protobuf: the byte) for what cannot be read, UnsupportedMediaType
// for protobuf of a kind that is not Kubernetes' own. An absent apiVersion or kind means the
// target's.
Result<meta::Object> DecodeObjectBody(std::string_view body,
                                      BodyForm form,
                                      meta::FieldValidation validation,
                                      const DecodeTarget& target,
                                      std::vector<std::string>& warnings);

// The same from a tree, after a patch.
Result<meta::Object> DecodeObjectValue(const meta::Value& value,
                                       meta::FieldValidation validation,
                                       const DecodeTarget& target,
                                       std::vector<std::string>& warnings);

// An empty list of managers asks the server to forget them; decoded, it looks as if there was none,
// so it becomes the other form of that wish, one empty entry.
void NoteReset(const meta::Value& sent, meta::Object& object);

// The other way: an object under an apiVersion, as a tree or appended as text.
meta::Value ObjectValue(const meta::Object& object, std::string_view api_version);
void AppendObjectText(const meta::Object& object, std::string_view api_version, std::string& out);

}  // namespace berth::apiserver
