#include "launcher/remote/agent_file.hpp"

#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/unique_handle.hpp"

namespace runjob {
namespace {

/// The bytes of the file, mapped into memory, so that only the pages that are used are read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0) fail(path);
    size_ = static_cast<std::size_t>(info.st_size);
    void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (memory == MAP_FAILED) fail(path);
    data_ = static_cast<const char*>(memory);
  }
  ~MappedFile() { ::munmap(const_cast<char*>(data_), size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// A copy of the structure at `offset`; false when it does not lie in the file.
  template <class T>
  bool read(std::size_t offset, T& value) const {
    if (offset > size_ || size_ - offset < sizeof value) return false;
    std::memcpy(&value, data_ + offset, sizeof value);
    return true;
  }
  std::string_view view(std::size_t offset, std::size_t size) const {
    return offset > size_ ? std::string_view() : std::string_view(data_, size_).substr(offset, size);
  }
  std::string_view all() const { return {data_, size_}; }

 private:
  [[noreturn]] static void fail(const std::string& path) {
    throw Error(Errc::kUnavailable,
                fmt::format("cannot read {}: {}; install runjob again", path, std::strerror(errno)));
  }

  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

std::size_t padded(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

/// The note's hexadecimal digits, "" when the segment at [offset, end) has none.
std::string build_id_in(const MappedFile& file, std::size_t offset, std::size_t end) {
  Elf64_Nhdr note;
  while (offset < end && file.read(offset, note)) {
    const std::size_t name = offset + sizeof note;
    const std::size_t contents = name + padded(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && file.view(name, note.n_namesz) == std::string_view("GNU\0", 4)) {
      std::string digits;
      for (const char c : file.view(contents, note.n_descsz))
        digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
      return digits;
    }
    offset = contents + padded(note.n_descsz);
  }
  return "";
}

std::string build_id_of(const MappedFile& file, const Elf64_Ehdr& header) {
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!file.read(header.e_phoff + i * sizeof segment, segment) || segment.p_type != PT_NOTE) continue;
    const std::string id = build_id_in(file, segment.p_offset, segment.p_offset + segment.p_filesz);
    if (!id.empty()) return id;
  }
  return "";
}

std::string machine_name(int machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_PPC64:
      return "ppc64le";
    case EM_RISCV:
      return "riscv64";
    default:
      return fmt::format("ELF machine {}", machine);
  }
}

}  // namespace

AgentFile describe_agent(const std::string& path) {
  const MappedFile file(path);
  Elf64_Ehdr header;
  if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    throw Error(Errc::kUnavailable, fmt::format("{} is not a program; install runjob again", path));
  }
  const std::string id = build_id_of(file, header);
  if (id.empty()) throw Error(Errc::kUnavailable, fmt::format("{} has no build id; install runjob again", path));
  return {path, id, machine_name(header.e_machine)};
}

std::string read_agent(const AgentFile& agent) {
  return std::string(MappedFile(agent.path).all());
}

}  // namespace runjob
