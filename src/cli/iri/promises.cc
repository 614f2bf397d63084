// SPDX-License-Identifier: Apache-2.0
// What a host keeps beyond its objects: room that is reserved, and leases that guests live under.
#include <fmt/core.h>

#include <algorithm>
#include <ostream>
#include <span>
#include <utility>

#include "base/strings.h"
#include "cli/failure.h"
#include "cli/iri/print.h"
#include "cli/iri/runs.h"
#include "cli/iri/runtime_link.h"
#include "cli/render/output.h"
#include "meta/quantity.h"

namespace berth::cli {

using iri::RuntimeKind;
using meta::Value;

namespace {

// Every addition of Berth's that is missing has the same next step.
template <class T>
Result<T> OfHost(Result<T> answer, std::string_view what) {
  if (!answer.status().Is(Reason::kMethodNotSupported)) return answer;
  return Advise(
      Status(Reason::kMethodNotSupported, fmt::format("this runtime keeps no {}", what)),
      "berth iri version shows what it serves: berth.iri.v1.HostRuntime is Berth's addition");
}

Result<std::vector<iri::Reservation>> Reservations(RuntimeLink& link) {
  return OfHost(link.Await(link.client().host().ListReservations()), "reservations");
}

// "cpu=2" and "memory=4Gi".
Result<iri::ResourceVector> ResourcesOf(std::span<const std::string> words) {
  iri::ResourceVector resources;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return BadRequest(Quote(word) + ": expected RESOURCE=AMOUNT, as cpu=2 or memory=4Gi");
    }
    const std::string name = word.substr(0, equals);
    const Result<meta::Quantity> amount = meta::Quantity::Parse(word.substr(equals + 1));
    if (!amount.ok()) return amount.status().Wrap(name);
    if (amount->Sign() <= 0) return BadRequest(Quote(word) + ": expected an amount above 0");
    const bool is_new =
        resources.emplace(name, name == iri::kCpu ? amount->MilliValue() : amount->Value()).second;
    if (!is_new) return BadRequest(name + " is given twice");
  }
  return resources;
}

}  // namespace

Status RunReservations(Session& session, const Arguments& arguments) {
  if (!arguments.words().empty()) return BadRequest("expected no words");
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  TRY(const std::vector<iri::Reservation> all, Reservations(*link));
  if (!format.is_table()) {
    Value list = Value::Object();
    list.Set("reservations", ListValue(all, RuntimeSecrets::kHidden));
    return PrintValue(session.environment(), format, list);
  }
  if (all.empty()) session.err() << "The runtime has no reservations.\n";
  session.out() << ReservationsTable(all);
  return OkStatus();
}

Status RunReserve(Session& session, const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words();
  if (words.size() < 2) {
    return Advise(BadRequest("expected ID and at least one RESOURCE=AMOUNT"),
                  "berth iri reserve r-1 cpu=2 memory=4Gi");
  }
  iri::Reservation wanted;
  wanted.id = words.front();
  wanted.machine_uid = arguments.Text("machine-uid");
  TRY(wanted.resources, ResourcesOf(std::span(words).subspan(1)));
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  TRY(std::vector<iri::Reservation> all, Reservations(*link));
  std::erase_if(all, [&](const iri::Reservation& one) { return one.id == wanted.id; });
  const std::string text = fmt::format(
      "{} reserved as {}\n", Printable(VectorText(wanted.resources)), Printable(wanted.id));
  all.push_back(std::move(wanted));
  TRY_STATUS(link->Await(link->client().host().SetReservations(std::move(all))));
  session.out() << text;
  return OkStatus();
}

Status RunUnreserve(Session& session, const Arguments& arguments) {
  const std::vector<std::string>& ids = arguments.words();
  if (ids.empty()) {
    return Advise(BadRequest("expected the ID of a reservation"),
                  "berth iri reservations lists them");
  }
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  TRY(std::vector<iri::Reservation> all, Reservations(*link));
  for (const std::string& id : ids) {
    const size_t gone =
        std::erase_if(all, [&](const iri::Reservation& one) { return one.id == id; });
    if (gone == 0) return NotFound("the runtime has no reservation with id " + Quote(id));
  }
  TRY_STATUS(link->Await(link->client().host().SetReservations(std::move(all))));
  for (const std::string& id : ids) {
    session.out() << fmt::format("reservation {} given up\n", Printable(id));
  }
  return OkStatus();
}

namespace {

Value ValueOfLease(const iri::LeaseState& lease, Time now) {
  Value one = Value::Object();
  one.Set("machineUid", lease.machine_uid);
  one.Set("leftMs", std::max((lease.deadline - now).millis(), int64_t{0}));
  one.Set("fenced", lease.fenced);
  return one;
}

}  // namespace

Status RunLeases(Session& session, const Arguments& arguments) {
  if (!arguments.words().empty()) return BadRequest("expected no words");
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  // A renewal of nothing changes nothing and is answered with all that there are.
  TRY(const std::vector<iri::LeaseState> all,
      OfHost(link->Await(link->client().host().RenewLease({})), "leases"));
  if (!format.is_table()) {
    Value list = Value::Array();
    for (const iri::LeaseState& lease : all) list.Append(ValueOfLease(lease, link->now()));
    Value leases = Value::Object();
    leases.Set("leases", std::move(list));
    return PrintValue(session.environment(), format, leases);
  }
  if (all.empty()) session.err() << "No machine of the runtime is under a lease.\n";
  session.out() << LeasesTable(all, link->now());
  return OkStatus();
}

Status RunLease(Session& session, const Arguments& arguments) {
  const std::vector<std::string>& uids = arguments.words();
  const bool is_release = arguments.Switch("release");
  if (uids.empty() || is_release == arguments.Given("for")) {
    return Advise(BadRequest("expected UIDs of machines, and either --for TIME or --release"),
                  "berth iri machines shows the UIDs");
  }
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  iri::LeaseRenewal renewal;
  if (is_release) {
    renewal.released_uids = uids;
  } else {
    renewal.machine_uids = uids;
    renewal.deadline = link->now() + arguments.Span("for");
  }
  TRY_STATUS(OfHost(link->Await(link->client().host().RenewLease(std::move(renewal))), "leases"));
  for (const std::string& uid : uids) {
    session.out() << fmt::format(
        "machine {} {}\n",
        Printable(uid),
        is_release ? "is under no lease"
                   : "lives for " + FormatAge(arguments.Span("for")) + " unless it is renewed");
  }
  return OkStatus();
}

}  // namespace berth::cli
