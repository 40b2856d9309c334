/// The thread sanitizer calls this function for the reports that it must leave out. glibc gives the memory of a detached
/// thread's thread_local objects to the next thread, under a lock of its own that the sanitizer does not see.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions();

const char* __tsan_default_suppressions() {
  return "race:_dl_deallocate_tls\n";
}
