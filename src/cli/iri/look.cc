// SPDX-License-Identifier: Apache-2.0
// Commands that look at a runtime and change nothing.
#include <fmt/core.h>

#include <ostream>
#include <utility>

#include "base/strings.h"
#include "cli/failure.h"
#include "cli/iri/print.h"
#include "cli/iri/runs.h"
#include "cli/iri/runtime_link.h"
#include "cli/render/output.h"
#include "cli/render/text_table.h"

namespace berth::cli {

using iri::RuntimeKind;
using meta::Value;

namespace {

RuntimeSecrets SecretsOf(const Arguments& arguments) {
  return arguments.Switch("show-secrets") ? RuntimeSecrets::kShown : RuntimeSecrets::kHidden;
}

Result<iri::StringMap> LabelsOf(const Arguments& arguments) {
  iri::StringMap labels;
  for (const std::string& pair : arguments.List("label")) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return BadRequest("--label " + Quote(pair) + ": expected KEY=VALUE");
    }
    labels[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return labels;
}

Result<iri::ObjectFilter> FilterOf(const Arguments& arguments) {
  iri::ObjectFilter filter;
  if (arguments.words().size() > 1) return BadRequest("expected at most one ID");
  if (!arguments.words().empty()) filter.id = arguments.words().front();
  TRY(filter.labels, LabelsOf(arguments));
  return filter;
}

// A list as a table or as {"machines": [...]}. Asking for one id that is not there is an error.
template <class T>
Status ShowList(Session& session,
                const Arguments& arguments,
                std::string_view name,
                const std::vector<T>& objects,
                const std::string& table) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (objects.empty() && !arguments.words().empty()) {
    return NotFound(fmt::format(
        "the runtime has none of the {} with id {}", name, Quote(arguments.words().front())));
  }
  if (!format.is_table()) {
    Value all = Value::Object();
    all.Set(name, ListValue(objects, SecretsOf(arguments)));
    return PrintValue(session.environment(), format, all);
  }
  if (table.empty()) {
    session.err() << fmt::format("The runtime has no {}.\n", name);
  } else {
    session.out() << table;
  }
  return OkStatus();
}

WallTime NowOf(Session& session) { return session.environment().wall_now(); }

}  // namespace

Status RunMachines(Session& session, const Arguments& arguments) {
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  TRY(iri::ObjectFilter filter, FilterOf(arguments));
  TRY(const auto all, link->Await(link->client().machine().ListMachines(std::move(filter))));
  return ShowList(session, arguments, "machines", all, MachinesTable(all, NowOf(session)));
}

Status RunVolumes(Session& session, const Arguments& arguments) {
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kVolume));
  TRY(iri::ObjectFilter filter, FilterOf(arguments));
  TRY(const auto all, link->Await(link->client().volume().ListVolumes(std::move(filter))));
  return ShowList(session, arguments, "volumes", all, VolumesTable(all, NowOf(session)));
}

Status RunSnapshots(Session& session, const Arguments& arguments) {
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kVolume));
  TRY(iri::ObjectFilter filter, FilterOf(arguments));
  TRY(const auto all, link->Await(link->client().volume().ListVolumeSnapshots(std::move(filter))));
  return ShowList(session, arguments, "volumeSnapshots", all, SnapshotsTable(all, NowOf(session)));
}

Status RunBuckets(Session& session, const Arguments& arguments) {
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kBucket));
  TRY(iri::ObjectFilter filter, FilterOf(arguments));
  TRY(const auto all, link->Await(link->client().bucket().ListBuckets(std::move(filter))));
  return ShowList(session, arguments, "buckets", all, BucketsTable(all, NowOf(session)));
}

Status RunRuntimeEvents(Session& session, const Arguments& arguments) {
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  iri::EventFilter filter;
  TRY(iri::ObjectFilter objects, FilterOf(arguments));
  filter.id = std::move(objects.id);
  filter.labels = std::move(objects.labels);
  if (arguments.Given("since")) {
    filter.from = session.environment().wall_now() - arguments.Span("since");
  }
  TRY(const iri::Runtimes served, link->Await(link->client().Discover()));
  std::vector<iri::Event> all;
  const auto add = [&](Result<std::vector<iri::Event>> events) -> Status {
    if (!events.ok()) return events.status();
    all.insert(all.end(), events->begin(), events->end());
    return OkStatus();
  };
  if (served.machine != nullptr) TRY_STATUS(add(link->Await(served.machine->ListEvents(filter))));
  if (served.volume != nullptr) TRY_STATUS(add(link->Await(served.volume->ListEvents(filter))));
  if (served.bucket != nullptr) TRY_STATUS(add(link->Await(served.bucket->ListEvents(filter))));
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (!format.is_table()) {
    Value list = Value::Object();
    list.Set("events", ListValue(all, SecretsOf(arguments)));
    return PrintValue(session.environment(), format, list);
  }
  if (all.empty()) session.err() << "The runtime has no events.\n";
  session.out() << EventsTable(all, NowOf(session));
  return OkStatus();
}

