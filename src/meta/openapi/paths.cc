// SPDX-License-Identifier: Apache-2.0
#include "meta/openapi/paths.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace berth::meta {
namespace {

struct Parameter {
  std::string_view name;
  std::string_view type;
  std::string_view doc;
};

constexpr Parameter kPretty[] = {{"pretty", "string", "True: indented output."}};
constexpr Parameter kWriteParameters[] = {
    {"dryRun", "string", "All: do everything except write."},
    {"fieldManager", "string", "Who writes."},
    {"fieldValidation", "string", "What becomes of unknown fields: Ignore, Warn or Strict."}};
constexpr Parameter kPatchParameters[] = {
    {"dryRun", "string", "All: do everything except write."},
    {"fieldManager", "string", "Who writes; an apply must say it."},
    {"fieldValidation", "string", "What becomes of unknown fields: Ignore, Warn or Strict."},
    {"force", "boolean", "Apply: take fields that others own and that are to be different."}};
constexpr Parameter kListParameters[] = {
    {"allowWatchBookmarks", "boolean", "Watch: say from time to time how far it is."},
    {"continue", "string", "The page after the one that gave this text."},
    {"fieldSelector", "string", "Only objects with these fields."},
    {"labelSelector", "string", "Only objects with these labels."},
    {"limit", "integer", "At most this many objects."},
    {"resourceVersion", "string", "Read at or after, or watch from, this version."},
    {"resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan."},
    {"timeoutSeconds", "integer", "Watch: how long."},
    {"watch", "boolean", "Follow changes instead of listing."}};
constexpr Parameter kDeleteParameters[] = {
    {"dryRun", "string", "All: do everything except write."},
    {"gracePeriodSeconds", "integer", "Seconds that the object may take to end."},
    {"propagationPolicy", "string", "Background, Foreground or Orphan."},
    {"force", "boolean", "Do not wait for the host that the object is bound to."}};

struct Verb {
  std::string_view method;
  std::string_view action;     // x-kubernetes-action
  std::string_view operation;  // first word of the operation's id
  std::span<const Parameter> parameters;
  std::string_view body;    // "": none, "kind": the kind, else a name below metav1
  std::string_view answer;  // "kind", "list", "string" or a name below metav1
};

constexpr Verb kCollection[] = {
    {"get", "list", "list", kListParameters, "", "list"},
    {"post", "post", "create", kWriteParameters, "kind", "kind"},
    {"delete", "deletecollection", "deleteCollection", kListParameters, "DeleteOptions", "Status"}};
constexpr Verb kListOnly[] = {{"get", "list", "list", kListParameters, "", "list"}};
constexpr Verb kCreateOnly[] = {{"post", "post", "create", kWriteParameters, "kind", "kind"}};
constexpr Verb kObject[] = {
    {"get", "get", "read", kPretty, "", "kind"},
    {"put", "put", "replace", kWriteParameters, "kind", "kind"},
    {"patch", "patch", "patch", kPatchParameters, "Patch", "kind"},
    {"delete", "delete", "delete", kDeleteParameters, "DeleteOptions", "Status"}};
constexpr Verb kSubresource[] = {{"get", "get", "read", kPretty, "", "kind"},
                                 {"put", "put", "replace", kWriteParameters, "kind", "kind"},
                                 {"patch", "patch", "patch", kPatchParameters, "Patch", "kind"}};

constexpr Verb kUsageVerbs[] = {{"get", "get", "read", {}, "", "Usage"}};
constexpr Verb kBindingVerbs[] = {{"post", "post", "create", {}, "Binding", "kind"},
                                  {"delete", "delete", "delete", {}, "Unbinding", "Status"}};

// Streams of a guest: WebSockets, but for the log, which is text.
constexpr Parameter kExecParameters[] = {{"command", "string", "What is to run, a word each time."},
                                         {"stdin", "boolean", "There is input."},
                                         {"stdout", "boolean", "Output is wanted."},
                                         {"stderr", "boolean", "Errors are wanted apart."},
                                         {"tty", "boolean", "On a terminal."}};
constexpr Parameter kLogParameters[] = {
    {"follow", "boolean", "Go on with what is still to come."},
    {"tailLines", "integer", "Only so many lines of what there is."}};
constexpr Parameter kPortParameters[] = {{"ports", "integer", "Port of the guest."}};
constexpr Verb kExecVerbs[] = {{"get", "connect", "connectGet", kExecParameters, "", "string"}};
constexpr Verb kConsoleVerbs[] = {{"get", "connect", "connectGet", {}, "", "string"}};
constexpr Verb kLogVerbs[] = {{"get", "get", "read", kLogParameters, "", "string"}};
constexpr Verb kPortVerbs[] = {{"get", "connect", "connectGet", kPortParameters, "", "string"}};

struct SubresourcePaths {
  std::string_view name;
  std::string_view suffix;  // of operation ids
  std::span<const Verb> verbs;
};
constexpr SubresourcePaths kSubresourcePaths[] = {{"binding", "Binding", kBindingVerbs},
                                                  {"console", "Console", kConsoleVerbs},
                                                  {"exec", "Exec", kExecVerbs},
                                                  {"log", "Log", kLogVerbs},
                                                  {"portforward", "Portforward", kPortVerbs},
                                                  {"usage", "Usage", kUsageVerbs}};

constexpr std::string_view kPatchTypes[] = {"application/json-patch+json",
                                            "application/merge-patch+json",
                                            "application/strategic-merge-patch+json",
                                            "application/apply-patch+yaml"};

// Builds the paths of one kind.
class PathBuilder {
 public:
  PathBuilder(const ServedGroup& served, const KindInfo& kind, OpenApiVersion version, Value& paths)
      : served_(served), kind_(kind), version_(version), refs_(version), paths_(paths) {}

