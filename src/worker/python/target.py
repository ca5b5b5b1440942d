#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the build needs to know of the Python that cordon-python is linked with, one answer a line.

Usage: target.py [SYSROOT CPU]. Without arguments that is the interpreter that runs this. In a cross build it is the one
below SYSROOT, for another processor: its own table of build variables answers (`_sysconfigdata`), read by this interpreter,
which can run nothing of the other. Both must be of one version, since freeze.py compiles with this one: what `marshal`
writes and the byte code in it differ between versions of Python, not between little-endian processors.

Prints the version, the header folder, the folder of architecture-dependent headers, the file name suffix of an extension
module, the archive of position-independent code, the folder of libraries, what the archive is linked with, and the
standard library's folder on the machine that runs it."""
import importlib.util
import platform
import sys
import sysconfig

version = sysconfig.get_python_version()
root = sys.argv[1] if len(sys.argv) > 2 else ""
variables = sysconfig.get_config_vars()
if root:
    name = f"_sysconfigdata__{sys.argv[2]}-linux-gnu"
    path = f"{root}/usr/lib/python{version}/{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OSError as e:
        sys.exit(f"target.py: no Python {version} for {sys.argv[2]} below {root}: {e.strerror}: {path}")
    variables = module.build_time_vars
    if variables["VERSION"] != version:
        sys.exit(f"target.py: Python {variables['VERSION']} below {root}, but this one is {version} ({platform.machine()})")
print(version)
print(root + variables["INCLUDEPY"])
print(root + "/usr/include")
print(variables["EXT_SUFFIX"][1:])
print(f"{root}{variables['LIBPL']}/libpython{variables['LDVERSION']}-pic.a")
print(root + variables["LIBDIR"])
print(variables["MODLIBS"], variables["LIBS"], variables["SYSLIBS"])
print(sysconfig.get_path("stdlib"))
