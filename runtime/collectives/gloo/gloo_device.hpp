#pragma once

#include <memory>
#include <string>

#include <gloo/transport/device.h>

namespace runjob::runtime {

/// Gloo's thread and listening sockets at a numeric address of this host.
/// Errors  std::exception, naming the address, when it is none or not this host's: Gloo of 2022 crashes or leaks on those.
std::shared_ptr<gloo::transport::Device> make_gloo_device(const std::string& bind_address);

}  // namespace runjob::runtime
