#include <nlohmann/json.hpp>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/version.hpp"
#include "runtime/collectives/nccl/nccl_backend.hpp"

namespace {

using namespace runjob::runtime;
using nlohmann::ordered_json;

nccl::NcclSettings read_settings() {
  const runjob::Environment environment = runjob::current_environment();
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  return {.library = value("RUNJOB_NCCL_LIBRARY"),
          .host_id = value("NCCL_HOSTID"),
          .may_share = value("NCCL_MULTI_RANK_GPU_ENABLE") == "1"};
}

runjob::Status create(const DeviceOptions& options, std::unique_ptr<DeviceBackend>& backend) {
  try {
    cuda::refuse_forked();
    static_cast<void>(cuda::driver());
    backend = std::make_unique<nccl::NcclBackend>(options, read_settings());
    return {};
  } catch (const runjob::Error& error) {
    return runjob::Status(error);
  } catch (const std::exception& error) {
    return runjob::Status(runjob::Errc::kSystem, error.what());
  }
}

ordered_json entry() {
  return {{"available", false}, {"version", ""}, {"version_code", 0}, {"path", ""}, {"reason", ""}};
}

ordered_json describe_nccl() {
  ordered_json described = entry();
  try {
    const nccl::Library& library = nccl::library(read_settings().library);
    described["version"] = nccl::version_text(library.version);
    described["version_code"] = library.version;
    described["path"] = library.path;
    described["available"] = true;
  } catch (const runjob::Error& error) {
    described["reason"] = error.what();
  }
  return described;
}

ordered_json describe_cuda() {
  ordered_json described = entry(), gpus = ordered_json::array();
  try {
    cuda::refuse_forked();
    const cuda::Driver& driver = cuda::driver();
    described["version"] = cuda::version_text(driver.version);
    described["version_code"] = driver.version;
    described["path"] = driver.path;
    for (const cuda::GpuText& gpu : cuda::list_gpus()) gpus.push_back({{"uuid", gpu.uuid}, {"name", gpu.name}});
    described["available"] = true;
  } catch (const runjob::Error& error) {
    described["reason"] = error.what();
  }
  described["gpus"] = gpus;
  return described;
}

const char* description() {
  static std::string text;
  text = runjob::ordered_json_text({{"nccl", describe_nccl()}, {"cuda", describe_cuda()}});
  return text.c_str();
}

const char* leftover() {
  static std::string text;
  // In a forked child, work on a GPU belongs to the parent.
  text = cuda::is_forked() ? std::string() : nccl::SharedGpu::any_leftover();
  return text.c_str();
}

}  // namespace

/// What librunjob.so looks up: see runtime/collectives/backend.hpp.
extern "C" __attribute__((visibility("default")))
const DevicePlugin runjob_device_plugin = {runjob::kVersion, create, description, leftover};
