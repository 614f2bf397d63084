// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/domain_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

namespace berth::runtime {
namespace {

std::string_view Between(std::string_view text, std::string_view begin, std::string_view end) {
  const size_t from = text.find(begin);
  if (from == std::string_view::npos) return {};
  text.remove_prefix(from + begin.size());
  const size_t to = text.find(end);
  return to == std::string_view::npos ? std::string_view() : text.substr(0, to);
}

// The values of an attribute in all elements with this beginning; libvirt quotes with ', we with ".
void Collect(std::string_view xml,
             std::string_view element,
             std::string_view attribute,
             std::set<std::string>& found) {
  for (size_t at = xml.find(element); at != std::string_view::npos;
       at = xml.find(element, at + 1)) {
    const std::string_view tag = xml.substr(at, xml.find('>', at) - at);
    const size_t value = tag.find(attribute);
    if (value == std::string_view::npos) continue;
    const std::string_view quoted = tag.substr(value + attribute.size());
    if (quoted.empty()) continue;
    const size_t end = quoted.find(quoted.front(), 1);
    if (end != std::string_view::npos) found.emplace(quoted.substr(1, end - 1));
  }
}

// All elements with this beginning and end.
std::vector<std::string_view> Elements(std::string_view xml,
                                       std::string_view begin,
                                       std::string_view end) {
  std::vector<std::string_view> found;
  for (size_t at = xml.find(begin); at != std::string_view::npos; at = xml.find(begin, at)) {
    const size_t to = xml.find(end, at);
    if (to == std::string_view::npos) break;
    found.push_back(xml.substr(at, to + end.size() - at));
    at = to;
  }
  return found;
}

std::vector<std::string_view> Disks(std::string_view xml) {
  return Elements(xml, "<disk ", "</disk>");
}

std::string PlainText(std::string_view xml) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kNames = {
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};
  std::string text;
  while (!xml.empty()) {
    const auto* const name =
        std::ranges::find_if(kNames, [xml](const auto& one) { return xml.starts_with(one.first); });
    text += name == kNames.end() ? xml.front() : name->second;
    xml.remove_prefix(name == kNames.end() ? 1 : name->first.size());
  }
  return text;
}

}  // namespace

std::string DomainNameIn(std::string_view xml) {
  return std::string(Between(xml, "<name>", "</name>"));
}

std::string UuidIn(std::string_view xml) { return std::string(Between(xml, "<uuid>", "</uuid>")); }

DeviceElements DevicesIn(std::string_view xml) {
  DeviceElements found;
  for (const std::string_view disk : Disks(xml)) {
    std::set<std::string> targets;
    Collect(disk, "<target ", "dev=", targets);
    for (const std::string& target : targets) {
      if (target.starts_with("vd")) found.emplace(target, disk);
    }
  }
  for (const std::string_view interface : Elements(xml, "<interface ", "</interface>")) {
    std::set<std::string> addresses;
    Collect(interface, "<mac ", "address=", addresses);
    for (const std::string& address : addresses) found.emplace(address, interface);
  }
  return found;
}

bool IsOwnDevice(std::string_view element) {
  if (element.starts_with("<disk ")) return element.find("<serial>") != std::string_view::npos;
  std::set<std::string> managed;
  Collect(element, "<target ", "managed=", managed);
  return managed.contains("no");
}

std::string DeviceOfFile(std::string_view xml, std::string_view path) {
  for (const std::string_view disk : Disks(xml)) {
    std::set<std::string> sources;
    Collect(disk, "<source ", "file=", sources);
    const bool is_it = std::ranges::any_of(
        sources, [path](const std::string& source) { return PlainText(source) == path; });
    std::set<std::string> devices;
    Collect(disk, "<target ", "dev=", devices);
    if (is_it && devices.size() == 1) return *devices.begin();
  }
  return {};
}

std::string BackupTargetIn(std::string_view xml) {
  std::set<std::string> targets;
  Collect(xml, "<target ", "file=", targets);
  return targets.size() == 1 ? PlainText(*targets.begin()) : std::string();
}

std::string_view MetadataIn(std::string_view xml) {
  const size_t begin = xml.find("<berth:machine");
  const size_t end = xml.find("</berth:machine>");
  if (begin == std::string_view::npos || end == std::string_view::npos) return {};
  constexpr std::string_view kEnd = "</berth:machine>";
  return xml.substr(begin, end + kEnd.size() - begin);
}

}  // namespace berth::runtime
