#include "bindings/tensorflow/operation.hpp"

#include <cstdint>
#include <memory>

#include "bindings/tensorflow/status.hpp"

namespace runjob::tensorflow {
namespace {

class Attributes {
 public:
  explicit Attributes(TF_OpKernelConstruction* construction) : construction_(construction) {}

  int number(const char* name) {
    std::int32_t value = 0;
    if (status_.ok()) tf.OpKernelConstruction_GetAttrInt32(construction_, name, &value, status_.get());
    return value;
  }

  double real(const char* name) {
    float value = 0;
    if (status_.ok()) tf.OpKernelConstruction_GetAttrFloat(construction_, name, &value, status_.get());
    return value;
  }

  bool flag(const char* name) {
    unsigned char value = 0;
    if (status_.ok()) tf.OpKernelConstruction_GetAttrBool(construction_, name, &value, status_.get());
    return value != 0;
  }

  std::string text(const char* name) {
    std::int32_t list_size = 0, size = 0;
    if (status_.ok()) tf.OpKernelConstruction_GetAttrSize(construction_, name, &list_size, &size, status_.get());
    std::string value(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
    if (status_.ok() && !value.empty())
      tf.OpKernelConstruction_GetAttrString(construction_, name, value.data(), value.size(), status_.get());
    return value;
  }

  const TfStatus& status() const { return status_; }

 private:
  TF_OpKernelConstruction* construction_;
  TfStatus status_;
};

/// The user's name, or else the node's, which is unique in its graph and the same on all ranks. For an eager call it is
/// the operation's type.
std::string tensor_name(Attributes& attributes, TF_OpKernelConstruction* construction) {
  std::string name = attributes.text("tensor_name");
  if (name.empty()) {
    const TF_StringView node = tf.OpKernelConstruction_GetName(construction);
    name.assign(node.data, node.len);
  }
  if (attributes.flag("ignore_name_scope")) name.erase(0, name.rfind('/') + 1);
  return name;
}

}  // namespace

Operation* make_operation(const OperationType& type, TF_OpKernelConstruction* construction) {
  Attributes attributes(construction);
  auto operation = std::make_unique<Operation>();
  operation->type = &type;
  if (type.kind != Kind::kJoin) {
    operation->name = std::string(type.wire) + "." + tensor_name(attributes, construction);
    operation->process_set = attributes.number("process_set_id");
  }
  if (is_reduction(type.kind)) {
    operation->reduce_op = attributes.number("reduce_op");
    operation->prescale = attributes.real("prescale_factor");
    operation->postscale = attributes.real("postscale_factor");
  }
  if (type.kind == Kind::kAllreduce) operation->compression = attributes.number("compression");
  if (type.kind == Kind::kBroadcast) operation->root = attributes.number("root_rank");
  if (attributes.status().ok()) return operation.release();
  tf.OpKernelConstruction_Failure(construction, attributes.status().get());
  return nullptr;
}

}  // namespace runjob::tensorflow
