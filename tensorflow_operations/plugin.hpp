#pragma once

/// What Python asks librunjob_tensorflow.so after tf.load_op_library() has opened it; opening it registers the operations.
extern "C" {
/// "asynchronous", "synchronous", or why there are no operations.
__attribute__((visibility("default"))) const char* runjob_tensorflow_state(void);
}
