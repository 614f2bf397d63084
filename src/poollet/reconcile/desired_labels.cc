// SPDX-License-Identifier: Apache-2.0
#include "poollet/reconcile/desired_labels.h"

#include <fmt/core.h>

#include "iri/labels.h"

namespace berth::poollet {
namespace {

// Names are labels of DNS: whatever has to be escaped is somebody's mistake, and stays a text.
std::string JsonText(std::string_view text) {
  constexpr char kFirstPrintable = 0x20;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c >= 0 && c < kFirstPrintable) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Member(std::string_view key, std::string_view value) {
  return JsonText(key) + ":" + JsonText(value);
}

}  // namespace

std::string RawNicLabels(const ObjectName& nic) {
  return "{" + Member(iri::kNicNameLabel, nic.name) + "," +
         Member(iri::kNicNamespaceLabel, nic.namespace_) + "," +
         Member(iri::kNicUidLabel, nic.uid) + "}";
}

std::string RawNetworkLabels(const ObjectName& network) {
  return "{" + Member(iri::kNetworkNameLabel, network.name) + "," +
         Member(iri::kNetworkNamespaceLabel, network.namespace_) + "," +
         Member(iri::kNetworkUidLabel, network.uid) + "}";
}

std::string RawVolumeLabels(const ObjectName& volume) {
  return "{" + Member(iri::kConnectionVolumeNameLabel, volume.name) + "," +
         Member(iri::kConnectionVolumeNamespaceLabel, volume.namespace_) + "," +
         Member(iri::kConnectionVolumeUidLabel, volume.uid) + "}";
}

std::string NicMapping(const std::map<std::string, ObjectName, std::less<>>& nics) {
  std::string out;
  for (const auto& [name, nic] : nics) {
    out += (out.empty() ? "" : ",") + JsonText(name) + ":{" + Member("name", nic.name) + "," +
           Member("uid", nic.uid) + "}";
  }
  return "{" + out + "}";
}

}  // namespace berth::poollet