Status RunRuntimeVersion(Session& session, const Arguments& arguments) {
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  TRY(const iri::Runtimes served, link->Await(link->client().Discover()));
  Value list = Value::Array();
  TextTable table({"Service", "Runtime", "Version"});
  const auto add = [&](std::string_view service, Result<iri::RuntimeVersion> version) -> Status {
    if (!version.ok()) return version.status();
    table.AddRow({std::string(service), version->runtime_name, version->runtime_version});
    Value one = Value::Object();
    one.Set("service", service);
    one.Set("runtimeName", version->runtime_name);
    one.Set("runtimeVersion", version->runtime_version);
    list.Append(std::move(one));
    return OkStatus();
  };
  if (served.machine != nullptr) {
    TRY_STATUS(add("machine.v1alpha1.MachineRuntime", link->Await(served.machine->Version())));
  }
  if (served.volume != nullptr) {
    TRY_STATUS(add("volume.v1alpha1.VolumeRuntime", link->Await(served.volume->Version())));
  }
  if (served.bucket != nullptr) {
    TRY_STATUS(add("bucket.v1alpha1.BucketRuntime", link->Await(served.bucket->Version())));
  }
  if (served.host != nullptr) {
    table.AddRow({"berth.iri.v1.HostRuntime", "", ""});
    Value one = Value::Object();
    one.Set("service", "berth.iri.v1.HostRuntime");
    list.Append(std::move(one));
  }
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (!format.is_table()) {
    Value all = Value::Object();
    all.Set("endpoint", "unix:" + link->path());
    all.Set("services", std::move(list));
    return PrintValue(session.environment(), format, all);
  }
  session.out() << table.Flush();
  if (served.host == nullptr) {
    session.out() << "No berth.iri.v1.HostRuntime: create is not idempotent, capacity is counted "
                     "per class.\n";
  }
  return OkStatus();
}

Status RunRuntimeStatus(Session& session, const Arguments& arguments) {
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  TRY(const iri::Runtimes served, link->Await(link->client().Discover()));
  Value all = Value::Object();
  TextTable table({"Kind", "Class", "Quantity", "Capabilities"});
  if (served.machine != nullptr) {
    TRY(const auto classes, link->Await(served.machine->ClassStatus()));
    all.Set("machineClassStatus", ListValue(classes, RuntimeSecrets::kHidden));
    for (const iri::MachineClassStatus& status : classes) {
      table.AddRow({"Machine",
                    status.machine_class.name,
                    std::to_string(status.quantity),
                    VectorText(ToResourceVector(status.machine_class))});
    }
  }
  if (served.volume != nullptr) {
    TRY(const auto classes, link->Await(served.volume->ClassStatus()));
    all.Set("volumeClassStatus", ListValue(classes, RuntimeSecrets::kHidden));
    for (const iri::VolumeClassStatus& status : classes) {
      table.AddRow(
          {"Volume",
           status.volume_class.name,
           AmountText(iri::kStorage, status.quantity),
           fmt::format("tps={}, iops={}", status.volume_class.tps, status.volume_class.iops)});
    }
  }
  if (served.bucket != nullptr) {
    TRY(const auto classes, link->Await(served.bucket->ListBucketClasses()));
    all.Set("bucketClasses", ListValue(classes, RuntimeSecrets::kHidden));
    for (const iri::BucketClass& offered : classes) {
      table.AddRow(
          {"Bucket", offered.name, "-", fmt::format("tps={}, iops={}", offered.tps, offered.iops)});
    }
  }
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (!format.is_table()) return PrintValue(session.environment(), format, all);
  session.out() << table.Flush();
  return OkStatus();
}

Status RunCapacity(Session& session, const Arguments& arguments) {
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  Result<iri::HostCapacity> capacity = link->Await(link->client().host().Capacity());
  if (capacity.status().Is(Reason::kMethodNotSupported)) {
    return Advise(
        Status(Reason::kMethodNotSupported, "this runtime does not tell the host's capacity"),
        "berth iri status shows how many of each class it takes");
  }
  if (!capacity.ok()) return capacity.status();
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (!format.is_table()) {
    return PrintValue(
        session.environment(), format, ValueOf(iri::ToJson(*capacity), RuntimeSecrets::kHidden));
  }
  session.out() << CapacityTable(*capacity);
  if (format.kind == OutputKind::kWide && !capacity->instances.empty()) {
    session.out() << "\n" << InstancesTable(*capacity);
  }
  return OkStatus();
}

Status RunRuntimeExec(Session& session, const Arguments& arguments) {
  if (arguments.words().size() != 1) return BadRequest("expected one ID of a machine");
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  TRY(const std::string url, link->Await(link->client().machine().Exec(arguments.words()[0])));
  session.out() << Printable(url) << '\n';
  return OkStatus();
}

namespace {

Status PrintChange(Session& session, const OutputFormat& format, const iri::Change& change) {
  if (!format.is_table()) {
    TRY_STATUS(PrintValue(
        session.environment(), format, ValueOf(iri::ToJson(change), RuntimeSecrets::kHidden)));
    if (format.kind == OutputKind::kYaml) session.out() << "---\n";
  } else if (change.type == iri::ChangeType::kResync) {
    session.out() << fmt::format("{:<8} {}\n", "Resync", Printable(change.cursor));
  } else {
    session.out() << fmt::format("{:<8} {} {} uid={} {}\n",
                                 ChangeTypeName(change.type),
                                 ObjectKindName(change.kind),
                                 Printable(change.id),
                                 Printable(change.uid),
                                 Printable(change.what));
  }
  session.out().flush();
  return OkStatus();
}

}  // namespace

Status RunWatchChanges(Session& session, const Arguments& arguments) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  TRY(const auto stream, link->Await(link->client().host().Watch(arguments.Text("cursor"))));
  const int64_t wanted = arguments.Number("changes");
  Status ended;
  for (int64_t told = 0; ended.ok() && (wanted == 0 || told < wanted); ++told) {
    Result<iri::Change> change = link->Await(stream->Next());
    ended = change.ok() ? PrintChange(session, format, *change) : change.status();
  }
  TRY_STATUS(link->Await(stream->Close()));
  return ended;
}

}  // namespace berth::cli
