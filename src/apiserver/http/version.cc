// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/version.h"

#include "base/version.h"

namespace berth::apiserver {

meta::Value VersionDocument() {
  meta::Value document = meta::Value::Object();
  document.Set("major", "1");
  document.Set("minor", "32");
  // Semantic versioning with build metadata: kubectl parses it, people see what it is.
  document.Set("gitVersion", "v1.32.0+berth-" + std::string(kVersion));
  document.Set("gitCommit", "");
  document.Set("gitTreeState", "clean");
  document.Set("buildDate", "1970-01-01T00:00:00Z");
  document.Set("goVersion", "none");
  document.Set("compiler", kCompiler);
  document.Set("platform", "linux/amd64");
  return document;
}

}  // namespace berth::apiserver
