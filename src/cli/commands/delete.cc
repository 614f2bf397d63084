// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/patience.h"
#include "cli/session/session.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr Duration kSilence = Duration::Seconds(3);

Result<std::vector<ObjectAddress>> FindDoomed(Session& session, const Arguments& arguments) {
  if (arguments.List("filename").empty()) return ChosenByWords(session, arguments);
  TRY(std::vector<ObjectAddress> out, ChosenByFiles(session, arguments));
  // Backwards: what stands last usually depends on what stands first, such as its namespace.
  std::ranges::reverse(out);
  return out;
}

Result<Value> DeleteOptionsOf(const Arguments& arguments) {
  Value out = Value::Object();
  out.Set("apiVersion", "v1");
  out.Set("kind", "DeleteOptions");
  const std::string& cascade = arguments.Text("cascade");
  const bool orphan = cascade == "orphan" || cascade == "false";
  out.Set("propagationPolicy",
          orphan ? "Orphan" : (cascade == "foreground" ? "Foreground" : "Background"));
  if (arguments.Text("dry-run") == "server") {
    Value all = Value::Array();
    all.items().emplace_back("All");
    out.Set("dryRun", std::move(all));
  }
  return out;
}

std::string_view DryRunNote(const Arguments& arguments) {
  const std::string& mode = arguments.Text("dry-run");
  if (mode == "server") return " (server dry run)";
  return mode == "client" ? " (dry run)" : "";
}

// The server's answer is the object as it last was, or a Status that names it.
std::string UidOf(const Value& answer) {
  const std::string_view own = answer.GetString({"metadata", "uid"});
  return std::string(own.empty() ? answer.GetString({"details", "uid"}) : own);
}

class Deleter {
 public:
  Deleter(Session& session, Api& api, const Arguments& arguments)
      : session_(session), api_(api), arguments_(arguments) {}

  Status Delete(const ObjectAddress& doomed) {
    const std::string label = ObjectLabel(doomed.resource.ApiVersion(), doomed.resource.kind, "");
    std::string uid;
    if (arguments_.Text("dry-run") != "client") {
      TRY(const Value options, DeleteOptionsOf(arguments_));
      const Api::Query query =
          arguments_.Switch("force") ? Api::Query{{"force", "true"}} : Api::Query();
      TRY(const Value answer,
          api_.Delete(PathOf(doomed.resource, doomed.namespace_, doomed.name), options, query));
      uid = UidOf(answer);
    }
    if (arguments_.Text("output") == "name") {
      session_.out() << label << Printable(doomed.name) << "\n";
    } else {
      session_.out() << fmt::format("{} {} deleted{}\n",
                                    label.substr(0, label.size() - 1),
                                    Quote(doomed.name),
                                    DryRunNote(arguments_));
    }
    if (!uid.empty() && arguments_.Text("dry-run") == "none") waiting_.emplace_back(doomed, uid);
    return OkStatus();
  }

  // Until everything is really gone: finalizers may take their time.
  Status Wait() {
    Patience patience(session_.environment(), arguments_.Span("timeout"));
    for (const auto& [doomed, uid] : waiting_) TRY_STATUS(AwaitOne(doomed, uid, patience));
    return OkStatus();
  }

 private:
  // What is not gone soon is said, with the reason: nobody sits in front of a silent command.
  Status AwaitOne(const ObjectAddress& doomed, const std::string& uid, const Patience& patience) {
    if (const auto left = patience.left(); !left || *left > kSilence) {
      const Status soon = AwaitGone(api_, doomed, uid, Patience(session_.environment(), kSilence));
      if (!soon.Is(Reason::kTimeout)) return soon;
      SayWhy(doomed);
    }
    return AwaitGone(api_, doomed, uid, patience);
  }

  void SayWhy(const ObjectAddress& doomed) {
    const auto object = FetchObject(api_, doomed.resource, doomed.namespace_, doomed.name);
    if (!object.ok()) return;  // the wait goes on, and says what is wrong
    const std::string_view user =
        object->GetString({"metadata", "annotations", "berth.dev/used-by"});
    std::string why = user.empty() ? "" : fmt::format("it is used by {}", Printable(user));
    const Value* metadata = object->Find("metadata");
    const Value* finalizers = metadata == nullptr ? nullptr : metadata->Find("finalizers");
    if (why.empty() && finalizers != nullptr && finalizers->is_array()) {
      why = fmt::format("its finalizers are {}", Printable(meta::WriteJson(*finalizers)));
    }
    session_.err() << fmt::format("waiting for {}: {}\n", ObjectLabel(*object), why);
    session_.err().flush();
  }

  Session& session_;
  Api& api_;
  const Arguments& arguments_;
  std::vector<std::pair<ObjectAddress, std::string>> waiting_;
};

Status RunDelete(Session& session, const Arguments& arguments) {
  TRY(const std::vector<ObjectAddress> doomed, FindDoomed(session, arguments));
  if (doomed.empty()) {
    session.err() << "No resources found\n";
    return OkStatus();
  }
  if (arguments.Switch("force")) {
    session.err() << "Warning: --force does not wait for hosts. What is deleted may run on until "
                     "its host is back; be sure that the host is off before you reuse its volumes "
                     "and addresses.\n";
  }
  TRY(Api * api, session.GetApi());
  Deleter deleter(session, *api, arguments);
  Failures failures(session.environment());
  const bool selected = arguments.Switch("all") || !arguments.Text("selector").empty();
  for (const ObjectAddress& one : doomed) {
    const Status status = deleter.Delete(one);
    if (status.Is(Reason::kUnavailable)) return status;
    // What was found by a selector may be gone by now: that is what was wanted.
    const bool forgiven = arguments.Switch("ignore-not-found") || selected;
    if (!(status.Is(Reason::kNotFound) && forgiven)) failures.Add(status);
  }
  session.out().flush();
  if (arguments.Switch("wait")) failures.Add(deleter.Wait());
  return failures.Outcome();
}

constexpr std::array<std::string_view, 5> kCascades = {
    "background", "foreground", "orphan", "true", "false"};
constexpr std::array<std::string_view, 1> kFormats = {"name"};
constexpr std::array kFlags = {
    flags::kFilename,
    flags::kRecursive,
    flags::kSelector,
    flags::kFieldSelector,
    flags::kAll,
    flags::kAllNamespaces,
    Flag{.name = "cascade",
         .kind = FlagKind::kText,
         .value_name = "MODE",
         .help = "What becomes of the objects that belong to these.",
         .fallback = "background",
         .bare = "background",
         .values = kCascades},
    Flag{.name = "force",
         .help = "Do not wait for the host of what is bound to one; it is told when it is back."},
    Flag{.name = "wait", .help = "Return when the objects are gone.", .fallback = "true"},
    Flag{.name = "timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long to wait; 0 means as long as it takes.",
         .fallback = "0"},
    flags::kIgnoreNotFound,
    flags::kDryRun,
    Flag{.name = "output",
         .letter = 'o',
         .kind = FlagKind::kText,
         .value_name = "FORMAT",
         .help = "Print names only.",
         .values = kFormats},
};

}  // namespace

Command DeleteCommand() {
  return {.name = "delete",
          .group = "Change",
          .usage = "KIND NAME... | KIND/NAME... | -f FILE",
          .summary = "Delete objects and wait until they are gone",
          .examples =
              "berth delete machine web\n"
              "berth delete -f web.yaml\n"
              "berth delete machines -l app=web\n"
              "berth delete volume data --cascade=foreground --timeout=1m\n"
              "berth delete machine web --force",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunDelete};
}

}  // namespace berth::cli
