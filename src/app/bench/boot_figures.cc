// SPDX-License-Identifier: Apache-2.0
#include "app/bench/boot_figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"

namespace berth::app {
namespace {

using Params = std::map<std::string, std::string>;

double Millis(Duration duration) { return duration.to_seconds() * 1e3; }
std::string Text(double millis) { return fmt::format("{:.1f}", millis); }

Duration RunningAfter(const BootedGuest& guest) { return guest.times.running - guest.times.sent; }
Duration SpeaksAfter(const BootedGuest& guest) { return guest.times.userspace - guest.times.sent; }
Duration OwnOf(const BootedGuest& guest) { return SumOf(guest.steps, &BootStep::own); }

// What is not zero.
void AddPart(Params& params, const std::string& name, Duration part) {
  if (part != Duration()) params[name + "_ms"] = Text(Millis(part));
}

class Guests {
 public:
  Guests(std::vector<BootedGuest> all, int at_once)
      : all_(std::move(all)), infix_(at_once == 1 ? "" : "_" + std::to_string(at_once)) {}

  // The figure of the guest, or the median.
  void Add(const std::string& name,
           const BootedGuest* of,
           const std::function<Duration(const BootedGuest&)>& took,
           Params params) {
    std::vector<double> values;
    for (const BootedGuest& guest : all_) values.push_back(Millis(took(guest)));
    params["least_ms"] = Text(std::ranges::min(values));
    params["most_ms"] = Text(std::ranges::max(values));
    figures_.push_back({.metric = name + infix_ + "_ms",
                        .value = of != nullptr ? Millis(took(*of)) : Median(std::move(values)),
                        .unit = "ms",
                        .params = std::move(params)});
  }
  void AddSteps(const BootedGuest& of, const Params& common) {
    for (size_t i = 0; i < of.steps.size(); ++i) {
      const BootStep& step = of.steps[i];
      Params params = common;
      params["step"] = step.what;
      AddPart(params, "own", step.own);
      AddPart(params, "image", step.image);
      AddPart(params, "paced", step.paced);
      AddPart(params, "libvirt", step.libvirt);
      AddPart(params, "qemu_img", step.qemu_img);
      const auto took = [i](const BootedGuest& guest) { return guest.steps[i].took; };
      Add("step_" + step.name, &of, took, std::move(params));
    }
  }
  const std::vector<BootedGuest>& all() const { return all_; }
  std::vector<Figure> Take() { return std::move(figures_); }

 private:
  const std::vector<BootedGuest> all_;
  const std::string infix_;
  std::vector<Figure> figures_;
};

}  // namespace

std::vector<Figure> BootFigures(std::vector<BootedGuest> guests, int at_once) {
  CHECK(!guests.empty());
  std::ranges::sort(guests, {}, OwnOf);
  Guests group(std::move(guests), at_once);
  const BootedGuest& middle = group.all()[group.all().size() / 2];
  Params common = {{"guests", std::to_string(at_once)}};
  if (at_once == 1) common["rounds"] = std::to_string(group.all().size());
  Params params = common;
  params["bind_ms"] = Text(Millis(middle.times.bound - middle.times.sent));
  params["libvirt_ms"] = Text(Millis(SumOf(middle.steps, &BootStep::libvirt)));
  params["qemu_img_ms"] = Text(Millis(SumOf(middle.steps, &BootStep::qemu_img)));
  group.Add("create_to_running", nullptr, RunningAfter, params);
  group.Add("create_to_userspace", nullptr, SpeaksAfter, params);
  params["running_ms"] = Text(Millis(RunningAfter(middle)));
  params["userspace_ms"] = Text(Millis(SpeaksAfter(middle)));
  AddPart(params, "image", SumOf(middle.steps, &BootStep::image));
  AddPart(params, "paced", SumOf(middle.steps, &BootStep::paced));
  group.Add("control_plane", &middle, OwnOf, params);
  group.AddSteps(middle, common);
  return group.Take();
}

}  // namespace berth::app
