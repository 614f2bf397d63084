// SPDX-License-Identifier: Apache-2.0
#include "runtime/images/host_images.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "image/image_folder.h"
#include "image/manifest.h"
#include "image/reference.h"

namespace berth::runtime {

HostImages::HostImages(rt::AsioLoop& loop,
                       rt::BlockingPool& files,
                       rt::BlockingPool& large,
                       Options options)
    : files_(files),
      has_folder_(!options.folder.empty()),
      image_bytes_max_(options.puller.image_bytes_max),
      local_(options.folder, files, large),
      credentials_(options.credentials_folder),
      puller_(loop,
              large,
              image::ImageFolder(options.folder).registry_layout(),
              std::move(options.puller)) {}

Status HostImages::Check(std::string_view reference) const {
  TRY(const image::Reference parsed, image::ParseReference(reference));
  if (parsed.registry.empty() || has_folder_) return OkStatus();
  return BadRequest("image " + Quote(reference) + ": this host has no folder of images");
}

bool HostImages::SetPullSecret(const std::string& uid, std::string docker_config) {
  const auto found = pull_secrets_.find(uid);
  if (found != pull_secrets_.end() && found->second == docker_config) return false;
  if (docker_config.empty()) return pull_secrets_.erase(uid) > 0;
  if (found == pull_secrets_.end() && pull_secrets_.size() >= kPullSecretsMax) return false;
  pull_secrets_.insert_or_assign(uid, std::move(docker_config));
  return true;
}

std::shared_ptr<rt::Gate> HostImages::PullsOf(const std::string& namespace_) {
  std::erase_if(pulls_of_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<rt::Gate>& known = pulls_of_[namespace_];
  std::shared_ptr<rt::Gate> gate = known.lock();
  if (gate == nullptr) known = gate = std::make_shared<rt::Gate>(kPullsOfNamespaceMax);
  return gate;
}

rt::Task<Result<image::ImageFiles>> HostImages::Fetch(ImageRequest request) {
  CO_TRY(const image::Reference reference, image::ParseReference(request.reference));
  request.disk_bytes_max = std::min(request.disk_bytes_max, image_bytes_max_);
  if (reference.registry.empty()) co_return co_await local_.Fetch(std::move(request));
  CO_TRY_STATUS(Check(request.reference));
  image::PullRequest pull;
  pull.reference = reference;
  pull.disk_bytes_max = request.disk_bytes_max;
  pull.progress = request.progress;
  pull.unpacking = request.unpacking;
  pull.claim = request.claim;
  pull.architecture =
      request.architecture.empty() ? std::string(image::kHostArchitecture) : request.architecture;
  if (const auto own = pull_secrets_.find(request.uid); own != pull_secrets_.end()) {
    auto found = image::CredentialsFor(own->second, reference.registry);
    if (!found.ok()) co_return found.status().Wrap("image pull secret");
    pull.credentials = *std::move(found);
  }
  if (pull.credentials.empty()) {
    const auto look = [this, &request, &reference] {
      return credentials_.For(request.namespace_, reference.registry);
    };
    CO_TRY(pull.credentials, co_await files_.Run("images.credentials", look));
  }
  const std::shared_ptr<rt::Gate> own = PullsOf(request.namespace_);
  CO_TRY(const rt::Gate::Permit own_permit, co_await own->Enter());
  CO_TRY(const rt::Gate::Permit permit, co_await pulls_.Enter());
  co_return co_await puller_.Pull(std::move(pull));
}

}  // namespace berth::runtime
