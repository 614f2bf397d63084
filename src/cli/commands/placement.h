// SPDX-License-Identifier: Apache-2.0
// A Placement is a manifest with the place it goes to: its resource and namespace are known.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/api/resource.h"
#include "cli/arguments.h"
#include "cli/objects/manifest.h"
#include "cli/session/session.h"
#include "meta/value.h"

namespace berth::cli {

struct Placement {
  Resource resource;
  std::string namespace_;  // "" for cluster-scoped kinds
  std::string name;        // "" with generateName
  meta::Value object;      // with metadata.namespace filled in
};

// BadRequest if the manifest names another namespace than -n.
Result<Placement> PlaceManifest(Session& session, const Manifest& manifest);

// Creates the object and prints it as --output says. Reads the flags dry-run, output and
// field-manager.
Status CreateObject(Session& session, const Arguments& arguments, Placement placement);

// "machine.compute.ironcore.dev/web created (server dry run)", or the object if -o asks for it.
Status PrintOutcome(Session& session,
                    const Arguments& arguments,
                    const meta::Value& object,
                    std::string_view outcome);

// --validate as the server's fieldValidation: Strict, Warn, Ignore.
std::string FieldValidationOf(const Arguments& arguments);

// The query parameters of a write: fieldManager, and dryRun if the server shall only try.
Api::Query WriteQuery(const Arguments& arguments);

}  // namespace berth::cli
