"""How many functions and data members each class of a C++ header declares. A count of declarations, not a parser of C++."""

import dataclasses
import re

HEAD = re.compile(r"(?<!enum )\b(class|struct)\s+(?:\[\[\w+\]\]\s*)?(?:CAPABILITY\([^)]*\)\s*|SCOPED_CAPABILITY\s*)?(\w+)\s*(?:final\s*)?(?::[^;{=]*)?\{")
LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'')
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*#(?:[^\n\\]|\\.)*", re.DOTALL | re.MULTILINE)
NOT_MEMBERS = re.compile(r"^(?:using|typedef|friend|static_assert|enum|class|struct|union|template\s*<[^>]*>\s*(?:class|struct|friend))\b")
ACCESS = re.compile(r"^(?:(?:public|private|protected)\s*:\s*)+")
OPERATOR = re.compile(r"\boperator\b|=\s*(?:default|delete)\s*$")


@dataclasses.dataclass(frozen=True)
class ClassSize:
    name: str
    functions: int  # without operators and what is defaulted or deleted
    members: int


def classes(text):
    """The classes of `text`, nested ones too, in order."""
    plain = LITERALS.sub('""', COMMENTS.sub("", text))
    return [_size(found.group(2), _body(plain, found.end())) for found in HEAD.finditer(plain)]


def _body(text, begin):
    depth = 1
    for place in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[begin:place]
    raise ValueError("a class without an end")


def _statements(body):
    """The declarations directly in a class, without what stands in braces."""
    found, text, depth = [], "", 0
    for place, letter in enumerate(body):
        if letter == "{":
            depth += 1
        elif letter == "}":
            depth -= 1
            rest = body[place + 1 :].lstrip()
            # A function's body ends its declaration; an initialiser in braces goes on.
            if depth == 0 and "(" in text and not rest.startswith((";", ",", ")")):
                found.append(text)
                text = ""
        elif depth == 0 and letter == ";":
            found.append(text)
            text = ""
        elif depth == 0:
            text += letter
    statements = (ACCESS.sub("", " ".join(one.split())) for one in found)
    return [one for one in statements if one]


def _size(name, body):
    functions = members = 0
    for statement in _statements(body):
        if NOT_MEMBERS.match(statement):
            continue
        plain = re.sub(r"\b(?:GUARDED_BY|REQUIRES|EXCLUDES|ACQUIRE|RELEASE|alignas)\s*\([^()]*\)", "", statement)
        declarator = re.sub(r"<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>", "", plain).partition("=")[0]
        if OPERATOR.search(plain):
            continue
        if "(" in declarator and not re.search(r"\(\s*\*", declarator):  # a pointer to a function is a member
            functions += 1
        elif not re.match(r"(?:static\s+)?(?:inline\s+)?(?:static\s+)?constexpr\b", plain):
            members += 1
    return ClassSize(name, functions, members)