  void Build() {
    const std::string root = served_.group.empty()
                                 ? "/api/" + served_.version
                                 : "/apis/" + served_.group + '/' + served_.version;
    const std::string plural(kind_.plural);
    const bool namespaced = kind_.scope == Scope::kNamespaced;
    const std::string scope = namespaced ? root + "/namespaces/{namespace}/" : root + '/';
    if (kind_.storage == Storage::kReview) {
      Add(scope + plural, kCreateOnly, "");
      return;
    }
    Add(scope + plural, kCollection, "");
    if (namespaced) Add(root + '/' + plural, kListOnly, "ForAllNamespaces");
    Add(scope + plural + "/{name}", kObject, "");
    if (kind_.has_status) Add(scope + plural + "/{name}/status", kSubresource, "Status");
    for (const SubresourcePaths& one : kSubresourcePaths) {
      if (std::ranges::find(kind_.subresources, one.name) == kind_.subresources.end()) continue;
      Add(scope + plural + "/{name}/" + std::string(one.name), one.verbs, one.suffix);
    }
  }

 private:
  void Add(const std::string& path, std::span<const Verb> verbs, std::string_view suffix) {
    Value item = Value::Object();
    for (const auto& verb : verbs) item.Set(verb.method, Operation(path, verb, suffix));
    std::vector<Value> parameters;
    for (const auto* name : {"namespace", "name"}) {
      if (path.find('{' + std::string(name) + '}') != std::string::npos)
        parameters.push_back(PathParameter(name));
    }
    if (!parameters.empty()) item.Set("parameters", Value::Array(std::move(parameters)));
    paths_.Set(path, std::move(item));
  }

  Value Operation(const std::string& path, const Verb& verb, std::string_view suffix) {
    Value operation = Value::Object();
    const bool scoped = path.find("{namespace}") != std::string::npos;
    std::string id(verb.operation);
    id += IdGroup();
    if (scoped) id += "Namespaced";
    id += kind_.kind;
    id += suffix;
    operation.Set("operationId", id);
    std::vector<Value> parameters;
    for (const auto& parameter : verb.parameters) parameters.push_back(QueryParameter(parameter));
    AddBody(verb, operation, parameters);
    operation.Set("parameters", Value::Array(std::move(parameters)));
    operation.Set("responses", Responses(verb));
    operation.Set("x-kubernetes-action", verb.action);
    operation.Set("x-kubernetes-group-version-kind",
                  GroupVersionKindValue(served_.group, served_.version, kind_.kind));
    return operation;
  }

