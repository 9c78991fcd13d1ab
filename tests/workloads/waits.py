# SPDX-License-Identifier: Apache-2.0
"""Who reads this program's stack of frames has to wait for ever: a page of it, with the outer frames, is of a file on a
filesystem that does not answer, put there once the program has been read. The text of the context that it publishes lies
there from the beginning. CPython 3.11 to 3.13. waits.py DIRECTORY FILE
mounts that at DIRECTORY, which has to be in a mount namespace of its own, makes FILE when it is done, and works; the
filesystem ends with its server, the child, and that with the program."""
import ctypes
import os
import struct
import sys
import time

DATASTACK_CHUNK = {11: 296, 12: 232, 13: 232}[sys.version_info[1]]  # in PyThreadState
PR_SET_PDEATHSIG = 1
PAGE = 4096
FIXED_PRIVATE = 0x12
FUSE = {"lookup": 1, "getattr": 3, "open": 14, "read": 15, "release": 18, "init": 26}
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def attributes(inode):
    mode = 0o40755 if inode == 1 else 0o100644
    return struct.pack("<QQQQQQIIIIIIIIII", inode, PAGE, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, PAGE, 0)


def answer(opcode, inode):
    """None: never."""
    if opcode == FUSE["init"]:
        return struct.pack("<IIIIHHI", 7, 31, PAGE, 0, 8, 8, PAGE) + bytes(40)
    if opcode == FUSE["lookup"]:
        return struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + attributes(2)
    if opcode == FUSE["getattr"]:
        return struct.pack("<QII", 0, 0, 0) + attributes(inode)
    if opcode == FUSE["open"]:
        return struct.pack("<QII", 1, 0, 0)
    return None if opcode == FUSE["read"] else b""


def serve(fd):
    while True:
        request = os.read(fd, 1 << 17)
        _, opcode, unique, inode = struct.unpack_from("<IIQQ", request)
        body = answer(opcode, inode)
        if body is not None:
            os.write(fd, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)


def mount(directory):
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"waits", directory.encode(), b"fuse", 0, options) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    if os.fork() == 0:
        libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)
        try:
            serve(fd)
        finally:
            os._exit(0)
    os.close(fd)


def publish(fd):
    """As OTEP 4719 says."""
    libc.memfd_create.argtypes = [ctypes.c_char_p, ctypes.c_uint]
    memory_fd = libc.memfd_create(b"OTEL_CTX", 0)
    os.truncate(memory_fd, PAGE)
    memory = libc.mmap(None, PAGE, 3, 1, memory_fd, 0)
    text = libc.mmap(None, PAGE, 1, 2, fd, 0)
    header = struct.pack("<8sIIQQ", b"OTEL_CTX", 2, 100, 1, text)
    ctypes.memmove(memory, header, len(header))


def deep(n, inside):
    return deep(n - 1, inside) if n else inside()


def main():
    directory, name = sys.argv[1:]
    mount(directory)
    fd = os.open(os.path.join(directory, "file"), os.O_RDONLY)
    publish(fd)
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
    numbers = list(range(1 << 20))

    def inside():
        state = ctypes.pythonapi.PyThreadState_Get()
        chunk = ctypes.c_uint64.from_address(state + DATASTACK_CHUNK).value
        end = time.monotonic() + 3
        while time.monotonic() < end:
            sum(numbers)
        got = libc.mmap(chunk, PAGE, 1, FIXED_PRIVATE, fd, 0)
        if got != chunk:
            os._exit(3)
        with open(name, "w", encoding="ascii") as f:
            f.write("there")
        while True:
            sum(numbers)

    deep(90, inside)


main()
