#include "bindings/tensorflow/plugin.hpp"

#include <string>

#include "base/environment.hpp"
#include "bindings/tensorflow/c_interface.hpp"
#include "bindings/tensorflow/collective_kernels.hpp"
#include "bindings/tensorflow/op_definitions.hpp"
#include "bindings/tensorflow/place.hpp"

namespace runjob::tensorflow {
namespace {

bool is_asynchronous() {
  const Environment environment = current_environment();
  const auto found = environment.find("RUNJOB_TENSORFLOW_SYNCHRONOUS");
  return callbacks_are_ours() && (found == environment.end() || found->second != "1");
}

std::string register_everything() {
  if (const std::string missing = open_tensorflow(); !missing.empty())
    return "this TensorFlow has no " + missing + "()";
  const bool asynchronous = is_asynchronous();
  std::string error = define_operations();
  if (error.empty()) error = register_collective_kernels(asynchronous);
  if (error.empty()) error = register_place_kernels();
  if (!error.empty()) return error;
  return asynchronous ? "asynchronous" : "synchronous";
}

/// TensorFlow lists the operations that are registered while it opens a library.
const std::string state = register_everything();

}  // namespace
}  // namespace runjob::tensorflow

const char* runjob_tensorflow_state(void) {
  return runjob::tensorflow::state.c_str();
}