  // "ComputeIroncoreDevV1alpha1": ids are unique over the whole document.
  std::string IdGroup() const {
    std::string text;
    bool upper = true;
    for (const char c :
         (served_.group.empty() ? std::string("core") : served_.group) + '.' + served_.version) {
      if (c == '.' || c == '-') {
        upper = true;
        continue;
      }
      text += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      upper = false;
    }
    return text;
  }

  Value TypeSchema(std::string_view type) const {
    Value schema = Value::Object();
    schema.Set("type", type);
    return schema;
  }

  Value PathParameter(std::string_view name) const {
    Value parameter = Value::Object();
    parameter.Set("name", name);
    parameter.Set("in", "path");
    parameter.Set("required", true);
    SetType("string", parameter);
    return parameter;
  }

  Value QueryParameter(const Parameter& described) const {
    Value parameter = Value::Object();
    parameter.Set("name", described.name);
    parameter.Set("in", "query");
    parameter.Set("description", described.doc);
    SetType(described.type, parameter);
    return parameter;
  }

  void SetType(std::string_view type, Value& parameter) const {
    if (version_ == OpenApiVersion::kV2) {
      parameter.Set("type", type);
      parameter.Set("uniqueItems", true);
    } else {
      parameter.Set("schema", TypeSchema(type));
    }
  }

  Value RefOf(std::string_view name) const {
    if (name == "string") return TypeSchema(name);
    if (name == "kind") return refs_.Ref(kind_.type->name);
    if (name == "list") return refs_.Ref(std::string(kind_.type->name) + "List");
    if (name.ends_with("inding") || name == "Usage") {
      return refs_.Ref("dev.berth.api.v1alpha1." + std::string(name));
    }
    return refs_.Ref("io.k8s.apimachinery.pkg.apis.meta.v1." + std::string(name));
  }

  Value Content(std::span<const std::string_view> media_types, const Value& schema) const {
    Value content = Value::Object();
    for (const auto media_type : media_types)
      content.Set(media_type, Value::Object()).Set("schema", schema);
    return content;
  }

  void AddBody(const Verb& verb, Value& operation, std::vector<Value>& parameters) const {
    if (verb.body.empty()) return;
    static constexpr std::string_view kJson[] = {"application/json"};
    const std::span<const std::string_view> types =
        verb.body == "Patch" ? std::span<const std::string_view>(kPatchTypes) : kJson;
    const bool required = verb.body != "DeleteOptions";
    if (version_ == OpenApiVersion::kV2) {
      Value body = Value::Object();
      body.Set("name", "body");
      body.Set("in", "body");
      if (required) body.Set("required", true);
      body.Set("schema", RefOf(verb.body));
      parameters.push_back(std::move(body));
      std::vector<Value> consumes;
      for (const auto type : types) consumes.emplace_back(type);
      operation.Set("consumes", Value::Array(std::move(consumes)));
      return;
    }
    Value body = Value::Object();
    body.Set("content", Content(types, RefOf(verb.body)));
    if (required) body.Set("required", true);
    operation.Set("requestBody", std::move(body));
  }

  Value Responses(const Verb& verb) const {
    static constexpr std::string_view kJson[] = {"application/json"};
    Value ok = Value::Object();
    ok.Set("description", "OK");
    if (version_ == OpenApiVersion::kV2) {
      ok.Set("schema", RefOf(verb.answer));
    } else {
      ok.Set("content", Content(kJson, RefOf(verb.answer)));
    }
    Value responses = Value::Object();
    responses.Set(verb.method == "post" ? "201" : "200", std::move(ok));
    return responses;
  }

  const ServedGroup& served_;
  const KindInfo& kind_;
  OpenApiVersion version_;
  SchemaSet refs_;  // only makes references
  Value& paths_;
};

}  // namespace

void AddPaths(const ServedGroup& served, OpenApiVersion version, Value& paths) {
  for (const KindInfo* kind : served.kinds) PathBuilder(served, *kind, version, paths).Build();
}

}  // namespace berth::meta
