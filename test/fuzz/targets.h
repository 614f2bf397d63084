// SPDX-License-Identifier: Apache-2.0
// What reads bytes from outside, one function each: it takes anything and never fails, but it
// checks what must be true of what was read. libFuzzer looks for bytes that break it
// (scripts/fuzz), and the tests replay what it ever found (corpus/NAME).
#pragma once

#include <span>
#include <string_view>

namespace berth::fuzz {

void Json(std::string_view bytes);
void Yaml(std::string_view bytes);
void Protobuf(std::string_view bytes);
void Quantity(std::string_view bytes);
void Selector(std::string_view bytes);
void Patch(std::string_view bytes);
void Apply(std::string_view bytes);
void Http(std::string_view bytes);
void Frames(std::string_view bytes);
void WebSocket(std::string_view bytes);
void AtRest(std::string_view bytes);
void Backup(std::string_view bytes);
void Continue(std::string_view bytes);
void Session(std::string_view bytes);

struct Target {
  std::string_view name;  // also of its folder in corpus/
  void (*run)(std::string_view bytes);
};
std::span<const Target> AllTargets();
// Null if there is none of that name.
const Target* FindTarget(std::string_view name);

}  // namespace berth::fuzz
