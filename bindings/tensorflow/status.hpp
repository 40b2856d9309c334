#pragma once

#include <string>

#include "bindings/tensorflow/c_interface.hpp"

namespace runjob::tensorflow {

/// A TF_Status that goes with its scope.
class TfStatus {
 public:
  TfStatus() : status_(tf.NewStatus()) {}
  ~TfStatus() { tf.DeleteStatus(status_); }
  TfStatus(const TfStatus&) = delete;
  TfStatus& operator=(const TfStatus&) = delete;

  TF_Status* get() const { return status_; }
  bool ok() const { return tf.GetCode(status_) == TfCode::kOk; }
  std::string message() const { return tf.Message(status_); }
  void set(TfCode code, const std::string& message) { tf.SetStatus(status_, code, message.c_str()); }

 private:
  TF_Status* status_;
};

}  // namespace runjob::tensorflow
