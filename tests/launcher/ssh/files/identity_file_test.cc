#include "launcher/ssh/files/identity_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/launcher/ssh/test_folder.hpp"

using namespace runjob;

TEST_CASE("a key in ssh's own format shows its public key, also when it is encrypted", "[unit]") {
  const TestFolder folder;
  const std::string type = GENERATE("ed25519", "ecdsa", "rsa");
  const std::string passphrase = GENERATE("", "secret");
  INFO(type << " " << passphrase);
  const std::string path = folder.make_key("key", {"-t", type, "-N", passphrase});
  const auto expected = parse_public_key(folder.read("key.pub"));
  REQUIRE(run_program({"rm", path + ".pub"}).empty());
  const auto identity = read_identity(path);
  REQUIRE(identity);
  CHECK(identity->path == path);
  CHECK(identity->public_key == expected);
  CHECK(identity->encrypted == !passphrase.empty());
  CHECK(identity->is_rsa == (type == "rsa"));
  CHECK(identity->private_key == folder.read("key"));
  CHECK_FALSE(identity->has_certificate);
}

TEST_CASE("a key in PEM tells its kind, and its public key comes from the file beside it", "[unit]") {
  const TestFolder folder;
  const std::string format = GENERATE("PEM", "PKCS8");
  const std::string type = GENERATE("ecdsa", "rsa");
  const std::string passphrase = GENERATE("", "secret");
  INFO(format << " " << type << " " << passphrase);
  const std::string path = folder.make_key("key", {"-t", type, "-m", format, "-N", passphrase});
  const auto with_public = read_identity(path);
  REQUIRE(with_public);
  CHECK(with_public->public_key == parse_public_key(folder.read("key.pub")));
  CHECK(with_public->encrypted == !passphrase.empty());
  CHECK(with_public->is_rsa == (type == "rsa"));
  REQUIRE(run_program({"rm", path + ".pub"}).empty());
  const auto alone = read_identity(path);
  REQUIRE(alone);
  CHECK_FALSE(alone->public_key);
  const bool is_hidden = format == "PKCS8" && !passphrase.empty();
  CHECK(alone->is_rsa == (type == "rsa" && !is_hidden));
}

TEST_CASE("a private key that others may read is marked, a public one is not", "[unit]") {
  const TestFolder folder;
  const std::string path = folder.make_key("key", {"-t", "ed25519"});
  CHECK(read_identity(path)->too_open == 0);
  for (const mode_t mode : {0644u, 0640u, 0620u, 0601u}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK(read_identity(path)->too_open == mode);
  }
  REQUIRE(::chmod((path + ".pub").c_str(), 0666) == 0);
  CHECK(read_identity(path + ".pub")->too_open == 0);
  if (::getuid() != 0) {
    WARN("skipped: another owner needs root");
    return;
  }
  REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);  // then ssh does not look at the mode either
  CHECK(read_identity(path)->too_open == 0);
}

TEST_CASE("a public key alone names a key of ssh-agent", "[unit]") {
  const TestFolder folder;
  const std::string path = folder.make_key("key", {"-t", "ed25519"});
  const auto identity = read_identity(path + ".pub");
  REQUIRE(identity);
  CHECK(identity->private_key.empty());
  CHECK(identity->public_key == parse_public_key(folder.read("key.pub")));
}

TEST_CASE("a certificate beside the key is noticed", "[unit]") {
  const TestFolder folder;
  const std::string path = folder.make_key("key", {"-t", "ed25519"});
  folder.write("key-cert.pub", "certificate");
  CHECK(read_identity(path)->has_certificate);
}

TEST_CASE("what is no key is no identity", "[unit]") {
  const TestFolder folder;
  CHECK_FALSE(read_identity(folder.path("missing")));
  CHECK_FALSE(read_identity(folder.path(".")));
  CHECK_FALSE(read_identity(folder.write("text", "hello\n")));
  CHECK_FALSE(read_identity("/dev/zero"));
  const std::string begin = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  const std::string end = "-----END OPENSSH PRIVATE KEY-----\n";
  CHECK_FALSE(parse_identity(begin, ""));
  CHECK_FALSE(parse_identity(begin + end, ""));
  CHECK_FALSE(parse_identity(begin + "AAAA\n" + end, ""));
  CHECK_FALSE(parse_identity(begin + "b3BlbnNzaC1rZXktdjEA/////w==\n" + end, ""));
}
