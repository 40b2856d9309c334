"""Makes of the system's Gloo one that a wheel can carry.

    carry_gloo.py --gloo /usr/lib/libgloo.so.0 --module librunjob_gloo.so --compiler cc --patchelf patchelf --to FOLDER

A distribution's Gloo also knows InfiniBand and Redis, and needs their libraries. runjob uses its TCP transport and nothing else, so
functions that do nothing take their places: FOLDER gets librunjob_gloo.so, librunjob_libgloo.so (Gloo) and librunjob_absent.so (those
functions). The names are runjob's own, since what is loaded under a library's usual name is what others in the process get for it.
"""

import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import tempfile

# Every system has these; the list is manylinux's, as far as C++ libraries need it.
EVERYWHERE = re.compile(r"(ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so\.\d+$")
GLOO, ABSENT = "librunjob_libgloo.so", "librunjob_absent.so"


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def needed(patchelf, library):
    return output(patchelf, "--print-needed", library).split()


def path_of(library, name):
    """Where the loader finds what `library` needs as `name`."""
    found = re.search(rf"^\s*{re.escape(name)} => (/\S+)", output("ldd", library), re.MULTILINE)
    if not found:
        raise SystemExit(f"carry_gloo.py: {library} needs {name}, which is not installed")
    return found.group(1)


def absent_functions(gloo, absent):
    """Of the libraries `absent`, what `gloo` calls: names by version, which is empty for none."""
    defined = {}
    for library in absent:
        for line in output("nm", "-D", "--defined-only", path_of(gloo, library)).splitlines():
            _, kind, symbol = line.split()
            defined[symbol.partition("@")[0]] = kind
    by_version = collections.defaultdict(list)
    for line in output("nm", "-D", "--undefined-only", gloo).splitlines():
        name, _, version = line.split()[-1].partition("@")
        if name not in defined:
            continue
        if defined[name] not in "TWi":
            raise SystemExit(f"carry_gloo.py: {gloo} uses {name}, which is no function: it cannot be left out")
        by_version[version.lstrip("@")].append(name)
    return by_version


def compile_absent(compiler, by_version, result):
    """Each returns null, which Gloo takes for "no device", "no connection", and reports."""
    with tempfile.TemporaryDirectory() as folder:
        source, versions = pathlib.Path(folder, "absent.c"), pathlib.Path(folder, "absent.map")
        names = [name for each in by_version.values() for name in each]
        source.write_text("".join(f"void *{name}(void) {{ return 0; }}\n" for name in sorted(names)))
        nodes = [f"{version} {{ global: {'; '.join(each)}; }};\n" for version, each in sorted(by_version.items()) if version]
        versions.write_text("".join(nodes))
        script = [f"-Wl,--version-script={versions}"] if nodes else []
        # fno-builtin: whatever the names are, they are not the compiler's own functions.
        flags = ["-shared", "-fPIC", "-fno-builtin", "-nostdlib", "-s", "-Wl,-z,relro,-z,now", f"-Wl,-soname,{ABSENT}", *script]
        output(compiler, *flags, "-o", result, source)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gloo", type=pathlib.Path, required=True)
    parser.add_argument("--module", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--patchelf", required=True)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    patchelf, folder = arguments.patchelf, arguments.to
    folder.mkdir(parents=True, exist_ok=True)
    module, gloo = folder / arguments.module.name, folder / GLOO
    shutil.copy(arguments.module, module)
    shutil.copy(arguments.gloo, gloo)

    (usual_name,) = output(patchelf, "--print-soname", gloo).split()
    absent = [name for name in needed(patchelf, gloo) if not EVERYWHERE.match(name)]
    compile_absent(arguments.compiler, absent_functions(arguments.gloo, absent), folder / ABSENT)
    # One change for each call: patchelf 0.14 mixes up the words of several.
    for name in absent:
        output(patchelf, "--replace-needed", name, ABSENT, gloo)
    output(patchelf, "--set-soname", GLOO, gloo)
    output(patchelf, "--set-rpath", "$ORIGIN", gloo)
    output(patchelf, "--replace-needed", usual_name, GLOO, module)
    output(patchelf, "--set-rpath", "$ORIGIN", module)


if __name__ == "__main__":
    main()
