// SPDX-License-Identifier: Apache-2.0
// A guest's way from its create to its first word, step by step: from what a client saw, and from
// what poollet and machine runtime wrote down (app/process/span_log.h). Pure.
//
// Each step begins where the one before ends, so they add up to the whole.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace berth::app {

struct TraceSpan {
  std::string name;  // "libvirt.start"
  WallTime begin;
  WallTime end;
  std::string of = {};  // a machine, by its uid or its ID at the runtime; "": none of them
};

// One span per line; what is none is left out.
std::vector<TraceSpan> ParseSpans(std::string_view lines);
// Those of one machine, whatever it is called.
std::vector<TraceSpan> SpansOf(const std::vector<TraceSpan>& spans,
                               std::initializer_list<std::string_view> names);
// How much of the time from `begin` to `end` is covered by spans whose names begin like one of
// these; counted once where they overlap.
Duration Covered(const std::vector<TraceSpan>& spans,
                 std::initializer_list<std::string_view> prefixes,
                 WallTime begin,
                 WallTime end);

// What a client saw.
struct BootTimes {
  WallTime sent;          // the create
  WallTime acknowledged;  // answered
  WallTime bound;         // seen on a watch, as is the next
  WallTime running;
  WallTime userspace;  // the guest's first program spoke
};

struct BootStep {
  std::string name;  // "scheduler"
  std::string what;  // from where to where, for people
  Duration took;     // = own + libvirt + qemu_img + guest
  Duration own;      // of Berth itself
  Duration image;    // of that, fetching or verifying the image
  Duration paced;    // of that, waiting for its turn among guests that start
  Duration libvirt;
  Duration qemu_img;
  Duration guest;  // of QEMU and what runs in it
};

// The steps of the guest whose spans these are. NotFound if the trace lacks a step; Internal if one
// is out of its order, as when the clock was set meanwhile.
Result<std::vector<BootStep>> StepsOf(const BootTimes& times, const std::vector<TraceSpan>& spans);
// Internal unless every step is the sum of its parts, all but the guest's own are what it took to
// run, and all are what it took to speak.
Status CheckSum(const BootTimes& times, const std::vector<BootStep>& steps);
Duration SumOf(const std::vector<BootStep>& steps, Duration BootStep::* what);

}  // namespace berth::app
