/* Sums rank + 1 over all ranks, in C. */
#include <runjob/runjob.h>
#include <stdio.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, runjob_error_message());
  return 1;
}

int main(void) {
  if (runjob_init() != RUNJOB_OK) return failed("init");
  const int64_t shape[] = {1};
  double sum = runjob_rank() + 1;
  runjob_handle handle = 0;
  if (runjob_allreduce_async("sum", &sum, &sum, shape, 1, RUNJOB_FLOAT64, RUNJOB_SUM, 1.0, 1.0, 0, &handle) !=
      RUNJOB_OK)
    return failed("allreduce");
  if (runjob_wait(handle, -1) != RUNJOB_OK) return failed("wait");
  runjob_release(handle);
  printf("rank %d of %d: %g\n", runjob_rank(), runjob_size(), sum);
  return runjob_shutdown() == RUNJOB_OK ? 0 : failed("shutdown");
}
