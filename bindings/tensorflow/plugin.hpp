#pragma once

/// The functions that Python calls in librunjob_tensorflow.so after tf.load_op_library() has opened it. Opening it
/// registers the operations.
extern "C" {
/// "asynchronous", "synchronous", or why there are no operations.
__attribute__((visibility("default"))) const char* runjob_tensorflow_state(void);
}
