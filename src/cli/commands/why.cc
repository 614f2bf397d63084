// SPDX-License-Identifier: Apache-2.0
// why and fit: where something is or would be, and the reasons.
#include <fmt/core.h>

#include <array>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/placement.h"
#include "cli/commands/placement_answer.h"
#include "cli/commands/placement_commands.h"
#include "cli/commands/related_drafts.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/targets.h"
#include "cli/render/output.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

// Answers as they come, or all of them at the end as one document.
class Answers {
 public:
  Answers(Session& session, OutputFormat format) : session_(session), format_(std::move(format)) {}

  void Add(std::string_view label, Value review) {
    if (format_.is_table()) {
      session_.out() << (count_ == 0 ? "" : "\n") << PlacementText(label, review);
      session_.out().flush();
    } else {
      reviews_.push_back(std::move(review));
    }
    ++count_;
  }
  Status Finish() {
    if (format_.is_table() || reviews_.empty()) return OkStatus();
    const Value out =
        reviews_.size() == 1 ? std::move(reviews_.front()) : ListOf(std::move(reviews_));
    return PrintValue(session_.environment(), format_, out);
  }
  size_t count() const { return count_; }

 private:
  Session& session_;
  const OutputFormat format_;
  std::vector<Value> reviews_;
  size_t count_ = 0;
};

bool IsPlacedKind(std::string_view kind) {
  return kind == "Machine" || kind == "Volume" || kind == "VolumeSnapshot" || kind == "Bucket" ||
         kind == "Reservation";
}

Status WhyOne(Session& session, const ObjectAddress& address, Answers& answers) {
  if (!IsPlacedKind(address.resource.kind)) {
    return Advise(BadRequest(fmt::format("a {} has no place", address.resource.kind)),
                  "ask about a machine, a volume, a snapshot, a bucket or a reservation");
  }
  TRY(Api * api, session.GetApi());
  Value target = Value::Object();
  target.Set("apiVersion", address.resource.ApiVersion());
  target.Set("kind", address.resource.kind);
  target.Set("name", address.name);
  Value spec = Value::Object();
  spec.Set("objectRef", std::move(target));
  TRY(Value review, AskForPlacement(*api, address.namespace_, std::move(spec)));
  answers.Add(ObjectLabel(address.resource.ApiVersion(), address.resource.kind, address.name),
              std::move(review));
  return OkStatus();
}

// A word alone that is no kind is the name of a machine.
Result<std::vector<ObjectAddress>> ChosenForWhy(Session& session, const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words();
  if (words.size() != 1 || words[0].contains('/') || words[0].contains(',')) {
    return ChosenByWords(session, arguments);
  }
  TRY(Discovery * discovery, session.GetDiscovery());
  if (!discovery->FindByWord(words[0]).status().Is(Reason::kNotFound)) {
    return ChosenByWords(session, arguments);
  }
  TRY(const std::string space, session.Namespace());
  TRY(const std::vector<Target> machines, FindMachines(*discovery, words));
  return std::vector<ObjectAddress>{{machines[0].resource, space, machines[0].name}};
}

