/// What the leak sanitizer finds and we cannot mend: libssh2 1.10 loses the host's key (51 bytes) at each later key
/// exchange, and the parts of a signature at each login with an ECDSA key from a file. Neither library is compiled with
/// frame pointers, so that only the name of the library itself can be given.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libssh2.so\nleak:libcrypto.so\n";
}
