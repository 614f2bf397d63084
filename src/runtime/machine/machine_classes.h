// SPDX-License-Identifier: Apache-2.0
// The classes that a machine runtime offers, from a file:
//
//   classes:
//   - name: small
//     capabilities: {cpu: 1, memory: 1Gi}   # whole cores, bytes; anything else that counts
//     firmware: bios                        # or efi; the default is bios
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "iri/machine.h"

namespace berth::runtime {

constexpr size_t kMachineClassesMax = 64;

struct OfferedMachineClass {
  enum class Firmware : uint8_t { kBios, kEfi };
  iri::MachineClass machine_class;
  Firmware firmware = Firmware::kBios;
  bool operator==(const OfferedMachineClass&) const = default;
};

// BadRequest names the class, the field and the value.
Result<std::vector<OfferedMachineClass>> ParseMachineClasses(std::string_view yaml);

// Null if it is not offered.
const OfferedMachineClass* FindClass(const std::vector<OfferedMachineClass>& classes,
                                     std::string_view name);

// What is left of `have` for guests: `reserve` is kept for the host, the rest is promised `ratio`
// times. Never below 0.
int64_t PromisedAmount(int64_t have, int64_t reserve, double ratio);

// How many times `needs` is in `total`; 0 if something of it is not there.
int64_t TimesIn(const iri::ResourceVector& needs, const iri::ResourceVector& total);

// TooManyRequests names the first resource of which there is not enough.
Status CheckFits(const iri::ResourceVector& needs,
                 const iri::ResourceVector& used,
                 const iri::ResourceVector& total);
void AddTo(iri::ResourceVector& sum, const iri::ResourceVector& more);

}  // namespace berth::runtime