Status RunWhy(Session& session, const Arguments& arguments) {
  TRY(OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(const std::vector<ObjectAddress> addresses, ChosenForWhy(session, arguments));
  Answers answers(session, std::move(format));
  Failures failures(session.environment());
  for (const ObjectAddress& address : addresses) {
    failures.Add(WhyOne(session, address, answers));
  }
  TRY_STATUS(answers.Finish());
  return failures.Outcome();
}

// What in the files may decide about the place of something else in them. What cannot be placed is
// told when it is asked about itself.
RelatedDrafts FindRelated(Session& session, const std::vector<Manifest>& manifests) {
  RelatedDrafts related;
  for (const Manifest& manifest : manifests) {
    if (!RelatedDrafts::Matters(manifest.object.GetString({"kind"}))) continue;
    const Result<Placement> placement = PlaceManifest(session, manifest);
    if (placement.ok()) related.Add(*placement);
  }
  return related;
}

// Whether it fits, as far as it is a thing that is placed.
Result<bool> FitOne(Session& session,
                    const Arguments& arguments,
                    const Manifest& manifest,
                    const RelatedDrafts& drafts,
                    Answers& answers) {
  const std::string_view kind = manifest.object.GetString({"kind"});
  if (!IsPlacedKind(kind) && kind != "MachineSet" && kind != "MachineGroup") {
    session.err() << fmt::format("{} is left out: it has no place\n", ObjectLabel(manifest.object));
    return true;
  }
  TRY(Placement placement, PlaceManifest(session, manifest));
  TRY(Api * api, session.GetApi());
  const std::string label = ObjectLabel(placement.object);
  std::vector<Value> related = drafts.Of(placement);
  Value spec = Value::Object();
  spec.Set("object", std::move(placement.object));
  if (!related.empty()) spec.Set("related", Value::Array(std::move(related)));
  if (arguments.Given("copies")) spec.Set("copies", arguments.Number("copies"));
  TRY(Value review, AskForPlacement(*api, placement.namespace_, std::move(spec)));
  const std::string_view verdict = VerdictOf(review);
  const bool fits = verdict == "Fits" || verdict == "NotNeeded";
  answers.Add(label, std::move(review));
  return fits;
}

Status RunFit(Session& session, const Arguments& arguments) {
  TRY(OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (arguments.List("filename").empty()) {
    return Advise(BadRequest("nothing to place is given"), "berth fit -f FILE");
  }
  TRY(const std::vector<Manifest> manifests, ManifestsOf(session, arguments));
  const RelatedDrafts related = FindRelated(session, manifests);
  Answers answers(session, std::move(format));
  Failures failures(session.environment());
  bool all_fit = true;
  for (const Manifest& manifest : manifests) {
    const Result<bool> fits = FitOne(session, arguments, manifest, related, answers);
    failures.Add(fits.status().Wrap(manifest.source));
    all_fit = all_fit && (!fits.ok() || *fits);
  }
  TRY_STATUS(answers.Finish());
  TRY_STATUS(failures.Outcome());
  if (answers.count() == 0) {
    return Advise(BadRequest("nothing in there is placed"),
                  "give a Machine, a Volume, a Bucket, a MachineSet or a MachineGroup");
  }
  return all_fit ? OkStatus() : FailQuietly();
}

constexpr std::array<std::string_view, 2> kForms = {"json", "yaml"};
constexpr Flag kReviewOutput = {.name = "output",
                                .letter = 'o',
                                .kind = FlagKind::kText,
                                .value_name = "FORMAT",
                                .help = "json or yaml: the whole answer.",
                                .values = kForms};
constexpr std::array kWhyFlags = {
    kReviewOutput, flags::kSelector, flags::kFieldSelector, flags::kAll, flags::kAllNamespaces};
constexpr std::array kFitFlags = {
    flags::kFilename,
    flags::kRecursive,
    Flag{.name = "copies",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "Up to how many copies are counted; 1000 unless said otherwise."},
    kReviewOutput,
};

}  // namespace

Command WhyCommand() {
  return {
      .name = "why",
      .group = "Look",
      .usage = "KIND NAME... | KIND/NAME... | MACHINE",
      .summary = "Show why something is on its pool, or on none",
      .details =
          "For a machine, a volume, a snapshot, a bucket or a reservation: how many pools which "
          "rule keeps out, what is missing on the nearest one, and the pools that would take it, "
          "ranked. Of something "
          "that has a place, all of this is as if it had none. Nothing is moved.",
      .examples =
          "berth why web\n"
          "berth why volume/data bucket/logs -n shop\n"
          "berth why machine/web -o yaml",
      .flags = kWhyFlags,
      .words = Completion::kKindAndNames,
      .run = &RunWhy};
}

Command FitCommand() {
  return {
      .name = "fit",
      .group = "Look",
      .usage = "-f FILE",
      .summary = "Show where something would be placed, and how many of it fit",
      .details =
          "For every Machine, Volume, VolumeSnapshot, Bucket, Reservation, MachineSet and "
          "MachineGroup in the manifests. Volumes, snapshots, reservations and machine classes of "
          "the same manifests count for whoever names them. Of a group all members, those of the "
          "manifests and those that exist, have to fit at once; everything else is judged by "
          "itself. Nothing is created and no room is held. Ends with 1 if something does not fit.",
      .examples =
          "berth fit -f web.yaml\n"
          "berth get machine web -o yaml | berth fit -f -\n"
          "berth fit -f set.yaml --copies 5000 -o json",
      .flags = kFitFlags,
      .run = &RunFit};
}

}  // namespace berth::cli
