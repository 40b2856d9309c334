#include "launcher/elastic/notice_sender.hpp"

namespace runjob {

void NoticeSender::end(int generation, const std::string& why) {
  if (has_ended(generation)) return;
  notice_.ended = generation;
  notice_.reason = why;
  send();
}

void NoticeSender::outdate(int generation, bool only_added) {
  notice_.only_added = only_added && (!is_outdated(generation) || notice_.only_added);
  notice_.outdated = generation;
  send();
}

void NoticeSender::send() {
  ++notice_.sequence;
  send_(notice_);
}

}  // namespace runjob
